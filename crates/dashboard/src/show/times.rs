//! Times as text in UTC, which a script rewrites in the reader's own zone; and short durations for people.

use maud::{Markup, html};
use tenure_core::time::{Moment, Span};

use crate::language::sentences;
use crate::visit::Visit;

sentences! { TimeWords;
    ago(span): "{span} ago", "{span}前";
    soon(span): "in {span}", "{span}后";
    now: "now", "刚刚";
}

/// A duration in its two largest units, without useless digits: `2h14m`, `48s`, `320ms`.
pub(crate) fn for_people(span: Span) -> String {
    const S: u64 = 1_000_000;
    let round = match span.us() {
        us if us < 10 * S => us.div_ceil(1_000) * 1_000,
        us if us < 3_600 * S => us / S * S,
        us if us < 86_400 * S => us / (60 * S) * 60 * S,
        us => us / (3_600 * S) * 3_600 * S,
    };
    match round {
        // For a few seconds a tenth is precise enough.
        us if (S..10 * S).contains(&us) => format!("{}.{}s", us / S, us % S / 100_000),
        us => Span::from_us(us).to_string(),
    }
}

fn iso(moment: Moment) -> String {
    let text = moment.to_string();
    // Neither the script nor the reader needs more than milliseconds.
    format!("{}Z", text.get(..23).unwrap_or(&text))
}

/// How long ago a moment was, or how far ahead it is.
pub(crate) fn ago(visit: &Visit, moment: Moment) -> Markup {
    let words = TimeWords(visit.tongue);
    let text = if moment > visit.now {
        words.soon(for_people(moment.since(visit.now)))
    } else if visit.since(moment) < Span::from_s(1) {
        words.now()
    } else {
        // Nobody needs tenths of a second in the past.
        let whole = visit.since(moment).us() / 1_000_000;
        words.ago(for_people(Span::from_s(whole)).replace(".0s", "s"))
    };
    html! { time datetime=(iso(moment)) title=(moment) { (text) } }
}

/// A moment by date and clock.
pub(crate) fn at(moment: Moment) -> Markup {
    let text = moment.to_string();
    let (day, clock) = (text.get(..10).unwrap_or(""), text.get(11..19).unwrap_or(""));
    html! { time datetime=(iso(moment)) title=(moment) data-as="at" { (day) " " (clock) " UTC" } }
}

/// A moment by its clock, with the date if it is another day.
pub(crate) fn clock(visit: &Visit, moment: Moment) -> Markup {
    let (text, today) = (moment.to_string(), visit.now.to_string());
    let shown = if text.get(..10) == today.get(..10) {
        text.get(11..19).map(|clock| format!("{clock}Z"))
    } else {
        text.get(5..16).map(|day| format!("{}Z", day.replace('T', " ")))
    };
    html! {
        time datetime=(iso(moment)) title=(moment) data-as="clock" { (shown.unwrap_or_default()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_no_longer_than_people_say_it() {
        for (text, shown) in [
            ("0s", "0s"),
            ("320ms", "320ms"),
            ("1s", "1.0s"),
            ("9s950ms", "9.9s"),
            ("48s700ms", "48s"),
            ("4m12s", "4m12s"),
            ("2h14m9s", "2h14m"),
            ("1d1h59m", "1d1h"),
            ("7d", "7d"),
        ] {
            assert_eq!(for_people(text.parse().unwrap()), shown, "{text}");
        }
        assert_eq!(for_people(Span::from_us(1)), "1ms");
    }
}
