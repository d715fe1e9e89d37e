//! Settings of pools.

use super::fields::{ObjectShape, Value, document};
use super::paths::made_path;
use super::rates::rate;
use crate::bounded::{COUNT, Spans};
use crate::names::PoolName;
use crate::refusal::Refusal;
use crate::requests::{Change, PatchPool, PutPool};
use crate::settings::Pick;

static POOL: ObjectShape<5> = ObjectShape {
    what: "a pool",
    fields: ["quarantine", "cooldown", "rate", "max_uses", "pick"],
    answered: &["name", "available", "leased", "cooling", "banned", "waiting"],
};

/// Reads the body of `PUT /v1/pools/{name}`: all settings; an absent one has its default.
pub fn put_pool(name: &str, body: &[u8]) -> Result<PutPool, Refusal> {
    Ok(patch_pool(name, body)?.whole())
}

/// Reads the body of `PATCH /v1/pools/{name}`: the named settings; a `rate` replaces the whole rate.
pub fn patch_pool(name: &str, body: &[u8]) -> Result<PatchPool, Refusal> {
    let pool = made_path(name, PoolName::parse)?;
    let document = document(body)?;
    let fields = Value::body(&document).fields(&POOL)?;
    let picks = [("lru", Pick::Lru), ("random", Pick::Random)];
    Ok(PatchPool {
        pool,
        quarantine: fields.patch("quarantine", |v| v.span(Spans::ANY))?,
        cooldown: fields.patch("cooldown", |v| v.span(Spans::ANY))?,
        rate: fields.patch("rate", rate)?,
        max_uses: fields.patch("max_uses", |v| v.integer(COUNT))?,
        pick: fields.patch("pick", |v| v.one_of("a way to pick", &picks))?,
    })
}
