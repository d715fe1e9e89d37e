//! The workload: a machine with one lock and some jobs, and the beliefs of its callers.

use crate::ids::Tip;

/// The ttl of the lock, in ticks of a second.
pub(super) const TTL: u64 = 5;
/// Ticks for which a holder believes, from its request on: 0.8 of the ttl.
pub(super) const BELIEF: u64 = 4;

/// The effect of an entry. The serial number makes all entries different.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Change {
    Push { serial: u64 },
    Grant { client: usize, serial: u64 },
}

impl Change {
    /// The checksum of this entry, chained to the one before.
    pub(super) fn chained(self, before: u64) -> u64 {
        let (kind, serial) = match self {
            Change::Push { serial } => (1, serial),
            Change::Grant { client, serial } => (2 + client as u64, serial),
        };
        let mixed = (before ^ (kind << 32) ^ serial).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    }
}

/// The bytes of entries and snapshots.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Body {
    Rows(Change),
    Everything(Vec<Change>),
}

/// The checksum after each of these changes.
pub(super) fn chain(changes: &[Change]) -> Vec<u64> {
    let mut last = 0;
    changes
        .iter()
        .map(|change| {
            last = change.chained(last);
            last
        })
        .collect()
}

/// The position of a history's last entry.
pub(super) fn last(chain: &[u64]) -> Tip {
    Tip { number: chain.len() as u64, checksum: chain.last().copied().unwrap_or(0) }
}

/// An answer that waits for the fence.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Pending {
    pub(super) ticket: u64,
    /// The last entry that was decided before this answer.
    pub(super) tip: Tip,
    /// The machine's moment when it was decided, in microseconds.
    pub(super) moment: u64,
    /// The client, the time of its request, and the answer.
    pub(super) to: Option<(usize, u64, Said)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Said {
    Granted,
    Extended,
    Lost,
}

/// The machine of one server.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Machine {
    pub(super) changes: Vec<Change>,
    pub(super) chain: Vec<u64>,
    pub(super) holder: Option<usize>,
    /// The end of the lease by its own monotonic clock (or by TIME, if a rule is left out).
    pub(super) ends: u64,
    pub(super) tickets: u64,
    pub(super) pending: Vec<Pending>,
}

impl Machine {
    /// The machine after a load. Every lease gets a whole ttl from now.
    pub(super) fn restored(changes: Vec<Change>, ends: u64) -> Self {
        let holder = changes.iter().rev().find_map(|change| match change {
            Change::Grant { client, .. } => Some(*client),
            Change::Push { .. } => None,
        });
        let chain = chain(&changes);
        Machine { changes, chain, holder, ends, tickets: 0, pending: Vec::new() }
    }

    pub(super) fn tip(&self) -> Tip {
        last(&self.chain)
    }

    pub(super) fn apply(&mut self, change: Change) {
        self.chain.push(change.chained(self.tip().checksum));
        self.changes.push(change);
    }

    pub(super) fn has(&self, tip: Tip) -> bool {
        has(&self.chain, tip)
    }
}

/// True if a history contains an entry, and so all before it.
pub(super) fn has(chain: &[u64], tip: Tip) -> bool {
    tip.number == 0 || chain.get(tip.number as usize - 1) == Some(&tip.checksum)
}

/// A client that wants the lock, and acts on answers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Client {
    Idle,
    /// Asked at this tick.
    Asks(u64),
    /// Believes until this tick; a heartbeat has been on its way since `asked`.
    Holds {
        until: u64,
        asked: Option<u64>,
    },
}

impl Client {
    pub(super) fn believes(self, now: u64) -> bool {
        matches!(self, Client::Holds { until, .. } if now < until)
    }

    pub(super) fn hears(&mut self, said: Said, asked: u64) {
        let until = asked + BELIEF;
        *self = match (*self, said) {
            (Client::Asks(at), Said::Granted) if at == asked => {
                Client::Holds { until, asked: None }
            }
            (Client::Holds { asked: Some(at), .. }, Said::Extended) if at == asked => {
                Client::Holds { until, asked: None }
            }
            (Client::Holds { asked: Some(at), .. }, Said::Lost) if at == asked => Client::Idle,
            (as_before, _) => as_before,
        };
    }
}
