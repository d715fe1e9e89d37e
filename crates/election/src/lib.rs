//! Leader election for a store in Redis: one leader at a time, fenced by an epoch.
//!
//! [`Election`] is a deterministic state machine: it takes messages and time, and returns actions. It knows only numbers
//! and checksums of entries, and no rule of jobs; it reads no clock, and has no task and no socket. [`scripts`] is the
//! other side: the code inside Redis, as pure functions.

pub mod election;
#[cfg(test)]
mod histories;
pub mod ids;
mod mutant;
pub mod scripts;
mod wall;

pub use election::Election;
pub use wall::Wall;
