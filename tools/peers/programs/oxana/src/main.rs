//! oxana: its only limit is a queue for each key. It does not wait for jobs, it polls: after an empty poll every 10 s,
//! and when latency is measured every 5 ms. (With many queues such a short interval would keep it from its work.)

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use oxana::Storage;
use peers_gauge::{
    Call, Failed, Payload, Role, Tally, in_bulk, now_us, one_by_one, ready, report, steadily,
};
use serde::{Deserialize, Serialize};

const LOOK_EVERY: Duration = Duration::from_millis(5);
const FLIGHT: usize = 4;

static TALLY: OnceLock<(Role, Arc<Tally>)> = OnceLock::new();

#[derive(Debug, thiserror::Error)]
enum Never {}

#[derive(Debug, Clone)]
struct Context;

#[derive(Debug, Serialize, Deserialize, oxana::Job)]
struct BenchJob {
    payload: Payload,
}

#[derive(oxana::Worker)]
#[oxana(context = Context, registry = None, error = Never)]
struct BenchWorker;

impl BenchWorker {
    async fn process(&self, job: BenchJob, _: &oxana::JobContext) -> Result<(), Never> {
        match TALLY.get() {
            Some((Role::DrainKeyed, tally)) => tally.handle_keyed(&job.payload).await,
            Some((Role::DrainFree, tally)) => tally.handle_beside_blocked(&job.payload).await,
            Some((_, tally)) => tally.handle(&job.payload),
            None => {}
        }
        Ok(())
    }
}

#[derive(Clone, Serialize, oxana::Queue)]
#[oxana(key = "bench", concurrency = 100)]
struct Plain;

#[derive(Clone, Serialize, oxana::Queue)]
#[oxana(prefix = "site", concurrency = 1)]
struct Keyed {
    key: String,
}

async fn work(storage: &Storage, call: &Call) -> Result<(), Failed> {
    let tally = match call.role {
        Role::Listen => Tally::timed(call.jobs),
        _ => Tally::new(call.jobs),
    };
    let tally = Arc::new(tally);
    let _ = TALLY.set((call.role, tally.clone()));
    if call.role == Role::DrainFree {
        tally.begin_now();
    }
    let over = Arc::new(tokio::sync::Notify::new());
    let told = over.clone();
    let mut runtime = storage
        .runtime(Context)
        .queue_with_concurrency::<Plain>(call.concurrency)
        .queue::<Keyed>()
        .worker::<BenchWorker, BenchJob>()
        .shutdown_on(async move {
            told.notified().await;
            Ok(())
        });
    if call.role == Role::Listen {
        runtime = runtime.dequeue_timeout(LOOK_EVERY).schedule_poll_interval(LOOK_EVERY);
    }
    let running = tokio::spawn(runtime.run());
    if call.role == Role::Listen {
        ready();
    }
    tally.done().await;
    over.notify_one();
    let mut figures = tally.figures();
    if call.role != Role::DrainFree {
        running.await??;
        figures.insert("left".to_owned(), storage.jobs_count().await?.into());
    }
    report(figures);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let call = Call::read()?;
    let storage = Storage::builder().max_pool_size(120).build_from_redis_url(call.url())?;
    let begin = now_us();
    let push = |payload: Payload| {
        let storage = storage.clone();
        async move {
            storage.enqueue(Plain, BenchJob { payload }).await?;
            Ok(())
        }
    };
    match call.role {
        Role::Drain | Role::Listen | Role::DrainKeyed | Role::DrainFree => {
            work(&storage, &call).await
        }
        Role::Push | Role::PushFree => {
            in_bulk(call.jobs, 1_000, FLIGHT, |numbers| {
                let jobs: Vec<_> = numbers
                    .map(|n| BenchJob { payload: Payload::new(n, now_us(), "free") })
                    .collect();
                let storage = storage.clone();
                async move {
                    storage.enqueue_list(Plain, jobs).await?;
                    Ok(())
                }
            })
            .await
        }
        Role::PushKeyed | Role::PushBlocked => {
            // A list is for one queue, so each call has the jobs of one key.
            let keys = if call.role == Role::PushBlocked { 1 } else { call.keys.max(1) };
            let each = call.jobs / keys;
            in_bulk(keys, 1, FLIGHT, |key| {
                let key = format!("k{}", key.start);
                let jobs: Vec<_> = (0..each)
                    .map(|n| BenchJob { payload: Payload::new(n, now_us(), &key) })
                    .collect();
                let storage = storage.clone();
                async move {
                    storage.enqueue_list(Keyed { key }, jobs).await?;
                    Ok(())
                }
            })
            .await
        }
        Role::Single => one_by_one(&call, push).await,
        Role::Steady => steadily(&call, push).await,
        Role::Later => {
            let wall = Utc::now();
            in_bulk(call.jobs, 1, 64, |n| {
                let wait = call.due_in_us(n.start);
                let at = wall + TimeDelta::microseconds(wait as i64);
                let payload = Payload::new(n.start, begin + wait, "free");
                let storage = storage.clone();
                async move {
                    storage.enqueue_at(Plain, BenchJob { payload }, at).await?;
                    Ok(())
                }
            })
            .await
        }
        Role::PushThree | Role::Lifecycle => Err("oxana cannot do this".into()),
    }
}
