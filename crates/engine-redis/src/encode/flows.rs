//! Arguments of the calls about flows, and who of a call waits for whom.

use serde::Serialize;
use tenure_core::copy::{CopiedEdge, CopiedFlow, CopiedKin, CopiedParent};
use tenure_core::flow::{KinRef, Kinship, OnParentFailure};
use tenure_core::names::FlowName;
use tenure_core::requests::{CancelFlow, ListChildren, ListParents};

use super::items::moment;
use super::jobs::RefArgs;
use super::{OneCall, Packed, pack};
use crate::bucket::bucket;

/// What an entry of `after` names, and its place there.
#[derive(Serialize)]
struct KinRefArg<'a> {
    at: usize,
    /// What is not there counts as done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    gone: bool,
    /// The number of an item of the call, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<usize>,
    #[serde(flatten)]
    job: Option<RefArgs<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<&'a str>,
}

impl<'a> KinRefArg<'a> {
    fn of((parent, at, gone): &'a (KinRef, usize, bool)) -> Self {
        let none = KinRefArg { at: *at, gone: *gone, item: None, job: None, flow: None };
        match parent {
            KinRef::Item(item) => KinRefArg { item: Some(item + 1), ..none },
            KinRef::Job(job) => KinRefArg { job: Some(RefArgs::of(job)), ..none },
            KinRef::Flow(flow) => KinRefArg { flow: Some(flow.as_str()), ..none },
        }
    }
}

/// Who of the items of a call waits for whom.
#[derive(Serialize)]
pub(crate) struct KinArg<'a> {
    /// For each item what it names.
    parents: Vec<Vec<KinRefArg<'a>>>,
    /// The items, from 1, in the order in which they are decided.
    order: Vec<usize>,
}

impl<'a> KinArg<'a> {
    /// None if no item waits for anything, nor has a name that another could wait for.
    pub(super) fn of(kinship: &'a Kinship) -> Option<Self> {
        if kinship.is_empty() {
            return None;
        }
        let named = |named: &'a Vec<_>| named.iter().map(KinRefArg::of).collect();
        let parents = kinship.parents.iter().map(named).collect();
        Some(KinArg { parents, order: kinship.order.iter().map(|item| item + 1).collect() })
    }
}

/// Of `get_flow`, `cancel_flow` and `wait_flow`.
#[derive(Serialize)]
pub(crate) struct FlowArgs<'a> {
    flow: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    proc: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<u64>,
}

impl<'a> FlowArgs<'a> {
    pub(crate) fn of(flow: &'a FlowName) -> Self {
        FlowArgs { flow: flow.as_str(), proc: None, wait: None }
    }

    /// The same, for a call of a process that waits for so long (us).
    pub(crate) fn waiting(self, proc: &'a str, wait: u64) -> Self {
        FlowArgs { proc: Some(proc), wait: Some(wait), ..self }
    }
}

impl OneCall for CancelFlow {
    fn args(&self) -> Packed {
        pack(&FlowArgs::of(&self.flow))
    }
}

/// Of `list_parents` and `list_children`: a page of those of a job behind a place, or behind a row.
#[derive(Serialize)]
pub(crate) struct ListKinArgs<'a> {
    #[serde(flatten)]
    job: RefArgs<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    full: bool,
    max: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<u64>,
    /// Of parents: what is left of the bytes of their page.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
}

impl<'a> ListKinArgs<'a> {
    pub(crate) fn parents(
        list: &'a ListParents,
        after: Option<u64>,
        (max, bytes): (usize, usize),
    ) -> Self {
        let (job, bytes) = (RefArgs::of(&list.job), Some(bytes));
        ListKinArgs { job, full: list.full, max, after, bytes }
    }

    pub(crate) fn children(list: &'a ListChildren, after: Option<u64>, max: usize) -> Self {
        ListKinArgs { job: RefArgs::of(&list.job), full: false, max, after, bytes: None }
    }
}

/// A parent in a copy: a job that comes along has a bucket, one that is gone has none.
#[derive(Serialize)]
struct CopiedParentArg<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<&'a str>,
    /// The child waits for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    open: bool,
    /// The child does not wait any more, and is shown with its parent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    told: bool,
}

impl<'a> CopiedParentArg<'a> {
    fn of(parent: &'a CopiedParent) -> Self {
        let none = CopiedParentArg { id: None, b: None, flow: None, open: false, told: false };
        match parent {
            CopiedParent::Job { id, edge } => CopiedParentArg {
                id: Some(id.as_str()),
                b: Some(bucket(id.as_str()).to_string()),
                open: *edge == Some(CopiedEdge::Open),
                told: *edge == Some(CopiedEdge::Told),
                ..none
            },
            CopiedParent::Gone(id) => CopiedParentArg { id: Some(id.as_str()), ..none },
            CopiedParent::Flow { flow, waits } => {
                CopiedParentArg { flow: Some(flow.as_str()), open: *waits, ..none }
            }
        }
    }
}

/// How a job stands to its parents, in a copy.
#[derive(Serialize)]
pub(crate) struct CopiedKinArgs<'a> {
    id: &'a str,
    b: String,
    parents: Vec<CopiedParentArg<'a>>,
    /// Any end of a parent will do.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    run: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    above: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    follows: bool,
}

impl<'a> CopiedKinArgs<'a> {
    pub(super) fn of(kin: &'a CopiedKin) -> Self {
        let id = kin.job.as_str();
        CopiedKinArgs {
            id,
            b: bucket(id).to_string(),
            parents: kin.parents.iter().map(CopiedParentArg::of).collect(),
            run: kin.on_failure == OnParentFailure::Run,
            above: kin.above,
            follows: kin.follows,
        }
    }
}

/// The counts of a flow, in a copy. Its rows are counted by the library.
#[derive(Serialize)]
pub(crate) struct CopiedFlowArgs<'a> {
    flow: &'a str,
    succeeded: u64,
    failed: u64,
    cancelled: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cancelling: bool,
    created_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<u64>,
}

impl<'a> CopiedFlowArgs<'a> {
    pub(super) fn of(flow: &'a CopiedFlow) -> Self {
        CopiedFlowArgs {
            flow: flow.flow.as_str(),
            succeeded: flow.ended.succeeded,
            failed: flow.ended.failed,
            cancelled: flow.ended.cancelled,
            cancelling: flow.cancelling,
            created_at: moment(flow.created_at),
            finished_at: flow.finished_at.map(moment),
        }
    }
}
