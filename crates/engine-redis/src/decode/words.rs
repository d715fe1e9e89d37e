//! Sentences for people that the library wrote: it leaves moments, spans, names and leases as they
//! are between marks that no name can contain, and here they get the form that every engine uses.

use tenure_core::time::{Moment, Span};

const MOMENT: char = '\u{1}';
const SPAN: char = '\u{2}';
const QUOTED: char = '\u{3}';
const LEASE: char = '\u{4}';

/// A text with everything between marks in its form.
pub(super) fn spoken(text: &str) -> String {
    let marks = [MOMENT, SPAN, QUOTED, LEASE];
    let mut said = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(from) = rest.find(marks) {
        let (before, marked) = rest.split_at(from);
        said.push_str(before);
        let mut chars = marked.chars();
        let mark = chars.next().unwrap_or_default();
        let marked = chars.as_str();
        let Some(end) = marked.find(mark) else {
            rest = marked;
            continue;
        };
        said.push_str(&form(mark, &marked[..end]));
        rest = &marked[end + mark.len_utf8()..];
    }
    said.push_str(rest);
    said
}

fn form(mark: char, text: &str) -> String {
    let number = || text.parse::<u64>().ok();
    let formed = match mark {
        MOMENT => number().map(|us| Moment::from_us(us).to_string()),
        SPAN => number().map(|us| Span::from_us(us).to_string()),
        // The id of a lease tells what it holds, and a finding is that something is not there.
        LEASE => text.split_once(':').and_then(|(fence, seq)| {
            let (fence, seq) = (fence.parse::<u64>().ok()?, seq.parse::<u64>().ok()?);
            Some(match seq {
                0 => format!("of fence {fence}"),
                _ => format!("of fence {fence} (job row {seq})"),
            })
        }),
        _ => Some(format!("{text:?}")),
    };
    formed.unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_marked_gets_its_form() {
        for (text, said) in [
            ("plain", "plain"),
            ("until \u{1}1800000000000000\u{1}.", "until 2027-01-15T08:00:00.000000Z."),
            ("for \u{2}90000000\u{2}", "for 1m30s"),
            ("\u{3}größe\u{3} and \u{3}b\"\u{3}", "\"größe\" and \"b\\\"\""),
            ("lease \u{4}255:16\u{4}", "lease of fence 255 (job row 16)"),
            ("lease \u{4}255:0\u{4}", "lease of fence 255"),
            ("\u{4}x\u{4}\u{1}y\u{1}", "xy"),
            ("open \u{3}end", "open end"),
            ("\u{3}\u{3}", "\"\""),
        ] {
            assert_eq!(spoken(text), said);
        }
    }
}
