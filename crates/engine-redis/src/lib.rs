//! The engine on Redis or Valkey: the same rules, as one function library on the server, for any
//! number of equal processes.
//!
//! The way of a call: the engine packs it into arguments, [`link`] brings it to the primary that has
//! the namespace, and one function of the [`library`] does it there, in one atomic step, by the
//! server's own clock. Processes keep nothing that another could not.
//!
//! Nothing here decides anything about jobs: the rules are in `lua/`, and `tenure-machine` says what
//! they must be.

mod alphabet;
mod answer;
mod bucket;
mod by_itself;
mod call;
mod copy;
mod decode;
mod encode;
mod engine;
mod events;
mod flows;
mod function;
mod gauges;
mod holders;
mod jobs;
mod known;
mod lease_id;
pub mod library;
pub mod link;
mod lists;
#[cfg(test)]
mod lua;
mod many;
mod options;
mod schedules;
#[cfg(test)]
mod sentences;
mod shared;
mod sync;
mod sync_schedules;
mod waiting;

pub use copy::RedisCopy;
pub use engine::RedisEngine;
pub use options::{Options, Time};
