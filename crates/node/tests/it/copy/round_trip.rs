//! There and back: what is shown before is shown after, and what comes next is the same.

use std::sync::Arc;

use tenure_core::events::GapWhy;
use tenure_core::lease::{Ending, Fence, SettleItem};
use tenure_core::names::Namespace;
use tenure_core::requests::*;
use tenure_core::time::Moment;
use tenure_engine::copy::thaw_target;
use tenure_engine_api::{Engine, EngineExt, TestClock};
use tenure_testkit::needs_redis;

use crate::copy::filled::{QUEUES, fill, lease_jobs};
use crate::copy::stores::{Store, Watcher, copied, copy_all, thaw};
use crate::copy::world::{is_sound, same, world};

fn namespaces() -> [Namespace; 2] {
    [Namespace::main(), Namespace::parse("other-1").unwrap()]
}

/// What a store shows in both namespaces, and that it is sound.
async fn seen(store: &Store) -> Vec<Vec<String>> {
    let opened = store.open();
    let engine = opened.engine();
    let mut all = Vec::new();
    for ns in namespaces() {
        is_sound(&engine, &ns).await;
        all.push(world(&engine, &ns).await);
    }
    all
}

async fn filled(store: &Store, seed: u64) {
    let opened = store.open();
    let engine = opened.engine();
    for (at, ns) in namespaces().into_iter().enumerate() {
        fill(&engine, &ns, seed + at as u64, if at == 0 { 330 } else { 40 }).await;
    }
}

/// The contents of a store: this one, and two more in `./test --long`.
fn seeds(first: u64) -> std::ops::Range<u64> {
    first..first + if tenure_testkit::long() { 3 } else { 1 }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_before_is_shown_after() {
    needs_redis!();
    for seed in seeds(1) {
        let (first, redis, back) = (Store::folder(), Store::redis(), Store::folder());
        filled(&first, seed).await;
        let before = seen(&first).await;
        let report = copy_all(&first, &redis);
        assert_eq!(report.namespaces, namespaces());
        assert!(!report.resumed && !report.already);
        let there = seen(&redis).await;
        for (one, other) in before.iter().zip(&there) {
            same(one, other, "folder to redis");
        }
        copy_all(&redis, &back);
        for (one, other) in before.iter().zip(&seen(&back).await) {
            same(one, other, "redis to folder");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_is_copied_to_a_redis_and_a_folder_to_a_folder() {
    needs_redis!();
    for (from, to) in [(Store::redis(), Store::redis()), (Store::folder(), Store::folder())] {
        filled(&from, 7).await;
        let before = seen(&from).await;
        copy_all(&from, &to);
        for (one, other) in before.iter().zip(&seen(&to).await) {
            same(one, other, "to its own kind");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_go_to_the_nodes_of_a_cluster_and_come_back() {
    needs_redis!();
    let (first, cluster, back) = (Store::folder(), Store::cluster(), Store::folder());
    filled(&first, 9).await;
    let before = seen(&first).await;
    // Broken off and given up, then whole.
    let mut watch = Watcher { stop_after: Some(2), ..Watcher::default() };
    assert!(copied(&first, &cluster, &mut watch).is_err());
    assert_eq!(thaw_target(cluster.hands().target(), "cluster"), Ok(true));
    let report = copy_all(&first, &cluster);
    assert_eq!(report.namespaces, namespaces());
    for (one, other) in before.iter().zip(&seen(&cluster).await) {
        same(one, other, "folder to cluster");
    }
    copy_all(&cluster, &back);
    for (one, other) in before.iter().zip(&seen(&back).await) {
        same(one, other, "cluster to folder");
    }
}

/// Grants one job after another until nothing goes; each is finished at once.
async fn drained(engine: &Arc<dyn Engine>, ns: &Namespace) -> (Vec<String>, Fence) {
    let (mut order, mut first) = (Vec::new(), Fence::MAX);
    for name in QUEUES {
        loop {
            let leases = lease_jobs(engine, ns, name, 1).await;
            let Some(lease) = leases.into_iter().next() else { break };
            first = first.min(lease.fence);
            let job = lease.job.as_ref().unwrap();
            let mut held: Vec<_> =
                lease.resources.iter().map(|one| (one.id.clone(), one.data.text())).collect();
            held.sort();
            order.push(format!("{name} {} {} {held:?} {:?}", job.id, job.attempt, lease.limits));
            let ending = Ending::Succeeded { result: None };
            let lease = lease.lease.unwrap();
            let settle = vec![SettleItem::new(lease, ending)];
            engine.run(ns, Settle::of(settle)).await.unwrap();
        }
    }
    (order, first)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_grants_in_the_order_of_its_source() {
    needs_redis!();
    for seed in seeds(11) {
        let (first, redis, back) = (Store::folder(), Store::redis(), Store::folder());
        filled(&first, seed).await;
        copy_all(&first, &redis);
        copy_all(&redis, &back);
        thaw(&first);
        thaw(&redis);
        let ns = Namespace::main();
        let mut orders = Vec::new();
        for store in [&first, &redis, &back] {
            let opened = store.open();
            let engine = opened.engine();
            let before = tenure_engine_api::Clock::now(&tenure_engine_api::SystemClock).us();
            let (order, fence) = drained(&engine, &ns).await;
            is_sound(&engine, &ns).await;
            // That of a Redis is asked once, and carried on from there.
            assert!(fence.get() + 1_000_000 >= before, "fences follow the clock");
            orders.push(order);
        }
        assert!(orders[0].len() > 20, "{}", orders[0].len());
        assert!(orders[0].iter().any(|one| one.contains("geheim")), "data comes along");
        assert_eq!(orders[0], orders[1], "seed {seed}");
        assert_eq!(orders[0], orders[2], "seed {seed}");
    }
}

/// The fence of a lock that is given back. It leaves nothing in the store but its fence.
pub async fn one_lock(engine: &Arc<dyn Engine>, ns: &Namespace) -> Fence {
    let needs = serde_json::from_str(r#"[{"limit":"lock:new"}]"#).unwrap();
    let lease = engine.run(ns, Lease::needs(needs)).await.unwrap().leases.remove(0);
    let ending = Ending::Succeeded { result: None };
    let settle = vec![SettleItem::new(lease.lease.unwrap(), ending)];
    engine.run(ns, Settle::of(settle)).await.unwrap();
    lease.fence
}

#[tokio::test(flavor = "multi_thread")]
async fn fences_rise_though_the_clock_of_the_target_is_behind() {
    needs_redis!();
    let ns = Namespace::main();
    for to in [Store::redis(), Store::folder()] {
        let from = Store::folder();
        // A fence is at least the clock: only one that is ahead shows that it is kept.
        let ahead = Moment::from_us(5_000_000_000_000_000);
        let fence = {
            let opened = from.open_at(Arc::new(TestClock::at(ahead)));
            one_lock(&opened.engine(), &ns).await
        };
        assert!(fence.get() >= ahead.us());
        copy_all(&from, &to);
        assert_eq!(one_lock(&to.open().engine(), &ns).await, fence.next());
    }
}

/// The stream is not copied: a reader of the source is told in the target that it missed something.
#[tokio::test(flavor = "multi_thread")]
async fn events_are_not_copied_and_the_copy_has_a_stream_of_its_own() {
    needs_redis!();
    let (from, to) = (Store::redis(), Store::redis());
    let ns = Namespace::main();
    filled(&from, 3).await;
    let read = async |store: &Store, since| {
        let opened = store.open();
        let read = ReadEvents { since, ..ReadEvents::default() };
        opened.engine().run(&ns, read).await.unwrap()
    };
    let end = read(&from, EventsSince::Now).await.next;
    assert!(end.number > 100, "{end}");
    copy_all(&from, &to);
    let there = read(&to, EventsSince::Id(end)).await;
    assert_eq!(there.items, []);
    let gap = there.gap.unwrap();
    assert_eq!((gap.after, gap.why), (end, GapWhy::Restarted));
    assert_ne!(there.next.life, end.life);
    let opened = to.open();
    fill(&opened.engine(), &ns, 4, 10).await;
    drop(opened);
    let on = read(&to, EventsSince::Id(there.next)).await;
    assert!(on.gap.is_none() && !on.items.is_empty());
}
