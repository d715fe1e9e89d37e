//! Every rule of the suite, on this engine.

use std::sync::Arc;

use tenure_conformance::{Bench, Capabilities, Factory, MovedClock, Store, Task};
use tenure_engine::Engine;
use tenure_engine_embedded::{Embedded, Location, Options};
use tenure_testkit::{TempDir, TestClock};

/// The engine that is open now, for those who hold it only as an `Engine`.
type Open = Arc<std::sync::Mutex<Arc<Embedded>>>;

struct Folder;

struct Here {
    dir: TempDir,
    clock: Arc<TestClock>,
    open: Open,
}

fn options(dir: &TempDir, clock: &Arc<TestClock>) -> Options {
    Options {
        clock: clock.clone(),
        // Syncing is tested elsewhere; here it would only be slow.
        durability: tenure_engine_embedded::Durability::Everysec,
        ..Options::new(Location::Folder(dir.join("store")))
    }
}

fn open(dir: &TempDir, clock: &Arc<TestClock>) -> Arc<Embedded> {
    Arc::new(Embedded::open(options(dir, clock)).expect("the store can be opened"))
}

impl Factory for Folder {
    fn open(&self) -> Task<'_, Bench> {
        Box::pin(async {
            let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
            let engine = open(&dir, &clock);
            let now_open = Arc::new(std::sync::Mutex::new(engine.clone()));
            let open_now = now_open.clone();
            let control = MovedClock::new(clock.clone(), move || {
                let engine = open_now.lock().expect("nobody panics with it").clone();
                Box::pin(async move { engine.settled().await })
            });
            let store = Here { dir, clock, open: now_open };
            let can = Capabilities { reopen: true, clock_back: true, crowd: true, gauges: true };
            Bench::new(engine, Arc::new(control), can, Box::new(store))
        })
    }
}

impl Store for Here {
    fn reopen(&mut self, old: Arc<dyn Engine>) -> Task<'_, Arc<dyn Engine>> {
        Box::pin(async move {
            drop(old);
            let crashed = self.open.lock().expect("nobody panics with it").clone();
            crashed.crash();
            let engine = open(&self.dir, &self.clock);
            *self.open.lock().expect("nobody panics with it") = engine.clone();
            engine as Arc<dyn Engine>
        })
    }
}

tenure_conformance::conformance_tests!(Folder);
