//! Requests about queues: their settings and their pauses. They never name a job.

use std::collections::BTreeMap;

use super::{Change, Page, Patch};
use crate::job::{Need, Retry};
use crate::lease::Later;
use crate::names::{Group, QueueName};
use crate::refusal::Code;
use crate::settings::QueueSettings;
use crate::time::Span;

/// Lists queues.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListQueues {
    /// The page.
    pub page: Page,
}

/// Shows a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetQueue {
    /// Which.
    pub queue: QueueName,
}

/// Replaces all settings of a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutQueue {
    /// Which.
    pub queue: QueueName,
    /// Settings.
    pub settings: QueueSettings,
}

/// Changes the named settings of a queue that is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatchQueue {
    /// Which.
    pub queue: QueueName,
    /// Needs of a job that states none.
    pub needs: Patch<Vec<Need>>,
    /// Retry of a job that states none.
    pub retry: Patch<Retry>,
    /// Timeout of a job that states none.
    pub timeout: Patch<Span>,
    /// Retain of a job that states none.
    pub retain: Patch<Span>,
    /// Most jobs that may wait.
    pub max_waiting: Patch<u32>,
    /// See [`QueueSettings::lost_delay`].
    pub lost_delay: Patch<Span>,
    /// Turns of each group.
    pub shares: Patch<BTreeMap<Group, u32>>,
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
        };
        PutQueue { queue: self.queue, settings }
    }
}

/// Forgets a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteQueue {
    /// Which.
    pub queue: QueueName,
}

/// Grants nothing of a queue for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PauseQueue {
    /// Which; made if it is not there.
    pub queue: QueueName,
    /// Until when; `None` = until it is resumed.
    pub until: Option<Later>,
}

/// Ends a pause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResumeQueue {
    /// Which.
    pub queue: QueueName,
}
