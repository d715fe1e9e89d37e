//! Schedules in a copy. Plans are made anew, and their unfinished jobs are counted anew: the jobs bring their schedule
//! along. So a schedule that was deleted and still has such jobs comes along with these.

use crate::names::{JobId, Owner, ScheduleId};
use crate::schedule::{LastEnded, LastFired, MadeBy, ScheduleSettings};
use crate::time::Moment;

/// A schedule as a copy carries it, without its plan and its count of unfinished jobs.
#[derive(Clone, PartialEq, Debug)]
pub struct CopiedSchedule {
    /// The id by which the target has it too.
    pub id: ScheduleId,
    /// Its owner, timing and job, as they were set.
    pub settings: ScheduleSettings,
    /// The number of its last change of timing, pause, resume or `next_in`.
    pub version: u64,
    /// Its version at its creation or last change of timing.
    pub era: u64,
    /// Moments up to it are decided or do not count.
    pub cursor: Moment,
    /// The newest moment that was decided; zero until one was.
    pub decided: Moment,
    /// The moment that a `next_in` set, from which an interval counts.
    pub moved: Option<Moment>,
    /// Paused until then; [`Moment::MAX`]: until it is resumed.
    pub paused_until: Option<Moment>,
    /// The job that it made, or that was retried, last.
    pub last_made: Option<JobId>,
    /// The last moment that fired.
    pub last: Option<LastFired>,
    /// The job of it that ended last.
    pub last_ended: Option<LastEnded>,
    /// When a job of it succeeded last.
    pub last_succeeded_at: Option<Moment>,
    /// Moments that made a job.
    pub fired: u64,
    /// Moments that were skipped.
    pub skipped: u64,
    /// Moments that were late, or too many.
    pub missed: u64,
    /// When it was made.
    pub created_at: Moment,
    /// When its timing was last changed.
    pub changed_at: Moment,
}

/// The version of the set of schedules that an owner synced last.
#[derive(Clone, PartialEq, Debug)]
pub struct CopiedSet {
    /// The table outside whose set it is.
    pub owner: Owner,
    /// The greatest that was synced: a sync with a smaller one is refused.
    pub version: u64,
}

/// Which schedule made a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopiedOrigin {
    /// The schedule and the moment.
    pub by: MadeBy,
    /// The era of the schedule then: the word of a job of an earlier era moves no moment.
    pub era: u64,
}
