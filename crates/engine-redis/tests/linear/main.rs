//! Concurrent histories: threads of several processes fight over a few locks and jobs, with calls that are
//! repeated, given up and cut off, and Redis killed meanwhile. Whether what they were answered could have
//! come to pass one call after the other is decided by [`search`], on models that know nothing of how
//! Tenure does it.
//!
//! `TENURE_LINEAR_SECONDS=600` is a soak; without it each variant takes some seconds. A history that is not as it should
//! be is kept in a folder; `TENURE_LINEAR_FOLDER=… one_history_that_was_kept --ignored` looks at it again.

#[path = "../../../cli/tests/linear/client.rs"]
mod client;
#[path = "../../../cli/tests/linear/faults.rs"]
mod faults;
#[path = "../../../cli/tests/linear/history.rs"]
mod history;
#[path = "../../../cli/tests/linear/job.rs"]
mod job;
#[path = "../../../cli/tests/linear/lock.rs"]
mod lock;
mod process;
#[path = "../link/proxy.rs"]
#[expect(dead_code, reason = "the link's own tests use more of it")]
mod proxy;
#[path = "../../../cli/tests/linear/samples.rs"]
mod samples;
#[path = "../../../cli/tests/linear/search.rs"]
mod search;
#[path = "../../../cli/tests/linear/terms.rs"]
mod terms;

use std::path::Path;
use std::time::{Duration, Instant};

use tenure_core::names::Namespace;
use tenure_core::requests::Audit;
use tenure_engine::{CallError, EngineExt, Fault};
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine};
use tenure_testkit::Dice;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use faults::faults;
use process::Told;

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
