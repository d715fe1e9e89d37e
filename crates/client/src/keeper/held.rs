//! A lease that the keeper extends, as its holder sees it.
//!
//! It reports; it never stops the holder's work by itself.

use std::pin::pin;
use std::sync::Arc;

use tenure_core::bounds::PROGRESS_BYTES_MAX;
use tenure_core::refusal::Refusal;
use tenure_core::secret::Json;
use tenure_core::sentences::LeaseRefusal;

use super::Handle;
use super::table::{Kept, Stop, Taken, lock};
use crate::lease_clock::{LeaseClock, LeaseTime};

/// A lease that is extended until this is dropped. Dropping it does not give the lease back.
pub struct Held {
    taken: Taken,
    handle: Arc<Handle>,
}

impl Held {
    pub(super) fn new(taken: Taken, handle: Arc<Handle>) -> Self {
        Held { taken, handle }
    }

    fn kept(&self) -> &Kept {
        &self.taken.kept
    }
    fn clock(&self) -> &LeaseClock {
        &self.handle.inner.clock
    }

    /// The id of the lease.
    pub fn lease(&self) -> &str {
        &self.kept().lease
    }

    /// Whether it was ever known to be held: its answer was fresh, or an extend was answered since.
    pub(crate) fn was_sure(&self) -> bool {
        self.kept().pulse().sure
    }

    /// Waits until the lease is known to be held, or known not to be.
    pub(crate) async fn sure(&self) -> Result<(), Stop> {
        loop {
            let mut changed = pin!(self.kept().changed());
            changed.as_mut().enable();
            let now = self.kept().pulse();
            match now.ended {
                Some(stop) => return Err(stop),
                // The answer that made it sure may have come too late.
                None if now.sure => {
                    return self.stop().filter(|stop| *stop == Stop::Lost).map_or(Ok(()), Err);
                }
                None if self.kept().is_let_go() => return Err(Stop::Lost),
                None => {}
            }
            changed.await;
        }
    }

    /// Why the work must stop now; `None` if it may go on.
    pub fn stop(&self) -> Option<Stop> {
        self.kept().pulse().stop(self.kept().ttl, self.clock().now())
    }

    /// Waits until the work must stop, and returns why. It has a timer of its own, so that it is on time even if the
    /// keeper's thread is not. Needs a Tokio runtime with time enabled.
    pub async fn stopped(&self) -> Stop {
        let kept = self.kept();
        loop {
            // Enabled before the check, so that no change between the two is missed.
            let mut changed = pin!(kept.changed());
            changed.as_mut().enable();
            let now = kept.pulse();
            if let Some(stop) = now.stop(kept.ttl, self.clock().now()) {
                return stop;
            }
            if kept.is_let_go() {
                // Nothing extends it any more.
                return Stop::Lost;
            }
            tokio::select! {
                () = changed => {}
                () = self.clock().sleep_until(now.stop_by(kept.ttl)) => {}
            }
        }
    }

    /// The time by which the work must have stopped if no further heartbeat is answered: 0.8 of the ttl after the last
    /// one was sent, and never after the deadline of the run. Moves with every heartbeat, and comes nearer if the machine is
    /// suspended: then the clock of [`std::time::Instant`] may stand still, and the lease runs out.
    pub fn stop_by(&self) -> std::time::Instant {
        self.clock().instant(self.kept().stop_by())
    }

    /// The time after which no part of the work may still run: 0.95 of the ttl after the last answered heartbeat was
    /// sent. Kill whatever has not ended by then. Moves as [`Held::stop_by`] does.
    pub fn hard_limit(&self) -> std::time::Instant {
        self.clock().instant(self.kept().hard_limit())
    }

    /// A view of the lease for use elsewhere, such as on another thread.
    pub fn watch(&self) -> LeaseWatch {
        LeaseWatch { kept: self.taken.kept.clone(), clock: self.clock().clone() }
    }

    /// Reports progress with the next heartbeat; a later report replaces one that was not sent yet. A worker also sends
    /// it with the outcome of its job. JSON's `null` is no report.
    ///
    /// # Errors
    /// `out_of_bounds`: it is longer than 4 KiB, and nothing is reported.
    pub fn set_progress(&self, progress: Json) -> Result<(), Refusal> {
        let len = progress.text().len();
        if len > PROGRESS_BYTES_MAX {
            let no = LeaseRefusal::ProgressTooLong { bytes: len, most: PROGRESS_BYTES_MAX };
            return Err(Refusal::from(no).at("/progress"));
        }
        if !progress.is_null() {
            *lock(&self.kept().report) = Some(progress);
        }
        Ok(())
    }

    /// The last report, unless a heartbeat has already sent it.
    pub(crate) fn unsent_progress(&self) -> Option<Json> {
        lock(&self.kept().report).clone()
    }
}

/// Shows how long a lease is known to be held, without keeping it alive: heartbeats end with the [`Held`], however long
/// this lives. Cheap to clone.
#[derive(Clone)]
pub struct LeaseWatch {
    kept: Arc<Kept>,
    clock: LeaseClock,
}

impl LeaseWatch {
    /// The same time as [`Held::stop_by`], on the clock of leases.
    #[doc(hidden)]
    pub fn stop_by(&self) -> LeaseTime {
        self.kept.stop_by()
    }
    /// The same time as [`Held::hard_limit`], on the clock of leases.
    #[doc(hidden)]
    pub fn hard_limit(&self) -> LeaseTime {
        self.kept.hard_limit()
    }
    /// Completes at this moment, also if the machine is suspended meanwhile. Needs a Tokio runtime with time enabled.
    #[doc(hidden)]
    pub async fn comes(&self, at: LeaseTime) {
        self.clock.sleep_until(at).await;
    }
    /// Completes when [`LeaseWatch::stop_by`] differs from this time; every answered heartbeat moves it.
    #[doc(hidden)]
    pub async fn moved_from(&self, stop_by: LeaseTime) {
        loop {
            // Enabled before the check, so that no change between the two is missed.
            let mut changed = pin!(self.kept.changed());
            changed.as_mut().enable();
            if self.stop_by() != stop_by {
                return;
            }
            changed.await;
        }
    }
}

impl Held {
    /// Stops extending these, even if watches of them remain. All must belong to one keeper.
    pub(crate) fn let_go<'a>(all: impl IntoIterator<Item = &'a Held>) {
        let mut all = all.into_iter().peekable();
        let Some(handle) = all.peek().map(|held| held.handle.clone()) else { return };
        let mut table = lock(&handle.inner.table);
        for held in all {
            table.let_go(&held.taken);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.kept().is_let_go() {
            lock(&self.handle.inner.table).let_go(&self.taken);
        }
    }
}
