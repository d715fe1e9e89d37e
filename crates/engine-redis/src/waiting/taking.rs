//! Lease calls from the caller's side, alone or right after settles: its task is started, and what it was granted is
//! taken, or undone if the caller goes away.

use tenure_core::lease::Leased;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Lease, Settle, Settled};
use tenure_core::sentences::StoreRefusal;
use tenure_engine::CallError;
use tokio::sync::oneshot;

use super::given::{UndoGuard, gone};
use super::lease_call::Call;
use crate::answer::Answerable;
use crate::call::Caller;
use crate::holders::{self, Settling};

impl Answerable for Lease {
    async fn answer(self, caller: Caller) -> Result<Leased, CallError> {
        lease(caller, self).await
    }
}

/// One lease call.
async fn lease(caller: Caller, lease: Lease) -> Result<Leased, CallError> {
    refuse_if_draining(&caller)?;
    taken(Call::new(caller, lease).spawned()).await
}

/// Settles, and a lease call right after them: they are one call of the store, and stand whatever becomes of the wait.
pub(crate) async fn settle_and_lease(
    caller: Caller,
    settle: Settle,
    lease: Lease,
) -> Result<Settled, CallError> {
    if let Err(no) = refuse_if_draining(&caller) {
        let settled = holders::settle(&caller, settle).await?;
        return CallError::after_settles(settled, Err(no.into()));
    }
    let settling = Settling::of(&caller, settle).await?;
    let (told, settled) = oneshot::channel();
    let mut call = Call::new(caller, lease);
    call.settles = Some((settling, told));
    let guard = call.spawned();
    let settled = settled.await.unwrap_or_else(|_| Err(gone()))?;
    CallError::after_settles(settled, taken(guard).await)
}

fn refuse_if_draining(caller: &Caller) -> Result<(), Refusal> {
    match caller.shared.is_draining() {
        true => Err(StoreRefusal::Draining.into()),
        false => Ok(()),
    }
}

/// The answer of a lease call that is being made.
async fn taken(mut guard: UndoGuard) -> Result<Leased, CallError> {
    let answer = match &mut guard.receiver {
        Some(receiver) => receiver.await,
        None => return Err(gone()),
    };
    guard.receiver = None;
    answer.unwrap_or_else(|_| Err(gone())).map(|given| given.answer)
}
