//! One job of `tenure work`: CMD is run, watched and stopped, and its end is settled.

use std::ffi::OsString;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tenure::call_off;
use tenure::keeper::{Held, Keeper, Stop};
use tenure_core::lease::{Ending, LeaseView, SettleItem};
use tenure_core::refusal::Code;
use tenure_core::requests::Settle;
use tenure_core::time::Span;
use tenure_engine::{CallError, Fault};
use tokio::sync::watch;

use crate::args::leases::BondArgs;
use crate::child::environment::{Environment, JobFiles};
use crate::child::outcome::{self, failed, plain};
use crate::child::run::{GRACE, Guard, Running, Streams};
use crate::exit::{DISK, Failure};
use crate::output::tell;
use crate::store::Store;

/// How often the progress file is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How long an end is tried to be told. Later the store may have forgotten the lease.
const SETTLE_MAX: Duration = Duration::from_micros(tenure_core::bounds::REQUEST_US);
/// Between two tries.
const AGAIN: Duration = Duration::from_millis(500);
/// SIGKILL comes so soon after SIGTERM when a second signal asks for it.
const HASTE: Duration = Duration::from_secs(1);

/// How far `work` is on its way to its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// Takes jobs.
    Working,
    /// Takes no more; what runs may finish.
    Draining,
    /// What runs is stopped and given back.
    GivingBack,
    /// The same, in haste.
    Now,
}

/// What all jobs of one `work` share.
pub struct Shop {
    /// Where the jobs come from.
    pub store: Store,
    /// Their heartbeats.
    pub keeper: Keeper,
    /// CMD.
    pub command: Vec<OsString>,
    /// What CMD has of this process.
    pub bonds: BondArgs,
    /// The ttl of their leases.
    pub ttl: Span,
    /// On the way to the end?
    pub phase: watch::Receiver<Phase>,
}

/// Runs one job to its end.
///
/// # Errors
/// What makes it useless to take another job: CMD cannot be started, or the disk does not write.
/// The job was given back then.
pub async fn run(shop: Arc<Shop>, lease: LeaseView, asked: Instant) -> Result<(), Failure> {
    let Ok(held) = shop.keeper.hold(&lease, shop.ttl, asked).await else {
        // Not known to be held, and nothing ran. The keeper gives it back too, but a process that ends
        // does not wait for the keeper.
        call_off::give_back(&shop.store.client(), vec![lease]).await;
        return Ok(());
    };
    let started = prepare(&shop, &lease).await;
    let (environment, files, mut running) = match started {
        Ok(started) => started,
        Err(failure) => {
            settle(&shop.store, &held, plain(held.lease(), Ending::Released)).await;
            return Err(failure);
        }
    };
    let ended = watch(&shop, &held, &files, &mut running).await;
    let item = match ended? {
        End::Itself(how) => {
            let stderr = running.stderr().await;
            Some(outcome::settle(held.lease(), how, &stderr, &files))
        }
        End::GivenBack => Some(plain(held.lease(), Ending::Released)),
        End::Over(stop) => {
            let job = lease.job.as_ref().map_or("", |job| job.id.as_str());
            let why = match stop {
                Stop::Deadline => "its time is over",
                _ => "its lease was lost",
            };
            tell(&format!("job '{job}' was stopped: {why}"));
            None
        }
    };
    // The files go before the job can be granted again.
    drop(environment);
    running.let_go();
    if let Some(item) = item {
        settle(&shop.store, &held, item).await;
    }
    Ok(())
}

async fn prepare(
    shop: &Shop,
    lease: &LeaseView,
) -> Result<(Environment, JobFiles, Running), Failure> {
    let disk = |error: std::io::Error| {
        Failure::new(DISK, format!("cannot write the files of a job: {error}"))
            .hint("make room in the folder for temporary files, or name another with TMPDIR")
    };
    let guard = Guard::spawn()?;
    let folder = Environment::folder().map_err(disk)?;
    guard.watches(folder.path())?;
    let bonds = shop.bonds;
    let environment = Environment::of(lease, folder, bonds.pass_credentials).map_err(disk)?;
    let files = environment.files.clone().ok_or_else(|| Failure::bug("a lease has no job"))?;
    let payload = File::open(&files.payload).map_err(disk)?;
    let streams = Streams::Job(payload);
    let running = guard.start(&shop.command, &environment, streams, bonds.detach).await?;
    Ok((environment, files, running))
}

/// Why CMD is at its end.
enum End {
    /// It ended, or was stopped because its job was called off: how it ended counts.
    Itself(outcome::How),
    /// It was stopped because `work` ends.
    GivenBack,
    /// It was stopped because the job is not ours any more.
    Over(Stop),
}

async fn watch(
    shop: &Shop,
    held: &Held,
    files: &JobFiles,
    running: &mut Running,
) -> Result<End, Failure> {
    let mut phase = shop.phase.clone();
    let mut reported = Progress::default();
    let look = LOOK.min(shop.ttl.std() / 5);
    let stop = loop {
        tokio::select! {
            how = running.ended() => {
                let how = how?;
                if !(shop.bonds.leave_children && how == outcome::How::Code(0)) {
                    running.end_the_rest(|| Some(held.hard_limit())).await?;
                }
                return Ok(End::Itself(how));
            }
            stop = held.stopped() => break stop,
            () = reached(&mut phase, Phase::GivingBack) => {
                give_back(&mut phase, held, running).await?;
                return Ok(End::GivenBack);
            }
            () = tokio::time::sleep(look) => reported.report(held, files),
        }
    };
    let how = running.stop(GRACE, || Some(held.hard_limit())).await?;
    match stop {
        Stop::Cancelled => Ok(End::Itself(how)),
        stop => Ok(End::Over(stop)),
    }
}

/// Stops CMD because `work` ends: in haste if that is asked for, also after it has begun.
async fn give_back(
    phase: &mut watch::Receiver<Phase>,
    held: &Held,
    running: &mut Running,
) -> Result<(), Failure> {
    let limit = || Some(held.hard_limit());
    tokio::select! {
        how = running.stop(GRACE, limit) => return how.map(|_| ()),
        () = reached(phase, Phase::Now) => {}
    }
    running.stop(HASTE, limit).await.map(|_| ())
}

/// Waits until it has come so far; for ever if nobody says any more how far it has come.
pub async fn reached(phase: &mut watch::Receiver<Phase>, far: Phase) {
    if phase.wait_for(|phase| *phase >= far).await.is_err() {
        std::future::pending().await
    }
}

/// What CMD reported last.
#[derive(Default)]
struct Progress {
    seen: Option<(SystemTime, u64)>,
}

impl Progress {
    /// Reports the progress file with the next heartbeat, if it changed.
    fn report(&mut self, held: &Held, files: &JobFiles) {
        let Ok(meta) = std::fs::metadata(&files.progress) else { return };
        let Ok(modified) = meta.modified() else { return };
        let now = Some((modified, meta.len()));
        if self.seen == now {
            return;
        }
        self.seen = now;
        if let Some(progress) = outcome::progress(&files.progress) {
            // What is too long was left out above.
            let _ = held.set_progress(progress);
        }
    }
}

/// Tells how a lease ended, and tries again while the store cannot be reached. The lease is extended
/// meanwhile.
pub async fn settle(store: &Store, held: &Held, mut item: SettleItem) {
    let begun = Instant::now();
    let mut refusals = 0;
    loop {
        let why = match store.run(Settle { settle: vec![item.clone()] }).await {
            Ok(settled) => match settled.settled.first().and_then(|one| one.code) {
                None => return,
                Some(Code::AlreadySettled) => "it was settled otherwise".to_owned(),
                Some(_) => "the lease was lost".to_owned(),
            },
            // What CMD asked for beside its end cannot be done: that is how it failed. If even that
            // is refused, the job is given back.
            Err(CallError::Refused(no)) if no.code.status() < 500 && refusals < 2 => {
                refusals += 1;
                tell(&format!("the outcome of lease '{}' was refused: {}", item.lease, no.detail));
                item = match refusals {
                    1 => {
                        let why = format!("the outcome was refused: {}; {}", no.detail, no.hint);
                        failed(&item.lease, why)
                    }
                    _ => plain(&item.lease, Ending::Released),
                };
                continue;
            }
            Err(error) => {
                let passing = match &error {
                    CallError::Refused(no) => no.code.status() == 503,
                    CallError::Fault(fault) => {
                        matches!(fault, Fault::Unavailable(_) | Fault::Unknown(_))
                    }
                };
                if passing && begun.elapsed() < SETTLE_MAX {
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
                error.to_string()
            }
        };
        // The holder is told, and the job runs again.
        return tell(&format!("the end of lease '{}' was not taken: {why}", held.lease()));
    }
}
