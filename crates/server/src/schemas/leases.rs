//! Leases as answers show them, and how they are ended: each schema with its fields.

use super::{Fields, objects};

pub(super) const LEASES: &[(&str, Fields)] = objects! {
    Holder {
        lease: "string", "The id of the lease that holds it.";
        holder: "string", "The id of the worker.";
        job: "key?", "The id of the job; null for a lease without a job.";
        since: "moment", "When the lease was granted.";
    }
    RunningLease {
        lease: "string", "The id of the lease.";
        holder: "string", "The id of the worker.";
        since: "moment", "When the lease was granted.";
        expires_at: "moment", "When it is taken back unless it is extended.";
    }
    Leased {
        leases: "Granted[]", "What was granted; empty if nothing could be within the wait.";
        next_at: "moment?~", "When the answer may change at the earliest; null if that is unknown.";
        reasons: "Reason[]~", "Why needs that were asked for alone were not granted.";
    }
    Lease {
        lease: "string", "The id of the lease, for extend and settle.";
        fence: "integer", "A number that grows with every grant in the namespace; pass it to whatever the lease protects.";
        holder: "string", "The id of the worker.";
        granted_at: "moment", "When the lease was granted.";
        expires_at: "moment", "When the lease is taken back unless it is extended.";
        deadline: "moment?", "When the run must be over; null without a timeout.";
        job: "Job?", "The job to run; null if needs alone were asked for.";
        resources: "LeasedResource[]", "The resources that it holds, with their data.";
        limits: "name[]", "Names of the limits that it holds.";
    }
    Tokens {
        lease: "nothing", "Always null: tokens leave no lease, and nothing to settle.";
        fence: "integer", "A number that grows with every grant in the namespace.";
        limits: "name[]", "Names of the limits whose tokens were taken.";
    }
    LeasedResource {
        pool: "name", "The pool of the resource.";
        id: "key", "The id of the resource.";
        data: "any", "The data of the resource, often secret; it is shown here and nowhere else.";
        tags: "name[]", "The tags of the resource.";
    }
    LeaseSummary {
        lease: "string", "The id of the lease, for extend and settle.";
        fence: "integer", "A number that grows with every grant in the namespace; pass it to whatever the lease protects.";
        holder: "string", "The id of the worker.";
        granted_at: "moment", "When the lease was granted.";
        expires_at: "moment", "When the lease is taken back unless it is extended.";
        deadline: "moment?", "When the run must be over; null without a timeout.";
        job: "key?", "The id of the job; null for a lease without a job.";
        queue: "name?", "The queue of the job; null for a lease without a job.";
        resources: "HeldResource[]", "The resources that it holds, without data.";
        limits: "name[]", "Names of the limits that it holds.";
        cancel_requested: "boolean", "Whether a cancel waits until its holder hears of it.";
    }
    HeldResource {
        pool: "name", "The pool of the resource.";
        id: "key", "The id of the resource.";
    }
    Extended {
        extended: "ExtendedLease[]", "Leases that live on.";
        lost: "string[]", "Ids of leases that are not held any more: stop their work.";
        cancel: "string[]", "Ids of extended leases whose job is to be cancelled: stop its work, and settle it.";
    }
    ExtendedLease {
        lease: "string", "The id of the lease.";
        expires_at: "moment", "When it is taken back now unless it is extended again.";
    }
    Settled {
        settled: "SettledLease[]", "What became of each lease, in the order of the call.";
        leases: "Granted[]~", "What the lease call in it was granted.";
        next_at: "moment?~", "When the answer of the lease call may change at the earliest; null if unknown.";
        reasons: "Reason[]~", "Why needs of the lease call were not granted.";
        refused: "Problem~", "Why the lease call in it was refused; the settles stand.";
    }
    SettledLease {
        lease: "string", "The id of the lease.";
        ok: "boolean", "Whether it was settled, by this call or by the same one before.";
        state: "JobState~", "Where the job stands after the settle; absent for a lease without a job.";
        run_at: "moment~", "When the job may run again; absent if it does not.";
        next_at: "moment?~", "The next moment of the schedule of the job, after next_in; null if it has none any more.";
        code: "lease_lost|already_settled~", "Why it was not settled: the lease is not held any more, or was settled otherwise.";
        pushed: "PushedJob[]~", "The follow-up jobs, without payload.";
    }
};
