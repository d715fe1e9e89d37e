//! Requests: one struct per operation, with one reply each. Together they are the whole surface of an engine.
//!
//! The server makes requests from HTTP, the remote engine makes HTTP from them, the other engines answer them. Nothing
//! here decides: the engine that answers a request refuses one that cannot be met.

mod events;
mod failures;
mod flows;
mod jobs;
mod leases;
mod limits;
mod many;
mod pages;
mod patch;
mod pools;
mod queues;
mod resources;
mod schedules;
mod stats;
mod table;
mod waits;

pub use events::*;
pub use failures::*;
pub use flows::*;
pub use jobs::*;
pub use leases::*;
pub use limits::*;
pub use many::*;
pub use pages::{Listed, Page};
pub use patch::{Change, Patch, Put};
pub use pools::*;
pub use queues::*;
pub use resources::*;
pub use schedules::*;
pub use stats::*;
pub use table::{Answer, Effect, HttpMethod, OPERATIONS, Operation, Reply, Request, Spec};
