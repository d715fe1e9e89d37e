//! Ends of a pause or rest, given as `for` or as `until`; and bodies without content.

use serde::ser::SerializeMap;

use super::fields::{Fields, Value, document, is_empty};
use super::forms::{Duration, Time};
use super::object::{Call, ObjectField, Part, bounded_bodies, object};
use crate::at::At;
use crate::bounded::Spans;
use crate::lease::Later;
use crate::names::{LimitName, PoolName, QueueName, ResourceId, ScheduleId};
use crate::refusal::Refusal;
use crate::requests::{CoolResource, PauseLimit, PauseQueue, PauseSchedule};
use crate::time::{Moment, Span};

object! {
    LaterFields "this call" "Later"
    call PauseLimit(limit: LimitName);
    call CoolResource(pool: PoolName, resource: ResourceId);
    call PauseQueue(queue: QueueName);
    call PauseSchedule(schedule: ScheduleId);
    fields {}
    part until: ANY_LATER {
        hold as "for": Span = Duration(Spans::ANY), optional, "How long from now, 0s to 3650d. Excludes until.";
        until: Moment = Time, optional, "The moment at which it ends. Excludes for.";
    }
}

object! {
    AdvanceFields "this call" "Advance"
    answered "now";
    whole Advance;
    fields {
        advance: Span = Duration(Spans::ANY), required "\"advance\": \"5m\"", "The step of the test clock, 0s to 3650d.";
    }
}

object! {
    NoFields "this call" "Nothing"
    fields {}
}

/// The body of `POST /v1/test/clock`.
struct Advance {
    advance: Span,
}

/// A moment that is given as `for` or as `until`, with a duration within these bounds.
pub(super) struct LaterPart(pub Spans);

const ANY_LATER: LaterPart = LaterPart(Spans::ANY);

impl LaterPart {
    fn hold(&self) -> ObjectField<Span, Duration> {
        ObjectField::new("for", Duration(self.0))
    }
    fn until(&self) -> ObjectField<Moment, Time> {
        ObjectField::new("until", Time)
    }
}

impl Part<Later> for LaterPart {
    fn read<const N: usize>(&self, fields: &Fields<'_, '_, N>) -> Result<Later, Refusal> {
        let example = "\"for\": \"5m\", or \"until\": \"2026-12-01T09:55:00Z\"";
        let later: Option<Later> = self.read(fields)?;
        later.ok_or_else(|| fields.missing("for", example))
    }
    fn check(&self, value: &Later, of: &At<'_>) -> Result<(), Refusal> {
        match value {
            Later::For(span) => self.hold().check(span, of),
            Later::Until(moment) => self.until().check(moment, of),
        }
    }
    fn write<M: SerializeMap>(&self, value: &Later, map: &mut M) -> Result<(), M::Error> {
        match value {
            Later::For(span) => self.hold().put(span, map),
            Later::Until(moment) => self.until().put(moment, map),
        }
    }
}

impl Part<Option<Later>> for LaterPart {
    fn read<const N: usize>(&self, fields: &Fields<'_, '_, N>) -> Result<Option<Later>, Refusal> {
        fields.not_both("for", "until")?;
        if let Some(span) = fields.read(&self.hold())? {
            return Ok(Some(Later::For(span)));
        }
        Ok(fields.read(&self.until())?.map(Later::Until))
    }
    fn check(&self, value: &Option<Later>, of: &At<'_>) -> Result<(), Refusal> {
        value.as_ref().map_or(Ok(()), |later| self.check(later, of))
    }
    fn write<M: SerializeMap>(&self, value: &Option<Later>, map: &mut M) -> Result<(), M::Error> {
        value.as_ref().map_or(Ok(()), |later| self.write(later, map))
    }
}

/// Reads the body of `POST /v1/test/clock`: the step of the clock. Only an engine whose clock a test moves gets this
/// call.
pub fn advance(body: &[u8]) -> Result<Span, Refusal> {
    Ok(Advance::of_body((), body)?.advance)
}

/// Checks the body of a call whose path says everything: nothing, or `{}`.
pub fn no_body(body: &[u8]) -> Result<(), Refusal> {
    if is_empty(body) {
        return Ok(());
    }
    let document = document(body)?;
    Value::body(&document).fields(NoFields::SHAPE).map(drop)
}

bounded_bodies! { CoolResource PauseQueue PauseSchedule }
