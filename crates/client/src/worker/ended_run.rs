//! Runs that have ended, with their outcomes.

use tenure_core::lease::{Ending, SettleItem};
use tenure_core::leased::{json_without_leased, without_leased};
use tenure_core::names::QueueName;
use tenure_core::refusal::Refusal;

use super::job::Job;
use super::spans;
use crate::outcome::SettleOutcome;

/// A run that has ended, with its outcome to be delivered.
pub struct EndedRun {
    pub(super) job: Job,
    outcome: SettleOutcome,
    /// How many outcomes of this job the engine has refused.
    refusals: u8,
}

impl EndedRun {
    /// `outcome` is how its lease ends. The handler's last report is sent with it, since no heartbeat may follow, and
    /// so are its verdicts.
    pub fn of(job: Job, outcome: SettleOutcome) -> Self {
        let mut outcome = job.with_what_was_said(outcome);
        spans::follow(&job, &mut outcome.push);
        let resources = &job.lease().resources;
        if let Some(progress) = &mut outcome.progress {
            *progress = json_without_leased(progress, resources);
        }
        if let Err(why) = job.seal_outcome(&mut outcome) {
            // The parts that were not sealed yet are not sent in the clear.
            let SettleOutcome { ending, .. } = SettleOutcome::failed_for_good(why);
            outcome = SettleOutcome { ending, progress: None, push: Vec::new(), ..outcome };
        }
        if let Ending::Failed { error, .. } = &mut outcome.ending {
            *error = without_leased(error, resources);
        }
        // Without secrets already, and sealed: a text that a codec made must not be changed.
        outcome.progress = outcome.progress.or_else(|| job.held().unsent_progress());
        EndedRun { job, outcome, refusals: 0 }
    }

    /// The approximate size that it adds to a body.
    pub fn bytes(&self) -> usize {
        let said = match &self.outcome.ending {
            Ending::Succeeded { result: Some(result) } => result.text().len(),
            Ending::Failed { error, .. } => error.len(),
            _ => 0,
        };
        let reported = self.outcome.progress.as_ref().map_or(0, |progress| progress.text().len());
        said + reported
            + self.outcome.push.iter().map(|job| job.payload.text().len()).sum::<usize>()
    }

    /// The queues of the jobs that it pushes.
    pub(super) fn pushes_to(&self) -> impl Iterator<Item = &QueueName> {
        self.outcome.push.iter().map(|job| &job.queue)
    }

    pub(super) fn item(&self) -> SettleItem {
        self.outcome.clone().of(self.job.lease_id().to_owned())
    }

    /// Replaces a refused outcome by one that the engine may accept; false if no such outcome is left.
    pub(super) fn instead(&mut self, no: &Refusal) -> bool {
        if no.code.status() >= 500 || self.refusals == 2 {
            return false;
        }
        self.refusals += 1;
        self.outcome = match self.refusals {
            1 => SettleOutcome::failed(format!(
                "the outcome was refused: {}; {}",
                no.detail, no.hint
            )),
            _ => SettleOutcome::released(),
        };
        true
    }
}
