//! `tenure lock` and `tenure lease`: CMD runs while something is held, and only then.

use std::time::Duration;

use nix::sys::signal::Signal;
use tenure::keeper::Held;
use tenure::{Client, Lock, LockError, LockGuard};
use tenure_core::job::Need;
use tenure_core::lease::LeaseView;
use tenure_core::names::LimitName;
use tenure_core::requests::{GetLimit, PutLimit};
use tenure_core::settings::LimitSettings;
use tenure_core::time::Span;
use tokio::sync::Notify;

use self::lease_end::{LeaseEnd, tell_kept};
use self::waiting::WaitTeller;
use crate::args::leases::{HoldArgs, LeaseArgs, LockArgs};
use crate::child::environment::Environment;
use crate::child::environment::close_to_cmd;
use crate::child::grace::GRACE;
use crate::child::guard::process::adopt_orphans;
use crate::child::outcome::How;
use crate::child::run::{CmdUnstarted, GuardLink, Running, Streams};
use crate::child::run_folder::RunFolder;
use crate::child::signals::Signals;
use crate::child::terminal::Terminal;
use crate::cmd::work::heartbeats;
use crate::exit::{DISK, Failure, LEASE_LOST, by_signal};
use crate::json_args;
use crate::output::clock;
use crate::output::tell;

/// Runs CMD while a lock is held.
pub async fn lock(client: &Client, args: LockArgs, url: &str) -> Result<(), Failure> {
    close_to_cmd();
    if !args.hold.bonds.may_outlive() {
        adopt_orphans();
    }
    if let Some(holders) = args.holders {
        widen(client, &args.name, holders).await?;
    }
    let what = format!("lock {:?}", args.name.key().unwrap_or_default());
    let needs = vec![Need::Limit { limit: args.name, weight: 1, cost: 1 }];
    let waiting = WaitTeller::new(args.hold.quiet, url);
    hold(client, &what, needs, args.ttl, args.hold, waiting).await
}

/// Runs CMD while needs are held.
pub async fn lease(client: &Client, args: LeaseArgs, url: &str) -> Result<(), Failure> {
    close_to_cmd();
    if !args.hold.bonds.may_outlive() {
        adopt_orphans();
    }
    let needs = json_args::needs(&args.needs)?;
    let waiting = WaitTeller::new(args.hold.quiet, url);
    hold(client, "the lease", needs, args.ttl, args.hold, waiting).await
}

/// Sets the number of holders of the lock, unless it is set already.
async fn widen(client: &Client, limit: &LimitName, holders: u32) -> Result<(), Failure> {
    let view = client.run(GetLimit { limit: limit.clone() }).await?;
    if view.template.is_none() {
        let set = view.settings.concurrency;
        if set != Some(holders) {
            let set = set.map_or_else(|| "any number of".to_owned(), |set| set.to_string());
            tell(&format!("'{limit}' is set to {set} holders; -n {holders} has no effect"));
            crate::output::hint(&format!("tenure limit set {limit} --concurrency {holders}"));
        }
        return Ok(());
    }
    let settings = LimitSettings { concurrency: Some(holders), ..LimitSettings::default() };
    client.run(PutLimit { limit: limit.clone(), settings, gauge: None }).await?;
    Ok(())
}

async fn hold(
    client: &Client,
    what: &str,
    needs: Vec<Need>,
    ttl: Span,
    args: HoldArgs,
    waiting: WaitTeller,
) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    heartbeats(client)?;
    let patience = args.patience();
    let lock = Lock::new(client.clone(), needs).ttl(ttl).observe(move |event| waiting.hear(event));
    let guard = match acquire(&lock, patience.map(Span::std), &mut signals).await? {
        Ok(guard) => guard,
        Err(LockError::Busy(last)) => {
            let (within, next) = match patience {
                Some(Span::ZERO) => (String::new(), "--wait D waits for it"),
                Some(wait) => (format!(" within {wait}"), "try a longer --wait"),
                None => (String::new(), "try again"),
            };
            let why = why::sentence(&last.reasons, clock::now());
            let why = if why.is_empty() { why } else { format!(": {why}") };
            let failure =
                Failure::new(args.exit_code, format!("could not get {what}{within}{why}"));
            return Err(failure.hint(next));
        }
        Err(LockError::Lost) => return Err(lost(what, "before CMD was started")),
        Err(LockError::Call(error)) => return Err(error.into()),
        Err(other) => return Err(Failure::bug(other)),
    };
    let ran = match run(what, guard.lease(), guard.held(), &args, &mut signals).await {
        Ok(ran) => ran,
        Err(failure) => {
            // Otherwise it may belong to somebody else by now.
            if failure.code != LEASE_LOST {
                give_back(guard).await;
            }
            return Err(failure);
        }
    };
    match (ran.end.bring_about(guard).await, ran.code) {
        (ended, 0) => ended,
        (Ok(()), code) => Err(Failure::silent(code)),
        (Err(failure), code) => Err(Failure { code, ..failure }),
    }
}

/// The end of CMD's run.
struct CmdRan {
    /// How this process ends.
    code: u8,
    end: LeaseEnd,
}

fn lost(what: &str, when: &str) -> Failure {
    Failure::new(LEASE_LOST, format!("{what} was lost {when}"))
        .hint("another process may hold it by now")
}

/// Runs CMD to its end, which is by a signal if this process received one.
async fn run(
    what: &str,
    lease: &LeaseView,
    held: Option<&Held>,
    args: &HoldArgs,
    signals: &mut Signals,
) -> Result<CmdRan, Failure> {
    let disk = |error| {
        Failure::new(DISK, format!("cannot write the lease file: {error}"))
            .hint("free some space in the folder for temporary files, or name another with TMPDIR")
    };
    let guard = GuardLink::spawn()?;
    let folder = RunFolder::new().map_err(disk)?;
    guard.watches(folder.path())?;
    let bonds = args.bonds;
    let environment = Environment::of(lease, folder, bonds.pass_credentials).map_err(disk)?;
    let watch = held.map(Held::watch);
    let started =
        guard.start(&args.command, &environment, Streams::Ours, bonds.detach, watch).await;
    let mut running = match started {
        Ok(running) => running,
        Err(CmdUnstarted::Failed(failure)) => return Err(failure),
        Err(CmdUnstarted::Overdue) => return Err(lost(what, "before CMD was started")),
    };
    let group = running.group();
    let mut terminal = running.suspended().and_then(|come| Terminal::hand_over(group, come));
    let ended = attend(&mut running, held, terminal.as_mut(), signals).await;
    drop(terminal);
    let leaves = bonds.leave_children && matches!(ended, Ok(Attended::Ended(How::Code(0), None)));
    if !leaves {
        running.end_the_rest(|| held.map(Held::hard_limit)).await?;
    }
    let (how, forwarded) = match ended {
        Ok(Attended::Ended(how, forwarded)) => (how, forwarded),
        other => {
            // The guard goes last.
            drop(environment);
            running.let_go();
            return Err(match other {
                Err(failure) => failure,
                Ok(_) => lost(what, "while CMD ran, and CMD was stopped"),
            });
        }
    };
    let end = LeaseEnd::after(how, forwarded, &environment);
    drop(environment);
    running.let_go();
    let code = forwarded.map_or(how.exit_code(), |signal| by_signal(signal as i32));
    Ok(CmdRan { code, end })
}

enum Attended {
    /// CMD ended; with the first signal that this process received and forwarded, if any.
    Ended(How, Option<Signal>),
    /// The lease was lost and CMD stopped.
    Lost,
}

async fn attend(
    running: &mut Running,
    held: Option<&Held>,
    terminal: Option<&mut Terminal>,
    signals: &mut Signals,
) -> Result<Attended, Failure> {
    let mut forwarded = None;
    // One for all rounds of the loop: a new one would not know that CMD is suspended.
    let follow = async {
        match terminal {
            Some(terminal) => terminal.follow().await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(follow);
    loop {
        let stopped = async {
            match held {
                Some(held) => held.stopped().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            how = running.ended() => {
                let how = how?;
                if running.is_overdue() {
                    return Ok(Attended::Lost);
                }
                return Ok(Attended::Ended(how, forwarded));
            }
            _ = stopped => {
                running.stop(GRACE, || held.map(Held::hard_limit)).await?;
                return Ok(Attended::Lost);
            }
            signal = signals.next() => {
                // The first one decides how this process ends; all are forwarded.
                forwarded.get_or_insert(signal);
                running.signal(signal);
                // A suspended process cannot end.
                running.signal(Signal::SIGCONT);
            }
            () = &mut follow => {}
        }
    }
}

/// Waits for the lock. A signal cancels the waiting call, so that a process that is gone holds nothing. A second signal
/// does not wait for that.
async fn acquire(
    lock: &Lock,
    longest: Option<Duration>,
    signals: &mut Signals,
) -> Result<Result<LockGuard, LockError>, Failure> {
    let off = Notify::new();
    let acquiring = lock.acquire_unless(longest, off.notified());
    tokio::pin!(acquiring);
    let signal = tokio::select! {
        acquired = &mut acquiring => return Ok(acquired),
        signal = signals.next() => signal,
    };
    off.notify_one();
    let ended = async {
        if let Ok(guard) = acquiring.await {
            give_back(guard).await;
        }
    };
    tokio::select! {
        () = ended => {}
        _ = signals.next() => {}
    }
    Err(Failure::silent(by_signal(signal as i32)))
}

/// Gives the lease back; it is extended while that is tried.
async fn give_back(guard: LockGuard) {
    tell_kept(guard.release().await);
}

mod lease_end;
mod waiting;
mod why;

#[cfg(test)]
mod tests;
