//! Builders for a schedule (set, pause, view) and for the whole set of an owner.

use std::collections::BTreeMap;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use serde::Serialize;
use tenure_core::bounds::LIST_MAX;
use tenure_core::decode;
use tenure_core::job::{Need as CheckedNeed, PushedJob};
use tenure_core::lease::Later;
use tenure_core::names::{JobId, Owner, ScheduleId};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{ListSchedules, Page};
use tenure_core::schedule::{CatchUp, Overlap, ScheduleView, SyncedSchedules};
use tenure_core::secret::{Json, NotJson};
use tenure_core::time::{Moment, Span};
use tenure_engine_api::CallError;

use crate::client::Client;
use crate::need::Need;
use crate::spoken::Spoken;
use crate::spoken::retry::Retry;
use crate::tasks::Task;

/// A schedule, as [`Client::schedule`] names it: view it, pause it, delete it, or go on with [`Schedule::cron`] or
/// [`Schedule::every`] to set it.
///
/// ```
/// # tenure::testing::example(async |client| {
/// use std::time::Duration;
///
/// let hour = Duration::from_secs(3_600);
/// client.schedule("report").every(24 * hour).push("reports").set().await?;
/// client.schedule("report").pause_for(hour).await?;
/// client.schedule("report").pause().await?;
/// assert!(client.schedule("report").view().await?.paused);
/// client.schedule("report").resume().await?;
///
/// let made = client.schedule("report").run_now().await?;
/// assert_eq!(made.job.queue.as_str(), "reports");
/// client.schedule("report").delete().await?;
/// # Ok(()) });
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is done until a call of it is awaited"]
pub struct Schedule {
    client: Client,
    id: String,
}

impl Client {
    /// A schedule: a timing, and the job that each of its occurrences makes.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// let report = client
    ///     .schedule("report")
    ///     .cron("0 9 * * 1-5")
    ///     .zone("Europe/Berlin")
    ///     .push("mail")
    ///     .kind("report")
    ///     .payload(&["sales"])?
    ///     .set()
    ///     .await?;
    /// println!("next at {:?}", report.next_at);
    /// # Ok(()) });
    /// ```
    pub fn schedule(&self, id: &str) -> Schedule {
        Schedule { client: self.clone(), id: id.to_owned() }
    }

    /// The schedules of an owner: a set that your own table lists.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use std::time::Duration;
    ///
    /// let hour = Duration::from_secs(3_600);
    /// let rows = [(1, "https://example.com/feed"), (2, "https://example.org/feed")];
    /// let mut sources = Vec::new();
    /// for (id, url) in rows {
    ///     let source = client.schedule(&format!("source-{id}")).every(hour);
    ///     sources.push(source.push("sources").payload(&url)?);
    /// }
    /// let synced = client.schedules_of("sources").sync(sources).version(1).await?;
    /// assert_eq!(synced.added, 2);
    /// assert_eq!(client.schedules_of("sources").list().await?.len(), 2);
    ///
    /// // An empty set is refused unless it is meant: a query may have failed.
    /// assert!(client.schedules_of("sources").sync([]).await.is_err());
    /// client.schedules_of("sources").sync([]).meant().await?;
    /// # Ok(()) });
    /// ```
    pub fn schedules_of(&self, owner: &str) -> SchedulesOf {
        SchedulesOf { client: self.clone(), owner: owner.to_owned() }
    }
}

impl Schedule {
    /// Fires by a cron expression of five fields, or of six with the second first. It is read in UTC unless
    /// [`SetSchedule::zone`] follows.
    pub fn cron(self, expression: &str) -> SetSchedule {
        self.timed("cron", &expression)
    }
    /// Fires in this interval, in whole seconds: from [`SetSchedule::starts_at`] on, and without that at a phase of its
    /// own, so that many schedules are spread.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use std::time::Duration;
    ///
    /// let minutes = Duration::from_secs(15 * 60);
    /// client.schedule("feed").every(minutes).push("feeds").set().await?;
    /// # Ok(()) });
    /// ```
    pub fn every(self, interval: Duration) -> SetSchedule {
        self.timed("every", &Span::from(interval))
    }
    fn timed(self, field: &'static str, value: &impl Serialize) -> SetSchedule {
        let said = Spoken::default().say("id", &self.id).say(field, value);
        let (job, labels, needs) = (None, BTreeMap::new(), Vec::new());
        SetSchedule { client: self.client, id: self.id, said, job, labels, needs }
    }

    /// Shows its settings and its next occurrences.
    ///
    /// # Errors
    /// As [`Client::run`]; `schedule_not_found`.
    pub async fn view(self) -> Result<ScheduleView, CallError> {
        self.client.get_schedule(ScheduleId::known(&self.id)?).await
    }
    /// Fires nothing until [`Schedule::resume`]. Occurrences within a pause are not made up.
    ///
    /// # Errors
    /// As [`Schedule::view`].
    pub async fn pause(self) -> Result<ScheduleView, CallError> {
        self.client.pause_schedule(ScheduleId::known(&self.id)?, None).await
    }
    /// Fires nothing for this long. Occurrences within a pause are not made up.
    ///
    /// # Errors
    /// As [`Schedule::view`].
    pub async fn pause_for(self, rest: Duration) -> Result<ScheduleView, CallError> {
        let until = Later::For(rest.into());
        self.client.pause_schedule(ScheduleId::known(&self.id)?, Some(until)).await
    }
    /// Fires nothing before this moment. Occurrences within a pause are not made up.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use std::time::{Duration, SystemTime};
    ///
    /// let hour = Duration::from_secs(3_600);
    /// client.schedule("feed").every(hour).push("feeds").set().await?;
    /// client.schedule("feed").pause_until(SystemTime::now() + hour).await?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Schedule::view`].
    pub async fn pause_until(self, moment: impl Into<Moment>) -> Result<ScheduleView, CallError> {
        let until = Later::Until(moment.into());
        self.client.pause_schedule(ScheduleId::known(&self.id)?, Some(until)).await
    }
    /// Ends a pause; without one it changes nothing.
    ///
    /// # Errors
    /// As [`Schedule::view`].
    pub async fn resume(self) -> Result<ScheduleView, CallError> {
        self.client.resume_schedule(ScheduleId::known(&self.id)?).await
    }
    /// Makes its job at once, besides its occurrences, paused or not. If a job of it is unfinished, that job is made
    /// ready and returned instead, unless the overlap is `allow`.
    ///
    /// # Errors
    /// As [`Schedule::view`], and the refusals of a push of its job.
    pub async fn run_now(self) -> Result<PushedJob, CallError> {
        // An id of its own, so that a retry of the call makes no second job.
        let job = crate::ids::job_id();
        self.client.run_schedule_now(ScheduleId::known(&self.id)?, Some(job)).await
    }
    /// The same under an id of yours, which makes it repeatable.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use std::time::Duration;
    ///
    /// client.schedule("feed").every(Duration::from_secs(3_600)).push("feeds").set().await?;
    /// let made = client.schedule("feed").run_now_as("feed-by-hand-1").await?;
    /// assert_eq!(made.job.id.as_str(), "feed-by-hand-1");
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Schedule::run_now`].
    pub async fn run_now_as(self, job: &str) -> Result<PushedJob, CallError> {
        let job = JobId::parse(job)?;
        self.client.run_schedule_now(ScheduleId::known(&self.id)?, Some(job)).await
    }
    /// Deletes it; the jobs that it made go on.
    ///
    /// # Errors
    /// As [`Schedule::view`].
    pub async fn delete(self) -> Result<(), CallError> {
        self.client.delete_schedule(ScheduleId::known(&self.id)?).await
    }
}

/// A schedule with a timing, to be set: add more settings of the timing, then [`SetSchedule::push`] or
/// [`SetSchedule::push_task`] and the settings of the job.
///
/// ```
/// # tenure::testing::example(async |client| {
/// use std::time::{Duration, SystemTime};
/// use tenure::{CatchUp, Need, Overlap, Retry};
///
/// let hour = Duration::from_secs(3_600);
/// client.limit("smtp").concurrency(2).set().await?;
/// client
///     .schedule("report")
///     .every(24 * hour)
///     .starts_at(SystemTime::now() + hour)
///     .ends_at(SystemTime::now() + 1_000 * hour)
///     .jitter(Duration::from_secs(60))
///     .overlap(Overlap::Queue)
///     .catch_up(CatchUp::All)
///     .catch_up_max(10)
///     .owner("reports")
///     .push("mail")
///     .kind("report")
///     .payload(&["sales"])?
///     .priority(5)
///     .group("tenant-7")
///     .need(Need::limit("smtp"))
///     .retry(Retry::new().attempts(3))
///     .timeout(Duration::from_secs(60))
///     .retain(24 * hour)
///     .expires_in(hour)
///     .label("by", "finance")
///     .set()
///     .await?;
/// # Ok(()) });
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is set until `set` is awaited"]
pub struct SetSchedule {
    client: Client,
    id: String,
    said: Spoken,
    /// Starts as `None`; the first setting of the job creates it.
    job: Option<Spoken>,
    labels: BTreeMap<String, String>,
    needs: Vec<CheckedNeed>,
}

impl SetSchedule {
    /// The time zone of the cron expression: an IANA name, such as `Europe/Berlin`. An interval has none.
    pub fn zone(self, name: &str) -> Self {
        self.say("zone", name)
    }
    /// The earliest occurrence; an interval counts from it. One within the last minute fires at once.
    pub fn starts_at(self, moment: impl Into<Moment>) -> Self {
        self.say("starts_at", moment.into())
    }
    /// The latest possible occurrence.
    pub fn ends_at(self, moment: impl Into<Moment>) -> Self {
        self.say("ends_at", moment.into())
    }
    /// Delays each occurrence by zero to this long, at most a day, and never beyond the next one.
    pub fn jitter(self, longest: Duration) -> Self {
        self.say("jitter", Span::from(longest))
    }
    /// The rule for an occurrence while a job of this schedule is unfinished; it is skipped by default.
    pub fn overlap(self, overlap: Overlap) -> Self {
        self.say("overlap", overlap)
    }
    /// Which of several due occurrences fire, as after an outage; by default the last one.
    pub fn catch_up(self, catch_up: CatchUp) -> Self {
        self.say("catch_up", catch_up)
    }
    /// With [`CatchUp::All`], how many of the newest fire: 1 to 1,000, 100 by default.
    pub fn catch_up_max(self, moments: u32) -> Self {
        self.say("catch_up_max", moments)
    }
    /// The set that it belongs to; see [`Client::schedules_of`], which sets it by itself.
    pub fn owner(self, owner: &str) -> Self {
        self.say("owner", owner)
    }

    /// Each occurrence makes a job of this queue.
    pub fn push(self, queue: &str) -> Self {
        self.of_job(|job| job.say("queue", queue))
    }
    /// Each occurrence makes a job for this task, in the queue of its type.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use serde::{Deserialize, Serialize};
    /// use tenure::Task;
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Report {
    ///     of: String,
    /// }
    /// impl Task for Report {
    ///     const KIND: &'static str = "report";
    /// }
    ///
    /// let sales = Report { of: "sales".to_owned() };
    /// client.schedule("sales").cron("@daily").push_task(&sales)?.set().await?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// A value that cannot be written as JSON.
    pub fn push_task<T: Task>(self, task: &T) -> Result<Self, NotJson> {
        let schedule = self.push(T::QUEUE).kind(T::KIND).payload(task)?;
        Ok(task.needs().into_iter().fold(schedule, SetSchedule::need))
    }
    /// The kind by which a worker finds its handler.
    pub fn kind(self, kind: &str) -> Self {
        self.of_job(|job| job.say("kind", kind))
    }
    /// The handler's argument: anything that serde writes as JSON, at most 256 KiB.
    ///
    /// # Errors
    /// A value that cannot be written as JSON.
    pub fn payload(self, payload: &impl Serialize) -> Result<Self, NotJson> {
        let payload = Json::of(payload)?;
        Ok(self.of_job(|job| job.json("payload", payload)))
    }
    /// -100 to 100, 0 by default; higher goes first.
    pub fn priority(self, priority: i8) -> Self {
        self.of_job(|job| job.say("priority", priority))
    }
    /// The group of its jobs, such as a tenant: the groups of a queue take turns.
    pub fn group(self, group: &str) -> Self {
        self.of_job(|job| job.say("group", group))
    }
    /// One more need that each of its jobs holds while it runs. The first replaces the needs of the queue.
    pub fn need(mut self, need: Need) -> Self {
        let mut needs = std::mem::take(&mut self.needs);
        let schedule = self.of_job(|job| job.need(need, &mut needs));
        SetSchedule { needs, ..schedule }
    }
    /// How often a failed run is retried, and after which pause.
    pub fn retry(self, retry: Retry) -> Self {
        self.of_job(|job| job.say("retry", retry.checked()))
    }
    /// A run that takes longer is ended, and counts as a failed attempt.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.of_job(|job| job.say("timeout", Span::from(timeout)))
    }
    /// How long a finished job is kept.
    pub fn retain(self, retain: Duration) -> Self {
        self.of_job(|job| job.say("retain", Span::from(retain)))
    }
    /// A job that is not running this long after its occurrence is cancelled.
    pub fn expires_in(self, longest: Duration) -> Self {
        self.of_job(|job| job.say("expires_in", Span::from(longest)))
    }
    /// A label for people and filters.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        let labels = self.labels.clone();
        self.of_job(|job| job.say("labels", labels))
    }

    /// Sets all of the schedule: a setting that is left out returns to its default. The same settings again change
    /// nothing, and a change of the timing counts from now. Creates the schedule if it is missing.
    ///
    /// # Errors
    /// As [`Client::run`]; `invalid_field` for a cron expression of an unknown form, `unknown_zone`, `never_fires`,
    /// `conflicting_fields` for a zone beside an interval, and the refusals of a push of its job.
    pub async fn set(self) -> Result<ScheduleView, CallError> {
        let (client, id) = (self.client.clone(), self.id.clone());
        let put = decode::put_schedule(&id, &self.body()?.end()?)?;
        client.set_schedule(put).await
    }

    fn say(self, field: &'static str, value: impl Serialize) -> Self {
        SetSchedule { said: self.said.say(field, value), ..self }
    }
    fn of_job(self, say: impl FnOnce(Spoken) -> Spoken) -> Self {
        let job = say(self.job.unwrap_or_default());
        SetSchedule { job: Some(job), ..self }
    }
    fn body(self) -> Result<Spoken, Refusal> {
        Ok(match self.job {
            Some(job) => self.said.part("job", job)?,
            // The reader refuses a schedule without a job.
            None => self.said,
        })
    }
}

/// The schedules of an owner, as [`Client::schedules_of`] names them.
#[derive(Clone, Debug)]
#[must_use = "nothing is done until a call of it is awaited"]
pub struct SchedulesOf {
    client: Client,
    owner: String,
}

impl SchedulesOf {
    /// Makes these the whole set of the owner once it is awaited: schedules that are missing from the list are deleted.
    /// The call takes all of the list or nothing. Pauses, counters and moved occurrences stay, unless a timing changes.
    ///
    /// # Errors
    /// When it is awaited: as [`SetSchedule::set`]; `empty_set` and `retires_most` without [`SyncOwner::meant`],
    /// `stale_sync` below the last version, `other_owner`.
    pub fn sync(self, schedules: impl IntoIterator<Item = SetSchedule>) -> SyncOwner {
        let bodies = schedules.into_iter().enumerate().map(|(at, schedule)| {
            let body = schedule.body().and_then(|body| body.checked());
            body.map_err(|no| no.item(at))
        });
        let set = bodies.collect();
        SyncOwner { client: self.client, owner: self.owner, set, meant: false, version: None }
    }
    /// All of them, by id, each with only its next occurrence.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn list(self) -> Result<Vec<ScheduleView>, CallError> {
        let owner = Some(Owner::parse(&self.owner)?);
        let page = Page { max: LIST_MAX, cursor: None };
        let (mut list, mut all) = (ListSchedules { owner, full: false, page }, Vec::new());
        loop {
            let listed = self.client.list_schedules(list.clone()).await?;
            all.extend(listed.items);
            match listed.next {
                Some(next) => list.page.cursor = Some(next),
                None => return Ok(all),
            }
        }
    }
}

/// A whole set, from [`SchedulesOf::sync`]. Awaiting it compares and applies the set.
#[derive(Debug)]
#[must_use = "nothing is synced until this is awaited"]
pub struct SyncOwner {
    client: Client,
    owner: String,
    set: Result<Vec<Spoken>, Refusal>,
    meant: bool,
    version: Option<u64>,
}

impl SyncOwner {
    /// Applies the set even if it is empty, or deletes most of the present one.
    pub fn meant(self) -> Self {
        SyncOwner { meant: true, ..self }
    }
    /// The version of the set: one older than the last is refused as `stale_sync`.
    pub fn version(self, version: u64) -> Self {
        SyncOwner { version: Some(version), ..self }
    }

    async fn run(self) -> Result<SyncedSchedules, CallError> {
        let mut query = vec![("owner", self.owner)];
        if self.meant {
            query.push(("force", "true".to_owned()));
        }
        query.extend(self.version.map(|version| ("version", version.to_string())));
        let set = Spoken::array(&self.set?);
        self.client.sync_schedules(decode::sync_schedules(&query, &set)?).await
    }
}

impl IntoFuture for SyncOwner {
    type Output = Result<SyncedSchedules, CallError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
