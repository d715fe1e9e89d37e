//! Runs one sentence: opens a bench, runs it, and audits the engine at the end.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tenure_core::requests::Audit;
use tenure_core::time::Span;

use crate::bench::{Bench, Factory};

/// Longest real time that one sentence may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running sentence. It stays on its thread: only its calls go elsewhere.
pub type Running<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// One sentence about what an engine does.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name, as `subject::sentence`.
    pub name: &'static str,
    /// The sentence itself; it panics if it is not true.
    pub run: for<'a> fn(&'a mut Bench) -> Running<'a>,
}

impl Case {
    /// Runs it on a fresh bench of `factory`, and audits the engine afterwards. Panics if the
    /// sentence is not true of the engine, or if the audit finds a fault.
    pub async fn run_on(&self, factory: &dyn Factory) {
        let mut bench = factory.open().await;
        // The engine has ticked once at the bench's time: earlier time does not count as deafness.
        bench.pass(Span::from_ms(1)).await;
        let run = tokio::time::timeout(PATIENCE, (self.run)(&mut bench)).await;
        assert!(run.is_ok(), "{} did not end within {PATIENCE:?}", self.name);
        let audit = bench.ok(Audit::default()).await;
        assert!(audit.ok && audit.faults.is_empty(), "after {}: {:?}", self.name, audit.faults);
    }

    /// As [`Case::run_on`], on a runtime of its own.
    pub fn check(&self, factory: &dyn Factory) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime can be started");
        runtime.block_on(self.run_on(factory));
    }
}

/// Runs the case with this name on its own runtime; called by `conformance_tests!`.
pub fn check(factory: &dyn Factory, name: &str) {
    let case = crate::all().into_iter().find(|case| case.name == name);
    case.unwrap_or_else(|| panic!("there is no case {name:?}")).check(factory);
}

/// Runs these cases, as many at once as there are processors. Panics if one is not true.
pub fn check_all(factory: &(dyn Factory + Sync), cases: &[Case]) {
    on_each(cases, |_, case| case.check(factory));
}

/// Does this with each case and its place, as many at once as there are processors.
pub(crate) fn on_each(cases: &[Case], check: impl Fn(usize, &Case) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(at) else { break };
                    check(at, case);
                }
            });
        }
    });
}
