//! Fills in the payloads and data that a lease call shows of its grants: from memory, from rows that were read while
//! the grant was appended, or from rows that are read now.
//!
//! It must never show anything that may not be durable.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::Connection;
use tenure_core::job::{JobState, JobView};
use tenure_core::lease::{LeaseView, LeasedResource};
use tenure_core::names::{Namespace, PoolName, ResourceId};
use tenure_core::secret::Json;
use tenure_engine_api::CallError;
use tenure_machine::facts::Grant;
use tenure_machine::{Seq, Stands, StoredJob};

use crate::bodies::Body;
use crate::calls::show;
use crate::seal::{ContentPlace, Seal};
use crate::shared::Shared;
use crate::sqlite::read::ahead::{Newest, ReadAhead, RowsAhead};
use crate::sqlite::read::readers::Haste;
use crate::sqlite::rows::{self, Data, FoundJob};
use crate::sqlite::scan::damage::damaged;

/// A lease that cannot be handed out, and its damaged part.
pub(super) type Damaged = (LeaseView, DamagedPart);

/// Grants with their payloads and data, and the grants that cannot be read.
pub(super) async fn filled(
    shared: &Shared,
    namespace: &Namespace,
    grants: Vec<Grant>,
    lives: Vec<Option<Vec<u8>>>,
    ahead: Option<ReadAhead>,
) -> Result<(Vec<LeaseView>, Vec<Damaged>), CallError> {
    if grants.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let seqs: Vec<Option<Seq>> = grants
        .iter()
        .zip(&lives)
        .map(|(grant, life)| grant.seq.filter(|_| life.is_some()))
        .collect();
    let mut ahead = match ahead {
        Some(ahead) => ahead.rows().await,
        None => RowsAhead::default(),
    };
    let mut bodies = shared.bodies.take(&seqs);
    let (mut unread, mut reads_more, mut shown) = (Vec::new(), false, Newest::Grant);
    let mut leases = Vec::with_capacity(grants.len());
    for (n, (Grant { mut lease, seq }, life)) in grants.into_iter().zip(lives).enumerate() {
        let mut missing = None;
        if let Some(seq) = seq {
            match (bodies.get_mut(n).and_then(Option::take), life) {
                (Some(body), Some(life)) => {
                    let view = fresh_view(shared, seq, body, life);
                    lease.job = Some(Box::new(view.ok_or_else(|| show::unreadable(seq))?));
                }
                (_, life) => {
                    lease.job =
                        life.as_deref().and_then(|life| ahead.take(seq, life)).map(Box::new);
                    match lease.job {
                        Some(_) => shown = ahead.newest(),
                        None => missing = Some((seq, life)),
                    }
                }
            }
        }
        let known = known_data(shared, namespace, &mut lease.resources);
        let has_no_life = matches!(missing, Some((_, None)));
        reads_more |= has_no_life || !known;
        if missing.is_some() || !known {
            unread.push(Unread { lease: n, job: missing, lacks_data: !known });
        }
        leases.push(lease);
    }
    if unread.is_empty() {
        may_be_shown(shared, shown).await?;
        return Ok((leases, Vec::new()));
    }
    let (ns, seal) = (namespace.clone(), shared.seal.clone());
    let changes = shared.data.changes();
    let looked: Vec<usize> = unread.iter().map(|unread| unread.lease).collect();
    // Jobs are shown with their lives as of the grant. A repeat of the call reads the lives, so it needs all rows.
    let needed = if reads_more {
        shared.answered.load(Ordering::Acquire)
    } else {
        shared.hand_off.needed_for(seqs.into_iter().flatten())
    };
    let read = shared
        .read_rows_of(needed, Haste::Now, move |conn| read(conn, (&ns, &seal), leases, unread))
        .await;
    let ReadLeases { leases: read, newest } = read?;
    may_be_shown(shared, shown.max(newest)).await?;
    let looked = looked.into_iter().filter_map(|n| read.get(n));
    for (lease, _) in looked.filter(|(_, whole)| matches!(whole, Whole::Yes)) {
        for resource in &lease.resources {
            let key = (namespace.clone(), resource.pool.clone(), resource.id.clone());
            shared.data.found(changes, key, resource.data.clone());
        }
    }
    let (mut leases, mut damaged) = (Vec::with_capacity(read.len()), Vec::new());
    for (lease, whole) in read {
        match whole {
            Whole::Yes => leases.push(lease),
            // The lease ended and its job was forgotten during this read.
            Whole::Gone => {}
            Whole::Damaged(part) => damaged.push((lease, part)),
        }
    }
    Ok((leases, damaged))
}

/// Waits until this may be answered, unless it is already known to be durable.
async fn may_be_shown(shared: &Shared, newest: Newest) -> Result<(), CallError> {
    let is_durable = match newest {
        Newest::Grant => true,
        Newest::Commit(number) => shared.journal_has(number),
        Newest::Any => false,
    };
    if is_durable { Ok(()) } else { shared.read_may_be_answered().await }
}

/// Fills in known data; true if that is all data.
fn known_data(shared: &Shared, namespace: &Namespace, resources: &mut [LeasedResource]) -> bool {
    let mut all = true;
    for resource in resources {
        let key = (namespace.clone(), resource.pool.clone(), resource.id.clone());
        match shared.data.get(&key) {
            Some(data) => resource.data = data,
            None => all = false,
        }
    }
    all
}

/// A job in its first run, as of its grant.
fn fresh_view(shared: &Shared, seq: Seq, body: Body, life: Vec<u8>) -> Option<JobView> {
    let Body { new, shape } = body;
    let (_, id, content) = Arc::unwrap_or_clone(new);
    let job = StoredJob {
        seq,
        id,
        kind: content.kind,
        state: JobState::Running,
        shape: shape.to_vec(),
        life,
        payload: Some(shared.seal.open_json(&ContentPlace::Payload(seq), content.payload).ok()?),
        labels: content.labels,
        traceparent: content.traceparent,
        result: None,
        error: None,
        errors: Vec::new(),
        progress: None,
    };
    job.view(Stands::default())
}

/// The damaged part of a lease.
pub(super) enum DamagedPart {
    /// Its job, and the sentence that reports it.
    Job(Seq, String),
    Resource(PoolName, ResourceId),
}

/// Whether a lease could be filled.
enum Whole {
    Yes,
    Gone,
    Damaged(DamagedPart),
}

/// The parts of a lease that only rows have.
struct Unread {
    /// The lease's place in the answer.
    lease: usize,
    /// The number of its job, and the life as of the grant.
    job: Option<(Seq, Option<Vec<u8>>)>,
    /// The data of some of its resources is not known.
    lacks_data: bool,
}

/// Leases as they were read.
struct ReadLeases {
    leases: Vec<(LeaseView, Whole)>,
    newest: Newest,
}

fn read(
    conn: &Connection,
    (namespace, seal): (&Namespace, &Seal),
    leases: Vec<LeaseView>,
    unread: Vec<Unread>,
) -> rusqlite::Result<ReadLeases> {
    let (mut others, mut has_other_lives) = (false, false);
    let mut leases: Vec<_> = leases.into_iter().map(|lease| (lease, Whole::Yes)).collect();
    for Unread { lease: n, job, lacks_data } in unread {
        let Some((lease, whole)) = leases.get_mut(n) else { continue };
        for resource in lease.resources.iter_mut().filter(|_| lacks_data) {
            others = true;
            let key = (namespace.clone(), resource.pool.clone(), resource.id.clone());
            match rows::data(conn, seal, &key)? {
                Data::Known(data) => resource.data = data,
                Data::Gone => resource.data = Json::null(),
                Data::Unreadable => {
                    let (pool, id) = (resource.pool.clone(), resource.id.clone());
                    *whole = Whole::Damaged(DamagedPart::Resource(pool, id));
                }
            }
        }
        let Some((seq, life)) = job else { continue };
        let damaged =
            |id: Option<&str>, part| Whole::Damaged(DamagedPart::Job(seq, damaged(seq, id, part)));
        let row = match rows::job(conn, (namespace, seal), seq, true)? {
            FoundJob::Job(row) => *row,
            FoundJob::Gone => {
                others = true;
                *whole = Whole::Gone;
                continue;
            }
            FoundJob::Unreadable => {
                *whole = damaged(None, "row");
                continue;
            }
        };
        match row.unreadable {
            Some("row") => {
                *whole = damaged(None, "row");
                continue;
            }
            Some("payload") => {
                *whole = damaged(Some(row.job.id.as_str()), "payload");
                continue;
            }
            // The job can run without its last error, progress and result.
            _ => {}
        }
        others |= life.is_none();
        has_other_lives |= life.as_ref() != Some(&row.job.life);
        let view = match life {
            Some(life) => row.into_granted(&life),
            None => row.shown().view(Stands::default()),
        };
        match view {
            Some(view) => lease.job = Some(Box::new(view)),
            None => *whole = damaged(None, "row"),
        }
    }
    let newest = match (others, has_other_lives) {
        (true, _) => Newest::Any,
        (false, true) => Newest::commit(conn)?,
        (false, false) => Newest::Grant,
    };
    Ok(ReadLeases { leases, newest })
}
