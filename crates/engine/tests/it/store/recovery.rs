//! A store that may have forgotten answered changes: the behaviour of its engine, and its reports.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tenure_core::events::{EventType, GapWhy};
use tenure_core::lease::{Ending, ExtendItem};
use tenure_core::requests::*;
use tenure_core::time::Span;
use tenure_engine::backup::check;
use tenure_engine::copy::{self, CopyError, CopyFolder, CopyNews, CopyPlan, CopyWatch};
use tenure_engine::{Durability, Embedded, Options, Replica, Seal};
use tenure_engine_api::Engine;
use tenure_journal::memory::MemoryJournal;
use tenure_testkit::{TempDir, TestClock};

use crate::store::calls::*;
use crate::store::journal::{appending, dump, options_in, owner};

const SPAN: Span = Span::from_s(30);

fn lock_for(name: &str, wait_s: u64) -> Lease {
    Lease { wait: Span::from_s(wait_s), ttl: Span::from_s(5), ..Lease::needs(vec![lock(name)]) }
}

impl Here {
    fn reopen_recovering(&mut self) {
        self.engine.close();
        let recovers = Some(SPAN);
        let options = Options { recovers, ..options(&self.dir, &self.clock) };
        self.engine = Embedded::open(options).unwrap();
    }

    fn is_told(&self, left: Option<u64>) {
        let told = self.engine.notice().unwrap_or_default();
        let wanted = left.map(|s| format!("nothing exclusive is granted for another {s}s"));
        assert_eq!(wanted.is_some(), !told.is_empty(), "{told}");
        assert!(told.contains(&wanted.unwrap_or_default()), "{told}");
        assert_eq!(self.engine.recovers_for(), left.map(Span::from_s));
        assert_eq!(self.engine.store_work().recovers_for, left.map(Duration::from_secs));
        assert_eq!(self.engine.health().degraded, None);
    }
}

#[test]
fn a_recovering_engine_grants_no_lock_and_ends_no_lease() {
    block(async {
        let mut here = Here::new();
        here.is_told(None);
        let held = run(&here.engine, lock_for("held", 0)).await.unwrap().leases.remove(0);
        push(&here.engine, vec![job("a")]).await;
        here.reopen_recovering();
        here.is_told(Some(30));
        let none = run(&here.engine, lock_for("free", 0)).await.unwrap();
        assert!(none.leases.is_empty());
        assert_eq!(none.next_at, Some(tenure_engine_api::Clock::now(&*here.clock).plus(SPAN)));
        assert!(none.reasons[0].detail.contains("may have forgotten"), "{:?}", none.reasons);
        assert_eq!(take(&here.engine, 1).await.len(), 1, "a job that needs nothing goes on");
        let waits = tokio::spawn(call(&here.engine, lock_for("free", 60)));
        here.pass(29).await;
        here.is_told(Some(1));
        assert!(!waits.is_finished());
        let item = ExtendItem { lease: held.lease.clone().unwrap(), progress: None };
        let extend = Extend { leases: vec![item], ttl: None };
        let beat = run(&here.engine, extend).await.unwrap();
        assert_eq!((beat.extended.len(), beat.lost.len()), (1, 0), "it was silent for 29 s");
        here.pass(1).await;
        assert_eq!(waits.await.unwrap().unwrap().leases.len(), 1, "it was granted by the end");
        here.is_told(None);
    });
}

/// The next process finds that the system has ended since.
fn end_system(dir: &TempDir) {
    let conn = Connection::open(dir.join("store/tenure.db")).unwrap();
    let other = "UPDATE store SET value = 'another' WHERE key = 'boot'";
    assert_eq!(conn.execute(other, []).unwrap(), 1);
}

/// Remembers for how long a copy waits, and does not wait.
#[derive(Default)]
struct Waits(Span);

impl CopyWatch for Waits {
    fn told(&mut self, _: &CopyNews) -> Result<(), CopyError> {
        Ok(())
    }

    fn wait(&mut self, long: Span) {
        self.0 = long;
    }
}

#[test]
fn a_copy_of_a_store_that_may_have_lost_grants_waits_for_their_holders() {
    for system_ends in [false, true] {
        let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
        let everysec = Options { durability: Durability::Everysec, ..options(&dir, &clock) };
        let engine = Embedded::open(everysec).unwrap();
        block(async {
            let ask = Lease { ttl: Span::from_s(60), ..lock_for("l", 0) };
            let lease = run(&engine, ask).await.unwrap().leases.remove(0);
            settle(&engine, vec![ending(&lease, Ending::Released)]).await;
        });
        engine.crash();
        if system_ends {
            end_system(&dir);
        }
        let source = CopyFolder::source(&dir.join("store")).unwrap();
        let backup: Vec<u8> = source.backup().unwrap().flat_map(Result::unwrap).collect();
        let ttl = check(&*backup).unwrap().head.largest_ttl;
        assert_eq!(ttl, Span::from_s(if system_ends { 60 } else { 30 }));
        let target = CopyFolder::target(&dir.join("target")).unwrap();
        let [copy, from, to] = ["c", "store", "target"].map(str::to_owned);
        let (plan, mut waits) = (CopyPlan { copy, from, to, seal: Seal::none() }, Waits::default());
        copy::copy(&source, &target, &plan, &mut waits).unwrap();
        let s = waits.0.us().div_ceil(1_000_000);
        assert_eq!(s, if system_ends { 60 } else { 0 });
    }
}

#[test]
fn a_store_that_synced_once_a_second_recovers_after_the_end_of_the_system() {
    block(async {
        let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
        let open = |durability| {
            let engine = Embedded::open(Options { durability, ..options(&dir, &clock) }).unwrap();
            Here { engine, dir: TempDir::new(), clock: clock.clone() }
        };
        let end_system = || end_system(&dir);
        let lends = async |here: &Here| run(&here.engine, lock_for("l", 0)).await.unwrap().leases;
        let span = Span::from_s(5);
        for system_ends in [false, true] {
            let here = open(Durability::Everysec);
            assert_eq!(here.engine.recovers_for(), None, "a process takes nothing with it");
            // The lease is over soon: then only the journal says how long leases last.
            let lease = lends(&here).await.remove(0);
            settle(&here.engine, vec![ending(&lease, Ending::Released)]).await;
            here.engine.crash();
            if system_ends {
                end_system();
            }
        }
        let here = open(Durability::Always);
        assert_eq!(here.engine.recovers_for(), Some(span));
        assert_eq!(lends(&here).await, []);
        here.pass(3).await;
        here.engine.close();
        let here = open(Durability::Always);
        assert_eq!(here.engine.recovers_for(), Some(span), "an end in the middle begins it again");
        here.pass(5).await;
        assert_eq!(lends(&here).await.len(), 1);
        here.engine.crash();
        end_system();
        let here = open(Durability::Always);
        assert_eq!(here.engine.recovers_for(), None, "each answer was synced");
    });
}

#[test]
fn a_running_engine_can_begin_and_end_a_recovery() {
    block(async {
        let here = Here::new();
        here.engine.recover(SPAN).await.unwrap();
        here.is_told(Some(30));
        assert!(run(&here.engine, lock_for("free", 0)).await.unwrap().leases.is_empty());
        let waits = tokio::spawn(call(&here.engine, lock_for("free", 60)));
        here.engine.settled().await;
        here.engine.end_recovery().await.unwrap();
        assert_eq!(waits.await.unwrap().unwrap().leases.len(), 1);
        here.is_told(None);
        here.engine.end_recovery().await.unwrap();
    });
}

#[test]
fn a_recovery_gives_readers_of_events_a_gap() {
    block(async {
        let mut here = Here::new();
        push(&here.engine, vec![job("a")]).await;
        let first = ReadEvents { since: EventsSince::First, max: 100, ..ReadEvents::default() };
        let seen = run(&here.engine, first).await.unwrap();
        for opens in [true, false] {
            if opens {
                here.reopen_recovering();
            } else {
                here.engine.end_recovery().await.unwrap();
                here.engine.recover(SPAN).await.unwrap();
            }
            here.engine.settled().await;
            push(&here.engine, vec![job(&format!("b{opens}"))]).await;
            let since = EventsSince::Id(seen.next);
            let read = ReadEvents { since, max: 100, ..ReadEvents::default() };
            let told = run(&here.engine, read).await.unwrap();
            assert_eq!(told.gap.map(|gap| gap.why), Some(GapWhy::Restarted), "opens: {opens}");
            assert!(told.items.iter().all(|event| event.id.life > seen.next.life));
            let recovers =
                told.items.iter().filter(|event| event.happened.kind == EventType::EngineLearning);
            assert_eq!(recovers.count(), if opens { 1 } else { 2 });
        }
    });
}

#[test]
fn a_follower_of_the_journal_has_the_new_life_of_the_events() {
    block(async {
        let journal = Arc::new(MemoryJournal::default());
        let before = owner(&journal);
        push(&before.engine, vec![job("a")]).await;
        before.engine.crash();
        let dir = TempDir::new();
        let mut options = appending(options_in(&dir.join("rows"), &before.clock), &journal);
        options.recovers = Some(SPAN);
        let engine = Embedded::open(options).unwrap();
        // An answer comes after all earlier appends.
        run(&engine, GetStats).await.unwrap();
        engine.close();
        let mut follows = Replica::open(&options_in(&dir.join("follows"), &before.clock)).unwrap();
        follows.apply(&journal.entries()).unwrap();
        drop(follows);
        let lives = |folder: &str| {
            let mut lines = dump(&dir.join(folder));
            lines.retain(|line| line.starts_with("stream") || line.starts_with("event"));
            lines
        };
        assert_eq!(lives("follows"), lives("rows"));
    });
}
