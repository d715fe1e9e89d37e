//! Agenda: the namespaces with work to do, and the times of that work. So ten thousand idle namespaces cost no call
//! anything.
//!
//! Only a namespace's own steps change its times. Namespaces that took a step since the last drain are asked; for all
//! others the agenda has their last answer, and [`Machine::audit`](crate::Machine::audit) compares the two.

use std::collections::{BTreeMap, BTreeSet};

use crate::audit::findings::Findings;
use crate::retention::resting::{Resting, is_ahead};
use crate::state::Space;
use tenure_core::names::Namespace;
use tenure_core::time::Moment;

/// The namespaces that do not rest. Each is behind a pointer: it takes some KiB, and a tree keeps room for several
/// times its entries.
pub(crate) type Spaces = BTreeMap<Namespace, Box<Space>>;

/// The kinds of work that a namespace can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Duty {
    /// Work of time: expired leases, due jobs, timers.
    Tick,
    /// Occurrences of schedules to decide.
    Fire,
    /// Gauges whose next reading is due.
    Gauge,
}

impl Duty {
    const ALL: [Duty; 3] = [Duty::Tick, Duty::Fire, Duty::Gauge];

    /// The earliest time at which a namespace has this work.
    fn of(self, space: &Space) -> Option<Moment> {
        match self {
            Duty::Tick => space.next_due(),
            Duty::Fire => space.next_fire(),
            Duty::Gauge => space.next_gauge(),
        }
    }
}

/// Times of work of all namespaces.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    /// Namespaces that took a step since the last drain.
    stepped: BTreeSet<Namespace>,
    /// The work of each namespace at its last drain; the index is the `Duty`.
    noted: [Noted; Duty::ALL.len()],
    /// The latest time that any namespace has seen.
    latest: Moment,
}

/// The time of one kind of work, by namespace.
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

    /// Takes the namespaces that took a step since the last call, in the order of their names.
    pub(crate) fn take_stepped(&mut self) -> BTreeSet<Namespace> {
        std::mem::take(&mut self.stepped)
    }

    /// The namespaces that took a step since the last drain.
    pub(crate) fn stepped(&self) -> impl Iterator<Item = &Namespace> {
        self.stepped.iter()
    }

    /// Notes a drained namespace: its times are valid until its next step.
    pub(crate) fn note(&mut self, space: &Space) {
        self.latest = self.latest.max(space.last);
        for (duty, noted) in Duty::ALL.into_iter().zip(&mut self.noted) {
            noted.note(&space.name, duty.of(space));
        }
    }

    /// Removes a namespace that ended.
    pub(crate) fn forget(&mut self, namespace: &Namespace) {
        self.stepped.remove(namespace);
        for noted in &mut self.noted {
            noted.note(namespace, None);
        }
    }

    /// The earliest time at which any namespace has this work.
    pub(crate) fn next(&self, duty: Duty, spaces: &Spaces) -> Option<Moment> {
        let by_moment = &self.noted[duty as usize].by_moment;
        let noted = by_moment.iter().find(|(_, name)| !self.stepped.contains(name));
        let asked = self.stepped.iter().filter_map(|name| duty.of(spaces.get(name)?));
        asked.chain(noted.map(|(at, _)| *at)).min()
    }

    /// The namespaces with this work at a time, in the order of their names.
    pub(crate) fn due(&self, duty: Duty, clock: Moment, spaces: &Spaces) -> BTreeSet<Namespace> {
        let by_moment = self.noted[duty as usize].by_moment.iter();
        let noted = by_moment.take_while(|(at, _)| *at <= clock).map(|(_, name)| name);
        let noted = noted.filter(|name| !self.stepped.contains(*name));
        let is_due = |name: &&Namespace| {
            spaces.get(*name).and_then(|space| duty.of(space)).is_some_and(|at| at <= clock)
        };
        noted.chain(self.stepped.iter().filter(is_due)).cloned().collect()
    }

    /// True if a namespace may have seen a time far ahead of the clock, until the clock has caught up; this includes
    /// times that an operator accepted.
    pub(crate) fn may_be_ahead(&self, clock: Moment, spaces: &Spaces) -> bool {
        let asked = self.stepped.iter().filter_map(|name| spaces.get(name)).map(|space| space.last);
        let latest = asked.chain([self.latest]).max();
        latest.is_some_and(|latest| is_ahead(latest, clock))
    }

    /// Compares the notes with the namespaces.
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
