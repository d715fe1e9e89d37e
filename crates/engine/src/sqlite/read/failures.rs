//! Failed jobs, grouped and counted by common properties. It only reads, on a thread that delays nobody.

use rusqlite::{Connection, params};
use tenure_core::names::{JobId, Namespace, QueueName};
use tenure_core::requests::{FailedJob, FailureCounts, Failures, ListFailures};
use tenure_engine_api::CallError;
use tenure_machine::rows::Class;
use tenure_machine::seen_in_life;

use crate::seal::{ContentPlace, Seal};
use crate::shared::Shared;
use crate::sqlite::rows::{self, JOBS, is_damage, or_none};
use crate::sqlite::write::writer::class_number;

/// The columns that [`failed`] reads.
const FAILED: &str = "id, queue, kind, error, life, life.seq";

/// The groups of failed jobs.
pub(crate) async fn list(
    shared: &Shared,
    namespace: &Namespace,
    asked: ListFailures,
) -> Result<Failures, CallError> {
    let (ns, seal) = (namespace.clone(), shared.seal.clone());
    let counts = FailureCounts::new(asked);
    let counted = shared.read(move |conn| count(conn, (&ns, &seal), counts)).await?;
    Ok(counted)
}

/// Looks at failed jobs in the index order of their removal, the longest kept first: with one `retain`
/// for all, these are the latest.
fn count(
    conn: &Connection,
    (namespace, seal): (&Namespace, &Seal),
    mut counts: FailureCounts,
) -> rusqlite::Result<Failures> {
    let sql = format!(
        "SELECT {FAILED} FROM {JOBS}
         WHERE ns = ?1 AND class = ?2 AND until IS NOT NULL ORDER BY until DESC"
    );
    let mut all = conn.prepare_cached(&sql)?;
    let class = class_number(Class::Failed);
    let mut rows = all.query(params![namespace.as_str(), class])?;
    loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(counts.finish(false)),
            // Jobs behind a damaged page are not counted.
            Err(why) if is_damage(&why) => return Ok(counts.finish(true)),
            Err(why) => return Err(why),
        };
        if counts.left() == 0 {
            return Ok(counts.finish(true));
        }
        match or_none(failed(row, seal))?.flatten() {
            Some(one) => counts.look_at(one),
            None => counts.pass_over(1),
        }
    }
}

/// A failed job; `None` if its row is not of its format.
fn failed(row: &rusqlite::Row<'_>, seal: &Seal) -> rusqlite::Result<Option<FailedJob>> {
    let (id, queue) = (row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?);
    let life = seen_in_life(row.get_ref(4)?.as_blob()?);
    let parsed = (JobId::known(id), QueueName::known(queue), life.and_then(|l| l.finished_at));
    let (Ok(job), Ok(queue), Some(finished_at)) = parsed else { return Ok(None) };
    let error = row.get_ref(3)?.as_str_or_null()?.unwrap_or_default();
    let Ok(error) = seal.open(&ContentPlace::Error(rows::seq(row, 5)?), error) else {
        return Ok(None);
    };
    let error = error.into_owned();
    Ok(Some(FailedJob { queue, kind: row.get(2)?, error, finished_at, job }))
}
