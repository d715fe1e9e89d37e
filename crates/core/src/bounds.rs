//! Bounds of the contract and of the state machine: each has a name, with its unit in the name.
//!
//! No other code in the workspace may write one of these numbers. Copies elsewhere (OpenAPI) are generated from here.

/// Largest body of a request that is not NDJSON.
pub const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Largest body of a call that takes no body: `{}`, which some clients send with every POST, and space.
pub const BODILESS_BYTES_MAX: usize = 1024;
/// Largest body of a form on a page: a payload of the largest size, with each byte percent-encoded, and a few fields.
pub const FORM_BYTES_MAX: usize = 1024 * 1024;
/// Tabs of the dashboard that one server keeps up to date; further ones are answered and not updated.
pub const LIVE_TABS_MAX: usize = 200;
/// Longest line of an NDJSON body.
pub const LINE_BYTES_MAX: usize = 512 * 1024;
/// Largest payload or result of a job.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024;
/// Largest data of one resource.
pub const RESOURCE_DATA_BYTES_MAX: usize = 64 * 1024;
/// Largest progress report of a running job.
pub const PROGRESS_BYTES_MAX: usize = 4 * 1024;
/// An error text is cut to this; its end is kept, since the cause usually stands there.
pub const ERROR_BYTES_MAX: usize = 8 * 1024;
/// Labels of one job.
pub const LABELS_MAX: usize = 16;
/// Key of a label, in bytes.
pub const LABEL_KEY_BYTES_MAX: usize = 64;
/// Value of a label, in bytes.
pub const LABEL_VALUE_BYTES_MAX: usize = 256;
/// Needs of one job or caller.
pub const NEEDS_MAX: usize = 16;
/// Queues named in one lease request.
pub const QUEUES_MAX: usize = 32;
/// Items of one call: jobs pushed, leases asked for, extended or settled.
pub const ITEMS_MAX: usize = 1_000;
/// A name of a queue, limit, pool, kind or tag.
pub const NAME_BYTES_MAX: usize = 128;
/// A resource id, a unique key, a group.
pub const KEY_BYTES_MAX: usize = 256;
/// A job id, request id or worker id.
pub const ID_BYTES_MAX: usize = 256;
/// Name of an owner of schedules.
pub const OWNER_BYTES_MAX: usize = 128;
/// Name of a flow.
pub const FLOW_BYTES_MAX: usize = 256;
/// The name of an item within its call.
pub const REF_BYTES_MAX: usize = 128;
/// Entries of `after` in one call.
pub const AFTER_MAX: usize = 10_000;
/// Parents that the view of a job shows.
pub const AFTER_SHOWN: usize = 100;
/// Most jobs that one call or tick handles of each: children notified of the end of a parent, parents released by
/// children that ended, members of a flow that it cancels.
pub const TOLD_AT_ONCE: usize = 256;
/// Tags of one resource.
pub const TAGS_MAX: usize = 16;
/// Follow-up jobs in one settle item.
pub const SETTLE_PUSH_MAX: usize = 100;
/// Last errors that a job keeps.
pub const ERRORS_KEPT: usize = 20;
/// Last settles that a job keeps, so that a repeat gets the answer of the first.
pub const SETTLES_KEPT: usize = 4;
/// JSON levels; the outermost object is level 1.
pub const JSON_DEPTH_MAX: usize = 64;
/// Jobs that one list call scans if no index knows its filter, and that one call on many jobs scans.
pub const LIST_SCAN_MAX: usize = 10_000;
/// Jobs that one step of a call on many jobs changes at most.
pub const MANY_PORTION: usize = 256;
/// Characters of an error by which failures are grouped.
pub const FAILURE_CHARS: usize = 120;
/// Bytes of payloads, results, errors and data in one page of a list, and in the jobs that one lease call is granted:
/// `next`, or the next call, continues behind them.
pub const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A page or a grant takes no further item once it has this size: even with the largest possible item it then stays
/// below [`PAGE_BYTES_MAX`], and it always has at least one.
pub const PAGE_BYTES_FULL: usize = PAGE_BYTES_MAX - 1024 * 1024;
/// Default page of a list.
pub const LIST_DEFAULT: usize = 100;
/// Largest page of a list.
pub const LIST_MAX: usize = 1_000;
/// Holders shown in explain.
pub const HOLDERS_SHOWN: usize = 20;
/// Jobs in line shown by a limit.
pub const LINE_SHOWN: usize = 20;
/// Waits of a `list` backoff.
pub const DELAYS_MAX: usize = 100;
/// The id of a schedule. With `@` and a moment of 20 bytes it is the id of a job.
pub const SCHEDULE_ID_BYTES_MAX: usize = 200;
/// A cron expression, in bytes. The longest useful one lists each second, minute and hour one by one, and is shorter.
pub const CRON_BYTES_MAX: usize = 1_024;
/// Greatest `catch_up_max` of a schedule.
pub const CATCH_UP_MAX: i64 = 1_000;
/// `catch_up_max` of a schedule that states none.
pub const CATCH_UP_DEFAULT: u32 = 100;
/// Moments ahead that one plan of a cron schedule has.
pub const PLAN_AHEAD: usize = 8;
/// Moments that are computed for one plan at most.
pub const PLAN_SCAN_MAX: usize = 10_000;
/// Moments that a preview shows if the call gives no `count`.
pub const PREVIEW_DEFAULT: usize = 5;
/// Greatest `count` of a preview.
pub const PREVIEW_MAX: usize = 100;

/// Least priority of a job.
pub const PRIORITY_MIN: i64 = -100;
/// Greatest priority of a job.
pub const PRIORITY_MAX: i64 = 100;
/// Greatest `shares` of a group.
pub const SHARES_MAX: i64 = 1_000;
/// Greatest concurrency, weight, cost, burst, count, slots, `external`, `max_attempts`.
pub const COUNT_MAX: i64 = 1_000_000_000;

/// Schedules that one `fire` looks at, and that one tick asks plans for.
pub const FIRE_MAX: usize = 64;
/// Moments that `next` of a schedule shows.
pub const NEXT_SHOWN: usize = 5;

/// JSON pointers of one gauge.
pub const GAUGE_POINTERS_MAX: usize = 16;
/// One JSON pointer of a gauge.
pub const GAUGE_POINTER_BYTES_MAX: usize = 256;
/// The address of a gauge.
pub const GAUGE_URL_BYTES_MAX: usize = 2_048;
/// Largest body that the address of a gauge may answer with.
pub const GAUGE_BODY_BYTES_MAX: usize = 1024 * 1024;
/// The error of a gauge is cut to this; its beginning is kept.
pub const GAUGE_ERROR_BYTES_MAX: usize = 256;
/// Greatest number that an address may show, and greatest sum: a double counts exactly up to this.
pub const GAUGE_SUM_MAX: u64 = (1 << 53) - 1;
/// Gauges that one call claims at most.
pub const GAUGE_CLAIMS_MAX: usize = 64;
/// A reading is fresh for this many periods, and at least for [`GAUGE_FRESH_US_MIN`].
pub const GAUGE_FRESH_PERIODS: u64 = 3;
/// A process that failed this often in a row leaves a gauge to others for [`GAUGE_PASSED_OVER_US`].
pub const GAUGE_FAILURES_MAX: u32 = 2;

/// One second in microseconds, the unit of all time here.
pub const SECOND_US: u64 = 1_000_000;
/// Longest duration: 3,650 days.
pub const SPAN_US_MAX: u64 = 3_650 * 86_400 * SECOND_US;
/// The latest moment that may be given, 2255-06-01T00:00:00Z: four days before fences, which are microseconds, reach 2^53.
pub const MOMENT_US_MAX: u64 = 104_245 * 86_400 * SECOND_US;
/// Longest wait of a call: for a lease, a result, a flow or events.
pub const WAIT_US_MAX: u64 = 60 * SECOND_US;
/// Shortest ttl of a lease (beside `0s`, which takes a token and leaves no lease).
pub const TTL_US_MIN: u64 = SECOND_US;
/// With `catch_up: none`, a moment that is later than this is missed.
pub const CATCH_UP_NONE_US: u64 = 60 * SECOND_US;
/// A `starts_at` that is not further back than this still fires.
pub const STARTED_LATELY_US: u64 = 60 * SECOND_US;
/// A schedule whose plan was requested and did not come is offered again after this.
pub const PLAN_AGAIN_US: u64 = SECOND_US;
/// Longest ttl of a lease.
pub const TTL_US_MAX: u64 = 3_600 * SECOND_US;
/// Ttl of a lease whose call states none.
pub const TTL_US_DEFAULT: u64 = 30 * SECOND_US;
/// Shortest `every` of an interval and shortest `next_in`; the longest is [`SPAN_US_MAX`]. Both are whole seconds.
pub const EVERY_US_MIN: u64 = SECOND_US;
/// Longest jitter of a schedule.
pub const JITTER_US_MAX: u64 = 86_400 * SECOND_US;
/// A timing whose next moment lies further ahead than this, ten years with three leap days, never fires.
pub const HORIZON_US: u64 = 3_653 * 86_400 * SECOND_US;
/// `every` of a gauge that states none.
pub const GAUGE_EVERY_US_DEFAULT: u64 = 2 * SECOND_US;
/// Shortest `every` of a gauge.
pub const GAUGE_EVERY_US_MIN: u64 = 500_000;
/// Longest `every` of a gauge.
pub const GAUGE_EVERY_US_MAX: u64 = 3_600 * SECOND_US;
/// `lag` of a gauge that states none.
pub const GAUGE_LAG_US_DEFAULT: u64 = 10 * SECOND_US;
/// Longest `lag` of a gauge.
pub const GAUGE_LAG_US_MAX: u64 = 3_600 * SECOND_US;
/// `stale` of a gauge that states none, unless its readings are fresh for longer.
pub const GAUGE_STALE_US_DEFAULT: u64 = 30 * SECOND_US;
/// Longest `stale` of a gauge.
pub const GAUGE_STALE_US_MAX: u64 = 86_400 * SECOND_US;
/// A reading is fresh for at least this long, however often the gauge is read.
pub const GAUGE_FRESH_US_MIN: u64 = 5 * SECOND_US;
/// An attempt to read a gauge fails if it is neither claimed nor answered within this. After a failure, the last
/// reading may be used for this much longer than `every`.
pub const GAUGE_ATTEMPT_US: u64 = 5 * SECOND_US;
/// Least time between two claims of one gauge.
pub const GAUGE_CLAIM_US_MIN: u64 = 200_000;
/// How long a process that cannot read a gauge leaves it to others.
pub const GAUGE_PASSED_OVER_US: u64 = 30 * SECOND_US;
/// Longest time that a GET of a gauge may take.
pub const GAUGE_GET_US: u64 = 2 * SECOND_US;
/// Shortest delay of a snooze.
pub const SNOOZE_US_MIN: u64 = 100_000;
/// `retain` of a succeeded or cancelled job that states none.
pub const RETAIN_SUCCEEDED_US: u64 = 3_600 * SECOND_US;
/// `retain` of a failed job that states none.
pub const RETAIN_FAILED_US: u64 = 7 * 86_400 * SECOND_US;
/// `patience` of a namespace that states none: a head that has been blocked for this long may reserve.
pub const PATIENCE_US_DEFAULT: u64 = 10 * SECOND_US;
/// Delay of the second `released` in a row.
pub const RELEASE_AGAIN_US: u64 = SECOND_US;
/// This many leases in a row that were never delivered count as one that was lost.
pub const UNDELIVERED_MAX: u32 = 3;
/// Longest delay of a suspect.
pub const SUSPECT_US_MAX: u64 = 60 * SECOND_US;
/// A request id is remembered for at least this long.
pub const REQUEST_US: u64 = 60 * SECOND_US;
/// A lease without a job is remembered for this long after its end.
pub const STUB_US: u64 = 60 * SECOND_US;
/// A caller's place in line is kept for this long after its wait ended or its connection broke.
pub const PLACE_US: u64 = 5 * SECOND_US;
/// A wait, a full limit, an empty pool or a due moment needs an operator's attention after this long.
pub const ATTENTION_AFTER_US: u64 = 300 * SECOND_US;
/// Failures need an operator's attention if they are more than this percentage of the jobs that ended.
pub const ATTENTION_FAILED_PERCENT: u64 = 10;
/// A worker, and the interest in a queue, is forgotten after this long without a call.
pub const WORKER_US: u64 = 60 * SECOND_US;
/// A job with a caller that waits for its result is kept for at least this long after its end, whatever its `retain`
/// says: otherwise the answer would be gone before it could be read.
pub const AWAITED_US: u64 = 10 * SECOND_US;
/// The reports of a job make at most one event within this, and wake callers that wait for its progress as often.
pub const PROGRESS_TOLD_US: u64 = SECOND_US;
/// A thing that holds nothing and has no settings, such as a queue, is forgotten this long after its last use.
pub const FORGET_US: u64 = 86_400 * SECOND_US;
/// A thing that still held something at that time is checked again after this.
pub const FORGET_AGAIN_US: u64 = 3_600 * SECOND_US;
/// The ban of a resource that a sync dropped is remembered for this long, for a sync that names it again. (A rest is
/// remembered until it is over.)
pub const DROPPED_US: u64 = 30 * 86_400 * SECOND_US;
/// Dropped resources that each pool remembers; beyond it, those that expire first are forgotten.
pub const DROPPED_MAX: usize = 10_000;
/// Only a queue that was asked for within this may hold a reservation.
pub const ASKED_US: u64 = 5 * SECOND_US;
/// Longest time between two ticks while leases exist; see [`DEAF_US`].
pub const PULSE_US: u64 = SECOND_US;
/// After a longer pause between two ticks the engine was deaf: the pause ends no lease.
pub const DEAF_US: u64 = 3 * SECOND_US;
/// A gain of the wall clock on a monotonic clock beyond this, between two looks, is a leap: every lease then has a ttl
/// of its own. It is less than the shortest ttl leaves between the holder's stop (at 0.8 of it) and its end.
pub const LEAP_US: u64 = 100_000;
/// A clock that is behind by more than this is reported.
pub const CLOCK_BEHIND_LOUD_US: u64 = SECOND_US;
/// A clock that is behind by more than this is accepted, once.
pub const CLOCK_BEHIND_ACCEPT_US: u64 = 10 * SECOND_US;
/// A lane that failed to reserve tries again after this.
pub const RESERVE_RETRY_US: u64 = SECOND_US;

/// Doors opened, lanes tried and takers served in one call beyond those that the call itself asks for.
pub const STEPS_MAX: usize = 32;
/// Of each kind of due thing, at most this many end or start in one tick.
pub const TICK_MAX: usize = 256;
/// Most reservations that one tick makes.
pub const MARKS_MAX: usize = 8;
/// Callers that may wait at one door.
pub const LINE_MAX: usize = 10_000;
/// Calls that may wait for results in one namespace.
pub const AWAITS_MAX: usize = 10_000;
/// Bytes of an error in an event; its end is kept.
pub const EVENT_ERROR_BYTES: usize = 256;
/// Namespaces of a store, unless an operator sets another number.
pub const NAMESPACES_MAX_DEFAULT: usize = 10_000;
/// Bytes of events that a namespace keeps, unless an operator sets another number.
pub const EVENTS_BYTES_DEFAULT: u64 = 16 << 20;
/// Entries of a stream that one step drops at most. Each holds the events of one call or of several.
pub const EVENTS_TRIM_MAX: usize = 1_000;
/// Events that one call scans; it then answers with the matches that it has.
pub const EVENTS_SCAN_MAX: usize = 10_000;
/// Events that a reader decodes before it yields the store's reading thread to others.
pub const EVENTS_PORTION: usize = 500;
/// Streams of events that one server sends at a time.
pub const EVENT_STREAMS_MAX: usize = 1_000;
/// A reader of a backup that takes nothing for this time is given up: the store's log grows meanwhile.
pub const BACKUP_STALLS_US_MAX: u64 = 30 * SECOND_US;
/// So is one that needs longer than this for the whole backup.
pub const BACKUP_TAKES_US_MAX: u64 = 3_600 * SECOND_US;
/// A receiver of a backup gives up a server that sends nothing for this time.
pub const BACKUP_SILENCE_US_MAX: u64 = 60 * SECOND_US;
/// A file of the trail is kept this long after its day.
pub const TRAIL_DAYS_MAX: u64 = 90;
/// Bytes of all files of a trail; beyond them the oldest file goes.
pub const TRAIL_BYTES_DEFAULT: u64 = 1 << 30;
/// The least that a trail may be given: some thousand lines.
pub const TRAIL_BYTES_MIN: u64 = 1 << 20;
/// A line of the trail is shorter; a longer one was not written by a server.
pub const TRAIL_LINE_BYTES_MAX: usize = 64 * 1024;
/// Lines of the trail that one call looks through.
pub const TRAIL_SCAN_MAX: usize = 10_000;
/// Callers, operations and namespaces that the trail counts apart within a minute; all others share a count.
pub const TRAIL_COUNTS_MAX: usize = 10_000;
/// Bytes of a text that lines of the trail are compared with.
pub const TRAIL_FILTER_BYTES_MAX: usize = 128;
/// Bytes of a target that lines of the trail are compared with: a kind and its longest name fit.
pub const TRAIL_TARGET_BYTES_MAX: usize = 512;
/// The last changes that a server remembers for its pages.
pub const TRAIL_RECENT_MAX: usize = 1_000;
/// Bytes of the trail that a server reads for them when it starts.
pub const TRAIL_RECENT_BYTES_MAX: u64 = 16 << 20;
/// Virtual time that one grant costs a group with one share.
pub const SHARE_UNIT: u64 = 10_000;

// Relations that the rules rely on.
const _: () = assert!(PULSE_US < DEAF_US, "a living engine must not look deaf");
const _: () =
    assert!(LEAP_US < TTL_US_MIN / 5, "a leap that is not answered must not end a lease early");
const _: () = assert!(MOMENT_US_MAX < 1 << 53, "a fence is never beyond the latest moment");
const _: () = assert!(CLOCK_BEHIND_LOUD_US < CLOCK_BEHIND_ACCEPT_US);
const _: () = assert!(TTL_US_MIN / 5 >= 200_000, "heartbeats closer than 200 ms");
const _: () = assert!(SHARE_UNIT >= SHARES_MAX as u64, "every share must cost something");
const _: () = assert!(
    2 * PAYLOAD_BYTES_MAX + ERRORS_KEPT * ERROR_BYTES_MAX + PROGRESS_BYTES_MAX
        < PAGE_BYTES_MAX - PAGE_BYTES_FULL,
    "a page below its bound has room for one more job"
);
const _: () = assert!(
    SCHEDULE_ID_BYTES_MAX + "@2026-12-01T08:00:00Z".len() <= ID_BYTES_MAX,
    "each moment of a schedule names a job"
);
const _: () =
    assert!(GAUGE_GET_US < GAUGE_ATTEMPT_US, "a slow answer is told before its claim ends");
const _: () = assert!(GAUGE_CLAIM_US_MIN < GAUGE_EVERY_US_MIN);
const _: () = assert!(
    GAUGE_EVERY_US_MAX * GAUGE_FRESH_PERIODS <= GAUGE_STALE_US_MAX,
    "each gauge has a `stale` that is not below what is fresh"
);
const _: () = assert!(SPAN_US_MAX <= HORIZON_US, "every interval has a next moment");
const _: () = assert!(LINE_BYTES_MAX > PAYLOAD_BYTES_MAX, "a line carries a payload");
