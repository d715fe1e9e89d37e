//! A lock against an engine that says what a test wants, on a clock that a test turns.

use std::sync::Arc;

use tenure_core::lease::Ending;
use tenure_core::requests::{Reply, Request, Settled};

use super::*;
use crate::fake::{Fake, Says, is_settle, lease, settled, unavailable, well};

fn lock(fake: &Arc<Fake>) -> Lock {
    Client::on_this_runtime(fake.clone()).lock("deploy").unwrap()
}

fn got(n: usize) -> Says {
    Says::Now(Ok(Reply::Lease(Leased { leases: vec![lease(n, None)], ..Leased::default() })))
}

fn draining() -> Says {
    Says::Now(Err(CallError::Refused(Refusal::new(Code::Draining, "draining", ""))))
}

#[tokio::test(start_paused = true)]
async fn each_slice_has_an_id_of_its_own_and_the_first_is_the_place() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 3 => got(1),
        call => well(call),
    });
    let guard = lock(&fake).acquire().await.unwrap();
    assert_eq!(guard.fence(), 1);
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
                let Reply::Settle(Settled { mut settled }) = settled(settle) else {
                    unreachable!()
                };
                settled[0].ok = held;
                settled[0].code = (!held).then_some(Code::LeaseLost);
                Says::Now(Ok(Reply::Settle(Settled { settled })))
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

    // One that never was there, or does not come back, is told.
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
async fn an_engine_that_answers_nothing_at_once_is_not_asked_in_a_tight_circle() {
    let fake = Fake::new(|call, _| match call {
        Request::Lease(_) => Says::Now(Ok(Reply::Lease(Leased::default()))),
        call => well(call),
    });
    let _ = lock(&fake).acquire_within(Duration::from_secs(20)).await;
    assert!(fake.leases().len() < 40, "{}", fake.leases().len());
}
