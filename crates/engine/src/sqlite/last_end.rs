//! How the last process left its folder. With `everysec` the end of the system may take answered grants of the last
//! second with it, and their holders go on: nothing that was lent is lent again before they are over.

use rusqlite::Connection;
use tenure_core::time::{Moment, Span};

use crate::sqlite::small_facts::{fact, put_fact};

/// The key of the system's present run, in the table of small facts.
pub(crate) const BOOT: &str = "boot";
/// The key of the last recovery: its end, and the ttl that it waits for, both in microseconds.
const RECOVERY: &str = "recovery";

/// What names a run of the system: it is another after each start of the machine. `None`: it has no name here.
fn boot() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(name.trim().to_owned())
}

/// True if the system has ended since the last call of this, as far as is known. What a process has written outlives
/// the process, but not the system.
pub(crate) fn system_has_ended(conn: &Connection) -> rusqlite::Result<bool> {
    let (now, before) = (boot(), fact(conn, BOOT)?);
    put_fact(conn, BOOT, now.as_deref())?;
    Ok(now.is_none() || now != before)
}

/// The time for which a start recovers; `None`: no grant was lost. `ttl`: the longest of any lease that may have been
/// lost. A recovery that was not over when its process ended begins again.
pub(crate) fn recovers(
    conn: &Connection,
    lost: bool,
    ttl: Span,
    now: Moment,
) -> rusqlite::Result<Option<Span>> {
    let (until, known) = fact(conn, RECOVERY)?.and_then(|text| read(&text)).unwrap_or_default();
    let ttl = ttl.max(known);
    if ttl == Span::ZERO || !(lost || until > now) {
        return Ok(None);
    }
    put_fact(conn, RECOVERY, Some(&format!("{} {}", now.plus(ttl).us(), ttl.us())))?;
    Ok(Some(ttl))
}

fn read(text: &str) -> Option<(Moment, Span)> {
    let (until, ttl) = text.split_once(' ')?;
    Some((Moment::from_us(until.parse().ok()?), Span::from_us(ttl.parse().ok()?)))
}
