//! A lease call: it may wait, and its caller may go away at any moment.
//!
//! A task of its own makes it, so that an answer that is on its way is never lost with its caller: if
//! the caller is gone, the wait ends, and what was granted is undone at once. Who is signalled asks
//! again under the same name; one signal wakes one call. Who is sent what it was granted asks nobody.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::lease::Leased;
use tenure_core::requests::{Ask, Lease, Settle, Settled};
use tenure_core::time::{Moment, Span};
use tenure_engine::CallError;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::given::{Given, UndoGuard, give_back, gone, undo};
use super::leaving::{Left, leave};
use super::parcels::Parcel;
use super::space::Waiter;
use super::wait_end::WaitEnd;
use crate::call::{Caller, malformed};
use crate::decode::{Answered, LeasedReply, Views};
use crate::encode::{DropWaitArgs, LeaseArgs, LeftCall, Wait, pack};
use crate::function::{DROP_WAIT, Function};
use crate::holders::{self, Settling};
use crate::options::Time;

/// So often in a row a call is repeated whose bounded work was not enough.
const MORE_MAX: u32 = 4_000;
/// While no signals come, who waits looks for himself so often.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// After a gap in the signals all who wait here look, spread over so much.
const SPREAD_MS: u64 = 40;

const LEASE: Function = Function::of::<Lease>();

/// What woke a call that waits.
enum Woken {
    /// It is to ask again.
    Again,
    /// It was granted this.
    Granted(Parcel),
    /// Its time is over.
    Over,
    /// Its caller is gone.
    Gone,
}

/// Settles that are made with a lease call, and who is told of them.
pub(super) type Settles = (Settling, oneshot::Sender<Result<Settled, CallError>>);

pub(super) struct Call {
    caller: Caller,
    lease: Lease,
    number: u64,
    taker: String,
    end: WaitEnd,
    /// Made in the first call of the store; none after it.
    pub(super) settles: Option<Settles>,
}

/// A place among those who wait here, given back in any case.
struct Entered<'a> {
    call: &'a Call,
    waiter: Arc<Waiter>,
    /// A signal is being acted upon.
    acting: bool,
    stirred: watch::Receiver<u64>,
    draining: watch::Receiver<bool>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.acted();
        if let Some(parcel) = self.call.caller.space.leave(self.call.number) {
            give_back(&self.call.caller, parcel);
        }
    }
}

impl Entered<'_> {
    fn acted(&mut self) {
        if std::mem::take(&mut self.acting) {
            self.call.caller.space.acted();
        }
    }

    /// Waits for a reason to go on.
    async fn wait(&mut self, sender: &mut oneshot::Sender<Result<Given, CallError>>) -> Woken {
        self.acted();
        let shared = &self.call.caller.shared;
        loop {
            // An end that lies in a test's clock is looked at whenever that is moved.
            let end = match self.call.end {
                WaitEnd::Real(end) => end,
                WaitEnd::Moved(_) => Instant::now() + LOOK_EVERY,
            };
            let look = Instant::now() + LOOK_EVERY;
            tokio::select! {
                biased;
                () = sender.closed() => return Woken::Gone,
                () = self.waiter.signal.notified() => {
                    self.acting = self.call.caller.space.acts(&self.waiter);
                    return self.waiter.parcel().map_or(Woken::Again, Woken::Granted);
                }
                () = told(&mut self.draining) => return Woken::Over,
                changed = self.stirred.changed() => {
                    if changed.is_err() {
                        return Woken::Over;
                    }
                }
                () = sleep_until(end), if matches!(self.call.end, WaitEnd::Real(_)) => {
                    return Woken::Over;
                }
                () = sleep_until(look) => {
                    let space = &self.call.caller.space;
                    let misses = shared.signals.miss(space) || space.misses_signals();
                    if shared.time == Time::Server && misses {
                        return Woken::Again;
                    }
                    continue;
                }
            }
            // All who wait here were told to look.
            if let WaitEnd::Real(_) = self.call.end {
                sleep(Duration::from_millis(self.call.number % SPREAD_MS)).await;
                return Woken::Again;
            }
            // Signals are never lost to a test, and asking again would cost the place in the line.
            if self.call.is_over() {
                return Woken::Over;
            }
        }
    }
}

/// Returns when it is so, or will never be.
async fn told(so: &mut watch::Receiver<bool>) {
    let _ = so.wait_for(|so| *so).await;
}

impl Call {
    pub(super) fn new(caller: Caller, lease: Lease) -> Self {
        let number = caller.shared.next_taker();
        let taker = format!("{}:{number}", caller.shared.proc);
        let end = WaitEnd::after(&caller.shared, lease.wait);
        Call { caller, lease, number, taker, end, settles: None }
    }

    /// Makes the call in a task of its own.
    pub(super) fn spawned(self) -> UndoGuard {
        let (sender, receiver) = oneshot::channel();
        let guard = UndoGuard { caller: self.caller.clone(), receiver: Some(receiver) };
        let owing = self.caller.shared.owing();
        self.caller.shared.runtime.clone().spawn(async move {
            let _owing = owing;
            self.run(sender).await;
        });
        guard
    }

    fn left(&self) -> u64 {
        self.end.left(&self.caller.shared)
    }

    fn is_over(&self) -> bool {
        self.left() == 0
    }

    /// Makes the call and answers it.
    async fn run(mut self, mut sender: oneshot::Sender<Result<Given, CallError>>) {
        let settles = self.settles.take();
        let given = if self.lease.wait == Span::ZERO {
            self.once(settles, &sender).await
        } else {
            self.waiting(settles, &mut sender).await
        };
        // Nobody is there any more: what was granted is undone.
        if let Err(Ok(given)) = sender.send(given) {
            undo(&self.caller, given.granted);
        }
    }

    /// A call that does not wait.
    async fn once(
        &self,
        mut settles: Option<Settles>,
        sender: &oneshot::Sender<Result<Given, CallError>>,
    ) -> Result<Given, CallError> {
        let mut again = false;
        for _ in 0..MORE_MAX {
            let reply = self.ask(settles.take(), 0, again, (0, 0)).await?;
            if reply.reply.has_leases() {
                return self.filled(reply, sender).await;
            }
            if !reply.reply.more {
                return self.given(reply).await;
            }
            again = true;
        }
        // It may stand in a line by now.
        let reply = self.drop_wait().await?;
        self.given(reply).await
    }

    /// A call that waits for its first grant.
    async fn waiting(
        &self,
        settles: Option<Settles>,
        sender: &mut oneshot::Sender<Result<Given, CallError>>,
    ) -> Result<Given, CallError> {
        let mut waits = false;
        let given = self.first_grant(settles, sender, &mut waits).await;
        // From then on anybody's step may grant it something.
        given.map_err(|why| if waits { why.after_a_part() } else { why })
    }

    /// `waits` is set once the store has heard of the call.
    async fn first_grant(
        &self,
        mut settles: Option<Settles>,
        sender: &mut oneshot::Sender<Result<Given, CallError>>,
        waits: &mut bool,
    ) -> Result<Given, CallError> {
        let shared = &self.caller.shared;
        shared.signals.follow(shared, &self.caller.space);
        if shared.time != Time::Server {
            super::testing::signals_live(&self.caller).await?;
        }
        let mut place = Entered {
            call: self,
            waiter: self.caller.space.enter(self.number),
            acting: false,
            stirred: self.caller.space.stirred(),
            draining: shared.draining(),
        };
        let mut more = 0;
        loop {
            let left = self.left();
            // It waits for something until its end; at its end it gets what there is to be told.
            if left == 0 && settles.is_none() {
                return self.over().await;
            }
            let reply = self.ask(settles.take(), left, *waits, (0, 0)).await?;
            *waits = true;
            let LeasedReply { waits: in_line, over, more: tired, .. } = &reply.reply;
            if reply.reply.has_leases() {
                return self.filled(reply, sender).await;
            }
            if *over {
                return self.given(reply).await;
            }
            if *tired && more < MORE_MAX && !sender.is_closed() {
                more += 1;
                continue;
            }
            if !*in_line && !*tired {
                return self.given(reply).await;
            }
            match place.wait(sender).await {
                Woken::Again => {}
                Woken::Granted(parcel) => {
                    // What cannot be read is answered to a repeat as well.
                    if let Ok(reply) = self.caller.carried(LEASE, parcel.parts).await {
                        return self.filled(reply, sender).await;
                    }
                }
                Woken::Over => return self.over().await,
                Woken::Gone => {
                    leave(&self.caller, Left::Lease(LeftCall::of(&self.lease, &self.taker))).await;
                    return Err(gone());
                }
            }
        }
    }

    /// What was granted, and what more is granted as far as it was asked for: one step of the store grants no
    /// more than keeps it busy for a moment. All of it is granted under one request id, so a repeat is answered
    /// all of it; nothing is added once a repeat was answered, or once the caller is gone.
    async fn filled(
        &self,
        reply: Answered<LeasedReply>,
        sender: &oneshot::Sender<Result<Given, CallError>>,
    ) -> Result<Given, CallError> {
        let (mut more, mut bytes) = (reply.reply.more, reply.reply.bytes);
        let mut given = self.given(reply).await?;
        let wanted = match &self.lease.ask {
            Ask::Jobs { max, .. } => *max,
            Ask::Needs(_) => 1,
        };
        while more && given.answer.leases.len() < wanted && !sender.is_closed() {
            // What was granted so far is granted: a fault now only ends the filling.
            let Ok(reply) = self.ask(None, 0, true, (given.answer.leases.len(), bytes)).await
            else {
                return self.told_again(given).await;
            };
            (more, bytes) = (reply.reply.more, reply.reply.bytes);
            let Ok(some) = self.given(reply).await else {
                return self.told_again(given).await;
            };
            given.answer.leases.extend(some.answer.leases);
            given.granted.extend(some.granted);
        }
        Ok(given)
    }

    /// The last step of a filling has no answer, so more may have been granted: the store knows what was, by the
    /// request id. If it cannot be asked, or there is no such id, what is known is answered.
    async fn told_again(&self, known: Given) -> Result<Given, CallError> {
        if self.lease.request_id.is_none() {
            return Ok(known);
        }
        match self.ask(None, 0, true, (0, 0)).await {
            Ok(reply) if reply.reply.has_leases() => self.given(reply).await,
            _ => Ok(known),
        }
    }

    /// `settles`: what is settled before it in the same call of the store. `had`: how many leases the call was granted
    /// before, and their bytes.
    async fn ask(
        &self,
        settles: Option<Settles>,
        left: u64,
        again: bool,
        (had, bytes): (usize, u64),
    ) -> Result<Answered<LeasedReply>, CallError> {
        let proc = &self.caller.shared.proc;
        // Before anything is granted: without the key nobody could be told what.
        self.caller.signer().await?;
        let knows = &self.caller.knows();
        let read = self.caller.space.parcels.read();
        let wait = Wait { left, taker: &self.taker, proc, read, again, had, bytes, knows };
        let args = LeaseArgs::of(&self.lease, &wait);
        // Also what was asked for in vain: where all is lost, and this process comes first, it is the best
        // guess of what others were granted.
        self.caller.space.known.saw_ttl(self.lease.ttl.us());
        match settles {
            // Ten thousand calls may wait here, and most of them settle nothing: their futures stay small.
            Some((settling, told)) => Box::pin(settling.and_lease(&self.caller, args, told)).await,
            None => Ok(self.caller.ask(LEASE, pack(&args)).await?),
        }
    }

    /// Ends the wait in the store. The answer has what the call was granted before, if anything.
    async fn drop_wait(&self) -> Result<Answered<LeasedReply>, CallError> {
        let args = DropWaitArgs::of(&self.lease, &self.taker);
        Ok(self.caller.ask(DROP_WAIT, pack(&args)).await?)
    }

    /// The wait ended without a grant: its place is kept for a while, and it is told what it waited
    /// for and when that may change.
    async fn over(&self) -> Result<Given, CallError> {
        let reply = self.drop_wait().await?;
        // A tick may have ended the wait already; then only another call knows why it was in vain.
        let untold = matches!(self.lease.ask, Ask::Needs(_)) && reply.reply.reasons.is_empty();
        if untold && !self.caller.shared.is_draining() {
            let reply = self.ask(None, 0, true, (0, 0)).await?;
            return self.given(reply).await;
        }
        self.given(reply).await
    }

    /// What the call is answered.
    async fn given(&self, reply: Answered<LeasedReply>) -> Result<Given, CallError> {
        let Answered { mut reply, blobs, .. } = reply;
        if let Some(number) = reply.parcel.0 {
            self.caller.space.parcels.fetched(number);
        }
        let granted = reply.names(&blobs).map_err(malformed(LEASE))?;
        let next_at = reply.next_at.0.map(Moment::from_us);
        let reasons = std::mem::take(&mut reply.reasons).into_iter();
        let reasons: Result<_, _> = reasons.map(|reason| reason.read(0, &blobs)).collect();
        let Views { leases, unreadable } =
            reply.views(&blobs, self.lease.ttl.us()).map_err(malformed(LEASE))?;
        if !unreadable.is_empty() {
            tracing::error!(
                "{} of what was granted is unreadable: a job ended as failed, \"unreadable\", a resource \
                 is banned",
                unreadable.len()
            );
            // Otherwise it would stand in everybody's way again, one ttl later.
            holders::settle(&self.caller, Settle::of(unreadable)).await?;
        }
        let answer = Leased { leases, next_at, reasons: reasons.map_err(malformed(LEASE))? };
        Ok(Given { answer, granted })
    }
}
