//! The calls of a [`Client`] on flows, and on jobs that wait for each other.

use std::time::Duration;

use tenure_core::flow::{ChildView, FlowView, ParentView};
use tenure_core::names::{FlowName, JobRef};
use tenure_core::requests::{
    CancelFlow, GetFlow, ListChildren, ListFlows, ListParents, Listed, Page,
};
use tenure_core::time::Span;
use tenure_engine::CallError;

use crate::await_end;
use crate::client::Client;

impl Client {
    /// A page of the jobs and flows for which a job waits or waited, in the order of its
    /// [`after`](crate::NewJob::after); `full`: with the results of the jobs.
    ///
    /// # Errors
    /// As [`Client::run`]; `job_not_found`.
    pub async fn list_parents(
        &self,
        job: JobRef,
        full: bool,
        page: Page,
    ) -> Result<Listed<ParentView>, CallError> {
        self.run(ListParents { job, full, page }).await
    }

    /// A page of the jobs that wait or waited for a job, in the order in which they were pushed.
    ///
    /// # Errors
    /// As [`Client::run`]; `job_not_found`.
    pub async fn list_children(
        &self,
        job: JobRef,
        page: Page,
    ) -> Result<Listed<ChildView>, CallError> {
        self.run(ListChildren { job, page }).await
    }

    /// A page of the flows that are there, by name.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn list_flows(&self, page: Page) -> Result<Listed<FlowView>, CallError> {
        self.run(ListFlows { page }).await
    }

    /// A flow: all jobs that were pushed with its name. If one of them is unfinished, the call
    /// waits for the end of the last one, at most `wait` and at most a minute, and then shows the flow as it is.
    ///
    /// # Errors
    /// As [`Client::run`]; `flow_not_found`; `line_full` if too many calls wait.
    pub async fn get_flow(&self, flow: FlowName, wait: Span) -> Result<FlowView, CallError> {
        self.run(GetFlow { flow, wait }).await.map(|flow| *flow)
    }

    /// Waits until no job of a flow is unfinished, or for at most this long; `None` waits without an end. Look at its
    /// `state` first, since a flow that is not finished in time is shown as it is, and then at its `counts`: a finished
    /// flow may have failed jobs. What passes by itself is waited through, as in [`Client::wait_for_result`].
    ///
    /// # Errors
    /// As [`Client::get_flow`]; and if the engine never answered, or does not answer when the time is over.
    pub async fn wait_for_flow(
        &self,
        flow: FlowName,
        longest: Option<Duration>,
    ) -> Result<FlowView, CallError> {
        await_end::wait_for(self, flow, longest).await
    }

    /// Calls off every unfinished job of a flow, and what these push into it; running ones learn it by their next
    /// heartbeat. It answers at once: the flow shows `cancelling` until all are reached. A finished flow is left as it
    /// is.
    ///
    /// # Errors
    /// As [`Client::run`]; `flow_not_found`.
    pub async fn cancel_flow(&self, flow: FlowName) -> Result<FlowView, CallError> {
        self.run(CancelFlow { flow }).await.map(|flow| *flow)
    }
}
