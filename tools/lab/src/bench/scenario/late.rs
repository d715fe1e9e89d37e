//! Measures the delay of jobs that are there, or due.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tenure_console::exit::Failure;
use tenure_core::job::When;
use tenure_core::lease::{Ending, SettleItem, Worker};
use tenure_core::names::{Namespace, RequestId, WorkerId};
use tenure_core::requests::{Lease, Push, PushAnswer, Settle};
use tenure_core::time::{Moment, Span};
use tenure_engine_api::{Clock, Engine, EngineExt, SystemClock};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::super::load::{Jobs, LoadCaller, histogram, queue, us};
use super::super::target::Place;
use super::{Figures, Setup};

/// Pushes to an idle long poll.
const POLLS: usize = 300;
/// How long a poll is idle before a job comes.
const IDLE: Duration = Duration::from_millis(10);
/// Number of delayed jobs.
const DELAYED: u64 = 2_000;
/// The jobs are due over this long.
const OVER: Span = Span::from_s(10);
/// The first is due at least this long after the last was pushed.
const AHEAD: Span = Span::from_s(2);

/// From the sending of a push to the answer of a long poll that was idle.
pub async fn long_poll(setup: &Setup<'_>) -> Result<Figures, Failure> {
    let mut figures = Figures::new();
    for (place, p50, p99) in [
        (Place::InProcess, "in_process_p50_ms", "in_process_p99_ms"),
        (Place::Http, "http_p50_ms", "http_p99_ms"),
    ] {
        let target = setup.open(place).await?;
        let waits_us = polls(target.engine()).await?;
        figures.push((p50, waits_us.value_at_quantile(0.5) as f64 / 1_000.0));
        figures.push((p99, waits_us.value_at_quantile(0.99) as f64 / 1_000.0));
    }
    Ok(figures)
}

async fn polls(engine: &Arc<dyn Engine>) -> Result<Histogram<u64>, Failure> {
    let mut waits_us = histogram()?;
    let mut pusher = LoadCaller::new(engine.clone())?;
    for n in 0..POLLS {
        let poll = {
            let (engine, lease) = (engine.clone(), ask(n, 1)?);
            tokio::spawn(async move {
                let leased = engine.run(&Namespace::main(), lease).await;
                (leased, Instant::now())
            })
        };
        sleep(IDLE).await;
        let begun = Instant::now();
        pusher.push(&Jobs::Free, 1).await?;
        let (leased, answered) = poll.await.map_err(Failure::bug)?;
        waits_us.saturating_record(us(answered - begun));
        let leases: Vec<String> =
            leased?.leases.into_iter().filter_map(|lease| lease.lease).collect();
        if leases.len() != 1 {
            return Err(Failure::bug("a long poll did not get the job that was pushed"));
        }
        pusher.settle(&leases).await?;
    }
    Ok(waits_us)
}

fn ask(n: usize, max: usize) -> Result<Lease, Failure> {
    let name = format!("poll-{}-{n}", std::process::id());
    let mut lease = Lease::jobs(vec![queue()?], max);
    lease.wait = Span::from_s(30);
    lease.worker = Worker { id: Some(WorkerId::parse("poller")?), ..Worker::default() };
    lease.request_id = Some(RequestId::parse(&name)?);
    Ok(lease)
}

/// The lateness of delayed jobs at one worker that polls over HTTP.
pub async fn delayed(setup: &Setup<'_>) -> Result<Figures, Failure> {
    let target = setup.open(Place::Http).await?;
    let engine = target.engine();
    let mut pusher = LoadCaller::new(engine.clone())?;
    let first = SystemClock.now().plus(AHEAD);
    let due = |n: u64| first.plus(Span::from_us(OVER.us() * n / DELAYED));
    let mut jobs = Vec::new();
    for n in 0..DELAYED {
        let mut job = pusher.job(&Jobs::Free)?;
        job.when = When::At(due(n));
        jobs.push(job);
    }
    while !jobs.is_empty() {
        let rest = jobs.split_off(jobs.len().min(500));
        let push = Push { jobs, answer: PushAnswer::Ids };
        engine.run(&Namespace::main(), push).await?;
        jobs = rest;
    }
    let late_us = take_all(engine, DELAYED).await?;
    Ok(lateness(&late_us))
}

/// The lateness of jobs, as figures.
pub fn lateness(late_us: &Histogram<u64>) -> Figures {
    let ms = |us: u64| us as f64 / 1_000.0;
    vec![
        ("lateness_p99_ms", ms(late_us.value_at_quantile(0.99))),
        ("lateness_p50_ms", ms(late_us.value_at_quantile(0.5))),
        ("lateness_max_ms", ms(late_us.max())),
    ]
}

/// Takes jobs as they become due, and settles them beside the next poll.
pub async fn take_all(engine: &Arc<dyn Engine>, count: u64) -> Result<Histogram<u64>, Failure> {
    let mut late_us = histogram()?;
    let mut settling = JoinSet::new();
    let mut taken = 0;
    for n in 0.. {
        if taken >= count {
            break;
        }
        let leased = engine.run(&Namespace::main(), ask(n, 100)?).await?;
        let now: Moment = SystemClock.now();
        let mut settle = Vec::new();
        for lease in leased.leases {
            let due = lease.job.map(|job| job.run_at).unwrap_or_default();
            late_us.saturating_record(now.since(due).us());
            taken += 1;
            settle.extend(
                lease.lease.map(|lease| SettleItem::new(lease, Ending::Succeeded { result: None })),
            );
        }
        let engine = engine.clone();
        settling.spawn(async move { engine.run(&Namespace::main(), Settle::of(settle)).await });
    }
    while let Some(done) = settling.join_next().await {
        done.map_err(Failure::bug)??;
    }
    Ok(late_us)
}
