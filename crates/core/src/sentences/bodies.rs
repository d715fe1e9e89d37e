//! Refusals of bodies: not JSON, a wrong type, a field that is unknown, missing or excluded by another one.

use super::phrases::{MOMENT_FORM, SPAN_FORM};
use super::table::refusals;
use super::{Phrase, did_you_mean, listed};

/// The place of an item in a set: in an array from 0, in NDJSON its line from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetPlace {
    /// Index in the array, from 0.
    Item(usize),
    /// Line of the NDJSON, from 1.
    Line(usize),
}

impl std::fmt::Display for SetPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SetPlace::Item(index) => write!(f, "item {index}"),
            SetPlace::Line(number) => write!(f, "line {number}"),
        }
    }
}

/// Advice for content that is too large.
const KEEP_ELSEWHERE: &str = "keep large content elsewhere, and send where it is";

refusals! {
    /// A body that does not fit the call. `label` is the word for the place in sentences (`"priority"`, `item 3`);
    /// `noun` is the JSON type that was found, with its article.
    BodyRefusal:

    Empty InvalidField
        detail("the body is empty, and one is needed")
        hint("send a JSON object; {{}} names nothing");

    NotJson BadJson { what: Phrase, wrong: Phrase, line: usize, column: usize, offset: usize, advice: Phrase }
        detail("{what} is not JSON: {wrong} (line {line}, column {column}, byte {offset})")
        hint("{advice}");

    LineNotJson BadJson { wrong: Phrase, column: usize, offset: usize, advice: Phrase }
        detail("the line is not JSON: {wrong} (column {column}, byte {offset})")
        hint("{advice}");

    PayloadLineNotJson BadJson { wrong: Phrase, column: usize, offset: usize }
        detail("the line is not JSON: {wrong} (column {column}, byte {offset})")
        hint("a string needs its quotes: '\"text\"'");

    ValueNotJson BadJson { label: String }
        detail("{label} is not JSON")
        hint("send JSON as RFC 8259 writes it");

    LineTooLong TooLarge { most: usize }
        detail("the line is longer than {most} bytes")
        hint("{KEEP_ELSEWHERE}");

    ContentTooLong OutOfBounds { label: String, bytes: usize, most: usize }
        detail("{label} has {bytes} bytes, and {most} is the most")
        hint("{KEEP_ELSEWHERE}");

    NotAString InvalidField { label: String, noun: Phrase }
        detail("{label} must be a string, not {noun}")
        hint("write it as a JSON string");

    NotAWord InvalidField { label: String, noun: Phrase, words: Vec<Phrase> }
        detail("{label} must be a string, not {noun}")
        hint("use {}", listed(&words, "or"));

    NotADuration InvalidField { label: String, noun: Phrase }
        detail("{label} must be a duration, not {noun}")
        hint("{SPAN_FORM}");

    NotAMoment InvalidField { label: String, noun: Phrase }
        detail("{label} must be a moment, not {noun}")
        hint("{MOMENT_FORM}");

    NotAWholeNumber InvalidField { label: String, noun: Phrase, min: i64, max: i64 }
        detail("{label} must be a whole number, not {noun}")
        hint("use a whole number from {min} to {max}");

    NumberOutside OutOfBounds { label: String }
        detail("{label} is outside its bounds")
        hint("use a smaller number");

    NotABoolean InvalidField { label: String, noun: Phrase }
        detail("{label} must be a boolean, not {noun}")
        hint("use true or false");

    NotAnArray InvalidField { label: String, noun: Phrase }
        detail("{label} must be an array, not {noun}")
        hint("write it as a JSON array, also for one");

    NotAnObject InvalidField { label: String, noun: Phrase, what: Phrase }
        detail("{label} must be an object, not {noun}")
        hint("send {what} as a JSON object");

    NotLabels InvalidField { label: String, noun: Phrase }
        detail("{label} must be an object, not {noun}")
        hint("write labels as an object of strings, such as {{\"source\": \"feed\"}}");

    NotShares InvalidField { label: String, noun: Phrase }
        detail("{label} must be an object, not {noun}")
        hint("write shares as an object of whole numbers, such as {{\"tenant-7\": 3}}");

    NotAWorker InvalidField { noun: Phrase }
        detail("\"worker\" must be a string or an object, not {noun}")
        hint("use a random id per process, or {{\"id\", \"host\", \"pid\", \"version\"}}");

    NotALease InvalidField { noun: Phrase }
        detail("a lease to extend must be a string or an object, not {noun}")
        hint("use the lease's id, or {{\"lease\": \"LEASE\", \"progress\": …}}");

    NotASet InvalidField { noun: Phrase }
        detail("the body must be an array, not {noun}")
        hint("send the whole set as an array of {{\"id\", \"data\", \"tags\", \"slots\"}}; a single one is added, not \
              synced");

    TooManyItems OutOfBounds { label: String, items: usize, most: usize }
        detail("{label} has {items} items")
        hint("send at most {most}");

    ItemsOutside OutOfBounds { label: String, items: usize, min: usize, max: usize }
        detail("{label} has {items} items")
        hint("send {min} to {max}");

    ResourcesOutside OutOfBounds { sent: usize, most: usize }
        detail("{sent} resources are sent")
        hint("send 1 to {most} in one call");

    LabelKeyLength OutOfBounds { bytes: usize, most: usize }
        detail("the key of a label has {bytes} bytes")
        hint("use 1 to {most} bytes");

    TooManyLabels OutOfBounds { labels: usize, most: usize }
        detail("{labels} labels are given")
        hint("use at most {most} labels");

    FieldUnknown UnknownField { shown: String, what: Phrase, fields: Vec<Phrase> }
        detail("{shown:?} is not a field of {what}")
        hint("{}{}", did_you_mean(&shown, &fields), known(&what, &fields));

    FieldAnswered UnknownField { shown: String, what: Phrase, fields: Vec<Phrase> }
        detail("{shown:?} is not a field of {what}")
        hint("{shown:?} is answered and cannot be set; {}", known(&what, &fields));

    FieldMissing InvalidField { what: Phrase, name: Phrase, form: Phrase }
        detail("{what} needs {name:?}")
        hint("add {form}");

    IdTwice InvalidField { shown: String, first: SetPlace, second: SetPlace }
        detail("the id {shown:?} stands twice in the set: {first} and {second} have it")
        hint("give each item an id of its own; a join repeats a row for each of its matches");

    NotTheOwner InvalidField { shown: String }
        detail("the owner {shown:?} is not that of the set")
        hint("leave \"owner\" out, or sync the set of that owner");

    NotTheIdOfThePath InvalidField { shown: String }
        detail("the id {shown:?} is not that of the path")
        hint("leave \"id\" out, or put it to its own path");

    TimingMissing InvalidField
        detail("a schedule needs \"cron\" or \"every\"")
        hint("add \"cron\": \"0 9 * * 1-5\", or \"every\": \"15m\"");

    FieldsExclude ConflictingFields { one: Phrase, other: Phrase }
        detail("{one:?} and {other:?} exclude each other")
        hint("give {one:?} or {other:?}, not both");

    NotAParent InvalidField { label: String, noun: Phrase }
        detail("{label} must name a parent, not {noun}")
        hint("write \"JOB\", \"key:KEY\", {{\"job\": \"JOB\"}}, {{\"ref\": \"REF\"}} or {{\"flow\": \"FLOW\"}}");

    FieldWithout ConflictingFields { name: Phrase, because: String }
        detail("{name:?} does not go with {because}")
        hint("leave out {name:?}, or change {because}");

    MaxWithNeeds ConflictingFields
        detail("\"max\" above 1 does not go with \"needs\"")
        hint("leave out \"max\", and send one call for each lease");

    CountWithId ConflictingFields
        detail("\"count\" above 1 does not go with \"id\", which names one resource")
        hint("leave out \"count\" or \"id\"");

    RetryInWithFinal ConflictingFields
        detail("\"retry_in\" and \"final\" exclude each other")
        hint("give \"retry_in\" for another attempt, or \"final\": true for none");

    ResetWithoutSnooze InvalidField { outcome: Phrase }
        detail("\"reset\" goes with the outcome \"snoozed\", not with {outcome:?}")
        hint("leave out \"reset\"; a retry by hand starts the attempts of a finished job again");

    TtlWithoutLease InvalidField
        detail("a \"ttl\" of \"0s\" leaves no lease, and a job needs one")
        hint("use a \"ttl\" of \"1s\" to \"1h\"; \"0s\" is for \"needs\" that are only rates");
}

fn known(what: &str, fields: &[Phrase]) -> String {
    match fields.len() {
        0 => format!("{what} has no fields"),
        1 => format!("the only field of {what} is {}", listed(fields, "and")),
        _ => format!("the fields of {what} are {}", listed(fields, "and")),
    }
}
