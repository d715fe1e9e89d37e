//! BullMQ's own crate: the scripts of BullMQ on Node, called from Rust.

use std::sync::Arc;
use std::time::Duration;

use bullmq::options::{JobOptions, QueueOptions, RedisConnectionOptions, WorkerOptions};
use bullmq::types::RemoveOnFinish;
use bullmq::worker::CancellationToken;
use bullmq::{BulkJob, Job, Queue, Worker};
use peers_gauge::{
    Call, Failed, Payload, Role, Tally, in_bulk, now_us, one_by_one, ready, report, steadily,
};

const QUEUE: &str = "bench";

fn link(call: &Call) -> RedisConnectionOptions {
    RedisConnectionOptions::new().url(call.url())
}

async fn queue(call: &Call) -> Result<Queue, Failed> {
    let options = QueueOptions { connection: link(call), ..QueueOptions::default() };
    Ok(Queue::with_options(QUEUE, options).await?)
}

fn forgotten() -> JobOptions {
    JobOptions { remove_on_complete: Some(RemoveOnFinish::Bool(true)), ..JobOptions::default() }
}

async fn work(call: &Call) -> Result<(), Failed> {
    let tally = match call.role {
        Role::Listen => Tally::timed(call.jobs),
        _ => Tally::new(call.jobs),
    };
    let tally = Arc::new(tally);
    let options = WorkerOptions {
        connection: link(call),
        concurrency: call.concurrency,
        remove_on_complete: Some(RemoveOnFinish::Bool(true)),
        ..WorkerOptions::default()
    };
    let handler = {
        let tally = tally.clone();
        move |job: Job, _: CancellationToken| {
            let tally = tally.clone();
            async move {
                let payload: Payload = serde_json::from_value(job.data().clone())?;
                tally.handle(&payload);
                Ok(serde_json::Value::Null)
            }
        }
    };
    let worker = Worker::with_options(QUEUE, handler, options).await?;
    if call.role == Role::Listen {
        ready();
    }
    tally.done().await;
    worker.close(5_000).await?;
    let counts = queue(call).await?.get_job_counts().await?;
    let mut figures = tally.figures();
    let left = counts.waiting + counts.active + counts.delayed + counts.prioritized;
    figures.insert("left".to_owned(), left.into());
    report(figures);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let call = Call::read()?;
    if matches!(call.role, Role::Drain | Role::Listen) {
        return work(&call).await;
    }
    let queue = Arc::new(queue(&call).await?);
    let begin = now_us();
    let push = |payload: Payload| {
        let queue = queue.clone();
        async move {
            queue.add("job", payload).options(forgotten()).await?;
            Ok(())
        }
    };
    match call.role {
        Role::Push => {
            in_bulk(call.jobs, 1_000, 4, |numbers| {
                let jobs = numbers
                    .map(|n| {
                        BulkJob::with_options("job", Payload::new(n, now_us(), "free"), forgotten())
                    })
                    .collect();
                let queue = queue.clone();
                async move {
                    queue.add_bulk(jobs).await?;
                    Ok(())
                }
            })
            .await
        }
        Role::Single => one_by_one(&call, push).await,
        Role::Steady => steadily(&call, push).await,
        Role::Later => {
            in_bulk(call.jobs, 1, 64, |n| {
                // Whole milliseconds, as for all delays; the job is timed from its requested
                // moment.
                let now = now_us();
                let wait = (begin + call.due_in_us(n.start)).saturating_sub(now) / 1_000;
                let payload = Payload::new(n.start, now + wait * 1_000, "free");
                let queue = queue.clone();
                async move {
                    let delay = Duration::from_millis(wait);
                    queue.add("job", payload).options(forgotten()).delay(delay).await?;
                    Ok(())
                }
            })
            .await
        }
        _ => Err("bullmq-official cannot do this".into()),
    }
}
