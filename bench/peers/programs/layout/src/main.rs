//! The physical reference: how fast a queue with leases on this Redis can be, if it can nothing
//! else. What Tenure does beside that is what it costs more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use peers_gauge::{Call, Failed, Payload, Role, now_us, report};
use redis::aio::MultiplexedConnection;
use redis::cmd;
use serde_json::{Map, json};
use tokio::task::JoinSet;

const LIBRARY: &str = include_str!("layout.lua");
const TTL_US: u64 = 30_000_000;
const READY: &str = "{bare}ready";
const JOBS: &str = "{bare}jobs";
const LEASES: &str = "{bare}leases";

async fn push(
    link: &mut MultiplexedConnection,
    first: u64,
    batch: usize,
    content: &str,
) -> Result<(), Failed> {
    let mut push = cmd("FCALL");
    push.arg("bare_push").arg(2).arg(READY).arg(JOBS);
    for n in 0..batch as u64 {
        push.arg(format!("{:012}", first + n)).arg(content);
    }
    let _: u64 = push.query_async(link).await?;
    Ok(())
}

/// One batch through its life; how many were acknowledged.
async fn live(
    link: &mut MultiplexedConnection,
    first: u64,
    batch: usize,
    content: &str,
) -> Result<u64, Failed> {
    push(link, first, batch, content).await?;
    let token = format!("{first:016x}");
    let mut lease = cmd("FCALL");
    lease.arg("bare_lease").arg(3).arg(READY).arg(JOBS).arg(LEASES);
    lease.arg(batch).arg(TTL_US).arg(&token);
    let (ids, contents): (Vec<String>, Vec<String>) = lease.query_async(link).await?;
    if contents.iter().any(String::is_empty) {
        return Err("a job came without its content".into());
    }
    let mut ack = cmd("FCALL");
    ack.arg("bare_ack").arg(2).arg(JOBS).arg(LEASES).arg(&token).arg(&ids);
    Ok(ack.query_async(link).await?)
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let call = Call::read()?;
    let mut link = redis::Client::open(call.url())?.get_multiplexed_async_connection().await?;
    let _: String =
        cmd("FUNCTION").arg("LOAD").arg("REPLACE").arg(LIBRARY).query_async(&mut link).await?;
    let content = serde_json::to_string(&Payload::new(0, 0, "free"))?;
    let begin = now_us();
    let done = Arc::new(AtomicU64::new(0));
    match call.role {
        Role::Push => {
            let batch = call.batch.max(1);
            for first in (0..call.jobs).step_by(batch) {
                push(&mut link, first, batch, &content).await?;
                done.fetch_add(batch as u64, Ordering::Relaxed);
            }
        }
        Role::Lifecycle => {
            // Above what Role::Push numbered.
            let next = Arc::new(AtomicU64::new(1 << 32));
            let over = Arc::new(AtomicBool::new(false));
            let mut tasks: JoinSet<Result<(), Failed>> = JoinSet::new();
            for _ in 0..call.flight {
                let (mut link, content, batch) = (link.clone(), content.clone(), call.batch);
                let (next, over, done) = (next.clone(), over.clone(), done.clone());
                tasks.spawn(async move {
                    while !over.load(Ordering::Relaxed) {
                        let first = next.fetch_add(batch as u64, Ordering::Relaxed);
                        let acked = live(&mut link, first, batch, &content).await?;
                        done.fetch_add(acked, Ordering::Relaxed);
                    }
                    Ok(())
                });
            }
            tokio::time::sleep(Duration::from_secs(call.seconds)).await;
            over.store(true, Ordering::Relaxed);
            while let Some(task) = tasks.join_next().await {
                task??;
            }
        }
        _ => return Err("the bare layout has only push and lifecycle".into()),
    }
    let mut figures = Map::new();
    figures.insert("jobs".to_owned(), json!(done.load(Ordering::Relaxed)));
    figures.insert("seconds".to_owned(), json!((now_us() - begin) as f64 / 1e6));
    report(figures);
    Ok(())
}
