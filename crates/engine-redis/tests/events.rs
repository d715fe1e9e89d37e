//! The stream of events of a namespace: what is in it whichever way a call goes, how large it is, and who is told of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::events::{Event, EventFilter, EventId, EventType, GapWhy};
use tenure_core::job::{NewJob, When};
use tenure_core::lease::{Ending, LeaseView, SettleItem};
use tenure_core::names::{JobId, LimitName, Namespace, PoolName, QueueName, ResourceId, WorkerId};
use tenure_core::refusal::Code;
use tenure_core::requests::{
    AddResources, Audit, EventsRead, EventsSince, GetStats, Lease, Operation, Push, PushAnswer,
    PutLimit, ReadEvents, Settle,
};
use tenure_core::secret::Json;
use tenure_core::settings::{LimitSettings, NewResource};
use tenure_core::time::Span;
use tenure_engine::{CallError, EngineExt};
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine, Time};
use tenure_testkit::redis::{Aof, RedisServer, Reply, wanted};

/// No wait of a test is longer.
const PROMPT: Duration = Duration::from_secs(20);
/// What must never be in a stream.
const SECRET: &str = "s3cr3t";

fn ns() -> Namespace {
    Namespace::main()
}
fn open(server: &RedisServer, events_bytes: Option<u64>) -> Arc<RedisEngine> {
    let address = Address::parse(&server.url()).expect("the address of the fixture is one");
    // Nobody ticks unless a test does: what is due happens in no call of its own.
    let options = Options { events_bytes, time: Time::Server, ..Options::new(address) };
    Arc::new(RedisEngine::open(options).expect("an engine can be opened"))
}
async fn ok<O: Operation>(engine: &RedisEngine, request: O) -> O::Reply {
    engine.run(&ns(), request).await.unwrap_or_else(|why| panic!("{}: {why}", O::NAME))
}
fn queue() -> QueueName {
    QueueName::parse("q").expect("a name")
}
fn job(id: &str) -> NewJob {
    NewJob { id: Some(JobId::parse(id).expect("an id")), ..NewJob::new(queue()) }
}
async fn push(engine: &RedisEngine, jobs: Vec<NewJob>, answer: PushAnswer) {
    ok(engine, Push { jobs, answer }).await;
}
async fn lease(engine: &RedisEngine, max: usize) -> Vec<LeaseView> {
    let mut lease = Lease::jobs(vec![queue()], max);
    lease.worker.id = WorkerId::parse("w").ok();
    ok(engine, lease).await.leases
}
async fn settle(engine: &RedisEngine, leases: &[LeaseView], result: Option<Json>) {
    let item = |lease: &LeaseView| {
        let ending = Ending::Succeeded { result: result.clone() };
        SettleItem::new(lease.lease.clone().expect("it has an id"), ending)
    };
    let settled = ok(engine, Settle::of(leases.iter().map(item).collect())).await.settled;
    assert!(settled.iter().all(|one| one.ok), "{settled:?}");
}
async fn read(engine: &RedisEngine, since: EventsSince) -> EventsRead {
    ok(engine, ReadEvents { since, max: 1_000, ..ReadEvents::default() }).await
}
async fn all(engine: &RedisEngine) -> Vec<Event> {
    let read = read(engine, EventsSince::First).await;
    assert_eq!(read.gap, None);
    read.items
}
async fn is_whole(engine: &RedisEngine) {
    let audit = ok(engine, Audit::default()).await;
    assert!(audit.ok, "{:?}", audit.faults);
}

/// What one job went through, told without what differs from job to job, and with whether its lease is the one that was
/// granted.
fn history(events: &[Event], id: &str, granted: &[LeaseView]) -> Vec<String> {
    let lease =
        granted.iter().find(|lease| lease.job.as_ref().is_some_and(|job| job.id.as_str() == id));
    let lease = lease.expect("it was granted");
    let told = events
        .iter()
        .filter(|event| event.happened.about.job.as_ref().is_some_and(|job| job.as_str() == id));
    let told = told.map(|event| {
        let about = &event.happened.about;
        assert!(about.lease.is_none() || about.lease == lease.lease, "{event:?}");
        assert!(about.fence.is_none_or(|fence| fence == lease.fence), "{event:?}");
        let (kind, queue) = (event.happened.kind, about.queue.as_ref());
        format!("{kind} {queue:?} {:?} {:?} {}", about.holder, about.attempt, about.lease.is_some())
    });
    told.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_way_makes_the_same_events() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let engine = open(&server, None);
    let limit = LimitName::parse("site:*").expect("a name");
    let settings = LimitSettings { concurrency: Some(1), ..LimitSettings::default() };
    ok(&engine, PutLimit { limit, settings, gauge: None }).await;
    // One job twice, of which the second goes the direct way; a few in rows; a block; jobs of keyed limits; the long way.
    let many =
        |name: &str, n: usize| (0..n).map(|at| job(&format!("{name}{at}"))).collect::<Vec<_>>();
    let keyed = |at: usize| {
        let needs = serde_json::from_str(&format!(r#"[{{"limit":"site:{at}"}}]"#)).expect("needs");
        NewJob { needs: Some(needs), ..job(&format!("keyed{at}")) }
    };
    let long = NewJob { when: When::At(tenure_core::time::Moment::from_us(1)), ..job("long0") };
    let ways = [
        ("first", many("first", 1), PushAnswer::Ids),
        ("alone", many("alone", 1), PushAnswer::Ids),
        ("row", many("row", 3), PushAnswer::Ids),
        ("block", many("block", 40), PushAnswer::Ids),
        ("keyed", (0..6).map(keyed).collect(), PushAnswer::Ids),
        ("long", vec![long], PushAnswer::Whole),
    ];
    let mut expected = None;
    for (way, jobs, answer) in ways {
        let n = jobs.len();
        push(&engine, jobs, answer).await;
        let granted = lease(&engine, n).await;
        assert_eq!(granted.len(), n, "{way}");
        // All in one call but the last, which is settled with a result.
        settle(&engine, &granted[..n - 1], None).await;
        settle(&engine, &granted[n - 1..], Some(Json::from(1))).await;
        let events = all(&engine).await;
        for at in 0..n {
            let history = history(&events, &format!("{way}{at}"), &granted);
            assert_eq!(history.len(), 3, "{way}{at}: {history:?}");
            assert_eq!(&history, expected.get_or_insert(history.clone()), "{way}{at}");
        }
    }
    let events = all(&engine).await;
    let numbers: Vec<u64> = events.iter().map(|event| event.id.number).collect();
    assert!(numbers.iter().copied().eq(1..=events.len() as u64), "{numbers:?}");
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_call_settles_is_told_in_its_order() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let engine = open(&server, None);
    push(&engine, (0..20).map(|at| job(&format!("j{at}"))).collect(), PushAnswer::Ids).await;
    let mut granted = lease(&engine, 20).await;
    granted.reverse();
    let item = |(at, lease): (usize, &LeaseView)| {
        let id = lease.lease.clone().expect("it has an id");
        let failed = Ending::Failed { error: "no".to_owned(), retry_in: None, last: true };
        SettleItem::new(id, if at % 5 == 2 { failed } else { Ending::Succeeded { result: None } })
    };
    ok(&engine, Settle::of(granted.iter().enumerate().map(item).collect())).await;
    let ends = EventFilter {
        types: vec![EventType::JobSucceeded, EventType::JobFailed],
        ..EventFilter::default()
    };
    let since = EventsSince::First;
    let read = ok(&engine, ReadEvents { since, filter: ends, max: 100, wait: Span::ZERO }).await;
    let told = read.items.iter().map(|event| event.happened.about.job.as_ref().expect("a job"));
    let asked = granted.iter().map(|lease| &lease.job.as_ref().expect("a job").id);
    assert!(told.eq(asked), "{:?}", read.items);
    assert_eq!(read.next, all(&engine).await.last().expect("some").id, "the others were looked at");
}

/// All bytes of the stream.
fn stream(server: &RedisServer) -> Vec<u8> {
    fn put(reply: &Reply, all: &mut Vec<u8>) {
        match reply {
            Reply::List(items) => items.iter().for_each(|item| put(item, all)),
            Reply::Text(text) => all.extend_from_slice(text.as_bytes()),
            _ => {}
        }
    }
    let mut all = Vec::new();
    put(&server.must(&["XRANGE", "tenure:{default}ev", "-", "+"]), &mut all);
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn no_payload_result_label_or_data_is_ever_in_an_event() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let engine = open(&server, None);
    let secret = || Json::from(SECRET);
    let labels = [(SECRET.to_owned(), SECRET.to_owned())].into();
    let with = |id: &str| NewJob { payload: secret(), ..job(id) };
    let unusual = NewJob { labels, when: When::In(Span::from_ms(1)), ..with("unusual") };
    push(&engine, (0..30).map(|at| with(&format!("j{at}"))).collect(), PushAnswer::Ids).await;
    push(&engine, vec![with("alone")], PushAnswer::Ids).await;
    push(&engine, vec![unusual], PushAnswer::Whole).await;
    let pool = PoolName::parse("p").expect("a name");
    let id = ResourceId::parse("r").expect("an id");
    let resources = vec![NewResource { id, data: secret(), tags: Vec::new(), slots: 1 }];
    ok(&engine, AddResources { pool, resources }).await;
    let granted = lease(&engine, 40).await;
    assert!(granted.len() >= 31);
    let (one, others) = granted.split_at(1);
    settle(&engine, others, Some(secret())).await;
    let mut item = SettleItem::new(one[0].lease.clone().expect("an id"), Ending::Released);
    item.progress = Some(secret());
    ok(&engine, Settle::of(vec![item])).await;
    let bytes = stream(&server);
    assert!(bytes.len() > 1_000);
    let is_in = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(is_in("alone") && !is_in(SECRET));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_stays_within_its_bytes() {
    if !wanted() {
        return;
    }
    const BYTES: u64 = 6_000;
    let server = RedisServer::start(Aof::Off, &[]);
    let engine = open(&server, Some(BYTES));
    push(&engine, vec![job("first")], PushAnswer::Ids).await;
    let first = all(&engine).await[0].id;
    let mut dropped = false;
    for round in 0..60 {
        // A call whose entry alone takes more than all others may, now and then.
        let n = if round % 20 == 19 { 700 } else { 1 + round % 12 };
        let jobs = (0..n).map(|at| job(&format!("{round}-{at}"))).collect();
        push(&engine, jobs, PushAnswer::Ids).await;
        let stats = ok(&engine, GetStats).await.events;
        let entries = server.must(&["XLEN", "tenure:{default}ev"]).text();
        assert!(stats.bytes <= BYTES || entries == "1", "{stats:?}, {entries} entries");
        let kept = all(&engine).await;
        assert_eq!(stats.first, kept.first().map(|event| event.id));
        assert_eq!(stats.last, kept.last().map(|event| event.id));
        dropped |= stats.first.is_some_and(|oldest| oldest.number > 1);
        is_whole(&engine).await;
    }
    assert!(dropped);
    let late = read(&engine, EventsSince::Id(first)).await;
    let gap = late.gap.expect("it was away too long");
    assert_eq!((gap.after, gap.why, gap.first), (first, GapWhy::Dropped, late.items[0].id));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_none_are_kept_a_reader_is_refused_and_the_next_are_another_life() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let before = open(&server, Some(1 << 20));
    push(&before, vec![job("a")], PushAnswer::Ids).await;
    let seen = all(&before).await[0].id;
    let none = open(&server, Some(0));
    push(&none, vec![job("b")], PushAnswer::Ids).await;
    let refused = none.run(&ns(), ReadEvents::default()).await;
    assert!(matches!(refused, Err(CallError::Refused(no)) if no.code == Code::WrongState));
    assert_eq!(server.must(&["EXISTS", "tenure:{default}ev", "tenure:{default}evs"]).text(), "0");
    assert_eq!(ok(&none, GetStats).await.events.last, None);
    is_whole(&none).await;
    let again = open(&server, Some(1 << 20));
    push(&again, vec![job("c")], PushAnswer::Ids).await;
    let on = read(&again, EventsSince::Id(seen)).await;
    assert_eq!(on.gap.expect("one was not kept").why, GapWhy::Restarted);
    assert_eq!(on.items.len(), 1);
    is_whole(&again).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_waits_is_answered_soon_and_the_store_is_asked_for_all_at_once() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let engine = open(&server, None);
    push(&engine, vec![job("before")], PushAnswer::Ids).await;
    let next = read(&engine, EventsSince::Now).await.next;
    let wait = Span::from_s(30);
    let waits = |next: EventId| {
        let engine = engine.clone();
        let since = EventsSince::Id(next);
        tokio::spawn(async move {
            ok(&engine, ReadEvents { since, wait, ..ReadEvents::default() }).await
        })
    };
    let readers: Vec<_> = (0..20).map(|_| waits(next)).collect();
    let looks = || {
        let stats = server.must(&["INFO", "commandstats"]).text();
        let of = stats.lines().find(|line| line.starts_with("cmdstat_fcall:"));
        let calls =
            of.and_then(|line| line.split("calls=").nth(1)?.split(',').next()?.parse().ok());
        calls.unwrap_or(0u64)
    };
    // They have looked once each; from then on one looks for all.
    let begin = Instant::now();
    let (mut seen, mut quiet) = (looks(), false);
    while !quiet {
        assert!(begin.elapsed() < PROMPT);
        tokio::time::sleep(Duration::from_millis(400)).await;
        let now = looks();
        quiet = now - seen < 10;
        seen = now;
    }
    let pushed_at = Instant::now();
    push(&engine, vec![job("after")], PushAnswer::Ids).await;
    let mut ids = BTreeSet::new();
    for reader in readers {
        let read = reader.await.expect("it ends");
        assert_eq!(read.items.len(), 1);
        ids.insert(read.items[0].id.to_string());
    }
    assert!(pushed_at.elapsed() < PROMPT / 4, "{:?}", pushed_at.elapsed());
    assert_eq!(ids.len(), 1, "all see the same");
    // A reader whose time is over, and one whose engine drains, get what there is.
    let end = read(&engine, EventsSince::Now).await.next;
    let since = EventsSince::Id(end);
    let short = ReadEvents { since, wait: Span::from_ms(50), ..ReadEvents::default() };
    assert_eq!(ok(&engine, short).await, EventsRead { next: end, ..EventsRead::default() });
    let draining = waits(end);
    tenure_engine::Engine::drain(&*engine);
    assert_eq!(draining.await.expect("it ends").next, end);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_is_not_there_is_not_made_by_a_reader() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let engine = open(&server, None);
    let nothing = read(&engine, EventsSince::Now).await;
    assert_eq!(nothing, EventsRead::default());
    assert_eq!(server.must(&["EXISTS", "tenure:{default}m"]).text(), "0");
    push(&engine, vec![job("a")], PushAnswer::Ids).await;
    let first = read(&engine, EventsSince::Id(nothing.next)).await;
    assert_eq!((first.gap, first.items.len()), (None, 1));
}
