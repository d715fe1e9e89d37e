//! Times of rows, which are numbers of microseconds.

use tenure_core::time::{Moment, Span};

/// The time of a row's microseconds.
pub(crate) fn moment(us: u64) -> Moment {
    Moment::from_us(us)
}

/// The duration of a row's microseconds.
pub(crate) fn span(us: u64) -> Span {
    Span::from_us(us)
}
