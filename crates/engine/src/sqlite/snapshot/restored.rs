//! Rows from a snapshot: whatever was there goes, and the rows of the snapshot are written part by part.
//!
//! A process may die among the parts. So the store is marked before the first, and the mark goes behind the last: rows
//! that have it are as none.

use rusqlite::Connection;
use tenure_journal::{Position, ReadError, Snapshot};
use tenure_machine::{Changes, NO_JOB};

use crate::error::OpenError;
use crate::options::Options;
use crate::sqlite::folder::Folder;
use crate::sqlite::schema::store_error;
use crate::sqlite::small_facts::{fact, put_fact};
use crate::sqlite::snapshot::part_changes;
use crate::sqlite::write::commit::{self, Numbers};
use crate::sqlite::write::writer::Writer;

/// Stands in the table of small facts while a snapshot is written here.
const MARK: &str = "restoring";
/// All tables with rows of a journal.
const TABLES: [&str; 8] =
    ["job", "life", "job_error", "row", "resource_data", "stream", "event", "event_jobs"];

/// Why a snapshot was not restored; `E`: why its rows could not be changed on the way.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestoreError<E> {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Store(#[from] rusqlite::Error),
    #[error(transparent)]
    Unchanged(E),
}

/// Whether the rows are half of a snapshot: the process that wrote them ended too early.
pub(crate) fn is_half(conn: &Connection) -> rusqlite::Result<bool> {
    fact(conn, MARK).map(|mark| mark.is_some())
}

/// Refuses half of a snapshot, unless a journal has the rest.
pub(crate) fn refuse_half(
    conn: &Connection,
    folder: &Folder,
    options: &Options,
) -> Result<(), OpenError> {
    if is_half(conn).map_err(|why| store_error(folder, why))? && options.journal.is_none() {
        let why = "they are half of a snapshot, which was still being read".to_owned();
        Err(OpenError::OtherRows { folder: folder.path().to_owned(), why })
    } else {
        Ok(())
    }
}

/// Writes a snapshot in place of what is there, as `change` makes it; answers the numbers of its end.
pub(crate) fn restore<E>(
    conn: &Connection,
    snapshot: &mut dyn Snapshot,
    events_bytes: u64,
    mut change: impl FnMut(&mut Changes) -> Result<(), E>,
) -> Result<Numbers, RestoreError<E>> {
    clear(conn, Some("1"))?;
    let Position { number, sum } = snapshot.end();
    let mut writer = Writer::new(conn, Numbers::default(), events_bytes)?;
    let (mut before, mut last_seq) = (Position::default(), NO_JOB);
    while let Some(part) = snapshot.next_part()? {
        let damaged = |why| ReadError::Snapshot(format!("part {}: {why}", before.number + 1));
        part.follows(before).map_err(damaged)?;
        let mut changes = part_changes(&part).map_err(damaged)?;
        changes.iter_mut().try_for_each(&mut change).map_err(RestoreError::Unchanged)?;
        last_seq = changes.iter().map(|changes| changes.last_seq).fold(last_seq, Ord::max);
        writer.write_restored(&changes, Numbers::default())?;
        before = part.position();
    }
    let numbers = Numbers { commit: number, last_seq, entry: (number != 0).then_some(sum) };
    writer.write_restored(&[], numbers)?;
    put_fact(conn, MARK, None)?;
    Ok(numbers)
}

/// Takes away whatever is there.
pub(crate) fn begin_anew(conn: &Connection) -> rusqlite::Result<()> {
    clear(conn, None)
}

fn clear(conn: &Connection, mark: Option<&str>) -> rusqlite::Result<()> {
    let step = conn.unchecked_transaction()?;
    put_fact(&step, MARK, mark)?;
    put_fact(&step, commit::KEY, None)?;
    for table in TABLES {
        step.execute(&format!("DELETE FROM {table}"), [])?;
    }
    step.commit()
}
