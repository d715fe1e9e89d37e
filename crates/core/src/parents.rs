//! The parents of a job, as a push names them and as the job shows them.

use serde::{Deserialize, Serialize};

use crate::bounds::AFTER_SHOWN;
use crate::names::{FlowName, JobId, JobRef, Ref};
use crate::words;

crate::schemas!(OnParentFailure, ShownParent);

words! {
    /// Policy for a job when one of its parents fails or is cancelled.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum OnParentFailure {
        /// The job is cancelled, and so are its children, unless they have `Run`.
        #[default]
        Cancel = "cancel",
        /// Any end of a parent will do.
        Run = "run",
    }
}

/// The parent that an entry of `after` names.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Parent {
    /// A job, by its id or by the unique key that it held before the call.
    Job(JobRef),
    /// An item of the same call, by its `ref`.
    Item(Ref),
    /// Every job of a flow, however many are pushed into it.
    Flow(FlowName),
}

/// One entry of `after`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct After {
    pub parent: Parent,
    /// True: a parent that does not exist counts as done. False: it is refused.
    pub gone_is_done: bool,
}

/// A parent as a job's `after` shows it: resolved to an id, or a flow.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ShownParent {
    Job(JobId),
    /// A flow, by its name.
    Flow {
        flow: FlowName,
    },
}

impl ShownParent {
    /// Estimated size in an answer.
    pub fn bytes(&self) -> usize {
        match self {
            ShownParent::Job(id) => id.as_str().len() + 4,
            ShownParent::Flow { flow } => flow.as_str().len() + 16,
        }
    }
}

impl std::fmt::Display for ShownParent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ShownParent::Job(id) => write!(f, "{id}"),
            ShownParent::Flow { flow } => write!(f, "flow:{flow}"),
        }
    }
}

/// The parents of a job as its view shows them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ShownParents {
    /// The first 100 parents.
    pub after: Vec<ShownParent>,
    /// Number of all parents.
    pub parents: u32,
    /// Parents that have not ended, or whose end has not been counted yet.
    pub waiting_on: u32,
    /// Applies when a parent fails or is cancelled.
    pub on_failure: OnParentFailure,
}

impl ShownParents {
    /// Keeps the first 100 parents, and the number of all.
    pub fn of(
        parents: impl ExactSizeIterator<Item = ShownParent>,
        waiting_on: u32,
        on_failure: OnParentFailure,
    ) -> Self {
        let count = parents.len() as u32;
        ShownParents {
            after: parents.take(AFTER_SHOWN).collect(),
            parents: count,
            waiting_on,
            on_failure,
        }
    }
}
