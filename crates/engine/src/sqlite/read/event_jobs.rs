//! Index of the events by job: it lets a reader of one job's events pass over entries that have none of them.
//!
//! A row covers a run of whole entries. It holds a short hash of each job in them, with the place of the entry. The
//! thread that writes events adds a row once some thousand events are not covered, so a new event costs no write of its
//! own. Rows only serve to skip entries: where one is missing or damaged, the entries themselves are read.

use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use tenure_core::names::{JobId, Namespace};
use tenure_machine::decode_events;
use xxhash_rust::xxh3::xxh3_64;

use crate::sqlite::rows::or_none;
use crate::sqlite::sums::{Sum, entry_sum};

/// A row covers the entries of at least this many events.
const EVENTS_COVERED: u64 = 4_096;
/// A row may be due when the number of the newest event passes a multiple of this.
const LOOK_EVERY: u64 = 256;
/// Bytes of a place: a hash, and the distance from the first covered event to the entry's first.
const PLACE: usize = 8;
/// The hash of unreadable entries: they are not skipped for any job.
const ANY_JOB: u32 = 0;
/// Rows that one use of a reader may read.
const ROWS_PORTION: usize = 32;

fn hash_of(job: &JobId) -> u32 {
    // Odd, so never that of an unreadable entry.
    xxh3_64(job.as_str().as_bytes()) as u32 | 1
}

fn row_sum(namespace: &str, first: i64, last: i64, places: &[u8]) -> i64 {
    Sum::of("event_jobs").text(namespace).int(first).int(last).blob(places).end()
}

/// Adds and removes rows, within the transaction of a batch.
pub(crate) struct EventJobsWriter<'c> {
    covered: CachedStatement<'c>,
    entries: CachedStatement<'c>,
    put: CachedStatement<'c>,
    cut: CachedStatement<'c>,
    drop: CachedStatement<'c>,
}

impl<'c> EventJobsWriter<'c> {
    pub(crate) fn new(conn: &'c Connection) -> rusqlite::Result<Self> {
        let sql = |text: &str| conn.prepare_cached(text);
        Ok(EventJobsWriter {
            covered: sql("SELECT last FROM event_jobs WHERE ns = ?1 ORDER BY last DESC LIMIT 1")?,
            entries: sql("SELECT first, last, sum, body FROM event
                 WHERE ns = ?1 AND last > ?2 ORDER BY last")?,
            put: sql("INSERT INTO event_jobs(ns, last, first, sum, places)
                 VALUES(?1, ?2, ?3, ?4, ?5)")?,
            cut: sql("DELETE FROM event_jobs WHERE ns = ?1 AND last <= ?2")?,
            drop: sql("DELETE FROM event_jobs WHERE ns = ?1")?,
        })
    }

    /// Follows the write of an entry: covers the oldest uncovered entries, once they have enough events. So the
    /// entries of an older release are covered too, bit by bit.
    pub(crate) fn wrote(
        &mut self,
        ns: &str,
        oldest: u64,
        (first, last): (u64, u64),
    ) -> rusqlite::Result<()> {
        if (first - 1) / LOOK_EVERY == last / LOOK_EVERY {
            return Ok(());
        }
        let covered = self.covered.query_row([ns], |row| row.get::<_, i64>(0)).optional()?;
        let after = covered.map_or(0, |last| last as u64).max(oldest - 1);
        if last.saturating_sub(after) < EVENTS_COVERED {
            return Ok(());
        }
        let mut places: Vec<(u32, u32)> = Vec::new();
        let mut end = after;
        let mut rows = self.entries.query(params![ns, after as i64])?;
        while end - after < EVENTS_COVERED
            && let Some(row) = rows.next()?
        {
            let (first, last): (i64, i64) = (row.get(0)?, row.get(1)?);
            let sum: i64 = row.get(2)?;
            let body = or_none(row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from))?;
            let body = body.filter(|body| sum == entry_sum(ns, first, last, body));
            let place = (first as u64).saturating_sub(after + 1) as u32;
            match body.and_then(decode_events) {
                Some(events) => {
                    let jobs = events.iter().filter_map(|event| event.about.job.as_ref());
                    places.extend(jobs.map(|job| (hash_of(job), place)));
                }
                None => places.push((ANY_JOB, place)),
            }
            end = last as u64;
        }
        drop(rows);
        places.sort_unstable();
        places.dedup();
        let bytes = |(hash, place): (u32, u32)| [hash.to_be_bytes(), place.to_be_bytes()];
        let places: Vec<u8> = places.into_iter().flat_map(bytes).flatten().collect();
        let (first, last) = (after as i64 + 1, end as i64);
        self.put.execute(params![ns, last, first, row_sum(ns, first, last, &places), places])?;
        Ok(())
    }

    /// Entries up to this event are gone.
    pub(crate) fn cut(&mut self, ns: &str, last: i64) -> rusqlite::Result<()> {
        self.cut.execute(params![ns, last]).map(drop)
    }

    /// All entries of the namespace are gone.
    pub(crate) fn drop(&mut self, ns: &str) -> rusqlite::Result<()> {
        self.drop.execute([ns]).map(drop)
    }
}

/// Finds, from the end of one entry, the start of the next that may have events of a job.
pub(crate) struct EventsOfJob {
    hash: u32,
    /// The last event that the current row covers.
    covered: u64,
    /// The first events of those entries of the current row that may have some, newest first.
    begins: Vec<u64>,
    /// Number of rows that were read.
    read: usize,
    /// No row covers the next events.
    is_over: bool,
}

impl EventsOfJob {
    pub(crate) fn new(job: &JobId) -> Self {
        let hash = hash_of(job);
        EventsOfJob { hash, covered: 0, begins: Vec::new(), read: 0, is_over: false }
    }

    /// True once it has read as many rows as one use of a reader may read.
    pub(crate) fn is_spent(&self) -> bool {
        self.read >= ROWS_PORTION
    }

    /// Skips entries without events of the job. `at` and the result are each the last event of an entry, with no event
    /// of the job in between.
    pub(crate) fn pass(
        &mut self,
        conn: &Connection,
        namespace: &Namespace,
        mut at: u64,
    ) -> rusqlite::Result<u64> {
        while !self.is_over && !self.is_spent() {
            while let Some(begin) = self.begins.pop() {
                if begin > at {
                    self.begins.push(begin);
                    return Ok(begin - 1);
                }
            }
            at = at.max(self.covered);
            self.is_over = !self.load(conn, namespace.as_str(), at)?;
        }
        Ok(at)
    }

    /// Reads the row that covers the event after `at`; false without one.
    fn load(&mut self, conn: &Connection, ns: &str, at: u64) -> rusqlite::Result<bool> {
        let mut one = conn.prepare_cached(
            "SELECT first, last, sum, places FROM event_jobs
             WHERE ns = ?1 AND last > ?2 ORDER BY last LIMIT 1",
        )?;
        let mut rows = one.query(params![ns, at as i64])?;
        let Some(row) = rows.next()? else { return Ok(false) };
        self.read += 1;
        let (first, last): (i64, i64) = (row.get(0)?, row.get(1)?);
        let Some(places) = or_none(row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from))?
        else {
            return Ok(false);
        };
        let is_right = row.get::<_, i64>(2)? == row_sum(ns, first, last, places);
        if !is_right || first as u64 > at + 1 {
            return Ok(false);
        }
        let (places, _) = places.as_chunks::<PLACE>();
        self.covered = last as u64;
        self.begins.extend(places_of(places, ANY_JOB).map(|place| first as u64 + place));
        self.begins.extend(places_of(places, self.hash).map(|place| first as u64 + place));
        self.begins.sort_unstable_by(|one, other| other.cmp(one));
        Ok(true)
    }
}

/// The entries' places under a hash; `places` is sorted.
fn places_of(places: &[[u8; PLACE]], hash: u32) -> impl Iterator<Item = u64> {
    let hash = hash.to_be_bytes();
    let from = places.partition_point(|place| place[..4] < hash[..]);
    let of_hash = places[from..].iter().take_while(move |place| place[..4] == hash[..]);
    of_hash.map(|place| u64::from(u32::from_be_bytes([place[4], place[5], place[6], place[7]])))
}
