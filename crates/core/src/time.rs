//! Moments and durations in whole microseconds, and their only text form.
//!
//! Nothing here reads a clock: the present time is an argument.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::bounds::{MOMENT_US_MAX, SPAN_US_MAX};

/// A moment: microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Moment(u64);

/// A duration in microseconds; at most 3,650 days where it comes from outside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span(u64);

impl Moment {
    /// 1970-01-01T00:00:00Z, the first moment.
    pub const ZERO: Moment = Moment(0);
    /// The latest moment that may be given; fences go on for some days beyond it.
    pub const LAST: Moment = Moment(MOMENT_US_MAX);
    /// Later than every moment that can be given.
    pub const MAX: Moment = Moment(u64::MAX);

    /// The moment `us` microseconds after 1970-01-01T00:00:00Z.
    pub const fn from_us(us: u64) -> Self {
        Moment(us)
    }
    /// Its microseconds since 1970-01-01T00:00:00Z.
    pub const fn us(self) -> u64 {
        self.0
    }
    /// This moment plus `span`; [`Moment::MAX`] if that overflows.
    pub const fn plus(self, span: Span) -> Self {
        Moment(self.0.saturating_add(span.0))
    }
    /// This moment minus `span`; the first moment if that would be before 1970.
    pub const fn minus(self, span: Span) -> Self {
        Moment(self.0.saturating_sub(span.0))
    }
    /// Time since `earlier`; zero if `earlier` is not earlier.
    pub const fn since(self, earlier: Moment) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

/// In whole microseconds; a longer duration than fits becomes the longest.
impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Span(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }
}
impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        Duration::from_micros(span.0)
    }
}
/// In whole microseconds; a moment before 1970 becomes the first one.
impl From<SystemTime> for Moment {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment::ZERO.plus(since.into())
    }
}
/// A moment that the system's clock cannot express becomes 1970.
impl From<Moment> for SystemTime {
    fn from(moment: Moment) -> Self {
        UNIX_EPOCH.checked_add(Duration::from_micros(moment.0)).unwrap_or(UNIX_EPOCH)
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than any duration that can be given.
    pub const MAX: Span = Span(u64::MAX);

    pub const fn from_us(us: u64) -> Self {
        Span(us)
    }
    pub const fn from_ms(ms: u64) -> Self {
        Span(ms * 1_000)
    }
    pub const fn from_s(s: u64) -> Self {
        Span(s * 1_000_000)
    }
    pub const fn us(self) -> u64 {
        self.0
    }
    /// The same as a duration of the standard library.
    pub const fn std(self) -> std::time::Duration {
        std::time::Duration::from_micros(self.0)
    }
}

/// The reason why a text is not a moment or a duration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeError {
    /// It does not have the form.
    Form,
    /// It has the form, but lies beyond 3,650 days (a duration) or outside 1970 to 2255 (a moment).
    Range,
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TimeError::Form => "this is no time; write a duration as 2h30m or 500ms, a moment as 2026-12-01T09:00:00Z",
            TimeError::Range => "this time is out of range; durations end at 3,650 days, moments lie from 1970 to 2255",
        })
    }
}
impl std::error::Error for TimeError {}

impl FromStr for Span {
    type Err = TimeError;

    /// `"500ms" "90s" "2h30m" "7d"`: whole numbers with the units `d h m s ms`, largest first, each at most once.
    fn from_str(text: &str) -> Result<Self, TimeError> {
        const UNITS: [(&str, u64); 5] = [
            ("d", 86_400_000_000),
            ("h", 3_600_000_000),
            ("m", 60_000_000),
            ("s", 1_000_000),
            ("ms", 1_000),
        ];
        let mut rest = text;
        let mut total: u64 = 0;
        let mut next_unit = 0;
        let mut too_far = false;
        if rest.is_empty() {
            return Err(TimeError::Form);
        }
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, tail) = rest.split_at(digits);
            let letters = tail.bytes().take_while(u8::is_ascii_lowercase).count();
            let (unit, tail) = tail.split_at(letters);
            if digits == 0 {
                return Err(TimeError::Form);
            }
            let found = UNITS[next_unit..].iter().position(|(name, _)| *name == unit);
            let at = next_unit + found.ok_or(TimeError::Form)?;
            next_unit = at + 1;
            let part = number.parse::<u64>().ok().and_then(|n| n.checked_mul(UNITS[at].1));
            match part.and_then(|part| total.checked_add(part)) {
                Some(sum) => total = sum,
                None => too_far = true,
            }
            rest = tail;
        }
        if too_far || total > SPAN_US_MAX {
            return Err(TimeError::Range);
        }
        Ok(Span(total))
    }
}

impl fmt::Display for Span {
    /// The canonical form, with the largest units that fit: `24h` is `1d`, zero is `0s`. A part below a millisecond has
    /// no unit and is rounded up, so that a caller who waits this long is never early.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ms = self.0.div_ceil(1_000);
        if ms == 0 {
            return f.write_str("0s");
        }
        for (unit, size) in
            [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)]
        {
            if ms >= size {
                write!(f, "{}{unit}", ms / size)?;
                ms %= size;
            }
        }
        Ok(())
    }
}

/// The last moment that a fence, a JSON integer below 2^53, can express.
const LAST_US: i64 = 1 << 53;

impl FromStr for Moment {
    type Err = TimeError;

    /// RFC 3339 with any offset. A local time, without an offset, is not a moment.
    fn from_str(text: &str) -> Result<Self, TimeError> {
        // The parser is more lenient than RFC 3339 (it takes ISO 8601's week dates, a comma, and a time zone in
        // brackets), so the form is checked first.
        if !looks_like_rfc3339(text.as_bytes()) {
            return Err(TimeError::Form);
        }
        let stamp: jiff::Timestamp = text.parse().map_err(|_| match text.get(..10) {
            // Its last two days lie beyond the parser's range, and people write them for "never".
            Some("9999-12-30" | "9999-12-31") => TimeError::Range,
            _ => TimeError::Form,
        })?;
        match stamp.as_microsecond() {
            us if (0..LAST_US).contains(&us) => Ok(Moment(us as u64)),
            _ => Err(TimeError::Range),
        }
    }
}

fn looks_like_rfc3339(text: &[u8]) -> bool {
    let fixed = |pattern: &[u8], text: &[u8]| {
        text.len() >= pattern.len()
            && pattern.iter().zip(text).all(|(p, c)| match p {
                b'0' => c.is_ascii_digit(),
                b'T' => matches!(c, b'T' | b't' | b' '),
                _ => p == c,
            })
    };
    if !fixed(b"0000-00-00T00:00:00", text) {
        return false;
    }
    let mut rest = &text[19..];
    if rest.first() == Some(&b'.') {
        let digits = rest[1..].iter().take_while(|c| c.is_ascii_digit()).count();
        if digits == 0 || digits > 9 {
            return false;
        }
        rest = &rest[1 + digits..];
    }
    match rest {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', offset @ ..] => offset.len() == 5 && fixed(b"00:00", offset),
        _ => false,
    }
}

impl fmt::Display for Moment {
    /// UTC with six decimals and `Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0.min(LAST_US as u64) as i64) {
            Ok(stamp) => write!(f, "{stamp:.6}"),
            Err(_) => f.write_str("9999-12-31T23:59:59.000000Z"),
        }
    }
}

macro_rules! as_text {
    ($type:ty, $what:literal) => {
        impl Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
                text.parse().map_err(|_| serde::de::Error::custom(concat!("not a ", $what)))
            }
        }
    };
}
as_text!(Moment, "moment");
as_text!(Span, "duration");
crate::schemas!(Moment = json!({"type": "string", "format": "date-time"}));
crate::schemas!(Span = json!({"type": "string", "examples": ["500ms", "1m30s"]}));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_one_form() {
        for (text, us, canonical) in [
            ("500ms", 500_000, "500ms"),
            ("90s", 90_000_000, "1m30s"),
            ("2h30m", 9_000_000_000, "2h30m"),
            ("24h", 86_400_000_000, "1d"),
            ("1500ms", 1_500_000, "1s500ms"),
            ("0s", 0, "0s"),
            ("0ms", 0, "0s"),
            ("3650d", SPAN_US_MAX, "3650d"),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!((span.us(), span.to_string().as_str()), (us, canonical), "{text}");
        }
        for text in ["", "5", "-5s", "5 s", "1.5s", "1s1s", "1s2h", "5us", "s", "5S", "1m 2s", "ms"]
        {
            assert_eq!(text.parse::<Span>(), Err(TimeError::Form), "{text}");
        }
        for text in ["3651d", "3650d1ms", "99999999999999999999d", "18446744073709551615d"] {
            assert_eq!(text.parse::<Span>(), Err(TimeError::Range), "{text}");
        }
    }

    #[test]
    fn moments_are_rfc_3339_and_answered_in_utc() {
        for (text, canonical) in [
            ("2026-12-01T09:55:00Z", "2026-12-01T09:55:00.000000Z"),
            ("2026-12-01T09:55:00.123456+08:00", "2026-12-01T01:55:00.123456Z"),
            ("2026-12-01t09:55:00.1z", "2026-12-01T09:55:00.100000Z"),
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"),
        ] {
            assert_eq!(text.parse::<Moment>().unwrap().to_string(), canonical);
        }
        for text in [
            "2026-12-01T09:55:00",
            "2026-12-01",
            "now",
            "2026-13-01T00:00:00Z",
            "2026-12-01T09:55Z",
            "2026-12-01T09:55:00Z[UTC]",
            "2026-12-01T09:55:00+8",
            "2026-W49-2T09:55:00Z",
        ] {
            assert_eq!(text.parse::<Moment>(), Err(TimeError::Form), "{text}");
        }
        assert_eq!("1969-12-31T23:59:59Z".parse::<Moment>(), Err(TimeError::Range));
        for late in ["2300-01-01T00:00:00Z", "9999-12-30T23:59:59Z", "9999-12-31T23:59:59Z"] {
            assert_eq!(late.parse::<Moment>(), Err(TimeError::Range), "{late}");
        }
    }
}
