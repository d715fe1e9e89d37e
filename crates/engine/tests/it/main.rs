//! The engine as its callers see it: every rule of the suite, and the store that survives.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod conformance;
mod store;
