//! Which namespaces have something to do, and when: so that ten thousand of them in which nothing happens
//! cost no call anything.
//!
//! The moments of a namespace change in its own steps and in nothing else. Those that took a step since the
//! last drain are asked; for all others stands here what they said then, and [`Machine::audit`](super::Machine::audit)
//! compares the two.

use std::collections::{BTreeMap, BTreeSet};

use super::audit::Findings;
use super::resting::Resting;
use super::state::Space;
use tenure_core::bounds::CLOCK_BEHIND_LOUD_US;
use tenure_core::names::Namespace;
use tenure_core::time::{Moment, Span};

/// The namespaces that do not rest. Each is behind a pointer: it is some KiB, and a tree has room for several times as
/// many as are in it.
pub(crate) type Spaces = BTreeMap<Namespace, Box<Space>>;

/// What a namespace can have to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Duty {
    /// A tick.
    Tick,
    /// Moments of schedules to decide.
    Fire,
    /// Gauges to claim.
    Gauge,
}

impl Duty {
    const ALL: [Duty; 3] = [Duty::Tick, Duty::Fire, Duty::Gauge];

    /// The soonest moment at which a namespace has it to do.
    fn of(self, space: &Space) -> Option<Moment> {
        match self {
            Duty::Tick => space.next_due(),
            Duty::Fire => space.next_fire(),
            Duty::Gauge => space.next_gauge(),
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    /// Namespaces that took a step since the last drain.
    stepped: BTreeSet<Namespace>,
    /// By the places of the duties: what is to do in each namespace, as it was at its last drain.
    noted: [Noted; Duty::ALL.len()],
    /// No namespace has seen a later moment.
    latest: Moment,
}

/// When each namespace has something to do.
#[derive(Debug, Default)]
struct Noted {
    by_moment: BTreeSet<(Moment, Namespace)>,
    by_name: BTreeMap<Namespace, Moment>,
}

impl Noted {
    fn note(&mut self, namespace: &Namespace, at: Option<Moment>) {
        let before = self.by_name.get(namespace).copied();
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.by_moment.remove(&(before, namespace.clone()));
        }
        match at {
            Some(at) => {
                self.by_moment.insert((at, namespace.clone()));
                self.by_name.insert(namespace.clone(), at);
            }
            None => drop(self.by_name.remove(namespace)),
        }
    }
}

impl Agenda {
    /// A namespace takes a step.
    pub(crate) fn steps(&mut self, namespace: &Namespace) {
        if !self.stepped.contains(namespace) {
            self.stepped.insert(namespace.clone());
        }
    }

    /// Those that took a step since this was last asked, in the order of their names.
    pub(crate) fn take_stepped(&mut self) -> BTreeSet<Namespace> {
        std::mem::take(&mut self.stepped)
    }

    /// Those that took a step since the last drain.
    pub(crate) fn stepped(&self) -> impl Iterator<Item = &Namespace> {
        self.stepped.iter()
    }

    /// A namespace was drained: what it says now stands until its next step.
    pub(crate) fn note(&mut self, space: &Space) {
        self.latest = self.latest.max(space.last);
        for (duty, noted) in Duty::ALL.into_iter().zip(&mut self.noted) {
            noted.note(&space.name, duty.of(space));
        }
    }

    /// A namespace ended.
    pub(crate) fn forget(&mut self, namespace: &Namespace) {
        self.stepped.remove(namespace);
        for noted in &mut self.noted {
            noted.note(namespace, None);
        }
    }

    /// The soonest moment at which a namespace has this to do.
    pub(crate) fn next(&self, duty: Duty, spaces: &Spaces) -> Option<Moment> {
        let by_moment = &self.noted[duty as usize].by_moment;
        let noted = by_moment.iter().find(|(_, name)| !self.stepped.contains(name));
        let asked = self.stepped.iter().filter_map(|name| duty.of(spaces.get(name)?));
        asked.chain(noted.map(|(at, _)| *at)).min()
    }

    /// The namespaces that have this to do at a moment, in the order of their names.
    pub(crate) fn due(&self, duty: Duty, clock: Moment, spaces: &Spaces) -> BTreeSet<Namespace> {
        let by_moment = self.noted[duty as usize].by_moment.iter();
        let noted = by_moment.take_while(|(at, _)| *at <= clock).map(|(_, name)| name);
        let noted = noted.filter(|name| !self.stepped.contains(*name));
        let is_due = |name: &&Namespace| {
            spaces.get(*name).and_then(|space| duty.of(space)).is_some_and(|at| at <= clock)
        };
        noted.chain(self.stepped.iter().filter(is_due)).cloned().collect()
    }

    /// Whether a namespace may have seen a moment that is far ahead of what the clock says. This goes on until
    /// the clock has caught up, also where it was accepted meanwhile.
    pub(crate) fn may_be_ahead(&self, clock: Moment, spaces: &Spaces) -> bool {
        let asked = self.stepped.iter().filter_map(|name| spaces.get(name)).map(|space| space.last);
        let latest = asked.chain([self.latest]).max();
        latest.is_some_and(|latest| is_ahead(latest, clock))
    }

    /// Compares what is noted with what is so.
    pub(crate) fn audit(
        &self,
        spaces: &Spaces,
        at_rest: &BTreeMap<Namespace, Resting>,
        found: &mut Findings,
    ) {
        let resting = || spaces.values().filter(|space| !self.stepped.contains(&space.name));
        for (duty, noted) in Duty::ALL.into_iter().zip(&self.noted) {
            for space in resting() {
                let (is, at) = (duty.of(space), noted.by_name.get(&space.name).copied());
                found.check(is == at, || {
                    format!(
                        "namespace \"{}\": {duty:?} is noted for {at:?}, and due at {is:?}",
                        space.name
                    )
                });
            }
            for (name, one) in at_rest {
                let is = (duty == Duty::Tick).then(|| one.ends_at());
                let at = noted.by_name.get(name).copied();
                found.check(is == at, || {
                    format!("namespace \"{name}\" rests: {duty:?} is noted for {at:?}, and due at {is:?}")
                });
            }
            let by_name = noted.by_name.iter().map(|(name, at)| (*at, name.clone()));
            found.check(by_name.collect::<BTreeSet<_>>() == noted.by_moment, || {
                format!("{duty:?} is noted by moment and by name, and they differ")
            });
            let is_there = |name| spaces.contains_key(name) || at_rest.contains_key(name);
            found.check(noted.by_name.keys().all(is_there), || {
                format!("{duty:?} is noted for a namespace that is not there")
            });
        }
        let last = resting().map(|space| space.last).chain(at_rest.values().map(Resting::last));
        found.check(last.max().is_none_or(|last| last <= self.latest), || {
            "a namespace has seen a later moment than is noted of all".to_owned()
        });
    }
}

/// Whether a moment that was seen is so far ahead of the clock that it is worth telling.
pub(crate) fn is_ahead(seen: Moment, clock: Moment) -> bool {
    seen.since(clock) > Span::from_us(CLOCK_BEHIND_LOUD_US)
}
