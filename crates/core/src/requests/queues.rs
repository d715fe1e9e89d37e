//! Requests about queues: their settings and their pauses. They never name a job.

use crate::at::At;
use crate::bounded::jobs::{needs, retry};
use crate::bounded::leases::later;
use crate::bounded::settings::{patched, shares, span};
use crate::bounded::{AMOUNT, Bounded, Spans, bounded_pages, unbounded};
use crate::job::{Need, Retry};
use crate::lease::Later;
use crate::names::{Group, QueueName};
use crate::refusal::{Code, Refusal};
use crate::settings::QueueSettings;
use crate::time::Span;
use std::collections::BTreeMap;

use super::{Change, Page, Patch};

/// Lists all queues of the namespace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListQueues {
    pub page: Page,
}

/// Shows one queue, with its counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetQueue {
    pub queue: QueueName,
}

/// Replaces all settings of a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutQueue {
    pub queue: QueueName,
    pub settings: QueueSettings,
}

/// Changes the named settings of a queue that exists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatchQueue {
    pub queue: QueueName,
    /// Needs of a pushed job that states none.
    pub needs: Patch<Vec<Need>>,
    /// Retry of a pushed job that states none.
    pub retry: Patch<Retry>,
    /// Timeout of a pushed job that states none.
    pub timeout: Patch<Span>,
    /// Retain of a pushed job that states none.
    pub retain: Patch<Span>,
    /// Most jobs that may wait; `Reset` means any number.
    pub max_waiting: Patch<u32>,
    /// As in [`QueueSettings`], see [`QueueSettings::lost_delay`].
    pub lost_delay: Patch<Span>,
    /// Replaces the shares of all groups.
    pub shares: Patch<BTreeMap<Group, u32>>,
    /// As in [`QueueSettings`], see [`QueueSettings::show_payload`].
    pub show_payload: Patch<bool>,
}

impl Change for PatchQueue {
    type Whole = PutQueue;
    const ABSENT: Code = Code::QueueNotFound;
    fn whole(self) -> PutQueue {
        let settings = QueueSettings {
            needs: self.needs.given().unwrap_or_default(),
            retry: self.retry.given(),
            timeout: self.timeout.given(),
            retain: self.retain.given(),
            max_waiting: self.max_waiting.given(),
            lost_delay: self.lost_delay.given(),
            shares: self.shares.given().unwrap_or_default(),
            show_payload: self.show_payload.given().unwrap_or(QueueSettings::SHOW_PAYLOAD_DEFAULT),
        };
        PutQueue { queue: self.queue, settings }
    }
}

/// Forgets a queue without unfinished jobs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteQueue {
    pub queue: QueueName,
}

/// Lets a queue grant nothing for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PauseQueue {
    /// Made if it is not there.
    pub queue: QueueName,
    /// Until when; `None`: until it is resumed.
    pub until: Option<Later>,
}

/// Ends the pause of a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResumeQueue {
    pub queue: QueueName,
}

impl Bounded for PutQueue {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let (set, body) = (&self.settings, At::Body);
        needs(&set.needs, &body, 0)?;
        set.retry.as_ref().map_or(Ok(()), |one| retry(one, At::Member(&body, "retry")))?;
        span(set.timeout, "timeout", Spans::SOME)?;
        span(set.retain, "retain", Spans::ANY)?;
        let at = At::Member(&body, "max_waiting");
        set.max_waiting.map_or(Ok(()), |most| at.number(most, AMOUNT))?;
        span(set.lost_delay, "lost_delay", Spans::ANY)?;
        shares(set.shares.iter())
    }
}

impl Bounded for PatchQueue {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let body = At::Body;
        self.needs.each(|value| needs(value, &body, 0))?;
        self.retry.each(|value| retry(value, At::Member(&body, "retry")))?;
        patched(&self.timeout, "timeout", Spans::SOME)?;
        patched(&self.retain, "retain", Spans::ANY)?;
        self.max_waiting.each(|most| At::Member(&body, "max_waiting").number(*most, AMOUNT))?;
        patched(&self.lost_delay, "lost_delay", Spans::ANY)?;
        self.shares.each(|value| shares(value.iter()))
    }
}

impl Bounded for PauseQueue {
    fn within_bounds(&self) -> Result<(), Refusal> {
        self.until.as_ref().map_or(Ok(()), |until| later(until, Spans::ANY, &At::Body))
    }
}

unbounded! { GetQueue DeleteQueue ResumeQueue }

bounded_pages! { ListQueues }
