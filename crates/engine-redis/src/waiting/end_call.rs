//! A call for the end of a job or of a flow: it may wait, and its caller may go away at any moment.
//!
//! It reads first ([`super::result_call`], [`super::flow_call`]). If the end has not come, the call is registered with what
//! it waits for, and reads again when its process is notified. A notification may be lost: so the process asks once a
//! second which registrations are gone, in one call for many. Who could not be registered, as nobody is while the store is
//! full, counts as gone, and so reads once a second. Nothing is granted to such a call, so it needs no task of its own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::refusal::Code;
use tenure_core::time::Span;
use tenure_engine::{CallError, Fault};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::leaving::{Left, leave};
use super::space::Waiter;
use super::wait_end::WaitEnd;
use crate::call::Caller;
use crate::decode::NotAwaited;
use crate::encode::{AwaitedArgs, LeftAwait};
use crate::function::LOOK_AWAITED;
use crate::options::Time;

/// A process looks this often after its registrations, whatever it hears.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The most that one call of the store names.
const TOGETHER_MAX: usize = 256;

/// What a call waits for the end of.
pub(super) trait Awaited: Sync {
    /// As the store shows it.
    type Found: Send + 'static;
    /// A registration stays in the store when the end has come, until its call leaves.
    const STAYS: bool;

    /// Its name among what is waited for in the store.
    fn name(&self) -> String;
    /// Whether the end has come.
    fn is_finished(found: &Self::Found) -> bool;
    /// Reads it.
    fn read(&self) -> impl Future<Output = Result<Self::Found, CallError>> + Send;
    /// Reads it, and registers a call that waits for so long (us), unless the end has come. And the number of the
    /// registration, if there is one. It goes on when its caller is gone.
    fn register(
        &self,
        wait: u64,
    ) -> impl Future<Output = Result<(Self::Found, Option<u64>), CallError>> + Send + 'static;
    /// What the caller is told of what cannot be read any more.
    fn lost(&self, why: CallError) -> CallError;
}

/// What woke a call that waits.
enum Cause {
    /// What it waits for has ended, or it is not registered.
    Notified,
    /// A test moved its clock.
    Look,
    /// Its time is over.
    Over,
}

/// What the store knows of a call that waits. Its caller may go while the store is being asked: then whoever hears of the
/// registration gives it back.
#[derive(Default)]
struct Registration {
    state: Mutex<Registered>,
}

#[derive(Default)]
struct Registered {
    number: Option<u64>,
    /// The call waits no more.
    is_over: bool,
}

impl Registration {
    fn lock(&self) -> MutexGuard<'_, Registered> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store has registered the call, or not; the number is answered if it is to be given back.
    fn heard(&self, number: Option<u64>) -> Option<u64> {
        let mut state = self.lock();
        if state.is_over {
            return number;
        }
        state.number = number;
        None
    }

    /// The number that is to be given back.
    fn take(&self) -> Option<u64> {
        self.lock().number.take()
    }

    /// The same, when the call waits no more.
    fn end(&self) -> Option<u64> {
        let mut state = self.lock();
        state.is_over = true;
        state.number.take()
    }
}

/// A call among those that wait here, given back in any case.
struct EndWaiter<'a> {
    caller: &'a Caller,
    number: u64,
    /// What it waits for the end of, by its name in the store.
    name: String,
    waiter: Arc<Waiter>,
    /// The store or a signal is being acted upon.
    acting: bool,
    registration: Arc<Registration>,
    stirred: watch::Receiver<u64>,
    draining: watch::Receiver<bool>,
}

impl<'a> EndWaiter<'a> {
    fn new(caller: &'a Caller, name: String) -> Self {
        let number = caller.shared.next_taker();
        let waiter = caller.space.enter(number);
        if caller.space.awaits(&name, number) {
            caller.shared.runtime.spawn(look_after(caller.clone()));
        }
        caller.space.acting();
        EndWaiter {
            caller,
            number,
            name,
            waiter,
            acting: true,
            registration: Arc::default(),
            stirred: caller.space.stirred(),
            draining: caller.shared.draining(),
        }
    }

    fn acted(&mut self) {
        if std::mem::take(&mut self.acting) {
            self.caller.space.acted();
        }
    }

    fn left(&self) -> Option<Left> {
        self.registration.take().map(|number| left(self.caller, &self.name, number))
    }

    /// Waits for a reason to read.
    async fn wait(&mut self, end: WaitEnd) -> Cause {
        self.acted();
        let shared = &self.caller.shared;
        loop {
            tokio::select! {
                biased;
                () = self.waiter.signal.notified() => {
                    self.acting = self.caller.space.acts(&self.waiter);
                    return Cause::Notified;
                }
                _ = self.draining.wait_for(|draining| *draining) => return Cause::Over,
                changed = self.stirred.changed() => {
                    if changed.is_err() {
                        return Cause::Over;
                    }
                }
                () = reached(end) => return Cause::Over,
            }
            match (shared.time, end.left(shared)) {
                (_, 0) => return Cause::Over,
                // Whether messages were missed is seen for all of them at once.
                (Time::Server, _) => {}
                _ => return Cause::Look,
            }
        }
    }
}

impl Drop for EndWaiter<'_> {
    fn drop(&mut self) {
        self.acted();
        self.caller.space.awaits_no_more(&self.name, self.number);
        self.caller.space.leave(self.number);
        let number = self.registration.end();
        if let Some(left) = number.map(|number| left(self.caller, &self.name, number)) {
            let (caller, owing) = (self.caller.clone(), self.caller.shared.owing());
            self.caller.shared.runtime.spawn(async move {
                let _owing = owing;
                leave(&caller, left).await;
            });
        }
    }
}

fn left(caller: &Caller, name: &str, number: u64) -> Left {
    Left::End(LeftAwait(name.to_owned(), caller.shared.proc.clone(), number))
}

/// Returns when a wait is over by this process's watch.
async fn reached(end: WaitEnd) {
    match end {
        WaitEnd::Real(end) => sleep_until(end).await,
        // A test that moves its clock stirs all that wait.
        WaitEnd::Moved(_) => std::future::pending().await,
    }
}

/// Looks for all calls of this process that wait here, until none does: at once when messages may have been missed.
async fn look_after(caller: Caller) {
    let mut stirred = caller.space.stirred();
    loop {
        let look = Instant::now() + LOOK_EVERY;
        tokio::select! {
            () = sleep_until(look) => {}
            changed = stirred.changed(), if caller.shared.time == Time::Server => {
                if changed.is_err() {
                    return;
                }
            }
        }
        let Some(names) = caller.space.awaited() else { return };
        for names in names.chunks(TOGETHER_MAX) {
            let args = AwaitedArgs { names };
            // A store that is away is asked again a second later.
            let Ok(NotAwaited { gone }) = caller.reply(LOOK_AWAITED, &args).await else { break };
            for name in gone.into_iter().filter_map(|place| names.get(place.wrapping_sub(1))) {
                caller.space.ended(name);
            }
        }
    }
}

/// Waits for the end of something that has not come to it; it, as it is then or when the wait is over.
pub(super) async fn wait_for_end<A: Awaited>(
    caller: &Caller,
    awaited: &A,
    wait: Span,
) -> Result<A::Found, CallError> {
    let shared = &caller.shared;
    let end = WaitEnd::after(shared, wait);
    shared.signals.follow(shared, &caller.space);
    if shared.time != Time::Server {
        super::testing::signals_live(caller).await?;
    }
    let mut place = EndWaiter::new(caller, awaited.name());
    let mut answer = match register(awaited, &mut place, end).await {
        Err(why) if why.code() == Some(Code::StoreFull) => awaited.read().await,
        answer => answer,
    };
    loop {
        match answer {
            Ok(found) if A::is_finished(&found) => {
                if let Some(left) = place.left().filter(|_| A::STAYS) {
                    leave(caller, left).await;
                }
                return Ok(found);
            }
            Ok(_) => {}
            // A store that is away for a moment is asked again.
            Err(CallError::Fault(_)) if end.left(shared) > 0 && !shared.is_draining() => {}
            Err(why) => return Err(awaited.lost(why)),
        }
        answer = match place.wait(end).await {
            Cause::Look => awaited.read().await,
            Cause::Notified => match awaited.read().await {
                Ok(found) if !A::is_finished(&found) => {
                    register_again(awaited, &mut place, end, found).await
                }
                answer => answer,
            },
            Cause::Over => {
                if let Some(left) = place.left() {
                    leave(caller, left).await;
                }
                return awaited.read().await.map_err(|why| awaited.lost(why));
            }
        }
    }
}

async fn register<A: Awaited>(
    awaited: &A,
    place: &mut EndWaiter<'_>,
    end: WaitEnd,
) -> Result<A::Found, CallError> {
    let (caller, name) = (place.caller.clone(), place.name.clone());
    let registration = place.registration.clone();
    let registering = awaited.register(end.left(&caller.shared));
    let (answer, answered) = oneshot::channel();
    place.caller.shared.runtime.spawn(async move {
        let registered = registering.await.map(|(found, number)| {
            let number = registration.heard(number);
            (found, number.map(|number| left(&caller, &name, number)))
        });
        let (answered, left) = match registered {
            Ok((found, left)) => (Ok(found), left),
            Err(why) => (Err(why), None),
        };
        // Nobody hears it who is gone.
        let _ = answer.send(answered);
        if let Some(left) = left {
            let _owing = caller.shared.owing();
            leave(&caller, left).await;
        }
    });
    answered
        .await
        .unwrap_or_else(|_| Err(Fault::Unavailable("the engine is closed".to_owned()).into()))
}

/// The same of what lives again, or whose registration the store forgot. Where there is no room, or others took the last
/// place meanwhile, the call goes on without one.
async fn register_again<A: Awaited>(
    awaited: &A,
    place: &mut EndWaiter<'_>,
    end: WaitEnd,
    found: A::Found,
) -> Result<A::Found, CallError> {
    // It may be there all the same, of a call that was on its way when the process looked.
    if let Some(left) = place.left() {
        leave(place.caller, left).await;
    }
    match register(awaited, place, end).await {
        Err(why) if matches!(why.code(), Some(Code::LineFull | Code::StoreFull)) => Ok(found),
        answer => answer,
    }
}
