//! Bodies of requests: each schema with its fields.

use super::Fields;

const NEW_JOB: Fields = &[
    (
        "id",
        "key",
        "The id of the job, chosen by the caller, 1 to 256 bytes, not beginning with \"key:\"; made by the server if absent. A push under an id that is there is answered with that job, and nothing is stored.",
    ),
    (
        "queue",
        "name",
        "The queue in which the job waits, made by its first use; \"default\" if absent.",
    ),
    (
        "kind",
        "name",
        "What a worker library chooses the handler by, at most 128 bytes; \"\" if absent.",
    ),
    ("payload", "any", "What the handler gets: any JSON, at most 256 KiB; null if absent."),
    (
        "run_at",
        "moment",
        "The moment before which the job does not run; a moment in the past is now. Excludes delay.",
    ),
    (
        "delay",
        "duration",
        "How long after the push the job may run, 0s to 3650d; 0s if absent. Excludes run_at.",
    ),
    ("priority", "integer", "Jobs with a higher priority go first: -100 to 100, 0 if absent."),
    (
        "group",
        "key",
        "The tenant, site or user for whom the job is: groups of a queue take turns by their shares. Jobs without a group are one group together.",
    ),
    (
        "needs",
        "Need[]",
        "Limits and pools that the job holds while it runs, at most 16, none twice. They replace the needs of the queue; an empty list means none.",
    ),
    ("unique", "Unique", "The key of which only one unfinished job may exist in the namespace."),
    (
        "retry",
        "Retry",
        "What happens after a failed or lost run; absent, the retry of the queue, otherwise the default.",
    ),
    (
        "timeout",
        "duration",
        "Longest time of one run, more than 0s; the run then ends as failed. Absent, that of the queue, otherwise none.",
    ),
    (
        "expires_at",
        "moment",
        "The job is cancelled, with the error expired, if it is not running by this moment.",
    ),
    (
        "retain",
        "duration",
        "How long the finished job is kept, 0s to 3650d. Absent, that of the queue, otherwise 1h for succeeded and cancelled jobs and 7d for failed ones.",
    ),
    (
        "labels",
        "object",
        "Words for people and filters: at most 16 strings of up to 256 bytes, under keys of 1 to 64 bytes.",
    ),
    ("after", "After", "The parents: jobs and flows that must have ended before this job may run."),
    (
        "on_parent_failure",
        "OnParentFailure",
        "cancel (the default): a parent that fails for good or is cancelled cancels this job. run: any end of a parent will do.",
    ),
    (
        "ref",
        "ref",
        "A name within this array, or within the push of this settle, by which other items name it in after. It is not stored, and a line of NDJSON has none.",
    ),
    (
        "flow",
        "flow",
        "The flow to which the job belongs. Without it: that of its first parent that has one; in a settle otherwise that of the settled job.",
    ),
    (
        "traceparent",
        "string",
        "The W3C trace context of the push, version 00, which the worker is shown; absent, that of the request's header traceparent.",
    ),
];

const LATER: Fields = &[
    ("for", "duration", "How long from now, 0s to 3650d. Excludes until."),
    ("until", "moment", "The moment at which it ends. Excludes for."),
];

pub(super) const QUEUE_SETTINGS: Fields = &[
    (
        "needs",
        "Need[]",
        "Needs of a pushed job that states none, at most 16. {payload.FIELD} in the name of a limit is filled in from its payload.",
    ),
    ("retry", "Retry?", "The retry of a pushed job that states none; null is the default retry."),
    ("timeout", "duration?", "The timeout of a pushed job that states none; null is no timeout."),
    (
        "retain",
        "duration?",
        "How long a finished job is kept that states no retain; null decides by its end: 1h, or 7d if it failed.",
    ),
    (
        "max_waiting",
        "integer?",
        "Most jobs that may wait, 0 to 1,000,000,000; pushes beyond it are refused as queue_full. null is no bound.",
    ),
    (
        "lost_delay",
        "duration?",
        "How long a job waits after its worker was lost; null is 2s, doubled for each further loss in a row, at most 1m.",
    ),
    (
        "shares",
        "object",
        "How many turns each group gets, 1 to 1,000 by the name of the group; 1 for a group that is not named.",
    ),
    (
        "show_payload",
        "boolean",
        "Whether lists of the dashboard show one line of each payload; true unless it is set.",
    ),
];

/// The settings of a limit in an answer, without its gauge, which an answer shows with its
/// readings.
pub(super) const LIMIT_BOUNDS: Fields = &[
    (
        "concurrency",
        "integer?",
        "How many permits there are, 0 to 1,000,000,000; 0 closes the limit for now, null bounds nothing.",
    ),
    ("rate", "Rate?", "How many tokens there are in a period; null bounds nothing."),
    (
        "gap",
        "duration?",
        "How long each permit rests after its release; needs a concurrency. null is no rest.",
    ),
    (
        "quarantine",
        "duration",
        "How long a permit rests after a lease that its holder did not settle; needs a concurrency, 0s by default. The longer of it and gap counts.",
    ),
];

const LIMIT_SETTINGS: Fields = &[
    (
        "concurrency",
        "integer?",
        "How many permits there are, 0 to 1,000,000,000; 0 closes the limit for now, null bounds nothing.",
    ),
    ("rate", "Rate?", "How many tokens there are in a period; null bounds nothing."),
    (
        "gap",
        "duration?",
        "How long each permit rests after its release; needs a concurrency. null is no rest.",
    ),
    (
        "quarantine",
        "duration",
        "How long a permit rests after a lease that its holder did not settle; needs a concurrency, 0s by default. The longer of it and gap counts.",
    ),
    (
        "gauge",
        "Gauge?",
        "Where the server counts permits that are used by work that Tenure does not run; null is no gauge.",
    ),
];

pub(super) const GAUGE: Fields = &[
    (
        "url",
        "string~",
        "The address that a GET asks for JSON, at most 2 KiB; shown without its login and query. Excludes scrapyd.",
    ),
    (
        "count",
        "string[]~",
        "JSON pointers (RFC 6901) to the whole numbers that are added, 1 to 16, each of at most 256 bytes.",
    ),
    (
        "scrapyd",
        "string~",
        "The address of a scrapyd, whose listjobs.json is read; shown without its login. Excludes url and count.",
    ),
    ("project", "string?~", "The one scrapyd project that counts; all if absent."),
    ("every", "duration", "How often it is read, 500ms to 1h; 2s if absent."),
    (
        "lag",
        "duration",
        "How long a run of ours may take to appear in the count, at most 1h; 10s if absent.",
    ),
    (
        "stale",
        "duration",
        "How old the last reading may become, at most 1d and at least what is fresh; 30s if absent, or longer for a slow gauge.",
    ),
    (
        "on_stale",
        "OnStale",
        "What holds once the reading is stale: keep (the default) goes on with the last value, hold grants nothing more.",
    ),
];

pub(super) const POOL_SETTINGS: Fields = &[
    ("quarantine", "duration", "How long a resource rests whose holder was lost; 0s by default."),
    ("cooldown", "duration", "How long a resource rests after every use; 0s by default."),
    ("rate", "Rate?", "How often one resource is granted in a period; null is no bound."),
    (
        "max_uses",
        "integer?",
        "After how many grants a resource is banned, 1 to 1,000,000,000; null is never.",
    ),
    (
        "pick",
        "lru|random",
        "Which free resource is handed out: the one whose last use is longest ago (lru, the default), or any.",
    ),
];

pub(super) const SCHEDULE_SETTINGS: Fields = &[
    (
        "owner",
        "owner?",
        "The set from outside to which the schedule belongs, for a sync; null is none.",
    ),
    (
        "cron",
        "string?",
        "A cron expression of five fields, or six with seconds first, at most 1,024 bytes. Excludes every.",
    ),
    (
        "zone",
        "string?",
        "The IANA zone in which cron is read, such as Europe/Berlin; UTC if absent. Goes with cron alone.",
    ),
    ("every", "duration?", "The interval: whole seconds from 1s to 3650d. Excludes cron and zone."),
    (
        "starts_at",
        "moment?",
        "No moment lies before it, and an interval counts from it; null is no start.",
    ),
    ("ends_at", "moment?", "No moment lies after it; null is no end."),
    ("jitter", "duration", "By how much a moment is late at most, 0s to 1d; 0s by default."),
    (
        "overlap",
        "Overlap",
        "What becomes of a moment while a job of this schedule is unfinished: skip (the default), queue, or allow.",
    ),
    (
        "catch_up",
        "CatchUp",
        "Which of several due moments fire, as after an outage: none, last (the default), or all.",
    ),
    (
        "catch_up_max",
        "integer",
        "With catch_up all, how many moments fire at most, 1 to 1,000; 100 by default.",
    ),
    ("job", "ScheduledJob!", "The job that each moment makes."),
];

const SCHEDULED_JOB: Fields = &[
    ("queue", "name", "The queue of the job; \"default\" if absent."),
    (
        "kind",
        "name",
        "What a worker library chooses the handler by, at most 128 bytes; \"\" if absent.",
    ),
    (
        "payload",
        "any",
        "What the handler gets: any JSON, at most 256 KiB. Lists leave it out unless full=true.",
    ),
    ("priority", "integer", "Jobs with a higher priority go first: -100 to 100, 0 if absent."),
    ("group", "key?", "The group in which the job takes turns; null is none."),
    (
        "needs",
        "Need[]?",
        "Limits and pools that the job holds while it runs; null is those of its queue when the moment fires.",
    ),
    (
        "retry",
        "Retry?",
        "What happens after a failed or lost run; null is that of its queue when the moment fires.",
    ),
    (
        "timeout",
        "duration?",
        "Longest time of one run; null is that of its queue when the moment fires.",
    ),
    (
        "retain",
        "duration?",
        "How long the finished job is kept; null is that of its queue when the moment fires.",
    ),
    (
        "expires_in",
        "duration?",
        "The job is cancelled if it is not running this long after its moment, more than 0s; null is never.",
    ),
    ("labels", "object", "Words for people and filters, as for a pushed job."),
];

pub(super) const LEASE_CALL: Fields = &[
    ("queues", "name[]", "Queues to take jobs from, 1 to 32, tried in this order. Excludes needs."),
    ("needs", "Need[]", "Limits and pools to hold without a job, 1 to 16. Excludes queues."),
    (
        "max",
        "integer",
        "How many jobs are leased at most, 1 to 1,000; 1 if absent. Goes with queues alone.",
    ),
    ("wait", "duration", "How long the call waits for the first grant, 0s to 1m; 0s if absent."),
    (
        "ttl",
        "duration",
        "How long a lease lives without a heartbeat, 1s to 1h; 30s if absent. 0s takes tokens of needs that are only rates, and leaves no lease.",
    ),
    (
        "worker",
        "WorkerName",
        "Who asks, for people to read and never a right; anonymous if absent.",
    ),
    (
        "request_id",
        "key",
        "By which the call can be repeated: the same id gets the same leases, and never a second grant, for at least 60s.",
    ),
    (
        "place",
        "key",
        "The request_id of an earlier call of the same wait, whose place in line this call keeps.",
    ),
];

/// Bodies of requests: name and fields.
pub(crate) const BODIES: &[(&str, Fields)] = &[
    ("NewJob", NEW_JOB),
    (
        "JobPatch",
        &[
            (
                "run_at",
                "moment?",
                "The new moment before which the job does not run; null is now. Excludes delay.",
            ),
            (
                "delay",
                "duration?",
                "How long from now the job may run; null is now. Excludes run_at.",
            ),
            ("priority", "integer?", "The new priority, -100 to 100; null is 0."),
            ("payload", "any", "The new payload, at most 256 KiB; null is null."),
            ("needs", "Need[]?", "The new needs, at most 16; null is those of the queue."),
            ("group", "key?", "The new group; null is none."),
            (
                "labels",
                "object?",
                "The new labels, which replace all of the old ones; null is none.",
            ),
            ("timeout", "duration?", "The new longest time of one run; null is that of the queue."),
            ("expires_at", "moment?", "The new moment by which the job must run; null is none."),
        ],
    ),
    (
        "JobFilter",
        &[
            ("queue", "name", "Jobs of this queue."),
            (
                "state",
                "string",
                "Jobs in one of these states, separated by commas, such as ready,blocked.",
            ),
            ("kind", "string", "Jobs of this kind; an empty text names those without one."),
            (
                "label",
                "string",
                "Jobs with this label, written KEY:VALUE and split at the last colon.",
            ),
            (
                "error",
                "string",
                "Jobs whose last error contains this text, letter by letter; at most 8 KiB.",
            ),
            ("finished_after", "moment", "Jobs that ended at this moment or later."),
            ("finished_before", "moment", "Jobs that ended before this moment."),
            ("flow", "flow", "Jobs of this flow."),
            (
                "schedule",
                "schedule",
                "Jobs that this schedule made; looked for in at most 10,000 jobs.",
            ),
            (
                "max",
                "integer",
                "How many jobs one call changes at most, 1 to 1,000; 1,000 if absent.",
            ),
            (
                "cursor",
                "string",
                "The next of the answer before, to go on where that call stopped.",
            ),
        ],
    ),
    (
        "RetryOne",
        &[(
            "finished_at",
            "moment",
            "Retries the job only if this is still the moment at which it ended; otherwise it is refused as wrong_state.",
        )],
    ),
    ("LeaseCall", LEASE_CALL),
    (
        "ExtendCall",
        &[
            (
                "leases",
                "ExtendItem[]!",
                "Leases to keep alive, at most 1,000: ids, or objects with a progress report.",
            ),
            (
                "ttl",
                "duration",
                "A new ttl for all of them, 1s to 1h; absent, each keeps its own. An extend never shortens a lease.",
            ),
        ],
    ),
    (
        "SettleCall",
        &[
            ("settle", "SettleItem[]!", "Leases to end, at most 1,000, in this order."),
            (
                "lease",
                "LeaseCall",
                "A lease call that is made right after the settles; its request_id is required.",
            ),
        ],
    ),
    ("QueueSettings", QUEUE_SETTINGS),
    ("LimitSettings", LIMIT_SETTINGS),
    ("Gauge", GAUGE),
    ("PoolSettings", POOL_SETTINGS),
    ("Later", LATER),
    (
        "Observation",
        &[
            ("external", "integer!", "How many permits work outside uses now, 0 to 1,000,000,000."),
            ("for", "duration", "How long the number holds; absent, until the next observation."),
        ],
    ),
    (
        "NewResource",
        &[
            (
                "id",
                "key!",
                "The id of the resource, 1 to 256 bytes; it must not stand twice in a whole set.",
            ),
            (
                "data",
                "any",
                "What its holder gets and nobody else is shown: any JSON, at most 64 KiB; null if absent.",
            ),
            ("tags", "name[]", "Words by which a need asks for it, at most 16."),
            (
                "slots",
                "integer",
                "How many leases may hold it at once, 1 to 1,000,000,000; 1 if absent.",
            ),
        ],
    ),
    (
        "ResourcePatch",
        &[
            ("data", "any", "The new data, at most 64 KiB, for the next lease; null is null."),
            (
                "tags",
                "name[]?",
                "The new tags, at most 16, which replace all of the old ones; null is none.",
            ),
            ("slots", "integer?", "The new number of leases that may hold it at once; null is 1."),
        ],
    ),
    ("Ban", &[("reason", "string", "Why it is banned, for people; at most 8 KiB.")]),
    (
        "PreviewCall",
        &[
            (
                "id",
                "string",
                "The id of the schedule, which decides the phase of an interval without starts_at.",
            ),
            ("cron", "string", "A cron expression, as in a schedule. Excludes every."),
            ("zone", "string", "The IANA zone in which cron is read; UTC if absent."),
            ("every", "duration", "The interval, whole seconds from 1s to 3650d. Excludes cron."),
            ("starts_at", "moment", "No moment lies before it."),
            ("ends_at", "moment", "No moment lies after it."),
            ("from", "moment", "Shows moments after this one; now if absent."),
            ("count", "integer", "How many moments are shown at most, 1 to 100; 5 if absent."),
        ],
    ),
    ("ScheduleSettings", SCHEDULE_SETTINGS),
    ("ScheduledJob", SCHEDULED_JOB),
    (
        "RunNow",
        &[(
            "id",
            "key",
            "The id of the job that is made, by which the call can be repeated; made by the server if absent.",
        )],
    ),
];
