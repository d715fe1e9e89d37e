//! Parents at a push or a retry. It only reads.

use crate::rows::stored::StoredLife;
use crate::rows::{Archive, Archived};
use crate::state::{Kin, LiveJobId, Parent, ParentKey, Seq, Space};
use tenure_core::flow::OnParentFailure;
use tenure_core::job::JobState;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::FlowRefusal;
use tenure_core::time::Moment;

/// The state of a parent.
pub(crate) enum ParentNow {
    /// It is unfinished; `above`: it is above a flow.
    Open { above: bool },
    /// It ended well, or is a flow whose members did.
    Done,
    /// It failed or was cancelled.
    Failed(JobState),
    /// A flow without unfinished members; one of them failed or was cancelled.
    FlowFailed,
    /// There is no such job or flow.
    Gone,
}

impl Space {
    /// The state of one of a job's parents.
    pub(crate) fn parent_now(
        &self,
        parent: &Parent,
        archive: &dyn Archive,
        now: Moment,
    ) -> ParentNow {
        match parent {
            Parent::Gone(_) => ParentNow::Gone,
            Parent::Job(seq, _) => match self.jobs.by_seq(*seq) {
                Some(slot) => ParentNow::Open { above: self.is_above(slot) },
                None => match self.ended_or_kept(*seq, archive).filter(|job| job.until > now) {
                    None => ParentNow::Gone,
                    Some(job) if job.state == JobState::Succeeded => ParentNow::Done,
                    Some(job) => ParentNow::Failed(job.state),
                },
            },
            Parent::Flow(flow) => match self.flows.named().get(flow) {
                None => ParentNow::Gone,
                Some(there) if !there.members.is_empty() => ParentNow::Open { above: false },
                Some(there) if there.counts().has_failed() => ParentNow::FlowFailed,
                Some(_) => ParentNow::Done,
            },
        }
    }

    pub(crate) fn is_above(&self, slot: LiveJobId) -> bool {
        self.jobs[slot].kin.as_ref().is_some_and(|kin| kin.above)
    }

    /// A finished job, from an earlier item of the same call or from the archive.
    pub(crate) fn ended_or_kept(&self, seq: Seq, archive: &dyn Archive) -> Option<Archived> {
        self.ended_now(seq).or_else(|| self.as_changed(archive.by_seq(&self.name, seq)?))
    }

    /// The unfinished parents of a retried job, and its new position above a flow.
    pub(crate) fn parents_of_retry(
        &self,
        job: &Archived,
        kin: &Kin,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<(Vec<ParentKey>, bool), Refusal> {
        let cancels = kin.on_failure == OnParentFailure::Cancel;
        let (mut open, mut above) = (Vec::new(), false);
        for parent in kin.parents.iter() {
            above |= matches!(parent, Parent::Flow(_));
            match (self.parent_now(parent, archive, now), parent) {
                (ParentNow::Open { above: parents }, _) => {
                    above |= parents;
                    open.extend(parent.key());
                }
                (ParentNow::Failed(state), Parent::Job(_, parent)) if cancels => {
                    let (job, parent) = (job.id.clone(), parent.clone());
                    return Err(FlowRefusal::ParentEnded { job, parent, state }.into());
                }
                (ParentNow::FlowFailed, Parent::Flow(flow)) if cancels => {
                    let (job, flow) = (job.id.clone(), flow.clone());
                    return Err(FlowRefusal::FlowFailed { job, flow }.into());
                }
                _ => {}
            }
        }
        match &kin.flow {
            Some(flow) if above => {
                let (job, flow) = (job.id.clone(), flow.clone());
                Err(FlowRefusal::AboveFlowByRetry { job, flow }.into())
            }
            _ => Ok((open, above)),
        }
    }

    /// The dependencies in a finished job's row.
    pub(crate) fn kin_in(life: &[u8]) -> Option<Kin> {
        StoredLife::decode(life)?.kin.map(|kin| *kin)
    }
}
