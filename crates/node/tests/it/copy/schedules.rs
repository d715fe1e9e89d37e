//! Schedules that are copied, and the jobs that know which of them made them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::lease::{Ending, Later, SettleItem};
use tenure_core::names::{JobId, Namespace, Owner, ScheduleId};
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::schedule::{CatchUp, Overlap, ScheduleSettings, ScheduleView, TimingSpec};
use tenure_core::time::{Moment, Span};
use tenure_engine_api::{Clock as _, Engine, EngineExt, SystemClock};
use tenure_testkit::needs_redis;

use crate::copy::filled::{lease_jobs, queue};
use crate::copy::stores::{Store, copy_all};
use crate::copy::world::{is_sound, jobs, same};

const HOUR: Span = Span::from_s(3_600);
const PROMPT: Duration = Duration::from_secs(20);
/// A job of which all is said that may be said.
const WHOLE: &str = r#"{"queue":"news","kind":"visit","payload":{"text":"größe\n"},"priority":3,"group":"g",
    "needs":[{"limit":"lock:one"},{"limit":"lock:two","weight":1}],"retry":{"max_attempts":4,"max_lost":2,"backoff":{"kind":"list","delays":["1h"],"jitter":true}},"timeout":"10m",
    "retain":"2d","expires_in":"5h","labels":{"k":"v"}}"#;
/// Of a payload for which the row of a schedule in a folder has no room.
const LONG_TEXT: usize = 2_000;
const PLAIN: &str = r#"{"queue":"news","needs":[],"payload":[]}"#;

fn id(name: &str) -> ScheduleId {
    ScheduleId::parse(name).unwrap()
}
fn owner() -> Owner {
    Owner::parse("table 1").unwrap()
}
fn settings(timing: TimingSpec, overlap: Overlap, job: &str) -> ScheduleSettings {
    let job = serde_json::from_str(job).unwrap();
    let catch_up = CatchUp::All;
    ScheduleSettings { owner: None, timing, overlap, catch_up, catch_up_max: 2, job }
}
fn cron() -> TimingSpec {
    let (cron, zone) = (Some("30 8 29 2 *".to_owned()), Some("Europe/Berlin".to_owned()));
    TimingSpec { cron, zone, ..TimingSpec::default() }
}
fn every(span: Span, starts_at: Option<Moment>, ends_at: Option<Moment>) -> TimingSpec {
    TimingSpec { every: Some(span), starts_at, ends_at, ..TimingSpec::default() }
}

async fn put(
    engine: &Arc<dyn Engine>,
    ns: &Namespace,
    name: &str,
    settings: ScheduleSettings,
) -> Put<Box<ScheduleView>> {
    let put = PutSchedule { schedule: id(name), settings: Box::new(settings), plan: None };
    engine.run(ns, put).await.unwrap()
}
async fn view(engine: &Arc<dyn Engine>, ns: &Namespace, name: &str) -> Box<ScheduleView> {
    engine.run(ns, GetSchedule { schedule: id(name) }).await.unwrap()
}
async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let begin = Instant::now();
    while !so().await {
        assert!(begin.elapsed() < PROMPT, "this never was so: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
async fn run_now(engine: &Arc<dyn Engine>, ns: &Namespace, name: &str, job: &str) {
    let run = RunScheduleNow { schedule: id(name), id: JobId::parse(job).ok() };
    engine.run(ns, run).await.unwrap();
}

/// The set of an owner, the same whenever it is asked for.
fn set(version: u64) -> SyncSchedules {
    let jitter = Span::from_s(90);
    let far = TimingSpec { jitter, ..every(HOUR, Some(Moment::from_us(1 << 52)), None) };
    let schedules = vec![
        (id("owned a"), settings(far, Overlap::Queue, WHOLE)),
        (id("owned b"), settings(cron(), Overlap::Skip, PLAIN)),
    ];
    SyncSchedules { owner: owner(), schedules, meant: Meant::Yes, version: Some(version) }
}

/// The first job of a schedule runs and ends, and may say when the next moment is. What it is told of that.
async fn end(
    engine: &Arc<dyn Engine>,
    ns: &Namespace,
    name: &str,
    next_in: Option<Span>,
) -> Option<Option<Moment>> {
    let lease = lease_jobs(engine, ns, name, 1).await.remove(0).lease.unwrap();
    let item = SettleItem { next_in, ..SettleItem::new(lease, Ending::Succeeded { result: None }) };
    engine.run(ns, Settle::of(vec![item])).await.unwrap().settled.remove(0).next_at
}

/// Schedules of which moments fired, were skipped and were missed; with jobs that have ended and jobs that have not;
/// paused, moved, deleted ones, and an owner's.
async fn fill(engine: &Arc<dyn Engine>, ns: &Namespace) {
    let now = SystemClock.now();
    let around =
        every(Span::from_s(1), Some(now.minus(Span::from_s(5))), Some(now.plus(Span::from_s(1))));
    for (name, overlap) in [("fired", Overlap::Allow), ("skipped", Overlap::Skip)] {
        put(engine, ns, name, settings(around.clone(), overlap, PLAIN)).await;
    }
    let far = every(HOUR, Some(now.plus(HOUR)), None);
    for (name, timing) in [
        ("cron", cron()),
        ("paused", cron()),
        ("paused until", far.clone()),
        ("moved", cron()),
        ("moved interval", far),
        ("deleted", cron()),
    ] {
        let mut settings = settings(timing, Overlap::Allow, PLAIN);
        settings.job.queue = queue(name);
        if name == "moved" {
            settings.job.payload = Some("x".repeat(LONG_TEXT).as_str().into());
        }
        put(engine, ns, name, settings).await;
        for n in 0..3 {
            run_now(engine, ns, name, &format!("{name}, {n}")).await;
        }
    }
    engine.run(ns, set(5)).await.unwrap();
    for name in ["fired", "skipped"] {
        until("its moments are over", async || view(engine, ns, name).await.ended).await;
    }
    for name in ["moved", "moved interval"] {
        assert!(end(engine, ns, name, Some(HOUR)).await.is_some());
    }
    end(engine, ns, "cron", None).await;
    let pause = |name: &str, until| PauseSchedule { schedule: id(name), until };
    engine.run(ns, pause("paused", None)).await.unwrap();
    engine.run(ns, pause("paused until", Some(Later::For(HOUR)))).await.unwrap();
    engine.run(ns, DeleteSchedule { schedule: id("deleted") }).await.unwrap();
}

/// All that is shown of schedules and of the jobs that they made, except that a plan is made anew.
async fn shown(engine: &Arc<dyn Engine>, ns: &Namespace) -> Vec<String> {
    is_sound(engine, ns).await;
    let page = Page { max: 1_000, cursor: None };
    let list = ListSchedules { page, ..ListSchedules::default() };
    let mut lines = Vec::new();
    for listed in engine.run(ns, list).await.unwrap().items {
        let mut view = view(engine, ns, listed.id.as_str()).await;
        view.summary.clear();
        let payload = view.settings.job.payload.as_ref().map(|json| json.text().to_owned());
        lines.push(format!("{view:?} {payload:?}"));
    }
    for job in jobs(engine, ns).await {
        lines.push(format!("job {} of {:?}, {:?}", job.id, job.schedule, job.state));
    }
    lines
}

/// What only calls show: versions, eras, and the count of a deleted schedule.
async fn goes_on(engine: &Arc<dyn Engine>, ns: &Namespace) {
    let no = engine.run(ns, set(4)).await.expect_err("the version is older");
    assert_eq!(no.code(), Some(Code::StaleSync), "{no}");
    let synced = engine.run(ns, set(5)).await.unwrap();
    assert_eq!((synced.unchanged, synced.updated, synced.added), (2, 0, 0));
    let before = view(engine, ns, "cron").await;
    let again = put(engine, ns, "cron", before.settings.clone()).await;
    assert_eq!((again.created, again.view.changed_at), (false, before.changed_at));
    let next = end(engine, ns, "cron", Some(HOUR)).await;
    assert!(next.flatten().is_some(), "it is of the schedule's present era");
    let made = put(engine, ns, "deleted", settings(cron(), Overlap::Skip, PLAIN)).await;
    assert_eq!((made.created, made.view.unfinished), (true, 3));
    let run = RunScheduleNow { schedule: id("deleted"), id: None };
    let run = engine.run(ns, run).await.unwrap();
    assert_eq!((run.job.id.as_str(), run.duplicate), ("deleted, 2", true));
    is_sound(engine, ns).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_come_along_and_go_on() {
    needs_redis!();
    for chain in Store::there_and_back() {
        let ns = Namespace::main();
        let before = {
            let opened = chain[0].open();
            fill(&opened.engine(), &ns).await;
            shown(&opened.engine(), &ns).await
        };
        for (from, to) in [(0, 1), (1, 2)] {
            let report = copy_all(&chain[from], &chain[to]);
            assert_eq!(report.moved.schedules, 9);
            let opened = chain[to].open();
            let after = shown(&opened.engine(), &ns).await;
            same(&before, &after, &format!("to the store {to}"));
        }
        goes_on(&chain[2].open().engine(), &ns).await;
    }
}

/// The moments of the time in which nobody was served are late there, and each makes one job.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_fires_what_was_due_meanwhile_and_nothing_twice() {
    needs_redis!();
    for (from, to) in [(Store::folder(), Store::redis()), (Store::redis(), Store::folder())] {
        let ns = Namespace::parse("quiet").unwrap();
        let first = {
            let opened = from.open();
            let engine = opened.engine();
            let timing = every(Span::from_s(1), None, None);
            let all =
                ScheduleSettings { catch_up_max: 1_000, ..settings(timing, Overlap::Allow, PLAIN) };
            let first = put(&engine, &ns, "s", all).await.view.next_at.unwrap();
            until("it fires", async || view(&engine, &ns, "s").await.fired > 0).await;
            first
        };
        copy_all(&from, &to);
        let copied = SystemClock.now();
        let opened = to.open();
        let engine = opened.engine();
        let late = async || {
            let last = view(&engine, &ns, "s").await.last;
            last.is_some_and(|last| last.at > copied)
        };
        until("it fires on", late).await;
        engine.run(&ns, PauseSchedule { schedule: id("s"), until: None }).await.unwrap();
        let view = view(&engine, &ns, "s").await;
        let moments = view.last.clone().unwrap().at.since(first).us() / 1_000_000 + 1;
        assert_eq!((view.fired, view.skipped, view.missed), (moments, 0, 0), "{view:?}");
        assert_eq!(jobs(&engine, &ns).await.len() as u64, moments);
        is_sound(&engine, &ns).await;
    }
}
