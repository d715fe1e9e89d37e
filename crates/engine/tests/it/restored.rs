//! The suite's sentences about reopened stores, on stores that were restored from a backup.

use std::sync::{Arc, Mutex};

use tenure_conformance::{
    Bench, Capabilities, Case, Factory, MovedClock, Store, Task, all, check_all,
};
use tenure_engine::{Durability, Embedded, Location, Options};
use tenure_engine_api::Engine;
use tenure_testkit::{TempDir, TestClock};

use crate::store::backups::{Way, restored, saved};

/// Sentences in which leases live on across the reopening: a restore ends them.
const WITH_LEASES: [&str; 10] = [
    "jobs_survive_in_every_state",
    "leases_live_on_with_a_fresh_ttl",
    "a_holder_that_died_meanwhile_is_found_out",
    "pools_survive_with_their_states",
    "repeats_are_known_after_a_crash",
    "a_push_that_replaced_is_known_after_a_crash",
    "the_order_of_a_queue_survives",
    "lines_are_served_after_a_crash",
    "a_cancel_that_was_asked_for_survives",
    "a_flow_that_is_called_off_is_so_after_a_crash",
];

fn cases() -> impl Iterator<Item = Case> {
    let subjects = ["reopen::", "flow_reopen::"];
    all().into_iter().filter(move |case| subjects.iter().any(|of| case.name.starts_with(of)))
}

/// A store that came from a backup. It is reopened after a crash, or by way of another backup.
struct Restored {
    by_backup: bool,
}

struct Here {
    dir: TempDir,
    clock: Arc<TestClock>,
    open: Arc<Mutex<Arc<Embedded>>>,
    by_backup: bool,
    /// The number of the store that is open, which names its folder.
    number: usize,
}

fn open(dir: &TempDir, number: usize, clock: &Arc<TestClock>) -> Arc<Embedded> {
    let options = Options {
        clock: clock.clone(),
        durability: Durability::Everysec,
        ..Options::new(Location::Folder(dir.join(number.to_string())))
    };
    Arc::new(Embedded::open(options).unwrap())
}

/// Backs an engine up, ends it, and opens the next store, which is restored from that.
fn next(engine: &Embedded, dir: &TempDir, number: usize, clock: &Arc<TestClock>) -> Arc<Embedded> {
    let file = saved(engine, &dir.join("backup"));
    engine.crash();
    restored(&file, &dir.join(number.to_string()), clock, Way::DoesNotWait).0.unwrap();
    open(dir, number, clock)
}

impl Factory for Restored {
    fn open(&self) -> Task<'_, Bench> {
        Box::pin(async {
            let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
            let engine = next(&open(&dir, 0, &clock), &dir, 1, &clock);
            let open = Arc::new(Mutex::new(engine.clone()));
            let open_now = open.clone();
            let control = MovedClock::new(clock.clone(), move || {
                let engine = open_now.lock().unwrap().clone();
                Box::pin(async move { engine.settled().await })
            });
            let store = Here { dir, clock, open, by_backup: self.by_backup, number: 1 };
            let can = Capabilities::ALL;
            Bench::new(engine, Arc::new(control), can, Box::new(store))
        })
    }
}

impl Store for Here {
    fn reopen(&mut self, old: Arc<dyn Engine>) -> Task<'_, Arc<dyn Engine>> {
        Box::pin(async move {
            drop(old);
            let before = self.open.lock().unwrap().clone();
            let engine = if self.by_backup {
                self.number += 1;
                next(&before, &self.dir, self.number, &self.clock)
            } else {
                before.crash();
                open(&self.dir, self.number, &self.clock)
            };
            *self.open.lock().unwrap() = engine.clone();
            engine as Arc<dyn Engine>
        })
    }
}

#[test]
fn a_restored_store_is_reopened_as_any_other() {
    check_all(&Restored { by_backup: false }, &cases().collect::<Vec<_>>());
}

#[test]
fn all_except_leases_survives_a_backup_and_a_restore() {
    let is_without = |case: &Case| WITH_LEASES.iter().all(|name| !case.name.ends_with(name));
    let cases: Vec<Case> = cases().filter(is_without).collect();
    assert!(cases.len() > 10, "{}", cases.len());
    check_all(&Restored { by_backup: true }, &cases);
}
