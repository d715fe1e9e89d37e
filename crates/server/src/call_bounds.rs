//! How many calls one token makes: in a time, and at once. A token cannot take what the others need.
//!
//! Heartbeats and settles are never refused here: a holder that cannot extend its lease would lose it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::access::{CallRate, Grants};
use tenure_core::sentences::AccessRefusal;
use tokio::time::Instant;

/// The calls of one token.
#[derive(Debug, Default)]
pub(crate) struct CallCount {
    now: AtomicU32,
    /// When all calls of the rate may come again; earlier moments count as now. Initially `None`.
    full_at: Mutex<Option<Instant>>,
}

/// One call under way, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct CountedCall(Arc<CallCount>);

impl Drop for CountedCall {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::AcqRel);
    }
}

impl CallCount {
    /// Counts a call of the token with these grants, for as long as it is under way.
    ///
    /// # Errors
    /// The token has used up its bounds.
    pub(crate) fn begin(self: &Arc<Self>, grants: &Grants) -> Result<CountedCall, AccessRefusal> {
        let others = self.now.fetch_add(1, Ordering::AcqRel);
        let counted = CountedCall(self.clone());
        let caller = || grants.name().to_owned();
        if let Some(most) = grants.in_flight().filter(|most| others >= *most) {
            return Err(AccessRefusal::TooManyInFlight { caller: caller(), most });
        }
        if let Some(rate) = grants.calls() {
            self.spend(rate, Instant::now()).map_err(|wait| AccessRefusal::TooManyCalls {
                caller: caller(),
                calls: rate.to_string(),
                wait_s: wait.as_secs() + 1,
            })?;
        }
        Ok(counted)
    }

    /// Spends one call of the rate.
    ///
    /// # Errors
    /// How long until there is one.
    fn spend(&self, rate: CallRate, now: Instant) -> Result<(), Duration> {
        // By the generic cell rate algorithm: each call moves the moment on by its share of the time.
        let (per, share) = (rate.per.std(), rate.per.std() / rate.count);
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let next = full_at.map_or(now, |at| at.max(now)) + share;
        let ahead = next - now;
        if ahead > per {
            return Err(ahead - per);
        }
        *full_at = Some(next);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_lets_its_calls_come_at_once_and_then_one_by_one() {
        let count = CallCount::default();
        let rate: CallRate = "4/2s".parse().unwrap();
        let start = Instant::now();
        let spent = |at_ms: u64| count.spend(rate, start + Duration::from_millis(at_ms));
        assert!((0..4).all(|_| spent(0).is_ok()));
        assert_eq!(spent(0), Err(Duration::from_millis(500)));
        assert_eq!(spent(499), Err(Duration::from_millis(1)));
        assert_eq!((spent(500), spent(500).is_err()), (Ok(()), true));
        // A rest gives back no more than the burst.
        assert!((0..4).all(|_| spent(60_000).is_ok()) && spent(60_000).is_err());
    }
}
