//! R12 and R6: the grants of a new leader after a loss, and the remaining life of leases.

use std::sync::Arc;
use std::time::Instant;

use tenure_core::job::Need;
use tenure_core::names::{LimitName, Namespace};
use tenure_core::requests::{Lease, ListLeases};
use tenure_core::time::Span;
use tenure_engine::Embedded;
use tenure_engine_api::EngineExt;
use tenure_node::{Node, NodeOptions};
use tenure_testkit::needs_redis;

use crate::nodes::bench::{Bench, LONG};

/// The longest ttl that is granted in a store that forgets.
const TTL: Span = Span::from_s(4);

impl Bench {
    /// Waits for the lock `lock:site`; true if it was granted.
    fn lock(&self, engine: &Arc<Embedded>, wait: Span) -> bool {
        let limit = LimitName::parse("lock:site").unwrap();
        let lock = Lease {
            ttl: TTL,
            wait,
            ..Lease::needs(vec![Need::Limit { limit, weight: 1, cost: 1 }])
        };
        !self.runtime.block_on(engine.run(&Namespace::main(), lock)).unwrap().leases.is_empty()
    }

    /// A member that follows this one, once it has seen the notes in the store.
    fn follower(&self, change: impl FnOnce(&mut NodeOptions)) -> Arc<Node> {
        let second = self.member_with(&self.redis.url(), "http://second", change);
        self.there(&second, "http://first");
        second
    }
}

#[test]
fn a_forgotten_lock_is_granted_only_after_its_holder_gave_up() {
    needs_redis!();
    for (what, is_older, forgets_never) in [
        ("a store that is empty", false, false),
        ("a store that is older", true, false),
        ("a store that is older, and was said to forget nothing", true, true),
    ] {
        let mut bench = Bench::start();
        let redis = bench.redis.url();
        let first = bench.member_with(&redis, "http://first", |options| {
            options.settings.forgets_never = Some(forgets_never);
        });
        let engine = bench.here(&first);
        bench.push(&engine, 0..3).unwrap();
        assert_eq!(bench.lease(&engine, 1, TTL).len(), 1);
        if is_older {
            bench.redis.must(&["SAVE"]);
        }
        let second = bench.follower(|_| {});
        let held_until = Instant::now() + TTL.std();
        assert!(bench.lock(&engine, Span::ZERO));
        drop(engine);
        bench.redis.kill();
        bench.crash(&first, "http://first");
        bench.redis.restart();
        let engine = bench.here(&second);
        // Calls without exclusive needs go on meanwhile.
        if !is_older {
            bench.push(&engine, 3..4).unwrap();
        }
        assert_eq!(bench.lease(&engine, 1, TTL).len(), 1, "{what}");
        assert_eq!(engine.recovers_for().is_some(), !forgets_never, "{what}");
        let says = |part| second.health().warnings.iter().any(|why| why.contains(part));
        assert_eq!(says("nothing exclusive is granted"), !forgets_never, "{what}");
        assert_eq!(bench.lock(&engine, Span::ZERO), forgets_never, "{what}");
        if !forgets_never {
            assert!(bench.lock(&engine, Span::from_s(20)), "{what}");
            assert!(Instant::now() >= held_until, "{what}: its holder may believe in it");
            assert_eq!(engine.recovers_for(), None, "the member said that it is over");
            assert!(!says("nothing exclusive"), "{what}");
        }
        second.close();
    }
}

#[test]
fn a_live_leader_rebuilds_without_recovery_if_all_peers_answer() {
    needs_redis!();
    for is_asked in [true, false] {
        let (bench, first, engine) = Bench::led();
        bench.push(&engine, 0..2).unwrap();
        assert_eq!(bench.lease(&engine, 1, TTL).len(), 1);
        let second = bench.follower(|_| {});
        bench.knows(&first);
        if !is_asked {
            bench.crash(&second, "http://second");
        }
        bench.redis.must(&["FLUSHALL"]);
        bench.push(&engine, 2..3).unwrap();
        assert_eq!(bench.lock(&engine, Span::ZERO), is_asked);
        assert_eq!(engine.recovers_for().is_some(), !is_asked);
        if !is_asked {
            assert!(bench.lock(&engine, Span::from_s(20)), "it is over some time");
        }
        assert!(bench.is_there(&engine, 0));
        first.close();
        second.close();
    }
}

#[test]
fn a_lease_gets_its_whole_ttl_from_a_takeover_on() {
    needs_redis!();
    let (bench, first, engine) = Bench::led();
    bench.push(&engine, 0..1).unwrap();
    let before = bench.lease(&engine, 1, Span::from_s(60))[0].1;
    let second = bench.follower(|_| {});
    drop(engine);
    let crashed_at = bench.redis_time();
    assert!(crashed_at + Span::from_s(60).us() > before, "some time has passed");
    bench.crash(&first, "http://first");
    let engine = bench.here(&second);
    let leases = engine.run(&Namespace::main(), ListLeases::default());
    let ends = bench.runtime.block_on(leases).unwrap().items[0].expires_at.us();
    assert!(ends >= crashed_at + Span::from_s(60).us(), "{ends}, {crashed_at}");
    second.close();
}

#[test]
fn a_recovery_lasts_from_a_loss_until_all_peers_have_answered() {
    needs_redis!();
    let (bench, first, engine) = Bench::led();
    let second = bench.follower(|_| {});
    bench.knows(&first);
    assert_eq!(engine.recovers_for(), None);
    let no_answer = bench.network.answers.lock().unwrap();
    bench.redis.must(&["FLUSHALL"]);
    let recovers = |is: bool| {
        let begun = Instant::now();
        while engine.recovers_for().is_some() != is {
            assert!(begun.elapsed() < LONG, "it recovers: {}", !is);
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    };
    recovers(true);
    drop(no_answer);
    recovers(false);
    assert!(bench.lock(&engine, Span::ZERO), "the other server knew no more");
    drop(engine);
    second.close();
    first.close();
}
