//! What happened in steps, told to the operator: each fact to the log, and how many of each when the
//! store is closed.
//!
//! It decides nothing. What has to be told while it lasts, such as a clock that leaps, is in the
//! engine's health as well.

use tenure_core::job::Outcome;
use tenure_core::names::Namespace;
use tenure_machine::facts::Fact;

/// What happened since the store was opened.
#[derive(Debug, Default)]
pub(super) struct FactCounts {
    granted: u64,
    blocked: u64,
    reserved: u64,
    ended: [u64; Outcome::ALL.len()],
}

impl FactCounts {
    /// Takes what one step did.
    pub(super) fn take(&mut self, facts: &[(Namespace, Fact)]) {
        for (namespace, fact) in facts {
            self.count(fact);
            tracing::debug!(namespace = namespace.as_str(), ?fact);
        }
    }

    fn count(&mut self, fact: &Fact) {
        match fact {
            Fact::Granted { .. } => self.granted += 1,
            Fact::Ended { outcome, .. } => self.ended[*outcome as usize] += 1,
            Fact::Blocked { .. } => self.blocked += 1,
            Fact::Reserved { .. } => self.reserved += 1,
            Fact::ReservationFell
            | Fact::ClockBehind { .. }
            | Fact::ClockLeapt { .. }
            | Fact::Deaf { .. } => {}
        }
    }

    fn ended(&self, outcome: Outcome) -> u64 {
        self.ended[outcome as usize]
    }

    /// Says how many there were.
    pub(super) fn sum_up(&self) {
        tracing::info!(
            granted = self.granted,
            succeeded = self.ended(Outcome::Succeeded),
            failed = self.ended(Outcome::Failed),
            snoozed = self.ended(Outcome::Snoozed),
            released = self.ended(Outcome::Released),
            lost = self.ended(Outcome::Lost),
            undelivered = self.ended(Outcome::Undelivered),
            blocked = self.blocked,
            reserved = self.reserved,
            "closing the store; leases since it was opened"
        );
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::lease::Fence;

    use super::*;

    #[test]
    fn every_fact_is_counted_under_its_own_name() {
        let (namespace, mut told) = (Namespace::parse("a").unwrap(), FactCounts::default());
        let ended = Outcome::ALL.iter().zip(1..).flat_map(|(outcome, times)| {
            let fact =
                Fact::Ended { fence: Fence::new(1), job: None, outcome: *outcome, state: None };
            std::iter::repeat_n((namespace.clone(), fact), times)
        });
        let ended: Vec<_> = ended.collect();
        told.take(&ended);
        let granted = Fact::Granted { fence: Fence::new(1), job: None, queue: None, arrival: 0 };
        told.take(&[(namespace.clone(), granted), (namespace, Fact::Reserved { job: None })]);
        for (outcome, times) in Outcome::ALL.iter().zip(1..) {
            assert_eq!(told.ended(*outcome), times, "{outcome:?}");
        }
        assert_eq!((told.granted, told.reserved, told.blocked), (1, 1, 0));
    }
}
