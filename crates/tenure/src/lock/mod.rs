//! Needs alone: a lock, a semaphore, a resource of a pool, held by a guard.
//!
//! A guard keeps what it holds alive and gives it back; it cannot stop the code that works under
//! it. That code watches [`LockGuard::stopped`], or hands [`LockGuard::fence`] to the store it
//! writes to.

use std::fmt;
use std::time::Duration;

use tenure_core::bounds::TTL_US_DEFAULT;
use tenure_core::job::Need;
use tenure_core::lease::{Fence, LeaseView, Leased};
use tenure_core::names::{LimitName, RequestId};
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::Lease;
use tenure_core::time::Span;
use tenure_engine::{CallError, Fault};
use tokio::time::{Instant, sleep};

use crate::client::{Client, broken};
use crate::ids;
use crate::keeper::{Held, Keeper, Stop};
use crate::outcome::SettleOutcome;
use crate::repeat::Backoff;
use crate::slice::{hold_back, slice};

/// An engine that once answered may be away for so long before a wait is given up.
const AWAY_MAX: Duration = Duration::from_secs(60);

/// Why a lock was not got.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LockError {
    /// Somebody else has it, for longer than was to be waited. Carries the last answer: why, and
    /// when it may change.
    Busy(Leased),
    /// The call was refused or failed.
    Call(CallError),
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::Busy(last) => match last.reasons.first() {
                Some(reason) => write!(f, "not got in time: {}", reason.detail),
                None => f.write_str("not got in time: it is taken"),
            },
            LockError::Call(error) => error.fmt(f),
        }
    }
}
impl std::error::Error for LockError {}
impl From<CallError> for LockError {
    fn from(error: CallError) -> Self {
        LockError::Call(error)
    }
}

/// Needs to be acquired together, all or none. Locks are not re-entrant.
#[derive(Clone, Debug)]
pub struct Lock {
    client: Client,
    needs: Vec<Need>,
    ttl: Span,
}

/// One permit and one token of a limit.
pub fn one(limit: LimitName) -> Need {
    Need::Limit { limit, weight: 1, cost: 1 }
}

impl Lock {
    /// Of any needs, 1 to 16.
    pub fn new(client: Client, needs: Vec<Need>) -> Self {
        Lock { client, needs, ttl: Span::from_us(TTL_US_DEFAULT) }
    }
    /// How long it is held on after this process died: `1s` to `1h`, 30 s unless set.
    pub fn ttl(mut self, ttl: Span) -> Self {
        self.ttl = ttl;
        self
    }

    /// Waits until it is got.
    ///
    /// # Errors
    /// The call was refused; or the engine cannot be reached, for a minute if it was before.
    pub async fn acquire(&self) -> Result<LockGuard, LockError> {
        self.wait(None).await
    }
    /// Waits at most so long.
    ///
    /// # Errors
    /// [`LockError::Busy`] if it is not got by then; else as [`Lock::acquire`].
    pub async fn acquire_within(&self, wait: Duration) -> Result<LockGuard, LockError> {
        self.wait(Some(wait)).await
    }
    /// Takes it if it is free.
    ///
    /// # Errors
    /// [`LockError::Busy`] if it is not; else as [`Lock::acquire`].
    pub async fn try_acquire(&self) -> Result<LockGuard, LockError> {
        self.wait(Some(Duration::ZERO)).await
    }

    async fn wait(&self, longest: Option<Duration>) -> Result<LockGuard, LockError> {
        let keeper = self.client.keeper()?;
        let begun = Instant::now();
        let left = || longest.map(|longest| longest.saturating_sub(begun.elapsed()));
        let mut place: Option<RequestId> = None;
        let mut backoff = Backoff::default();
        let mut heard: Option<Instant> = None;
        loop {
            let wait = match left() {
                Some(left) => slice(self.ttl).min(span(left)),
                None => slice(self.ttl),
            };
            let id = ids::request_id();
            let mut lease = Lease::needs(self.needs.clone());
            lease.wait = wait;
            lease.ttl = self.ttl;
            lease.worker = ids::this_process().clone();
            lease.request_id = Some(id.clone());
            lease.place = place.clone();
            let asked = Instant::now();
            let pause = match self.client.run(lease).await {
                Ok(leased) => {
                    heard = Some(Instant::now());
                    if let Some(view) = leased.leases.first() {
                        match keeper.hold(view, self.ttl, asked.into_std()).await {
                            Ok(held) => return Ok(self.guard(view.clone(), held, keeper)),
                            // It was ours and is not any more: the next wait is another one.
                            Err(_) => place = None,
                        }
                    } else {
                        place.get_or_insert(id);
                    }
                    if left() == Some(Duration::ZERO) {
                        return Err(LockError::Busy(leased));
                    }
                    hold_back(wait, asked.elapsed(), &mut backoff)
                }
                Err(error) if passing(&error, heard) => backoff.wait(),
                Err(error) => return Err(error.into()),
            };
            sleep(left().map_or(pause, |left| left.min(pause))).await;
        }
    }

    fn guard(&self, lease: LeaseView, held: Held, keeper: Keeper) -> LockGuard {
        LockGuard { client: self.client.clone(), keeper, lease, held, open: true }
    }
}

/// Whether a wait goes on in spite of this: the engine was there, and has not been away for long.
fn passing(error: &CallError, heard: Option<Instant>) -> bool {
    let away = heard.is_some_and(|at| at.elapsed() < AWAY_MAX);
    match error {
        CallError::Fault(Fault::Unavailable(_)) => away,
        CallError::Refused(no) => away && matches!(no.code, Code::Draining | Code::Overloaded),
        CallError::Fault(_) => false,
    }
}

fn span(time: Duration) -> Span {
    // Up to whole milliseconds: the contract has no smaller unit, and zero would not wait.
    Span::from_ms(u64::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX / 1_000))
}

/// What is held until this is dropped or released.
pub struct LockGuard {
    client: Client,
    keeper: Keeper,
    lease: LeaseView,
    held: Held,
    /// Whether it is still to be given back.
    open: bool,
}

impl LockGuard {
    /// Grows with every grant: a store that refuses lower ones is safe from an older holder.
    pub fn fence(&self) -> Fence {
        self.lease.fence
    }
    /// The lease, with the data of its resources.
    pub fn lease(&self) -> &LeaseView {
        &self.lease
    }
    /// The lease in the keeper's care.
    pub fn held(&self) -> &Held {
        &self.held
    }
    /// When the work under it must stop, and why.
    pub async fn stopped(&self) -> Stop {
        self.held.stopped().await
    }

    /// Gives it back, and waits for the answer.
    ///
    /// # Errors
    /// `lease_lost`: it was no longer held, so somebody else may have had it meanwhile. A fault: it
    /// is not known to be given back; it is tried on for a while and then runs out by itself.
    pub async fn release(self) -> Result<(), CallError> {
        self.settle(SettleOutcome::released()).await
    }

    /// The same, with something to say about the resources and limits that were held.
    ///
    /// # Errors
    /// As [`LockGuard::release`].
    pub async fn settle(mut self, outcome: SettleOutcome) -> Result<(), CallError> {
        let Some(lease) = self.lease.lease.clone() else {
            return Err(broken("a guard has no lease"));
        };
        let settled = self.client.settle(vec![outcome.of(lease)]).await?;
        // Answered, one way or the other: nothing is left for the drop to do.
        self.open = false;
        match settled.first() {
            Some(settled) if settled.ok => Ok(()),
            Some(settled) => Err(CallError::Refused(Refusal::new(
                settled.code.unwrap_or(Code::LeaseLost),
                "the lease was no longer held when it was given back",
                "check what was done under it: somebody else may have held the same meanwhile",
            ))),
            None => Err(broken("a settle was not answered")),
        }
    }
}

impl Drop for LockGuard {
    /// Gives it back without waiting: as good as can be done here. A process that ends at once may
    /// not get to it; then it runs out after its ttl.
    fn drop(&mut self) {
        if self.open {
            self.keeper.release(self.held.lease().to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
