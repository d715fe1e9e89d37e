//! What happened in steps, told to the operator: each fact to the log, and how many of each when the
//! store is closed.
//!
//! It decides nothing. What has to be told while it lasts, such as a clock that leaps, is in the
//! engine's health as well.

use tenure_core::events::{EventType, Happened};
use tenure_core::names::Namespace;
use tenure_machine::facts::Fact;

/// What happened since the store was opened.
#[derive(Debug)]
pub(super) struct FactCounts {
    /// By the places of their types.
    events: [u64; EventType::ALL.len()],
    reserved: u64,
}

impl Default for FactCounts {
    fn default() -> Self {
        FactCounts { events: [0; EventType::ALL.len()], reserved: 0 }
    }
}

impl FactCounts {
    /// Takes what one step did.
    pub(super) fn take(
        &mut self,
        events: &[(Namespace, Vec<Happened>)],
        facts: &[(Namespace, Fact)],
    ) {
        for (namespace, events) in events {
            for event in events {
                self.events[event.kind as usize] += 1;
                let Happened { kind, about, .. } = event;
                tracing::debug!(namespace = namespace.as_str(), %kind, ?about);
            }
        }
        for (namespace, fact) in facts {
            self.reserved += u64::from(matches!(fact, Fact::Reserved { .. }));
            tracing::debug!(namespace = namespace.as_str(), ?fact);
        }
    }

    fn of(&self, kind: EventType) -> u64 {
        self.events[kind as usize]
    }

    /// Says how many there were.
    pub(super) fn sum_up(&self) {
        tracing::info!(
            granted = self.of(EventType::JobGranted) + self.of(EventType::LeaseGranted),
            succeeded = self.of(EventType::JobSucceeded),
            failed = self.of(EventType::JobFailed),
            cancelled = self.of(EventType::JobCancelled),
            retrying = self.of(EventType::JobRetrying),
            snoozed = self.of(EventType::JobSnoozed),
            released = self.of(EventType::JobReleased),
            lost = self.of(EventType::JobLost),
            blocked = self.of(EventType::JobBlocked),
            reserved = self.reserved,
            "closing the store; what happened since it was opened"
        );
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::events::About;
    use tenure_core::time::Moment;

    use super::*;

    #[test]
    fn every_event_is_counted_under_its_own_name() {
        let (namespace, mut told) = (Namespace::parse("a").unwrap(), FactCounts::default());
        let happened = EventType::ALL.iter().zip(1..).flat_map(|(kind, times)| {
            let one = Happened { at: Moment::ZERO, kind: *kind, about: About::default() };
            std::iter::repeat_n(one, times)
        });
        let events = [(namespace.clone(), happened.collect())];
        told.take(&events, &[(namespace, Fact::Reserved { job: None })]);
        for (kind, times) in EventType::ALL.iter().zip(1..) {
            assert_eq!(told.of(*kind), times, "{kind}");
        }
        assert_eq!(told.reserved, 1);
    }
}
