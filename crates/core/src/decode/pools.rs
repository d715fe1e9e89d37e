//! Settings of pools.

use super::forms::{Duration, Whole, Words};
use super::object::{Call, SentBody, bounded_bodies, object};
use super::paths::made_path;
use super::rates::RateFields;
use crate::at::At;
use crate::bounded::{Bounded, COUNT, Spans};
use crate::names::PoolName;
use crate::refusal::Refusal;
use crate::requests::{Change, PatchPool, PutPool};
use crate::settings::{Pick, Rate};
use crate::time::Span;
use crate::words::Worded as _;

object! {
    PoolFields "a pool" "PoolSettings"
    answered &["name", "available", "leased", "cooling", "banned", "waiting"];
    patch PatchPool(pool: PoolName);
    fields {
        quarantine: Span = Duration(Spans::ANY), optional,
            "How long a resource rests whose holder was lost; 0s by default.";
        cooldown: Span = Duration(Spans::ANY), optional, "How long a resource rests after every use; 0s by default.";
        rate: Rate = RateFields, nullable, "How often one resource is granted in a period; null is no bound.";
        max_uses: u32 = Whole(COUNT), nullable,
            "After how many grants a resource is banned, 1 to 1,000,000,000; null is never.";
        pick: Pick = Words("a way to pick", Pick::WORDS), optional,
            "Which free resource is handed out: the one whose last use is longest ago (lru, the default), or any.";
    }
}

/// Reads the body of `PUT /v1/pools/{name}`: all settings; an absent one has its default.
pub fn put_pool(name: &str, body: &[u8]) -> Result<PutPool, Refusal> {
    Ok(patch_pool(name, body)?.whole())
}

/// Reads the body of `PATCH /v1/pools/{name}`: the named settings; a `rate` replaces the whole rate.
pub fn patch_pool(name: &str, body: &[u8]) -> Result<PatchPool, Refusal> {
    PatchPool::of_body((made_path(name, PoolName::parse)?,), body)
}

impl Bounded for PutPool {
    fn within_bounds(&self) -> Result<(), Refusal> {
        PatchPool::from(self).check_body(&At::Body)
    }
}

bounded_bodies! { PatchPool }
