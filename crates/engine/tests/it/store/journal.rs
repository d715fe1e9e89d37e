//! A journal that appends: every answered change can be rebuilt from its entries, by every way of loading them.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use tenure_core::names::{JobId, JobRef, Namespace};
use tenure_core::requests::*;
use tenure_core::time::Span;
use tenure_engine::{Embedded, Location, OpenError, Options, Replica};
use tenure_engine_api::CallError;
use tenure_journal::memory::{Fate, MemoryJournal, MemorySnapshot};
use tenure_journal::{Append, Appended, BadEntry, JournalEntry, Position, Snapshot};
use tenure_testkit::{TempDir, TestClock};

use crate::store::calls::*;
use crate::store::crashes::{Step, Story, step};

pub fn options_in(folder: &Path, clock: &Arc<TestClock>) -> Options {
    Options { clock: clock.clone(), ..Options::new(Location::Folder(folder.to_owned())) }
}

pub fn appending(options: Options, journal: &Arc<MemoryJournal>) -> Options {
    Options { journal: Some(journal.clone()), ..options }
}

/// An engine over rows of its own that appends to this journal.
pub fn owner(journal: &Arc<MemoryJournal>) -> Here {
    let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
    let engine = Embedded::open(appending(options_in(&dir.join("rows"), &clock), journal)).unwrap();
    Here { dir, clock, engine }
}

/// All rows of a store that no process has open, and the number of the last commit.
pub fn dump(folder: &Path) -> Vec<String> {
    let conn = Connection::open(folder.join("tenure.db")).unwrap();
    let mut lines = Vec::new();
    let tables = ["job", "life", "row", "resource_data", "stream", "event"];
    let tables = tables.map(|table| (table, format!("SELECT * FROM {table} ORDER BY 1, 2, 3")));
    let commit = ("store", "SELECT * FROM store WHERE key = 'commit'".to_owned());
    // Only the order of a job's errors counts: a snapshot renumbers them.
    let errors = "SELECT seq, row_number() OVER (PARTITION BY seq ORDER BY n), attempt, at, error, lost FROM job_error
                  ORDER BY 1, 2";
    for (table, sql) in tables.into_iter().chain([commit, ("job_error", errors.to_owned())]) {
        let mut all = conn.prepare(&sql).unwrap();
        let columns = all.column_count();
        let mut rows = all.query(params_from_iter::<[Value; 0]>([])).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values: Vec<Value> = (0..columns).map(|column| row.get(column).unwrap()).collect();
            lines.push(format!("{table} {values:?}"));
        }
    }
    lines
}

fn differs(what: &str, one: &[String], other: &[String]) -> Result<(), String> {
    let lacks = |a: &[String], b: &[String]| -> Vec<String> {
        a.iter().filter(|line| !b.contains(line)).cloned().collect()
    };
    let (lost, new) = (lacks(one, other), lacks(other, one));
    if one == other { Ok(()) } else { Err(format!("{what}:\nlost: {lost:#?}\nnew: {new:#?}")) }
}

/// Rows made of entries, applied in portions.
fn replica(folder: &Path, clock: &Arc<TestClock>, portions: &[&[JournalEntry]]) -> Vec<String> {
    let mut replica = Replica::open(&options_in(folder, clock)).unwrap();
    for entries in portions {
        replica.apply(entries).unwrap();
    }
    drop(replica);
    dump(folder)
}

/// The durable state of a machine over these rows, after a clean audit of every namespace.
async fn machine(
    folder: &Path,
    clock: &Arc<TestClock>,
    entries: &[JournalEntry],
) -> Result<Vec<String>, String> {
    machine_of(folder, clock, &Arc::new(MemoryJournal::with(entries.to_vec()))).await
}

async fn machine_of(
    folder: &Path,
    clock: &Arc<TestClock>,
    journal: &Arc<MemoryJournal>,
) -> Result<Vec<String>, String> {
    let engine = Embedded::open(appending(options_in(folder, clock), journal)).unwrap();
    engine.settled().await;
    let lines = engine.durable().await;
    for namespace in namespaces() {
        let audit = run_in(&engine, &namespace, Audit::default()).await.unwrap();
        if !audit.ok {
            return Err(format!("{namespace}: {:?}", audit.faults));
        }
    }
    engine.crash();
    Ok(lines)
}

fn namespaces() -> [Namespace; 3] {
    [Namespace::main(), Namespace::parse("one").unwrap(), Namespace::parse("two").unwrap()]
}

/// Compares rows and machines from a snapshot and the later entries with those from all entries.
async fn from_snapshot(
    here: &Here,
    entries: &[JournalEntry],
    (at, last): (usize, usize),
    name: &str,
) -> Result<(), String> {
    let (dir, clock) = (&here.dir, &here.clock);
    let folder = |of: &str| dir.join(format!("{name}-{of}"));
    let rows = replica(&folder("taken"), clock, &[&entries[..at]]);
    let taken = taken(&folder("taken"), clock);
    let whole = replica(&folder("whole"), clock, &[&entries[..last]]);
    let what = |of: &str| format!("{of} at entry {last} by a snapshot at entry {at}");

    let alone = journal_from(&taken, &entries[..at]);
    differs(&what("the snapshot's rows"), &rows, &followed(&folder("alone"), clock, &alone))?;
    let again = self::taken(&folder("alone"), clock);
    if again.parts() != taken.parts() {
        return Err(what("another snapshot of the restored rows"));
    }
    let journal = journal_from(&taken, &entries[..last]);
    differs(&what("rows"), &whole, &followed(&folder("new"), clock, &journal))?;
    // Rows that are behind the snapshot are replaced by it.
    replica(&folder("old"), clock, &[&entries[..at / 2]]);
    differs(&what("older rows"), &whole, &followed(&folder("old"), clock, &journal))?;
    let one = machine(&folder("whole"), clock, &entries[..last]).await?;
    differs(&what("a machine"), &one, &machine_of(&folder("direct"), clock, &journal).await?)
}

/// A snapshot of rows that no process has open.
pub fn taken(folder: &Path, clock: &Arc<TestClock>) -> MemorySnapshot {
    let replica = Replica::open(&options_in(folder, clock)).unwrap();
    MemorySnapshot::of(&mut replica.snapshot().unwrap()).unwrap()
}

/// A journal that has the snapshot, and only the entries behind it.
pub fn journal_from(snapshot: &MemorySnapshot, entries: &[JournalEntry]) -> Arc<MemoryJournal> {
    let journal = MemoryJournal::with(entries.to_vec());
    journal.turn(snapshot.clone());
    Arc::new(journal)
}

/// Rows that were brought up to a journal.
pub fn followed(
    folder: &Path,
    clock: &Arc<TestClock>,
    journal: &Arc<MemoryJournal>,
) -> Vec<String> {
    Replica::open(&options_in(folder, clock)).unwrap().catch_up(&**journal).unwrap();
    dump(folder)
}

/// Sets the fates of the next appends, in turn.
fn fates(of: &[u8], journal: &MemoryJournal) {
    let of = of.to_vec();
    let mut next = 0..;
    journal.fates(move |_| match next.next().map_or(0, |n: usize| of[n % of.len()]) {
        0 => Fate::ReplyLost,
        1 => Fate::Lost,
        2 => Fate::Late,
        3 => Fate::Twice,
        _ => Fate::Arrives,
    });
}

#[derive(Clone, Debug)]
struct History {
    steps: Vec<(usize, Step)>,
    line: Vec<u8>,
    /// The places where rows are compared, as parts of the whole journal.
    cuts: Vec<prop::sample::Index>,
}

async fn play(history: &History) -> Result<(), String> {
    let journal = Arc::new(MemoryJournal::default());
    let here = &owner(&journal);
    fates(&history.line, &journal);
    let mut stories = Vec::new();
    for namespace in namespaces() {
        stories.push(Story::begin(here, namespace).await);
    }
    for (namespace, step) in &history.steps {
        stories[*namespace].step(here, step).await;
    }
    here.engine.settled().await;
    let lines = here.engine.durable().await;
    // Rows follow the answers: a snapshot has them all.
    here.engine.snapshot().map_err(|why| why.to_string())?;
    here.engine.crash();

    let entries = journal.entries();
    let (clock, dir, whole) = (&here.clock, &here.dir, entries.len());
    let owners = dump(&dir.join("rows"));
    differs("the owner's rows and those of a replica", &owners, &{
        replica(&dir.join("whole"), clock, &[&entries])
    })?;
    differs("the owner's machine and one over its rows", &lines, &{
        machine(&dir.join("rows"), clock, &entries).await?
    })?;
    differs("the owner's machine and one over a replica", &lines, &{
        machine(&dir.join("whole"), clock, &entries).await?
    })?;
    differs("the owner's machine and one over entries alone", &lines, &{
        machine(&dir.join("entries"), clock, &entries).await?
    })?;
    for (n, cuts) in history.cuts.chunks(2).enumerate() {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(whole + 1)).collect();
        cuts.sort_unstable();
        let (first, last) = (cuts[0], cuts[cuts.len() - 1]);
        let (at_once, in_two) = (dir.join(format!("a{n}")), dir.join(format!("b{n}")));
        let one = replica(&at_once, clock, &[&entries[..last]]);
        // The second portion repeats some of the first.
        let other = replica(&in_two, clock, &[&entries[..first], &entries[first / 2..last]]);
        differs(
            &format!("rows at entry {last}, and those at {first} with the rest"),
            &one,
            &other,
        )?;
        let one = machine(&at_once, clock, &entries[..last]).await?;
        let fresh = dir.join(format!("c{n}"));
        let other = machine(&fresh, clock, &entries[..last]).await?;
        differs(&format!("machines over rows at entry {last}, and over entries"), &one, &other)?;
        // Rows of an earlier entry are brought up to the journal when they are opened.
        let earlier = dir.join(format!("d{n}"));
        replica(&earlier, clock, &[&entries[..first]]);
        let other = machine(&earlier, clock, &entries[..last]).await?;
        differs(&format!("machines over rows at {last}, and at {first}"), &one, &other)?;
        from_snapshot(here, &entries, (first, last), &format!("s{n}")).await?;
    }
    Ok(())
}

#[test]
fn all_ways_to_load_after_a_crash_give_equal_rows_and_machines() {
    let cases = std::env::var("TENURE_HISTORIES").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let history = (
        proptest::collection::vec((0..namespaces().len(), step()), 1..120),
        proptest::collection::vec(0u8..20, 1..12),
        proptest::collection::vec(any::<prop::sample::Index>(), 4),
    );
    let history = history.prop_map(|(steps, mut line, cuts)| {
        // At least one append has to arrive.
        line.push(u8::MAX);
        History { steps, line, cuts }
    });
    let played = runner.run(&history, |history| block(play(&history)).map_err(TestCaseError::fail));
    played.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn the_journal_has_all_answered_calls_after_a_crash_in_appends() {
    let (mut ahead, mut copies) = (0, 0);
    for round in 0..24u64 {
        let journal = Arc::new(MemoryJournal::default());
        let here = owner(&journal);
        block(async {
            here.engine.settled().await;
            let begun = journal.begun().len();
            // From some append on none arrives, but their rows are written.
            let mut left = round % 6;
            journal.fates(move |append| match append {
                Append::Entry { .. } if left == 0 => Fate::Lost,
                _ => {
                    left = left.saturating_sub(1);
                    if round % 2 == 0 { Fate::Arrives } else { Fate::Twice }
                }
            });
            let calls: Vec<_> = (0..12)
                .map(|n| {
                    let jobs = vec![job(&format!("{n}"))];
                    tokio::spawn(here.engine.call_of(Push { jobs, answer: PushAnswer::Ids }))
                })
                .collect();
            // Each round waits among more appends; there may be only one, for all calls.
            assert!(journal.wait_for_begun(begun + 1, PATIENCE));
            match round % 6 {
                // No append arrives.
                0 => rows_came(&here).await,
                _ => {
                    for _ in 0..round * 50 {
                        tokio::task::yield_now().await;
                    }
                }
            }
            here.engine.crash();
            let mut answered = Vec::new();
            for (n, call) in calls.into_iter().enumerate() {
                if call.await.unwrap().is_ok() {
                    answered.push(n.to_string());
                }
            }
            let entries = journal.entries();
            let copy = replica(&here.dir.join("copy"), &here.clock, &[&entries]);
            let whole = Arc::new(MemoryJournal::with(entries));
            let open = |folder: &str| {
                let options = options_in(&here.dir.join(folder), &here.clock);
                Embedded::open(appending(options, &whole))
            };
            let next = open("next").unwrap();
            for id in answered {
                let job = tenure_core::names::JobRef::parse(&id).unwrap();
                assert!(run(&next, GetJob { job }).await.is_ok(), "{id} was answered");
            }
            next.crash();
            let whole = Arc::new(MemoryJournal::with(journal.entries()));
            let options = options_in(&here.dir.join("rows"), &here.clock);
            match Embedded::open(appending(options, &whole)) {
                Ok(engine) => {
                    engine.crash();
                    assert_eq!(dump(&here.dir.join("rows")), copy);
                    copies += 1;
                }
                Err(OpenError::OtherRows { .. }) => ahead += 1,
                Err(why) => panic!("{why}"),
            }
        });
    }
    assert!(ahead > 0 && copies > 0, "{ahead} times ahead, {copies} times a copy");
}

/// Waits until a job is in the rows.
async fn rows_came(here: &Here) {
    let conn = Connection::open(here.dir.join("rows").join("tenure.db")).unwrap();
    let there = || conn.query_row("SELECT count(*) FROM job", [], |row| row.get::<_, i64>(0));
    let begun = std::time::Instant::now();
    while there().unwrap() == 0 {
        assert!(begun.elapsed() < PATIENCE, "the rows wait for the journal");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Some entries, written by a leader.
fn written() -> Vec<JournalEntry> {
    let journal = Arc::new(MemoryJournal::default());
    let here = owner(&journal);
    block(async {
        for id in ["a", "b", "c"] {
            push(&here.engine, vec![job(id)]).await;
        }
    });
    here.engine.close();
    assert!(journal.entries().len() >= 3);
    journal.entries()
}

#[test]
fn a_repeated_entry_changes_nothing_and_a_wrong_one_is_refused() {
    let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
    let (folder, entries) = (dir.join("rows"), written());
    let other = JournalEntry::after(entries[1].position(), 1, b"another");
    let rows = replica(&folder, &clock, &[&entries[..3]]);
    for (what, again) in [
        ("the last", &entries[2..3]),
        ("the first", &entries[..1]),
        ("all", &entries[..3]),
        ("none", &[]),
    ] {
        assert_eq!(replica(&folder, &clock, &[again]), rows, "{what} again");
    }
    let after = JournalEntry::after(entries[2].position(), 1, b"no body");
    let newer = JournalEntry::after(entries[2].position(), 4, b"");
    let later = JournalEntry::after(Position { number: 7, sum: 0 }, 1, b"");
    let elsewhere = JournalEntry::after(other.position(), 1, b"");
    for (entry, why) in [
        (other, BadEntry::OtherPast { before: 3 }),
        (elsewhere, BadEntry::OtherPast { before: 3 }),
        (later, BadEntry::OutOfTurn { number: 8, wanted: 4 }),
        (newer, BadEntry::Format { format: 4, known: 3 }),
        (after, BadEntry::Body { format: 1 }),
    ] {
        let mut replica = Replica::open(&options_in(&folder, &clock)).unwrap();
        let no = replica.apply(std::slice::from_ref(&entry)).unwrap_err().to_string();
        assert!(no.contains(&why.to_string()), "{entry:?}: {no}");
        assert_eq!(replica.position(), entries[2].position());
        drop(replica);
        assert_eq!(dump(&folder), rows, "{entry:?}");
    }
}

#[test]
fn rows_that_are_no_copy_of_the_journal_are_refused() {
    let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
    let entries = written();
    let open = |folder: &Path, entries: Vec<JournalEntry>| {
        let journal = Arc::new(MemoryJournal::with(entries));
        Embedded::open(appending(options_in(folder, &clock), &journal))
    };
    let ahead = dir.join("ahead");
    replica(&ahead, &clock, &[&entries]);
    let no = open(&ahead, entries[..1].to_vec()).unwrap_err();
    assert!(matches!(no, OpenError::OtherRows { .. }), "{no}");

    let fork = JournalEntry::after(entries[0].position(), 1, &[]);
    let more = JournalEntry::after(fork.position(), 1, &[]);
    let at_two = dir.join("two");
    replica(&at_two, &clock, &[&entries[..2]]);
    for end in [vec![fork.clone()], vec![fork, more]] {
        let other = [&entries[..1], &end].concat();
        let no = open(&at_two, other).unwrap_err();
        assert!(matches!(no, OpenError::OtherRows { .. }), "{no}");
    }

    // Damage to a copy is not mended there: the copy is rebuilt.
    let damaged = dir.join("damaged");
    replica(&damaged, &clock, &[&entries]);
    let conn = Connection::open(damaged.join("tenure.db")).unwrap();
    assert_eq!(conn.execute("UPDATE job SET kind = 'x' WHERE seq = 2", []).unwrap(), 1);
    drop(conn);
    let no = open(&damaged, entries.clone()).unwrap_err();
    assert!(matches!(no, OpenError::OtherRows { .. }), "{no}");

    // Another store, with a journal of its own.
    let folder = dir.join("folder");
    let engine = Embedded::open(options_in(&folder, &clock)).unwrap();
    block(push(&engine, vec![job("of another store")]));
    engine.close();
    let no = open(&folder, entries.clone()).unwrap_err();
    assert!(matches!(no, OpenError::OtherRows { .. }), "{no}");

    // A hole in the journal is never taken for its end.
    let hole = [&entries[..1], &entries[2..]].concat();
    let no = open(&dir.join("hole"), hole).unwrap_err();
    assert!(matches!(no, OpenError::Journal(_)), "{no}");
}

#[test]
fn a_journal_that_takes_no_appends_is_not_opened() {
    for answer in [Appended::Fenced, Appended::Moved, Appended::Full] {
        let journal = Arc::new(MemoryJournal::with(written()));
        journal.end(answer.clone());
        let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
        let no = Embedded::open(appending(options_in(&dir.join("rows"), &clock), &journal));
        assert!(matches!(no, Err(OpenError::Journal(_))), "{answer:?}");
    }
}

#[test]
fn opening_retries_a_lost_check_and_gives_up_after_many() {
    for (lost, opens) in [(3, true), (1_000, false)] {
        let journal = Arc::new(MemoryJournal::with(written()));
        let mut lost = 0..lost;
        journal.fates(move |_| lost.next().map_or(Fate::Arrives, |_| Fate::Lost));
        let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
        let opened = Embedded::open(appending(options_in(&dir.join("rows"), &clock), &journal));
        assert_eq!(opened.is_ok(), opens);
    }
}

#[test]
fn what_nobody_knows_of_is_sent_again_as_it_was() {
    for fate in [Fate::ReplyLost, Fate::Lost, Fate::Late, Fate::Twice] {
        let journal = Arc::new(MemoryJournal::default());
        let here = owner(&journal);
        let mut first = true;
        let of = fate.clone();
        journal.fates(move |append| match append {
            Append::Entry { .. } if std::mem::take(&mut first) => of.clone(),
            _ => Fate::Arrives,
        });
        block(async {
            push(&here.engine, vec![job("a")]).await;
            push(&here.engine, vec![job("b")]).await;
            assert_eq!(take(&here.engine, 5).await.len(), 2, "{fate:?}");
        });
        let begun = journal.begun();
        for append in &begun {
            let Append::Entry { entry, .. } = append else { continue };
            let number = entry.position().number;
            assert_eq!(entry, &journal.entries()[number as usize - 1], "{fate:?}");
        }
    }
}

#[test]
fn an_append_of_unknown_outcome_is_repeated_after_pauses() {
    let journal = Arc::new(MemoryJournal::default());
    let here = owner(&journal);
    block(here.engine.settled());
    let (before, begun) = (journal.begun().len(), Instant::now());
    let lost_for = Duration::from_millis(500);
    journal.fates(move |_| if begun.elapsed() < lost_for { Fate::Lost } else { Fate::Arrives });
    block(push(&here.engine, vec![job("a")]));
    let appends = journal.begun().len() - before;
    // Retries after 10, 20, 40, 80, 160 and 250 ms, and the check for its presence.
    assert!((3..=12).contains(&appends), "{appends} appends within {:?}", begun.elapsed());
}

#[test]
fn rows_whose_folder_is_gone_follow_no_longer() {
    let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
    let journal = Arc::new(MemoryJournal::default());
    let mut replica = Replica::open(&options_in(&dir.join("rows"), &clock)).unwrap();
    replica.catch_up(&*journal).unwrap();
    std::fs::remove_dir_all(dir.join("rows")).unwrap();
    let gone = replica.catch_up(&*journal).unwrap_err();
    assert!(matches!(gone, OpenError::Folder { .. }), "{gone}");
    assert!(gone.to_string().contains("was removed or moved"), "{gone}");
}

#[test]
fn an_append_and_the_write_of_its_rows_go_on_side_by_side() {
    let journal = Arc::new(MemoryJournal::default());
    let here = owner(&journal);
    block(async {
        here.engine.settled().await;
        let begun = journal.begun().len();
        journal.hold();
        let pushed = Push { jobs: vec![job("a")], answer: PushAnswer::Ids };
        let call = here.engine.call_of(pushed);
        let call = tokio::spawn(call);
        assert!(journal.wait_for_begun(begun + 1, PATIENCE));
        rows_came(&here).await;
        assert!(!call.is_finished(), "it was answered before it was appended");
        journal.release();
        call.await.unwrap().unwrap();
    });
}

#[test]
fn an_answer_does_not_wait_for_its_rows_but_a_read_of_them_does() {
    let journal = Arc::new(MemoryJournal::default());
    let here = owner(&journal);
    block(async {
        here.engine.settled().await;
        let conn = Connection::open(here.dir.join("rows").join("tenure.db")).unwrap();
        conn.execute_batch("BEGIN IMMEDIATE").unwrap();
        push(&here.engine, vec![job("a")]).await;
        let leased = take(&here.engine, 1).await;
        assert_eq!(leased.len(), 1, "a job is granted with its payload, which is in memory");
        let id = JobRef::Id(JobId::parse("a").unwrap());
        let show = tokio::spawn(here.engine.call_of(GetJob { job: id }));
        push(&here.engine, vec![job("b")]).await;
        assert!(!show.is_finished(), "rows were read that lack what was answered");
        conn.execute_batch("ROLLBACK").unwrap();
        show.await.unwrap().unwrap();
        push(&here.engine, vec![job("c")]).await;
        let end = here.engine.snapshot().unwrap().end();
        assert_eq!(
            end.number,
            journal.entries().len() as u64,
            "a snapshot lacks what was answered"
        );
    });
}

#[test]
fn a_grant_whose_payload_is_in_a_row_is_one_append() {
    let journal = Arc::new(MemoryJournal::default());
    let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
    // Keeps no payload in memory.
    let options = Options { body_bytes: 0, ..options_in(&dir.join("rows"), &clock) };
    let engine = Embedded::open(appending(options, &journal)).unwrap();
    block(async {
        for id in ["a", "b", "c"] {
            push(&engine, vec![job(id)]).await;
            let begun = journal.begun().len();
            assert_eq!(take(&engine, 1).await.len(), 1, "{id}");
            assert_eq!(journal.begun().len() - begun, 1, "{id}");
        }
    });
}

#[test]
fn a_settle_is_answered_with_and_without_waiting_lease_calls() {
    let journal = Arc::new(MemoryJournal::default());
    let here = owner(&journal);
    block(async {
        for others_wait in [false, true] {
            push(&here.engine, vec![job(&format!("{others_wait}"))]).await;
            let leased = take(&here.engine, 1).await;
            let other = others_wait.then(|| tokio::spawn(here.engine.call_of(ask(1, 60))));
            // The lease call is in line by now, and no other call comes.
            push(&here.engine, vec![]).await;
            let settled = settle(&here.engine, vec![done(&leased[0])]).await;
            assert!(settled.settled[0].ok);
            if let Some(other) = other {
                push(&here.engine, vec![job("next")]).await;
                other.await.unwrap().unwrap();
            }
        }
    });
}

#[test]
fn an_entry_says_the_longest_ttl_of_any_lease_so_far() {
    let journal = Arc::new(MemoryJournal::default());
    let here = owner(&journal);
    block(async {
        push(&here.engine, vec![job("a"), job("b"), job("c")]).await;
        for (ttl_s, longest_s) in [(20, 20), (90, 90), (30, 90)] {
            let lease = Lease { ttl: Span::from_s(ttl_s), ..ask(1, 0) };
            run(&here.engine, lease).await.unwrap();
            let last = journal.begun().into_iter().rev().find_map(|append| match append {
                Append::Entry { ttl, .. } => Some(ttl),
                Append::Nothing(_) => None,
            });
            assert_eq!(last, Some(Duration::from_secs(longest_s)), "{ttl_s}");
        }
    });
}

#[test]
fn batches_are_closed_at_a_mebibyte_of_rows() {
    const EACH: usize = 300 << 10;
    let journal = Arc::new(MemoryJournal::default());
    let here = owner(&journal);
    block(async {
        here.engine.settled().await;
        let (begun, before) = (journal.begun().len(), journal.entries().len());
        journal.hold();
        let calls: Vec<_> = (0..40)
            .map(|n| {
                let jobs = vec![tenure_core::job::NewJob {
                    payload: text(&"x".repeat(EACH)),
                    ..job(&format!("{n}"))
                }];
                tokio::spawn(here.engine.call_of(Push { jobs, answer: PushAnswer::Ids }))
            })
            .collect();
        // Most of them come while the first waits.
        assert!(journal.wait_for_begun(begun + 1, PATIENCE));
        journal.release();
        for call in calls {
            call.await.unwrap().unwrap();
        }
        let sizes: Vec<usize> =
            journal.entries()[before..].iter().map(|entry| entry.bytes().len()).collect();
        let most = (1 << 20) + EACH + (64 << 10);
        assert!(sizes.iter().all(|bytes| *bytes < most), "{sizes:?}");
        assert!(sizes.len() >= 10, "{sizes:?}");
    });
}

#[test]
fn a_waiting_job_takes_few_bytes_of_the_journal() {
    let bytes = |batches: usize, of: usize| {
        let journal = Arc::new(MemoryJournal::default());
        let here = owner(&journal);
        block(async {
            for batch in 0..batches {
                let jobs = (0..of).map(|n| tenure_core::job::NewJob {
                    payload: text(&"x".repeat(100)),
                    ..job(&format!("0199-7a3c-{batch:05}-{n:05}"))
                });
                push(&here.engine, jobs.collect()).await;
            }
        });
        here.engine.close();
        let all: usize = journal.entries().iter().map(|entry| entry.bytes().len()).sum();
        all / (batches * of)
    };
    let (alone, together) = (bytes(200, 1), bytes(2, 500));
    assert!(alone <= 330 && together <= 200, "{alone} bytes alone, {together} in a crowd");
}

/// Calls that borrow nothing.
trait CallOf {
    fn call_of<O: Operation + Into<Request>>(
        &self,
        request: O,
    ) -> impl Future<Output = Result<Reply, CallError>> + Send + 'static;
}

impl CallOf for Embedded {
    fn call_of<O: Operation + Into<Request>>(
        &self,
        request: O,
    ) -> impl Future<Output = Result<Reply, CallError>> + Send + 'static {
        tenure_engine_api::Engine::call(self, &Namespace::main(), request.into())
    }
}
