//! `Retry-After`: when the other side wants to be asked again (RFC 9110, 10.2.3).
//!
//! Pure. A date is compared with the `Date` of the same answer, so that clocks that differ do no harm.

use std::time::{Duration, SystemTime};

use hyper::header::{DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use tenure_core::bounds::SPAN_US_MAX;
use tenure_core::time::Span;

/// A service that says "now" must not be asked without end: this is the least.
const LEAST: Span = Span::from_s(1);

/// The `Retry-After` of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RetryAfter {
    /// There is no such header.
    Absent,
    /// There is one that is neither seconds nor an HTTP date.
    Unreadable,
    /// Wait this long from now; at least a second, at most 3,650 days.
    Wait(Span),
}

/// Reads the headers of an answer that came at `now`.
pub fn read(headers: &HeaderMap, now: SystemTime) -> RetryAfter {
    let Some(value) = headers.get(RETRY_AFTER) else { return RetryAfter::Absent };
    let Ok(value) = value.to_str().map(str::trim) else { return RetryAfter::Unreadable };
    let wait = if !value.is_empty() && value.bytes().all(|c| c.is_ascii_digit()) {
        // A number beyond all bounds is the longest wait.
        Duration::from_secs(value.parse().unwrap_or(u64::from(u32::MAX)))
    } else {
        let Ok(at) = httpdate::parse_http_date(value) else { return RetryAfter::Unreadable };
        let sent = headers.get(DATE).and_then(date).unwrap_or(now);
        at.duration_since(sent).unwrap_or_default()
    };
    let us = u64::try_from(wait.as_micros()).unwrap_or(SPAN_US_MAX).min(SPAN_US_MAX);
    RetryAfter::Wait(Span::from_us(us).max(LEAST))
}

fn date(value: &HeaderValue) -> Option<SystemTime> {
    httpdate::parse_http_date(value.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_seconds_or_a_date_and_never_less_than_a_second() {
        let now = httpdate::parse_http_date("Tue, 01 Dec 2026 08:00:00 GMT").unwrap();
        let wait = |s| RetryAfter::Wait(Span::from_s(s));
        for (said, date, is) in [
            (None, None, RetryAfter::Absent),
            (Some("5"), None, wait(5)),
            (Some(" 120 "), None, wait(120)),
            (Some("0"), None, wait(1)),
            (Some("99999999999999999999999"), None, RetryAfter::Wait(Span::from_us(SPAN_US_MAX))),
            (Some("Tue, 01 Dec 2026 08:00:30 GMT"), None, wait(30)),
            (Some("Tue, 01 Dec 2026 07:00:00 GMT"), None, wait(1)),
            (
                Some("Tue, 01 Dec 2026 09:00:10 GMT"),
                Some("Tue, 01 Dec 2026 09:00:00 GMT"),
                wait(10),
            ),
            (Some(""), None, RetryAfter::Unreadable),
            (Some("-5"), None, RetryAfter::Unreadable),
            (Some("1.5"), None, RetryAfter::Unreadable),
            (Some("soon"), None, RetryAfter::Unreadable),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in [(RETRY_AFTER, said), (DATE, date)] {
                if let Some(value) = value {
                    headers.insert(name, HeaderValue::from_static(value));
                }
            }
            assert_eq!(read(&headers, now), is, "{said:?}");
        }
    }
}
