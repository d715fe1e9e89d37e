//! Shared parts of the two command lines: `tenure`, and `tenure-lab`, which measures Tenure and tries to break it.
//!
//! Output for people and for programs, exit codes, a process from its start to its exit code, child processes that end
//! with it, and a part of a Redis that is emptied at the end. Nothing here is a command, knows an option or decides a
//! rule of Tenure. It is no public API: it may change with any release.

pub mod child_processes;
pub mod exit;
pub mod machine_zone;
pub mod output;
pub mod program;
pub mod scratch;
pub mod standing;
pub mod stderr;
