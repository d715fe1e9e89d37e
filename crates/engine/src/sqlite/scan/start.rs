//! A start: the machine anew from its rows.
//!
//! Every row is checked. A job whose rows are damaged is kept from the others: it ends as failed if it
//! is known which it is, and is set aside if not; either way it is named. Of damaged rows that are no
//! jobs nothing sensible can be said, so the store is refused, unless its owner accepts the loss.

use std::collections::{BTreeSet, HashMap};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use tenure_core::job::JobState;
use tenure_core::names::{Namespace, QueueName};
use tenure_core::time::Moment;
use tenure_machine::rows::{Class, Kind, LiveRow};
use tenure_machine::{BadRow, Config, Machine, NO_JOB, Seq, unreadable_end};

use crate::error::OpenError;
use crate::seal::{Seal, Unopened};
use crate::sqlite::folder::Folder;
use crate::sqlite::read::overlay::Overlay;
use crate::sqlite::rows::{self, moment_number, or_none};
use crate::sqlite::scan::damage::{Damage, UNREADABLE, job_name};
use crate::sqlite::scan::walk::{JobPart, Walked, walk};
use crate::sqlite::schema::store_error;
use crate::sqlite::sums::{JobText, LifeSum, row_sum};
use crate::sqlite::write::commit::Numbers;
use crate::sqlite::write::writer::class_number;

/// More damaged jobs than these are no accident of one page: the store is refused.
const DAMAGED_MAX: usize = 100;

/// Jobs that one thread reads before the other one puts them in their places.
const PORTION: usize = 500;
/// Portions that were read and not placed, at most.
const PORTIONS_AHEAD: usize = 8;

/// The rows of a kind, namespace by namespace: in each they stand together. A scan of the whole table for each kind would
/// go through a million schedules as often as there are kinds.
const ROWS_OF_KIND: &str = "
    WITH RECURSIVE space(name) AS (
        SELECT min(ns) FROM row
        UNION ALL
        SELECT (SELECT min(ns) FROM row WHERE ns > space.name) FROM space WHERE name IS NOT NULL
    )
    SELECT ns, key, value, sum FROM space CROSS JOIN row ON ns = space.name AND kind = ?1";
/// The same by such a scan: in a tree that is damaged a row may not be found by its key.
const ALL_ROWS_OF_KIND: &str = "SELECT ns, key, value, sum FROM row WHERE kind = ?1 ORDER BY ns";

/// Why it failed.
enum Failed {
    Store(rusqlite::Error),
    Row(String),
    Many(usize),
}
impl From<rusqlite::Error> for Failed {
    fn from(why: rusqlite::Error) -> Self {
        Failed::Store(why)
    }
}
impl From<BadRow> for Failed {
    fn from(row: BadRow) -> Self {
        Failed::Row(row.to_string())
    }
}

/// What was read at a start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recovery {
    /// Jobs, finished ones too.
    pub jobs: usize,
    /// How long it took to read them.
    pub took: Duration,
}

/// What a start is given.
pub(crate) struct Start<'a> {
    pub conn: &'a Connection,
    pub folder: &'a Folder,
    /// Opens the rows with contents that the machine needs.
    pub seal: &'a Seal,
    pub numbers: Numbers,
    pub config: Config,
    /// What cannot be read is dropped.
    pub accept_loss: bool,
    /// The rows are a copy of a journal: what cannot be read is not mended here, since the journal would not know of it.
    pub is_copy: bool,
    /// The store becomes a copy, whose clock is another.
    pub forget_clock: bool,
    pub now: Moment,
}

/// The numbers of the last commit.
pub(crate) fn numbers(conn: &Connection, folder: &Folder) -> Result<Numbers, OpenError> {
    let read = Numbers::read(conn).map_err(|why| store_error(folder, why))?;
    read.map_err(|text| OpenError::Row {
        folder: folder.path().to_owned(),
        why: format!("the row of its last commit is {text:?}"),
    })
}

impl Start<'_> {
    /// Rows back to a machine, as it was when the last of them was written.
    pub(crate) fn restore(
        &self,
        overlay: &mut Overlay,
        damage: &Damage,
    ) -> Result<(Machine, Recovery), OpenError> {
        let folder = || self.folder.path().to_owned();
        self.restore_all(overlay, damage).map_err(|why| match why {
            Failed::Row(why) if self.is_copy => OpenError::OtherRows { folder: folder(), why },
            Failed::Many(jobs) if self.is_copy => {
                let why = format!("{jobs} of its jobs cannot be read");
                OpenError::OtherRows { folder: folder(), why }
            }
            Failed::Store(why) => store_error(self.folder, why),
            Failed::Row(why) => OpenError::Row { folder: folder(), why },
            Failed::Many(jobs) => OpenError::Unreadable { folder: folder(), jobs },
        })
    }

    fn restore_all(
        &self,
        overlay: &mut Overlay,
        damage: &Damage,
    ) -> Result<(Machine, Recovery), Failed> {
        let began = Instant::now();
        let mut machine = Machine::new(self.config);
        let mut namespaces = BTreeSet::from([Namespace::main()]);
        let sql = if self.check_tree()? { ROWS_OF_KIND } else { ALL_ROWS_OF_KIND };
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Lease) {
            self.restore_kind(&mut machine, sql, kind, &mut namespaces)?;
        }
        if self.forget_clock {
            machine.forget_clock();
        }
        let (highest, jobs) = self.restore_jobs(&mut machine, overlay, damage, &namespaces)?;
        // What a lease without a job holds must be there before it.
        self.restore_kind(&mut machine, sql, Kind::Lease, &mut namespaces)?;
        machine.restored(highest.max(self.numbers.last_seq), self.now);
        Ok((machine, Recovery { jobs, took: began.elapsed() }))
    }

    /// A row of the settings that is missing is seen only by the form of their tree. Whether that is sound; if it is not,
    /// the loss was accepted.
    fn check_tree(&self) -> Result<bool, Failed> {
        let sql = "PRAGMA quick_check('row')";
        let said: String = self.conn.query_row(sql, [], |row| row.get(0))?;
        if said == "ok" {
            return Ok(true);
        }
        self.refuse(format!("its settings are damaged ({said})"))?;
        Ok(false)
    }

    /// What is damaged and is no job: refused, or left out.
    fn refuse(&self, why: String) -> Result<(), Failed> {
        if self.accept_loss {
            tracing::warn!("accepted: {why}");
            return Ok(());
        }
        Err(Failed::Row(why))
    }

    fn restore_kind(
        &self,
        machine: &mut Machine,
        sql: &str,
        kind: Kind,
        namespaces: &mut BTreeSet<Namespace>,
    ) -> Result<(), Failed> {
        let mut all = self.conn.prepare_cached(sql)?;
        let mut found = all.query(params![kind.as_str()])?;
        let mut dropped: Vec<(String, String)> = Vec::new();
        // Rows come by their namespaces, and there may be a million of one.
        let mut namespace = Namespace::main();
        while let Some(row) = found.next()? {
            let read = || -> rusqlite::Result<(&str, &str, &str, bool)> {
                let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
                let (ns, key, value) = (text(0)?, text(1)?, text(2)?);
                let sum = row_sum(ns, kind.as_str(), key, value);
                Ok((ns, key, value, row.get::<_, Option<i64>>(3)? == Some(sum)))
            };
            let Some((ns, key, value, true)) = or_none(read())? else {
                let text = |column| or_none(row.get::<_, String>(column));
                let (ns, key) = (text(0)?.unwrap_or_default(), text(1)?.unwrap_or_default());
                let kind = kind.as_str();
                self.refuse(format!("the row of {kind} {key:?} is not what was written"))?;
                dropped.push((ns, key));
                continue;
            };
            if ns != namespace.as_str() {
                namespace = rows::namespace(row, 0)?;
                namespaces.insert(namespace.clone());
            }
            let restored = match self.seal.open_row(&namespace, kind, key, value) {
                Ok(value) => machine.restore_row(&namespace, kind, key, &value),
                Err(Unopened) => Err(BadRow { row: format!("{} {key:?}", kind.as_str()) }),
            };
            if let Err(bad) = restored {
                self.refuse(bad.to_string())?;
                dropped.push((ns.to_owned(), key.to_owned()));
            }
        }
        for (ns, key) in dropped {
            // What was accepted once is not to be refused by the next start.
            let sql = "DELETE FROM row WHERE ns = ?1 AND kind = ?2 AND key = ?3";
            self.conn.execute(sql, params![ns, kind.as_str(), key])?;
        }
        Ok(())
    }

    /// One pass over all jobs: live ones into the machine, finished ones into the overlay of the archive and
    /// totals. Payloads are not read. This thread reads rows while another one puts them in their places.
    fn restore_jobs(
        &self,
        machine: &mut Machine,
        overlay: &mut Overlay,
        damage: &Damage,
        namespaces: &BTreeSet<Namespace>,
    ) -> Result<(Seq, usize), Failed> {
        let placed = thread::scope(|scope| {
            let (portions, incoming) = mpsc::sync_channel::<Vec<Walked>>(PORTIONS_AHEAD);
            let mut placed = Placed::new(&mut *machine, &mut *overlay);
            let placing = scope.spawn(move || {
                incoming.into_iter().flatten().try_for_each(|walked| placed.place(walked))?;
                Ok(placed)
            });
            let mut portion = Vec::new();
            let read = walk(self.conn, |walked| -> Result<(), Failed> {
                portion.push(walked);
                if portion.len() == PORTION {
                    // A thread that receives no more has failed; it says why below.
                    let _ = portions.send(std::mem::take(&mut portion));
                }
                Ok(())
            });
            let _ = portions.send(portion);
            drop(portions);
            let placed = placing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            read.and(placed)
        })?;
        let Placed { mut totals, highest, whole, damaged, .. } = placed;
        if !damaged.is_empty() {
            let many = damaged.len() > DAMAGED_MAX || damaged.len() > whole + 3;
            if self.is_copy || many && !self.accept_loss {
                return Err(Failed::Many(damaged.len()));
            }
            self.end_damaged(damaged, (overlay, damage, &mut totals), namespaces)?;
        }
        for ((namespace, queue, state), (jobs, bytes)) in totals {
            let queue = QueueName::known(&queue)
                .map_err(|_| Failed::Row(format!("the queue name {queue:?} of a job is none")))?;
            machine.restore_finished(&namespace, &queue, state, jobs, bytes);
        }
        Ok((highest, whole))
    }

    /// Jobs with damaged rows: those that are known end as failed, the others are left where they are.
    fn end_damaged(
        &self,
        damaged: Vec<Walked>,
        (overlay, damage, totals): (&mut Overlay, &Damage, &mut Totals),
        namespaces: &BTreeSet<Namespace>,
    ) -> Result<(), Failed> {
        // The rows may have changed under their indexes.
        if let Err(why) = self.conn.execute_batch("REINDEX life") {
            tracing::warn!("the indexes of damaged rows cannot be made anew: {why}");
        }
        for Walked { seq, job, namespace, .. } in damaged {
            let said = namespace.as_deref().and_then(|text| Namespace::parse(text).ok());
            let owner = job.as_ref().and_then(|job| {
                let mut known = said.iter().chain(namespaces);
                known.find(|namespace| job.is_whole(namespace.as_str()))
            });
            let number = rows::seq_of(seq);
            if let (Some(job), Some(namespace)) = (&job, owner)
                && self.end_unreadable(job, namespace)
            {
                overlay.restore(namespace, &job.id, number);
                let key = (namespace.clone(), job.queue.clone(), JobState::Failed);
                totals.entry(key).or_default().0 += 1;
                let sentence = format!(
                    "{} of queue \"{}\" is unreadable: how far it was is not known any more; it \
                     ended as failed, and `tenure retry` runs it again",
                    job_name(number, Some(&job.id)),
                    job.queue
                );
                damage.note(Some(namespace), number, sentence);
                continue;
            }
            if self.accept_loss {
                tracing::warn!("accepted: {} is dropped", job_name(number, None));
                for table in ["job", "life", "job_error"] {
                    // What cannot be deleted is met, and left out, at the next start.
                    let _ =
                        self.conn.execute(&format!("DELETE FROM {table} WHERE seq = ?1"), [seq]);
                }
                continue;
            }
            let sentence = format!(
                "{} is unreadable and set aside; to forget it, open the store once with \
                 --accept-loss",
                job_name(number, None)
            );
            damage.note(said.as_ref(), number, sentence);
        }
        Ok(())
    }

    /// Whether it could be written.
    fn end_unreadable(&self, job: &JobPart, namespace: &Namespace) -> bool {
        let Some(end) = unreadable_end(&job.shape, self.now) else { return false };
        let until = moment_number(end.until);
        let state = rows::state_number(JobState::Failed);
        let class = class_number(Class::Failed);
        let sum = LifeSum {
            seq: job.seq,
            state,
            until: Some(until),
            class: Some(class),
            bytes: Some(0),
            life: &end.life,
        }
        .sum();
        let error = JobText::Error.sum(job.seq, UNREADABLE.as_bytes());
        let written = self.conn.execute(
            "INSERT OR REPLACE INTO life(seq, ns, state, until, class, bytes, life, sum, error,
                                         error_sum)
             VALUES(?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?8, ?9)",
            params![
                job.seq,
                namespace.as_str(),
                state,
                until,
                class,
                end.life,
                sum,
                UNREADABLE,
                error
            ],
        );
        written.is_ok()
    }
}

/// Finished jobs of a queue in one state, and their bytes.
type Totals = HashMap<(Namespace, String, JobState), (u64, u64)>;

/// The jobs that were read so far, in their places.
struct Placed<'a> {
    machine: &'a mut Machine,
    overlay: &'a mut Overlay,
    totals: Totals,
    /// That of the last job: jobs of one namespace mostly stand together.
    namespace: Namespace,
    highest: Seq,
    whole: usize,
    damaged: Vec<Walked>,
}

impl<'a> Placed<'a> {
    fn new(machine: &'a mut Machine, overlay: &'a mut Overlay) -> Self {
        Placed {
            machine,
            overlay,
            totals: Totals::new(),
            namespace: Namespace::main(),
            highest: NO_JOB,
            whole: 0,
            damaged: Vec::new(),
        }
    }

    fn place(&mut self, walked: Walked) -> Result<(), Failed> {
        self.highest = rows::seq_of(walked.seq);
        if self.place_whole(&walked)? {
            self.whole += 1;
        } else {
            self.damaged.push(walked);
        }
        Ok(())
    }

    /// Whether both rows are what was written for one job.
    fn place_whole(&mut self, walked: &Walked) -> Result<bool, Failed> {
        let (Some(job), Some(life)) = (&walked.job, &walked.life) else { return Ok(false) };
        if !job.is_whole(&life.namespace) {
            return Ok(false);
        }
        if life.namespace != self.namespace.as_str() {
            let Ok(namespace) = Namespace::parse(&life.namespace) else { return Ok(false) };
            self.namespace = namespace;
        }
        let Some(state) = or_none(rows::state_of(life.state))? else { return Ok(false) };
        if state.is_finished() {
            self.overlay.restore(&self.namespace, &job.id, self.highest);
            let key = (self.namespace.clone(), job.queue.clone(), state);
            let total = self.totals.entry(key).or_default();
            total.0 += 1;
            total.1 += life.bytes.unwrap_or_default().unsigned_abs();
            return Ok(true);
        }
        let row = LiveRow {
            seq: self.highest,
            namespace: self.namespace.as_str(),
            id: &job.id,
            state,
            shape: &job.shape,
            life: &life.life,
        };
        Ok(self.machine.restore_job(&row).is_ok())
    }
}
