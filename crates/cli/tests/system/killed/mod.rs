//! A `tenure` that is killed or stopped takes its CMD with it: all that CMD started, and its files.

// Elsewhere a process that left CMD's group is not found.
#![cfg(target_os = "linux")]

mod rounds;
mod sigkill;
mod stopped;
mod suspended;
