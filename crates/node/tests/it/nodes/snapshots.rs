//! Snapshots that a follower writes for the leader, and failures of each of the two.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tenure_core::job::NewJob;
use tenure_core::names::Namespace;
use tenure_core::requests::{Push, PushAnswer};
use tenure_core::secret::Json;
use tenure_core::time::Moment;
use tenure_engine::Embedded;
use tenure_engine_api::{Clock, Engine, EngineExt, SystemClock};
use tenure_node::{Node, SnapshotName, SnapshotWish};
use tenure_testkit::{Dice, needs_redis};

use crate::nodes::bench::{Bench, DoesSnapshot, LONG, SNAPSHOT_LOG_BYTES, job};

/// Some 50 jobs of this size are a fifth of the log with which a snapshot is due.
const PAYLOAD_BYTES: usize = 12_000;
const JOBS_OF_ONE_CALL: usize = 50;

/// So many parts of 256 KiB are more than a piece of a snapshot, and half of a whole one.
const PARTS: usize = 6;

/// A payload that hardly compresses, unlike that of any other job.
fn payload(job: usize) -> Json {
    Json::parse(&format!("\"{}\"", Dice::mixed(1 + job as u64).text(PAYLOAD_BYTES))).unwrap()
}

/// The snapshot that the store names, and the one that is being written.
fn named(bench: &Bench) -> (String, String) {
    let own = bench.redis.must(&["HGETALL", "{shop}:own"]);
    let generation = own.field("snapshot");
    (generation.split(' ').next().unwrap_or_default().to_owned(), own.field("writing"))
}

/// Pushes until the store names another snapshot than `before`; returns the number of jobs.
pub fn push_until_turned(
    bench: &Bench,
    engine: &Arc<Embedded>,
    mut jobs: usize,
    before: &str,
) -> usize {
    let begun = Instant::now();
    while named(bench).0 == before {
        assert!(begun.elapsed() < LONG, "no snapshot is made: {:?}", named(bench));
        // Much more than a snapshot needs would only make the test slow.
        if bench
            .redis
            .must(&["MEMORY", "USAGE", "{shop}:log", "SAMPLES", "0"])
            .text()
            .parse::<u64>()
            .unwrap_or(0)
            > SNAPSHOT_LOG_BYTES * 3 / 2
        {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        jobs = push_large(bench, engine, jobs);
    }
    jobs
}

/// A push of some more jobs, after this many.
fn large(jobs: usize) -> Push {
    let all = (jobs..jobs + JOBS_OF_ONE_CALL).map(|n| NewJob { payload: payload(n), ..job(n) });
    Push { jobs: all.collect(), answer: PushAnswer::Ids }
}

/// Pushes some more jobs, after this many; returns their new number.
fn push_large(bench: &Bench, engine: &Arc<Embedded>, jobs: usize) -> usize {
    bench.runtime.block_on(engine.run(&Namespace::main(), large(jobs))).unwrap();
    jobs + JOBS_OF_ONE_CALL
}

/// The generations that have chunks in Redis.
fn generations(bench: &Bench) -> Vec<String> {
    let keys = bench.redis.must(&["KEYS", "{shop}:snap:*"]);
    let of =
        |key: &str| key.trim_start_matches("{shop}:snap:").split(':').next().map(str::to_owned);
    let mut all: Vec<String> = keys.list().iter().filter_map(|key| of(&key.text())).collect();
    all.sort();
    all.dedup();
    all
}

/// A leader, and a follower that it knows and that has its rows.
fn two(bench: &Bench) -> (Arc<Node>, Arc<Embedded>, Arc<Node>) {
    let first = bench.node("http://first");
    let engine = bench.here(&first);
    bench.push(&engine, 1_000_000..1_000_010).unwrap();
    let second = bench.node("http://second");
    bench.follows(&second);
    let begun = Instant::now();
    let follows = || {
        let known = first.health().standbys;
        known.iter().any(|standby| standby.behind == 0)
    };
    while !follows() {
        assert!(begun.elapsed() < LONG, "{:?}", first.health());
        std::thread::sleep(Duration::from_millis(5));
    }
    (first, engine, second)
}

/// A clock whose monotonic time a test moves ahead.
#[derive(Default)]
struct LeapingClock(Mutex<Duration>);

impl Clock for LeapingClock {
    fn now(&self) -> Moment {
        SystemClock.now()
    }

    fn monotonic(&self) -> Duration {
        SystemClock.monotonic() + *self.0.lock().unwrap()
    }

    fn sleep(&self, due: Moment) -> Duration {
        SystemClock.sleep(due)
    }

    fn on_move(&self, wake: Arc<dyn Fn() + Send + Sync>) {
        SystemClock.on_move(wake);
    }
}

fn asked(bench: &Bench) -> Vec<(String, SnapshotWish)> {
    bench.network.snapshots.lock().unwrap().clone()
}

fn standby_does(bench: &Bench, does: DoesSnapshot) {
    *bench.network.writer.lock().unwrap() = Some(does);
}

/// Crashes the leader and its follower, whose own rows would be of help, and lets a new server load the store: it must
/// have the same rows.
fn loaded_anew(
    bench: &Bench,
    what: &str,
    (first, engine, second): (Arc<Node>, Arc<Embedded>, Arc<Node>),
) -> (Arc<Node>, Arc<Embedded>) {
    let rows = bench.runtime.block_on(engine.durable());
    drop(engine);
    bench.crash(&second, "http://second");
    bench.crash(&first, "http://first");
    let third = bench.node("http://third");
    let engine = bench.here(&third);
    assert_eq!(bench.runtime.block_on(engine.durable()), rows, "{what}");
    (third, engine)
}

#[test]
fn a_load_begins_with_the_snapshot_that_a_follower_wrote() {
    needs_redis!();
    let bench = Bench::start();
    let (first, engine, second) = two(&bench);
    let jobs = push_until_turned(&bench, &engine, 0, "");
    let (one, _) = named(&bench);
    let jobs = push_until_turned(&bench, &engine, jobs, &one);
    let asked = asked(&bench);
    let urls: Vec<&str> = asked.iter().map(|(url, _)| url.as_str()).collect();
    assert_eq!(urls, ["http://second", "http://second"]);
    let (_third, engine) = loaded_anew(&bench, "", (first, engine, second));
    for n in [0, jobs / 2, jobs - 1, 1_000_009] {
        assert!(bench.is_there(&engine, n), "j{n}");
    }
}

/// Writes for the leader until this many parts were read, and then calls `then`.
fn after_parts(
    parts: usize,
    then: impl Fn(&Node, &(dyn Fn() -> bool + Sync)) + Send + Sync + 'static,
) -> DoesSnapshot {
    Arc::new(move |standby, wish, goes_on| {
        let read = AtomicUsize::new(0);
        standby.write_snapshot(wish, &|| {
            if read.fetch_add(1, Ordering::SeqCst) == parts {
                then(standby, goes_on);
            }
            goes_on()
        })
    })
}

#[test]
fn a_leader_writes_the_snapshot_that_its_follower_failed_to() {
    needs_redis!();
    let wrong = |changes: fn(&mut SnapshotName)| -> DoesSnapshot {
        Arc::new(move |standby, wish, goes_on| {
            let mut name = standby.write_snapshot(wish, goes_on)?;
            changes(&mut name);
            Some(name)
        })
    };
    let rows: Vec<(&str, DoesSnapshot)> = vec![
        ("it refuses", Arc::new(|_, _, _| None)),
        ("its last entry is another one", wrong(|name| name.tip.sum ^= 1)),
        ("its last entry is one that is not there", wrong(|name| name.tip.number += 1_000)),
        ("its last entry came before", wrong(|name| name.tip.number = 1)),
        ("it has another name", wrong(|name| name.generation.count += 1)),
        ("it dies among the pieces", after_parts(PARTS, |standby, _| standby.crash())),
        (
            "it stands still among the pieces",
            after_parts(PARTS, |_, goes_on| {
                while goes_on() {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }),
        ),
    ];
    // With all of them at once a leader stood still for so long that its follower took the store.
    for some in rows.chunks(3) {
        std::thread::scope(|scope| {
            for (what, does) in some.iter().cloned() {
                scope.spawn(move || {
                    let bench = Bench::start();
                    let (first, engine, second) = two(&bench);
                    standby_does(&bench, does);
                    let jobs = push_until_turned(&bench, &engine, 0, "");
                    let (name, writing) = named(&bench);
                    assert!(name.ends_with("-2"), "{what}: {name}, after {:?}", asked(&bench));
                    assert_eq!((generations(&bench), writing.as_str()), (vec![name], ""), "{what}");
                    assert_eq!(asked(&bench).len(), 1, "{what}");
                    bench.push(&engine, jobs..jobs + 1).unwrap();
                    loaded_anew(&bench, what, (first, engine, second));
                });
            }
        });
    }
}

#[test]
fn a_follower_that_takes_over_stops_writing_the_old_snapshot() {
    needs_redis!();
    let bench = Bench::start();
    let (first, engine, second) = two(&bench);
    let leader = Mutex::new(Some(first.clone()));
    let said = Arc::new(Mutex::new(None));
    let (nodes, tells) = (bench.network.clone(), said.clone());
    standby_does(
        &bench,
        Arc::new(move |standby, wish, goes_on| {
            let read = AtomicUsize::new(0);
            let written = standby.write_snapshot(wish, &|| {
                if read.fetch_add(1, Ordering::SeqCst) == PARTS {
                    // The leader dies, and nothing tells this thread of it.
                    nodes.nodes.lock().unwrap().remove("http://first");
                    let Some(leader) = leader.lock().unwrap().take() else { return true };
                    leader.crash();
                    let begun = Instant::now();
                    while standby.served().is_none() && begun.elapsed() < LONG {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
                true
            });
            let _ = goes_on;
            *tells.lock().unwrap() = Some(written.is_some());
            written
        }),
    );
    let begun = Instant::now();
    let mut jobs = 0;
    while said.lock().unwrap().is_none() {
        assert!(begun.elapsed() < LONG, "no snapshot is begun");
        // A follower that is far behind is not asked for one.
        if first.health().standbys.iter().any(|standby| standby.behind > 0) {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        if bench.runtime.block_on(engine.run(&Namespace::main(), large(jobs))).is_err() {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        jobs += JOBS_OF_ONE_CALL;
    }
    assert_eq!(*said.lock().unwrap(), Some(false), "its pieces are of an owner that is gone");
    drop(engine);
    let engine = bench.here(&second);
    let rows = bench.runtime.block_on(engine.durable());
    // The server's own first snapshot removes those chunks.
    let (left, _) = named(&bench);
    assert_eq!(left, "");
    push_until_turned(&bench, &engine, jobs, "");
    assert_eq!(generations(&bench), [named(&bench).0]);
    assert!(bench.runtime.block_on(engine.durable()).len() >= rows.len());
    second.close();
}

#[test]
fn late_chunks_of_a_follower_are_removed_by_the_next_snapshot() {
    needs_redis!();
    let bench = Bench::start();
    let (first, engine, second) = two(&bench);
    standby_does(&bench, Arc::new(|_, _, _| None));
    let jobs = push_until_turned(&bench, &engine, 0, "");
    let (_, wish) = asked(&bench).remove(0);
    *bench.network.writer.lock().unwrap() = None;
    // As if a server had stopped before its third chunk, and goes on now.
    let late = format!("{}-{}", wish.by.epoch, wish.count);
    bench.redis.must(&["SET", &format!("{{shop}}:snap:{late}:3"), "late"]);
    bench.redis.must(&["HSET", "{shop}:own", "writing", &late]);
    let (own, _) = named(&bench);
    push_until_turned(&bench, &engine, jobs, &own);
    let (next, _) = named(&bench);
    assert!(next.ends_with("-3"), "{next}");
    assert_eq!(generations(&bench), [own, next]);
    assert_eq!(asked(&bench).len(), 2, "the standby is asked again");
    drop(engine);
    second.close();
    first.close();
}

#[test]
fn a_leader_without_a_snapshot_for_ten_minutes_is_degraded() {
    needs_redis!();
    let bench = Bench::start();
    let clock = Arc::new(LeapingClock::default());
    let redis = bench.redis.url();
    let first = bench.member_with(&redis, "http://first", |options| options.clock = clock.clone());
    let engine = bench.here(&first);
    // Chunks are written with it, and nothing else of an existing store.
    bench.redis.must(&["ACL", "SETUSER", "default", "-set"]);
    let mut jobs = 0;
    let begun = Instant::now();
    while named(&bench).1.is_empty() {
        assert!(begun.elapsed() < LONG, "no snapshot is begun");
        jobs = push_large(&bench, &engine, jobs);
    }
    let degraded = || first.engine().health().degraded;
    let until = |what: &str, is: &dyn Fn(Option<String>) -> bool| {
        let begun = Instant::now();
        while !is(degraded()) {
            assert!(begun.elapsed() < LONG, "{what}: {:?}", degraded());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let is_overdue = |why: Option<String>| why.is_some_and(|why| why.contains("no snapshot"));
    let leap = |span| *clock.0.lock().unwrap() += span;
    // For a moment a leap looks as if the leader were partitioned.
    leap(Duration::from_secs(540));
    until("it serves after nine minutes", &|why| why.is_none());
    bench.knows(&first);
    assert_eq!(degraded(), None);
    leap(Duration::from_secs(61));
    until("it says that no snapshot was made", &is_overdue);
    bench.redis.must(&["ACL", "SETUSER", "default", "+set"]);
    until("it is well again", &|why| why.is_none());
    assert_ne!(named(&bench).0, "");
    first.close();
}
