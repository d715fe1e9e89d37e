//! Lease calls whose callers are gone. Ten thousand may go at the same time, with the client that made them: those that
//! go while the store is told of others are told together.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::call::Caller;
use crate::encode::{LeaveArgs, LeftCall};
use crate::function::LEAVE;

/// One call of the store carries so many: it keeps Redis for some milliseconds at most.
const TOGETHER_MAX: usize = 128;

/// Those of one namespace of which the store is still to be told.
#[derive(Default)]
pub(crate) struct Leaving {
    state: Mutex<LeftCalls>,
}

#[derive(Default)]
struct LeftCalls {
    calls: Vec<LeftCall>,
    /// Somebody tells of them, until none is left.
    telling: bool,
}

impl Leaving {
    fn lock(&self) -> MutexGuard<'_, LeftCalls> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more. Whether nobody tells of it so far: then the caller does, by [`Leaving::next`].
    fn add(&self, call: LeftCall) -> bool {
        let mut state = self.lock();
        state.calls.push(call);
        !std::mem::replace(&mut state.telling, true)
    }

    /// Those that are told of next; or none, and then nobody tells of any.
    fn next(&self) -> Option<Vec<LeftCall>> {
        let mut state = self.lock();
        let many = state.calls.len().min(TOGETHER_MAX);
        let calls: Vec<_> = state.calls.drain(..many).collect();
        state.telling = many > 0;
        state.telling.then_some(calls)
    }
}

/// Tells the store that the caller of this call is gone: its place is kept for a while, and what it was granted is
/// undone.
pub(super) async fn leave(caller: &Caller, call: LeftCall) {
    let leaving = &caller.space.leaving;
    if !leaving.add(call) {
        return;
    }
    while let Some(calls) = leaving.next() {
        // A hint: a wait that the store was not told of ends there ten seconds after its own end, and what it is
        // granted until then is given back by who looks for its call.
        let _ = caller.reply::<serde::de::IgnoredAny>(LEAVE, &LeaveArgs { calls }).await;
    }
}
