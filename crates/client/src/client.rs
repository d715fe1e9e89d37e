//! Client: an engine and a namespace, with convenient calls.
//!
//! Each is one call to the engine, retried while its outcome is unknown; nothing is cached.

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure_core::job::{JobView, NewJob, PushedJob, ResultView};
use tenure_core::lease::{Explained, Later, Leased, SettleItem, SettledLease};
use tenure_core::names::{JobId, JobRef, Namespace, ScheduleId};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{
    CancelJob, Change, DeleteSchedule, ExplainJob, GetJob, GetResult, GetSchedule, Lease,
    ListSchedules, Listed, Operation, Patch, PatchSchedule, PauseSchedule, Push, PushAnswer,
    Pushed, PushedId, PutSchedule, ResumeSchedule, RunScheduleNow, Settle, Settled, SyncSchedules,
};
use tenure_core::schedule::{ScheduleSettings, ScheduleView, SyncedSchedules};
use tenure_core::time::Span;
use tenure_engine_api::{CallError, Engine, EngineExt, Fault};
use tracing::Instrument;

use crate::asking::broken;
use crate::codec::{self, Codec};
use crate::keeper::{Keeper, lock};
#[cfg(test)]
use crate::lease_clock::{LeaseClock, Slept};
use crate::opened::Opened;
use crate::repeat::Repeat;
use crate::spans;

/// One namespace of an engine. Cheap to clone; all clones share their heartbeats.
///
/// Most calls start with the thing that they are about: [`Client::push`], [`Client::job`], [`Client::queue`],
/// [`Client::limit`], [`Client::pool`], [`Client::schedule`], [`Client::flow`], [`Client::acquire`],
/// [`Client::worker`], [`Client::events`]. Names are plain text.
///
/// A program that has parsed names, or pages through long lists, makes the same calls with requests:
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
    /// Seals and opens values; none unless [`Client::codec`] gave one.
    pub(crate) codec: Option<Arc<dyn Codec>>,
}

impl Client {
    /// A client of this engine. Calls with an unknown outcome are retried with the same ids, for at most a minute. So are
    /// calls of a token that has used up its bounds, as soon as it may make them.
    pub fn new(engine: Arc<dyn Engine>, namespace: Namespace) -> Self {
        Client::opened(engine, namespace, Opened::Elsewhere)
    }

    /// A client of an engine that [`Client::close`] closes.
    pub(crate) fn opened(engine: Arc<dyn Engine>, namespace: Namespace, opened: Opened) -> Self {
        let repeating = Arc::new(Repeat::new(engine.clone()));
        let (keeper, codec) = (Arc::default(), None);
        Client { plain: engine, repeating, namespace, keeper, opened, codec }
    }

    /// Closes a store that [`Client::connect`] opened, for all clones of this client: a folder is free for another
    /// process, and calls that wait in a Redis end. Leases are not given back. If a client is dropped without this, the
    /// store notices it a little later. It does nothing for a server, nor for a client of your own engine.
    pub async fn close(&self) {
        self.opened.close().await;
    }

    /// The same client, but without retries: for callers that retry themselves and must see each failure.
    pub(crate) fn once(&self) -> Client {
        let repeating = Arc::new(Repeat::new(self.plain.clone()).at_most(Duration::ZERO));
        Client { repeating, ..self.clone() }
    }

    /// The namespace of all its calls.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The engine that it was made with, without its retries.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.plain
    }

    /// Runs any operation. Its values are checked against the bounds of the contract before the engine is called, as a
    /// server checks its requests: an engine of this process checks nothing.
    ///
    /// # Errors
    /// A refusal, which changed nothing; or a fault: [`Fault::Unknown`] says that it may have happened, even after the
    /// retries.
    pub async fn run<O: Operation>(&self, request: O) -> Result<O::Reply, CallError> {
        request.within_bounds()?;
        self.repeating.run(&self.namespace, request).await
    }

    /// Creates or changes a queue, a limit or a pool: looks if it is there, changes the settings that `change` names, and
    /// creates the thing with them if it is missing. With [`Client::run`] such a change of a missing thing is refused. If another caller
    /// creates the thing at the same time, the last of the two wins.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn set<C: Change>(&self, change: C) -> Result<C::Reply, CallError> {
        change.within_bounds()?;
        self.repeating.set(&self.namespace, change).await
    }

    /// Stores a job from parsed names; [`Client::push`] takes plain text.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn push_job(&self, job: NewJob) -> Result<PushedId, CallError> {
        let pushed = self.push_each(vec![job]).await.map_err(|error| match error {
            // One job was pushed, not a list of jobs.
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
    /// As [`Client::push`]; an invalid name refuses all, and the refusal has the `index` of its job.
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
        for job in &mut jobs {
            self.seal_new(job).map_err(codec::not_sent)?;
        }
        let push = Push { jobs, answer: PushAnswer::Ids };
        let pushed = self.run(push).instrument(span).await;
        let ids = match pushed.map_err(|error| self.advised(error))? {
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
        self.run(GetJob { job }).await.map(|job| self.shown_job(*job))
    }

    /// How a job ended. If it has not, the call waits for at most `wait`, itself at most a minute, and then shows the
    /// job as it is.
    ///
    /// # Errors
    /// As [`Client::run`]; `job_not_found`, also if it is deleted meanwhile; `line_full` if too many calls wait.
    pub async fn get_result(&self, job: JobRef, wait: Span) -> Result<ResultView, CallError> {
        let result = self.run(GetResult { job, wait, seen: None }).await;
        result.map(|result| self.shown_result(*result))
    }

    /// Explains why a job waits.
    ///
    /// # Errors
    /// As [`Client::run`]; `job_not_found`.
    pub async fn explain_job(&self, job: JobRef) -> Result<Explained, CallError> {
        self.run(ExplainJob { job }).await
    }

    /// Cancels a job. A running one learns it by its next heartbeat.
    ///
    /// # Errors
    /// As [`Client::run`]; `job_not_found`, `wrong_state` if it is finished in another state.
    pub async fn cancel_job(&self, job: JobRef) -> Result<JobView, CallError> {
        self.run(CancelJob { job }).await.map(|job| self.shown_job(*job))
    }

    /// Asks for leases once. The caller extends and settles them; [`Worker`](crate::Worker) and
    /// [`Lock`](crate::Lock) do that by themselves.
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

    /// Ends leases, and asks for the next ones in the same call. The settles are done whatever happens to the lease
    /// call: [`Settled::lease`] has its answer, or its refusal. The caller extends and settles the new leases.
    ///
    /// # Errors
    /// As [`Client::run`]. A fault may come after the settles were done: the same call sent again answers them as the
    /// first would have, and grants nothing twice under one request id. Dropping the future undoes no settle.
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

    /// Sets all of a schedule; creates it if it is missing. The same settings again change nothing, and a change of the
    /// timing counts from now.
    ///
    /// # Errors
    /// As [`Client::run`]; `invalid_field` for a cron expression of an unknown form, `unknown_zone`, `never_fires`, and
    /// the refusals of a push of its job.
    pub async fn put_schedule(
        &self,
        schedule: ScheduleId,
        settings: ScheduleSettings,
    ) -> Result<ScheduleView, CallError> {
        let put = PutSchedule { schedule, settings: Box::new(settings), plan: None };
        self.set_schedule(put).await
    }

    pub(crate) async fn set_schedule(
        &self,
        mut put: PutSchedule,
    ) -> Result<ScheduleView, CallError> {
        self.seal_scheduled(&mut put.settings.job)?;
        let put = self.run(put).await.map_err(|error| self.advised(error))?;
        Ok(*put.view)
    }

    /// Changes the named settings of a schedule; start with [`PatchSchedule::new`].
    ///
    /// # Errors
    /// As [`Client::put_schedule`]; `schedule_not_found`.
    pub async fn patch_schedule(
        &self,
        mut change: PatchSchedule,
    ) -> Result<ScheduleView, CallError> {
        if let Patch::Set(job) = &mut change.job {
            self.seal_scheduled(job)?;
        }
        let put = self.run(change).await.map_err(|error| self.advised(error))?;
        Ok(*put.view)
    }

    /// A schedule, with its next occurrences and the payload of its job.
    ///
    /// # Errors
    /// As [`Client::run`]; `schedule_not_found`.
    pub async fn get_schedule(&self, schedule: ScheduleId) -> Result<ScheduleView, CallError> {
        self.run(GetSchedule { schedule }).await.map(|schedule| *schedule)
    }

    /// A page of the schedules, by id, all or those of an owner. A list shows only the next occurrence of each.
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

    /// Pauses a schedule for a while, or with `None` until it is resumed. Occurrences within a pause are left out,
    /// and not made up later.
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

    /// Makes a job of a schedule at once, besides its occurrences, paused or not; with `None` the job gets a new id. If
    /// a job of the schedule is unfinished, that job is made ready and returned instead, unless the overlap is `allow`.
    ///
    /// # Errors
    /// As [`Client::run`]; `schedule_not_found`, and the refusals of a push of its job.
    pub async fn run_schedule_now(
        &self,
        schedule: ScheduleId,
        job: Option<JobId>,
    ) -> Result<PushedJob, CallError> {
        self.run(RunScheduleNow { schedule, id: job }).await.map(|job| *job)
    }

    /// [`Client::schedules_of`] with parsed settings: makes a list the whole set of an owner's schedules. Schedules
    /// that are missing from the list are deleted. Pauses, counters and moved occurrences stay, unless a timing
    /// changes. The call takes all of the list or nothing.
    ///
    /// # Errors
    /// As [`Client::put_schedule`]; `empty_set` and `retires_most` unless `meant` is set, `stale_sync` below the last
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
    pub async fn sync_schedules(
        &self,
        mut set: SyncSchedules,
    ) -> Result<SyncedSchedules, CallError> {
        for (_, settings) in &mut set.schedules {
            self.seal_scheduled(&mut settings.job)?;
        }
        self.run(set).await.map_err(|error| self.advised(error))
    }

    /// The heartbeats of all leases of this client and its clones; started at the first call.
    #[doc(hidden)]
    ///
    /// # Errors
    /// The system cannot start a thread for them.
    pub fn keeper(&self) -> Result<Keeper, CallError> {
        let mut slot = lock(&self.keeper);
        if let Some(keeper) = &*slot {
            return Ok(keeper.clone());
        }
        // The engine without retries: the keeper retries at its own pace.
        let keeper = Keeper::start(self.plain.clone(), self.namespace.clone()).map_err(|why| {
            CallError::Fault(Fault::Unavailable(format!("no thread for heartbeats: {why}")))
        })?;
        *slot = Some(keeper.clone());
        Ok(keeper)
    }

    /// With heartbeats on the caller's runtime, so that a test can move its clock.
    #[cfg(test)]
    pub(crate) fn on_this_runtime(engine: Arc<dyn Engine>) -> Self {
        Client::that_sleeps(engine, &Slept::default())
    }

    /// The same, on a machine that a test suspends.
    #[cfg(test)]
    pub(crate) fn that_sleeps(engine: Arc<dyn Engine>, slept: &Slept) -> Self {
        let client = Client::new(engine.clone(), Namespace::main());
        let clock = LeaseClock::of_tokio(slept);
        *lock(&client.keeper) = Some(Keeper::start_here(engine, Namespace::main(), clock));
        client
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.namespace)
    }
}

/// An item of a list that is not a job, because a name in it is invalid.
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
