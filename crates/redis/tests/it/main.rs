//! The journal on a real Redis: appends, snapshots, access, replicas and room.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod access;
mod conformance;
mod line;
mod panics;
mod replicas;
mod room;
mod scripts;
mod servers;
mod snapshots;
