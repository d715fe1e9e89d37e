//! Rows of jobs as they are read: the columns, and what they mean.

use rusqlite::{CachedStatement, Connection, OptionalExtension, Row};
use tenure_core::job::{JobError, JobState, Labels, Outcome};
use tenure_core::machine::rows::Archived;
use tenure_core::machine::{Seq, StoredJob};
use tenure_core::names::{JobId, Namespace};
use tenure_core::secret::Json;
use tenure_core::time::Moment;

/// Where jobs are read from: lives in their order, and to each its job.
pub(crate) const JOBS: &str = "life CROSS JOIN job ON job.seq = life.seq";
/// Columns of [`stored`].
pub(crate) const STORED: &str =
    "life.seq, id, kind, state, shape, life, labels, error, progress, payload, result";
/// Columns of [`archived`].
pub(crate) const ARCHIVED: &str = "life.seq, id, state, shape, life, until, bytes";

/// How a state stands in a row: its place in a job's life.
pub(crate) fn state_number(state: JobState) -> i64 {
    state as i64
}

pub(crate) fn state_of(number: i64) -> rusqlite::Result<JobState> {
    let state = usize::try_from(number).ok().and_then(|at| JobState::ALL.get(at));
    state.copied().ok_or(rusqlite::Error::IntegralValueOutOfRange(0, number))
}

/// A text of a row that is not of its format.
fn bad(column: usize) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(column, String::new(), rusqlite::types::Type::Text)
}

/// A moment as a row holds it; those beyond what a row can hold are without end in any case.
pub(crate) fn moment_number(at: Moment) -> i64 {
    i64::try_from(at.us()).unwrap_or(i64::MAX)
}

fn moment_of(number: i64) -> Moment {
    Moment::from_us(u64::try_from(number).unwrap_or_default())
}

pub(crate) fn json(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Json>> {
    let text = row.get_ref(column)?.as_str_or_null()?;
    text.map(|text| Json::parse(text).ok_or_else(|| bad(column))).transpose()
}

/// A label list as its row holds it: nothing at all if there are none.
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

fn id(row: &Row<'_>, column: usize) -> rusqlite::Result<JobId> {
    JobId::parse(row.get_ref(column)?.as_str()?).map_err(|_| bad(column))
}

pub(crate) fn seq(row: &Row<'_>, column: usize) -> rusqlite::Result<Seq> {
    row.get::<_, i64>(column).map(|seq| seq as Seq)
}

/// A job without its errors; payload and result only if `full`.
pub(crate) fn stored(row: &Row<'_>, full: bool) -> rusqlite::Result<StoredJob> {
    Ok(StoredJob {
        seq: seq(row, 0)?,
        id: id(row, 1)?,
        kind: row.get(2)?,
        state: state_of(row.get(3)?)?,
        shape: row.get(4)?,
        life: row.get(5)?,
        labels: labels(row, 6)?,
        error: row.get(7)?,
        errors: Vec::new(),
        progress: json(row, 8)?,
        payload: if full { json(row, 9)? } else { None },
        result: if full { json(row, 10)? } else { None },
    })
}

/// A finished job.
pub(crate) fn archived(row: &Row<'_>) -> rusqlite::Result<Archived> {
    Ok(Archived {
        seq: seq(row, 0)?,
        id: id(row, 1)?,
        state: state_of(row.get(2)?)?,
        shape: row.get(3)?,
        life: row.get(4)?,
        until: moment_of(row.get(5)?),
        bytes: row.get(6)?,
    })
}

/// How a run ended that did not end well, in the column `lost`.
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

/// The last errors of a job, oldest first.
pub(crate) fn errors(conn: &Connection, seq: Seq) -> rusqlite::Result<Vec<JobError>> {
    let mut all: CachedStatement<'_> = conn.prepare_cached(
        "SELECT attempt, at, error, lost FROM job_error WHERE seq = ?1 ORDER BY n",
    )?;
    let rows = all.query_map([seq as i64], |row| {
        let outcome = outcome_of(row.get(3)?);
        let at = moment_of(row.get(1)?);
        Ok(JobError { attempt: row.get(0)?, at, error: row.get(2)?, outcome })
    })?;
    rows.collect()
}

/// A job of a namespace, with its errors, payload and result.
pub(crate) fn job(
    conn: &Connection,
    namespace: &Namespace,
    seq: Seq,
    full: bool,
) -> rusqlite::Result<Option<StoredJob>> {
    let sql = format!("SELECT {STORED} FROM {JOBS} WHERE life.seq = ?1 AND ns = ?2");
    let mut one = conn.prepare_cached(&sql)?;
    let found =
        one.query_row((seq as i64, namespace.as_str()), |row| stored(row, full)).optional()?;
    let Some(mut found) = found else { return Ok(None) };
    found.errors = errors(conn, seq)?;
    Ok(Some(found))
}

/// The name of a namespace in a row.
pub(crate) fn namespace(row: &Row<'_>, column: usize) -> rusqlite::Result<Namespace> {
    Namespace::parse(row.get_ref(column)?.as_str()?).map_err(|_| bad(column))
}
