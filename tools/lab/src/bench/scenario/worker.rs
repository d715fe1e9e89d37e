//! The rate of the library's worker, relative to the rate of its engine.
//!
//! The engine's own rate is that of a loop by hand with two callers, so that one settles while the other leases: it has
//! no heartbeats, no handlers and no care for panics.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tenure::{Client, Job, Worker};
use tenure_console::exit::Failure;
use tenure_core::names::Namespace;

use super::super::load::{Jobs, drain, fill, queue};
use super::super::target::{Place, Target};
use super::rate::BATCH;
use super::{Figures, Setup, median};

/// Jobs of one drain.
const JOBS: u32 = 20_000;
/// Jobs that the worker runs at once.
const SLOTS: usize = 100;
/// Callers of the loop by hand.
const HANDS: usize = 2;
/// Pairs, one after the other.
const PAIRS: usize = 5;

/// Drains by hand and by a worker whose handlers do nothing, in turn, on one store.
pub async fn measure(setup: &Setup<'_>, place: Place) -> Result<Figures, Failure> {
    let target = setup.open(place).await?;
    let (mut by_hand, mut by_worker, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    // The first pair warms up files, maps and connections.
    for pair in 0..=PAIRS {
        fill(target.engine(), &Jobs::Free, JOBS).await?;
        let hand = drain(target.engine(), HANDS, BATCH).await?;
        complete(hand.jobs)?;
        fill(target.engine(), &Jobs::Free, JOBS).await?;
        let worker = work(&target).await?;
        if pair > 0 {
            by_hand.push(hand.per_second());
            by_worker.push(worker);
            ratios.push(worker / hand.per_second());
        }
    }
    Ok(vec![
        ("ratio", median(ratios)),
        ("jobs_per_s_by_hand", median(by_hand)),
        ("jobs_per_s_by_worker", median(by_worker)),
    ])
}

/// Jobs per second, until the last handler has run. Its settle is under way then, with a call that waits for more jobs,
/// so the answer to that says nothing about the rate.
async fn work(target: &Target) -> Result<f64, Failure> {
    let client = Client::new(target.engine().clone(), Namespace::main());
    let (ran, last) = (Arc::new(AtomicU32::new(0)), Arc::new(OnceLock::new()));
    let worker = Worker::new(client, vec![queue()?]).concurrency(SLOTS).until_empty();
    let begun = Instant::now();
    let (count, took) = (ran.clone(), last.clone());
    let handler = move |_: Job| {
        if count.fetch_add(1, Ordering::Relaxed) + 1 == JOBS {
            let _ = took.set(begun.elapsed());
        }
        async { Ok::<_, Infallible>(()) }
    };
    let worked = worker.run(handler).await?;
    complete(worked.jobs)?;
    complete(u64::from(ran.load(Ordering::Relaxed)))?;
    let took = last.get().copied().unwrap_or_else(|| begun.elapsed());
    Ok(f64::from(JOBS) / took.as_secs_f64())
}

fn complete(jobs: u64) -> Result<(), Failure> {
    if jobs == u64::from(JOBS) {
        Ok(())
    } else {
        Err(Failure::bug(format!("{jobs} of {JOBS} jobs were run")))
    }
}
