//! The wall clock of a real redis-server leaps ahead while a holder works on by its own clock, which is that of
//! the machine. A client stops its work at 0.8 of the ttl: before that nobody else may be granted the same.
#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::lease::LeaseView;
use tenure_core::time::Span;
use tenure_engine_redis::RedisEngine;
use tenure_testkit::ShiftedClock;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use crate::calls::*;

const LOCK: &str = "lock:deploy";
/// What a holder that is cut off may cost beyond its ttl: the leap is noticed, and it has one ttl from then.
const NOTICED: Duration = Duration::from_secs(5);

fn start() -> (ShiftedClock, RedisServer) {
    let clock = ShiftedClock::new();
    let server = RedisServer::start_in(&clock.envs(), Aof::Off, &[]);
    (clock, server)
}

/// Waits for the lock, in slices.
async fn waits(engine: &RedisEngine, ttl: Span) -> LeaseView {
    for slice in 0.. {
        let mut ask = locks(LOCK, &format!("waiter-{slice}"), ttl);
        ask.wait = Span::from_ms(500);
        if let Some(lease) = take(engine, ask).await {
            return lease;
        }
    }
    unreachable!("it waits for ever")
}

/// Who ticks after the leap.
#[derive(Clone, Copy, Debug)]
enum Ticks {
    /// The process that granted the lease.
    Same,
    /// Another process that was there before the leap, too.
    Both,
    /// A process that knows nothing of before the leap; all others are gone.
    Newcomer,
}

async fn next_grant(ttl: Span, leap: Span, ticks: Ticks) {
    let (clock, server) = start();
    let (first, second) = (open(&server.url()), open(&server.url()));
    if let Ticks::Both = ticks {
        let warm = take(&second, locks("lock:warm", "warm", ttl)).await.expect("it is free");
        assert!(settle(&second, &warm).await.ok);
    }
    // Something lives all the while, so that somebody ticks: the leap falls between two ticks.
    let sent = Instant::now();
    take(&first, locks(LOCK, "holder", ttl)).await.expect("it is free");
    let waiter = match ticks {
        Ticks::Same => first.clone(),
        _ => second.clone(),
    };
    let waiting: Option<tokio::task::JoinHandle<(LeaseView, Duration)>> = match ticks {
        Ticks::Newcomer => None,
        _ => Some(tokio::spawn(async move { (waits(&waiter, ttl).await, sent.elapsed()) })),
    };
    // Time is what passes here: the leap comes between the first ticks and the holder's stop.
    tokio::time::sleep_until((sent + Duration::from_millis(700)).into()).await;
    let (lease, after) = match waiting {
        Some(waiting) => {
            clock.leap(leap);
            waiting.await.expect("it ends")
        }
        None => {
            drop((first, second));
            clock.leap(leap);
            let new: Arc<RedisEngine> = open(&server.url());
            (waits(&new, ttl).await, sent.elapsed())
        }
    };
    assert!(lease.lease.is_some());
    let works = ttl.std().mul_f64(0.8);
    assert!(
        after >= works,
        "{ticks:?}: ttl {ttl}, leap {leap}: granted after {after:?}, its holder works until {works:?}"
    );
    let most = 2 * ttl.std() + NOTICED;
    assert!(after < most, "{ticks:?}: ttl {ttl}, leap {leap}: granted only after {after:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_clock_leaps_ahead_makes_no_second_holder() {
    if !wanted() {
        return;
    }
    let mut all = Vec::new();
    for ticks in [Ticks::Same, Ticks::Both, Ticks::Newcomer] {
        for (ttl, leap) in [(5_000, 1_900), (2_000, 2_600), (2_000, 1_500), (5_000, 60_000)] {
            all.push(tokio::spawn(next_grant(Span::from_ms(ttl), Span::from_ms(leap), ticks)));
        }
    }
    let mut failed = Vec::new();
    for one in all {
        if let Err(why) = one.await {
            let why = why.into_panic();
            failed.push(why.downcast_ref::<String>().cloned().unwrap_or_default());
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
