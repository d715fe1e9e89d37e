//! Leases that live at the source: they end as released, and nobody is granted the same before they
//! have run out.

use std::sync::Arc;
use std::time::Instant;

use tenure_core::gauge::{Gauge, GaugeAddress, GaugeSource, OnStale};
use tenure_core::job::{JobState, Need, NewJob};
use tenure_core::lease::{Ending, SettleItem};
use tenure_core::names::{JobId, JobRef, Namespace};
use tenure_core::requests::*;
use tenure_core::settings::{LimitSettings, NewResource, PoolSettings, ResourceState};
use tenure_core::time::Span;
use tenure_engine_api::{Clock, EngineExt, SystemClock, TestClock};
use tenure_testkit::needs_redis;

use crate::copy::filled::{limit, pool, queue, worker};
use crate::copy::stores::{Store, Watcher, copied};
use crate::copy::world::is_sound;

const TTL: Span = Span::from_s(2);

fn needs(text: &str) -> Vec<Need> {
    serde_json::from_str(text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn live_leases_end_as_released_once_they_have_run_out() {
    needs_redis!();
    for (from, to) in Store::combinations() {
        held(&from, &to).await;
    }
}

async fn held(from: &Store, to: &Store) {
    let ns = Namespace::main();
    let opened = from.open();
    let engine = opened.engine();
    let settings: PoolSettings = serde_json::from_str(r#"{"quarantine":"1h"}"#).unwrap();
    engine.run(&ns, PutPool { pool: pool("p"), settings }).await.unwrap();
    let resource = |id: &str| NewResource {
        id: tenure_core::names::ResourceId::parse(id).unwrap(),
        data: tenure_core::secret::Json::from("geheim"),
        tags: Vec::new(),
        slots: 1,
    };
    let resources = ["free", "held", "leaves"].map(resource).to_vec();
    engine.run(&ns, AddResources { pool: pool("p"), resources }).await.unwrap();
    let settings = serde_json::from_str(r#"{"concurrency":1,"gap":"1h"}"#).unwrap();
    engine.run(&ns, PutLimit { limit: limit("rests"), settings, gauge: None }).await.unwrap();
    let settings = serde_json::from_str(r#"{"concurrency":3,"quarantine":"1h"}"#).unwrap();
    engine.run(&ns, PutLimit { limit: limit("risky"), settings, gauge: None }).await.unwrap();
    let settings = serde_json::from_str(r#"{"concurrency":1}"#).unwrap();
    engine.run(&ns, PutLimit { limit: limit("one"), settings, gauge: None }).await.unwrap();
    let settings: LimitSettings = serde_json::from_str(r#"{"concurrency":3}"#).unwrap();
    let watched = PutLimit { limit: limit("watched"), settings, gauge: None };
    engine.run(&ns, watched.clone()).await.unwrap();
    // One permit rests already.
    let ask = Lease { worker: worker("w"), ..Lease::needs(needs(r#"[{"limit":"risky"}]"#)) };
    let dead = engine.run(&ns, ask).await.unwrap().leases.remove(0);
    engine.run(&ns, ForceLease { lease: dead.lease.unwrap() }).await.unwrap();

    let job = |id: &str, text: &str| {
        let mut job = NewJob::new(queue("q"));
        job.id = JobId::parse(id).ok();
        job.needs = Some(needs(text));
        job
    };
    let jobs = vec![
        job("runs", r#"[{"limit":"one"},{"limit":"risky","weight":2},{"pool":"p","id":"held"}]"#),
        job("called off", r#"[]"#),
        job("behind", r#"[{"limit":"one"}]"#),
        job("last", r#"[]"#),
    ];
    engine.run(&ns, Push { jobs, answer: PushAnswer::Ids }).await.unwrap();
    let ask = Lease { ttl: TTL, worker: worker("w"), ..Lease::jobs(vec![queue("q")], 2) };
    let leases = engine.run(&ns, ask).await.unwrap().leases;
    let ids: Vec<_> = leases.iter().map(|one| one.job.as_ref().unwrap().id.to_string()).collect();
    assert_eq!(ids, ["runs", "called off"]);
    let off = JobRef::Id(JobId::parse("called off").unwrap());
    engine.run(&ns, CancelJob { job: off }).await.unwrap();
    let alone =
        r#"[{"limit":"rests"},{"pool":"p","id":"leaves"},{"limit":"lock:l"},{"limit":"watched"}]"#;
    let ask = Lease { ttl: TTL, worker: worker("w"), ..Lease::needs(needs(alone)) };
    let token = engine.run(&ns, ask).await.unwrap().leases.remove(0);
    // From now on a reading must show what has become of it.
    let url = GaugeAddress::parse("http://me:geheim@host/").unwrap();
    let gauge = Gauge {
        source: GaugeSource::Count { url, count: vec!["/n".to_owned()] },
        every: Span::from_s(2),
        lag: Span::from_s(10),
        stale: Span::from_s(30),
        on_stale: OnStale::Hold,
    };
    let gauged = PutLimit { gauge: Some(Box::new(gauge.clone())), ..watched };
    engine.run(&ns, gauged.clone()).await.unwrap();
    let leaves = DeleteResource {
        pool: pool("p"),
        resource: tenure_core::names::ResourceId::parse("leaves").unwrap(),
    };
    engine.run(&ns, leaves).await.unwrap();
    let last = leases.iter().chain([&token]).map(|lease| lease.fence).max().unwrap();
    let granted = Instant::now();
    drop(engine);
    drop(opened);

    let mut watch = Watcher::default();
    let report = copied(from, to, &mut watch).unwrap();
    assert_eq!(report.moved.released, 3);
    assert!(watch.waited.is_some());
    // The source may have granted them for the whole ttl.
    assert!(granted.elapsed() >= TTL.std(), "{:?}", granted.elapsed());

    let opened = to.open();
    let engine = opened.engine();
    is_sound(&engine, &ns).await;
    let get = |id: &str| GetJob { job: JobRef::Id(JobId::parse(id).unwrap()) };
    let runs = engine.run(&ns, get("runs")).await.unwrap();
    assert_eq!((runs.state, runs.attempt, runs.lost), (JobState::Ready, 0, 0));
    let off = engine.run(&ns, get("called off")).await.unwrap();
    assert_eq!(off.state, JobState::Cancelled);
    let leases = engine.run(&ns, ListLeases::default()).await.unwrap();
    assert!(leases.items.is_empty());
    let list = ListResources { pool: pool("p"), page: Page::default() };
    let resources = engine.run(&ns, list).await.unwrap().items;
    let seen: Vec<_> =
        resources.iter().map(|one| (one.id.as_str(), one.state, one.reason.as_deref())).collect();
    let quarantine = Some("quarantine");
    assert_eq!(
        seen,
        [("free", ResourceState::Available, None), ("held", ResourceState::Cooling, quarantine)]
    );
    let rests = engine.run(&ns, GetLimit { limit: limit("rests") }).await.unwrap();
    assert_eq!((rests.in_use, rests.holders.len()), (1, 0));
    // What rested goes on, and nobody gave back what the run held.
    let risky = engine.run(&ns, GetLimit { limit: limit("risky") }).await.unwrap();
    assert_eq!(
        (risky.in_use, risky.resting, risky.settings.quarantine),
        (3, 3, Span::from_s(3_600))
    );
    let watched = engine.run(&ns, GetLimit { limit: limit("watched") }).await.unwrap();
    assert_eq!((watched.in_use, watched.resting, watched.holders.len()), (1, 1, 0));
    let shown = watched.gauge.unwrap();
    assert_eq!((shown.gauge, shown.reading), (gauge.redacted(), None));
    // Its address came whole: the same again changes nothing, and with the gauge its rests go.
    let again = engine.run(&ns, gauged.clone()).await.unwrap().view;
    assert_eq!(again.resting, 1);
    let none = engine.run(&ns, PutLimit { gauge: None, ..gauged }).await.unwrap().view;
    assert_eq!((none.resting, none.gauge), (0, None));
    // A word of the old holder changes nothing.
    let ending = Ending::Released;
    let lease = token.lease.clone().unwrap();
    let settle = vec![SettleItem::new(lease, ending)];
    let settled = engine.run(&ns, Settle::of(settle)).await.unwrap();
    assert!(!settled.settled[0].ok);
    // The lock and the order are as if it had given back: who ran is first again, but for what it held.
    let ask = Lease { worker: worker("w"), ..Lease::needs(needs(r#"[{"limit":"lock:l"}]"#)) };
    let lock = engine.run(&ns, ask).await.unwrap().leases;
    assert!(lock[0].fence > last);
    let ask = Lease { worker: worker("w"), ..Lease::jobs(vec![queue("q")], 9) };
    let leases = engine.run(&ns, ask).await.unwrap().leases;
    let ids: Vec<_> = leases.iter().map(|one| one.job.as_ref().unwrap().id.to_string()).collect();
    assert_eq!(ids, ["behind", "last"]);
    is_sound(&engine, &ns).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_was_ahead_makes_no_copy_wait_longer() {
    let (from, to) = (Store::folder(), Store::folder());
    let ns = Namespace::main();
    {
        let ahead = SystemClock.now().plus(Span::from_s(3_600));
        let opened = from.open_at(Arc::new(TestClock::at(ahead)));
        let ask = Lease { ttl: TTL, ..Lease::needs(needs(r#"[{"limit":"lock:l"}]"#)) };
        let held = opened.engine().run(&ns, ask).await.unwrap();
        assert_eq!(held.leases.len(), 1);
    }
    let mut watch = Watcher::default();
    assert_eq!(copied(&from, &to, &mut watch).unwrap().moved.released, 1);
    assert!(watch.waited.is_some_and(|waited| waited <= TTL), "{:?}", watch.waited);
    let opened = to.open();
    let ask = Lease { ttl: TTL, ..Lease::needs(needs(r#"[{"limit":"lock:l"}]"#)) };
    assert_eq!(opened.engine().run(&ns, ask).await.unwrap().leases.len(), 1);
    assert!(opened.engine().health().degraded.is_none());
}

/// Another run of Redis may have lost a grant, of at most the longest ttl that was noted.
#[tokio::test(flavor = "multi_thread")]
async fn grants_forgotten_by_a_restarted_redis_count_as_held() {
    needs_redis!();
    let (mut from, to) = (Store::redis(), Store::folder());
    {
        let opened = from.open();
        let (engine, ns) = (opened.engine(), Namespace::main());
        let ask = Lease { ttl: TTL, ..Lease::needs(needs(r#"[{"limit":"lock:l"}]"#)) };
        let lock = engine.run(&ns, ask).await.unwrap().leases.remove(0);
        let settle = vec![SettleItem::new(lock.lease.unwrap(), Ending::Released)];
        engine.run(&ns, Settle::of(settle)).await.unwrap();
    }
    let Store::Redis(server) = &mut from else { panic!("it is a Redis") };
    server.must(&["SAVE"]);
    server.kill();
    server.restart();
    let mut watch = Watcher::default();
    let report = copied(&from, &to, &mut watch).unwrap();
    assert_eq!(report.moved.released, 0);
    assert!(watch.waited.is_some());
}
