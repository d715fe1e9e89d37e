//! One process of the chaos, as a user would write it: a worker that runs a handler for each job, or one
//! that pushes jobs or flows. All know the addresses of all servers and nothing of the Redis behind them. Each writes
//! down what it does, when, and under which fence, in a file of its own, before and after.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenure::{
    CallError, Client, Code, Engine, Event, Fault, Job, JobId, LimitName, Namespace, NewJob,
    QueueName, Remote, ServerUrl, SettleOutcome, Span,
};
use tenure_core::job::{Need, Retry};
use tenure_core::requests::{Push, PushAnswer, Request};
use tenure_engine_api::{CallFuture, Health};
use tokio::time::sleep;

use crate::chaos::flows::{self, FLOWS, Way};

pub const ROLE: &str = "TENURE_CHAOS_ROLE";
pub const NAME: &str = "TENURE_CHAOS_NAME";
/// The ports of all servers.
pub const PORTS: &str = "TENURE_CHAOS_PORTS";
pub const FILE: &str = "TENURE_CHAOS_FILE";

pub const TTL: Span = Span::from_s(3);
/// The limits that jobs need, and how many may hold each.
pub const CAPS: [(&str, u32); 2] = [("three", 3), ("lock:one", 1)];
/// The queue into which jobs are pushed, and that of the jobs that schedules make.
pub const PUSHED: &str = "q";
pub const SCHEDULED: &str = "scheduled";
/// Jobs that a worker runs at once.
const AT_ONCE: usize = 2;
/// Jobs that are pushed at once, and how often.
const BATCH: u64 = 5;
const BATCH_EVERY: Duration = Duration::from_millis(100);
/// One job in this many takes longer than a heartbeat.
const LONG_EVERY: u64 = 200;
/// Pause after all servers were away.
const AWAY: Duration = Duration::from_millis(20);

pub fn unix_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros().try_into().unwrap_or(u64::MAX)
}

/// Runs as the process that the environment names; without one it returns at once.
pub fn run() {
    let var = |name| std::env::var(name).ok();
    let (Some(role), Some(name), Some(ports), Some(file)) =
        (var(ROLE), var(NAME), var(PORTS), var(FILE))
    else {
        return;
    };
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let file = File::options().create(true).append(true).open(file).expect("a file of its own");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let notes = Arc::new(Notes(file));
        // Not all begin with the same server.
        let first = name.bytes().map(usize::from).sum();
        let client = Client::new(Arc::new(Servers::of(&ports, first)), Namespace::main());
        match role.as_str() {
            "worker" => work(&client, &notes).await,
            "flows" => flows::push(&client, &notes, &name).await,
            _ => push(&client, &notes, &name).await,
        }
    });
}

/// Several servers as one engine: if one does not answer, the next is asked.
#[derive(Clone)]
pub struct Servers {
    servers: Arc<Vec<Remote>>,
    now: Arc<AtomicUsize>,
}

impl Servers {
    /// At these ports, with commas between.
    pub fn of(ports: &str, first: usize) -> Self {
        let server = |port: &str| {
            let port = port.parse().expect("a port");
            let (host, prefix) = ("127.0.0.1".to_owned(), String::new());
            Remote::open(&ServerUrl { tls: false, host, port, prefix }, None).expect("an engine")
        };
        let servers = ports.split(',').map(server).collect();
        Servers { servers: Arc::new(servers), now: Arc::new(AtomicUsize::new(first)) }
    }

    /// The next call goes to another server.
    pub fn leave(&self) {
        self.now.fetch_add(1, Ordering::Relaxed);
    }
}

impl Engine for Servers {
    fn call(&self, namespace: &Namespace, request: Request) -> CallFuture {
        let (servers, now, namespace) = (self.servers.clone(), self.now.clone(), namespace.clone());
        Box::pin(async move {
            let mut tried = 0;
            loop {
                let at = now.load(Ordering::Relaxed);
                let answer = servers[at % servers.len()].call(&namespace, request.clone()).await;
                tried += 1;
                let (next, again) = match &answer {
                    Err(CallError::Fault(Fault::Unavailable(_) | Fault::StoreAway(_))) => {
                        (true, true)
                    }
                    // The caller repeats it, with the same ids.
                    Err(CallError::Fault(Fault::Unknown(_))) => (true, false),
                    Err(CallError::Refused(no)) if no.code == Code::Draining => (true, true),
                    _ => (false, false),
                };
                if next {
                    let _ = now.compare_exchange(at, at + 1, Ordering::Relaxed, Ordering::Relaxed);
                }
                if !again || tried >= servers.len() {
                    return answer;
                }
            }
        })
    }
    fn health(&self) -> Health {
        Health { degraded: None, store: "remote" }
    }
    fn undo(&self, namespace: &Namespace, leases: Vec<String>) {
        let at = self.now.load(Ordering::Relaxed) % self.servers.len();
        self.servers[at].undo(namespace, leases);
    }
    fn drain(&self) {}
}

/// The records of a process.
pub struct Notes(File);

impl Notes {
    /// Writes a line in one piece: a kill leaves it out or leaves it whole.
    pub fn note(&self, line: &str) {
        (&self.0).write_all(format!("{line}\n").as_bytes()).expect("its file takes a line");
    }
}

async fn push(client: &Client, notes: &Notes, name: &str) {
    for batch in 0_u64.. {
        let numbers = batch * BATCH..(batch + 1) * BATCH;
        let jobs: Vec<_> = numbers.map(|n| job(&format!("{name}-{n}"), n)).collect();
        let ids: Vec<_> = jobs.iter().filter_map(|job| job.id.clone()).collect();
        push_until_answered(client, notes, jobs).await;
        for id in ids {
            notes.note(&format!("P {id}"));
        }
        sleep(BATCH_EVERY).await;
    }
}

/// Pushes these in one call, which is repeated until it is answered.
pub async fn push_until_answered(client: &Client, notes: &Notes, jobs: Vec<NewJob>) {
    let push = Push { jobs, answer: PushAnswer::Ids };
    while let Err(why) = client.run(push.clone()).await {
        passes(notes, &why);
        sleep(AWAY).await;
    }
}

/// Whether this error passes when the servers are back.
pub fn is_forwarding(why: &CallError) -> bool {
    match why {
        CallError::Fault(Fault::Unavailable(_) | Fault::StoreAway(_) | Fault::Unknown(_)) => true,
        CallError::Refused(no) => no.code == Code::Draining,
        CallError::Fault(_) => false,
    }
}

/// Ends the process if this error does not pass.
fn passes(notes: &Notes, why: &CallError) {
    if !is_forwarding(why) {
        notes.note(&format!("! {why}"));
        panic!("{why}");
    }
}

async fn work(client: &Client, notes: &Arc<Notes>) {
    let me = tenure::ids::this_process().holder();
    notes.note(&format!("W {me}"));
    let queues = [PUSHED, SCHEDULED, FLOWS].map(|name| QueueName::parse(name).expect("a name"));
    loop {
        let (told, holds) = (notes.clone(), notes.clone());
        let worker = client.worker(queues.to_vec()).concurrency(AT_ONCE).ttl(TTL);
        let worker = worker.observe(move |event| match event {
            Event::Settled { job, state: Some(state) } if state.is_finished() => {
                told.note(&format!("A {job} {}", state.as_str()));
            }
            Event::NotSettled { job, .. } => told.note(&format!("L {job}")),
            _ => {}
        });
        // At its start a worker wants to be answered.
        match worker.run(move |job| handle(job, holds.clone())).await {
            Ok(_) => return,
            Err(why) => passes(notes, &why),
        }
        sleep(AWAY).await;
    }
}

/// A run that began. It ends when this is dropped, also where the worker stops it.
struct Run {
    notes: Arc<Notes>,
    fence: tenure_core::lease::Fence,
    /// `stopped` until the handler is done, then the outcome that is about to be settled.
    outcome: &'static str,
}

impl Drop for Run {
    fn drop(&mut self) {
        self.notes.note(&format!("E {} {} {}", unix_us(), self.fence, self.outcome));
    }
}

async fn handle(job: Job, notes: Arc<Notes>) -> SettleOutcome {
    let limits: Vec<_> = job.lease().limits.iter().map(LimitName::as_str).collect();
    let fence = job.fence();
    notes.note(&format!("S {} {fence} {} {}", unix_us(), job.id(), limits.join(",")));
    let mut run = Run { notes, fence, outcome: "stopped" };
    let (takes, way) = job.kind().split_once('-').unwrap_or((job.kind(), ""));
    sleep(takes.parse().map_or(Duration::ZERO, Duration::from_millis)).await;
    let outcome = Way::read(way).unwrap_or(Way::Succeeds).outcome(job.attempt());
    run.outcome = outcome.ending.outcome().as_str();
    outcome
}

fn job(id: &str, n: u64) -> NewJob {
    let limit = match n % 10 {
        0 => Some("lock:one"),
        1..5 => Some("three"),
        _ => None,
    };
    let need = limit.map(|limit| Need::Limit {
        limit: LimitName::parse(limit).expect("a name"),
        weight: 1,
        cost: 1,
    });
    let takes = if n % LONG_EVERY == LONG_EVERY - 1 { 2_000 } else { 5 + n * 7 % 30 };
    NewJob {
        id: Some(JobId::parse(id).expect("an id")),
        kind: takes.to_string(),
        needs: Some(need.into_iter().collect()),
        // A holder is killed more often than three times in a row here.
        retry: Some(Retry { max_lost: 0, ..Retry::default() }),
        ..NewJob::new(QueueName::parse(PUSHED).expect("a name"))
    }
}
