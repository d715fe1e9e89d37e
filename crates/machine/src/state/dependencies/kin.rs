//! A job's parents, its children's edges, and a finished job that is kept for others. Data without actions.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::state::Seq;
use tenure_core::flow::{OnParentFailure, ShownParent, ShownParents};
use tenure_core::job::JobState;
use tenure_core::names::{FlowName, JobId};
use tenure_core::time::Moment;

/// A parent of a job, as its push resolved it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Parent {
    /// The row and the id of a job.
    Job(Seq, JobId),
    /// A job that did not exist, which counted as done.
    Gone(JobId),
    /// A flow, which ends with its last member.
    Flow(FlowName),
}

impl Parent {
    /// The key of its edges; a parent that did not exist has none.
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

/// A parent whose end notifies its children.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum ParentKey {
    Job(Seq),
    Flow(FlowName),
}

/// The dependencies of a job; most jobs have none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Kin {
    /// Its flow; never changes.
    pub flow: Option<FlowName>,
    /// Its parents, in the order of its `after`; never changes.
    pub parents: Arc<[Parent]>,
    pub on_failure: OnParentFailure,
    /// The number of its wait: one more with each retry. An edge of an older one means nothing.
    pub turn: u32,
    /// True if it waits for a flow, or an unfinished parent did at the last check: then it belongs to no flow.
    pub above: bool,
    /// True if it counts among the dependents of its parents, from its push or its retry to its end. A finished holder
    /// of a key that lives again with new content has no parents.
    pub follows: bool,
    /// True if a job has ever waited for it, so that it has a list of children.
    pub has_children: bool,
    /// Number of its open edges. A cache, which `audit` checks; not stored.
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

/// The unfinished children of one parent, by their row numbers.
#[derive(Default, Debug)]
pub(crate) struct Edges {
    /// Waiting children, each with the turn of its waiting.
    pub open: BTreeMap<Seq, u32>,
    /// Children that were notified of a job's end, each with the turn in which it waited.
    pub told: BTreeMap<Seq, u32>,
    /// Its place in the order of notifications, while they go on.
    pub telling: Option<u64>,
}

/// A job that unfinished jobs name in their `after`, or whose failure cancelled some.
#[derive(Default, Debug)]
pub(crate) struct Followed {
    /// Number of its unfinished dependents. A cache, which `audit` checks.
    pub followers: u32,
    /// Number of children that its failure cancelled; a retry returns it and starts again at 0.
    pub cancelled: u64,
    /// Set if it is finished, and kept until its last dependent has ended.
    pub held: Option<HeldJob>,
}

/// A finished job that is kept for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeldJob {
    pub state: JobState,
    /// The end of its own retention.
    pub until: Moment,
    pub bytes: u32,
}

/// An ended job that has not let all its parents go yet.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub child: Seq,
    pub parents: Arc<[Parent]>,
    /// The parents before this index are let go.
    pub from: usize,
}
