//! Jobs: the content of a push, needs, retries, and the views that callers are shown.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::bounds::{RETAIN_FAILED_US, RETAIN_SUCCEEDED_US};
use crate::names::{
    FlowName, Group, JobId, LimitName, PoolName, QueueName, Ref, ResourceId, ScheduleId, Tag,
    UniqueKey,
};
use crate::parents::{After, OnParentFailure, ShownParent, ShownParents};
use crate::progress::ProgressId;
use crate::secret::Json;
use crate::time::{Moment, Span};
use crate::trace::TraceParent;
use crate::view;
use crate::words;

crate::schemas!(JobState, Need, PushedJob);
crate::schemas!(Retry = view::named("ShownRetry"));
crate::schemas!(Unique = view::named("ShownUnique"));
crate::schemas!(Outcome = view::text());

words! {
    /// The state of a job, in the order of its life.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum JobState {
        /// It waits for other jobs to end.
        Dependent = "dependent",
        /// It waits for a moment: a delay, a retry, a snooze. `tick` makes it ready.
        Scheduled = "scheduled",
        /// It waits for its turn.
        Ready = "ready",
        /// Its turn came, but a need is taken: it waits in that need's line.
        Blocked = "blocked",
        /// A lease holds it.
        Running = "running",
        /// Ended well; kept for `retain`.
        Succeeded = "succeeded",
        /// Ended badly, for good; kept for `retain`.
        Failed = "failed",
        /// Cancelled by a call, or not running at its `expires_at`; kept for `retain`.
        Cancelled = "cancelled",
    }
}

impl JobState {
    /// True if nothing more happens to the job by itself.
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

/// A limit or a pool that a job or a caller needs beside its turn.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Need {
    /// Permits and rate tokens of a limit, at most 1,000,000,000 each.
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
        pool: PoolName,
        /// Only resources with this tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<Tag>,
        /// This one, if it is free; otherwise another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefer: Option<ResourceId>,
        /// This one and no other.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<ResourceId>,
        /// Number of different resources, 1 or more.
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
        /// The first wait; 1 s by default.
        base: Span,
        /// The longest wait; 1 h by default.
        max: Span,
        /// Draws each wait evenly from between half of it and the whole.
        jitter: bool,
    },
    /// Every attempt waits for `base`.
    Fixed {
        base: Span,
        /// Draws each wait evenly from between half of it and the whole.
        jitter: bool,
    },
    /// Attempt n waits for `delays[n-1]`; the last one repeats.
    List {
        /// The waits, 1 to 100.
        delays: Vec<Span>,
        /// Draws each wait evenly from between half of it and the whole.
        jitter: bool,
    },
}

/// The policy for a run that fails and for a holder that dies.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Retry {
    /// Runs that may end in `failed`; 0 = without end.
    pub max_attempts: u32,
    /// Reaps in a row that make it a poison job; 0 = never.
    pub max_lost: u32,
    /// Snoozes that a job may have; the next one makes it `failed`. `None`: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_snoozes: Option<u32>,
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

words! {
    /// The end of a job's hold on its unique key.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Until {
        /// Until the job is finished, also between retries and snoozes.
        #[default]
        End = "end",
        /// Until the first run begins.
        Start = "start",
    }
}

words! {
    /// The effect of a push whose unique key another job already holds. The new push decides, whatever the
    /// push of that job said.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum OnConflict {
        /// Answers with the job that is there.
        #[default]
        Keep = "keep",
        /// Gives the job that is there the new payload, kind, needs, priority, group, labels, `run_at` and `expires_at`,
        /// and its attempts start again; its id stays. A running job is answered as with `Keep`; a job of another queue is
        /// refused as with `Reject`.
        Replace = "replace",
        /// Refuses with `unique_conflict`, and names the job that is there.
        Reject = "reject",
    }
}

/// A unique key: at most one job of the namespace holds it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Unique {
    /// Unique within the namespace, at most 256 bytes.
    pub key: UniqueKey,
    /// How long the key is held.
    #[serde(default)]
    pub until: Until,
    /// The key is held at least this long after the push, also by a finished job; `None`: no longer than `until`.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Span>,
    /// Policy of this push if another job holds the key.
    #[serde(default)]
    pub on_conflict: OnConflict,
    /// With [`OnConflict::Replace`]: this push moves `run_at` no further than this beyond the moment at which the wait
    /// began. It bounds only the push that replaces, not later ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Span>,
}

impl Unique {
    /// The moment at which a job may run after a push with this key replaces its content at `now` and wants `wanted`.
    /// The wait began with the job's own push, or with the push that let the finished job live again.
    pub fn bounded(&self, wanted: Moment, began: Moment, now: Moment) -> Moment {
        match self.within {
            Some(within) => wanted.min(began.plus(within).max(now)),
            None => wanted,
        }
    }
}

/// The earliest start of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum When {
    /// As soon as it is pushed.
    #[default]
    Now,
    /// At a moment; one in the past means now.
    At(Moment),
    /// This long after the call arrived.
    In(Span),
}

impl When {
    /// The moment that it means for a call that arrived at `now`; never before `now`.
    pub fn moment(self, now: Moment) -> Moment {
        match self {
            When::Now => now,
            When::At(at) => at.max(now),
            When::In(span) => now.plus(span),
        }
    }
}

/// Labels of a job, for people and filters: at most 16, with keys of up to 64 bytes and values of up to 256.
pub type Labels = BTreeMap<String, String>;

/// A job as it is pushed. `None` means the queue's default, where a queue has one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewJob {
    /// For repeating the push: an id that is there is answered with that job. Engines fill in an absent one before the
    /// rules see the job.
    pub id: Option<JobId>,
    pub queue: QueueName,
    /// A worker library chooses the handler by it; `""` if none.
    pub kind: String,
    /// Any JSON of at most 256 KiB.
    pub payload: Json,
    pub when: When,
    /// -100..=100; higher goes first.
    pub priority: i8,
    /// Groups of a queue take turns by their shares; jobs without a group are one group.
    pub group: Option<Group>,
    /// `None`: those of the queue.
    pub needs: Option<Vec<Need>>,
    pub unique: Option<Unique>,
    /// `None`: that of the queue, otherwise the default.
    pub retry: Option<Retry>,
    /// Longest time of one run; `None`: that of the queue, otherwise unlimited.
    pub timeout: Option<Span>,
    /// The job is cancelled if it is not running by then; `None`: never.
    pub expires_at: Option<Moment>,
    /// How long the finished job is kept; `None`: as the queue says, otherwise 1 h, or 7 d if it failed.
    pub retain: Option<Span>,
    /// For people and filters.
    pub labels: Labels,
    /// Parents: jobs and flows that must have ended before it may run.
    pub after: Vec<After>,
    /// Applies when one of the parents fails or is cancelled.
    pub on_parent_failure: OnParentFailure,
    /// Its name within the call, for `after` of the others; it is never stored.
    pub reference: Option<Ref>,
    /// Its flow; `None`: that of its first parent that has one, otherwise, in a settle, that of the settled job.
    pub flow: Option<FlowName>,
    /// The trace that it was pushed in; its holder continues that trace.
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

/// How long a job that ended in `state` is kept; `retain` is the value of the job or its queue.
pub fn retain_for(state: JobState, retain: Option<Span>) -> Span {
    retain.unwrap_or(match state {
        JobState::Failed => Span::from_us(RETAIN_FAILED_US),
        _ => Span::from_us(RETAIN_SUCCEEDED_US),
    })
}

words! {
    /// How a lease ended. Stores hold an outcome by its index in `ALL`: a new one comes last.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Outcome {
        /// The run succeeded, and the job is finished.
        Succeeded = "succeeded",
        /// The run failed or reached its deadline; it counts as an attempt.
        Failed = "failed",
        /// The holder asked for a later run; it costs no attempt.
        Snoozed = "snoozed",
        /// The holder gave it back untouched; it costs no attempt.
        Released = "released",
        /// Taken back from a holder that stopped heartbeating.
        Lost = "lost",
        /// Taken back from a live worker that never received the grant.
        Undelivered = "undelivered",
    }
}

view! {
    /// One run that ended badly.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct JobError {
        /// The attempt that ended so, from 1.
        pub attempt: u32,
        /// When that run ended.
        pub at: Moment,
        /// The text of the error; the end of one that was longer than 8 KiB.
        pub error: String,
        /// How the run ended: failed by its holder or its timeout, lost with its worker, or never delivered to one.
        pub outcome: Outcome as view::words(&["failed", "lost", "undelivered"]),
    }

    /// The schedule that made a job, as the job shows it.
    #[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
    pub struct MadeBy {
        /// The id of the schedule.
        pub id: ScheduleId,
        /// The moment of the schedule; null for a run-now.
        pub at: Option<Moment>,
    }

    /// A job as the contract shows it. Reading is lenient: an unknown field is ignored, and a field that another release
    /// does not send has its default.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct JobView as "Job" {
        /// The id of the job.
        pub id: JobId,
        /// The queue in which the job waits.
        pub queue: QueueName,
        /// What a worker library chooses the handler by; "" if none.
        #[serde(default)]
        pub kind: String,
        /// Where the job stands.
        pub state: JobState,
        /// What the handler gets. Lists leave it out unless full=true.
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        pub payload: Option<Json>,
        /// Jobs with a higher priority go first: -100 to 100.
        #[serde(default)]
        pub priority: i8,
        /// The group in which the job takes turns; null if none.
        pub group: Option<Group>,
        /// Limits and pools that the job holds while it runs, as copied at the push.
        #[serde(default)]
        pub needs: Vec<Need>,
        /// Runs that ended in succeeded or failed, and the one that is running; 0 before the first.
        #[serde(default)]
        pub attempt: u32,
        /// How many times in a row the worker was lost; any accepted settle sets it to 0.
        #[serde(default)]
        pub lost: u32,
        /// How many of its runs ended in snoozed; 0 again when it is retried or replaced.
        #[serde(default)]
        pub snoozed: u32,
        /// The moment before which the job does not run, or at which it became due.
        pub run_at: Moment,
        /// When the job was pushed.
        pub created_at: Moment,
        /// When its last run began; null before the first.
        pub started_at: Option<Moment>,
        /// When the job ended; null until then.
        pub finished_at: Option<Moment>,
        /// The job is cancelled if it is not running by this moment; null if never.
        pub expires_at: Option<Moment>,
        /// What the job succeeded with; null until then. Lists leave it out unless full=true.
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        pub result: Option<Json>,
        /// The last error, at most 8 KiB; null if there was none.
        pub error: Option<String>,
        /// The last 20 errors, oldest first.
        #[serde(default)]
        pub errors: Vec<JobError>,
        /// What its holder reported last, at most 4 KiB; null if nothing.
        pub progress: Option<Json>,
        /// The unique key, as it was pushed; null if none.
        pub unique: Option<Unique>,
        /// Words for people and filters.
        #[serde(default)]
        pub labels: Labels,
        /// The W3C trace context in which the job was pushed; lists show it with full=true alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub traceparent: Option<TraceParent>,
        /// The id of the lease that holds the job; null unless it runs.
        pub lease: Option<String>,
        /// Whether a cancel waits until its holder hears of it.
        #[serde(default)]
        pub cancel_requested: bool,
        /// What happens after a failed or lost run, as copied at the push.
        #[serde(default)]
        pub retry: Retry,
        /// Longest time of one run, as copied at the push; null if none.
        pub timeout: Option<Span>,
        /// How long the finished job is kept, as copied at the push; null decides by its end.
        pub retain: Option<Span>,
        /// The schedule that made the job; null for a job that was pushed.
        #[serde(default)]
        pub schedule: Option<MadeBy>,
        /// The flow to which the job belongs.
        #[serde(default)]
        pub flow: Option<FlowName>,
        /// The first 100 parents: ids of jobs, and flows.
        #[serde(default)]
        pub after: Vec<ShownParent>,
        /// How many parents it has.
        #[serde(default)]
        pub parents: u32,
        /// How many of its parents have not ended, or have not been told to it yet.
        #[serde(default)]
        pub waiting_on: u32,
        /// What becomes of it when a parent fails or is cancelled.
        #[serde(default)]
        pub on_parent_failure: OnParentFailure,
        /// Only in the answer of a retry: how many jobs the failure of this one had cancelled. They stay cancelled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub cancelled_children: Option<u64>,
    }
}

/// Estimated size of a job in an answer, by the parts that may be long.
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

/// A field that is present is `Some`, even if it is null: a job without a result has a null, and a list leaves the
/// field out.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(from).map(Some)
}

impl JobView {
    /// Estimated size in an answer; see [`shown_bytes`].
    pub fn bytes(&self) -> usize {
        let texts = [self.payload.as_ref(), self.result.as_ref(), self.progress.as_ref()];
        let names: usize = self.after.iter().map(ShownParent::bytes).sum();
        names + shown_bytes(texts, &self.errors, &self.labels)
    }

    /// The same job with its parents filled in.
    pub fn with_parents(mut self, parents: ShownParents) -> Self {
        self.after = parents.after;
        self.parents = parents.parents;
        self.waiting_on = parents.waiting_on;
        self.on_parent_failure = parents.on_failure;
        self
    }

    /// A job with every unknown field at its default.
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

view! {
    /// The result of a job for a caller that waits for it: its end, or its present state.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct ResultView as "Result" {
        /// The id of the job.
        pub id: JobId,
        /// Where the job stands; look at it first.
        pub state: JobState,
        /// What the job succeeded with; null until then.
        pub result: Option<Json>,
        /// Why it failed or was cancelled; null until it has ended, also between attempts.
        pub error: Option<String>,
        /// When the job ended; null until then.
        pub finished_at: Option<Moment>,
        /// Runs that ended in succeeded or failed, and the one that is running.
        #[serde(default)]
        pub attempt: u32,
        /// What its holder reported last; null if nothing.
        pub progress: Option<Json>,
        /// Which progress that is: given back as seen, the wait ends with another one, too; null if nothing was
        /// reported.
        #[serde(default)]
        pub progress_id: Option<ProgressId>,
    }
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

/// The facts about a finished job that are kept as long as its unique key is held: the job itself may be gone before
/// that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndedJob {
    pub queue: QueueName,
    /// The finished state in which it ended.
    pub state: JobState,
    pub created_at: Moment,
    pub finished_at: Moment,
}

impl EndedJob {
    /// The job, with only these facts filled in.
    pub fn view(&self, id: JobId) -> JobView {
        let bare = JobView::bare(id, self.queue.clone(), self.state, self.created_at);
        JobView { finished_at: Some(self.finished_at), ..bare }
    }
}

/// A job in the answer to a push.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PushedJob {
    /// The job that is there now.
    #[serde(flatten)]
    pub job: JobView,
    /// The job was there before the push.
    pub duplicate: bool,
    /// The job was there before, and got the new content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
    /// `Some(0)`: nobody asked for its queue within the last minute. Never another number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
}

/// The fields of a [`PushedJob`] that its job does not have.
#[derive(Deserialize)]
struct PushedFlags {
    #[serde(default)]
    duplicate: bool,
    #[serde(default)]
    replaced: bool,
    #[serde(default)]
    workers: Option<u32>,
}

/// Reads the text twice: serde buffers a flattened struct in parts, and JSON that is kept as text
/// ([`Json`]) cannot be read from those.
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

    /// The required fields of a job.
    const LEAST: &str = r#""id":"a","queue":"q","state":"ready",
        "run_at":"2026-12-01T09:55:00.000000Z","created_at":"2026-12-01T09:55:00.000000Z""#;

    #[test]
    fn an_answered_null_is_a_null_and_a_missing_field_is_none() {
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
            // Inside another answer, and from a stream.
            let many = format!("[{again},{again}]");
            let read: Vec<PushedJob> = serde_json::from_reader(many.as_bytes()).unwrap();
            assert_eq!(read, [one.clone(), one]);
        }
        for wrong in ["{}", "1", "[]", r#"{"id":"a"}"#] {
            assert!(serde_json::from_str::<PushedJob>(wrong).is_err(), "{wrong}");
        }
    }
}
