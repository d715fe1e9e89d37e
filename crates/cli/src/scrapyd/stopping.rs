//! Ends or leaves a spider whose job must stop.
//!
//! A worker that ends leaves it running, for the next one to follow. Otherwise it is cancelled, but never when another
//! holder may have its job already: that holder follows this very spider.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tenure::SettleOutcome;
use tenure::keeper::Stop;
use tenure_core::names::JobRef;
use tokio::time::{sleep, timeout};

use crate::output::tell;
use crate::scrapyd::api::LeaderReport;
use crate::scrapyd::follow::SpiderRun;
use crate::scrapyd::trail::SpiderStage;

/// A spider that is cancelled finishes what it has begun; after this time it is cancelled again, which stops it at once.
const GRACE: Duration = Duration::from_secs(30);
/// After this time it is left to its scrapyd.
const CANCEL_MAX: Duration = Duration::from_secs(40);
/// How often it is looked for meanwhile, at most.
const LOOK: Duration = Duration::from_millis(500);
/// Longest wait for the store to name the job's holder; of the rest of the lease only a part is spent on it.
const ASK_MAX: Duration = Duration::from_secs(1);
const ASK_PART: u32 = 4;

impl SpiderRun<'_> {
    /// Ends the spider if it must end, and returns the end of the lease.
    pub(super) async fn stopped(&self, stop: Stop) -> Option<SettleOutcome> {
        if !self.begun.load(Ordering::Relaxed) {
            return matches!(stop, Stop::Cancelled | Stop::Shutdown).then(SettleOutcome::released);
        }
        let job = self.job.id();
        match stop {
            Stop::Shutdown => {
                tell(&format!("job '{job}' is given back; its spider goes on, and is found again"));
                return Some(SettleOutcome::released());
            }
            Stop::Cancelled => {
                let now = Instant::now();
                if !self.cancel(now + GRACE, now + CANCEL_MAX).await {
                    tell(&format!("job '{job}' was cancelled, but its spider could not be ended"));
                }
                let mut outcome = SettleOutcome::released();
                outcome.progress = self.trail(0, SpiderStage::Over).progress();
                return Some(outcome);
            }
            Stop::Deadline => tell(&format!("job '{job}' was stopped: its time is over")),
            Stop::Lost => tell(&format!("job '{job}' was stopped: its lease was lost")),
        }
        if stop == Stop::Lost && self.is_somebody_elses().await {
            return None;
        }
        let (now, limit) = (Instant::now(), self.job.hard_limit());
        if now < limit {
            let watch = self.job.watch();
            tokio::select! {
                _ = self.cancel(now + (limit - now) / 2, limit) => {}
                // Sooner than that if the machine was suspended meanwhile.
                () = watch.comes(watch.hard_limit()) => {}
            }
        }
        None
    }

    /// Whether another lease holds the job by now.
    async fn is_somebody_elses(&self) -> bool {
        let reply = self.client.get_job(JobRef::Id(self.job.id().clone()));
        let left = self.job.hard_limit().saturating_duration_since(Instant::now());
        match timeout(ASK_MAX.min(left / ASK_PART), reply).await {
            Ok(Ok(job)) => job.lease.is_some_and(|lease| lease != self.job.lease_id()),
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Asks the spider to stop, at `grace` once more, which ends it at once; waits until it is gone, at most until
    /// `limit`. Returns false if it is not.
    async fn cancel(&self, grace: Instant, limit: Instant) -> bool {
        let (project, id) = (&self.spider.project, self.id());
        let ending = async {
            let (mut asked, mut hurried) = (false, false);
            loop {
                let hurry = Instant::now() >= grace;
                if !asked || (hurry && !hurried) {
                    match self.api.cancel(project, id).await {
                        Ok(()) => (asked, hurried) = (true, hurry),
                        Err(why) => self.trouble(&why),
                    }
                }
                if asked {
                    match self.api.standing(project, id).await {
                        Ok(LeaderReport::Finished | LeaderReport::Absent) => return,
                        Ok(LeaderReport::Pending | LeaderReport::Running) => {}
                        Err(why) => self.trouble(&why),
                    }
                }
                sleep(self.poll_every.min(LOOK)).await;
            }
        };
        timeout(limit.saturating_duration_since(Instant::now()), ending).await.is_ok()
    }
}
