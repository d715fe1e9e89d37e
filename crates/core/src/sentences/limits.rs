//! Refusals of calls that set or name a limit.

use super::table::refusals;
use crate::names::LimitName;
use crate::time::Span;

refusals! {
    /// Why a limit is not as a call wants it.
    LimitRefusal:

    NotSet "limit_not_set" { limit: LimitName }
        LimitNotFound
        detail("the limit {limit:?} is not set")
        hint("set it first; list the limits to see those that are set or in use");

    LockTemplateStays "limit_lock_template_stays"
        InUse
        detail("the template \"lock:*\" is always there")
        hint("set \"lock:*\" to change it, or \"lock:NAME\" for one lock alone");

    WithoutBound "limit_without_bound"
        InvalidField
        detail("a limit needs \"concurrency\", \"rate\" or \"gap\"")
        hint("give at least one, such as {{\"concurrency\": 1}}; to forget a limit, delete it");

    GapAlone "limit_gap_alone"
        InvalidField
        detail("a limit with a \"gap\" needs a \"concurrency\"")
        hint("add \"concurrency\": 1; for a rate without a cap use \"rate\"");

    QuarantineAlone "limit_quarantine_alone"
        InvalidField
        detail("a limit with a \"quarantine\" needs a \"concurrency\"")
        hint("add \"concurrency\": 1; a rate alone has no permits that could rest");

    BurstUncountable "limit_burst_uncountable" { burst: u32, per: Span, most: u64 }
        OutOfBounds
        detail("a \"burst\" of {burst} per \"{per}\" is more than can be counted exactly")
        hint("use a \"burst\" of at most {most} with this \"per\", or a shorter \"per\"");
}
