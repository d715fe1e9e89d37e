//! `/v1/jobs`.

use tenure_core::decode;
use tenure_core::requests::{
    CancelJob, DeleteJob, ExplainJob, GetJob, Push, PushAnswer, RunJobNow,
};

use super::{Call, Route, Takes};

const JOB: &[(u16, &str)] = &[(200, "Job")];
const DONE: &[(u16, &str)] = &[(200, "DoneMany")];

pub(super) static ROUTES: &[Route] = &[
    Route::post("/v1/jobs", "push", "Store jobs: one, an array, or a job a line", |asked| {
        let (shape, jobs) = decode::push(asked.body)?;
        let request = Push { jobs, answer: PushAnswer::Whole }.into();
        Ok(Call { request, one: shape == decode::PushShape::One })
    })
    .takes(Takes::JsonOrJobs("NewJobs"))
    .answers(&[(200, "PushedJobs"), (201, "PushedJobs")]),
    Route::get("/v1/jobs", "list_jobs", "List jobs, newest first", |asked| {
        Ok(decode::list_jobs(asked.query)?.into())
    })
    .query(&["queue", "state", "kind", "label", "full", "max", "cursor"])
    .answers(&[(200, "Jobs")]),
    Route::post("/v1/jobs/cancel", "cancel_jobs", "Cancel the jobs that match", |asked| {
        Ok(decode::cancel_jobs(asked.body)?.into())
    })
    .takes(Takes::Json("JobFilter"))
    .answers(DONE),
    Route::post("/v1/jobs/retry", "retry_jobs", "Retry the jobs that match", |asked| {
        Ok(decode::retry_jobs(asked.body)?.into())
    })
    .takes(Takes::Json("JobFilter"))
    .answers(DONE),
    Route::get("/v1/jobs/{id}", "get_job", "Show a job", |asked| {
        Ok(GetJob { job: decode::job_path(asked.first())? }.into())
    })
    .answers(JOB),
    Route::patch("/v1/jobs/{id}", "patch_job", "Change a job that waits", |asked| {
        Ok(decode::patch_job(asked.first(), asked.body)?.into())
    })
    .takes(Takes::Json("JobPatch"))
    .answers(JOB),
    Route::delete("/v1/jobs/{id}", "delete_job", "Cancel a job and forget it", |asked| {
        Ok(DeleteJob { job: decode::job_path(asked.first())? }.into())
    }),
    Route::post("/v1/jobs/{id}/cancel", "cancel_job", "Cancel a job", |asked| {
        Ok(CancelJob { job: decode::job_path(asked.first())? }.into())
    })
    .answers(JOB),
    Route::post("/v1/jobs/{id}/retry", "retry_job", "Make a finished job ready again", |asked| {
        Ok(decode::retry_job(asked.first(), asked.body)?.into())
    })
    .takes(Takes::Maybe("RetryOne"))
    .answers(JOB),
    Route::post("/v1/jobs/{id}/run-now", "run_job_now", "Make a scheduled job ready", |asked| {
        Ok(RunJobNow { job: decode::job_path(asked.first())? }.into())
    })
    .answers(JOB),
    Route::get("/v1/jobs/{id}/explain", "explain_job", "Say what a job waits for", |asked| {
        Ok(ExplainJob { job: decode::job_path(asked.first())? }.into())
    })
    .answers(&[(200, "Explained")]),
];
