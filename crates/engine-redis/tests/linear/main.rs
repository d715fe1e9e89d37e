//! Concurrent histories: threads of several processes fight over a few locks and jobs, with calls that are
//! repeated, given up and cut off, and Redis killed meanwhile. Whether what they were answered could have
//! come to pass one call after the other is decided by [`search`], on models that know nothing of how
//! Tenure does it.
//!
//! `TENURE_LINEAR_SECONDS=600` is a soak; without it each variant takes some seconds. A history that is not as it should
//! be is kept in a folder; `TENURE_LINEAR_FOLDER=… one_history_that_was_kept --ignored` looks at it again.

mod client;
mod history;
mod job;
mod lock;
mod process;
#[path = "../link/proxy.rs"]
#[expect(dead_code, reason = "the link's own tests use more of it")]
mod proxy;
mod samples;
mod search;
mod terms;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use tenure_core::names::Namespace;
use tenure_core::requests::Audit;
use tenure_engine::{CallError, EngineExt, Fault};
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine};
use tenure_testkit::Dice;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use history::{Answer, Call, Event, NEVER};
use process::Told;
use search::Verdict;

const SECONDS: &str = "TENURE_LINEAR_SECONDS";
/// Without it.
const SECONDS_USUAL: u64 = 12;
const PROCESSES: u64 = 3;
/// One history lasts so long: its objects are its own, so that each can be searched.
const LASTS: Duration = Duration::from_secs(3);
/// With kills of Redis between, which takes its time.
const LASTS_KILLED: Duration = Duration::from_secs(4);
/// A process ends within this after its time.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// Not a test: one of the processes of the tests below, which start this program again.
#[test]
#[ignore = "a process of the histories, started by them"]
fn one_process_of_the_histories() {
    process::run();
}

#[test]
fn what_threads_and_processes_are_answered_is_linearizable() {
    if wanted() {
        histories(Aof::Off, LASTS);
    }
}

#[test]
fn what_they_are_answered_is_linearizable_across_kills_of_redis() {
    if wanted() {
        histories(Aof::Always, LASTS_KILLED);
    }
}

/// Not a test: looks again at a history that was kept in a folder because it is none.
#[test]
#[ignore = "looks at the folder that TENURE_LINEAR_FOLDER names"]
fn one_history_that_was_kept() {
    let folder = std::env::var_os("TENURE_LINEAR_FOLDER").expect("TENURE_LINEAR_FOLDER names it");
    let faults = faults(&history::read(Path::new(&folder)));
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

fn histories(aof: Aof, lasts: Duration) {
    let told = std::env::var(SECONDS).ok();
    let all: u64 = told.map_or(SECONDS_USUAL, |text| {
        text.parse().unwrap_or_else(|_| panic!("{SECONDS}={text} is no number"))
    });
    let seed = history::now_us() | 1;
    let (mut dice, begin) = (Dice(seed), Instant::now());
    let mut server = RedisServer::start(aof, &[]);
    let (mut played, mut calls, mut open) = (0, 0, 0);
    while played == 0 || begin.elapsed() + lasts < Duration::from_secs(all) {
        let folder = tempfile::Builder::new().prefix("tenure-linear-").tempdir();
        let folder = folder.expect("a folder of its own");
        let told = Told { port: server.port(), history: played, seed: dice.below(u64::MAX), lasts };
        play(&mut server, aof, folder.path(), told, &mut dice);
        let events = history::read(folder.path());
        let faults = faults(&events);
        if !faults.is_empty() {
            let kept = folder.keep();
            panic!(
                "{}\nseed {seed}, all that was written: {}",
                faults.join("\n\n"),
                kept.display()
            );
        }
        played += 1;
        calls += events.len();
        open += events.iter().filter(|event| event.is_open()).count();
    }
    println!("seed {seed}: {played} histories of {calls} calls, {open} without an answer");
    assert!(calls as u64 > 500 * played, "next to nothing was called");
}

/// One history: its processes run to their end, and the store is whole.
fn play(server: &mut RedisServer, aof: Aof, folder: &Path, told: Told, dice: &mut Dice) {
    let begin = Instant::now();
    let start = |n| {
        // The requests of an earlier history are remembered by their names.
        let name = format!("h{}p{n}", told.history);
        process::start(&name, folder, Told { seed: told.seed.wrapping_add(n), ..told })
    };
    let mut children: Vec<_> = (0..PROCESSES).map(start).collect();
    if aof == Aof::Always {
        let third = u64::try_from(told.lasts.as_millis()).unwrap_or(0) / 3;
        for _ in 0..2 {
            std::thread::sleep(Duration::from_millis(third / 2 + dice.below(third)));
            server.kill();
            server.restart();
        }
    }
    for child in &mut children {
        loop {
            match child.try_wait().expect("it can be waited for") {
                Some(status) => break assert!(status.success(), "a process broke: {status}"),
                None if begin.elapsed() > told.lasts + ENDS_WITHIN => {
                    let _ = child.kill();
                    panic!("a process does not end");
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(is_whole(server));
}

async fn is_whole(server: &RedisServer) {
    let address = Address::parse(&server.url()).expect("the address of the fixture is one");
    let engine = RedisEngine::open(Options::new(address)).expect("an engine can be opened");
    let begin = Instant::now();
    loop {
        match engine.run(&Namespace::main(), Audit::default()).await {
            Ok(audit) => return assert!(audit.ok && audit.faults.is_empty(), "{:?}", audit.faults),
            Err(CallError::Fault(Fault::Unavailable(_) | Fault::Unknown(_)))
                if begin.elapsed() < ENDS_WITHIN =>
            {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(why) => panic!("the audit was not answered: {why}"),
        }
    }
}

/// What is wrong with a history: of each object by itself, and of all together.
fn faults(events: &[Event]) -> Vec<String> {
    let mut of_each: BTreeMap<&str, Vec<Event>> = BTreeMap::new();
    for event in events {
        of_each.entry(&event.object).or_default().push(event.clone());
    }
    let mut faults: Vec<_> = fences_that_do_not_rise(events).into_iter().collect();
    for (object, mut events) in of_each {
        events.sort_by_key(|event| event.begin);
        let why = match verdict(&events) {
            Verdict::Linearizable => continue,
            Verdict::Undecided => {
                faults.push(format!("{object}: {} calls are too many to search", events.len()));
                continue;
            }
            Verdict::Not => {
                search::smallest(&events, lease_of(&events), |part| verdict(part) == Verdict::Not)
            }
        };
        let lines: Vec<_> = why.iter().map(|event| format!("  {event}")).collect();
        faults.push(format!("{object} is not linearizable:\n{}", lines.join("\n")));
    }
    faults
}

/// Whether the history of one object is linearizable.
fn verdict(events: &[Event]) -> Verdict {
    let is_lock = |event: &Event| event.object.starts_with("lock:");
    match events.iter().any(is_lock) {
        true => search::search(&lock::Lock::new(events), events),
        false => search::search(&job::Jobs::new(events), events),
    }
}

/// The fence of the lease that a call about a lock is about. The leases of a job count its attempts: none can
/// be left out.
fn lease_of(events: &[Event]) -> impl Fn(&Event) -> Option<u64> {
    let granted: BTreeMap<_, _> = events
        .iter()
        .filter_map(|event| match (&event.call, &event.answer) {
            (Call::Lease { request, .. }, Some(Answer::Granted { fence, job: None })) => {
                Some((request.clone(), *fence))
            }
            _ => None,
        })
        .collect();
    let all: BTreeSet<_> = granted.values().copied().collect();
    move |event| match &event.call {
        Call::Lease { request, .. } => granted.get(request).copied(),
        Call::Extend { fence } | Call::Settle { fence, .. } => {
            all.contains(fence).then_some(*fence)
        }
        _ => None,
    }
}

/// Fences rise over all objects: one that was known before a grant was asked for is lower than it.
fn fences_that_do_not_rise(events: &[Event]) -> Option<String> {
    let mut first: BTreeMap<u64, (&Event, u64)> = BTreeMap::new();
    let mut by_request: BTreeMap<&str, u64> = BTreeMap::new();
    for event in events {
        // A repeat may be answered with what was granted to a call before it.
        if let Call::Lease { request, .. } = &event.call {
            let begin = by_request.entry(request).or_insert(NEVER);
            *begin = event.begin.min(*begin);
        }
    }
    for event in events {
        if let (Call::Lease { request, .. }, Some(Answer::Granted { fence, .. })) =
            (&event.call, &event.answer)
        {
            let asked = by_request[request.as_str()];
            let known = first.entry(*fence).or_insert((event, asked));
            if known.0.object != event.object {
                return Some(format!("one fence for two grants:\n  {}\n  {event}", known.0));
            }
            if event.end < known.0.end {
                known.0 = event;
            }
        }
    }
    let mut soonest: Option<(&Event, u64)> = None;
    // From the highest fence to the lowest: none of the higher may be over before a lower was asked for.
    for (_, (event, asked)) in first.iter().rev() {
        if let Some((higher, end)) = soonest
            && end < *asked
        {
            return Some(format!("a fence went back:\n  {higher}\n  {event}"));
        }
        if soonest.is_none_or(|(_, end)| event.end < end) {
            soonest = Some((event, event.end));
        }
    }
    None
}
