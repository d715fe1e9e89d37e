//! The package as its users see it: builders, tasks, sandboxes, and the calls over HTTP.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod codec;
mod documented;
mod examples;
mod heartbeats;
mod in_sentences;
mod mapping;
mod remote_faults;
mod remote_mapping;
mod sandbox;
mod scripted;
mod several_servers;
mod tasks;
