//! rusty-sidekiq: BRPOP, one connection per worker. It has no call for many jobs, so 64 pushes are
//! made at once.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use peers_gauge::{
    Call, Failed, Payload, Role, Tally, in_bulk, now_us, one_by_one, ready, report, steadily,
};
use sidekiq::{Processor, ProcessorConfig, RedisConnectionManager, RedisPool, Worker, WorkerOpts};

const FLIGHT: usize = 64;
const QUEUE: &str = "bench";

#[derive(Clone)]
struct Bench(Arc<Tally>);

#[async_trait]
impl Worker<Payload> for Bench {
    fn opts() -> WorkerOpts<Payload, Self> {
        WorkerOpts::new().queue(QUEUE)
    }

    async fn perform(&self, payload: Payload) -> sidekiq::Result<()> {
        self.0.handle(&payload);
        Ok(())
    }
}

async fn pool(call: &Call, size: u32) -> Result<RedisPool, Failed> {
    let manager = RedisConnectionManager::new(call.url())?;
    Ok(bb8::Pool::builder().max_size(size).min_idle(size).build(manager).await?)
}

async fn work(call: &Call) -> Result<(), Failed> {
    let tally = match call.role {
        Role::Listen => Tally::timed(call.jobs),
        _ => Tally::new(call.jobs),
    };
    let tally = Arc::new(tally);
    // Each worker blocks a connection; some more are for other calls.
    let workers = call.concurrency;
    let pool = pool(call, workers as u32 + 20).await?;
    let config = ProcessorConfig::default().num_workers(workers);
    let mut processor = Processor::new(pool, vec![QUEUE.to_owned()]).with_config(config);
    processor.register(Bench(tally.clone()));
    let stop = processor.get_cancellation_token();
    let running = tokio::spawn(processor.run());
    if call.role == Role::Listen {
        ready();
    }
    tally.done().await;
    report(tally.figures());
    stop.cancel();
    // Its workers return from BRPOP after 2 s; not waiting for them loses nothing.
    running.abort();
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let call = Call::read()?;
    match call.role {
        Role::Drain | Role::Listen => return work(&call).await,
        _ => {}
    }
    let pool = pool(&call, FLIGHT as u32).await?;
    let begin = now_us();
    let push = |payload: Payload| {
        let pool = pool.clone();
        async move {
            Bench::perform_async(&pool, payload).await?;
            Ok(())
        }
    };
    match call.role {
        Role::Push => {
            in_bulk(call.jobs, 1, FLIGHT, |n| push(Payload::new(n.start, now_us(), "free"))).await
        }
        Role::Single => one_by_one(&call, push).await,
        Role::Steady => steadily(&call, push).await,
        Role::Later => {
            in_bulk(call.jobs, 1, FLIGHT, |n| {
                let due = begin + call.due_in_us(n.start);
                let wait = Duration::from_micros(due.saturating_sub(now_us()));
                let (pool, payload) = (pool.clone(), Payload::new(n.start, due, "free"));
                async move {
                    Bench::perform_in(&pool, wait, payload).await?;
                    Ok(())
                }
            })
            .await
        }
        _ => Err("rusty-sidekiq cannot do this".into()),
    }
}
