//! Checksums of rows: a row that is not as written is called unreadable.
//!
//! Each row has one, and each text that is written apart from its row has one of its own, so that no
//! statement has to read data that it does not write. A checksum covers the row's key too: the right
//! content in the wrong place is wrong. They find faults of a disk and stray writes; they are no
//! protection against an attacker who can write the folder and recompute them.

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error};
use tenure_core::words;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Half of the hash, as a number that SQLite stores in four bytes.
fn short(hash: u64) -> i64 {
    i64::from(hash as u32 as i32)
}

/// The values of a row, in the order in which they are hashed.
pub(crate) struct Sum(Vec<u8>);

impl Sum {
    /// Starts with the table, so that no row passes for a row of another table.
    pub(crate) fn of(table: &str) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(table.as_bytes());
        Sum(bytes)
    }
    fn part(mut self, kind: u8, bytes: &[u8]) -> Self {
        self.0.push(kind);
        self.0.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.0.extend_from_slice(bytes);
        self
    }
    pub(crate) fn int(self, value: i64) -> Self {
        self.part(1, &value.to_le_bytes())
    }
    pub(crate) fn text(self, value: &str) -> Self {
        self.part(2, value.as_bytes())
    }
    pub(crate) fn blob(self, value: &[u8]) -> Self {
        self.part(3, value)
    }
    fn none(self) -> Self {
        self.part(0, &[])
    }
    pub(crate) fn int_or_none(self, value: Option<i64>) -> Self {
        match value {
            Some(value) => self.int(value),
            None => self.none(),
        }
    }
    pub(crate) fn text_or_none(self, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(value),
            None => self.none(),
        }
    }
    pub(crate) fn end(self) -> i64 {
        short(xxh3_64(&self.0))
    }
}

/// The checksum of an entry of events.
pub(crate) fn entry_sum(namespace: &str, first: i64, last: i64, body: &[u8]) -> i64 {
    Sum::of("event").text(namespace).int(first).int(last).blob(body).end()
}

/// The columns of `job` under its checksum, without the payload.
pub(crate) struct JobSum<'a> {
    pub seq: i64,
    /// Stored in the row of the life.
    pub namespace: &'a str,
    pub id: &'a str,
    pub queue: &'a str,
    pub kind: &'a str,
    pub shape: &'a [u8],
    pub labels: Option<&'a str>,
}

impl JobSum<'_> {
    pub(crate) fn sum(&self) -> i64 {
        let sum = Sum::of("job").int(self.seq).text(self.namespace).text(self.id);
        sum.text(self.queue).text(self.kind).blob(self.shape).text_or_none(self.labels).end()
    }
}

/// The columns of `life` under its checksum, without the texts.
pub(crate) struct LifeSum<'a> {
    pub seq: i64,
    pub state: i64,
    pub until: Option<i64>,
    pub class: Option<i64>,
    pub bytes: Option<i64>,
    pub life: &'a [u8],
}

impl LifeSum<'_> {
    pub(crate) fn sum(&self) -> i64 {
        let sum = Sum::of("life").int(self.seq).int(self.state).int_or_none(self.until);
        sum.int_or_none(self.class).int_or_none(self.bytes).blob(self.life).end()
    }
}

words! {
    /// A text of a job that is written and read apart from the rest of its row.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum JobText {
        Payload = "payload",
        Error = "error",
        Progress = "progress",
        Result = "result",
    }
}

impl JobText {
    /// The checksum of this text of the job with this number.
    pub(crate) fn sum(self, seq: i64, text: &[u8]) -> i64 {
        short(xxh3_64_with_seed(text, (seq as u64) << 2 | self as u64))
    }
}

/// The checksum of a past error of a job.
pub(crate) fn error_sum(key: (i64, i64), attempt: i64, at: i64, error: &str, lost: i64) -> i64 {
    let sum = Sum::of("job_error").int(key.0).int(key.1).int(attempt).int(at);
    sum.text(error).int(lost).end()
}

/// The checksum of a row that is not a job.
pub(crate) fn row_sum(namespace: &str, kind: &str, key: &str, value: &str) -> i64 {
    Sum::of("row").text(namespace).text(kind).text(key).text(value).end()
}

/// The checksum of the data of a resource.
pub(crate) fn data_sum(namespace: &str, pool: &str, id: &str, data: &str) -> i64 {
    Sum::of("resource_data").text(namespace).text(pool).text(id).text(data).end()
}

/// Defines the same in SQL: `row_sum(TABLE, …)` and `text_sum(COLUMN, SEQ, TEXT)`.
pub(crate) fn register(conn: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    conn.create_scalar_function("row_sum", -1, flags, |given: &Context<'_>| {
        let mut sum = Sum::of(given.get_raw(0).as_str()?);
        for n in 1..given.len() {
            sum = match given.get_raw(n) {
                ValueRef::Null => sum.none(),
                ValueRef::Integer(value) => sum.int(value),
                ValueRef::Text(text) => sum.part(2, text),
                ValueRef::Blob(bytes) => sum.blob(bytes),
                ValueRef::Real(_) => {
                    return Err(Error::InvalidFunctionParameterType(
                        n,
                        rusqlite::types::Type::Real,
                    ));
                }
            };
        }
        Ok(sum.end())
    })?;
    conn.create_scalar_function("text_sum", 3, flags, |given: &Context<'_>| {
        let name = given.get_raw(0).as_str()?;
        let Some(column) = JobText::ALL.into_iter().find(|column| column.as_str() == name) else {
            return Err(Error::InvalidColumnName(name.to_owned()));
        };
        Ok(match given.get_raw(2) {
            ValueRef::Text(text) => Some(column.sum(given.get(1)?, text)),
            _ => None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_and_rust_come_to_the_same_sums() {
        let conn = Connection::open_in_memory().unwrap();
        register(&conn).unwrap();
        let asked = |sql: &str| -> i64 { conn.query_row(sql, [], |row| row.get(0)).unwrap() };
        let job = JobSum {
            seq: 7,
            namespace: "main",
            id: "i",
            queue: "q",
            kind: "",
            shape: &[1, 2],
            labels: None,
        };
        let sql = "SELECT row_sum('job', 7, 'main', 'i', 'q', '', x'0102', NULL)";
        assert_eq!(asked(sql), job.sum());
        let life =
            LifeSum { seq: 7, state: 6, until: Some(9), class: Some(0), bytes: None, life: &[3] };
        assert_eq!(asked("SELECT row_sum('life', 7, 6, 9, 0, NULL, x'03')"), life.sum());
        let text = JobText::Result.sum(7, b"null");
        assert_eq!(asked("SELECT text_sum('result', 7, 'null')"), text);
        let sql = "SELECT row_sum('job_error', 7, 1, 2, 3, 'no', 1)";
        assert_eq!(asked(sql), error_sum((7, 1), 2, 3, "no", 1));
    }

    #[test]
    fn every_bit_counts_and_so_does_its_place() {
        let sum = |payload: &str, seq| JobText::Payload.sum(seq, payload.as_bytes());
        let mut all = std::collections::BTreeSet::from([sum("abc", 1), sum("abc", 2)]);
        for at in 0..24 {
            let mut bytes = *b"abc";
            bytes[at / 8] ^= 1 << (at % 8);
            all.insert(JobText::Payload.sum(1, &bytes));
        }
        all.insert(JobText::Result.sum(1, b"abc"));
        assert_eq!(all.len(), 27);
        assert_ne!(row_sum("a", "bc", "d", "e"), row_sum("ab", "c", "d", "e"));
    }
}
