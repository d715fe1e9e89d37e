//! Jobs in answers, and the parts of jobs: each schema with its fields.

use super::{Fields, fields, objects};

pub(super) const JOB: Fields = fields! {
    id: "key", "The id of the job.";
    queue: "name", "The queue in which the job waits.";
    kind: "string", "What a worker library chooses the handler by; \"\" if none.";
    state: "JobState", "Where the job stands.";
    payload: "any~", "What the handler gets. Lists leave it out unless full=true.";
    priority: "integer", "Jobs with a higher priority go first: -100 to 100.";
    group: "key?", "The group in which the job takes turns; null if none.";
    needs: "Need[]", "Limits and pools that the job holds while it runs, as copied at the push.";
    attempt: "integer", "Runs that ended in succeeded or failed, and the one that is running; 0 before the first.";
    lost: "integer", "How many times in a row the worker was lost; any accepted settle sets it to 0.";
    snoozed: "integer", "How many of its runs ended in snoozed; 0 again when it is retried or replaced.";
    run_at: "moment", "The moment before which the job does not run, or at which it became due.";
    created_at: "moment", "When the job was pushed.";
    started_at: "moment?", "When its last run began; null before the first.";
    finished_at: "moment?", "When the job ended; null until then.";
    expires_at: "moment?", "The job is cancelled if it is not running by this moment; null if never.";
    result: "any~", "What the job succeeded with; null until then. Lists leave it out unless full=true.";
    error: "string?", "The last error, at most 8 KiB; null if there was none.";
    errors: "JobError[]", "The last 20 errors, oldest first.";
    progress: "any", "What its holder reported last, at most 4 KiB; null if nothing.";
    unique: "Unique?", "The unique key, as it was pushed; null if none.";
    labels: "object", "Words for people and filters.";
    traceparent: "string~", "The W3C trace context in which the job was pushed; lists show it with full=true alone.";
    lease: "string?", "The id of the lease that holds the job; null unless it runs.";
    cancel_requested: "boolean", "Whether a cancel waits until its holder hears of it.";
    retry: "Retry", "What happens after a failed or lost run, as copied at the push.";
    timeout: "duration?", "Longest time of one run, as copied at the push; null if none.";
    retain: "duration?", "How long the finished job is kept, as copied at the push; null decides by its end.";
    schedule: "MadeBy?", "The schedule that made the job; null for a job that was pushed.";
    flow: "flow?", "The flow to which the job belongs.";
    after: "ShownParent[]", "The first 100 parents: ids of jobs, and flows.";
    parents: "integer", "How many parents it has.";
    waiting_on: "integer", "How many of its parents have not ended, or have not been told to it yet.";
    on_parent_failure: "OnParentFailure", "What becomes of it when a parent fails or is cancelled.";
    cancelled_children: "integer~", "Only in the answer of a retry: how many jobs the failure of this one had cancelled. They stay cancelled.";
};

pub(super) const SHOWN: &[(&str, Fields)] = objects! {
    Result {
        id: "key", "The id of the job.";
        state: "JobState", "Where the job stands; look at it first.";
        result: "any", "What the job succeeded with; null until then.";
        error: "string?", "Why it failed or was cancelled; null until it has ended, also between attempts.";
        finished_at: "moment?", "When the job ended; null until then.";
        attempt: "integer", "Runs that ended in succeeded or failed, and the one that is running.";
        progress: "any", "What its holder reported last; null if nothing.";
        progress_id: "string?", "Which progress that is: given back as seen, the wait ends with another one, too; null if nothing was reported.";
    }
    JobError {
        attempt: "integer", "The attempt that ended so, from 1.";
        at: "moment", "When that run ended.";
        error: "string", "The text of the error; the end of one that was longer than 8 KiB.";
        outcome: "failed|lost|undelivered",
            "How the run ended: failed by its holder or its timeout, lost with its worker, or never delivered to one.";
    }
    DoneMany {
        done: "integer", "How many jobs this call changed.";
        more: "boolean", "Whether jobs may be left that match.";
        next: "string?", "The cursor with which the next call goes on; null when all are done.";
    }
    Failures {
        items: "FailureGroup[]", "Failed jobs that have queue, kind and the beginning of the error in common, the most frequent first.";
        partial: "boolean", "Whether only a part of the failed jobs was looked at.";
    }
    FailureGroup {
        queue: "name", "The queue of these jobs.";
        kind: "string", "The kind of these jobs.";
        error: "string", "What their last errors have in common: the first 120 characters, without numbers and ids.";
        count: "integer", "How many jobs failed so.";
        first_at: "moment", "When the first of them ended.";
        last_at: "moment", "When the last of them ended.";
        job: "key", "The id of the one that ended last.";
    }
    Explained {
        id: "key", "The id of the job.";
        state: "JobState", "Where the job stands.";
        summary: "string", "In one sentence, what the job waits for.";
        reasons: "Reason[]", "All that the job waits for; empty while it runs and when it has ended.";
        lease: "RunningLease~", "The lease of a running job.";
    }
    Reason {
        kind: "ReasonKind", "What kind of thing is waited for.";
        name: "string?", "The limit, pool or queue; null if there is none.";
        in_use: "integer?", "How many units of it are taken; null if nothing is counted.";
        capacity: "integer?", "How many units of it there are; null if nothing is counted.";
        holders: "Holder[]", "Who holds it, at most 20.";
        position: "integer?", "The place in that line, 1 for the next; null without a line.";
        ahead: "integer?", "How many jobs go first; null if unknown.";
        earliest: "moment?", "No sooner than this moment; null if a holder decides.";
        detail: "string", "The same in one sentence.";
    }
};
