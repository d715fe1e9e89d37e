//! The audit that reads everything: all rows of a namespace, with payloads and results, against their
//! checksums, and the file itself by SQLite's own check.
//!
//! Its work grows with the data; its thread delays only other reads.

use rusqlite::{Connection, params};
use tenure_core::names::{Namespace, PoolName, ResourceId};
use tenure_core::requests::Audited;
use tenure_engine_api::CallError;
use tenure_machine::Seq;
use tenure_machine::rows::Kind;

use crate::seal::Seal;
use crate::shared::Shared;
use crate::sqlite::read::event_pages;
use crate::sqlite::rows::{self, Data, FoundJob, is_damage, or_none};
use crate::sqlite::scan::damage::{UNREADABLE, damaged};
use crate::sqlite::scan::walk::walk;
use crate::sqlite::sums::row_sum;
use crate::sqlite::write::streams::{self, StoredStream};

/// The number of sentences of SQLite that are reported.
const SAID_MAX: usize = 20;

/// Findings of the audit; jobs by their numbers.
#[derive(Default)]
struct DeepFindings {
    checked: u64,
    faults: Vec<String>,
    jobs: Vec<(Seq, String)>,
}

/// Adds the damage to an audit. Damaged jobs go to `damage`, which names each once.
pub(crate) async fn read_all(
    shared: &Shared,
    namespace: &Namespace,
    audit: &mut Audited,
) -> Result<(), CallError> {
    let (ns, seal) = (namespace.clone(), shared.seal.clone());
    let looked = shared.read(move |conn| look(conn, (&ns, &seal))).await?;
    for (seq, sentence) in looked.jobs {
        shared.damage.note(Some(namespace), seq, sentence);
    }
    audit.checked += looked.checked;
    audit.faults.extend(looked.faults);
    Ok(())
}

fn look(conn: &Connection, of: (&Namespace, &Seal)) -> rusqlite::Result<DeepFindings> {
    let mut looked = DeepFindings::default();
    // Rows are deleted meanwhile, but a read sees a single state.
    look_all(conn, of, &mut looked).map(|()| looked)
}

fn look_all(
    conn: &Connection,
    (namespace, seal): (&Namespace, &Seal),
    looked: &mut DeepFindings,
) -> rusqlite::Result<()> {
    let mut whole = conn.prepare(&format!("PRAGMA integrity_check({SAID_MAX})"))?;
    let said = whole.query_map([], |row| row.get::<_, String>(0))?;
    for sentence in said {
        match sentence {
            Ok(ok) if ok == "ok" => {}
            Ok(sentence) => looked.faults.push(format!("the file: {sentence}")),
            Err(why) if is_damage(&why) => {
                looked.faults.push(format!("the file: {why}"));
                break;
            }
            Err(why) => return Err(why),
        }
    }
    let mut jobs = Vec::new();
    walk(conn, |walked| -> rusqlite::Result<()> {
        let seq = rows::seq_of(walked.seq);
        let whole = match (&walked.job, &walked.life) {
            (Some(job), Some(life)) => job.is_whole(&life.namespace),
            _ => false,
        };
        if walked.namespace.as_deref().is_none_or(|of| of == namespace.as_str()) {
            jobs.push((seq, whole));
        }
        Ok(())
    })?;
    for (seq, whole) in jobs {
        looked.checked += 1;
        let part =
            if whole { damaged_part(conn, (namespace, seal), seq)? } else { Some((None, "row")) };
        if let Some((id, part)) = part {
            looked.jobs.push((seq, damaged(seq, id.as_deref(), part)));
        }
    }
    look_at_rows(conn, (namespace, seal), looked)
}

/// The damaged part of a job, and its id if it is known.
fn damaged_part(
    conn: &Connection,
    (namespace, seal): (&Namespace, &Seal),
    seq: Seq,
) -> rusqlite::Result<Option<(Option<String>, &'static str)>> {
    let row = match rows::job(conn, (namespace, seal), seq, true)? {
        FoundJob::Job(row) => row,
        FoundJob::Gone => return Ok(None),
        FoundJob::Unreadable => return Ok(Some((None, "row"))),
    };
    let id = Some(row.job.id.to_string());
    if let Some(part) = row.unreadable {
        return Ok(Some((id.filter(|_| part != "row"), part)));
    }
    let past = row.job.errors.iter().any(|error| error.attempt == 0 && error.error == UNREADABLE);
    Ok(past.then_some((id, "list of errors")))
}

/// Checks that the entries of the event log are as written, and that its row has their totals.
fn look_at_events(
    conn: &Connection,
    (namespace, seal): (&Namespace, &Seal),
    looked: &mut DeepFindings,
) -> rusqlite::Result<()> {
    let StoredStream { stands, bytes } = streams::stream(conn, namespace)?;
    let mut all = conn.prepare(
        "SELECT first, last, sum, body, length(body) FROM event WHERE ns = ?1 ORDER BY last",
    )?;
    let mut found = all.query(params![namespace.as_str()])?;
    let (mut next, mut kept) = (stands.first, 0);
    while let Some(row) = found.next()? {
        looked.checked += 1;
        let (first, last) = (row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64);
        let events = or_none(event_pages::entry(row, namespace))?.flatten();
        if !events.is_some_and(|mut events| seal.open_events(namespace, &mut events)) {
            looked.faults.push(format!("events {first} to {last} are not what was written"));
        }
        if first != next {
            looked.faults.push(format!("events {next} to {first} are missing"));
        }
        (next, kept) = (last + 1, kept + row.get::<_, i64>(4)? as u64);
    }
    if (next, kept) != (stands.last + 1, bytes) {
        looked.faults.push(format!(
            "the stream of events ends at {} with {bytes} bytes, and its entries at {} with {kept}",
            stands.last,
            next - 1
        ));
    }
    Ok(())
}

/// Checks the rows that are not jobs, and the data of resources.
fn look_at_rows(
    conn: &Connection,
    (namespace, seal): (&Namespace, &Seal),
    looked: &mut DeepFindings,
) -> rusqlite::Result<()> {
    let ns = namespace.as_str();
    let mut all = conn.prepare("SELECT kind, key, value, sum FROM row WHERE ns = ?1")?;
    let mut found = all.query(params![ns])?;
    while let Some(row) = found.next()? {
        looked.checked += 1;
        let read = || -> rusqlite::Result<Option<String>> {
            let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
            let (kind, key, value) = (text(0)?, text(1)?, text(2)?);
            let is_as_written =
                row.get::<_, Option<i64>>(3)? == Some(row_sum(ns, kind, key, value));
            let opens = Kind::parse(kind)
                .is_none_or(|kind| seal.open_row(namespace, kind, key, value).is_ok());
            let right = is_as_written && opens;
            Ok((!right).then(|| format!("the row of {kind} {key:?} is not what was written")))
        };
        let fault = or_none(read())?;
        looked.faults.extend(fault.unwrap_or_else(|| Some("a row is not text".to_owned())));
    }
    look_at_events(conn, (namespace, seal), looked)?;
    let mut all = conn.prepare("SELECT pool, id FROM resource_data WHERE ns = ?1")?;
    let mut found = all.query(params![ns])?;
    while let Some(row) = found.next()? {
        looked.checked += 1;
        let (pool, id): (String, String) = (row.get(0)?, row.get(1)?);
        let names = (PoolName::known(&pool), ResourceId::known(&id));
        let whole = match names {
            (Ok(pool), Ok(id)) => {
                let key = (namespace.clone(), pool, id);
                !matches!(rows::data(conn, seal, &key)?, Data::Unreadable)
            }
            _ => false,
        };
        if !whole {
            looked.faults.push(format!(
                "the data of resource {id:?} of pool {pool:?} is {UNREADABLE}: it is not what was \
                 written"
            ));
        }
    }
    Ok(())
}
