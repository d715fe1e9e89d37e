//! A lock against a scripted engine, on a clock that a test moves.

use std::sync::{Arc, Mutex};

use tenure_core::lease::{Ending, Extended};
use tenure_core::requests::{Reply, Request, Settled};
use tenure_core::sentences::AccessRefusal;
use tenure_core::time::Moment;
use tokio::sync::Notify;

use super::*;
use tenure_testkit::fake::{Fake, Says, extended, is_extend, is_lease, is_settle, lease, settled};
use tenure_testkit::fake::{unavailable, unknown, well};

fn lock(fake: &Arc<Fake>) -> Lock {
    Client::on_this_runtime(fake.clone()).lock("deploy").unwrap()
}

fn got(n: usize) -> Says {
    Says::Now(Ok(Reply::Lease(Leased { leases: vec![lease(n, None)], ..Leased::default() })))
}

fn draining() -> Says {
    Says::Now(Err(CallError::Refused(tenure_core::sentences::StoreRefusal::Draining.into())))
}

#[tokio::test(start_paused = true)]
async fn each_slice_has_an_id_of_its_own_and_the_first_is_the_place() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 3 => got(1),
        call => well(call),
    });
    let guard = lock(&fake).acquire().await.unwrap();
    assert_eq!(guard.fence().get(), 1);
    let leases = fake.leases();
    let first = leases[0].1.request_id.clone();
    assert_eq!(leases[0].1.place, None);
    for (n, (at, lease)) in leases.iter().enumerate() {
        assert_eq!(lease.wait, Span::from_s(5));
        assert_eq!((*at - leases[0].0).as_secs(), 5 * n as u64);
        if n > 0 {
            assert_eq!(lease.place, first);
            assert_ne!(lease.request_id, first);
        }
    }
    assert_eq!(leases.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_observer_hears_after_a_second_what_is_waited_for() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 2 => got(1),
        call => well(call),
    });
    let (begun, heard) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
    let into = heard.clone();
    let lock = lock(&fake).observe(move |event| {
        assert!(matches!(event, LockEvent::Waiting(_)));
        into.lock().unwrap().push(begun.elapsed().as_secs());
    });
    let _guard = lock.acquire().await.unwrap();
    assert_eq!(*heard.lock().unwrap(), [1, 6]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_forced_is_not_given_back() {
    for (answer, ended) in [(Says::Now(Ok(Reply::ForceLease(()))), true), (unavailable(), false)] {
        let answer = Mutex::new(Some(answer));
        let fake = Fake::new(move |call, _| match call {
            Request::Lease(_) => got(1),
            Request::ForceLease(_) => answer.lock().unwrap().take().unwrap_or_else(unavailable),
            call => well(call),
        });
        let guard = lock(&fake).acquire().await.unwrap();
        assert_eq!(guard.force().await.is_ok(), ended);
        sleep(Duration::from_secs(60)).await;
        assert!(fake.settles().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_it_is_over() {
    for (wait, calls) in [(0, 1), (4, 1), (5, 1), (12, 3)] {
        let fake = Fake::new(|call, _| well(call));
        let begun = Instant::now();
        let got = lock(&fake).acquire_within(Duration::from_secs(wait)).await;
        assert!(matches!(got, Err(LockError::Busy(_))));
        assert_eq!((begun.elapsed().as_secs(), fake.leases().len()), (wait, calls));
    }
    let fake = Fake::new(|call, _| well(call));
    assert!(matches!(lock(&fake).try_acquire().await, Err(LockError::Busy(_))));
    assert_eq!(fake.leases()[0].1.wait, Span::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_guard_gives_back_what_it_held() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => got(1),
        call => well(call),
    });
    let guard = lock(&fake).acquire().await.unwrap();
    drop(guard);
    fake.until(is_settle, 1).await;
    assert_eq!(fake.settles()[0][0].ending, Ending::Released);
}

#[tokio::test(start_paused = true)]
async fn a_release_says_whether_it_was_still_held() {
    for held in [true, false] {
        let fake = Fake::new(move |call, _| match call {
            Request::Lease(_) => got(1),
            Request::Settle(settle) => {
                let Reply::Settle(Settled { mut settled, .. }) = settled(settle) else {
                    unreachable!()
                };
                settled[0].ok = held;
                settled[0].code = (!held).then_some(Code::LeaseLost);
                Says::Now(Ok(Reply::Settle(Settled { settled, lease: None })))
            }
            call => well(call),
        });
        let released = lock(&fake).acquire().await.unwrap().release().await;
        let code = released.err().and_then(|error| error.code());
        assert_eq!(code, (!held).then_some(Code::LeaseLost));
        assert_eq!(fake.settles().len(), 1, "the drop has nothing left to do");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_outlives_an_engine_that_is_away_for_a_while() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 1 => draining(),
        Request::Lease(_) if (2..10).contains(&before) => unavailable(),
        Request::Lease(_) if before == 10 => got(1),
        call => well(call),
    });
    let guard = lock(&fake).acquire().await.unwrap();
    guard.release().await.unwrap();

    // An engine that was never there, or does not come back, is reported.
    let fake = Fake::new(|_, _| unavailable());
    assert!(matches!(lock(&fake).acquire().await, Err(LockError::Call(_))));
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before > 0 => unavailable(),
        call => well(call),
    });
    let begun = Instant::now();
    assert!(matches!(lock(&fake).acquire().await, Err(LockError::Call(_))));
    assert!(begun.elapsed() >= AWAY_MAX);
}

#[tokio::test(start_paused = true)]
async fn a_wait_outlives_the_bounds_of_its_token_and_no_full_line() {
    let bounded = || {
        let (caller, calls) = ("crawler".to_owned(), "1/40s".to_owned());
        let no = AccessRefusal::TooManyCalls { caller, calls, wait_s: 40 };
        Says::Now(Err(CallError::Refused(no.into())))
    };
    let second = Duration::from_secs(1);
    for (longest, refusals, took_s, is_got) in [
        (None, 4, 160, true),
        (Some(90), 2, 80, true),
        (Some(30), 2, 30, false),
        (Some(0), 1, 0, false),
    ] {
        let fake = Fake::new(move |call, before| match call {
            Request::Lease(_) if before < refusals => bounded(),
            Request::Lease(_) => got(1),
            call => well(call),
        });
        let begun = Instant::now();
        let off = std::future::pending();
        let ended = lock(&fake).acquire_unless(longest.map(|s: u32| s * second), off).await;
        assert_eq!((begun.elapsed().as_secs(), ended.is_ok()), (took_s, is_got), "{ended:?}");
        let is_refused =
            |no: LockError| matches!(no, LockError::Call(no) if no.code() == Some(Code::LineFull));
        assert!(ended.err().is_none_or(is_refused));
    }
    // A caller that is cancelled does not wait for its token.
    let fake = Fake::new(move |call, _| match call {
        Request::Lease(_) => bounded(),
        call => well(call),
    });
    let begun = Instant::now();
    let ended = lock(&fake).acquire_unless(None, sleep(second)).await;
    assert!(matches!(ended, Err(LockError::CalledOff)), "{ended:?}");
    assert_eq!(begun.elapsed(), second);

    let fake = Fake::new(|_, _| {
        Says::Now(Err(CallError::Refused(LeaseRefusal::LineFull { most: 10_000 }.into())))
    });
    assert!(matches!(lock(&fake).acquire().await, Err(LockError::Call(_))));
    assert_eq!(fake.leases().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_grants_nothing_is_not_called_in_a_tight_loop() {
    let fake = Fake::new(|call, _| match call {
        Request::Lease(_) => Says::Now(Ok(Reply::Lease(Leased::default()))),
        call => well(call),
    });
    let _ = lock(&fake).acquire_within(Duration::from_secs(20)).await;
    assert!(fake.leases().len() < 40, "{}", fake.leases().len());
}

#[tokio::test(start_paused = true)]
async fn a_wait_with_an_end_lasts_as_long_as_it_was_asked_for() {
    // Longer than a wait without an end would allow.
    let begun = Instant::now();
    let fake = Fake::new(move |call, before| match call {
        Request::Lease(_) if before > 0 && begun.elapsed() < 2 * AWAY_MAX => unavailable(),
        Request::Lease(_) if before > 0 => got(1),
        call => well(call),
    });
    drop(lock(&fake).acquire_within(3 * AWAY_MAX).await.unwrap());

    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before > 0 => unavailable(),
        call => well(call),
    });
    let begun = Instant::now();
    let ended = lock(&fake).acquire_within(Duration::from_secs(20)).await;
    assert!(matches!(ended, Err(LockError::Call(_))), "{ended:?}");
    assert_eq!(begun.elapsed().as_secs(), 20);
    assert!(fake.leases().len() < 40, "it is not asked in a tight circle at the end");
}

#[tokio::test(start_paused = true)]
async fn a_grant_with_a_lost_answer_is_found_and_counts_from_its_call() {
    let begun = Instant::now();
    let fake = Fake::new(move |call, before| match call {
        // Longer than one call is retried by itself.
        Request::Lease(_) if before > 0 && begun.elapsed().as_secs() < 80 => unknown(),
        Request::Lease(_) if before > 0 => got(1),
        call => well(call),
    });
    let guard = lock(&fake).ttl(Span::from_s(600)).acquire().await.unwrap();
    drop(guard);
    let leases = fake.leases();
    assert!(leases[1..].iter().all(|(_, one)| one.request_id == leases[1].1.request_id));
    assert!(leases[1].1.request_id != leases[0].1.request_id);
    assert!(fake.extends().is_empty(), "at once: less than a fifth of the ttl has gone");

    let begun = Instant::now();
    let fake = Fake::new(move |call, before| match call {
        Request::Lease(_) if before > 0 && begun.elapsed().as_secs() < 80 => unknown(),
        Request::Lease(_) if before > 0 => got(1),
        call => well(call),
    });
    let _guard = lock(&fake).acquire().await.unwrap();
    assert_eq!(fake.extends().len(), 1, "it is known to be held before anything is done under it");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_taken_and_nothing_is_held() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 1 => {
            let token = LeaseView { lease: None, ..lease(1, None) };
            Says::Now(Ok(Reply::Lease(Leased { leases: vec![token], ..Leased::default() })))
        }
        call => well(call),
    });
    let guard = lock(&fake).ttl(Span::ZERO).acquire().await.unwrap();
    assert_eq!((guard.fence().get(), guard.held().is_none()), (1, true));
    assert_eq!(fake.leases()[0].1.wait, Span::from_s(5));
    guard.release().await.unwrap();
    assert!(fake.settles().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_called_off_holds_nothing() {
    // At that time either the waiting call is granted, or the one that cancels it.
    for late in [false, true] {
        let fake = Fake::new(move |call, before| match call {
            Request::Lease(_) if before == 0 && late => {
                let Says::Now(answer) = got(1) else { unreachable!() };
                Says::After(Duration::from_secs(1), answer)
            }
            Request::Lease(_) if before == 1 && !late => got(1),
            call => well(call),
        });
        let off = Notify::new();
        let lock = lock(&fake);
        let calling_off = async {
            fake.until(is_lease, 1).await;
            off.notify_one();
        };
        let (ended, ()) = tokio::join!(lock.acquire_unless(None, off.notified()), calling_off);
        assert!(matches!(ended, Err(LockError::CalledOff)), "{ended:?}");
        assert_eq!(fake.settles()[0][0].ending, Ending::Released);
        let leases = fake.leases();
        assert_eq!(
            (leases[1].1.wait, &leases[1].1.request_id),
            (Span::ZERO, &leases[0].1.request_id)
        );
    }
}

/// The answer of an engine that has taken the lease back.
fn lost() -> Says {
    let lost = vec!["l1".to_owned()];
    Says::Now(Ok(Reply::Extend(Extended { lost, ..Extended::default() })))
}

#[tokio::test(start_paused = true)]
async fn what_was_lost_is_not_given_back() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => got(1),
        Request::Extend(_) => lost(),
        call => well(call),
    });
    let guard = lock(&fake).acquire().await.unwrap();
    assert_eq!(guard.stopped().await, Stop::Lost);
    drop(guard);
    sleep(Duration::from_secs(60)).await;
    assert!(fake.settles().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_grant_too_late_to_be_held_is_released_and_awaited_again() {
    let late = |call: &Request, before: usize| match call {
        Request::Lease(_) if before == 0 => {
            let Says::Now(answer) = got(1) else { unreachable!() };
            Says::After(Duration::from_secs(7), answer)
        }
        Request::Lease(_) => got(2),
        Request::Extend(extend) if extend.leases[0].lease == "l1" => lost(),
        Request::Extend(extend) => Says::Now(Ok(extended(extend, Moment::MAX))),
        call => well(call),
    };
    let fake = Fake::new(late);
    let guard = lock(&fake).acquire().await.unwrap();
    assert_eq!((guard.fence().get(), fake.leases()[1].1.place.is_none()), (2, true));
    assert_eq!(fake.settles()[0][0].lease, "l1");
    fake.until(is_extend, 1).await;

    let fake = Fake::new(late);
    let ended = lock(&fake).try_acquire().await;
    assert!(matches!(ended, Err(LockError::Lost)), "{ended:?}");
    assert_eq!(fake.settles().len(), 1, "before the call returns, and once");
}

#[tokio::test(start_paused = true)]
async fn a_release_is_tried_again_while_the_engine_is_away() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => got(1),
        Request::Settle(_) if before < 4 => unavailable(),
        call => well(call),
    });
    lock(&fake).acquire().await.unwrap().release().await.unwrap();
    assert_eq!(fake.settles().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_was_granted_before_a_suspension_is_asked_for_again() {
    let slept = crate::lease_clock::Slept::default();
    let suspends = slept.clone();
    let fake = Fake::new(move |call, before| match call {
        Request::Lease(_) if before == 0 => {
            suspends.suspend(Duration::from_secs(60));
            got(1)
        }
        Request::Lease(_) => got(2),
        Request::Extend(extend) => Says::Now(Ok(Reply::Extend(Extended {
            lost: extend.leases.iter().map(|item| item.lease.clone()).collect(),
            ..Extended::default()
        }))),
        call => well(call),
    });
    let client = Client::that_sleeps(fake.clone(), &slept);
    let guard = client.lock("deploy").unwrap().acquire().await.unwrap();
    assert_eq!(guard.fence(), Fence::new(2));
    slept.suspend(Duration::from_secs(60));
    let stopped = tokio::time::timeout(crate::lease_clock::LOOK, guard.stopped()).await;
    assert_eq!(stopped, Ok(Stop::Lost));
}
