//! The state of a namespace: the replies in which attention is found, requested at the same time.
//!
//! Only the first page of each list, so that the work is bounded however much there is.

use tenure::Client;
use tenure_core::attention::{self, AttentionReplies, FAILED_WITHIN, Subject};
use tenure_core::bounds::LIST_MAX;
use tenure_core::requests::{
    Failures, GetStats, ListFailures, ListLimits, ListPools, ListQueues, ListSchedules,
    ListWorkers, Listed, Page, Stats, WorkerView,
};
use tenure_core::schedule::ScheduleView;
use tenure_core::settings::{LimitView, PoolView, QueueView};
use tenure_core::time::Moment;
use tenure_engine_api::{CallError, Clock, SystemClock};

/// The replies of one round of calls. Each list is its first page.
pub struct NamespaceReplies {
    /// When they were requested, by this machine's clock.
    pub now: Moment,
    pub stats: Stats,
    pub queues: Listed<QueueView>,
    pub limits: Listed<LimitView>,
    pub pools: Listed<PoolView>,
    pub schedules: Listed<ScheduleView>,
    pub workers: Listed<WorkerView>,
    /// The failures of the last hour.
    pub failures: Failures,
}

impl NamespaceReplies {
    /// Makes all calls at the same time.
    pub async fn ask(client: &Client) -> Result<Self, CallError> {
        let page = || Page { max: LIST_MAX, cursor: None };
        let now = SystemClock.now();
        let finished_after = Some(now.minus(FAILED_WITHIN));
        let (stats, queues, limits, pools, schedules, workers, failures) = tokio::try_join!(
            client.run(GetStats),
            client.run(ListQueues { page: page() }),
            client.run(ListLimits { page: page() }),
            client.run(ListPools { page: page() }),
            client.run(ListSchedules { owner: None, full: false, page: page() }),
            client.run(ListWorkers { page: page() }),
            client.run(ListFailures { finished_after, max: LIST_MAX, ..ListFailures::default() }),
        )?;
        Ok(NamespaceReplies { now, stats, queues, limits, pools, schedules, workers, failures })
    }

    /// The findings in the replies; `since` says since when a subject has been as it is, if that was watched.
    pub fn findings(&self, since: &dyn Fn(&Subject) -> Option<Moment>) -> Vec<attention::Finding> {
        attention::findings(&self.replies(since))
    }

    /// The replies in the form that the search for findings takes.
    pub fn replies<'a>(
        &'a self,
        since: &'a dyn Fn(&Subject) -> Option<Moment>,
    ) -> AttentionReplies<'a> {
        AttentionReplies {
            now: self.now,
            stats: &self.stats,
            queues: &self.queues.items,
            limits: &self.limits.items,
            pools: &self.pools.items,
            schedules: &self.schedules.items,
            failures: &self.failures,
            since,
        }
    }

    /// The names of the lists that were cut after their first page.
    pub fn cut(&self) -> Vec<&'static str> {
        [
            ("queues", self.queues.next.is_some()),
            ("limits", self.limits.next.is_some()),
            ("pools", self.pools.next.is_some()),
            ("schedules", self.schedules.next.is_some()),
            ("workers", self.workers.next.is_some()),
            ("failed jobs", self.failures.partial),
        ]
        .into_iter()
        .filter_map(|(what, is_cut)| is_cut.then_some(what))
        .collect()
    }
}
