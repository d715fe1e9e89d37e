//! Client of the crash check: a process that pushes or works, through any number of deaths of its
//! server, and notes the answers that it got and the runs that it made. It ends when stdin is
//! closed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use tenure::{Client, Event, Job, Remote, SettleOutcome, StoreUrl};
use tenure_console::child_processes;
use tenure_console::exit::Failure;
use tenure_core::job::{Need, NewJob};
use tenure_core::lease::Fence;
use tenure_core::names::{JobId, LimitName, Namespace, PoolName, QueueName};
use tenure_core::refusal::Refusal;
use tenure_core::requests::PushedId;
use tenure_core::secret::Json;
use tenure_core::time::Span;
use tenure_engine_api::{CallError, Fault};
use tokio::time::sleep;

use super::log::{Log, Note, now_us};
use crate::chance::Chance;

/// The queue of all jobs.
pub const QUEUE: &str = "crash";
/// The pool that some jobs need.
pub const POOL: &str = "things";
/// The family of limits, of 1 each, that some jobs need.
pub const FAMILY: &str = "one";
/// Limits of that family.
const LIMITS: u64 = 20;
/// Jobs that a worker runs at once.
const SLOTS: usize = 8;
/// Without heartbeats, a worker counts as dead after this long.
const TTL: Span = Span::from_s(2);
/// Most jobs of one push.
const PUSH_MAX: u64 = 20;
/// The pause between two pushes, in milliseconds.
const PUSH_PAUSE_MS: (u64, u64) = (10, 50);
/// The pause between two attempts while the server is away.
const AWAY_PAUSE: Duration = Duration::from_millis(20);
/// How long a run takes.
const RUN_MS: (u64, u64) = (0, 20);
/// Of a hundred runs this many fail, and are retried.
const FAIL_PERCENT: u64 = 5;
/// The pause before such a retry.
const AGAIN: Span = Span::from_ms(200);

/// The part of a client in the check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Role {
    /// Stores jobs.
    Push,
    /// Runs them.
    Work,
}

impl Role {
    /// Its name as an argument.
    pub const fn word(self) -> &'static str {
        match self {
            Role::Push => "push",
            Role::Work => "work",
        }
    }
}

/// The arguments of a client of the crash check.
#[derive(Args, Debug)]
pub struct ClientArgs {
    /// The server.
    #[arg(long)]
    server: String,
    /// Its role.
    #[arg(long)]
    role: Role,
    /// Its log of notes.
    #[arg(long)]
    log: PathBuf,
    /// Its stream of random numbers.
    #[arg(long)]
    seed: u64,
}

/// The result of a job.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Ran {
    /// The fence of the run.
    pub fence: Fence,
}

/// Plays its role until stdin is closed.
pub async fn run(args: ClientArgs) -> Result<(), Failure> {
    let url = args.server.parse().map_err(|error| Failure::usage(format!("{error}")))?;
    let StoreUrl::Server(url) = url else {
        return Err(Failure::usage("the clients of the crash check need a server"));
    };
    let remote = Remote::open(&url, None).map_err(|error| Failure::usage(error.to_string()))?;
    let client = Client::new(Arc::new(remote), Namespace::main());
    let log =
        Log::create(&args.log).map_err(|error| Failure::file("cannot write a log", &error))?;
    let chance = Chance::of(args.seed);
    match args.role {
        Role::Push => push(client, log, chance).await,
        Role::Work => work(client, Arc::new(log), chance).await,
    }
}

async fn push(client: Client, log: Log, mut chance: Chance) -> Result<(), Failure> {
    let mut finish = std::pin::pin!(child_processes::told_to_finish());
    let mut next = 0u64;
    loop {
        let count = chance.within(1, PUSH_MAX + 1);
        let jobs = (0..count).map(|n| job(next + n, &mut chance)).collect::<Result<Vec<_>, _>>()?;
        next += count;
        let pushed = answered(&client, jobs).await?;
        let note = |job: PushedId| Note::Pushed { job: job.id.to_string() };
        log.write(&pushed.into_iter().map(note).collect::<Vec<_>>());
        let (from, to) = PUSH_PAUSE_MS;
        tokio::select! {
            () = &mut finish => return Ok(()),
            () = sleep(Duration::from_millis(chance.within(from, to))) => {}
        }
    }
}

/// Pushes until it is answered, with the same ids: an answered push counts, whatever happened to
/// earlier ones without an answer.
async fn answered(client: &Client, jobs: Vec<NewJob>) -> Result<Vec<PushedId>, CallError> {
    loop {
        match client.push_all(jobs.clone()).await {
            Err(CallError::Fault(Fault::Unavailable(_) | Fault::StoreAway(_))) => {
                sleep(AWAY_PAUSE).await
            }
            other => return other,
        }
    }
}

fn job(n: u64, chance: &mut Chance) -> Result<NewJob, Refusal> {
    let mut job = NewJob::new(QueueName::parse(QUEUE)?);
    job.id = Some(JobId::parse(&format!("{}-{n}", std::process::id()))?);
    job.payload = Json::from(i64::try_from(n).unwrap_or(i64::MAX));
    let limit = LimitName::parse(&format!("{FAMILY}:{}", chance.within(0, LIMITS)))?;
    let limit = Need::Limit { limit, weight: 1, cost: 1 };
    let pool = PoolName::parse(POOL)?;
    let pool = Need::Pool { pool, tag: None, prefer: None, id: None, count: 1 };
    job.needs = match chance.within(0, 10) {
        0..=2 => Some(vec![limit]),
        3 => Some(vec![limit, pool]),
        _ => None,
    };
    Ok(job)
}

type Fences = Arc<Mutex<BTreeMap<JobId, Fence>>>;

async fn work(client: Client, log: Arc<Log>, chance: Chance) -> Result<(), Failure> {
    let fences = Fences::default();
    let worker = client.worker(vec![QueueName::parse(QUEUE)?]).concurrency(SLOTS).ttl(TTL);
    let worker = worker.observe({
        let (log, fences) = (log.clone(), fences.clone());
        move |event| {
            let Event::Settled { job, state: Some(state) } = event else { return };
            let fence = fences.lock().unwrap_or_else(PoisonError::into_inner).get(job).copied();
            if let Some(fence) = fence {
                log.write(&[Note::Settled { job: job.to_string(), fence, state: *state }]);
            }
        }
    });
    let stopper = worker.stopper();
    tokio::spawn(async move {
        child_processes::told_to_finish().await;
        stopper.drain();
    });
    let chance = Arc::new(Mutex::new(chance));
    worker.run(move |job| handle(job, log.clone(), fences.clone(), chance.clone())).await?;
    Ok(())
}

/// A run that is noted; its end too, when it is dropped.
struct JournaledRun {
    log: Arc<Log>,
    job: String,
    fence: Fence,
}

impl JournaledRun {
    fn begin(log: Arc<Log>, job: &Job) -> Self {
        let (job, fence) = (job.id().to_string(), job.fence());
        log.write(&[Note::Started { job: job.clone(), fence, at_us: now_us() }]);
        JournaledRun { log, job, fence }
    }
}

impl Drop for JournaledRun {
    fn drop(&mut self) {
        let (job, fence) = (self.job.clone(), self.fence);
        self.log.write(&[Note::Ended { job, fence, at_us: now_us() }]);
    }
}

async fn handle(
    job: Job,
    log: Arc<Log>,
    fences: Fences,
    chance: Arc<Mutex<Chance>>,
) -> SettleOutcome {
    let running = JournaledRun::begin(log, &job);
    let fence = job.fence();
    fences.lock().unwrap_or_else(PoisonError::into_inner).insert(job.id().clone(), fence);
    let (takes, fails) = {
        let mut chance = chance.lock().unwrap_or_else(PoisonError::into_inner);
        (chance.within(RUN_MS.0, RUN_MS.1), chance.percent(FAIL_PERCENT))
    };
    sleep(Duration::from_millis(takes)).await;
    drop(running);
    if fails {
        SettleOutcome::failed_retry_in("as the seed says", AGAIN)
    } else {
        SettleOutcome::succeeded_with(&Ran { fence })
    }
}
