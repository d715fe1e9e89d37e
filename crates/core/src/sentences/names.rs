//! Refusals of names and ids that are not well formed.

use super::Phrase;
use super::table::refusals;

/// Advice on the form of a name.
const NAME_FORM: &str = "use 1 to 128 bytes of UTF-8 without control characters, '/', '?', '#' and ',', and without \
                         a space at either end";

/// Advice on the namespace header.
const NAMESPACE_FORM: &str =
    "send one namespace of [a-z0-9][a-z0-9-]{0,62}, or leave the header out";

/// Advice on the form of a limit's name.
const LIMIT_FORM: &str = "a limit is \"family\" or \"family:key\"; the family is [a-z0-9._-]+, and \"family:*\" is \
                          the template of its family";

refusals! {
    /// A text that is no name, id or key. `what` is the kind of name; `shown` is the beginning of the text.
    NameRefusal:

    TooLong OutOfBounds { what: Phrase, bytes: usize, most: usize }
        detail("the {what} has {bytes} bytes, more than {most}")
        hint("use at most {most} bytes");

    Empty InvalidField { what: Phrase }
        detail("{what} \"\" is empty")
        hint("{NAME_FORM}");

    BlankAtEnd InvalidField { what: Phrase, shown: String, character: char }
        detail("{what} {shown:?} begins or ends with a space or an invisible character, {character:?}")
        hint("{NAME_FORM}");

    Contains InvalidField { what: Phrase, shown: String, character: char }
        detail("{what} {shown:?} contains {character:?}")
        hint("{NAME_FORM}");

    Dots InvalidField { what: Phrase, shown: String }
        detail("{what} {shown:?} cannot be used")
        hint("a client takes \".\" and \"..\" in a path for steps between folders; choose another name");

    KeyEmpty InvalidField { what: Phrase, most: usize }
        detail("{what} \"\" is empty")
        hint("use 1 to {most} bytes of UTF-8 without control characters, and without a space at either end");

    KeyContains InvalidField { what: Phrase, shown: String, character: char, most: usize }
        detail("{what} {shown:?} contains {character:?}")
        hint("use 1 to {most} bytes of UTF-8 without control characters, and without a space at either end");

    KeyBlankAtEnd InvalidField { what: Phrase, shown: String, character: char, most: usize }
        detail("{what} {shown:?} begins or ends with a space or an invisible character, {character:?}")
        hint("use 1 to {most} bytes of UTF-8 without control characters, and without a space at either end");

    JobIdIsReference InvalidField { shown: String }
        detail("job id {shown:?} begins with \"key:\"")
        hint("\"key:KEY\" stands for the job that holds a unique key; choose another id");

    ScheduleIdReserved InvalidField { shown: String }
        detail("schedule id {shown:?} cannot be used")
        hint("an id does not begin with \"key:\", and is neither \".\" nor \"..\"; choose another one");

    NotNamespace InvalidField { shown: String }
        detail("namespace {shown:?} is not a namespace")
        hint("use [a-z0-9][a-z0-9-]{{0,62}}");

    NamespaceTwice InvalidField
        detail("the namespace header stands twice")
        hint("{NAMESPACE_FORM}");

    NamespaceNotAscii InvalidField
        detail("the namespace is not plain ASCII")
        hint("{NAMESPACE_FORM}");

    LimitFamily InvalidField { shown: String }
        detail("limit name {shown:?} has no family of [a-z0-9._-]+")
        hint("{LIMIT_FORM}");

    LimitKeyEmpty InvalidField { shown: String }
        detail("limit name {shown:?} has an empty key")
        hint("{LIMIT_FORM}");

    LimitStar InvalidField { shown: String }
        detail("limit name {shown:?} has a '*' beside other characters")
        hint("{LIMIT_FORM}");

    LimitTemplate InvalidField { shown: String, family: String }
        detail("{shown:?} is a template, and no limit by itself")
        hint("name one limit of the family, such as \"{family}:example.com\"");

    KindControl InvalidField { most: usize }
        detail("a kind has a control character")
        hint("use at most {most} bytes of UTF-8 without control characters");

    TraceParent InvalidField
        detail("this is no trace context")
        hint("send the \"traceparent\" of W3C Trace Context, version 00, in lower case: \
              \"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"");

    LeaseEmpty InvalidField
        detail("the lease is empty")
        hint("name a lease by its id, as it was granted");

    EventId InvalidField
        detail("this is no id of an event")
        hint("give the \"next\" of an answer as it is, or the \"id\" of an event; \"first\" is the oldest that is kept");

    ProgressId InvalidField
        detail("this is no id of a progress")
        hint("give the \"progress_id\" of an answer as it is; \"none\" stands for no progress");

    EventType InvalidField { shown: String }
        detail("there is no type of events {shown:?}")
        hint("name types such as \"job.failed\", separated by commas, or a family: \"schedule.*\"");
}
