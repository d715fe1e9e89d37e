//! A grant gives everything in one step, or nothing: a call without a grant has no side effects.

use tenure_core::job::JobState;

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn what_waits_holds_nothing(b: &mut Bench) {
    b.set_limit("free", cap(1)).await;
    b.set_limit("taken", cap(1)).await;
    b.set_pool("p", plain_pool(), vec![thing("a")]).await;
    let lock = b.hold([need("taken")]).await;
    let needs = [need("free"), any_of("p"), need("taken")];
    b.push(job("q").id("a").needs(needs.clone())).await;
    for _ in 0..3 {
        b.none("q").await;
        b.denied(needs.clone()).await;
    }
    b.is("a", JobState::Blocked).await;
    b.in_use("free", 0).await;
    assert_eq!((b.pool("p").await.available, b.pool("p").await.leased), (1, 0));
    assert_eq!(b.thing("p", "a").await.uses, 0);
    let other = b.hold([need("free"), any_of("p")]).await;
    b.settle(released(&other)).await;
    b.settle(released(&lock)).await;
    b.take_job("q", "a").await;
    b.in_use("free", 1).await;
    b.in_use("taken", 1).await;
    assert_eq!(b.pool("p").await.available, 0);
}

pub(crate) async fn looking_consumes_no_tokens(b: &mut Bench) {
    b.set_limit("hourly", rate(1, hours(1), 1)).await;
    b.set_limit("lock", cap(1)).await;
    let lock = b.hold([need("lock")]).await;
    b.push(job("q").id("a").needs([need("hourly"), need("lock")])).await;
    for _ in 0..5 {
        b.none("q").await;
        b.denied([need("hourly"), need("lock")]).await;
    }
    b.settle(released(&lock)).await;
    b.take_job("q", "a").await;
    b.denied([need("hourly")]).await;
}

pub(crate) async fn everything_returns_in_one_step(b: &mut Bench) {
    b.set_limit("l", cap(5)).await;
    b.set_pool("p", plain_pool(), vec![thing("a"), thing("b"), thing("c")]).await;
    b.push(job("q").needs([weighing("l", 4), several_of("p", 2)])).await;
    let lease = b.take("q").await;
    assert_eq!(lease.resources.len(), 2);
    b.in_use("l", 4).await;
    assert_eq!(b.pool("p").await.available, 1);
    b.settle(succeeded(&lease)).await;
    b.in_use("l", 0).await;
    assert_eq!((b.pool("p").await.available, b.pool("p").await.leased), (3, 0));
}

pub(crate) async fn opposite_orders_of_needs_do_not_deadlock(b: &mut Bench) {
    let lock = b.hold([need("lock:a"), need("lock:b")]).await;
    let one = b.ask_needs([need("lock:a"), need("lock:b")]).wait(s(30));
    let one = b.waiting_at("lock:a", 1, one).await;
    let two = b.start(b.ask_needs([need("lock:b"), need("lock:a")]).wait(s(30)));
    b.eventually("both stand in line", async || {
        b.limit("lock:a").await.waiting + b.limit("lock:b").await.waiting == 2
    })
    .await;
    b.settle(released(&lock)).await;
    b.eventually("one of the two is served", async || one.is_answered() || two.is_answered()).await;
    let (first, second) = if one.is_answered() { (one, two) } else { (two, one) };
    let lease = first.lease().await;
    assert!(!second.is_answered());
    b.settle(released(&lease)).await;
    second.lease().await;
}
