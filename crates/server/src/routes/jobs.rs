//! `/v1/jobs`.

use tenure_core::decode;
use tenure_core::requests::{
    CancelJob, CancelJobs, DeleteJob, DeleteJobs, ExplainJob, GetJob, GetResult, ListFailures,
    ListJobs, Operation, PatchJob, Push, PushAnswer, RetryJob, RetryJobs, RunJobNow,
};

use super::{Call, Route, Takes, route};

const JOB: &[(u16, &str)] = &[(200, "Job")];
const DONE: &[(u16, &str)] = &[(200, "DoneMany")];

pub(super) static ROUTES: &[Route] = &[
    Route::of(&Push::SPEC, "Store jobs: one, an array, or a job a line", |asked| {
        let (shape, jobs) = decode::push(asked.body)?;
        let request = Push { jobs, answer: PushAnswer::Whole }.into();
        Ok(Call { request, one: shape == decode::PushShape::One, lines: None })
    })
    .takes(Takes::JsonOrJobs("NewJobs"))
    .answers(&[(200, "PushedJobs"), (201, "PushedJobs")]),
    route!(ListJobs, "List jobs, newest first", |asked| decode::list_jobs(asked.query))
        .query::<ListJobs>()
        .answers(&[(200, "Jobs")]),
    route!(CancelJobs, "Cancel the jobs that match", |asked| decode::cancel_jobs(asked.body))
        .takes(Takes::Json("JobFilter"))
        .answers(DONE),
    route!(RetryJobs, "Retry the jobs that match", |asked| decode::retry_jobs(asked.body))
        .takes(Takes::Json("JobFilter"))
        .answers(DONE),
    route!(DeleteJobs, "Forget the jobs that match and do not run", |asked| {
        decode::delete_jobs(asked.body)
    })
    .takes(Takes::Json("JobFilter"))
    .answers(DONE),
    route!(ListFailures, "Count failed jobs by their errors", |asked| decode::list_failures(
        asked.query
    ))
    .query::<ListFailures>()
    .answers(&[(200, "Failures")]),
    route!(GetJob, "Show a job", |asked| Ok(GetJob { job: decode::job_path(asked.first())? }))
        .answers(JOB),
    route!(PatchJob, "Change a job that waits", |asked| decode::patch_job(
        asked.first(),
        asked.body
    ))
    .takes(Takes::Json("JobPatch"))
    .answers(JOB),
    route!(DeleteJob, "Cancel a job and forget it", |asked| Ok(DeleteJob {
        job: decode::job_path(asked.first())?
    })),
    route!(CancelJob, "Cancel a job", |asked| Ok(CancelJob {
        job: decode::job_path(asked.first())?
    }))
    .answers(JOB),
    route!(RetryJob, "Make a finished job ready again", |asked| decode::retry_job(
        asked.first(),
        asked.body
    ))
    .takes(Takes::Maybe("RetryOne"))
    .answers(JOB),
    route!(RunJobNow, "Make a scheduled job ready", |asked| Ok(RunJobNow {
        job: decode::job_path(asked.first())?
    }))
    .answers(JOB),
    route!(GetResult, "Show how a job ended, or wait for its end", |asked| decode::get_result(
        asked.first(),
        asked.query
    ))
    .query::<GetResult>()
    .answers(&[(200, "Result")]),
    route!(ExplainJob, "Say what a job waits for", |asked| Ok(ExplainJob {
        job: decode::job_path(asked.first())?
    }))
    .answers(&[(200, "Explained")]),
];
