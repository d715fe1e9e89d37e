//! A job in its row's form: the shape that many jobs share, and the life that is its own.

use data_encoding::HEXLOWER;

use crate::rows::codec::{Reader, Writer};
use crate::state::{JobKey, Kin, Origin, Parent, PastSettle, Seq};
use tenure_core::flow::OnParentFailure;
use tenure_core::job::{
    Backoff, JobError, JobState, JobView, Labels, MadeBy, Need, OnConflict, Outcome, Retry, Unique,
    Until, retain_for,
};
use tenure_core::lease::Fence;
use tenure_core::names::{
    FlowName, Group, JobId, LimitName, PoolName, QueueName, RequestId, ResourceId, ScheduleId, Tag,
    UniqueKey, WorkerId,
};
use tenure_core::requests::JobFilter;
use tenure_core::secret::Json;
use tenure_core::time::{Moment, Span};
use tenure_core::trace::TraceParent;

/// The common part of many jobs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoredShape {
    pub queue: QueueName,
    pub priority: i8,
    pub group: Option<Group>,
    pub needs: Vec<Need>,
    pub retry: Retry,
    pub timeout: Option<Span>,
    pub retain: Option<Span>,
}

impl StoredShape {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::with_capacity(96);
        w.text(self.queue.as_str());
        w.byte(self.priority as u8);
        w.option(self.group.as_ref(), |w, group| w.text(group.as_str()));
        w.u64(self.needs.len() as u64);
        for need in &self.needs {
            match need {
                Need::Limit { limit, weight, cost } => {
                    w.byte(0);
                    w.text(limit.as_str());
                    w.u32(*weight);
                    w.u32(*cost);
                }
                Need::Pool { pool, tag, prefer, id, count } => {
                    w.byte(1);
                    w.text(pool.as_str());
                    w.option(tag.as_ref(), |w, tag| w.text(tag.as_str()));
                    w.option(prefer.as_ref(), |w, id| w.text(id.as_str()));
                    w.option(id.as_ref(), |w, id| w.text(id.as_str()));
                    w.u32(*count);
                }
            }
        }
        w.u32(self.retry.max_attempts);
        w.u32(self.retry.max_lost);
        match &self.retry.backoff {
            Backoff::Exponential { base, max, jitter } => {
                w.byte(0);
                w.span(*base);
                w.span(*max);
                w.byte(u8::from(*jitter));
            }
            Backoff::Fixed { base, jitter } => {
                w.byte(1);
                w.span(*base);
                w.byte(u8::from(*jitter));
            }
            Backoff::List { delays, jitter } => {
                w.byte(2);
                w.u64(delays.len() as u64);
                delays.iter().for_each(|delay| w.span(*delay));
                w.byte(u8::from(*jitter));
            }
        }
        w.option(self.timeout, |w, span| w.span(span));
        w.option(self.retain, |w, span| w.span(span));
        // Without this field a shape has the bytes of earlier releases, and is shared with theirs.
        if let Some(most) = self.retry.max_snoozes {
            w.u32(most);
        }
        w.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let r = &mut Reader(bytes);
        let mut shape = StoredShape {
            queue: QueueName::known(r.text()?).ok()?,
            priority: r.byte()? as i8,
            group: r.option(|r| Group::known(r.text()?).ok())?,
            needs: r.list(|r| {
                Some(match r.byte()? {
                    0 => Need::Limit {
                        limit: LimitName::known(r.text()?).ok()?,
                        weight: r.u32()?,
                        cost: r.u32()?,
                    },
                    1 => Need::Pool {
                        pool: PoolName::known(r.text()?).ok()?,
                        tag: r.option(|r| Tag::known(r.text()?).ok())?,
                        prefer: r.option(|r| ResourceId::known(r.text()?).ok())?,
                        id: r.option(|r| ResourceId::known(r.text()?).ok())?,
                        count: r.u32()?,
                    },
                    _ => return None,
                })
            })?,
            retry: Retry {
                max_attempts: r.u32()?,
                max_lost: r.u32()?,
                max_snoozes: None,
                backoff: match r.byte()? {
                    0 => Backoff::Exponential {
                        base: r.span()?,
                        max: r.span()?,
                        jitter: r.byte()? != 0,
                    },
                    1 => Backoff::Fixed { base: r.span()?, jitter: r.byte()? != 0 },
                    2 => Backoff::List { delays: r.list(Reader::span)?, jitter: r.byte()? != 0 },
                    _ => return None,
                },
            },
            timeout: r.option(Reader::span)?,
            retain: r.option(Reader::span)?,
        };
        if !r.is_at_end() {
            shape.retry.max_snoozes = Some(r.u32()?);
        }
        Some(shape)
    }
}

/// The lease in a running job's row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoredLease {
    pub fence: Fence,
    pub holder: Option<WorkerId>,
    pub granted_at: Moment,
    pub ttl: Span,
    pub deadline: Option<Moment>,
    pub limits: Vec<(LimitName, u32, u32)>,
    pub resources: Vec<(PoolName, ResourceId)>,
    pub request: Option<RequestId>,
    /// True if its holder is in the process that had the store open.
    pub local: bool,
    /// True if its job had never run before.
    pub first: bool,
}

impl StoredLease {
    /// The row of a lease without a job: a row is text, so these bytes are in hexadecimal.
    pub(crate) fn row(&self) -> String {
        let mut w = Writer::default();
        self.encode(&mut w);
        HEXLOWER.encode(&w.finish())
    }

    /// Parses such a row; `None` if it has another form.
    pub(crate) fn of_row(row: &str) -> Option<Self> {
        let bytes = HEXLOWER.decode(row.as_bytes()).ok()?;
        Self::decode(&mut Reader(&bytes))
    }

    pub(crate) fn encode(&self, w: &mut Writer) {
        w.u64(self.fence.get());
        w.option(self.holder.as_ref(), |w, id| w.text(id.as_str()));
        w.moment(self.granted_at);
        w.span(self.ttl);
        w.option(self.deadline, |w, at| w.moment(at));
        w.u64(self.limits.len() as u64);
        for (limit, weight, cost) in &self.limits {
            w.text(limit.as_str());
            w.u32(*weight);
            w.u32(*cost);
        }
        w.u64(self.resources.len() as u64);
        for (pool, id) in &self.resources {
            w.text(pool.as_str());
            w.text(id.as_str());
        }
        w.option(self.request.as_ref(), |w, id| w.text(id.as_str()));
        w.byte(u8::from(self.local) | u8::from(self.first) << 1);
    }
    pub(crate) fn decode(r: &mut Reader<'_>) -> Option<Self> {
        let mut lease = StoredLease {
            fence: Fence::new(r.u64()?),
            holder: r.option(|r| WorkerId::known(r.text()?).ok())?,
            granted_at: r.moment()?,
            ttl: r.span()?,
            deadline: r.option(Reader::moment)?,
            limits: r.list(|r| Some((LimitName::known(r.text()?).ok()?, r.u32()?, r.u32()?)))?,
            resources: r.list(|r| {
                Some((PoolName::known(r.text()?).ok()?, ResourceId::known(r.text()?).ok()?))
            })?,
            request: r.option(|r| RequestId::known(r.text()?).ok())?,
            local: false,
            first: false,
        };
        // A row of format 2 ends here.
        if !r.is_at_end() {
            let bits = r.byte()?;
            (lease.local, lease.first) = (bits & 1 != 0, bits & 2 != 0);
        }
        Some(lease)
    }
}

/// The part of a job that is its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoredLife {
    pub arrival: u64,
    pub created_at: Moment,
    pub run_at: Moment,
    pub started_at: Option<Moment>,
    pub finished_at: Option<Moment>,
    pub expires_at: Option<Moment>,
    pub wait: Span,
    pub ended: u32,
    pub lost: u32,
    pub released: u32,
    pub undelivered: u32,
    pub snoozed: u32,
    pub ended_unsettled: bool,
    pub cancel_requested: bool,
    pub keeps_place: bool,
    pub unique: Option<JobKey>,
    pub edits: u32,
    pub settles: Vec<PastSettle>,
    pub bytes: u32,
    pub lease: Option<StoredLease>,
    pub origin: Option<Box<Origin>>,
    pub kin: Option<Box<Kin>>,
}

/// The outcome with this byte, which is `outcome as u8`.
pub(crate) fn outcome_of(byte: u8) -> Option<Outcome> {
    Outcome::ALL.get(usize::from(byte)).copied()
}

impl Kin {
    fn encode(&self, w: &mut Writer) {
        w.option(self.flow.as_ref(), |w, flow| w.text(flow.as_str()));
        let run = self.on_failure == OnParentFailure::Run;
        let bits = [run, self.above, self.has_children, self.follows];
        w.byte(bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit)));
        w.u32(self.turn);
        w.u64(self.parents.len() as u64);
        for parent in self.parents.iter() {
            match parent {
                Parent::Job(seq, id) => {
                    w.byte(0);
                    w.u64(seq.get());
                    w.text(id.as_str());
                }
                Parent::Gone(id) => {
                    w.byte(1);
                    w.text(id.as_str());
                }
                Parent::Flow(flow) => {
                    w.byte(2);
                    w.text(flow.as_str());
                }
            }
        }
    }

    fn decode(r: &mut Reader<'_>) -> Option<Kin> {
        let flow = r.option(|r| FlowName::known(r.text()?).ok())?;
        let bits = r.byte()?;
        let turn = r.u32()?;
        let parents = r.list(|r| {
            Some(match r.byte()? {
                0 => Parent::Job(Seq::new(r.u64()?), JobId::known(r.text()?).ok()?),
                1 => Parent::Gone(JobId::known(r.text()?).ok()?),
                2 => Parent::Flow(FlowName::known(r.text()?).ok()?),
                _ => return None,
            })
        })?;
        let on_failure = match bits & 1 {
            0 => OnParentFailure::Cancel,
            _ => OnParentFailure::Run,
        };
        Some(Kin {
            flow,
            parents: parents.into(),
            on_failure,
            turn,
            above: bits & 2 != 0,
            has_children: bits & 4 != 0,
            follows: bits & 8 != 0,
            open: 0,
        })
    }

    /// The parents of an ended job, as its row has them until it has let them all go.
    pub(crate) fn row_of(parents: &std::sync::Arc<[Parent]>) -> String {
        let mut w = Writer::default();
        Kin { parents: parents.clone(), ..Kin::none() }.encode(&mut w);
        HEXLOWER.encode(&w.finish())
    }

    /// Parses such a row; `None` if it has another form.
    pub(crate) fn of_row(row: &str) -> Option<Kin> {
        Kin::decode(&mut Reader(&HEXLOWER.decode(row.as_bytes()).ok()?))
    }
}

impl StoredLife {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::with_capacity(128);
        w.u64(self.arrival);
        w.moment(self.created_at);
        w.moment(self.run_at);
        w.option(self.started_at, |w, at| w.moment(at));
        w.option(self.finished_at, |w, at| w.moment(at));
        w.option(self.expires_at, |w, at| w.moment(at));
        w.span(self.wait);
        w.u32(self.ended);
        w.u32(self.lost);
        w.u32(self.released);
        let bits = [self.cancel_requested, self.keeps_place, self.ended_unsettled];
        w.byte(bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit)));
        w.option(self.unique.as_ref(), |w, unique| {
            w.text(unique.key.as_str());
            w.byte(u8::from(unique.until == Until::Start));
            w.option(unique.hold, |w, span| w.span(span));
            w.byte(match unique.on_conflict {
                OnConflict::Keep => 0,
                OnConflict::Replace => 1,
                OnConflict::Reject => 2,
            });
        });
        w.u64(self.settles.len() as u64);
        for past in &self.settles {
            w.u64(past.fence.get());
            w.byte(past.outcome as u8);
            w.byte(past.state as u8);
            w.option(past.run_at, |w, at| w.moment(at));
        }
        w.u32(self.bytes);
        w.option(self.lease.as_ref(), |w, lease| lease.encode(w));
        w.u32(self.undelivered);
        w.u32(self.edits);
        if let Some(unique) = &self.unique {
            w.option(unique.within, |w, span| w.span(span));
            w.option(unique.began, |w, at| w.moment(at));
        }
        w.option(self.origin.as_ref(), |w, origin| {
            w.text(origin.by.id.as_str());
            w.option(origin.by.at, |w, at| w.moment(at));
            w.u64(origin.era);
            for past in &self.settles {
                w.option(past.next_at, |w, next| w.option(next, |w, at| w.moment(at)));
            }
        });
        w.option(self.kin.as_ref(), |w, kin| kin.encode(w));
        // The row of a job that never snoozed equals that of earlier releases.
        if self.snoozed > 0 {
            w.u32(self.snoozed);
        }
        w.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let r = &mut Reader(bytes);
        let mut life = StoredLife {
            arrival: r.u64()?,
            created_at: r.moment()?,
            run_at: r.moment()?,
            started_at: r.option(Reader::moment)?,
            finished_at: r.option(Reader::moment)?,
            expires_at: r.option(Reader::moment)?,
            wait: r.span()?,
            ended: r.u32()?,
            lost: r.u32()?,
            released: r.u32()?,
            undelivered: 0,
            snoozed: 0,
            edits: 0,
            cancel_requested: r.0.first()? & 1 != 0,
            ended_unsettled: r.0.first()? & 4 != 0,
            keeps_place: r.byte()? & 2 != 0,
            unique: r.option(|r| {
                Some(JobKey::of(Unique {
                    key: UniqueKey::known(r.text()?).ok()?,
                    until: if r.byte()? == 1 { Until::Start } else { Until::End },
                    hold: r.option(Reader::span)?,
                    on_conflict: match r.byte()? {
                        0 => OnConflict::Keep,
                        1 => OnConflict::Replace,
                        2 => OnConflict::Reject,
                        _ => return None,
                    },
                    within: None,
                }))
            })?,
            settles: r.list(|r| {
                Some(PastSettle {
                    fence: Fence::new(r.u64()?),
                    outcome: outcome_of(r.byte()?)?,
                    state: *JobState::ALL.get(usize::from(r.byte()?))?,
                    run_at: r.option(Reader::moment)?,
                    next_at: None,
                })
            })?,
            bytes: r.u32()?,
            lease: r.option(StoredLease::decode)?,
            origin: None,
            kin: None,
        };
        // A row of format 2 ends here.
        if !r.is_at_end() {
            life.undelivered = r.u32()?;
        }
        // A row of format 3 ends here.
        if !r.is_at_end() {
            life.edits = r.u32()?;
            if let Some(key) = &mut life.unique {
                key.unique.within = r.option(Reader::span)?;
                key.began = r.option(Reader::moment)?;
            }
            let settles = &mut life.settles;
            life.origin = r.option(|r| {
                let id = ScheduleId::known(r.text()?).ok()?;
                let by = MadeBy { id, at: r.option(Reader::moment)? };
                let origin = Origin { by, era: r.u64()? };
                for past in settles.iter_mut() {
                    past.next_at = r.option(|r| r.option(Reader::moment))?;
                }
                Some(Box::new(origin))
            })?;
            life.kin = r.option(|r| Kin::decode(r).map(Box::new))?;
        }
        if !r.is_at_end() {
            life.snoozed = r.u32()?;
        }
        Some(life)
    }
}

/// Fields of a job's life for filters, and for the check that its content is unchanged since a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LifeSeen {
    /// The time of the job's end.
    pub finished_at: Option<Moment>,
    /// Number of changes of its kind, its labels or its last error.
    pub edits: u32,
}

/// These fields from the life in a job's row; `None` if it is not of this format.
pub fn seen_in_life(life: &[u8]) -> Option<LifeSeen> {
    let StoredLife { finished_at, edits, .. } = StoredLife::decode(life)?;
    Some(LifeSeen { finished_at, edits })
}

/// True if a filter accepts a job with this life, by its flow and its schedule.
pub fn lets_origin_of_life(filter: &JobFilter, life: &[u8]) -> bool {
    if filter.flow.is_none() && filter.schedule.is_none() {
        return true;
    }
    StoredLife::decode(life).is_some_and(|StoredLife { kin, origin, .. }| {
        let flow = kin.and_then(|kin| kin.flow);
        filter.lets_origin(flow.as_ref(), origin.as_ref().map(|origin| &origin.by.id))
    })
}

/// The end for the row of a job whose progress is unknown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnreadableEnd {
    /// The encoded life with that end.
    pub life: Vec<u8>,
    /// The time until which it is kept, as a failed job.
    pub until: Moment,
}

/// A job with a readable shape but an unreadable life ends as failed, with the error `unreadable`: it may have run or
/// not, so only its owner can decide to run it again. `None` if the shape is unreadable too.
pub fn unreadable_end(shape: &[u8], now: Moment) -> Option<UnreadableEnd> {
    let shape = StoredShape::decode(shape)?;
    let life = StoredLife {
        arrival: 0,
        created_at: now,
        run_at: now,
        started_at: None,
        finished_at: Some(now),
        expires_at: None,
        wait: Span::ZERO,
        ended: 0,
        lost: 0,
        released: 0,
        undelivered: 0,
        snoozed: 0,
        ended_unsettled: false,
        cancel_requested: false,
        keeps_place: false,
        unique: None,
        edits: 0,
        settles: Vec::new(),
        bytes: 0,
        lease: None,
        origin: None,
        kin: None,
    };
    let until = now.plus(retain_for(JobState::Failed, shape.retain));
    Some(UnreadableEnd { life: life.encode(), until })
}

/// The id of a lease: its fence finds it while it lives, and the job's row number afterwards.
pub fn lease_id(fence: Fence, seq: Seq) -> String {
    use std::fmt::Write as _;
    // Made for each grant: full capacity at once, without growing twice.
    let mut id = String::with_capacity(24);
    // Writing to a string cannot fail.
    let _ = write!(id, "{:x}-{:x}", fence.get(), seq.get());
    id
}

/// The fence and the job's row number (0 without a job) of a lease id; `None` for another text.
pub fn parse_lease_id(id: &str) -> Option<(Fence, Seq)> {
    let (fence, seq) = id.split_once('-')?;
    let hex = |text: &str| {
        let canonical = !text.is_empty()
            && text.len() <= 16
            && (text == "0" || !text.starts_with('0'))
            && text.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
        canonical.then(|| u64::from_str_radix(text, 16).ok()).flatten()
    };
    Some((Fence::new(hex(fence)?), Seq::new(hex(seq)?)))
}

/// The part of a waiting job's state that only the machine has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stands {
    /// Its state: a job in line is ready or blocked.
    pub state: JobState,
    /// Number of parents that it waits for.
    pub waiting_on: u32,
}

impl Default for Stands {
    /// For a job that the machine no longer has.
    fn default() -> Self {
        Stands { state: JobState::Ready, waiting_on: 0 }
    }
}

/// The columns of a job's row, from a store.
#[derive(Clone, Debug)]
pub struct StoredJob {
    pub seq: Seq,
    pub id: JobId,
    /// The name that a worker dispatches on.
    pub kind: String,
    /// Its state; `Ready` for every job in line, ready or blocked.
    pub state: JobState,
    /// The bytes of a `StoredShape`.
    pub shape: Vec<u8>,
    /// The bytes of a `StoredLife`.
    pub life: Vec<u8>,
    /// Its payload; `None` if it was not requested.
    pub payload: Option<Json>,
    pub labels: Labels,
    /// The trace of its push; `None` if the payload was not requested.
    pub traceparent: Option<TraceParent>,
    /// The result of a succeeded job.
    pub result: Option<Json>,
    /// The last error, if it has one.
    pub error: Option<String>,
    /// The most recent errors of its runs.
    pub errors: Vec<JobError>,
    /// The last progress report of its holder.
    pub progress: Option<Json>,
}

impl StoredJob {
    /// The view of the contract; `None` if the row is not of this format. `stands` is the machine's part: if a `Ready`
    /// row is blocked, and the number of parents of a dependent job. The row may be newer, so `stands` counts only if
    /// the row has the same state.
    pub fn view(self, stands: Stands) -> Option<JobView> {
        let shape = StoredShape::decode(&self.shape)?;
        let life = StoredLife::decode(&self.life)?;
        let state = match (self.state, stands.state) {
            (JobState::Ready, JobState::Blocked) => JobState::Blocked,
            (state, _) => state,
        };
        // Only a dependent job waits for parents.
        let waiting_on = if state == JobState::Dependent { stands.waiting_on } else { 0 };
        let running = state == JobState::Running;
        let full = self.payload.is_some();
        let parents = life.kin.as_ref().map(|kin| kin.shown(waiting_on)).unwrap_or_default();
        let view = JobView {
            id: self.id,
            queue: shape.queue,
            kind: self.kind,
            state,
            payload: self.payload,
            priority: shape.priority,
            group: shape.group,
            needs: shape.needs,
            attempt: life.ended + u32::from(running),
            lost: life.lost,
            snoozed: life.snoozed,
            run_at: life.run_at,
            created_at: life.created_at,
            started_at: life.started_at,
            finished_at: life.finished_at,
            expires_at: life.expires_at,
            result: full.then(|| self.result.unwrap_or_default()),
            error: self.error,
            errors: self.errors,
            progress: self.progress,
            unique: life.unique.map(|key| key.unique),
            labels: self.labels,
            traceparent: self.traceparent,
            lease: life.lease.map(|lease| lease_id(lease.fence, self.seq)),
            cancel_requested: life.cancel_requested,
            retry: shape.retry,
            timeout: shape.timeout,
            retain: shape.retain,
            schedule: life.origin.map(|origin| origin.by),
            flow: life.kin.and_then(|kin| kin.flow),
            after: Vec::new(),
            parents: 0,
            waiting_on: 0,
            on_parent_failure: OnParentFailure::default(),
            cancelled_children: None,
        };
        Some(view.with_parents(parents))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(lease: Option<StoredLease>) -> StoredLife {
        StoredLife {
            arrival: 7,
            created_at: Moment::from_us(1),
            run_at: Moment::from_us(2),
            started_at: None,
            finished_at: None,
            expires_at: None,
            wait: Span::ZERO,
            ended: 1,
            lost: 2,
            released: 3,
            undelivered: 2,
            snoozed: 0,
            ended_unsettled: true,
            cancel_requested: false,
            keeps_place: true,
            unique: None,
            edits: 4,
            settles: Vec::new(),
            bytes: 9,
            lease,
            origin: Some(Box::new(Origin {
                by: MadeBy { id: ScheduleId::parse("news").unwrap(), at: None },
                era: 4,
            })),
            kin: None,
        }
    }

    fn kin() -> Kin {
        let flow = FlowName::parse("f").unwrap();
        let job = |name| JobId::known(name).unwrap();
        let parents = [
            Parent::Job(Seq::new(8), job("a")),
            Parent::Gone(job("b")),
            Parent::Flow(flow.clone()),
        ];
        Kin {
            flow: Some(flow),
            parents: parents.into(),
            on_failure: OnParentFailure::Run,
            turn: 3,
            above: true,
            has_children: true,
            follows: true,
            open: 0,
        }
    }

    fn lease() -> StoredLease {
        StoredLease {
            fence: Fence::new(17),
            holder: None,
            granted_at: Moment::from_us(3),
            ttl: Span::from_s(30),
            deadline: None,
            limits: Vec::new(),
            resources: Vec::new(),
            request: None,
            local: true,
            first: true,
        }
    }

    #[test]
    fn a_life_is_read_as_it_was_written() {
        let unique = |within: Option<u64>, began: Option<u64>| {
            let key = UniqueKey::parse("k").unwrap();
            let within = within.map(Span::from_us);
            let (until, on_conflict) = (Until::Start, OnConflict::Replace);
            let unique = Unique { key, until, hold: None, on_conflict, within };
            Some(JobKey { unique, began: began.map(Moment::from_us) })
        };
        for life in [
            life(None),
            life(Some(lease())),
            StoredLife { unique: unique(None, None), ..life(None) },
            StoredLife { unique: unique(Some(5), Some(6)), ..life(Some(lease())) },
            StoredLife { kin: Some(Box::new(kin())), ..life(None) },
            StoredLife { snoozed: 300, ..life(Some(lease())) },
        ] {
            assert_eq!(StoredLife::decode(&life.encode()), Some(life));
        }
    }

    #[test]
    fn a_life_of_format_2_is_read() {
        // It ended with its lease, and a lease with its request.
        let pushed = |lease| StoredLife { origin: None, edits: 0, ..life(lease) };
        let bytes = pushed(None).encode();
        let old = StoredLife::decode(&bytes[..bytes.len() - 4]).unwrap();
        assert_eq!(old, StoredLife { undelivered: 0, ..pushed(None) });
        let bytes = pushed(Some(lease())).encode();
        let old = StoredLife::decode(&bytes[..bytes.len() - 5]).unwrap();
        let older = StoredLease { local: false, first: false, ..lease() };
        assert_eq!(old, StoredLife { undelivered: 0, ..pushed(Some(older)) });
    }

    #[test]
    fn a_life_of_format_3_is_read() {
        // It ended with its unacknowledged leases.
        let pushed = StoredLife { origin: None, edits: 0, ..life(Some(lease())) };
        let bytes = pushed.encode();
        let old = StoredLife::decode(&bytes[..bytes.len() - 3]).unwrap();
        assert_eq!(old, pushed);
        let bytes = life(Some(lease())).encode();
        assert_eq!(seen_in_life(&bytes).map(|seen| seen.edits), Some(4));
    }
}
