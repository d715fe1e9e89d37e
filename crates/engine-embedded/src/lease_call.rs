//! A lease call from the caller's side: it may wait, and its caller may go away at any moment.
//!
//! Until the answer is out of here a guard watches: if the call is dropped, its wait ends, and what
//! was granted to it is given back at once. No ttl passes, and nothing counts as lost.

use std::sync::Arc;

use rusqlite::Connection;
use tenure_core::job::{JobState, JobView};
use tenure_core::lease::{Fence, LeaseView, Leased as LeasedAnswer, LeasedResource};
use tenure_core::machine::facts::Grant;
use tenure_core::machine::{Seq, StoredJob, TakerId};
use tenure_core::names::Namespace;
use tenure_core::requests::Lease;
use tenure_core::secret::Json;
use tenure_engine::{CallError, Fault};
use tokio::sync::oneshot;

use crate::batch::{Answer, Leased};
use crate::bodies::Body;
use crate::inbox::Ask;
use crate::rows;
use crate::shared::Shared;
use crate::show;

type Receiver = oneshot::Receiver<Result<Answer, CallError>>;

/// Gives back what nobody takes.
struct Guard {
    shared: Arc<Shared>,
    namespace: Namespace,
    taker: TakerId,
    /// The answer, as long as it is not here.
    receiver: Option<Receiver>,
    /// What was granted, as long as it is not handed out.
    fresh: Vec<Fence>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut fresh = std::mem::take(&mut self.fresh);
        if let Some(receiver) = &mut self.receiver {
            // After this, whoever sends sees that nobody receives; what was sent before is here.
            receiver.close();
            match receiver.try_recv() {
                Ok(Ok(Answer::Leased(leased))) => fresh = leased.fresh,
                Ok(_) => return,
                Err(_) => self.shared.tell(&self.namespace, Ask::DropWait(self.taker)),
            }
        }
        if !fresh.is_empty() {
            self.shared.tell(&self.namespace, Ask::Undo(fresh));
        }
    }
}

/// One lease call.
pub(crate) async fn lease(
    shared: Arc<Shared>,
    namespace: Namespace,
    lease: Lease,
) -> Result<LeasedAnswer, CallError> {
    let taker = shared.next_taker();
    let receiver = shared.send(&namespace, Ask::Lease(Box::new(lease), taker))?;
    let mut guard = Guard { shared, namespace, taker, receiver: Some(receiver), fresh: Vec::new() };
    let answer = match &mut guard.receiver {
        Some(receiver) => receiver.await,
        None => return Err(guard.shared.gone()),
    };
    guard.receiver = None;
    let Leased { granted, lives, fresh } = match answer {
        Ok(Ok(Answer::Leased(leased))) => leased,
        Ok(Ok(_)) => return Err(Fault::Broken("a lease was not answered".to_owned()).into()),
        Ok(Err(no)) => return Err(no),
        Err(_) => return Err(guard.shared.gone()),
    };
    guard.fresh = fresh;
    let mut answer = granted.answer;
    answer.leases = filled(&guard.shared, &guard.namespace, granted.grants, lives).await?;
    guard.fresh.clear();
    Ok(answer)
}

/// Grants with their payloads and data.
async fn filled(
    shared: &Shared,
    namespace: &Namespace,
    grants: Vec<Grant>,
    lives: Vec<Option<Vec<u8>>>,
) -> Result<Vec<LeaseView>, CallError> {
    if grants.is_empty() {
        return Ok(Vec::new());
    }
    let seqs: Vec<Option<Seq>> = grants
        .iter()
        .zip(&lives)
        .map(|(grant, life)| grant.seq.filter(|_| life.is_some()))
        .collect();
    let mut bodies = shared.bodies.take(&seqs);
    let mut unread = Vec::new();
    let mut leases = Vec::with_capacity(grants.len());
    for (n, (Grant { mut lease, seq }, life)) in grants.into_iter().zip(lives).enumerate() {
        let mut missing = None;
        if let Some(seq) = seq {
            match (bodies.get_mut(n).and_then(Option::take), life) {
                (Some(body), Some(life)) => {
                    lease.job =
                        Some(fresh_view(seq, body, life).ok_or_else(|| show::unreadable(seq))?)
                }
                (_, life) => missing = Some((seq, life)),
            }
        }
        let known = known_data(shared, namespace, &mut lease.resources);
        if missing.is_some() || !known {
            unread.push((n, missing));
        }
        leases.push(lease);
    }
    if unread.is_empty() {
        return Ok(leases);
    }
    let ns = namespace.clone();
    let changes = shared.data.changes();
    let looked: Vec<usize> = unread.iter().map(|(n, _)| *n).collect();
    let read = shared.read(move |conn| read(conn, &ns, leases, unread)).await?;
    let looked = looked.into_iter().filter_map(|n| read.get(n));
    for resource in looked.flat_map(|(lease, _)| &lease.resources) {
        let key = (namespace.clone(), resource.pool.clone(), resource.id.clone());
        shared.data.found(changes, key, resource.data.clone());
    }
    read.into_iter()
        .filter_map(|(lease, whole)| match whole {
            Whole::Yes => Some(Ok(lease)),
            // The lease ended and its job was forgotten while this was read.
            Whole::Gone => None,
            Whole::Unreadable(seq) => Some(Err(show::unreadable(seq))),
        })
        .collect()
}

/// Fills in what is known; whether that is all.
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
fn fresh_view(seq: Seq, body: Body, life: Vec<u8>) -> Option<JobView> {
    let Body { id, shape, content } = body;
    let job = StoredJob {
        seq,
        id,
        kind: content.kind,
        state: JobState::Running,
        shape: shape.to_vec(),
        life,
        payload: Some(content.payload),
        labels: content.labels,
        result: None,
        error: None,
        errors: Vec::new(),
        progress: None,
    };
    job.view(JobState::Running)
}

/// Whether a lease could be filled.
enum Whole {
    Yes,
    Gone,
    Unreadable(Seq),
}

/// What of a lease is in rows: the job's number, and its life as of the grant.
type Missing = (usize, Option<(Seq, Option<Vec<u8>>)>);

fn read(
    conn: &Connection,
    namespace: &Namespace,
    leases: Vec<LeaseView>,
    unread: Vec<Missing>,
) -> rusqlite::Result<Vec<(LeaseView, Whole)>> {
    let mut leases: Vec<_> = leases.into_iter().map(|lease| (lease, Whole::Yes)).collect();
    for (n, job) in unread {
        let Some((lease, whole)) = leases.get_mut(n) else { continue };
        for resource in &mut lease.resources {
            let data = show::data(conn, namespace, &resource.pool, &resource.id)?;
            resource.data = data.unwrap_or_else(Json::null);
        }
        let Some((seq, life)) = job else { continue };
        let Some(mut row) = rows::job(conn, namespace, seq, true)? else {
            *whole = Whole::Gone;
            continue;
        };
        if let Some(life) = life {
            // The row may have moved on since; the holder is told what it was granted.
            row.life = life;
            row.state = JobState::Running;
        }
        match row.view(JobState::Ready) {
            Some(view) => lease.job = Some(view),
            None => *whole = Whole::Unreadable(seq),
        }
    }
    Ok(leases)
}
