//! Time under a test's control: the clock of a namespace is a key, and what is due by it is done
//! before a move of the clock returns.
//!
//! The release's library has no such clock: with it a move changes nothing that is decided.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tenure_core::names::Namespace;
use tenure_engine::{CallError, Clock, Fault};
use tokio::time::timeout;

use super::signals::Signals;
use super::timer::tick;
use crate::call::Caller;
use crate::link::{Value, cmd};
use crate::shared::Shared;

/// Ticks in a row beyond which something is due for ever: a bug.
const TICKS_MAX: u32 = 10_000;
/// How long a signal that was published may take to come.
const SIGNALS_WITHIN: Duration = Duration::from_secs(10);
/// After so long a barrier is published again.
const PUBLISHED_AGAIN: Duration = Duration::from_millis(100);

fn stuck(what: &str) -> CallError {
    Fault::Broken(format!("a test's time did not settle: {what}")).into()
}

/// Sets the clock of these namespaces to what `clock` shows, and does all that is due by it.
pub(crate) async fn set_clock(
    shared: &Arc<Shared>,
    clock: &dyn Clock,
    namespaces: &[Namespace],
) -> Result<(), CallError> {
    let (now, monotonic) = (clock.now(), clock.monotonic());
    shared.moves();
    for namespace in namespaces {
        let caller = shared.caller(namespace);
        let mut set = cmd("SET");
        set.arg(caller.space.now.as_str()).arg(now.us());
        plain(&caller, &set).await?;
    }
    shared.set_moved(now, monotonic);
    for namespace in namespaces {
        let caller = shared.caller(namespace);
        tick(&caller).await?;
        settle_all(&caller).await?;
        // Whose wait is over by the new clock is told; and what that freed is given away.
        caller.space.stir();
        settle_all(&caller).await?;
    }
    Ok(())
}

async fn plain(caller: &Caller, command: &crate::link::Cmd) -> Result<Value, CallError> {
    let sent = caller.shared.link.command(caller.space.name.as_str(), command).await;
    sent.map_err(|why| Fault::Unavailable(why.to_string()).into())
}

/// Ticks until nothing is due by the test's clock, and all who were signalled have asked again.
pub(crate) async fn settle_all(caller: &Caller) -> Result<(), CallError> {
    for _ in 0..TICKS_MAX {
        let mut ticks = 0;
        while is_due(caller) {
            tick(caller).await?;
            ticks += 1;
            if ticks > TICKS_MAX {
                return Err(stuck("something is always due"));
            }
        }
        signals_came(caller).await?;
        // What is due may be under way: the engine ticks by itself.
        drop(caller.space.ticking.lock().await);
        if !is_due(caller) {
            return Ok(());
        }
    }
    Err(stuck("signals never end"))
}

fn is_due(caller: &Caller) -> bool {
    caller.space.timer.due().is_some_and(|due| due <= caller.shared.moved().us())
}

/// Waits until every signal that was published before has come and was acted upon.
async fn signals_came(caller: &Caller) -> Result<(), CallError> {
    if caller.space.waiting() == 0 {
        return Ok(());
    }
    let mut busy = caller.space.busy();
    let all = async {
        barrier(caller).await?;
        let _ = busy.wait_for(|busy| *busy == 0).await;
        Ok(())
    };
    timeout(SIGNALS_WITHIN, all).await.unwrap_or_else(|_| Err(stuck("a signal never came")))
}

/// Waits until the signals of a namespace come, once.
pub(super) async fn signals_live(caller: &Caller) -> Result<(), CallError> {
    if caller.space.live.load(Ordering::Acquire) {
        return Ok(());
    }
    let came = timeout(SIGNALS_WITHIN, barrier(caller)).await;
    came.unwrap_or_else(|_| Err(stuck("no signal ever came")))?;
    caller.space.live.store(true, Ordering::Release);
    Ok(())
}

/// Publishes a name to this process until it has come: what was published before came before.
async fn barrier(caller: &Caller) -> Result<(), CallError> {
    let number = caller.shared.next_taker();
    let mut came = caller.shared.signals.barriers();
    loop {
        let barrier = Signals::barrier_text(number);
        let published = caller.shared.link.publish(&caller.space.signals, &barrier).await;
        published.map_err(|why| Fault::Unavailable(why.to_string()))?;
        // Until the listening has begun nobody gets what is published.
        let heard = came.wait_for(|highest| *highest >= number);
        if timeout(PUBLISHED_AGAIN, heard).await.is_ok() {
            return Ok(());
        }
    }
}
