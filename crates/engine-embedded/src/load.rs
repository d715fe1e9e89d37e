//! Rows are brought up to the journal that they are a copy of, before anything is read from them.
//!
//! It must never take the absence of entries for their end: a load ends only when the journal says that it ends where
//! the rows do.

use std::time::Duration;

use rusqlite::Connection;
use tenure_journal::{Append, Appended, BadEntry, Journal, Position, Reply};

use crate::commit::Numbers;
use crate::error::OpenError;
use crate::folder::Folder;
use crate::schema::store_error;
use crate::writer::{ApplyError, Writer};

/// How long one check may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most repeats of a check that may not have arrived.
const TRIES: u32 = 8;

/// Applies all entries that the rows lack; answers the numbers of the last.
pub(crate) fn load(
    conn: &Connection,
    folder: &Folder,
    journal: &dyn Journal,
    here: Numbers,
    events_bytes: u64,
) -> Result<Numbers, OpenError> {
    let away = |why: &dyn std::fmt::Display| OpenError::Journal(why.to_string());
    let other = |why| OpenError::OtherRows { folder: folder.path().to_owned(), why };
    let writer = Writer::new(conn, here, events_bytes);
    let mut writer = writer.map_err(|why| store_error(folder, why))?;
    loop {
        let end = writer.position();
        let entries = journal.read(end.number).map_err(|why| away(&why))?;
        if !entries.is_empty() {
            writer.apply(&entries).map_err(|why| match why {
                ApplyError::Store(why) => store_error(folder, why),
                ApplyError::Entry { why: BadEntry::OtherPast { before }, .. }
                    if before == here.commit =>
                {
                    other(format!("entry {before} is another there"))
                }
                why => away(&why),
            })?;
            if writer.position() == end {
                return Err(away(&format!("it has no entry {}", end.number + 1)));
            }
            continue;
        }
        match check(journal, end) {
            Appended::Done => return Ok(writer.numbers()),
            Appended::At(has) if has > end.number => {}
            Appended::At(has) if has < end.number => {
                let end = end.number;
                return Err(other(format!("they end at entry {end}, and the journal at {has}")));
            }
            Appended::At(same) => return Err(other(format!("entry {same} is another there"))),
            Appended::Deposed => return Err(away(&"another process owns the store")),
            Appended::Moved => return Err(away(&"it is not the one that was opened")),
            Appended::Full => return Err(away(&"there is no room in it")),
            Appended::Ended => return Err(away(&"it was closed")),
            Appended::Unsure(why) => return Err(away(&why)),
        }
    }
}

fn check(journal: &dyn Journal, end: Position) -> Appended {
    let once = || {
        let reply = Reply::to(journal, Append::Nothing(end));
        reply.wait(PATIENCE).unwrap_or(Appended::Unsure("it gives no answer".to_owned()))
    };
    let mut answer = once();
    for _ in 1..TRIES {
        if !matches!(answer, Appended::Unsure(_)) {
            break;
        }
        answer = once();
    }
    answer
}
