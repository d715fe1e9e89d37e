//! A push that reads like a sentence.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use serde::Serialize;
use tenure_core::flow::{After, Parent};
use tenure_core::job::{NewJob, OnConflict, Unique, Until, When};
use tenure_core::names::{FlowName, Group, JobId, JobRef, QueueName, UniqueKey};
use tenure_core::refusal::Refusal;
use tenure_core::requests::PushedId;
use tenure_core::secret::{Json, NotJson};
use tenure_core::time::Moment;
use tenure_core::trace::TraceParent;
use tenure_engine::CallError;

use crate::client::Client;
use crate::need::Need;

/// What [`Client::push`] begins: a job that is stored when this is awaited. What is not said is as its queue has it.
///
/// A name that is none is refused when it is awaited, and nothing is stored. Awaiting it is safe to repeat by the same
/// [`Pushing::id`] alone: without one each push makes another job.
#[derive(Debug)]
#[must_use = "nothing is stored until this is awaited"]
pub struct Pushing {
    client: Client,
    job: Result<NewJob, Refusal>,
}

impl Client {
    /// Stores a job of this queue, once it is awaited. It gets an id if it has none.
    ///
    /// ```
    /// # #[cfg(feature = "embedded")]
    /// # #[tokio::main(flavor = "multi_thread", worker_threads = 1)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tenure::{Client, Need};
    ///
    /// let client = Client::connect("memory:").await?;
    /// client.limit("smtp").concurrency(2).set().await?;
    /// let pushed = client
    ///     .push("mail")
    ///     .kind("welcome")
    ///     .payload(&["ann@example.com"])?
    ///     .need(Need::limit("smtp"))
    ///     .delay(Duration::from_secs(60))
    ///     .await?;
    /// assert!(!pushed.duplicate);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "embedded"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    /// When it is awaited: as [`Client::run`]; `invalid_field` for a name that is none, `limit_not_found` and its kin for
    /// a need that nobody has set, `queue_full`.
    pub fn push(&self, queue: &str) -> Pushing {
        Pushing { client: self.clone(), job: QueueName::parse(queue).map(NewJob::new) }
    }
}

impl Pushing {
    /// By which a repeat is known: a job that is there under this id is answered, and nothing is stored.
    pub fn id(self, id: &str) -> Self {
        self.named(id, JobId::parse, |job, id| job.id = Some(id))
    }
    /// What a worker dispatches on.
    pub fn kind(self, kind: impl Into<String>) -> Self {
        self.with(|job| job.kind = kind.into())
    }
    /// What the handler gets: anything that serde writes as JSON, at most 256 KiB.
    ///
    /// # Errors
    /// A value that has no form as JSON.
    pub fn payload(self, payload: &impl Serialize) -> Result<Self, NotJson> {
        let payload = Json::of(payload)?;
        Ok(self.with(|job| job.payload = payload))
    }
    /// Ready no sooner than so long after the call arrived.
    pub fn delay(self, delay: Duration) -> Self {
        self.with(|job| job.when = When::In(delay.into()))
    }
    /// Ready no sooner than at this moment; one in the past is now.
    pub fn at(self, moment: impl Into<Moment>) -> Self {
        let moment = moment.into();
        self.with(|job| job.when = When::At(moment))
    }
    /// -100 to 100, 0 unless said; a higher one goes first.
    pub fn priority(self, priority: i8) -> Self {
        self.with(|job| job.priority = priority)
    }
    /// Whom it belongs to: groups of a queue take turns.
    pub fn group(self, group: &str) -> Self {
        self.named(group, Group::parse, |job, group| job.group = Some(group))
    }
    /// One thing more that it holds while it runs. The first takes the place of the needs of the queue.
    pub fn need(mut self, need: Need) -> Self {
        match (need.checked(), &mut self.job) {
            (Ok(need), Ok(job)) => job.needs.get_or_insert_default().push(need),
            (Err(no), job) if job.is_ok() => *job = Err(no),
            _ => {}
        }
        self
    }
    /// While another unfinished job has this key, that job is answered, and nothing is stored.
    pub fn unique(self, key: &str) -> Self {
        self.named(key, UniqueKey::parse, |job, key| {
            let (until, on_conflict) = (Until::default(), OnConflict::default());
            job.unique = Some(Unique { key, until, hold: None, on_conflict, within: None });
        })
    }
    /// A run that takes longer is ended, and counts as failed.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|job| job.timeout = Some(timeout.into()))
    }
    /// How long it is kept when it is finished.
    pub fn retain(self, retain: Duration) -> Self {
        self.with(|job| job.retain = Some(retain.into()))
    }
    /// A word for people and filters.
    pub fn label(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (name.into(), value.into());
        self.with(|job| drop(job.labels.insert(name, value)))
    }
    /// It waits until this job has ended well, and is cancelled if that fails for good.
    pub fn after(self, job: &str) -> Self {
        self.named(job, JobId::parse, |new, job| {
            let parent = Parent::Job(JobRef::Id(job));
            new.after.push(After { parent, gone_is_done: false });
        })
    }
    /// The trace that it belongs to, as a W3C `traceparent`, so that its worker goes on with it.
    pub fn traceparent(self, traceparent: &str) -> Self {
        self.named(traceparent, TraceParent::parse, |job, trace| job.traceparent = Some(trace))
    }
    /// The flow that it belongs to.
    pub fn flow(self, flow: &str) -> Self {
        self.named(flow, FlowName::parse, |job, flow| job.flow = Some(flow))
    }
    /// Anything else of a job.
    pub fn with(mut self, change: impl FnOnce(&mut NewJob)) -> Self {
        if let Ok(job) = &mut self.job {
            change(job);
        }
        self
    }

    /// The job, for [`Client::push_all`] or the follow-ups of a settle.
    ///
    /// # Errors
    /// A name that is none.
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

impl IntoFuture for Pushing {
    type Output = Result<PushedId, CallError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.client.push_job(self.job?).await })
    }
}
