//! Short calls for jobs: push, view and cancel them.

use std::future::Future;
use std::panic::Location;

use tenure_core::job::{JobState, JobView, NewJob, PushedJob};
use tenure_core::lease::{Explained, Reason, ReasonKind};
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::*;
use tenure_core::time::Span;

use crate::bench::Bench;
use crate::words::*;

impl Bench {
    #[track_caller]
    pub(crate) fn push_all(
        &self,
        jobs: Vec<NewJob>,
    ) -> impl Future<Output = Vec<PushedJob>> + Send + use<> {
        let at = Location::caller();
        let call = self.ok(Push { jobs, answer: PushAnswer::Whole });
        async move {
            match call.await {
                Pushed::Whole(jobs) => jobs,
                Pushed::Ids(_) => panic!("{at}: whole jobs were asked for, ids were answered"),
            }
        }
    }
    #[track_caller]
    pub(crate) fn push(&self, job: NewJob) -> impl Future<Output = PushedJob> + Send + use<> {
        let call = self.push_all(vec![job]);
        async move { call.await.remove(0) }
    }
    #[track_caller]
    pub(crate) fn no_push(
        &self,
        code: Code,
        job: NewJob,
    ) -> impl Future<Output = Refusal> + Send + use<> {
        self.refused(code, Push { jobs: vec![job], answer: PushAnswer::Whole })
    }

    #[track_caller]
    pub(crate) fn job(&self, id: &str) -> impl Future<Output = JobView> + Send + use<> {
        let call = self.ok(GetJob { job: job_ref(id) });
        async move { *call.await }
    }
    #[track_caller]
    pub(crate) fn no_job(&self, id: &str) -> impl Future<Output = Refusal> + Send + use<> {
        self.refused(Code::JobNotFound, GetJob { job: job_ref(id) })
    }
    /// Checks that the job is in this state.
    #[track_caller]
    pub(crate) fn is(
        &self,
        id: &str,
        state: JobState,
    ) -> impl Future<Output = JobView> + Send + use<> {
        let at = Location::caller();
        let id = id.to_owned();
        let call = self.job(&id);
        async move {
            let job = call.await;
            assert_eq!(job.state, state, "{at}: the state of {id:?}");
            job
        }
    }
    #[track_caller]
    pub(crate) fn cancel(&self, id: &str) -> impl Future<Output = JobView> + Send + use<> {
        let call = self.ok(CancelJob { job: job_ref(id) });
        async move { *call.await }
    }
    #[track_caller]
    pub(crate) fn explain(&self, id: &str) -> impl Future<Output = Explained> + Send + use<> {
        self.ok(ExplainJob { job: job_ref(id) })
    }
    /// The reason of this kind for which the job waits.
    #[track_caller]
    pub(crate) fn waits_for(
        &self,
        id: &str,
        kind: ReasonKind,
    ) -> impl Future<Output = Reason> + Send + use<> {
        let at = Location::caller();
        let call = self.explain(id);
        async move {
            let explained = call.await;
            let reason = explained.reasons.iter().find(|reason| reason.kind == kind).cloned();
            reason.unwrap_or_else(|| panic!("{at}: it waits for {kind:?}: {explained:?}"))
        }
    }

    /// Lets time pass until the job is no longer running; at most `most`.
    pub(crate) async fn until_it_ends(&self, id: &str, most: Span) -> JobView {
        let end = self.now().plus(most);
        loop {
            let job = self.job(id).await;
            if job.state != JobState::Running {
                return job;
            }
            assert!(self.now() < end, "{id:?} still runs after {most}");
            self.pass(ms(500)).await;
        }
    }
}
