//! What a lease call was granted, and that it is undone if nobody takes it.

use tenure_core::lease::Leased;
use tenure_engine::{CallError, Fault};
use tokio::sync::oneshot;

use super::parcels::Parcel;
use crate::call::Caller;
use crate::decode::{self, LeasedReply};
use crate::encode::UndoArgs;
use crate::function::UNDO;

/// What is granted is named by its fence and its job's row number.
pub(super) type Name = (u64, u64);

/// An answer, and what is undone if nobody takes it.
pub(super) struct Given {
    pub answer: Leased,
    pub granted: Vec<Name>,
}

/// Undoes what nobody takes.
pub(super) struct UndoGuard {
    pub caller: Caller,
    pub receiver: Option<oneshot::Receiver<Result<Given, CallError>>>,
}

impl Drop for UndoGuard {
    fn drop(&mut self) {
        // After this, whoever sends sees that nobody receives; what was sent before is here.
        let Some(receiver) = &mut self.receiver else { return };
        receiver.close();
        if let Ok(Ok(given)) = receiver.try_recv() {
            undo(&self.caller, given.granted);
        }
    }
}

/// Says in the background that nobody got these.
pub(super) fn undo(caller: &Caller, leases: Vec<Name>) {
    if leases.is_empty() {
        return;
    }
    let (caller, owing) = (caller.clone(), caller.shared.owing());
    caller.shared.runtime.clone().spawn(async move {
        let _owing = owing;
        // A hint: the leases end with their ttl if it is lost.
        let _ = caller.reply::<serde::de::IgnoredAny>(UNDO, &UndoArgs { leases }).await;
    });
}

/// Undoes what a parcel brings for which nobody waits any more, unless its call was answered that otherwise.
pub(super) fn give_back(caller: &Caller, parcel: Parcel) {
    if caller.space.parcels.was_fetched(parcel.number) {
        return;
    }
    if let Ok(Ok(answered)) = decode::read::<LeasedReply>(UNDO.name, parcel.parts) {
        undo(caller, answered.reply.names(&answered.blobs).unwrap_or_default());
    }
}

/// The answer to a call whose task has ended without one.
pub(super) fn gone() -> CallError {
    Fault::Unavailable("the engine was closed".to_owned()).into()
}
