//! Audit of dependencies and flows: the counts beside the edges must agree with the edges.

use std::collections::{BTreeMap, BTreeSet};

use super::findings::Findings;
use crate::state::{Seq, Space, Stand};

impl Space {
    pub(crate) fn audit_kin(&self, found: &mut Findings) {
        let mut open = self.count_open_edges();
        // An ended job counts as a child until it has let this parent go.
        let leaving: BTreeSet<Seq> = self.leaving.iter().map(|leaving| leaving.child).collect();
        for (parent, edges) in &self.edges {
            found.check(!edges.open.is_empty() || !edges.told.is_empty(), || {
                format!("{parent:?} has an empty list of edges")
            });
            let follows =
                |child: &Seq| self.job_by_seq(*child).is_some() || leaving.contains(child);
            found.check(edges.told.keys().all(follows), || {
                format!("{parent:?} has told children that are not there any more")
            });
            // An ended job is skipped until it has let all its parents go.
            let is_waiting = |(child, turn): (&Seq, &u32)| {
                self.waits_in_turn(*child, *turn) || leaving.contains(child)
            };
            found.check(edges.open.iter().all(is_waiting), || {
                format!("{parent:?} has an open edge to a job that does not wait for it")
            });
            let told = edges.telling.and_then(|place| self.telling.get(&place));
            let is_told = match told {
                Some(told) => told == parent,
                None => edges.open.is_empty() || !self.has_ended(parent),
            };
            found.check(is_told, || {
                format!("{parent:?} has ended, and nobody tells those that wait for it")
            });
        }
        found.check(self.telling.values().all(|parent| self.edges.contains_key(parent)), || {
            "a parent without edges stands among those whose end is told".to_owned()
        });
        let mut named = self.count_followers();
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
                members.entry(flow.clone()).or_default().insert(job.seq);
            }
        }
        for (seq, followed) in &self.followed {
            let counted = named.remove(seq).unwrap_or_default();
            found.check(followed.followers == counted, || {
                format!(
                    "job number {seq}: {} followers are cached, {counted} are there",
                    followed.followers
                )
            });
            let may_be_held = self.job_by_seq(*seq).is_none() && counted > 0;
            found.check(followed.held.is_none() || may_be_held, || {
                format!("job number {seq} is kept for its followers, and has none or lives")
            });
        }
        found
            .check(named.is_empty(), || format!("jobs {named:?} are named, and count no follower"));
        for (name, flow) in &self.flows {
            let counted = members.remove(name).unwrap_or_default();
            found.check(flow.members == counted, || {
                format!(
                    "flow \"{name}\": {} unfinished jobs are cached, {} are there",
                    flow.members.len(),
                    counted.len()
                )
            });
            found.check(flow.rows >= counted.len() as u64, || {
                format!("flow \"{name}\" counts fewer rows than unfinished jobs")
            });
        }
        found.check(members.is_empty(), || format!("flows of jobs are not there: {members:?}"));
    }
}
