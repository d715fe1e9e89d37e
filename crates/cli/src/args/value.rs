//! Single values of the command line: names, durations, moments, rates, `none`.
//!
//! Each says in one sentence what is wrong and what the right form is. What a value *means* is
//! decided by the core's own parsers; nothing is parsed twice in two ways.

use std::fmt::Display;
use std::str::FromStr;

use tenure_core::bounds::{
    COUNT_MAX, EVERY_US_MIN, LIST_MAX, SECOND_US, SPAN_US_MAX, TTL_US_MAX, TTL_US_MIN,
};
use tenure_core::refusal::Refusal;
use tenure_core::requests::Patch;
use tenure_core::settings::Rate;
use tenure_core::time::{Moment, Span, TimeError};

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

/// A timeout: in no time nothing can run.
pub fn timeout(text: &str) -> Result<Span, String> {
    match span(text)? {
        Span::ZERO => Err("a timeout is more than 0s; none is without one".to_owned()),
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

/// A moment: RFC 3339 with an offset.
pub fn moment(text: &str) -> Result<Moment, String> {
    text.parse().map_err(|why| match why {
        TimeError::Form => "write a moment as \"2026-12-01T09:55:00Z\" or with an offset, as \
             \"2026-12-01T09:55:00+08:00\""
            .to_owned(),
        TimeError::Range => "a moment lies between 1970 and 2255".to_owned(),
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

/// A count of things that are had at once or per period, 0 or more.
pub fn count(text: &str) -> Result<u32, String> {
    match text.parse::<i64>() {
        Ok(n) if (0..=COUNT_MAX).contains(&n) => Ok(n as u32),
        _ => Err(format!("write a whole number from 0 to {COUNT_MAX}")),
    }
}

/// A count of things of which there must be one.
pub fn positive(text: &str) -> Result<u32, String> {
    match count(text)? {
        0 => Err(format!("write a whole number from 1 to {COUNT_MAX}")),
        n => Ok(n),
    }
}

/// The size of a page.
pub fn page_size(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (1..=LIST_MAX).contains(&n) => Ok(n),
        _ => Err(format!("a page has 1 to {LIST_MAX} items")),
    }
}

/// `K=V`; the value may contain `=`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it as KEY=VALUE".to_owned()),
    }
}

/// `k:v` of a label filter, as the API has it; `k=v` is understood too, as `push` writes it.
pub fn label(text: &str) -> Result<(String, String), String> {
    let cut = text.find([':', '=']).filter(|at| *at > 0);
    match cut {
        Some(at) => Ok((text[..at].to_owned(), text[at + 1..].to_owned())),
        None => Err("write it as KEY:VALUE".to_owned()),
    }
}

/// A rate without its burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PerSpan {
    /// Tokens per period.
    pub count: u32,
    /// The period.
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

/// What a `set` says of one field: a value, or `none` for "back to the default".
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting<T>(pub Patch<T>);

impl<T> Setting<T> {
    /// What an option that may be absent says.
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
    fn a_label_filter_takes_a_colon_or_an_equals_sign() {
        let is = |k: &str, v: &str| Ok((k.to_owned(), v.to_owned()));
        assert_eq!(label("a:b"), is("a", "b"));
        assert_eq!(label("a=b:c"), is("a", "b:c"));
        assert!(label(":b").is_err() && label("ab").is_err());
    }
}
