//! Settings of queues, and their pauses.

use std::collections::BTreeMap;

use serde::Serializer;

use super::fields::Value;
use super::forms::{Duration, Flag, Form, ValueKind, Whole};
use super::needs::Needs;
use super::object::{SentBody, bounded_bodies, object};
use super::paths::{made, queue_path};
use super::raw_call::{EncodedBody, http_calls};
use super::retry::RetryFields;
use crate::at::At;
use crate::bounded::{AMOUNT, Bounded, SHARES, Spans};
use crate::job::{Need, Retry};
use crate::names::{Group, QueueName};
use crate::refusal::Refusal;
use crate::requests::{
    Change, DeleteQueue, GetQueue, ListQueues, PatchQueue, PauseQueue, PutQueue, ResumeQueue,
};
use crate::sentences::BodyRefusal;
use crate::settings::QueueView;
use crate::time::Span;

object! {
    QueueFields "a queue" "QueueSettings"
    answered QueueView;
    patch PatchQueue(queue: QueueName) as "QueuePatch";
    fields {
        needs: Vec<Need> = Needs(0), optional,
            "Needs of a pushed job that states none, at most 16. {payload.FIELD} in the name of a limit is filled in from its payload.";
        retry: Retry = RetryFields, nullable,
            "The retry of a pushed job that states none; null is the default retry.";
        timeout: Span = Duration(Spans::SOME), nullable,
            "The timeout of a pushed job that states none; null is no timeout.";
        retain: Span = Duration(Spans::ANY), nullable,
            "How long a finished job is kept that states no retain; null decides by its end: 1h, or 7d if it failed.";
        max_waiting: u32 = Whole(AMOUNT), nullable,
            "Most jobs that may wait, 0 to 1,000,000,000; pushes beyond it are refused as queue_full. null is no bound.";
        lost_delay: Span = Duration(Spans::ANY), nullable,
            "How long a job waits after its worker was lost; null is 2s, doubled for each further loss in a row, at most 1m.";
        shares: BTreeMap<Group, u32> = Shares, optional,
            "How many turns each group gets, 1 to 1,000 by the name of the group; 1 for a group that is not named.";
        show_payload: bool = Flag, optional,
            "Whether lists of the dashboard show one line of each payload; true unless it is set.";
    }
}

/// Turns of the groups of a queue.
struct Shares;

impl Form<BTreeMap<Group, u32>> for Shares {
    fn read(&self, value: Value<'_, '_>) -> Result<BTreeMap<Group, u32>, Refusal> {
        let not_shares = |label, noun| BodyRefusal::NotShares { label, noun };
        let pairs = value.each_member(not_shares, |key, member| {
            let group = Group::parse(key).map_err(|no| no.at(member.at.to_string()))?;
            Ok((group, member.integer(SHARES)?))
        })?;
        Ok(pairs.into_iter().collect())
    }
    fn check(&self, value: &BTreeMap<Group, u32>, at: &At<'_>) -> Result<(), Refusal> {
        let mut shares = value.iter();
        shares.try_for_each(|(group, turns)| At::Member(at, group.as_str()).number(*turns, SHARES))
    }
    fn write<S: Serializer>(&self, value: &BTreeMap<Group, u32>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(value)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Map(Box::new(ValueKind::Whole(SHARES)))
    }
}

http_calls! {
    ListQueues() query;
    GetQueue(queue: queue_path);
    // An absent setting has its default.
    PutQueue() body "QueueSettings",
        |call| Ok(PatchQueue::decode(call)?.whole()),
        |put| EncodedBody::object(&PatchQueue::from(put));
    PatchQueue(queue: made(QueueName::parse)) body;
    DeleteQueue(queue: queue_path);
    PauseQueue(queue: queue_path) optional body;
    ResumeQueue(queue: queue_path);
}

impl Bounded for PutQueue {
    fn within_bounds(&self) -> Result<(), Refusal> {
        PatchQueue::from(self).check_body(&At::Body)
    }
}

bounded_bodies! { PatchQueue }
