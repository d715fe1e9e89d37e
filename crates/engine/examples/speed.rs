//! Measures the speed of this engine in one process: `cargo run --release --example speed --
//! [callers]
//! [batch] [seconds] [always|everysec|memory|journal] [payload bytes]`.
//!
//! Each caller pushes a batch, leases as many and settles them, again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tenure_core::job::NewJob;
use tenure_core::lease::{Ending, SettleItem};
use tenure_core::names::{Namespace, QueueName};
use tenure_core::requests::{Lease, Push, PushAnswer, Settle};
use tenure_core::secret::Json;
use tenure_engine::{Durability, Embedded, Location, Options};
use tenure_engine_api::EngineExt;
use tenure_journal::Journal;
use tenure_journal::memory::MemoryJournal;

type Failed = Box<dyn std::error::Error + Send + Sync>;

struct Load {
    batch: usize,
    payload: Json,
    jobs: AtomicU64,
    calls: AtomicU64,
    over: AtomicBool,
}

async fn caller(engine: Arc<Embedded>, load: Arc<Load>, n: usize) -> Result<Vec<u64>, Failed> {
    let namespace = Namespace::main();
    let queue = QueueName::parse(&format!("q{}", n % 4))?;
    let mut latencies = Vec::new();
    while !load.over.load(Ordering::Relaxed) {
        let begin = Instant::now();
        let new = NewJob { payload: load.payload.clone(), ..NewJob::new(queue.clone()) };
        let jobs = vec![new; load.batch];
        engine.run(&namespace, Push { jobs, answer: PushAnswer::Ids }).await?;
        let pushed = begin.elapsed();
        let lease = Lease::jobs(vec![queue.clone()], load.batch);
        let leases = engine.run(&namespace, lease).await?.leases;
        let settle: Vec<SettleItem> = leases
            .into_iter()
            .filter_map(|lease| {
                Some(SettleItem::new(lease.lease?, Ending::Succeeded { result: None }))
            })
            .collect();
        let done = settle.len();
        engine.run(&namespace, Settle::of(settle)).await?;
        load.jobs.fetch_add(done as u64, Ordering::Relaxed);
        load.calls.fetch_add(3, Ordering::Relaxed);
        latencies.push(pushed.as_micros() as u64);
    }
    Ok(latencies)
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |n: usize, default: usize| -> usize {
        arguments.get(n).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (callers, batch, seconds) = (number(0, 16), number(1, 100), number(2, 5));
    let how = arguments.get(3).map_or("always", String::as_str);
    let payload = Json::from("x".repeat(number(4, 100)).as_str());
    let folder = std::env::current_dir()?.join(format!("speed-{}", std::process::id()));
    let location = match how {
        "memory" | "journal" => Location::Memory,
        _ => Location::Folder(folder.clone()),
    };
    let journal: Option<Arc<dyn Journal>> = match how {
        "journal" => Some(Arc::new(MemoryJournal::default())),
        _ => None,
    };
    let durability = if how == "everysec" { Durability::Everysec } else { Durability::Always };
    let engine =
        Arc::new(Embedded::open(Options { durability, journal, ..Options::new(location) })?);
    let load = Arc::new(Load {
        batch,
        payload,
        jobs: AtomicU64::new(0),
        calls: AtomicU64::new(0),
        over: AtomicBool::new(false),
    });
    let begin = Instant::now();
    let tasks: Vec<_> =
        (0..callers).map(|n| tokio::spawn(caller(engine.clone(), load.clone(), n))).collect();
    tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
    load.over.store(true, Ordering::Relaxed);
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await??);
    }
    let elapsed = begin.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let at = |part: f64| latencies.get((latencies.len() as f64 * part) as usize).copied();
    println!(
        "{how}, {callers} callers, batch {batch}: {:.0} jobs/s, {:.0} calls/s; push p50 {} us, p99 {} us",
        load.jobs.load(Ordering::Relaxed) as f64 / elapsed,
        load.calls.load(Ordering::Relaxed) as f64 / elapsed,
        at(0.5).unwrap_or_default(),
        at(0.99).unwrap_or_default(),
    );
    let begin = Instant::now();
    engine.close();
    println!("closed in {:?}", begin.elapsed());
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(())
}
