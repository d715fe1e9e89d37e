//! Gauges, beside the ticks: those that are due are claimed for the processes that read, and handed on to them.

use std::time::Duration;

use tenure_machine::{Command, Done};
use tenure_seam::GaugeReader;

use super::StateThread;

/// Who reads gauges here. A number is never given twice, so that what is known of one that is gone means no other.
#[derive(Debug, Default)]
pub(super) struct GaugeReaders {
    /// With their numbers; the first is asked first the next time.
    readers: Vec<(u64, GaugeReader)>,
    added: u64,
}

impl GaugeReaders {
    /// One more reads.
    pub(super) fn add(&mut self, reader: GaugeReader) {
        self.added += 1;
        self.readers.push((self.added, reader));
    }

    /// Whether anybody reads.
    pub(super) fn any(&self) -> bool {
        !self.readers.is_empty()
    }

    /// Forgets those that stopped reading.
    fn look(&mut self) {
        self.readers.retain(|(_, reader)| reader.reads());
    }
}

impl StateThread {
    /// Claims what is due, each time for the reader that waits longest.
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
                // It refuses nothing.
                let Ok(Done::Claimed(claims)) = self.apply(&namespace, claim) else { continue };
                self.absorb();
                for claim in claims {
                    // One that stopped in this moment answers nothing: the attempt fails, and others come.
                    let _ = reader.claimed(&namespace, claim);
                }
            }
        }
        if !self.gauge_readers.readers.is_empty() {
            self.gauge_readers.readers.rotate_left(1);
        }
    }

    /// How long until a gauge is to be claimed; `None` if none is to be, or nobody reads.
    pub(super) fn gauges_wait(&self) -> Option<Duration> {
        if self.gauge_readers.readers.is_empty() {
            return None;
        }
        let due = self.machine.next_gauge()?;
        let clock = &self.shared.clock;
        Some(if due <= clock.now() { Duration::ZERO } else { clock.sleep(due) })
    }
}
