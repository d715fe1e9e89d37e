//! Effects of the steps since the last drain: rows to write, and lists of what happened.

use hashbrown::HashMap;

use super::{Seq, TakerId};
use crate::facts::{Delivery, Fact, Granted, Notified};
use crate::rows::{DataKey, JobChange, RowKey, Rows};
use tenure_core::access::TokenName;
use tenure_core::events::Happened;
use tenure_core::job::{JobError, JobState};
use tenure_core::lease::Fence;
use tenure_core::names::{JobId, Namespace};
use tenure_core::schedule::PlanWanted;
use tenure_core::secret::Json;
use tenure_core::time::Moment;

/// The last fence, arrival and use of a resource.
pub(crate) type Numbers = (Fence, u64, u64);

/// Effects of steps, until the engine takes them. The lists are as they come; the rows are one change per thing.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    rows: Rows,
    /// Jobs that ended in this very step: the archive has them only after the drain.
    ended: HashMap<JobId, Seq>,
    /// The numbers of the namespace at their last write.
    written: Option<Numbers>,
    pub(crate) events: Vec<Happened>,
    pub(crate) facts: Vec<Fact>,
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) notified: Vec<Notified>,
    /// Schedules for which the last tick asks plans.
    pub(crate) wanted: Vec<PlanWanted>,
    /// Ends since the engine last looked: the state, and approximate bytes.
    pub(crate) archived: Vec<(JobState, u64)>,
    /// Archived jobs that were purged.
    pub(crate) purged: Vec<(JobState, u64)>,
}

impl Outbox {
    /// That of a namespace whose row has these numbers.
    pub fn after(written: Option<Numbers>) -> Self {
        Outbox { written, ..Outbox::default() }
    }

    pub fn written(&self) -> Option<Numbers> {
        self.written
    }

    // ---- Rows ----

    pub fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// The change of a job's row.
    pub fn job(&mut self, seq: Seq) -> &mut JobChange {
        self.rows.job(seq)
    }

    /// The change of a job's row in this step, if there is one.
    pub fn change_of(&self, seq: Seq) -> Option<&JobChange> {
        self.rows.jobs.get(&seq)
    }

    /// Adds a failed run.
    pub fn run_failed(&mut self, seq: Seq, error: JobError) {
        self.rows.errors.push((seq, error));
    }

    /// Deletes the list of a job's children.
    pub fn childless(&mut self, namespace: Namespace, seq: Seq) {
        self.rows.childless.push((namespace, seq));
    }

    /// Writes a row that is not a job; `None` deletes it.
    pub fn put(&mut self, key: RowKey, row: Option<String>) {
        self.rows.other.insert(key, row);
    }

    /// Writes the data of a resource; `None` deletes it.
    pub fn put_data(&mut self, key: DataKey, data: Option<Json>) {
        self.rows.data.insert(key, data);
    }

    /// The data of a resource, if this step writes or deletes it.
    pub fn data_of(&self, key: &DataKey) -> Option<&Option<Json>> {
        self.rows.data.get(key)
    }

    /// The first end of the retention of jobs that ended in this step, or lost their last dependent in it.
    pub fn first_kept_until(&self) -> Option<Moment> {
        let kept = |change: &JobChange| {
            let end = change.end.as_ref().map(|end| end.until);
            end.or_else(|| change.kept.as_ref().map(|kept| kept.until))
        };
        self.rows.jobs.values().filter_map(kept).min()
    }

    /// Notes that the numbers are written. Returns false if their row has them, and no other row is written.
    pub fn writes(&mut self, numbers: Numbers) -> bool {
        let writes = self.has_rows() || self.written != Some(numbers);
        self.written = Some(numbers);
        writes
    }

    /// The row of the namespace is written again in any case.
    pub fn forget_written(&mut self) {
        self.written = None;
    }

    /// Takes all rows.
    pub fn take_rows(&mut self) -> Rows {
        self.ended.clear();
        std::mem::take(&mut self.rows)
    }

    // ---- Jobs that ended in this step ----

    pub fn job_ended(&mut self, id: JobId, seq: Seq) {
        self.ended.insert(id, seq);
    }

    /// The job with this id that ended in this step.
    pub fn ended(&self, id: &JobId) -> Option<Seq> {
        self.ended.get(id).copied()
    }

    /// The ended job lives again, or is deleted.
    pub fn forget_ended(&mut self, id: &JobId) {
        self.ended.remove(id);
    }

    // ---- Events ----

    /// Gives the events behind the first `from` the name of the caller whose step made them.
    pub fn name_caller(&mut self, from: usize, caller: &TokenName) {
        for event in self.events.iter_mut().skip(from) {
            event.about.by = Some(caller.clone());
        }
    }

    // ---- Deliveries ----

    /// Takes back the answer to a call that has not begun to wait.
    pub fn take_delivery(&mut self, call: TakerId) -> Option<Granted> {
        let at = self.deliveries.iter().position(|delivery| delivery.taker == call)?;
        Some(self.deliveries.swap_remove(at).granted)
    }

    // ---- Upkeep ----

    /// True if a drain left nothing in it.
    pub fn is_drained(&self) -> bool {
        !self.has_rows()
            && self.events.is_empty()
            && self.facts.is_empty()
            && self.deliveries.is_empty()
            && self.notified.is_empty()
            && self.wanted.is_empty()
            && self.archived.is_empty()
            && self.purged.is_empty()
    }

    pub fn shrink_to_fit(&mut self) {
        self.ended.shrink_to_fit();
    }
}
