//! Flows in a copy, and whom jobs wait for.
//!
//! Only a child's side of an edge is copied. The list of a parent's children, how many unfinished jobs name it, and that it
//! is kept for them, is built anew by the target; so is what was not told yet: a parent that has ended, and an open
//! edge to it. All of it comes behind the jobs, since a child may have been stored before its parent.

use crate::flow::{FlowCounts, OnParentFailure};
use crate::names::{FlowName, JobId};
use crate::time::Moment;

/// How a job stands to those in its `after`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopiedKin {
    /// The job that waits, or waited.
    pub job: JobId,
    /// Its parents, in the order of its `after`.
    pub parents: Vec<CopiedParent>,
    /// What becomes of the job when one of them fails.
    pub on_failure: OnParentFailure,
    /// Whether it was above a flow at its push or its last retry.
    pub above: bool,
    /// Whether it counts among the followers of its parents, if it is unfinished. A finished holder of a key that lives
    /// again with new content does not.
    pub follows: bool,
}

/// One of those that a job waits or waited for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CopiedParent {
    /// A job that comes along.
    Job {
        /// The id of the parent.
        id: JobId,
        /// The edge between the two; `None` if the parent had ended when it was named.
        edge: Option<CopiedEdge>,
    },
    /// A job that is not there any more, or never was.
    Gone(JobId),
    /// A flow as a whole.
    Flow {
        /// The name of the flow.
        flow: FlowName,
        /// Whether the job waits for it still.
        waits: bool,
    },
}

impl CopiedParent {
    /// About how long it is.
    pub fn bytes(&self) -> usize {
        match self {
            CopiedParent::Job { id, .. } | CopiedParent::Gone(id) => id.as_str().len(),
            CopiedParent::Flow { flow, .. } => flow.as_str().len(),
        }
    }
}

/// An edge between a job and its child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopiedEdge {
    /// The child waits, and has not been told of an end.
    Open,
    /// The child does not wait for it any more, and is shown among its children.
    Told,
}

/// The counts of a flow, behind its members and those that wait for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopiedFlow {
    /// The name of the flow.
    pub flow: FlowName,
    /// Members that ended, also those whose rows are gone. Unfinished ones are counted by the target.
    pub ended: FlowCounts,
    /// Members whose rows are there.
    pub rows: u64,
    /// Whether its members are being called off; the target begins again with the first that is unfinished.
    pub cancelling: bool,
    /// When its first member came, or the first that waits for it.
    pub created_at: Moment,
    /// When its last member ended; means nothing while one is unfinished.
    pub finished_at: Option<Moment>,
}
