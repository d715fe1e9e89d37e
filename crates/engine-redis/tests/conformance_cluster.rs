//! Every rule of the suite, unchanged, on this engine over a cluster of three primaries. One cluster
//! serves the whole test process; each sentence has a prefix and a namespace of its own, so that the
//! sentences lie spread over the slots.
//!
//! The cluster is not killed between sentences, so those that reopen a store are skipped here: what a
//! primary's end does is the matter of `failures`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tenure_conformance::{Bench, Capabilities, Factory, MovedClock, Store, Task};
use tenure_core::gauge::Reading;
use tenure_core::names::Namespace;
use tenure_core::requests::Request;
use tenure_engine::{CallFuture, Engine, GaugeFeed, Health, ReadingFuture};
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine};
use tenure_testkit::TestClock;
use tenure_testkit::redis::{RedisCluster, wanted};

const PRIMARIES: usize = 3;

struct Clustered;

/// The cluster of this process. It ends with the last sentence of a whole run; a run of some of them
/// leaves its end to the kernel, which kills the servers with this process.
static CLUSTER: Mutex<Option<RedisCluster>> = Mutex::new(None);
static OPENED: AtomicUsize = AtomicUsize::new(0);
static CLOSED: AtomicUsize = AtomicUsize::new(0);

fn cluster_url() -> String {
    let mut cluster = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    cluster.get_or_insert_with(|| RedisCluster::start(PRIMARIES)).url()
}

/// The engine, with every namespace of a sentence under another name.
struct Elsewhere {
    engine: Arc<RedisEngine>,
    number: usize,
}

impl Elsewhere {
    fn of(&self, namespace: &Namespace) -> Namespace {
        elsewhere(namespace, self.number)
    }
}

fn elsewhere(namespace: &Namespace, number: usize) -> Namespace {
    let name = format!("{}-{number}", namespace.as_str());
    Namespace::parse(&name).expect("a namespace of a sentence is short")
}

impl Engine for Elsewhere {
    fn call(&self, namespace: &Namespace, request: Request) -> CallFuture {
        self.engine.call(&self.of(namespace), request)
    }
    fn health(&self) -> Health {
        self.engine.health()
    }
    fn undo(&self, namespace: &Namespace, leases: Vec<String>) {
        self.engine.undo(&self.of(namespace), leases);
    }
    // The namespace of a claim is one of the suite's own, which it does not look at.
    fn gauges(&self) -> Option<GaugeFeed> {
        self.engine.gauges()
    }
    fn answer_gauge(&self, namespace: &Namespace, reading: Reading) -> ReadingFuture {
        self.engine.answer_gauge(&self.of(namespace), reading)
    }
    fn drain(&self) {
        self.engine.drain();
    }
}

struct Here;

impl Factory for Clustered {
    fn open(&self) -> Task<'_, Bench> {
        Box::pin(async {
            if !wanted() {
                // A sentence cannot be left out, but the process of all of them can end here; why has
                // been said.
                std::process::exit(0);
            }
            let number = OPENED.fetch_add(1, Ordering::Relaxed);
            let url = format!("{}?prefix=s{number}:", cluster_url());
            let address = Address::parse(&url).expect("the address of the fixture is one");
            let engine = RedisEngine::open(Options::testing(address)).expect("it can be opened");
            let engine = Arc::new(engine);
            let (clock, namespaces) =
                (Arc::new(TestClock::default()), [elsewhere(&Namespace::main(), number)]);
            let set = engine.testing_set_clock(&*clock, &namespaces).await;
            set.expect("the clock can be set");
            let (moving, moved) = (engine.clone(), clock.clone());
            let control = MovedClock::new(clock, move || {
                let (engine, clock, namespaces) =
                    (moving.clone(), moved.clone(), namespaces.clone());
                Box::pin(async move {
                    let set = engine.testing_set_clock(&*clock, &namespaces).await;
                    set.expect("the clock can be set");
                })
            });
            let can = Capabilities { reopen: false, clock_back: true, crowd: true, gauges: true };
            let engine = Arc::new(Elsewhere { engine, number });
            Bench::new(engine, Arc::new(control), can, Box::new(Here))
        })
    }
}

impl Store for Here {
    fn reopen(&mut self, old: Arc<dyn Engine>) -> Task<'_, Arc<dyn Engine>> {
        Box::pin(async { old })
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        if CLOSED.fetch_add(1, Ordering::Relaxed) + 1 == tenure_conformance::all().len() {
            *CLUSTER.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

tenure_conformance::conformance_tests!(Clustered);
