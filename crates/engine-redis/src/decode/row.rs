//! Rows and lives of jobs, as `lua/machine/jobs.lua` writes them: what the two sides of the store must
//! agree on. A change of either is a change of the layout.

use serde::Deserialize;
use serde::de::IgnoredAny;
use tenure_core::job::{JobState, Unique};

use super::Malformed;
use super::jobs::{State, UniqueReply};
use super::lenient::Maybe;
use crate::lease_id::Held;

/// Bytes of a row before its id: shape (4), created at (7), arrival (6), bytes (4).
const NUMBERS: usize = 21;
const CREATED_AT: std::ops::Range<usize> = 4..11;
/// Bytes of a block's index for each row.
const INDEX_BYTES: usize = 8;

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
        Row::read_text(rest, created_at)
    }

    /// So many rows of a block: their texts are one, and the index tells where each ends, from the one before the
    /// first on, if there is one. All were pushed at one moment.
    pub(super) fn read_block(
        index: &[u8],
        texts: &'a [u8],
        many: usize,
        pushed_at: &[u8],
    ) -> Result<Vec<Result<Self, Malformed>>, Malformed> {
        const WRONG: Malformed = Malformed("the rows of a block");
        let created_at = pushed_at.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        let mut ends = index.chunks_exact(INDEX_BYTES).map(|entry| {
            entry[..INDEX_BYTES / 2].iter().fold(0, |all, byte| all << 8 | usize::from(*byte))
        });
        let first = match index.len() / INDEX_BYTES {
            n if n == many => 0,
            n if n == many + 1 => ends.next().ok_or(WRONG)?,
            _ => return Err(WRONG),
        };
        let mut start = 0;
        let row = |end: usize| {
            let end = end.checked_sub(first).ok_or(WRONG)?;
            let text = texts.get(start..end).ok_or(WRONG)?;
            start = end;
            Row::read_text(text, created_at)
        };
        Ok(ends.map(row).collect())
    }

    fn read_text(rest: &'a [u8], created_at: u64) -> Result<Self, Malformed> {
        const WRONG: Malformed = Malformed("the row of a job");
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

/// The lease that a job runs under: its fence, its holder, what it holds.
pub(super) struct LifeLease {
    pub fence: u64,
    pub holder: Option<String>,
    pub held: Held,
}

/// A lease's fields in their order: holder, granted at, ttl, deadline, limits, resources, request,
/// extended, answered again, seen at, its first ttl if that was another, and whether its job had never run.
#[derive(Deserialize)]
struct LeaseFields(
    Maybe<String>,
    u64,
    u64,
    Maybe<u64>,
    Vec<(String, u64, u64)>,
    Vec<(String, String)>,
    IgnoredAny,
    IgnoredAny,
    IgnoredAny,
    IgnoredAny,
    #[serde(default)] Maybe<u64>,
    #[serde(default)] IgnoredAny,
);

impl LeaseFields {
    fn read(self, fence: u64) -> LifeLease {
        let LeaseFields(holder, granted_at, ttl, deadline, limits, resources, ..) = self;
        let timeout = deadline.0.map_or(0, |deadline| deadline.saturating_sub(granted_at));
        let held = Held(self.10.0.unwrap_or(ttl), timeout, limits, resources);
        LifeLease { fence, holder: holder.0, held }
    }
}

const SHORT: Malformed = Malformed("the short life of a job");

/// A number in network order.
fn number(bytes: &[u8], at: std::ops::Range<usize>) -> Result<u64, Malformed> {
    let bytes = bytes.get(at).ok_or(SHORT)?;
    Ok(bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)))
}

/// What changes in a job's life.
pub(super) struct Life {
    pub run_at: u64,
    pub expires_at: Option<u64>,
    pub started_at: Option<u64>,
    pub finished_at: Option<u64>,
    pub lease: Option<LifeLease>,
    pub ended: u32,
    pub lost: u32,
    pub cancel: bool,
    pub error: Option<String>,
}

/// Its fields in their order: state, arrival, run at, expires at, bytes, shape, fence, the lease's
/// expiry, the lease, started at, wait, ended, lost, released, cancel, keeps place, settles, error,
/// finished at, kept until, lane, has a unique key, undelivered.
#[derive(Deserialize)]
struct RowFields(
    State,
    IgnoredAny,
    u64,
    u64,
    IgnoredAny,
    IgnoredAny,
    u64,
    IgnoredAny,
    Maybe<LeaseFields>,
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
    IgnoredAny,
);

/// What the life of a job begins with that went the short way. Then come its arrival (6 bytes), fence (8),
/// row number (6) and bytes (4), its shape (4), and of one that runs its expiry, its grant, its deadline or
/// 0 (7 each), its ttl (5), the lengths of its holder's name and of its limits (2 each), that name and those
/// limits; of one that succeeded its grant and its end.
const SHORT_RUNNING: u8 = 1;
const SHORT_SUCCEEDED: u8 = 2;

impl Life {
    /// The life of the job of this row.
    pub(super) fn read(life: &[u8], row: &Row<'_>) -> Result<Self, Malformed> {
        match life.first() {
            Some(&SHORT_RUNNING) => Life::short_running(life, row),
            Some(&SHORT_SUCCEEDED) => Ok(Life {
                ended: 1,
                started_at: Some(number(life, 29..36)?),
                finished_at: Some(number(life, 36..43)?),
                ..Life::of_new(row)
            }),
            _ => Life::packed(life),
        }
    }

    fn short_running(life: &[u8], row: &Row<'_>) -> Result<Self, Malformed> {
        let granted_at = number(life, 36..43)?;
        let timeout = number(life, 43..50)?.saturating_sub(granted_at);
        let length = |at| number(life, at).map(|n| usize::try_from(n).unwrap_or(0));
        let (name, limits) = (length(55..57)?, length(57..59)?);
        let named = life.get(59..59 + name);
        let limits = match life.get(59 + name..59 + name + limits).ok_or(SHORT)? {
            [] => Vec::new(),
            packed => rmp_serde::from_slice(packed).map_err(|_| SHORT)?,
        };
        let held = Held(number(life, 50..55)?, timeout, limits, Vec::new());
        let holder = named.and_then(|name| std::str::from_utf8(name).ok()).ok_or(SHORT)?;
        let holder = (!holder.is_empty()).then(|| holder.to_owned());
        Ok(Life {
            lease: Some(LifeLease { fence: number(life, 7..15)?, holder, held }),
            started_at: Some(granted_at),
            ..Life::of_new(row)
        })
    }

    fn packed(life: &[u8]) -> Result<Self, Malformed> {
        let fields: RowFields =
            rmp_serde::from_slice(life).map_err(|_| Malformed("the life of a job"))?;
        let some = |number: u64| (number > 0).then_some(number);
        let State(state) = fields.0;
        Ok(Life {
            run_at: fields.2,
            expires_at: some(fields.3),
            started_at: some(fields.9),
            finished_at: some(fields.18),
            lease: fields
                .8
                .0
                .filter(|_| state == JobState::Running)
                .map(|lease| lease.read(fields.6)),
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
            lease: None,
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
