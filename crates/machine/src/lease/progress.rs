//! Progress reports of holders: published at most once a second for each job, as an event and to calls that wait for a
//! result with progress. The report itself is in the job's row, never here.
//!
//! The first report is published at once. Later ones within a second are published at its end, so that the last one is
//! never left out; an end of the job in that time is an event of its own.

use crate::state::{Awaited, LiveJobId, Seq, Space, Stand, TakerId};
use tenure_core::bounds::{PROGRESS_TOLD_US, TICK_MAX};
use tenure_core::events::{About, EventType};
use tenure_core::time::{Moment, Span};

impl Space {
    /// A holder sent progress of its job with a heartbeat.
    pub(crate) fn tell_progress(&mut self, slot: LiveJobId, now: Moment) {
        let seq = self.jobs[slot].seq;
        match self.reported.get_mut(&seq) {
            Some(has_more) => *has_more = true,
            None => self.progress_is_told(slot, seq, now),
        }
    }

    /// Publishes the reports of the second that is over.
    pub(crate) fn tick_progress(&mut self, now: Moment) {
        for _ in 0..TICK_MAX {
            let Some((_, seq)) = self.reported_until.take_due(now) else { return };
            let has_more = self.reported.remove(&seq).unwrap_or_default();
            if let Some(slot) = self.job_by_seq(seq).filter(|_| has_more) {
                self.progress_is_told(slot, seq, now);
            }
        }
    }

    fn progress_is_told(&mut self, slot: LiveJobId, seq: Seq, now: Moment) {
        let Stand::Running(fence) = self.jobs[slot].stand else { return };
        let (lease, attempt) = (Some(self.lease_of(slot, fence)), Some(self.jobs[slot].ended + 1));
        let about = About { lease, attempt, ..self.about_job(slot) };
        self.happens(EventType::JobProgress, about, now);
        self.reported.insert(seq, false);
        self.reported_until.set(now.plus(Span::from_us(PROGRESS_TOLD_US)), seq);
        self.notify_of_progress(seq);
    }

    /// Notifies the calls that wait for a job's result and progress.
    fn notify_of_progress(&mut self, seq: Seq) {
        let Some(calls) = self.awaited.get(&Awaited::Job(seq)) else { return };
        let follows = |taker: &&TakerId| self.awaiting.get(taker).is_some_and(|call| call.progress);
        for taker in calls.iter().filter(follows).copied().collect::<Vec<_>>() {
            if let Some(on) = self.forget_awaiting(taker) {
                self.notify(taker, &on, false);
            }
        }
    }

    /// A clock that was set back must not lengthen a second.
    pub(crate) fn cut_reported(&mut self, clock: Moment) {
        for (_, seq) in self.reported_until.drain() {
            self.reported_until.set(clock.plus(Span::from_us(PROGRESS_TOLD_US)), seq);
        }
    }
}
