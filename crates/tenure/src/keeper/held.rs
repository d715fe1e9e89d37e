//! A lease in the keeper's care, as its holder sees it.
//!
//! It tells; it never stops the holder's work by itself.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::bounds::PROGRESS_BYTES_MAX;
use tenure_core::refusal::Refusal;
use tenure_core::secret::Json;
use tenure_core::sentences::LeaseRefusal;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::Handle;
use super::table::{PendingProgress, Pulse, Stop, lock};

/// A lease that is extended until this is dropped. Dropping it gives nothing back.
pub struct Held {
    lease: String,
    key: u64,
    ttl: Duration,
    pulse: watch::Receiver<Pulse>,
    report: PendingProgress,
    handle: Arc<Handle>,
}

impl Held {
    pub(super) fn new(
        lease: String,
        key: u64,
        ttl: Duration,
        pulse: watch::Receiver<Pulse>,
        report: PendingProgress,
        handle: Arc<Handle>,
    ) -> Self {
        Held { lease, key, ttl, pulse, report, handle }
    }

    /// The lease's id.
    pub fn lease(&self) -> &str {
        &self.lease
    }

    /// Until it is known to be held, or known not to be.
    pub(super) async fn sure(&self) -> Result<(), Stop> {
        let mut pulse = self.pulse.clone();
        loop {
            let now = *pulse.borrow_and_update();
            match now.ended {
                Some(stop) => return Err(stop),
                None if now.sure => return Ok(()),
                None => {}
            }
            if pulse.changed().await.is_err() {
                return Err(Stop::Lost);
            }
        }
    }

    /// Why the work must stop, if it must: as of now.
    pub fn stop(&self) -> Option<Stop> {
        self.pulse.borrow().stop(self.ttl, Instant::now())
    }

    /// When the work must stop, and why. It has a timer of its own, so that it comes in time even
    /// if the keeper's thread does not. Needs a Tokio runtime with time enabled.
    pub async fn stopped(&self) -> Stop {
        let mut pulse = self.pulse.clone();
        loop {
            let now = *pulse.borrow_and_update();
            if let Some(stop) = now.stop(self.ttl, Instant::now()) {
                return stop;
            }
            tokio::select! {
                changed = pulse.changed() => {
                    if changed.is_err() && pulse.borrow().ended.is_none() {
                        // Nobody extends it any more.
                        return Stop::Lost;
                    }
                }
                () = sleep_until(now.stop_by(self.ttl)) => {}
            }
        }
    }

    /// When the work must have stopped if no further heartbeat is answered: 0.8 of the ttl after
    /// the last one was sent, and never after the deadline of the run. Moves with every heartbeat.
    pub fn stop_by(&self) -> std::time::Instant {
        self.pulse.borrow().stop_by(self.ttl).into_std()
    }

    /// When nothing of the work may run any more: 0.95 of the ttl after the last answered heartbeat
    /// was sent. What has not ended by then is to be killed.
    pub fn hard_limit(&self) -> std::time::Instant {
        self.pulse.borrow().hard_limit(self.ttl).into_std()
    }

    /// Reports progress with the next heartbeat; a later report replaces one that was not sent yet.
    ///
    /// # Errors
    /// `out_of_bounds`: it is longer than 4 KiB, and nothing is reported.
    pub fn set_progress(&self, progress: Json) -> Result<(), Refusal> {
        let len = progress.text().len();
        if len > PROGRESS_BYTES_MAX {
            let no = LeaseRefusal::ProgressTooLong { bytes: len, most: PROGRESS_BYTES_MAX };
            return Err(Refusal::from(no).at("/progress"));
        }
        *lock(&self.report) = Some(progress);
        Ok(())
    }
}

impl Held {
    /// Extends it no more, although somebody may still look at it.
    pub(crate) fn let_go(&self) {
        lock(&self.handle.inner.table).drop_lease(&self.lease, self.key);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.let_go();
    }
}
