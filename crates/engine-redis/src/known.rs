//! What this process knows of a namespace, in case the store forgets it: the key that its leases' ids are
//! signed with, the longest ttl that was granted lately, and whether it learns now.
//!
//! It is offered with every call that may find another store, and never decides anything.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::lease_id::Signer;

/// The shortest time for which a ttl is remembered that nobody uses any more.
const LATELY_MIN: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Default)]
pub(crate) struct Known {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    signer: Option<Arc<Signer>>,
    ttls: Option<Ttls>,
    /// The end of learning, by this process's own watch.
    learns: Option<Instant>,
}

/// The longest ttl of some time, and that of the time before it. As in `lua/machine/space.lua`: each such
/// time is at least as long as the longest ttl of both, so a ttl is forgotten only when it has passed.
struct Ttls {
    since: Instant,
    longest: u64,
    before: u64,
}

impl Ttls {
    fn saw(&mut self, ttl: u64, now: Instant) {
        let length = Duration::from_micros(self.longest.max(self.before)).max(LATELY_MIN);
        let age = now.saturating_duration_since(self.since);
        if age >= length {
            self.before = if age >= 2 * length { 0 } else { self.longest };
            (self.longest, self.since) = (0, now);
        }
        self.longest = self.longest.max(ttl);
    }
}

impl Known {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who signs ids, once the key is known here.
    pub(crate) fn signer(&self) -> Option<Arc<Signer>> {
        self.lock().signer.clone()
    }

    /// The namespace's key is this one.
    pub(crate) fn has_key(&self, signer: Arc<Signer>) {
        self.lock().signer = Some(signer);
    }

    /// A lease of this ttl (µs) was asked for, or kept alive.
    pub(crate) fn saw_ttl(&self, ttl: u64) {
        let now = Instant::now();
        let mut state = self.lock();
        let ttls = state.ttls.get_or_insert(Ttls { since: now, longest: 0, before: 0 });
        ttls.saw(ttl, now);
    }

    /// The longest ttl that was seen lately, in µs; 0 for none.
    pub(crate) fn longest_ttl(&self) -> u64 {
        self.lock().ttls.as_ref().map_or(0, |ttls| ttls.longest.max(ttls.before))
    }

    /// An answer says whether the namespace learns, and for how long (µs) from then on.
    pub(crate) fn heard_learning(&self, left: Option<u64>, received: Instant) {
        self.lock().learns = left.map(|us| received + Duration::from_micros(us));
    }

    /// For how long the namespace still learns, as far as is known here.
    pub(crate) fn learns_for(&self) -> Option<Duration> {
        let left = self.lock().learns?.checked_duration_since(Instant::now())?;
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_US: u64 = 60_000_000;

    #[test]
    fn a_ttl_is_remembered_until_it_has_passed_and_not_for_ever() {
        let begin = Instant::now();
        let mut ttls = Ttls { since: begin, longest: 0, before: 0 };
        let after = |minutes: u64| begin + Duration::from_secs(60 * minutes);
        let longest = |ttls: &Ttls| ttls.longest.max(ttls.before);
        ttls.saw(30_000_000, begin);
        ttls.saw(10 * MINUTE_US, after(0));
        let mut minute = 0;
        while longest(&ttls) == 10 * MINUTE_US {
            minute += 1;
            ttls.saw(30_000_000, after(minute));
            assert!(minute < 60, "it is never forgotten");
        }
        assert!((10..=21).contains(&minute), "{minute}");
        assert_eq!(longest(&ttls), 30_000_000);
        // Nothing was granted for an hour: nothing of it can live.
        ttls.saw(5 * MINUTE_US, after(100));
        ttls.saw(1_000_000, after(200));
        assert_eq!(longest(&ttls), 1_000_000);
    }

    #[test]
    fn learning_ends_by_itself() {
        let known = Known::default();
        assert_eq!(known.learns_for(), None);
        known.heard_learning(Some(60_000_000), Instant::now());
        assert!(known.learns_for().is_some_and(|left| left > Duration::from_secs(50)));
        known.heard_learning(Some(0), Instant::now());
        assert_eq!(known.learns_for(), None);
        known.heard_learning(None, Instant::now());
        assert_eq!(known.learns_for(), None);
    }
}
