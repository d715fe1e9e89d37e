//! Short words for jobs that wait for jobs, and short calls for flows and for jobs with parents.

use std::future::Future;

use tenure_core::flow::{
    After, ChildView, FlowView, OnParentFailure, Parent, ParentState, ParentView, ShownParent,
};
use tenure_core::job::{JobState, JobView, NewJob};
use tenure_core::lease::{LeaseView, SettleItem};
use tenure_core::names::{FlowName, Ref};
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::*;
use tenure_core::time::Span;

use super::waits::Waiting;
use crate::bench::Bench;
use crate::words::*;

/// The error of a job that was cancelled because a parent failed or was cancelled.
pub(crate) const PARENT_FAILED: &str = "parent_failed";

pub(crate) fn flow(name: &str) -> FlowName {
    FlowName::parse(name).expect("a flow that is well formed")
}

/// Builder methods for the parents and the flow of a job.
pub(crate) trait FlowWords: Sized {
    /// Waits for one more parent.
    fn after_parent(self, parent: Parent) -> Self;
    /// Waits for these jobs: ids, or `key:KEY`.
    fn after<S: AsRef<str>>(self, jobs: impl IntoIterator<Item = S>) -> Self;
    /// Waits for the item of its call with this ref.
    fn after_item(self, reference: &str) -> Self;
    fn after_flow(self, name: &str) -> Self;
    /// The parent that was named last counts as done if it is missing.
    fn or_gone(self) -> Self;
    /// Sets its ref within its call.
    fn called(self, reference: &str) -> Self;
    fn in_flow(self, name: &str) -> Self;
    /// Runs after any end of its parents.
    fn run_anyway(self) -> Self;
}
impl FlowWords for NewJob {
    fn after_parent(mut self, parent: Parent) -> Self {
        self.after.push(After { parent, gone_is_done: false });
        self
    }
    fn after<S: AsRef<str>>(self, jobs: impl IntoIterator<Item = S>) -> Self {
        let parents = jobs.into_iter().map(|id| Parent::Job(job_ref(id.as_ref())));
        parents.fold(self, FlowWords::after_parent)
    }
    fn after_item(self, reference: &str) -> Self {
        self.after_parent(Parent::Item(Ref::parse(reference).expect("a ref that is well formed")))
    }
    fn after_flow(self, name: &str) -> Self {
        self.after_parent(Parent::Flow(flow(name)))
    }
    fn or_gone(mut self) -> Self {
        self.after.last_mut().expect("a parent was named").gone_is_done = true;
        self
    }
    fn called(self, reference: &str) -> Self {
        let reference = Ref::parse(reference).expect("a ref that is well formed");
        NewJob { reference: Some(reference), ..self }
    }
    fn in_flow(self, name: &str) -> Self {
        NewJob { flow: Some(flow(name)), ..self }
    }
    fn run_anyway(self) -> Self {
        NewJob { on_parent_failure: OnParentFailure::Run, ..self }
    }
}

/// The parents that a job shows: ids, and `flow:F`.
pub(crate) fn after_of(job: &JobView) -> Vec<String> {
    job.after.iter().map(ShownParent::to_string).collect()
}
/// How many parents a job has, and how many of them it waits for.
pub(crate) fn waits_of(job: &JobView) -> (u32, u32) {
    (job.parents, job.waiting_on)
}
/// The name of its flow.
pub(crate) fn flow_of(job: &JobView) -> Option<&str> {
    job.flow.as_ref().map(FlowName::as_str)
}
/// Unfinished, succeeded, failed, cancelled.
pub(crate) fn counts_of(flow: &FlowView) -> [u64; 4] {
    let counts = flow.counts;
    [counts.unfinished, counts.succeeded, counts.failed, counts.cancelled]
}
/// A parent in short: its id and state, or `flow:F` and `flow`.
pub(crate) fn named_parent(parent: &ParentView) -> (String, &'static str) {
    match parent {
        ParentView::Job(job) => (job.id.to_string(), ParentState::as_str(job.state)),
        ParentView::Flow { flow, .. } => (format!("flow:{flow}"), "flow"),
    }
}
/// Checks that the refusal is about this item of the array, at this place. Over HTTP a pointer counts from the body.
#[track_caller]
pub(crate) fn is_about(no: &Refusal, item: usize, place: &str) {
    assert_eq!(no.index, Some(item), "{no}");
    assert!(no.pointer.as_deref().is_some_and(|pointer| pointer.ends_with(place)), "{no}");
}
/// An array that is answered with ids only.
pub(crate) fn briefly(jobs: Vec<NewJob>) -> Push {
    Push { jobs, answer: PushAnswer::Ids }
}

impl Bench {
    /// An array that is refused, with this code.
    #[track_caller]
    pub(crate) fn no_push_all(
        &self,
        code: Code,
        jobs: Vec<NewJob>,
    ) -> impl Future<Output = Refusal> + Send + use<> {
        self.refused(code, Push { jobs, answer: PushAnswer::Whole })
    }
    /// Takes the next job of the queue, which must be this one, and ends its lease.
    #[track_caller]
    pub(crate) fn ends<'b>(
        &'b self,
        name: &str,
        id: &str,
        end: fn(&LeaseView) -> SettleItem,
    ) -> impl Future<Output = ()> + use<'b> {
        let take = self.take_job(name, id);
        async move {
            let lease = take.await;
            self.settle(end(&lease)).await;
        }
    }
    /// Returns when all waiting callers have been notified: all due work is done.
    pub(crate) async fn told(&self) {
        self.pass(ms(1)).await;
    }
    #[track_caller]
    pub(crate) fn retried(&self, id: &str) -> impl Future<Output = JobView> + Send + use<> {
        let call = self.ok(RetryJob { job: job_ref(id), finished_at: None });
        async move { *call.await }
    }
    #[track_caller]
    pub(crate) fn not_retried(&self, id: &str) -> impl Future<Output = Refusal> + Send + use<> {
        self.refused(Code::WrongState, RetryJob { job: job_ref(id), finished_at: None })
    }
    #[track_caller]
    pub(crate) fn parents(
        &self,
        id: &str,
    ) -> impl Future<Output = Vec<(String, &'static str)>> + Send + use<> {
        let page = Page { max: 1_000, cursor: None };
        let call = self.ok(ListParents { job: job_ref(id), full: false, page });
        async move { call.await.items.iter().map(named_parent).collect() }
    }
    #[track_caller]
    pub(crate) fn children(
        &self,
        id: &str,
    ) -> impl Future<Output = Vec<(String, JobState)>> + Send + use<> {
        let page = Page { max: 1_000, cursor: None };
        let call = self.ok(ListChildren { job: job_ref(id), page });
        let named = |child: ChildView| (child.id.to_string(), child.state);
        async move { call.await.items.into_iter().map(named).collect() }
    }

    #[track_caller]
    pub(crate) fn flow(&self, name: &str) -> impl Future<Output = FlowView> + Send + use<> {
        let call = self.ok(GetFlow { flow: flow(name), wait: Span::ZERO });
        async move { *call.await }
    }
    #[track_caller]
    pub(crate) fn no_flow(&self, name: &str) -> impl Future<Output = Refusal> + Send + use<> {
        self.refused(Code::FlowNotFound, GetFlow { flow: flow(name), wait: Span::ZERO })
    }
    /// The numbers of its unfinished, succeeded, failed and cancelled members.
    #[track_caller]
    pub(crate) fn members(&self, name: &str) -> impl Future<Output = [u64; 4]> + Send + use<> {
        let call = self.flow(name);
        async move { counts_of(&call.await) }
    }
    #[track_caller]
    pub(crate) fn cancel_flow(&self, name: &str) -> impl Future<Output = FlowView> + Send + use<> {
        let call = self.ok(CancelFlow { flow: flow(name) });
        async move { *call.await }
    }
    /// A call that waits for a flow, registered after those that wait already.
    pub(crate) async fn awaits_flow(&self, name: &str, wait: Span) -> Waiting<Box<FlowView>> {
        let before = self.ok(GetStats).await.result_waiters as usize;
        let waiting = self.start(GetFlow { flow: flow(name), wait });
        self.result_waiters(before + 1).await;
        waiting
    }
}
