//! What is promised when Redis, the network, the clock or a slot fails: each promise of
//! `docs/guarantees/redis.md` and `cluster.md`, with the failure made to happen.

mod audited;
mod audited_flows;
mod audited_replacing;
mod births;
mod calls;
mod claims;
mod clock;
mod events;
mod failover;
mod first_comers;
mod full;
mod gauges;
mod kill;
mod leap;
#[expect(dead_code, reason = "the tests of waiting calls use more of it")]
mod listening;
mod lost_all;
mod moved;
mod parcels;
mod partition;
#[path = "../link/proxy.rs"]
#[expect(dead_code, reason = "the link's own tests use more of it")]
mod proxy;
mod reclaim;
mod releases;
mod schedules;
mod slot;
mod unreadable;
mod waits;
