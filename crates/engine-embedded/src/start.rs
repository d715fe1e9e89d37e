//! A start: the machine anew from its rows.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};
use tenure_core::job::JobState;
use tenure_core::machine::rows::{Kind, LiveRow};
use tenure_core::machine::{BadRow, Config, Machine, Seq};
use tenure_core::names::{Namespace, QueueName};
use tenure_core::time::Moment;

use crate::error::OpenError;
use crate::folder::Folder;
use crate::rows::{self, JOBS};
use crate::schema::store_error;
use crate::shelf::Shelf;

/// Why it failed.
enum Failed {
    Store(rusqlite::Error),
    Row(String),
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

/// Rows back to a machine, as it was when the last of them was written.
pub(crate) fn restore(
    conn: &Connection,
    folder: &Folder,
    config: Config,
    shelf: &mut Shelf,
    clock: Moment,
) -> Result<Machine, OpenError> {
    restore_all(conn, config, shelf, clock).map_err(|why| match why {
        Failed::Store(why) => store_error(folder, why),
        Failed::Row(why) => OpenError::Row { folder: folder.path().to_owned(), why },
    })
}

fn restore_all(
    conn: &Connection,
    config: Config,
    shelf: &mut Shelf,
    clock: Moment,
) -> Result<Machine, Failed> {
    let mut machine = Machine::new(config);
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Lease) {
        restore_kind(conn, &mut machine, kind)?;
    }
    let highest = restore_jobs(conn, &mut machine, shelf)?;
    // What a lease without a job holds must be there before it.
    restore_kind(conn, &mut machine, Kind::Lease)?;
    let last: Option<String> = conn
        .query_row("SELECT value FROM store WHERE key = 'last_seq'", [], |row| row.get(0))
        .optional()?;
    let last = last.and_then(|text| text.parse().ok()).unwrap_or(0);
    machine.restored(highest.max(last), clock);
    Ok(machine)
}

fn restore_kind(conn: &Connection, machine: &mut Machine, kind: Kind) -> Result<(), Failed> {
    let mut all =
        conn.prepare_cached("SELECT ns, key, value FROM row WHERE kind = ?1 ORDER BY ns")?;
    let mut found = all.query(params![kind.as_str()])?;
    while let Some(row) = found.next()? {
        let namespace = rows::namespace(row, 0)?;
        machine.restore_row(
            &namespace,
            kind,
            row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?,
            row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?,
        )?;
    }
    Ok(())
}

/// Finished jobs of a queue in one state.
type Totals = HashMap<(Namespace, String, i64), (u64, u64)>;

/// One pass over all jobs: live ones into the machine, finished ones onto the shelf and into
/// totals. Payloads are not read.
fn restore_jobs(
    conn: &Connection,
    machine: &mut Machine,
    shelf: &mut Shelf,
) -> Result<Seq, Failed> {
    let mut all = conn.prepare(&format!(
        "SELECT life.seq, ns, id, state, queue, bytes, shape, life FROM {JOBS} ORDER BY life.seq"
    ))?;
    let mut found = all.query([])?;
    let mut totals = Totals::new();
    let mut namespace = Namespace::main();
    let mut highest = 0;
    while let Some(row) = found.next()? {
        let text = |column: usize| -> rusqlite::Result<&str> {
            row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)
        };
        let seq = rows::seq(row, 0)?;
        highest = seq;
        let (ns, id) = (text(1)?, text(2)?);
        if ns != namespace.as_str() {
            namespace = rows::namespace(row, 1)?;
        }
        let number: i64 = row.get(3)?;
        let state = rows::state_of(number)?;
        if state.is_finished() {
            shelf.restore(&namespace, id, seq);
            let bytes: Option<i64> = row.get(5)?;
            let queue = text(4)?;
            let key = (namespace.clone(), queue.to_owned(), number);
            let total = totals.entry(key).or_default();
            total.0 += 1;
            total.1 += bytes.unwrap_or_default().unsigned_abs();
        } else {
            let blob = |column: usize| -> rusqlite::Result<&[u8]> {
                row.get_ref(column)?.as_blob().map_err(rusqlite::Error::from)
            };
            machine.restore_job(&LiveRow {
                seq,
                namespace: ns,
                id,
                state,
                shape: blob(6)?,
                life: blob(7)?,
            })?;
        }
    }
    for ((namespace, queue, state), (jobs, bytes)) in totals {
        let queue = QueueName::parse(&queue)
            .map_err(|_| Failed::Row(format!("the queue name {queue:?} of a job is none")))?;
        let state = JobState::ALL.get(state as usize).copied().unwrap_or(JobState::Cancelled);
        machine.restore_finished(&namespace, &queue, state, jobs, bytes);
    }
    Ok(highest)
}
