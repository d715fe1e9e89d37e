//! Calls that wait no more: lease calls whose callers are gone, and calls for results and flows. Ten thousand may go at the same
//! time, with the client that made them: those that go while a call to the store names others leave together, in the
//! next one.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::call::Caller;
use crate::encode::{LeaveArgs, LeftAwait, LeftCall};
use crate::function::LEAVE;

/// The most that one call of the store names: it keeps Redis for some milliseconds at most.
const TOGETHER_MAX: usize = 128;

/// Those of one namespace that have not left the store yet.
#[derive(Default)]
pub(crate) struct Leaving {
    state: Mutex<LeftCalls>,
}

/// One that leaves.
pub(super) enum Left {
    /// A lease call.
    Lease(LeftCall),
    /// A call for the end of something.
    End(LeftAwait),
}

#[derive(Default)]
struct LeftCalls {
    calls: Vec<Left>,
    /// A task sends them, until none is left.
    sending: bool,
}

impl Leaving {
    fn lock(&self) -> MutexGuard<'_, LeftCalls> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one. True if no task sends them yet: then the caller does, by [`Leaving::next`].
    fn add(&self, call: Left) -> bool {
        let mut state = self.lock();
        state.calls.push(call);
        !std::mem::replace(&mut state.sending, true)
    }

    /// Those of the next call; or none, and then no task sends any.
    fn next(&self) -> Option<Vec<Left>> {
        let mut state = self.lock();
        let many = state.calls.len().min(TOGETHER_MAX);
        let calls: Vec<_> = state.calls.drain(..many).collect();
        state.sending = many > 0;
        state.sending.then_some(calls)
    }
}

/// Tells the store that this call waits no more. Of a lease call whose caller is gone the place is kept for a while, and
/// what it was granted is undone.
pub(super) async fn leave(caller: &Caller, call: Left) {
    let leaving = &caller.space.leaving;
    if !leaving.add(call) {
        return;
    }
    while let Some(calls) = leaving.next() {
        // A hint: if this call is lost, the waits end in the store ten seconds after their own ends, and this process
        // gives back the parcels that come until then.
        let mut args = LeaveArgs { calls: Vec::new(), awaits: Vec::new() };
        for call in calls {
            match call {
                Left::Lease(call) => args.calls.push(call),
                Left::End(call) => args.awaits.push(call),
            }
        }
        let _ = caller.reply::<serde::de::IgnoredAny>(LEAVE, &args).await;
    }
}
