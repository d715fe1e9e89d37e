//! Parts that several bodies and answers share, each schema with its fields, and bodies that have several forms.

use super::bodies::{GAUGE, LEASE_CALL, SCHEDULE_SETTINGS};
use super::{Fields, Form};

pub(super) const GIVEN: &[(&str, Fields)] = &[
    (
        "Unique",
        &[
            ("key", "key!", "The key, unique within the namespace, 1 to 256 bytes."),
            (
                "until",
                "end|start",
                "Until when the job holds the key: its end (the default), or the start of its first run.",
            ),
            (
                "for",
                "duration?~",
                "The key is held at least this long after the push, also by a finished job; null holds it no longer than until.",
            ),
            (
                "on_conflict",
                "keep|replace|reject",
                "What a push does that meets a holder of the key: keep (the default) answers the job that is there, replace gives it the new content, reject is refused as unique_conflict.",
            ),
            (
                "within",
                "duration?~",
                "With on_conflict replace: pushes move run_at no further than this beyond the moment at which the wait began; null is no bound.",
            ),
        ],
    ),
    (
        "Retry",
        &[
            (
                "max_attempts",
                "integer",
                "How many runs may fail, 0 to 1,000,000,000; 0 is without end, 20 the default.",
            ),
            (
                "max_lost",
                "integer",
                "How many times in a row the worker may be lost before the job fails as poison; 0 is never, 3 the default.",
            ),
            (
                "max_snoozes",
                "integer?~",
                "How often a job may snooze before it fails, 0 to 1,000,000,000; absent is without end.",
            ),
            ("backoff", "Backoff", "How long a job waits between attempts."),
        ],
    ),
    (
        "Backoff",
        &[
            (
                "kind",
                "exponential|fixed|list",
                "How the waits grow: exponential (the default), fixed, or a list.",
            ),
            ("base", "duration~", "The first wait, or the only one of kind fixed; 1s if absent."),
            ("max", "duration~", "The longest wait of kind exponential; 1h if absent."),
            ("delays", "duration[]~", "The waits of kind list, 1 to 100; the last one repeats."),
            (
                "jitter",
                "boolean",
                "Whether each wait is drawn evenly between half of it and the whole; true if absent.",
            ),
        ],
    ),
    (
        "Rate",
        &[
            ("count", "integer!", "How many tokens there are in each period, 1 to 1,000,000,000."),
            ("per", "duration!", "The period, more than 0s."),
            (
                "burst",
                "integer",
                "How many tokens may go at once after a rest, 1 or more; 1 if absent, which is evenly spaced.",
            ),
        ],
    ),
    (
        "AfterItem",
        &[
            (
                "job",
                "key",
                "The id of a job, or key:KEY for the job that held KEY before this call.",
            ),
            ("ref", "ref", "The ref of another item of this call."),
            ("flow", "flow", "A whole flow, however many jobs come into it."),
            (
                "gone",
                "GoneIsDone",
                "A job or flow that is not there counts as done. Without it the push is refused.",
            ),
        ],
    ),
    (
        "ResourceVerdict",
        &[
            ("pool", "name!", "The pool of the resource."),
            ("id", "key!", "The id of the resource."),
            (
                "verdict",
                "ok|cool|ban",
                "Nothing special (ok, the default), let it rest (cool), or hand it out no more (ban).",
            ),
            ("for", "duration", "With cool: how long it rests. Excludes until."),
            ("until", "moment", "With cool: when its rest ends. Excludes for."),
            ("reason", "string", "With ban: why, for people; at most 8 KiB."),
        ],
    ),
    (
        "LimitVerdict",
        &[
            ("limit", "name!", "The limit that was held."),
            (
                "pause",
                "duration",
                "Nobody is granted it for this long from now; a later pause that is there holds.",
            ),
            (
                "spent",
                "integer",
                "How many rate tokens were spent in truth, 0 or more; it corrects the cost that the grant booked.",
            ),
        ],
    ),
];

const NEED: Fields = &[
    ("limit", "name", "The limit that is held, never a template. Excludes pool."),
    (
        "weight",
        "integer",
        "How many permits of the limit are held, 1 to 1,000,000,000; 1 if absent.",
    ),
    ("cost", "integer", "How many rate tokens are taken, 0 to 1,000,000,000; 1 if absent."),
    ("pool", "name", "The pool of which resources are held. Excludes limit."),
    ("tag", "name", "Only resources with this tag."),
    ("prefer", "key", "The id of the resource that is taken if it is free."),
    ("id", "key", "The id of the only resource that will do."),
    ("count", "integer", "How many different resources are held, 1 or more; 1 if absent."),
];

const SETTLE_ITEM: Fields = &[
    ("lease", "string!", "The id of the lease to end."),
    (
        "outcome",
        "succeeded|failed|snoozed|released",
        "How the run ended. A lease without a job takes succeeded or released.",
    ),
    ("result", "any", "With succeeded: the result, any JSON of at most 256 KiB."),
    ("error", "string", "With failed: what went wrong; the last 8 KiB of it are kept."),
    (
        "retry_in",
        "duration",
        "With failed: the next attempt comes after this, instead of the backoff. Excludes final.",
    ),
    ("final", "boolean", "With failed: there is no other attempt; false if absent."),
    ("for", "duration", "With snoozed: the job waits this long, at least 100ms. Excludes until."),
    (
        "until",
        "moment",
        "With snoozed: the job waits until this moment, at least 100 ms ahead. Excludes for.",
    ),
    ("reset", "boolean", "With snoozed: attempts start again from 0; false if absent."),
    ("progress", "any", "The last progress report, at most 4 KiB, kept with the job."),
    (
        "next_in",
        "duration",
        "The schedule of the job has its next moment this long after the settle: whole seconds, 1s to 3650d.",
    ),
    (
        "resources",
        "ResourceVerdict[]",
        "What becomes of resources that were held; without a verdict, nothing special.",
    ),
    ("limits", "LimitVerdict[]", "What becomes of limits that were held."),
    (
        "push",
        "NewJob[]",
        "Follow-up jobs, at most 100, stored in the same step as the settle, or neither is.",
    ),
];

/// Bodies that come in several forms. The fields of one form exclude those of the others.
pub(super) const FORMS: &[(&str, Fields, &[Form])] = &[
    (
        "Need",
        NEED,
        &[
            Form {
                name: "LimitNeed",
                own: &["limit", "weight", "cost"],
                required: &["limit"],
                says: None,
            },
            Form {
                name: "PoolNeed",
                own: &["pool", "tag", "prefer", "id", "count"],
                required: &["pool"],
                says: None,
            },
        ],
    ),
    (
        "LeaseCall",
        LEASE_CALL,
        &[
            Form { name: "JobsCall", own: &["queues", "max"], required: &["queues"], says: None },
            Form { name: "NeedsCall", own: &["needs"], required: &["needs"], says: None },
        ],
    ),
    (
        "Gauge",
        GAUGE,
        &[
            Form {
                name: "CountGauge",
                own: &["url", "count"],
                required: &["url", "count"],
                says: None,
            },
            Form {
                name: "ScrapydGauge",
                own: &["scrapyd", "project"],
                required: &["scrapyd"],
                says: None,
            },
        ],
    ),
    ("ScheduleSettings", SCHEDULE_SETTINGS, TIMINGS),
    (
        "SettleItem",
        SETTLE_ITEM,
        &[
            Form {
                name: "Succeeded",
                own: &["result"],
                required: &["outcome"],
                says: Some(("outcome", "succeeded")),
            },
            Form {
                name: "Failed",
                own: &["error", "retry_in", "final"],
                required: &["outcome"],
                says: Some(("outcome", "failed")),
            },
            Form {
                name: "Snoozed",
                own: &["for", "until", "reset"],
                required: &["outcome"],
                says: Some(("outcome", "snoozed")),
            },
            Form {
                name: "Released",
                own: &[],
                required: &["outcome"],
                says: Some(("outcome", "released")),
            },
        ],
    ),
];

/// The two timings of a schedule.
pub(super) const TIMINGS: &[Form] = &[
    Form { name: "CronTiming", own: &["cron", "zone"], required: &["cron"], says: None },
    Form { name: "IntervalTiming", own: &["every"], required: &["every"], says: None },
];
