//! Rows in memory, like those on a disk. A machine can be rebuilt from them at any point.

use std::collections::BTreeMap;

use crate::rows::stored::StoredShape;
use crate::rows::{Archive, Archived, Class, DataKey, Kind, LiveRow, RowKey, Rows};
use crate::{Changes, Config, Machine, Rest, SeenJob, Seq, child_key, seen_in_life};
use tenure_core::job::JobState;
use tenure_core::names::{JobId, Namespace};
use tenure_core::secret::Json;
use tenure_core::time::Moment;

#[derive(Clone, Debug)]
struct JobRow {
    namespace: Namespace,
    id: JobId,
    state: JobState,
    shape: Vec<u8>,
    life: Vec<u8>,
    end: Option<(Moment, u32)>,
}

#[derive(Clone, Default, Debug)]
pub(crate) struct Store {
    jobs: BTreeMap<Seq, JobRow>,
    other: BTreeMap<RowKey, String>,
    data: BTreeMap<DataKey, Json>,
    /// The highest row number ever used: an engine stores it, so that no number is used twice.
    last_seq: Seq,
}

impl Store {
    /// Sends rows through the journal's encoding, which must keep all of them, and writes them.
    pub(super) fn write(&mut self, rows: Rows) {
        let changes = Changes { rows, ..Changes::default() };
        let read = Changes::decode(&changes.encode()).expect("what was encoded is decoded");
        assert_eq!(read, changes, "a journal changes nothing");
        let Changes { rows, .. } = read;
        for (seq, change) in rows.jobs {
            self.last_seq = self.last_seq.max(seq);
            if change.deleted {
                self.jobs.remove(&seq);
                continue;
            }
            if let Some(new) = change.new {
                let (namespace, id, _) = (*new).clone();
                let row = JobRow {
                    namespace,
                    id,
                    state: JobState::Ready,
                    shape: Vec::new(),
                    life: Vec::new(),
                    end: None,
                };
                self.jobs.insert(seq, row);
            }
            let row = self.jobs.get_mut(&seq).expect("a row that is changed is there");
            if change.revived {
                row.end = None;
            }
            if let Some(shape) = change.shape {
                row.shape = shape.to_vec();
            }
            if let Some(life) = change.life {
                row.life = life;
            }
            if let Some(state) = change.state {
                row.state = state;
            }
            if let Some(kept) = change.kept
                && row.end.is_some()
            {
                row.end = Some((kept.until, kept.bytes));
            }
            if let Some(end) = change.end {
                row.end = Some((end.until, end.bytes));
            }
            assert!(!row.shape.is_empty() && !row.life.is_empty(), "a row is written whole");
            assert_eq!(row.end.is_some(), row.state.is_finished(), "an end is a finished state");
        }
        for (key, value) in rows.other {
            match value {
                Some(value) => self.other.insert(key, value),
                None => self.other.remove(&key),
            };
        }
        for (namespace, parent) in rows.childless {
            let (first, last) = (child_key(parent, Seq::new(0)), child_key(parent, Seq::MAX));
            self.other.retain(|row, _| {
                let of_parent = (first.as_str()..=last.as_str()).contains(&row.key.as_str());
                row.namespace != namespace || row.kind != Kind::Edge || !of_parent
            });
        }
        for (key, value) in rows.data {
            match value {
                Some(value) => self.data.insert(key, value),
                None => self.data.remove(&key),
            };
        }
    }

    /// Some jobs, as a search in rows finds them, newest first.
    pub(super) fn seen(&self, skip: usize, max: usize) -> Vec<SeenJob> {
        let seen = |(seq, row): (&Seq, &JobRow)| {
            let life = seen_in_life(&row.life).expect("a good life");
            SeenJob { seq: *seq, edits: life.edits }
        };
        self.jobs.iter().rev().skip(skip).take(max).map(seen).collect()
    }

    /// The number of all rows.
    pub(super) fn rows(&self) -> usize {
        self.other.len() + self.jobs.len() + self.data.len()
    }

    /// The number of rows of a kind.
    pub(super) fn count(&self, kind: Kind) -> usize {
        self.other.keys().filter(|key| key.kind == kind).count()
    }

    pub(super) fn open(&self, config: Config, clock: Moment) -> Machine {
        let mut machine = Machine::new(config);
        let leases_last = Kind::ALL.iter().filter(|kind| **kind != Kind::Lease);
        for kind in leases_last {
            for (key, value) in self.other.iter().filter(|(key, _)| key.kind == *kind) {
                machine.restore_row(&key.namespace, *kind, &key.key, value).expect("a good row");
            }
        }
        let mut finished: BTreeMap<
            (Namespace, tenure_core::names::QueueName, JobState),
            (u64, u64),
        > = BTreeMap::new();
        for (seq, row) in &self.jobs {
            match row.end {
                None => machine
                    .restore_job(&LiveRow {
                        seq: *seq,
                        namespace: row.namespace.as_str(),
                        id: row.id.as_str(),
                        state: row.state,
                        shape: &row.shape,
                        life: &row.life,
                    })
                    .expect("a good row"),
                Some((_, bytes)) => {
                    let queue = StoredShape::decode(&row.shape).expect("a good shape").queue;
                    let sum =
                        finished.entry((row.namespace.clone(), queue, row.state)).or_default();
                    sum.0 += 1;
                    sum.1 += u64::from(bytes);
                }
            }
        }
        for (key, value) in self.other.iter().filter(|(key, _)| key.kind == Kind::Lease) {
            machine.restore_row(&key.namespace, Kind::Lease, &key.key, value).expect("a good row");
        }
        for ((namespace, queue, state), (jobs, bytes)) in finished {
            machine.restore_finished(&namespace, &queue, state, jobs, bytes);
        }
        machine.restored(self.last_seq, clock);
        machine
    }

    fn archived(&self, seq: Seq, row: &JobRow) -> Option<Archived> {
        let (until, bytes) = row.end?;
        Some(Archived {
            seq,
            id: row.id.clone(),
            state: row.state,
            shape: row.shape.clone(),
            life: row.life.clone(),
            until,
            bytes,
        })
    }

    fn finished(&self) -> Vec<(Namespace, Archived)> {
        let mut all: Vec<_> = self
            .jobs
            .iter()
            .filter_map(|(seq, row)| Some((row.namespace.clone(), self.archived(*seq, row)?)))
            .collect();
        all.sort_by_key(|(_, job)| (job.until, job.seq));
        all
    }
}

impl Archive for Store {
    fn by_id(&self, namespace: &Namespace, id: &JobId) -> Option<Archived> {
        let (seq, row) =
            self.jobs.iter().find(|(_, row)| row.namespace == *namespace && row.id == *id)?;
        self.archived(*seq, row)
    }
    fn by_seq(&self, _namespace: &Namespace, seq: Seq) -> Option<Archived> {
        self.archived(seq, self.jobs.get(&seq)?)
    }
    fn over(&self, namespace: &Namespace, now: Moment, max: usize) -> Vec<Archived> {
        let all =
            self.finished().into_iter().filter(|(name, job)| name == namespace && job.until <= now);
        all.take(max).map(|(_, job)| job).collect()
    }
    fn next_over(&self, namespace: &Namespace) -> Option<Moment> {
        let first = self.finished().into_iter().find(|(name, _)| name == namespace);
        first.map(|(_, job)| job.until).filter(|until| *until < Moment::MAX)
    }
    fn soonest(&self, class: Class, max: usize) -> Vec<(Namespace, Archived)> {
        let all = self.finished().into_iter().filter(|(_, job)| Class::of(job.state) == class);
        let all = all.filter(|(_, job)| job.until < Moment::MAX);
        all.take(max).collect()
    }
}

impl Rest for Store {
    fn has_data(&self, key: &DataKey, data: &Json) -> bool {
        self.data.get(key) == Some(data)
    }
}
