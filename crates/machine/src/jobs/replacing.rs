//! Pushes that replaced the content of a job, or let it live again: each is remembered for a while, because no job has
//! its id.
//!
//! The replaced job cannot remember them: any number of pushes may replace it, and it may be gone before a repeat
//! comes.

use crate::audit::findings::Findings;
use crate::rows::Kind;
use crate::rows::drain::ReplacingRow;
use crate::rows::times::moment;
use crate::state::{LiveJobId, Replacing, Space, Stand};
use tenure_core::bounds::{REQUEST_US, TICK_MAX};
use tenure_core::job::{JobState, JobView, NewJob, OnConflict};
use tenure_core::names::JobId;
use tenure_core::time::{Moment, Span};

impl Replacing {
    /// The job in the answer to the push, without its content.
    pub(crate) fn view(&self) -> JobView {
        let bare = JobView::bare(self.id.clone(), self.queue.clone(), self.state, self.created_at);
        JobView { run_at: self.run_at, ..bare }
    }
}

/// True if a push of this job replaces the content of the job that holds its key.
pub(crate) fn may_replace(job: &NewJob) -> bool {
    job.unique.as_ref().is_some_and(|unique| unique.on_conflict == OnConflict::Replace)
}

impl Space {
    /// The push that this one repeats, if it replaced a job. Only a replacing push can be a repeat, so others are not
    /// searched.
    pub(crate) fn replaced_before(&self, job: &NewJob, now: Moment) -> Option<&Replacing> {
        let id = job.id.as_ref().filter(|_| may_replace(job))?;
        self.jobs.replacing.get(id).filter(|past| past.until > now)
    }

    /// Remembers the push of this id, which replaced the content of a job.
    pub(crate) fn remember_replacing(&mut self, by: Option<JobId>, slot: LiveJobId, now: Moment) {
        let job = &self.jobs[slot];
        let queue = self.lines[self.jobs.shape(job.shape).queue].name.clone();
        let (Some(by), Some(queue)) = (by.filter(|by| *by != job.id), queue) else { return };
        let state = match job.stand {
            Stand::Dependent => JobState::Dependent,
            Stand::Scheduled => JobState::Scheduled,
            // The step decides only later if it is blocked.
            Stand::Waiting(_) | Stand::Running(_) => JobState::Ready,
        };
        let until = now.plus(Span::from_us(REQUEST_US));
        let past = Replacing {
            seq: job.seq,
            id: job.id.clone(),
            queue,
            state,
            created_at: job.created_at,
            run_at: job.run_at,
            until,
        };
        self.jobs.replacing.insert(by.clone(), past);
        self.replacing_row(&by);
    }

    pub(crate) fn tick_replacing(&mut self, now: Moment) {
        for _ in 0..TICK_MAX {
            let Some((by, _)) = self.jobs.replacing.take_ended(now) else { break };
            self.replacing_row(&by);
        }
    }

    fn replacing_row(&mut self, by: &JobId) {
        let row = self.jobs.replacing.get(by).map(|past| ReplacingRow {
            seq: past.seq,
            id: past.id.clone(),
            queue: past.queue.clone(),
            state: past.state,
            created_at: past.created_at.us(),
            run_at: past.run_at.us(),
            until: past.until.us(),
        });
        self.put_row(Kind::Replacing, by.as_str(), row.as_ref());
    }

    pub(crate) fn restore_replacing(&mut self, by: &str, value: &str) -> Option<()> {
        let by = JobId::known(by).ok()?;
        let row: ReplacingRow = serde_json::from_str(value).ok()?;
        let until = moment(row.until);
        let past = Replacing {
            seq: row.seq,
            id: row.id,
            queue: row.queue,
            state: row.state,
            created_at: moment(row.created_at),
            run_at: moment(row.run_at),
            until,
        };
        self.jobs.replacing.insert(by, past);
        Some(())
    }

    pub(crate) fn audit_replacing(&self, found: &mut Findings) {
        for (by, past) in self.jobs.replacing.iter() {
            found.check(past.id != *by, || {
                format!("the push {by:?} is remembered as one that replaced its own job")
            });
            let job = self.jobs.by_seq(past.seq);
            found.check(job.is_none_or(|slot| self.jobs[slot].id == past.id), || {
                format!("the push {by:?} is remembered as one that replaced another job")
            });
        }
    }
}
