//! Changes of a batch that the caches in memory must follow once it is committed, or taken by the journal: bodies of
//! waiting jobs, and data of resources.

use tenure_core::secret::Json;
use tenure_machine::Seq;
use tenure_machine::rows::{DataKey, JobChange, Rows};

use crate::bodies::{Bodies, Body};
use crate::data::KnownData;

/// See the module.
#[derive(Default)]
pub(crate) struct Written {
    /// Jobs that are new and wait.
    new: Vec<(Seq, Body)>,
    /// Jobs of which more than the life changed, that ended or were deleted.
    changed: Vec<Seq>,
    /// Data of resources that changed.
    data: Vec<(DataKey, Option<Json>)>,
}

impl Written {
    /// Of the rows of a batch.
    pub(crate) fn of(rows: &Rows) -> Self {
        let Rows { jobs, data, .. } = rows;
        let data = data.iter().map(|(key, data)| (key.clone(), data.clone())).collect();
        let mut written = Written { data, ..Written::default() };
        written.changed.extend(jobs_with_errors(rows));
        for (seq, change) in jobs {
            let seq = *seq;
            // Most have run, and left their bodies to their workers. One that was cancelled or expired has not.
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

    /// Has the caches follow.
    pub(crate) fn put(mut self, bodies: &Bodies, known: &KnownData) {
        let data = std::mem::take(&mut self.data);
        self.put_bodies(bodies);
        known.committed(data);
    }

    /// Has the bodies follow, where no data is known yet.
    pub(crate) fn put_bodies(self, bodies: &Bodies) {
        bodies.put(self.new, &self.changed);
    }
}

/// Whether more of the life of a live job changes than where it stands. The error of an end is written with the end.
pub(crate) fn changes_life(change: &JobChange) -> bool {
    change.progress.is_some() || change.error.is_some() && change.end.is_none()
}

/// Whether more of a job changes than its life, which a grant brings along.
fn is_more_than_life(change: &JobChange) -> bool {
    change.patch.is_some() || change.shape.is_some() || changes_life(change)
}

/// Whether these rows say more, or something else, of a job than before, apart from its life.
pub(crate) fn changes(rows: &Rows, seq: Seq) -> bool {
    rows.jobs.get(&seq).is_some_and(is_more_than_life)
        || jobs_with_errors(rows).any(|with_error| with_error == seq)
}

fn jobs_with_errors(rows: &Rows) -> impl Iterator<Item = Seq> {
    rows.errors.iter().map(|(seq, _)| *seq)
}

/// Jobs whose rows say more, or something else, of them than before, apart from their lives; new ones too.
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
