//! One server as a member of a store that several servers share.
//!
//! Who owns the store is decided by the value [`tenure_owner::Owner`]. This crate is its hands: it calls the store in Redis,
//! reads the clock, opens the engine and lets go of it, and asks other servers. What comes of all that it tells the value,
//! and does what the value says.
//!
//! It must never know a rule of jobs, nor decide who owns the store: a rule that is missing belongs into the value.

mod administration;
mod appends;
mod clock;
mod copy;
mod deeds;
mod engine;
mod hands;
mod journal;
mod known_servers;
mod known_settings;
mod lent_snapshots;
mod loading;
mod member;
mod options;
mod place;
mod priority;
mod random;
mod room;
mod settings;
mod snapshots;
mod standby;
mod standby_rows;
mod state;
mod translate;
mod watchdog;

pub use administration::{Compacted, ShownServer, ShownStore, StoreAdministration};
pub use copy::{CopyOpenError, CopyRedis};
pub use engine::MemberEngine;
pub use member::Member;
pub use options::{AskServer, AskedServer, MemberError, MemberOptions, SnapshotWish};
pub use place::{MemberHealth, Places, StandbyHealth, StorePlace};
pub use settings::StoreSettings;
pub use tenure_journal::Position;
pub use tenure_journal_redis::{
    Generation, Ownership, STORE_KIND, SnapshotName, StoreError, StoreSizes,
};
pub use tenure_owner::ids::Epoch;
pub use tenure_owner::owner::ServerWord;
