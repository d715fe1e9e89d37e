//! Refusals of calls that set or name a limit.

use super::Phrase;
use super::table::refusals;
use crate::names::LimitName;
use crate::time::Span;

refusals! {
    /// A limit that does not fit the call.
    LimitRefusal:

    NotSet LimitNotFound { limit: LimitName }
        detail("the limit {limit:?} is not set")
        hint("set it first; list the limits to see those that are set or in use");

    LockTemplateStays InUse
        detail("the template \"lock:*\" is always there")
        hint("set \"lock:*\" to change it, or \"lock:NAME\" for one lock alone");

    WithoutBound InvalidField
        detail("a limit needs \"concurrency\", \"rate\" or \"gap\"")
        hint("give at least one, such as {{\"concurrency\": 1}}; to forget a limit, delete it");

    GapAlone InvalidField
        detail("a limit with a \"gap\" needs a \"concurrency\"")
        hint("add \"concurrency\": 1; for a rate without a cap use \"rate\"");

    QuarantineAlone InvalidField
        detail("a limit with a \"quarantine\" needs a \"concurrency\"")
        hint("add \"concurrency\": 1; a rate alone has no permits that could rest");

    GaugeAlone InvalidField
        detail("a limit with a \"gauge\" needs a \"concurrency\"")
        hint("add \"concurrency\": 10; a rate alone has no permits that work outside could take");

    GaugeOfTemplate InvalidField
        detail("a template has no \"gauge\"")
        hint("set it for each limit of its own, such as \"site:example.com\"");

    GaugeAddressUnusable InvalidField { why: Phrase }
        detail("the address of the gauge {why}")
        hint("give the address of a server that this one can reach, such as \"http://HOST:6800/load\"");

    GaugeLinkLocal InvalidField
        detail("the address of the gauge is link-local or that of a cloud's metadata, where credentials of the machine are answered")
        hint("name another address; to ask this one all the same, start the server with --gauge-allow HOST");

    GaugePointerMalformed InvalidField
        detail("a pointer of \"count\" is no JSON pointer (RFC 6901)")
        hint("write \"/running\" for the member \"running\", \"~1\" for a slash in a name and \"~0\" for a tilde");

    GaugeStaleTooShort OutOfBounds { least: Span }
        detail("\"stale\" is below {:?}, for which a reading of this gauge is fresh", least.to_string())
        hint("use at least {:?}, which is three times \"every\" and at least 5 s", least.to_string());

    Gauged WrongState { limit: LimitName }
        detail("the limit {limit:?} has a gauge, which says what work outside takes")
        hint("take the gauge away first, by \"gauge\": null, if you want to say it yourself");

    BurstUncountable OutOfBounds { burst: u32, per: Span, most: u64 }
        detail("a \"burst\" of {burst} per \"{per}\" is more than can be counted exactly")
        hint("use a \"burst\" of at most {most} with this \"per\", or a shorter \"per\"");
}
