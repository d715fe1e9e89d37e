//! The server by its address: its answers, refusals and bounds, and calls that it forwards to the leader of the store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod answers;
mod backups;
mod budget;
mod conformance_remote;
mod description;
mod edges;
mod event_callers;
mod events;
mod flows;
mod forward;
mod forwarding_engine;
mod gate;
mod gone;
mod http_page;
mod program;
mod recorded;
mod refusals;
mod schemas;
mod scopes;
mod scopes_forwarded;
mod sentences;
mod starved;
mod strangers;
mod suspended;
mod test_clock;
mod trail;
mod trail_anchor;
mod wire;
