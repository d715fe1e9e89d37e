//! What this process knows of a namespace, in case the store forgets it: the key that its leases' ids are
//! signed with, the longest ttl that was granted lately, the stamp of its birth, and whether it learns now.
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
    birth: Option<Birth>,
    /// The end of learning, by this process's own watch.
    learns: Option<Instant>,
}

/// In which store this process last was: another stamp is another store, and what was known is lost.
struct Birth {
    stamp: Arc<str>,
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

    /// The stamp of the namespace's birth, and how many µs ago it was last heard of.
    pub(crate) fn birth(&self, watch: u64) -> (Option<Arc<str>>, u64) {
        let state = self.lock();
        let birth = state.birth.as_ref();
        birth.map_or((None, 0), |at| (Some(at.stamp.clone()), watch.saturating_sub(at.heard)))
    }

    /// When the store was born, by its own clock, in µs; `None` if that is not known.
    pub(crate) fn born_at(&self) -> Option<u64> {
        let state = self.lock();
        state.birth.as_ref()?.stamp.split_once('-')?.0.parse().ok()
    }

    /// A call that told what is known here was answered that this is the store that it was.
    pub(crate) fn same_birth(&self, watch: u64) {
        if let Some(birth) = &mut self.lock().birth {
            birth.heard = birth.heard.max(watch);
        }
    }

    /// A call that told this stamp was answered that it is another. From now on that one is known here, unless
    /// what was told is not what is known by now: the loss of that was not told yet.
    pub(crate) fn other_birth(&self, told: Option<&str>, stamp: String, watch: u64) {
        let mut state = self.lock();
        if state.birth.as_ref().map(|birth| &*birth.stamp) == told {
            state.birth = Some(Birth { stamp: stamp.into(), heard: watch });
        }
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
    fn another_birth_is_taken_for_known_only_when_the_loss_of_the_last_was_told() {
        let known = Known::default();
        let stamp = |watch| {
            let (stamp, age) = known.birth(watch);
            (stamp.as_deref().map(str::to_owned), age)
        };
        known.same_birth(1);
        assert_eq!(stamp(5), (None, 0));
        known.other_birth(None, "1-a".to_owned(), 10);
        assert_eq!(stamp(15), (Some("1-a".to_owned()), 5));
        known.same_birth(20);
        known.same_birth(18);
        assert_eq!(stamp(25), (Some("1-a".to_owned()), 5));
        // A call that was made when none was known yet, and was done after a loss: nobody has told that.
        known.other_birth(None, "2-b".to_owned(), 30);
        assert_eq!(stamp(30), (Some("1-a".to_owned()), 10));
        known.other_birth(Some("1-a"), "2-b".to_owned(), 40);
        assert_eq!(stamp(40), (Some("2-b".to_owned()), 0));
        // Two calls told the same loss.
        known.other_birth(Some("1-a"), "2-b".to_owned(), 50);
        assert_eq!(stamp(50), (Some("2-b".to_owned()), 10));
        assert_eq!(known.born_at(), Some(2));
        known.other_birth(Some("2-b"), "3+b".to_owned(), 60);
        assert_eq!(known.born_at(), None, "it was there before");
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
