//! Drives pushes: a number of calls in flight, or a number per second.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::{Call, Failed, Payload, now_us, report};

/// Pushes `jobs` jobs, `size` per call, `flight` calls at once, and reports how long it took.
pub async fn in_bulk<F>(
    jobs: u64,
    size: u64,
    flight: usize,
    push: impl Fn(Range<u64>) -> F,
) -> Result<(), Failed>
where
    F: Future<Output = Result<(), Failed>> + Send + 'static,
{
    let begin = now_us();
    let room = Arc::new(Semaphore::new(flight));
    let mut calls = JoinSet::new();
    let mut n = 0;
    while n < jobs {
        let place = room.clone().acquire_owned().await?;
        let until = jobs.min(n + size);
        let call = push(n..until);
        n = until;
        calls.spawn(async move {
            let done = call.await;
            drop(place);
            done
        });
        while let Some(call) = calls.try_join_next() {
            call??;
        }
    }
    while let Some(call) = calls.join_next().await {
        call??;
    }
    let mut figures = Map::new();
    figures.insert("jobs".to_owned(), json!(jobs));
    figures.insert("seconds".to_owned(), json!((now_us() - begin) as f64 / 1e6));
    report(figures);
    Ok(())
}

/// Pushes each job by a call of its own, `flight` calls at once, and reports how long it took.
pub async fn one_by_one<F>(call: &Call, push: impl Fn(Payload) -> F) -> Result<(), Failed>
where
    F: Future<Output = Result<(), Failed>> + Send + 'static,
{
    in_bulk(call.jobs, 1, call.flight, |n| push(Payload::new(n.start, now_us(), "free"))).await
}

/// Pushes one by one, `rate` per second; a push does not wait for the one before.
pub async fn steadily<F>(call: &Call, push: impl Fn(Payload) -> F) -> Result<(), Failed>
where
    F: Future<Output = Result<(), Failed>> + Send + 'static,
{
    let mut beat = tokio::time::interval(Duration::from_micros(1_000_000 / call.rate.max(1)));
    let mut calls = JoinSet::new();
    for n in 0..call.jobs {
        beat.tick().await;
        calls.spawn(push(Payload::new(n, now_us(), "free")));
    }
    while let Some(call) = calls.join_next().await {
        call??;
    }
    report(Map::new());
    Ok(())
}
