//! The rest of a permit after its release.

use tenure_core::lease::ReasonKind;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn a_permit_rests_after_its_release(b: &mut Bench) {
    b.set_limit("l", cap_and_gap(1, s(5))).await;
    b.push_all((0..2).map(|n| job("q").id(&format!("j{n}")).needs([need("l")])).collect()).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease)).await;
    b.in_use("l", 1).await;
    b.none("q").await;
    let reason = b.waits_for("j1", ReasonKind::Gap).await;
    assert_eq!(reason.earliest, Some(b.now().plus(s(5))));
    let waiting = b.waiting(b.ask("q").wait(s(60))).await;
    b.pass(ms(4_900)).await;
    assert!(!waiting.is_answered());
    b.in_use("l", 1).await;
    b.pass(ms(200)).await;
    assert_eq!(job_of(&waiting.lease().await), "j1");
    b.in_use("l", 1).await;
}

pub(crate) async fn a_heavy_lease_rests_with_its_weight(b: &mut Bench) {
    b.set_limit("l", cap_and_gap(3, s(5))).await;
    let heavy = b.hold([weighing("l", 2)]).await;
    b.settle(released(&heavy)).await;
    b.in_use("l", 2).await;
    b.denied([weighing("l", 2)]).await;
    let light = b.hold([need("l")]).await;
    b.denied([need("l")]).await;
    b.pass(ms(5_100)).await;
    b.in_use("l", 1).await;
    b.lives(&light).await;
    b.hold([weighing("l", 2)]).await;
}

pub(crate) async fn each_permit_rests_by_itself(b: &mut Bench) {
    b.set_limit("l", cap_and_gap(2, s(10))).await;
    let one = b.hold([need("l")]).await;
    let two = b.hold([need("l")]).await;
    b.settle(released(&one)).await;
    b.pass(s(4)).await;
    b.settle(released(&two)).await;
    b.denied([need("l")]).await;
    b.pass(ms(6_100)).await;
    b.in_use("l", 1).await;
    b.hold([need("l")]).await;
    b.denied([need("l")]).await;
    b.pass(s(4)).await;
    b.hold([need("l")]).await;
}

pub(crate) async fn a_released_job_rests_no_permit(b: &mut Bench) {
    b.set_limit("l", cap_and_gap(1, s(60))).await;
    b.push(job("q").id("a").needs([need("l")])).await;
    let lease = b.take("q").await;
    b.settle(released(&lease)).await;
    b.in_use("l", 0).await;
    b.take_job("q", "a").await;
}

pub(crate) async fn a_lease_without_a_job_always_rests_its_permit(b: &mut Bench) {
    b.set_limit("l", cap_and_gap(2, s(60))).await;
    let one = b.hold([need("l")]).await;
    let two = b.hold([need("l")]).await;
    b.settle(released(&one)).await;
    b.settle(succeeded(&two)).await;
    b.in_use("l", 2).await;
    b.denied([need("l")]).await;
}

pub(crate) async fn every_other_end_rests_the_permit(b: &mut Bench) {
    for ends in ["succeeded", "failed", "snoozed", "force", "lost", "timeout"] {
        let name = format!("lock:{ends}");
        b.set_limit(&name, cap_and_gap(1, s(30))).await;
        b.push(job(ends).id(ends).needs([need(&name)]).timeout(s(60))).await;
        let lease = b.granted(b.ask(ends).ttl(s(10))).await;
        match ends {
            "succeeded" => drop(b.settle(succeeded(&lease)).await),
            "failed" => drop(b.settle(failed(&lease)).await),
            "snoozed" => drop(b.settle(snoozed(&lease, s(1))).await),
            "force" => b.ok(ForceLease { lease: id_of(&lease) }).await,
            "lost" => drop(b.until_it_ends(ends, s(15)).await),
            _ => {
                for _ in 0..7 {
                    b.extend(&lease).await;
                    b.pass(s(9)).await;
                }
                assert_ne!(b.job(ends).await.lease, lease.lease, "the run was too long");
            }
        }
        b.in_use(&name, 1).await;
        b.denied([need(&name)]).await;
        b.pass(s(31)).await;
        b.in_use(&name, 0).await;
    }
}

pub(crate) async fn resting_permits_count_under_a_lowered_cap(b: &mut Bench) {
    b.set_limit("l", cap_and_gap(3, s(10))).await;
    let one = b.hold([need("l")]).await;
    b.hold([need("l")]).await;
    b.settle(released(&one)).await;
    let view = b.set_limit("l", cap_and_gap(2, s(10))).await.view;
    assert_eq!(view.in_use, 2);
    b.denied([need("l")]).await;
    b.pass(s(11)).await;
    b.hold([need("l")]).await;
}
