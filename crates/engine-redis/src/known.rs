//! What this process knows of a namespace, in case the store forgets it: the key that its leases' ids are
//! signed with, the longest ttl that was granted lately, its store epoch, and whether it recovers now.
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
    state: Mutex<KnownState>,
}

#[derive(Default)]
struct KnownState {
    signer: Option<Arc<Signer>>,
    ttls: Option<Ttls>,
    epoch: Option<KnownEpoch>,
    /// The end of the recovery, by this process's own watch.
    recovers_until: Option<Instant>,
}

/// In which store this process last was: another epoch is another store, and what was known is lost.
struct KnownEpoch {
    epoch: Arc<str>,
    /// When it was last heard of, by this process's watch, in µs.
    heard: u64,
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
    fn lock(&self) -> MutexGuard<'_, KnownState> {
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

    /// The epoch of the store, and how many µs ago it was last heard of.
    pub(crate) fn epoch(&self, watch: u64) -> (Option<Arc<str>>, u64) {
        let state = self.lock();
        let known = state.epoch.as_ref();
        known.map_or((None, 0), |at| (Some(at.epoch.clone()), watch.saturating_sub(at.heard)))
    }

    /// When the epoch of the store began, by its own clock, in µs; `None` if that is not known.
    pub(crate) fn epoch_began_at(&self) -> Option<u64> {
        let state = self.lock();
        state.epoch.as_ref()?.epoch.split_once('-')?.0.parse().ok()
    }

    /// A call that told what is known here was answered that this is the store that it was.
    pub(crate) fn same_epoch(&self, watch: u64) {
        if let Some(known) = &mut self.lock().epoch {
            known.heard = known.heard.max(watch);
        }
    }

    /// A call that told this epoch was answered that it is another. From now on that one is known here, unless
    /// what was told is not what is known by now: the loss of that was not told yet.
    pub(crate) fn other_epoch(&self, told: Option<&str>, there: String, watch: u64) {
        let mut state = self.lock();
        if state.epoch.as_ref().map(|known| &*known.epoch) == told {
            state.epoch = Some(KnownEpoch { epoch: there.into(), heard: watch });
        }
    }

    /// An answer says whether the namespace recovers, and for how long (µs) from then on.
    pub(crate) fn heard_recovery(&self, left: Option<u64>, received: Instant) {
        self.lock().recovers_until = left.map(|us| received + Duration::from_micros(us));
    }

    /// For how long the namespace still recovers, as far as is known here.
    pub(crate) fn recovers_for(&self) -> Option<Duration> {
        let left = self.lock().recovers_until?.checked_duration_since(Instant::now())?;
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
    fn another_epoch_is_taken_for_known_only_when_the_loss_of_the_last_was_told() {
        let known = Known::default();
        let epoch = |watch| {
            let (epoch, age) = known.epoch(watch);
            (epoch.as_deref().map(str::to_owned), age)
        };
        known.same_epoch(1);
        assert_eq!(epoch(5), (None, 0));
        known.other_epoch(None, "1-a".to_owned(), 10);
        assert_eq!(epoch(15), (Some("1-a".to_owned()), 5));
        known.same_epoch(20);
        known.same_epoch(18);
        assert_eq!(epoch(25), (Some("1-a".to_owned()), 5));
        // A call that was made when none was known yet, and was done after a loss: nobody has told that.
        known.other_epoch(None, "2-b".to_owned(), 30);
        assert_eq!(epoch(30), (Some("1-a".to_owned()), 10));
        known.other_epoch(Some("1-a"), "2-b".to_owned(), 40);
        assert_eq!(epoch(40), (Some("2-b".to_owned()), 0));
        // Two calls told the same loss.
        known.other_epoch(Some("1-a"), "2-b".to_owned(), 50);
        assert_eq!(epoch(50), (Some("2-b".to_owned()), 10));
        assert_eq!(known.epoch_began_at(), Some(2));
        known.other_epoch(Some("2-b"), "3+b".to_owned(), 60);
        assert_eq!(known.epoch_began_at(), None, "it was there before");
    }

    #[test]
    fn a_recovery_ends_by_itself() {
        let known = Known::default();
        assert_eq!(known.recovers_for(), None);
        known.heard_recovery(Some(60_000_000), Instant::now());
        assert!(known.recovers_for().is_some_and(|left| left > Duration::from_secs(50)));
        known.heard_recovery(Some(0), Instant::now());
        assert_eq!(known.recovers_for(), None);
        known.heard_recovery(None, Instant::now());
        assert_eq!(known.recovers_for(), None);
    }
}
