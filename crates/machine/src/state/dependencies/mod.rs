//! Dependencies between jobs: edges, notifications, and finished jobs that are kept for their dependents.

mod kin;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashMap;

use super::Seq;
use crate::audit::findings::Findings;
use tenure_core::bounds::TOLD_AT_ONCE;

pub(crate) use kin::{Edges, Followed, HeldJob, Kin, Leaving, Parent, ParentKey};

/// The most children that one call notifies, and parents that it lets go. Random histories have few jobs.
pub(crate) const PORTION: usize = if cfg!(test) { 2 } else { TOLD_AT_ONCE };

/// All dependencies of a namespace.
#[derive(Debug, Default)]
pub(crate) struct Dependencies {
    edges: HashMap<ParentKey, Edges>,
    /// Ended parents with children still to notify, in the order of their ends.
    telling: BTreeMap<u64, ParentKey>,
    /// The last place in that order.
    told: u64,
    followed: HashMap<Seq, Followed>,
    /// Ended jobs that have not let all their parents go, in the order of their ends.
    leaving: VecDeque<Leaving>,
    /// Number of parents that this call has let go.
    let_go: usize,
}

/// Parents that an ended job lets go now.
pub(crate) struct Portion {
    pub child: Seq,
    pub parents: Arc<[Parent]>,
    pub now: Range<usize>,
}

impl Portion {
    pub fn is_last(&self) -> bool {
        self.now.end == self.parents.len()
    }
}

impl Dependencies {
    /// Those of a namespace without content, which had some before.
    pub fn none_after(told: u64) -> Self {
        Dependencies { told, ..Dependencies::default() }
    }

    pub fn last_told(&self) -> u64 {
        self.told
    }

    /// True if no parent has edges and no job lets parents go.
    pub fn are_none(&self) -> bool {
        self.edges.is_empty() && self.leaving.is_empty()
    }

    pub fn no_job_is_followed(&self) -> bool {
        self.followed.is_empty()
    }

    // ---- Edges ----

    pub fn edges(&self) -> &HashMap<ParentKey, Edges> {
        &self.edges
    }

    /// A child waits for a parent in this turn.
    pub fn open(&mut self, parent: &ParentKey, child: Seq, turn: u32) {
        let edges = self.edges.entry(parent.clone()).or_default();
        edges.open.insert(child, turn);
        edges.told.remove(&child);
    }

    /// Removes an open edge. Returns its turn.
    pub fn close(&mut self, parent: &ParentKey, child: Seq) -> Option<u32> {
        let edges = self.edges.get_mut(parent)?;
        let turn = edges.open.remove(&child)?;
        if edges.open.is_empty()
            && let Some(place) = edges.telling.take()
        {
            self.telling.remove(&place);
        }
        self.drop_edges_if_none(parent);
        Some(turn)
    }

    /// A child was notified of a parent's end.
    pub fn note_told(&mut self, parent: &ParentKey, child: Seq, turn: u32) {
        self.edges.entry(parent.clone()).or_default().told.insert(child, turn);
    }

    /// A notified child is no child any more.
    pub fn forget_told(&mut self, parent: &ParentKey, child: Seq) {
        if let Some(edges) = self.edges.get_mut(parent) {
            edges.told.remove(&child);
            self.drop_edges_if_none(parent);
        }
    }

    fn drop_edges_if_none(&mut self, parent: &ParentKey) {
        let is_none = |edges: &Edges| edges.open.is_empty() && edges.told.is_empty();
        if self.edges.get(parent).is_some_and(is_none) {
            self.edges.remove(parent);
        }
    }

    // ---- Notifications ----

    /// A parent has ended: its children are queued for notification, behind those of earlier ends.
    pub fn tell_end(&mut self, parent: &ParentKey) {
        let Some(edges) = self.edges.get_mut(parent) else { return };
        if edges.telling.is_none() && !edges.open.is_empty() {
            self.told += 1;
            edges.telling = Some(self.told);
            self.telling.insert(self.told, parent.clone());
        }
    }

    /// The parent is unfinished again: children without a notification wait for its new end.
    pub fn stop_telling(&mut self, parent: &ParentKey) {
        if let Some(place) = self.edges.get_mut(parent).and_then(|edges| edges.telling.take()) {
            self.telling.remove(&place);
        }
    }

    /// True while the children of a finished job are being notified.
    pub fn is_telling(&self, seq: Seq) -> bool {
        self.edges.get(&ParentKey::Job(seq)).is_some_and(|edges| edges.telling.is_some())
    }

    /// The parent whose children are notified next.
    pub fn first_telling(&self) -> Option<&ParentKey> {
        self.telling.first_key_value().map(|(_, parent)| parent)
    }

    /// True if a tick must continue the work that calls left.
    pub fn have_untold(&self) -> bool {
        !self.telling.is_empty() || !self.leaving.is_empty()
    }

    // ---- Finished jobs that are kept ----

    pub fn followed(&self) -> &HashMap<Seq, Followed> {
        &self.followed
    }

    /// The finished job that is kept for its dependents.
    pub fn held(&self, seq: Seq) -> Option<HeldJob> {
        self.followed.get(&seq)?.held
    }

    /// The number of unfinished dependents of a job.
    pub fn followers(&self, seq: Seq) -> u32 {
        self.followed.get(&seq).map_or(0, |followed| followed.followers)
    }

    /// A job has one more dependent.
    pub fn follow(&mut self, parent: Seq) {
        self.followed.entry(parent).or_default().followers += 1;
    }

    /// A job has one dependent less. With the last, it returns the job if that was kept; the row may be another then.
    pub fn unfollow(&mut self, parent: Seq) -> Option<Option<HeldJob>> {
        let followed = self.followed.get_mut(&parent)?;
        followed.followers = followed.followers.saturating_sub(1);
        if followed.followers > 0 {
            return None;
        }
        let held = followed.held.take();
        if followed.cancelled == 0 {
            self.followed.remove(&parent);
        }
        Some(held)
    }

    /// A finished job is kept for its dependents.
    pub fn hold(&mut self, seq: Seq, held: HeldJob) {
        self.followed.entry(seq).or_default().held = Some(held);
    }

    /// A finished job lives again. Returns false if it was none that others name.
    pub fn live_again(&mut self, seq: Seq) -> bool {
        let followed = self.followed.get_mut(&seq);
        followed.is_some_and(|followed| {
            followed.held = None;
            true
        })
    }

    /// The failure of a job cancelled one more child.
    pub fn count_cancelled(&mut self, parent: Seq) {
        self.followed.entry(parent).or_default().cancelled += 1;
    }

    /// A finished job lives again, or goes. The cancels of its children stay; returns their number.
    pub fn forget_cancelled(&mut self, seq: Seq) -> Option<u64> {
        let followed = self.followed.get_mut(&seq)?;
        followed.held = None;
        let cancelled = std::mem::take(&mut followed.cancelled);
        if followed.followers == 0 {
            self.followed.remove(&seq);
        }
        Some(cancelled)
    }

    // ---- Jobs that let their parents go ----

    pub fn leaving(&self) -> impl Iterator<Item = &Leaving> {
        self.leaving.iter()
    }

    /// An ended job lets its parents go, in order of arrival: some now, the rest at the end of this call or later ones.
    pub fn leave(&mut self, child: Seq, parents: &Arc<[Parent]>) -> Portion {
        let most = if self.leaving.is_empty() { PORTION - self.let_go } else { 0 };
        let from = most.min(parents.len());
        self.let_go += from;
        if from < parents.len() {
            self.leaving.push_back(Leaving { child, parents: parents.clone(), from });
        }
        Portion { child, parents: parents.clone(), now: 0..from }
    }

    /// More parents that this call lets go; `None` begins the portion of the next call.
    pub fn leave_more(&mut self) -> Option<Portion> {
        let first = self.leaving.front_mut().filter(|_| self.let_go < PORTION);
        let Some(Leaving { child, parents, from }) = first else {
            self.let_go = 0;
            return None;
        };
        let end = parents.len().min(*from + PORTION - self.let_go);
        let portion = Portion { child: *child, parents: parents.clone(), now: *from..end };
        self.let_go += portion.now.len();
        *from = end;
        if portion.is_last() {
            self.leaving.pop_front();
        }
        Some(portion)
    }

    /// A child lives again before it has let all its parents go: it lets go of the rest now.
    pub fn finish_leaving(&mut self, child: Seq) -> Option<Portion> {
        let at = self.leaving.iter().position(|leaving| leaving.child == child)?;
        let Leaving { child, parents, from } = self.leaving.remove(at)?;
        let now = from..parents.len();
        Some(Portion { child, parents, now })
    }

    // ---- A start ----

    /// Restores an edge to a child that waits (`open`), or was notified.
    pub fn restore_edge(&mut self, parent: ParentKey, (child, turn): (Seq, u32), open: bool) {
        let edges = self.edges.entry(parent).or_default();
        let there = if open { &mut edges.open } else { &mut edges.told };
        there.insert(child, turn);
    }

    pub fn restore_followed(&mut self, seq: Seq, followed: Followed) {
        self.followed.insert(seq, followed);
    }

    pub fn restore_leaving(&mut self, child: Seq, parents: Arc<[Parent]>) {
        self.leaving.push_back(Leaving { child, parents, from: 0 });
    }

    /// After the last row: sets the numbers of dependents, and drops notified children that are none any more.
    pub fn restored(
        &mut self,
        followers: BTreeMap<Seq, u32>,
        follows_in_turn: impl Fn(Seq, u32) -> bool,
    ) {
        for (seq, followers) in followers {
            self.followed.entry(seq).or_default().followers = followers;
        }
        self.edges.retain(|_, edges| {
            edges.told.retain(|child, turn| follows_in_turn(*child, *turn));
            !edges.open.is_empty() || !edges.told.is_empty()
        });
    }

    // ---- Audit ----

    /// Compares the edges with the jobs and the notifications. `lives`: the job has not ended; `waits`: it waits in this
    /// turn; `has_ended`: the parent has.
    pub fn audit_edges(
        &self,
        found: &mut Findings,
        lives: impl Fn(Seq) -> bool,
        waits: impl Fn(Seq, u32) -> bool,
        has_ended: impl Fn(&ParentKey) -> bool,
    ) {
        // An ended job counts as a child until it has let this parent go.
        let leaving: BTreeSet<Seq> = self.leaving.iter().map(|leaving| leaving.child).collect();
        for (parent, edges) in &self.edges {
            found.check(!edges.open.is_empty() || !edges.told.is_empty(), || {
                format!("{parent:?} has an empty list of edges")
            });
            let follows = |child: &Seq| lives(*child) || leaving.contains(child);
            found.check(edges.told.keys().all(follows), || {
                format!("{parent:?} has told children that are not there any more")
            });
            // An ended job is skipped until it has let all its parents go.
            let is_waiting =
                |(child, turn): (&Seq, &u32)| waits(*child, *turn) || leaving.contains(child);
            found.check(edges.open.iter().all(is_waiting), || {
                format!("{parent:?} has an open edge to a job that does not wait for it")
            });
            let told = edges.telling.and_then(|place| self.telling.get(&place));
            let is_told = match told {
                Some(told) => told == parent,
                None => edges.open.is_empty() || !has_ended(parent),
            };
            found.check(is_told, || {
                format!("{parent:?} has ended, and nobody tells those that wait for it")
            });
        }
        found.check(self.telling.values().all(|parent| self.edges.contains_key(parent)), || {
            "a parent without edges stands among those whose end is told".to_owned()
        });
    }

    /// Compares the followed jobs with the unfinished jobs that name each.
    pub fn audit_followed(
        &self,
        found: &mut Findings,
        mut named: BTreeMap<Seq, u32>,
        lives: impl Fn(Seq) -> bool,
    ) {
        for (seq, followed) in &self.followed {
            let counted = named.remove(seq).unwrap_or_default();
            found.check(followed.followers == counted, || {
                format!(
                    "job number {seq}: {} followers are cached, {counted} are there",
                    followed.followers
                )
            });
            let may_be_held = !lives(*seq) && counted > 0;
            found.check(followed.held.is_none() || may_be_held, || {
                format!("job number {seq} is kept for its followers, and has none or lives")
            });
        }
        found
            .check(named.is_empty(), || format!("jobs {named:?} are named, and count no follower"));
    }
}
