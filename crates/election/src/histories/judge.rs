//! Judge of histories: the events that must never happen, and the losses that the law admits.
//!
//! Admitted, each by its name in the law: a loss of the store together with the leader (a stopped leader that was taken
//! over counts as gone); after it, time and numbers may repeat. Beliefs of two holders are never admitted.

use std::collections::BTreeMap;

use super::work::Pending;
use crate::ids::{Epoch, Tip};

/// The rules that a history can break.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Violation {
    /// (a) Two clients believe that they hold the lock.
    TwoHolders,
    /// (b) An answer went out without knowledge of an answered entry.
    AnsweredLost,
    /// (c) One number was answered with two different contents.
    TwoContents,
    /// (d) No server serves although all faults are over.
    NobodyServes,
    /// (e) A later leader's answer has an earlier moment.
    TimeWentBack,
    /// (f) The journal cannot be read as a whole.
    Damaged,
}

/// The record of all answers.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(super) struct Judge {
    /// The entries below the answers, in order of the answers; `None`: lost, and admitted.
    answered: Vec<Option<Tip>>,
    /// The earliest and the latest moment of the answers of each epoch.
    moments: BTreeMap<Epoch, (u64, u64)>,
}

impl Judge {
    /// Records answers that go out. They rest on an append that was executed after `stamp` answers.
    pub(super) fn goes_out(
        &mut self,
        pending: &Pending,
        chain: &[u64],
        epoch: Option<Epoch>,
        stamp: usize,
    ) -> Option<Violation> {
        for tip in self.answered[..stamp.min(self.answered.len())].iter().flatten() {
            match chain.get((tip.number as usize).wrapping_sub(1)) {
                Some(there) if *there == tip.checksum => {}
                Some(_) => return Some(Violation::TwoContents),
                None => return Some(Violation::AnsweredLost),
            }
        }
        if pending.tip.number > 0 && !self.answered.contains(&Some(pending.tip)) {
            self.answered.push(Some(pending.tip));
        } else {
            // Positions count answers, so a stamp identifies all earlier answers.
            self.answered.push(None);
        }
        // If another server rebuilt the store over this one, its time is admitted to be lost.
        let epoch = epoch?;
        let own = self.moments.entry(epoch).or_insert((pending.moment, pending.moment));
        own.0 = own.0.min(pending.moment);
        own.1 = own.1.max(pending.moment);
        let mut latest = 0;
        for (first, last) in self.moments.values() {
            if *first < latest {
                return Some(Violation::TimeWentBack);
            }
            latest = latest.max(*last);
        }
        None
    }

    pub(super) fn answers(&self) -> usize {
        self.answered.len()
    }

    /// Admits the loss of all entries that no server has any more.
    pub(super) fn admit(&mut self, is_held: impl Fn(Tip) -> bool) {
        for answered in &mut self.answered {
            if answered.is_some_and(|tip| !is_held(tip)) {
                *answered = None;
            }
        }
    }

    /// Forgets the moments of all answers, so that later ones are not compared with them.
    pub(super) fn admit_all_time(&mut self) {
        self.moments.clear();
    }

    /// No server is left that knows a moment after `known`.
    pub(super) fn admit_time(&mut self, known: u64) {
        if self.moments.values().any(|(_, last)| *last > known) {
            self.admit_all_time();
        }
    }
}
