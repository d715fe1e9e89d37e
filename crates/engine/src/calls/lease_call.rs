//! A lease call from the caller's side: it may wait, and its caller may go away at any moment.
//!
//! Until the answer is out of here a guard watches: if the call is dropped, its wait ends, and what
//! was granted to it is given back at once. No ttl passes, and nothing counts as lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::Connection;
use tenure_core::job::{JobState, JobView};
use tenure_core::lease::{
    Ending, Fence, LeaseView, Leased as LeasedAnswer, LeasedResource, ResourceVerdict, SettleItem,
    Verdict,
};
use tenure_core::names::{Namespace, PoolName, ResourceId};
use tenure_core::requests::{Lease, Request, Settle, Settled};
use tenure_core::secret::Json;
use tenure_machine::facts::Grant;
use tenure_machine::{Command, Seq, Stands, StoredJob, TakerId};
use tenure_seam::{CallError, Fault};
use tokio::sync::oneshot;

use crate::batch::{Answer, Leased};
use crate::bodies::Body;
use crate::calls::show;
use crate::file::commit::Numbers;
use crate::file::damage::UNREADABLE;
use crate::file::damage::damaged;
use crate::file::readers::Haste;
use crate::file::rows::{self, Data, FoundJob};
use crate::inbox::Ask;
use crate::shared::{Receiver, Shared};

/// Gives back what nobody takes.
struct GiveBack {
    shared: Arc<Shared>,
    namespace: Namespace,
    taker: TakerId,
    /// The answer, as long as it is not here.
    receiver: Option<Receiver>,
    /// What was granted, as long as it is not handed out.
    fresh: Vec<Fence>,
}

impl Drop for GiveBack {
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
    taken(GiveBack { shared, namespace, taker, receiver: Some(receiver), fresh: Vec::new() }).await
}

/// Settles, and asks for leases in the same step. The settles are answered, and durable, whatever becomes of the rest.
pub(crate) async fn settle_and_lease(
    shared: Arc<Shared>,
    namespace: Namespace,
    settle: Settle,
    lease: Box<Lease>,
) -> Result<Settled, CallError> {
    let taker = shared.next_taker();
    let (reply, receiver) = oneshot::channel();
    let settling = shared.send(&namespace, Ask::SettleAndLease(settle, lease, taker, reply))?;
    let mut guard = GiveBack {
        shared: shared.clone(),
        namespace: namespace.clone(),
        taker,
        receiver: Some(receiver),
        fresh: Vec::new(),
    };
    let answer = settling.await.unwrap_or_else(|_| Err(shared.gone()));
    if answer.is_err() {
        // Nothing was asked for.
        guard.receiver = None;
    }
    let settled = show::settled(&shared, &namespace, answer?).await?;
    CallError::after_settles(settled, taken(guard).await)
}

/// The answer of a lease call that was made.
async fn taken(mut guard: GiveBack) -> Result<LeasedAnswer, CallError> {
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
    let (leases, damaged) = filled(&guard.shared, &guard.namespace, granted.grants, lives).await?;
    answer.leases = leases;
    if !damaged.is_empty() {
        end_damaged(&guard.shared, &guard.namespace, damaged).await?;
    }
    guard.fresh.clear();
    Ok(answer)
}

/// A lease that cannot be handed out, and what of it is damaged.
type Damaged = (LeaseView, DamagedPart);

/// Ends leases that cannot be handed out, so that nobody waits behind them: a job that cannot be read
/// has failed for good, and a resource whose data cannot be read is banned, while its job goes on with
/// another.
async fn end_damaged(
    shared: &Shared,
    namespace: &Namespace,
    damaged: Vec<Damaged>,
) -> Result<(), CallError> {
    let mut settle = Vec::with_capacity(damaged.len());
    for (lease, part) in damaged {
        let Some(id) = lease.lease else { continue };
        let mut item = SettleItem::new(id, Ending::Released);
        match part {
            DamagedPart::Job(seq, sentence) => {
                shared.damage.note(
                    Some(namespace),
                    seq,
                    format!("{sentence}; it ended as failed, and did not run"),
                );
                let error = UNREADABLE.to_owned();
                item.ending = Ending::Failed { error, retry_in: None, last: true };
            }
            DamagedPart::Resource(pool, id) => {
                tracing::error!(
                    "the data of resource {:?} of pool {:?} is not what was written: it is banned",
                    id.as_str(),
                    pool.as_str()
                );
                let verdict = Verdict::Ban { reason: Some(UNREADABLE.to_owned()) };
                item.resources.push(ResourceVerdict { pool, id, verdict });
            }
        }
        settle.push(item);
    }
    let settle = Command::Request(Request::Settle(Settle::of(settle)));
    shared.ask(namespace, Ask::Command(Box::new(settle))).await.map(drop)
}

/// Grants with their payloads and data, and those that cannot be read.
async fn filled(
    shared: &Shared,
    namespace: &Namespace,
    grants: Vec<Grant>,
    lives: Vec<Option<Vec<u8>>>,
) -> Result<(Vec<LeaseView>, Vec<Damaged>), CallError> {
    if grants.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let seqs: Vec<Option<Seq>> = grants
        .iter()
        .zip(&lives)
        .map(|(grant, life)| grant.seq.filter(|_| life.is_some()))
        .collect();
    let mut bodies = shared.bodies.take(&seqs);
    let (mut unread, mut reads_more) = (Vec::new(), false);
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
        let has_no_life = matches!(missing, Some((_, None)));
        reads_more |= has_no_life || !known;
        if missing.is_some() || !known {
            unread.push(Unread { lease: n, job: missing, lacks_data: !known });
        }
        leases.push(lease);
    }
    if unread.is_empty() {
        return Ok((leases, Vec::new()));
    }
    let ns = namespace.clone();
    let changes = shared.data.changes();
    let looked: Vec<usize> = unread.iter().map(|unread| unread.lease).collect();
    // The lives of jobs are shown as of the grant. A repeat of the call reads them, and then rows must have all.
    let needed = match reads_more {
        true => shared.answered.load(Ordering::Acquire),
        false => shared.hand_off.needed_for(seqs.into_iter().flatten()),
    };
    let read =
        shared.read_rows_of(needed, Haste::Now, move |conn| read(conn, &ns, leases, unread)).await;
    let ReadLeases { leases: read, newest } = read?;
    let is_answered = match newest {
        Newest::Grant => true,
        Newest::Commit(number) => shared.journal_has(number),
        Newest::Any => false,
    };
    if !is_answered {
        shared.read_may_be_answered().await?;
    }
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
            // The lease ended and its job was forgotten while this was read.
            Whole::Gone => {}
            Whole::Damaged(part) => damaged.push((lease, part)),
        }
    }
    Ok((leases, damaged))
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
    let Body { new, shape } = body;
    let (_, id, content) = Arc::unwrap_or_clone(new);
    let job = StoredJob {
        seq,
        id,
        kind: content.kind,
        state: JobState::Running,
        shape: shape.to_vec(),
        life,
        payload: Some(content.payload),
        labels: content.labels,
        traceparent: content.traceparent,
        result: None,
        error: None,
        errors: Vec::new(),
        progress: None,
    };
    job.view(Stands::default())
}

/// What of a lease is damaged.
enum DamagedPart {
    /// Its job, and how that is told.
    Job(Seq, String),
    Resource(PoolName, ResourceId),
}

/// Whether a lease could be filled.
enum Whole {
    Yes,
    Gone,
    Damaged(DamagedPart),
}

/// What of a lease is only in rows.
struct Unread {
    /// Its place among the leases.
    lease: usize,
    /// The number of its job, and the life as of the grant.
    job: Option<(Seq, Option<Vec<u8>>)>,
    /// Data of its resources is not known.
    lacks_data: bool,
}

/// Leases as they were read.
struct ReadLeases {
    leases: Vec<(LeaseView, Whole)>,
    newest: Newest,
}

/// The newest that leases show of what was read.
enum Newest {
    /// The grants themselves, which are durable. While a job runs under the lease that it was granted with, only its life and
    /// its progress change.
    Grant,
    /// Jobs that have other lives in this commit, or in one before: from before the grants, or from after their leases.
    Commit(u64),
    /// More than jobs.
    Any,
}

fn read(
    conn: &Connection,
    namespace: &Namespace,
    leases: Vec<LeaseView>,
    unread: Vec<Unread>,
) -> rusqlite::Result<ReadLeases> {
    let (mut others, mut has_other_lives) = (false, false);
    let mut leases: Vec<_> = leases.into_iter().map(|lease| (lease, Whole::Yes)).collect();
    for Unread { lease: n, job, lacks_data } in unread {
        let Some((lease, whole)) = leases.get_mut(n) else { continue };
        for resource in lease.resources.iter_mut().filter(|_| lacks_data) {
            others = true;
            let key = (namespace.as_str(), resource.pool.as_str(), resource.id.as_str());
            match rows::data(conn, key)? {
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
        let mut row = match rows::job(conn, namespace, seq, true)? {
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
            // The job can be run without what it says of its past.
            _ => {}
        }
        others |= life.is_none();
        has_other_lives |= life.as_ref() != Some(&row.job.life);
        if let Some(life) = life {
            // The row may have moved on since; the holder is told what it was granted.
            row.job.life = life;
            row.job.state = JobState::Running;
        }
        match row.shown().view(Stands::default()) {
            Some(view) => lease.job = Some(view),
            None => *whole = damaged(None, "row"),
        }
    }
    let newest = match (others, has_other_lives) {
        (true, _) => Newest::Any,
        // What stands in place of the number is damage, and said when it is met at a start.
        (false, true) => Numbers::read(conn)?.map_or(Newest::Any, |of| Newest::Commit(of.commit)),
        (false, false) => Newest::Grant,
    };
    Ok(ReadLeases { leases, newest })
}

#[cfg(test)]
mod tests;
