//! Locks are limits that are there from the start.

use tenure_core::refusal::Code;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn a_lock_needs_no_preparation(b: &mut Bench) {
    let view = b.limit("lock:deploy").await;
    assert_eq!((view.template, view.settings), (Some(limit("lock:*")), cap(1)));
    let held = b.hold([need("lock:deploy")]).await;
    assert!(held.job.is_none());
    assert_eq!(held.limits, [limit("lock:deploy")]);
    b.denied([need("lock:deploy")]).await;
    b.hold([need("lock:other")]).await;
    b.settle(released(&held)).await;
    b.hold([need("lock:deploy")]).await;
}

pub(crate) async fn a_lock_is_not_reentrant(b: &mut Bench) {
    b.granted(b.ask_needs([need("lock:x")]).by("me")).await;
    b.not_granted(b.ask_needs([need("lock:x")]).by("me")).await;
}

pub(crate) async fn the_template_of_locks_cannot_be_deleted_but_changed(b: &mut Bench) {
    b.refused(Code::InUse, DeleteLimit { limit: limit("lock:*") }).await;
    b.hold([need("lock:x")]).await;
    b.denied([need("lock:x")]).await;
    b.set_limit("lock:*", cap(2)).await;
    b.hold([need("lock:x")]).await;
    b.denied([need("lock:x")]).await;
    b.refused(Code::InUse, DeleteLimit { limit: limit("lock:*") }).await;
    assert_eq!(b.limit("lock:y").await.settings, cap(2));
}

pub(crate) async fn a_lock_of_its_own_is_a_semaphore(b: &mut Bench) {
    b.set_limit("lock:build", cap(3)).await;
    for _ in 0..3 {
        b.hold([need("lock:build")]).await;
    }
    b.denied([need("lock:build")]).await;
    b.ok(DeleteLimit { limit: limit("lock:build") }).await;
    let view = b.limit("lock:build").await;
    assert_eq!((view.settings, view.in_use, view.over_limit), (cap(1), 3, 2));
}

pub(crate) async fn jobs_and_callers_share_a_lock(b: &mut Bench) {
    b.push(job("q").id("a").needs([need("lock:x")])).await;
    let lease = b.take("q").await;
    b.denied([need("lock:x")]).await;
    b.settle(succeeded(&lease)).await;
    b.hold([need("lock:x")]).await;
}
