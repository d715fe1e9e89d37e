//! Chaos: 8 worker processes on 3 servers that share a Redis. Workers, servers, pushers and Redis itself
//! are killed at random moments, for a minute (`TENURE_CHAOS_SECONDS=600` for a soak). What held is judged
//! by what the workers themselves wrote down, with their fences, and not by what Tenure says of it.
//!
//! Redis syncs every write here and the address says that it forgets nothing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod flows;
mod judge;
mod part;
mod parts;
mod records;
mod schedules;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenure_core::job::{JobState, JobView};
use tenure_core::names::{JobRef, LimitName, Namespace, QueueName};
use tenure_core::requests::{
    Audit, GetJob, GetLimit, GetStats, JobFilter, ListJobs, ListLeases, Operation, Page, PutLimit,
};
use tenure_core::settings::LimitSettings;
use tenure_engine::{CallError, EngineExt, Fault};
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine};
use tenure_testkit::redis::{Aof, RedisServer, free_port, wanted};
use tenure_testkit::{Dice, TempDir};

use part::{CAPS, TTL};
use parts::{Part, Role, Told};

const SECONDS: &str = "TENURE_CHAOS_SECONDS";
const WORKERS: usize = 8;
const SERVERS: usize = 3;
const PUSHERS: usize = 3;
const FLOW_PUSHERS: usize = 2;
/// A permit of a dead holder is back so long after its ttl.
const SLACK: Duration = Duration::from_secs(1);
/// A job that has not ended when the killing has been over for this long is stranded.
const DRAINED_WITHIN: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Which holder is dead since when, and when Redis came back last.
#[derive(Default)]
struct Ends {
    dead: BTreeMap<String, Instant>,
    back: Option<Instant>,
    /// The longest that a permit of a dead holder was seen after its death or Redis's return.
    longest: Duration,
}

type Shared = Arc<Mutex<Ends>>;

fn with<T>(ends: &Shared, act: impl FnOnce(&mut Ends) -> T) -> T {
    act(&mut ends.lock().unwrap_or_else(PoisonError::into_inner))
}

async fn ok<O: Operation + Clone>(engine: &RedisEngine, request: O) -> O::Reply {
    let begin = Instant::now();
    loop {
        match engine.run(&Namespace::main(), request.clone()).await {
            Ok(reply) => return reply,
            Err(CallError::Fault(Fault::Unavailable(_) | Fault::Unknown(_)))
                if begin.elapsed() < Duration::from_secs(60) =>
            {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(why) => panic!("{}: {why}", O::NAME),
        }
    }
}

/// All jobs of a queue, newest first.
async fn jobs_of(engine: &RedisEngine, queue: &str) -> Vec<JobView> {
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
async fn drained(engine: &RedisEngine) -> u64 {
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

/// Looks at all leases again and again: none of a dead holder may be there for longer than it may.
async fn watch(engine: Arc<RedisEngine>, ends: Shared) {
    let mut down = false;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let asked = Instant::now();
        let page = Page { max: 1_000, cursor: None };
        let list = ListLeases { page, ..ListLeases::default() };
        let Ok(found) = engine.run(&Namespace::main(), list).await else {
            down = true;
            continue;
        };
        with(&ends, |ends| {
            if std::mem::take(&mut down) {
                ends.back = Some(Instant::now());
            }
            for lease in found.items {
                let Some(&dead) = ends.dead.get(&lease.holder) else { continue };
                let from = ends.back.map_or(dead, |back| back.max(dead));
                ends.longest = ends.longest.max(asked.saturating_duration_since(from));
            }
        });
    }
}

fn seconds() -> u64 {
    let told = std::env::var(SECONDS).ok();
    told.map_or(60, |text| text.parse().unwrap_or_else(|_| panic!("{SECONDS}={text} is no number")))
}

/// Not a test: one of the processes of the test below, which starts this program again.
#[test]
#[ignore = "a process of the chaos, started by it"]
fn one_process_of_the_chaos() {
    part::run();
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_killed_nothing_is_lost_and_nothing_is_over_its_cap() {
    if !wanted() {
        return;
    }
    let seed = part::unix_us() | 1;
    // The moments and the victims; the seed is told, although no run is ever the same.
    let mut dice = Dice(seed);
    let folder = TempDir::new();
    let mut redis = RedisServer::start(Aof::Always, &[]);
    let url = format!("{}?forgets=never", redis.url());
    let address = Address::parse(&url).expect("the address of the fixture is one");
    let engine = RedisEngine::open(Options::new(address)).expect("an engine can be opened");
    let engine = Arc::new(engine);
    for (limit, cap) in CAPS {
        let limit = LimitName::parse(limit).expect("a name");
        let settings = LimitSettings { concurrency: Some(cap), ..LimitSettings::default() };
        ok(&engine, PutLimit { limit, settings, gauge: None }).await;
    }
    let ends = Shared::default();
    let watching = tokio::spawn(watch(engine.clone(), ends.clone()));
    let words = TempDir::new();
    let ports: Vec<_> = (0..SERVERS).map(|_| free_port()).collect();
    let told = Told {
        store: url,
        ports: ports.iter().map(u16::to_string).collect::<Vec<_>>().join(","),
        folder: folder.path().to_owned(),
        words: words.path().to_owned(),
    };
    let start = |role, place| Part::start(role, place, &told);
    let served = ports.iter().enumerate();
    let mut servers: Vec<_> = served.map(|(at, port)| start(Role::Server(*port), at)).collect();
    let mut workers: Vec<_> = (0..WORKERS).map(|at| start(Role::Worker, at)).collect();
    let mut pushers: Vec<_> = (0..PUSHERS).map(|at| start(Role::Pusher, at)).collect();
    pushers.extend((0..FLOW_PUSHERS).map(|at| start(Role::FlowPusher, at)));
    let scheduled = schedules::put_all(&engine, seconds()).await;
    let (begin, lasts) = (Instant::now(), Duration::from_secs(seconds()));
    let (mut kills, mut killed_at) = ([0_u32; 4], BTreeMap::new());
    while begin.elapsed() < lasts {
        tokio::time::sleep(Duration::from_millis(300 + dice.below(1_500))).await;
        match dice.below(20) {
            0..10 => {
                let victim = &mut workers[dice.below(WORKERS as u64) as usize];
                let at = victim.kill();
                killed_at.insert(victim.name.clone(), at);
                if let Some(holder) = victim.holder() {
                    with(&ends, |ends| ends.dead.insert(holder, Instant::now()));
                }
                victim.restart();
                kills[0] += 1;
            }
            10..15 => {
                let victim = &mut servers[dice.below(SERVERS as u64) as usize];
                victim.kill();
                // The others have its work meanwhile.
                tokio::time::sleep(Duration::from_millis(dice.below(1_000))).await;
                victim.restart();
                kills[1] += 1;
            }
            15..17 => {
                let at = dice.below(pushers.len() as u64) as usize;
                let victim = &mut pushers[at];
                victim.kill();
                victim.restart();
                kills[2] += 1;
            }
            _ => {
                tokio::task::block_in_place(|| {
                    redis.kill();
                    redis.restart();
                });
                with(&ends, |ends| ends.back = Some(Instant::now()));
                kills[3] += 1;
            }
        }
    }
    for pusher in &mut pushers {
        pusher.kill();
    }
    let decided = schedules::each_moment_is_decided_once(&engine, &scheduled).await;
    // What is left is done by who is left.
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
        "seed {seed}: {} workers, {} servers, {} pushers and redis {} times killed; {} pushed, {} runs, \
         {} settled, {} lost; a dead holder's permit was seen for at most {longest:?}; of schedules {} \
         moments fired, {} were skipped and {} missed",
        kills[0],
        kills[1],
        kills[2],
        kills[3],
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
