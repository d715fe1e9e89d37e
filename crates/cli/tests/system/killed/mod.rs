//! A `tenure` that is killed or stopped takes its CMD with it: all that CMD started, and its files.

// A test that cannot even start the command is to fail loudly.
// Elsewhere a process that left CMD's group is not found.
#![cfg(target_os = "linux")]

mod rounds;
mod sigkill;
mod stopped;
