//! Flows, and jobs that wait for each other.

use std::time::Duration;

use tenure_core::bounds::ITEMS_MAX;
use tenure_core::flow::{ChildView, FlowView, ParentView};
use tenure_core::job::JobState;
use tenure_core::names::{FlowName, JobRef};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{
    CancelFlow, GetFlow, JobFilter, ListChildren, ListFlows, ListParents, Listed, Page, PushedId,
    RetryJobs,
};
use tenure_core::time::Span;
use tenure_engine_api::CallError;

use crate::await_end;
use crate::client::Client;
use crate::push::Pushing;

/// A flow, as [`Client::flow`] names it: the jobs that carry its name.
///
/// ```
/// # tenure::testing::example(async |client| {
/// use std::time::Duration;
///
/// let import = client.flow("import-7");
/// import.push("pages").id("page-1").await?;
/// import.push_all([client.push("pages"), client.push("pages")]).await?;
/// assert_eq!(import.view().await?.counts.unfinished, 3);
///
/// import.cancel().await?;
/// let end = import.wait_within(Duration::from_secs(1)).await?;
/// assert_eq!(end.counts.cancelled, 3);
/// assert_eq!(import.retry().await?, 3);
/// # Ok(()) });
/// ```
#[derive(Clone, Debug)]
pub struct Flow {
    client: Client,
    name: String,
}

impl Client {
    /// A flow: jobs that are waited for, shown and cancelled as a whole. Give each run a name of its own, such as
    /// `import-2026-12-01`: a name that is used again goes on counting its kept members.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// client
    ///     .flow("import-7")
    ///     .push_all([
    ///         client.push("pages").reference("one"),
    ///         client.push("pages").reference("two"),
    ///         client.push("reports").after_ref("one").after_ref("two"),
    ///     ])
    ///     .await?;
    /// # Ok(()) });
    /// ```
    pub fn flow(&self, name: &str) -> Flow {
        Flow { client: self.clone(), name: name.to_owned() }
    }
}

impl Flow {
    /// Stores a job of this queue in the flow once it is awaited; see [`Client::push`].
    pub fn push(&self, queue: &str) -> Pushing {
        self.client.push(queue).flow(&self.name)
    }
    /// Stores 1 to 1,000 jobs in the flow, all or none; answers in their order. A job that names another flow stays in that
    /// one.
    ///
    /// # Errors
    /// As [`Client::push_all`].
    pub async fn push_all(
        &self,
        jobs: impl IntoIterator<Item = Pushing>,
    ) -> Result<Vec<PushedId>, CallError> {
        let flow = self.named()?;
        let into = |pushing: Pushing| {
            pushing.with(|job| {
                job.flow.get_or_insert_with(|| flow.clone());
            })
        };
        let jobs: Vec<Pushing> = jobs.into_iter().map(into).collect();
        self.client.push_all(jobs).await
    }
    /// How many of its jobs are unfinished, and how the others ended.
    ///
    /// # Errors
    /// As [`Client::run`]; `flow_not_found`.
    pub async fn view(&self) -> Result<FlowView, CallError> {
        self.client.get_flow(self.named()?, Span::ZERO).await
    }
    /// Waits until all of its jobs are finished: see [`Client::wait_for_flow`]. Look at its `counts` then, since a
    /// finished flow may have failed jobs.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// # client.flow("import-7").push("pages").id("p").await?;
    /// # client.job("p").cancel().await?;
    /// let end = client.flow("import-7").wait().await?;
    /// println!("{} succeeded, {} failed", end.counts.succeeded, end.counts.failed);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Client::wait_for_flow`].
    pub async fn wait(&self) -> Result<FlowView, CallError> {
        self.client.wait_for_flow(self.named()?, None).await
    }
    /// Waits at most this long; a flow that is not finished by then is shown as it is.
    ///
    /// # Errors
    /// As [`Client::wait_for_flow`].
    pub async fn wait_within(&self, longest: Duration) -> Result<FlowView, CallError> {
        self.client.wait_for_flow(self.named()?, Some(longest)).await
    }
    /// Cancels all of its unfinished jobs, and the jobs that these push into it: see [`Client::cancel_flow`].
    ///
    /// # Errors
    /// As [`Flow::view`].
    pub async fn cancel(&self) -> Result<FlowView, CallError> {
        self.client.cancel_flow(self.named()?).await
    }
    /// Makes its failed and cancelled jobs ready again, each at most once, and returns how many. A job whose parents
    /// are still failed is skipped.
    ///
    /// # Errors
    /// As [`Flow::view`]; then some of them may have been retried.
    pub async fn retry(&self) -> Result<u64, CallError> {
        let FlowView { flow, counts, .. } = self.view().await?;
        let states = vec![JobState::Failed, JobState::Cancelled];
        let filter = JobFilter { flow: Some(flow), states, ..JobFilter::default() };
        let (mut left, mut done) = (counts.failed + counts.cancelled, 0);
        // One scan goes from the oldest job to the newest. A parent may come after its child, so scans are repeated
        // while they change something; without `left` a job that fails at once would be retried without an end.
        while left > 0 {
            let (before, mut cursor) = (done, None);
            loop {
                let max = left.min(ITEMS_MAX as u64) as usize;
                let filter = filter.clone();
                let walked = self.client.run(RetryJobs { filter, max, cursor }).await?;
                done += walked.done;
                left = left.saturating_sub(walked.done);
                cursor = walked.next.filter(|_| walked.more && left > 0);
                if cursor.is_none() {
                    break;
                }
            }
            if done == before {
                break;
            }
        }
        Ok(done)
    }

    fn named(&self) -> Result<FlowName, Refusal> {
        FlowName::parse(&self.name)
    }
}

impl Client {
    /// A page of the jobs and flows that a job waits or waited for, in the order of its
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
        let mut listed = self.run(ListParents { job, full, page }).await?;
        self.shown_parents(&mut listed.items);
        Ok(listed)
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

    /// A page of all flows, by name.
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

    /// Waits until all jobs of a flow are finished, or for at most `longest`; `None` waits without an end. Look at its
    /// `state` first, since a flow that is not finished in time is shown as it is, and then at its `counts`: a finished
    /// flow may have failed jobs. Temporary failures are waited through, as in [`Client::wait_for_result`].
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

    /// Cancels every unfinished job of a flow, and the jobs that these push into it; running ones learn it by their
    /// next heartbeat. It returns at once: the flow shows `cancelling` until all are reached. A finished flow stays as
    /// it is.
    ///
    /// # Errors
    /// As [`Client::run`]; `flow_not_found`.
    pub async fn cancel_flow(&self, flow: FlowName) -> Result<FlowView, CallError> {
        self.run(CancelFlow { flow }).await.map(|flow| *flow)
    }
}
