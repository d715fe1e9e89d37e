//! One job of `tenure work --scrapyd`: finds its spider or starts it, and follows it to its end.
//!
//! A spider goes on when its worker dies or ends; the next worker finds it by the id of the job. Before a spider is
//! requested, that is noted in the job's progress, and stored: a run that may exist is looked for, and never taken for
//! one that has not begun.

use std::fmt::Display;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure::{CallError, Client, Execute, Executed, Job, SettleOutcome};
use tenure_core::lease::ExtendItem;
use tenure_core::requests::Extend;
use tokio::time::sleep;

use crate::exchange::Destination;
use crate::exit::Failure;
use crate::output::tell;
use crate::scrapyd::api::{LeaderReport, LogTail, ScrapydApi, ScrapydError};
use crate::scrapyd::log_end::LogEnd;
use crate::scrapyd::spider::{Spider, is_folder};
use crate::scrapyd::trail::{SpiderStage, Trail, since};

/// A scrapyd shows a run in the same step in which it takes it out of its line; one look more costs little.
const LOOKS: u32 = 2;
/// A spider that its scrapyd has forgotten may live on as a process. Scrapy writes a line of its log each minute, so
/// one that has not grown for this many looks is at its end.
const QUIET_LOOKS: u32 = 15;
/// How often a run is requested if nobody can say whether it was.
const ASKS: u32 = 3;
/// A spider that was cancelled is cancelled again after this many looks, which stops it at once.
const PATIENT_LOOKS: u32 = 6;

/// A scrapyd that executes jobs as spiders.
pub struct ScrapydSpiders {
    client: Client,
    api: ScrapydApi,
    poll_every: Duration,
}

impl ScrapydSpiders {
    /// The scrapyd at this address, asked this often about each spider.
    pub fn new(client: Client, destination: Destination, poll_every: Duration) -> Self {
        ScrapydSpiders { client, api: ScrapydApi::new(destination), poll_every }
    }
}

/// The run of one job.
pub(super) struct SpiderRun<'a> {
    pub(super) client: &'a Client,
    pub(super) api: &'a ScrapydApi,
    pub(super) poll_every: Duration,
    pub(super) job: &'a Job,
    pub(super) spider: Spider,
    /// There may be a spider of this job on the scrapyd.
    pub(super) begun: AtomicBool,
    /// The trouble with the scrapyd was reported, and has not ended.
    in_trouble: AtomicBool,
}

/// The result of a look at a run that is not live any more.
enum Look {
    /// It is over, with this outcome.
    Over(SettleOutcome),
    /// It was stopped, or left nothing: another one may be started.
    Again { log: u64 },
    /// Neither its lists nor its log mention it yet.
    Unknown,
}

impl Execute for ScrapydSpiders {
    type Failure = Failure;

    async fn execute(&self, job: Job) -> Executed<Failure> {
        let spider = match Spider::read(job.payload_json()) {
            Ok(spider) => spider,
            Err(bad) => return SettleOutcome::failed_for_good(bad).into(),
        };
        if !is_folder(job.id().as_str()) {
            let why =
                "scrapyd names a log file by the id of the job, and this id cannot be a file name";
            return SettleOutcome::failed_for_good(why).into();
        }
        let run = SpiderRun {
            client: &self.client,
            api: &self.api,
            poll_every: self.poll_every,
            job: &job,
            spider,
            begun: AtomicBool::new(false),
            in_trouble: AtomicBool::new(false),
        };
        let stop = tokio::select! {
            outcome = run.to_its_end() => return outcome.into(),
            stop = job.stopped() => stop,
        };
        Executed { outcome: run.stopped(stop).await, failure: None }
    }
}

impl SpiderRun<'_> {
    /// Its id on the scrapyd: that of the job, in all its runs.
    pub(super) fn id(&self) -> &str {
        self.job.id().as_str()
    }

    async fn to_its_end(&self) -> SettleOutcome {
        match Trail::of(self.job.view()) {
            Some(trail)
                if trail.since == since(self.job.view()) && trail.stage != SpiderStage::Over =>
            {
                self.take_up(trail).await
            }
            leftover => self.begin(leftover.is_some()).await,
        }
    }

    /// Continues a run that another worker began, or this one before it was restarted.
    async fn take_up(&self, trail: Trail) -> SettleOutcome {
        self.begun.store(true, Ordering::Relaxed);
        loop {
            match self.live().await {
                Ok(Some(stage)) => return self.follow(trail.at(stage)).await,
                Ok(None) => match self.look(&trail).await {
                    // It was cut off with its worker's lease: it did not fail by itself.
                    Ok(Look::Again { log }) => return self.start(log).await,
                    Ok(Look::Over(outcome)) => return outcome,
                    Ok(Look::Unknown) if trail.stage == SpiderStage::Asked => {
                        return self.start(trail.log).await;
                    }
                    Ok(Look::Unknown) => return self.follow(trail).await,
                    Err(why) => self.trouble(&why),
                },
                Err(why) => self.trouble(&why),
            }
            sleep(self.poll_every).await;
        }
    }

    /// Starts a run, unless one of this id is live: that is followed, or ended first if it is a leftover of a run that
    /// has failed.
    async fn begin(&self, leftover: bool) -> SettleOutcome {
        let mut looks = 0;
        loop {
            // Read before the lists: what is live then can only end beyond this.
            let found = async { Ok((self.length_of_log().await?, self.live().await?)) };
            let (log, live) = match found.await {
                Ok(found) => found,
                Err(why) if looks == 0 => return self.unreachable(&why),
                Err(why) => {
                    self.trouble(&why);
                    sleep(self.poll_every).await;
                    continue;
                }
            };
            let Some(stage) = live else { return self.start(log).await };
            self.begun.store(true, Ordering::Relaxed);
            if !leftover {
                let trail = self.trail(log, stage);
                if let Err(given_up) = self.note(&trail).await {
                    return given_up;
                }
                return self.follow(trail).await;
            }
            if looks % PATIENT_LOOKS == 0
                && let Err(why) = self.api.cancel(&self.spider.project, self.id()).await
            {
                self.trouble(&why);
            }
            looks += 1;
            sleep(self.poll_every).await;
        }
    }

    /// Requests a run whose log begins beyond `log`, and follows it.
    async fn start(&self, log: u64) -> SettleOutcome {
        let mut trail = self.trail(log, SpiderStage::Asked);
        let mut asks = 0;
        loop {
            if let Err(given_up) = self.note(&trail).await {
                return given_up;
            }
            self.begun.store(true, Ordering::Relaxed);
            asks += 1;
            let why = match self.api.schedule(&self.spider, self.id()).await {
                Ok(()) => {
                    let trail = trail.at(SpiderStage::Scheduled);
                    // The spider runs: a note that fails now goes with the next heartbeat.
                    if self.store(&trail).await.is_err() {
                        self.report(&trail);
                    }
                    return self.follow(trail).await;
                }
                Err(why) if why.did_nothing() => return self.unreachable(&why),
                Err(why) => why,
            };
            // Its lists and the log must show whether it was requested.
            if let Some(stage) = self.settled_live().await {
                return self.follow(trail.at(stage)).await;
            }
            match self.look_patiently(&trail).await {
                Look::Over(outcome) => return outcome,
                Look::Again { .. } | Look::Unknown if asks >= ASKS => {
                    return self.unreachable(&why);
                }
                Look::Again { log } => trail.log = log,
                Look::Unknown => {}
            }
        }
    }

    /// Follows a run that is there, or was.
    async fn follow(&self, mut trail: Trail) -> SettleOutcome {
        let (mut missed, mut quiet, mut length) = (0, 0, 0);
        self.report(&trail);
        loop {
            match self.api.standing(&self.spider.project, self.id()).await {
                Ok(standing @ (LeaderReport::Pending | LeaderReport::Running)) => {
                    self.recovered();
                    (missed, quiet) = (0, 0);
                    let stage = stage_of(standing);
                    if trail.stage != stage {
                        trail.stage = stage;
                        self.report(&trail);
                    }
                }
                Ok(standing) => match self.api.log(&self.spider, self.id()).await {
                    Ok(log) => {
                        self.recovered();
                        missed += 1;
                        let now = log.as_ref().map_or(0, |log| log.length);
                        quiet = if now == length { quiet + 1 } else { 0 };
                        length = now;
                        if let Some(outcome) = ended(standing, log.as_ref(), &trail, missed, quiet)
                        {
                            return outcome;
                        }
                    }
                    Err(why) => self.trouble(&why),
                },
                Err(why) => self.trouble(&why),
            }
            sleep(self.poll_every).await;
        }
    }

    /// Reads from the log how a run ended that is not live.
    async fn look(&self, trail: &Trail) -> Result<Look, ScrapydError> {
        let Some(log) = self.api.log(&self.spider, self.id()).await? else {
            return Ok(Look::Unknown);
        };
        let Some(end) = log.beyond(trail.log).map(LogEnd::read) else { return Ok(Look::Unknown) };
        Ok(match &end.reason {
            Some(_) if end.was_shut_down() => Look::Again { log: log.length },
            Some(_) => Look::Over(end.outcome()),
            // It began, so nobody requests it a second time before it is at its end.
            None => Look::Over(self.follow(trail.at(SpiderStage::Scheduled)).await),
        })
    }

    /// How far the run is, if it waits or runs.
    async fn live(&self) -> Result<Option<SpiderStage>, ScrapydError> {
        let standing = self.api.standing(&self.spider.project, self.id()).await?;
        self.recovered();
        Ok(match standing {
            LeaderReport::Pending | LeaderReport::Running => Some(stage_of(standing)),
            LeaderReport::Finished | LeaderReport::Absent => None,
        })
    }

    /// The same after a call that may or may not have arrived: asked twice, since it may arrive late.
    async fn settled_live(&self) -> Option<SpiderStage> {
        let mut looks = 0;
        while looks < LOOKS {
            match self.live().await {
                Ok(Some(stage)) => return Some(stage),
                Ok(None) => looks += 1,
                Err(why) => self.trouble(&why),
            }
            sleep(self.poll_every).await;
        }
        None
    }

    async fn length_of_log(&self) -> Result<u64, ScrapydError> {
        let log = self.api.log(&self.spider, self.id()).await?;
        Ok(log.map_or(0, |log| log.length))
    }

    /// Looks until there is an answer: a spider that is on its way is not given up because its scrapyd restarts.
    async fn look_patiently(&self, trail: &Trail) -> Look {
        loop {
            match self.look(trail).await {
                Ok(look) => return look,
                Err(why) => self.trouble(&why),
            }
            sleep(self.poll_every).await;
        }
    }

    pub(super) fn trail(&self, log: u64, stage: SpiderStage) -> Trail {
        let Spider { project, name, .. } = &self.spider;
        let (project, spider) = (project.clone(), name.clone());
        Trail { project, spider, since: since(self.job.view()), log, stage }
    }

    /// Stores a trail as the job's progress, and returns when that is answered. Where it cannot be stored, the job is given
    /// back.
    async fn note(&self, trail: &Trail) -> Result<(), SettleOutcome> {
        self.store(trail).await.map_err(|why| {
            let job = self.job.id();
            tell(&format!("job '{job}' is given back: its progress cannot be stored: {why}"));
            SettleOutcome::released()
        })
    }

    async fn store(&self, trail: &Trail) -> Result<(), CallError> {
        let lease = self.job.lease_id().to_owned();
        let item = ExtendItem { lease, progress: trail.progress() };
        let answer = self.client.run(Extend { leases: vec![item], ttl: None }).await?;
        if answer.lost.is_empty() {
            return Ok(());
        }
        // The heartbeats find out as well, and end this run.
        pending().await
    }

    /// Shows a trail as the job's progress with the next heartbeat.
    pub(super) fn report(&self, trail: &Trail) {
        if let Some(progress) = trail.progress() {
            // It is far shorter than what fits.
            let _ = self.job.set_progress(progress);
        }
    }

    /// Nothing was started: the job is tried again by its retry.
    fn unreachable(&self, why: &ScrapydError) -> SettleOutcome {
        SettleOutcome::failed(format!("the spider was not started: {why}"))
    }

    /// The scrapyd cannot be reached while a spider may run there. Reported once, until it answers again.
    pub(super) fn trouble(&self, why: &dyn Display) {
        if !self.in_trouble.swap(true, Ordering::Relaxed) {
            tell(&format!("job '{}': calling scrapyd again: {why}", self.job.id()));
        }
    }

    fn recovered(&self) {
        if self.in_trouble.swap(false, Ordering::Relaxed) {
            tell(&format!("job '{}': scrapyd answers again", self.job.id()));
        }
    }
}

fn stage_of(standing: LeaderReport) -> SpiderStage {
    match standing {
        LeaderReport::Pending => SpiderStage::Pending,
        LeaderReport::Running => SpiderStage::Running,
        LeaderReport::Finished | LeaderReport::Absent => SpiderStage::Scheduled,
    }
}

/// How a run ended that is neither pending nor running, if it is certain: after `missed` looks that did not find it;
/// the last `quiet` of them found a log that did not grow.
fn ended(
    standing: LeaderReport,
    log: Option<&LogTail>,
    trail: &Trail,
    missed: u32,
    quiet: u32,
) -> Option<SettleOutcome> {
    let end = log.and_then(|log| log.beyond(trail.log)).map(LogEnd::read);
    match (end, standing) {
        (Some(end), _) if end.reason.is_some() => Some(end.outcome()),
        // Its process is gone: no more will be written.
        (Some(end), LeaderReport::Finished) if missed >= LOOKS => Some(end.outcome()),
        (Some(end), _) if quiet >= QUIET_LOOKS => Some(end.outcome()),
        (None, LeaderReport::Finished) if missed >= LOOKS => Some(SettleOutcome::failed(
            "the spider ended without a log, so its outcome is unknown; keep logs_dir set, and jobs_to_keep \
             above the number of its runs",
        )),
        (None, _) if missed >= LOOKS => Some(SettleOutcome::failed(
            "scrapyd no longer knows this job, and there is no log of it",
        )),
        _ => None,
    }
}
