//! Scans all jobs of a store in their order, at a start: checks both rows of each, and skips those that cannot
//! be read at all.
//!
//! The two tables are read side by side in portions, so that a job with only one row is found,
//! and a page that SQLite cannot read hides no row behind it. Payloads are not read.

use std::collections::VecDeque;

use rusqlite::{Connection, Row, params};

use crate::sqlite::rows::{is_damage, or_none};
use crate::sqlite::sums::{JobSum, LifeSum};

/// The number of rows of one read.
const PORTION: usize = 500;

/// The row of a job in `job`, as far as it is readable.
pub(crate) struct JobPart {
    pub seq: i64,
    pub id: String,
    pub queue: String,
    kind: String,
    pub shape: Vec<u8>,
    labels: Option<String>,
    sum: i64,
}

impl JobPart {
    /// True if it is as written for a job of this namespace.
    pub(crate) fn is_whole(&self, namespace: &str) -> bool {
        let JobPart { seq, id, queue, kind, shape, labels, sum } = self;
        let labels = labels.as_deref();
        *sum == JobSum { seq: *seq, namespace, id, queue, kind, shape, labels }.sum()
    }
}

/// The row of a job in `life`, as far as it is readable.
pub(crate) struct LifePart {
    pub seq: i64,
    pub namespace: String,
    pub state: i64,
    until: Option<i64>,
    class: Option<i64>,
    pub bytes: Option<i64>,
    pub life: Vec<u8>,
    sum: i64,
}

impl LifePart {
    fn is_whole(&self) -> bool {
        let LifePart { seq, state, until, class, bytes, life, sum, .. } = self;
        let (seq, state, until, class, bytes) = (*seq, *state, *until, *class, *bytes);
        *sum == LifeSum { seq, state, until, class, bytes, life }.sum()
    }
}

/// Both rows of one job number.
pub(crate) struct Walked {
    pub seq: i64,
    /// `None`: the row is missing, or cannot be read as a job.
    pub job: Option<JobPart>,
    /// `None`: the row is missing, or not as written.
    pub life: Option<LifePart>,
    /// The namespace in the row of its life, even if that row is wrong.
    pub namespace: Option<String>,
}

trait RowPart: Sized {
    const SQL: &'static str;
    fn read(row: &Row<'_>) -> rusqlite::Result<Self>;
}

impl RowPart for JobPart {
    const SQL: &'static str = "SELECT seq, id, queue, kind, shape, labels, sum FROM job
                               WHERE seq >= ?1 ORDER BY seq LIMIT ?2";
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(JobPart {
            seq: row.get(0)?,
            id: row.get(1)?,
            queue: row.get(2)?,
            kind: row.get(3)?,
            shape: row.get(4)?,
            labels: row.get(5)?,
            sum: row.get(6)?,
        })
    }
}

impl RowPart for LifePart {
    const SQL: &'static str = "SELECT seq, ns, state, until, class, bytes, life, sum FROM life
                               WHERE seq >= ?1 ORDER BY seq LIMIT ?2";
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(LifePart {
            seq: row.get(0)?,
            namespace: row.get(1)?,
            state: row.get(2)?,
            until: row.get(3)?,
            class: row.get(4)?,
            bytes: row.get(5)?,
            life: row.get(6)?,
            sum: row.get(7)?,
        })
    }
}

/// The rows of one table, oldest first.
struct Rows<'c, P> {
    conn: &'c Connection,
    portion: VecDeque<(i64, Option<P>)>,
    /// The lowest number that was not read yet.
    from: i64,
    ended: bool,
}

impl<'c, P: RowPart> Rows<'c, P> {
    fn new(conn: &'c Connection) -> Self {
        Rows { conn, portion: VecDeque::new(), from: 0, ended: false }
    }

    /// The number of the next row.
    fn peek(&mut self) -> rusqlite::Result<Option<i64>> {
        while self.portion.is_empty() && !self.ended {
            match self.fill() {
                Ok(()) => {}
                Err(why) if !is_damage(&why) => return Err(why),
                // Rows from before the damage come first.
                Err(_) if !self.portion.is_empty() => {}
                Err(_) => self.go_around()?,
            }
        }
        Ok(self.portion.front().map(|(seq, _)| *seq))
    }

    /// The row with this number; `None` without a row, or if its values are unreadable.
    fn take(&mut self, seq: i64) -> Option<P> {
        if self.portion.front()?.0 != seq {
            return None;
        }
        self.portion.pop_front()?.1
    }

    fn fill(&mut self) -> rusqlite::Result<()> {
        let mut portion = self.conn.prepare_cached(P::SQL)?;
        let mut rows = portion.query(params![self.from, PORTION as i64])?;
        let mut read = 0;
        while let Some(row) = rows.next()? {
            let seq: i64 = row.get(0)?;
            // Where the order of the tree is broken, no row is read twice.
            if seq < self.from {
                return Err(rusqlite::Error::IntegralValueOutOfRange(0, seq));
            }
            self.from = seq.saturating_add(1);
            self.portion.push_back((seq, or_none(P::read(row))?));
            read += 1;
        }
        self.ended = read < PORTION;
        Ok(())
    }

    /// True if the next row from this number on can be reached.
    fn is_readable(&self, from: i64) -> rusqlite::Result<bool> {
        let mut one = self.conn.prepare_cached(P::SQL)?;
        let mut rows = one.query(params![from, 1])?;
        let seq = match rows.next() {
            Ok(Some(row)) => or_none(row.get::<_, i64>(0))?,
            Ok(None) => return Ok(true),
            Err(why) if is_damage(&why) => None,
            Err(why) => return Err(why),
        };
        Ok(seq.is_some_and(|seq| seq >= from))
    }

    /// Skips the unreadable rows: goes on at the lowest number from which a row can be reached.
    fn go_around(&mut self) -> rusqlite::Result<()> {
        let (mut bad, mut step) = (self.from, 1i64);
        let mut good = loop {
            let Some(at) = self.from.checked_add(step) else {
                self.ended = true;
                return Ok(());
            };
            if self.is_readable(at)? {
                break at;
            }
            bad = at;
            step = step.saturating_mul(2);
        };
        while good - bad > 1 {
            let middle = bad + (good - bad) / 2;
            if self.is_readable(middle)? {
                good = middle;
            } else {
                bad = middle;
            }
        }
        self.from = good;
        Ok(())
    }
}

/// Calls `each` with every job once.
pub(crate) fn walk<E: From<rusqlite::Error>>(
    conn: &Connection,
    mut each: impl FnMut(Walked) -> Result<(), E>,
) -> Result<(), E> {
    let (mut jobs, mut lives) = (Rows::<JobPart>::new(conn), Rows::<LifePart>::new(conn));
    loop {
        let seq = match (jobs.peek()?, lives.peek()?) {
            (Some(job), Some(life)) => job.min(life),
            (Some(seq), None) | (None, Some(seq)) => seq,
            (None, None) => return Ok(()),
        };
        let (job, life) = (jobs.take(seq), lives.take(seq));
        let namespace = life.as_ref().map(|life| life.namespace.clone());
        each(Walked { seq, job, life: life.filter(LifePart::is_whole), namespace })?;
    }
}
