//! A standby follows the journal, and a takeover reads only what its rows lack.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tenure_core::job::NewJob;
use tenure_core::lease::{Ending, SettleItem};
use tenure_core::names::Namespace;
use tenure_core::requests::{Lease, Push, PushAnswer, Settle};
use tenure_core::secret::Json;
use tenure_core::time::Span;
use tenure_engine::EngineExt;
use tenure_engine_embedded::Embedded;
use tenure_member::Member;
use tenure_testkit::redis::wanted;

use crate::bench::{Bench, LONG, queue};

/// The last entry of the store, as Redis has it.
fn end(bench: &Bench) -> u64 {
    bench.redis.must(&["HGET", "{shop}:own", "number"]).text().parse().unwrap()
}

/// Waits until the rows of a standby have all that the store has.
fn follows(bench: &Bench, standby: &Member) {
    let begun = Instant::now();
    while standby.applied() != end(bench) {
        assert!(begun.elapsed() < LONG, "it has {} of {} entries", standby.applied(), end(bench));
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// All jobs that wait are leased and settled, in batches.
fn settle(bench: &Bench, engine: &Arc<Embedded>, jobs: usize) {
    let lease = Lease { ttl: Span::from_s(60), ..Lease::jobs(vec![queue()], jobs) };
    let leased = bench.runtime.block_on(engine.run(&Namespace::main(), lease)).unwrap();
    assert_eq!(leased.leases.len(), jobs);
    let items = leased
        .leases
        .into_iter()
        .map(|lease| SettleItem::new(lease.lease.unwrap(), Ending::Succeeded { result: None }));
    let settle = Settle::of(items.collect());
    let settled = bench.runtime.block_on(engine.run(&Namespace::main(), settle)).unwrap();
    assert_eq!(settled.settled.len(), jobs);
}

fn durable(bench: &Bench, engine: &Arc<Embedded>) -> Vec<String> {
    bench.runtime.block_on(engine.durable())
}

/// Takes all entries out of the log, so that nobody without them can read the store any more.
fn break_the_log(bench: &Bench) {
    bench.redis.must(&["XTRIM", "{shop}:log", "MAXLEN", "0"]);
}

#[test]
fn a_standby_has_the_rows_of_the_owner_and_a_takeover_reads_only_what_they_lack() {
    if !wanted() {
        return;
    }
    let bench = Bench::start();
    let first = bench.member("http://first");
    let engine = bench.here(&first);
    bench.push(&engine, 0..10).unwrap();
    let second = bench.member("http://second");
    follows(&bench, &second);
    break_the_log(&bench);
    // It has these, and applies all that follow.
    for from in (10..1_010).step_by(100) {
        bench.push(&engine, from..from + 100).unwrap();
    }
    settle(&bench, &engine, 500);
    follows(&bench, &second);
    break_the_log(&bench);
    let rows = durable(&bench, &engine);
    drop(engine);
    bench.crash(&first, "http://first");
    let engine = bench.here(&second);
    assert_eq!(durable(&bench, &engine), rows);
    assert_eq!(bench.lease(&engine, 1_000, Span::from_s(60)).len(), 510);
    second.close();
}

#[test]
fn what_was_answered_until_the_crash_is_there_and_the_next_owner_takes_calls_at_once() {
    if !wanted() {
        return;
    }
    let bench = Bench::start();
    let first = bench.member("http://first");
    let engine = bench.here(&first);
    bench.push(&engine, 0..1).unwrap();
    let second = bench.member("http://second");
    follows(&bench, &second);
    break_the_log(&bench);
    let answered = std::thread::scope(|scope| {
        let pushes = scope.spawn(|| {
            (1..).take_while(|n| bench.push(&engine, *n..*n + 1).is_ok()).last().unwrap()
        });
        let begun = Instant::now();
        while second.applied() < 100 {
            assert!(begun.elapsed() < LONG, "{} entries", second.applied());
            std::thread::sleep(Duration::from_millis(1));
        }
        bench.crash(&first, "http://first");
        pushes.join().unwrap()
    });
    drop(engine);
    let engine = bench.here(&second);
    bench.push(&engine, 1_000_000..1_000_001).unwrap();
    for n in 0..=answered {
        assert!(bench.is_there(&engine, n), "j{n} of {answered}");
    }
    // What it was before is over: it follows from nothing, and passes on.
    let third = bench.member("http://third");
    bench.there(&third, "http://second");
    second.close();
}

#[test]
fn a_standby_that_was_away_while_the_store_was_written_anew_begins_with_its_snapshot() {
    if !wanted() {
        return;
    }
    let bench = Bench::start();
    let first = bench.member("http://first");
    let engine = bench.here(&first);
    bench.push(&engine, 0..50).unwrap();
    bench.redis.must(&["ACL", "SETUSER", "standby", "on", ">secret", "~*", "+@all"]);
    let url = bench.redis.url().replace("redis://", "redis://standby:secret@");
    let second = bench.member_with(&url, "http://second", |_| {});
    follows(&bench, &second);
    let before = second.applied();
    bench.redis.must(&["ACL", "SETUSER", "standby", "-xrange"]);
    for n in 50..60 {
        bench.push(&engine, n..n + 1).unwrap();
    }
    bench.redis.must(&["FLUSHALL"]);
    // It is answered once the store is written anew, which has a snapshot of all before and an empty log.
    bench.push(&engine, 60..70).unwrap();
    assert_eq!(second.applied(), before, "it could not read");
    bench.redis.must(&["ACL", "SETUSER", "standby", "+xrange"]);
    follows(&bench, &second);
    break_the_log(&bench);
    let rows = durable(&bench, &engine);
    drop(engine);
    bench.crash(&first, "http://first");
    let engine = bench.here(&second);
    assert_eq!(durable(&bench, &engine), rows);
    second.close();
}

#[test]
fn a_standby_whose_rows_are_of_a_store_that_is_gone_begins_anew() {
    if !wanted() {
        return;
    }
    let bench = Bench::start();
    let first = bench.member("http://first");
    let engine = bench.here(&first);
    for n in 0..50 {
        bench.push(&engine, n..n + 1).unwrap();
    }
    let second = bench.member("http://second");
    follows(&bench, &second);
    drop(engine);
    bench.crash(&first, "http://first");
    // All but the id of the store: both that had its entries are gone.
    bench.redis.must(&["DEL", "{shop}:own", "{shop}:log"]);
    let engine = bench.here(&second);
    assert!(!bench.is_there(&engine, 0), "the rows of before are no copy of this store");
    bench.push(&engine, 100..101).unwrap();
    second.close();
}

#[test]
fn rows_that_are_ahead_of_their_store_are_read_anew() {
    if !wanted() {
        return;
    }
    let bench = Bench::start();
    let first = bench.member("http://first");
    let engine = bench.here(&first);
    for n in 0..10 {
        bench.push(&engine, n..n + 1).unwrap();
    }
    let second = bench.member("http://second");
    follows(&bench, &second);
    drop(engine);
    // Nobody answers for the first, and its beat goes on: the second does not take the store.
    bench.network.is_silent.store(true, Ordering::Relaxed);
    first.crash();
    let own = |field: &str, value: &str| bench.redis.must(&["HSET", "{shop}:own", field, value]);
    let ahead = second.applied();
    own("number", "3");
    for number in 4..=ahead {
        bench.redis.must(&["XDEL", "{shop}:log", &format!("{number}-0")]);
    }
    let begun = Instant::now();
    while second.applied() != 3 {
        own("beat", &bench.redis_time().to_string());
        assert!(begun.elapsed() < LONG, "it has {} of 3 entries", second.applied());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_member_that_was_deposed_follows_from_nothing() {
    if !wanted() {
        return;
    }
    let bench = Bench::start();
    let first = bench.member("http://first");
    let engine = bench.here(&first);
    bench.push(&engine, 0..20).unwrap();
    let second = bench.member("http://second");
    follows(&bench, &second);
    assert_eq!(first.applied(), 0, "an owner is no standby");
    bench.network.members.lock().unwrap().remove("http://first");
    let taken = bench.here(&second);
    bench.push(&taken, 20..40).unwrap();
    drop(engine);
    follows(&bench, &first);
    break_the_log(&bench);
    let rows = durable(&bench, &taken);
    drop(taken);
    bench.crash(&second, "http://second");
    let engine = bench.here(&first);
    assert_eq!(durable(&bench, &engine), rows);
    first.close();
}

#[test]
fn the_store_is_handed_to_the_standby_that_is_furthest() {
    if !wanted() {
        return;
    }
    let bench = Bench::start();
    let first = bench.member("http://first");
    let engine = bench.here(&first);
    bench.push(&engine, 0..20).unwrap();
    bench.redis.must(&["ACL", "SETUSER", "behind", "on", ">secret", "~*", "+@all", "-xrange"]);
    let url = bench.redis.url().replace("redis://", "redis://behind:secret@");
    let behind = bench.member_with(&url, "http://behind", |_| {});
    bench.there(&behind, "http://first");
    let second = bench.member("http://second");
    follows(&bench, &second);
    let behind_by = |url: &str| {
        let standbys = first.health().standbys;
        standbys.into_iter().find(|standby| standby.url == url).map(|standby| standby.behind)
    };
    // What a server says of itself it says once a second.
    let begun = Instant::now();
    while behind_by("http://second") != Some(0) {
        assert!(begun.elapsed() < LONG, "{:?}", first.health());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(behind_by("http://behind"), Some(end(&bench)));
    assert_eq!(second.health().standbys, []);
    drop(engine);
    first.close();
    bench.here(&second);
    second.close();
}

/// By hand: how long a takeover takes, with a standby and without.
#[test]
#[ignore = "it takes minutes, and says how long things took"]
fn what_a_takeover_takes() {
    let jobs = std::env::var("TENURE_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    for has_standby in [true, false] {
        let bench = Bench::start();
        let first = bench.member("http://first");
        let engine = bench.here(&first);
        let begun = Instant::now();
        for from in (0..jobs).step_by(1_000) {
            bench.push(&engine, from..(from + 1_000).min(jobs)).unwrap();
        }
        let pushed = begun.elapsed();
        let mut second = has_standby.then(|| bench.member("http://second"));
        if let Some(second) = &second {
            let begun = Instant::now();
            follows(&bench, second);
            println!("{jobs} jobs pushed in {pushed:?}, followed in {:?}", begun.elapsed());
        }
        drop(engine);
        let begun = Instant::now();
        bench.crash(&first, "http://first");
        let crashed = begun.elapsed();
        let second = second.get_or_insert_with(|| bench.member("http://second"));
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

/// By hand: what callers see while their server makes a snapshot of many jobs.
#[test]
#[ignore = "it takes a minute, and says how long things took"]
fn what_a_snapshot_costs_its_owner() {
    let bench = Bench::start();
    let first = bench.member("http://first");
    let engine = bench.here(&first);
    // No two payloads are alike, or the log would be too small for a snapshot.
    let payload = |n: usize| {
        let digits =
            (0..20).map(|i| format!("{:016x}", (n * 20 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        Json::parse(&format!("\"{}\"", digits.collect::<String>())).unwrap()
    };
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
        for from in (0..400_000).step_by(100) {
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
    for (what, took) in ["without", "beside"].iter().zip(&mut took) {
        took.sort();
        let (all, count): (Duration, usize) = (took.iter().sum(), took.len());
        let at = |part: usize| took.get(count * part / 100);
        println!(
            "{what} a snapshot: {count} pushes of 100 in {all:?}; median {:?}, 99 % {:?}, longest {:?}",
            at(50),
            at(99),
            took.last()
        );
    }
}
