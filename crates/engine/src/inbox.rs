//! Where calls wait for the state, and what wakes it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::events::EventId;
use tenure_core::lease::Fence;
use tenure_core::names::Namespace;
use tenure_core::requests::{Lease, Push, Settle};
use tenure_core::time::{Moment, Span};
use tenure_machine::{Command, Config, FlowWait, ResultWait, TakerId};
use tenure_seam::{GaugeReader, TestClock};

use crate::batch::Reply;

/// What the state is asked.
pub(crate) enum Ask {
    /// What the machine answers as it is.
    Command(Box<Command>),
    /// Its answer shows jobs.
    Push(Push),
    /// Its answer may show jobs.
    Settle(Settle),
    /// It may wait, under this number.
    Lease(Box<Lease>, TakerId),
    /// Settles, and the lease call right after them, with nothing in between; each has its own answer.
    SettleAndLease(Settle, Box<Lease>, TakerId, Reply),
    /// For the result of a job; it may wait.
    WaitForResult(Box<ResultWait>),
    /// A call for a flow, which may wait.
    WaitForFlow(Box<FlowWait>),
    /// For an event after this one, but no longer than until then.
    WaitForEvents { after: EventId, until: Moment, taker: TakerId },
    /// The caller of a waiting call is gone.
    DropWait(TakerId),
    /// These leases were granted to a caller who was gone.
    Undo(Vec<Fence>),
    /// A process reads gauges from now on, as long as the other end of this is held.
    ReadGauges(GaugeReader),
    /// Answered when whatever was read before may be answered.
    Pass,
    /// Waiting calls are answered, and no more may wait.
    Drain,
    /// Answered when nothing is due any more.
    Settled,
    /// The store may have forgotten grants that had this much time left, or less.
    Recover(Span),
    /// Whether the store forgot anything is asked, for this long at most.
    Doubt(Span),
    /// A recovery ends before its time.
    EndRecovery,
    /// Other settings of the machine hold from now on.
    Configure(Config),
    /// Moves the clock of a test by this, and does what is due on the way.
    PassTime(Arc<TestClock>, Span),
    /// The durable things, in text; for tests.
    Durable,
}

/// One call.
pub(crate) struct Envelope {
    pub namespace: Namespace,
    pub ask: Ask,
    pub reply: Option<Reply>,
}

#[derive(Default)]
struct InboxState {
    calls: Vec<Envelope>,
    /// Something else happened: the clock was moved, the disk took a batch.
    poked: bool,
    closing: bool,
    crashed: bool,
    /// The state waits, so somebody has to wake it.
    waiting: bool,
}

/// What the state finds.
#[derive(Default)]
pub(crate) struct Taken {
    pub calls: Vec<Envelope>,
    /// No call comes after these.
    pub closing: bool,
    pub crashed: bool,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Inbox {
    inside: Mutex<InboxState>,
    changed: Condvar,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, InboxState> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a call; gives it back if the engine takes no more.
    pub(crate) fn put(&self, call: Envelope) -> Result<(), Box<Envelope>> {
        let mut inside = self.lock();
        if inside.closing || inside.crashed {
            return Err(Box::new(call));
        }
        inside.calls.push(call);
        let wake = std::mem::take(&mut inside.waiting);
        drop(inside);
        if wake {
            self.changed.notify_one();
        }
        Ok(())
    }

    fn change(&self, how: impl FnOnce(&mut InboxState)) {
        let mut inside = self.lock();
        how(&mut inside);
        inside.waiting = false;
        drop(inside);
        self.changed.notify_one();
    }

    /// Wakes the state, so that it looks at the clock and at the hand-off.
    pub(crate) fn poke(&self) {
        self.change(|inside| inside.poked = true);
    }
    /// No call is taken any more; those that are here are answered.
    pub(crate) fn close(&self) {
        self.change(|inside| inside.closing = true);
    }
    /// No call is taken or answered any more.
    pub(crate) fn crash(&self) {
        self.change(|inside| inside.crashed = true);
    }

    /// Whether the engine is to end.
    pub(crate) fn is_closing(&self) -> bool {
        self.lock().closing
    }

    /// Drops the calls that nobody will take: their callers see that they are gone.
    pub(crate) fn clear(&self) {
        let calls = std::mem::take(&mut self.lock().calls);
        drop(calls);
    }

    /// Waits until somebody pokes; calls are left here. `false` if the engine crashed instead.
    pub(crate) fn wait_for_poke(&self) -> bool {
        let mut inside = self.lock();
        while !inside.poked && !inside.crashed {
            inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
        inside.poked = false;
        !inside.crashed
    }

    /// All calls that wait; waits for the first, for a poke, or for so long.
    pub(crate) fn take(&self, patience: Duration) -> Taken {
        let mut inside = self.lock();
        let nothing = |inside: &InboxState| {
            inside.calls.is_empty() && !inside.poked && !inside.closing && !inside.crashed
        };
        if nothing(&inside) && !patience.is_zero() {
            inside.waiting = true;
            let waited = self.changed.wait_timeout_while(inside, patience, |i| nothing(i));
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
            inside.waiting = false;
        }
        inside.poked = false;
        Taken {
            calls: std::mem::take(&mut inside.calls),
            closing: inside.closing,
            crashed: inside.crashed,
        }
    }
}
