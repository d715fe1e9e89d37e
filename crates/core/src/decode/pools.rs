//! Settings of pools.

use super::forms::{Duration, Whole, Words};
use super::object::{SentBody, bounded_bodies, object};
use super::paths::{made, pool_path};
use super::rates::RateFields;
use super::raw_call::{EncodedBody, http_calls};
use crate::at::At;
use crate::bounded::{Bounded, COUNT, Spans};
use crate::names::PoolName;
use crate::refusal::Refusal;
use crate::requests::{Change, DeletePool, GetPool, ListPools, PatchPool, PutPool};
use crate::settings::{Pick, PoolView, Rate};
use crate::time::Span;
use crate::words::Worded as _;

object! {
    PoolFields "a pool" "PoolSettings"
    answered PoolView;
    patch PatchPool(pool: PoolName) as "PoolPatch";
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

http_calls! {
    ListPools() query;
    GetPool(pool: pool_path);
    // An absent setting has its default.
    PutPool() body "PoolSettings",
        |call| Ok(PatchPool::decode(call)?.whole()),
        |put| EncodedBody::object(&PatchPool::from(put));
    // A `rate` replaces the whole rate.
    PatchPool(pool: made(PoolName::parse)) body;
    DeletePool(pool: pool_path);
}

impl Bounded for PutPool {
    fn within_bounds(&self) -> Result<(), Refusal> {
        PatchPool::from(self).check_body(&At::Body)
    }
}

bounded_bodies! { PatchPool }
