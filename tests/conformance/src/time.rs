//! One clock: an engine that was deaf ends nothing early, a clock that steps back loses nothing.

use tenure_core::job::JobState;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn time_in_which_the_engine_was_deaf_does_not_count(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.granted(b.ask("q").ttl(s(20))).await;
    let lock = b.granted(b.ask_needs([need("lock:x")]).ttl(s(20))).await;
    b.leap(hours(1)).await;
    b.is("a", JobState::Running).await;
    b.pass(s(18)).await;
    b.is("a", JobState::Running).await;
    b.in_use("lock:x", 1).await;
    b.lives(&lease).await;
    b.settle(succeeded(&lease)).await;
    b.settle(released(&lock)).await;
}

pub(crate) async fn a_lease_reaped_after_deafness_counts(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(20, 1, fixed(s(1))))).await;
    let lease = b.granted(b.ask("q").ttl(s(10))).await;
    b.leap(hours(1)).await;
    b.pass(s(9)).await;
    b.is("a", JobState::Running).await;
    b.pass(s(4)).await;
    b.is_lost(&lease).await;
    let view = b.is("a", JobState::Failed).await;
    assert_eq!(view.error.as_deref(), Some("poison"));
}

pub(crate) async fn a_sign_of_life_after_deafness_makes_a_reap_count(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(20, 1, fixed(s(1))))).await;
    let lease = b.granted(b.ask("q").ttl(s(10))).await;
    b.leap(hours(1)).await;
    b.lives(&lease).await;
    b.pass(s(13)).await;
    let view = b.is("a", JobState::Failed).await;
    assert_eq!(view.error.as_deref(), Some("poison"));
}

pub(crate) async fn what_is_due_after_a_leap_is_started(b: &mut Bench) {
    b.push(job("q").id("b").delay(hours(3))).await;
    b.push(job("q").id("a").delay(hours(1))).await;
    b.push(job("q").id("c").delay(hours(30))).await;
    b.leap(hours(10)).await;
    b.take_job("q", "a").await;
    b.take_job("q", "b").await;
    b.none("q").await;
}

pub(crate) async fn more_is_due_than_one_tick_carries(b: &mut Bench) {
    b.push_all(jobs("q", "j", 700).into_iter().map(|job| job.delay(s(5))).collect()).await;
    b.pass(s(6)).await;
    b.eventually("all are ready", async || b.queue("q").await.counts.ready == 700).await;
    let taken = b.take_all("q", 1_000).await;
    assert_eq!(taken.len(), 700);
    assert_eq!(jobs_of(&taken)[..3], ["j0", "j1", "j2"], "equal moments: arrival");
}

pub(crate) async fn more_leases_die_than_one_tick_carries(b: &mut Bench) {
    b.set_limit("l", cap(600)).await;
    b.push_all(jobs("q", "j", 600).into_iter().map(|job| job.needs([need("l")])).collect()).await;
    assert_eq!(b.ok(b.ask("q").max(1_000).ttl(s(5))).await.leases.len(), 600);
    b.pass(s(6)).await;
    b.eventually("all are reaped", async || b.limit("l").await.in_use == 0).await;
    assert_eq!(b.queue("q").await.counts.running, 0);
}

pub(crate) async fn a_clock_that_leaps_ahead_ends_no_lease_early(b: &mut Bench) {
    for (ttl, leap) in [(5_000, 1_900), (2_000, 2_600), (1_000, 201), (30_000, 60_000)] {
        let job_id = format!("{ttl}-{leap}");
        b.push(job("q").id(&job_id)).await;
        let lease = b.granted(b.ask("q").ttl(ms(ttl))).await;
        let lock = b.granted(b.ask_needs([need("lock:x")]).ttl(ms(ttl))).await;
        b.pass(ms(ttl / 5)).await;
        b.wall_leap(ms(leap)).await;
        // A holder works until 0.8 of its ttl is over by its own clock.
        b.pass(ms(ttl * 3 / 5)).await;
        b.is(&job_id, JobState::Running).await;
        b.in_use("lock:x", 1).await;
        b.denied([need("lock:x")]).await;
        // One ttl after the leap they are reaped.
        b.pass(ms(ttl * 2 / 5 + 1_000)).await;
        b.is_lost(&lease).await;
        b.is_lost(&lock).await;
        b.in_use("lock:x", 0).await;
        b.pass(s(61)).await;
        b.settle(succeeded(&b.take_job("q", &job_id).await)).await;
    }
}

pub(crate) async fn leaps_in_a_row_end_no_lease_early(b: &mut Bench) {
    let lock = b.granted(b.ask_needs([need("lock:x")]).ttl(s(5))).await;
    for _ in 0..3 {
        b.pass(ms(1_200)).await;
        b.wall_leap(ms(1_700)).await;
    }
    b.in_use("lock:x", 1).await;
    b.lives(&lock).await;
    b.settle(released(&lock)).await;
}

pub(crate) async fn a_clock_that_drifts_is_not_taken_for_one_that_leaps(b: &mut Bench) {
    let lock = b.granted(b.ask_needs([need("lock:x")]).ttl(s(20))).await;
    for _ in 0..22 {
        b.pass(s(1)).await;
        b.wall_leap(tenure_core::time::Span::from_us(500)).await;
    }
    b.in_use("lock:x", 0).await;
    b.is_lost(&lock).await;
}

pub(crate) async fn a_clock_that_steps_back_a_little_stops_nothing(b: &mut Bench) {
    b.push(job("q").id("a").delay(s(10))).await;
    let before = b.hold([need("lock:x")]).await;
    if !b.back(s(5)).await {
        return;
    }
    let after = b.hold([need("lock:y")]).await;
    assert!(after.fence > before.fence, "the fence never goes back");
    assert!(after.granted_at >= before.granted_at, "nor does the engine's time");
    b.denied([need("lock:x")]).await;
    assert!(b.engine().health().degraded.is_some(), "it is said loudly");
    b.pass(s(16)).await;
    b.take_job("q", "a").await;
    b.lives(&before).await;
    // On a slow machine a node that this sentence did not need may be connected only now.
    b.eventually("nothing is said any more", async || b.engine().health().degraded.is_none()).await;
}

pub(crate) async fn a_clock_that_steps_back_far_is_accepted_once(b: &mut Bench) {
    b.set_limit("gap", cap_and_gap(1, s(5))).await;
    b.set_limit("rate", rate(1, s(5), 1)).await;
    b.set_pool("p", plain_pool(), vec![thing("a")]).await;
    let until = tenure_core::lease::Later::For(s(5));
    b.ok(CoolResource { pool: pool("p"), resource: resource("a"), until }).await;
    let resting = b.hold([need("gap"), need("rate")]).await;
    b.settle(released(&resting)).await;
    b.push(job("q").id("backoff").retry(retry(9, 3, fixed(s(5))))).await;
    let lease = b.take("q").await;
    b.settle(failed(&lease)).await;
    b.push(job("wall").id("wall").at(b.now().plus(s(5)))).await;
    let alive = b.granted(b.ask_needs([need("lock:x")]).ttl(s(20))).await;
    if !b.back(hours(1)).await {
        return;
    }
    b.denied([need("gap")]).await;
    let fence = b.hold([need("lock:y")]).await.fence;
    assert!(fence > alive.fence, "the fence never goes back");
    b.pass(s(7)).await;
    b.hold([need("gap")]).await;
    b.hold([need("rate")]).await;
    b.hold([any_of("p")]).await;
    b.take_job("q", "backoff").await;
    b.lives(&alive).await;
    b.none("wall").await;
    b.is("wall", JobState::Scheduled).await;
    b.pass(s(18)).await;
    b.leap(hours(1)).await;
    b.take_job("wall", "wall").await;
}

pub(crate) async fn a_clock_that_steps_back_far_reaps_whom_it_should(b: &mut Bench) {
    let lock = b.granted(b.ask_needs([need("lock:x")]).ttl(s(10))).await;
    if !b.back(hours(1)).await {
        return;
    }
    b.pass(s(8)).await;
    b.in_use("lock:x", 1).await;
    b.pass(s(5)).await;
    b.in_use("lock:x", 0).await;
    b.is_lost(&lock).await;
}
