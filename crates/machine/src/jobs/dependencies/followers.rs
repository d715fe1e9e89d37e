//! Finished jobs that are kept for their dependents, and jobs that let their parents go.

use std::sync::Arc;

use crate::rows::{Archive, Archived, KeptUntil};
use crate::state::{HeldJob, Kin, Parent, ParentKey, Portion, Seq, Space};
use tenure_core::bounds::TOLD_AT_ONCE;
use tenure_core::names::JobId;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::FlowRefusal;
use tenure_core::time::Moment;

impl Space {
    /// A job has ended, or is gone: frees the jobs that it named.
    pub(crate) fn let_parents_go(&mut self, child: Seq, parents: &Arc<[Parent]>) {
        if parents.is_empty() {
            return;
        }
        let portion = self.dependencies.leave(child, parents);
        if !portion.is_last() {
            self.leaving_row(child, Some(parents));
        }
        self.let_go(&portion);
    }

    /// At the end of a call: lets more parents go. The next call has a new portion.
    pub(super) fn let_more_go(&mut self) {
        while let Some(portion) = self.dependencies.leave_more() {
            self.let_go(&portion);
            if portion.is_last() {
                self.leaving_row(portion.child, None);
            }
        }
    }

    fn let_go(&mut self, portion: &Portion) {
        for parent in &portion.parents[portion.now.clone()] {
            let Some(key) = parent.key() else { continue };
            self.forget_edge(&key, portion.child);
            let Parent::Job(seq, _) = parent else { continue };
            let Some(held) = self.dependencies.unfollow(*seq) else { continue };
            if let Some(held) = held {
                self.release_held(*seq, held);
            }
            self.followed_row(*seq);
        }
    }

    /// A child lives again before it has let all its parents go: it lets go of the rest now, and names them again.
    pub(crate) fn finish_leaving(&mut self, child: Seq) {
        if let Some(portion) = self.dependencies.finish_leaving(child) {
            self.let_go(&portion);
            self.leaving_row(child, None);
        }
    }

    /// An ended job with dependents is kept for them, and does not count in the budget. Returns the end and the bytes
    /// for its row.
    pub(crate) fn hold_for_followers(&mut self, seq: Seq, held: HeldJob) -> (Moment, u32) {
        if self.dependencies.followers(seq) == 0 {
            return (held.until, held.bytes);
        }
        self.dependencies.hold(seq, held);
        self.followed_row(seq);
        (Moment::MAX, 0)
    }

    /// A job that had ended before it was named is kept from now on.
    pub(super) fn hold_finished(&mut self, seq: Seq, archive: &dyn Archive) {
        if self.dependencies.held(seq).is_some() || self.jobs.by_seq(seq).is_some() {
            return;
        }
        let Some(Archived { state, until, bytes, .. }) = self.ended_or_kept(seq, archive) else {
            return;
        };
        self.dependencies.hold(seq, HeldJob { state, until, bytes });
        self.followed_row(seq);
        self.keep_finished(seq, Moment::MAX, 0);
        self.outbox.purged.push((state, u64::from(bytes)));
    }

    fn keep_finished(&mut self, seq: Seq, until: Moment, bytes: u32) {
        let namespace = self.name.clone();
        let change = self.outbox.job(seq);
        match &mut change.end {
            Some(end) => (end.until, end.bytes) = (until, bytes),
            None => change.kept = Some(KeptUntil { namespace, until, bytes }),
        }
    }

    /// The last dependent is gone: the finished job is kept like any other from now on.
    fn release_held(&mut self, seq: Seq, held: HeldJob) {
        self.keep_finished(seq, held.until, held.bytes);
        self.purge_at = Some(self.purge_at.map_or(held.until, |at| at.min(held.until)));
        self.outbox.archived.push((held.state, u64::from(held.bytes)));
    }

    /// A finished job lives again. The cancels of its children stay; returns their number.
    pub(crate) fn forget_cancelled_children(&mut self, seq: Seq) -> u64 {
        let Some(cancelled) = self.dependencies.forget_cancelled(seq) else { return 0 };
        self.followed_row(seq);
        cancelled
    }

    /// The row of a job goes, and with it its list of children.
    pub(crate) fn children_rows_go(&mut self, seq: Seq, kin: &Kin) {
        if kin.has_children {
            self.outbox.childless(self.name.clone(), seq);
        }
    }

    /// Refuses to delete a job that unfinished ones wait for.
    pub(crate) fn check_unfollowed(&self, seq: Seq, job: &JobId) -> Result<(), Refusal> {
        if self.dependencies.followers(seq) == 0 {
            return Ok(());
        }
        let edges = self.dependencies.edges().get(&ParentKey::Job(seq));
        let child = edges.and_then(|edges| {
            let first = |child: &Seq| self.jobs.by_seq(*child).map(|slot| (*child, slot));
            let open = edges.open.keys().take(TOLD_AT_ONCE).find_map(first);
            let told = edges.told.keys().take(TOLD_AT_ONCE).find_map(first);
            open.into_iter().chain(told).min_by_key(|(child, _)| *child).map(|(_, slot)| slot)
        });
        let job = job.clone();
        Err(match child.map(|child| self.jobs[child].id.clone()) {
            Some(child) => FlowRefusal::FollowedBy { job, child }.into(),
            None => FlowRefusal::Followed { job }.into(),
        })
    }
}
