//! What a job says, what it needs, and how it is shown.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::bounds::{RETAIN_FAILED_US, RETAIN_SUCCEEDED_US};
use crate::flow::{After, OnParentFailure, ShownParent, ShownParents};
use crate::names::{
    FlowName, Group, JobId, LimitName, PoolName, QueueName, Ref, ResourceId, Tag, UniqueKey,
};
use crate::progress::ProgressId;
use crate::schedule::MadeBy;
use crate::secret::Json;
use crate::time::{Moment, Span};
use crate::trace::TraceParent;

/// Where a job stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Waits for other jobs.
    Dependent,
    /// Waits for a moment: a delay, a retry, a snooze. `tick` makes it ready.
    Scheduled,
    /// Waits for its turn.
    Ready,
    /// Its turn came, but a need is taken: it stands in that need's line.
    Blocked,
    /// Held by a lease.
    Running,
    /// Ended well; kept for `retain`.
    Succeeded,
    /// Ended badly, for good; kept for `retain`.
    Failed,
    /// Called off, or not running at its `expires_at`; kept for `retain`.
    Cancelled,
}

impl JobState {
    /// All states, in the order of a job's life.
    pub const ALL: [JobState; 8] = [
        JobState::Dependent,
        JobState::Scheduled,
        JobState::Ready,
        JobState::Blocked,
        JobState::Running,
        JobState::Succeeded,
        JobState::Failed,
        JobState::Cancelled,
    ];
    /// The word of the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            JobState::Dependent => "dependent",
            JobState::Scheduled => "scheduled",
            JobState::Ready => "ready",
            JobState::Blocked => "blocked",
            JobState::Running => "running",
            JobState::Succeeded => "succeeded",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
        }
    }
    /// Whether nothing more happens to the job by itself.
    pub const fn is_finished(self) -> bool {
        matches!(self, JobState::Succeeded | JobState::Failed | JobState::Cancelled)
    }
}
impl std::str::FromStr for JobState {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        JobState::ALL.into_iter().find(|state| state.as_str() == text).ok_or(())
    }
}
impl std::fmt::Display for JobState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a job or a caller asks for beside its turn.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Need {
    /// Permits and rate tokens of a limit.
    Limit {
        /// The limit; never a template.
        limit: LimitName,
        /// Permits, 1 or more; ignored by a limit without concurrency.
        #[serde(default = "one")]
        weight: u32,
        /// Rate tokens, 0 or more; ignored by a limit without a rate.
        #[serde(default = "one")]
        cost: u32,
    },
    /// Resources of a pool.
    Pool {
        /// The pool.
        pool: PoolName,
        /// Only resources with this tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<Tag>,
        /// This one, if it is free.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefer: Option<ResourceId>,
        /// This one and no other.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<ResourceId>,
        /// So many different ones, 1 or more.
        #[serde(default = "one")]
        count: u32,
    },
}

fn one() -> u32 {
    1
}

/// How the waits between attempts grow.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Backoff {
    /// Attempt n waits `min(max, base * 2^(n-1))`.
    Exponential {
        /// The first wait.
        base: Span,
        /// The longest wait.
        max: Span,
        /// Evenly spread between half of the wait and the whole.
        jitter: bool,
    },
    /// Every attempt waits `base`.
    Fixed {
        /// The wait.
        base: Span,
        /// Evenly spread between half of the wait and the whole.
        jitter: bool,
    },
    /// Attempt n waits `delays[n-1]`; the last repeats.
    List {
        /// The waits, 1 to 100.
        delays: Vec<Span>,
        /// Evenly spread between half of the wait and the whole.
        jitter: bool,
    },
}

/// What to do when a run fails or its holder dies.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Retry {
    /// Runs that may end in `failed`; 0 = without end.
    pub max_attempts: u32,
    /// Reaps in a row that make it a poison job; 0 = never.
    pub max_lost: u32,
    /// Snoozes of a job; the one beyond them makes it `failed`. `None`: as many as it likes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_snoozes: Option<u32>,
    /// The waits between attempts.
    pub backoff: Backoff,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff::Exponential { base: Span::from_s(1), max: Span::from_s(3_600), jitter: true }
    }
}
impl Default for Retry {
    fn default() -> Self {
        Retry { max_attempts: 20, max_lost: 3, max_snoozes: None, backoff: Backoff::default() }
    }
}

/// Until when a job holds its unique key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// Until it is finished, also between retries and snoozes.
    #[default]
    End,
    /// Until its first run begins.
    Start,
}

/// What a push does that meets a job which holds its unique key. It is the new push that says it,
/// whatever the job that is there said at its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// Answers the job that is there.
    #[default]
    Keep,
    /// Gives the job that is there the new payload, kind, needs, priority, group, labels, `run_at` and
    /// `expires_at`, and its attempts start again; its id stays. If it runs, as `Keep`; if it is in
    /// another queue, as `Reject`.
    Replace,
    /// Refuses, and names the job that is there: `unique_conflict`.
    Reject,
}

/// "There is one of these."
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Unique {
    /// Unique within the namespace.
    pub key: UniqueKey,
    /// How long the key is held.
    #[serde(default)]
    pub until: Until,
    /// In any case that long after the push.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Span>,
    /// What this push does if another job holds the key.
    #[serde(default)]
    pub on_conflict: OnConflict,
    /// With [`OnConflict::Replace`]: this push moves `run_at` no further than this beyond the moment at which the wait
    /// began. It is a bound of the push that replaces, and says nothing of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Span>,
}

impl Unique {
    /// When a job may run whose content a push with this key replaces at `now`, if the push wants `wanted`. The wait
    /// began with the job's own push, or with the push that let the finished job live again.
    pub fn bounded(&self, wanted: Moment, began: Moment, now: Moment) -> Moment {
        match self.within {
            Some(within) => wanted.min(began.plus(within).max(now)),
            None => wanted,
        }
    }
}

/// When a job may run first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum When {
    /// At once.
    #[default]
    Now,
    /// At a moment; one in the past is now.
    At(Moment),
    /// So long after the call arrived.
    In(Span),
}

impl When {
    /// The moment it means for a call that arrived at `now`; never before `now`.
    pub fn moment(self, now: Moment) -> Moment {
        match self {
            When::Now => now,
            When::At(at) => at.max(now),
            When::In(span) => now.plus(span),
        }
    }
}

/// Labels of a job.
pub type Labels = BTreeMap<String, String>;

/// A job as it is pushed. `None` is the queue's default, where a queue has one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewJob {
    /// Idempotency: an id that is there is answered with that job. Engines fill in one that is
    /// absent before the rules see the job.
    pub id: Option<JobId>,
    /// Its line.
    pub queue: QueueName,
    /// What a worker library dispatches on; `""` if none.
    pub kind: String,
    /// Any JSON.
    pub payload: Json,
    /// When it may run first.
    pub when: When,
    /// -100..=100, higher first.
    pub priority: i8,
    /// Whom it belongs to, for fair shares.
    pub group: Option<Group>,
    /// `None`: the queue's.
    pub needs: Option<Vec<Need>>,
    /// Its unique key.
    pub unique: Option<Unique>,
    /// `None`: the queue's, else the default.
    pub retry: Option<Retry>,
    /// Deadline of one run; `None`: the queue's, else none.
    pub timeout: Option<Span>,
    /// Not running by then: `cancelled`.
    pub expires_at: Option<Moment>,
    /// How long it is kept when finished; `None`: the queue's, else by its end.
    pub retain: Option<Span>,
    /// For people and filters.
    pub labels: Labels,
    /// Who must have ended before it may run.
    pub after: Vec<After>,
    /// What becomes of it when one of them fails.
    pub on_parent_failure: OnParentFailure,
    /// Its name within the call, for `after` of the others; it is never stored.
    pub reference: Option<Ref>,
    /// What it belongs to; `None`: the flow of its first parent that has one, else, in a settle, that of the settled job.
    pub flow: Option<FlowName>,
    /// The trace that it was pushed in, for its holder to go on with.
    pub traceparent: Option<TraceParent>,
}

impl NewJob {
    /// A job with every field at its default.
    pub fn new(queue: QueueName) -> Self {
        NewJob {
            id: None,
            queue,
            kind: String::new(),
            payload: Json::null(),
            when: When::Now,
            priority: 0,
            group: None,
            needs: None,
            unique: None,
            retry: None,
            timeout: None,
            expires_at: None,
            retain: None,
            labels: Labels::new(),
            after: Vec::new(),
            on_parent_failure: OnParentFailure::default(),
            reference: None,
            flow: None,
            traceparent: None,
        }
    }
}

/// How long a job that ended in `state` is kept, `retain` being what the job or its queue says.
pub fn retain_for(state: JobState, retain: Option<Span>) -> Span {
    retain.unwrap_or(match state {
        JobState::Failed => Span::from_us(RETAIN_FAILED_US),
        _ => Span::from_us(RETAIN_SUCCEEDED_US),
    })
}

/// One run that did not end well.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JobError {
    /// The attempt that ended so.
    pub attempt: u32,
    /// When.
    pub at: Moment,
    /// The text; its end, if it was longer than 8 KiB.
    pub error: String,
    /// `failed`, `lost` or `undelivered`.
    pub outcome: Outcome,
}

/// How a lease ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Done.
    Succeeded,
    /// Not done; an attempt.
    Failed,
    /// Not yet: ask again later; costs no attempt.
    Snoozed,
    /// Given back untouched.
    Released,
    /// Taken back from a holder that stopped heartbeating.
    Lost,
    /// Taken back from a worker that lived and never heard of it.
    Undelivered,
}

impl Outcome {
    /// All of them, in the order of their declaration.
    pub const ALL: [Outcome; 6] = [
        Outcome::Succeeded,
        Outcome::Failed,
        Outcome::Snoozed,
        Outcome::Released,
        Outcome::Lost,
        Outcome::Undelivered,
    ];

    /// The word of the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Succeeded => "succeeded",
            Outcome::Failed => "failed",
            Outcome::Snoozed => "snoozed",
            Outcome::Released => "released",
            Outcome::Lost => "lost",
            Outcome::Undelivered => "undelivered",
        }
    }
}

/// A job as the contract shows it. Reading one is lenient: a field that is not known is ignored, and
/// one that another release does not tell has its default.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JobView {
    /// Its id.
    pub id: JobId,
    /// Its line.
    pub queue: QueueName,
    /// What a worker dispatches on.
    #[serde(default)]
    pub kind: String,
    /// Where it stands.
    pub state: JobState,
    /// Its payload; absent from lists unless asked for.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// Higher first.
    #[serde(default)]
    pub priority: i8,
    /// For fair shares.
    pub group: Option<Group>,
    /// What it needs beside its turn.
    #[serde(default)]
    pub needs: Vec<Need>,
    /// Runs that ended in `succeeded` or `failed`, and the one that is running.
    #[serde(default)]
    pub attempt: u32,
    /// Reaps in a row.
    #[serde(default)]
    pub lost: u32,
    /// Runs that ended in `snoozed`; 0 again when it is retried by hand or its content is replaced.
    #[serde(default)]
    pub snoozed: u32,
    /// When it may run, or might first.
    pub run_at: Moment,
    /// When it was pushed.
    pub created_at: Moment,
    /// When its last run began.
    pub started_at: Option<Moment>,
    /// When it was finished.
    pub finished_at: Option<Moment>,
    /// Not running by then: `cancelled`.
    pub expires_at: Option<Moment>,
    /// What it succeeded with; absent from lists unless asked for.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// The last error.
    pub error: Option<String>,
    /// The last 20 errors, oldest first.
    #[serde(default)]
    pub errors: Vec<JobError>,
    /// What its holder reported last.
    pub progress: Option<Json>,
    /// Its unique key, as it was pushed.
    pub unique: Option<Unique>,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// The trace that it was pushed in; absent from lists unless payloads are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<TraceParent>,
    /// The lease that holds it.
    pub lease: Option<String>,
    /// Whether a cancel waits for its holder.
    #[serde(default)]
    pub cancel_requested: bool,
    /// How it is retried.
    #[serde(default)]
    pub retry: Retry,
    /// Deadline of one run.
    pub timeout: Option<Span>,
    /// How long it is kept when finished; null: by its end.
    pub retain: Option<Span>,
    /// The schedule that made it; null for a job that was pushed.
    #[serde(default)]
    pub schedule: Option<MadeBy>,
    /// What it belongs to.
    #[serde(default)]
    pub flow: Option<FlowName>,
    /// For whom it waits or waited, the first 100.
    #[serde(default)]
    pub after: Vec<ShownParent>,
    /// How many those are in all.
    #[serde(default)]
    pub parents: u32,
    /// How many of them have not ended, or have not told it yet.
    #[serde(default)]
    pub waiting_on: u32,
    /// What becomes of it when one of them fails.
    #[serde(default)]
    pub on_parent_failure: OnParentFailure,
    /// In the answer of a retry: so many of those that waited for it were cancelled by its failure, and stay so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_children: Option<u64>,
}

/// About what a job takes in an answer, by its parts that may be long.
pub fn shown_bytes<'j>(
    texts: impl IntoIterator<Item = Option<&'j Json>>,
    errors: &[JobError],
    labels: &Labels,
) -> usize {
    let texts: usize = texts.into_iter().flatten().map(|json| json.text().len()).sum();
    let errors: usize = errors.iter().map(|one| one.error.len() + 128).sum();
    let labels: usize = labels.iter().map(|(key, value)| key.len() + value.len() + 8).sum();
    1_024 + texts + errors + labels
}

/// A field that is there, as a `null` too: a job without a result answers that, and a list leaves the field out.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(from).map(Some)
}

impl JobView {
    /// See [`shown_bytes`].
    pub fn bytes(&self) -> usize {
        let texts = [self.payload.as_ref(), self.result.as_ref(), self.progress.as_ref()];
        let names: usize = self.after.iter().map(ShownParent::bytes).sum();
        names + shown_bytes(texts, &self.errors, &self.labels)
    }

    /// The same with the parents that it waits for.
    pub fn with_parents(mut self, parents: ShownParents) -> Self {
        self.after = parents.after;
        self.parents = parents.parents;
        self.waiting_on = parents.waiting_on;
        self.on_parent_failure = parents.on_failure;
        self
    }

    /// A job of which no more is known.
    pub fn bare(id: JobId, queue: QueueName, state: JobState, created_at: Moment) -> Self {
        JobView {
            id,
            queue,
            kind: String::new(),
            state,
            payload: None,
            priority: 0,
            group: None,
            needs: Vec::new(),
            attempt: 0,
            lost: 0,
            snoozed: 0,
            run_at: created_at,
            created_at,
            started_at: None,
            finished_at: None,
            expires_at: None,
            result: None,
            error: None,
            errors: Vec::new(),
            progress: None,
            unique: None,
            labels: Labels::new(),
            traceparent: None,
            lease: None,
            cancel_requested: false,
            retry: Retry::default(),
            timeout: None,
            retain: None,
            schedule: None,
            flow: None,
            after: Vec::new(),
            parents: 0,
            waiting_on: 0,
            on_parent_failure: OnParentFailure::default(),
            cancelled_children: None,
        }
    }
}

/// How a job ended, or where it stands: what a caller is shown that waits for its result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ResultView {
    /// The job.
    pub id: JobId,
    /// Where it stands.
    pub state: JobState,
    /// What it succeeded with; null while it is not finished, and without a result.
    pub result: Option<Json>,
    /// Why it failed or was cancelled; null while it is not finished, also between attempts.
    pub error: Option<String>,
    /// When it was finished; null until then.
    pub finished_at: Option<Moment>,
    /// Runs that ended in `succeeded` or `failed`, and the one that is running.
    #[serde(default)]
    pub attempt: u32,
    /// What its holder reported last.
    pub progress: Option<Json>,
    /// Which progress that is, for a wait that ends with another; null if nothing was reported.
    #[serde(default)]
    pub progress_id: Option<ProgressId>,
}

impl From<JobView> for ResultView {
    fn from(job: JobView) -> Self {
        let ended = job.state.is_finished();
        ResultView {
            id: job.id,
            state: job.state,
            result: job.result.filter(|result| ended && !result.is_null()),
            error: job.error.filter(|_| ended),
            finished_at: job.finished_at.filter(|_| ended),
            attempt: job.attempt,
            progress_id: job.progress.as_ref().map(ProgressId::of),
            progress: job.progress,
        }
    }
}

/// What is known of a finished job for as long as its unique key is held: by then the job itself may
/// be gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndedJob {
    /// Its line.
    pub queue: QueueName,
    /// How it ended.
    pub state: JobState,
    /// When it was pushed.
    pub created_at: Moment,
    /// When it was finished.
    pub finished_at: Moment,
}

impl EndedJob {
    /// The job as far as it is known.
    pub fn view(&self, id: JobId) -> JobView {
        let bare = JobView::bare(id, self.queue.clone(), self.state, self.created_at);
        JobView { finished_at: Some(self.finished_at), ..bare }
    }
}

/// A job in the answer of a push.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PushedJob {
    /// The job that is there now.
    #[serde(flatten)]
    pub job: JobView,
    /// It was there already.
    pub duplicate: bool,
    /// It was there already, and got the new content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
    /// `Some(0)`: nobody asked for its queue within the last minute. Never another number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
}

/// The fields of a [`PushedJob`] that are not its job's.
#[derive(Deserialize)]
struct PushedFlags {
    #[serde(default)]
    duplicate: bool,
    #[serde(default)]
    replaced: bool,
    #[serde(default)]
    workers: Option<u32>,
}

/// Read in two passes over the text: a flattened struct is buffered by its parts, and JSON that is
/// kept as text ([`Json`]) cannot be had back from those.
impl<'de> Deserialize<'de> for PushedJob {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = Box::<serde_json::value::RawValue>::deserialize(d)?;
        let flags: PushedFlags = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(PushedJob {
            job: serde_json::from_str(text.get()).map_err(D::Error::custom)?,
            duplicate: flags.duplicate,
            replaced: flags.replaced,
            workers: flags.workers,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_key_moves_its_job_no_further_than_within() {
        let at = Moment::from_us;
        let key = UniqueKey::parse("k").expect("a key");
        let mut unique = Unique {
            key,
            until: Until::Start,
            hold: None,
            on_conflict: OnConflict::Replace,
            within: Some(Span::from_us(100)),
        };
        for (wanted, now, expected, case) in [
            (50, 20, 50, "inside of the bound"),
            (110, 20, 110, "at the bound"),
            (111, 20, 110, "beyond it"),
            (400, 300, 300, "the bound is over: now, never before"),
            (300, 300, 300, "at once"),
        ] {
            assert_eq!(unique.bounded(at(wanted), at(10), at(now)), at(expected), "{case}");
        }
        unique.within = None;
        assert_eq!(unique.bounded(at(400), at(10), at(300)), at(400), "without a bound");
    }

    /// The least that says which job it is.
    const LEAST: &str = r#""id":"a","queue":"q","state":"ready",
        "run_at":"2026-12-01T09:55:00.000000Z","created_at":"2026-12-01T09:55:00.000000Z""#;

    #[test]
    fn a_null_that_is_answered_is_a_null_and_what_is_left_out_is_none() {
        let read = |more: &str| -> JobView {
            serde_json::from_str(&format!("{{{LEAST}{more}}}")).expect("a job")
        };
        let nulls = read(r#","payload":null,"result":null"#);
        assert_eq!((nulls.payload, nulls.result), (Some(Json::null()), Some(Json::null())));
        let none = read("");
        assert_eq!((none.payload, none.result), (None, None));
    }

    #[test]
    fn a_job_of_another_release_is_read() {
        for (case, more) in [
            ("a field is not known", r#""mood":"good","moods":[{"a":1}]"#),
            ("null is absent", r#""group":null,"payload":null"#),
        ] {
            let job: JobView = serde_json::from_str(&format!("{{{LEAST},{more}}}")).expect(case);
            assert_eq!((job.id.as_str(), job.state), ("a", JobState::Ready), "{case}");
            assert_eq!((job.attempt, job.lost, job.priority), (0, 0, 0), "{case}");
            assert_eq!(job.retry, Retry::default(), "{case}");
            assert!(!job.cancel_requested && job.needs.is_empty() && job.labels.is_empty());
        }
    }

    #[test]
    fn what_a_push_answers_can_be_read_back() {
        for (payload, flags) in [
            (r#"{"n":1.50}"#, ""),
            (r#"[1,{"duplicate":true}]"#, r#","replaced":true"#),
            ("\"text\"", r#","workers":0"#),
        ] {
            let text = format!("{{{LEAST},\"payload\":{payload},\"duplicate\":false{flags}}}");
            let one: PushedJob = serde_json::from_str(&text).unwrap();
            let kept = one.job.payload.as_ref().map(Json::text);
            assert_eq!(kept, Some(payload), "it is kept as it came");
            assert_eq!((one.duplicate, one.replaced), (false, flags.contains("replaced")));
            assert_eq!(one.workers, flags.contains("workers").then_some(0));
            let again = serde_json::to_string(&one).unwrap();
            assert_eq!(serde_json::from_str::<PushedJob>(&again).unwrap(), one);
            // Within another answer, and read from a stream.
            let many = format!("[{again},{again}]");
            let read: Vec<PushedJob> = serde_json::from_reader(many.as_bytes()).unwrap();
            assert_eq!(read, [one.clone(), one]);
        }
        for wrong in ["{}", "1", "[]", r#"{"id":"a"}"#] {
            assert!(serde_json::from_str::<PushedJob>(wrong).is_err(), "{wrong}");
        }
    }
}
