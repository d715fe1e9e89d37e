//! The keeper against a scripted engine, on a clock that a test moves.

use std::time::Duration;

use tenure_core::bounds::{ITEMS_MAX, PROGRESS_BYTES_MAX};
use tenure_core::lease::{Ending, Extended};
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{Reply, Request};
use tenure_core::secret::Json;
use tenure_core::time::Moment;
use tokio::time::advance;

use super::*;
use crate::lease_clock::{LOOK, Slept};
use tenure_testkit::fake::{Fake, Says, extended, is_extend, is_settle, lease, unavailable, well};

const TTL: Span = Span::from_s(30);

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn on(fake: &Arc<Fake>) -> Keeper {
    that_sleeps(fake, &Slept::default())
}

/// The same, on a machine that the test suspends.
fn that_sleeps(fake: &Arc<Fake>, slept: &Slept) -> Keeper {
    Keeper::start_here(fake.clone(), Namespace::main(), LeaseClock::of_tokio(slept))
}

async fn fresh(keeper: &Keeper, n: usize) -> Held {
    keeper.hold(&lease(n, None), TTL, keeper.clock().now()).await.unwrap()
}

fn told(what: impl Fn(&Extend) -> Extended + Send + 'static) -> Arc<Fake> {
    Fake::new(move |call, _| match call {
        Request::Extend(extend) => Says::Now(Ok(Reply::Extend(what(extend)))),
        call => well(call),
    })
}

#[tokio::test(start_paused = true)]
async fn all_leases_are_extended_together_every_fifth_of_the_ttl() {
    let fake = Fake::new(|call, _| well(call));
    let keeper = on(&fake);
    let begun = Instant::now();
    let _one = fresh(&keeper, 1).await;
    sleep(s(2)).await;
    let _two = fresh(&keeper, 2).await;
    fake.until(is_extend, 4).await;
    let beats: Vec<(u64, usize)> = fake
        .extends()
        .iter()
        .map(|(at, call)| ((*at - begun).as_secs(), call.leases.len()))
        .collect();
    assert_eq!(beats, [(6, 2), (12, 2), (18, 2), (24, 2)]);
}

#[tokio::test(start_paused = true)]
async fn the_stop_comes_at_four_fifths_when_no_extend_is_answered() {
    for script in [unavailable as fn() -> Says, || Says::Never] {
        let fake = Fake::new(move |_, _| script());
        let keeper = on(&fake);
        let begun = Instant::now();
        let held = fresh(&keeper, 1).await;
        assert_eq!(held.stop_by(), (begun + s(24)).into_std());
        assert_eq!(held.hard_limit(), (begun + Duration::from_millis(28_500)).into_std());
        assert_eq!(held.stopped().await, Stop::Lost);
        let after = begun.elapsed();
        assert!(after >= s(24) && after < s(24) + Duration::from_millis(5), "{after:?}");
        assert_eq!(held.stop(), Some(Stop::Lost));
        assert!(fake.extends().len() >= 3, "it was tried again and again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_sees_each_answered_heartbeat_and_renews_no_lease() {
    let fake = Fake::new(|call, _| well(call));
    let keeper = on(&fake);
    let begun = Instant::now();
    let held = fresh(&keeper, 1).await;
    let watch = held.watch();
    for sent in [6, 12] {
        watch.moved_from(watch.stop_by()).await;
        let now = keeper.clock().now();
        assert_eq!((watch.stop_by().since(now), begun.elapsed()), (s(24), s(sent)));
        assert_eq!(held.stop_by(), (begun + s(sent + 24)).into_std());
        assert_eq!(watch.hard_limit().since(now), Duration::from_millis(28_500));
    }
    drop(held);
    let sent = fake.extends().len();
    sleep(s(60)).await;
    assert_eq!(fake.extends().len(), sent);
}

#[tokio::test(start_paused = true)]
async fn the_stop_counts_from_when_the_last_good_heartbeat_was_sent() {
    // The one of second 6 is answered after 5 s, all others fail.
    let fake = Fake::new(|call, before| match call {
        Request::Extend(extend) if before == 0 => {
            Says::After(s(5), Ok(extended(extend, Moment::MAX)))
        }
        _ => unavailable(),
    });
    let keeper = on(&fake);
    let begun = Instant::now();
    let held = fresh(&keeper, 1).await;
    assert_eq!(held.stopped().await, Stop::Lost);
    assert_eq!(begun.elapsed().as_secs(), 6 + 24);
}

#[tokio::test(start_paused = true)]
async fn a_slow_heartbeat_does_not_hold_up_the_next() {
    let fake = Fake::new(|call, before| match call {
        Request::Extend(_) if before == 0 => Says::Never,
        call => well(call),
    });
    let keeper = on(&fake);
    let begun = Instant::now();
    let held = fresh(&keeper, 1).await;
    fake.until(is_extend, 2).await;
    assert_eq!(begun.elapsed().as_secs(), 12);
    sleep(s(60)).await;
    assert_eq!(held.stop(), None);
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_told_at_once() {
    let fake = told(|extend| Extended {
        lost: extend.leases.iter().map(|item| item.lease.clone()).collect(),
        ..Extended::default()
    });
    let keeper = on(&fake);
    let begun = Instant::now();
    let held = fresh(&keeper, 1).await;
    assert_eq!(held.stopped().await, Stop::Lost);
    assert_eq!(begun.elapsed().as_secs(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_job_is_held_on_while_its_holder_stops() {
    let fake = told(|extend| {
        let Reply::Extend(mut answer) = extended(extend, Moment::MAX) else { unreachable!() };
        answer.cancel = vec!["l1".to_owned()];
        answer
    });
    let keeper = on(&fake);
    let held = fresh(&keeper, 1).await;
    assert_eq!(held.stopped().await, Stop::Cancelled);
    fake.until(is_extend, 10).await;
    assert_eq!(held.stop(), Some(Stop::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_lease_read_late_is_extended_before_its_work_starts() {
    for (late, extends) in [(s(0), 0), (s(5), 0), (s(6), 1), (s(40), 1)] {
        let fake = Fake::new(|call, _| match call {
            Request::Extend(extend) => Says::After(s(1), Ok(extended(extend, Moment::MAX))),
            call => well(call),
        });
        let keeper = on(&fake);
        let asked = keeper.clock().now();
        advance(late).await;
        let held = keeper.hold(&lease(1, None), TTL, asked).await.unwrap();
        assert_eq!(fake.extends().len(), extends, "read {late:?} after it was asked for");
        assert_eq!(held.stop(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_confirmed_is_lost_and_released() {
    for away in [true, false] {
        let fake = Fake::new(move |call, _| match call {
            Request::Extend(_) if away => unavailable(),
            Request::Extend(_) => Says::Now(Ok(Reply::Extend(Extended {
                lost: vec!["l1".to_owned()],
                ..Extended::default()
            }))),
            call => well(call),
        });
        let keeper = on(&fake);
        let asked = keeper.clock().now();
        advance(s(10)).await;
        let lost = keeper.hold(&lease(1, None), TTL, asked).await.err();
        assert_eq!(lost, Some(Stop::Lost));
        fake.until(is_settle, 1).await;
        assert_eq!(fake.settles()[0][0].ending, Ending::Released);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_at_its_deadline_by_the_holders_own_clock() {
    let timed = |n| {
        let mut view = lease(n, None);
        view.deadline = Some(view.granted_at.plus(Span::from_s(20)));
        view
    };
    // The engine's clock is independent of ours: only the span counts.
    let fake = Fake::new(|call, _| match call {
        Request::Extend(extend) => Says::Now(Ok(extended(extend, Moment::ZERO.plus(TTL)))),
        call => well(call),
    });
    let keeper = on(&fake);
    let begun = Instant::now();
    let held = keeper.hold(&timed(1), TTL, keeper.clock().now()).await.unwrap();
    assert_eq!(held.stopped().await, Stop::Deadline);
    assert_eq!(begun.elapsed().as_secs(), 20);

    // An answer lost for 4 s: the first extend shows that the engine's time is later.
    let granted_at = lease(2, None).granted_at;
    let fake = Fake::new(move |call, _| match call {
        Request::Extend(extend) => {
            let now = granted_at.plus(Span::from_s(10));
            Says::Now(Ok(extended(extend, now.plus(TTL))))
        }
        call => well(call),
    });
    let keeper = on(&fake);
    let begun = Instant::now();
    let held = keeper.hold(&timed(2), TTL, keeper.clock().now()).await.unwrap();
    assert_eq!(held.stopped().await, Stop::Deadline);
    assert_eq!(begun.elapsed().as_secs(), 6 + 10, "sent in second 6, when 10 s were left");
}

#[tokio::test(start_paused = true)]
async fn a_refused_report_does_not_cost_the_lease() {
    let fake = Fake::new(|call, _| match call {
        Request::Extend(extend) if extend.leases.iter().any(|item| item.progress.is_some()) => {
            Says::Now(Err(CallError::Refused(Refusal::heard(Code::BadJson, "too deep", ""))))
        }
        call => well(call),
    });
    let keeper = on(&fake);
    let begun = Instant::now();
    let held = fresh(&keeper, 1).await;
    let _other = fresh(&keeper, 2).await;
    held.set_progress(Json::from("half")).unwrap();
    fake.until(is_extend, 2).await;
    assert_eq!(begun.elapsed().as_secs(), 6, "again at once");
    assert!(fake.extends()[1].1.leases.iter().all(|item| item.progress.is_none()));
    assert_eq!(fake.extends()[1].1.leases.len(), 2);

    let long = Json::from("x".repeat(PROGRESS_BYTES_MAX).as_str());
    assert_eq!(held.set_progress(long).unwrap_err().code, Code::OutOfBounds);
}

#[tokio::test(start_paused = true)]
async fn a_report_is_sent_once_and_again_if_it_may_not_have_arrived() {
    for forwarding_server in [unavailable as fn() -> Says, overloaded] {
        let fake = Fake::new(move |call, before| match call {
            Request::Extend(_) if before == 0 => forwarding_server(),
            call => well(call),
        });
        let keeper = on(&fake);
        let held = fresh(&keeper, 1).await;
        held.set_progress(Json::from(1)).unwrap();
        held.set_progress(Json::from(2)).unwrap();
        fake.until(is_extend, 3).await;
        let sent: Vec<_> =
            fake.extends().iter().map(|(_, call)| call.leases[0].progress.clone()).collect();
        assert_eq!(sent, [Some(Json::from(2)), Some(Json::from(2)), None]);
    }
}

fn overloaded() -> Says {
    Says::Now(Err(CallError::Refused(Refusal::heard(Code::Overloaded, "too much at once", ""))))
}

#[tokio::test(start_paused = true)]
async fn what_is_dropped_is_extended_no_more() {
    let fake = Fake::new(|call, _| well(call));
    let keeper = on(&fake);
    let one = fresh(&keeper, 1).await;
    let _two = fresh(&keeper, 2).await;
    drop(one);
    fake.until(is_extend, 1).await;
    let leases: Vec<_> = fake.extends()[0].1.leases.iter().map(|item| item.lease.clone()).collect();
    assert_eq!(leases, ["l2"]);
}

#[tokio::test(start_paused = true)]
async fn no_extend_call_has_more_items_than_one_may() {
    let fake = Fake::new(|call, _| well(call));
    let keeper = on(&fake);
    let mut held = Vec::new();
    for n in 0..ITEMS_MAX + 500 {
        held.push(fresh(&keeper, n).await);
    }
    fake.until(is_extend, 2).await;
    let sizes: Vec<_> = fake.extends().iter().map(|(_, call)| call.leases.len()).collect();
    assert_eq!(sizes, [ITEMS_MAX, 500]);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_nobody_waits_for_is_tried_again() {
    let fake = Fake::new(|call, before| match call {
        Request::Settle(_) if before < 2 => unavailable(),
        Request::Settle(_) if before < 3 => overloaded(),
        call => well(call),
    });
    let keeper = on(&fake);
    keeper.release("l1".to_owned());
    // The release is sent even though no one holds the keeper any more.
    drop(keeper);
    fake.until(is_settle, 4).await;
}

#[tokio::test]
async fn heartbeats_go_on_while_the_holders_thread_is_blocked() {
    let fake = Fake::new(|call, _| well(call));
    let keeper = Keeper::start(fake.clone(), Namespace::main()).unwrap();
    let ttl = Span::from_s(1);
    let held = keeper.hold(&lease(1, None), ttl, keeper.clock().now()).await.unwrap();
    // This blocks the only thread of this runtime, as a handler may, for longer than the ttl.
    assert!(fake.until_blocking(is_extend, 6));
    assert_eq!(held.stop(), None);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_lost_while_the_machine_is_suspended() {
    let (fake, slept) = (Fake::new(|call, _| well(call)), Slept::default());
    let run = that_sleeps(&fake, &slept);
    // Nothing runs this one: its holder is on time without it.
    let clock = LeaseClock::of_tokio(&slept);
    let asleep = Keeper::unstarted(fake.clone(), Namespace::main(), clock);
    let all = [fresh(&run, 1).await, fresh(&asleep, 2).await];
    sleep(s(3)).await;
    let [one, two] = &all;
    let waiting = async { tokio::join!(one.stopped(), two.stopped()) };
    tokio::pin!(waiting);
    assert!(timeout(s(1), &mut waiting).await.is_err(), "they are held");

    slept.suspend(2 * TTL.std());
    for held in &all {
        assert_eq!(held.stop(), Some(Stop::Lost));
        assert!(held.hard_limit() < Instant::now().into_std());
    }
    let stops = timeout(LOOK, waiting).await;
    assert_eq!(stops, Ok((Stop::Lost, Stop::Lost)), "half a second after it goes on");
    sleep(s(60)).await;
    assert!(fake.extends().is_empty(), "they may be another's by now");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_outlives_a_suspension_is_extended_at_once_and_still_ends_at_its_deadline() {
    // As if the engine's clock had not gone on: it brings the deadline no nearer.
    let fake = told(|extend| {
        let Reply::Extend(answer) = extended(extend, Moment::ZERO.plus(TTL)) else {
            unreachable!()
        };
        answer
    });
    let slept = Slept::default();
    let keeper = that_sleeps(&fake, &slept);
    let mut view = lease(1, None);
    view.deadline = Some(view.granted_at.plus(Span::from_s(20)));
    let held = keeper.hold(&view, TTL, keeper.clock().now()).await.unwrap();
    let begun = Instant::now();
    sleep(s(1)).await;
    let stop_by = held.stop_by();
    slept.suspend(s(15));
    assert_eq!(stop_by - held.stop_by(), s(15));
    assert_eq!(held.stop(), None);
    fake.until(is_extend, 1).await;
    assert!(begun.elapsed() <= s(1) + LOOK);
    assert_eq!(held.stopped().await, Stop::Deadline);
    assert_eq!(begun.elapsed(), s(20 - 15));
}

#[tokio::test(start_paused = true)]
async fn a_grant_whose_answer_slept_is_extended_before_its_work_starts() {
    for (suspended, extends) in [(s(0), 0), (s(60), 1)] {
        let (fake, slept) = (Fake::new(|call, _| well(call)), Slept::default());
        let keeper = that_sleeps(&fake, &slept);
        let asked = keeper.clock().now();
        slept.suspend(suspended);
        let held = keeper.hold(&lease(1, None), TTL, asked).await.unwrap();
        assert_eq!(fake.extends().len(), extends);
        assert_eq!(held.stop(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn an_extend_that_was_sent_before_a_suspension_makes_nothing_sure() {
    let slept = Slept::default();
    let suspends = slept.clone();
    let fake = Fake::new(move |call, before| {
        if is_extend(call) && before == 0 {
            suspends.suspend(s(60));
        }
        well(call)
    });
    let keeper = that_sleeps(&fake, &slept);
    let asked = keeper.clock().now();
    sleep(s(10)).await;
    let lost = keeper.hold(&lease(1, None), TTL, asked).await.err();
    assert_eq!(lost, Some(Stop::Lost));
}
