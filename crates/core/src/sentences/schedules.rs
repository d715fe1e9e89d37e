//! Refusals of calls that name a schedule, and the sentence about its next moment.

use super::table::refusals;
use crate::count::counted;
use crate::names::{JobId, Owner, ScheduleId};
use crate::time::Moment;

refusals! {
    /// A schedule that does not fit the call.
    ScheduleRefusal:

    NotFound ScheduleNotFound { schedule: ScheduleId }
        detail("there is no schedule {schedule:?}")
        hint("set it first; list the schedules to see those that are there");

    JobEnded WrongState { schedule: ScheduleId, job: JobId }
        detail("job {job:?}, the last of schedule {schedule:?}, has ended, and an older one has not")
        hint("wait until the older job has ended, or cancel it; then run the schedule again")
        job(job);

    OtherOwner OtherOwner { schedule: ScheduleId, owner: Owner }
        detail("schedule {schedule:?} belongs to the owner {owner:?}")
        hint("take it out of that set first, or give this one another id");

    NoOwner OtherOwner { schedule: ScheduleId }
        detail("schedule {schedule:?} is there already, and belongs to no owner")
        hint("set its \"owner\" first if it is to become part of this set, or give this one another id");

    OlderVersion StaleSync { given: u64, last: u64 }
        detail("version {given} is below {last}, which was synced last")
        hint("two masters sync this set, or this one read an old table: read it again");

    EmptySet EmptySet { owner: Owner }
        detail("the set of owner {owner:?} is empty")
        hint("a failed query must not delete what is used; if it is meant, say so with \"force\"");

    DeletesMost RetiresMost { deletes: u64, there: u64 }
        detail("it would delete {deletes} of {}", counted(there, "schedule", "schedules"))
        hint("a failed query must not delete what is used; if it is meant, say so with \"force\"");
}

/// The next event of a schedule, for its summary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Coming {
    /// No moment is left.
    Ended,
    /// It is paused, until this moment or without end.
    Paused(Option<Moment>),
    /// A moment is due and waits until the schedule's own job ends.
    WaitsForJob(Option<JobId>),
    /// A moment is due, and the next `fire` decides it.
    IsDue,
    /// It fires at this moment, which includes the jitter.
    Fires(Moment),
    /// Its next moments are being computed.
    IsPlanned,
}

impl std::fmt::Display for Coming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Coming::Ended => f.write_str("ended: no moment is left"),
            Coming::Paused(None) => f.write_str("paused until it is resumed"),
            Coming::Paused(Some(until)) => write!(f, "paused until {until}"),
            Coming::WaitsForJob(Some(job)) => write!(f, "waits until its job {job:?} has ended"),
            Coming::WaitsForJob(None) => f.write_str("waits until its jobs have ended"),
            Coming::IsDue => f.write_str("is due now"),
            Coming::Fires(at) => write!(f, "fires at {at}"),
            Coming::IsPlanned => f.write_str("waits until its next moments are computed"),
        }
    }
}
