//! Rows and lives of jobs, as `lua/machine/jobs.lua` writes them: what the two sides of the store must
//! agree on. A change of either is a change of the layout.

use serde::Deserialize;
use serde::de::IgnoredAny;
use tenure_core::job::{JobState, Unique};

use super::Malformed;
use super::jobs::{State, UniqueReply};
use super::lenient::Maybe;

/// Bytes of a row before its id: shape (4), created at (7), arrival (6), bytes (4).
const NUMBERS: usize = 21;
const CREATED_AT: std::ops::Range<usize> = 4..11;

/// What is written once, at the push.
pub(super) struct Row<'a> {
    pub id: &'a str,
    pub created_at: u64,
    pub unique: Option<Unique>,
    pub body: &'a [u8],
}

impl<'a> Row<'a> {
    /// Numbers; the id, the bucket and the length of the unique key on a line each; that key; the body.
    pub(super) fn read(row: &'a [u8]) -> Result<Self, Malformed> {
        const WRONG: Malformed = Malformed("the row of a job");
        let (numbers, rest) = row.split_at_checked(NUMBERS).ok_or(WRONG)?;
        let created_at =
            numbers[CREATED_AT].iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        let mut lines = rest.splitn(4, |byte| *byte == b'\n');
        let mut line = || {
            let line = lines.next().ok_or(WRONG)?;
            std::str::from_utf8(line).map_err(|_| WRONG)
        };
        let (id, _bucket, length) = (line()?, line()?, line()?);
        let rest = lines.next().ok_or(WRONG)?;
        let length = if length.is_empty() { 0 } else { length.parse().map_err(|_| WRONG)? };
        let (key, body) = rest.split_at_checked(length).ok_or(WRONG)?;
        let unique = match key {
            [] => None,
            key => {
                let key: UniqueReply = rmp_serde::from_slice(key).map_err(|_| WRONG)?;
                Some(key.read())
            }
        };
        Ok(Row { id, created_at, unique, body })
    }
}

/// What changes in a job's life.
pub(super) struct Life {
    pub run_at: u64,
    pub expires_at: Option<u64>,
    pub started_at: Option<u64>,
    pub finished_at: Option<u64>,
    pub fence: Option<u64>,
    pub ended: u32,
    pub lost: u32,
    pub cancel: bool,
    pub error: Option<String>,
}

/// Its fields in their order: state, arrival, run at, expires at, bytes, shape, fence, the lease's
/// expiry, the lease, started at, wait, ended, lost, released, cancel, keeps place, settles, error,
/// finished at, kept until, lane, has a unique key.
#[derive(Deserialize)]
struct Fields(
    State,
    IgnoredAny,
    u64,
    u64,
    IgnoredAny,
    IgnoredAny,
    u64,
    IgnoredAny,
    IgnoredAny,
    u64,
    IgnoredAny,
    u32,
    u32,
    IgnoredAny,
    bool,
    IgnoredAny,
    IgnoredAny,
    Maybe<String>,
    u64,
    IgnoredAny,
    IgnoredAny,
    IgnoredAny,
);

impl Life {
    pub(super) fn read(life: &[u8]) -> Result<Self, Malformed> {
        let fields: Fields =
            rmp_serde::from_slice(life).map_err(|_| Malformed("the life of a job"))?;
        let some = |number: u64| (number > 0).then_some(number);
        let State(state) = fields.0;
        Ok(Life {
            run_at: fields.2,
            expires_at: some(fields.3),
            started_at: some(fields.9),
            finished_at: some(fields.18),
            fence: some(fields.6).filter(|_| state == JobState::Running),
            ended: fields.11,
            lost: fields.12,
            cancel: fields.14,
            error: fields.17.0,
        })
    }

    /// That of a job which was pushed and is ready: its row says it all.
    pub(super) fn of_new(row: &Row<'_>) -> Self {
        Life {
            run_at: row.created_at,
            expires_at: None,
            started_at: None,
            finished_at: None,
            fence: None,
            ended: 0,
            lost: 0,
            cancel: false,
            error: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(lines: &[u8]) -> Vec<u8> {
        let numbers = [0, 0, 0, 9, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4];
        [&numbers[..], lines].concat()
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let plain = row(b"a\n7\n\n0 4\nnull");
        let read = Row::read(&plain).unwrap();
        assert_eq!((read.id, read.created_at, read.body), ("a", 258, &b"0 4\nnull"[..]));
        assert!(read.unique.is_none());
        // Its third number is the byte that ends a line.
        let key = rmp_serde::to_vec(&("k", "s", 10, "r")).unwrap();
        let lines = [b"a\n7\n", key.len().to_string().as_bytes(), b"\n", &key, b"body"].concat();
        let unique = row(&lines);
        let read = Row::read(&unique).unwrap();
        assert_eq!((read.unique.unwrap().key.as_str(), read.body), ("k", &b"body"[..]));
    }

    #[test]
    fn what_is_no_row_is_not_read() {
        for lines in [&b""[..], b"a", b"a\n1\n", b"a\n1\n9\nx", b"a\n1\nx\n", b"a\n1\n1\n\xff"] {
            assert!(Row::read(&row(lines)).is_err(), "{lines:?}");
        }
        assert!(Row::read(b"short").is_err());
    }
}
