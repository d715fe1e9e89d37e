//! Settings of queues, and their pauses.

use super::fields::{ObjectShape, Value, document};
use super::needs::needs;
use super::paths::{made_path, queue_path};
use super::retry::retry;
use super::times::body_later_optional;
use crate::bounded::{AMOUNT, SHARES, Spans};
use crate::names::{Group, QueueName};
use crate::refusal::Refusal;
use crate::requests::{Change, PatchQueue, PauseQueue, PutQueue};
use crate::sentences::BodyRefusal;
use std::collections::BTreeMap;

static QUEUE: ObjectShape<8> = ObjectShape {
    what: "a queue",
    fields: [
        "needs",
        "retry",
        "timeout",
        "retain",
        "max_waiting",
        "lost_delay",
        "shares",
        "show_payload",
    ],
    answered: &["name", "paused", "paused_until", "counts", "oldest_ready_at", "workers"],
};

/// Reads the body of `PUT /v1/queues/{name}`: all settings; an absent one has its default.
pub fn put_queue(name: &str, body: &[u8]) -> Result<PutQueue, Refusal> {
    Ok(patch_queue(name, body)?.whole())
}

/// Reads the body of `PATCH /v1/queues/{name}`: the named settings; `null` resets one to its default.
pub fn patch_queue(name: &str, body: &[u8]) -> Result<PatchQueue, Refusal> {
    let queue = made_path(name, QueueName::parse)?;
    let document = document(body)?;
    let fields = Value::body(&document).fields(&QUEUE)?;
    Ok(PatchQueue {
        queue,
        needs: fields.patch("needs", |v| needs(v, 0))?,
        retry: fields.patch("retry", retry)?,
        timeout: fields.patch("timeout", |v| v.span(Spans::SOME))?,
        retain: fields.patch("retain", |v| v.span(Spans::ANY))?,
        max_waiting: fields.patch("max_waiting", |v| v.integer(AMOUNT))?,
        lost_delay: fields.patch("lost_delay", |v| v.span(Spans::ANY))?,
        shares: fields.patch("shares", shares)?,
        show_payload: fields.patch("show_payload", |v| v.boolean())?,
    })
}

fn shares(value: Value<'_, '_>) -> Result<BTreeMap<Group, u32>, Refusal> {
    let not_shares = |label, noun| BodyRefusal::NotShares { label, noun };
    let pairs = value.each_member(not_shares, |key, member| {
        let group = Group::parse(key).map_err(|no| no.at(member.at.to_string()))?;
        Ok((group, member.integer(SHARES)?))
    })?;
    Ok(pairs.into_iter().collect())
}

/// Reads the body of `POST /v1/queues/{name}/pause`: nothing, or `{"for"|"until"}`.
pub fn pause_queue(name: &str, body: &[u8]) -> Result<PauseQueue, Refusal> {
    Ok(PauseQueue { queue: queue_path(name)?, until: body_later_optional(body)? })
}
