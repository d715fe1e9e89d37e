//! Two ways to name a moment, of which a body gives one; and bodies that say nothing.

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

/// `for` or `until` of an object that has both fields; `None` if it gives neither.
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

/// The same, and one of them must be there.
pub(super) fn later_required<const N: usize>(
    fields: &Fields<'_, '_, N>,
    bounds: Spans,
) -> Result<Later, Refusal> {
    let form = "\"for\": \"5m\", or \"until\": \"2026-12-01T09:55:00Z\"";
    later(fields, bounds)?.ok_or_else(|| fields.missing("for", form))
}

/// A body `{"for"|"until"}` that must name one.
pub(super) fn body_later(body: &[u8]) -> Result<Later, Refusal> {
    let document = document(body)?;
    later_required(&Value::body(&document).fields(&LATER)?, Spans::ANY)
}

/// A body `{"for"|"until"}` that may be empty, or name neither.
pub(super) fn body_later_optional(body: &[u8]) -> Result<Option<Later>, Refusal> {
    if is_empty(body) {
        return Ok(None);
    }
    let document = document(body)?;
    later(&Value::body(&document).fields(&LATER)?, Spans::ANY)
}

/// The body of `POST /v1/test/clock`: by how much the clock moves. It is asked of no engine but one whose clock a test
/// moves.
pub fn advance(body: &[u8]) -> Result<Span, Refusal> {
    let document = document(body)?;
    let fields = Value::body(&document).fields(&ADVANCE)?;
    fields
        .take("advance", |value| value.span(Spans::ANY))?
        .ok_or_else(|| fields.missing("advance", "\"advance\": \"5m\""))
}

/// The body of a call that says all with its path: nothing, or `{}`.
pub fn no_body(body: &[u8]) -> Result<(), Refusal> {
    if is_empty(body) {
        return Ok(());
    }
    let document = document(body)?;
    Value::body(&document).fields(&NOTHING).map(drop)
}
