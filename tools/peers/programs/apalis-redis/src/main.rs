//! apalis with apalis-redis. Without a poll strategy it does not poll; here it does every 10 ms.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use apalis::prelude::*;
use apalis_redis::{Config, RedisStorage};
use futures::stream;
use peers_gauge::{
    Call, Failed, Payload, Role, Tally, in_bulk, now_us, one_by_one, ready, report, steadily,
};

const LOOK_EVERY: Duration = Duration::from_millis(10);

async fn handle(payload: Payload, tally: Data<Arc<Tally>>) -> Result<(), BoxDynError> {
    tally.handle(&payload);
    Ok(())
}

async fn work(storage: RedisStorage<Payload>, call: &Call) -> Result<(), Failed> {
    let tally = match call.role {
        Role::Listen => Tally::timed(call.jobs),
        _ => Tally::new(call.jobs),
    };
    let tally = Arc::new(tally);
    let worker = WorkerBuilder::new("bench")
        .backend(storage.poll_with_interval(LOOK_EVERY))
        .data(tally.clone())
        .concurrency(call.concurrency)
        .build(handle);
    let over = Arc::new(tokio::sync::Notify::new());
    let told = over.clone();
    let mut running = tokio::spawn(worker.run_until(async move {
        told.notified().await;
        Ok::<(), std::io::Error>(())
    }));
    if call.role == Role::Listen {
        ready();
    }
    tokio::select! {
        () = tally.done() => {}
        ended = &mut running => {
            ended??;
            return Err("the worker ended by itself".into());
        }
    }
    over.notify_one();
    // Its last acknowledgements are under way when it ends.
    let _ = tokio::time::timeout(Duration::from_secs(10), &mut running).await;
    report(tally.figures());
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let call = Call::read()?;
    let link = apalis_redis::connect(call.url()).await?;
    let config = Config::default().queue("bench").batch_size(call.concurrency.max(10));
    let storage = RedisStorage::<Payload>::new(link).with_config(config);
    let push = |payload: Payload| {
        let mut storage = storage.clone();
        async move {
            storage.push(payload).await?;
            Ok(())
        }
    };
    match call.role {
        Role::Drain | Role::Listen => work(storage, &call).await,
        Role::Push => {
            in_bulk(call.jobs, 1_000, 4, |numbers| {
                let jobs = numbers.map(|n| Payload::new(n, now_us(), "free")).collect();
                let mut storage = storage.clone();
                async move {
                    storage.push_bulk(jobs).await?;
                    Ok(())
                }
            })
            .await
        }
        Role::Single => one_by_one(&call, push).await,
        Role::Steady => steadily(&call, push).await,
        Role::Later => {
            let (begin, wall) = (now_us(), SystemTime::now());
            in_bulk(call.jobs, 1_000, 1, |numbers| {
                let tasks: Vec<Task<Payload>> = numbers
                    .map(|n| {
                        let wait = call.due_in_us(n);
                        let payload = Payload::new(n, begin + wait, "free");
                        TaskBuilder::new(payload)
                            .run_at_time(wall + Duration::from_micros(wait))
                            .build()
                    })
                    .collect();
                let mut storage = storage.clone();
                async move {
                    storage.push_all(stream::iter(tasks)).await?;
                    Ok(())
                }
            })
            .await
        }
        _ => Err("apalis-redis cannot do this".into()),
    }
}
