//! Worker: handles jobs with the library's own worker or with a loop by hand.

use std::sync::Arc;

use peers_gauge::{Call, Failed, Payload, Role, Tally, ready, report};
use serde_json::json;
use tenure::core::job::JobState;
use tenure::core::requests::GetStats;
use tenure::{Client, Job};

use crate::{pipelined, producer, queue};

/// Handles the jobs of the workload, and reports.
pub async fn work(client: &Client, call: &Call) -> Result<(), Failed> {
    let tally = match call.role {
        Role::Listen => Tally::timed(call.jobs),
        _ => Tally::new(call.jobs),
    };
    let tally = Arc::new(tally);
    if call.role == Role::DrainFree {
        tally.begin_now();
    }
    if call.way == "pipelined" {
        pipelined::work(client, call, &tally).await?;
    } else {
        library(client, call, &tally).await?;
    }
    let mut figures = tally.figures();
    let stats = client.run(GetStats).await?;
    let done = stats.jobs.get(&JobState::Succeeded).copied().unwrap_or(0);
    figures.insert("settled".to_owned(), json!(done));
    report(figures);
    Ok(())
}

/// Runs the handler of a role.
pub async fn handle(role: Role, tally: &Tally, payload: &str) -> Result<(), serde_json::Error> {
    let payload: Payload = serde_json::from_str(payload)?;
    match role {
        Role::DrainKeyed => tally.handle_keyed(&payload).await,
        Role::DrainFree => tally.handle_beside_blocked(&payload).await,
        _ => tally.handle(&payload),
    }
    Ok(())
}

async fn library(client: &Client, call: &Call, tally: &Arc<Tally>) -> Result<(), Failed> {
    let worker = client.worker(vec![queue()?]).concurrency(call.concurrency);
    let stopper = worker.stopper();
    let role = call.role;
    let handler = {
        let tally = tally.clone();
        move |job: Job| {
            let tally = tally.clone();
            async move {
                let done = handle(role, &tally, job.payload_json()).await;
                done.map_err(|why| why.to_string())
            }
        }
    };
    let worker = tokio::spawn(worker.run(handler));
    if role == Role::Listen {
        ready();
    }
    if call.one_program {
        producer::one_by_one(client, call).await?;
    }
    tally.done().await;
    if role == Role::DrainFree {
        stopper.now()
    } else {
        stopper.drain()
    }
    worker.await??;
    Ok(())
}
