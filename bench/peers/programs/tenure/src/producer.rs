//! Pushes.

use std::sync::Arc;
use std::time::Duration;

use peers_gauge::{Call, Failed, Payload, Role, now_us, report};
use serde_json::{Map, json};
use tenure::core::requests::PutLimit;
use tenure::core::settings::LimitSettings;
use tenure::{Client, Json, LimitName, Need, NewJob, Span, When};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::queue;

/// Jobs of a call; the most that one takes.
const CALL: usize = 1_000;
/// Bulk calls in flight.
const FLIGHT: usize = 4;

fn job(payload: &Payload) -> Result<NewJob, Failed> {
    Ok(NewJob { payload: Json::of(payload), ..NewJob::new(queue()?) })
}

/// Pushes these, 1,000 a call; how long it took in seconds.
async fn bulk(
    client: &Client,
    jobs: u64,
    make: impl Fn(u64) -> Result<NewJob, Failed>,
) -> Result<f64, Failed> {
    let begin = now_us();
    let room = Arc::new(Semaphore::new(FLIGHT));
    let mut calls = JoinSet::new();
    let mut n = 0;
    while n < jobs {
        let until = jobs.min(n + CALL as u64);
        let place = room.clone().acquire_owned().await?;
        let batch = (n..until).map(&make).collect::<Result<Vec<_>, _>>()?;
        n = until;
        let client = client.clone();
        calls.spawn(async move {
            let pushed = client.push_all(batch).await;
            drop(place);
            pushed.map(|ids| ids.len())
        });
    }
    while let Some(call) = calls.join_next().await {
        call??;
    }
    Ok((now_us() - begin) as f64 / 1e6)
}

fn told(jobs: u64, seconds: f64) {
    let mut figures = Map::new();
    figures.insert("jobs".to_owned(), json!(jobs));
    figures.insert("seconds".to_owned(), json!(seconds));
    report(figures);
}

/// In bulk, without needs.
pub async fn push(client: &Client, call: &Call) -> Result<(), Failed> {
    let seconds = bulk(client, call.jobs, |n| job(&Payload::new(n, now_us(), "free"))).await?;
    told(call.jobs, seconds);
    Ok(())
}

/// In bulk; each needs a limit of its key, which allows one at a time.
pub async fn push_keyed(client: &Client, call: &Call) -> Result<(), Failed> {
    let settings = LimitSettings { concurrency: Some(1), ..LimitSettings::default() };
    client.run(PutLimit { limit: LimitName::parse("site:*")?, settings }).await?;
    let keys = if call.role == Role::PushBlocked { 1 } else { call.keys.max(1) };
    let seconds = bulk(client, call.jobs, |n| {
        let key = format!("k{}", n % keys);
        let limit = LimitName::parse(&format!("site:{key}"))?;
        let needs = Some(vec![Need::Limit { limit, weight: 1, cost: 1 }]);
        Ok(NewJob { needs, ..job(&Payload::new(n, now_us(), &key))? })
    })
    .await?;
    told(call.jobs, seconds);
    Ok(())
}

/// One by one, so many per second; a push does not wait for the one before.
pub async fn steady(client: &Client, call: &Call) -> Result<(), Failed> {
    let mut beat = tokio::time::interval(Duration::from_micros(1_000_000 / call.rate.max(1)));
    let mut calls = JoinSet::new();
    for n in 0..call.jobs {
        beat.tick().await;
        let job = job(&Payload::new(n, now_us(), "free"))?;
        let client = client.clone();
        calls.spawn(async move { client.push(job).await });
    }
    while let Some(call) = calls.join_next().await {
        call??;
    }
    report(Map::new());
    Ok(())
}

/// In bulk, due over some seconds.
pub async fn later(client: &Client, call: &Call) -> Result<(), Failed> {
    // All delays of a call count from its arrival, so each job carries the delay that is left of its
    // moment when its call is made.
    let begin = now_us();
    let seconds = bulk(client, call.jobs, |n| {
        let due = begin + call.due_in_us(n);
        let when = When::In(Span::from_us(due.saturating_sub(now_us())));
        Ok(NewJob { when, ..job(&Payload::new(n, due, "free"))? })
    })
    .await?;
    told(call.jobs, seconds);
    Ok(())
}
