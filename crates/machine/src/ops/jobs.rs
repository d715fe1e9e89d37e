//! Views of jobs, and changes of many: only rows find these, so the engine runs them.

use crate::answer::{Elsewhere, ExplainedAt, JobAt, acts};
use crate::ops::cancel::Named;
use crate::rows::stored::Stands;
use crate::state::{Seq, Space};
use tenure_core::names::JobRef;
use tenure_core::requests::{
    CancelJobs, DeleteJobs, ExplainJob, GetJob, GetResult, ListFailures, ListJobs, ReadEvents,
    RetryJobs,
};

impl Space {
    /// The view of a live job.
    pub(crate) fn job_at(&self, job: JobRef, seq: Seq) -> JobAt {
        let stands = self.jobs.by_seq(seq).map(|slot| self.stands_of(slot)).unwrap_or_default();
        JobAt { job, seq, stands }
    }

    /// The view of the job that a path names.
    fn named_at(&self, job: JobRef, named: &Named) -> JobAt {
        let (seq, stands) = match named {
            Named::Live(slot) => (self.jobs[*slot].seq, self.stands_of(*slot)),
            Named::Finished(job) => (job.seq, Stands { state: job.state, waiting_on: 0 }),
        };
        JobAt { job, seq, stands }
    }
}

acts! {
    GetJob => JobAt, |ask, at| {
        let named = at.space.named(&ask.job, at.rest)?;
        Ok(at.space.named_at(ask.job, &named))
    };
    GetResult => JobAt, |ask, at| {
        let named = at.space.named(&ask.job, at.rest)?;
        Ok(at.space.named_at(ask.job, &named))
    };
    ExplainJob => ExplainedAt, |ask, at| {
        let named = at.space.named(&ask.job, at.rest)?;
        let shown = at.space.named_at(ask.job, &named);
        let explained = match named {
            Named::Live(slot) => at.space.explain_job(slot, at.now),
            Named::Finished(job) => Space::explain_finished(job.id, job.state),
        };
        Ok(ExplainedAt(explained, shown))
    };
    ListJobs => Elsewhere, |_, _| Ok(Elsewhere);
    CancelJobs => Elsewhere, |_, _| Ok(Elsewhere);
    RetryJobs => Elsewhere, |_, _| Ok(Elsewhere);
    DeleteJobs => Elsewhere, |_, _| Ok(Elsewhere);
    ListFailures => Elsewhere, |_, _| Ok(Elsewhere);
    ReadEvents => Elsewhere, |_, _| Ok(Elsewhere);
}
