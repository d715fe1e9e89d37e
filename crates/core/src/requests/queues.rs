//! Requests about queues: their settings and their pauses. They never name a job.

use crate::bounded::unbounded;
use crate::job::{Need, Retry};
use crate::lease::Later;
use crate::names::{Group, QueueName};
use crate::refusal::Code;
use crate::settings::{QueueSettings, QueueView};
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
    type Shows = GetQueue;
    const ABSENT: Code = Code::QueueNotFound;
    fn shows(&self) -> GetQueue {
        GetQueue { queue: self.queue.clone() }
    }
    fn has_own(_: &QueueView) -> bool {
        true
    }
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

/// A patch that names every setting.
impl From<&PutQueue> for PatchQueue {
    fn from(put: &PutQueue) -> Self {
        let set = &put.settings;
        PatchQueue {
            queue: put.queue.clone(),
            needs: Patch::Set(set.needs.clone()),
            retry: set.retry.clone().into(),
            timeout: set.timeout.into(),
            retain: set.retain.into(),
            max_waiting: set.max_waiting.into(),
            lost_delay: set.lost_delay.into(),
            shares: Patch::Set(set.shares.clone()),
            show_payload: Patch::Set(set.show_payload),
        }
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

unbounded! { GetQueue DeleteQueue ResumeQueue }
