//! Schedules: one of them, a whole set of an owner, and calls on one.

use serde::ser::SerializeMap;

use super::fields::{self, Fields, Value, document};
use super::forms::{ANY_TEXT, Alias, Boxed, Content, Duration, Name, Time, Whole, Words};
use super::jobs::{JOB_KIND, LabelsForm, QUEUE_DEFAULT};
use super::lines::{LineRead, read_line, read_lines};
use super::needs::Needs;
use super::object::{AsBody, Call, Part, SentBody, Variant, bounded_bodies, object};
use super::parameters::Queried;
use super::raw_call::{EncodedBody, http_calls};
use super::retry::RetryFields;
use super::timing::{CRON, Interval, TimingPart};
use crate::at::At;
use crate::bounded::{Bounded, CATCH_UP_COUNT, PRIORITY, SetIds, Spans};
use crate::bounds::{CATCH_UP_DEFAULT, ITEMS_MAX, PAYLOAD_BYTES_MAX};
use crate::job::{Labels, Need, Retry};
use crate::json::Kind;
use crate::names::{Group, JobId, Owner, QueueName, ScheduleId};
use crate::refusal::Refusal;
use crate::requests::{
    DeleteSchedule, GetSchedule, ListSchedules, PatchSchedule, PauseSchedule, PutSchedule,
    ResumeSchedule, RunScheduleNow, SyncSchedules,
};
use crate::schedule::{CatchUp, Overlap, ScheduleSettings, ScheduleView, ScheduledJob};
use crate::secret::Json;
use crate::sentences::{BodyRefusal, SetPlace, cut};
use crate::time::{Moment, Span};
use crate::words::Worded as _;

object! {
    ScheduleFields "a schedule" "ScheduleSettings"
    answered ScheduleView;
    patch PatchSchedule(schedule: ScheduleId) as "SchedulePatch" { plan: None };
    variants TIMINGS;
    fields {
        owner: Owner = Name(Owner::parse, Some(Owner::BYTES_MAX)), nullable,
            "The set from outside to which the schedule belongs, for a sync; null is none.";
        cron: String = CRON, nullable,
            "A cron expression of five fields, or six with seconds first, at most 1,024 bytes. Excludes every.";
        zone: String = ANY_TEXT, nullable,
            "The IANA zone in which cron is read, such as Europe/Berlin; UTC if absent. Goes with cron alone.";
        every: Span = Interval, nullable, "The interval: whole seconds from 1s to 3650d. Excludes cron and zone.";
        starts_at: Moment = Time, nullable, "No moment lies before it, and an interval counts from it; null is no start.";
        ends_at: Moment = Time, nullable, "No moment lies after it; null is no end.";
        jitter: Span = Duration(Spans::JITTER), optional, "By how much a moment is late at most, 0s to 1d; 0s by default.";
        overlap: Overlap = Alias("Overlap", Words("a way to overlap", Overlap::WORDS)), optional,
            "What becomes of a moment while a job of this schedule is unfinished: skip (the default), queue, or allow.";
        catch_up: CatchUp = Alias("CatchUp", Words("a way to catch up", CatchUp::WORDS)), optional,
            "Which of several due moments fire, as after an outage: none, last (the default), or all.";
        catch_up_max: u32 = Whole(CATCH_UP_COUNT), optional,
            "With catch_up all, how many moments fire at most, 1 to 1,000; 100 by default.";
        job: Box<ScheduledJob> = Boxed(ScheduledJobFields), required, "The job that each moment makes.";
    }
    others {
        id: ScheduleId = Name(ScheduleId::parse, Some(ScheduleId::BYTES_MAX)), optional,
            "The id of the schedule, 1 to 200 bytes. A set must state it, each one once; otherwise the path names it, and a body may repeat it.";
    }
}
const TIMINGS: &[Variant] = &[
    Variant { name: "CronTiming", own: &["cron", "zone"], required: &["cron"], says: None },
    Variant { name: "IntervalTiming", own: &["every"], required: &["every"], says: None },
];

object! {
    ScheduledJobFields "the job of a schedule" "ScheduledJob"
    whole ScheduledJob;
    fields {
        queue: QueueName = Name(QueueName::parse, Some(QueueName::BYTES_MAX)), or QueueName::parse(QUEUE_DEFAULT)?,
            "The queue of the job; \"default\" if absent.";
        kind: String = JOB_KIND, default,
            "What a worker library chooses the handler by, at most 128 bytes; \"\" if absent.";
        priority: i8 = Whole(PRIORITY), default,
            "Jobs with a higher priority go first: -100 to 100, 0 if absent.";
        group: Group = Name(Group::parse, Some(Group::BYTES_MAX)), nullable,
            "The group in which the job takes turns; null is none.";
        needs: Vec<Need> = Needs(0), nullable,
            "Limits and pools that the job holds while it runs; null is those of its queue when the moment fires.";
        retry: Retry = RetryFields, nullable,
            "What happens after a failed or lost run; null is that of its queue when the moment fires.";
        timeout: Span = Duration(Spans::SOME), nullable,
            "Longest time of one run; null is that of its queue when the moment fires.";
        retain: Span = Duration(Spans::ANY), nullable,
            "How long the finished job is kept; null is that of its queue when the moment fires.";
        expires_in: Span = Duration(Spans::SOME), nullable,
            "The job is cancelled if it is not running this long after its moment, more than 0s; null is never.";
        labels: Labels = LabelsForm, default, "Words for people and filters, as for a pushed job.";
    }
    part payload: ScheduledPayload {
        payload: Json = Content(PAYLOAD_BYTES_MAX), optional,
            "What the handler gets: any JSON, at most 256 KiB. Lists leave it out unless full=true.";
    }
}

object! {
    RunNowFields "this call" "RunNow"
    call RunScheduleNow(schedule: ScheduleId);
    fields {
        id: JobId = Name(JobId::parse, Some(JobId::BYTES_MAX)), optional,
            "The id of the job that is made, by which the call can be repeated; made by the server if absent.";
    }
}

/// The payload of a schedule's job, which only lists leave out.
struct ScheduledPayload;

impl Part<Option<Json>> for ScheduledPayload {
    fn read<const N: usize>(&self, fields: &Fields<'_, '_, N>) -> Result<Option<Json>, Refusal> {
        Ok(Some(fields.read(&ScheduledJobFields::payload())?.unwrap_or_default()))
    }
    fn check(&self, value: &Option<Json>, of: &At<'_>) -> Result<(), Refusal> {
        ScheduledJobFields::payload().check_given(value, of)
    }
    fn write<M: SerializeMap>(&self, value: &Option<Json>, map: &mut M) -> Result<(), M::Error> {
        ScheduledJobFields::payload().put_given(value, map)
    }
}

/// The settings of a schedule: a timing takes several of its fields.
impl Call for ScheduleSettings {
    type Keys = ();
    const SCHEMA: &'static str = "ScheduleSettings";
    fn of_value(keys: (), value: Value<'_, '_>) -> Result<Self, Refusal> {
        Self::of_fields(keys, &value.fields(ScheduleFields::SHAPE)?)
    }
    fn of_fields<const N: usize>((): (), fields: &Fields<'_, '_, N>) -> Result<Self, Refusal> {
        let owner = fields.read(&ScheduleFields::owner())?;
        let timing = TimingPart { jitter: true }.read(fields)?;
        let most = fields.read(&ScheduleFields::catch_up_max())?;
        let example = "\"job\": {\"queue\": \"news\"}";
        Ok(ScheduleSettings {
            owner,
            timing,
            overlap: fields.read(&ScheduleFields::overlap())?.unwrap_or_default(),
            catch_up: fields.read(&ScheduleFields::catch_up())?.unwrap_or_default(),
            catch_up_max: most.unwrap_or(CATCH_UP_DEFAULT),
            job: *fields.read_required(&ScheduleFields::job(), example)?,
        })
    }
}

impl SentBody for ScheduleSettings {
    fn check_body(&self, at: &At<'_>) -> Result<(), Refusal> {
        TimingPart { jitter: true }.check(&self.timing, at)?;
        ScheduleFields::catch_up_max().check(&self.catch_up_max, at)?;
        self.job.check_body(&At::Member(at, "job"))
    }
    fn write_members<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        ScheduleFields::owner().put_given(&self.owner, map)?;
        TimingPart { jitter: true }.write(&self.timing, map)?;
        ScheduleFields::overlap().put(&self.overlap, map)?;
        ScheduleFields::catch_up().put(&self.catch_up, map)?;
        ScheduleFields::catch_up_max().put(&self.catch_up_max, map)?;
        map.serialize_entry("job", &AsBody(&self.job))
    }
}

/// A schedule of a set.
impl SentBody for (ScheduleId, ScheduleSettings) {
    fn check_body(&self, at: &At<'_>) -> Result<(), Refusal> {
        self.1.check_body(at)
    }
    fn write_members<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        ScheduleFields::id().put(&self.0, map)?;
        self.1.write_members(map)
    }
}

/// A schedule's id; the pointer of a refusal is `/path/id`.
pub fn schedule_path(id: &str) -> Result<ScheduleId, Refusal> {
    ScheduleId::known(id).map_err(|no| no.at("/path/id"))
}

http_calls! {
    ListSchedules() query;
    GetSchedule(schedule: schedule_path);
    // A plan is never sent: the server computes its own.
    PutSchedule(id) body "ScheduleSettings",
        |call| put_schedule(id, call.body),
        |put| EncodedBody::object(put.settings.as_ref());
    // A `job` replaces the whole job.
    PatchSchedule(id) body Self::SCHEMA,
        |call| {
            let schedule = schedule_path(id)?;
            let document = document(call.body)?;
            let fields = Value::body(&document).fields(ScheduleFields::SHAPE)?;
            same_id(&fields, &schedule)?;
            fields.not_both("cron", "every")?;
            fields.not_both("zone", "every")?;
            PatchSchedule::of_fields((schedule,), &fields)
        },
        |patch| EncodedBody::object(patch);
    DeleteSchedule(schedule: schedule_path);
    PauseSchedule(schedule: schedule_path) optional body;
    ResumeSchedule(schedule: schedule_path);
    RunScheduleNow(schedule: schedule_path) optional body;
    SyncSchedules() query, body "ScheduleSet",
        |call| sync_schedules(call.query, call.body),
        |sync| EncodedBody::set(&sync.schedules, ITEMS_MAX);
}

/// Reads the body of `PUT /v1/schedules/{id}`: all settings; an absent one has its default.
pub fn put_schedule(id: &str, body: &[u8]) -> Result<PutSchedule, Refusal> {
    let schedule = ScheduleId::parse(id).map_err(|no| no.at("/path/id"))?;
    let document = document(body)?;
    let fields = Value::body(&document).fields(ScheduleFields::SHAPE)?;
    same_id(&fields, &schedule)?;
    let settings = Box::new(ScheduleSettings::of_fields((), &fields)?);
    Ok(PutSchedule { schedule, settings, plan: None })
}

/// Reads `PUT /v1/schedules?owner=O` with an array of at most 1,000, the whole set of the owner.
pub fn sync_schedules<K: AsRef<str>, V: AsRef<str>>(
    query: &[(K, V)],
    body: &[u8],
) -> Result<SyncSchedules, Refusal> {
    let mut request = SyncSchedules::of_query((Vec::new(),), query)?;
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
    let fields = value.fields(ScheduleFields::SHAPE)?;
    let id = fields.read_required(&ScheduleFields::id(), "\"id\": \"news-42\"")?;
    let mut settings = ScheduleSettings::of_fields((), &fields)?;
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
    match fields.read(&ScheduleFields::id())? {
        Some(other) if other != *id => {
            let case = BodyRefusal::NotTheIdOfThePath { shown: cut(other.as_str()) };
            Err(fields.conflict("id", case))
        }
        _ => Ok(()),
    }
}

impl Bounded for PutSchedule {
    fn within_bounds(&self) -> Result<(), Refusal> {
        self.settings.check_body(&At::Body)
    }
}

impl Bounded for SyncSchedules {
    fn within_bounds(&self) -> Result<(), Refusal> {
        self.query_within_bounds()?;
        let mut ids = SetIds::default();
        for (index, (id, set)) in self.schedules.iter().enumerate() {
            let at = At::Item(&At::Body, index);
            let once = ids.once(id, SetPlace::Item(index), &At::Member(&at, "id"));
            once.and_then(|()| set.check_body(&at)).map_err(|no| no.item(index))?;
        }
        Ok(())
    }
}

bounded_bodies! { PatchSchedule }
