//! `/v1/jobs`.

use tenure_core::requests::{
    CancelJob, CancelJobs, DeleteJob, DeleteJobs, ExplainJob, GetJob, GetResult, ListFailures,
    ListJobs, PatchJob, Push, RetryJob, RetryJobs, RunJobNow,
};

use super::{LineItem, Route, route};

pub(super) static ROUTES: &[Route] = &[
    route!(Push, "Store jobs: one, an array, or a job a line", 200 "PushedJobs", 201 "PushedJobs")
        .lines_of(LineItem::Job)
        .may_be_one(),
    route!(ListJobs, "List jobs, newest first", 200 "Jobs"),
    route!(CancelJobs, "Cancel the jobs that match", 200 "DoneMany"),
    route!(RetryJobs, "Retry the jobs that match", 200 "DoneMany"),
    route!(DeleteJobs, "Forget the jobs that match and do not run", 200 "DoneMany"),
    route!(ListFailures, "Count failed jobs by their errors", 200 "Failures"),
    route!(GetJob, "Show a job", 200 "Job"),
    route!(PatchJob, "Change a job that waits", 200 "Job"),
    route!(DeleteJob, "Cancel a job and forget it", 204 ""),
    route!(CancelJob, "Cancel a job", 200 "Job"),
    route!(RetryJob, "Make a finished job ready again", 200 "Job"),
    route!(RunJobNow, "Make a scheduled job ready", 200 "Job"),
    route!(GetResult, "Show how a job ended, or wait for its end", 200 "Result"),
    route!(ExplainJob, "Say what a job waits for", 200 "Explained"),
];
