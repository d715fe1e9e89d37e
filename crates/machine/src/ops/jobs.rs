//! Views of jobs, and changes of many: only rows find these, so the engine runs them.

use crate::answer::{Act, Context, Elsewhere, ExplainedAt, JobAt};
use crate::ops::cancel::Named;
use crate::rows::stored::Stands;
use crate::state::{Seq, Space};
use tenure_core::names::JobRef;
use tenure_core::refusal::Refusal;
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

impl Act for GetJob {
    type Known = JobAt;
    fn act(self, context: Context<'_>) -> Result<JobAt, Refusal> {
        let named = context.space.named(&self.job, context.rest)?;
        Ok(context.space.named_at(self.job, &named))
    }
}

impl Act for GetResult {
    type Known = JobAt;
    fn act(self, context: Context<'_>) -> Result<JobAt, Refusal> {
        let named = context.space.named(&self.job, context.rest)?;
        Ok(context.space.named_at(self.job, &named))
    }
}

impl Act for ExplainJob {
    type Known = ExplainedAt;
    fn act(self, context: Context<'_>) -> Result<ExplainedAt, Refusal> {
        let named = context.space.named(&self.job, context.rest)?;
        let at = context.space.named_at(self.job, &named);
        let explained = match named {
            Named::Live(slot) => context.space.explain_job(slot, context.now),
            Named::Finished(job) => Space::explain_finished(job.id, job.state),
        };
        Ok(ExplainedAt(explained, at))
    }
}

macro_rules! elsewhere {
    ($($request:ident)*) => {
        $(impl Act for $request {
            type Known = Elsewhere;
            fn act(self, _: Context<'_>) -> Result<Elsewhere, Refusal> {
                Ok(Elsewhere)
            }
        })*
    };
}
elsewhere! { ListJobs CancelJobs RetryJobs DeleteJobs ListFailures ReadEvents }
