//! Changes of a batch that the caches in memory must follow once the batch is committed, or taken by the journal:
//! bodies of waiting jobs, and data of resources.

use tenure_core::secret::Json;
use tenure_machine::Seq;
use tenure_machine::rows::{DataKey, JobChange, Rows};

use crate::bodies::{Bodies, Body};
use crate::data::KnownData;

#[derive(Default)]
pub(crate) struct Written {
    /// New jobs that wait.
    new: Vec<(Seq, Body)>,
    /// Jobs that ended, were deleted, or changed in more than their lives.
    changed: Vec<Seq>,
    /// Resources whose data changed; `None` if it is gone.
    data: Vec<(DataKey, Option<Json>)>,
}

impl Written {
    /// The changes in the rows of a batch.
    pub(crate) fn of(rows: &Rows) -> Self {
        let Rows { jobs, data, .. } = rows;
        let data = data.iter().map(|(key, data)| (key.clone(), data.clone())).collect();
        let mut written = Written { data, ..Written::default() };
        written.changed.extend(jobs_with_errors(rows));
        for (seq, change) in jobs {
            let seq = *seq;
            // Most have run, and their workers took their bodies. A cancelled or expired job may still have one.
            if change.deleted || change.end.is_some() {
                written.changed.push(seq);
                continue;
            }
            let JobChange { new, shape, progress, .. } = change;
            match (new, shape) {
                (Some(new), Some(shape)) if progress.as_ref().is_none_or(Option::is_none) => {
                    written.new.push((seq, Body { new: new.clone(), shape: shape.clone() }));
                }
                (None, _) if is_more_than_life(change) => written.changed.push(seq),
                _ => {}
            }
        }
        written
    }

    /// Applies the changes to both caches.
    pub(crate) fn put(mut self, bodies: &Bodies, known: &KnownData) {
        let data = std::mem::take(&mut self.data);
        self.put_bodies(bodies);
        known.committed(data);
    }

    /// Applies the changes to the bodies, where no data is cached yet.
    pub(crate) fn put_bodies(self, bodies: &Bodies) {
        bodies.put(self.new, &self.changed);
    }
}

/// True if a live job's life changes in more than its state. The error of an end is written with the end.
pub(crate) fn changes_life(change: &JobChange) -> bool {
    change.progress.is_some() || change.error.is_some() && change.end.is_none()
}

/// True if a job changes in more than its life, which a grant carries with it.
fn is_more_than_life(change: &JobChange) -> bool {
    change.patch.is_some() || change.shape.is_some() || changes_life(change)
}

/// True if these rows change this job in more than its life.
pub(crate) fn changes(rows: &Rows, seq: Seq) -> bool {
    rows.jobs.get(&seq).is_some_and(is_more_than_life)
        || jobs_with_errors(rows).any(|with_error| with_error == seq)
}

fn jobs_with_errors(rows: &Rows) -> impl Iterator<Item = Seq> {
    rows.errors.iter().map(|(seq, _)| *seq)
}

/// Jobs that these rows change in more than their lives, new ones included.
pub(crate) fn changed_jobs(rows: &Rows) -> impl Iterator<Item = Seq> {
    let changed = rows.jobs.iter().filter(|(_, change)| is_more_than_life(change));
    changed.map(|(seq, _)| *seq).chain(jobs_with_errors(rows))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure_core::names::{JobId, Namespace};
    use tenure_core::time::Moment;
    use tenure_machine::rows::JobEnd;

    use super::*;

    #[test]
    fn a_job_that_ends_or_is_deleted_without_a_run_leaves_no_body() {
        let end = JobEnd {
            namespace: Namespace::main(),
            id: JobId::parse("a").unwrap(),
            shape: Arc::from([].as_slice()),
            until: Moment::MAX,
            bytes: 0,
            result: None,
        };
        let mut rows = Rows::default();
        for (seq, change) in [
            (1, JobChange { deleted: true, ..JobChange::default() }),
            (2, JobChange { end: Some(end), ..JobChange::default() }),
            (3, JobChange { life: Some(Vec::new()), ..JobChange::default() }),
        ] {
            rows.jobs.insert(Seq::new(seq), change);
        }
        let written = Written::of(&rows);
        assert_eq!(written.changed, [Seq::new(1), Seq::new(2)]);
        assert!(written.new.is_empty());
    }
}
