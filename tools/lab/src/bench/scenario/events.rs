//! The cost of keeping events.

use std::time::Duration;

use tenure_console::exit::Failure;
use tenure_core::bounds::EVENTS_BYTES_DEFAULT;

use super::super::load::{Jobs, drain, fill_in};
use super::super::target::Target;
use super::rate::BATCH;
use super::{Figures, Setup, median};

/// Jobs of one measurement, per second that a figure may take.
const JOBS_A_SECOND: u32 = 20_000;
/// Number of callers that push, and then drain, at the same time.
const CALLERS: usize = 4;
/// Pairs, one after the other: the difference is small, and a disk is busy at times.
const PAIRS: usize = 15;

/// Bulk push, and then a drain of the pushed jobs, with events and without, in turn.
pub async fn measure(setup: &Setup<'_>) -> Result<Figures, Failure> {
    let with = Target::keeping_events(setup.under, EVENTS_BYTES_DEFAULT).await?;
    let without = Target::keeping_events(setup.under, 0).await?;
    for target in [&with, &without] {
        push_and_drain(target, Duration::from_secs(1)).await?;
    }
    let [mut push, mut drains, mut pushed, mut drained] = [const { Vec::new() }; 4];
    for _ in 0..PAIRS {
        let kept = push_and_drain(&with, setup.time).await?;
        let none = push_and_drain(&without, setup.time).await?;
        push.push(kept.0 / none.0);
        drains.push(kept.1 / none.1);
        pushed.push(kept.0);
        drained.push(kept.1);
    }
    Ok(vec![
        ("push_ratio", median(push)),
        ("drain_ratio", median(drains)),
        ("pushed_per_s", median(pushed)),
        ("drained_per_s", median(drained)),
    ])
}

/// Pushed and drained jobs per second.
async fn push_and_drain(target: &Target, time: Duration) -> Result<(f64, f64), Failure> {
    let jobs = u32::try_from(time.as_secs()).unwrap_or(u32::MAX).saturating_mul(JOBS_A_SECOND);
    let pushed = fill_in(target.engine(), &Jobs::Free, jobs, CALLERS, BATCH).await?;
    let drained = drain(target.engine(), CALLERS, BATCH).await?;
    if drained.jobs == u64::from(jobs) {
        Ok((pushed.per_second(), drained.per_second()))
    } else {
        Err(Failure::bug(format!("{} of {jobs} jobs were granted", drained.jobs)))
    }
}
