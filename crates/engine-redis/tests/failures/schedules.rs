//! Schedules when processes tick at once or die, and when Redis is full, is started anew or has forgotten.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::job::JobState;
use tenure_core::names::{Namespace, QueueName, ScheduleId};
use tenure_core::requests::{
    GetSchedule, GetStats, JobFilter, ListJobs, Page, PauseSchedule, PutSchedule, ResumeSchedule,
};
use tenure_core::schedule::{
    CatchUp, Overlap, ScheduleSettings, ScheduleView, ScheduledJob, TimingSpec,
};
use tenure_core::sentences::Coming;
use tenure_core::time::{Moment, Span};
use tenure_engine::schedules::zone_data;
use tenure_engine::{Clock as _, EngineExt as _};
use tenure_engine_redis::RedisEngine;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use crate::calls::*;
use crate::reclaim::{Store, another, set};

pub fn id(name: &str) -> ScheduleId {
    ScheduleId::parse(name).expect("an id")
}
pub fn every(seconds: u64) -> TimingSpec {
    TimingSpec { every: Some(Span::from_s(seconds)), ..TimingSpec::default() }
}
pub fn from(timing: TimingSpec, start: Moment) -> TimingSpec {
    TimingSpec { starts_at: Some(start), ..timing }
}
pub fn cron(expression: &str) -> TimingSpec {
    let (cron, zone) = (Some(expression.to_owned()), Some("UTC".to_owned()));
    TimingSpec { cron, zone, ..TimingSpec::default() }
}
pub fn settings(timing: TimingSpec, overlap: Overlap) -> ScheduleSettings {
    ScheduleSettings {
        owner: None,
        timing,
        overlap,
        catch_up: CatchUp::All,
        catch_up_max: 1_000,
        job: ScheduledJob::new(QueueName::parse("made").expect("a name")),
    }
}
/// What the server's clock shows.
pub fn now(server: &RedisServer) -> Moment {
    let time = server.must(&["TIME"]);
    let number = |at: usize| time.list()[at].text().parse::<u64>().expect("a number");
    Moment::from_us(number(0) * 1_000_000 + number(1))
}

async fn put(engine: &RedisEngine, name: &str, settings: ScheduleSettings) -> ScheduleView {
    let put = PutSchedule { schedule: id(name), settings: Box::new(settings), plan: None };
    *ok(engine, put).await.view
}
async fn view(engine: &RedisEngine, name: &str) -> ScheduleView {
    *ok(engine, GetSchedule { schedule: id(name) }).await
}

/// Jobs that are there.
async fn jobs(engine: &RedisEngine) -> u64 {
    ok(engine, GetStats).await.jobs.values().sum()
}

/// That each moment from the first one to the last that fired has made one job, and no other schedule has made any.
async fn each_has_fired_once(engine: &RedisEngine, first: Moment, view: &ScheduleView) {
    assert_eq!((view.skipped, view.missed), (0, 0), "{view:?}");
    let every = view.settings.timing.every.expect("an interval").us();
    let last = view.last.as_ref().expect("one has fired").at;
    assert_eq!(last.since(first).us() / every + 1, view.fired, "{view:?}");
    assert_eq!(jobs(engine).await, view.fired);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_that_tick_at_once_fire_a_moment_once() {
    let Some(store) = Store::start().await else { return };
    let other = another(&store.server);
    let timings = [("interval", every(60)), ("cron", cron("* * * * *"))];
    for (name, timing) in timings.clone() {
        put(&store.engine, name, settings(timing, Overlap::Allow)).await;
    }
    let minutes = 40;
    for _ in 0..minutes {
        store.clock.advance(Span::from_s(60));
        tokio::join!(set(&store.engine, &store.clock), set(&other, &store.clock));
    }
    for (name, _) in timings {
        let view = view(&other, name).await;
        assert_eq!((view.fired, view.skipped, view.missed), (minutes, 0, 0), "{name}");
    }
    assert_eq!(jobs(&other).await, 2 * minutes);
    is_whole(&other).await;
}

/// A call of the library by another process than the test's.
async fn calls(engine: &RedisEngine, function: &str, args: serde_json::Value) {
    let args = rmp_serde::to_vec_named(&args).expect("it can be packed");
    let called = engine.link().fcall("default", function, &["tenure:{default}m"], &[args]).await;
    called.expect("it is answered");
}

/// A tick of a process that does nothing of what it is asked.
async fn ticks_and_dies(engine: &RedisEngine) {
    let args = serde_json::json!({ "proc": "dead", "waiters": 0, "read": 0, "kn": [] });
    calls(engine, "tick", args).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_between_asking_and_planning_costs_a_second() {
    let Some(store) = Store::start().await else { return };
    put(&store.engine, "cron", settings(cron("* * * * *"), Overlap::Allow)).await;
    ok(&store.engine, PauseSchedule { schedule: id("cron"), until: None }).await;
    // It drops the plan, and so another one is wanted.
    ok(&store.engine, ResumeSchedule { schedule: id("cron") }).await;
    ticks_and_dies(&store.engine).await;
    let unplanned = Coming::IsPlanned.to_string();
    store.pass(Span::from_ms(990)).await;
    assert_eq!(view(&store.engine, "cron").await.summary, unplanned, "another was asked");
    store.pass(Span::from_ms(10)).await;
    assert_ne!(view(&store.engine, "cron").await.summary, unplanned);
    store.pass(Span::from_s(60)).await;
    assert_eq!(view(&store.engine, "cron").await.fired, 1);
    is_whole(&store.engine).await;
}

/// Zone data that is newer than that of this release.
const NEWER: &str = "9999z";

/// Another process plans an hour's moments of a schedule: at so many minutes behind the last one that is known.
async fn plans(engine: &RedisEngine, after: Moment, data: &str, minutes: &[u64]) {
    let version = 1;
    let at = |minute: &u64| after.plus(Span::from_s(60 * minute)).us();
    let moments: Vec<u64> = minutes.iter().flat_map(|minute| [at(minute), at(minute), 0]).collect();
    let plan = serde_json::json!({
        "id": "cron", "version": version, "after": after.us(), "moments": moments, "last": false, "data": data,
    });
    calls(engine, "plan", serde_json::json!({ "plans": [plan] })).await;
}

/// What fires in an hour: minutes behind a moment.
async fn fired(store: &Store, since: Moment) -> Vec<u64> {
    let list = ListJobs {
        filter: JobFilter::default(),
        page: Page { max: 100, cursor: None },
        full: false,
    };
    let listed = ok(&store.engine, list).await;
    let mut minutes: Vec<u64> =
        listed.items.iter().map(|job| job.run_at.since(since).us() / 60_000_000).collect();
    minutes.sort_unstable();
    minutes
}

#[tokio::test(flavor = "multi_thread")]
async fn newer_zone_data_plans_anew_what_an_older_process_planned() {
    let Some(store) = Store::start().await else { return };
    let mut hourly = cron("0 * * * *");
    hourly.zone = Some("Europe/Berlin".to_owned());
    let start = put(&store.engine, "cron", settings(hourly, Overlap::Allow)).await;
    let first = start.next_at.expect("a moment");
    store.pass(Span::from_ms(10)).await;

    // A newer process ticks. What this one plans from now on is no more than one moment ahead.
    let tick =
        serde_json::json!({ "proc": "newer", "waiters": 0, "read": 0, "kn": [], "zones": NEWER });
    calls(&store.engine, "tick", tick).await;
    store.pass(Span::from_s(2)).await;
    assert_ne!(view(&store.engine, "cron").await.summary, Coming::IsPlanned.to_string());
    is_whole(&store.engine).await;
    plans(&store.engine, first, zone_data(), &[7]).await;
    plans(&store.engine, first, NEWER, &[20, 50, 80, 110, 140]).await;
    // A plan that goes on from there is taken whole, of the newer data alone.
    plans(&store.engine, first.plus(Span::from_s(140 * 60)), zone_data(), &[10]).await;

    let hour = first.plus(Span::from_s(60));
    store.pass(hour.since(store.clock.now())).await;
    for _ in 0..6 {
        store.pass(Span::from_s(30 * 60)).await;
    }
    assert_eq!(fired(&store, first).await[..6], [0, 20, 50, 80, 110, 140]);
    is_whole(&store.engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_redis_fires_nothing_and_fires_when_there_is_room_again() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &["--maxmemory-policy", "noeviction"]);
    let engine = open(&server.url());
    let first = put(&engine, "s", settings(every(1), Overlap::Allow)).await.next_at;
    let first = first.expect("a moment");
    eventually("one has fired", async || view(&engine, "s").await.fired > 0).await;
    server.must(&["CONFIG", "SET", "maxmemory", "1"]);
    let before = view(&engine, "s").await;
    let due = before.next_at.expect("a moment").plus(Span::from_s(3));
    eventually("three more are due", async || now(&server) > due).await;
    let full = view(&engine, "s").await;
    assert_eq!((full.fired, full.summary), (before.fired, Coming::IsDue.to_string()));
    assert_eq!(jobs(&engine).await, before.fired);
    is_whole(&engine).await;
    server.must(&["CONFIG", "SET", "maxmemory", "0"]);
    let late = before.fired + 3;
    eventually("those have fired", async || view(&engine, "s").await.fired > late).await;
    ok(&engine, PauseSchedule { schedule: id("s"), until: None }).await;
    each_has_fired_once(&engine, first, &view(&engine, "s").await).await;
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_fire_in_a_namespace_that_nobody_has_called_since_the_start() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let quiet = Namespace::parse("quiet").expect("a name");
    let gone = open(&server.url());
    let settings = Box::new(settings(every(1), Overlap::Allow));
    let made = PutSchedule { schedule: id("s"), settings, plan: None };
    gone.run(&quiet, made).await.expect("it is put");
    gone.close(Duration::from_secs(5)).await;
    drop(gone);
    let place = || -> u64 {
        let place = server.must(&["ZSCORE", "tenure:{quiet}sd", "s"]).text();
        place.parse().expect("it stands in the order in which schedules fire")
    };
    let stood = place();
    let late = Moment::from_us(stood).plus(Span::from_ms(1_500));
    eventually("its moment is over", async || now(&server) > late).await;
    assert_eq!(place(), stood, "nobody is there");
    let here = open(&server.url());
    eventually("it fires again", async || place() > stood + 3_000_000).await;
    let view = here.run(&quiet, GetSchedule { schedule: id("s") }).await.expect("it is there");
    let stats = here.run(&quiet, GetStats).await.expect("its counts");
    assert!(view.fired >= 3 && view.missed == 0, "{view:?}");
    assert!(stats.jobs.values().sum::<u64>() >= view.fired);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_loss_of_the_last_second_a_moment_makes_the_same_job_again() {
    let Some(mut store) = Store::start().await else { return };
    let put = put(&store.engine, "s", settings(every(3_600), Overlap::Skip)).await;
    let moment = put.next_at.expect("a moment");
    let made = tenure_core::moments::moment_id("s", moment);
    let before = moment.minus(Span::from_s(1));
    store.leap(before.since(tenure_engine::Clock::now(&store.clock))).await;
    store.save();
    // The job is made, runs and ends, and all of it is forgotten.
    store.pass(Span::from_s(1)).await;
    let mut seen = BTreeMap::new();
    for _ in 0..2 {
        let lease = take(&store.engine, asks("made", "w", Span::from_s(30))).await.expect("a job");
        let job = lease.job.clone().expect("it has one");
        assert_eq!(job.id.as_str(), made);
        *seen.entry(job.id).or_insert(0) += 1;
        assert!(settle(&store.engine, &lease).await.ok);
        assert_eq!(see(&store.engine, &made).await.state, JobState::Succeeded);
        store.forget().await;
        store.pass(Span::from_s(31)).await;
    }
    assert_eq!(seen.len(), 1, "a handler that is keyed by the id does nothing twice");
    let view = view(&store.engine, "s").await;
    assert_eq!((view.fired, view.skipped, view.missed), (1, 0, 0));
    is_whole(&store.engine).await;
}
