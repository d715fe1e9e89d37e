//! How the last process left its folder. With `everysec` the end of the system may take answered grants of the last
//! second with it, and their holders go on: nothing that was lent is lent again before they are over.

use rusqlite::Connection;
use tenure_core::time::{Moment, Span};

use crate::sqlite::small_facts::{fact, put_fact};
use crate::sqlite::write::streams;

/// The key of the system's present run, in the table of small facts.
const BOOT: &str = "boot";
/// The key of the last recovery: its end, and the ttl that it waits for, both in microseconds.
const RECOVERY: &str = "recovery";

/// What names a run of the system: it is another after each start of the machine. `None`: it has no name here.
fn boot() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(name.trim().to_owned())
}

/// True if the system has ended since the last process noted its run, as far as is known. The writes of a process
/// outlive the process, but not the system.
fn system_has_ended(conn: &Connection) -> rusqlite::Result<bool> {
    let (now, before) = (boot(), fact(conn, BOOT)?);
    Ok(now.is_none() || now != before)
}

/// The longest ttl of a lease that may have been lost; `None`: no grant was lost. `accepted`: answered changes are
/// missing. `ttl`: the longest that is known.
pub(crate) fn lost(
    conn: &Connection,
    accepted: bool,
    ttl: Span,
    now: Moment,
) -> rusqlite::Result<Option<Span>> {
    let lost = accepted || streams::was_left_unsynced(conn)? && system_has_ended(conn)?;
    let (until, known) = fact(conn, RECOVERY)?.and_then(|text| read(&text)).unwrap_or_default();
    let ttl = ttl.max(known);
    // A recovery that was not over when its process ended begins again.
    Ok((lost || until > now).then_some(ttl).filter(|ttl| *ttl > Span::ZERO))
}

/// Called at a start, with what was [`lost`] before it.
pub(crate) fn begin(conn: &Connection, lost: Option<Span>, now: Moment) -> rusqlite::Result<()> {
    put_fact(conn, BOOT, boot().as_deref())?;
    if let Some(ttl) = lost {
        put_fact(conn, RECOVERY, Some(&format!("{} {}", now.plus(ttl).us(), ttl.us())))?;
    }
    Ok(())
}

fn read(text: &str) -> Option<(Moment, Span)> {
    let (until, ttl) = text.split_once(' ')?;
    Some((Moment::from_us(until.parse().ok()?), Span::from_us(ttl.parse().ok()?)))
}
