//! One job of `tenure work`: CMD is run, watched and stopped, and its end becomes the job's outcome.

use std::ffi::OsString;
use std::fs::File;
use std::time::{Duration, SystemTime};

use tenure::keeper::Stop;
use tenure::{CallError, Client, Execute, Executed, Job, SettleOutcome};
use tenure_core::lease::LeaseView;
use tenure_core::time::Span;

use crate::args::leases::BondArgs;
use crate::child::environment::{self, Environment, JobFiles};
use crate::child::grace::GRACE;
use crate::child::outcome;
use crate::child::run::{self, GuardLink, Running, Streams};
use crate::child::run_folder::RunFolder;
use crate::cmd::work_parents::{self, NoFile};
use crate::exit::{DISK, Failure};
use crate::output::tell;

/// How often the progress file is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// SIGKILL comes this soon after SIGTERM when a second signal asks for it.
const HASTE: Duration = Duration::from_secs(1);

/// Executes a job by running CMD.
pub struct Cmd {
    /// Where the parents of jobs are read.
    client: Client,
    command: Vec<OsString>,
    /// How closely CMD is bound to this process.
    bonds: BondArgs,
    /// The ttl of the jobs' leases.
    ttl: Span,
}

impl Cmd {
    /// Runs `command` for each job.
    pub fn new(client: Client, command: Vec<OsString>, bonds: BondArgs, ttl: Span) -> Self {
        Cmd { client, command, bonds, ttl }
    }

    /// Starts CMD.
    ///
    /// # Errors
    /// [`Unstarted`].
    async fn start(&self, job: &Job) -> Result<(Environment, JobFiles, Running), Unstarted> {
        let disk = |error: std::io::Error| {
            Failure::new(DISK, format!("cannot write the files of a job: {error}")).hint(
                "free some space in the folder for temporary files, or name another with TMPDIR",
            )
        };
        let guard = GuardLink::spawn()?;
        let folder = RunFolder::new().map_err(disk)?;
        guard.watches(folder.path())?;
        if job.view().parents > 0 {
            let path = folder.path().join(environment::PARENTS);
            tokio::select! {
                written = work_parents::write(&self.client, job.id(), &path) => match written {
                    Ok(()) => {}
                    Err(NoFile::Disk(error)) => return Err(disk(error).into()),
                    Err(NoFile::Call(error)) => return Err(Unstarted::ParentsUnread(error)),
                },
                stop = job.stopped() => return Err(Unstarted::Stopped(stop)),
            }
        }
        let whole = LeaseView { job: Some(Box::new(job.view().clone())), ..job.lease().clone() };
        let environment =
            Environment::of(&whole, folder, self.bonds.pass_credentials).map_err(disk)?;
        let files = environment.files.clone().ok_or_else(|| Failure::bug("a lease has no job"))?;
        let payload = File::open(&files.payload).map_err(disk)?;
        let streams = Streams::Job(payload);
        let (detach, lease) = (self.bonds.detach, Some(job.watch()));
        let started = guard.start(&self.command, &environment, streams, detach, lease).await;
        let running = started.map_err(|no| match no {
            run::CmdUnstarted::Failed(failure) => Unstarted::Useless(failure),
            run::CmdUnstarted::Overdue => Unstarted::Stopped(job.stop().unwrap_or(Stop::Lost)),
        })?;
        Ok((environment, files, running))
    }

    /// Waits for the end of CMD, and stops it when its job must stop.
    async fn watch(
        &self,
        job: &Job,
        files: &JobFiles,
        running: &mut Running,
    ) -> Result<RunEnd, Failure> {
        let mut reported = Progress::default();
        let look = LOOK.min(self.ttl.std() / 5);
        let limit = || Some(job.hard_limit());
        let stop = loop {
            tokio::select! {
                how = running.ended() => {
                    let how = how?;
                    if running.is_overdue() {
                        running.end_the_rest(limit).await?;
                        return Ok(RunEnd::Over(job.stop().unwrap_or(Stop::Lost)));
                    }
                    if !(self.bonds.leave_children && how == outcome::How::Code(0)) {
                        running.end_the_rest(limit).await?;
                    }
                    return Ok(RunEnd::Itself(how));
                }
                stop = job.stopped() => break stop,
                () = tokio::time::sleep(look) => reported.report(job, files),
            }
        };
        if stop == Stop::Shutdown {
            give_back(job, running).await?;
            return Ok(RunEnd::GivenBack);
        }
        let how = running.stop(GRACE, limit).await?;
        match stop {
            Stop::Cancelled => Ok(RunEnd::Itself(how)),
            stop => Ok(RunEnd::Over(stop)),
        }
    }
}

impl Execute for Cmd {
    type Failure = Failure;

    async fn execute(&self, job: Job) -> Executed<Failure> {
        let (environment, files, mut running) = match self.start(&job).await {
            Ok(started) => started,
            Err(Unstarted::Useless(failure)) => {
                let outcome = Some(SettleOutcome::released());
                return Executed { outcome, failure: Some(failure) };
            }
            Err(Unstarted::ParentsUnread(error)) => {
                tell(&format!(
                    "job '{}' is given back: its parents cannot be read: {error}",
                    job.id()
                ));
                return SettleOutcome::released().into();
            }
            Err(Unstarted::Stopped(stop)) => {
                let ours = matches!(stop, Stop::Shutdown | Stop::Cancelled);
                let outcome = ours.then(SettleOutcome::released);
                return Executed { outcome, failure: None };
            }
        };
        let ended = match self.watch(&job, &files, &mut running).await {
            Ok(ended) => ended,
            Err(failure) => return Executed { outcome: None, failure: Some(failure) },
        };
        let outcome = match ended {
            RunEnd::Itself(how) => {
                let stderr = running.stderr().await;
                Some(outcome::of_end(how, &stderr, &files))
            }
            RunEnd::GivenBack => Some(outcome::reporting(SettleOutcome::released(), &files)),
            RunEnd::Over(stop) => {
                let why = match stop {
                    Stop::Deadline => "its time is over",
                    _ => "its lease was lost",
                };
                tell(&format!("job '{}' was stopped: {why}", job.id()));
                None
            }
        };
        // The files go before the job can be granted again.
        drop(environment);
        running.let_go();
        Executed { outcome, failure: None }
    }
}

/// Why CMD was not started.
enum Unstarted {
    /// Another job would fare no better: CMD cannot be started, or the disk does not write.
    Useless(Failure),
    /// The job's parents cannot be read now.
    ParentsUnread(CallError),
    /// The job had to stop before CMD began.
    Stopped(Stop),
}

impl From<Failure> for Unstarted {
    fn from(failure: Failure) -> Self {
        Unstarted::Useless(failure)
    }
}

/// Why CMD is at its end.
enum RunEnd {
    /// It ended, or was stopped because its job was cancelled: how it ended counts.
    Itself(outcome::How),
    /// It was stopped because `work` ends.
    GivenBack,
    /// It was stopped because the job is not ours any more.
    Over(Stop),
}

/// Stops CMD because `work` ends: in haste if a second signal asks for it, even after the stop has begun.
async fn give_back(job: &Job, running: &mut Running) -> Result<(), Failure> {
    let limit = || Some(job.hard_limit());
    tokio::select! {
        how = running.stop(GRACE, limit) => return how.map(|_| ()),
        () = job.hurried() => {}
    }
    running.stop(HASTE, limit).await.map(|_| ())
}

/// The progress that CMD reported last.
#[derive(Default)]
struct Progress {
    seen: Option<(SystemTime, u64)>,
}

impl Progress {
    /// Reports the progress file with the next heartbeat, if it changed.
    fn report(&mut self, job: &Job, files: &JobFiles) {
        let Ok(meta) = std::fs::metadata(&files.progress) else { return };
        let Ok(modified) = meta.modified() else { return };
        let now = Some((modified, meta.len()));
        if self.seen == now {
            return;
        }
        self.seen = now;
        if let Some(progress) = outcome::progress(&files.progress) {
            // A progress that is too long was left out above.
            let _ = job.set_progress(progress);
        }
    }
}
