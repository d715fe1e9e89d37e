//! The numbers of the last commit, written with each commit.
//!
//! A note beside the log has the number as of its last sync; see `synced`.

use rusqlite::Connection;
use tenure_journal::Position;
use tenure_machine::{NO_JOB, Seq};

use crate::sqlite::rows;

use crate::sqlite::small_facts::fact;
use crate::sqlite::sums::Sum;

/// Their key in the table of small facts.
pub(crate) const KEY: &str = "commit";

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Numbers {
    /// Starts at 0 and grows by one with each commit of rows.
    pub commit: u64,
    /// The highest row number of a job that was ever used.
    pub last_seq: Seq,
    /// The checksum of the journal's entry of the same number; `None` where no journal appends.
    pub entry: Option<u64>,
}

impl Numbers {
    fn sum(self) -> i64 {
        let sum = Sum::of(KEY).int(self.commit as i64).int(rows::number_of(self.last_seq));
        match self.entry {
            Some(entry) => sum.int(entry as i64).end(),
            None => sum.end(),
        }
    }

    /// The text that the store keeps.
    pub(crate) fn text(self) -> String {
        match self.entry {
            Some(entry) => {
                format!("{} {} {} {}", self.commit, self.last_seq, entry as i64, self.sum())
            }
            None => format!("{} {} {}", self.commit, self.last_seq, self.sum()),
        }
    }

    /// The position in the journal as of this commit.
    pub(crate) fn position(self) -> Position {
        Position { number: self.commit, sum: self.entry.unwrap_or_default() }
    }

    /// The numbers of the next commit, which raises the highest row number to this one.
    pub(crate) fn next(self, last_seq: Seq, entry: Option<u64>) -> Numbers {
        Numbers { commit: self.commit + 1, last_seq: self.last_seq.max(last_seq), entry }
    }

    /// The numbers of a store. A store without them starts with the defaults; `Err` has the
    /// unreadable text.
    pub(crate) fn read(conn: &Connection) -> rusqlite::Result<Result<Numbers, String>> {
        let Some(text) = fact(conn, KEY)? else {
            // An older release kept only the row number.
            let last_seq =
                fact(conn, "last_seq")?.and_then(|text| text.parse().ok()).unwrap_or(NO_JOB);
            return Ok(Ok(Numbers { last_seq, ..Numbers::default() }));
        };
        let words: Result<Vec<i64>, _> = text.split(' ').map(str::parse).collect();
        let (commit, last_seq, entry, sum) = match words.as_deref() {
            Ok([commit, last_seq, sum]) => (*commit, *last_seq, None, *sum),
            Ok([commit, last_seq, entry, sum]) => (*commit, *last_seq, Some(*entry as u64), *sum),
            _ => return Ok(Err(text)),
        };
        let numbers = Numbers { commit: commit as u64, last_seq: rows::seq_of(last_seq), entry };
        Ok(if numbers.sum() == sum { Ok(numbers) } else { Err(text) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_were_changed_are_not_read() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute("CREATE TABLE store(key TEXT, value TEXT)", []).unwrap();
        assert_eq!(Numbers::read(&conn).unwrap(), Ok(Numbers::default()));
        conn.execute("INSERT INTO store VALUES(?1, '')", [KEY]).unwrap();
        let put = |text: &str| conn.execute("UPDATE store SET value = ?1", [text]).unwrap();
        for entry in [None, Some(678), Some(u64::MAX)] {
            let numbers = Numbers { commit: 12, last_seq: Seq::new(345), entry };
            put(&numbers.text());
            assert_eq!(Numbers::read(&conn).unwrap(), Ok(numbers));
            for (from, to) in [("12 ", "13 "), (" 345 ", " 344 "), ("12 ", "12 1 "), ("12", "x")] {
                let changed = numbers.text().replacen(from, to, 1);
                put(&changed);
                assert_eq!(Numbers::read(&conn).unwrap(), Err(changed));
            }
        }
    }
}
