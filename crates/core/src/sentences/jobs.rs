//! Refusals of calls that name a job, or bring one whose unique key is taken.

use super::table::refusals;
use crate::job::JobState;
use crate::names::{JobId, JobRef, UniqueKey};

refusals! {
    /// A job that does not fit the call. `state` is its present state.
    JobRefusal:

    NotFound JobNotFound { job: JobId }
        detail("there is no job {job:?}")
        hint("it was never pushed, or its \"retain\" is over; list the jobs to see those that are there");

    KeyNotHeld JobNotFound { key: UniqueKey }
        detail("no job holds the unique key {key:?} now")
        hint("push a job with that key, or name the job by its id");

    ForgottenMeanwhile JobNotFound { job: String }
        detail("job {job:?} was forgotten while it was read")
        hint("its \"retain\" was over, or it was deleted; list the jobs to see those that are there");

    NotCancellable WrongState { job: JobId, state: JobState }
        detail("job {job:?} is {state}")
        hint("only a job that is not finished can be cancelled");

    NotDeletable WrongState { job: JobId, state: JobState }
        detail("job {job:?} is {state}")
        hint("cancel it first; it can be deleted when its holder has stopped");

    NotRetryable WrongState { job: JobId, state: JobState }
        detail("job {job:?} is {state}")
        hint("only a failed or cancelled job can be retried");

    EndedOtherwise WrongState { job: JobId, state: JobState }
        detail("job {job:?} is {state}")
        hint("it ended at another moment than \"finished_at\": look at it again");

    Succeeded WrongState { job: JobId, state: JobState }
        detail("job {job:?} is {state}")
        hint("push it again under another id to run it again");

    NotRunnable WrongState { job: JobId, state: JobState }
        detail("job {job:?} is {state}")
        hint("retry it to run it again");

    NotChangeable WrongState { job: JobId, state: JobState }
        detail("job {job:?} is {state}")
        hint("only a job that is neither running nor finished can be changed");

    AwaitedByTooMany LineFull { most: usize }
        detail("{most} calls wait for results in this namespace already")
        hint("ask again later, or without \"wait\"")
        retry_after_s(1);

    KeyTaken UniqueConflict { key: UniqueKey, holder: JobId }
        detail("the unique key {key:?} is held by job {holder:?}")
        hint("wait for that job, cancel it, or push with \"on_conflict\": \"keep\" or \"replace\"")
        job(holder);

    KeyTakenMeanwhile UniqueConflict { key: UniqueKey, holder: JobId }
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
