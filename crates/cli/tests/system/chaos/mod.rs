//! Chaos: 8 worker processes on 3 servers that share a Redis. Workers, servers, pushers and Redis itself are killed at
//! random moments, for a while (`TENURE_CHAOS_SECONDS=600` for a soak), and servers are stopped. The records of the
//! workers themselves, with their fences, are judged, and not what Tenure says.
//!
//! Redis syncs every write here. Where one server leads the store, Redis is also emptied, and goes back by some writes
//! as a replica does that lagged when it was promoted: while the leader lives, nothing is lost by that.

mod flows;
mod judge;
mod part;
mod parts;
mod records;
mod schedules;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tenure_core::job::{JobState, JobView};
use tenure_core::names::{JobRef, LimitName, Namespace, QueueName};
use tenure_core::requests::{
    Audit, GetJob, GetLimit, GetStats, JobFilter, ListJobs, ListLeases, Operation, Page, PutLimit,
};
use tenure_core::settings::LimitSettings;
use tenure_engine_api::{Engine, EngineExt};
use tenure_testkit::redis::{Aof, RedisServer, free_port, wanted};
use tenure_testkit::{Dice, TempDir};

use part::{CAPS, Servers, TTL, is_forwarding};
use parts::{Part, Role, Told};

const SECONDS: &str = "TENURE_CHAOS_SECONDS";
const WORKERS: usize = 8;
const SERVERS: usize = 3;
const PUSHERS: usize = 3;
const FLOW_PUSHERS: usize = 2;
/// A permit of a dead holder is back this long after its ttl.
const SLACK: Duration = Duration::from_secs(1);
/// A job that has not ended when the killing has been over for this long is stranded.
const DRAINED_WITHIN: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A list of leases is answered within this, or another server is asked.
const LISTED_WITHIN: Duration = Duration::from_secs(1);
/// A watcher that hears nothing of the store for this long cannot know whether another server has taken it meanwhile.
const UNHEARD: Duration = Duration::from_secs(2);
/// Every call is answered within this: a leader stands still for some seconds here.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

/// When each dead holder died, and since when the leases of the store have their ttl.
#[derive(Default)]
struct Ends {
    dead: BTreeMap<String, Instant>,
    /// How often the store went away, or its leader.
    losses: u32,
    /// When it answered again. The server that took it has given each lease its whole ttl before that.
    back: Option<Instant>,
    /// The longest that a permit of a dead holder was seen after its death, or after the return of the store.
    longest: Duration,
}

type Shared = Arc<Mutex<Ends>>;

fn with<T>(ends: &Shared, act: impl FnOnce(&mut Ends) -> T) -> T {
    act(&mut ends.lock().unwrap_or_else(PoisonError::into_inner))
}

async fn ok<O: Operation + Clone>(engine: &dyn Engine, request: O) -> O::Reply {
    let begin = Instant::now();
    loop {
        match engine.run(&Namespace::main(), request.clone()).await {
            Ok(reply) => return reply,
            Err(why) if is_forwarding(&why) && begin.elapsed() < ANSWERED_WITHIN => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(why) => panic!("{}: {why}", O::NAME),
        }
    }
}

/// All jobs of a queue, newest first.
async fn jobs_of(engine: &dyn Engine, queue: &str) -> Vec<JobView> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let filter = JobFilter { queue: QueueName::parse(queue).ok(), ..JobFilter::default() };
        let page = Page { max: 1_000, cursor };
        let listed = ok(engine, ListJobs { filter, page, full: false }).await;
        all.extend(listed.items);
        cursor = listed.next;
        if cursor.is_none() {
            return all;
        }
    }
}

/// Waits until all jobs have ended, at most [`DRAINED_WITHIN`]. Returns how many have not.
async fn drained(engine: &dyn Engine) -> u64 {
    let begin = Instant::now();
    loop {
        let stats = ok(engine, GetStats).await;
        let open = stats.jobs.iter().filter(|(state, _)| !state.is_finished());
        let left = open.map(|(_, jobs)| jobs).sum();
        if left == 0 || begin.elapsed() > DRAINED_WITHIN {
            return left;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Looks at all leases again and again: no lease of a dead holder may live longer than allowed.
async fn watch(servers: Servers, ends: Shared) {
    let (mut heard, mut known) = (Instant::now(), 0);
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let asked = Instant::now();
        let losses = with(&ends, |ends| ends.losses);
        let page = Page { max: 1_000, cursor: None };
        let list = ListLeases { page, ..ListLeases::default() };
        let namespace = Namespace::main();
        let found = tokio::time::timeout(LISTED_WITHIN, servers.run(&namespace, list)).await;
        let Ok(Ok(found)) = found else {
            servers.leave();
            continue;
        };
        with(&ends, |ends| {
            if losses != known || heard.elapsed() > UNHEARD {
                ends.back = Some(Instant::now());
            }
            (heard, known) = (Instant::now(), losses);
            for lease in found.items {
                let Some(&dead) = ends.dead.get(&lease.holder) else { continue };
                let from = ends.back.map_or(dead, |back| back.max(dead));
                ends.longest = ends.longest.max(asked.saturating_duration_since(from));
            }
        });
    }
}

/// How often each thing was done.
#[derive(Default)]
struct Done {
    workers: u32,
    pushers: u32,
    servers: u32,
    owners: u32,
    stops: u32,
    redis: u32,
    emptied: u32,
    went_back: u32,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Done { workers, pushers, servers, owners, stops, redis, emptied, went_back } = self;
        write!(
            f,
            "killed: {workers} workers, {pushers} pushers, {servers} servers and redis {redis} times; {stops} servers stopped; \
             {owners} of these servers were the owner; redis emptied {emptied} times, and went back {went_back} times"
        )
    }
}

/// All parts of the chaos.
struct Stage {
    /// One server owns the store.
    redis: RedisServer,
    servers: Vec<Part>,
    ports: Vec<u16>,
    /// All servers, as the test asks them.
    engine: Servers,
    ends: Shared,
    dice: Dice,
    done: Done,
}

impl Stage {
    fn below(&mut self, n: usize) -> usize {
        self.dice.below(n as u64) as usize
    }

    async fn rest(&mut self, least_ms: u64, most_ms: u64) {
        let rest = least_ms + self.dice.below(most_ms - least_ms);
        tokio::time::sleep(Duration::from_millis(rest)).await;
    }

    /// One of the servers. Its stop or death is a loss of the store if it may lead it.
    fn victim(&mut self) -> usize {
        let owner = self.ports.iter().position(|port| crate::owner::owns(*port));
        let any = self.below(SERVERS);
        let victim = owner.filter(|_| self.dice.one_in(2)).unwrap_or(any);
        self.done.owners += u32::from(owner == Some(victim));
        if owner.is_none_or(|owner| owner == victim) {
            self.store_is_lost();
        }
        victim
    }

    fn store_is_lost(&self) {
        with(&self.ends, |ends| ends.losses += 1);
    }

    async fn kill_a_server(&mut self) {
        let victim = tokio::task::block_in_place(|| self.victim());
        self.servers[victim].kill();
        // The others have its work meanwhile.
        self.rest(0, 1_000).await;
        self.servers[victim].restart();
        self.done.servers += 1;
    }

    async fn stop_a_server(&mut self) {
        let victim = tokio::task::block_in_place(|| self.victim());
        self.servers[victim].signal(Signal::SIGSTOP);
        if self.dice.one_in(2) {
            self.rest(50, 1_500).await;
        } else {
            // Another one takes the store.
            self.rest(3_500, 5_500).await;
        }
        self.servers[victim].signal(Signal::SIGCONT);
        self.done.stops += 1;
    }

    fn kill_redis(&mut self) {
        self.redis.kill();
        self.redis.restart();
        self.store_is_lost();
        self.done.redis += 1;
    }

    /// Redis forgets everything, or the last writes. The leader still has them: it is not killed before it has written
    /// the store again, which an answered write shows.
    async fn redis_forgets(&mut self, all: bool) {
        self.has_written().await;
        if all {
            self.redis.must(&["FLUSHALL"]);
            self.done.emptied += 1;
        } else {
            let kept = self.redis.kept();
            self.rest(20, 400).await;
            tokio::task::block_in_place(|| self.redis.restart_from(&kept));
            self.done.went_back += 1;
        }
        self.store_is_lost();
        self.has_written().await;
    }

    async fn has_written(&self) {
        let (limit, cap) = CAPS[0];
        put_limit(&self.engine, limit, cap).await;
    }
}

async fn put_limit(engine: &dyn Engine, limit: &str, cap: u32) {
    let limit = LimitName::parse(limit).expect("a name");
    let settings = LimitSettings { concurrency: Some(cap), ..LimitSettings::default() };
    ok(engine, PutLimit { limit, settings, gauge: None }).await;
}

fn seconds() -> u64 {
    let told = std::env::var(SECONDS).ok();
    told.map_or(12, |text| text.parse().unwrap_or_else(|_| panic!("{SECONDS}={text} is no number")))
}

/// Not a test: one of the processes of the test below, which starts this program again.
#[test]
#[ignore = "a process of the chaos, started by it"]
fn one_process_of_the_chaos() {
    part::run();
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_lose_nothing_and_exceed_no_cap() {
    if wanted() {
        chaos().await;
    }
}

async fn chaos() {
    let seed = part::unix_us() | 1;
    let folder = TempDir::new();
    let redis = RedisServer::start(Aof::Always, &["--auto-aof-rewrite-percentage", "0"]);
    let ends = Shared::default();
    let words = TempDir::new();
    let ports: Vec<_> = (0..SERVERS).map(|_| free_port()).collect();
    let told = Told {
        store: redis.url(),
        ports: ports.iter().map(u16::to_string).collect::<Vec<_>>().join(","),
        folder: folder.path().to_owned(),
        words: words.path().to_owned(),
    };
    let start = |role, place| Part::start(role, place, &told);
    let served = ports.iter().enumerate();
    let servers = served.map(|(at, port)| start(Role::Server(*port), at)).collect();
    let engine = Servers::of(&told.ports, 0);
    for (limit, cap) in CAPS {
        put_limit(&engine, limit, cap).await;
    }
    let watching = tokio::spawn(watch(Servers::of(&told.ports, 1), ends.clone()));
    let mut workers: Vec<_> = (0..WORKERS).map(|at| start(Role::Worker, at)).collect();
    let mut pushers: Vec<_> = (0..PUSHERS).map(|at| start(Role::Pusher, at)).collect();
    pushers.extend((0..FLOW_PUSHERS).map(|at| start(Role::FlowPusher, at)));
    let scheduled = schedules::put_all(&engine, seconds()).await;
    let (begin, lasts) = (Instant::now(), Duration::from_secs(seconds()));
    let mut killed_at = BTreeMap::new();
    // Moments and victims are random; the seed is printed, although no run is ever the same.
    let (dice, done) = (Dice(seed), Done::default());
    let mut stage = Stage { redis, servers, ports, engine: engine.clone(), ends, dice, done };
    while begin.elapsed() < lasts {
        stage.rest(300, 1_800).await;
        match stage.below(20) {
            0..8 => {
                let victim = &mut workers[stage.below(WORKERS)];
                let at = victim.kill();
                killed_at.insert(victim.name.clone(), at);
                if let Some(holder) = victim.holder() {
                    with(&stage.ends, |ends| ends.dead.insert(holder, Instant::now()));
                }
                victim.restart();
                stage.done.workers += 1;
            }
            8..12 => stage.kill_a_server().await,
            12 | 13 => stage.stop_a_server().await,
            14 => {
                let at = stage.below(pushers.len());
                let victim = &mut pushers[at];
                victim.kill();
                victim.restart();
                stage.done.pushers += 1;
            }
            15 | 16 => stage.redis_forgets(true).await,
            17 | 18 => stage.redis_forgets(false).await,
            _ => tokio::task::block_in_place(|| stage.kill_redis()),
        }
    }
    let Stage { redis: _redis, servers: _servers, ends, done, .. } = stage;
    for pusher in &mut pushers {
        pusher.kill();
    }
    let decided = schedules::each_moment_is_decided_once(&engine, &scheduled).await;
    // The workers that are left do the work that is left.
    let left = drained(&engine).await;
    watching.abort();
    for worker in &mut workers {
        let at = worker.kill();
        killed_at.insert(worker.name.clone(), at);
    }

    let told = records::read(folder.path(), &killed_at);
    // First the flows: their judge names each job that is stranded.
    let flows = judge::each_flow_ended_as_it_must(&engine, &told).await;
    assert_eq!(left, 0, "jobs do not end");
    // Nothing that was answered is lost.
    let pushed = told.pushed.iter().map(|id| (id, JobState::Succeeded.as_str()));
    for (id, state) in pushed.chain(told.settled.iter().map(|(id, state)| (id, state.as_str()))) {
        let job = ok(&engine, GetJob { job: JobRef::parse(id).expect("an id") }).await;
        assert_eq!(job.state.as_str(), state, "{id}");
    }
    // Nothing was over its cap at any instant, no job ran twice at once, fences rose.
    let caps: BTreeMap<_, _> = CAPS.into_iter().collect();
    for (limit, most) in records::most_at_once(&told.holds) {
        assert!(most <= caps[limit.as_str()], "{most} held {limit} at once");
        println!("{limit}: {most} of {} at once", caps[limit.as_str()]);
    }
    records::runs_of_a_job_follow_each_other(&told.holds);
    for limit in caps.keys() {
        let limit = LimitName::parse(limit).expect("a name");
        assert_eq!(ok(&engine, GetLimit { limit }).await.in_use, 0);
    }
    let longest = with(&ends, |ends| ends.longest);
    println!(
        "seed {seed}: {done}; {} pushed, {} runs, {} settled, {} lost; a dead holder's permit was seen for at most {longest:?}; \
         of schedules {} moments fired, {} were skipped and {} missed",
        told.pushed.len(),
        told.holds.len(),
        told.settled.len(),
        told.lost,
        decided.fired,
        decided.skipped,
        decided.missed,
    );
    println!("{flows}");
    assert!(longest <= TTL.std() + SLACK, "a permit came back after {longest:?}");
    let audit = ok(&engine, Audit::default()).await;
    assert!(audit.ok && audit.faults.is_empty(), "{:?}", audit.faults);
    assert!(told.settled.len() as u64 > seconds(), "next to nothing was done");
}
