//! Servers of one store on a real Redis, and copies between stores.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod copy;
mod nodes;
