//! Reads pages of events from the rows, portion by portion.

use rusqlite::{Connection, params};
use tenure_core::bounds::EVENTS_PORTION;
use tenure_core::events::{Event, EventId, Gap, GapWhy, Happened};
use tenure_core::names::Namespace;
use tenure_core::requests::{EventPage, EventsSince};
use tenure_machine::decode_events;

use crate::seal::Seal;
use crate::sqlite::read::event_jobs::EventsOfJob;
use crate::sqlite::rows::or_none;
use crate::sqlite::sums::entry_sum;
use crate::sqlite::write::streams;

/// The place where a portion ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PortionEnd {
    /// At the end of the stream.
    Stream,
    /// At a full page, or before a gap.
    Page,
    /// At the bound of a portion: there is more.
    Portion,
}

/// Fills a page further, by at most the events that one use of a reader may take.
pub(crate) fn portion(
    conn: &Connection,
    (namespace, seal): (&Namespace, &Seal),
    since: EventsSince,
    mut page: EventPage,
) -> rusqlite::Result<(EventPage, PortionEnd)> {
    let stands = streams::stream(conn, namespace)?.stands;
    let (after, gap) = match since {
        EventsSince::Now => (stands.last, None),
        EventsSince::First => (stands.first - 1, None),
        EventsSince::Id(after) => stands.resume(after),
    };
    if gap.is_some() && page.has_begun() {
        // The oldest events were dropped meanwhile: the next call reports the gap.
        return Ok((page, PortionEnd::Page));
    }
    let id = |number| EventId { life: stands.life, number };
    page.read.next = id(after);
    page.read.gap = page.read.gap.take().or(gap);
    let sql = "SELECT first, last, sum, body FROM event WHERE ns = ?1 AND last > ?2 ORDER BY last";
    let mut entries = conn.prepare_cached(sql)?;
    let mut of_job = page.job().map(EventsOfJob::new);
    let mut rows = entries.query(params![namespace.as_str(), after as i64])?;
    let mut looked = 0;
    while let Some(row) = rows.next()? {
        // An entry is read whole, so that it is decoded once.
        if looked >= EVENTS_PORTION || of_job.as_ref().is_some_and(EventsOfJob::is_spent) {
            return Ok((page, PortionEnd::Portion));
        }
        let (first, last) = (row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64);
        let Some(mut events) = or_none(entry(row, namespace))?.flatten() else {
            // Unreadable events are reported like dropped ones, and never skipped in silence.
            let read = &mut page.read;
            if read.next.number >= first && read.gap.is_none() || read.items.is_empty() {
                let from = read.gap.as_ref().map_or(read.next, |gap| gap.after);
                let (next, why) = (id(last + 1), GapWhy::Dropped);
                read.gap = Some(Gap { after: from, first: next, why });
                read.next = id(last);
                continue;
            }
            return Ok((page, PortionEnd::Page));
        };
        seal.open_events(namespace, &mut events);
        let passed = (page.read.next.number + 1).saturating_sub(first) as usize;
        for (number, happened) in (first..).zip(events).skip(passed) {
            if page.left() == 0 {
                return Ok((page, PortionEnd::Page));
            }
            page.look_at(Event { id: id(number), happened });
            looked += 1;
        }
        if let Some(of_job) = &mut of_job {
            let at = of_job.pass(conn, namespace, last)?;
            if at > last {
                page.read.next = id(at);
                drop(rows);
                rows = entries.query(params![namespace.as_str(), at as i64])?;
            }
        }
    }
    Ok((page, PortionEnd::Stream))
}

/// The events of an entry (its first columns: first, last, sum, body); `None` if they are not as written.
pub(crate) fn entry(
    row: &rusqlite::Row<'_>,
    namespace: &Namespace,
) -> rusqlite::Result<Option<Vec<Happened>>> {
    let (first, last): (i64, i64) = (row.get(0)?, row.get(1)?);
    let body = row.get_ref(3)?.as_blob()?;
    let is_right = row.get::<_, i64>(2)? == entry_sum(namespace.as_str(), first, last, body);
    let events = decode_events(body).filter(|events| events.len() as i64 == last - first + 1);
    Ok(events.filter(|_| is_right))
}
