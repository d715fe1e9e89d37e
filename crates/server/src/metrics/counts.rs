//! Counts the effects of this process's calls, by queue.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tenure_core::bounds::{FORGET_US, SECOND_US};
use tenure_core::lease::LeaseView;
use tenure_core::names::{Namespace, QueueName};
use tenure_core::time::{Moment, Span};
use tenure_engine_api::histogram::{Histogram, Seen};
use tenure_engine_api::{Clock, SystemClock};

use crate::metrics::held::OpenRuns;
use crate::metrics::minutes::{EndedRun, GrantedJob, Minutes, When};
use crate::metrics::{NAMES_MAX, OTHER};
use tenure_core::words;

words! {
    /// The end of a run, as this process saw it.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum RunEnd {
        Succeeded = "succeeded",
        /// Failed, and will not run again.
        Failed = "failed",
        /// Failed, and will run again.
        Retried = "retried",
        Snoozed = "snoozed",
        Released = "released",
        /// Its holder was gone. No call of this process reports that: it shows when the job is granted again.
        Lost = "lost",
    }
}

/// An answer may carry the time of a step that had begun before the call came.
const STEP_MAX: Span = Span::from_s(1);
/// While every name is in use, a name to forget is looked for this often.
const LOOK_AGAIN_S: u64 = 60;

/// The counts of one queue.
#[derive(Debug, Default)]
pub(crate) struct QueueCounts {
    /// The time of the last count, in seconds since this process began to count.
    used_s: AtomicU64,
    pub pushed: AtomicU64,
    pub ends: [AtomicU64; RunEnd::ALL.len()],
    pub wait: Histogram,
    pub run: Histogram,
}

/// A run that this process granted, or that the store's events reported.
#[derive(Debug)]
struct OpenRun {
    queue: QueueName,
    /// `None`: another process granted and counted it.
    counts: Option<Arc<QueueCounts>>,
    /// When this process learned of it.
    since: Instant,
    /// How long it had run before.
    before: Duration,
}

/// The queues of each namespace.
type Queues = HashMap<Namespace, HashMap<QueueName, Arc<QueueCounts>>>;

/// The effects of this process's calls, counted. Numbers only grow, and begin with the process, or with the first call
/// for a queue whose name was forgotten.
#[derive(Debug)]
pub struct CallCounts {
    began: Instant,
    /// The same moment by the clock.
    began_at: Moment,
    /// Since when calls are counted. Unset until the first call.
    counts_since: OnceLock<Moment>,
    queues: RwLock<Queues>,
    /// No search for a name to forget before this second, in seconds since this process began to count.
    look_s: AtomicU64,
    rest: Arc<QueueCounts>,
    held: OpenRuns<OpenRun>,
    pub(crate) lateness: Histogram,
    lost: AtomicU64,
    /// The same counts by minute, and those of the store's events from before.
    pub minutes: Minutes,
}

impl Default for CallCounts {
    fn default() -> Self {
        CallCounts {
            began: Instant::now(),
            began_at: SystemClock.now(),
            counts_since: Default::default(),
            queues: Default::default(),
            look_s: Default::default(),
            rest: Default::default(),
            held: Default::default(),
            lateness: Default::default(),
            lost: Default::default(),
            minutes: Default::default(),
        }
    }
}

/// How many names there are.
fn names(queues: &Queues) -> usize {
    queues.values().map(HashMap::len).sum()
}

/// Forgets the queue that has been idle longest, if that is a day and it has no open run.
fn forget_one(queues: &mut Queues, now_s: u64) {
    let all = queues.iter().flat_map(|(namespace, queues)| {
        queues.iter().map(move |(queue, counts)| (namespace, queue, counts))
    });
    let used_s = |counts: &Arc<QueueCounts>| counts.used_s.load(Ordering::Relaxed);
    let idle = all.filter(|(_, _, counts)| {
        Arc::strong_count(counts) == 1 && used_s(counts) + FORGET_US / SECOND_US <= now_s
    });
    let oldest = idle.min_by_key(|(_, _, counts)| used_s(counts));
    let Some((namespace, queue)) = oldest.map(|(ns, queue, _)| (ns.clone(), queue.clone())) else {
        return;
    };
    if let Some(of_namespace) = queues.get_mut(&namespace) {
        of_namespace.remove(&queue);
        if of_namespace.is_empty() {
            queues.remove(&namespace);
        }
    }
}

impl CallCounts {
    /// Marks the first call that is counted; later calls change nothing.
    pub(crate) fn begins(&self) {
        self.counts_since.get_or_init(|| self.began_at.max(SystemClock.now().minus(STEP_MAX)));
    }

    /// Since when calls are counted; `None` before the first call, as where another process serves the store.
    pub fn counts_since(&self) -> Option<Moment> {
        self.counts_since.get().copied()
    }

    fn queue(&self, namespace: &Namespace, queue: &QueueName) -> Arc<QueueCounts> {
        self.queue_at(namespace, queue, self.began.elapsed().as_secs())
    }

    /// The counts of a queue, which has a name of its own while there is room for it.
    fn queue_at(&self, namespace: &Namespace, queue: &QueueName, now_s: u64) -> Arc<QueueCounts> {
        {
            let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = queues.get(namespace).and_then(|queues| queues.get(queue)) {
                known.used_s.store(now_s, Ordering::Relaxed);
                return known.clone();
            }
            if names(&queues) >= NAMES_MAX && now_s < self.look_s.load(Ordering::Relaxed) {
                return self.rest.clone();
            }
        }
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        if names(&queues) >= NAMES_MAX {
            forget_one(&mut queues, now_s);
        }
        // Another thread may have come between.
        if names(&queues) >= NAMES_MAX {
            self.look_s.store(now_s + LOOK_AGAIN_S, Ordering::Relaxed);
            return self.rest.clone();
        }
        let counts = queues.entry(namespace.clone()).or_default().entry(queue.clone()).or_default();
        counts.used_s.store(now_s, Ordering::Relaxed);
        counts.clone()
    }

    /// Counts jobs that were stored, one for each of these queues.
    pub(crate) fn pushed(&self, namespace: &Namespace, queues: &[&QueueName]) {
        // A bulk is mostly for one queue.
        for same in queues.chunk_by(|one, next| one == next) {
            let times = same.len() as u64;
            self.queue(namespace, same[0]).pushed.fetch_add(times, Ordering::Relaxed);
            self.minutes.pushed(When::Now, namespace, same[0], times);
        }
    }

    /// Counts leases that were granted.
    pub(crate) fn granted(&self, namespace: &Namespace, leases: &[LeaseView]) {
        let since = Instant::now();
        let mut granted = Vec::new();
        for lease in leases {
            let (Some(job), Some(id)) = (&lease.job, &lease.lease) else { continue };
            let due = job.run_at.max(job.created_at);
            let wait = lease.granted_at.since(due).std();
            let counts = self.queue(namespace, &job.queue);
            counts.wait.count(wait);
            let lost = job.lost > 0;
            if lost {
                counts.ends[RunEnd::Lost as usize].fetch_add(1, Ordering::Relaxed);
            }
            if let Some(at) = job.schedule.as_ref().and_then(|made| made.at)
                && job.attempt <= 1
            {
                self.lateness.count(lease.granted_at.since(at).std());
            }
            let (queue, counts, before) = (job.queue.clone(), Some(counts), Duration::ZERO);
            self.held.began(id, OpenRun { queue, counts, since, before });
            granted.push(GrantedJob { queue: &job.queue, wait: Some(wait), lost });
        }
        self.minutes.granted(When::Now, namespace, &granted);
    }

    /// Adds a run that was granted before this process began to count: pictures have its end in its queue. Metrics have
    /// it in the rest, since the counts of a process begin with it.
    pub(crate) fn runs_since(&self, queue: QueueName, lease: &str, at: Moment) {
        let (since, before) = (Instant::now(), SystemClock.now().since(at).std());
        self.held.began(lease, OpenRun { queue, counts: None, since, before });
    }

    /// Counts runs that ended.
    pub(crate) fn ended(&self, namespace: &Namespace, ends: &[(&str, RunEnd)]) {
        let mut ended = Vec::new();
        for (lease, end) in ends {
            let run = self.held.ended(lease);
            let own = run.as_ref().and_then(|run| run.counts.as_ref());
            let counts = own.unwrap_or(&self.rest);
            counts.ends[*end as usize].fetch_add(1, Ordering::Relaxed);
            let ran = run.as_ref().map(|run| run.before + run.since.elapsed());
            if let (Some(own), Some(ran)) = (own, ran) {
                own.run.count(ran);
            }
            let succeeded = match end {
                RunEnd::Succeeded => true,
                RunEnd::Failed | RunEnd::Retried => false,
                RunEnd::Snoozed | RunEnd::Released | RunEnd::Lost => continue,
            };
            ended.push(EndedRun { queue: run.map(|run| run.queue), succeeded, ran });
        }
        self.minutes.ended(When::Now, namespace, &ended);
    }

    /// Counts leases whose holders learned that they are lost.
    pub(crate) fn lost<'l>(&self, leases: impl Iterator<Item = &'l str>) {
        for lease in leases {
            self.held.ended(lease);
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn lost_ever(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// The counts of each queue, in the order of names, `other` last.
    pub(crate) fn seen(&self) -> Vec<QueueSeen> {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        let named = queues.iter().flat_map(|(namespace, queues)| {
            queues.iter().map(move |(queue, counts)| (namespace.as_str(), queue.as_str(), counts))
        });
        let mut named: Vec<_> = named.collect();
        named.sort_unstable_by_key(|(namespace, queue, _)| (*namespace, *queue));
        let rest = [(OTHER, OTHER, &self.rest)];
        let of = |(namespace, queue, counts): (&str, &str, &Arc<QueueCounts>)| QueueSeen {
            namespace: namespace.to_owned(),
            queue: queue.to_owned(),
            pushed: counts.pushed.load(Ordering::Relaxed),
            ends: std::array::from_fn(|at| counts.ends[at].load(Ordering::Relaxed)),
            wait: counts.wait.seen(),
            run: counts.run.seen(),
        };
        let all = named.into_iter().chain(rest).map(of);
        all.filter(QueueSeen::is_any).collect()
    }
}

/// A snapshot of a queue's counts.
#[derive(Debug)]
pub(crate) struct QueueSeen {
    pub namespace: String,
    pub queue: String,
    pub pushed: u64,
    pub ends: [u64; RunEnd::ALL.len()],
    pub wait: Seen,
    pub run: Seen,
}

impl QueueSeen {
    fn is_any(&self) -> bool {
        let ends: u64 = self.ends.iter().sum();
        self.pushed + ends + self.wait.count() + self.run.count() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_S: u64 = FORGET_US / SECOND_US;

    fn counted(counts: &CallCounts, name: usize, now_s: u64) -> Arc<QueueCounts> {
        let queue = QueueName::parse(&format!("q{name}")).unwrap();
        counts.queue_at(&Namespace::main(), &queue, now_s)
    }

    #[test]
    fn a_name_idle_for_a_day_makes_room_for_another() {
        let counts = CallCounts::default();
        let run = counted(&counts, 0, 0);
        for name in 1..NAMES_MAX {
            counted(&counts, name, name as u64);
        }
        let is_named = |name, now_s| !Arc::ptr_eq(&counted(&counts, name, now_s), &counts.rest);
        assert!(!is_named(NAMES_MAX, DAY_S), "the first has a run that is open");
        assert!(!is_named(NAMES_MAX, DAY_S + 2), "it was looked a moment ago");
        assert!(is_named(NAMES_MAX, DAY_S + 100));
        drop(run);
        // The second one was forgotten: it had been idle longest, except for the first.
        let there = |name: usize| {
            let queue = QueueName::parse(&format!("q{name}")).unwrap();
            counts.queues.read().unwrap()[&Namespace::main()].contains_key(&queue)
        };
        assert_eq!((there(0), there(1), there(2), there(NAMES_MAX)), (true, false, true, true));
    }
}
