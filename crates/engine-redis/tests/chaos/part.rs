//! One process of the chaos: a worker that leases, works and settles, or a server that pushes. Each
//! writes down what it does, when, and under which fence, in a file of its own, before and after.
//!
//! They keep the rules of a client: the same ids when a call is repeated, no work beyond 0.8 of the ttl
//! after the last good heartbeat was sent.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenure_core::job::{Need, NewJob, Retry};
use tenure_core::lease::{Ending, ExtendItem, LeaseView, SettleItem};
use tenure_core::names::{JobId, LimitName, Namespace, QueueName, RequestId, WorkerId};
use tenure_core::requests::{Extend, Lease, Operation, Push, PushAnswer, Settle};
use tenure_core::time::Span;
use tenure_engine::{CallError, EngineExt, Fault};
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

pub const ROLE: &str = "TENURE_CHAOS_ROLE";
pub const NAME: &str = "TENURE_CHAOS_NAME";
pub const URL: &str = "TENURE_CHAOS_URL";
pub const FILE: &str = "TENURE_CHAOS_FILE";

pub const TTL: Span = Span::from_s(3);
/// The limits that jobs need, and how many may hold each.
pub const CAPS: [(&str, u32); 2] = [("three", 3), ("lock:one", 1)];
/// Jobs that a server pushes at once, and how often.
const BATCH: u64 = 5;
const BATCH_EVERY: Duration = Duration::from_millis(100);
/// One job in so many takes longer than a heartbeat.
const LONG_EVERY: u64 = 200;

pub fn unix_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros().try_into().unwrap_or(u64::MAX)
}

/// Runs as the process that the environment says; as none it returns at once.
pub fn run() {
    let var = |name| std::env::var(name).ok();
    let (Some(role), Some(name), Some(url), Some(file)) =
        (var(ROLE), var(NAME), var(URL), var(FILE))
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
        let address = Address::parse(&url).expect("an address");
        let engine = RedisEngine::open(Options::new(address)).expect("an engine can be opened");
        let me = Me { name, engine: Arc::new(engine), file };
        if role == "worker" { me.work().await } else { me.push().await }
    });
}

struct Me {
    name: String,
    engine: Arc<RedisEngine>,
    file: File,
}

impl Me {
    /// Writes a line in one piece: a kill leaves it out or leaves it whole.
    fn note(&self, line: &str) {
        (&self.file).write_all(format!("{line}\n").as_bytes()).expect("its file takes a line");
    }

    async fn ok<O: Operation + Clone>(&self, request: O) -> O::Reply {
        loop {
            match self.engine.run(&Namespace::main(), request.clone()).await {
                Ok(reply) => return reply,
                Err(CallError::Fault(Fault::Unavailable(_) | Fault::Unknown(_))) => {
                    sleep(Duration::from_millis(10)).await;
                }
                Err(why) => {
                    self.note(&format!("! {} {why}", O::NAME));
                    panic!("{}: {why}", O::NAME);
                }
            }
        }
    }

    async fn push(&self) {
        for batch in 0_u64.. {
            let numbers = batch * BATCH..(batch + 1) * BATCH;
            let jobs: Vec<_> = numbers.map(|n| job(&format!("{}-{n}", self.name), n)).collect();
            let ids: Vec<_> = jobs.iter().filter_map(|job| job.id.clone()).collect();
            self.ok(Push { jobs, answer: PushAnswer::Ids }).await;
            for id in ids {
                self.note(&format!("P {id}"));
            }
            sleep(BATCH_EVERY).await;
        }
    }

    async fn work(&self) {
        for n in 0_u64.. {
            let mut lease = Lease::jobs(vec![QueueName::parse("q").expect("a name")], 1);
            (lease.ttl, lease.wait) = (TTL, Span::from_ms(500));
            lease.worker.id = Some(WorkerId::parse(&self.name).expect("an id"));
            let request = RequestId::parse(&format!("{}-{n}", self.name));
            lease.request_id = Some(request.expect("an id"));
            // The own stop counts from when the call was first sent under its id.
            let sent = Instant::now();
            let Some(lease) = self.ok(lease).await.leases.pop() else { continue };
            self.work_on(&lease, sent).await;
        }
    }

    async fn work_on(&self, lease: &LeaseView, sent: Instant) {
        let (Some(id), Some(job)) = (&lease.lease, &lease.job) else { return };
        let mut good = sent;
        if sent.elapsed() > TTL.std() / 5 {
            let again = Instant::now();
            if self.beat(id, stop(good)).await != Some(true) {
                return;
            }
            good = again;
        }
        if Instant::now() >= stop(good) {
            return;
        }
        let limits: Vec<_> = lease.limits.iter().map(LimitName::as_str).collect();
        self.note(&format!("S {} {} {} {}", unix_us(), lease.fence, job.id, limits.join(",")));
        let takes = job.kind.parse().map_or(Duration::ZERO, Duration::from_millis);
        let done = self.hold(id, good, takes).await;
        self.note(&format!("E {} {}", unix_us(), lease.fence));
        if !done {
            return;
        }
        let item = SettleItem {
            lease: id.clone(),
            ending: Ending::Succeeded { result: None },
            resources: Vec::new(),
            limits: Vec::new(),
            push: Vec::new(),
        };
        let settled = self.ok(Settle { settle: vec![item] }).await.settled.remove(0);
        self.note(&if settled.ok { format!("A {}", job.id) } else { format!("L {}", job.id) });
    }

    /// Works for so long, with heartbeats; `false` if the lease was lost, or may have been.
    async fn hold(&self, id: &str, mut good: Instant, takes: Duration) -> bool {
        let ends = Instant::now() + takes;
        let mut sent = good;
        loop {
            let now = Instant::now();
            if now >= stop(good) {
                return false;
            }
            if now >= ends {
                return true;
            }
            let beat = sent + TTL.std() / 5;
            if now < beat {
                sleep_until(beat.min(ends).min(stop(good))).await;
                continue;
            }
            sent = now;
            match self.beat(id, stop(good)).await {
                Some(true) => good = sent,
                Some(false) => return false,
                None => {}
            }
        }
    }

    /// One heartbeat: whether the lease lives, or nothing if that was not answered in time.
    async fn beat(&self, id: &str, until: Instant) -> Option<bool> {
        let leases = vec![ExtendItem { lease: id.to_owned(), progress: None }];
        let call = self.engine.run(&Namespace::main(), Extend { leases, ttl: None });
        let extended = timeout_at(until, call).await.ok()?.ok()?;
        Some(extended.lost.is_empty())
    }
}

/// When the work has to stop, if no later heartbeat is answered.
fn stop(good: Instant) -> Instant {
    good + TTL.std() * 4 / 5
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
        ..NewJob::new(QueueName::parse("q").expect("a name"))
    }
}
