//! Timers: keys by time, earliest first. It never acts: `tick` takes the due ones.

use std::collections::BTreeSet;

use tenure_core::time::Moment;

/// A set of (time, key) pairs.
#[derive(Debug)]
pub(crate) struct Timers<K: Ord>(BTreeSet<(Moment, K)>);

impl<K: Ord> Default for Timers<K> {
    fn default() -> Self {
        Timers(BTreeSet::new())
    }
}

impl<K: Ord + Clone> Timers<K> {
    pub(crate) fn set(&mut self, at: Moment, what: K) {
        self.0.insert((at, what));
    }
    pub(crate) fn clear(&mut self, at: Moment, what: K) {
        self.0.remove(&(at, what));
    }
    pub(crate) fn next(&self) -> Option<Moment> {
        self.0.first().map(|(at, _)| *at)
    }
    pub(crate) fn has(&self, at: Moment, what: &K) -> bool {
        self.0.contains(&(at, what.clone()))
    }
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
    /// The first, if it is due.
    pub(crate) fn first_due(&self, now: Moment) -> Option<K> {
        self.0.first().filter(|(at, _)| *at <= now).map(|(_, what)| what.clone())
    }
    /// Takes the first if it is due.
    pub(crate) fn take_due(&mut self, now: Moment) -> Option<(Moment, K)> {
        if self.next()? > now {
            return None;
        }
        self.0.pop_first()
    }
    /// Takes all timers, so that they are set again (after the clock was set back).
    pub(crate) fn drain(&mut self) -> BTreeSet<(Moment, K)> {
        std::mem::take(&mut self.0)
    }
}
