//! A disk that flips a bit while the store is closed or killed: the opening is refused with a
//! sentence, or every answered job is there and right, or is named as unreadable. Wrong bytes are never
//! served, and nothing is lost without a word.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tenure_core::job::{JobState, JobView, NewJob};
use tenure_core::lease::Ending;
use tenure_core::names::{JobRef, PoolName, ResourceId};
use tenure_core::requests::*;
use tenure_core::secret::Json;
use tenure_core::settings::{LimitSettings, NewResource};
use tenure_engine::Embedded;
use tenure_engine_api::{CallError, Engine};

use crate::store::calls::*;

const JOBS: usize = 240;

/// The answered view of one job.
#[derive(Clone, PartialEq, Debug)]
struct Told {
    state: JobState,
    payload: Json,
    result: Option<Json>,
}

/// Outcomes of the flips.
#[derive(Default, Debug)]
struct Seen {
    refused: u32,
    /// Every job is right.
    right: u32,
    /// At least one job is unreadable, and named so.
    named: u32,
    /// The engine ended, and reported it: nothing could be written any more.
    stopped: u32,
    /// A job is gone, or is older than it was, without a report.
    lost: Vec<String>,
    wrong: Vec<String>,
}

fn payload(n: usize) -> Json {
    text(&format!("payload {n} {}", "abcdefghij".repeat(10 + n % 40)))
}

/// A store with jobs in all states, and their answered views. `clean`: its log is in the store.
fn made(clean: bool) -> (Here, BTreeMap<String, Told>) {
    block(async {
        let mut here = Here::new();
        here.engine.close();
        // All answered changes are synced.
        here.reopen();
        let engine = &here.engine;
        let limit = tenure_core::names::LimitName::parse("site:a").unwrap();
        let settings = LimitSettings { concurrency: Some(2), ..LimitSettings::default() };
        run(engine, PutLimit { limit, settings, gauge: None }).await.unwrap();
        let id = ResourceId::parse("r").unwrap();
        let resource = NewResource { id, data: text("secret"), tags: vec![], slots: 1 };
        let pool = PoolName::parse("p").unwrap();
        run(engine, AddResources { pool, resources: vec![resource] }).await.unwrap();
        let mut told = BTreeMap::new();
        for n in 0..JOBS {
            let mut new =
                NewJob { payload: payload(n), kind: "k".to_owned(), ..job(&format!("j{n}")) };
            new.labels.insert("n".to_owned(), n.to_string());
            push(engine, vec![new]).await;
            let (mut state, mut result) = (JobState::Ready, None);
            if n % 2 == 0 {
                let lease = take(engine, 1).await.remove(0);
                let end = if n % 8 == 0 {
                    state = JobState::Failed;
                    Ending::Failed { error: format!("no {n}"), retry_in: None, last: true }
                } else {
                    state = JobState::Succeeded;
                    result = Some(text(&format!("result {n}")));
                    Ending::Succeeded { result: result.clone() }
                };
                let id = lease.job.as_ref().unwrap().id.to_string();
                settle(engine, vec![ending(&lease, end)]).await;
                let told: &mut BTreeMap<String, Told> = &mut told;
                if let Some(of) = told.get_mut(&id) {
                    (of.state, of.result) = (state, result);
                    (state, result) = (JobState::Ready, None);
                }
            }
            told.insert(format!("j{n}"), Told { state, payload: payload(n), result });
        }
        if clean {
            engine.close();
        } else {
            engine.crash();
        }
        (here, told)
    })
}

/// A well mixed number of a seed.
fn drawn(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn flip(file: &Path, seed: u64) -> String {
    let mut bytes = std::fs::read(file).unwrap();
    let at = drawn(seed) as usize % bytes.len();
    let bit = drawn(seed ^ 0xb17) % 8;
    bytes[at] ^= 1 << bit;
    std::fs::write(file, bytes).unwrap();
    format!("seed {seed}: bit {bit} of byte {at}")
}

/// True if the store itself reports this job as unreadable.
fn is_named(faults: &[String], id: &str) -> bool {
    let n: usize = id[1..].parse().unwrap();
    let (by_id, by_number) = (format!("job \"{id}\""), format!("job number {} ", n + 1));
    faults.iter().any(|fault| fault.contains(&by_id) || fault.contains(&by_number))
}

/// The answers of a store after a flip.
struct Answered {
    /// The payloads of the jobs that were granted.
    leased: BTreeMap<String, Json>,
    found: Vec<Result<Box<JobView>, CallError>>,
    faults: Vec<String>,
}

async fn asked(engine: &Embedded, told: &BTreeMap<String, Told>) -> Result<Answered, CallError> {
    let mut leased = BTreeMap::new();
    loop {
        let before = leased.len();
        for lease in run(engine, ask(1_000, 0)).await?.leases {
            let job = lease.job.expect("a job");
            leased.insert(job.id.to_string(), job.payload.expect("a payload"));
        }
        if leased.len() == before {
            break;
        }
    }
    let list = ListJobs { filter: JobFilter::default(), page: Page::default(), full: true };
    run(engine, list).await?;
    let mut found = Vec::new();
    for id in told.keys() {
        found.push(run(engine, GetJob { job: JobRef::parse(id).unwrap() }).await);
    }
    let faults = run(engine, Audit::default()).await?.faults;
    Ok(Answered { leased, found, faults })
}

async fn looked(engine: &Embedded, told: &BTreeMap<String, Told>, flip: &str, seen: &mut Seen) {
    let mut unreadable = 0;
    // A tree that cannot be written ends the engine with a report, and rows follow answers: at any call from then on.
    let Ok(Answered { leased, found, faults }) = asked(engine, told).await else {
        let begun = std::time::Instant::now();
        while engine.health().degraded.is_none() {
            assert!(begun.elapsed() < PATIENCE, "{flip}: a call failed, and nothing says why");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        seen.stopped += 1;
        return;
    };
    for ((id, was), is) in told.iter().zip(found) {
        let Ok(view) = is else {
            if is_named(&faults, id) {
                unreadable += 1;
            } else {
                seen.lost.push(format!("{flip}: {id} is gone: {:?}", is.err()));
            }
            continue;
        };
        let says = view.error.as_deref().is_some_and(|error| error.starts_with("unreadable"));
        if says {
            unreadable += 1;
            continue;
        }
        let state = if was.state == JobState::Ready { JobState::Running } else { was.state };
        if view.state != state || view.result.clone().filter(|r| !r.is_null()) != was.result {
            seen.lost.push(format!("{flip}: {id} is {:?} and was {was:?}", view.state));
        } else if view.payload.as_ref() != Some(&was.payload)
            || leased.get(id).is_some_and(|payload| *payload != was.payload)
        {
            seen.wrong.push(format!("{flip}: {id}"));
        }
    }
    if unreadable > 0 {
        seen.named += 1;
    } else {
        seen.right += 1;
    }
}

fn flipped(clean: bool, file: &str, flips: u64) -> Seen {
    let (here, told) = made(clean);
    let from = here.dir.join("store");
    let mut seen = Seen::default();
    for seed in 0..flips {
        let dir = tenure_testkit::TempDir::new();
        let to: PathBuf = dir.join("store");
        copy_folder(&from, &to);
        let what = flip(&to.join(file), seed);
        match Embedded::open(options(&dir, &here.clock)) {
            Err(no) => {
                assert!(no.to_string().contains("; "), "it says what to do next: {no}");
                seen.refused += 1;
            }
            Ok(engine) => block(async {
                looked(&engine, &told, &what, &mut seen).await;
                engine.crash();
            }),
        }
    }
    let Seen { refused, right, named, stopped, lost, wrong } = &seen;
    println!(
        "{flips} flips in {file}: {refused} refused, {right} without effect, {named} with jobs that \
         are named, {stopped} stopped; {} jobs lost, {} wrong",
        lost.len(),
        wrong.len()
    );
    seen
}

fn flips() -> u64 {
    std::env::var("TENURE_FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(25)
}

#[test]
fn a_flipped_bit_in_the_log_loses_nothing_in_silence() {
    let seen = flipped(false, "tenure.db-wal", flips());
    assert!(seen.lost.is_empty() && seen.wrong.is_empty(), "{seen:#?}");
}

#[test]
fn a_flipped_bit_in_the_journal_loses_nothing_in_silence() {
    let seen = flipped(false, "journal/0000000001", flips());
    assert!(seen.lost.is_empty() && seen.wrong.is_empty(), "{seen:#?}");
}

#[test]
fn a_flipped_bit_in_the_store_serves_no_wrong_bytes() {
    let seen = flipped(true, "tenure.db", flips());
    assert!(seen.lost.is_empty() && seen.wrong.is_empty(), "{seen:#?}");
}
