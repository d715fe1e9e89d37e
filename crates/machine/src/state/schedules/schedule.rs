//! Schedules: settings, decided occurrences and the plan. Data without actions.

use std::collections::VecDeque;

use crate::rows::schedule_text::job_of_text;
use tenure_core::names::{JobId, Owner, ScheduleId};
use tenure_core::schedule::{
    CatchUp, LastEnded, LastFired, Overlap, PlannedMoment, ScheduledJob, TimingSpec, keeps,
};
use tenure_core::time::Moment;

/// A timing, the job of each occurrence, and a little state. In memory it lies packed, see [`ScheduleTable`].
///
/// [`ScheduleTable`]: super::ScheduleTable
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub id: ScheduleId,
    /// True if it was deleted: it stays until the last of its jobs has ended, so that it still counts them if it is
    /// made again meanwhile. No view shows it.
    pub shell: bool,
    pub owner: Option<Owner>,
    pub timing: TimingSpec,
    pub overlap: Overlap,
    pub catch_up: CatchUp,
    pub catch_up_max: u32,
    /// The job of each occurrence, as text: only an occurrence that fires or a view reads it.
    pub job: Box<str>,
    /// A new number of the namespace at its creation and with every change of its timing, pause, resume or `next_in`.
    pub version: u64,
    /// Its version at its creation or last change of timing; each of its jobs has the era that made it.
    pub era: u64,
    /// Occurrences up to it are decided or do not count.
    pub cursor: Moment,
    /// The newest decided occurrence; the earliest possible time before the first.
    pub decided: Moment,
    /// Cron only: the next occurrences, ascending, all after the cursor. Not stored: an engine plans again at a start.
    pub plan: VecDeque<PlannedMoment>,
    /// Cron only: true if no occurrence follows those of the plan.
    pub planned_all: bool,
    /// The occurrence that a `next_in` set. An interval counts from it until the timing changes.
    pub moved: Option<Moment>,
    /// `Some(Moment::MAX)`: until it is resumed.
    pub paused_until: Option<Moment>,
    /// Number of its jobs that have not ended. A cache, which `audit` checks.
    pub unfinished: u64,
    /// The last job that it made, or that was retried.
    pub last_made: Option<JobId>,
    pub last: Option<LastFired>,
    pub last_ended: Option<LastEnded>,
    pub last_succeeded_at: Option<Moment>,
    pub fired: u64,
    pub skipped: u64,
    pub missed: u64,
    pub created_at: Moment,
    pub changed_at: Moment,
    /// Its place in the firing order, while it is there.
    pub place: Option<Moment>,
    /// Its place among those that want a plan, while it wants one.
    pub wanted_at: Option<Moment>,
    /// True while a due occurrence waits until its own jobs have ended; it is in no order meanwhile.
    pub awaits_job: bool,
}

impl Schedule {
    /// A deleted schedule with nothing but a count of unfinished jobs.
    pub(crate) fn shell(id: ScheduleId) -> Self {
        Schedule {
            id,
            shell: true,
            owner: None,
            timing: TimingSpec::default(),
            overlap: Overlap::default(),
            catch_up: CatchUp::default(),
            catch_up_max: 1,
            job: Box::default(),
            version: 0,
            era: 0,
            cursor: Moment::ZERO,
            decided: Moment::ZERO,
            plan: VecDeque::new(),
            planned_all: false,
            moved: None,
            paused_until: None,
            unfinished: 0,
            last_made: None,
            last: None,
            last_ended: None,
            last_succeeded_at: None,
            fired: 0,
            skipped: 0,
            missed: 0,
            created_at: Moment::ZERO,
            changed_at: Moment::ZERO,
            place: None,
            wanted_at: None,
            awaits_job: false,
        }
    }

    /// A shell in its place, with the count of its unfinished jobs and the last of them.
    pub(crate) fn emptied(&mut self) -> Self {
        let last_made = self.last_made.take();
        Schedule { unfinished: self.unfinished, last_made, ..Schedule::shell(self.id.clone()) }
    }

    /// The job of each occurrence; `None` if the stored text cannot be read.
    pub(crate) fn scheduled_job(&self) -> Option<ScheduledJob> {
        job_of_text(&self.job)
    }

    /// True if its occurrences come from a calendar; otherwise they are arithmetic.
    pub(crate) fn is_cron(&self) -> bool {
        self.timing.cron.is_some()
    }

    /// The number of due occurrences that may fire.
    pub(crate) fn keeps(&self) -> usize {
        keeps(self.catch_up, self.catch_up_max)
    }

    /// The end of its pause at `now`; `None` if it is not paused.
    pub(crate) fn pause(&self, now: Moment) -> Option<Moment> {
        self.paused_until.filter(|until| *until > now)
    }

    /// The last known occurrence: the last planned one, otherwise the cursor.
    pub(crate) fn last_known(&self) -> Moment {
        self.plan.back().map_or(self.cursor, |planned| planned.moment)
    }
}
