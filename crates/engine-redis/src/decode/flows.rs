//! Flows in replies, and jobs as parents and children.

use serde::Deserialize;
use tenure_core::copy::{CopiedEdge, CopiedFlow, CopiedKin, CopiedParent, Item};
use tenure_core::flow::{
    ChildView, FlowCounts, FlowState, FlowView, OnParentFailure, ParentJob, ParentState,
    ParentView, ShownParent,
};
use tenure_core::names::{FlowName, JobId};
use tenure_core::time::Moment;

use super::copied::Copied;
use super::jobs::{State, moment};
use super::lenient::Maybe;
use super::{Blobs, FromWire, Malformed};

/// What becomes of a job when a parent fails, by whether any end of one will do.
pub(super) fn on_failure(runs: bool) -> OnParentFailure {
    if runs { OnParentFailure::Run } else { OnParentFailure::Cancel }
}

/// A parent as it is stored with its child: its row and its id, no row if it was not there; or a flow.
#[derive(Deserialize)]
struct StoredParent(
    #[expect(dead_code, reason = "only the library looks for it")] Maybe<u64>,
    Maybe<JobId>,
    #[serde(default)] Maybe<FlowName>,
);

/// The first parents of a job, as its view shows them.
pub(super) fn first_parents(packed: &[u8]) -> Result<Vec<ShownParent>, Malformed> {
    const WRONG: Malformed = Malformed("the parents of a job");
    let parents: Vec<StoredParent> = rmp_serde::from_slice(packed).map_err(|_| WRONG)?;
    let shown = parents.into_iter().map(|StoredParent(_, id, flow)| match (flow.0, id.0) {
        (Some(flow), _) => Ok(ShownParent::Flow { flow }),
        (None, Some(id)) => Ok(ShownParent::Job(id)),
        (None, None) => Err(WRONG),
    });
    shown.collect()
}

/// The members of a flow by where they stand.
#[derive(Deserialize)]
struct FlowCountsReply {
    unfinished: u64,
    succeeded: u64,
    failed: u64,
    cancelled: u64,
}

impl FlowCountsReply {
    fn read(self) -> FlowCounts {
        let FlowCountsReply { unfinished, succeeded, failed, cancelled } = self;
        FlowCounts { unfinished, succeeded, failed, cancelled }
    }
}

/// A flow, and to a call that waits for it the number of its registration.
#[derive(Deserialize)]
pub(crate) struct FlowReply {
    flow: FlowName,
    counts: FlowCountsReply,
    #[serde(default)]
    cancelling: bool,
    created_at: u64,
    #[serde(default)]
    finished_at: Maybe<u64>,
    #[serde(default)]
    number: Maybe<u64>,
}

impl FlowReply {
    pub(crate) fn registered(&self) -> Option<u64> {
        self.number.0
    }

    pub(crate) fn view(self) -> FlowView {
        let counts = self.counts.read();
        FlowView {
            flow: self.flow,
            state: if counts.unfinished > 0 { FlowState::Open } else { FlowState::Finished },
            cancelling: self.cancelling,
            counts,
            created_at: Moment::from_us(self.created_at),
            finished_at: moment(self.finished_at),
        }
    }
}

impl FromWire for FlowView {
    type Wire = FlowReply;
    fn read(wire: FlowReply, _: &Blobs) -> Result<Self, Malformed> {
        Ok(wire.view())
    }
}

impl FromWire for Box<FlowView> {
    type Wire = FlowReply;
    fn read(wire: FlowReply, _: &Blobs) -> Result<Self, Malformed> {
        Ok(Box::new(wire.view()))
    }
}

/// A parent: a flow with its counts, or a job, of which nothing but its id is known if it is gone.
#[derive(Deserialize)]
pub(crate) struct ParentReply {
    #[serde(default)]
    flow: Maybe<FlowName>,
    #[serde(default)]
    counts: Option<FlowCountsReply>,
    #[serde(default)]
    id: Maybe<JobId>,
    #[serde(default)]
    gone: bool,
    #[serde(default)]
    state: Option<State>,
    #[serde(default)]
    error: Maybe<String>,
    #[serde(default)]
    finished_at: Maybe<u64>,
    #[serde(default)]
    result: Maybe<usize>,
}

impl ParentReply {
    /// With its result only if `full`: one that has none succeeded with `null`.
    pub(crate) fn view(self, blobs: &Blobs, full: bool) -> Result<ParentView, Malformed> {
        const WRONG: Malformed = Malformed("a parent of a job");
        if let Some(flow) = self.flow.0 {
            let counts = self.counts.ok_or(WRONG)?.read();
            return Ok(ParentView::Flow { flow, counts });
        }
        let id = self.id.0.ok_or(WRONG)?;
        if self.gone {
            return Ok(ParentView::gone(id));
        }
        let result = self.result.0.map(|number| blobs.json(number)).transpose()?;
        Ok(ParentView::Job(ParentJob {
            id,
            state: ParentState::There(self.state.ok_or(WRONG)?.0),
            error: self.error.0,
            finished_at: moment(self.finished_at),
            result: full.then(|| result.unwrap_or_default()),
        }))
    }
}

/// A child.
#[derive(Deserialize)]
pub(crate) struct ChildReply {
    id: JobId,
    state: State,
    #[serde(default)]
    runs: bool,
}

impl FromWire for ChildView {
    type Wire = ChildReply;
    fn read(wire: ChildReply, _: &Blobs) -> Result<Self, Malformed> {
        let on_parent_failure = on_failure(wire.runs);
        Ok(ChildView { id: wire.id, state: wire.state.0, on_parent_failure })
    }
}

/// A parent in a copy.
#[derive(Deserialize)]
struct ParentCopied {
    #[serde(default)]
    id: Maybe<JobId>,
    #[serde(default)]
    gone: bool,
    #[serde(default)]
    flow: Maybe<FlowName>,
    #[serde(default)]
    open: bool,
    #[serde(default)]
    told: bool,
}

impl ParentCopied {
    fn read(self) -> Result<CopiedParent, Malformed> {
        let ParentCopied { id, gone, flow, open, told } = self;
        if let Some(flow) = flow.0 {
            return Ok(CopiedParent::Flow { flow, waits: open });
        }
        let id = id.0.ok_or(Malformed("a parent of a job"))?;
        let edge = match (open, told) {
            (true, _) => Some(CopiedEdge::Open),
            (false, true) => Some(CopiedEdge::Told),
            (false, false) => None,
        };
        Ok(if gone { CopiedParent::Gone(id) } else { CopiedParent::Job { id, edge } })
    }
}

/// How a job stands to its parents, in a copy.
#[derive(Deserialize)]
pub(crate) struct KinCopied {
    id: JobId,
    parents: Vec<ParentCopied>,
    #[serde(default)]
    runs: bool,
    #[serde(default)]
    above: bool,
    #[serde(default)]
    follows: bool,
}

impl Copied for KinCopied {
    fn item(self, _: &Blobs) -> Result<Item, Malformed> {
        Ok(Item::Kin(Box::new(CopiedKin {
            job: self.id,
            parents: self.parents.into_iter().map(ParentCopied::read).collect::<Result<_, _>>()?,
            on_failure: on_failure(self.runs),
            above: self.above,
            follows: self.follows,
        })))
    }
}

/// The counts of a flow, in a copy.
#[derive(Deserialize)]
pub(crate) struct FlowCopied {
    flow: FlowName,
    succeeded: u64,
    failed: u64,
    cancelled: u64,
    rows: u64,
    #[serde(default)]
    cancelling: bool,
    created_at: u64,
    #[serde(default)]
    finished_at: Maybe<u64>,
}

impl Copied for FlowCopied {
    fn item(self, _: &Blobs) -> Result<Item, Malformed> {
        let FlowCopied { flow, succeeded, failed, cancelled, rows, .. } = self;
        Ok(Item::Flow(CopiedFlow {
            flow,
            ended: FlowCounts { unfinished: 0, succeeded, failed, cancelled },
            rows,
            cancelling: self.cancelling,
            created_at: Moment::from_us(self.created_at),
            finished_at: moment(self.finished_at),
        }))
    }
}
