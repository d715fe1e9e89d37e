//! R15: a Redis that has no room for more.

use std::time::{Duration, Instant};

use tenure_core::decode;
use tenure_core::lease::{Ending, SettleItem};
use tenure_core::names::{JobRef, LimitName, Namespace, PoolName, QueueName, ResourceId};
use tenure_core::refusal::Code;
use tenure_core::requests::{
    Lease, Meant, Patch, PatchJob, PauseQueue, PutLimit, Request, Settle, SyncResources,
};
use tenure_core::secret::Json;
use tenure_core::settings::{LimitSettings, NewResource};
use tenure_core::time::Span;
use tenure_engine_api::Engine;
use tenure_testkit::needs_redis;

use crate::nodes::bench::{Bench, LONG, queue};

#[test]
fn a_full_redis_refuses_what_begins_and_takes_what_ends() {
    needs_redis!();
    let (bench, first, engine) = Bench::led();
    bench.push(&engine, 0..3).unwrap();
    let code = |request: Request| {
        let called = bench.runtime.block_on(engine.call(&Namespace::main(), request));
        called.err().map(|no| no.code())
    };
    let lease = || Lease { ttl: Span::from_s(60), ..Lease::jobs(vec![queue()], 1) };
    let leased = bench.run(&engine, lease()).leases.remove(0);
    let resources = |data: &str| {
        let id = ResourceId::parse("r").unwrap();
        let one = NewResource { id, data: Json::from(data), tags: Vec::new(), slots: 1 };
        let pool = PoolName::parse("accounts").unwrap();
        let (meant, version) = (Meant::default(), None);
        SyncResources { pool, resources: vec![one], meant, version }
    };
    bench.run(&engine, resources("abc"));
    let schedules = |payload: &str| {
        let json =
            format!(r#"[{{"id":"s","every":"1h","job":{{"queue":"q","payload":"{payload}"}}}}]"#);
        decode::sync_schedules(&[("owner", "team")], json.as_bytes()).unwrap()
    };
    bench.run(&engine, schedules("abc"));
    // Less than the margin, so it is full whatever its content is.
    bench.redis.must(&["CONFIG", "SET", "maxmemory", "20mb"]);
    let begun = Instant::now();
    let mut pushed = 3;
    while bench.push(&engine, pushed..pushed + 1).is_ok() {
        pushed += 1;
        assert!(begun.elapsed() < LONG, "it takes pushes");
    }
    let limit = LimitName::parse("site").unwrap();
    let settings = LimitSettings { concurrency: Some(1), ..LimitSettings::default() };
    for request in [lease().into(), PutLimit { limit, settings, gauge: None }.into()] {
        assert_eq!(code(request), Some(Some(Code::StoreFull)));
    }
    let patched = |payload: &str| {
        let job = JobRef::parse("j1").unwrap();
        let payload = Patch::Set(Json::from(payload));
        code(PatchJob { payload, ..PatchJob::new(job) }.into())
    };
    assert_eq!(patched(&"x".repeat(100_000)), Some(Some(Code::StoreFull)));
    assert_eq!(patched("x"), None, "a patch that makes nothing larger goes on");
    assert_eq!(code(resources("xyz").into()), None, "so does a set");
    assert_eq!(code(resources(&"x".repeat(10_000)).into()), Some(Some(Code::StoreFull)));
    assert_eq!(code(schedules("xyz").into()), None);
    assert_eq!(code(schedules(&"x".repeat(10_000)).into()), Some(Some(Code::StoreFull)));
    let pause = |queue| PauseQueue { queue, until: None };
    assert_eq!(code(pause(queue()).into()), None);
    let other = QueueName::parse("other").unwrap();
    assert_eq!(code(pause(other).into()), Some(Some(Code::StoreFull)));
    assert!(engine.notice().unwrap().contains("maxmemory"), "{:?}", engine.notice());
    let item = SettleItem::new(leased.lease.unwrap(), Ending::Succeeded { result: None });
    assert_eq!(code(Settle::of(vec![item]).into()), None);
    bench.redis.must(&["CONFIG", "SET", "maxmemory", "0"]);
    let begun = Instant::now();
    while bench.push(&engine, pushed..pushed + 1).is_err() {
        assert!(begun.elapsed() < LONG, "it takes no pushes");
    }
    assert_eq!(engine.notice(), None);
    first.close();
}

#[test]
fn an_owner_says_so_while_its_redis_would_drop_keys() {
    needs_redis!();
    let (bench, first, engine) = Bench::led();
    let shown = || first.engine().notice();
    let until = |what: &str, is: &dyn Fn(Option<String>) -> bool| {
        let begun = Instant::now();
        while !is(shown()) {
            assert!(begun.elapsed() < LONG, "{what}: {:?}", shown());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    assert_eq!(shown(), None);
    for policy in ["allkeys-lru", "volatile-ttl"] {
        bench.redis.must(&["CONFIG", "SET", "maxmemory-policy", policy]);
        until("it says which policy", &|notice| {
            notice.is_some_and(|why| why.contains(policy) && why.contains("noeviction"))
        });
    }
    // It serves on: a load balancer must not keep heartbeats away.
    assert_eq!(first.engine().health().degraded, None);
    bench.push(&engine, 0..1).unwrap();
    bench.redis.must(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    until("it is well again", &|notice| notice.is_none());
    first.close();
}
