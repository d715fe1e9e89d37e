//! Who waits for whom, and what belongs together. Nothing here acts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Seq;
use tenure_core::flow::{
    FlowCounts, FlowState, FlowView, OnParentFailure, ShownParent, ShownParents,
};
use tenure_core::job::JobState;
use tenure_core::names::{FlowName, JobId};
use tenure_core::time::Moment;

/// One of those that a job waits for, as its push resolved it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Parent {
    /// A job.
    Job(Seq, JobId),
    /// A job that was not there, which counted as done.
    Gone(JobId),
    /// A flow.
    Flow(FlowName),
}

impl Parent {
    /// Where its edges are kept; one that was not there has none.
    pub fn key(&self) -> Option<ParentKey> {
        match self {
            Parent::Job(seq, _) => Some(ParentKey::Job(*seq)),
            Parent::Gone(_) => None,
            Parent::Flow(flow) => Some(ParentKey::Flow(flow.clone())),
        }
    }

    pub fn shown(&self) -> ShownParent {
        match self {
            Parent::Job(_, id) | Parent::Gone(id) => ShownParent::Job(id.clone()),
            Parent::Flow(flow) => ShownParent::Flow { flow: flow.clone() },
        }
    }
}

/// Whose end is told.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum ParentKey {
    Job(Seq),
    Flow(FlowName),
}

/// What a job has to do with others; most jobs have none of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Kin {
    /// What it belongs to; it never changes.
    pub flow: Option<FlowName>,
    /// Whom it waits or waited for, in the order of its `after`; it never changes.
    pub parents: Arc<[Parent]>,
    pub on_failure: OnParentFailure,
    /// Which wait this is: one more with each retry. An edge of an older one means nothing.
    pub turn: u32,
    /// It waits for a flow, or did an unfinished parent when that was looked at last: then it belongs to no flow.
    pub above: bool,
    /// It counts among the followers of those it names, as it does from its push or its retry to its end. A finished
    /// holder of a key that lives again with new content follows nobody.
    pub follows: bool,
    /// A job waited for it at some time, so that it has a list of children.
    pub has_children: bool,
    /// How many of its edges are open. A cache, which `audit` counts anew; it is not stored.
    pub open: u32,
}

impl Kin {
    pub fn none() -> Self {
        Kin {
            flow: None,
            parents: Arc::from([]),
            on_failure: OnParentFailure::default(),
            turn: 0,
            above: false,
            follows: false,
            has_children: false,
            open: 0,
        }
    }

    pub fn shown(&self, waiting_on: u32) -> ShownParents {
        ShownParents::of(self.parents.iter().map(Parent::shown), waiting_on, self.on_failure)
    }
}

/// The unfinished jobs that wait or waited for one thing, by their row numbers.
#[derive(Default, Debug)]
pub(crate) struct Edges {
    /// Those that wait, each with the turn of its waiting.
    pub open: BTreeMap<Seq, u32>,
    /// Those that were told of the end of a job, each with the turn in which it waited.
    pub told: BTreeMap<Seq, u32>,
    /// Its place among those whose end is being told.
    pub telling: Option<u64>,
}

/// A job that unfinished jobs name in their `after`, or whose failure cancelled some.
#[derive(Default, Debug)]
pub(crate) struct Followed {
    /// Unfinished jobs that name it. A cache, which `audit` counts anew.
    pub followers: u32,
    /// Children that its failure cancelled; a retry answers them and begins anew.
    pub cancelled: u64,
    /// It is finished, and is kept until the last of them has ended.
    pub held: Option<HeldJob>,
}

/// A finished job that is kept for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeldJob {
    pub state: JobState,
    /// Until when it would be kept by itself.
    pub until: Moment,
    pub bytes: u32,
}

/// A job that has ended and has not let all its parents go yet.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub child: Seq,
    pub parents: Arc<[Parent]>,
    /// Those before this place are let go.
    pub from: usize,
}

/// Jobs that belong together.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Unfinished members.
    pub members: BTreeSet<Seq>,
    /// Members that ended, also those whose rows are gone by time. `unfinished` is not kept here: `members` says it.
    pub ended: FlowCounts,
    /// Rows of members that there are.
    pub rows: u64,
    /// Its members are being called off; those up to this one are.
    pub cancelling: Option<Seq>,
    pub created_at: Moment,
    pub finished_at: Option<Moment>,
}

impl Flow {
    pub fn new(now: Moment) -> Self {
        Flow {
            members: BTreeSet::new(),
            ended: FlowCounts::default(),
            rows: 0,
            cancelling: None,
            created_at: now,
            finished_at: Some(now),
        }
    }

    /// A member that ended in this state does not count as ended any more.
    pub fn uncount(&mut self, state: JobState) {
        let ended = self.ended.ended(state);
        *ended = ended.saturating_sub(1);
    }

    pub fn counts(&self) -> FlowCounts {
        FlowCounts { unfinished: self.members.len() as u64, ..self.ended }
    }

    pub fn view(&self, flow: &FlowName) -> FlowView {
        let open = !self.members.is_empty();
        FlowView {
            flow: flow.clone(),
            state: if open { FlowState::Open } else { FlowState::Finished },
            cancelling: self.cancelling.is_some(),
            counts: self.counts(),
            created_at: self.created_at,
            finished_at: self.finished_at.filter(|_| !open),
        }
    }
}
