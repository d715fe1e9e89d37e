//! A loop by hand, on the engine's calls: while some jobs are handled, the next are leased and the last are settled.
//!
//! Up to a hundred leases per call, and up to two calls ahead of the handlers; at most `concurrency` handlers at once,
//! each a task of its own that is awaited by itself; outcomes are gathered for at most a millisecond. It has no
//! heartbeats: only for jobs that take much less than their ttl.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use peers_gauge::{Call, Failed, Role, Tally, ready};
use tenure::core::requests::Lease;
use tenure::{Client, LeaseView, SettleOutcome, Span};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::queue;
use crate::worker::handle;

/// How long the first outcome of a call waits for others.
const GATHER: Duration = Duration::from_millis(1);
/// Tasks that lease; one asks while the jobs of the other are started.
const ASKERS: usize = 2;

struct Done {
    lease: String,
    outcome: SettleOutcome,
}

/// Works until the tally is full.
pub async fn work(client: &Client, call: &Call, tally: &Arc<Tally>) -> Result<(), Failed> {
    let over = Arc::new(AtomicBool::new(false));
    let slots = Arc::new(Semaphore::new(call.concurrency));
    let (send, done) = mpsc::unbounded_channel();
    let settler = tokio::spawn(settle(client.clone(), done));
    let mut askers = JoinSet::new();
    for _ in 0..ASKERS {
        let (client, call, tally) = (client.clone(), call.clone(), tally.clone());
        let (over, slots, send) = (over.clone(), slots.clone(), send.clone());
        askers.spawn(async move { ask(&client, &call, &tally, &over, &slots, &send).await });
    }
    drop(send);
    if call.role == Role::Listen {
        ready();
    }
    tally.done().await;
    over.store(true, Ordering::Relaxed);
    askers.abort_all();
    while askers.join_next().await.is_some() {}
    if call.role != Role::DrainFree {
        settler.await??;
    }
    Ok(())
}

async fn ask(
    client: &Client,
    call: &Call,
    tally: &Arc<Tally>,
    over: &AtomicBool,
    slots: &Arc<Semaphore>,
    send: &mpsc::UnboundedSender<Done>,
) -> Result<(), Failed> {
    let most = call.concurrency.clamp(1, 100);
    while !over.load(Ordering::Relaxed) {
        let mut lease = Lease::jobs(vec![queue()?], most);
        lease.wait = Span::from_s(10);
        for lease in client.lease(lease).await?.leases {
            let permit = slots.clone().acquire_owned().await?;
            start(call.role, tally, send, lease, permit);
        }
    }
    Ok(())
}

fn start(
    role: Role,
    tally: &Arc<Tally>,
    send: &mpsc::UnboundedSender<Done>,
    view: LeaseView,
    permit: OwnedSemaphorePermit,
) {
    let (tally, send) = (tally.clone(), send.clone());
    tokio::spawn(async move {
        let (Some(lease), Some(job)) = (view.lease, view.job) else { return };
        let payload = job.payload.as_ref().map_or("null", |payload| payload.text());
        let outcome = handle(role, &tally, payload).await.into();
        drop(permit);
        // The settling task lives longer than the handlers.
        let _ = send.send(Done { lease, outcome });
    });
}

async fn settle(client: Client, mut done: mpsc::UnboundedReceiver<Done>) -> Result<(), Failed> {
    let mut calls = JoinSet::new();
    while let Some(first) = done.recv().await {
        let until = Instant::now() + GATHER;
        let mut batch = vec![first.outcome.of(first.lease)];
        while batch.len() < 100 {
            match timeout_at(until, done.recv()).await {
                Ok(Some(next)) => batch.push(next.outcome.of(next.lease)),
                _ => break,
            }
        }
        let client = client.clone();
        calls.spawn(async move { client.settle(batch).await.map(|_| ()) });
        while let Some(call) = calls.try_join_next() {
            call??;
        }
    }
    while let Some(call) = calls.join_next().await {
        call??;
    }
    Ok(())
}
