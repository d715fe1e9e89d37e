//! Single values of the command line: names, durations, moments, rates, `none`.
//!
//! Each error says in one sentence what is wrong and what the right form is. The core's own parsers decide the meaning
//! of a value; nothing is parsed twice in two ways.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use tenure_calendar::Toward;
use tenure_core::bounds::{
    COUNT_MAX, EVERY_US_MIN, LIST_MAX, SECOND_US, SPAN_US_MAX, TTL_US_MAX, TTL_US_MIN,
};
use tenure_core::count::grouped;
use tenure_core::refusal::Refusal;
use tenure_core::requests::Patch;
use tenure_core::settings::Rate;
use tenure_core::time::{Moment, Span, TimeError};

use crate::local_time;

/// A parser for clap out of a name's own parser.
pub fn parse_name<T: Clone + Send + Sync + 'static>(
    parse: fn(&str) -> Result<T, Refusal>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text: &str| parse(text).map_err(|no| format!("{}; {}", no.detail, no.hint))
}

/// A duration: `90s`, `2h30m`.
pub fn span(text: &str) -> Result<Span, String> {
    text.parse().map_err(|why| match why {
        TimeError::Form => "write a duration as \"500ms\", \"90s\" or \"2h30m\"".to_owned(),
        TimeError::Range => "a duration is at most 3650d".to_owned(),
    })
}

/// A timeout, above 0s: in no time nothing can run.
pub fn timeout(text: &str) -> Result<Span, String> {
    match span(text)? {
        Span::ZERO => {
            Err("a timeout must be more than 0s; for no timeout, leave it out".to_owned())
        }
        some => Ok(some),
    }
}

/// An interval, or how far ahead the next moment is: whole seconds.
pub fn every(text: &str) -> Result<Span, String> {
    let span = span(text)?;
    let (min, max) = (Span::from_us(EVERY_US_MIN), Span::from_us(SPAN_US_MAX));
    if (min..=max).contains(&span) && span.us().is_multiple_of(SECOND_US) {
        return Ok(span);
    }
    Err(format!("use whole seconds, {min} to {max}"))
}

/// How often a screen asks, at most once a second: more often shows nothing more.
pub fn refresh(text: &str) -> Result<Span, String> {
    let span = span(text)?;
    if (Span::from_s(1)..=Span::from_s(3_600)).contains(&span) {
        Ok(span)
    } else {
        Err("use 1s to 1h".to_owned())
    }
}

/// A moment: RFC 3339 with an offset, or a local time; one without a day is the next time that the clock shows it.
pub fn moment(text: &str) -> Result<Moment, String> {
    moment_toward(text, Toward::Ahead)
}

/// The same for the past: a local time without a day is the last time that the clock showed it.
pub fn past_moment(text: &str) -> Result<Moment, String> {
    moment_toward(text, Toward::Behind)
}

/// The end of something: a moment, or how long from now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// This moment, whenever the command runs.
    At(Moment),
    /// A duration that begins when the command runs.
    In(Span),
}

impl End {
    /// The moment of this end; `now` is the time of the command.
    pub fn moment(self, now: Moment) -> Moment {
        match self {
            End::At(moment) => moment,
            End::In(span) => now.plus(span),
        }
    }
}

/// A moment, or a duration from now.
pub fn end(text: &str) -> Result<End, String> {
    match text.parse::<Span>() {
        Err(TimeError::Form) => moment(text).map(End::At),
        _ => span(text).map(End::In),
    }
}

fn moment_toward(text: &str, toward: Toward) -> Result<Moment, String> {
    let moment: Result<Moment, TimeError> = text.parse();
    let within =
        moment.and_then(|at| if at > Moment::LAST { Err(TimeError::Range) } else { Ok(at) });
    within.or_else(|why| match why {
        TimeError::Form => local_time::moment(text, toward).unwrap_or_else(|| {
            Err("write a local time as \"2026-12-01 09:55\", \"09:55\" or \"tomorrow 09:55\", or a moment as \
                 \"2026-12-01T09:55:00Z\""
                .to_owned())
        }),
        TimeError::Range if text.get(..4).is_some_and(|year| year < "1970") => Err("a moment lies in 1970 or later".to_owned()),
        TimeError::Range => Err(format!(
            "this is later than the latest moment ({}); for \"never\" leave it out",
            Moment::LAST
        )),
    })
}

/// The ttl of a lease.
pub fn ttl(text: &str) -> Result<Span, String> {
    let span = span(text)?;
    let (min, max) = (Span::from_us(TTL_US_MIN), Span::from_us(TTL_US_MAX));
    if (min..=max).contains(&span) {
        return Ok(span);
    }
    Err(format!("a ttl is {min} to {max}"))
}

/// The ttl of a lease, or `0s`: a token, granted and given back in one step.
pub fn ttl_or_token(text: &str) -> Result<Span, String> {
    match span(text)? {
        Span::ZERO => Ok(Span::ZERO),
        _ => ttl(text),
    }
}

/// A parser for a whole number, whose error states the range.
pub fn whole<T>(
    min: T,
    max: T,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: TryInto<i128> + TryFrom<i128> + Copy + Send + Sync + 'static,
{
    move |text: &str| {
        let wide = |n: T| n.try_into().unwrap_or(i128::MAX);
        let range = wide(min)..=wide(max);
        let number = text.parse::<i128>().map_err(|_| not_whole(&range))?;
        let inside = Some(number).filter(|n| range.contains(n)).and_then(|n| T::try_from(n).ok());
        inside.ok_or_else(|| outside(number, &range))
    }
}

/// Up to this end an error shows both ends of a range; beyond it the other end helps nobody.
const SAID_TOGETHER_MAX: i128 = 100_000;

fn outside(number: i128, range: &RangeInclusive<i128>) -> String {
    let (min, max) = (digits(*range.start()), digits(*range.end()));
    if *range.end() <= SAID_TOGETHER_MAX {
        format!("must be between {min} and {max}")
    } else if number < *range.start() {
        format!("must be at least {min}")
    } else {
        format!("must be at most {max}")
    }
}

fn not_whole(range: &RangeInclusive<i128>) -> String {
    let (min, max) = (digits(*range.start()), digits(*range.end()));
    if *range.end() <= SAID_TOGETHER_MAX {
        format!("must be a whole number between {min} and {max}")
    } else {
        format!("must be a whole number, at least {min}")
    }
}

fn digits(n: i128) -> String {
    let sign = if n < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(u64::try_from(n.unsigned_abs()).unwrap_or(u64::MAX)))
}

/// A count of things at once or per period, 0 or more.
pub fn count(text: &str) -> Result<u32, String> {
    whole(0, COUNT_MAX as u32)(text)
}

/// A boolean: `true` or `false`.
pub fn boolean(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "must be true or false".to_owned())
}

/// A count that must be at least 1.
pub fn positive(text: &str) -> Result<u32, String> {
    whole(1, COUNT_MAX as u32)(text)
}

/// The size of a page.
pub fn page_size(text: &str) -> Result<usize, String> {
    whole(1, LIST_MAX)(text)
}

/// A label as `push` and the filters take it: `K=V`, cut at the first `=`; without one `K:V`, cut at the last `:` as the
/// API does.
pub fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=').or_else(|| text.rsplit_once(':')) {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it as KEY=VALUE or KEY:VALUE".to_owned()),
    }
}

/// A rate without its burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PerSpan {
    /// Tokens in each period, 1 or more.
    pub count: u32,
    /// The length of one period.
    pub per: Span,
}

impl PerSpan {
    /// The whole rate; a burst that is not given is 1: evenly spaced.
    pub fn with_burst(self, burst: Option<u32>) -> Rate {
        Rate { count: self.count, per: self.per, burst: burst.unwrap_or(1) }
    }
}

/// `10/1s`, `600/1m`; `10/s` is `10/1s`.
pub fn rate(text: &str) -> Result<PerSpan, String> {
    let wrong = || "write a rate as COUNT/DURATION, such as \"10/1s\" or \"600/1m\"".to_owned();
    let (number, per) = text.split_once('/').ok_or_else(wrong)?;
    let count = positive(number.trim()).map_err(|_| wrong())?;
    let per = per.trim();
    let per = match per.bytes().next() {
        Some(b'0'..=b'9') => span(per),
        _ => span(&format!("1{per}")),
    };
    match per {
        Ok(Span::ZERO) | Err(_) => Err(wrong()),
        Ok(per) => Ok(PerSpan { count, per }),
    }
}

/// The change of one field by a `set`: a value, or `none` for "back to the default".
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting<T>(pub Patch<T>);

impl<T> Setting<T> {
    /// The change that an option asks for; if it is absent, the field stays as it is.
    pub fn of(option: Option<Setting<T>>) -> Patch<T> {
        option.map_or(Patch::Keep, |setting| setting.0)
    }
}

/// A parser for a setting out of a parser for its value.
pub fn setting<T: Clone + Send + Sync + 'static>(
    parse: fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<Setting<T>, String> + Clone + Send + Sync + 'static {
    move |text: &str| match text {
        "none" => Ok(Setting(Patch::Reset)),
        _ => parse(text).map(|value| Setting(Patch::Set(value))),
    }
}

/// A word of a closed set, such as a job's state.
pub fn word<T: FromStr>(text: &str, what: &str, all: &[impl Display]) -> Result<T, String> {
    text.parse().map_err(|_| {
        let all: Vec<String> = all.iter().map(ToString::to_string).collect();
        format!("{what} is one of {}", all.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_count_and_a_duration() {
        for (text, is) in [
            ("10/1s", Some((10, 1_000))),
            ("10/s", Some((10, 1_000))),
            ("600/1m", Some((600, 60_000))),
            ("5/500ms", Some((5, 500))),
            ("10", None),
            ("0/1s", None),
            ("10/0s", None),
            ("x/1s", None),
            ("10/", None),
            ("-1/1s", None),
        ] {
            let got = rate(text).ok().map(|rate| (rate.count, rate.per.us() / 1_000));
            assert_eq!(got, is, "{text}");
        }
    }

    #[test]
    fn none_is_back_to_the_default() {
        let parse = setting(span);
        assert_eq!(parse("none"), Ok(Setting(Patch::Reset)));
        assert_eq!(parse("1s"), Ok(Setting(Patch::Set(Span::from_s(1)))));
        assert!(parse("nun").is_err());
    }

    #[test]
    fn a_ttl_has_bounds_and_zero_is_only_a_token() {
        assert!(ttl("1s").is_ok() && ttl("1h").is_ok());
        assert!(ttl("999ms").is_err() && ttl("61m").is_err() && ttl("0s").is_err());
        assert_eq!(ttl_or_token("0s"), Ok(Span::ZERO));
        assert!(ttl_or_token("2h").is_err());
    }

    #[test]
    fn an_interval_has_whole_seconds() {
        assert_eq!(every("1h30m"), Ok(Span::from_s(5_400)));
        assert!(every("1s").is_ok() && every("3650d").is_ok());
        for wrong in ["0s", "999ms", "1500ms", "1d1ms", "3651d", "1", ""] {
            assert!(every(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_timeout_is_more_than_nothing() {
        assert_eq!(timeout("1ms"), Ok(Span::from_ms(1)));
        assert!(timeout("0s").is_err() && timeout("x").is_err());
    }

    #[test]
    fn a_label_has_an_equals_sign_or_a_colon() {
        let is = |k: &str, v: &str| Ok((k.to_owned(), v.to_owned()));
        assert_eq!(label("a:b"), is("a", "b"));
        assert_eq!(label("a=b:c=d"), is("a", "b:c=d"));
        assert_eq!(label("a:b=c"), is("a:b", "c"));
        assert_eq!(label("a:b:c"), is("a:b", "c"));
        for wrong in [":b", "=b", "ab", ""] {
            assert!(label(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_range_is_said_in_words() {
        let told = |parsed: Result<i128, String>| parsed.unwrap_err();
        for (min, max, text, want) in [
            (-100, 100, "300", "must be between -100 and 100"),
            (-100, 100, "x", "must be a whole number between -100 and 100"),
            (1, 1_000, "0", "must be between 1 and 1,000"),
            (0, 1_000_000_000, "-1", "must be at least 0"),
            (0, 1_000_000_000, "9999999999", "must be at most 1,000,000,000"),
            (1, 1_000_000_000, "1.5", "must be a whole number, at least 1"),
        ] {
            assert_eq!(told(whole(min, max)(text)), want, "{text}");
        }
        assert_eq!(whole(1_u64, u64::MAX)("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(count("0"), Ok(0));
        assert!(positive("0").is_err());
    }

    #[test]
    fn a_moment_out_of_range_is_refused_with_the_bound() {
        assert_eq!(
            moment("9999-12-31T23:59:59Z").unwrap_err(),
            format!(
                "this is later than the latest moment ({}); for \"never\" leave it out",
                Moment::LAST
            )
        );
        assert!(moment("2255-06-01T00:00:01Z").unwrap_err().contains("the latest moment"));
        for early in ["1969-12-31T23:59:59Z", "1800-01-01T00:00:00Z"] {
            assert!(moment(early).unwrap_err().contains("1970 or later"), "{early}");
        }
    }

    #[test]
    fn an_end_is_a_moment_or_so_long_from_now() {
        let now = Moment::from_us(5_000_000);
        assert_eq!(end("2h").map(|end| end.moment(now)), Ok(now.plus(Span::from_s(7_200))));
        let at = "2026-12-01T09:55:00Z";
        assert_eq!(end(at).map(|end| end.moment(now)), Ok(at.parse().unwrap()));
        assert!(end("9999d").unwrap_err().contains("3650d"));
        assert!(end("soon").unwrap_err().contains("2026-12-01 09:55"));
    }
}
