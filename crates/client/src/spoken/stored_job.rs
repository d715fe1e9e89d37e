//! A stored job, by its id or its unique key: to wait for, to view, to cancel.

use std::time::Duration;

use serde::de::DeserializeOwned;
use tenure_core::bounds::LIST_MAX;
use tenure_core::flow::{ChildView, ParentView};
use tenure_core::job::{JobState, JobView, ResultView, When};
use tenure_core::lease::Explained;
use tenure_core::names::{JobId, JobRef};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{DeleteJob, Page, Patch, PatchJob, RetryJob, RunJobNow};
use tenure_core::time::{Moment, Span};
use tenure_engine_api::CallError;

use crate::client::Client;
use crate::codec::{CodecError, ValuePart};

/// A job, as [`Client::job`] names it.
///
/// ```
/// # tenure::testing::example(async |client| {
/// use std::time::{Duration, SystemTime};
///
/// let hour = Duration::from_secs(3_600);
/// client.push("mail").id("m1").delay(hour).unique("mail:ann").await?;
/// let job = client.job("m1");
/// println!("{:?}", job.explain().await?);
///
/// // Moved, by its key; then at once.
/// client.job("key:mail:ann").reschedule(SystemTime::now() + 2 * hour).await?;
/// job.reschedule_in(2 * hour).await?;
/// job.run_now().await?;
///
/// job.cancel().await?;
/// assert_eq!(job.result().await?.state.as_str(), "cancelled");
/// job.retry().await?;
/// assert_eq!(job.view().await?.state.as_str(), "ready");
/// assert!(job.parents().await?.is_empty() && job.children().await?.is_empty());
/// job.delete().await?;
/// # Ok(()) });
/// ```
#[derive(Clone, Debug)]
pub struct StoredJob {
    client: Client,
    job: Result<JobRef, Refusal>,
}

impl Client {
    /// A job that was pushed: by its id, or by `key:KEY`, the job that holds this unique key.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// let pushed = client.push("mail").await?;
    /// client.job(&pushed.id).cancel().await?;
    /// # Ok(()) });
    /// ```
    pub fn job(&self, id: impl AsRef<str>) -> StoredJob {
        StoredJob { client: self.clone(), job: JobRef::parse(id.as_ref()) }
    }
}

/// Why a job has no value to read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoValue {
    /// It failed for good.
    #[error("job {job} failed: {error}")]
    Failed {
        /// The id of the job.
        job: JobId,
        /// The error of its last run.
        error: String,
    },
    /// It was cancelled, or it expired.
    #[error("job {0} was cancelled")]
    Cancelled(JobId),
    /// It was not finished in time; it goes on.
    #[error("job {0} is not finished yet")]
    Unfinished(JobId),
    /// Its result cannot be read as the requested type.
    #[error("the result of job {job} is of another form")]
    NotOfForm {
        /// The id of the job.
        job: JobId,
        /// Names the place that does not fit.
        source: serde_json::Error,
    },
    /// Its result is sealed, and this client cannot open it.
    #[error("the result of job {job} is sealed")]
    Sealed {
        /// The id of the job.
        job: JobId,
        /// Why not, and what to do.
        source: CodecError,
    },
    /// The call was refused or failed.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl StoredJob {
    /// Waits until it is finished, and returns how it ended: see [`Client::wait_for_result`].
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// # let pushed = client.push("pages").await?;
    /// # let worker = client.worker(["pages"]).max_jobs(1);
    /// # worker.run(async |_| tenure::SettleOutcome::succeeded_with(&"a title")).await?;
    /// let end = client.job(&pushed.id).wait().await?;
    /// println!("{}: {:?} {:?}", end.state, end.result, end.error);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Client::wait_for_result`].
    pub async fn wait(&self) -> Result<ResultView, CallError> {
        self.client.wait_for_result(self.named()?, None).await
    }
    /// Waits at most this long; a job that is not finished by then is shown as it is.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use std::time::Duration;
    ///
    /// let pushed = client.push("pages").await?;
    /// let end = client.job(&pushed.id).wait_within(Duration::from_millis(10)).await?;
    /// assert!(!end.state.is_finished());
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Client::wait_for_result`].
    pub async fn wait_within(&self, longest: Duration) -> Result<ResultView, CallError> {
        self.client.wait_for_result(self.named()?, Some(longest)).await
    }
    /// Waits until it is finished, and reads its result; a success without a result reads as `null`.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// # let pushed = client.push("pages").await?;
    /// # let worker = client.worker(["pages"]).max_jobs(1);
    /// # worker.run(async |_| tenure::SettleOutcome::succeeded_with(&"a title")).await?;
    /// let title: String = client.job(&pushed.id).value().await?;
    /// assert_eq!(title, "a title");
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// It failed or was cancelled, or its result cannot be read as `T`; or the call failed: see [`NoValue`].
    pub async fn value<T: DeserializeOwned>(&self) -> Result<T, NoValue> {
        self.value_of(self.wait().await?)
    }
    /// The same, waiting at most this long.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use std::time::Duration;
    /// use tenure::NoValue;
    ///
    /// let pushed = client.push("pages").await?;
    /// let title = client.job(&pushed.id).value_within::<String>(Duration::from_millis(10)).await;
    /// assert!(matches!(title, Err(NoValue::Unfinished(_))));
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`StoredJob::value`]; [`NoValue::Unfinished`].
    pub async fn value_within<T: DeserializeOwned>(&self, longest: Duration) -> Result<T, NoValue> {
        self.value_of(self.wait_within(longest).await?)
    }
    /// How it ended, or its present state, without waiting.
    ///
    /// # Errors
    /// As [`Client::get_result`].
    pub async fn result(&self) -> Result<ResultView, CallError> {
        self.client.get_result(self.named()?, Span::ZERO).await
    }
    /// The whole job, with payload and result.
    ///
    /// # Errors
    /// As [`Client::get_job`].
    pub async fn view(&self) -> Result<JobView, CallError> {
        self.client.get_job(self.named()?).await
    }
    /// Explains why it waits: the need, its holders, and the next step.
    ///
    /// # Errors
    /// As [`Client::explain_job`].
    pub async fn explain(&self) -> Result<Explained, CallError> {
        self.client.explain_job(self.named()?).await
    }
    /// Cancels it. The worker of a running job learns it by its next heartbeat.
    ///
    /// # Errors
    /// As [`Client::cancel_job`].
    pub async fn cancel(&self) -> Result<JobView, CallError> {
        self.client.cancel_job(self.named()?).await
    }
    /// Makes a job that failed or was cancelled ready again; its attempts start again.
    ///
    /// # Errors
    /// As [`Client::run`]; `job_not_found`, `wrong_state`.
    pub async fn retry(&self) -> Result<JobView, CallError> {
        let retry = RetryJob { job: self.named()?, finished_at: None };
        self.client.run(retry).await.map(|job| self.client.shown_job(*job))
    }
    /// Makes a job that is scheduled for later ready at once.
    ///
    /// # Errors
    /// As [`Client::run`]; `job_not_found`, `wrong_state`.
    pub async fn run_now(&self) -> Result<JobView, CallError> {
        let run = RunJobNow { job: self.named()? };
        self.client.run(run).await.map(|job| self.client.shown_job(*job))
    }
    /// Moves the earliest time at which a waiting job may run.
    ///
    /// # Errors
    /// As [`Client::run`]; `job_not_found`, `wrong_state` if it runs or is finished.
    pub async fn reschedule(&self, moment: impl Into<Moment>) -> Result<JobView, CallError> {
        let at = When::At(moment.into());
        self.moved(at).await
    }
    /// The same, counted from the arrival of the call.
    ///
    /// # Errors
    /// As [`StoredJob::reschedule`].
    pub async fn reschedule_in(&self, delay: Duration) -> Result<JobView, CallError> {
        self.moved(When::In(delay.into())).await
    }
    async fn moved(&self, when: When) -> Result<JobView, CallError> {
        let change = PatchJob { when: Patch::Set(when), ..PatchJob::new(self.named()?) };
        self.client.run(change).await.map(|job| self.client.shown_job(*job))
    }
    /// Deletes it. A job that waits is cancelled first; a job that runs is refused.
    ///
    /// # Errors
    /// As [`Client::run`]; `job_not_found`, `wrong_state` while it runs, `in_use` while other jobs wait for it.
    pub async fn delete(&self) -> Result<(), CallError> {
        self.client.run(DeleteJob { job: self.named()? }).await
    }
    /// The jobs and flows that it waits or waited for, with their results, in the order of its `after`.
    ///
    /// # Errors
    /// As [`Client::list_parents`].
    pub async fn parents(&self) -> Result<Vec<ParentView>, CallError> {
        let (job, mut page, mut all) = (self.named()?, whole(), Vec::new());
        loop {
            let listed = self.client.list_parents(job.clone(), true, page.clone()).await?;
            all.extend(listed.items);
            match listed.next {
                Some(next) => page.cursor = Some(next),
                None => return Ok(all),
            }
        }
    }
    /// The jobs that wait or waited for it, in the order in which they were pushed.
    ///
    /// # Errors
    /// As [`Client::list_children`].
    pub async fn children(&self) -> Result<Vec<ChildView>, CallError> {
        let (job, mut page, mut all) = (self.named()?, whole(), Vec::new());
        loop {
            let listed = self.client.list_children(job.clone(), page.clone()).await?;
            all.extend(listed.items);
            match listed.next {
                Some(next) => page.cursor = Some(next),
                None => return Ok(all),
            }
        }
    }

    fn named(&self) -> Result<JobRef, Refusal> {
        self.job.clone()
    }

    /// The value of a job that has succeeded.
    fn value_of<T: DeserializeOwned>(&self, end: ResultView) -> Result<T, NoValue> {
        let job = end.id;
        match end.state {
            JobState::Succeeded => {
                // One that could not be opened is shown as it is, and this says why.
                let result =
                    match self.client.unsealed(end.result.unwrap_or_default(), ValuePart::Result) {
                        Ok(result) => result,
                        Err(source) => return Err(NoValue::Sealed { job, source }),
                    };
                result.read().map_err(|source| NoValue::NotOfForm { job, source })
            }
            JobState::Failed => Err(NoValue::Failed { job, error: end.error.unwrap_or_default() }),
            JobState::Cancelled => Err(NoValue::Cancelled(job)),
            _ => Err(NoValue::Unfinished(job)),
        }
    }
}

fn whole() -> Page {
    Page { max: LIST_MAX, cursor: None }
}
