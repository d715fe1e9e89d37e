//! Every rule of the suite on this engine: over a folder, and over a journal.

use std::sync::Arc;

use tenure_conformance::{
    Bench, Capabilities, Factory, MovedClock, Store, Task, check_all_and_carried,
};
use tenure_engine::{Embedded, Location, Options, Seal};
use tenure_engine_api::Engine;
use tenure_journal::memory::MemoryJournal;
use tenure_testkit::{TempDir, TestClock};

/// The engine that is open now, for tests that hold it only as an `Engine`.
type Open = Arc<std::sync::Mutex<Arc<Embedded>>>;

const KEY: &str = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";

struct Folder;

struct SealedFolder;

/// Each engine has rows of its own, which are deleted with it; only the journal outlives it.
struct Appending;

struct Here {
    place: Place,
    clock: Arc<TestClock>,
    open: Open,
}

/// The place that outlives an engine.
enum Place {
    Folder(TempDir),
    /// Contents in the folder are sealed.
    Sealed(TempDir),
    Journal(Arc<MemoryJournal>),
}

fn options(place: &Place, clock: &Arc<TestClock>) -> Options {
    let (dir, seal) = match place {
        Place::Folder(dir) => (dir, Seal::none()),
        Place::Sealed(dir) => (dir, Seal::read(KEY).expect("a key")),
        Place::Journal(journal) => {
            let options = Options::new(Location::Memory);
            return Options { clock: clock.clone(), journal: Some(journal.clone()), ..options };
        }
    };
    Options {
        clock: clock.clone(),
        seal,
        // Syncing is tested elsewhere; here it would only be slow.
        durability: tenure_engine::Durability::Everysec,
        ..Options::new(Location::Folder(dir.join("store")))
    }
}

fn open(place: &Place, clock: &Arc<TestClock>) -> Arc<Embedded> {
    Arc::new(Embedded::open(options(place, clock)).expect("the store can be opened"))
}

impl Factory for Folder {
    fn open(&self) -> Task<'_, Bench> {
        Box::pin(async { bench(Place::Folder(TempDir::new())) })
    }
}

impl Factory for SealedFolder {
    fn open(&self) -> Task<'_, Bench> {
        Box::pin(async { bench(Place::Sealed(TempDir::new())) })
    }
}

impl Factory for Appending {
    fn open(&self) -> Task<'_, Bench> {
        Box::pin(async { bench(Place::Journal(Arc::default())) })
    }
}

fn bench(place: Place) -> Bench {
    let clock = Arc::new(TestClock::default());
    let engine = open(&place, &clock);
    let now_open = Arc::new(std::sync::Mutex::new(engine.clone()));
    let open_now = now_open.clone();
    let control = MovedClock::new(clock.clone(), move || {
        let engine = open_now.lock().expect("nobody panics with it").clone();
        Box::pin(async move { engine.settled().await })
    });
    let store = Here { place, clock, open: now_open };
    let can = Capabilities::ALL;
    Bench::new(engine, Arc::new(control), can, Box::new(store))
}

impl Store for Here {
    fn reopen(&mut self, old: Arc<dyn Engine>) -> Task<'_, Arc<dyn Engine>> {
        Box::pin(async move {
            drop(old);
            let crashed = self.open.lock().expect("nobody panics with it").clone();
            crashed.crash();
            let engine = open(&self.place, &self.clock);
            *self.open.lock().expect("nobody panics with it") = engine.clone();
            engine as Arc<dyn Engine>
        })
    }
}

tenure_conformance::conformance_tests!(Folder);

#[test]
#[ignore = "long: over a folder and over the journal in Redis the suite runs in any case"]
fn every_rule_holds_where_a_journal_appends() {
    check_all_and_carried(&Appending);
}

#[test]
#[ignore = "long: what is sealed and opened is tested by itself in any case"]
fn every_rule_holds_where_contents_are_sealed() {
    check_all_and_carried(&SealedFolder);
}
