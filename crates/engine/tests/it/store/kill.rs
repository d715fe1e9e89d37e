//! A killed process: its answered changes are there when its folder is opened again.
//!
//! The test starts itself again as the process to be killed; that process prints every id that was
//! answered to it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use tenure_core::job::JobState;
use tenure_core::names::JobId;
use tenure_core::requests::*;
use tenure_engine::{Durability, Embedded, Location, Options};
use tenure_testkit::TempDir;

use crate::store::calls::*;

const FOLDER: &str = "TENURE_TEST_KILL_FOLDER";
const DURABILITY: &str = "TENURE_TEST_KILL_DURABILITY";

/// Set where the process to be killed only pushes arrays.
const ARRAYS: &str = "TENURE_TEST_KILL_ARRAYS";
/// Jobs of one array.
const LONG: usize = 200;

fn push_arrays(folder: &str) {
    let engine = Embedded::open(Options::new(Location::Folder(folder.into()))).unwrap();
    block(async {
        for round in 0u64.. {
            let jobs = (0..LONG).map(|n| job(&format!("{}-{round}-{n}", std::process::id())));
            push(&engine, jobs.collect()).await;
            say("pushed", "x", 0);
        }
    });
}

#[test]
fn an_array_that_was_in_flight_is_stored_whole_or_not_at_all() {
    let dir = TempDir::new();
    let folder = dir.join("store");
    for round in 0u64..8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::kill::child", "--nocapture"])
            .env(FOLDER, &folder)
            .env(ARRAYS, "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = lines.map_while(Result::ok).filter(|line| line.starts_with("SAID"));
        assert_eq!(said.take(3).count(), 3);
        // No event shows that a push is half done: each round kills at another time.
        std::thread::sleep(std::time::Duration::from_millis(round * 3));
        child.kill().unwrap();
        child.wait().unwrap();
        let engine = Embedded::open(Options::new(Location::Folder(folder.clone()))).unwrap();
        block(async {
            let there = run(&engine, GetStats).await.unwrap().jobs;
            let ready = there.get(&JobState::Ready).copied().unwrap_or(0);
            assert!(ready >= LONG as u64);
            assert_eq!(ready % LONG as u64, 0, "round {round}: {ready} jobs: an array was torn");
        });
    }
}

/// The process to be killed; does nothing in an ordinary run.
#[test]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let everysec = std::env::var(DURABILITY).is_ok_and(|word| word == "everysec");
    if std::env::var(ARRAYS).is_ok() {
        return push_arrays(&folder);
    }
    let durability = if everysec { Durability::Everysec } else { Durability::Always };
    let options = Options { durability, ..Options::new(Location::Folder(folder.into())) };
    let engine = std::sync::Arc::new(Embedded::open(options).unwrap());
    block(async {
        let tasks: Vec<_> = (0..4)
            .map(|task| {
                let engine = engine.clone();
                tokio::spawn(async move {
                    for round in 0u64.. {
                        let id = |n| format!("{}-{task}-{round}-{n}", std::process::id());
                        let jobs: Vec<_> = (0..5).map(|n| job(&id(n))).collect();
                        push(&engine, jobs).await;
                        say("pushed", &id(0), 5);
                        let leases = take(&engine, 5).await;
                        settle(&engine, leases.iter().map(done).collect()).await;
                        for lease in &leases {
                            say("done", lease.job.as_ref().unwrap().id.as_str(), 0);
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

fn say(what: &str, id: &str, n: usize) {
    let mut out = std::io::stdout().lock();
    // The reader of this kills us: then nothing can be printed any more.
    let _ = writeln!(out, "\nSAID {what} {id} {n}");
    let _ = out.flush();
}

fn start(folder: &str, durability: &str) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::kill::child", "--nocapture"])
        .env(FOLDER, folder)
        .env(DURABILITY, durability)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn kill_and_look(durability: &str) {
    let dir = TempDir::new();
    let folder = dir.join("store");
    let (mut pushed, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for round in 1..=3 {
        let mut child = start(folder.to_str().unwrap(), durability);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let enough = pushed.len() + 400;
        let until = Instant::now() + PATIENCE;
        let mut killed = false;
        // The output of the killed process is read to its end.
        while let Some(Ok(line)) = lines.next() {
            let mut words = line.split(' ');
            if words.next() != Some("SAID") {
                continue;
            }
            let (Some(what), Some(id)) = (words.next(), words.next()) else { continue };
            match what {
                "pushed" => {
                    let stem = id.strip_suffix("-0").unwrap();
                    pushed.extend((0..5).map(|n| format!("{stem}-{n}")));
                }
                _ => drop(ended.insert(id.to_owned())),
            }
            if !killed && (pushed.len() >= enough || Instant::now() > until) {
                child.kill().unwrap();
                killed = true;
            }
        }
        child.wait().unwrap();
        assert!(pushed.len() >= enough, "round {round}: {} jobs", pushed.len());
    }
    let engine = Embedded::open(Options::new(Location::Folder(folder))).unwrap();
    block(async {
        for id in &pushed {
            let job = tenure_core::names::JobRef::Id(JobId::parse(id).unwrap());
            let view = run(&engine, GetJob { job }).await.unwrap();
            if ended.contains(id) {
                assert_eq!(view.state, JobState::Succeeded, "{id}");
                assert_eq!(view.result, Some(text("fine")));
            }
        }
        let audit = run(&engine, Audit::default()).await.unwrap();
        assert!(audit.ok, "{:?}", audit.faults);
    });
}

#[test]
fn what_was_answered_survives_a_kill() {
    kill_and_look("always");
}

#[test]
fn what_was_answered_survives_a_kill_when_synced_every_second() {
    kill_and_look("everysec");
}

#[test]
fn what_is_answered_was_synced_before() {
    block(async {
        let dir = TempDir::new();
        let engine = Embedded::open(Options::new(Location::Folder(dir.join("store")))).unwrap();
        // The number of the commit up to which the log was synced.
        let synced = || {
            let said = std::fs::read_to_string(dir.join("store/synced")).unwrap_or_default();
            said.split(' ').nth(1).map_or(0, |commit| commit.parse::<u64>().unwrap())
        };
        let mut before = synced();
        for n in 0..20 {
            push(&engine, vec![job(&format!("j{n}"))]).await;
            let now = synced();
            assert!(now > before, "push {n} was answered, and the log is synced up to {now}");
            before = now;
        }
    });
}
