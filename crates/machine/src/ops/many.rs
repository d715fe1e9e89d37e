//! Cancel, retry and delete of many jobs that a store found by a filter.
//!
//! A store looks at rows, which may be older than the machine's state. So the step that changes a job first compares it
//! with the filter again, and skips it if it no longer matches. Only rows have kind, labels and the last error; if the
//! filter asks for these and they have changed since, the step stops before the job, and the store looks at its row
//! again.

use crate::rows::stored::{LifeSeen, Stands, StoredShape, lets_origin_of_life, seen_in_life};
use crate::rows::{Archive, Archived};
use crate::state::{LiveJobId, Seq, Space, Stand};
use tenure_core::names::QueueName;
use tenure_core::requests::{BulkChange, JobFilter};
use tenure_core::time::Moment;

/// A job whose row matched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeenJob {
    /// The row number of the job.
    pub seq: Seq,
    /// The number of changes of its content at that time, see [`seen_in_life`]; ignored if the filter does not ask for
    /// content.
    pub edits: u32,
}

/// The progress of a step over many jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ManyDone {
    /// The number of changed jobs.
    pub done: u64,
    /// The job before which it stopped, because its content is not the one that was seen: this job and those behind it
    /// are unchanged.
    pub stopped_at: Option<Seq>,
    /// The first job that could not be retried yet, because its children are still being notified of its end.
    pub untold: Option<Seq>,
}

/// A job as it is now.
enum Now {
    Live(LiveJobId),
    Finished(Archived),
}

impl Space {
    /// Changes the jobs among these that match, in order.
    pub(crate) fn change_many(
        &mut self,
        change: BulkChange,
        filter: &JobFilter,
        seen: &[SeenJob],
        archive: &dyn Archive,
        now: Moment,
    ) -> ManyDone {
        let mut many = ManyDone::default();
        for job in seen {
            let Some(there) = self.job_now(job.seq, archive) else { continue };
            let edits = || match &there {
                Now::Live(slot) => Some(self.jobs[*slot].edits),
                Now::Finished(ended) => seen_in_life(&ended.life).map(|seen| seen.edits),
            };
            if filter.asks_for_content() && edits() != Some(job.edits) {
                return ManyDone { stopped_at: Some(job.seq), ..many };
            }
            if change == BulkChange::Retry && self.dependencies.is_telling(job.seq) {
                many.untold = many.untold.or(Some(job.seq));
                continue;
            }
            if self.still_matches(filter, &there) && self.change_one(change, there, archive, now) {
                many.done += 1;
            }
        }
        many
    }

    fn job_now(&self, seq: Seq, archive: &dyn Archive) -> Option<Now> {
        match self.jobs.by_seq(seq) {
            Some(slot) => Some(Now::Live(slot)),
            None => archive.by_seq(&self.name, seq).map(Now::Finished),
        }
    }

    /// True if the machine's state of a job matches the filter.
    fn still_matches(&self, filter: &JobFilter, job: &Now) -> bool {
        let lets_state = |state| filter.states.is_empty() || filter.states.contains(&state);
        let lets_queue = |name: Option<&QueueName>| {
            filter.queue.as_ref().is_none_or(|queue| name == Some(queue))
        };
        match job {
            Now::Live(slot) => {
                let queue = self.jobs.queue_of(*slot);
                lets_state(self.state_of(*slot))
                    && lets_queue(self.lines[queue].name.as_ref())
                    && filter.lets_end(None)
                    && self.lets_origin(filter, *slot)
            }
            Now::Finished(ended) => {
                let queue = || StoredShape::decode(&ended.shape).map(|shape| shape.queue);
                let finished_at = || {
                    let LifeSeen { finished_at, .. } = seen_in_life(&ended.life)?;
                    finished_at
                };
                lets_state(ended.state)
                    && (filter.queue.is_none() || lets_queue(queue().as_ref()))
                    && (!filter.asks_for_end() || filter.lets_end(finished_at()))
                    && lets_origin_of_life(filter, &ended.life)
            }
        }
    }

    fn lets_origin(&self, filter: &JobFilter, slot: LiveJobId) -> bool {
        let job = &self.jobs[slot];
        filter.lets_origin(job.flow(), job.origin.as_ref().map(|origin| &origin.by.id))
    }

    /// Changes one job; false if there was nothing to change.
    fn change_one(
        &mut self,
        change: BulkChange,
        job: Now,
        archive: &dyn Archive,
        now: Moment,
    ) -> bool {
        match (change, job) {
            // A second request would not stop it sooner.
            (BulkChange::Cancel, Now::Live(slot)) => {
                let asks = !self.jobs[slot].cancel_requested;
                if asks {
                    self.cancel_live(slot, now);
                }
                asks
            }
            (BulkChange::Retry, Now::Finished(ended)) => self.retry_one(&ended, archive, now),
            (BulkChange::Delete, Now::Live(slot)) => {
                let job = &self.jobs[slot];
                let runs = matches!(job.stand, Stand::Running(_));
                let may = !runs && self.check_unfollowed(job.seq, &job.id).is_ok();
                if may {
                    self.delete_live(slot, now);
                }
                may
            }
            (BulkChange::Delete, Now::Finished(ended)) => {
                let may = self.check_unfollowed(ended.seq, &ended.id).is_ok();
                if may {
                    self.delete_finished(&ended, now);
                }
                may
            }
            (BulkChange::Cancel, Now::Finished(_)) | (BulkChange::Retry, Now::Live(_)) => false,
        }
    }

    /// The views of live jobs; `None` for a job that does not live.
    pub(crate) fn states_of(&self, seqs: &[Seq]) -> Vec<Option<Stands>> {
        seqs.iter().map(|seq| Some(self.stands_of(self.jobs.by_seq(*seq)?))).collect()
    }
}
