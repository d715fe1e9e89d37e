//! Keeper: extends the leases of this process, and reports when one must be given up.
//!
//! It has a thread and a runtime of its own: user code that blocks its runtime must not stop the heartbeats of the
//! other leases of this process. It runs no user code, decides nothing about jobs, and never reads the wall clock: 0.8
//! of a ttl counts from when the last answered heartbeat was *sent*, on a clock that goes on while the machine is
//! suspended.

mod held;
mod table;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use tenure_core::bounds::ITEMS_MAX;
use tenure_core::lease::{LeaseView, SettleItem};
use tenure_core::names::Namespace;
use tenure_core::requests::{Extend, Settle};
use tenure_core::time::Span;
use tenure_engine_api::{CallError, Engine, EngineExt, Fault};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};

pub use self::held::{Held, LeaseWatch};
pub use self::table::Stop;
pub(crate) use self::table::lock;
use self::table::{Beats, Granted, Table};
use crate::asking::{is_engines, passes};
use crate::backoff::Backoff;
use crate::lease_clock::{LeaseClock, LeaseTime};
use crate::outcome::SettleOutcome;

/// A release without a waiting caller is retried for this long; then the lease expires by itself.
const RELEASE_MAX: Duration = Duration::from_secs(10);

struct KeeperInner {
    engine: Arc<dyn Engine>,
    namespace: Namespace,
    clock: LeaseClock,
    table: Mutex<Table>,
    releases: Mutex<Vec<SettleItem>>,
    wake: Notify,
    closing: AtomicBool,
    /// Why the last heartbeat failed; `None` after one that was answered.
    trouble: watch::Sender<Option<CallError>>,
}

/// Keeps the thread running: the thread ends with the last of these.
struct Handle {
    inner: Arc<KeeperInner>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.inner.closing.store(true, Ordering::Release);
        self.inner.wake.notify_one();
    }
}

/// Heartbeats for the leases of one namespace. Cheap to clone; its thread ends with the last clone
/// and the last [`Held`].
#[derive(Clone)]
pub struct Keeper {
    handle: Arc<Handle>,
}

impl Keeper {
    /// Starts the thread. `engine` should not retry calls by itself: the keeper does.
    ///
    /// # Errors
    /// The system cannot start a thread, or has no event queue for it.
    pub fn start(engine: Arc<dyn Engine>, namespace: Namespace) -> io::Result<Self> {
        let keeper = Keeper::unstarted(engine, namespace, LeaseClock::system());
        let inner = keeper.handle.inner.clone();
        let (tell, told) = mpsc::sync_channel::<io::Result<()>>(1);
        thread::Builder::new().name("tenure-keeper".to_owned()).spawn(move || {
            match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => {
                    // The caller of `start` may be gone already, which changes nothing.
                    let _ = tell.send(Ok(()));
                    runtime.block_on(keep(inner));
                }
                Err(why) => {
                    let _ = tell.send(Err(why));
                }
            }
        })?;
        told.recv().map_err(|_| io::Error::other("the keeper's thread ended at once"))??;
        Ok(keeper)
    }

    fn unstarted(engine: Arc<dyn Engine>, namespace: Namespace, clock: LeaseClock) -> Self {
        let inner = KeeperInner {
            engine,
            namespace,
            clock,
            table: Mutex::default(),
            releases: Mutex::default(),
            wake: Notify::new(),
            closing: AtomicBool::new(false),
            trouble: watch::Sender::new(None),
        };
        Keeper { handle: Arc::new(Handle { inner: Arc::new(inner) }) }
    }

    /// On the runtime of the caller, so that a test can move its clock.
    #[cfg(test)]
    pub(crate) fn start_here(
        engine: Arc<dyn Engine>,
        namespace: Namespace,
        clock: LeaseClock,
    ) -> Self {
        let keeper = Keeper::unstarted(engine, namespace, clock);
        tokio::spawn(keep(keeper.handle.inner.clone()));
        keeper
    }

    /// Why heartbeats are not answered; `None` while they are.
    pub(crate) fn trouble(&self) -> watch::Receiver<Option<CallError>> {
        self.handle.inner.trouble.subscribe()
    }

    /// The clock of its leases.
    pub(crate) fn clock(&self) -> &LeaseClock {
        &self.handle.inner.clock
    }

    /// Extends a lease from now on, until the [`Held`] is dropped.
    ///
    /// `ttl` is the one that the lease was asked for with, `asked` the time at which the lease call was first sent under
    /// its request id. A lease that is read later than 0.2 of its ttl after that is extended, and the answer read, before
    /// this returns: its work starts only then.
    ///
    /// # Errors
    /// Why no work may start: the lease is no longer held, or not known to be. It is given back if possible.
    pub async fn hold(&self, lease: &LeaseView, ttl: Span, asked: LeaseTime) -> Result<Held, Stop> {
        let held = self.confirm(lease, ttl, asked).await;
        if let (Err(_), Some(id)) = (&held, &lease.lease) {
            self.release(id.clone());
        }
        held
    }

    /// The same, but gives nothing back: for a caller that does so itself and waits for the answer, since its process
    /// may end before the keeper gets to it. If it is dropped, nothing is held.
    pub(crate) async fn confirm(
        &self,
        lease: &LeaseView,
        ttl: Span,
        asked: LeaseTime,
    ) -> Result<Held, Stop> {
        let held = self.hold_all([lease], ttl, asked).pop().ok_or(Stop::Lost)?;
        held.sure().await.map(|()| held)
    }

    /// Extends the leases of one answer from now on, in their order and without waiting: the work of a lease that was
    /// read late must wait for [`Held::sure`]. A lease without an id is left out.
    pub(crate) fn hold_all<'a>(
        &self,
        leases: impl IntoIterator<Item = &'a LeaseView>,
        ttl: Span,
        asked: LeaseTime,
    ) -> Vec<Held> {
        let granted = Granted { ttl: ttl.std(), asked, now: self.clock().now() };
        let inner = &self.handle.inner;
        let mut table = lock(&inner.table);
        let mut held = Vec::new();
        let mut wakes = false;
        for lease in leases {
            let Some(id) = lease.lease.clone() else { continue };
            let (taken, wake) = table.take(id, lease, granted);
            wakes |= wake;
            held.push(Held::new(taken, self.handle.clone()));
        }
        drop(table);
        if wakes {
            inner.wake.notify_one();
        }
        held
    }

    /// Gives a lease back without waiting for the answer: retried for ten seconds, then left to expire.
    pub fn release(&self, lease: String) {
        let item = SettleOutcome::released().of(lease);
        let inner = &self.handle.inner;
        lock(&inner.releases).push(item);
        inner.wake.notify_one();
    }
}

/// The loop of the thread.
async fn keep(inner: Arc<KeeperInner>) {
    let mut beating: JoinSet<(Beats, HeartbeatAnswer)> = JoinSet::new();
    let mut releasing: JoinSet<()> = JoinSet::new();
    loop {
        let mut releases = std::mem::take(&mut *lock(&inner.releases));
        while !releases.is_empty() {
            let rest = releases.split_off(releases.len().min(ITEMS_MAX));
            releasing.spawn(release(inner.clone(), std::mem::replace(&mut releases, rest)));
        }
        let closing = inner.closing.load(Ordering::Acquire);
        if closing && releasing.is_empty() && lock(&inner.releases).is_empty() {
            return;
        }
        let plan = lock(&inner.table).plan(inner.clock.now());
        for beats in plan.calls {
            beating.spawn(beat(inner.clone(), beats));
        }
        let next = async {
            match plan.next {
                Some(next) => inner.clock.sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = inner.wake.notified() => {}
            () = next => {}
            Some(done) = beating.join_next() => {
                if let Ok((beats, heard)) = done {
                    note(&inner, beats, heard);
                }
            }
            Some(_) = releasing.join_next() => {}
        }
    }
}

type HeartbeatAnswer = Result<tenure_core::lease::Extended, CallError>;

/// One heartbeat call. The next one does not wait for a slow one: it is sent when it is due, and each answer counts.
async fn beat(inner: Arc<KeeperInner>, beats: Beats) -> (Beats, HeartbeatAnswer) {
    let extend = Extend { leases: beats.items(), ttl: None };
    let call = inner.engine.run(&inner.namespace, extend);
    let heard = timeout(beats.ttl, call).await;
    let heard = heard.unwrap_or_else(|_| {
        Err(CallError::Fault(Fault::Unavailable("a heartbeat was not answered".to_owned())))
    });
    (beats, heard)
}

fn note(inner: &KeeperInner, beats: Beats, heard: HeartbeatAnswer) {
    let trouble = heard.as_ref().err().filter(|error| passes(error)).cloned();
    inner.trouble.send_if_modified(|last| {
        let news = last.is_some() || trouble.is_some();
        *last = trouble;
        news
    });
    let mut table = lock(&inner.table);
    match heard {
        Ok(extended) => table.heard(&beats, &extended),
        Err(error) => {
            // A temporary failure says nothing about a report that was sent along.
            let refused = matches!(&error, CallError::Refused(no) if !is_engines(no.code));
            table.failed(beats, inner.clock.now(), refused);
        }
    }
}

async fn release(inner: Arc<KeeperInner>, items: Vec<SettleItem>) {
    let until = Instant::now() + RELEASE_MAX;
    let mut backoff = Backoff::default();
    loop {
        let settle = Settle::of(items.clone());
        let done = timeout_at(until, inner.engine.run(&inner.namespace, settle)).await;
        match done {
            Ok(Err(error)) if passes(&error) => sleep(backoff.wait()).await,
            _ => return,
        }
        if Instant::now() >= until {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
