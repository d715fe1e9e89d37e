//! Schedules: one of them, a whole set of an owner, and calls on one.

use super::fields::{self, Fields, ObjectShape, Value, document, is_empty};
use super::jobs::{QUEUE_DEFAULT, kind, labels, payload, priority};
use super::lines::{LineRead, read_line, read_lines};
use super::needs::needs;
use super::query::sync_schedules_query;
use super::retry::retry;
use super::times::body_later_optional;
use super::timing::{cron, every, jitter, timing, zone};
use crate::at::At;
use crate::bounded::{CATCH_UP_COUNT, SetIds, Spans};
use crate::bounds::{CATCH_UP_DEFAULT, ITEMS_MAX};
use crate::json::Kind;
use crate::names::{Group, JobId, Owner, QueueName, ScheduleId};
use crate::refusal::Refusal;
use crate::requests::{PatchSchedule, PauseSchedule, PutSchedule, RunScheduleNow, SyncSchedules};
use crate::schedule::{CatchUp, Overlap, ScheduleSettings, ScheduledJob};
use crate::sentences::{BodyRefusal, SetPlace, cut};

/// Fields of a schedule's answer that no caller may set.
const ANSWERED: &[&str] = &[
    "summary",
    "next_at",
    "next",
    "moved",
    "paused",
    "paused_until",
    "ended",
    "unfinished",
    "last",
    "last_ended",
    "last_succeeded_at",
    "fired",
    "skipped",
    "missed",
    "created_at",
    "changed_at",
];
static SCHEDULE: ObjectShape<12> = ObjectShape {
    what: "a schedule",
    fields: [
        "id",
        "owner",
        "cron",
        "zone",
        "every",
        "starts_at",
        "ends_at",
        "jitter",
        "overlap",
        "catch_up",
        "catch_up_max",
        "job",
    ],
    answered: ANSWERED,
};
static JOB: ObjectShape<11> = ObjectShape {
    what: "the job of a schedule",
    fields: [
        "queue",
        "kind",
        "payload",
        "priority",
        "group",
        "needs",
        "retry",
        "timeout",
        "retain",
        "expires_in",
        "labels",
    ],
    answered: &[],
};
static RUN_NOW: ObjectShape<1> = ObjectShape { what: "this call", fields: ["id"], answered: &[] };

const OVERLAPS: [(&str, Overlap); 3] =
    [("skip", Overlap::Skip), ("queue", Overlap::Queue), ("allow", Overlap::Allow)];
const CATCH_UPS: [(&str, CatchUp); 3] =
    [("none", CatchUp::None), ("last", CatchUp::Last), ("all", CatchUp::All)];

/// An example of a schedule's job, for a body without one.
const JOB_FORM: &str = "\"job\": {\"queue\": \"news\"}";

/// A schedule's id; the pointer of a refusal is `/path/id`.
pub fn schedule_path(id: &str) -> Result<ScheduleId, Refusal> {
    ScheduleId::known(id).map_err(|no| no.at("/path/id"))
}

/// Reads the body of `PUT /v1/schedules/{id}`: all settings; an absent one has its default.
pub fn put_schedule(id: &str, body: &[u8]) -> Result<PutSchedule, Refusal> {
    let schedule = ScheduleId::parse(id).map_err(|no| no.at("/path/id"))?;
    let document = document(body)?;
    let fields = Value::body(&document).fields(&SCHEDULE)?;
    same_id(&fields, &schedule)?;
    Ok(PutSchedule { schedule, settings: Box::new(settings(&fields)?), plan: None })
}

/// Reads the body of `PATCH /v1/schedules/{id}`: the named settings; `null` resets one to its default, and a `job`
/// replaces the whole job.
pub fn patch_schedule(id: &str, body: &[u8]) -> Result<PatchSchedule, Refusal> {
    let schedule = schedule_path(id)?;
    let document = document(body)?;
    let fields = Value::body(&document).fields(&SCHEDULE)?;
    same_id(&fields, &schedule)?;
    fields.not_both("cron", "every")?;
    fields.not_both("zone", "every")?;
    Ok(PatchSchedule {
        owner: fields.patch("owner", |v| v.parsed(Owner::parse))?,
        cron: fields.patch("cron", cron)?,
        zone: fields.patch("zone", zone)?,
        every: fields.patch("every", every)?,
        starts_at: fields.patch("starts_at", |v| v.moment())?,
        ends_at: fields.patch("ends_at", |v| v.moment())?,
        jitter: fields.patch("jitter", jitter)?,
        overlap: fields.patch("overlap", overlap)?,
        catch_up: fields.patch("catch_up", catch_up)?,
        catch_up_max: fields.patch("catch_up_max", |v| v.integer(CATCH_UP_COUNT))?,
        job: fields.patch("job", |text| job(text).map(Box::new))?,
        ..PatchSchedule::new(schedule)
    })
}

/// Reads the body of `POST /v1/schedules/{id}/pause`: nothing, or `{"for"|"until"}`.
pub fn pause_schedule(id: &str, body: &[u8]) -> Result<PauseSchedule, Refusal> {
    Ok(PauseSchedule { schedule: schedule_path(id)?, until: body_later_optional(body)? })
}

/// Reads the body of `POST /v1/schedules/{id}/run-now`: nothing, or `{"id"}`.
pub fn run_schedule_now(id: &str, body: &[u8]) -> Result<RunScheduleNow, Refusal> {
    let schedule = schedule_path(id)?;
    if is_empty(body) {
        return Ok(RunScheduleNow { schedule, id: None });
    }
    let document = document(body)?;
    let fields = Value::body(&document).fields(&RUN_NOW)?;
    Ok(RunScheduleNow { schedule, id: fields.take("id", |v| v.parsed(JobId::parse))? })
}

/// Reads `PUT /v1/schedules?owner=O` with an array of at most 1,000, the whole set of the owner.
pub fn sync_schedules<K: AsRef<str>, V: AsRef<str>>(
    query: &[(K, V)],
    body: &[u8],
) -> Result<SyncSchedules, Refusal> {
    let mut request = sync_schedules_from_lines(query, Vec::new())?;
    let document = document(body)?;
    let body = Value::body(&document);
    if body.node.kind() != Kind::Array {
        return Err(body.refuse(BodyRefusal::NotASet { noun: body.node.kind().noun().into() }));
    }
    let owner = request.owner.clone();
    let (mut ids, mut index) = (SetIds::default(), 0);
    request.schedules = body.each_indexed(0..=ITEMS_MAX, |item| {
        let one = schedule_of(item, &owner)?;
        ids.once(one.0.clone(), SetPlace::Item(index), &At::Member(&item.at, "id"))?;
        index += 1;
        Ok(one)
    })?;
    Ok(request)
}

/// The same with a set whose lines [`ScheduleLines`] has read one by one.
pub fn sync_schedules_from_lines<K: AsRef<str>, V: AsRef<str>>(
    query: &[(K, V)],
    schedules: Vec<(ScheduleId, ScheduleSettings)>,
) -> Result<SyncSchedules, Refusal> {
    let (owner, meant, version) = sync_schedules_query(query)?;
    Ok(SyncSchedules { owner, schedules, meant, version })
}

/// Reads an owner's set in NDJSON, and keeps its ids to refuse repeats.
#[derive(Debug)]
pub struct ScheduleLines {
    owner: Owner,
    ids: SetIds<ScheduleId>,
}

impl ScheduleLines {
    /// Begins the set of this owner, before its first line.
    pub fn of(owner: Owner) -> Self {
        ScheduleLines { owner, ids: SetIds::default() }
    }

    /// Reads one numbered line of at most 512 KiB; a refusal has the number.
    pub fn read(
        &mut self,
        line: (usize, LineRead<'_>),
    ) -> Result<(ScheduleId, ScheduleSettings), Refusal> {
        read_line(line, |number, line| self.read_whole(number, line))
    }

    fn read_whole(
        &mut self,
        number: usize,
        line: &[u8],
    ) -> Result<(ScheduleId, ScheduleSettings), Refusal> {
        let document = fields::line(line)?;
        let one = schedule_of(Value::body(&document), &self.owner)?;
        self.ids.once(one.0.clone(), SetPlace::Line(number), &At::Member(&At::Body, "id"))?;
        Ok(one)
    }

    /// Reads a whole body. Blank lines are counted and skipped.
    pub fn read_all(mut self, body: &[u8]) -> Result<Vec<(ScheduleId, ScheduleSettings)>, Refusal> {
        read_lines(body, |line| self.read(line))
    }
}

/// Reads a schedule of a set: its id, and its settings with the owner of the set.
fn schedule_of(
    value: Value<'_, '_>,
    owner: &Owner,
) -> Result<(ScheduleId, ScheduleSettings), Refusal> {
    let fields = value.fields(&SCHEDULE)?;
    let id = fields.required("id", "\"id\": \"news-42\"")?.parsed(ScheduleId::parse)?;
    let mut settings = settings(&fields)?;
    match settings.owner {
        Some(other) if other != *owner => {
            let case = BodyRefusal::NotTheOwner { shown: cut(other.as_str()) };
            Err(fields.conflict("owner", case))
        }
        _ => {
            settings.owner = Some(owner.clone());
            Ok((id, settings))
        }
    }
}

/// Refuses an `id` in the body that differs from that of the path.
fn same_id<const N: usize>(fields: &Fields<'_, '_, N>, id: &ScheduleId) -> Result<(), Refusal> {
    match fields.take("id", |v| v.parsed(ScheduleId::parse))? {
        Some(other) if other != *id => {
            let case = BodyRefusal::NotTheIdOfThePath { shown: cut(other.as_str()) };
            Err(fields.conflict("id", case))
        }
        _ => Ok(()),
    }
}

fn settings<const N: usize>(fields: &Fields<'_, '_, N>) -> Result<ScheduleSettings, Refusal> {
    let owner = fields.take("owner", |v| v.parsed(Owner::parse))?;
    let mut timing = timing(fields)?;
    timing.jitter = fields.take("jitter", jitter)?.unwrap_or_default();
    if timing.cron.is_some() && timing.zone.is_none() {
        timing.zone = Some("UTC".to_owned());
    }
    let most = fields.take("catch_up_max", |v| v.integer(CATCH_UP_COUNT))?;
    Ok(ScheduleSettings {
        owner,
        timing,
        overlap: fields.take("overlap", overlap)?.unwrap_or_default(),
        catch_up: fields.take("catch_up", catch_up)?.unwrap_or_default(),
        catch_up_max: most.unwrap_or(CATCH_UP_DEFAULT),
        job: job(fields.required("job", JOB_FORM)?)?,
    })
}

fn overlap(value: Value<'_, '_>) -> Result<Overlap, Refusal> {
    value.one_of("a way to overlap", &OVERLAPS)
}

fn catch_up(value: Value<'_, '_>) -> Result<CatchUp, Refusal> {
    value.one_of("a way to catch up", &CATCH_UPS)
}

fn job(value: Value<'_, '_>) -> Result<ScheduledJob, Refusal> {
    let fields = value.fields(&JOB)?;
    let queue = match fields.take("queue", |v| v.parsed(QueueName::parse))? {
        Some(queue) => queue,
        None => QueueName::parse(QUEUE_DEFAULT)?,
    };
    Ok(ScheduledJob {
        queue,
        kind: fields.take("kind", |v| v.parsed(kind))?.unwrap_or_default(),
        payload: Some(fields.take("payload", payload)?.unwrap_or_default()),
        priority: fields.take("priority", priority)?.unwrap_or_default(),
        group: fields.take("group", |v| v.parsed(Group::parse))?,
        needs: fields.take("needs", |v| needs(v, 0))?,
        retry: fields.take("retry", retry)?,
        timeout: fields.take("timeout", |v| v.span(Spans::SOME))?,
        retain: fields.take("retain", |v| v.span(Spans::ANY))?,
        expires_in: fields.take("expires_in", |v| v.span(Spans::SOME))?,
        labels: fields.take("labels", labels)?.unwrap_or_default(),
    })
}
