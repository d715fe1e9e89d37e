//! A holder's verdicts on the needs that it gives back.

use tenure_core::job::JobState;
use tenure_core::lease::{Later, Verdict};
use tenure_core::settings::{PoolSettings, ResourceState};

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn a_resource_is_cooled_by_its_holder(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a")]).await;
    let held = b.hold([any_of("p")]).await;
    b.settle(released(&held).verdict("p", "a", Verdict::Cool(Later::For(s(60))))).await;
    let view = b.thing("p", "a").await;
    assert_eq!((view.state, view.until), (ResourceState::Cooling, Some(b.now().plus(s(60)))));
    b.pass(s(59)).await;
    b.denied([any_of("p")]).await;
    b.pass(s(2)).await;
    b.hold([any_of("p")]).await;
}

pub(crate) async fn a_resource_is_banned_by_its_holder(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a"), thing("b")]).await;
    b.push(job("q").needs([several_of("p", 2)])).await;
    let lease = b.take("q").await;
    let verdict = Verdict::Ban { reason: Some("captcha".to_owned()) };
    b.settle(failed_for_good(&lease).verdict("p", "a", verdict).verdict("p", "b", Verdict::Ok))
        .await;
    let view = b.thing("p", "a").await;
    assert_eq!((view.state, view.reason.as_deref()), (ResourceState::Banned, Some("captcha")));
    assert_eq!(b.thing("p", "b").await.state, ResourceState::Available);
    assert_eq!(resource_of(&b.hold([any_of("p")]).await), "b");
    b.denied([any_of("p")]).await;
}

pub(crate) async fn no_verdict_is_ok(b: &mut Bench) {
    b.set_pool("p", PoolSettings { quarantine: s(60), ..plain_pool() }, vec![thing("a")]).await;
    b.push(job("q").needs([any_of("p")])).await;
    let lease = b.take("q").await;
    b.settle(failed(&lease)).await;
    assert_eq!(b.thing("p", "a").await.state, ResourceState::Available);
}

pub(crate) async fn a_verdict_of_a_late_settle_changes_nothing(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a")]).await;
    let late = b.granted(b.ask_needs([any_of("p"), need("lock:x")]).ttl(s(5))).await;
    b.pass(s(6)).await;
    let ban = Verdict::Ban { reason: None };
    let item = released(&late).verdict("p", "a", ban).pausing("lock:x", s(60));
    assert!(!b.settle_any(item).await.ok);
    assert_eq!(b.thing("p", "a").await.state, ResourceState::Available);
    b.hold([need("lock:x")]).await;
}

pub(crate) async fn a_limit_is_paused_by_its_holder(b: &mut Bench) {
    b.set_limit("site:*", cap(5)).await;
    b.push_all((0..2).map(|n| job("q").id(&format!("j{n}")).needs([need("site:x")])).collect())
        .await;
    let lease = b.take("q").await;
    let until = b.now().plus(s(30));
    b.settle(succeeded(&lease).pausing("site:x", s(30))).await;
    assert_eq!(b.limit("site:x").await.paused_until, Some(until));
    b.none("q").await;
    b.is("j1", JobState::Blocked).await;
    b.hold([need("site:y")]).await;
    b.pass(s(31)).await;
    b.take_job("q", "j1").await;
}

pub(crate) async fn a_holder_cannot_shorten_a_pause(b: &mut Bench) {
    b.set_limit("l", cap(5)).await;
    let one = b.hold([need("l")]).await;
    let two = b.hold([need("l")]).await;
    b.settle(released(&one).pausing("l", s(60))).await;
    b.settle(released(&two).pausing("l", s(5))).await;
    b.pass(s(10)).await;
    b.denied([need("l")]).await;
}
