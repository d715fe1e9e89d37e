//! Runs one sentence: opens a bench, runs it, and audits what it left.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tenure_core::requests::Audit;
use tenure_core::time::Span;

use crate::bench::{Bench, Factory};

/// Longest real time that one sentence may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A sentence that runs. It stays on its thread: only the calls it makes go elsewhere.
pub type Running<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// One sentence about what an engine does.
#[derive(Clone, Copy)]
pub struct Case {
    /// `subject::sentence`.
    pub name: &'static str,
    /// Panics if it is not true.
    pub run: for<'a> fn(&'a mut Bench) -> Running<'a>,
}

impl Case {
    /// Runs it on a fresh bench of `factory`, and audits the engine afterwards. Panics if the
    /// sentence is not true of the engine, or if the audit finds a fault.
    pub async fn run_on(&self, factory: &dyn Factory) {
        let mut bench = factory.open().await;
        // The engine has ticked once at the bench's time: whatever happened before is not deafness.
        bench.pass(Span::from_ms(1)).await;
        let run = tokio::time::timeout(PATIENCE, (self.run)(&mut bench)).await;
        assert!(run.is_ok(), "{} did not end within {PATIENCE:?}", self.name);
        let audit = bench.ok(Audit::default()).await;
        assert!(audit.ok && audit.faults.is_empty(), "after {}: {:?}", self.name, audit.faults);
    }
}

/// Runs the case with this name on its own runtime; what `conformance_tests!` calls.
pub fn check(factory: &dyn Factory, name: &str) {
    let case = crate::all().into_iter().find(|case| case.name == name);
    let case = case.unwrap_or_else(|| panic!("there is no case {name:?}"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be started");
    runtime.block_on(case.run_on(factory));
}

/// Runs all cases, as many at once as there are processors, and answers their number. Panics if one is not true.
pub fn check_all(factory: &(dyn Factory + Sync)) -> usize {
    let (cases, next) = (crate::all(), AtomicUsize::new(0));
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    check(factory, case.name);
                }
            });
        }
    });
    cases.len()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use tenure_core::names::Namespace;
    use tenure_core::requests::Request;
    use tenure_core::time::Moment;
    use tenure_seam::{CallFuture, Engine, Fault, Health};

    use super::*;
    use crate::bench::{Capabilities, Store, Task, TestClock};

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
        let can = Capabilities { reopen: true, clock_back: true, crowd: true, gauges: true };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        std::panic::set_hook(Box::new(|_| {}));
        let mut held = vec![];
        for case in crate::all() {
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
        let names: BTreeSet<_> = crate::all().iter().map(|case| case.name).collect();
        assert_eq!(names.len(), crate::all().len());
    }
}
