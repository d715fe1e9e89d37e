//! Resting namespaces: namespaces without content, reduced to the few numbers that outlive it.
//!
//! A namespace lives for a day after its last call, for its numbers and its events. A server may have thousands of
//! these, so a resting one keeps no tables of a [`Space`]. Its first step makes them again.

use crate::Machine;
use crate::state::{Dependencies, Leases, Limits, Outbox, Pools, Space, WaitingLines};
use crate::step::ends_at;
use tenure_core::bounds::CLOCK_BEHIND_LOUD_US;
use tenure_core::lease::Fence;
use tenure_core::names::Namespace;
use tenure_core::time::{Moment, Span};

/// True if a time that was seen is far enough ahead of the clock for a report.
pub(crate) fn is_ahead(seen: Moment, clock: Moment) -> bool {
    seen.since(clock) > Span::from_us(CLOCK_BEHIND_LOUD_US)
}

/// The numbers of an empty namespace. The fields are those of [`Space`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Resting {
    used_at: Moment,
    last: Moment,
    pulse: Moment,
    deaf_at: Moment,
    largest_ttl: Span,
    recovered_at: Moment,
    fence: Fence,
    arrival: u64,
    used: u64,
    told: u64,
    settings_generation: u64,
    written: Option<(Fence, u64, u64)>,
}

impl Resting {
    /// The end of the namespace if no call comes.
    pub(crate) fn ends_at(&self) -> Moment {
        ends_at(self.used_at, self.fence)
    }

    /// The latest time that it has seen.
    pub(crate) fn last(&self) -> Moment {
        self.last
    }

    /// Restores the namespace from its numbers.
    pub(crate) fn wake(&self, name: &Namespace, patience: Span) -> Space {
        let Resting { used_at, last, pulse, deaf_at, .. } = *self;
        let Resting { recovered_at, written, .. } = *self;
        Space {
            used_at,
            last,
            pulse,
            deaf_at,
            leases: Leases::none_after(self.fence, self.largest_ttl),
            recovered_at,
            lines: WaitingLines::none_after(self.arrival),
            pools: Pools::none_after(self.used),
            dependencies: Dependencies::none_after(self.told),
            limits: Limits::none_after(self.settings_generation),
            outbox: Outbox::after(written),
            ..Space::new(name.clone(), patience)
        }
    }
}

impl Space {
    /// Its numbers, if neither a user nor its own steps need anything else of it.
    fn rests(&self) -> Option<Resting> {
        let rests = self.holds_nothing()
            && self.next_due() == self.ends_at()
            && self.lines.are_none()
            && self.dependencies.no_job_is_followed()
            && self.recovers_until.is_none()
            && self.behind.is_none()
            && self.outbox.is_drained();
        if !rests {
            return None;
        }
        Some(Resting {
            used_at: self.used_at,
            last: self.last,
            pulse: self.pulse,
            deaf_at: self.deaf_at,
            largest_ttl: self.leases.largest_ttl(),
            recovered_at: self.recovered_at,
            fence: self.leases.last_fence(),
            arrival: self.lines.last_arrival(),
            used: self.pools.used(),
            told: self.dependencies.last_told(),
            settings_generation: self.limits.generation(),
            written: self.outbox.written(),
        })
    }
}

impl Machine {
    /// Lets a drained namespace rest if it holds nothing.
    pub(crate) fn let_rest(&mut self, namespace: &Namespace) {
        let Some(space) = self.spaces.get_mut(namespace) else { return };
        let Some(resting) = space.rests() else { return space.drop_empty_tables() };
        #[cfg(test)]
        tests::is_the_same(&resting.wake(namespace, space.patience), space);
        self.spaces.remove(namespace);
        self.resting.insert(namespace.clone(), resting);
    }

    /// Restores the tables of a namespace; false if it did not rest.
    pub(crate) fn wake(&mut self, namespace: &Namespace) -> bool {
        let Some(resting) = self.resting.remove(namespace) else { return false };
        let space = Box::new(resting.wake(namespace, self.config.patience));
        self.spaces.insert(namespace.clone(), space);
        true
    }

    pub(crate) fn wake_all(&mut self) {
        for (name, resting) in std::mem::take(&mut self.resting) {
            let space = Box::new(resting.wake(&name, self.config.patience));
            self.spaces.insert(name, space);
        }
    }

    /// Resting namespaces that saw a time far ahead of the clock.
    pub(crate) fn resting_ahead(&self, clock: Moment) -> impl Iterator<Item = Namespace> + '_ {
        let ahead = move |resting: &Resting| is_ahead(resting.last, clock);
        self.resting.iter().filter(move |(_, resting)| ahead(resting)).map(|(name, _)| name.clone())
    }

    /// Restored copies of all resting namespaces.
    pub(crate) fn woken(&self) -> impl Iterator<Item = Space> + '_ {
        self.resting.iter().map(|(name, resting)| resting.wake(name, self.config.patience))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Machine {
        /// The latest time that a namespace has seen, resting or not.
        pub(crate) fn last_in(&self, namespace: &Namespace) -> Option<Moment> {
            let awake = self.spaces.get(namespace).map(|space| space.last);
            awake.or_else(|| self.resting.get(namespace).map(Resting::last))
        }
    }

    /// Every history of the tests checks this for each namespace that goes to rest.
    pub(crate) fn is_the_same(woken: &Space, space: &Space) {
        assert_eq!(format!("{woken:#?}"), format!("{space:#?}"));
    }
}
