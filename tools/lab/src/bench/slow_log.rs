//! The slowest command of a Redis during a measurement, by the server's own slow log: it keeps commands that took
//! longer than its `slowlog-log-slower-than`, 10 ms by default. Nothing is changed there.

use tenure_console::exit::Failure;
use tenure_console::scratch::Scratch;
use tenure_redis::RespValue;

use super::target::Under;

/// Entries that are read; a server keeps 128 unless its `slowlog-max-len` differs.
const ENTRIES: usize = 128;

/// The log of a Redis, and its last entry at the start.
pub struct SlowLog<'a> {
    scratch: &'a Scratch,
    last: i64,
}

impl<'a> SlowLog<'a> {
    /// Reads the commands from now on; `None` without a Redis.
    pub async fn of(under: Under<'a>) -> Result<Option<Self>, Failure> {
        let Under::Redis(scratch) = under else { return Ok(None) };
        let last = entries(scratch).await?.into_iter().map(|(id, _)| id).max().unwrap_or(-1);
        Ok(Some(SlowLog { scratch, last }))
    }

    /// The longest command since then, in milliseconds; 0 if none was slow enough to be kept.
    pub async fn slowest_ms(&self) -> Result<f64, Failure> {
        let since = entries(self.scratch).await?.into_iter().filter(|(id, _)| *id > self.last);
        Ok(since.map(|(_, us)| us).max().unwrap_or(0) as f64 / 1_000.0)
    }
}

/// The number of each entry, and the duration of its command in microseconds.
async fn entries(scratch: &Scratch) -> Result<Vec<(i64, i64)>, Failure> {
    let entries = scratch.ask(&["SLOWLOG", "GET", &ENTRIES.to_string()]).await?;
    let entries = entries.list().ok_or_else(|| Failure::bug("a slow log is a list"))?;
    Ok(entries.iter().filter_map(entry).collect())
}

fn entry(value: &RespValue) -> Option<(i64, i64)> {
    match value.list()? {
        [RespValue::Int(id), _, RespValue::Int(us), ..] => Some((*id, *us)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_says_its_number_and_how_long_it_took() {
        let of = |fields| entry(&RespValue::List(fields));
        let int = RespValue::Int;
        let long = vec![int(7), int(1_700_000_000), int(20_500), RespValue::Nil];
        assert_eq!(of(long), Some((7, 20_500)));
        assert_eq!(of(vec![int(7)]), None);
        assert_eq!(entry(&RespValue::Nil), None);
    }
}
