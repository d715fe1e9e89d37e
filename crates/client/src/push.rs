//! A push that reads like a sentence.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use serde::Serialize;
use tenure_core::flow::{After, OnParentFailure, Parent};
use tenure_core::job::{NewJob, Unique as CheckedUnique, When};
use tenure_core::names::{FlowName, Group, JobId, JobRef, QueueName, Ref, UniqueKey};
use tenure_core::refusal::Refusal;
use tenure_core::requests::PushedId;
use tenure_core::secret::{Json, NotJson};
use tenure_core::time::Moment;
use tenure_core::trace::TraceParent;
use tenure_engine_api::CallError;

use crate::client::Client;
use crate::need::Need;
use crate::spoken::retry::Retry;
use crate::spoken::unique::Unique;

/// A job to be pushed, from [`Client::push`]: it is stored when this is awaited. Settings left out come from its queue.
///
/// An invalid name is refused when it is awaited, and nothing is stored. Repeating a push is safe only with the same
/// [`Pushing::id`]: without one each push makes another job.
///
/// ```
/// # tenure::testing::example(async |client| {
/// use std::time::{Duration, SystemTime};
/// use tenure::{Retry, Unique};
///
/// let hour = Duration::from_secs(3_600);
/// client.push("import").id("i1").flow("import-7").await?;
/// client
///     .push("mail")
///     .id("m1")
///     .at(SystemTime::now() + hour)
///     .expires_at(SystemTime::now() + 24 * hour)
///     .priority(5)
///     .group("tenant-7")
///     .unique(Unique::key("mail:ann").until_start())
///     .retry(Retry::new().attempts(3))
///     .timeout(Duration::from_secs(60))
///     .retain(24 * hour)
///     .label("by", "import")
///     .after("i1")
///     .after_flow("import-7")
///     .whatever_ends()
///     .with(|job| job.kind = "report".to_owned())
///     .await?;
/// # Ok(()) });
/// ```
#[derive(Debug)]
#[must_use = "nothing is stored until this is awaited"]
pub struct Pushing {
    client: Client,
    job: Result<NewJob, Refusal>,
}

impl Client {
    /// Stores a job of this queue once it is awaited. A job without an id gets one.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use std::time::Duration;
    /// use tenure::Need;
    ///
    /// client.limit("smtp").concurrency(2).set().await?;
    /// let pushed = client
    ///     .push("mail")
    ///     .kind("welcome")
    ///     .payload(&["ann@example.com"])?
    ///     .need(Need::limit("smtp"))
    ///     .delay(Duration::from_secs(60))
    ///     .await?;
    /// assert!(!pushed.duplicate);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// When it is awaited: as [`Client::run`]; `invalid_field` for an invalid name, `limit_not_found` and similar codes
    /// for a need without settings, `queue_full`.
    pub fn push(&self, queue: &str) -> Pushing {
        Pushing { client: self.clone(), job: QueueName::parse(queue).map(NewJob::new) }
    }
}

impl Pushing {
    /// The id that makes a push repeatable: if a job has it already, that job is returned, and nothing is stored.
    pub fn id(self, id: &str) -> Self {
        self.named(id, JobId::parse, |job, id| job.id = Some(id))
    }
    /// The kind of job, by which a worker chooses the handler.
    pub fn kind(self, kind: impl Into<String>) -> Self {
        self.with(|job| job.kind = kind.into())
    }
    /// The handler's argument: anything that serde writes as JSON, at most 256 KiB.
    ///
    /// # Errors
    /// A value that cannot be written as JSON.
    pub fn payload(self, payload: &impl Serialize) -> Result<Self, NotJson> {
        let payload = Json::of(payload)?;
        Ok(self.with(|job| job.payload = payload))
    }
    /// Not ready until this long after the call arrived.
    pub fn delay(self, delay: Duration) -> Self {
        self.with(|job| job.when = When::In(delay.into()))
    }
    /// Not ready before this moment; one in the past is now.
    pub fn at(self, moment: impl Into<Moment>) -> Self {
        let moment = moment.into();
        self.with(|job| job.when = When::At(moment))
    }
    /// -100 to 100, 0 by default; higher goes first.
    pub fn priority(self, priority: i8) -> Self {
        self.with(|job| job.priority = priority)
    }
    /// The group of the job, such as a tenant: the groups of a queue take turns.
    pub fn group(self, group: &str) -> Self {
        self.named(group, Group::parse, |job, group| job.group = Some(group))
    }
    /// One more need, held while the job runs. The first replaces the needs of the queue.
    pub fn need(mut self, need: Need) -> Self {
        match (need.checked(), &mut self.job) {
            (Ok(need), Ok(job)) => job.needs.get_or_insert_default().push(need),
            (Err(no), job) if job.is_ok() => *job = Err(no),
            _ => {}
        }
        self
    }
    /// "There is one of these": while another unfinished job has this key, that job is returned, and nothing is stored.
    /// [`Unique`] has more options than a key.
    pub fn unique(self, unique: impl Into<Unique>) -> Self {
        let Unique { key, until, hold, on_conflict, within } = unique.into();
        self.named(&key, UniqueKey::parse, |job, key| {
            job.unique = Some(CheckedUnique { key, until, hold, on_conflict, within });
        })
    }
    /// How often a failed run is retried, and after which pause.
    pub fn retry(self, retry: Retry) -> Self {
        self.with(|job| job.retry = Some(retry.checked()))
    }
    /// A job that is not running at this moment is cancelled.
    pub fn expires_at(self, moment: impl Into<Moment>) -> Self {
        let moment = moment.into();
        self.with(|job| job.expires_at = Some(moment))
    }
    /// A run that takes longer is ended, and counts as a failed attempt.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|job| job.timeout = Some(timeout.into()))
    }
    /// How long the finished job is kept.
    pub fn retain(self, retain: Duration) -> Self {
        self.with(|job| job.retain = Some(retain.into()))
    }
    /// A label for people and filters.
    pub fn label(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (name.into(), value.into());
        self.with(|job| drop(job.labels.insert(name, value)))
    }
    /// Waits until this job has succeeded; if that one fails for good, this one is cancelled. Further calls add more
    /// jobs.
    pub fn after(self, job: impl AsRef<str>) -> Self {
        self.named(job.as_ref(), JobRef::parse, |new, job| wait_for(new, Parent::Job(job)))
    }
    /// The same for the job of the same [`Client::push_all`] that has this [`Pushing::reference`].
    pub fn after_ref(self, reference: &str) -> Self {
        self.named(reference, Ref::parse, |new, item| wait_for(new, Parent::Item(item)))
    }
    /// The same for all jobs of a flow, however many are pushed into it meanwhile.
    pub fn after_flow(self, flow: &str) -> Self {
        self.named(flow, FlowName::parse, |new, flow| wait_for(new, Parent::Flow(flow)))
    }
    /// Runs when the jobs and flows that it waits for have ended, whatever their outcomes.
    pub fn whatever_ends(self) -> Self {
        self.with(|job| job.on_parent_failure = OnParentFailure::Run)
    }
    /// A name by which other jobs of the same [`Client::push_all`] can wait for it. It is not stored.
    pub fn reference(self, name: &str) -> Self {
        self.named(name, Ref::parse, |job, name| job.reference = Some(name))
    }
    /// The trace that it belongs to, as a W3C `traceparent`: its worker continues that trace.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    /// client.push("mail").traceparent(trace).await?;
    /// # Ok(()) });
    /// ```
    pub fn traceparent(self, traceparent: &str) -> Self {
        self.named(traceparent, TraceParent::parse, |job, trace| job.traceparent = Some(trace))
    }
    /// The flow that it belongs to.
    pub fn flow(self, flow: &str) -> Self {
        self.named(flow, FlowName::parse, |job, flow| job.flow = Some(flow))
    }
    /// Changes anything else of the job.
    pub fn with(mut self, change: impl FnOnce(&mut NewJob)) -> Self {
        if let Ok(job) = &mut self.job {
            change(job);
        }
        self
    }

    /// The job itself, for the follow-ups of a settle.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use tenure::SettleOutcome;
    ///
    /// let done = SettleOutcome::succeeded().then(client.push("index").payload(&7)?.into_job()?);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// An invalid name.
    pub fn into_job(self) -> Result<NewJob, Refusal> {
        self.job
    }

    fn named<T>(
        mut self,
        text: &str,
        parse: impl FnOnce(&str) -> Result<T, Refusal>,
        put: impl FnOnce(&mut NewJob, T),
    ) -> Self {
        match (parse(text), &mut self.job) {
            (Ok(name), Ok(job)) => put(job, name),
            (Err(no), job) if job.is_ok() => *job = Err(no),
            _ => {}
        }
        self
    }
}

fn wait_for(new: &mut NewJob, parent: Parent) {
    new.after.push(After { parent, gone_is_done: false });
}

impl TryFrom<Pushing> for NewJob {
    type Error = Refusal;

    fn try_from(pushing: Pushing) -> Result<Self, Refusal> {
        pushing.job
    }
}

impl IntoFuture for Pushing {
    type Output = Result<PushedId, CallError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.client.push_job(self.job?).await })
    }
}
