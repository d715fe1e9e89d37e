//! Snapshots of rows: of a single state, whole or not at all, and never of damage.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use tenure_core::names::JobRef;
use tenure_core::requests::*;
use tenure_engine::{Embedded, OpenError, Replica};
use tenure_journal::memory::{MemoryJournal, MemorySnapshot};
use tenure_journal::{Appended, JournalEntry, Position, ReadError, Snapshot};
use tenure_testkit::{TempDir, TestClock};

use crate::store::calls::*;
use crate::store::journal::{appending, dump, followed, journal_from, options_in, owner, taken};

/// Entries of jobs with long payloads, a run and events, and a last one whose event names its caller: a snapshot of
/// them has several parts.
fn written() -> Vec<JournalEntry> {
    let journal = Arc::new(MemoryJournal::default());
    let here = owner(&journal);
    block(async {
        for id in ["a", "b", "c", "d"] {
            let payload = text(&"x".repeat(200 << 10));
            push(&here.engine, vec![tenure_core::job::NewJob { payload, ..job(id) }]).await;
        }
        let lease = take(&here.engine, 1).await.remove(0);
        settle(&here.engine, vec![done(&lease)]).await;
        run_by(&here.engine, "ann", PauseQueue { queue: queue(), until: None }).await.unwrap();
    });
    here.engine.close();
    journal.entries()
}

/// A snapshot of the rows of these entries.
fn snapshot(folder: &Path, clock: &Arc<TestClock>, entries: &[JournalEntry]) -> MemorySnapshot {
    let mut replica = Replica::open(&options_in(folder, clock)).unwrap();
    replica.apply(entries).unwrap();
    drop(replica);
    taken(folder, clock)
}

#[test]
fn a_snapshot_is_of_one_moment_and_the_engine_goes_on_meanwhile() {
    let journal = Arc::new(MemoryJournal::default());
    let here = owner(&journal);
    let (rows, end) = block(async {
        push(&here.engine, vec![job("a"), job("b")]).await;
        let mut rows = here.engine.snapshot().unwrap();
        let end = rows.end();
        push(&here.engine, vec![job("c")]).await;
        let leases = take(&here.engine, 2).await;
        settle(&here.engine, leases.iter().map(done).collect()).await;
        (MemorySnapshot::of(&mut rows).unwrap(), end)
    });
    here.engine.close();
    let entries = journal.entries();
    let before = &entries[..end.number as usize];
    assert!(before.len() < entries.len() && before.last().unwrap().position() == end);
    assert_eq!(rows.parts(), snapshot(&here.dir.join("then"), &here.clock, before).parts());
    let later = followed(&here.dir.join("new"), &here.clock, &journal_from(&rows, &entries));
    assert_eq!(later, dump(&here.dir.join("rows")));
    assert!(matches!(here.engine.snapshot(), Err(OpenError::Closed)));
}

#[test]
fn a_snapshot_of_nothing_is_restored_too() {
    let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
    let nothing = taken(&dir.join("none"), &clock);
    let engine = Embedded::open(appending(
        options_in(&dir.join("new"), &clock),
        &journal_from(&nothing, &[]),
    ));
    block(push(&engine.unwrap(), vec![job("a")]));
}

#[test]
fn a_snapshot_replaced_while_it_is_read_is_read_again() {
    let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
    let entries = written();
    let whole = snapshot(&dir.join("whole"), &clock, &entries);
    let earlier = snapshot(&dir.join("earlier"), &clock, &entries[..2]);
    for (turns, opens) in [(1, true), (100, false)] {
        let journal = journal_from(&whole, &entries);
        for _ in 0..turns {
            journal.first(earlier.clone().failing(1, ReadError::Turned));
        }
        let folder = dir.join(format!("{turns}"));
        let mut replica = Replica::open(&options_in(&folder, &clock)).unwrap();
        assert_eq!(replica.catch_up(&*journal).is_ok(), opens, "{turns} turns");
        drop(replica);
        assert_eq!(dump(&folder) == dump(&dir.join("whole")), opens);
    }
}

#[test]
fn half_of_a_snapshot_is_never_taken_for_a_store() {
    let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
    let entries = written();
    let whole = snapshot(&dir.join("whole"), &clock, &entries);
    assert!(whole.parts().len() >= 3, "{} parts", whole.parts().len());
    let parts: Vec<JournalEntry> = whole.parts().iter().cloned().collect();
    let away = || ReadError::Away("the line broke".to_owned());
    let swapped = MemorySnapshot::with(whole.end(), [&parts[..1], &parts[2..]].concat());
    let no_body =
        MemorySnapshot::with(whole.end(), vec![JournalEntry::after(Position::default(), 1, b"x")]);
    let newer =
        MemorySnapshot::with(whole.end(), vec![JournalEntry::after(Position::default(), 4, b"")]);
    for (n, (broken, why)) in [
        (whole.clone().failing(0, away()), "the line broke"),
        (whole.clone().failing(2, away()), "the line broke"),
        (swapped, "part 2: it has the number 3"),
        (no_body, "part 1: its body is not of format 1"),
        (newer, "part 1: its body has format 4"),
    ]
    .into_iter()
    .enumerate()
    {
        let folder = dir.join(format!("{n}"));
        // Older rows are not left beside the new ones.
        snapshot(&folder, &clock, &entries[..1]);
        let mut replica = Replica::open(&options_in(&folder, &clock)).unwrap();
        let no = replica.catch_up(&*journal_from(&broken, &entries)).unwrap_err().to_string();
        assert!(no.contains(why), "{no}");
        drop(replica);
        let alone = Embedded::open(options_in(&folder, &clock));
        assert!(matches!(alone, Err(OpenError::OtherRows { .. })), "{why}");
        let sound = journal_from(&whole, &entries);
        assert_eq!(followed(&folder, &clock, &sound), dump(&dir.join("whole")), "{why}");
    }
}

#[test]
fn only_an_entry_with_the_name_of_a_caller_has_the_newest_format() {
    let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
    let entries = written();
    let whole = snapshot(&dir.join("whole"), &clock, &entries);
    let is_newest = |entry: &&JournalEntry| entry.body(3).is_ok();
    let is_first = |entry: &&JournalEntry| entry.body(1).is_ok();
    assert_eq!(entries.iter().filter(is_newest).count(), 1);
    assert_eq!(entries.iter().filter(is_first).count(), entries.len() - 1);
    assert_eq!(whole.parts().iter().filter(is_newest).count(), 1);
    assert_eq!(whole.parts().iter().filter(is_first).count(), whole.parts().len() - 1);
}

#[test]
fn a_snapshot_of_damaged_rows_is_refused() {
    let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
    let entries = written();
    for (n, damage) in [
        "UPDATE job SET kind = 'x' WHERE seq = 2",
        "UPDATE job SET payload = 'null' WHERE seq = 2",
        "UPDATE life SET result = 'null' WHERE result IS NOT NULL",
        "DELETE FROM job WHERE seq = 2",
        "DELETE FROM life WHERE seq = 2",
        "UPDATE row SET value = '' WHERE kind = 'meta'",
        "UPDATE event SET body = x'00' WHERE first = 1",
    ]
    .into_iter()
    .enumerate()
    {
        let folder = dir.join(format!("{n}"));
        snapshot(&folder, &clock, &entries);
        let conn = Connection::open(folder.join("tenure.db")).unwrap();
        assert_eq!(conn.execute(damage, []).unwrap(), 1, "{damage}");
        drop(conn);
        let replica = Replica::open(&options_in(&folder, &clock)).unwrap();
        let no = MemorySnapshot::of(&mut replica.snapshot().unwrap());
        assert!(matches!(no, Err(ReadError::Snapshot(_))), "{damage}");
    }
}

#[test]
fn an_opening_says_which_of_rows_and_journal_is_another() {
    let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
    let entries = written();
    let fork = JournalEntry::after(entries[0].position(), 1, &[]);
    let more = JournalEntry::after(fork.position(), 1, &[]);
    let at_two = dir.join("two");
    let snapshot_at_two = snapshot(&at_two, &clock, &entries[..2]);
    let open = |journal: Arc<MemoryJournal>, ended: Option<Appended>| {
        if let Some(ended) = ended {
            journal.end(ended);
        }
        Embedded::open(appending(options_in(&at_two, &clock), &journal)).unwrap_err()
    };
    // Other content under the same number; Redis answers as it does after another process took the store.
    let forked = Arc::new(MemoryJournal::with(vec![entries[0].clone(), fork.clone()]));
    let no = open(forked, Some(Appended::Fenced));
    assert!(matches!(no, OpenError::OtherRows { .. }), "{no}");
    // The same, where only the snapshot has that entry.
    let elsewhere = MemorySnapshot::with(fork.position(), snapshot_at_two.parts().clone().into());
    let no = open(journal_from(&elsewhere, &[]), Some(Appended::Fenced));
    assert!(matches!(no, OpenError::OtherRows { .. }), "{no}");
    // Another leader.
    let same = Arc::new(MemoryJournal::with(entries[..2].to_vec()));
    let no = open(same, Some(Appended::Fenced)).to_string();
    assert!(no.contains("another process owns the store"), "{no}");
    // Entries behind the reported end.
    let longer = Arc::new(MemoryJournal::with(entries.clone()));
    let no = open(longer, Some(Appended::At(2))).to_string();
    assert!(no.contains("it says that it ends at entry 2, and holds entries up to"), "{no}");
    let rest = Arc::new(MemoryJournal::with(vec![entries[0].clone(), fork, more]));
    let no = open(rest, None);
    assert!(matches!(no, OpenError::OtherRows { .. }), "{no}");
    block(async {
        let engine = Embedded::open(appending(
            options_in(&dir.join("sound"), &clock),
            &journal_from(&snapshot_at_two, &entries),
        ));
        let job = JobRef::parse("a").unwrap();
        assert!(run(&engine.unwrap(), GetJob { job }).await.is_ok());
    });
}
