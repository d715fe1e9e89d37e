//! Schedules in the chaos: each of their moments has made exactly one job, or is in a counter.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tenure_core::job::Retry;
use tenure_core::moments::moment_id;
use tenure_core::names::{QueueName, ScheduleId};
use tenure_core::requests::{GetSchedule, PutSchedule};
use tenure_core::schedule::{
    CatchUp, Overlap, ScheduleSettings, ScheduleView, ScheduledJob, TimingSpec,
};
use tenure_core::time::{Moment, Span};
use tenure_engine_api::Engine;

use crate::chaos::part::{SCHEDULED, unix_us};
use crate::chaos::{DRAINED_WITHIN, jobs_of, ok};

/// A job takes this many milliseconds: of several moments that are made up at once, the later ones meet it.
const TAKES_MS: &str = "300";
const EACH: [(&str, Overlap, CatchUp); 3] = [
    ("allow", Overlap::Allow, CatchUp::All),
    ("skip", Overlap::Skip, CatchUp::All),
    ("queue", Overlap::Queue, CatchUp::Last),
];

/// How the moments were decided.
#[derive(Default)]
pub struct Decided {
    pub fired: u64,
    pub skipped: u64,
    pub missed: u64,
}

fn settings(timing: TimingSpec, overlap: Overlap, catch_up: CatchUp) -> Box<ScheduleSettings> {
    let queue = QueueName::parse(SCHEDULED).expect("a name");
    Box::new(ScheduleSettings {
        owner: None,
        timing,
        overlap,
        catch_up,
        catch_up_max: 1_000,
        job: ScheduledJob {
            kind: TAKES_MS.to_owned(),
            retry: Some(Retry { max_lost: 0, ..Retry::default() }),
            ..ScheduledJob::new(queue)
        },
    })
}

/// Puts intervals and cron expressions of one second, which end when the killing does. Each with its first moment.
pub async fn put_all(engine: &dyn Engine, seconds: u64) -> Vec<(ScheduleId, Moment)> {
    let ends_at = Some(Moment::from_us(unix_us()).plus(Span::from_s(seconds)));
    let jitter = Span::from_ms(500);
    let interval = TimingSpec { every: Some(Span::from_s(1)), ends_at, ..TimingSpec::default() };
    let (expression, zone) = (Some("* * * * * *".to_owned()), Some("Europe/Berlin".to_owned()));
    let cron = TimingSpec { cron: expression, zone, ends_at, jitter, ..TimingSpec::default() };
    let mut all = Vec::new();
    for (kind, timing) in [("interval", interval), ("cron", cron)] {
        for (name, overlap, catch_up) in EACH {
            let schedule = ScheduleId::parse(&format!("{kind}-{name}")).expect("an id");
            let settings = settings(timing.clone(), overlap, catch_up);
            let put = PutSchedule { schedule: schedule.clone(), settings, plan: None };
            let first = ok(engine, put).await.view.next_at.expect("a moment");
            all.push((schedule, first));
        }
    }
    all
}

async fn ended(engine: &dyn Engine, schedule: &ScheduleId) -> ScheduleView {
    let begin = Instant::now();
    loop {
        let view = ok(engine, GetSchedule { schedule: schedule.clone() }).await;
        if view.ended && view.unfinished == 0 {
            return *view;
        }
        assert!(begin.elapsed() < DRAINED_WITHIN, "it does not end: {view:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Waits for the end of each, and accounts for its moments.
pub async fn each_moment_is_decided_once(
    engine: &dyn Engine,
    all: &[(ScheduleId, Moment)],
) -> Decided {
    let (mut sum, mut views) = (Decided::default(), Vec::new());
    for (schedule, first) in all {
        views.push((ended(engine, schedule).await, *first));
    }
    let listed = jobs_of(engine, SCHEDULED).await;
    let mut made: BTreeSet<_> = listed.iter().map(|job| job.id.to_string()).collect();
    assert_eq!(made.len(), listed.len(), "two jobs have one id");
    for (view, first) in views {
        let last = view.settings.timing.ends_at.expect("an end");
        let moments = last.since(first).us() / 1_000_000 + 1;
        let decided = view.fired + view.skipped + view.missed;
        assert_eq!(decided, moments, "each moment is decided once: {view:?}");
        let ids = (0..moments).map(|n| moment_id(view.id.as_str(), first.plus(Span::from_s(n))));
        let fired = ids.filter(|id| made.remove(id)).count() as u64;
        assert_eq!(fired, view.fired, "each that fired has made a job: {view:?}");
        sum.fired += view.fired;
        sum.skipped += view.skipped;
        sum.missed += view.missed;
    }
    assert!(made.is_empty(), "jobs of no moment: {made:?}");
    sum
}
