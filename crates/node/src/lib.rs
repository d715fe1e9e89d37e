//! Server of a store that several servers share: the driver of the election.
//!
//! The state machine [`tenure_election::Election`] elects the leader. This crate drives it: it calls the store in Redis,
//! reads the clock, opens and closes the engine, and asks other servers. It gives the outcomes to the state machine as
//! inputs, and runs the effects that it returns.
//!
//! It must never know a rule of jobs, nor decide which server leads: a missing rule belongs into the state machine.

mod administration;
mod appends;
mod backup;
mod clock;
mod copy;
mod driver;
mod effects;
mod engine;
mod journal;
mod known_servers;
mod known_settings;
mod lent_snapshots;
mod loading;
mod node;
mod options;
mod place;
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
pub use engine::NodeEngine;
pub use node::Node;
pub use options::{AskServer, AskedServer, NodeError, NodeOptions, SnapshotWish};
pub use place::{FollowerHealth, NodeHealth, Places, StoreLeader, leader_sentence};
pub use settings::StoreSettings;
pub use tenure_election::election::ServerWord;
pub use tenure_election::ids::Epoch;
pub use tenure_journal::Position;
pub use tenure_redis::{Generation, STORE_KIND, SnapshotName, StoreError, StoreSizes, Term};
