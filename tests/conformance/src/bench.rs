//! Bench of a sentence: an engine, a clock under its control, and a store that can be reopened.
//!
//! The crates of engines implement these traits. Nothing here knows which engine it is.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_core::bounds::PULSE_US;
use tenure_core::names::Namespace;
use tenure_core::time::{Moment, Span};
use tenure_engine_api::Engine;

/// A boxed future that can be sent.
pub type Task<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Opens a fresh, empty engine for each sentence.
pub trait Factory: Send + Sync {
    /// An engine over an empty store, with its clock and its store. Panics if it cannot be opened.
    fn open(&self) -> Task<'_, Bench>;
}

/// The clock that the engine reads, under the test's control. It stands still between the calls of this trait.
pub trait TestClock: Send + Sync {
    /// Now, as the engine reads it.
    fn now(&self) -> Moment;

    /// Lets this time pass without a tick: both clocks of the machine go on in one jump. Returns when the engine has
    /// ticked at the new time and has done everything due by then. A jump above 3 s makes the engine look deaf.
    fn leap(&self, span: Span) -> Task<'_, ()>;

    /// Sets the wall clock ahead while the monotonic clock goes on as before, and returns when the engine has ticked at
    /// the new time.
    fn wall_leap(&self, span: Span) -> Task<'_, ()>;

    /// Steps the clock back by `span`, and returns when the engine has ticked at the new time. Never called unless
    /// [`Capabilities::clock_back`].
    fn back(&self, span: Span) -> Task<'_, ()>;

    /// Lets time pass as usual: in steps of at most a second, with a tick of the engine at each, so that it never looks
    /// deaf.
    fn pass(&self, span: Span) -> Task<'_, ()> {
        Box::pin(async move {
            let mut left = span.us();
            while left > 0 {
                let step = left.min(PULSE_US);
                self.leap(Span::from_us(step)).await;
                left -= step;
            }
        })
    }
}

/// The place of the engine's state; dropped at the end of the sentence, which cleans up.
pub trait Store: Send + Sync {
    /// Ends the engine as a crash would, without a shutdown, and opens the same store again. The clock goes on. Never
    /// called unless [`Capabilities::reopen`].
    fn reopen(&mut self, old: Arc<dyn Engine>) -> Task<'_, Arc<dyn Engine>>;
}

/// The operations that an engine permits from outside; a sentence that needs more is skipped, and says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// The store can be reopened.
    pub reopen: bool,
    /// The clock can step back.
    pub clock_back: bool,
    /// More than 10,000 calls may wait at once.
    pub crowd: bool,
    /// The engine keeps gauges.
    pub gauges: bool,
    /// A caller that hangs up has left before the next call arrives. Where two connections lie between, the call may
    /// overtake the end of the other.
    pub hang_up: bool,
}

impl Capabilities {
    /// Those of an engine in this process.
    pub const ALL: Capabilities =
        Capabilities { reopen: true, clock_back: true, crowd: true, gauges: true, hang_up: true };
}

/// `can`; if it is false, with a note on stderr why a sentence is skipped.
pub(crate) fn noted(can: bool, lacks: &str) -> bool {
    if !can {
        eprintln!("skipped: {lacks}");
    }
    can
}

/// One engine, opened for one sentence.
pub struct Bench {
    engine: Option<Arc<dyn Engine>>,
    pub(crate) clock: Arc<dyn TestClock>,
    pub(crate) can: Capabilities,
    pub(crate) namespace: Namespace,
    store: Box<dyn Store>,
    workers: AtomicU64,
}

impl Bench {
    /// A bench over an engine that is open. `store` is dropped last.
    pub fn new(
        engine: Arc<dyn Engine>,
        clock: Arc<dyn TestClock>,
        can: Capabilities,
        store: Box<dyn Store>,
    ) -> Self {
        let namespace = Namespace::main();
        Bench { engine: Some(engine), clock, can, namespace, store, workers: AtomicU64::new(0) }
    }

    /// The same bench with a wrapper around its engine, and around the store that opens the next one.
    pub(crate) fn around(
        mut self,
        engine: impl FnOnce(Arc<dyn Engine>) -> Arc<dyn Engine>,
        store: impl FnOnce(Box<dyn Store>) -> Box<dyn Store>,
    ) -> Self {
        self.engine = self.engine.map(engine);
        self.store = store(self.store);
        self
    }

    /// The engine that is open now.
    pub fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone().expect("an engine is open but while it is reopened")
    }

    /// A worker that is new to the engine. Each call of a sentence comes from another worker unless it names one, since
    /// later calls of a worker change how its leases are judged.
    pub(crate) fn stranger(&self) -> String {
        format!("worker-{}", self.workers.fetch_add(1, Ordering::Relaxed))
    }

    /// Crashes the engine and opens its store again; `false` (and a note on stderr) if this engine cannot be reopened.
    pub(crate) async fn reopen(&mut self) -> bool {
        if !noted(self.can.reopen, "this engine cannot be reopened by the suite") {
            return false;
        }
        let old = self.engine.take().expect("an engine is open");
        self.engine = Some(self.store.reopen(old).await);
        true
    }

    /// Whether more than 10,000 calls may wait at once; `false` (and a note on stderr) if not.
    pub(crate) fn bears_a_crowd(&self) -> bool {
        noted(self.can.crowd, "this engine cannot be asked by 10,001 callers at once")
    }

    /// Whether a caller that hangs up has left before the next call arrives; `false` (and a note on stderr) if not.
    pub(crate) fn sees_hang_ups(&self) -> bool {
        noted(self.can.hang_up, "a call may overtake the end of another at this engine")
    }

    /// Steps the clock back; `false` (and a note on stderr) if this clock cannot.
    pub(crate) async fn back(&self, span: Span) -> bool {
        if !noted(self.can.clock_back, "this engine's clock cannot be stepped back by the suite") {
            return false;
        }
        self.clock.back(span).await;
        true
    }
    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }
    pub(crate) async fn pass(&self, span: Span) {
        self.clock.pass(span).await;
    }
    pub(crate) async fn wall_leap(&self, span: Span) {
        self.clock.wall_leap(span).await;
    }
    pub(crate) async fn leap(&self, span: Span) {
        self.clock.leap(span).await;
    }
}
