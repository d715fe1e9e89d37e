//! Which server owns a store that Redis keeps: one at a time, fenced by an epoch.
//!
//! [`Owner`] is a deterministic value: it takes messages and time, and gives actions. It knows entries by their numbers and
//! checksums alone, and no rule of jobs; it reads no clock, has no task and no socket. [`scripts`] is the other side: what
//! runs inside Redis, as pure functions.

#[cfg(test)]
mod histories;
pub mod ids;
mod mutant;
pub mod owner;
pub mod scripts;
mod wall;

pub use owner::Owner;
pub use wall::Wall;
