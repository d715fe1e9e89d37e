//! What holders say of their leases: extended, settled, taken back.
//!
//! A lease is named to the library by its fence and its job's row, once its id was found to be signed by
//! the namespace. If the library knows nothing of it and the namespace recovers, the same is asked again with
//! all that the id tells, and the lease is claimed by it. So what is usual carries no claim. The same is done
//! if the lease is of before the epoch of the store: then everything was lost, and nobody has told it yet.

use std::sync::Arc;

use tenure_core::flow::Kinship;
use tenure_core::job::Retry;
use tenure_core::lease::{Extended, SettleItem};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Extend, ForceLease, Settle, Settled};
use tenure_engine::{CallError, ids};
use tokio::sync::oneshot;

use crate::answer::Answerable;
use crate::call::{Caller, malformed};
use crate::decode::{
    Answered, ExtendedReply, LeasedReply, SettleReply, SettledAndLeased, extended, settled,
};
use crate::encode::{
    ExtendArgs, ForceArgs, Knows, LeaseArgs, SettleAndLeaseArgs, SettleArgs, pack,
};
use crate::function::{Function, SETTLE_AND_LEASE};
use crate::lease_id::{Claim, Head, Signer, unsigned_head};
use crate::waiting::settle_and_lease;

const EXTEND: Function = Function::of::<Extend>();
const SETTLE: Function = Function::of::<Settle>();

/// What these texts name; `None` for what is no id of this namespace.
async fn heads<'a>(
    caller: &Caller,
    ids: impl Iterator<Item = &'a str> + Clone,
) -> Result<Vec<Option<Head>>, CallError> {
    let signer = caller.signer().await?;
    let read = |signer: &Signer| ids.clone().map(|id| signer.head(id)).collect::<Vec<_>>();
    let heads = read(&signer);
    // The namespace may have another key by now, where its store was lost and others came first.
    let strange = |(head, id): (&Option<Head>, &str)| head.is_none() && unsigned_head(id).is_some();
    if heads.iter().zip(ids.clone()).any(strange) {
        let now = caller.signer_anew().await?;
        if !Arc::ptr_eq(&now, &signer) {
            return Ok(read(&now));
        }
    }
    Ok(heads)
}

/// By which of these places the same is asked again: those of ids that tell what their leases are.
async fn claims(
    caller: &Caller,
    lost: impl Iterator<Item = (usize, &str)>,
) -> Result<Vec<(usize, Claim)>, CallError> {
    let signer = caller.signer().await?;
    Ok(lost.filter_map(|(at, id)| Some((at, signer.claim(id)?))).collect())
}

/// What is told with claims of the leases at these places, of which the store knows nothing; `None` if there are
/// none, or if they are lost. `recovers`: whether the namespace does. `now`: the store's clock, in µs.
///
/// A fence follows the clock, so a lease with one of before the epoch of the store was granted by the store
/// that was there before. Who granted it may have died with that; its id is proof enough, as long as it may
/// live, and is told as who knew another epoch would tell it.
fn tells_again(
    caller: &Caller,
    lost: &[usize],
    heads: &[Option<Head>],
    recovers: bool,
    now: u64,
) -> Option<Knows> {
    if lost.is_empty() {
        return None;
    }
    let knows = caller.knows();
    if recovers {
        return Some(knows);
    }
    let began =
        caller.space.known.epoch_began_at().filter(|began| *began <= now && !knows.never)?;
    let lives = |head: &Head| head.fence < began && began.saturating_add(head.ttl) > now;
    let lost = lost.iter().filter_map(|at| heads.get(*at).copied().flatten());
    let ttl = lost.filter(lives).map(|head| head.ttl).max()?.max(knows.ttl);
    Some(Knows { epoch: Some(OF_BEFORE.into()), ttl, age: ttl, ..knows })
}

/// The epoch of a store of which only this is known: that it was before.
const OF_BEFORE: &str = "0";

impl Answerable for Extend {
    async fn answer(self, caller: Caller) -> Result<Extended, CallError> {
        extend(&caller, self).await
    }
}

async fn extend(caller: &Caller, extend: Extend) -> Result<Extended, CallError> {
    let id = |at: usize| extend.leases.get(at).map_or("", |item| item.lease.as_str());
    let heads = heads(caller, extend.leases.iter().map(|item| item.lease.as_str())).await?;
    let ttls = heads.iter().flatten().map(|head| head.ttl);
    let longest = ttls.chain(extend.ttl.map(|ttl| ttl.us())).max();
    let knows = &caller.knows();
    let args = pack(&ExtendArgs::of(&extend, &heads, knows));
    let answered = caller.ask::<ExtendedReply>(EXTEND, args).await?;
    let Answered { mut reply, recovers_until, now, .. } = answered;
    let lost: Vec<_> = reply.lost().collect();
    if let Some(knows) = tells_again(caller, &lost, &heads, recovers_until.is_some(), now) {
        let claims = claims(caller, lost.into_iter().map(|at| (at, id(at)))).await?;
        if !claims.is_empty() {
            let args = pack(&ExtendArgs::claiming(&extend, &claims, &knows));
            let again = caller.ask::<ExtendedReply>(EXTEND, args).await?.reply;
            reply.claimed(again, &claims.iter().map(|(at, _)| *at).collect::<Vec<_>>());
        }
    }
    if let (Some(ttl), false) = (longest, reply.is_all_lost()) {
        caller.space.known.saw_ttl(ttl);
    }
    extended(&extend, reply).map_err(malformed(EXTEND))
}

impl Answerable for Settle {
    async fn answer(mut self, caller: Caller) -> Result<Settled, CallError> {
        match self.lease.take() {
            Some(lease) => settle_and_lease(caller, self, *lease).await,
            None => settle(&caller, self).await,
        }
    }
}

pub(crate) async fn settle(caller: &Caller, settle: Settle) -> Result<Settled, CallError> {
    Settling::of(caller, settle).await?.alone(caller).await
}

/// Who waits for whom of what an item of a settle pushes.
fn kinship((index, item): (usize, &SettleItem)) -> Result<Kinship, Refusal> {
    Kinship::of(&item.push).map_err(|no| {
        let place = no.index.map_or_else(String::new, |place| format!("/{place}"));
        no.below(&format!("/settle/{index}/push{place}")).item(index)
    })
}

/// Settles on their way, and the leases that they name.
pub(crate) struct Settling {
    settle: Settle,
    /// Who waits for whom of what each of them pushes.
    kinships: Vec<Kinship>,
    heads: Vec<Option<Head>>,
}

impl Settling {
    pub(crate) async fn of(caller: &Caller, mut settle: Settle) -> Result<Self, CallError> {
        let jobs = settle.settle.iter_mut().flat_map(|item| item.push.iter_mut());
        ids::fill_in(jobs, caller.shared.wall())?;
        let kinships = settle.settle.iter().enumerate().map(kinship).collect::<Result<_, _>>()?;
        let heads = heads(caller, settle.settle.iter().map(|item| item.lease.as_str())).await?;
        Ok(Settling { settle, kinships, heads })
    }

    /// Makes them.
    async fn alone(self, caller: &Caller) -> Result<Settled, CallError> {
        let (default, knows) = (Retry::default(), &caller.knows());
        let Settling { settle, kinships, heads } = &self;
        let (args, order) = SettleArgs::of(&settle.settle, kinships, heads, &default, knows);
        let answered = caller.ask::<SettleReply>(SETTLE, pack(&args)).await?;
        let (reply, beside) = answered.split(|reply| (reply, ()));
        self.answered(caller, reply.in_order(order.as_deref()), &beside).await
    }

    /// Makes them and a lease call right after them, in one step. They are answered by `told`; what is returned is the
    /// answer of the lease call.
    pub(crate) async fn and_lease(
        self,
        caller: &Caller,
        lease: LeaseArgs<'_>,
        told: oneshot::Sender<Result<Settled, CallError>>,
    ) -> Result<Answered<LeasedReply>, CallError> {
        let (default, knows) = (Retry::default(), &caller.knows());
        let Settling { settle, kinships, heads } = &self;
        let (args, order) = SettleArgs::of(&settle.settle, kinships, heads, &default, knows);
        let args = pack(&SettleAndLeaseArgs::of(args, lease, knows));
        let answer = caller.ask::<SettledAndLeased>(SETTLE_AND_LEASE, args).await;
        match answer.map_err(CallError::from) {
            Ok(answered) => {
                let (reply, leased) = answered.split(|both| (both.settled, both.leased));
                let reply = reply.in_order(order.as_deref());
                let settled = self.answered(caller, reply, &leased).await;
                // Whoever is gone needs no answer; the settles stand.
                let _ = told.send(settled.map_err(CallError::after_a_part));
                Ok(leased)
            }
            // Refused, it did nothing, and a full store refuses lease calls but no settles. They stand alone then; if
            // they are refused too, that is what the caller is told.
            Err(CallError::Refused(no)) => {
                let _ = told.send(self.alone(caller).await);
                Err(no.into())
            }
            Err(why) => {
                let _ = told.send(Err(why.clone()));
                Err(why)
            }
        }
    }

    /// The answer to them, of a reply in their order. `beside`: what came with it.
    async fn answered<R>(
        self,
        caller: &Caller,
        reply: SettleReply,
        beside: &Answered<R>,
    ) -> Result<Settled, CallError> {
        let Settling { settle, kinships, heads } = self;
        let id = |at: usize| settle.settle.get(at).map_or("", |item| item.lease.as_str());
        let (mut claimed, default) = (Vec::new(), Retry::default());
        let lost: Vec<_> = reply.lost().collect();
        let recovers = beside.recovers_until.is_some();
        if let Some(knows) = tells_again(caller, &lost, &heads, recovers, beside.now) {
            let claims = claims(caller, lost.into_iter().map(|at| (at, id(at)))).await?;
            if !claims.is_empty() {
                let items = claims.iter().filter_map(|(at, _)| settle.settle.get(*at).cloned());
                let asked = Settle::of(items.collect());
                let args = pack(&SettleArgs::claiming(
                    &settle.settle,
                    &kinships,
                    &claims,
                    &default,
                    &knows,
                ));
                let places: Vec<usize> = claims.iter().map(|(at, _)| *at).collect();
                let again = caller.ask::<SettleReply>(SETTLE, args).await;
                let again = match again.map_err(Into::into) {
                    Err(CallError::Refused(no)) => return Err(in_place(no, &places).into()),
                    again => again?,
                };
                let again = settled(asked, again.reply, &again.blobs).map_err(malformed(SETTLE))?;
                claimed = places.into_iter().zip(again).collect();
            }
        }
        let mut settled = settled(settle, reply, &beside.blobs).map_err(malformed(SETTLE))?;
        for (at, again) in claimed {
            if let Some(one) = settled.get_mut(at) {
                *one = again;
            }
        }
        Ok(Settled { settled, lease: None })
    }
}

/// A refusal of the second call, with the place in the first.
fn in_place(mut no: Refusal, places: &[usize]) -> Refusal {
    if let Some(at) = no.index.and_then(|index| places.get(index)) {
        let (was, now) = (no.index.unwrap_or_default(), *at);
        no.index = Some(now);
        no.pointer = no.pointer.map(|pointer| {
            let rest = pointer.strip_prefix(&format!("/settle/{was}")).map(str::to_owned);
            rest.map_or(pointer, |rest| format!("/settle/{now}{rest}"))
        });
    }
    no
}

impl Answerable for ForceLease {
    async fn answer(self, caller: Caller) -> Result<(), CallError> {
        let head = heads(&caller, std::iter::once(self.lease.as_str())).await?.pop().flatten();
        let args = ForceArgs::of(&self.lease, head);
        caller.reply::<serde::de::IgnoredAny>(Function::of::<Self>(), &args).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::refusal::Code;

    use super::*;

    #[test]
    fn a_refusal_names_the_place_in_the_call_that_was_made() {
        let no = Refusal::heard(Code::UnknownLimit, "d", "h").item(1);
        let no = in_place(no.at("/settle/1/limits/0/limit"), &[2, 7]);
        assert_eq!((no.index, no.pointer.as_deref()), (Some(7), Some("/settle/7/limits/0/limit")));
        let other = in_place(Refusal::heard(Code::StoreFull, "d", "h").at("/x"), &[2]);
        assert_eq!((other.index, other.pointer.as_deref()), (None, Some("/x")));
    }
}
