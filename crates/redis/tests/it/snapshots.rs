//! Snapshots of a real store in Redis: written in pieces, installed, read back, and never half.

use std::sync::Arc;
use std::time::Instant;

use tenure_core::job::NewJob;
use tenure_core::names::{JobId, JobRef, Namespace, QueueName};
use tenure_core::redis_address::Address;
use tenure_core::requests::*;
use tenure_core::secret::Json;
use tenure_engine::{Embedded, Location, Options, Replica};
use tenure_engine_api::EngineExt;
use tenure_journal::memory::MemorySnapshot;
use tenure_journal::{Journal, ReadError, Snapshot};
use tenure_redis::{
    Generation, RedisJournal, RedisStore, RunNote, ScriptReply, SnapshotName, SnapshotTurn,
    WriteError,
};
use tenure_testkit::needs_redis;
use tenure_testkit::redis::{Aof, RedisServer};

/// An engine that leads a store in Redis.
struct Here {
    redis: RedisServer,
    journal: Arc<RedisJournal>,
    engine: Embedded,
}

fn acquired(redis: &RedisServer, leader: u128) -> Arc<RedisJournal> {
    let store = RedisStore::open(Address::parse(&redis.url()).unwrap(), "shop").unwrap();
    Arc::new(RedisJournal::acquire(store, leader, 7).unwrap())
}

fn opened(journal: &Arc<RedisJournal>) -> Embedded {
    let journal: Arc<dyn Journal> = journal.clone();
    Embedded::open(Options { journal: Some(journal), ..Options::new(Location::Memory) }).unwrap()
}

impl Here {
    fn new() -> Here {
        let redis = RedisServer::start(Aof::Off, &[]);
        let journal = acquired(&redis, 1);
        let engine = opened(&journal);
        Here { redis, journal, engine }
    }

    fn push(&self, ids: std::ops::Range<u32>, payload: impl Fn(u32) -> String) {
        let job = |n| NewJob {
            id: Some(JobId::parse(&uuid(n)).unwrap()),
            payload: Json::parse(&payload(n)).unwrap(),
            ..NewJob::new(QueueName::parse("mail").unwrap())
        };
        for from in ids.clone().step_by(500) {
            let jobs = (from..ids.end.min(from + 500)).map(job).collect();
            let push = Push { jobs, answer: PushAnswer::Ids };
            block(self.engine.run(&Namespace::main(), push)).unwrap();
        }
    }

    fn write(&self, count: u64) -> SnapshotName {
        let by = self.journal.term();
        let generation = Generation { epoch: by.epoch, count };
        let mut rows = self.engine.snapshot().unwrap();
        self.journal.store().write_snapshot(by, generation, &mut rows).unwrap()
    }

    fn turn(&self, snapshot: SnapshotName) -> ScriptReply {
        let by = self.journal.term().clone();
        let (heals, note) = (false, RunNote::Stays);
        let turn = SnapshotTurn { by, snapshot, heals, moment: 0, ttl: 0, note };
        self.journal.store().turn(&turn).unwrap()
    }

    fn turned(&self, count: u64) -> SnapshotName {
        let name = self.write(count);
        assert!(matches!(self.turn(name), ScriptReply::Done { .. }));
        name
    }
}

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// As random as the ids of jobs.
fn uuid(n: u32) -> String {
    let hash =
        u128::from(n).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let hex = format!("{hash:032x}");
    format!("01997a3c-{}-7{}-{}-{}", &hex[..4], &hex[4..7], &hex[7..11], &hex[11..23])
}

/// 100 bytes; some of them are the same in each job.
fn mail(n: u32) -> String {
    let hash = u64::from(n).wrapping_add(3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let text = format!(
        "{{\"to\":\"user{hash:016x}@example.com\",\"template\":\"welcome\",\"n\":{n},\"locale\":\"en\""
    );
    format!("{text:<99}}}")
}

/// So many jobs with such payloads take several pieces.
const FEW: u32 = 4_000;

/// A payload that cannot be compressed.
fn noise(n: u32) -> String {
    let text: String = (0..30).map(|at| uuid(30 * n + at)).collect();
    format!("\"{text}\"")
}

fn finds(engine: &Embedded, n: u32) -> bool {
    let job = JobRef::parse(&uuid(n)).unwrap();
    block(engine.run(&Namespace::main(), GetJob { job })).is_ok()
}

#[test]
fn a_store_is_loaded_from_its_snapshot_and_the_entries_after_it() {
    needs_redis!();
    let here = Here::new();
    here.push(0..2_000, mail);
    let first = here.turned(1);
    here.push(2_000..2_100, mail);
    here.engine.close();
    let store = here.journal.store();
    assert_eq!(store.read(0), Err(ReadError::InSnapshot { number: 1 }));
    let tip = first.tip.number;
    assert_eq!(store.read(tip - 1), Err(ReadError::InSnapshot { number: tip }));
    assert_eq!(store.read(tip).unwrap().len(), 1);
    let engine = opened(&acquired(&here.redis, 2));
    for n in [0, 1_999, 2_000, 2_099] {
        assert!(finds(&engine, n), "job {n}");
    }
    assert!(!finds(&engine, 2_100));
}

#[test]
fn a_snapshot_takes_few_bytes_of_redis() {
    needs_redis!();
    const JOBS: u32 = 20_000;
    let here = Here::new();
    here.push(0..JOBS, mail);
    let name = here.turned(1);
    let piece = |index| here.journal.store().keys().piece(name.generation, index);
    let memory: u64 = (0..name.pieces)
        .map(|index| {
            let words = ["MEMORY", "USAGE", &piece(index)];
            here.redis.must(&words).text().parse::<u64>().unwrap()
        })
        .sum();
    let each = memory / u64::from(JOBS);
    assert!(each <= 150, "{each} bytes for each waiting job");
    assert!(name.pieces >= 2 && name.bytes <= memory && memory < name.bytes * 5 / 4);
}

#[test]
fn a_missing_or_damaged_chunk_is_an_error_and_never_an_end() {
    needs_redis!();
    let here = Here::new();
    here.push(0..FEW, noise);
    let name = here.turned(1);
    assert!(name.pieces >= 3, "{} pieces", name.pieces);
    let key = |index| here.journal.store().keys().piece(name.generation, index);
    let read = || {
        let mut snapshot = here.journal.store().snapshot().unwrap().unwrap();
        while snapshot.next_part()?.is_some() {}
        Ok::<(), ReadError>(())
    };
    read().unwrap();
    for index in 0..name.pieces {
        here.redis.must(&["RENAME", &key(index), "{shop}:kept"]);
        let missing = format!("piece {} of {} is missing", index + 1, name.pieces);
        assert_eq!(read(), Err(ReadError::Snapshot(missing)));
        here.redis.must(&["COPY", "{shop}:kept", &key(index)]);
        read().unwrap();
        let length = here.redis.must(&["STRLEN", &key(index)]).text();
        for at in ["0", "500", "70000"] {
            here.redis.must(&["SETRANGE", &key(index), at, "damaged"]);
            let said = read();
            assert!(matches!(said, Err(ReadError::Snapshot(_))), "piece {index} at {at}: {said:?}");
        }
        here.redis.must(&["COPY", "{shop}:kept", &key(index), "REPLACE"]);
        here.redis.must(&["APPEND", &key(index), "more"]);
        assert!(matches!(read(), Err(ReadError::Snapshot(_))), "{length} bytes and 4 more");
        here.redis.must(&["COPY", "{shop}:kept", &key(index), "REPLACE"]);
    }
    read().unwrap();
    let mut replica = Replica::open(&Options::new(Location::Memory)).unwrap();
    here.redis.must(&["DEL", &key(1)]);
    let no = replica.catch_up(&*here.journal).unwrap_err().to_string();
    assert!(no.contains("piece 2 of"), "{no}");
}

#[test]
fn a_snapshot_replaced_while_it_is_read_is_read_again() {
    needs_redis!();
    let here = Here::new();
    here.push(0..FEW, noise);
    let first = here.turned(1);
    let mut reading = here.journal.store().snapshot().unwrap().unwrap();
    reading.next_part().unwrap().unwrap();
    here.push(FEW..FEW + 10, mail);
    here.turned(2);
    let by = here.journal.term();
    let store = here.journal.store();
    let said = store.unlink_snapshot(by, first.generation, first.pieces).unwrap();
    assert!(matches!(said, Some(ScriptReply::Done { .. })));
    let end = loop {
        match reading.next_part() {
            Ok(Some(_)) => {}
            other => break other,
        }
    };
    assert_eq!(end.err(), Some(ReadError::Turned));
    let mut replica = Replica::open(&Options::new(Location::Memory)).unwrap();
    replica.catch_up(&*here.journal).unwrap();
    assert_eq!(replica.position(), store.look().unwrap().own.unwrap().tip);
}

#[test]
fn only_the_leader_writes_chunks_and_named_ones_are_kept() {
    needs_redis!();
    let here = Here::new();
    here.push(0..3_000, mail);
    let name = here.turned(1);
    let store = here.journal.store();
    let by = here.journal.term().clone();
    let unlink = || store.unlink_snapshot(&by, name.generation, name.pieces).unwrap();
    assert_eq!(unlink(), Some(ScriptReply::Refused));
    let other = acquired(&here.redis, 2);
    let generation = Generation { epoch: by.epoch, count: 2 };
    let mut rows = here.engine.snapshot().unwrap();
    let no = store.write_snapshot(&by, generation, &mut rows);
    assert!(matches!(no, Err(WriteError::Refused(ScriptReply::Fenced))), "{no:?}");
    assert_eq!(unlink(), Some(ScriptReply::Fenced));
    assert_eq!(other.store().look().unwrap().own.unwrap().snapshot, Some(name));
}

#[test]
fn chunks_left_by_a_dead_leader_go_with_the_next_snapshot() {
    needs_redis!();
    let here = Here::new();
    here.push(0..FEW, noise);
    let first = here.turned(1);
    here.engine.close();
    let by = here.journal.term().clone();
    // It dies between the pieces of its next snapshot.
    let mut parts = MemorySnapshot::of(&mut here.journal.store().snapshot().unwrap().unwrap());
    let broken = ReadError::Away("it died".to_owned());
    let mut half = parts.as_mut().unwrap().clone().failing(10, broken.clone());
    let generation = Generation { epoch: by.epoch, count: 2 };
    let no = here.journal.store().write_snapshot(&by, generation, &mut half);
    assert!(matches!(&no, Err(WriteError::Parts(why)) if *why == broken), "{no:?}");
    let pieces = || here.redis.must(&["KEYS", "{shop}:snap:*"]).list().len();
    assert!(pieces() > first.pieces as usize);
    let next = acquired(&here.redis, 2);
    let by = next.term().clone();
    let generation = Generation { epoch: by.epoch, count: 1 };
    let second = next.store().write_snapshot(&by, generation, &mut parts.unwrap()).unwrap();
    assert_eq!(pieces(), (first.pieces + second.pieces) as usize);
    let (heals, note) = (false, RunNote::Stays);
    let turn = SnapshotTurn { by: by.clone(), snapshot: second, heals, moment: 0, ttl: 0, note };
    assert!(matches!(next.store().turn(&turn).unwrap(), ScriptReply::Done { .. }));
    assert_eq!(next.store().look().unwrap().own.unwrap().writing, None);
    next.store().unlink_snapshot(&by, first.generation, first.pieces).unwrap();
    assert_eq!(pieces(), second.pieces as usize);
}

#[test]
fn entries_after_a_lost_end_are_an_error_and_no_shorter_store() {
    needs_redis!();
    let here = Here::new();
    here.push(0..1_200, mail);
    here.engine.close();
    here.redis.must(&["DEL", "{shop}:own"]);
    let journal: Arc<dyn Journal> = acquired(&here.redis, 2);
    let options = Options { journal: Some(journal), ..Options::new(Location::Memory) };
    let no = Embedded::open(options).unwrap_err().to_string();
    assert!(no.contains("it says that it ends at entry 0, and holds entries up to"), "{no}");
}

/// By hand, in a release build: the cost of a snapshot of many jobs.
#[test]
#[ignore = "it takes a minute, and says how long things took"]
fn what_a_million_jobs_cost() {
    let jobs: u32 =
        std::env::var("TENURE_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let here = Here::new();
    here.push(0..jobs, mail);
    let log = here.redis.must(&["MEMORY", "USAGE", "{shop}:log", "SAMPLES", "0"]).text();
    let begun = Instant::now();
    let mut rows = here.engine.snapshot().unwrap();
    let mut plain = 0;
    while let Some(part) = rows.next_part().unwrap() {
        plain += part.bytes().len();
    }
    println!("read from the rows: {:?}, {plain} bytes, log {log} bytes", begun.elapsed());
    let begun = Instant::now();
    let name = here.turned(1);
    println!("written: {:?}, {} bytes in {} pieces", begun.elapsed(), name.bytes, name.pieces);
    here.engine.close();
    let mut snapshot = here.journal.store().snapshot().unwrap().unwrap();
    let begun = Instant::now();
    while snapshot.next_part().unwrap().is_some() {}
    println!("read from Redis: {:?}", begun.elapsed());
    let journal = acquired(&here.redis, 2);
    let mut replica = Replica::open(&Options::new(Location::Memory)).unwrap();
    let begun = Instant::now();
    replica.catch_up(&*journal).unwrap();
    println!("rows restored: {:?}", begun.elapsed());
    let begun = Instant::now();
    let engine = opened(&journal);
    println!(
        "opened anew: {:?}, of which the machine {:?}",
        begun.elapsed(),
        engine.recovery().took
    );
}
