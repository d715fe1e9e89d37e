//! Refusals of calls that name a job, or bring one whose unique key is taken.

use super::table::refusals;
use crate::job::JobState;
use crate::names::{JobId, JobRef, UniqueKey};

refusals! {
    /// A job that does not fit the call. `state` is its present state.
    JobRefusal:

    NotFound "job_not_found" { job: JobId }
        JobNotFound
        detail("there is no job {job:?}")
        hint("it was never pushed, or its \"retain\" is over; list the jobs to see those that are there");

    KeyNotHeld "job_key_not_held" { key: UniqueKey }
        JobNotFound
        detail("no job holds the unique key {key:?} now")
        hint("push a job with that key, or name the job by its id");

    ForgottenMeanwhile "job_forgotten_meanwhile" { job: String }
        JobNotFound
        detail("job {job:?} was forgotten while it was read")
        hint("its \"retain\" was over, or it was deleted; list the jobs to see those that are there");

    NotCancellable "job_not_cancellable" { job: JobId, state: JobState }
        WrongState
        detail("job {job:?} is {state}")
        hint("only a job that is not finished can be cancelled");

    NotDeletable "job_not_deletable" { job: JobId, state: JobState }
        WrongState
        detail("job {job:?} is {state}")
        hint("cancel it first; it can be deleted when its holder has stopped");

    NotRetryable "job_not_retryable" { job: JobId, state: JobState }
        WrongState
        detail("job {job:?} is {state}")
        hint("only a failed or cancelled job can be retried");

    EndedOtherwise "job_ended_otherwise" { job: JobId, state: JobState }
        WrongState
        detail("job {job:?} is {state}")
        hint("it ended at another moment than \"finished_at\": look at it again");

    Succeeded "job_succeeded" { job: JobId, state: JobState }
        WrongState
        detail("job {job:?} is {state}")
        hint("push it again under another id to run it again");

    NotRunnable "job_not_runnable" { job: JobId, state: JobState }
        WrongState
        detail("job {job:?} is {state}")
        hint("retry it to run it again");

    NotChangeable "job_not_changeable" { job: JobId, state: JobState }
        WrongState
        detail("job {job:?} is {state}")
        hint("only a job that is neither running nor finished can be changed");

    AwaitedByTooMany "awaited_by_too_many" { most: usize }
        LineFull
        detail("{most} calls wait for results in this namespace already")
        hint("ask again later, or without \"wait\"")
        retry_after_s(1);

    KeyTaken "job_key_taken" { key: UniqueKey, holder: JobId }
        UniqueConflict
        detail("the unique key {key:?} is held by job {holder:?}")
        hint("wait for that job, cancel it, or push with \"on_conflict\": \"keep\" or \"replace\"")
        job(holder);

    KeyTakenMeanwhile "job_key_taken_meanwhile" { key: UniqueKey, holder: JobId }
        UniqueConflict
        detail("job {holder:?} holds the unique key {key:?} by now")
        hint("wait until that job is finished, or cancel it")
        job(holder);
}

impl JobRefusal {
    /// The refusal of a name without a job: an unknown id, or a key that no job holds.
    pub fn not_found(job: &JobRef) -> Self {
        match job {
            JobRef::Id(id) => JobRefusal::NotFound { job: id.clone() },
            JobRef::Key(key) => JobRefusal::KeyNotHeld { key: key.clone() },
        }
    }
}
