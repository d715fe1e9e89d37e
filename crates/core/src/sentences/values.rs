//! Refusals of values that come as text: durations, moments, numbers, words, parameters of a query.

use super::phrases::{MOMENT_FORM, SPAN_FORM};
use super::table::refusals;
use super::{Phrase, did_you_mean, listed};

/// Advice on the encoding of text in an address.
const PERCENT_FORM: &str =
    "write every byte that is not a letter, a digit or one of -._~ as %XX, in UTF-8";

/// The latest moment that may be given, in the form that a person writes.
pub(super) const LATEST: &str = "2255-06-01T00:00:00Z";

refusals! {
    /// A text that is no value of its kind. `shown` is the beginning of the text.
    ValueRefusal:

    NotADuration InvalidField { shown: String }
        detail("{shown:?} is not a duration")
        hint("{SPAN_FORM}");

    DurationOutside OutOfBounds { shown: String, bounds: String }
        detail("the duration {shown:?} is outside its bounds")
        hint("use {bounds}");

    NotAMoment InvalidField { shown: String }
        detail("{shown:?} is not a moment with an offset")
        hint("{MOMENT_FORM}");

    MomentTooFar OutOfBounds { shown: String }
        detail("the moment {shown:?} is too far ahead")
        hint("the latest moment is {LATEST}; to say \"never\", leave the field out");

    NotAWholeNumber InvalidField { shown: String, min: i64, max: i64 }
        detail("{shown:?} is not a whole number")
        hint("use a whole number from {min} to {max}, without a point or an exponent");

    NumberOutside OutOfBounds { shown: String, min: i64, max: i64 }
        detail("{shown} is outside its bounds")
        hint("use a whole number from {min} to {max}");

    NotOneOf InvalidField { shown: String, what: Phrase, words: Vec<Phrase> }
        detail("{shown:?} is not {what}")
        hint("{}use {}", did_you_mean(&shown, &words), listed(&words, "or"));

    TooLong OutOfBounds { bytes: usize, most: usize }
        detail("a text of {bytes} bytes is longer than {most}")
        hint("use at most {most} bytes");

    LabelValueColon InvalidField
        detail("a label is looked for by KEY:VALUE, which is split at its last colon")
        hint("give a key that is not empty, and a value without a colon");

    NotALabel InvalidField { shown: String }
        detail("{shown:?} is not KEY:VALUE")
        hint("write a label as its key, a colon and its value, such as source:feed");

    CursorEmpty InvalidField
        detail("the cursor is empty")
        hint("give the \"next\" of the page before, and leave it out for the first page");

    CursorOfAnother InvalidField { cursor: String }
        detail("the cursor {cursor:?} is not one of this list")
        hint("give the \"next\" of the page before, unchanged");

    FilterEmpty InvalidField
        detail("a call on many jobs must say which ones")
        hint("give at least one of \"queue\", \"state\", \"kind\", \"label\", \"flow\", \"schedule\", \"error\", \
              \"finished_after\" and \"finished_before\"");

    ParameterUnknown UnknownField { shown: String, known: Vec<Phrase> }
        detail("the query parameter {shown:?} is unknown here")
        hint("{}this call has {}", did_you_mean(&shown, &known), listed(&known, "and"));

    ParameterOfNone UnknownField { shown: String }
        detail("the query parameter {shown:?} is unknown here")
        hint("this call has no query parameters");

    ParameterTwice InvalidField { shown: String }
        detail("the query parameter {shown:?} stands twice")
        hint("give {shown:?} once");

    ParameterEncoding InvalidField { name: String }
        detail("the query parameter {name:?} is not percent-encoded UTF-8")
        hint("{PERCENT_FORM}");

    PathEncoding InvalidField { name: String }
        detail("{name:?} in the path is not percent-encoded UTF-8")
        hint("{PERCENT_FORM}");

    LeaderMissing InvalidField
        detail("a sync of schedules needs \"owner\"")
        hint("add ?owner=NAME: the table outside from which the whole set comes");
}
