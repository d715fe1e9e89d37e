//! Audit of dependencies and flows: the counts beside the edges must agree with the edges.

use std::collections::{BTreeMap, BTreeSet};

use super::findings::Findings;
use crate::state::{Seq, Space, Stand};

impl Space {
    pub(crate) fn audit_kin(&self, found: &mut Findings) {
        let lives = |seq| self.jobs.by_seq(seq).is_some();
        let waits = |child, turn| self.waits_in_turn(child, turn);
        self.dependencies.audit_edges(found, lives, waits, |parent| self.has_ended(parent));
        self.dependencies.audit_followed(found, self.count_followers(), lives);
        let mut open = self.count_open_edges();
        let mut members: BTreeMap<_, BTreeSet<Seq>> = BTreeMap::new();
        for (slot, job) in self.jobs.iter() {
            let cached = self.waiting_on(slot);
            let counted = open.remove(&job.seq).unwrap_or_default();
            found.check(
                cached == counted && (cached > 0) == (job.stand == Stand::Dependent),
                || {
                    format!(
                        "job \"{}\": {cached} open edges are cached, {counted} are there",
                        job.id
                    )
                },
            );
            if let Some(flow) = job.flow() {
                members.entry(flow).or_default().insert(job.seq);
            }
        }
        self.flows.audit(found, members);
    }
}
