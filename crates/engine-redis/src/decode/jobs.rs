//! Jobs in replies, shown exactly as `tenure_machine::StoredJob::view` shows them.

use std::fmt;

use serde::Deserialize;
use tenure_core::flow::ShownParent;
use tenure_core::job::{
    Backoff, EndedJob, JobError, JobState, JobView, Need, NewJob, Outcome, PushedJob, ResultView,
    Retry, Unique,
};
use tenure_core::names::{
    Group, JobId, LimitName, PoolName, QueueName, ResourceId, Tag, UniqueKey,
};
use tenure_core::requests::{FailedJob, JobFilter, PushedId};
use tenure_core::secret::Json;
use tenure_core::sentences::StoredNote;
use tenure_core::time::{Moment, Span};

use super::flows::first_parents;
use super::lenient::Maybe;
use super::row::{KinFields, Life, Row};
use super::{Blobs, FromWire, Malformed};
use crate::alphabet::{backoff, conflict, need, outcome, state, until};
use crate::encode::{JobBody, read_body};
use crate::lease_id::{ANONYMOUS, Named};

/// A state by its letter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct State(pub JobState);

impl<'de> Deserialize<'de> for State {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let letter = std::borrow::Cow::<'de, str>::deserialize(d)?;
        let state = state::read(&letter).ok_or_else(|| serde::de::Error::custom("not a state"));
        state.map(State)
    }
}

pub(super) fn moment(at: Maybe<u64>) -> Option<Moment> {
    at.0.map(Moment::from_us)
}

pub(super) fn span(of: Maybe<u64>) -> Option<Span> {
    of.0.map(Span::from_us)
}

/// A need: `[LIMIT, limit, weight, cost]` or `[POOL, pool, tag, prefer, id, count]`.
pub(super) struct NeedReply(pub Need);

impl<'de> Deserialize<'de> for NeedReply {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_seq(NeedVisitor)
    }
}

struct NeedVisitor;

impl<'de> serde::de::Visitor<'de> for NeedVisitor {
    type Value = NeedReply;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a need")
    }
    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<NeedReply, A::Error> {
        fn next<'de, A, T>(seq: &mut A) -> Result<T, A::Error>
        where
            A: serde::de::SeqAccess<'de>,
            T: Deserialize<'de>,
        {
            let short = || serde::de::Error::custom("a need that is too short");
            seq.next_element()?.ok_or_else(short)
        }
        let kind: String = next(&mut seq)?;
        let need = if kind == need::limit {
            let limit: LimitName = next(&mut seq)?;
            Need::Limit { limit, weight: next(&mut seq)?, cost: next(&mut seq)? }
        } else {
            let pool: PoolName = next(&mut seq)?;
            let tag: Maybe<Tag> = next(&mut seq)?;
            let (prefer, id): (Maybe<ResourceId>, Maybe<ResourceId>) =
                (next(&mut seq)?, next(&mut seq)?);
            Need::Pool { pool, tag: tag.0, prefer: prefer.0, id: id.0, count: next(&mut seq)? }
        };
        Ok(NeedReply(need))
    }
}

pub(super) fn needs(needs: Vec<NeedReply>) -> Vec<Need> {
    needs.into_iter().map(|NeedReply(need)| need).collect()
}

/// One number, or the delays of a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Waits {
    One(u64),
    Each(Vec<u64>),
}

/// A retry: `[max_attempts, max_lost, kind, a, b, jitter]`.
#[derive(Deserialize)]
pub(super) struct RetryReply(u32, u32, String, Waits, Maybe<u64>, bool);

impl RetryReply {
    pub(super) fn read(self) -> Result<Retry, Malformed> {
        let RetryReply(max_attempts, max_lost, kind, a, b, jitter) = self;
        let backoff = match (kind.as_str(), a) {
            (backoff::exponential, Waits::One(base)) => Backoff::Exponential {
                base: Span::from_us(base),
                max: Span::from_us(b.0.unwrap_or(base)),
                jitter,
            },
            (backoff::fixed, Waits::One(base)) => {
                Backoff::Fixed { base: Span::from_us(base), jitter }
            }
            (backoff::list, Waits::Each(delays)) => {
                Backoff::List { delays: delays.into_iter().map(Span::from_us).collect(), jitter }
            }
            _ => return Err(Malformed("a retry")),
        };
        Ok(Retry { max_attempts, max_lost, backoff })
    }
}

#[derive(Deserialize)]
pub(super) struct UniqueReply(
    UniqueKey,
    String,
    Maybe<u64>,
    #[serde(default)] String,
    #[serde(default)] Maybe<u64>,
    #[serde(default)] Maybe<u64>,
);

impl UniqueReply {
    /// When the wait began that it bounds, unless that was at its job's push.
    pub(super) fn began(&self) -> Option<Moment> {
        self.5.0.map(Moment::from_us)
    }

    pub(super) fn read(self) -> Unique {
        Unique {
            key: self.0,
            until: until::read(&self.1).unwrap_or_default(),
            hold: span(self.2),
            on_conflict: conflict::read(&self.3).unwrap_or_default(),
            within: span(self.4),
        }
    }
}

/// What many jobs have in common, as the store has it and a reply brings it once: `[queue, priority, group, needs, retry,
/// timeout, retain]`, packed. A retry that is not written is the usual one.
#[derive(Deserialize)]
struct ShapeWords(
    QueueName,
    i8,
    Maybe<Group>,
    Vec<NeedReply>,
    Maybe<RetryReply>,
    Maybe<u64>,
    Maybe<u64>,
);

/// The retry that the words of a shape leave out (`USUAL_RETRY` in `lua/store/texts.lua`). It is of the layout: it stays
/// what it is, whatever the default becomes.
fn usual_retry() -> Retry {
    let (base, max) = (Span::from_us(1_000_000), Span::from_us(3_600_000_000));
    let backoff = Backoff::Exponential { base, max, jitter: true };
    Retry { max_attempts: 20, max_lost: 3, backoff }
}

/// See [`ShapeWords`].
pub(super) struct Shape {
    pub(super) queue: QueueName,
    pub(super) priority: i8,
    pub(super) group: Option<Group>,
    pub(super) needs: Vec<Need>,
    pub(super) retry: Retry,
    pub(super) timeout: Option<Span>,
    pub(super) retain: Option<Span>,
}

impl Shape {
    pub(super) fn read(words: &[u8]) -> Result<Self, Malformed> {
        let ShapeWords(queue, priority, group, wanted, retry, timeout, retain) =
            rmp_serde::from_slice(words).map_err(|_| Malformed("the shape of a job"))?;
        Ok(Shape {
            queue,
            priority,
            group: group.0,
            needs: needs(wanted),
            retry: retry.0.map_or_else(|| Ok(usual_retry()), RetryReply::read)?,
            timeout: span(timeout),
            retain: span(retain),
        })
    }

    /// The limits that it needs, each with its weight, as a lease holds them that booked nothing of a rate.
    pub(super) fn limits_needed(&self) -> Vec<(LimitName, u64, u64)> {
        let limits = self.needs.iter().filter_map(|need| match need {
            Need::Limit { limit, weight, .. } => Some((limit.clone(), u64::from(*weight), 0)),
            Need::Pool { .. } => None,
        });
        limits.collect()
    }
}

/// A job as the store holds it: `[seq, state, row, life, shape, result, progress, errors, parents]`; all but
/// the first two and the shape are texts beside the reply. In the answer of a retry also how many of its children its
/// failure had cancelled.
#[derive(Deserialize)]
pub(crate) struct Stored(
    pub u64,
    State,
    usize,
    Maybe<usize>,
    usize,
    Maybe<usize>,
    Maybe<usize>,
    Maybe<usize>,
    Maybe<usize>,
    #[serde(default)] Maybe<u64>,
);

/// A text that is stored with a job or a resource: a holder's own, or the name of the note that stands in its place.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a text, or the name of a note")]
pub(super) enum Noted {
    Text(String),
    Note((StoredNote,)),
}

impl Noted {
    pub(super) fn text(self) -> String {
        match self {
            Noted::Text(text) => text,
            Noted::Note((note,)) => note.to_string(),
        }
    }
}

impl fmt::Display for Noted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Noted::Text(text) => text,
            Noted::Note((note,)) => note.as_str(),
        })
    }
}

/// One run that did not end well: `[attempt, at, error, outcome]`.
#[derive(Deserialize)]
struct ErrorReply(u32, u64, Noted, String);

/// What of a job is beside its row and its life.
#[derive(Default)]
struct StoredParts {
    result: Option<Json>,
    progress: Option<Json>,
    errors: Vec<JobError>,
    /// The first of them.
    parents: Vec<ShownParent>,
    cancelled_children: Option<u64>,
}

/// The error of a job that ended because it cannot be read, and how the error begins that is shown of
/// one of which a part cannot.
pub(crate) const UNREADABLE: &str = "unreadable";

/// A job as the contract shows it, and whether its body could be read: without it the rest is shown.
type Shown = (JobView, bool);

/// A job as the contract shows it; its payload and its result only if `full`.
fn view(
    (row, life, shape): (Row<'_>, Life, &Shape),
    state: JobState,
    lease: Option<String>,
    parts: StoredParts,
    full: bool,
) -> Result<Shown, Malformed> {
    let body = read_body(row.body);
    let readable = body.is_some();
    let JobBody { kind, payload, labels, traceparent } = body.unwrap_or_default();
    let unread = || Some(format!("{UNREADABLE}: its payload is not what was written"));
    let error = if readable { life.error } else { life.error.or_else(unread) };
    let view = JobView {
        id: JobId::parse(row.id).map_err(|_| Malformed("the id of a job"))?,
        queue: shape.queue.clone(),
        kind,
        state,
        payload: full.then_some(payload),
        priority: shape.priority,
        group: shape.group.clone(),
        needs: shape.needs.clone(),
        attempt: life.ended + u32::from(state == JobState::Running),
        lost: life.lost,
        run_at: Moment::from_us(life.run_at),
        created_at: Moment::from_us(row.created_at),
        started_at: life.started_at.map(Moment::from_us),
        finished_at: life.finished_at.map(Moment::from_us),
        expires_at: life.expires_at.map(Moment::from_us),
        result: full.then(|| parts.result.unwrap_or_default()),
        error,
        errors: parts.errors,
        progress: parts.progress,
        unique: row.unique,
        labels,
        traceparent: traceparent.filter(|_| full),
        lease,
        cancel_requested: life.cancel,
        retry: shape.retry.clone(),
        timeout: shape.timeout,
        retain: shape.retain,
        schedule: row.made_by,
        flow: row.flow,
        after: parts.parents,
        parents: life.kin.as_ref().map_or(0, |kin| kin.parents),
        waiting_on: life.kin.as_ref().map_or(0, |kin| kin.open),
        on_parent_failure: life.kin.as_ref().map(KinFields::on_failure).unwrap_or_default(),
        cancelled_children: parts.cancelled_children,
    };
    Ok((view, readable))
}

/// A job of a row, a life if it has one, and a shape.
fn shown(
    (row, life, shape): (Row<'_>, Option<usize>, usize),
    (seq, state): (u64, JobState),
    parts: StoredParts,
    blobs: &Blobs,
    full: bool,
) -> Result<Shown, Malformed> {
    let shape = blobs.shape(shape)?;
    let life = match life {
        Some(number) => Life::read(blobs.get(number)?, &row, shape)?,
        None => Life::of_new(&row),
    };
    let lease = life.lease.as_ref().map(|lease| {
        let holder = lease.holder.as_deref().unwrap_or(ANONYMOUS);
        let job = Some(row.id);
        blobs.lease_id(Named { fence: lease.fence, seq, holder, job, held: &lease.held })
    });
    let lease = lease.transpose()?;
    view((row, life, shape), state, lease, parts, full)
}

/// A job that is handed out: its body must be whole.
fn whole((job, readable): Shown) -> Result<JobView, Malformed> {
    if readable { Ok(job) } else { Err(Malformed("the body of a job")) }
}

/// A job that was pushed, was ready, and is granted for the first time; and its lease's id, of which
/// all but the job is given.
pub(super) fn first_run(
    blobs: &Blobs,
    shape: usize,
    row: Row<'_>,
    lease: Named<'_>,
    granted_at: u64,
) -> Result<(JobView, String), Malformed> {
    let life = Life { started_at: Some(granted_at), ..Life::of_new(&row) };
    let id = blobs.lease_id(Named { job: Some(row.id), ..lease })?;
    let (shape, state) = (blobs.shape(shape)?, JobState::Running);
    let job = view((row, life, shape), state, Some(id.clone()), StoredParts::default(), true)?;
    Ok((whole(job)?, id))
}

/// The errors of a job, if it has any: the number of the part that has them.
pub(super) fn errors(number: Maybe<usize>, blobs: &Blobs) -> Result<Vec<JobError>, Malformed> {
    let Some(number) = number.0 else { return Ok(Vec::new()) };
    let errors: Vec<ErrorReply> =
        rmp_serde::from_slice(blobs.get(number)?).map_err(|_| Malformed("the errors of a job"))?;
    let read = |ErrorReply(attempt, at, error, outcome)| JobError {
        attempt,
        at: Moment::from_us(at),
        error: error.text(),
        outcome: outcome::read(&outcome).unwrap_or(Outcome::Failed),
    };
    Ok(errors.into_iter().map(read).collect())
}

impl FromWire for Box<JobView> {
    type Wire = Stored;
    fn read(wire: Stored, blobs: &Blobs) -> Result<Self, Malformed> {
        wire.view(blobs, true).map(Box::new)
    }
}

impl Stored {
    /// The job as the contract shows it, as far as it can be read; its payload and its result only if
    /// `full`.
    pub(crate) fn view(self, blobs: &Blobs, full: bool) -> Result<JobView, Malformed> {
        self.shown(blobs, full).map(|(job, _)| job)
    }

    /// The job as its holder gets it.
    pub(crate) fn granted(self, blobs: &Blobs) -> Result<JobView, Malformed> {
        whole(self.shown(blobs, true)?)
    }

    fn shown(self, blobs: &Blobs, full: bool) -> Result<Shown, Malformed> {
        let Stored(
            seq,
            State(state),
            row,
            life,
            shape,
            result,
            progress,
            errors,
            parents,
            cancelled,
        ) = self;
        let row = Row::read(blobs.get(row)?)?;
        let json = |number: Option<usize>| number.map(|number| blobs.json(number)).transpose();
        let parts = StoredParts {
            result: json(result.0.filter(|_| full))?,
            progress: json(progress.0)?,
            errors: self::errors(errors, blobs)?,
            parents: match parents.0 {
                Some(number) => first_parents(blobs.get(number)?)?,
                None => Vec::new(),
            },
            cancelled_children: cancelled.0,
        };
        shown((row, life.0, shape), (seq, state), parts, blobs, full)
    }

    /// The body as it is stored, to be compared when it is changed.
    pub(crate) fn body(&self, blobs: &Blobs) -> Result<String, Malformed> {
        let body = Row::read(blobs.get(self.2)?)?.body;
        std::str::from_utf8(body).map(str::to_owned).map_err(|_| Malformed("the body of a job"))
    }

    /// Whether its content is what the filter asks for: its kind, its labels, its last error.
    pub(crate) fn is_meant(&self, blobs: &Blobs, filter: &JobFilter) -> Result<bool, Malformed> {
        if !filter.asks_for_content() {
            return Ok(true);
        }
        let row = Row::read(blobs.get(self.2)?)?;
        if filter.error.is_some() {
            let error = self.life(&row, blobs)?.error;
            if !filter.lets_error(error.as_deref()) {
                return Ok(false);
            }
        }
        if filter.kind.is_none() && filter.label.is_none() {
            return Ok(true);
        }
        let body = read_body(row.body).ok_or(Malformed("the body of a job"))?;
        Ok(filter.lets_kind(&body.kind) && filter.lets_labels(&body.labels))
    }

    fn life(&self, row: &Row<'_>, blobs: &Blobs) -> Result<Life, Malformed> {
        match self.3.0 {
            Some(number) => Life::read(blobs.get(number)?, row, blobs.shape(self.4)?),
            None => Ok(Life::of_new(row)),
        }
    }

    /// The job as failures are counted.
    pub(crate) fn failed(self, blobs: &Blobs) -> Result<FailedJob, Malformed> {
        let row = Row::read(blobs.get(self.2)?)?;
        let life = self.life(&row, blobs)?;
        let JobBody { kind, .. } = read_body(row.body).ok_or(Malformed("the body of a job"))?;
        Ok(FailedJob {
            queue: blobs.shape(self.4)?.queue.clone(),
            kind,
            error: life.error.unwrap_or_default(),
            finished_at: Moment::from_us(life.finished_at.unwrap_or_default()),
            job: JobId::parse(row.id).map_err(|_| Malformed("the id of a job"))?,
        })
    }
}

/// How a job ended, or where it stands.
#[derive(Deserialize)]
pub(crate) struct ResultReply {
    seq: u64,
    id: JobId,
    b: u8,
    state: State,
    attempt: u32,
    #[serde(default)]
    error: Maybe<String>,
    #[serde(default)]
    finished_at: Maybe<u64>,
    #[serde(default)]
    result: Maybe<usize>,
    #[serde(default)]
    progress: Maybe<usize>,
    #[serde(default)]
    number: Maybe<u64>,
}

/// Which of the names that were asked about nobody is registered with, counted from one.
#[derive(Deserialize)]
pub(crate) struct NotAwaited {
    pub gone: Vec<usize>,
}

/// What a call for a result found.
pub(crate) struct ResultFound {
    /// As callers see it.
    pub view: ResultView,
    /// The row of the job, and the part of the store that has its id.
    pub seq: u64,
    pub b: u8,
    /// The number of the registration, if the call was registered.
    pub registered: Option<u64>,
}

impl ResultFound {
    pub(crate) fn is_finished(&self) -> bool {
        self.view.state.is_finished()
    }
}

impl ResultReply {
    pub(crate) fn read(self, blobs: &Blobs) -> Result<ResultFound, Malformed> {
        let json = |number: Maybe<usize>| number.0.map(|number| blobs.json(number)).transpose();
        let view = ResultView {
            id: self.id,
            state: self.state.0,
            result: json(self.result)?.filter(|result| !result.is_null()),
            error: self.error.0,
            finished_at: moment(self.finished_at),
            attempt: self.attempt,
            progress: json(self.progress)?,
        };
        Ok(ResultFound { view, seq: self.seq, b: self.b, registered: self.number.0 })
    }
}

/// One pushed job.
#[derive(Deserialize)]
pub(crate) struct PushedReply {
    id: JobId,
    #[serde(default)]
    dup: bool,
    #[serde(default)]
    rep: bool,
    #[serde(default)]
    unasked: bool,
    #[serde(default)]
    job: Maybe<Stored>,
    #[serde(default)]
    ended: Maybe<EndedReply>,
    #[serde(default)]
    past: Maybe<PastReply>,
}

/// What is known of a job whose content a push replaced, and whose row is gone: `[queue, state, created_at, run_at]`.
#[derive(Deserialize)]
struct PastReply(QueueName, State, u64, u64);

impl PastReply {
    fn view(self, id: JobId) -> JobView {
        let bare = JobView::bare(id, self.0, self.1.0, Moment::from_us(self.2));
        JobView { run_at: Moment::from_us(self.3), ..bare }
    }
}

/// What is known of a finished job whose row is gone: `[queue, state, created_at, finished_at]`.
#[derive(Deserialize)]
pub(crate) struct EndedReply(QueueName, State, u64, u64);

impl EndedReply {
    pub(crate) fn read(self) -> EndedJob {
        EndedJob {
            queue: self.0,
            state: self.1.0,
            created_at: Moment::from_us(self.2),
            finished_at: Moment::from_us(self.3),
        }
    }
}

/// Pushed jobs as they are shown.
pub(crate) fn pushed_jobs(
    pushed: Vec<PushedReply>,
    blobs: &Blobs,
    full: bool,
) -> Result<Vec<PushedJob>, Malformed> {
    let show = |one: PushedReply| {
        let job = match (one.job.0, one.ended.0, one.past.0) {
            (Some(job), ..) => job.view(blobs, full)?,
            (None, Some(ended), _) => ended.read().view(one.id),
            (None, None, Some(past)) => past.view(one.id),
            (None, None, None) => return Err(Malformed("a pushed job")),
        };
        let workers = one.unasked.then_some(0);
        Ok(PushedJob { job, duplicate: one.dup, replaced: one.rep, workers })
    };
    pushed.into_iter().map(show).collect()
}

/// What a push was answered.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum PushReply {
    /// All were stored, one after the other; or none yet, since some of their ids are known.
    All {
        #[serde(default)]
        unasked: bool,
        #[serde(default)]
        known: bool,
        /// As they were stored, if that was asked for.
        #[serde(default)]
        stored: Option<StoredTogether>,
    },
    /// One answer each.
    Each(Vec<PushedReply>),
}

/// Jobs of one shape that a push stored in the texts that it sent: when, their shape, the state of those that wait, the
/// first row of each text, and the life of each job, if one of them was granted in the same call.
#[derive(Deserialize)]
pub(crate) struct StoredTogether {
    at: u64,
    shape: usize,
    state: State,
    firsts: Vec<u64>,
    #[serde(default)]
    lives: Vec<Maybe<usize>>,
}

/// The texts that went beside a push, and of how many jobs each is.
pub(crate) struct SentTexts(pub Vec<(usize, Vec<u8>)>);

impl StoredTogether {
    /// The jobs of the texts that were sent.
    pub(crate) fn jobs(
        self,
        sent: &SentTexts,
        unasked: bool,
        blobs: &Blobs,
    ) -> Result<Vec<PushedJob>, Malformed> {
        if self.firsts.len() != sent.0.len() {
            return Err(Malformed("the first rows of a push"));
        }
        let (at, mut lives) = (self.at.to_be_bytes(), self.lives.into_iter());
        let mut jobs = Vec::new();
        for (first, (many, text)) in self.firsts.iter().zip(&sent.0) {
            for (seq, row) in (*first..).zip(Row::read_sent(text, *many, &at)?) {
                let life = lives.next().and_then(|life| life.0);
                let state = if life.is_some() { JobState::Running } else { self.state.0 };
                let of = (row?, life, self.shape);
                let (job, _) = shown(of, (seq, state), StoredParts::default(), blobs, true)?;
                let workers = unasked.then_some(0);
                jobs.push(PushedJob { job, duplicate: false, replaced: false, workers });
            }
        }
        Ok(jobs)
    }
}

/// Pushed jobs by their ids alone.
pub(crate) fn pushed_ids(jobs: &[NewJob], reply: PushReply) -> Vec<PushedId> {
    match reply {
        PushReply::All { unasked, .. } => {
            let id = |job: &NewJob| {
                let workers = unasked.then_some(0);
                Some(PushedId { id: job.id.clone()?, duplicate: false, replaced: false, workers })
            };
            jobs.iter().filter_map(id).collect()
        }
        PushReply::Each(each) => {
            let id = |one: PushedReply| PushedId {
                id: one.id,
                duplicate: one.dup,
                replaced: one.rep,
                workers: one.unasked.then_some(0),
            };
            each.into_iter().map(id).collect()
        }
    }
}

/// Jobs in a list.
#[derive(Deserialize)]
pub(crate) struct ListedJobs {
    pub jobs: Vec<Stored>,
    #[serde(default)]
    pub next: Maybe<u64>,
    #[serde(default)]
    pub scanned: usize,
    /// Rows were looked at after the last of `jobs`.
    #[serde(default)]
    pub tail: bool,
    /// What tells whether the content of each changes, if that was asked for.
    #[serde(default)]
    pub seen: Vec<String>,
}

/// How far a step of a call on many jobs came.
#[derive(Deserialize)]
pub(crate) struct ManyReply {
    pub done: u64,
    /// The job in front of which it stopped, since its content is another by now.
    #[serde(default)]
    pub stopped_at: Maybe<u64>,
    /// The first that could not be retried yet, since those who wait for it are being told of its end.
    #[serde(default)]
    pub later: Maybe<u64>,
}

/// A page of failed jobs, those first that are kept longest.
#[derive(Deserialize)]
pub(crate) struct FailuresReply {
    pub jobs: Vec<Stored>,
    /// How many were looked at.
    pub scanned: usize,
    /// Where it goes on, if there are more.
    #[serde(default)]
    pub next: Maybe<String>,
}
