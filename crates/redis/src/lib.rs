//! The journal of a store in Redis or Valkey: numbered entries in a stream, which one leader writes under an epoch.
//!
//! A few scripts (`lua/`) make all decisions inside Redis. Each is one atomic step there, and answers a repeat like the
//! first call. [`RedisStore`] calls them; [`RedisJournal`] builds a [`Journal`](tenure_journal::Journal) from them. One
//! connection carries all calls of a store in order, and sends unanswered calls again after it was lost.
//!
//! A user of Redis needs [`COMMANDS`] on the keys of the store, and `CLIENT SETNAME` if its connections are to have a
//! name; the user of the Sentinels needs `SENTINEL` and `PING`. With Sentinels it should also have `ROLE` on the
//! servers: without it, a demoted primary shows only by its first refusal.
//!
//! This crate knows bytes, numbers, keys and the ids of leaders. It must never know a rule of jobs or a table of SQL,
//! nor decide which server leads a store.

mod commands;
mod confirmation;
mod copies;
mod dial;
mod found;
mod generation;
mod journal;
mod keys;
mod known;
mod line;
mod plain;
mod refusal;
mod resp;
mod room;
mod scripts;
mod server_entry;
mod servers;
mod settings;
mod sizes;
mod snapshot;
mod store;
mod unfit;

pub use commands::COMMANDS;
pub use confirmation::ReplicaShortage;
pub use copies::CopyMark;
pub use found::find_servers;
pub use generation::Generation;
pub use journal::{AcquireError, RedisJournal};
pub use keys::StoreKeys;
pub use plain::PlainRedis;
pub use resp::RespValue;
pub use room::STORE_KIND;
pub use scripts::{
    Acquisition, AppendCall, FORMAT, HandOver, Own, PieceCall, RunNote, ScriptReply, SnapshotName,
    SnapshotTurn, StoreNaming, Term,
};
pub use server_entry::ServerEntry;
pub use servers::StoreServers;
pub use sizes::{SNAPSHOT_LOG_BYTES, StoreRoom, StoreSizes};
pub use snapshot::{RedisSnapshot, WriteError};
pub use store::{NamedOwner, RedisStore, SeenStore, StoreCall, StoreError};
pub use unfit::UnfitServer;
