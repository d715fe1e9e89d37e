//! The timing of a schedule: `cron` and `zone` or `every`, `starts_at`, `ends_at` and `jitter`. Whether the expression has
//! an allowed form and the zone is there is for `tenure-calendar`.
//!
//! [`timing`] reads them from an object that has them all. A patch names some of them, so each has a reader of its own.

use super::fields::{Fields, ObjectShape, Value, document};
use crate::bounded::{Spans, whole_seconds};
use crate::bounds::{CRON_BYTES_MAX, PREVIEW_DEFAULT, PREVIEW_MAX};
use crate::names::ScheduleId;
use crate::refusal::Refusal;
use crate::schedule::TimingSpec;
use crate::time::{Moment, Span};

/// How `cron` is added to a timing that has neither it nor `every`.
const CRON_FORM: &str = "\"cron\": \"0 9 * * 1-5\", or \"every\": \"15m\"";

/// The zone of an expression that names none.
const UTC: &str = "UTC";

static PREVIEW: ObjectShape<8> = ObjectShape {
    what: "a preview",
    fields: ["id", "cron", "zone", "every", "starts_at", "ends_at", "from", "count"],
    answered: &["next"],
};

/// The body of a preview. It is asked of no engine, and nothing is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PreviewAsked {
    /// The schedule that would have the timing; without it an interval counts from its `starts_at`.
    pub id: Option<ScheduleId>,
    /// Its timing. A preview shows no jitter.
    pub timing: TimingSpec,
    /// Only moments after this one; now if it is not given.
    pub from: Option<Moment>,
    /// How many moments at most.
    pub count: usize,
}

/// The fields of a timing but `jitter`, of an object that has all of them: one of `cron` and `every`, and `zone` with
/// `cron` alone.
pub(super) fn timing<const N: usize>(fields: &Fields<'_, '_, N>) -> Result<TimingSpec, Refusal> {
    fields.not_both("cron", "every")?;
    let every = fields.take("every", every)?;
    let cron = fields.take("cron", cron)?;
    if every.is_some() {
        fields.not_both("every", "zone")?;
    } else if cron.is_none() {
        return Err(fields.missing("cron", CRON_FORM));
    }
    // The zone that is not given is written down, so that a timing that names it is the same timing.
    let zone = fields.take("zone", zone)?.or_else(|| cron.is_some().then(|| UTC.to_owned()));
    Ok(TimingSpec {
        cron,
        zone,
        every,
        starts_at: fields.take("starts_at", |v| v.moment())?,
        ends_at: fields.take("ends_at", |v| v.moment())?,
        jitter: Span::ZERO,
    })
}

/// The text of a cron expression.
pub(super) fn cron(value: Value<'_, '_>) -> Result<String, Refusal> {
    value.short(CRON_BYTES_MAX)
}

/// The name of a zone. One of any length is taken here: it is no zone, and is refused as such.
pub(super) fn zone(value: Value<'_, '_>) -> Result<String, Refusal> {
    value.string().map(|name| name.into_owned())
}

/// An interval, or how far a `next_in` leads: whole seconds within bounds. A duration that is too short or too long is
/// out of bounds, whole seconds or not.
pub(super) fn every(value: Value<'_, '_>) -> Result<Span, Refusal> {
    let span = value.span(Spans::EVERY)?;
    let text = value.string()?;
    value.at.here(whole_seconds(span, || text.into_owned()).map(|()| span))
}

/// The longest time by which a moment is late. A preview has none.
pub(super) fn jitter(value: Value<'_, '_>) -> Result<Span, Refusal> {
    value.span(Spans::JITTER)
}

/// The body of `POST /v1/schedules/preview`. An interval that counts from no `starts_at` needs the `id`, since its phase
/// comes from it.
pub fn preview(body: &[u8]) -> Result<PreviewAsked, Refusal> {
    let document = document(body)?;
    let fields = Value::body(&document).fields(&PREVIEW)?;
    let timing = timing(&fields)?;
    let id = fields.take("id", |v| v.parsed(ScheduleId::parse))?;
    if timing.every.is_some() && timing.starts_at.is_none() && id.is_none() {
        let form = "the \"id\" of the schedule, which decides the phase of its interval, or a \"starts_at\"";
        return Err(fields.missing("id", form));
    }
    let count = fields.take("count", |v| v.integer(1..=PREVIEW_MAX as i64))?;
    Ok(PreviewAsked {
        id,
        timing,
        from: fields.take("from", |v| v.moment())?,
        count: count.unwrap_or(PREVIEW_DEFAULT),
    })
}
