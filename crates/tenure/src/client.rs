//! An engine and a namespace, with calls that are pleasant to make.
//!
//! Each is one call of the engine, repeated while its outcome is unknown; nothing is cached.

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure_core::job::{JobView, NewJob, PushedJob, ResultView};
use tenure_core::lease::{Explained, Later, Leased, SettleItem, SettledLease};
use tenure_core::names::{JobId, JobRef, LimitName, Namespace, QueueName, ScheduleId};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{
    CancelJob, Change, DeleteSchedule, ExplainJob, GetJob, GetResult, GetSchedule, Lease,
    ListSchedules, Listed, Operation, PatchSchedule, PauseSchedule, Push, PushAnswer, Pushed,
    PushedId, PutSchedule, ResumeSchedule, RunScheduleNow, Settle, Settled, SyncSchedules,
};
use tenure_core::schedule::{ScheduleSettings, ScheduleView, SyncedSchedules};
use tenure_core::time::Span;
use tenure_seam::{CallError, Engine, EngineExt, Fault};
use tracing::Instrument;

use crate::await_end;
use crate::connect::Opened;
use crate::keeper::{Keeper, lock};
use crate::lock::Lock;
use crate::repeat::Repeat;
use crate::spans;
use crate::worker::Worker;

/// One namespace of an engine. Cheap to clone; all clones share their heartbeats.
///
/// Most calls begin with what they are about: [`Client::push`], [`Client::job`], [`Client::queue`], [`Client::limit`],
/// [`Client::pool`], [`Client::schedule`], [`Client::flow`], [`Client::acquire`], [`Client::worker`], [`Client::events`].
/// Their names are plain text.
///
/// A program that has parsed names, or pages through long lists, calls the same by request:
///
/// ```
/// # tenure::testing::example(async |client| {
/// use tenure::requests::{GetStats, ListSchedules, Page, PatchSchedule};
/// use tenure::{JobRef, NewJob, QueueName, ScheduleSettings, Span};
///
/// let job = client.push_job(NewJob::new("mail".parse()?)).await?.id;
/// let job = JobRef::Id(job);
/// println!("{:?} {:?}", client.get_job(job.clone()).await?, client.explain_job(job.clone()).await?);
/// let page = Page { max: 100, cursor: None };
/// assert!(client.list_parents(job.clone(), true, page.clone()).await?.items.is_empty());
/// assert!(client.list_children(job.clone(), page.clone()).await?.items.is_empty());
/// client.cancel_job(job.clone()).await?;
/// assert!(client.get_result(job.clone(), Span::ZERO).await?.state.is_finished());
/// client.wait_for_result(job, None).await?;
///
/// client.flow("import-7").push("pages").await?;
/// assert_eq!(client.list_flows(page.clone()).await?.items.len(), 1);
/// client.cancel_flow("import-7".parse()?).await?;
/// client.get_flow("import-7".parse()?, Span::ZERO).await?;
/// client.wait_for_flow("import-7".parse()?, None).await?;
///
/// let daily = serde_json::from_str(r#"{"cron": "@daily", "overlap": "skip", "catch_up": "last", "catch_up_max": 100,
///     "job": {"queue": "reports"}}"#);
/// let settings: ScheduleSettings = daily?;
/// client.put_schedule("report".parse()?, settings).await?;
/// client.patch_schedule(PatchSchedule::new("report".parse()?)).await?;
/// client.pause_schedule("report".parse()?, None).await?;
/// client.resume_schedule("report".parse()?).await?;
/// client.run_schedule_now("report".parse()?, None).await?;
/// client.get_schedule("report".parse()?).await?;
/// let list = ListSchedules { owner: None, full: true, page };
/// assert_eq!(client.list_schedules(list).await?.items.len(), 1);
/// client.delete_schedule("report".parse()?).await?;
///
/// println!("{:?}", client.run(GetStats).await?);
/// println!("{:?} {}", client.engine().health(), client.namespace());
/// client.close().await;
/// # Ok(()) });
/// ```
#[derive(Clone)]
pub struct Client {
    plain: Arc<dyn Engine>,
    repeating: Arc<dyn Engine>,
    namespace: Namespace,
    keeper: Arc<Mutex<Option<Keeper>>>,
    opened: Opened,
}

impl Client {
    /// On this engine. Calls whose outcome is unknown are repeated with the same ids, for at most a
    /// minute.
    pub fn new(engine: Arc<dyn Engine>, namespace: Namespace) -> Self {
        Client::opened(engine, namespace, Opened::Elsewhere)
    }

    /// On an engine that [`Client::close`] lets go of.
    pub(crate) fn opened(engine: Arc<dyn Engine>, namespace: Namespace, opened: Opened) -> Self {
        let repeating = Arc::new(Repeat::new(engine.clone()));
        Client { plain: engine, repeating, namespace, keeper: Arc::default(), opened }
    }

    /// Lets go of a store that [`Client::connect`] opened, for all clones of this client: a folder is free for another
    /// process, and a Redis has nobody left who waits. What is held is not given back by this. A client that is dropped
    /// without it is found out a little later. Of a server, and of a client on an engine of your own, it does nothing.
    pub async fn close(&self) {
        self.opened.close().await;
    }

    /// The same client, which sends each call once: for those who repeat it themselves, and must see each failure.
    pub(crate) fn once(&self) -> Client {
        let repeating = Arc::new(Repeat::new(self.plain.clone()).at_most(Duration::ZERO));
        Client { repeating, ..self.clone() }
    }

    /// The namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The engine, as it was given.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.plain
    }

    /// Any operation. Its values are checked against the bounds of the contract before the engine is asked, as a server
    /// checks what it is sent: an engine of this process takes what it is given.
    ///
    /// # Errors
    /// A refusal, which changed nothing; or a fault: [`Fault::Unknown`] says that it may have
    /// happened, even after the repeats.
    pub async fn run<O: Operation>(&self, request: O) -> Result<O::Reply, CallError> {
        request.within_bounds()?;
        self.repeating.run(&self.namespace, request).await
    }

    /// Makes a queue, a limit or a pool so: changes the settings that `change` names, and makes the thing with them where it
    /// is not there. Without this, a change of what is not there is refused ([`Client::run`]). If another caller makes the
    /// thing at the same time, the last of the two wins.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn set<C: Change>(&self, change: C) -> Result<C::Reply, CallError> {
        change.within_bounds()?;
        self.repeating.set(&self.namespace, change).await
    }

    /// Stores a job whose names were parsed before; [`Client::push`] says one in a sentence.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn push_job(&self, job: NewJob) -> Result<PushedId, CallError> {
        let pushed = self.push_each(vec![job]).await.map_err(|error| match error {
            // One job was pushed, and no list of jobs.
            CallError::Refused(no) => CallError::Refused(no.without_item()),
            other => other,
        });
        pushed?.pop().ok_or_else(|| broken("a push of one job was answered with none"))
    }

    /// Stores 1 to 1,000 jobs, all or none; answers in their order. They may wait for each other by
    /// [`Pushing::reference`](crate::Pushing::reference).
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// let pages = ["/a", "/b", "/c"].map(|page| client.push("crawl").id(page));
    /// let pushed = client.push_all(pages).await?;
    /// assert_eq!(pushed.len(), 3);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Client::push`]; a name that is none refuses all, and the refusal has the `index` of its job.
    pub async fn push_all<J>(
        &self,
        jobs: impl IntoIterator<Item = J>,
    ) -> Result<Vec<PushedId>, CallError>
    where
        J: TryInto<NewJob>,
        J::Error: Into<NotAJob>,
    {
        let jobs = jobs
            .into_iter()
            .enumerate()
            .map(|(at, job)| job.try_into().map_err(|no| no.into().0.item(at)));
        let jobs = jobs.collect::<Result<Vec<NewJob>, Refusal>>()?;
        self.push_each(jobs).await
    }

    async fn push_each(&self, mut jobs: Vec<NewJob>) -> Result<Vec<PushedId>, CallError> {
        let asked = jobs.len();
        let span = spans::push(&mut jobs);
        let push = Push { jobs, answer: PushAnswer::Ids };
        let ids = match self.run(push).instrument(span).await? {
            Pushed::Ids(ids) => ids,
            Pushed::Whole(jobs) => jobs
                .into_iter()
                .map(|pushed| PushedId {
                    id: pushed.job.id,
                    duplicate: pushed.duplicate,
                    replaced: pushed.replaced,
                    workers: pushed.workers,
                })
                .collect(),
        };
        if ids.len() != asked {
            return Err(broken("a push was answered with another number of jobs"));
        }
        Ok(ids)
    }

    /// A job, with payload and result.
    ///
    /// # Errors
    /// As [`Client::run`]; `job_not_found`.
    pub async fn get_job(&self, job: JobRef) -> Result<JobView, CallError> {
        self.run(GetJob { job }).await.map(|job| *job)
    }

    /// How a job ended. If it has not, it is waited for so long, at most a minute; when that is over it is shown as
    /// it is.
    ///
    /// # Errors
    /// As [`Client::run`]; `job_not_found`, also if it is deleted meanwhile; `line_full` if too many calls wait.
    pub async fn get_result(&self, job: JobRef, wait: Span) -> Result<ResultView, CallError> {
        self.run(GetResult { job, wait, seen: None }).await.map(|result| *result)
    }

    /// Waits until a job is finished, or for at most this long, and says how it ended: look at its `state` first, since
    /// a job that is not finished in time is shown as it is. `None` waits without an end. A key means the job that holds
    /// it now.
    ///
    /// What passes by itself is waited through: a server that restarts or drains, a store that is away for less than a
    /// minute. Dropping the future ends the wait, and changes nothing about the job.
    ///
    /// # Errors
    /// As [`Client::get_result`]; and if the engine never answered, or does not answer when the time is over.
    pub async fn wait_for_result(
        &self,
        job: JobRef,
        longest: Option<Duration>,
    ) -> Result<ResultView, CallError> {
        await_end::wait_for(self, job, longest).await
    }

    /// What a job waits for.
    ///
    /// # Errors
    /// As [`Client::run`]; `job_not_found`.
    pub async fn explain_job(&self, job: JobRef) -> Result<Explained, CallError> {
        self.run(ExplainJob { job }).await
    }

    /// Calls a job off. A running one learns it by its next heartbeat.
    ///
    /// # Errors
    /// As [`Client::run`]; `job_not_found`, `wrong_state` if it is finished otherwise.
    pub async fn cancel_job(&self, job: JobRef) -> Result<JobView, CallError> {
        self.run(CancelJob { job }).await.map(|job| *job)
    }

    /// Asks for leases once. What is granted is yours to extend and settle; [`Worker`] and [`Lock`]
    /// do that by themselves.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn lease(&self, lease: Lease) -> Result<Leased, CallError> {
        self.run(lease).await
    }

    /// Ends leases; answers in their order.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use tenure::SettleOutcome;
    /// use tenure::requests::Lease;
    ///
    /// client.push_all([client.push("mail"), client.push("mail")]).await?;
    /// let first = client.lease(Lease::jobs(vec!["mail".parse()?], 1)).await?.leases.remove(0);
    /// let ended = SettleOutcome::succeeded().of(first.lease.unwrap_or_default());
    ///
    /// // One call that ends it and asks for the next one.
    /// let next = Lease::jobs(vec!["mail".parse()?], 1);
    /// let settled = client.settle_and_lease(vec![ended], next).await?;
    /// let second = settled.lease.transpose()?.unwrap_or_default().leases.remove(0);
    /// let ended = SettleOutcome::succeeded().of(second.lease.unwrap_or_default());
    /// assert!(client.settle(vec![ended]).await?[0].ok);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Client::run`]. A lease that is lost is no error: its item says so.
    pub async fn settle(&self, settle: Vec<SettleItem>) -> Result<Vec<SettledLease>, CallError> {
        let asked = settle.len();
        let settled = self.run(Settle::of(settle)).await?.settled;
        if settled.len() != asked {
            return Err(broken("a settle was answered with another number of leases"));
        }
        Ok(settled)
    }

    /// Ends leases, and asks for the next ones in the same call. The settles are done whatever becomes of the lease
    /// call: [`Settled::lease`] has its answer, or its refusal. What is granted is yours to extend and settle.
    ///
    /// # Errors
    /// As [`Client::run`]. A fault may come after the settles were done: the same call again answers them as the first
    /// would have, and grants nothing twice under one request id. Dropping the future undoes no settle.
    pub async fn settle_and_lease(
        &self,
        settle: Vec<SettleItem>,
        lease: Lease,
    ) -> Result<Settled, CallError> {
        let asked = settle.len();
        let settled = self.run(Settle { settle, lease: Some(Box::new(lease)) }).await?;
        if settled.settled.len() != asked || settled.lease.is_none() {
            return Err(broken("a settle with a lease call was answered in part"));
        }
        Ok(settled)
    }

    /// Sets all of a schedule; makes it if it is not there. The same settings again change nothing, and a change of the
    /// timing counts from now.
    ///
    /// # Errors
    /// As [`Client::run`]; `invalid_field` for a cron expression of a form that is not listed, `unknown_zone`,
    /// `never_fires`, and what a push of its job would be refused for.
    pub async fn put_schedule(
        &self,
        schedule: ScheduleId,
        settings: ScheduleSettings,
    ) -> Result<ScheduleView, CallError> {
        let put = PutSchedule { schedule, settings: Box::new(settings), plan: None };
        self.run(put).await.map(|put| *put.view)
    }

    /// Changes what is named of a schedule; begin with [`PatchSchedule::new`].
    ///
    /// # Errors
    /// As [`Client::put_schedule`]; `schedule_not_found`.
    pub async fn patch_schedule(&self, change: PatchSchedule) -> Result<ScheduleView, CallError> {
        self.run(change).await.map(|put| *put.view)
    }

    /// A schedule, with its next moments and the payload of its job.
    ///
    /// # Errors
    /// As [`Client::run`]; `schedule_not_found`.
    pub async fn get_schedule(&self, schedule: ScheduleId) -> Result<ScheduleView, CallError> {
        self.run(GetSchedule { schedule }).await.map(|schedule| *schedule)
    }

    /// A page of the schedules, by their ids, all or those of an owner. A list shows of each the next moment alone.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn list_schedules(
        &self,
        list: ListSchedules,
    ) -> Result<Listed<ScheduleView>, CallError> {
        self.run(list).await
    }

    /// Forgets a schedule; the jobs that it made go on.
    ///
    /// # Errors
    /// As [`Client::run`]; `schedule_not_found`.
    pub async fn delete_schedule(&self, schedule: ScheduleId) -> Result<(), CallError> {
        self.run(DeleteSchedule { schedule }).await
    }

    /// Lets nothing of a schedule fire for a while, or with `None` until it is resumed. What falls into a pause is not
    /// made up.
    ///
    /// # Errors
    /// As [`Client::run`]; `schedule_not_found`.
    pub async fn pause_schedule(
        &self,
        schedule: ScheduleId,
        until: Option<Later>,
    ) -> Result<ScheduleView, CallError> {
        self.run(PauseSchedule { schedule, until }).await.map(|schedule| *schedule)
    }

    /// Ends a pause; without one it changes nothing.
    ///
    /// # Errors
    /// As [`Client::run`]; `schedule_not_found`.
    pub async fn resume_schedule(&self, schedule: ScheduleId) -> Result<ScheduleView, CallError> {
        self.run(ResumeSchedule { schedule }).await.map(|schedule| *schedule)
    }

    /// Makes a job of a schedule at once, beside its moments, paused or not; it gets an id if `job` is `None`. While a job
    /// of the schedule is unfinished, and unless its overlap is `allow`, that job is made ready and answered instead.
    ///
    /// # Errors
    /// As [`Client::run`]; `schedule_not_found`, and what a push of its job would be refused for.
    pub async fn run_schedule_now(
        &self,
        schedule: ScheduleId,
        job: Option<JobId>,
    ) -> Result<PushedJob, CallError> {
        self.run(RunScheduleNow { schedule, id: job }).await.map(|job| *job)
    }

    /// [`Client::schedules_of`] with settings that were parsed before: makes a list the whole set of an owner's schedules. Those that it has and the list has not are deleted. Pauses,
    /// counters and moved moments stay, unless a timing changes. All of the list is taken or nothing.
    ///
    /// # Errors
    /// As [`Client::put_schedule`]; `empty_set` and `retires_most` unless it is meant, `stale_sync` below the last
    /// version, `other_owner`.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use tenure::requests::{Meant, SyncSchedules};
    ///
    /// let (owner, version) = ("sources".parse()?, Some(1));
    /// let set = SyncSchedules { owner, schedules: Vec::new(), meant: Meant::Yes, version };
    /// assert_eq!(client.sync_schedules(set).await?.deleted, 0);
    /// # Ok(()) });
    /// ```
    pub async fn sync_schedules(&self, set: SyncSchedules) -> Result<SyncedSchedules, CallError> {
        self.run(set).await
    }

    /// The lock `lock:NAME`, to be acquired.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// let guard = client.lock("deploy")?.acquire().await?;
    /// println!("deploying with fence {}", guard.fence());
    /// guard.release().await?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// A name that no limit can have.
    pub fn lock(&self, name: &str) -> Result<Lock, Refusal> {
        let limit = LimitName::parse(&format!("lock:{name}"))?;
        Ok(Lock::new(self.clone(), vec![crate::lock::one(limit)]))
    }

    /// A worker for these queues, to be run: names, or [`Handlers::queues`](crate::Handlers::queues). A name that is none
    /// is refused when it runs.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// client.push("mail").await?;
    /// let worker = client.worker(["mail", "reports"]).concurrency(4).until_empty();
    /// let worked = worker.run(async |job| println!("{}", job.id())).await?;
    /// assert_eq!(worked.jobs, 1);
    /// # Ok(()) });
    /// ```
    pub fn worker<Q: AsRef<str>>(&self, queues: impl IntoIterator<Item = Q>) -> Worker {
        let queues = queues.into_iter().map(|queue| QueueName::parse(queue.as_ref())).collect();
        Worker::of(self.clone(), queues)
    }

    /// The heartbeats of everything this client and its clones hold; started at the first call.
    #[doc(hidden)]
    ///
    /// # Errors
    /// The system gives no thread for them.
    pub fn keeper(&self) -> Result<Keeper, CallError> {
        let mut slot = lock(&self.keeper);
        if let Some(keeper) = &*slot {
            return Ok(keeper.clone());
        }
        // The engine as it was given: the keeper repeats in its own time.
        let keeper = Keeper::start(self.plain.clone(), self.namespace.clone()).map_err(|why| {
            CallError::Fault(Fault::Unavailable(format!("no thread for heartbeats: {why}")))
        })?;
        *slot = Some(keeper.clone());
        Ok(keeper)
    }

    /// With heartbeats on the caller's runtime, so that a test can turn its clock.
    #[cfg(test)]
    pub(crate) fn on_this_runtime(engine: Arc<dyn Engine>) -> Self {
        let client = Client::new(engine.clone(), Namespace::main());
        *lock(&client.keeper) = Some(Keeper::start_here(engine, Namespace::main()));
        client
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.namespace)
    }
}

/// An item of a list that is no job, because a name in it is none.
#[derive(Clone, Debug)]
pub struct NotAJob(Refusal);

impl From<Refusal> for NotAJob {
    fn from(no: Refusal) -> Self {
        NotAJob(no)
    }
}
impl From<Infallible> for NotAJob {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

pub(crate) fn broken(what: &str) -> CallError {
    CallError::Fault(Fault::Broken(what.to_owned()))
}
