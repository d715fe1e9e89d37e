//! Counts the kept events of a store from before this process, so that pictures do not start empty.
//!
//! Nothing is counted twice: an event counts only if it is older than the first call that this process counted. While
//! another process serves the store, there is no such call, and all events count. The rules are those of `counts`: a
//! job from a schedule is no push, and a lost run shows when its job is granted again.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::events::{About, EventType, Happened};
use tenure_core::names::{JobId, Namespace, QueueName};
use tenure_core::time::{Moment, Span};
use tenure_engine_api::{Clock, SystemClock};

use crate::metrics::counts::CallCounts;
use crate::metrics::held::OpenRuns;
use crate::metrics::minutes::{EndedRun, GrantedJob, When};

/// No picture shows an older event.
const BACK_MAX: Span = Span::from_s(24 * 60 * 60);

/// A job that waits.
struct WaitingJob {
    /// The earliest start of a run.
    due: Moment,
    /// The previous run of the job was lost.
    lost: bool,
}

/// A run that is open.
struct PastRun {
    queue: QueueName,
    since: Moment,
}

/// Counts the events of one namespace, which come in their order. It remembers the start of the wait of about 65,536
/// jobs, and the start of the run of as many leases; for others the counts are right, and the times are unknown.
pub struct Past {
    counts: Arc<CallCounts>,
    namespace: Namespace,
    waiting: OpenRuns<WaitingJob>,
    running: OpenRuns<PastRun>,
}

impl Past {
    /// The types of events that it needs.
    pub const TYPES: [EventType; 11] = [
        EventType::JobPushed,
        EventType::JobReplaced,
        EventType::JobReady,
        EventType::JobGranted,
        EventType::JobSucceeded,
        EventType::JobFailed,
        EventType::JobCancelled,
        EventType::JobRetrying,
        EventType::JobSnoozed,
        EventType::JobReleased,
        EventType::JobLost,
    ];

    /// For this namespace, into these counts.
    pub fn new(counts: Arc<CallCounts>, namespace: Namespace) -> Self {
        let (waiting, running) = Default::default();
        Past { counts, namespace, waiting, running }
    }

    /// Counts an event; `false`: this process itself has counted since then, and no later event counts.
    pub fn count(&self, event: &Happened) -> bool {
        let Happened { at, kind, about } = event;
        if self.counts.counts_since().is_some_and(|since| *at >= since) {
            return false;
        }
        let (Some(job), Some(queue)) = (&about.job, &about.queue) else { return true };
        let is_drawn = *at >= SystemClock.now().minus(BACK_MAX);
        let (minutes, then) = (&self.counts.minutes, When::Then(*at));
        match kind {
            EventType::JobPushed | EventType::JobReplaced => {
                self.waits(job, *at, false);
                if is_drawn && *kind == EventType::JobPushed && about.schedule.is_none() {
                    minutes.pushed(then, &self.namespace, queue, 1);
                }
            }
            EventType::JobReady => {
                let lost = self.waiting.ended(job.as_str()).is_some_and(|waited| waited.lost);
                self.waits(job, *at, lost);
            }
            EventType::JobGranted => {
                let waited = self.waiting.ended(job.as_str());
                let wait = waited.as_ref().map(|waited| at.since(waited.due).std());
                let lost = waited.is_some_and(|waited| waited.lost);
                if let Some(lease) = &about.lease {
                    self.running.began(lease, PastRun { queue: queue.clone(), since: *at });
                }
                if is_drawn {
                    minutes.granted(then, &self.namespace, &[GrantedJob { queue, wait, lost }]);
                }
            }
            EventType::JobSucceeded | EventType::JobFailed | EventType::JobRetrying => {
                let ran = self.ran(about, *at);
                let succeeded = *kind == EventType::JobSucceeded;
                if is_drawn {
                    let run = EndedRun { queue: Some(queue.clone()), succeeded, ran };
                    minutes.ended(then, &self.namespace, &[run]);
                }
                if *kind == EventType::JobRetrying {
                    self.waits(job, about.run_at.unwrap_or(*at), false);
                }
            }
            EventType::JobSnoozed | EventType::JobReleased | EventType::JobLost => {
                self.ran(about, *at);
                let due = about.run_at.unwrap_or(*at);
                self.waits(job, due, *kind == EventType::JobLost);
            }
            EventType::JobCancelled => {
                self.ran(about, *at);
                self.waiting.ended(job.as_str());
            }
            // These begin and end no wait and no run, and are not read.
            EventType::JobChanged
            | EventType::JobDeleted
            | EventType::JobBlocked
            | EventType::JobProgress
            | EventType::JobCancelRequested
            | EventType::LeaseGranted
            | EventType::LeaseEnded
            | EventType::LimitChanged
            | EventType::LimitDeleted
            | EventType::LimitPaused
            | EventType::LimitResumed
            | EventType::LimitObserved
            | EventType::GaugeFailed
            | EventType::GaugeReadAgain
            | EventType::QueueChanged
            | EventType::QueueDeleted
            | EventType::QueuePaused
            | EventType::QueueResumed
            | EventType::PoolChanged
            | EventType::PoolSynced
            | EventType::PoolDeleted
            | EventType::ResourceCooling
            | EventType::ResourceBanned
            | EventType::ResourceRestored
            | EventType::ResourceRetired
            | EventType::ScheduleChanged
            | EventType::ScheduleDeleted
            | EventType::ScheduleFired
            | EventType::ScheduleSkipped
            | EventType::ScheduleMissed
            | EventType::ScheduleMoved
            | EventType::ScheduleEnded
            | EventType::SchedulePaused
            | EventType::ScheduleResumed
            | EventType::FlowFinished
            | EventType::ClockBehind
            | EventType::EngineDeaf
            | EventType::EngineLearning => {}
        }
        true
    }

    /// Ends the events. This process will see the end of each run that is still open.
    pub fn told(self) {
        for (lease, PastRun { queue, since }) in self.running.into_open() {
            self.counts.runs_since(queue, &lease, since);
        }
    }

    fn waits(&self, job: &JobId, due: Moment, lost: bool) {
        self.waiting.began(job.as_str(), WaitingJob { due, lost });
    }

    /// Ends a run; returns its duration, if its start is known.
    fn ran(&self, about: &About, at: Moment) -> Option<Duration> {
        let run = self.running.ended(about.lease.as_deref()?)?;
        Some(at.since(run.since).std())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A namespace, and the counts of its events from before `counts` began.
    struct Told {
        past: Past,
        counts: Arc<CallCounts>,
        began_at: Moment,
    }

    impl Told {
        fn new() -> Self {
            let counts = Arc::new(CallCounts::default());
            counts.begins();
            let began_at = counts.counts_since().unwrap();
            Told { past: Past::new(counts.clone(), Namespace::main()), counts, began_at }
        }

        /// Reports an event of the job `j`, this many seconds before.
        fn tell(&self, s_before: u64, kind: EventType) -> bool {
            self.tell_of(s_before, kind, About::default())
        }

        fn tell_of(&self, s_before: u64, kind: EventType, about: About) -> bool {
            let has = |field| kind.fields().contains(&field);
            let lease = has(tenure_core::events::Field::lease).then(|| "lease-1".to_owned());
            let about = About {
                job: Some("j".parse().unwrap()),
                queue: Some("q".parse().unwrap()),
                lease,
                ..about
            };
            let at = self.began_at.minus(Span::from_s(s_before));
            self.past.count(&Happened::new(at, kind, about))
        }

        /// Pushed, granted, succeeded and failed runs, lost ones; the longest wait and the longest run of each minute.
        fn drawn(&self, queue: Option<&str>) -> ([u64; 5], [Vec<u64>; 2]) {
            let queue = queue.map(|name| name.parse().unwrap());
            let all = self.counts.minutes.last(&Namespace::main(), queue.as_ref(), 24 * 60);
            let mut counted = [0; 5];
            for m in &all {
                for (sum, n) in
                    counted.iter_mut().zip([m.pushed, m.granted, m.succeeded, m.failed, m.lost])
                {
                    *sum += n;
                }
            }
            let s = |span: Span| span.us() / 1_000_000;
            let waits = all.iter().filter_map(|minute| minute.waits.within(1.0)).map(s);
            let runs = all.iter().filter_map(|minute| minute.runs.within(1.0)).map(s);
            (counted, [waits.collect(), runs.collect()])
        }
    }

    #[test]
    fn events_of_before_are_counted_in_their_minutes() {
        let told = Told::new();
        let run_at = Some(told.began_at.minus(Span::from_s(1_000)));
        for (s_before, kind, about) in [
            (3_000, EventType::JobPushed, About::default()),
            (2_900, EventType::JobReady, About::default()),
            (2_895, EventType::JobGranted, About::default()),
            (2_000, EventType::JobLost, About::default()),
            (1_900, EventType::JobReady, About::default()),
            (1_893, EventType::JobGranted, About::default()),
            (1_500, EventType::JobRetrying, About { run_at, ..About::default() }),
            (989, EventType::JobGranted, About::default()),
            (900, EventType::JobSucceeded, About::default()),
        ] {
            assert!(told.tell_of(s_before, kind, about), "{kind}");
        }
        let drawn = ([1, 3, 1, 1, 1], [vec![5, 7, 11], vec![393, 89]]);
        assert_eq!(told.drawn(Some("q")), drawn);
        assert_eq!(told.drawn(None), drawn);
        assert_eq!(told.drawn(Some("other")).0, [0; 5]);
        let first = told.counts.minutes.last(&Namespace::main(), None, 24 * 60)[0];
        let minute = |at: Moment| at.us() / crate::metrics::minute::MINUTE_US;
        let pushed_at = told.began_at.minus(Span::from_s(3_000));
        assert_eq!((first.number(), first.pushed), (minute(pushed_at), 1));
    }

    #[test]
    fn no_event_is_counted_that_this_process_counts_itself() {
        let told = Told::new();
        assert!(told.tell(1, EventType::JobPushed));
        assert!(!told.tell(0, EventType::JobPushed));
        told.counts.pushed(&Namespace::main(), &[&"q".parse().unwrap()]);
        assert_eq!(told.drawn(Some("q")).0[0], 2);
    }

    #[test]
    fn all_is_counted_that_happens_until_this_process_counts_a_call() {
        let counts = Arc::new(CallCounts::default());
        let began_at = SystemClock.now();
        let told = Told { past: Past::new(counts.clone(), Namespace::main()), counts, began_at };
        assert!(told.tell(0, EventType::JobPushed), "another process serves the store");
        assert_eq!(told.drawn(Some("q")).0[0], 1);
        told.counts.begins();
        let next = Told { began_at: SystemClock.now(), ..told };
        assert!(!next.tell(0, EventType::JobPushed));
        assert_eq!(next.drawn(Some("q")).0[0], 1);
    }

    #[test]
    fn events_older_than_a_day_are_not_drawn_but_start_a_wait() {
        let told = Told::new();
        let day = BACK_MAX.us() / 1_000_000;
        assert!(told.tell(day + 60, EventType::JobPushed));
        assert_eq!(told.counts.minutes.namespaces(), [], "it takes no room");
        assert!(told.tell(day - 300, EventType::JobGranted));
        let ([pushed, granted, ..], [waits, _]) = told.drawn(None);
        assert_eq!((pushed, granted, waits), (0, 1, vec![360]));
    }

    #[test]
    fn a_job_that_was_given_back_waits_since_it_may_run_again() {
        let told = Told::new();
        let run_at = Some(told.began_at.minus(Span::from_s(1_900)));
        told.tell(3_000, EventType::JobPushed);
        told.tell(2_990, EventType::JobGranted);
        told.tell_of(2_000, EventType::JobReleased, About { run_at, ..About::default() });
        told.tell(1_895, EventType::JobGranted);
        let ([_, granted, succeeded, failed, lost], [waits, _]) = told.drawn(None);
        assert_eq!((granted, succeeded + failed + lost, waits), (2, 0, vec![10, 5]));
    }

    #[test]
    fn a_job_made_by_a_schedule_is_not_counted_as_a_push() {
        let told = Told::new();
        let schedule = Some("nightly".parse().unwrap());
        told.tell_of(60, EventType::JobPushed, About { schedule, ..About::default() });
        told.tell(50, EventType::JobGranted);
        let ([pushed, granted, ..], [waits, _]) = told.drawn(Some("q"));
        assert_eq!((pushed, granted, waits), (0, 1, vec![10]));
    }

    #[test]
    fn a_run_granted_before_a_restart_counts_with_its_whole_time() {
        let told = Told::new();
        told.tell(100, EventType::JobPushed);
        told.tell(90, EventType::JobGranted);
        let Told { past, counts, .. } = told;
        past.told();
        counts.ended(&Namespace::main(), &[("lease-1", crate::metrics::counts::RunEnd::Succeeded)]);
        let minutes = counts.minutes.last(&Namespace::main(), Some(&"q".parse().unwrap()), 60);
        let last = minutes.last().unwrap();
        let ran = last.runs.within(1.0).unwrap().us() / 1_000_000;
        assert_eq!((last.succeeded, ran), (1, 90));
        let metrics = counts.seen();
        let of_metrics: Vec<_> =
            metrics.iter().map(|seen| (seen.queue.as_str(), seen.run.count())).collect();
        assert_eq!(of_metrics, [(crate::metrics::OTHER, 0)], "metrics begin with the process");
    }
}
