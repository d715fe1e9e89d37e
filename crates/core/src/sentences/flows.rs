//! Refusals of jobs that wait for others, and of calls that name a flow.

use super::table::refusals;
use crate::job::JobState;
use crate::names::{FlowName, JobId, Ref};

/// Advice for a parent that may be gone.
const GONE_IS_DONE: &str = "push it first, or in the same array; if it may be gone by now, say {\"job\": ID, \"gone\": \"done\"}";

refusals! {
    /// A job that cannot wait as the call wants, or a flow that does not fit the call.
    FlowRefusal:

    NotFound FlowNotFound { flow: FlowName }
        detail("there is no flow {flow:?}")
        hint("a flow is there while one of its jobs is; push a job with \"flow\" first, or list the flows");

    UnknownParent UnknownParent { job: String }
        detail("there is no job {job:?} to wait for")
        hint("{GONE_IS_DONE}");

    UnknownFlow UnknownParent { flow: FlowName }
        detail("there is no flow {flow:?} to wait for")
        hint("push its first job before, or in the same array; if it may be gone by now, say {{\"flow\": FLOW, \"gone\": \"done\"}}");

    UnknownRef UnknownParent { name: Ref }
        detail("no item of this call has the ref {name:?}")
        hint("give one of the other items this \"ref\", or name the job by its id");

    RefTwice InvalidField { name: Ref }
        detail("the ref {name:?} stands twice in this call")
        hint("give each item a \"ref\" of its own");

    RefInLine InvalidField
        detail("a line of NDJSON has no \"ref\"")
        hint("lines are stored as they come: give the parent an \"id\", push it in an earlier line, and name it by that");

    TooManyParents OutOfBounds { parents: usize, most: usize }
        detail("the jobs of this call have {parents} parents, more than {most}")
        hint("let them wait for a flow, which is one parent however many jobs it has");

    Cycle Cycle
        detail("this job waits for itself, directly or by others of this call")
        hint("take out one of the entries of \"after\" that lead back to it");

    AboveFlow Cycle { flow: FlowName }
        detail("a job that waits for a flow, directly or by its parents, cannot belong to the flow {flow:?}")
        hint("leave its \"flow\" out, or let it wait for single jobs");

    AboveFlowByRetry WrongState { job: JobId, flow: FlowName }
        detail("job {job:?} belongs to the flow {flow:?}, and one of its parents waits for a flow now")
        hint("wait until that parent has ended, or push the job anew without its \"flow\"");

    ParentEnded WrongState { job: JobId, parent: JobId, state: JobState }
        detail("job {job:?} waits for job {parent:?}, which is {state}")
        hint("retry {parent:?} first, or push the job anew with \"on_parent_failure\": \"run\"")
        job(parent);

    FlowFailed WrongState { job: JobId, flow: FlowName }
        detail("job {job:?} waits for the flow {flow:?}, of which a job failed or was cancelled")
        hint("retry the failed jobs of {flow:?} first, or push the job anew with \"on_parent_failure\": \"run\"");

    StillTelling WrongState { job: JobId }
        detail("job {job:?} has just ended, and those that wait for it are still being told")
        hint("ask again in a moment");

    StillWaiting WrongState { job: JobId }
        detail("job {job:?} waits for other jobs")
        hint("it runs when they have ended; explain shows which they are");

    Followed InUse { job: JobId }
        detail("unfinished jobs wait for job {job:?}")
        hint("wait until they have ended, or cancel them; the job's children list them");

    FollowedBy InUse { job: JobId, child: JobId }
        detail("job {child:?}, which waits for job {job:?}, is unfinished")
        hint("wait until it has ended, or cancel it; the job's children list all that wait for it")
        job(child);
}
