//! Occurrences against a walk over each minute, and on the days of the clock change.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod brute_force;
mod clock_changes;
