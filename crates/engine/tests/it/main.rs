//! The engine from the outside: every rule of the suite, and the survival of the store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod conformance;
mod restored;
mod store;
