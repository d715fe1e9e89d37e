//! Job: the handler's view of a job that this process holds.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tenure_core::bounds::LIST_MAX;
use tenure_core::flow::ParentView;
use tenure_core::job::JobView;
use tenure_core::lease::{
    Ending, Fence, LeaseView, LeasedResource, LimitVerdict, ResourceVerdict, Verdict,
};
use tenure_core::leased::json_without_leased;
use tenure_core::names::{JobId, JobRef, LimitName, PoolName, QueueName};
use tenure_core::refusal::Refusal;
use tenure_core::requests::Page;
use tenure_core::secret::Json;
use tenure_core::time::Moment;
use tenure_engine_api::CallError;
use tokio::sync::watch;

use super::threads::RunThreads;
use super::{Event, Phase};
use crate::client::Client;
use crate::codec::{CodecError, ValuePart, ValuePlace};
use crate::keeper::{Held, LeaseWatch, Stop, lock};
use crate::observer::Observer;
use crate::outcome::SettleOutcome;

/// A job that this process holds, with everything that was granted with it. Cheap to clone.
///
/// ```
/// # tenure::testing::example(async |client| {
/// use std::time::{Duration, Instant};
/// use tenure::Verdict;
/// use tenure::{Job, Need, PoolItem};
///
/// async fn crawl(job: Job) -> Result<(), Box<dyn std::error::Error>> {
///     println!("{} {:?}, attempt {}", job.id(), job.kind(), job.attempt());
///     println!("{} as text, progress {:?}", job.payload_json(), job.view().progress);
///     println!("lease {}, fence {}, {:?}", job.lease_id(), job.fence(), job.lease().limits);
///     println!("until {:?}; this process until {:?}", job.deadline(), job.stop_by());
///     for parent in job.parents().await? {
///         println!("after {parent:?}");
///     }
///
///     // What it holds, and what it learned of it.
///     if let Some(ann) = job.resource(&"accounts".parse()?) {
///         job.verdict(ann, Verdict::Ban { reason: Some("captcha".to_owned()) });
///     }
///     job.spent("api".parse()?, 3);
///     job.pause("api".parse()?, Duration::from_secs(60));
///     job.set_progress(50.into())?;
///
///     // Work that blocks, on a thread of its own.
///     let sum: u64 = job.blocking(|| (1..=100).sum()).await?;
///     tokio::select! {
///         stop = job.stopped() => println!("stop: {stop:?}"),
///         () = job.hurried() => println!("stop at once"),
///         () = tokio::task::yield_now() => println!("{sum}, and on it goes: {:?}", job.stop()),
///     }
///     assert!(job.hard_limit() > Instant::now());
///     Ok(())
/// }
///
/// client.limit("api").rate(10, Duration::from_secs(1)).burst(10).set().await?;
/// client.pool("accounts").add([PoolItem::new("ann")]).await?;
/// let pushed = client.push("crawl").need(Need::pool("accounts")).need(Need::limit("api")).await?;
/// let run = async |job: Job| crawl(job).await.map_err(|why| why.to_string());
/// client.worker(["crawl"]).until_empty().run(run).await?;
/// assert_eq!(client.job(&pushed.id).result().await?.error, None);
/// # Ok(()) });
/// ```
///
/// Its lease is extended for as long as the handler runs. When [`Job::stopped`] completes, the handler
/// is dropped at its next await, at once or after the worker's grace.
#[derive(Clone)]
pub struct Job {
    inner: Arc<JobInner>,
}

struct JobInner {
    lease: LeaseView,
    job: Box<JobView>,
    held: Held,
    around: Arc<Surroundings>,
    /// Whether a stop of its run needs no report any more: it was reported, or the run is over.
    told: AtomicBool,
    threads: RunThreads,
    /// Why its payload is still sealed; set when it is granted.
    sealed: Option<CodecError>,
    /// Why a report could not be sealed, the first time: the run must not look well.
    unsealed: OnceLock<CodecError>,
    /// Verdicts that the handler gave during the run, to be sent with its outcome. Starts empty.
    said: Mutex<SaidOnTheWay>,
    /// The trace context of its run, for the span of its settle. Set when a traced run begins.
    #[cfg(feature = "opentelemetry")]
    trace: OnceLock<opentelemetry::trace::SpanContext>,
}

/// Verdicts of a handler that is still running.
#[derive(Default)]
struct SaidOnTheWay {
    resources: Vec<ResourceVerdict>,
    limits: Vec<LimitVerdict>,
}

/// State that all jobs of a worker share.
pub(super) struct Surroundings {
    pub phase: watch::Receiver<Phase>,
    /// From which the worker takes jobs.
    pub queues: Vec<QueueName>,
    pub observer: Observer<Event>,
    pub client: Client,
}

impl Job {
    /// `lease` without its job, which is `job`.
    pub(super) fn new(
        lease: LeaseView,
        mut job: Box<JobView>,
        held: Held,
        around: Arc<Surroundings>,
    ) -> Self {
        let sealed = around.client.open_for_a_run(&mut job).err();
        let (told, threads, said) =
            (AtomicBool::new(false), RunThreads::default(), Mutex::default());
        let inner = JobInner {
            lease,
            job,
            held,
            around,
            told,
            threads,
            sealed,
            unsealed: OnceLock::new(),
            said,
            #[cfg(feature = "opentelemetry")]
            trace: Default::default(),
        };
        Job { inner: Arc::new(inner) }
    }

    #[cfg(feature = "opentelemetry")]
    pub(crate) fn traced(&self, run: opentelemetry::trace::SpanContext) {
        // A job runs once under one lease, so it is not set yet.
        let _ = self.inner.trace.set(run);
    }
    #[cfg(feature = "opentelemetry")]
    pub(crate) fn trace(&self) -> Option<opentelemetry::trace::SpanContext> {
        self.inner.trace.get().cloned()
    }

    pub(super) fn threads(&self) -> &RunThreads {
        &self.inner.threads
    }

    /// Adds the handler's earlier verdicts to an outcome. For the same thing, the outcome's own verdict wins.
    pub(super) fn with_what_was_said(&self, mut outcome: SettleOutcome) -> SettleOutcome {
        let said = std::mem::take(&mut *lock(&self.inner.said));
        for one in said.resources {
            if !outcome.resources.iter().any(|own| own.pool == one.pool && own.id == one.id) {
                outcome.resources.push(one);
            }
        }
        for one in said.limits {
            let same = |own: &LimitVerdict| {
                own.limit == one.limit && own.pause.is_some() == one.pause.is_some()
            };
            if !outcome.limits.iter().any(same) {
                outcome.limits.push(one);
            }
        }
        outcome
    }

    pub(super) fn held(&self) -> &Held {
        &self.inner.held
    }

    /// Reports once that its run must stop, or could not start.
    pub(super) fn tell_stopped(&self, stop: Stop) {
        if !self.inner.told.swap(true, Ordering::Relaxed) {
            self.inner.around.observer.tell(|| Event::Stopped { job: self.id().clone(), stop });
        }
    }
    /// Its run is over: a later stop is not reported.
    pub(super) fn run_is_over(&self) {
        self.inner.told.store(true, Ordering::Relaxed);
    }

    /// The id of the job.
    pub fn id(&self) -> &JobId {
        &self.inner.job.id
    }
    /// The kind, for dispatch; `""` if it was pushed without.
    pub fn kind(&self) -> &str {
        &self.inner.job.kind
    }
    /// The number of this run, from 1; runs that were snoozed, released or lost do not count.
    pub fn attempt(&self) -> u32 {
        self.inner.job.attempt
    }
    /// The job, in the form of the contract.
    pub fn view(&self) -> &JobView {
        &self.inner.job
    }
    /// Why its payload is still sealed; `None` if it is not. [`Worker::run`](crate::Worker::run) fails such a job for
    /// good, and does not call its handler. [`Worker::execute`](crate::Worker::execute) executes it: what it starts may
    /// have the key.
    pub fn sealed(&self) -> Option<&CodecError> {
        self.inner.sealed.as_ref()
    }
    /// The payload, as JSON text.
    pub fn payload_json(&self) -> &str {
        self.inner.job.payload.as_ref().map_or("null", Json::text)
    }
    /// The payload, deserialized.
    ///
    /// # Errors
    /// The payload does not fit the type.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.payload_json())
    }

    /// The id of the lease under which it runs.
    pub fn lease_id(&self) -> &str {
        self.inner.held.lease()
    }
    /// The lease, with the data of its resources; its `job` is [`Job::view`].
    pub fn lease(&self) -> &LeaseView {
        &self.inner.lease
    }
    /// Grows with every grant: a store that refuses lower ones is safe from an older holder.
    pub fn fence(&self) -> Fence {
        self.inner.lease.fence
    }
    /// The first resource of this pool that is held.
    pub fn resource(&self, pool: &PoolName) -> Option<&LeasedResource> {
        self.inner.lease.resources.iter().find(|one| one.pool == *pool)
    }

    /// When the run must be over by its `timeout`, on the engine's clock; `None` if it has none. [`Job::stopped`]
    /// completes at that time.
    pub fn deadline(&self) -> Option<Moment> {
        self.inner.lease.deadline
    }
    /// The jobs and flows that it waited for before it could run, in the order of its `after`, with the results of the
    /// jobs. It calls the engine, except for a job without parents.
    ///
    /// # Errors
    /// As [`Client::list_parents`].
    pub async fn parents(&self) -> Result<Vec<ParentView>, CallError> {
        let (mut parents, mut page) = (Vec::new(), Page { max: LIST_MAX, ..Page::default() });
        if self.inner.job.parents == 0 {
            return Ok(parents);
        }
        loop {
            let of = JobRef::Id(self.id().clone());
            let listed = self.inner.around.client.list_parents(of, true, page.clone()).await?;
            parents.extend(listed.items);
            if listed.next.is_none() {
                return Ok(parents);
            }
            page.cursor = listed.next;
        }
    }

    /// Gives a verdict on a resource that it holds, such as that an account is banned. It is sent with the outcome of
    /// this run, whatever that is; the last verdict on a resource counts.
    pub fn verdict(&self, resource: &LeasedResource, verdict: Verdict) {
        let (pool, id) = (resource.pool.clone(), resource.id.clone());
        let mut said = lock(&self.inner.said);
        said.resources.retain(|other| other.pool != pool || other.id != id);
        said.resources.push(ResourceVerdict { pool, id, verdict });
    }
    /// Pauses a limit that it holds: nobody is granted it for this long after the outcome of this run, whatever that
    /// is. For a service that has asked its callers to wait.
    pub fn pause(&self, limit: LimitName, rest: Duration) {
        self.say(LimitVerdict { limit, pause: Some(rest.into()), spent: None });
    }
    /// The tokens that were really spent of a rate, instead of the cost that the grant booked.
    pub fn spent(&self, limit: LimitName, tokens: u32) {
        self.say(LimitVerdict { limit, pause: None, spent: Some(tokens) });
    }
    fn say(&self, verdict: LimitVerdict) {
        let mut said = lock(&self.inner.said);
        let pauses = verdict.pause.is_some();
        let same = |one: &LimitVerdict| one.limit == verdict.limit && one.pause.is_some() == pauses;
        said.limits.retain(|one| !same(one));
        said.limits.push(verdict);
    }

    /// Completes when the work must stop, with the reason.
    pub async fn stopped(&self) -> Stop {
        let mut phase = self.inner.around.phase.clone();
        let stop = tokio::select! {
            stop = self.inner.held.stopped() => stop,
            // A worker that is gone has stopped, too.
            _ = phase.wait_for(|phase| *phase >= Phase::Stopping) => Stop::Shutdown,
        };
        self.tell_stopped(stop);
        stop
    }
    /// Completes when the worker must stop *now*: work that is still stopping must hurry.
    pub async fn hurried(&self) {
        let mut phase = self.inner.around.phase.clone();
        if phase.wait_for(|phase| *phase == Phase::Now).await.is_err() {
            // The worker is gone: nothing can hurry any more.
            std::future::pending().await
        }
    }
    /// Why the work must stop now; `None` if it may go on.
    pub fn stop(&self) -> Option<Stop> {
        let stopping = *self.inner.around.phase.borrow() >= Phase::Stopping;
        self.inner.held.stop().or(stopping.then_some(Stop::Shutdown))
    }
    /// The same time as [`Held::stop_by`].
    pub fn stop_by(&self) -> std::time::Instant {
        self.inner.held.stop_by()
    }
    /// The same time as [`Held::hard_limit`].
    pub fn hard_limit(&self) -> std::time::Instant {
        self.inner.held.hard_limit()
    }
    /// The same watch as [`Held::watch`].
    #[doc(hidden)]
    pub fn watch(&self) -> LeaseWatch {
        self.inner.held.watch()
    }
    /// Reports progress with the next heartbeat, or with the outcome of this run; see [`Held::set_progress`]. The next run
    /// of the job finds it in its [`Job::view`]. A codec makes it a third longer, and the bound is for what it made; if
    /// the codec fails, the run fails for good.
    ///
    /// # Errors
    /// `out_of_bounds`: it is longer than 4 KiB.
    pub fn set_progress(&self, progress: Json) -> Result<(), Refusal> {
        let progress = json_without_leased(&progress, &self.lease().resources);
        match self.seal(progress, ValuePart::Progress) {
            Ok(progress) => self.inner.held.set_progress(progress),
            Err(why) => {
                let _ = self.inner.unsealed.set(why);
                Ok(())
            }
        }
    }

    /// Seals a value of this job.
    pub(super) fn seal(&self, value: Json, part: ValuePart) -> Result<Json, CodecError> {
        let Surroundings { client, .. } = &*self.inner.around;
        if client.codec.is_none() {
            return Ok(value);
        }
        let job = &self.inner.job;
        client.sealed(value, &ValuePlace::new(part, job.queue.as_str(), &*job.kind))
    }

    /// Seals what an outcome carries.
    pub(super) fn seal_outcome(&self, outcome: &mut SettleOutcome) -> Result<(), CodecError> {
        if let Ending::Succeeded { result } = &mut outcome.ending {
            if let Some(why) = self.inner.unsealed.get() {
                return Err(why.clone());
            }
            if let Some(result) = result {
                *result = self.seal(std::mem::take(result), ValuePart::Result)?;
            }
        }
        if let Some(progress) = &mut outcome.progress {
            *progress = self.seal(std::mem::take(progress), ValuePart::Progress)?;
        }
        outcome.push.iter_mut().try_for_each(|job| self.inner.around.client.seal_new(job))
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job({})", self.id())
    }
}
