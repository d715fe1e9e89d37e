//! `tenure lock` and `tenure lease`: CMD runs while something is held, and only then.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tenure::ids::{request_id, this_process};
use tenure::keeper::Held;
use tenure_core::job::Need;
use tenure_core::lease::{Ending, LeaseView, Leased};
use tenure_core::names::LimitName;
use tenure_core::requests::{GetLimit, Lease, Patch, PatchLimit, Settle};
use tenure_core::time::Span;
use tenure_engine::{CallError, Fault};

use crate::args::leases::{HoldArgs, LeaseArgs, LockArgs};
use crate::child::environment::Environment;
use crate::child::outcome::{How, plain};
use crate::child::run::{GRACE, Running, Streams, start};
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
    let got = tokio::select! {
        got = acquire(store, needs, ttl, patience) => got?,
        // Dropping the call tells the store that nobody waits any more.
        signal = signals.next() => return Err(Failure::silent(by_signal(signal as i32))),
    };
    let Some((lease, asked)) = got.lease else {
        let mut failure = match patience {
            Some(Span::ZERO) => Failure::new(args.exit_code, format!("{what} is taken")),
            Some(wait) => Failure::new(args.exit_code, format!("{what} was not got in {wait}")),
            None => Failure::new(args.exit_code, format!("{what} was not got")),
        };
        if !got.why.is_empty() {
            failure = failure.hint(got.why);
        }
        return Err(failure);
    };
    // A token was granted and given back in one step: there is nothing to keep.
    let held = match lease.lease {
        Some(_) => {
            let held = keeper(store)?.hold(&lease, ttl, asked).await;
            Some(held.map_err(|_| lost(what, "before CMD was started"))?)
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
    let environment = Environment::of(lease).map_err(disk)?;
    let mut running = start(&args.command, &environment, Streams::Ours)?;
    let mut terminal = Terminal::hand_over(running.group());
    let ended = attend(&mut running, held, terminal.as_mut(), signals).await;
    drop(terminal);
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

/// What asking came to.
struct Got {
    lease: Option<(LeaseView, Instant)>,
    /// Why there is none.
    why: String,
}

/// Asks in slices until it is granted or patience is over; `None` is patience without end.
async fn acquire(
    store: &Store,
    needs: Vec<Need>,
    ttl: Span,
    patience: Option<Span>,
) -> Result<Got, Failure> {
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
    let mut told = false;
    loop {
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
        let pause = match store.run(lease).await {
            Ok(Leased { mut leases, reasons, .. }) => {
                let pause = asking.answered(!leases.is_empty(), wait, asked.elapsed());
                if !leases.is_empty() {
                    return Ok(Got { lease: Some((leases.remove(0), asked)), why: String::new() });
                }
                id = request_id();
                let why = super::explain::reasons(&reasons, super::now());
                let why = why.trim_end().to_owned();
                if left.is_some_and(|left| left <= wait.std()) {
                    return Ok(Got { lease: None, why });
                }
                if !told && !why.is_empty() {
                    told = true;
                    tell(&format!("waiting\n{why}"));
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
        tokio::time::sleep(left.map_or(pause, |left| pause.min(left))).await;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{self, Fake, Said};
    use std::ffi::OsString;
    use std::sync::Arc;
    use tenure_core::lease::Extended;
    use tenure_core::names::Namespace;
    use tenure_core::requests::{Put, Reply, Request};
    use tenure_core::settings::{LimitSettings, LimitView};

    fn args(script: &str) -> HoldArgs {
        let command = ["sh", "-c", script].map(OsString::from).to_vec();
        HoldArgs { wait: None, no_wait: false, exit_code: 1, command }
    }

    /// Grants at the nth call; before it nothing is free.
    fn granting(nth: usize) -> Arc<Fake> {
        let mut calls = 0;
        Fake::new(move |request| match request {
            Request::Lease(_) => {
                calls += 1;
                let leases = if calls == nth { vec![fake::needs_lease("L1")] } else { Vec::new() };
                Said::Answer(Ok(Reply::Lease(Leased { leases, ..Leased::default() })))
            }
            _ => Said::Well,
        })
    }

    async fn held(engine: &Arc<Fake>, args: HoldArgs, ttl: Span) -> Result<(), Failure> {
        let needs = said::needs(&["limit:lock:x".into()]).unwrap();
        hold(&Store::on(engine.clone()), "lock 'x'", needs, ttl, args).await
    }

    #[tokio::test]
    async fn cmds_exit_code_is_passed_on_and_the_lease_is_given_back() {
        for (script, code) in [
            ("test \"$TENURE_FENCE\" = 7 -a \"$TENURE_LEASE\" = L1", None),
            ("exit 3", Some(3)),
            ("kill -9 $$", Some(137)),
            ("exit 75", Some(75)),
        ] {
            let engine = granting(1);
            let ended = held(&engine, args(script), Span::from_s(30)).await;
            assert_eq!(ended.err().map(|failure| failure.code), code, "{script}");
            assert_eq!(engine.settled(), [plain("L1", Ending::Released)], "{script}");
        }
    }

    #[tokio::test]
    async fn who_may_not_wait_or_waited_long_enough_ends_with_the_code() {
        for (wait, no_wait) in
            [(None, true), (Some(Span::ZERO), false), (Some(Span::from_ms(20)), false)]
        {
            let engine = granting(usize::MAX);
            let args = HoldArgs { wait, no_wait, exit_code: 9, ..args("exit 0") };
            assert_eq!(held(&engine, args, Span::from_s(30)).await.unwrap_err().code, 9);
            assert_eq!(engine.settled(), []);
        }
    }

    #[tokio::test]
    async fn a_wait_is_many_calls_that_keep_the_place_of_the_first() {
        let engine = granting(3);
        held(&engine, args("true"), Span::from_s(30)).await.unwrap();
        let asked: Vec<Lease> = engine
            .asked()
            .into_iter()
            .filter_map(|request| match request {
                Request::Lease(lease) => Some(lease),
                _ => None,
            })
            .collect();
        assert_eq!(asked.len(), 3);
        assert_eq!(asked[0].place, None);
        assert_eq!(asked[1].place, asked[0].request_id);
        assert_eq!(asked[2].place, asked[0].request_id);
        assert!(asked[1].request_id != asked[0].request_id);
        assert_eq!(asked[0].wait, Span::from_s(5));
    }

    #[tokio::test]
    async fn a_lost_lease_stops_cmd_and_is_75() {
        let inner = granting(1);
        let engine = Fake::new(move |request| match request {
            Request::Extend(extend) => {
                let lost = vec![extend.leases[0].lease.clone()];
                Said::Answer(Ok(Reply::Extend(Extended { lost, ..Extended::default() })))
            }
            other => {
                let mut call =
                    tenure_engine::Engine::call(&*inner, &Namespace::main(), other.clone());
                let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                match call.as_mut().poll(&mut context) {
                    std::task::Poll::Ready(answer) => Said::Answer(answer),
                    std::task::Poll::Pending => panic!("not there yet"),
                }
            }
        });
        let ended = held(&engine, args("sleep 60"), Span::from_s(1)).await;
        assert_eq!(ended.unwrap_err().code, 75);
        assert_eq!(engine.settled(), []);
    }

    #[tokio::test]
    async fn a_cmd_that_is_not_there_gives_the_lease_back() {
        let engine = granting(1);
        let args = HoldArgs { command: vec!["/no/such/program".into()], ..args("") };
        assert_eq!(held(&engine, args, Span::from_s(30)).await.unwrap_err().code, 127);
        assert_eq!(engine.settled(), [plain("L1", Ending::Released)]);
    }

    #[tokio::test]
    async fn a_lock_that_is_set_holds_and_one_that_is_not_is_made() {
        for (template, patched) in [(Some("lock:*"), true), (None, false)] {
            let view = move |name: &LimitName| LimitView {
                name: name.clone(),
                template: template.map(|name| LimitName::parse(name).unwrap()),
                settings: LimitSettings { concurrency: Some(1), rate: None, gap: None },
                in_use: 0,
                external: 0,
                waiting: 0,
                over_limit: 0,
                paused_until: None,
                holders: vec![],
                line: vec![],
            };
            let engine = Fake::new(move |request| match request {
                Request::GetLimit(get) => Said::Answer(Ok(Reply::GetLimit(view(&get.limit)))),
                Request::PatchLimit(patch) => Said::Answer(Ok(Reply::PatchLimit(Put {
                    view: view(&patch.limit),
                    created: true,
                }))),
                _ => Said::Never,
            });
            let name = LimitName::parse("lock:x").unwrap();
            widen(&Store::on(engine.clone()), &name, 3).await.unwrap();
            let set = engine.asked().iter().any(|request| {
                matches!(request, Request::PatchLimit(patch) if patch.concurrency == Patch::Set(3))
            });
            assert_eq!(set, patched);
        }
    }
}
