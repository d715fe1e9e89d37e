//! All rows of a store at one entry of its journal, as the parts of a snapshot.
//!
//! A part holds changes, which the writer of entries writes into rows that have nothing yet: so there is one layout for
//! entries and snapshots. The rows are read in one transaction on a connection of their own, beside the writer, and no
//! more of them are in memory than one part has. Damage is never passed on: a snapshot takes the place of entries.
pub(crate) mod restored;

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};
use tenure_core::job::JobError;
use tenure_core::names::{FlowName, Namespace, PoolName, QueueName, ResourceId};
use tenure_core::secret::Json;
use tenure_journal::{BadEntry, JournalEntry, Position, ReadError, Snapshot};
use tenure_machine::rows::{JobChange, JobContent, JobEnd, Kind, RowKey, Rows};
use tenure_machine::{CHANGES_FORMAT, Changes, NewEvents, SEALED_CHANGES_FORMAT, decode_events};

use crate::error::OpenError;
use crate::journal::changes_body;
use crate::sqlite::folder::Folder;
use crate::sqlite::rows::{self, BYTES, JOB_ERRORS, JobRow, QUEUE, STORED, UNTIL};
use crate::sqlite::scan::damage::job_name;
use crate::sqlite::scan::start;
use crate::sqlite::schema::{self, store_error};
use crate::sqlite::seal_rows;
use crate::sqlite::sums::entry_sum;
use crate::sqlite::sums::{data_sum, row_sum};
use crate::sqlite::write::commit::Numbers;
use crate::sqlite::write::streams;

/// A part is closed once it has this many bytes. One row may exceed it.
const PART_BYTES: usize = 256 << 10;
/// Rows that one statement reads at most.
const PORTION: i64 = 2_000;
/// Where the namespace of a job stands among the columns of its rows.
const NAMESPACE: usize = 11;

/// Why rows are no part of a snapshot.
#[derive(Debug, thiserror::Error)]
enum Unfit {
    #[error(transparent)]
    Store(#[from] rusqlite::Error),
    #[error("{0} is not what was written")]
    Damaged(String),
}

/// Where the next part begins: behind the row of this key.
enum Next {
    Jobs { after: i64 },
    Rows { after: (String, String, String) },
    Data { after: (String, String, String) },
    Events { after: (String, i64) },
    Nothing,
}

/// The rows of a store as a snapshot, as they were when this was made. Meanwhile the store may be written to, and may be
/// closed.
pub struct RowsSnapshot {
    conn: Connection,
    numbers: Numbers,
    next: Next,
    /// The last part.
    before: Position,
    /// Jobs in the parts so far.
    jobs: u64,
    has_events: bool,
    /// The names of the keys that contents are sealed with.
    keys: Vec<String>,
}

impl RowsSnapshot {
    pub(crate) fn begin(folder: &Folder) -> Result<RowsSnapshot, OpenError> {
        let failed = |why| store_error(folder, why);
        let conn = schema::open_reader(folder).map_err(failed)?;
        conn.execute_batch("BEGIN").map_err(failed)?;
        // The first read begins the transaction: all that follow see what was committed by then.
        let numbers = start::numbers(&conn, folder)?;
        let keys = seal_rows::names(&conn).map_err(failed)?;
        let (next, before) = (Next::Jobs { after: 0 }, Position::default());
        Ok(RowsSnapshot { conn, numbers, next, before, jobs: 0, has_events: true, keys })
    }

    /// The same without events: a store that is made of it begins its own streams.
    pub(crate) fn without_events(self) -> RowsSnapshot {
        RowsSnapshot { has_events: false, ..self }
    }

    /// The format of the parts without events; see [`Changes::format`].
    pub(crate) fn format(&self) -> u16 {
        if self.keys.is_empty() { CHANGES_FORMAT } else { SEALED_CHANGES_FORMAT }
    }

    /// The names of the keys that contents are sealed with.
    pub(crate) fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Jobs in the parts that were read so far.
    pub(crate) fn jobs_so_far(&self) -> u64 {
        self.jobs
    }

    pub(crate) fn count_jobs(&self) -> rusqlite::Result<u64> {
        let jobs: i64 = self.conn.query_row("SELECT count(*) FROM life", [], |row| row.get(0))?;
        Ok(jobs.unsigned_abs())
    }

    /// A namespace with a job has a row of its own numbers too.
    pub(crate) fn read_namespaces(&self) -> rusqlite::Result<Vec<Namespace>> {
        let sql = "SELECT DISTINCT ns FROM row WHERE kind <> 'seal_key' ORDER BY ns";
        let mut all = self.conn.prepare(sql)?;
        let found = all.query_map([], |row| rows::namespace(row, 0))?;
        found.collect()
    }

    /// Adds rows until the part is large enough, or there are no more.
    fn fill(&mut self, part: &mut PartWriter) -> Result<(), Unfit> {
        while part.bytes.len() < PART_BYTES {
            let next = match &self.next {
                Next::Jobs { after } => {
                    let (next, jobs) = self.read_jobs(*after, part)?;
                    self.jobs += jobs;
                    next
                }
                Next::Rows { after } => self.read_rows(after, part)?,
                Next::Data { after } => self.read_data(after, part)?,
                Next::Events { .. } if !self.has_events => Next::Nothing,
                Next::Events { after } => self.read_events(after, part)?,
                Next::Nothing => return Ok(()),
            };
            if let (Next::Jobs { .. }, Next::Rows { .. }) = (&self.next, &next) {
                self.check_jobs()?;
            }
            self.next = next;
        }
        Ok(())
    }

    /// Jobs behind this row number, with their errors; and how many.
    fn read_jobs(&self, after: i64, part: &mut PartWriter) -> Result<(Next, u64), Unfit> {
        let sql = format!(
            "SELECT {STORED}, flow FROM life LEFT JOIN job ON job.seq = life.seq
             WHERE life.seq > ?1 ORDER BY life.seq LIMIT ?2"
        );
        let mut all = self.conn.prepare_cached(&sql)?;
        let flow = all.column_index("flow")?;
        let mut found = all.query(params![after, PORTION])?;
        let mut rows = Rows::default();
        let (mut last, mut bytes, mut count) = (after, part.bytes.len(), 0);
        while let Some(row) = found.next()? {
            last = row.get(0)?;
            let change = rows::or_none(job_change(row, flow))?.flatten();
            let change =
                change.ok_or_else(|| Unfit::Damaged(job_name(rows::seq_of(last), None)))?;
            bytes += row_bytes(row)?;
            rows.jobs.insert(rows::seq_of(last), change);
            count += 1;
            if bytes >= PART_BYTES {
                break;
            }
        }
        let is_over = bytes < PART_BYTES && count < PORTION;
        let cut = self.read_errors((after, last), bytes, &mut rows)?;
        let jobs = rows.jobs.len() as u64;
        part.add(&Changes { rows, ..Changes::default() });
        let next = match cut {
            Some(after) => Next::Jobs { after },
            None if is_over => Next::Rows { after: Default::default() },
            None => Next::Jobs { after: last },
        };
        Ok((next, jobs))
    }

    /// The errors of these jobs. If they are long, only those of the first few jobs: the others, behind the number that
    /// is answered, are left for the next part.
    fn read_errors(
        &self,
        (after, last): (i64, i64),
        mut bytes: usize,
        rows: &mut Rows,
    ) -> Result<Option<i64>, Unfit> {
        let mut all = self.conn.prepare_cached(JOB_ERRORS)?;
        let mut found = all.query([after, last])?;
        let mut job = None;
        while let Some(row) = found.next()? {
            let seq: i64 = row.get(0)?;
            if let Some(job) = job.filter(|job| *job != seq && bytes >= PART_BYTES) {
                rows.jobs.split_off(&rows::seq_of(job + 1));
                return Ok(Some(job));
            }
            job = Some(seq);
            let error = rows::or_none(rows::job_error(row))?.flatten();
            let error: JobError = error.ok_or_else(|| {
                Unfit::Damaged(format!("an error of {}", job_name(rows::seq_of(seq), None)))
            })?;
            bytes += error.error.len();
            rows.errors.push((rows::seq_of(seq), error));
        }
        Ok(None)
    }

    /// The jobs that were read are all: none of them lacks the row that says how it goes.
    fn check_jobs(&self) -> Result<(), Unfit> {
        let jobs: i64 = self.conn.query_row("SELECT count(*) FROM job", [], |row| row.get(0))?;
        let lives = self.count_jobs()?;
        if jobs.unsigned_abs() == lives {
            return Ok(());
        }
        Err(Unfit::Damaged(format!("a job ({jobs} jobs have {lives} rows of their lives)")))
    }

    /// Rows that are no jobs, behind this key.
    fn read_rows(
        &self,
        (ns, kind, key): &(String, String, String),
        part: &mut PartWriter,
    ) -> Result<Next, Unfit> {
        let mut all = self.conn.prepare_cached(
            "SELECT ns, kind, key, value, sum FROM row WHERE (ns, kind, key) > (?1, ?2, ?3)
             ORDER BY ns, kind, key LIMIT ?4",
        )?;
        let mut found = all.query(params![ns, kind, key, PORTION])?;
        let mut rows = Rows::default();
        let (mut bytes, mut last) = (part.bytes.len(), None);
        while let Some(row) = found.next()? {
            let (ns, kind) = (text(row, 0)?, text(row, 1)?);
            let (key, value) = (text(row, 2)?, text(row, 3)?);
            let damaged = || Unfit::Damaged(format!("the row of {kind} {key:?}"));
            let known = Kind::parse(kind).zip(Namespace::known(ns).ok());
            let is_whole = row.get::<_, Option<i64>>(4)? == Some(row_sum(ns, kind, key, value));
            let (known, namespace) = known.filter(|_| is_whole).ok_or_else(damaged)?;
            last = Some((ns.to_owned(), kind.to_owned(), key.to_owned()));
            bytes += key.len() + value.len();
            let key = RowKey { namespace, kind: known, key: key.to_owned() };
            rows.other.insert(key, Some(value.to_owned()));
            if bytes >= PART_BYTES {
                break;
            }
        }
        part.add(&Changes { rows, ..Changes::default() });
        Ok(match last {
            Some(after) => Next::Rows { after },
            None => Next::Data { after: Default::default() },
        })
    }

    /// Data of resources, behind this key.
    fn read_data(
        &self,
        (ns, pool, id): &(String, String, String),
        part: &mut PartWriter,
    ) -> Result<Next, Unfit> {
        let mut all = self.conn.prepare_cached(
            "SELECT ns, pool, id, data, sum FROM resource_data WHERE (ns, pool, id) > (?1, ?2, ?3)
             ORDER BY ns, pool, id LIMIT ?4",
        )?;
        let mut found = all.query(params![ns, pool, id, PORTION])?;
        let mut rows = Rows::default();
        let (mut bytes, mut last) = (part.bytes.len(), None);
        while let Some(row) = found.next()? {
            let (ns, pool) = (text(row, 0)?, text(row, 1)?);
            let (id, data) = (text(row, 2)?, text(row, 3)?);
            let is_whole = row.get::<_, Option<i64>>(4)? == Some(data_sum(ns, pool, id, data));
            let known = || {
                let key = (
                    Namespace::known(ns).ok()?,
                    PoolName::known(pool).ok()?,
                    ResourceId::known(id).ok()?,
                );
                Some((key, Json::parse(data)?))
            };
            let known = if is_whole { known() } else { None };
            let damaged = || Unfit::Damaged(format!("resource {id:?} of pool {pool:?}"));
            let (key, json) = known.ok_or_else(damaged)?;
            last = Some((ns.to_owned(), pool.to_owned(), id.to_owned()));
            bytes += data.len();
            rows.data.insert(key, Some(json));
            if bytes >= PART_BYTES {
                break;
            }
        }
        part.add(&Changes { rows, ..Changes::default() });
        Ok(match last {
            Some(after) => Next::Data { after },
            None => Next::Events { after: Default::default() },
        })
    }

    /// Events, behind the one of this number: the writer makes one row of each change, as there was.
    fn read_events(
        &self,
        (ns, last): &(String, i64),
        part: &mut PartWriter,
    ) -> Result<Next, Unfit> {
        let mut all = self.conn.prepare_cached(
            "SELECT ns, last, first, sum, body FROM event WHERE (ns, last) > (?1, ?2)
             ORDER BY ns, last LIMIT ?3",
        )?;
        let mut found = all.query(params![ns, last, PORTION])?;
        let mut lives: BTreeMap<String, u64> = BTreeMap::new();
        let mut behind = None;
        while let Some(row) = found.next()? {
            let (ns, last, first) = (text(row, 0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?);
            let body = row.get_ref(4)?.as_blob().map_err(rusqlite::Error::from)?;
            let damaged = || Unfit::Damaged(format!("the entry of events up to {last} of {ns:?}"));
            let is_whole = row.get::<_, i64>(3)? == entry_sum(ns, first, last, body);
            let events = decode_events(body).filter(|events| {
                is_whole && first.checked_add(events.len() as i64) == last.checked_add(1)
            });
            let (events, namespace) = events.zip(Namespace::known(ns).ok()).ok_or_else(damaged)?;
            let life = match lives.get(ns) {
                Some(life) => *life,
                None => {
                    let life = streams::stream(&self.conn, &namespace)?.stands.life;
                    lives.insert(ns.to_owned(), life);
                    life
                }
            };
            let mut changes = Changes::default();
            changes.events.new.insert(namespace, NewEvents { life, first: first as u64, events });
            part.add(&changes);
            behind = Some((ns.to_owned(), last));
            if part.bytes.len() >= PART_BYTES {
                break;
            }
        }
        Ok(match behind {
            Some(after) => Next::Events { after },
            None => Next::Nothing,
        })
    }
}

impl Snapshot for RowsSnapshot {
    fn end(&self) -> Position {
        self.numbers.position()
    }

    fn next_part(&mut self) -> Result<Option<JournalEntry>, ReadError> {
        let mut part = PartWriter::default();
        if self.before == Position::default() {
            part.add(&Changes { last_seq: self.numbers.last_seq, ..Changes::default() });
        }
        self.fill(&mut part)
            .map_err(|why| ReadError::Snapshot(format!("its rows cannot be read: {why}")))?;
        if part.bytes.is_empty() {
            return Ok(None);
        }
        let part = JournalEntry::after(self.before, self.format().max(part.format), &part.bytes);
        self.before = part.position();
        Ok(Some(part))
    }
}

impl std::fmt::Debug for RowsSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowsSnapshot").field("end", &self.end()).finish_non_exhaustive()
    }
}

/// Changes one after the other, each behind its length in 4 bytes.
#[derive(Default)]
struct PartWriter {
    bytes: Vec<u8>,
    /// The highest format of its changes; 0 without any.
    format: u16,
}

impl PartWriter {
    fn add(&mut self, changes: &Changes) {
        if changes.is_empty() && changes.last_seq == tenure_machine::NO_JOB {
            return;
        }
        let bytes = changes.encode();
        // No row is longer than a call, which has at most some MiB.
        self.bytes.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&bytes);
        self.format = self.format.max(changes.format());
    }
}

/// What a part holds, in the order in which it is to be written.
pub(crate) fn part_changes(part: &JournalEntry) -> Result<Vec<Changes>, BadEntry> {
    let (mut rest, format) = changes_body(part)?;
    let bad = BadEntry::Body { format };
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (length, behind) = rest.split_first_chunk::<4>().ok_or(bad)?;
        let (bytes, behind) =
            behind.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(bad)?;
        all.push(Changes::decode(bytes).ok_or(bad)?);
        rest = behind;
    }
    Ok(all)
}

/// About what a row of a job takes in a part.
fn row_bytes(row: &Row<'_>) -> rusqlite::Result<usize> {
    let columns = (0..row.as_ref().column_count()).map(|column| {
        Ok(match row.get_ref(column)? {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
            _ => 1,
        })
    });
    columns.sum()
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> rusqlite::Result<&'r str> {
    row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)
}

/// A job as it is written anew; `None` if its rows are not what was written.
fn job_change(row: &Row<'_>, flow: usize) -> rusqlite::Result<Option<JobChange>> {
    let Some(JobRow { job, unreadable: None }) = rows::stored(row, true)? else { return Ok(None) };
    let until: Option<i64> = row.get(UNTIL)?;
    let flow = row.get_ref(flow)?.as_str_or_null()?.map(FlowName::known).transpose();
    let queue = QueueName::known(text(row, QUEUE)?);
    let (Ok(flow), Ok(queue), Some(payload)) = (flow, queue, job.payload) else { return Ok(None) };
    if until.is_some() != job.state.is_finished() || until.is_none() && job.result.is_some() {
        return Ok(None);
    }
    let namespace = rows::namespace(row, NAMESPACE)?;
    let shape: Arc<[u8]> = job.shape.into();
    let end = match until {
        Some(until) => Some(JobEnd {
            namespace: namespace.clone(),
            id: job.id.clone(),
            shape: shape.clone(),
            until: rows::moment_of(until),
            bytes: row.get(BYTES)?,
            result: job.result,
        }),
        None => None,
    };
    let content =
        JobContent { kind: job.kind, payload, labels: job.labels, traceparent: job.traceparent };
    Ok(Some(JobChange {
        new: Some(Arc::new((namespace, job.id, content))),
        queue: Some(queue),
        flow,
        state: Some(job.state),
        shape: Some(shape),
        life: Some(job.life),
        end,
        error: job.error.map(Some),
        progress: job.progress.map(Some),
        ..JobChange::default()
    }))
}
