//! Watches subjects over repeated looks, to tell since when each one has been as it is.

use std::collections::BTreeMap;

use super::{AttentionReplies, Subject};
use crate::settings::{LimitView, PoolView, QueueView};
use crate::time::Moment;

/// Subjects that were found at every look until now, each with the time of its first look. A late look lengthens
/// nothing beyond what was observed.
#[derive(Clone, Debug, Default)]
pub struct WatchedSubjects(BTreeMap<Subject, Moment>);

impl WatchedSubjects {
    /// Notes the subjects of this look, and forgets those that it does not find any more. `replies.since` is not used.
    pub fn look(&mut self, replies: &AttentionReplies<'_>) {
        let queues = replies.queues.iter().filter(|queue| is_unattended(queue));
        let limits = replies.limits.iter().filter(|limit| is_full(limit));
        let pools = replies.pools.iter().filter(|pool| is_empty(pool));
        let now = queues
            .map(|queue| Subject::Queue(queue.name.clone()))
            .chain(limits.map(|limit| Subject::Limit(limit.name.clone())))
            .chain(pools.map(|pool| Subject::Pool(pool.name.clone())))
            .map(|subject| {
                let since = self.0.get(&subject).copied().unwrap_or(replies.now);
                (subject, since)
            });
        self.0 = now.collect();
    }

    /// Since when a subject has been as it is.
    pub fn since(&self, subject: &Subject) -> Option<Moment> {
        self.0.get(subject).copied()
    }
}

/// No worker asks for its jobs, and none of them runs.
pub(super) fn is_unattended(queue: &QueueView) -> bool {
    // A worker that is busy in all its slots does not ask, but a job of it runs.
    queue.workers == 0 && queue.counts.running == 0
}

/// True if it has a cap, and no free permit.
pub fn is_full(limit: &LimitView) -> bool {
    let used = limit.in_use + limit.external;
    limit.settings.concurrency.is_some_and(|cap| used >= u64::from(cap))
}

/// True if it has no free resource.
pub fn is_empty(pool: &PoolView) -> bool {
    pool.available == 0
}
