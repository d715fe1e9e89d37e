//! Taking a lease back by force: as a reap, but not counted as lost.

use tenure_core::job::JobState;
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::settings::{PoolSettings, ResourceState};

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn a_lease_taken_by_force_blames_nobody(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.push(job("q").id("a").needs([need("l")])).await;
    let lease = b.take("q").await;
    b.ok(ForceLease { lease: id_of(&lease) }).await;
    let view = b.job("a").await;
    assert_ne!(view.state, JobState::Running);
    assert_eq!((view.attempt, view.lost, view.lease), (0, 0, None));
    b.in_use("l", 0).await;
    b.is_lost(&lease).await;
    b.no_settle(Code::LeaseLost, succeeded(&lease)).await;
    b.take_job("q", "a").await;
}

pub(crate) async fn a_lease_taken_by_force_puts_resources_into_quarantine(b: &mut Bench) {
    let settings = PoolSettings { quarantine: s(30), ..plain_pool() };
    b.set_pool("p", settings, vec![thing("r")]).await;
    let lease = b.hold([any_of("p")]).await;
    b.ok(ForceLease { lease: id_of(&lease) }).await;
    assert_eq!(b.thing("p", "r").await.state, ResourceState::Cooling);
    b.denied([any_of("p")]).await;
    b.pass(s(31)).await;
    b.hold([any_of("p")]).await;
}

pub(crate) async fn a_lease_that_is_not_there_cannot_be_taken(b: &mut Bench) {
    b.refused(Code::LeaseNotFound, ForceLease { lease: "nobody's".to_owned() }).await;
    let lease = b.hold([need("lock:x")]).await;
    b.settle(released(&lease)).await;
    b.refused(Code::LeaseNotFound, ForceLease { lease: id_of(&lease) }).await;
}

pub(crate) async fn force_wakes_who_waits(b: &mut Bench) {
    let lease = b.hold([need("lock:x")]).await;
    let waiting = b.ask_needs([need("lock:x")]).wait(s(30));
    let waiting = b.waiting_at("lock:x", 1, waiting).await;
    b.ok(ForceLease { lease: id_of(&lease) }).await;
    waiting.lease().await;
}
