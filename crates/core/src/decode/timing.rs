//! The timing of a schedule: `cron` and `zone` or `every`, `starts_at`, `ends_at` and `jitter`. `tenure-calendar`
//! checks the form of the expression and the existence of the zone.
//!
//! [`timing`] reads them from an object with all of them. A patch has only some of them, so each has a reader of its
//! own.

use super::fields::{Fields, ObjectShape, Value, document};
use crate::bounded::{Spans, whole_seconds};
use crate::bounds::{CRON_BYTES_MAX, PREVIEW_DEFAULT, PREVIEW_MAX};
use crate::names::ScheduleId;
use crate::refusal::Refusal;
use crate::schedule::TimingSpec;
use crate::time::{Moment, Span};

/// An example for a timing that has neither `cron` nor `every`.
const CRON_FORM: &str = "\"cron\": \"0 9 * * 1-5\", or \"every\": \"15m\"";

/// The zone of an expression that states none.
const UTC: &str = "UTC";

static PREVIEW: ObjectShape<8> = ObjectShape {
    what: "a preview",
    fields: ["id", "cron", "zone", "every", "starts_at", "ends_at", "from", "count"],
    answered: &["next"],
};

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

/// Reads the fields of a timing except `jitter`: one of `cron` and `every`, and `zone` only with `cron`.
pub(super) fn timing<const N: usize>(fields: &Fields<'_, '_, N>) -> Result<TimingSpec, Refusal> {
    fields.not_both("cron", "every")?;
    let every = fields.take("every", every)?;
    let cron = fields.take("cron", cron)?;
    if every.is_some() {
        fields.not_both("every", "zone")?;
    } else if cron.is_none() {
        return Err(fields.missing("cron", CRON_FORM));
    }
    // The default zone is stored, so that a timing that names it is the same timing.
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

/// Reads the name of a zone. It may have any length: a longer one is refused later, as an unknown zone.
pub(super) fn zone(value: Value<'_, '_>) -> Result<String, Refusal> {
    value.string().map(|name| name.into_owned())
}

/// Reads an interval, or the distance of a `next_in`: whole seconds within bounds. A duration that is too short or too
/// long is out of bounds, even if it has a fraction of a second.
pub(super) fn every(value: Value<'_, '_>) -> Result<Span, Refusal> {
    let span = value.span(Spans::EVERY)?;
    let text = value.string()?;
    value.at.here(whole_seconds(span, || text.into_owned()).map(|()| span))
}

/// Reads the longest delay of a moment. A preview has none.
pub(super) fn jitter(value: Value<'_, '_>) -> Result<Span, Refusal> {
    value.span(Spans::JITTER)
}

/// Reads the body of `POST /v1/schedules/preview`. An interval without `starts_at` needs the `id`, since its phase
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
