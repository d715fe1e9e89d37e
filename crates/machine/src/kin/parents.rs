//! Parents as a push or a retry finds them. It only reads.

use crate::rows::{Archive, Archived};
use crate::state::{Kin, LiveJobId, Parent, ParentKey, Seq, Space};
use crate::stored::StoredLife;
use tenure_core::flow::OnParentFailure;
use tenure_core::job::JobState;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::FlowRefusal;
use tenure_core::time::Moment;

/// Where a parent stands.
pub(crate) enum ParentNow {
    /// It is unfinished, and above a flow or not.
    Open { above: bool },
    /// It ended well, or is a flow whose members did.
    Done,
    /// It failed or was cancelled.
    Failed(JobState),
    /// A flow without unfinished members, of which one failed or was cancelled.
    FlowFailed,
    /// It is not there.
    Gone,
}

impl Space {
    /// Where one of a job's parents stands.
    pub(crate) fn parent_now(
        &self,
        parent: &Parent,
        archive: &dyn Archive,
        now: Moment,
    ) -> ParentNow {
        match parent {
            Parent::Gone(_) => ParentNow::Gone,
            Parent::Job(seq, _) => match self.job_by_seq(*seq) {
                Some(slot) => ParentNow::Open { above: self.is_above(slot) },
                None => match self.ended_or_kept(*seq, archive).filter(|job| job.until > now) {
                    None => ParentNow::Gone,
                    Some(job) if job.state == JobState::Succeeded => ParentNow::Done,
                    Some(job) => ParentNow::Failed(job.state),
                },
            },
            Parent::Flow(flow) => match self.flows.get(flow) {
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

    /// A finished job: of an earlier item of the same call, or of the archive.
    pub(crate) fn ended_or_kept(&self, seq: Seq, archive: &dyn Archive) -> Option<Archived> {
        self.ended_now(seq).or_else(|| self.as_changed(archive.by_seq(&self.name, seq)?))
    }

    /// How a retried job waits for its parents: those that are unfinished, and whether it is above a flow now.
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

    /// What a finished job's life says of others.
    pub(crate) fn kin_in(life: &[u8]) -> Option<Kin> {
        StoredLife::decode(life)?.kin.map(|kin| *kin)
    }
}
