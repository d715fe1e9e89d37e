//! Locks: needs without a job, such as a lock, a semaphore or a resource of a pool, held by a guard.
//!
//! A guard keeps its lease alive and gives it back; it cannot stop the code that works under it. That code watches
//! [`LockGuard::stopped`], or hands [`LockGuard::fence`] to the store it writes to.

mod acquire;

use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;

use tenure_core::bounds::TTL_US_DEFAULT;
use tenure_core::job::Need;
use tenure_core::lease::{Fence, LeaseView, Leased};
use tenure_core::names::{LimitName, RequestId};
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{ForceLease, Lease};
use tenure_core::sentences::LeaseRefusal;
use tenure_core::time::Span;
use tenure_engine_api::CallError;
use tokio::time::{Instant, sleep};

use crate::asking::{AWAY_MAX, Answered, Asking, Sent, broken, passes, slice};
use crate::backoff::Backoff;
use crate::call_off;
use crate::client::Client;
use crate::ids;
use crate::keeper::{Held, Keeper, Stop};
use crate::lease_clock::LeaseTime;
use crate::observer::Observer;
use crate::outcome::SettleOutcome;

pub use self::acquire::Acquire;

/// The first slice of a wait with an observer: short, so that it soon learns why the lock is busy.
const FIRST: Span = Span::from_s(1);
/// [`LockGuard::release`] retries for this long; after that the lease expires by itself.
const RELEASE_MAX: Duration = Duration::from_secs(10);

impl Client {
    /// The lock `lock:NAME`, to be acquired.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// let guard = client.lock("deploy")?.acquire().await?;
    /// println!("deploying with fence {}", guard.fence());
    /// guard.release().await?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// A name that a limit cannot have.
    pub fn lock(&self, name: &str) -> Result<Lock, Refusal> {
        let limit = LimitName::parse(&format!("lock:{name}"))?;
        Ok(Lock::new(self.clone(), vec![one(limit)]))
    }
}

/// Why a lock was not acquired.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// It was not free in time. Carries the last answer: why, and when that may change.
    #[error("could not get the lock in time: {}", why_busy(.0))]
    Busy(Leased),
    /// It was granted at the end of the wait, but so late that another holder may have it by now; it was given back,
    /// and no work may be done under it.
    #[error("the lock was lost before anything was done under it")]
    Lost,
    /// The caller of [`Lock::acquire_unless`] cancelled the wait. Nothing is held.
    #[error("waiting for the lock was called off")]
    CalledOff,
    /// The call was refused or failed.
    #[error(transparent)]
    Call(#[from] CallError),
}

fn why_busy(last: &Leased) -> &str {
    last.reasons.first().map_or("it is taken", |reason| &reason.detail)
}

/// An event during the wait for a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LockEvent {
    /// It is not free yet. Reported after each slice of the wait, with the engine's answer.
    Waiting(Leased),
    /// The engine did not answer, or the token has used up its bounds; the call is retried. Reported for every call
    /// that fails.
    Trouble {
        /// The failure of the last call.
        error: CallError,
        /// How long nothing has answered; zero after a refusal.
        away: Duration,
    },
    /// The engine answers again.
    Recovered,
}

/// Needs to be acquired together, all or none. Locks are not re-entrant.
///
/// ```
/// # tenure::testing::example(async |client| {
/// use std::time::Duration;
/// use tenure::LockError;
///
/// let second = Duration::from_secs(1);
/// let lock = client.lock("deploy")?.ttl(10 * second).observe(|event| println!("{event:?}"));
/// let guard = lock.acquire_within(30 * second).await?;
///
/// assert!(matches!(lock.try_acquire().await, Err(LockError::Busy(_))));
/// let called_off = tokio::time::sleep(Duration::from_millis(10));
/// let no = lock.acquire_unless(Some(second), called_off).await;
/// assert!(matches!(no, Err(LockError::CalledOff)));
/// guard.release().await?;
/// # Ok(()) });
/// ```
#[derive(Clone, Debug)]
pub struct Lock {
    client: Client,
    needs: Vec<Need>,
    ttl: Span,
    observer: Observer<LockEvent>,
}

/// One permit and one token of a limit.
pub(crate) fn one(limit: LimitName) -> Need {
    Need::Limit { limit, weight: 1, cost: 1 }
}

impl Lock {
    /// A lock of any needs, 1 to 16.
    pub fn new(client: Client, needs: Vec<Need>) -> Self {
        let ttl = Span::from_us(TTL_US_DEFAULT);
        Lock { client, needs, ttl, observer: Observer::default() }
    }
    /// How long it stays held after this process died: `1s` to `1h`, 30 s unless set. With `0s` and needs that are only
    /// rates it takes their tokens and holds nothing.
    pub fn ttl(mut self, ttl: impl Into<Span>) -> Self {
        self.ttl = ttl.into();
        self
    }
    /// Receives the events of a wait, the first after a second; it must not block.
    pub fn observe(mut self, observer: impl Fn(&LockEvent) + Send + Sync + 'static) -> Self {
        self.observer = Observer::new(observer);
        self
    }

    /// Waits until it is acquired.
    ///
    /// # Errors
    /// The call was refused; or the engine never answered, or has not answered for a minute.
    pub async fn acquire(&self) -> Result<LockGuard, LockError> {
        self.acquire_unless(None, pending()).await
    }
    /// Waits at most this long, also for an engine that goes away.
    ///
    /// # Errors
    /// [`LockError::Busy`] if it is not free by then; otherwise the call was refused, or the engine
    /// never answered, or does not answer when the time is over.
    pub async fn acquire_within(&self, wait: Duration) -> Result<LockGuard, LockError> {
        self.acquire_unless(Some(wait), pending()).await
    }
    /// Takes it if it is free.
    ///
    /// # Errors
    /// [`LockError::Busy`] if it is not; otherwise as [`Lock::acquire_within`].
    pub async fn try_acquire(&self) -> Result<LockGuard, LockError> {
        self.acquire_unless(Some(Duration::ZERO), pending()).await
    }

    /// Waits until `off` completes, and at most for `longest` (without an end if that is `None`). If one of the other
    /// calls is dropped just as it is granted, that grant expires only after its ttl; this one gives it back before it
    /// returns.
    ///
    /// # Errors
    /// [`LockError::CalledOff`] after `off`; otherwise as [`Lock::acquire_within`].
    pub async fn acquire_unless(
        &self,
        longest: Option<Duration>,
        off: impl Future<Output = ()>,
    ) -> Result<LockGuard, LockError> {
        let mut off = Off { future: std::pin::pin!(off), over: false };
        let keeper = self.client.keeper()?;
        let begun = Instant::now();
        let left = || longest.map(|longest| longest.saturating_sub(begun.elapsed()));
        let mut place: Option<RequestId> = None;
        let mut asking = Asking::new();
        // A wait with a deadline must not be held up by the retries of one call.
        let client = if longest.is_some() { self.client.once() } else { self.client.clone() };
        loop {
            let (id, first_sent) = asking.call();
            let told_early = place.is_none() && self.observer.is_set();
            let most = if told_early { slice(self.ttl).min(FIRST) } else { slice(self.ttl) };
            let wait = left().map_or(most, |left| most.min(span(left)));
            let mut lease = Lease::needs(self.needs.clone());
            lease.wait = wait;
            lease.ttl = self.ttl;
            lease.worker = ids::this_process().clone();
            lease.place = place.clone();
            lease.request_id = Some(id.clone());
            let sent = Sent::now(keeper.clock());
            let answer = call_off::lease_unless(&client, lease, off.wait()).await;
            if off.over {
                return Err(LockError::CalledOff);
            }
            let pause = match answer {
                Ok(mut leased) => {
                    let granted = leased.leases.pop();
                    let Answered { again, pause } =
                        asking.answered(granted.is_some(), wait, sent.here.elapsed());
                    if again {
                        self.observer.tell(|| LockEvent::Recovered);
                    }
                    let over = left() == Some(Duration::ZERO);
                    if let Some(view) = granted {
                        if let Some(guard) = self
                            .guard(view, &keeper, first_sent.unwrap_or(sent.counts_from), &mut off)
                            .await?
                        {
                            return Ok(guard);
                        }
                        if over {
                            return Err(LockError::Lost);
                        }
                        // The lease was ours and is lost: the next wait is a new one.
                        place = None;
                    } else if over {
                        return Err(LockError::Busy(leased));
                    } else {
                        place.get_or_insert(id);
                        self.observer.tell(|| LockEvent::Waiting(leased));
                    }
                    pause
                }
                Err(error) => {
                    let Some(pause) = asking.lease_failed(&error, sent, wait) else {
                        return Err(error.into());
                    };
                    let over = match left() {
                        Some(left) => left.is_zero(),
                        None => asking.away() > AWAY_MAX,
                    };
                    if over {
                        return Err(error.into());
                    }
                    self.observer.tell(|| LockEvent::Trouble { error, away: asking.away() });
                    pause
                }
            };
            tokio::select! {
                () = sleep(left().map_or(pause, |left| left.min(pause))) => {}
                () = off.wait() => return Err(LockError::CalledOff),
            }
        }
    }

    /// A guard for a granted lease, which the keeper extends; `None` if it is not known to be held any more. Then it
    /// was given back.
    async fn guard(
        &self,
        lease: LeaseView,
        keeper: &Keeper,
        asked: LeaseTime,
        off: &mut Off<'_, impl Future<Output = ()>>,
    ) -> Result<Option<LockGuard>, LockError> {
        let held = match lease.lease {
            None => None,
            Some(_) => {
                let held = tokio::select! {
                    biased;
                    held = keeper.confirm(&lease, self.ttl, asked) => held.ok(),
                    () = off.wait() => None,
                };
                if held.is_none() {
                    call_off::give_back(&self.client, vec![lease]).await;
                    return if off.over { Err(LockError::CalledOff) } else { Ok(None) };
                }
                held
            }
        };
        let open = held.is_some();
        let (client, keeper) = (self.client.clone(), keeper.clone());
        Ok(Some(LockGuard { client, keeper, lease, held, open }))
    }
}

/// The signal that cancels a wait: a future that is not polled again once it has completed.
struct Off<'a, F> {
    future: Pin<&'a mut F>,
    over: bool,
}

impl<F: Future<Output = ()>> Off<'_, F> {
    /// Completes when the wait is cancelled. May be dropped and called again.
    async fn wait(&mut self) {
        if !self.over {
            self.future.as_mut().await;
            self.over = true;
        }
    }
}

fn span(time: Duration) -> Span {
    // Rounded up to whole milliseconds: the contract has no smaller unit, and zero would not wait.
    Span::from_ms(u64::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX / 1_000))
}

/// A granted lease without a job, held until this is dropped or released.
///
/// ```
/// # tenure::testing::example(async |client| {
/// use tenure::Verdict;
/// use tenure::{Need, PoolItem, SettleOutcome};
///
/// client.pool("accounts").add([PoolItem::new("ann").data(&"secret")?]).await?;
/// let guard = client.acquire([Need::pool("accounts")]).await?;
/// let ann = guard.lease().resources[0].clone();
/// let password: String = ann.data.read()?;
/// tokio::select! {
///     stop = guard.stopped() => println!("it is lost: stop at once, {stop:?}"),
///     () = log_in(&password) => {}
/// }
/// assert!(guard.held().is_some_and(|held| held.stop().is_none()));
///
/// let banned = Verdict::Ban { reason: Some("captcha".to_owned()) };
/// guard.settle(SettleOutcome::released().resource(ann.pool, ann.id, banned)).await?;
/// assert_eq!(client.pool("accounts").view().await?.banned, 1);
///
/// client.pool("accounts").add([PoolItem::new("bob")]).await?;
/// let cut_off = client.acquire([Need::pool("accounts")]).await?;
/// cut_off.force().await?;
/// # Ok(()) });
/// # async fn log_in(password: &str) {}
/// ```
#[must_use = "it is given back when it is dropped"]
pub struct LockGuard {
    client: Client,
    keeper: Keeper,
    lease: LeaseView,
    /// `None` for a token: it was granted and given back in one step.
    held: Option<Held>,
    /// Whether the lease must still be given back: true until the engine has answered that.
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
    /// The lease with its heartbeats; `None` if it was acquired with a ttl of zero, which holds nothing.
    pub fn held(&self) -> Option<&Held> {
        self.held.as_ref()
    }
    /// Completes when the work under it must stop, with the reason. Never, if nothing is held.
    pub async fn stopped(&self) -> Stop {
        match &self.held {
            Some(held) => held.stopped().await,
            None => pending().await,
        }
    }

    /// Gives it back, and waits for the answer: for ten seconds if the engine is away.
    ///
    /// # Errors
    /// `lease_lost`: it was no longer held, so another holder may have had it meanwhile. A fault: it may not be given
    /// back yet; the keeper retries a little longer, and then the lease expires by itself.
    pub async fn release(self) -> Result<(), CallError> {
        self.settle(SettleOutcome::released()).await
    }

    /// The same, with verdicts on the resources and limits that were held.
    ///
    /// # Errors
    /// As [`LockGuard::release`].
    pub async fn settle(mut self, outcome: SettleOutcome) -> Result<(), CallError> {
        self.try_settle(outcome).await
    }

    /// The same; but if the engine refuses the verdicts on resources and limits, the lease ends as by
    /// [`LockGuard::force`], and the refusal is returned.
    #[doc(hidden)]
    pub async fn settle_or_force(mut self, outcome: SettleOutcome) -> Result<(), CallError> {
        let settled = self.try_settle(outcome).await;
        if self.open && matches!(settled, Err(CallError::Refused(_))) {
            // If that fails too, the lease expires, with the same effect.
            let _ = self.force().await;
        }
        settled
    }

    async fn try_settle(&mut self, outcome: SettleOutcome) -> Result<(), CallError> {
        let Some(held) = &self.held else { return Ok(()) };
        let item = outcome.of(held.lease().to_owned());
        let settled = until_answered(async || self.client.settle(vec![item.clone()]).await).await?;
        // The settle was answered, one way or the other: drop has nothing left to do.
        self.open = false;
        match settled.first() {
            Some(settled) if settled.ok => Ok(()),
            Some(settled) => Err(CallError::Refused(match settled.code {
                Some(Code::AlreadySettled) => LeaseRefusal::LockSettledOtherwise.into(),
                _ => LeaseRefusal::LockLost.into(),
            })),
            None => Err(broken("a settle was not answered")),
        }
    }

    /// Ends it as the death of this process would, but at once: its resources and limits rest for their `quarantine`.
    /// For work that was interrupted, so that its effects are unknown.
    ///
    /// # Errors
    /// `lease_not_found`: it was no longer held. A fault: it may not have ended yet, and expires by itself, with the
    /// same effect.
    pub async fn force(mut self) -> Result<(), CallError> {
        // Whatever the answer is, the lease must not be given back as if all were well.
        self.open = false;
        let Some(held) = &self.held else { return Ok(()) };
        let lease = held.lease();
        until_answered(async || self.client.run(ForceLease { lease: lease.to_owned() }).await).await
    }
}

/// Retries a call that ends a lease while its failure is temporary, for at most ten seconds.
async fn until_answered<T>(call: impl AsyncFn() -> Result<T, CallError>) -> Result<T, CallError> {
    let until = Instant::now() + RELEASE_MAX;
    let mut backoff = Backoff::default();
    loop {
        match call().await {
            Err(error) if passes(&error) && Instant::now() < until => sleep(backoff.wait()).await,
            answered => return answered,
        }
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the lease: it may hold secrets of resources.
        write!(f, "LockGuard(fence {})", self.fence())
    }
}

impl Drop for LockGuard {
    /// Gives it back without waiting, since a drop cannot wait. If the process ends at once, the release may not be
    /// sent; then the lease expires after its ttl. A lost lease is not given back: it is not ours any more.
    fn drop(&mut self) {
        let Some(held) = self.held.as_ref().filter(|_| self.open) else { return };
        if held.stop() != Some(Stop::Lost) {
            self.keeper.release(held.lease().to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
