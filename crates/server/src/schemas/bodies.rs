//! What bodies may say: each schema with its fields.

use super::Fields;

const NEW_JOB: Fields = &[
    ("id", "key"),
    ("queue", "name"),
    ("kind", "name"),
    ("payload", "any"),
    ("run_at", "moment"),
    ("delay", "duration"),
    ("priority", "integer"),
    ("group", "key"),
    ("needs", "Need[]"),
    ("unique", "Unique"),
    ("retry", "Retry"),
    ("timeout", "duration"),
    ("expires_at", "moment"),
    ("retain", "duration"),
    ("labels", "object"),
    ("after", "After"),
    ("on_parent_failure", "OnParentFailure"),
    ("ref", "ref"),
    ("flow", "flow"),
    ("traceparent", "string"),
];

const LATER: Fields = &[("for", "duration"), ("until", "moment")];

pub(super) const QUEUE_SETTINGS: Fields = &[
    ("needs", "Need[]"),
    ("retry", "Retry?"),
    ("timeout", "duration?"),
    ("retain", "duration?"),
    ("max_waiting", "integer?"),
    ("lost_delay", "duration?"),
    ("shares", "object"),
];

/// What an answer shows of a limit's settings; its gauge is shown with what was read.
pub(super) const LIMIT_BOUNDS: Fields = &[
    ("concurrency", "integer?"),
    ("rate", "Rate?"),
    ("gap", "duration?"),
    ("quarantine", "duration"),
];

const LIMIT_SETTINGS: Fields = &[
    ("concurrency", "integer?"),
    ("rate", "Rate?"),
    ("gap", "duration?"),
    ("quarantine", "duration"),
    ("gauge", "Gauge?"),
];

pub(super) const GAUGE: Fields = &[
    ("url", "string"),
    ("count", "string[]"),
    ("scrapyd", "string"),
    ("project", "string?"),
    ("every", "duration"),
    ("lag", "duration"),
    ("stale", "duration"),
    ("on_stale", "OnStale"),
];

pub(super) const POOL_SETTINGS: Fields = &[
    ("quarantine", "duration"),
    ("cooldown", "duration"),
    ("rate", "Rate?"),
    ("max_uses", "integer?"),
    ("pick", "string"),
];

pub(super) const SCHEDULE_SETTINGS: Fields = &[
    ("owner", "owner?"),
    ("cron", "string?"),
    ("zone", "string?"),
    ("every", "duration?"),
    ("starts_at", "moment?"),
    ("ends_at", "moment?"),
    ("jitter", "duration"),
    ("overlap", "Overlap"),
    ("catch_up", "CatchUp"),
    ("catch_up_max", "integer"),
    ("job", "ScheduledJob"),
];

const SCHEDULED_JOB: Fields = &[
    ("queue", "name"),
    ("kind", "name"),
    ("payload", "any"),
    ("priority", "integer"),
    ("group", "key?"),
    ("needs", "Need[]?"),
    ("retry", "Retry?"),
    ("timeout", "duration?"),
    ("retain", "duration?"),
    ("expires_in", "duration?"),
    ("labels", "object"),
];

/// What bodies may say: schema and fields.
pub(crate) const BODIES: &[(&str, Fields)] = &[
    ("NewJob", NEW_JOB),
    (
        "JobPatch",
        &[
            ("run_at", "moment?"),
            ("delay", "duration?"),
            ("priority", "integer?"),
            ("payload", "any"),
            ("needs", "Need[]?"),
            ("group", "key?"),
            ("labels", "object?"),
            ("timeout", "duration?"),
            ("expires_at", "moment?"),
        ],
    ),
    (
        "JobFilter",
        &[
            ("queue", "name"),
            ("state", "string"),
            ("kind", "string"),
            ("label", "string"),
            ("error", "string"),
            ("finished_after", "moment"),
            ("finished_before", "moment"),
            ("flow", "flow"),
            ("schedule", "schedule"),
            ("max", "integer"),
            ("cursor", "string"),
        ],
    ),
    ("RetryOne", &[("finished_at", "moment")]),
    (
        "LeaseCall",
        &[
            ("queues", "name[]"),
            ("needs", "Need[]"),
            ("max", "integer"),
            ("wait", "duration"),
            ("ttl", "duration"),
            ("worker", "WorkerName"),
            ("request_id", "key"),
            ("place", "key"),
        ],
    ),
    ("ExtendCall", &[("leases", "ExtendItem[]"), ("ttl", "duration")]),
    ("SettleCall", &[("settle", "SettleItem[]"), ("lease", "LeaseCall")]),
    ("QueueSettings", QUEUE_SETTINGS),
    ("LimitSettings", LIMIT_SETTINGS),
    ("Gauge", GAUGE),
    ("PoolSettings", POOL_SETTINGS),
    ("Later", LATER),
    ("Observation", &[("external", "integer"), ("for", "duration")]),
    ("NewResource", &[("id", "key"), ("data", "any"), ("tags", "name[]"), ("slots", "integer")]),
    ("ResourcePatch", &[("data", "any"), ("tags", "name[]?"), ("slots", "integer?")]),
    ("Ban", &[("reason", "string")]),
    (
        "PreviewCall",
        &[
            ("id", "string"),
            ("cron", "string"),
            ("zone", "string"),
            ("every", "duration"),
            ("starts_at", "moment"),
            ("ends_at", "moment"),
            ("from", "moment"),
            ("count", "integer"),
        ],
    ),
    ("ScheduleSettings", SCHEDULE_SETTINGS),
    ("ScheduledJob", SCHEDULED_JOB),
    ("RunNow", &[("id", "key")]),
];
