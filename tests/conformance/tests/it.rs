//! The suite itself: each of its sentences can fail, and has a name. These are not unit tests, since the suite would be
//! compiled a second time for them.

use std::collections::BTreeSet;
use std::sync::Arc;

use tenure_conformance::{Bench, Capabilities, Store, Task, TestClock, all};
use tenure_core::names::Namespace;
use tenure_core::requests::Request;
use tenure_core::time::{Moment, Span};
use tenure_engine_api::{CallFuture, Engine, Fault, Health};

/// An engine that does nothing.
struct Mute;
impl Engine for Mute {
    fn call(&self, _: &Namespace, _: Request) -> CallFuture {
        Box::pin(async { Err(Fault::Unavailable("it is mute".to_owned()).into()) })
    }
    fn health(&self) -> Health {
        Health { degraded: None, store: "mute" }
    }
    fn undo(&self, _: &Namespace, _: Vec<String>) {}
    fn drain(&self) {}
}
impl TestClock for Mute {
    fn now(&self) -> Moment {
        Moment::from_us(1_800_000_000_000_000)
    }
    fn leap(&self, _: Span) -> Task<'_, ()> {
        Box::pin(async {})
    }
    fn wall_leap(&self, _: Span) -> Task<'_, ()> {
        Box::pin(async {})
    }
    fn back(&self, _: Span) -> Task<'_, ()> {
        Box::pin(async {})
    }
}
impl Store for Mute {
    fn reopen(&mut self, old: Arc<dyn Engine>) -> Task<'_, Arc<dyn Engine>> {
        Box::pin(async { old })
    }
}

#[test]
fn no_sentence_is_true_of_an_engine_that_does_nothing() {
    let can = Capabilities::ALL;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    std::panic::set_hook(Box::new(|_| {}));
    let mut held = vec![];
    for case in all() {
        let run = std::panic::catch_unwind(|| {
            let mut bench = Bench::new(Arc::new(Mute), Arc::new(Mute), can, Box::new(Mute));
            runtime.block_on((case.run)(&mut bench));
        });
        if run.is_ok() {
            held.push(case.name);
        }
    }
    let _ = std::panic::take_hook();
    assert!(held.is_empty(), "these cannot fail: {held:?}");
}

#[test]
fn each_sentence_has_a_name_of_its_own() {
    let names: BTreeSet<_> = all().iter().map(|case| case.name).collect();
    assert_eq!(names.len(), all().len());
}
