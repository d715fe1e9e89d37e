//! Ends of a pause or rest, given as `for` or as `until`; and bodies without content.

use super::fields::{Fields, ObjectShape, Value, document, is_empty};
use crate::bounded::Spans;
use crate::lease::Later;
use crate::refusal::Refusal;
use crate::time::Span;

static LATER: ObjectShape<2> =
    ObjectShape { what: "this call", fields: ["for", "until"], answered: &[] };
static ADVANCE: ObjectShape<1> =
    ObjectShape { what: "this call", fields: ["advance"], answered: &["now"] };
static NOTHING: ObjectShape<0> = ObjectShape { what: "this call", fields: [], answered: &[] };

/// Reads `for` or `until` of an object that may have either; `None` if it has neither.
pub(super) fn later<const N: usize>(
    fields: &Fields<'_, '_, N>,
    bounds: Spans,
) -> Result<Option<Later>, Refusal> {
    fields.not_both("for", "until")?;
    if let Some(span) = fields.take("for", |value| value.span(bounds))? {
        return Ok(Some(Later::For(span)));
    }
    fields.take("until", |value| value.moment().map(Later::Until))
}

/// The same, and one of them is required.
pub(super) fn later_required<const N: usize>(
    fields: &Fields<'_, '_, N>,
    bounds: Spans,
) -> Result<Later, Refusal> {
    let form = "\"for\": \"5m\", or \"until\": \"2026-12-01T09:55:00Z\"";
    later(fields, bounds)?.ok_or_else(|| fields.missing("for", form))
}

/// Reads a body `{"for"|"until"}` that must have one of them.
pub(super) fn body_later(body: &[u8]) -> Result<Later, Refusal> {
    let document = document(body)?;
    later_required(&Value::body(&document).fields(&LATER)?, Spans::ANY)
}

/// Reads a body `{"for"|"until"}` that may be empty, or have neither.
pub(super) fn body_later_optional(body: &[u8]) -> Result<Option<Later>, Refusal> {
    if is_empty(body) {
        return Ok(None);
    }
    let document = document(body)?;
    later(&Value::body(&document).fields(&LATER)?, Spans::ANY)
}

/// Reads the body of `POST /v1/test/clock`: the step of the clock. Only an engine whose clock a test moves gets this
/// call.
pub fn advance(body: &[u8]) -> Result<Span, Refusal> {
    let document = document(body)?;
    let fields = Value::body(&document).fields(&ADVANCE)?;
    fields
        .take("advance", |value| value.span(Spans::ANY))?
        .ok_or_else(|| fields.missing("advance", "\"advance\": \"5m\""))
}

/// Checks the body of a call whose path says everything: nothing, or `{}`.
pub fn no_body(body: &[u8]) -> Result<(), Refusal> {
    if is_empty(body) {
        return Ok(());
    }
    let document = document(body)?;
    Value::body(&document).fields(&NOTHING).map(drop)
}
