//! The text of the function library: what is loaded into the server, put together from the files
//! under `lua/` and from the bounds of core.
//!
//! It only makes text. It never talks to a server, and it never makes a library that reads its clock
//! from a key under the name of the one that users run.

use std::fmt::Write as _;

use data_encoding::HEXLOWER;
use sha1::{Digest, Sha1};
use tenure_core::bounds;

use crate::alphabet::spelled;

/// The layout of what is stored. Two releases work in one namespace only if they have the same; one of another is
/// refused (`TENURE_LAYOUT`). Whoever raises it keeps a namespace of the new one in `tests/layout`.
pub const LAYOUT: u32 = 12;
/// The version of the library among those of its layout. Both are part of the library's and of every function's name,
/// so that two releases lie side by side on one server; it grows whenever a release changes the text.
pub const VERSION: u32 = 1;

/// The files of the library, in the order in which they are put together. They are one chunk of Lua:
/// a file sees the locals of those above it.
const FRAGMENTS: &[(&str, &str)] = &[
    ("store/call.lua", include_str!("../lua/store/call.lua")),
    ("store/forms.lua", include_str!("../lua/store/forms.lua")),
    ("store/texts.lua", include_str!("../lua/store/texts.lua")),
    ("store/records.lua", include_str!("../lua/store/records.lua")),
    ("store/sets.lua", include_str!("../lua/store/sets.lua")),
    ("store/inner_sets.lua", include_str!("../lua/store/inner_sets.lua")),
    ("store/lines.lua", include_str!("../lua/store/lines.lua")),
    ("store/direct.lua", include_str!("../lua/store/direct.lua")),
    ("store/commit.lua", include_str!("../lua/store/commit.lua")),
    ("machine/space.lua", include_str!("../lua/machine/space.lua")),
    ("machine/events.lua", include_str!("../lua/machine/events.lua")),
    ("machine/order.lua", include_str!("../lua/machine/order.lua")),
    ("machine/doors/doors.lua", include_str!("../lua/machine/doors/doors.lua")),
    ("machine/doors/parking.lua", include_str!("../lua/machine/doors/parking.lua")),
    ("machine/doors/passes.lua", include_str!("../lua/machine/doors/passes.lua")),
    ("machine/marks.lua", include_str!("../lua/machine/marks.lua")),
    ("machine/limits.lua", include_str!("../lua/machine/limits.lua")),
    ("machine/gauges/rests.lua", include_str!("../lua/machine/gauges/rests.lua")),
    ("machine/gauges/attempts.lua", include_str!("../lua/machine/gauges/attempts.lua")),
    ("machine/gauges/readings.lua", include_str!("../lua/machine/gauges/readings.lua")),
    ("machine/gauges/settings.lua", include_str!("../lua/machine/gauges/settings.lua")),
    ("machine/pools.lua", include_str!("../lua/machine/pools.lua")),
    ("machine/doors/pools.lua", include_str!("../lua/machine/doors/pools.lua")),
    ("machine/jobs.lua", include_str!("../lua/machine/jobs.lua")),
    ("machine/keys.lua", include_str!("../lua/machine/keys.lua")),
    ("machine/replacing.lua", include_str!("../lua/machine/replacing.lua")),
    ("machine/leases.lua", include_str!("../lua/machine/leases.lua")),
    ("machine/reclaim.lua", include_str!("../lua/machine/reclaim.lua")),
    ("machine/grant.lua", include_str!("../lua/machine/grant.lua")),
    ("machine/ending.lua", include_str!("../lua/machine/ending.lua")),
    ("machine/kin.lua", include_str!("../lua/machine/kin.lua")),
    ("machine/telling.lua", include_str!("../lua/machine/telling.lua")),
    ("machine/flows.lua", include_str!("../lua/machine/flows.lua")),
    ("machine/waiting.lua", include_str!("../lua/machine/waiting.lua")),
    ("machine/awaits.lua", include_str!("../lua/machine/awaits.lua")),
    ("machine/parcels.lua", include_str!("../lua/machine/parcels.lua")),
    ("machine/serve.lua", include_str!("../lua/machine/serve.lua")),
    ("machine/place.lua", include_str!("../lua/machine/place.lua")),
    ("machine/blocks.lua", include_str!("../lua/machine/blocks.lua")),
    ("machine/short_way.lua", include_str!("../lua/machine/short_way.lua")),
    ("machine/short_push.lua", include_str!("../lua/machine/short_push.lua")),
    ("machine/short_grant.lua", include_str!("../lua/machine/short_grant.lua")),
    ("machine/short_keyed.lua", include_str!("../lua/machine/short_keyed.lua")),
    ("machine/short_settle.lua", include_str!("../lua/machine/short_settle.lua")),
    ("machine/direct.lua", include_str!("../lua/machine/direct.lua")),
    ("machine/direct_push.lua", include_str!("../lua/machine/direct_push.lua")),
    ("machine/moments.lua", include_str!("../lua/machine/moments.lua")),
    ("machine/zones.lua", include_str!("../lua/machine/zones.lua")),
    ("machine/copied_flows.lua", include_str!("../lua/machine/copied_flows.lua")),
    ("machine/copied_schedules.lua", include_str!("../lua/machine/copied_schedules.lua")),
    ("machine/firing.lua", include_str!("../lua/machine/firing.lua")),
    ("machine/staged.lua", include_str!("../lua/machine/staged.lua")),
    ("machine/clock.lua", include_str!("../lua/machine/clock.lua")),
    ("machine/sight.lua", include_str!("../lua/machine/sight.lua")),
    ("machine/tick.lua", include_str!("../lua/machine/tick.lua")),
    ("machine/audit/checks.lua", include_str!("../lua/machine/audit/checks.lua")),
    ("machine/audit/order.lua", include_str!("../lua/machine/audit/order.lua")),
    ("machine/audit/doors.lua", include_str!("../lua/machine/audit/doors.lua")),
    ("machine/audit/things.lua", include_str!("../lua/machine/audit/things.lua")),
    ("machine/audit/gauges.lua", include_str!("../lua/machine/audit/gauges.lua")),
    ("machine/audit/schedules.lua", include_str!("../lua/machine/audit/schedules.lua")),
    ("machine/audit/memory.lua", include_str!("../lua/machine/audit/memory.lua")),
    ("machine/audit/kin.lua", include_str!("../lua/machine/audit/kin.lua")),
    ("ops/show.lua", include_str!("../lua/ops/show.lua")),
    ("ops/after.lua", include_str!("../lua/ops/after.lua")),
    ("ops/push.lua", include_str!("../lua/ops/push.lua")),
    ("ops/lease.lua", include_str!("../lua/ops/lease.lua")),
    ("ops/extend.lua", include_str!("../lua/ops/extend.lua")),
    ("ops/follow_ups.lua", include_str!("../lua/ops/follow_ups.lua")),
    ("ops/settle.lua", include_str!("../lua/ops/settle.lua")),
    ("ops/jobs.lua", include_str!("../lua/ops/jobs.lua")),
    ("ops/results.lua", include_str!("../lua/ops/results.lua")),
    ("ops/flows.lua", include_str!("../lua/ops/flows.lua")),
    ("ops/events.lua", include_str!("../lua/ops/events.lua")),
    ("ops/tick.lua", include_str!("../lua/ops/tick.lua")),
    ("ops/key.lua", include_str!("../lua/ops/key.lua")),
    ("ops/explain.lua", include_str!("../lua/ops/explain.lua")),
    ("ops/lists.lua", include_str!("../lua/ops/lists.lua")),
    ("ops/views.lua", include_str!("../lua/ops/views.lua")),
    ("ops/queues.lua", include_str!("../lua/ops/queues.lua")),
    ("ops/schedules.lua", include_str!("../lua/ops/schedules.lua")),
    ("ops/sync_schedules.lua", include_str!("../lua/ops/sync_schedules.lua")),
    ("ops/limits.lua", include_str!("../lua/ops/limits.lua")),
    ("ops/gauges.lua", include_str!("../lua/ops/gauges.lua")),
    ("ops/pools.lua", include_str!("../lua/ops/pools.lua")),
    ("ops/resources.lua", include_str!("../lua/ops/resources.lua")),
    ("ops/sync.lua", include_str!("../lua/ops/sync.lua")),
    ("ops/audit.lua", include_str!("../lua/ops/audit.lua")),
    ("ops/copy_out.lua", include_str!("../lua/ops/copy_out.lua")),
    ("ops/copy_in.lua", include_str!("../lua/ops/copy_in.lua")),
    ("register.lua", include_str!("../lua/register.lua")),
];

/// The function that tells which text is loaded; it changes nothing and needs no key.
pub(crate) const FINGERPRINT: &str = "fingerprint";

/// A function library, ready to be loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Library {
    name: String,
    text: String,
    fingerprint: String,
}

impl Library {
    /// What users run, by the clock of the server: `tenure_`, the layout, `_` and the version.
    pub fn release() -> Self {
        Self::made(format!("tenure_{LAYOUT}_{VERSION}"), false)
    }

    /// What model tests run: the same name and a `t`, whose clock is a key of the namespace. It has other names,
    /// so a server that has both cannot take the one for the other.
    pub fn testing() -> Self {
        Self::made(format!("tenure_{LAYOUT}_{VERSION}t"), true)
    }

    fn made(name: String, testing: bool) -> Self {
        let mut body = constants(&name, testing);
        for (file, lua) in FRAGMENTS {
            // Writing to a String cannot fail.
            // A chunk may have 200 locals: but for the store's own, a file keeps its to itself.
            let (open, close) =
                if file.starts_with("store/") { ("", "") } else { ("do\n", "end\n") };
            let _ = write!(body, "\n-- {file}\n{open}{}\n{close}", spelled(lua.trim_end()));
        }
        let fingerprint = HEXLOWER.encode(&Sha1::digest(body.as_bytes()));
        let text = format!(
            "#!lua name={name}\n{body}\nredis.register_function{{function_name = NAME .. \
             '_{FINGERPRINT}', flags = {{'no-writes', 'allow-oom', 'allow-stale'}},\n  callback = \
             function(_, argv)\n    local nonce = argv[#argv]\n    return nonce and {{ '{fingerprint}', nonce }} \
             or '{fingerprint}'\n  end}}\n"
        );
        Library { name, text, fingerprint }
    }

    /// The library's name on the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text, as `FUNCTION LOAD` takes it and as `tenure redis print-library` prints it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A digest of the text, which the loaded library answers as well: what is on a server is this
    /// very text if and only if they are the same.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The name on the server of the function of an operation.
    pub fn function(&self, operation: &str) -> String {
        format!("{}_{operation}", self.name)
    }
}

/// The first fragment: names, the switch for tests and every bound, so that Lua writes none by hand.
fn constants(name: &str, testing: bool) -> String {
    let mut lua = format!(
        "-- This text is generated; its sources are in crates/engine-redis/lua.\nlocal NAME = \
         '{name}'\nlocal LAYOUT = '{LAYOUT}'\nlocal TESTING = \
         {testing}\nlocal BOUND = {{\n"
    );
    for (bound, value) in BOUNDS {
        let _ = writeln!(lua, "  {bound} = {value},");
    }
    lua.push_str("}\n");
    lua
}

macro_rules! by_name {
    ($($name:ident)*) => { &[$((stringify!($name), bounds::$name as i128)),*] };
}

/// Every number of `tenure_core::bounds`, by its name there.
const BOUNDS: &[(&str, i128)] = by_name! {
    BODY_BYTES_MAX BODILESS_BYTES_MAX FORM_BYTES_MAX LIVE_TABS_MAX LINE_BYTES_MAX PAYLOAD_BYTES_MAX RESOURCE_DATA_BYTES_MAX
    PROGRESS_BYTES_MAX ERROR_BYTES_MAX LABELS_MAX LABEL_KEY_BYTES_MAX LABEL_VALUE_BYTES_MAX NEEDS_MAX
    QUEUES_MAX ITEMS_MAX NAME_BYTES_MAX KEY_BYTES_MAX ID_BYTES_MAX OWNER_BYTES_MAX FLOW_BYTES_MAX
    REF_BYTES_MAX AFTER_MAX AFTER_SHOWN TOLD_AT_ONCE TAGS_MAX SETTLE_PUSH_MAX ERRORS_KEPT SETTLES_KEPT
    JSON_DEPTH_MAX LIST_SCAN_MAX MANY_PORTION FAILURE_CHARS PAGE_BYTES_MAX PAGE_BYTES_FULL LIST_DEFAULT
    LIST_MAX HOLDERS_SHOWN LINE_SHOWN DELAYS_MAX SCHEDULE_ID_BYTES_MAX CRON_BYTES_MAX CATCH_UP_MAX
    CATCH_UP_DEFAULT PLAN_AHEAD PLAN_SCAN_MAX PREVIEW_DEFAULT PREVIEW_MAX PRIORITY_MIN PRIORITY_MAX SHARES_MAX
    COUNT_MAX FIRE_MAX PLAN_MOMENTS_MAX NEXT_SHOWN GAUGE_POINTERS_MAX GAUGE_POINTER_BYTES_MAX
    GAUGE_URL_BYTES_MAX GAUGE_BODY_BYTES_MAX GAUGE_ERROR_BYTES_MAX GAUGE_SUM_MAX GAUGE_CLAIMS_MAX
    GAUGE_FRESH_PERIODS GAUGE_FAILURES_MAX SECOND_US SPAN_US_MAX MOMENT_US_MAX WAIT_US_MAX TTL_US_MIN
    CATCH_UP_NONE_US STARTED_LATELY_US PLAN_AGAIN_US TTL_US_MAX TTL_US_DEFAULT EVERY_US_MIN JITTER_US_MAX HORIZON_US
    GAUGE_EVERY_US_DEFAULT GAUGE_EVERY_US_MIN GAUGE_EVERY_US_MAX GAUGE_LAG_US_DEFAULT GAUGE_LAG_US_MAX
    GAUGE_STALE_US_DEFAULT GAUGE_STALE_US_MAX GAUGE_FRESH_US_MIN GAUGE_ATTEMPT_US GAUGE_CLAIM_US_MIN
    GAUGE_PASSED_OVER_US GAUGE_READER_US GAUGE_GET_US SNOOZE_US_MIN RETAIN_SUCCEEDED_US RETAIN_FAILED_US
    PATIENCE_US_DEFAULT RELEASE_AGAIN_US UNDELIVERED_MAX SUSPECT_US_MAX REQUEST_US STUB_US PLACE_US ATTENTION_AFTER_US ATTENTION_FAILED_PERCENT WORKER_US
    AWAITED_US FORGET_US FORGET_AGAIN_US ASKED_US PULSE_US DEAF_US LEAP_US DRIFT_PPM CLOCK_BEHIND_LOUD_US
    CLOCK_BEHIND_ACCEPT_US RESERVE_RETRY_US STEPS_MAX TICK_MAX MARKS_MAX LINE_MAX AWAITS_MAX EVENT_ERROR_BYTES
    EVENTS_BYTES_DEFAULT EVENTS_TRIM_MAX EVENTS_SCAN_MAX EVENT_STREAMS_MAX EVENTS_LOOK_US SHARE_UNIT
};

/// Lua's numbers are doubles: exact below this.
const EXACT: i128 = 1 << 53;

const _: () = {
    let mut at = 0;
    while at < BOUNDS.len() {
        assert!(BOUNDS[at].1 < EXACT && BOUNDS[at].1 > -EXACT, "a bound that Lua cannot hold");
        at += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_of_core_reaches_lua_under_its_name() {
        let source = include_str!("../../core/src/bounds.rs");
        let declared: Vec<&str> = source
            .lines()
            .filter_map(|line| line.strip_prefix("pub const ")?.split_once(':'))
            .map(|(name, _)| name)
            .collect();
        let known: Vec<&str> = BOUNDS.iter().map(|(name, _)| *name).collect();
        assert_eq!(known, declared, "BOUNDS in library.rs and core/src/bounds.rs");
        for (text, value) in [("STEPS_MAX", bounds::STEPS_MAX as i128), ("PRIORITY_MIN", -100)] {
            assert!(Library::release().text().contains(&format!("\n  {text} = {value},\n")));
        }
    }

    #[test]
    fn what_users_run_cannot_read_its_clock_from_a_key() {
        let (release, testing) = (Library::release(), Library::testing());
        assert!(release.text().starts_with(&format!("#!lua name=tenure_{LAYOUT}_{VERSION}\n")));
        assert!(release.text().contains("\nlocal TESTING = false\n"));
        assert!(testing.text().starts_with(&format!("#!lua name=tenure_{LAYOUT}_{VERSION}t\n")));
        assert!(testing.text().contains("\nlocal TESTING = true\n"));
        // The switch is set in one place, and no other line sets it.
        for library in [&release, &testing] {
            let set = library.text().split("TESTING").skip(1);
            let set = set.filter(|after| {
                let after = after.trim_start();
                after.starts_with('=') && !after.starts_with("==")
            });
            assert_eq!(set.count(), 1, "{}", library.name());
        }
        assert_eq!(release.function("push"), format!("{}_push", release.name()));
        assert_eq!(testing.function("push"), format!("{}_push", testing.name()));
    }

    #[test]
    fn the_text_carries_its_own_fingerprint() {
        let (release, testing) = (Library::release(), Library::testing());
        assert_ne!(release.fingerprint(), testing.fingerprint());
        for library in [release, testing] {
            assert_eq!(library.fingerprint().len(), 40);
            assert!(library.text().contains(&format!("or '{}'\n", library.fingerprint())));
        }
    }
}
