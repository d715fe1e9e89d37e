//! `tenure lock` and `tenure lease`: CMD runs while something is held, and only then.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tenure::call_off;
use tenure::ids::{request_id, this_process};
use tenure::keeper::Held;
use tenure_core::job::Need;
use tenure_core::lease::{Ending, LeaseView, Leased};
use tenure_core::names::LimitName;
use tenure_core::requests::{GetLimit, Lease, Patch, PatchLimit, Settle};
use tenure_core::time::Span;
use tenure_engine::{CallError, Fault};
use tokio::sync::watch;

use crate::args::leases::{HoldArgs, LeaseArgs, LockArgs};
use crate::child::environment::Environment;
use crate::child::outcome::{How, plain};
use crate::child::run::{GRACE, Guard, Running, Streams};
use crate::child::signals::Signals;
use crate::child::terminal::Terminal;
use crate::cmd::asking::{Asking, slice};
use crate::cmd::work::keeper;
use crate::exit::{DISK, Failure, LEASE_LOST, UNAVAILABLE, by_signal};
use crate::output::tell;
use crate::said;
use crate::store::Store;

/// Who waits without end gives up when the store has been away for so long.
const AWAY_MAX: Duration = Duration::from_secs(60);
/// Giving back is tried for so long; then the lease runs out by itself.
const GIVE_BACK_MAX: Duration = Duration::from_secs(10);

/// Runs CMD while a lock is held.
pub async fn lock(store: &Store, args: LockArgs) -> Result<(), Failure> {
    if let Some(holders) = args.holders {
        widen(store, &args.name, holders).await?;
    }
    let what = format!("lock '{}'", args.name.key().unwrap_or_default());
    let needs = vec![Need::Limit { limit: args.name, weight: 1, cost: 1 }];
    hold(store, &what, needs, args.ttl, args.hold).await
}

/// Runs CMD while needs are held.
pub async fn lease(store: &Store, args: LeaseArgs) -> Result<(), Failure> {
    let needs = said::needs(&args.needs)?;
    hold(store, "the lease", needs, args.ttl, args.hold).await
}

/// Makes the lock one of so many holders, unless it is set already.
async fn widen(store: &Store, limit: &LimitName, holders: u32) -> Result<(), Failure> {
    let view = store.run(GetLimit { limit: limit.clone() }).await?;
    if view.template.is_none() {
        let set = view.settings.concurrency;
        if set != Some(holders) {
            let set = set.map_or_else(|| "any number of".to_owned(), |set| set.to_string());
            tell(&format!("'{limit}' is set to {set} holders, which holds; -n {holders} does not"));
            crate::output::hint(&format!("tenure limit set {limit} --concurrency {holders}"));
        }
        return Ok(());
    }
    let patch = PatchLimit {
        limit: limit.clone(),
        concurrency: Patch::Set(holders),
        rate: Patch::Keep,
        gap: Patch::Keep,
        quarantine: Patch::Keep,
    };
    store.run(patch).await?;
    Ok(())
}

async fn hold(
    store: &Store,
    what: &str,
    needs: Vec<Need>,
    ttl: Span,
    args: HoldArgs,
) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let patience = args.patience();
    let got = got_unless_told(store, needs, ttl, patience, &mut signals).await?;
    let Some((lease, asked)) = got.lease else {
        let (no, next) = match patience {
            Some(Span::ZERO) => ("is taken".to_owned(), "--wait D waits for it"),
            Some(wait) => (format!("was not got in {wait}"), "a longer --wait may get it"),
            None => ("was not got".to_owned(), "try again"),
        };
        let why = if got.why.is_empty() { String::new() } else { format!("{}; ", got.why) };
        let failure = Failure::new(args.exit_code, format!("{what} {no}"));
        let failure = failure.hint(format!("{why}{next}"));
        return Err(failure);
    };
    // A token was granted and given back in one step: there is nothing to keep.
    let held = match lease.lease {
        Some(_) => {
            let Ok(held) = keeper(store)?.hold(&lease, ttl, asked).await else {
                // The keeper gives it back too, but this process does not wait for the keeper.
                call_off::give_back(&store.client(), vec![lease]).await;
                return Err(lost(what, "before CMD was started"));
            };
            Some(held)
        }
        None => None,
    };
    let ended = run(what, &lease, held.as_ref(), &args, &mut signals).await;
    let gone = matches!(&ended, Err(failure) if failure.code == LEASE_LOST);
    if let (Some(held), false) = (&held, gone) {
        give_back(store, held).await;
    }
    match ended? {
        How::Code(0) => Ok(()),
        how => Err(Failure::silent(how.exit_code())),
    }
}

fn lost(what: &str, when: &str) -> Failure {
    Failure::new(LEASE_LOST, format!("{what} was lost {when}"))
        .hint("somebody else may hold it by now")
}

/// Runs CMD to its end, which is by a signal if this process got one.
async fn run(
    what: &str,
    lease: &LeaseView,
    held: Option<&Held>,
    args: &HoldArgs,
    signals: &mut Signals,
) -> Result<How, Failure> {
    let disk = |error| {
        Failure::new(DISK, format!("cannot write the lease file: {error}"))
            .hint("make room in the folder for temporary files, or name another with TMPDIR")
    };
    let guard = Guard::spawn()?;
    let folder = Environment::folder().map_err(disk)?;
    guard.watches(folder.path())?;
    let bonds = args.bonds;
    let environment = Environment::of(lease, folder, bonds.pass_credentials).map_err(disk)?;
    let mut running = guard.start(&args.command, &environment, Streams::Ours, bonds.detach).await?;
    let group = running.group();
    let mut terminal = running.suspended().and_then(|come| Terminal::hand_over(group, come));
    let ended = attend(&mut running, held, terminal.as_mut(), signals).await;
    drop(terminal);
    let leaves = bonds.leave_children && matches!(ended, Ok(Attended::Ended(How::Code(0))));
    if !leaves {
        running.end_the_rest(|| held.map(Held::hard_limit)).await?;
    }
    // The guard goes last.
    drop(environment);
    running.let_go();
    match ended? {
        Attended::Ended(how) => Ok(how),
        Attended::Told(signal) => Ok(How::Signal(signal as i32)),
        Attended::Lost => Err(lost(what, "while CMD ran, and CMD was stopped")),
    }
}

enum Attended {
    /// CMD ended.
    Ended(How),
    /// CMD ended after this process got a signal and passed it on.
    Told(Signal),
    /// The lease was lost and CMD stopped.
    Lost,
}

async fn attend(
    running: &mut Running,
    held: Option<&Held>,
    mut terminal: Option<&mut Terminal>,
    signals: &mut Signals,
) -> Result<Attended, Failure> {
    let mut told = None;
    loop {
        let stopped = async {
            match held {
                Some(held) => held.stopped().await,
                None => std::future::pending().await,
            }
        };
        let follow = async {
            match &mut terminal {
                Some(terminal) => terminal.follow().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            how = running.ended() => {
                let how = how?;
                return Ok(told.map_or(Attended::Ended(how), Attended::Told));
            }
            _ = stopped => {
                running.stop(GRACE, || held.map(Held::hard_limit)).await?;
                return Ok(Attended::Lost);
            }
            signal = signals.next() => {
                // The first one says how this process ends; all are passed on.
                told.get_or_insert(signal);
                running.signal(signal);
            }
            () = follow => {}
        }
    }
}

/// Asks until it is granted or patience is over. A signal ends it: the call that waits is called off,
/// so that nothing is held by a process that is gone. A second signal does not wait for that.
async fn got_unless_told(
    store: &Store,
    needs: Vec<Need>,
    ttl: Span,
    patience: Option<Span>,
    signals: &mut Signals,
) -> Result<Got, Failure> {
    let (tell, told) = watch::channel(false);
    let acquiring = acquire(store, needs, ttl, patience, told);
    tokio::pin!(acquiring);
    let signal = tokio::select! {
        got = &mut acquiring => return got,
        signal = signals.next() => signal,
    };
    tell.send_replace(true);
    tokio::select! {
        got = acquiring => {
            if let Ok(Got { lease: Some((lease, _)), .. }) = got {
                call_off::give_back(&store.client(), vec![lease]).await;
            }
        }
        _ = signals.next() => {}
    }
    Err(Failure::silent(by_signal(signal as i32)))
}

/// Returns when nobody wants to have it any more; never if that cannot be told.
async fn unwanted(told: &mut watch::Receiver<bool>) {
    if told.wait_for(|told| *told).await.is_err() {
        std::future::pending().await
    }
}

/// What asking came to.
struct Got {
    lease: Option<(LeaseView, Instant)>,
    /// Why there is none.
    why: String,
}

/// Asks in slices until it is granted, patience is over (`None` is patience without end) or a signal is
/// told.
async fn acquire(
    store: &Store,
    needs: Vec<Need>,
    ttl: Span,
    patience: Option<Span>,
    mut told: watch::Receiver<bool>,
) -> Result<Got, Failure> {
    let client = store.client();
    let begun = Instant::now();
    // A token has no ttl to cut into slices; any length of a call serves.
    let slice = if ttl == Span::ZERO {
        slice(Span::from_us(tenure_core::bounds::TTL_US_DEFAULT))
    } else {
        slice(ttl)
    };
    let first = request_id();
    let mut id = first.clone();
    let mut asking = Asking::default();
    let mut said = false;
    loop {
        if *told.borrow() {
            return Ok(Got { lease: None, why: String::new() });
        }
        let gone = begun.elapsed();
        let left = patience.map(|patience| patience.std().saturating_sub(gone));
        let mut lease = Lease::needs(needs.clone());
        lease.wait = left.map_or(slice, |left| slice.min(milliseconds(left)));
        lease.ttl = ttl;
        lease.worker = this_process().clone();
        // Each answered slice is followed by one under a new id, which keeps the place of the first.
        lease.place = (id != first).then(|| first.clone());
        lease.request_id = Some(id.clone());
        let (asked, wait) = (Instant::now(), lease.wait);
        let answer = call_off::lease_unless(&client, lease, unwanted(&mut told)).await;
        let pause = match answer {
            Ok(Leased { mut leases, reasons, .. }) => {
                let pause = asking.answered(!leases.is_empty(), wait, asked.elapsed());
                if !leases.is_empty() {
                    return Ok(Got { lease: Some((leases.remove(0), asked)), why: String::new() });
                }
                id = request_id();
                let why = why::sentence(&reasons, super::now());
                if left.is_some_and(|left| milliseconds(left) <= wait) {
                    return Ok(Got { lease: None, why });
                }
                let wanted = !*told.borrow();
                if wanted && !said && !why.is_empty() {
                    said = true;
                    tell(&format!("waiting: {why}"));
                }
                pause
            }
            Err(error) => {
                let unknown = matches!(error, CallError::Fault(Fault::Unknown(_)));
                let pause = asking.failed(error)?;
                let over = left.is_some_and(|left| left.is_zero());
                if over || (patience.is_none() && asking.away() > AWAY_MAX) {
                    return Err(Failure::new(UNAVAILABLE, "the store did not answer any more")
                        .hint("see whether the server runs, and try again"));
                }
                // Of a call that may have been granted the same id finds the grant.
                if !unknown {
                    id = request_id();
                }
                pause
            }
        };
        tokio::select! {
            () = tokio::time::sleep(left.map_or(pause, |left| pause.min(left))) => {}
            () = unwanted(&mut told) => {}
        }
    }
}

fn milliseconds(time: Duration) -> Span {
    Span::from_ms(u64::try_from(time.as_millis()).unwrap_or(u64::MAX / 1_000))
}

/// Gives the lease back; it is extended while that is tried.
async fn give_back(store: &Store, held: &Held) {
    let item = plain(held.lease(), Ending::Released);
    let begun = Instant::now();
    loop {
        let error = match store.run(Settle { settle: vec![item.clone()] }).await {
            // That it was lost at the very end changes nothing: CMD had ended.
            Ok(_) => return,
            Err(error) => error,
        };
        let passing = matches!(error, CallError::Fault(Fault::Unavailable(_) | Fault::Unknown(_)));
        if !passing || begun.elapsed() > GIVE_BACK_MAX {
            return tell(&format!("the lease was not given back, and ends by itself: {error}"));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

mod why;

#[cfg(test)]
mod tests;
