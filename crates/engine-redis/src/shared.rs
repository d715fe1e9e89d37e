//! What the calls of one engine share: the link, the namespaces that are in use, and who is told when
//! it ends. It keeps nothing that another process could not.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::names::Namespace;
use tenure_core::time::Moment;
use tenure_engine::{Clock, FailedCalls, LastLeap, StoreTimes, SystemClock};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout};

use crate::call::Caller;
use crate::encode::SpaceArg;
use crate::gauges::GaugeReaders;
use crate::link::Link;
use crate::options::{Options, Time};
use crate::waiting::{DeniedChannel, Signals, Space, keep_time};

/// A namespace of which nothing was asked and nothing is due for so long is forgotten here.
const IDLE: Duration = Duration::from_secs(600);

/// Calls of one process that are under way at once; the others wait for their turn here, in order.
/// What waits in a server's socket delays all that comes after it, also the answer by which a
/// connection shows that it lives, and the tick by which the process does.
const UNDER_WAY_MAX: usize = 64;

/// See the module.
pub(crate) struct Shared {
    pub link: Link,
    /// The name of this process.
    pub proc: String,
    pub time: Time,
    /// The operator says that this store forgets nothing.
    pub forgets_never: bool,
    /// What the operator says of each namespace.
    pub of_spaces: Option<SpaceArg>,
    /// Where the tasks of this engine live.
    pub runtime: Handle,
    pub signals: Signals,
    /// Who reads gauges here.
    pub gauge_readers: GaugeReaders,
    /// Whether this process may publish its notifications.
    pub denied: Arc<DeniedChannel>,
    /// A turn for each call that may be under way.
    pub turns: Semaphore,
    /// When this engine was opened.
    began: Instant,
    /// The test's clock, in µs.
    moved: AtomicU64,
    /// The test's monotonic clock, in µs.
    moved_watch: AtomicU64,
    /// How often the test's clock began to be moved, and was: odd while it is.
    moves: AtomicU64,
    pub last_leap: LastLeap,
    /// How long calls take.
    pub times: StoreTimes,
    /// Calls without an answer.
    pub failed: FailedCalls,
    takers: AtomicU64,
    spaces: Mutex<HashMap<Namespace, Arc<Space>>>,
    draining: watch::Sender<bool>,
    closing: watch::Sender<bool>,
    /// Tasks that will yet say something to the server although nobody waits for them here.
    owing: watch::Sender<usize>,
}

/// What this process's watch shows, in µs, and how often a test had moved it.
#[derive(Clone, Copy)]
pub(crate) struct WatchReading {
    pub us: u64,
    pub moves: u64,
}

/// A task that may have to say something to the server before this process goes.
pub(crate) struct Owing(Arc<Shared>);

impl Drop for Owing {
    fn drop(&mut self) {
        self.0.owing.send_modify(|tasks| *tasks -= 1);
    }
}

impl Shared {
    pub(crate) fn new(link: Link, proc: String, options: &Options, runtime: Handle) -> Self {
        Shared {
            link,
            proc,
            time: options.time,
            forgets_never: options.forgets_never,
            of_spaces: options.of_spaces(),
            runtime,
            signals: Signals::default(),
            gauge_readers: GaugeReaders::default(),
            denied: Arc::default(),
            turns: Semaphore::new(UNDER_WAY_MAX),
            began: Instant::now(),
            moved: AtomicU64::new(0),
            moved_watch: AtomicU64::new(0),
            moves: AtomicU64::new(0),
            last_leap: LastLeap::default(),
            times: StoreTimes::default(),
            failed: FailedCalls::default(),
            takers: AtomicU64::new(0),
            spaces: Mutex::default(),
            draining: watch::Sender::new(false),
            closing: watch::Sender::new(false),
            owing: watch::Sender::new(0),
        }
    }

    /// Who calls in a namespace. Its timer runs from the first call on.
    pub(crate) fn caller(self: &Arc<Self>, namespace: &Namespace) -> Caller {
        let mut spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(space) = spaces.get(namespace) {
            space.called();
            return Caller { shared: self.clone(), space: space.clone() };
        }
        let space = Arc::new(Space::new(namespace.clone(), self.link.address(), &self.proc));
        spaces.insert(namespace.clone(), space.clone());
        drop(spaces);
        self.runtime.spawn(keep_time(Arc::downgrade(self), space.clone(), self.closing()));
        Caller { shared: self.clone(), space }
    }

    /// The namespaces in use.
    pub(crate) fn spaces(&self) -> Vec<Arc<Space>> {
        let spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        spaces.values().cloned().collect()
    }

    /// Forgets a namespace that nobody uses any more; whether it did.
    pub(crate) fn forget_if_idle(&self, space: &Arc<Space>) -> bool {
        let mut spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        if space.is_idle(IDLE) {
            self.signals.forget(space);
            spaces.remove(&space.name);
            return true;
        }
        false
    }

    /// When a namespace that is quiet now may be forgotten.
    pub(crate) fn idle_at(&self) -> Instant {
        Instant::now() + IDLE
    }

    /// The number of a call that may wait; unique in this process.
    pub(crate) fn next_taker(&self) -> u64 {
        self.takers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The test's clock.
    pub(crate) fn moved(&self) -> Moment {
        Moment::from_us(self.moved.load(Ordering::Acquire))
    }

    /// The test's clock begins to be moved: the server's is another already, and this one is not yet.
    pub(crate) fn moves(&self) {
        self.moves.fetch_or(1, Ordering::AcqRel);
    }

    /// It was moved.
    pub(crate) fn set_moved(&self, now: Moment, monotonic: Duration) {
        self.moves();
        self.moved.store(now.us(), Ordering::Release);
        let watch = u64::try_from(monotonic.as_micros()).unwrap_or(u64::MAX);
        self.moved_watch.store(watch, Ordering::Release);
        self.moves.fetch_add(1, Ordering::AcqRel);
    }

    /// This process's watch, in µs: it goes on whatever any clock shows, unless a test moves it.
    pub(crate) fn watch(&self) -> u64 {
        match self.time {
            Time::Server => self.began.elapsed().as_micros().try_into().unwrap_or(u64::MAX),
            Time::Testing | Time::TestingByHand => self.moved_watch.load(Ordering::Acquire),
        }
    }

    /// The same, for what is measured of a call; nothing while a test moves the clock.
    pub(crate) fn watch_for_calls(&self) -> Option<WatchReading> {
        let moves = self.moves.load(Ordering::Acquire);
        moves.is_multiple_of(2).then(|| WatchReading { us: self.watch(), moves })
    }

    /// Now, for ids that are made here: nothing is decided by it.
    pub(crate) fn wall(&self) -> Moment {
        SystemClock.now()
    }

    /// From now on nothing is granted to those who wait.
    pub(crate) fn drain(&self) {
        self.draining.send_replace(true);
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Tells when it drains.
    pub(crate) fn draining(&self) -> watch::Receiver<bool> {
        self.draining.subscribe()
    }

    /// A task begins that may have to say something to the server at its end.
    pub(crate) fn owing(self: &Arc<Self>) -> Owing {
        self.owing.send_modify(|tasks| *tasks += 1);
        Owing(self.clone())
    }

    /// Returns when all of them have ended, or after so long.
    pub(crate) async fn quiet(&self, within: Duration) {
        let mut owing = self.owing.subscribe();
        let _ = timeout(within, owing.wait_for(|tasks| *tasks == 0)).await;
    }

    /// The tasks end.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Tells when the tasks are to end.
    pub(crate) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }
}
