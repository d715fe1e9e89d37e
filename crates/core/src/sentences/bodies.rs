//! Refusals of bodies: not JSON, a wrong type, a field that is unknown, missing or excluded by another one.

use super::phrases::{MOMENT_FORM, SPAN_FORM};
use super::table::refusals;
use super::{Phrase, did_you_mean, listed};

/// The place of an item in a set: in an array from 0, in NDJSON its line from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
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

    Empty "body_empty"
        InvalidField
        detail("the body is empty, and one is needed")
        hint("send a JSON object; {{}} names nothing");

    NotJson "not_json" { what: Phrase, wrong: Phrase, line: usize, column: usize, offset: usize, advice: Phrase }
        BadJson
        detail("{what} is not JSON: {wrong} (line {line}, column {column}, byte {offset})")
        hint("{advice}");

    LineNotJson "line_not_json" { wrong: Phrase, column: usize, offset: usize, advice: Phrase }
        BadJson
        detail("the line is not JSON: {wrong} (column {column}, byte {offset})")
        hint("{advice}");

    PayloadLineNotJson "payload_line_not_json" { wrong: Phrase, column: usize, offset: usize }
        BadJson
        detail("the line is not JSON: {wrong} (column {column}, byte {offset})")
        hint("a string needs its quotes: '\"text\"'");

    ValueNotJson "value_not_json" { label: String }
        BadJson
        detail("{label} is not JSON")
        hint("send JSON as RFC 8259 writes it");

    LineTooLong "line_too_long" { most: usize }
        TooLarge
        detail("the line is longer than {most} bytes")
        hint("{KEEP_ELSEWHERE}");

    ContentTooLong "content_too_long" { label: String, bytes: usize, most: usize }
        OutOfBounds
        detail("{label} has {bytes} bytes, and {most} is the most")
        hint("{KEEP_ELSEWHERE}");

    NotAString "field_not_string" { label: String, noun: Phrase }
        InvalidField
        detail("{label} must be a string, not {noun}")
        hint("write it as a JSON string");

    NotAWord "field_not_word" { label: String, noun: Phrase, words: Vec<Phrase> }
        InvalidField
        detail("{label} must be a string, not {noun}")
        hint("use {}", listed(&words, "or"));

    NotADuration "field_not_duration" { label: String, noun: Phrase }
        InvalidField
        detail("{label} must be a duration, not {noun}")
        hint("{SPAN_FORM}");

    NotAMoment "field_not_moment" { label: String, noun: Phrase }
        InvalidField
        detail("{label} must be a moment, not {noun}")
        hint("{MOMENT_FORM}");

    NotAWholeNumber "field_not_whole_number" { label: String, noun: Phrase, min: i64, max: i64 }
        InvalidField
        detail("{label} must be a whole number, not {noun}")
        hint("use a whole number from {min} to {max}");

    NumberOutside "field_outside" { label: String }
        OutOfBounds
        detail("{label} is outside its bounds")
        hint("use a smaller number");

    NotABoolean "field_not_boolean" { label: String, noun: Phrase }
        InvalidField
        detail("{label} must be a boolean, not {noun}")
        hint("use true or false");

    NotAnArray "field_not_array" { label: String, noun: Phrase }
        InvalidField
        detail("{label} must be an array, not {noun}")
        hint("write it as a JSON array, also for one");

    NotAnObject "field_not_object" { label: String, noun: Phrase, what: Phrase }
        InvalidField
        detail("{label} must be an object, not {noun}")
        hint("send {what} as a JSON object");

    NotLabels "field_not_labels" { label: String, noun: Phrase }
        InvalidField
        detail("{label} must be an object, not {noun}")
        hint("write labels as an object of strings, such as {{\"source\": \"feed\"}}");

    NotShares "field_not_shares" { label: String, noun: Phrase }
        InvalidField
        detail("{label} must be an object, not {noun}")
        hint("write shares as an object of whole numbers, such as {{\"tenant-7\": 3}}");

    NotAWorker "field_not_worker" { noun: Phrase }
        InvalidField
        detail("\"worker\" must be a string or an object, not {noun}")
        hint("use a random id per process, or {{\"id\", \"host\", \"pid\", \"version\"}}");

    NotALease "field_not_lease" { noun: Phrase }
        InvalidField
        detail("a lease to extend must be a string or an object, not {noun}")
        hint("use the lease's id, or {{\"lease\": \"LEASE\", \"progress\": …}}");

    NotASet "body_not_set" { noun: Phrase }
        InvalidField
        detail("the body must be an array, not {noun}")
        hint("send the whole set as an array of {{\"id\", \"data\", \"tags\", \"slots\"}}; a single one is added, not \
              synced");

    TooManyItems "too_many_items" { label: String, items: usize, most: usize }
        OutOfBounds
        detail("{label} has {items} items")
        hint("send at most {most}");

    ItemsOutside "items_outside" { label: String, items: usize, min: usize, max: usize }
        OutOfBounds
        detail("{label} has {items} items")
        hint("send {min} to {max}");

    ResourcesOutside "resources_outside" { sent: usize, most: usize }
        OutOfBounds
        detail("{sent} resources are sent")
        hint("send 1 to {most} in one call");

    LabelKeyLength "label_key_length" { bytes: usize, most: usize }
        OutOfBounds
        detail("the key of a label has {bytes} bytes")
        hint("use 1 to {most} bytes");

    TooManyLabels "too_many_labels" { labels: usize, most: usize }
        OutOfBounds
        detail("{labels} labels are given")
        hint("use at most {most} labels");

    FieldUnknown "field_unknown" { shown: String, what: Phrase, fields: Vec<Phrase> }
        UnknownField
        detail("{shown:?} is not a field of {what}")
        hint("{}{}", did_you_mean(&shown, &fields), known(&what, &fields));

    FieldAnswered "field_answered" { shown: String, what: Phrase, fields: Vec<Phrase> }
        UnknownField
        detail("{shown:?} is not a field of {what}")
        hint("{shown:?} is answered and cannot be set; {}", known(&what, &fields));

    FieldMissing "field_missing" { what: Phrase, name: Phrase, form: Phrase }
        InvalidField
        detail("{what} needs {name:?}")
        hint("add {form}");

    IdTwice "id_twice" { shown: String, first: SetPlace, second: SetPlace }
        InvalidField
        detail("the id {shown:?} stands twice in the set: {first} and {second} have it")
        hint("give each item an id of its own; a join repeats a row for each of its matches");

    NotTheOwner "not_the_owner" { shown: String }
        InvalidField
        detail("the owner {shown:?} is not that of the set")
        hint("leave \"owner\" out, or sync the set of that owner");

    NotTheIdOfThePath "not_the_id_of_the_path" { shown: String }
        InvalidField
        detail("the id {shown:?} is not that of the path")
        hint("leave \"id\" out, or put it to its own path");

    TimingMissing "timing_missing"
        InvalidField
        detail("a schedule needs \"cron\" or \"every\"")
        hint("add \"cron\": \"0 9 * * 1-5\", or \"every\": \"15m\"");

    FieldsExclude "fields_exclude" { one: Phrase, other: Phrase }
        ConflictingFields
        detail("{one:?} and {other:?} exclude each other")
        hint("give {one:?} or {other:?}, not both");

    NotAParent "not_a_parent" { label: String, noun: Phrase }
        InvalidField
        detail("{label} must name a parent, not {noun}")
        hint("write \"JOB\", \"key:KEY\", {{\"job\": \"JOB\"}}, {{\"ref\": \"REF\"}} or {{\"flow\": \"FLOW\"}}");

    FieldWithout "field_without" { name: Phrase, because: String }
        ConflictingFields
        detail("{name:?} does not go with {because}")
        hint("leave out {name:?}, or change {because}");

    MaxWithNeeds "max_with_needs"
        ConflictingFields
        detail("\"max\" above 1 does not go with \"needs\"")
        hint("leave out \"max\", and send one call for each lease");

    CountWithId "count_with_id"
        ConflictingFields
        detail("\"count\" above 1 does not go with \"id\", which names one resource")
        hint("leave out \"count\" or \"id\"");

    RetryInWithFinal "retry_in_with_final"
        ConflictingFields
        detail("\"retry_in\" and \"final\" exclude each other")
        hint("give \"retry_in\" for another attempt, or \"final\": true for none");

    ResetWithoutSnooze "reset_without_snooze" { outcome: Phrase }
        InvalidField
        detail("\"reset\" goes with the outcome \"snoozed\", not with {outcome:?}")
        hint("leave out \"reset\"; a retry by hand starts the attempts of a finished job again");

    TtlWithoutLease "ttl_without_lease"
        InvalidField
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
