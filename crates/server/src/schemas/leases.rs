//! Leases as answers show them, and how they are ended: each schema with its fields.

use super::Fields;

/// Schema and fields.
pub(super) const LEASES: &[(&str, Fields)] = &[
    (
        "Holder",
        &[
            ("lease", "string", "The id of the lease that holds it."),
            ("holder", "string", "The id of the worker."),
            ("job", "key?", "The id of the job; null for a lease without a job."),
            ("since", "moment", "When the lease was granted."),
        ],
    ),
    (
        "RunningLease",
        &[
            ("lease", "string", "The id of the lease."),
            ("holder", "string", "The id of the worker."),
            ("since", "moment", "When the lease was granted."),
            ("expires_at", "moment", "When it is taken back unless it is extended."),
        ],
    ),
    (
        "Leased",
        &[
            ("leases", "Lease[]", "What was granted; empty if nothing could be within the wait."),
            (
                "next_at",
                "moment?",
                "When the answer may change at the earliest; null if that is unknown.",
            ),
            ("reasons", "Reason[]", "Why needs that were asked for alone were not granted."),
        ],
    ),
    (
        "Lease",
        &[
            (
                "lease",
                "string?",
                "The id of the lease, for extend and settle; null for tokens, which leave no lease.",
            ),
            (
                "fence",
                "integer",
                "A number that grows with every grant in the namespace; pass it to whatever the lease protects.",
            ),
            ("holder", "string", "The id of the worker."),
            ("granted_at", "moment", "When the lease was granted."),
            ("expires_at", "moment", "When the lease is taken back unless it is extended."),
            ("deadline", "moment?", "When the run must be over; null without a timeout."),
            ("job", "Job?", "The job to run; null if needs alone were asked for."),
            ("resources", "LeasedResource[]", "The resources that it holds, with their data."),
            ("limits", "name[]", "Names of the limits that it holds."),
        ],
    ),
    (
        "LeasedResource",
        &[
            ("pool", "name", "The pool of the resource."),
            ("id", "key", "The id of the resource."),
            (
                "data",
                "any",
                "The data of the resource, often secret; it is shown here and nowhere else.",
            ),
            ("tags", "name[]", "The tags of the resource."),
        ],
    ),
    (
        "LeaseSummary",
        &[
            ("lease", "string", "The id of the lease, for extend and settle."),
            (
                "fence",
                "integer",
                "A number that grows with every grant in the namespace; pass it to whatever the lease protects.",
            ),
            ("holder", "string", "The id of the worker."),
            ("granted_at", "moment", "When the lease was granted."),
            ("expires_at", "moment", "When the lease is taken back unless it is extended."),
            ("deadline", "moment?", "When the run must be over; null without a timeout."),
            ("job", "key?", "The id of the job; null for a lease without a job."),
            ("queue", "name?", "The queue of the job; null for a lease without a job."),
            ("resources", "HeldResource[]", "The resources that it holds, without data."),
            ("limits", "name[]", "Names of the limits that it holds."),
            ("cancel_requested", "boolean", "Whether a cancel waits until its holder hears of it."),
        ],
    ),
    (
        "HeldResource",
        &[("pool", "name", "The pool of the resource."), ("id", "key", "The id of the resource.")],
    ),
    (
        "Extended",
        &[
            ("extended", "ExtendedLease[]", "Leases that live on."),
            ("lost", "string[]", "Ids of leases that are not held any more: stop their work."),
            (
                "cancel",
                "string[]",
                "Ids of extended leases whose job is to be cancelled: stop its work, and settle it.",
            ),
        ],
    ),
    (
        "ExtendedLease",
        &[
            ("lease", "string", "The id of the lease."),
            ("expires_at", "moment", "When it is taken back now unless it is extended again."),
        ],
    ),
    (
        "SettleItem",
        &[
            ("lease", "string", "The id of the lease to end."),
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
            (
                "for",
                "duration",
                "With snoozed: the job waits this long, at least 100ms. Excludes until.",
            ),
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
        ],
    ),
    (
        "ResourceVerdict",
        &[
            ("pool", "name", "The pool of the resource."),
            ("id", "key", "The id of the resource."),
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
            ("limit", "name", "The limit that was held."),
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
    (
        "Settled",
        &[
            ("settled", "SettledLease[]", "What became of each lease, in the order of the call."),
            ("leases", "Lease[]", "What the lease call in it was granted."),
            (
                "next_at",
                "moment?",
                "When the answer of the lease call may change at the earliest; null if unknown.",
            ),
            ("reasons", "Reason[]", "Why needs of the lease call were not granted."),
            ("refused", "Problem", "Why the lease call in it was refused; the settles stand."),
        ],
    ),
    (
        "SettledLease",
        &[
            ("lease", "string", "The id of the lease."),
            ("ok", "boolean", "Whether it was settled, by this call or by the same one before."),
            (
                "state",
                "JobState",
                "Where the job stands after the settle; absent for a lease without a job.",
            ),
            ("run_at", "moment", "When the job may run again; absent if it does not."),
            (
                "next_at",
                "moment?",
                "The next moment of the schedule of the job, after next_in; null if it has none any more.",
            ),
            (
                "code",
                "lease_lost|already_settled",
                "Why it was not settled: the lease is not held any more, or was settled otherwise.",
            ),
            ("pushed", "PushedJob[]", "The follow-up jobs, without payload."),
        ],
    ),
];
