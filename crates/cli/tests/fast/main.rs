//! The command line as its users type it, its pages, and the rules about the project as a whole.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod backup;
mod command_line;
mod copy;
mod doctor;
mod house;
mod snapshots;
mod with_a_store;
