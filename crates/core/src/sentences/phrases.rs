//! Parts of sentences that several cases share.

use crate::decode::nearest;
use crate::time::Moment;

/// The beginning of a text from outside, at most 80 characters.
pub(crate) fn cut(text: &str) -> String {
    text.chars().take(80).collect()
}

/// `did you mean "queue"? `, or nothing.
pub(crate) fn did_you_mean<S: AsRef<str>>(name: &str, names: &[S]) -> String {
    match nearest(name, names.iter().map(AsRef::as_ref)) {
        Some(near) => format!("did you mean {near:?}? "),
        None => String::new(),
    }
}

/// Joins names as `"a", "b" or "c"`.
pub(crate) fn listed<S: AsRef<str>>(names: &[S], word: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{:?}", name.as_ref())).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} {word} {last}", before.join(", ")),
        None => "nothing".to_owned(),
    }
}

/// Explains that a recovering store grants nothing of a limit or a pool, since it may have forgotten its holders.
pub(crate) fn forgotten(name: &str, until: Moment) -> String {
    format!(
        "the store may have forgotten its last writes, and so who holds {name:?}: nothing of it is granted before \
         {until}, when each lease that was forgotten is over"
    )
}

/// Advice on the form of a duration.
pub(super) const SPAN_FORM: &str = "write a duration as a string of whole numbers with units, largest first, such as \
                                    \"5m\", \"90s\", \"2h30m\" or \"500ms\"";

/// Advice on the form of a moment.
pub(super) const MOMENT_FORM: &str = "write a moment as an RFC 3339 string with its offset, such as \
                                      \"2026-12-01T09:55:00Z\" or \"2026-12-01T17:55:00+08:00\"";

/// Advice after a bug of Tenure.
pub(super) const REPEAT_AND_REPORT: &str =
    "send the same call again, with the same ids; report it if it stays so";
