//! The streams of events on disk: adds the events of a batch, and drops the oldest. Only the disk's thread writes them;
//! the state knows the end of each stream.
//!
//! An entry holds the events of one namespace in one batch. The row of a stream is written with every entry: its life, the
//! numbers of its oldest and newest event, and the bytes of all its entries.

use std::collections::HashMap;

use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};
use tenure_core::bounds::EVENTS_TRIM_MAX;
use tenure_core::events::{EventId, StreamStands};
use tenure_core::names::Namespace;
use tenure_core::time::Moment;
use tenure_machine::{BatchEvents, NewEvents, encode_events};

use crate::options::Durability;
use crate::sqlite::read::event_jobs::EventJobsWriter;
use crate::sqlite::rows;
use crate::sqlite::small_facts::{fact, put_fact};
use crate::sqlite::sums::entry_sum;

/// The key of the way in which the last writing process ended, in the table of small facts.
const ENDED: &str = "events";
/// The value after the store was closed.
const CLEAN: &str = "clean";
/// A stream over its bound is cut to one of this many parts below it, so that most batches cut nothing.
const CUT_PART: u64 = 64;
/// In a folder with a bound, each stream may take this part of it.
const FOLDER_PART: u64 = 8;

/// A stream and its bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct StoredStream {
    pub stands: StreamStands,
    pub bytes: u64,
}

/// The bytes of events that a namespace may keep.
pub(crate) fn bound(events_bytes: u64, max_bytes: Option<u64>) -> u64 {
    max_bytes.map_or(events_bytes, |most| events_bytes.min(most / FOLDER_PART))
}

/// Reads a row that begins with life, first, last, bytes.
pub(crate) fn stream_of(row: &Row<'_>) -> rusqlite::Result<StoredStream> {
    let number = |column| row.get::<_, i64>(column).map(|number| number as u64);
    let stands = StreamStands { life: number(0)?, first: number(1)?, last: number(2)? };
    Ok(StoredStream { stands, bytes: number(3)? })
}

/// The columns that [`stream_of`] reads.
pub(crate) const STREAM: &str = "life, first, last, bytes";

/// The stream of a namespace; the default if nothing has happened there.
pub(crate) fn stream(conn: &Connection, namespace: &Namespace) -> rusqlite::Result<StoredStream> {
    let mut one = conn.prepare_cached(&format!("SELECT {STREAM} FROM stream WHERE ns = ?1"))?;
    let found = one.query_row([namespace.as_str()], stream_of).optional()?;
    let nothing = StreamStands { first: 1, ..StreamStands::default() };
    Ok(found.unwrap_or(StoredStream { stands: nothing, bytes: 0 }))
}

/// Called at a start: the end of each stream, in a new life if the last process may have lost events. A bound of 0
/// keeps no events.
pub(crate) fn open(
    conn: &Connection,
    bound: u64,
    durability: Durability,
    lossy: bool,
    now: Moment,
) -> rusqlite::Result<HashMap<Namespace, EventId>> {
    let lossy = lossy || was_left_unsynced(conn)?;
    if bound == 0 {
        conn.execute_batch("DELETE FROM event; DELETE FROM event_jobs; DELETE FROM stream")?;
    }
    if lossy {
        let highest: i64 =
            conn.query_row("SELECT coalesce(max(life), 0) FROM stream", [], |row| row.get(0))?;
        let life = rows::moment_number(now).max(highest + 1);
        conn.execute("UPDATE stream SET life = ?1", [life])?;
    }
    put_fact(conn, ENDED, Some(word(durability)))?;
    let mut all = conn.prepare(&format!("SELECT {STREAM}, ns FROM stream"))?;
    let end = |row: &Row<'_>| Ok((rows::namespace(row, 4)?, stream_of(row)?.stands.end()));
    all.query_map([], end)?.collect()
}

/// True if the last process synced once a second, and did not close the store. A process that syncs each answer forgets
/// nothing.
pub(crate) fn was_left_unsynced(conn: &Connection) -> rusqlite::Result<bool> {
    Ok(fact(conn, ENDED)?.as_deref() == Some(word(Durability::Everysec)))
}

/// Notes that the store was closed and nothing is lost.
pub(crate) fn close(conn: &Connection) -> rusqlite::Result<()> {
    put_fact(conn, ENDED, Some(CLEAN))
}

fn word(durability: Durability) -> &'static str {
    match durability {
        Durability::Always => "open, always",
        Durability::Everysec => "open, everysec",
    }
}

/// The statements of one connection.
pub(crate) struct StreamWriter<'c> {
    bound: u64,
    stream: CachedStatement<'c>,
    put_stream: CachedStatement<'c>,
    put_entry: CachedStatement<'c>,
    oldest: CachedStatement<'c>,
    cut: CachedStatement<'c>,
    drop_stream: CachedStatement<'c>,
    drop_entries: CachedStatement<'c>,
    by_job: EventJobsWriter<'c>,
}

impl<'c> StreamWriter<'c> {
    pub(crate) fn new(conn: &'c Connection, bound: u64) -> rusqlite::Result<Self> {
        let sql = |text: &str| conn.prepare_cached(text);
        Ok(StreamWriter {
            bound,
            stream: sql(&format!("SELECT {STREAM} FROM stream WHERE ns = ?1"))?,
            put_stream: sql(
                "INSERT INTO stream(ns, life, first, last, bytes) VALUES(?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET life = excluded.life, first = excluded.first,
                                           last = excluded.last, bytes = excluded.bytes",
            )?,
            put_entry: sql("INSERT INTO event(ns, last, first, sum, body)
                 VALUES(?1, ?2, ?3, ?4, ?5)")?,
            oldest: sql("SELECT last, length(body) FROM event
                 WHERE ns = ?1 AND last < ?2 ORDER BY last LIMIT ?3")?,
            cut: sql("DELETE FROM event WHERE ns = ?1 AND last <= ?2")?,
            drop_stream: sql("DELETE FROM stream WHERE ns = ?1")?,
            drop_entries: sql("DELETE FROM event WHERE ns = ?1")?,
            by_job: EventJobsWriter::new(conn)?,
        })
    }

    /// Sets the bound of each stream, from the next entry on.
    pub(crate) fn keep(&mut self, bound: u64) {
        self.bound = bound;
    }

    /// Writes the events of a batch, within its transaction.
    pub(crate) fn write(&mut self, events: &BatchEvents) -> rusqlite::Result<()> {
        for namespace in &events.ended {
            self.drop_entries.execute([namespace.as_str()])?;
            self.by_job.drop(namespace.as_str())?;
            self.drop_stream.execute([namespace.as_str()])?;
        }
        for (namespace, new) in &events.new {
            self.append(namespace.as_str(), new)?;
        }
        Ok(())
    }

    fn append(&mut self, ns: &str, new: &NewEvents) -> rusqlite::Result<()> {
        let body = encode_events(&new.events);
        let last = new.first + new.events.len() as u64 - 1;
        let there = self.stream.query_row([ns], stream_of).optional()?;
        let mut stream = there.unwrap_or(StoredStream {
            stands: StreamStands { first: new.first, ..StreamStands::default() },
            bytes: 0,
        });
        (stream.stands.life, stream.stands.last) = (new.life, last);
        stream.bytes += body.len() as u64;
        if stream.bytes > self.bound {
            self.cut(ns, &mut stream, new.first)?;
        }
        let (first, last) = (new.first as i64, last as i64);
        let sum = entry_sum(ns, first, last, &body);
        self.put_entry.execute(params![ns, last, first, sum, body])?;
        let StreamStands { life, first, last } = stream.stands;
        let (life, first, last) = (life as i64, first as i64, last as i64);
        self.put_stream.execute(params![ns, life, first, last, stream.bytes as i64])?;
        self.by_job.wrote(ns, stream.stands.first, (new.first, stream.stands.last))
    }

    /// Drops the oldest entries, but never those from `newest` on.
    fn cut(&mut self, ns: &str, stream: &mut StoredStream, newest: u64) -> rusqlite::Result<()> {
        let wanted = self.bound - self.bound / CUT_PART;
        let mut gone = None;
        let mut oldest = self.oldest.query(params![ns, newest as i64, EVENTS_TRIM_MAX as i64])?;
        while stream.bytes > wanted {
            let Some(row) = oldest.next()? else { break };
            let (last, bytes) = (row.get::<_, i64>(0)?, row.get::<_, i64>(1)?);
            stream.bytes = stream.bytes.saturating_sub(bytes as u64);
            gone = Some(last);
        }
        drop(oldest);
        if let Some(last) = gone {
            self.cut.execute(params![ns, last])?;
            self.by_job.cut(ns, last)?;
            stream.stands.first = last as u64 + 1;
        }
        Ok(())
    }
}
