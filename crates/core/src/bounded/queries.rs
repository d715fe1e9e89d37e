//! Bounds of pages and waits.

use super::{PAGE, Spans};
use crate::at::At;
use crate::refusal::Refusal;
use crate::time::Span;

/// The prefix of a pointer to a query parameter.
pub(crate) const QUERY: At<'_> = At::Member(&At::Body, "query");

pub(crate) fn page(max: usize, of: &At<'_>) -> Result<(), Refusal> {
    At::Member(of, "max").number(i64::try_from(max).unwrap_or(i64::MAX), PAGE)
}

pub(crate) fn wait(wait: Span) -> Result<(), Refusal> {
    At::Member(&QUERY, "wait").span(wait, Spans::WAIT)
}
