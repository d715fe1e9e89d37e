//! Counts that are cached beside the edges: a start sets them, and an audit compares them.

use std::collections::BTreeMap;

use crate::state::{LiveJobId, Parent, ParentKey, Seq, Space, Stand};
use tenure_core::time::Moment;

impl Space {
    /// The number of open edges of each dependent job.
    pub(crate) fn count_open_edges(&self) -> BTreeMap<Seq, u32> {
        let mut open = BTreeMap::new();
        for (child, turn) in self.dependencies.edges().values().flat_map(|edges| &edges.open) {
            if self.waits_in_turn(*child, *turn) {
                *open.entry(*child).or_default() += 1;
            }
        }
        open
    }

    /// The number of unfinished dependents of each named job; jobs that have not yet let it go count.
    pub(crate) fn count_followers(&self) -> BTreeMap<Seq, u32> {
        let mut named = BTreeMap::new();
        let kin = self.jobs.iter().filter_map(|(_, job)| job.kin.as_deref());
        let live = kin.filter(|kin| kin.follows).flat_map(|kin| kin.parents.iter());
        let leaving =
            self.dependencies.leaving().flat_map(|leaving| &leaving.parents[leaving.from..]);
        for parent in live.chain(leaving) {
            if let Parent::Job(seq, _) = parent {
                *named.entry(*seq).or_default() += 1;
            }
        }
        named
    }

    pub(crate) fn waits_in_turn(&self, child: Seq, turn: u32) -> bool {
        let Some(slot) = self.jobs.by_seq(child) else { return false };
        let job = &self.jobs[slot];
        job.stand == Stand::Dependent && job.kin.as_ref().is_some_and(|kin| kin.turn == turn)
    }

    fn follows_in_turn(&self, child: Seq, turn: u32) -> bool {
        let kin = self.jobs.by_seq(child).and_then(|slot| self.jobs[slot].kin.as_deref());
        kin.is_some_and(|kin| kin.follows && kin.turn == turn)
    }

    /// After the last row of a start: sets the counts, and continues the notifications.
    pub(crate) fn restored_kin(&mut self, now: Moment) {
        let followers = self.count_followers();
        let mut dependencies = std::mem::take(&mut self.dependencies);
        // A job notified in an earlier `turn`, or in an earlier life of its key's holder, no longer depends on that
        // parent.
        dependencies.restored(followers, |child, turn| self.follows_in_turn(child, turn));
        self.dependencies = dependencies;
        for (child, open) in self.count_open_edges() {
            if let Some(slot) = self.jobs.by_seq(child) {
                self.kin_of(slot).open = open;
            }
        }
        let mut ended: Vec<ParentKey> =
            self.dependencies.edges().keys().filter(|key| self.has_ended(key)).cloned().collect();
        ended.sort();
        for parent in &ended {
            self.dependencies.tell_end(parent);
        }
        // Only a damaged row can leave a dependent job without an open parent.
        let waits_for_nobody = |slot: &LiveJobId| {
            self.jobs[*slot].stand == Stand::Dependent && self.waiting_on(*slot) == 0
        };
        let slots = self.jobs.iter().map(|(slot, _)| slot);
        let free: Vec<LiveJobId> = slots.filter(waits_for_nobody).collect();
        for slot in free {
            self.stop_waiting(slot, now);
            self.go_from(slot, now);
        }
    }
}
