//! Reads rows of jobs: the columns, and their meaning.

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row};
use tenure_core::job::{JobError, JobState, JobView, Labels, Outcome};
use tenure_core::names::{JobId, Namespace};
use tenure_core::secret::Json;
use tenure_core::time::Moment;
use tenure_core::trace::TraceParent;
use tenure_machine::rows::{Archived, DataKey};
use tenure_machine::{Seq, Stands, StoredJob};

use crate::seal::{ContentPlace, Seal, Unopened};
use crate::sqlite::scan::damage::{Damage, UNREADABLE, damaged};
use crate::sqlite::sums::{JobSum, JobText, LifeSum, data_sum, error_sum};

/// The source of jobs: lives in their order, each with its job.
pub(crate) const JOBS: &str = "life CROSS JOIN job ON job.seq = life.seq";
/// The columns that [`stored`] reads.
pub(crate) const STORED: &str = "life.seq, id, kind, state, shape, life, labels, error, progress, \
    payload, result, ns, queue, until, class, bytes, job.sum, life.sum, error_sum, progress_sum, \
    payload_sum, result_sum, trace";
/// The column of the life among [`STORED`].
pub(crate) const LIFE: usize = 5;
/// The column of the last error among [`STORED`].
pub(crate) const ERROR: usize = 7;
/// The column of the queue among [`STORED`].
pub(crate) const QUEUE: usize = 12;
/// The column of the time until which a finished job is kept.
pub(crate) const UNTIL: usize = 13;
/// The column of the bytes that a finished job takes.
pub(crate) const BYTES: usize = 15;
/// The columns that [`archived`] reads.
pub(crate) const ARCHIVED: &str = "life.seq, id, state, shape, life, until, bytes, ns, queue, kind, \
    labels, class, job.sum, life.sum";

/// A state as a row holds it: its place in a job's life.
pub(crate) fn state_number(state: JobState) -> i64 {
    state as i64
}

pub(crate) fn state_of(number: i64) -> rusqlite::Result<JobState> {
    let state = usize::try_from(number).ok().and_then(|at| JobState::ALL.get(at));
    state.copied().ok_or(rusqlite::Error::IntegralValueOutOfRange(0, number))
}

/// The error for a text that is not of its format.
fn bad(column: usize) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(column, String::new(), rusqlite::types::Type::Text)
}

/// The moment without end, as a row holds it.
pub(crate) const WITHOUT_END: i64 = i64::MAX;

/// A moment as a row holds it; those that a row cannot hold are without end in any case.
pub(crate) fn moment_number(at: Moment) -> i64 {
    i64::try_from(at.us()).unwrap_or(WITHOUT_END)
}

pub(crate) fn moment_of(number: i64) -> Moment {
    match number {
        WITHOUT_END => Moment::MAX,
        number => Moment::from_us(u64::try_from(number).unwrap_or_default()),
    }
}

/// Labels as their row holds them: null if there are none.
pub(crate) fn labels_text(labels: &Labels) -> Option<String> {
    // A map of texts can always be written.
    (!labels.is_empty()).then(|| serde_json::to_string(labels).unwrap_or_default())
}

pub(crate) fn labels(row: &Row<'_>, column: usize) -> rusqlite::Result<Labels> {
    match row.get_ref(column)?.as_str_or_null()? {
        Some(text) => serde_json::from_str(text).map_err(|_| bad(column)),
        None => Ok(Labels::new()),
    }
}

fn trace(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<TraceParent>> {
    let text = row.get_ref(column)?.as_str_or_null()?;
    text.map(|text| TraceParent::parse(text).map_err(|_| bad(column))).transpose()
}

fn id(row: &Row<'_>, column: usize) -> rusqlite::Result<JobId> {
    JobId::known(row.get_ref(column)?.as_str()?).map_err(|_| bad(column))
}

pub(crate) fn seq(row: &Row<'_>, column: usize) -> rusqlite::Result<Seq> {
    row.get(column).map(seq_of)
}

/// A job's row number as the column holds it. An `i64` is enough for every job.
pub(crate) fn number_of(seq: Seq) -> i64 {
    seq.get() as i64
}

/// The row number that the column holds.
pub(crate) fn seq_of(number: i64) -> Seq {
    Seq::new(number as u64)
}

/// A job as its rows hold it.
pub(crate) struct JobRow {
    pub job: StoredJob,
    /// Its unreadable part: `payload`, `row` and so on. That part is shown empty.
    pub unreadable: Option<&'static str>,
}

impl JobRow {
    /// Opens its contents. One that does not open is unreadable.
    pub(crate) fn opened(mut self, seal: &Seal) -> JobRow {
        if !seal.is_on() {
            return self;
        }
        let job = &mut self.job;
        let seq = job.seq;
        let parts = [
            ("payload", ContentPlace::Payload(seq), &mut job.payload),
            ("result", ContentPlace::Result(seq), &mut job.result),
            ("progress", ContentPlace::Progress(seq), &mut job.progress),
        ];
        for (part, place, json) in parts {
            let Some(stored) = json.take() else { continue };
            match seal.open_json(&place, stored) {
                Ok(clear) => *json = Some(clear),
                Err(Unopened) => self.unreadable = self.unreadable.or(Some(part)),
            }
        }
        if let Some(error) = &mut job.error
            && seal.open_text(&ContentPlace::Error(seq), error).is_err()
        {
            job.error = None;
            self.unreadable = self.unreadable.or(Some("error"));
        }
        for past in &mut job.errors {
            let place = ContentPlace::past(seq, past);
            if seal.open_text(&place, &mut past.error).is_err() {
                past.error = UNREADABLE.to_owned();
                self.unreadable = self.unreadable.or(Some("list of errors"));
            }
        }
        self
    }

    /// The job for a view; its error names the unreadable part.
    pub(crate) fn shown(self) -> StoredJob {
        let JobRow { mut job, unreadable } = self;
        if let Some(part) = unreadable {
            job.error = Some(unreadable_part(part));
        }
        job
    }

    /// Like `shown`, and notes the unreadable part as damage.
    pub(crate) fn noted(self, damage: &Damage, namespace: &Namespace) -> StoredJob {
        if let Some(part) = self.unreadable {
            let seq = self.job.seq;
            // If the row itself is damaged, its id may be wrong.
            let id = Some(self.job.id.as_str()).filter(|_| part != "row");
            damage.note(Some(namespace), seq, damaged(seq, id, part));
        }
        self.shown()
    }

    /// The job as its lease shows it. The row may be from before the grant, or have changed since; the holder sees the
    /// job as it was granted. `None` if `life` cannot be read.
    pub(crate) fn into_granted(mut self, life: &[u8]) -> Option<JobView> {
        self.job.life = life.to_vec();
        self.job.state = JobState::Running;
        self.shown().view(Stands::default())
    }
}

/// The error that is shown of a job with an unreadable part.
pub(crate) fn unreadable_part(part: &str) -> String {
    format!("{UNREADABLE}: its {part} is not what was written")
}

/// True if a failed read shows damage, and not a lack of time or room of the disk or
/// the system: then the row is unreadable, and work that does not need it goes on.
pub(crate) fn is_damage(why: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    match why {
        rusqlite::Error::SqliteFailure(code, _) => {
            matches!(code.code, DatabaseCorrupt | NotADatabase)
                || code.extended_code == rusqlite::ffi::SQLITE_IOERR_READ
        }
        rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::Utf8Error(..) => true,
        _ => false,
    }
}

/// The value; `None` if its row is damaged.
pub(crate) fn or_none<T>(read: rusqlite::Result<T>) -> rusqlite::Result<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(why) if is_damage(&why) => Ok(None),
        Err(why) => Err(why),
    }
}

/// A text that has a checksum of its own; `Err` if they do not match.
fn checked<'r>(
    row: &'r Row<'_>,
    column: JobText,
    (text, sum): (usize, usize),
) -> rusqlite::Result<Result<Option<&'r str>, &'static str>> {
    let (seq, sum): (i64, Option<i64>) = (row.get(0)?, or_none(row.get(sum))?.flatten());
    let wrong = Err(column.as_str());
    Ok(match row.get_ref(text)? {
        ValueRef::Null if sum.is_none() => Ok(None),
        ValueRef::Text(bytes) if sum == Some(column.sum(seq, bytes)) => {
            std::str::from_utf8(bytes).map(Some).or(wrong)
        }
        _ => wrong,
    })
}

/// Checks both rows of a job against their checksums.
fn is_whole(row: &Row<'_>, at: [usize; 12]) -> rusqlite::Result<bool> {
    let [id, kind, state, shape, life, labels, ns, queue, until, class, bytes, sum] = at;
    let check = || -> rusqlite::Result<bool> {
        let text = |column: usize| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        let blob = |column: usize| row.get_ref(column)?.as_blob().map_err(rusqlite::Error::from);
        let seq = row.get(0)?;
        let job = JobSum {
            seq,
            namespace: text(ns)?,
            id: text(id)?,
            queue: text(queue)?,
            kind: text(kind)?,
            shape: blob(shape)?,
            labels: row.get_ref(labels)?.as_str_or_null()?,
        };
        let life = LifeSum {
            seq,
            state: row.get(state)?,
            until: row.get(until)?,
            class: row.get(class)?,
            bytes: row.get(bytes)?,
            life: blob(life)?,
        };
        Ok(row.get::<_, i64>(sum)? == job.sum() && row.get::<_, i64>(sum + 1)? == life.sum())
    };
    Ok(or_none(check())?.unwrap_or(false))
}

/// A job without its past errors, as sealed as its row; payload and result only if `full`. `None` if its row is unreadable.
pub(crate) fn stored(row: &Row<'_>, full: bool) -> rusqlite::Result<Option<JobRow>> {
    or_none(stored_or_damage(row, full))
}

fn stored_or_damage(row: &Row<'_>, full: bool) -> rusqlite::Result<JobRow> {
    let whole = is_whole(row, [1, 2, 3, 4, 5, 6, 11, QUEUE, UNTIL, 14, BYTES, 16])?;
    let mut unreadable = if whole { None } else { Some("row") };
    let mut text = |column, at| -> rusqlite::Result<Option<&str>> {
        let text = checked(row, column, at)?;
        unreadable = unreadable.or(text.err());
        Ok(text.ok().flatten())
    };
    let error = text(JobText::Error, (7, 18))?.map(str::to_owned);
    let progress = text(JobText::Progress, (8, 19))?;
    let payload = if full { text(JobText::Payload, (9, 20))? } else { None };
    let result = if full { text(JobText::Result, (10, 21))? } else { None };
    // A text that matches its checksum was JSON when it was written.
    let json = |text: Option<&str>| text.and_then(Json::parse);
    Ok(JobRow {
        job: StoredJob {
            seq: seq(row, 0)?,
            id: id(row, 1)?,
            kind: row.get(2)?,
            state: state_of(row.get(3)?)?,
            shape: row.get(4)?,
            life: row.get(5)?,
            labels: or_none(labels(row, 6))?.unwrap_or_default(),
            // The column follows the payload, so it is read with it. A damaged trace is shown as none.
            traceparent: if full { or_none(trace(row, 22))?.flatten() } else { None },
            error,
            errors: Vec::new(),
            progress: json(progress),
            payload: full.then(|| json(payload).unwrap_or_default()),
            result: json(result),
        },
        unreadable,
    })
}

/// The outcome of a failed run, in the column `lost`.
pub(crate) fn outcome_number(outcome: Outcome) -> i64 {
    match outcome {
        Outcome::Lost => 1,
        Outcome::Undelivered => 2,
        _ => 0,
    }
}

fn outcome_of(number: i64) -> Outcome {
    match number {
        1 => Outcome::Lost,
        2 => Outcome::Undelivered,
        _ => Outcome::Failed,
    }
}

/// A finished job; `None` if its rows are not as written.
pub(crate) fn archived(row: &Row<'_>) -> rusqlite::Result<Option<Archived>> {
    if !is_whole(row, [1, 9, 2, 3, 4, 10, 7, 8, 5, 11, 6, 12])? {
        return Ok(None);
    }
    or_none((|| {
        Ok(Archived {
            seq: seq(row, 0)?,
            id: id(row, 1)?,
            state: state_of(row.get(2)?)?,
            shape: row.get(3)?,
            life: row.get(4)?,
            until: moment_of(row.get(5)?),
            bytes: row.get(6)?,
        })
    })())
}

/// Errors of the jobs after one row number, up to another, as [`job_error`] reads them.
pub(crate) const JOB_ERRORS: &str = "SELECT seq, n, attempt, at, error, lost, sum FROM job_error
    WHERE seq > ?1 AND seq <= ?2 ORDER BY seq, n";

/// One error; `None` if it is not as written.
pub(crate) fn job_error(row: &Row<'_>) -> rusqlite::Result<Option<JobError>> {
    let (attempt, at, lost): (i64, i64, i64) = (row.get(2)?, row.get(3)?, row.get(5)?);
    let error = row.get_ref(4)?.as_str()?;
    let sum = error_sum((row.get(0)?, row.get(1)?), attempt, at, error, lost);
    if row.get::<_, Option<i64>>(6)? != Some(sum) {
        return Ok(None);
    }
    let outcome = outcome_of(lost);
    Ok(Some(JobError { attempt: row.get(2)?, at: moment_of(at), error: error.to_owned(), outcome }))
}

/// The last errors of a job, oldest first, as sealed as their rows. An unreadable one is shown as unreadable.
pub(crate) fn errors(conn: &Connection, seq: Seq) -> rusqlite::Result<Vec<JobError>> {
    let mut all: CachedStatement<'_> = conn.prepare_cached(JOB_ERRORS)?;
    let number = number_of(seq);
    let damaged = || JobError {
        attempt: 0,
        at: Moment::ZERO,
        error: UNREADABLE.to_owned(),
        outcome: Outcome::Failed,
    };
    let mut errors = Vec::new();
    let mut rows = all.query([number - 1, number])?;
    loop {
        match rows.next() {
            Ok(Some(row)) => {
                let error = or_none(job_error(row))?.flatten();
                errors.push(error.unwrap_or_else(damaged));
            }
            Ok(None) => return Ok(errors),
            Err(why) if is_damage(&why) => {
                errors.push(damaged());
                return Ok(errors);
            }
            Err(why) => return Err(why),
        }
    }
}

/// The outcome of reading one job.
pub(crate) enum FoundJob {
    Job(Box<JobRow>),
    Gone,
    /// The whole job is unreadable.
    Unreadable,
}

/// A job of a namespace with its past errors, payload and result, opened.
pub(crate) fn job(
    conn: &Connection,
    (namespace, seal): (&Namespace, &Seal),
    seq: Seq,
    full: bool,
) -> rusqlite::Result<FoundJob> {
    let sql = format!("SELECT {STORED} FROM {JOBS} WHERE life.seq = ?1 AND ns = ?2");
    let mut one = conn.prepare_cached(&sql)?;
    let found =
        one.query_row((number_of(seq), namespace.as_str()), |row| stored(row, full)).optional();
    match found {
        Ok(Some(Some(mut found))) => {
            found.job.errors = errors(conn, seq)?;
            Ok(FoundJob::Job(Box::new(found.opened(seal))))
        }
        Ok(Some(None)) => Ok(FoundJob::Unreadable),
        Ok(None) => Ok(FoundJob::Gone),
        Err(why) if is_damage(&why) => Ok(FoundJob::Unreadable),
        Err(why) => Err(why),
    }
}

/// The data of a resource as its row holds it.
pub(crate) enum Data {
    Known(Json),
    Gone,
    Unreadable,
}

/// The data of a resource, opened. Data that does not open is unreadable.
pub(crate) fn data(conn: &Connection, seal: &Seal, key: &DataKey) -> rusqlite::Result<Data> {
    let (namespace, pool, id) = (key.0.as_str(), key.1.as_str(), key.2.as_str());
    let mut one = conn.prepare_cached(
        "SELECT data, sum FROM resource_data WHERE ns = ?1 AND pool = ?2 AND id = ?3",
    )?;
    let read = one.query_row([namespace, pool, id], |row| {
        let text = row.get_ref(0)?.as_str()?;
        let right = row.get::<_, Option<i64>>(1)? == Some(data_sum(namespace, pool, id, text));
        let data = Json::parse(text).filter(|_| right);
        Ok(data.and_then(|data| seal.open_json(&ContentPlace::Data(key), data).ok()))
    });
    match read.optional() {
        Ok(Some(Some(data))) => Ok(Data::Known(data)),
        Ok(Some(None)) => Ok(Data::Unreadable),
        Ok(None) => Ok(Data::Gone),
        Err(why) if is_damage(&why) => Ok(Data::Unreadable),
        Err(why) => Err(why),
    }
}

/// The namespace in a column of a row.
pub(crate) fn namespace(row: &Row<'_>, column: usize) -> rusqlite::Result<Namespace> {
    Namespace::parse(row.get_ref(column)?.as_str()?).map_err(|_| bad(column))
}
