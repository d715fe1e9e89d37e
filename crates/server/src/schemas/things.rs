//! Resources, schedules, workers, totals, and the server itself, as answers show them: each schema with its fields.

use super::{Fields, objects};

pub(super) const THINGS: &[(&str, Fields)] = objects! {
    GaugeReading {
        asked_at: "moment?", "When the last good reading was asked for; null if there is none yet.";
        sum: "integer?", "What the address counted then; null if there is no reading.";
        external: "integer?", "How many of those are not our own runs; null if there is no reading.";
        failed_at: "moment?", "When the last attempt failed; null if the last attempt was good.";
        error: "string?", "Why that attempt failed, at most 256 bytes, without the address.";
    }
    TrailLine {
        seq: "integer", "The number of the line, from 0.";
        at: "moment", "When the line was written.";
        server: "string", "The address of the server that wrote it, or offline.";
        caller: "string~", "The name of the token, or anyone; absent for an unknown caller and the server's own lines.";
        peer: "string~", "The IP address from which the call came.";
        via: "api|page|server|command~", "How the call came: api, page, server if another one forwarded it, or command for one without a server.";
        op: "string", "The name of the operation, or of what the server did.";
        namespace: "string~", "The namespace of the call.";
        targets: "string[]~", "What the call names, as kind:name; at most 10.";
        targets_count: "integer~", "The number of all targets, if there are more than 10.";
        changed: "object~", "Changed settings by name, each with old, new or both; contents are •••.";
        status: "integer~", "200 if it was done, otherwise the HTTP status of the refusal; absent if the caller left.";
        code: "string~", "The code of the refusal, or unanswered.";
        count: "integer~", "How many calls the line stands for, or how many jobs a bulk call changed.";
        request_id: "string~", "The X-Request-Id of the call, or the trace id of its traceparent.";
        detail: "string~", "More about a line of the server itself.";
        begins: "string~", "The name of the file that the line begins; absent in other lines.";
        prev: "string", "SHA-256 of the line before, in hex.";
    }
    MadeBy {
        id: "schedule", "The id of the schedule.";
        at: "moment?", "The moment of the schedule; null for a run-now.";
    }
    LastFired {
        at: "moment", "The moment that fired last.";
        job: "key", "The id of the job that it made.";
    }
    LastEnded {
        job: "key", "The id of the job.";
        state: "JobState", "How the job ended.";
        finished_at: "moment", "When the job ended.";
    }
    SyncedSchedules {
        added: "integer", "Schedules that were not there before.";
        updated: "integer", "Schedules that were there and changed.";
        unchanged: "integer", "Schedules that were there, the same.";
        deleted: "integer", "Schedules that the set does not have, and that are gone.";
    }
    QueueCounts {
        ready: "integer", "Jobs that wait for their turn.";
        blocked: "integer", "Jobs whose turn came and that lack a need.";
        scheduled: "integer", "Jobs that wait for a moment: a delay, a retry, a snooze.";
        dependent: "integer", "Jobs that wait for other jobs.";
        running: "integer", "Jobs that a worker holds.";
    }
    Waiter {
        job: "key?", "The id of the job that waits; null for a caller who asks for needs alone.";
        queue: "name?", "The queue of the job; null for a caller.";
        since: "moment", "Since when it stands in the line.";
    }
    Resource {
        id: "key", "The id of the resource.";
        data: "any", "The keys of its data, with • for each value.";
        tags: "name[]", "Words by which a need asks for it.";
        slots: "integer", "How many leases may hold it at once.";
        state: "available|cooling|banned", "Whether it may be handed out: available, cooling until a moment, or banned until it is restored.";
        reason: "string?", "Why it is cooling or banned; null if it is neither.";
        in_use: "integer", "How many leases hold it now.";
        until: "moment?", "Until when it is cooling; null if it is not.";
        retiring: "boolean", "Whether it goes as soon as it is free.";
        holders: "Holder[]", "The leases that hold it.";
        uses: "integer", "How many times it was granted.";
        last_used_at: "moment?", "When it was granted last; null if never.";
    }
    Synced {
        added: "integer", "Resources that were not there before.";
        updated: "integer", "Resources that were there and changed.";
        unchanged: "integer", "Resources that were there, the same.";
        retired: "integer", "Resources that the set does not have, and that are gone.";
        retiring: "integer", "Resources that the set does not have, and that go when they are free.";
    }
    Worker {
        id: "key", "The id of the worker, random for each process.";
        host: "string?", "The host of the worker, as it says; null if it does not.";
        pid: "integer?", "The process id of the worker, as it says; null if it does not.";
        version: "string?", "The version of the worker, as it says; null if it does not.";
        queues: "name[]", "The queues that it asked for last.";
        leases: "integer", "How many leases it holds.";
        last_seen_at: "moment", "When it called last; it is forgotten 60s later.";
    }
    Preview { next: "moment[]", "The next moments, without jitter."; }
    ScheduleStats {
        count: "integer", "How many schedules there are.";
        paused: "integer", "How many of them are paused now.";
        due: "integer", "How many have a moment that is due and not decided yet.";
        oldest_due_at: "moment?", "Since when the oldest of those moments is due; null if none is.";
    }
    StoreStats {
        kind: "string", "What kind of store the server has.";
        bytes: "integer", "How many bytes the store takes on disk; in Redis those of its log and its snapshots.";
    }
    TrailEnd {
        server: "string", "The address of the server that writes the trail.";
        seq: "integer", "The number of its last line.";
        hash: "string", "SHA-256 of that line, in hex: an anchor for tenure trail verify.";
    }
    Stats {
        jobs: "object", "How many jobs there are, by state.";
        queues: "object", "How many jobs there are, by queue and state.";
        leases: "integer", "How many leases live.";
        result_waiters: "integer", "How many calls wait for the end of a job or a flow, at most 10,000.";
        oldest_ready_at: "moment?", "Since when the oldest ready job is ready; null if none is.";
        schedules: "ScheduleStats", "Totals of the schedules.";
        flows: "integer", "How many flows there are.";
        events: "EventStats", "The events that are kept.";
        store: "StoreStats", "Where state lives, and how much of it.";
        trail: "TrailEnd~", "The last line of the trail of the server that answered; absent for callers without admin, and without a trail.";
    }
    Audit {
        ok: "boolean", "Whether nothing is wrong.";
        checked: "integer", "How many things were checked.";
        faults: "string[]", "What is wrong, a sentence each.";
    }
    Health { status: "ok", "The process lives: always ok."; }
    Ready {
        status: "ok|draining|degraded", "Whether calls are answered: ok, draining, or degraded while the store is not well.";
        store: "string", "What kind of store the server has.";
        draining: "boolean", "Whether the server is about to end.";
        detail: "string", "In one sentence, how the server and its store are.";
    }
    Version {
        version: "string", "The release of the server.";
        commit: "string", "The commit from which it was built; unknown if the build did not say.";
        contract: "integer", "The number of the contract that it speaks.";
    }
    Me {
        name: "string", "The name of the token; anyone if the server asks for none.";
        scopes: "Scope[]", "The scopes of the token; read contains view.";
        namespaces: "string[]", "Patterns of the namespaces that it may use; * is all.";
        queues: "string[]?", "Patterns of its queues for push and work; null if all.";
        needs: "string[]?", "Patterns of the limits and pools that it may hold, such as pool:proxies; null if all.";
        expires: "moment?", "When the token ceases to be valid; null if never.";
        calls: "string?", "How many calls it may make in a time, such as 200/1s; null if any number.";
        in_flight: "integer?", "How many calls, streams and waits it may have at once; null if any number.";
        tokens: "string~", "A hash of the file of tokens of the server: equal where files are. Absent for callers without admin, and without a file.";
    }
    Document {}
    Problem {
        type: "string", "A name for the code: urn:tenure:error:CODE.";
        title: "string", "The code in a few words.";
        status: "integer", "The HTTP status of the answer.";
        code: "Code", "What is wrong, for programs; it never changes its meaning.";
        detail: "string", "What is wrong with this very call, in a sentence.";
        hint: "string", "What to do next, in a sentence.";
        pointer: "string~", "Where it is wrong: a JSON pointer into the body, or /query/NAME, /header/NAME, /path/NAME.";
        index: "integer~", "The number of the item in an array, from 0.";
        line: "integer~", "The number of the line in NDJSON, from 1.";
        job: "key~", "The id of the job that is in the way.";
        caller: "string~",
            "The name of the caller's token, if that has used up its calls or in_flight: the caller waits as long as Retry-After says.";
    }
};
