//! Measures the cost of readers of old events for other calls: `cargo run --release -p tenure-engine --example
//! old_events -- [readers] [events]`.
//!
//! A thousand readers (1,200) begin at once with the oldest of 50,000 events and look for a type that never happened, until each has
//! read all of them. Beside them one holder sends its heartbeat and one worker is granted a job with a payload, again and again;
//! how long these took is printed: without readers, and with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tenure_core::events::{EventFilter, EventType};
use tenure_core::job::NewJob;
use tenure_core::lease::{Ending, ExtendItem, SettleItem};
use tenure_core::names::{Namespace, QueueName};
use tenure_core::requests::{EventsSince, Extend, Lease, Push, PushAnswer, ReadEvents, Settle};
use tenure_core::secret::Json;
use tenure_core::time::Span;
use tenure_engine::{Embedded, Location, Options};
use tenure_engine_api::EngineExt;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Jobs of one push.
const PUSHED: usize = 500;
/// How long the calls are measured without readers, and at most with them.
const ALONE: Duration = Duration::from_secs(3);
const MOST: Duration = Duration::from_secs(120);

async fn push(engine: &Embedded, queue: &str, count: usize) -> Result<(), Failed> {
    let payload = Json::of(&"x".repeat(20_000))?;
    let job = NewJob { payload, ..NewJob::new(QueueName::parse(queue)?) };
    let jobs = if queue == "old" { NewJob::new(QueueName::parse(queue)?) } else { job };
    let push = Push { jobs: vec![jobs; count], answer: PushAnswer::Ids };
    engine.run(&Namespace::main(), push).await?;
    Ok(())
}

async fn granted(engine: &Embedded, queue: &str) -> Result<String, Failed> {
    let lease = Lease::jobs(vec![QueueName::parse(queue)?], 1);
    let leased = engine.run(&Namespace::main(), lease).await?;
    let lease = leased.leases.into_iter().next().and_then(|lease| lease.lease);
    lease.ok_or_else(|| "there was no job".into())
}

/// Reads all events from the oldest on, and finds none.
async fn reads(engine: Arc<Embedded>) -> Result<(), Failed> {
    let filter = EventFilter { types: vec![EventType::ClockBehind], ..EventFilter::default() };
    let mut since = EventsSince::First;
    loop {
        let read = ReadEvents { since, filter: filter.clone(), max: 1_000, wait: Span::ZERO };
        let page = engine.run(&Namespace::main(), read).await?;
        if since == EventsSince::Id(page.next) {
            return Ok(());
        }
        since = EventsSince::Id(page.next);
    }
}

#[derive(Default)]
struct Took {
    heartbeats: Vec<Duration>,
    grants: Vec<Duration>,
}

/// Sends heartbeats and takes jobs until it is over.
async fn calls(engine: &Embedded, held: &str, is_over: impl Fn() -> bool) -> Result<Took, Failed> {
    let mut took = Took::default();
    while !is_over() {
        let begun = Instant::now();
        let leases = vec![ExtendItem { lease: held.to_owned(), progress: None }];
        engine.run(&Namespace::main(), Extend { leases, ttl: None }).await?;
        took.heartbeats.push(begun.elapsed());
        push(engine, "new", 1).await?;
        let begun = Instant::now();
        let lease = granted(engine, "new").await?;
        took.grants.push(begun.elapsed());
        let item = SettleItem::new(lease, Ending::Succeeded { result: None });
        engine.run(&Namespace::main(), Settle::of(vec![item])).await?;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(took)
}

fn tell(what: &str, took: Took) {
    for (of, mut all) in [("heartbeats", took.heartbeats), ("grants", took.grants)] {
        all.sort_unstable();
        let at = |part: usize| all.get(all.len() * part / 100).copied().unwrap_or_default();
        let most = all.last().copied().unwrap_or_default();
        println!("{what}: {} {of}, p50 {:?}, p99 {:?}, most {most:?}", all.len(), at(50), at(99));
    }
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let mut given = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let readers = given.next().transpose()?.unwrap_or(1_200);
    let events = given.next().transpose()?.unwrap_or(50_000);
    let engine = Arc::new(Embedded::open(Options::new(Location::Memory))?);
    push(&engine, "held", 1).await?;
    let lease =
        Lease { ttl: Span::from_s(3_600), ..Lease::jobs(vec![QueueName::parse("held")?], 1) };
    let held = engine.run(&Namespace::main(), lease).await?.leases;
    let held =
        held.into_iter().next().and_then(|lease| lease.lease).ok_or("nothing was granted")?;
    for _ in 0..events.div_ceil(PUSHED) {
        push(&engine, "old", PUSHED).await?;
    }
    let begun = Instant::now();
    tell("alone", calls(&engine, &held, || begun.elapsed() > ALONE).await?);
    let left = Arc::new(AtomicUsize::new(readers));
    let begun = Instant::now();
    for _ in 0..readers {
        let (engine, left) = (engine.clone(), left.clone());
        tokio::spawn(async move {
            let read = reads(engine).await;
            left.fetch_sub(1, Ordering::Relaxed);
            read
        });
    }
    let is_over = || left.load(Ordering::Relaxed) == 0 || begun.elapsed() > MOST;
    tell("with readers", calls(&engine, &held, is_over).await?);
    let read = readers - left.load(Ordering::Relaxed);
    println!("{read} of {readers} readers read {events} events in {:?}", begun.elapsed());
    // Readers that have not finished must not read on.
    std::process::exit(0)
}
