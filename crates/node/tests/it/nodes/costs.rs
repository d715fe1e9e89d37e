//! Measurements, run by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tenure_core::job::NewJob;
use tenure_core::names::Namespace;
use tenure_core::requests::{Push, PushAnswer};
use tenure_core::secret::Json;
use tenure_core::time::Span;
use tenure_engine::Embedded;
use tenure_engine_api::EngineExt;

use crate::nodes::bench::{Bench, queue};

/// By hand: the duration of a takeover, with a follower and without.
#[test]
#[ignore = "it takes minutes, and says how long things took"]
fn what_a_takeover_takes() {
    let jobs = std::env::var("TENURE_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    for has_standby in [true, false] {
        let (bench, first, engine) = Bench::led();
        let begun = Instant::now();
        for from in (0..jobs).step_by(1_000) {
            bench.push(&engine, from..(from + 1_000).min(jobs)).unwrap();
        }
        let pushed = begun.elapsed();
        let mut second = has_standby.then(|| bench.node("http://second"));
        if let Some(second) = &second {
            let begun = Instant::now();
            bench.follows(second);
            println!("{jobs} jobs pushed in {pushed:?}, followed in {:?}", begun.elapsed());
        }
        drop(engine);
        let begun = Instant::now();
        bench.crash(&first, "http://first");
        let crashed = begun.elapsed();
        let second = second.get_or_insert_with(|| bench.node("http://second"));
        let begun = Instant::now();
        let engine = bench.here(second);
        let serves = begun.elapsed();
        assert_eq!(bench.lease(&engine, 1, Span::from_s(60)).len(), 1);
        let (grant, opened) = (begun.elapsed(), engine.recovery().took);
        println!(
            "{jobs} jobs, a standby: {has_standby}: it serves after {serves:?} (the machine {opened:?}), the first grant \
             after {grant:?}; the crash took {crashed:?} before"
        );
        drop(engine);
        second.crash();
    }
}

/// By hand: the latency of callers while a snapshot of many jobs is made, by their own server and by a follower.
#[test]
#[ignore = "it takes minutes, and says how long things took"]
fn what_a_snapshot_costs_its_owner() {
    let jobs = std::env::var("TENURE_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(400_000);
    // A follower takes part both times, at the same cost of processors: only the writer differs.
    for is_lent in [false, true] {
        let (bench, first, engine) = Bench::led();
        bench.push(&engine, 1_000_000..1_000_001).unwrap();
        let second = bench.node("http://second");
        bench.follows(&second);
        if !is_lent {
            *bench.network.writer.lock().unwrap() = Some(Arc::new(|_, _, _| None));
        }
        println!("jobs {jobs}, written by the standby: {is_lent}");
        push_beside_snapshots(&bench, &engine, jobs);
        println!("asked for: {}", bench.network.snapshots.lock().unwrap().len());
        drop(engine);
        bench.crash(&second, "http://second");
        first.crash();
    }
}

/// All payloads differ, otherwise the log would be too small for a snapshot.
fn payload(n: usize) -> Json {
    let digits =
        (0..20).map(|i| format!("{:016x}", (n * 20 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    Json::parse(&format!("\"{}\"", digits.collect::<String>())).unwrap()
}

fn push_beside_snapshots(bench: &Bench, engine: &Arc<Embedded>, jobs: usize) {
    let is_made = || bench.redis.must(&["HGET", "{shop}:own", "writing"]).text().contains('-');
    let is_over = AtomicBool::new(false);
    let begun = Instant::now();
    let (pushes, snapshots) = std::thread::scope(|scope| {
        let watches = scope.spawn(|| {
            let mut seen: Vec<(Duration, Duration)> = Vec::new();
            let mut since = None;
            while !is_over.load(Ordering::Relaxed) {
                match (is_made(), since) {
                    (true, None) => since = Some(begun.elapsed()),
                    (false, Some(from)) => {
                        seen.push((from, begun.elapsed()));
                        since = None;
                    }
                    _ => {}
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            seen
        });
        let mut pushes = Vec::new();
        for from in (0..jobs).step_by(100) {
            let jobs =
                (from..from + 100).map(|n| NewJob { payload: payload(n), ..NewJob::new(queue()) });
            let push = Push { jobs: jobs.collect(), answer: PushAnswer::Ids };
            let at = begun.elapsed();
            bench.runtime.block_on(engine.run(&Namespace::main(), push)).unwrap();
            pushes.push((at, begun.elapsed() - at));
        }
        is_over.store(true, Ordering::Relaxed);
        (pushes, watches.join().unwrap())
    });
    let mut took = [Vec::new(), Vec::new()];
    for (at, push) in &pushes {
        let is_beside = snapshots.iter().any(|(from, to)| at >= from && at <= to);
        took[usize::from(is_beside)].push(*push);
    }
    println!("snapshots were made from and until {snapshots:?}");
    let rate = |took: &Vec<Duration>| {
        100.0 * took.len() as f64 / took.iter().sum::<Duration>().as_secs_f64().max(0.001)
    };
    println!("rate beside snapshots, of that without: {:.2}", rate(&took[1]) / rate(&took[0]));
    for (what, took) in ["without", "beside"].iter().zip(&mut took) {
        took.sort();
        let (all, count): (Duration, usize) = (took.iter().sum(), took.len());
        let at = |part: usize| took.get(count * part / 100);
        println!(
            "{what} a snapshot: {count} pushes of 100 in {all:?}, {:.0} jobs/s; median {:?}, 99 % {:?}, longest {:?}",
            rate(took),
            at(50),
            at(99),
            took.last()
        );
    }
}
