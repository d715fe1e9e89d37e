//! The timing of a schedule: `cron` and `zone` or `every`, `starts_at`, `ends_at` and `jitter`. `tenure-calendar`
//! checks the form of the expression and the existence of the zone.

use serde::ser::{SerializeMap, Serializer};

use super::fields::{Fields, Value};
use super::forms::{ANY_TEXT, Duration, Form, Name, Number, Text, Time, ValueKind};
use super::object::{Call, ObjectField, Part, object};
use crate::at::At;
use crate::bounded::{Spans, whole_seconds};
use crate::bounds::{CRON_BYTES_MAX, PREVIEW_DEFAULT, PREVIEW_MAX};
use crate::names::ScheduleId;
use crate::refusal::Refusal;
use crate::schedule::TimingSpec;
use crate::sentences::BodyRefusal;
use crate::time::{Moment, Span};

/// The zone of an expression that states none.
const UTC: &str = "UTC";

/// The body of a preview. No engine gets it, and nothing is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PreviewAsked {
    /// The schedule that would have the timing; without it an interval counts from its `starts_at`.
    pub id: Option<ScheduleId>,
    /// A preview shows no jitter.
    pub timing: TimingSpec,
    /// Only moments after this one; `None`: now.
    pub from: Option<Moment>,
    /// The most moments to show, 1 to 100.
    pub count: usize,
}

object! {
    PreviewFields "a preview" "PreviewCall"
    answered "next";
    whole PreviewAsked;
    fields {
        id: ScheduleId = Name(ScheduleId::parse, None), optional,
            "The id of the schedule, which decides the phase of an interval without starts_at.";
        from: Moment = Time, optional, "Shows moments after this one; now if absent.";
        count: usize = Number(1..=PREVIEW_MAX as i64), or PREVIEW_DEFAULT,
            "How many moments are shown at most, 1 to 100; 5 if absent.";
    }
    part timing: WITHOUT_JITTER {
        cron: String = CRON, optional, "A cron expression, as in a schedule. Excludes every.";
        zone: String = ANY_TEXT, optional, "The IANA zone in which cron is read; UTC if absent.";
        every: Span = Interval, optional, "The interval, whole seconds from 1s to 3650d. Excludes cron.";
        starts_at: Moment = Time, optional, "No moment lies before it.";
        ends_at: Moment = Time, optional, "No moment lies after it.";
    }
}

/// The text of a cron expression.
pub(super) const CRON: Text = Text(CRON_BYTES_MAX);

/// An interval, or the distance of a `next_in`: whole seconds within bounds. A duration that is too short or too long is
/// out of bounds, even if it has a fraction of a second.
pub(super) struct Interval;

impl Form<Span> for Interval {
    fn read(&self, value: Value<'_, '_>) -> Result<Span, Refusal> {
        let span = value.span(Spans::EVERY)?;
        let text = value.string()?;
        value.at.here(whole_seconds(span, || text.into_owned()).map(|()| span))
    }
    fn check(&self, value: &Span, at: &At<'_>) -> Result<(), Refusal> {
        at.span(*value, Spans::EVERY)?;
        at.here(whole_seconds(*value, || value.to_string()))
    }
    fn write<S: Serializer>(&self, value: &Span, to: S) -> Result<S::Ok, S::Error> {
        Duration(Spans::EVERY).write(value, to)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Duration
    }
}

/// The fields of a timing, under the names and in the forms that a preview has: one of `cron` and `every`, and `zone`
/// only with `cron`. A schedule has jitter, too.
pub(super) struct TimingPart {
    pub jitter: bool,
}

const WITHOUT_JITTER: TimingPart = TimingPart { jitter: false };

const JITTER: ObjectField<Span, Duration> = ObjectField::new("jitter", Duration(Spans::JITTER));

impl Part<TimingSpec> for TimingPart {
    fn read<const N: usize>(&self, fields: &Fields<'_, '_, N>) -> Result<TimingSpec, Refusal> {
        fields.not_both("cron", "every")?;
        let every = fields.read(&PreviewFields::every())?;
        let cron = fields.read(&PreviewFields::cron())?;
        if every.is_some() {
            fields.not_both("every", "zone")?;
        } else if cron.is_none() {
            return Err(fields.missing("cron", "\"cron\": \"0 9 * * 1-5\", or \"every\": \"15m\""));
        }
        // The default zone is stored, so that a timing that names it is the same timing.
        let zone =
            fields.read(&PreviewFields::zone())?.or_else(|| cron.is_some().then(|| UTC.to_owned()));
        let starts_at = fields.read(&PreviewFields::starts_at())?;
        let ends_at = fields.read(&PreviewFields::ends_at())?;
        let jitter = if self.jitter { fields.read(&JITTER)? } else { None };
        Ok(TimingSpec { cron, zone, every, starts_at, ends_at, jitter: jitter.unwrap_or_default() })
    }
    fn check(&self, value: &TimingSpec, of: &At<'_>) -> Result<(), Refusal> {
        let exclude = |one: &'static str, other: &'static str| {
            let case = BodyRefusal::FieldsExclude { one: one.into(), other: other.into() };
            Err(At::Member(of, other).refuse(case))
        };
        match (&value.cron, &value.every, &value.zone) {
            (None, None, _) => {
                return Err(At::Member(of, "cron").refuse(BodyRefusal::TimingMissing));
            }
            (Some(_), Some(_), _) => return exclude("cron", "every"),
            (None, Some(_), Some(_)) => return exclude("every", "zone"),
            (Some(cron), None, _) => PreviewFields::cron().check(cron, of)?,
            (None, Some(every), None) => PreviewFields::every().check(every, of)?,
        }
        PreviewFields::starts_at().check_given(&value.starts_at, of)?;
        PreviewFields::ends_at().check_given(&value.ends_at, of)?;
        JITTER.check(&value.jitter, of)
    }
    fn write<M: SerializeMap>(&self, value: &TimingSpec, map: &mut M) -> Result<(), M::Error> {
        let TimingSpec { cron, zone, every, starts_at, ends_at, jitter } = value;
        PreviewFields::cron().put_given(cron, map)?;
        PreviewFields::zone().put_given(zone, map)?;
        PreviewFields::every().put_given(every, map)?;
        PreviewFields::starts_at().put_given(starts_at, map)?;
        PreviewFields::ends_at().put_given(ends_at, map)?;
        if self.jitter { JITTER.put(jitter, map) } else { Ok(()) }
    }
}

/// Reads the body of `POST /v1/schedules/preview`. An interval without `starts_at` needs the `id`, since its phase
/// comes from it.
pub fn preview(body: &[u8]) -> Result<PreviewAsked, Refusal> {
    let asked = PreviewAsked::of_body((), body)?;
    let timing = &asked.timing;
    if timing.every.is_some() && timing.starts_at.is_none() && asked.id.is_none() {
        let case = BodyRefusal::FieldMissing {
            what: PreviewFields::SHAPE.what.into(),
            name: "id".into(),
            form: "the \"id\" of the schedule, which decides the phase of its interval, or a \"starts_at\"".into(),
        };
        return Err(Refusal::from(case).at("/id"));
    }
    Ok(asked)
}
