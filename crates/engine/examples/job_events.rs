//! Measures how long it takes to find the events of one job among many: `cargo run --release -p tenure-engine --example
//! job_events -- [jobs]`.
//!
//! A job is pushed, then 1,000,000 others in calls of 20, then the first is granted and settled. All events of the first are
//! read three times, and how long that took is printed, with how long the pushes took.

use std::time::Instant;

use tenure_core::events::EventFilter;
use tenure_core::job::NewJob;
use tenure_core::lease::{Ending, SettleItem};
use tenure_core::names::{Namespace, QueueName};
use tenure_core::requests::*;
use tenure_engine::{Durability, Embedded, Location, Options};
use tenure_engine_api::EngineExt;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Jobs of one push.
const PUSHED: usize = 20;

fn main() -> Result<(), Failed> {
    let jobs = std::env::args().nth(1).map_or(Ok(1_000_000), |jobs| jobs.parse())?;
    tokio::runtime::Runtime::new()?.block_on(run(jobs))
}

async fn run(jobs: usize) -> Result<(), Failed> {
    let folder = std::env::temp_dir().join(format!("job-events-{}", std::process::id()));
    let mut options = Options::new(Location::Folder(folder.clone()));
    (options.durability, options.events_bytes) = (Durability::Everysec, 1 << 30);
    let engine = Embedded::open(options)?;
    let main = Namespace::main();
    let push = |queue: &str, count: usize| -> Result<Push, Failed> {
        let job = NewJob::new(QueueName::parse(queue)?);
        Ok(Push { jobs: vec![job; count], answer: PushAnswer::Ids })
    };
    let Pushed::Ids(mine) = engine.run(&main, push("mine", 1)?).await? else {
        return Err("ids were asked for".into());
    };
    let began = Instant::now();
    for _ in 0..jobs / PUSHED {
        engine.run(&main, push("other", PUSHED)?).await?;
    }
    println!("{jobs} jobs were pushed in {:.1?}", began.elapsed());
    let lease = Lease::jobs(vec![QueueName::parse("mine")?], 1);
    let lease = engine.run(&main, lease).await?.leases.pop().and_then(|lease| lease.lease);
    let item =
        SettleItem::new(lease.ok_or("there was no job")?, Ending::Succeeded { result: None });
    engine.run(&main, Settle::of(vec![item])).await?;
    let end = engine.run(&main, GetStats).await?.events.last.ok_or("there are no events")?;
    for _ in 0..3 {
        let (began, mut calls, mut found) = (Instant::now(), 0, 0);
        let mut since = EventsSince::First;
        loop {
            let job = Some(mine[0].id.clone());
            let filter = EventFilter { job, ..EventFilter::default() };
            let read = ReadEvents { since, filter, max: 1_000, ..ReadEvents::default() };
            let page = engine.run(&main, read).await?;
            (calls, found) = (calls + 1, found + page.items.len());
            if page.next.number >= end.number {
                break;
            }
            since = EventsSince::Id(page.next);
        }
        let took = began.elapsed();
        println!("{found} events of {} were found by {calls} calls in {took:.1?}", end.number);
    }
    engine.close();
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
