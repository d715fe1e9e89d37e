//! The numbers of the last commit, written with each: how far the store is.
//!
//! What is kept beside the log says how far it was when it was synced last; see `synced`.

use rusqlite::Connection;
use tenure_machine::{NO_JOB, Seq};

use crate::rows;

use crate::small_facts::fact;
use crate::sums::Sum;

/// Where they stand in the table of small facts.
pub(crate) const KEY: &str = "commit";

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Numbers {
    /// Starts at 0 and grows by one with each commit of rows.
    pub commit: u64,
    /// The highest row number of a job that was ever used.
    pub last_seq: Seq,
}

impl Numbers {
    fn sum(self) -> i64 {
        Sum::of(KEY).int(self.commit as i64).int(rows::number_of(self.last_seq)).end()
    }

    /// As they are stored.
    pub(crate) fn text(self) -> String {
        format!("{} {} {}", self.commit, self.last_seq, self.sum())
    }

    /// Those of a store. A store without them has none yet; `Err` is what stands in their place.
    pub(crate) fn read(conn: &Connection) -> rusqlite::Result<Result<Numbers, String>> {
        let Some(text) = fact(conn, KEY)? else {
            // An older release kept only this.
            let last_seq =
                fact(conn, "last_seq")?.and_then(|text| text.parse().ok()).unwrap_or(NO_JOB);
            return Ok(Ok(Numbers { commit: 0, last_seq }));
        };
        let mut words = text.split(' ').map(str::parse::<i64>);
        let (Some(Ok(commit)), Some(Ok(last_seq)), Some(Ok(sum)), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Ok(Err(text));
        };
        let numbers = Numbers { commit: commit as u64, last_seq: rows::seq_of(last_seq) };
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
        let numbers = Numbers { commit: 12, last_seq: Seq::new(345) };
        conn.execute("INSERT INTO store VALUES(?1, ?2)", [KEY, &numbers.text()]).unwrap();
        assert_eq!(Numbers::read(&conn).unwrap(), Ok(numbers));
        for (from, to) in [("12 ", "13 "), (" 345 ", " 344 "), ("12 ", "12 1 "), ("12", "x")] {
            let changed = numbers.text().replacen(from, to, 1);
            conn.execute("UPDATE store SET value = ?1", [&changed]).unwrap();
            assert_eq!(Numbers::read(&conn).unwrap(), Err(changed));
        }
    }
}
