//! The journal of a store in Redis or Valkey: numbered entries in a stream, written by one owner under an epoch.
//!
//! All that is decided inside Redis is decided by a few scripts (`lua/`), each of which is one step there and answers a
//! repeat as the first time. [`RedisStore`] calls them; [`RedisJournal`] is a [`Journal`](tenure_journal::Journal) made of
//! them. One connection carries all calls of a store in their order, and carries them again when it was lost.
//!
//! A user of Redis must be allowed [`COMMANDS`] on the keys of the store, and `CLIENT SETNAME` if its connections are to have a
//! name; the user of the Sentinels, `SENTINEL` and `PING`. With Sentinels it should be allowed `ROLE` on the servers too: without it a
//! primary that was demoted is found out by its first refusal.
//!
//! This crate knows bytes, numbers, keys and owners' ids. It must never know a rule of jobs or a table of SQL, nor decide
//! who should own a store.

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
mod packed;
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
    Acquisition, AppendCall, FORMAT, HandOver, Own, Ownership, PieceCall, RunNote, ScriptReply,
    SnapshotName, SnapshotTurn, StoreNaming,
};
pub use server_entry::ServerEntry;
pub use servers::StoreServers;
pub use sizes::{StoreRoom, StoreSizes};
pub use snapshot::{RedisSnapshot, WriteError};
pub use store::{NamedOwner, RedisStore, SeenStore, StoreCall, StoreError};
pub use unfit::UnfitServer;
