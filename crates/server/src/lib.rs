//! Tenure over HTTP: any [`Engine`](tenure_engine_api::Engine) behind the routes of the contract.
//!
//! The path of a request: `accept` takes connections; `handshake` begins TLS, where it is used; `conn` drives one
//! connection and ends it when it is too slow (`closing`); `service` takes one request through the `gate` (access)
//! to its route in the table of `routes`, reads its `body`, and writes the engine's reply as an `answer`, all within one
//! `budget` of bytes. A refusal becomes a `problem`. If another server leads the store (`leadership`), `forward`
//! forwards the request, and its `engine` does the same for calls of this process; `peers` answers the other requests
//! of servers. The `trail` has a line for each change and refusal.
//!
//! `program` is a server inside a Rust program (`Server`), behind the crate feature of that name; only this module
//! opens stores.
//!
//! Nothing here decides anything about jobs or leases, or logs payloads, resource data or tokens, and only `program`
//! knows which engine it calls. `tenure_core::decode` reads bodies, queries and paths.

mod accept;
mod answer;
mod backups;
mod body;
mod budget;
mod call_bounds;
mod caller;
mod closing;
mod config;
mod conn;
mod control_frames;
mod deps;
mod examples;
mod forward;
mod gate;
mod handshake;
mod io;
mod leadership;
mod listed;
mod listen;
pub mod metrics;
mod openapi;
mod out;
mod pages;
mod peers;
mod problem;
#[cfg(feature = "program")]
mod program;
mod request_log;
mod routes;
mod schemas;
mod service;
mod silence;
mod snapshots;
mod strangers;
mod target;
mod tokens;
mod trace;
mod traffic;
mod trail;
mod undelivered;

pub use accept::{DrainReport, run, run_metrics};
pub use backups::{BackupChunks, MakesBackups};
pub use caller::{Caller, GuardedEngine};
pub use config::Config;
pub use deps::{Deps, MetricsDoor};
pub use forward::ForwardingEngine;
pub use leadership::{Describes, LeaderReport, Leadership, PeerGroup, ServingLeader};
pub use listen::{ListenRefused, TOKEN_BYTES_MIN, is_short, may_listen};
pub use openapi::document;
pub use pages::{Drains, OverTls, PageBody, PageFuture, Pages, SessionChange};
pub use peers::{AsksServers, ServerSays, ServerSaysFuture, WrittenSnapshotFuture};
#[cfg(feature = "program")]
pub use program::{
    Advertised, OwnBackups, Server, ServerBuilder, SharedStore, StartError, StoreSettings,
    node_options,
};
pub use routes::names_of_all as route_names;
pub use snapshots::{AskedSnapshot, WritesSnapshots, WrittenSnapshot};
pub use tenure_core::access::{GivenGrants, Grants, NotGrants};
#[cfg(feature = "program")]
pub use tenure_engine::{Seal, SealKeyError};
pub use tokens::{
    LISTED_TOKENS_MAX, ListedRefused, ListedToken, TOKEN_PREFIX, TOKENS_MAX, Tokens, check_listed,
    token_hash,
};
pub use trail::{
    CallRecord, TRAIL_FOLDER, Trail, TrailBreak, TrailOptions, TrailPlace, VerifiedTrail,
    follow_leadership, verify_trail, write_offline,
};
