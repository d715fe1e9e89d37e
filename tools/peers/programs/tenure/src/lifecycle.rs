//! Pushes, leases and settles by the engine's calls, in batches, `flight` calls at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use peers_gauge::{Call, Failed, Payload, now_us, report};
use serde_json::{Map, json};
use tenure::core::requests::Lease;
use tenure::{Client, Json, NewJob, SettleOutcome};
use tokio::task::JoinSet;

use crate::queue;

/// Runs the lifecycle over a backlog that is there already.
pub async fn run(client: &Client, call: &Call) -> Result<(), Failed> {
    let over = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicU64::new(0));
    let payload = Json::of(&Payload::new(0, 0, "free"))?;
    let begin = now_us();
    let mut tasks: JoinSet<Result<(), Failed>> = JoinSet::new();
    for _ in 0..call.flight {
        let (client, over, done) = (client.clone(), over.clone(), done.clone());
        let (payload, batch) = (payload.clone(), call.batch);
        tasks.spawn(async move {
            let queue = queue()?;
            while !over.load(Ordering::Relaxed) {
                let job = NewJob { payload: payload.clone(), ..NewJob::new(queue.clone()) };
                client.push_all(vec![job; batch]).await?;
                let leased = client.lease(Lease::jobs(vec![queue.clone()], batch)).await?;
                let ids = leased.leases.into_iter().filter_map(|lease| lease.lease);
                let settle: Vec<_> = ids.map(|id| SettleOutcome::succeeded().of(id)).collect();
                let settled = client.settle(settle).await?;
                let well = settled.iter().filter(|one| one.ok).count();
                done.fetch_add(well as u64, Ordering::Relaxed);
            }
            Ok(())
        });
    }
    tokio::time::sleep(Duration::from_secs(call.seconds)).await;
    over.store(true, Ordering::Relaxed);
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    let mut figures = Map::new();
    figures.insert("jobs".to_owned(), json!(done.load(Ordering::Relaxed)));
    figures.insert("seconds".to_owned(), json!((now_us() - begin) as f64 / 1e6));
    report(figures);
    Ok(())
}
