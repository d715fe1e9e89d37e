//! A lease call from the caller's side: it may wait, and its caller may go away at any moment.
//!
//! A guard watches until the answer has left: if the call is dropped, its wait ends, and its grants are
//! given back at once. No ttl passes, and nothing counts as lost.

mod filled;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use tenure_core::lease::{
    Ending, Fence, Leased as LeasedAnswer, ResourceVerdict, SettleItem, Verdict,
};
use tenure_core::names::Namespace;
use tenure_core::requests::{Lease, Request, Settle, Settled};
use tenure_engine_api::{CallError, Fault};
use tenure_machine::{Command, TakerId};
use tokio::sync::oneshot;

use self::filled::{Damaged, DamagedPart, filled};
use crate::batch::{Answer, Leased};
use crate::calls::show;
use crate::inbox::Ask;
use crate::shared::{Receiver, Shared};
use crate::sqlite::scan::damage::UNREADABLE;

/// Gives back grants that nobody receives.
struct GiveBack {
    shared: Arc<Shared>,
    namespace: Namespace,
    taker: TakerId,
    /// The receiver of the answer, until the answer is here.
    receiver: Option<Receiver>,
    /// Grants of this call that are not handed out yet.
    fresh: Vec<Fence>,
}

impl Drop for GiveBack {
    fn drop(&mut self) {
        let mut fresh = std::mem::take(&mut self.fresh);
        if let Some(receiver) = &mut self.receiver {
            // From here on a send fails, and an earlier answer is already in the channel.
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

pub(crate) async fn lease(
    shared: Arc<Shared>,
    namespace: Namespace,
    lease: Lease,
) -> Result<LeasedAnswer, CallError> {
    let taker = shared.next_taker();
    let receiver = shared.send(&namespace, Ask::Lease(Box::new(lease), taker))?;
    taken(GiveBack { shared, namespace, taker, receiver: Some(receiver), fresh: Vec::new() }).await
}

/// Settles, and asks for leases in the same step. The settles are answered, and durable, even if the lease call fails.
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
        // No lease call was made.
        guard.receiver = None;
    }
    let settled = show::settled(&shared, &namespace, answer?).await?;
    CallError::after_settles(settled, taken(guard).await)
}

/// The answer of a lease call.
async fn taken(mut guard: GiveBack) -> Result<LeasedAnswer, CallError> {
    let answer = match &mut guard.receiver {
        Some(receiver) => receiver.await,
        None => return Err(guard.shared.gone()),
    };
    guard.receiver = None;
    let Leased { granted, lives, fresh, ahead } = match answer {
        Ok(Ok(Answer::Leased(leased))) => leased,
        Ok(Ok(_)) => return Err(Fault::Broken("a lease was not answered".to_owned()).into()),
        Ok(Err(no)) => return Err(no),
        Err(_) => return Err(guard.shared.gone()),
    };
    guard.fresh = fresh;
    let mut answer = granted.answer;
    let (shared, namespace) = (&guard.shared, &guard.namespace);
    let (leases, damaged) = filled(shared, namespace, granted.grants, lives, ahead).await?;
    answer.leases = leases;
    if !damaged.is_empty() {
        end_damaged(&guard.shared, &guard.namespace, damaged).await?;
    }
    guard.fresh.clear();
    Ok(answer)
}

/// Ends leases that cannot be handed out, so that nobody waits behind them: an unreadable job has failed
/// for good, and a resource whose data is unreadable is banned, while its job goes on with another
/// resource.
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
