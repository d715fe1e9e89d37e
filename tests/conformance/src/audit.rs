//! Cached sums agree with the live leases.

use tenure_core::requests::Audit;

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn an_audit_checks_what_there_is(b: &mut Bench) {
    b.set_limit("l", cap(2)).await;
    b.set_pool("p", plain_pool(), vec![thing("a"), thing("b")]).await;
    let needs = || [need("l"), any_of("p")];
    b.push_all((0..5).map(|n| job("q").id(&format!("j{n}")).needs(needs())).collect()).await;
    let leases = b.take_all("q", 5).await;
    b.settle(failed(&leases[0])).await;
    // The needs of the failed job go to the next.
    b.take_all("q", 5).await;
    b.none("q").await;
    let audit = b.ok(Audit::default()).await;
    assert!(audit.ok && audit.faults.is_empty(), "{:?}", audit.faults);
    assert!(audit.checked > 0);
}

pub(crate) async fn an_audit_changes_nothing(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.push_all((0..2).map(|n| job("q").id(&format!("j{n}")).needs([need("l")])).collect()).await;
    let lease = b.take("q").await;
    b.none("q").await;
    let before = (b.job("j0").await, b.job("j1").await, b.limit("l").await);
    b.ok(Audit::default()).await;
    assert_eq!((b.job("j0").await, b.job("j1").await, b.limit("l").await), before);
    b.settle(succeeded(&lease)).await;
    b.take_job("q", "j1").await;
}
