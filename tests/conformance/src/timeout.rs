//! The deadline of one run, which is not the ttl: being alive is not being done.

use tenure_core::job::{JobState, Outcome};
use tenure_core::settings::{PoolSettings, ResourceState};

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn a_run_that_takes_too_long_fails(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let said = job("q").id("a").needs([need("l")]).timeout(s(20)).retry(retry(3, 3, fixed(s(2))));
    b.push(said).await;
    let lease = b.granted(b.ask("q").ttl(s(10))).await;
    for _ in 0..3 {
        b.pass(s(6)).await;
        b.lives(&lease).await;
    }
    b.pass(s(3)).await;
    let view = b.is("a", JobState::Scheduled).await;
    assert_eq!((view.attempt, view.lost, view.error.as_deref()), (1, 0, Some("timeout")));
    assert_eq!(view.errors.last().map(|error| error.outcome), Some(Outcome::Failed));
    b.in_use("l", 0).await;
    b.is_lost(&lease).await;
    b.no_settle(tenure_core::refusal::Code::LeaseLost, succeeded(&lease)).await;
    b.pass(s(3)).await;
    assert_eq!(b.take("q").await.job.expect("a job").attempt, 2);
}

pub(crate) async fn the_last_run_that_takes_too_long_fails_for_good(b: &mut Bench) {
    b.push(job("q").id("a").timeout(s(10)).retry(retry(1, 3, fixed(s(2))))).await;
    b.take("q").await;
    b.pass(s(11)).await;
    let view = b.is("a", JobState::Failed).await;
    assert_eq!(view.error.as_deref(), Some("timeout"));
}

pub(crate) async fn a_holder_that_dies_before_the_deadline_is_lost(b: &mut Bench) {
    b.push(job("q").id("a").timeout(s(60))).await;
    b.granted(b.ask("q").ttl(s(5))).await;
    let view = b.until_it_ends("a", s(10)).await;
    assert_eq!((view.lost, view.attempt), (1, 0));
}

pub(crate) async fn each_run_has_the_whole_time(b: &mut Bench) {
    b.push(job("q").id("a").timeout(s(10))).await;
    let lease = b.take("q").await;
    b.pass(s(8)).await;
    b.settle(released(&lease)).await;
    let lease = b.take("q").await;
    assert_eq!(lease.deadline, Some(b.now().plus(s(10))));
    b.pass(s(8)).await;
    b.settle(succeeded(&lease)).await;
}

pub(crate) async fn a_timeout_puts_resources_into_quarantine(b: &mut Bench) {
    let settings = PoolSettings { quarantine: s(30), ..plain_pool() };
    b.set_pool("p", settings, vec![thing("r")]).await;
    b.push(job("q").id("a").needs([any_of("p")]).timeout(s(10))).await;
    b.take("q").await;
    // The first retry waits at least half a second.
    b.pass(ms(10_100)).await;
    b.is("a", JobState::Scheduled).await;
    assert_eq!(b.thing("p", "r").await.state, ResourceState::Cooling);
    b.pass(s(31)).await;
    assert_eq!(b.thing("p", "r").await.state, ResourceState::Available);
}
