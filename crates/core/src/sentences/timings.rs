//! Refusals of timings: cron expressions, zones and intervals. `tenure-calendar` decides those of cron and zones.

use super::phrases::did_you_mean;
use super::table::refusals;
use super::{Phrase, listed};

/// Advice on the zone of an expression.
const ZONE_FORM: &str =
    "use the IANA name of a zone with its capitals, such as \"Europe/Berlin\" or \"UTC\"";

refusals! {
    /// A text that is no timing. `field` is a field of a cron expression; `shown` is its content.
    TimingRefusal:

    NotWholeSeconds InvalidField { shown: String }
        detail("{shown:?} is not a whole number of seconds")
        hint("use whole seconds, such as \"90s\", \"15m\" or \"1d\"");

    CronFields InvalidField { given: usize }
        detail("a cron expression has five or six fields, not {given}")
        hint("write minute, hour, day, month and weekday, such as \"0 9 * * 1-5\"; where there are six, the first is \
              the second");

    CronShorthand InvalidField { shown: String, known: Vec<Phrase> }
        detail("there is no cron shorthand {shown:?}")
        hint("{}use {}, or five fields", did_you_mean(&shown, &known), listed(&known, "or"));

    CronForm InvalidField { field: Phrase, shown: String, form: Phrase }
        detail("{shown:?} is not a form of the {field} of a cron expression")
        hint("{form}");

    CronOutside InvalidField { field: Phrase, shown: String, min: i64, max: i64 }
        detail("{shown:?} is outside the {field} of a cron expression")
        hint("use {min} to {max}");

    CronBackwards InvalidField { field: Phrase, shown: String }
        detail("the range {shown:?} in the {field} of a cron expression runs backwards")
        hint("a range does not wrap; write two of them in a list, as in \"22-23,0-2\"");

    CronStep InvalidField { field: Phrase, shown: String, max: i64 }
        detail("the step of {shown:?} is outside the {field} of a cron expression")
        hint("use a step from 1 to {max}");

    ZoneUnknown UnknownZone { shown: String, near: Option<String> }
        detail("there is no zone {shown:?}")
        hint("{}{ZONE_FORM}", near.map(|near| format!("did you mean {near:?}? ")).unwrap_or_default());

    NeverFires NeverFires
        detail("the timing has no moment within ten years")
        hint("check that its day exists in its months, and that \"starts_at\" and \"ends_at\" leave room for a moment");
}
