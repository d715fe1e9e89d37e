//! Usage probes (`Gauge`), beside the ticks: claims those that are due, and hands the claims to processes that read
//! them.

use std::time::Duration;

use tenure_engine_api::GaugeReader;
use tenure_machine::{Command, Done};

use super::StateThread;

/// Processes that read usage probes here. No number is used twice, so facts about a reader that left refer to no other.
#[derive(Debug, Default)]
pub(super) struct GaugeReaders {
    /// Readers with their numbers; the first one gets the first claim next time.
    readers: Vec<(u64, GaugeReader)>,
    added: u64,
}

impl GaugeReaders {
    /// Adds a reader under a new number.
    pub(super) fn add(&mut self, reader: GaugeReader) {
        self.added += 1;
        self.readers.push((self.added, reader));
    }

    /// True if there is any reader.
    pub(super) fn any(&self) -> bool {
        !self.readers.is_empty()
    }

    /// Forgets processes that stopped reading.
    fn look(&mut self) {
        self.readers.retain(|(_, reader)| reader.reads());
    }
}

impl StateThread {
    /// Claims the probes that are due, each for the reader that has waited longest.
    pub(super) fn gauges(&mut self) {
        if self.gauges_wait() != Some(Duration::ZERO) {
            return;
        }
        self.gauge_readers.look();
        let readers = self.gauge_readers.readers.clone();
        let now = self.shared.clock.now();
        for namespace in self.machine.gauges_due(now) {
            for (number, reader) in &readers {
                let others =
                    readers.iter().map(|(other, _)| other).filter(|other| *other != number);
                let others = others.map(u64::to_string).collect();
                let claim = Command::ClaimGauges { reader: number.to_string(), others };
                // A claim is never refused.
                let Ok(Done::Claimed(claims)) = self.apply(&namespace, claim) else { continue };
                self.absorb();
                for claim in claims {
                    // A reader that has just stopped does not answer: the attempt fails, and others follow.
                    let _ = reader.claimed(&namespace, claim);
                }
            }
        }
        if !self.gauge_readers.readers.is_empty() {
            self.gauge_readers.readers.rotate_left(1);
        }
    }

    /// The time until a probe must be claimed; `None` if there is no probe or no reader.
    pub(super) fn gauges_wait(&self) -> Option<Duration> {
        if self.gauge_readers.readers.is_empty() {
            return None;
        }
        let due = self.machine.next_gauge()?;
        let clock = &self.shared.clock;
        Some(if due <= clock.now() { Duration::ZERO } else { clock.sleep(due) })
    }
}
