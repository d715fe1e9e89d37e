//! Progress reports of holders: published at most once a second for each job, as an event and to calls that wait for a
//! result with progress. The report itself is in the job's row, never here.
//!
//! The first report is published at once. Later ones within a second are published at its end, so that the last one is
//! never left out; an end of the job in that time is an event of its own.

use crate::state::{LiveJobId, Report, Seq, Space, Stand};
use tenure_core::bounds::{PROGRESS_TOLD_US, TICK_MAX};
use tenure_core::events::{About, EventType};
use tenure_core::time::{Moment, Span};

impl Space {
    /// A holder sent progress of its job with a heartbeat.
    pub(crate) fn tell_progress(&mut self, slot: LiveJobId, now: Moment) {
        let seq = self.jobs[slot].seq;
        let mut is_first = true;
        self.jobs.reports.keep_if(&seq, |report| {
            (report.has_more, is_first) = (true, false);
            true
        });
        if is_first {
            self.progress_is_told(slot, seq, now);
        }
    }

    /// Publishes the reports of the second that is over.
    pub(crate) fn tick_progress(&mut self, now: Moment) {
        for _ in 0..TICK_MAX {
            let Some((seq, report)) = self.jobs.reports.take_ended(now) else { return };
            if let Some(slot) = self.jobs.by_seq(seq).filter(|_| report.has_more) {
                self.progress_is_told(slot, seq, now);
            }
        }
    }

    fn progress_is_told(&mut self, slot: LiveJobId, seq: Seq, now: Moment) {
        let Stand::Running(fence) = self.jobs[slot].stand else { return };
        let (lease, attempt) = (Some(self.lease_of(slot, fence)), Some(self.jobs[slot].ended + 1));
        let about = About { lease, attempt, ..self.about_job(slot) };
        self.happens(EventType::JobProgress, about, now);
        let until = now.plus(Span::from_us(PROGRESS_TOLD_US));
        self.jobs.reports.insert(seq, Report { has_more: false, until });
        for taker in self.waiters.that_follow(seq) {
            if let Some(on) = self.forget_awaiting(taker) {
                self.notify(taker, &on, false);
            }
        }
    }

    /// A clock that was set back must not lengthen a second.
    pub(crate) fn cut_reported(&mut self, clock: Moment) {
        let until = clock.plus(Span::from_us(PROGRESS_TOLD_US));
        let reported: Vec<Seq> = self.jobs.reports.iter().map(|(seq, _)| *seq).collect();
        for seq in reported {
            self.jobs.reports.keep_if(&seq, |report| {
                report.until = until;
                true
            });
        }
    }
}
