//! The trail of a run on a scrapyd: kept as the progress of its job, so that the next worker finds it there.
//!
//! A scrapyd knows a run only by its id, which is that of the job in all its runs; so the trail says since when this
//! run counts, and how long the log was before it. Anything older is a leftover of a run before.

use serde::{Deserialize, Serialize};
use tenure_core::job::{JobView, Outcome};
use tenure_core::secret::Json;
use tenure_core::time::Moment;

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpiderStage {
    /// The scrapyd is about to be asked for it; it may or may not have been.
    Asked,
    /// The scrapyd said that it will run, or shows it.
    Scheduled,
    /// It waits there for a free slot.
    Pending,
    /// It occupies a slot there.
    Running,
    /// It is not followed any more.
    Over,
}

/// One run of a job on a scrapyd.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Trail {
    pub project: String,
    pub spider: String,
    /// Names the run: see [`since`].
    pub since: Moment,
    /// Bytes that its log had before the run was requested: they are not of this run.
    pub log: u64,
    /// Starts as `asked`; the worker that follows the run updates it.
    pub stage: SpiderStage,
}

/// The progress of a job, in our form.
#[derive(Serialize, Deserialize)]
struct TrailProgress {
    scrapyd: Trail,
}

impl Trail {
    /// The trail in the progress of a job; `None` if that is of another kind.
    pub fn of(job: &JobView) -> Option<Self> {
        let progress = serde_json::from_str::<TrailProgress>(job.progress.as_ref()?.text()).ok()?;
        Some(progress.scrapyd)
    }

    /// As the progress of a job.
    pub fn progress(&self) -> Option<Json> {
        Json::of(&TrailProgress { scrapyd: self.clone() }).ok()
    }

    /// The same with a later stage.
    pub fn at(&self, stage: SpiderStage) -> Self {
        Trail { stage, ..self.clone() }
    }
}

/// Names the run that a job is in: the moment of its last failure, or of its push. Runs that were lost, released or
/// snoozed leave it as it is, so that the next holder of the job finds what the last one started; a failure makes another
/// run of it, and so does a push under an id that was free again. The number of the attempt would not do: a retry by hand
/// starts it from 1 again.
pub fn since(job: &JobView) -> Moment {
    let failed = job.errors.iter().rev().find(|error| error.outcome == Outcome::Failed);
    failed.map_or(job.created_at, |error| error.at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::job::JobError;
    use tenure_testkit::fake;

    #[test]
    fn a_run_lasts_until_a_failure_counts() {
        let mut job = fake::job(1);
        job.created_at = Moment::from_us(5);
        assert_eq!(since(&job), Moment::from_us(5));
        for (outcome, at, is) in [
            (Outcome::Lost, 10, 5),
            (Outcome::Undelivered, 11, 5),
            (Outcome::Failed, 12, 12),
            (Outcome::Lost, 13, 12),
        ] {
            let at = Moment::from_us(at);
            job.errors.push(JobError { attempt: 1, at, error: String::new(), outcome });
            assert_eq!(since(&job), Moment::from_us(is), "{outcome:?}");
        }
    }

    #[test]
    fn a_trail_is_found_again_in_the_progress_of_its_job() {
        let trail = Trail {
            project: "news".to_owned(),
            spider: "front".to_owned(),
            since: "2026-12-01T08:00:00Z".parse().unwrap(),
            log: 17,
            stage: SpiderStage::Asked,
        };
        let mut job = fake::job(1);
        assert_eq!(Trail::of(&job), None);
        job.progress = trail.progress();
        let text = r#"{"scrapyd":{"project":"news","spider":"front","since":"2026-12-01T08:00:00.000000Z","log":17,"stage":"asked"}}"#;
        assert_eq!(job.progress.as_ref().unwrap().text(), text);
        assert_eq!(Trail::of(&job), Some(trail));
        job.progress = Json::parse(r#"{"page":7}"#);
        assert_eq!(Trail::of(&job), None);
    }
}
