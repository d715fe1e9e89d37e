//! Holds the calls that wait for the state, and wakes it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenure_core::events::EventId;
use tenure_core::lease::Fence;
use tenure_core::names::Namespace;
use tenure_core::requests::{Lease, Push, Settle};
use tenure_core::time::{Moment, Span};
use tenure_engine_api::{GaugeReader, TestClock};
use tenure_machine::{Command, Config, FlowWait, ResultWait, TakerId};

use crate::batch::Reply;

/// How long the state looks for the next call of a lone caller before it sleeps.
const LOOKS_FOR: Duration = Duration::from_micros(50);
/// A caller is a lone one if its last call came alone, and so soon after the one before it.
const SOON: Duration = Duration::from_micros(200);

/// A request to the state.
pub(crate) enum Ask {
    /// The answer is the machine's.
    Command(Box<Command>),
    /// The answer shows jobs.
    Push(Push),
    /// The answer may show jobs.
    Settle(Settle),
    /// A call that may wait, under this number.
    Lease(Box<Lease>, TakerId),
    /// Settles, and then a lease call, with nothing in between; each has its own answer.
    SettleAndLease(Settle, Box<Lease>, TakerId, Reply),
    /// A call for the result of a job, which may wait.
    WaitForResult(Box<ResultWait>),
    /// A call for a flow, which may wait.
    WaitForFlow(Box<FlowWait>),
    /// A call for an event after this one, which may wait until then.
    WaitForEvents { after: EventId, until: Moment, taker: TakerId },
    /// The caller of a waiting call is gone.
    DropWait(TakerId),
    /// These leases were granted to a caller that had gone.
    Undo(Vec<Fence>),
    /// A process reads usage probes from now on, as long as it holds the other end.
    ReadGauges(GaugeReader),
    /// Answered when everything that was read before it may be answered.
    Pass,
    /// Waiting calls are answered, and no more may wait.
    Drain,
    /// Answered when nothing is due any more.
    Settled,
    /// The store may have forgotten grants that had at most this much time left.
    Recover(Span),
    /// It is still unknown if the store forgot anything; holds for at most this long.
    Doubt(Span),
    /// A recovery ends before its time.
    EndRecovery,
    /// Sets other settings of the machine.
    Configure(Config),
    /// Moves a test clock by this span, and does all work that becomes due.
    PassTime(Arc<TestClock>, Span),
    /// Asks for the durable state as text; for tests.
    Durable,
}

/// A call with its way back.
pub(crate) struct Envelope {
    pub namespace: Namespace,
    pub ask: Ask,
    pub reply: Option<Reply>,
}

#[derive(Default)]
struct InboxState {
    calls: Vec<Envelope>,
    /// Something changed: the clock was moved, or the disk took a batch.
    poked: bool,
    closing: bool,
    crashed: bool,
    /// The state sleeps, so the next call has to wake it.
    waiting: bool,
    /// When calls were last taken.
    taken_at: Option<Instant>,
    /// The last call was that of a lone caller.
    is_lone: bool,
}

/// The content of the inbox, as the state takes it.
#[derive(Default)]
pub(crate) struct Taken {
    pub calls: Vec<Envelope>,
    /// No call follows these.
    pub closing: bool,
    pub crashed: bool,
}

#[derive(Default)]
pub(crate) struct Inbox {
    inside: Mutex<InboxState>,
    changed: Condvar,
    /// Something came since the state began to look for it. Only a hint: what is there is inside.
    came: AtomicBool,
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
        self.came.store(true, Ordering::Relaxed);
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
        self.came.store(true, Ordering::Relaxed);
        inside.waiting = false;
        drop(inside);
        self.changed.notify_one();
    }

    /// Wakes the state, so that it looks at the clock and at the hand-off.
    pub(crate) fn poke(&self) {
        self.change(|inside| inside.poked = true);
    }
    /// Takes no more calls; those that are here are answered.
    pub(crate) fn close(&self) {
        self.change(|inside| inside.closing = true);
    }
    /// Takes and answers no more calls.
    pub(crate) fn crash(&self) {
        self.change(|inside| inside.crashed = true);
    }

    /// True once no more calls are taken.
    pub(crate) fn is_closing(&self) -> bool {
        self.lock().closing
    }

    /// Drops the calls that nobody will take: their callers see that the engine is gone.
    pub(crate) fn clear(&self) {
        let calls = std::mem::take(&mut self.lock().calls);
        drop(calls);
    }

    /// Waits for a poke; leaves calls here. `false` if the engine crashed instead.
    pub(crate) fn wait_for_poke(&self) -> bool {
        let mut inside = self.lock();
        while !inside.poked && !inside.crashed {
            inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
        inside.poked = false;
        !inside.crashed
    }

    /// All calls that wait. Waits for a call or a poke, but not longer than `patience`. With `looks` it does not sleep
    /// at once when a lone caller is expected to call again.
    pub(crate) fn take(&self, patience: Duration, looks: bool) -> Taken {
        let mut inside = self.lock();
        let nothing = |inside: &InboxState| {
            inside.calls.is_empty() && !inside.poked && !inside.closing && !inside.crashed
        };
        if looks && inside.is_lone && nothing(&inside) {
            self.came.store(false, Ordering::Relaxed);
            drop(inside);
            let began = Instant::now();
            while !self.came.load(Ordering::Relaxed) && began.elapsed() < LOOKS_FOR.min(patience) {
                std::hint::spin_loop();
            }
            inside = self.lock();
        }
        if nothing(&inside) && !patience.is_zero() {
            inside.waiting = true;
            let waited = self.changed.wait_timeout_while(inside, patience, |i| nothing(i));
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
            inside.waiting = false;
        }
        inside.poked = false;
        if looks && !inside.calls.is_empty() {
            let before = inside.taken_at.replace(Instant::now());
            inside.is_lone =
                inside.calls.len() == 1 && before.is_some_and(|before| before.elapsed() < SOON);
        }
        Taken {
            calls: std::mem::take(&mut inside.calls),
            closing: inside.closing,
            crashed: inside.crashed,
        }
    }
}
