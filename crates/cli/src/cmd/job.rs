//! `tenure job`: one job, whole.

use tenure::Client;
use tenure_core::flow::OnParentFailure;
use tenure_core::job::{JobState, JobView};
use tenure_core::requests::GetJob;

use crate::args::jobs::JobArg;
use crate::exit::Failure;
use crate::output::Output;
use crate::output::clock::second;
use crate::output::page::Page;

/// Shows one job as a page.
pub async fn run(client: &Client, out: Output, args: JobArg) -> Result<(), Failure> {
    let job = client.run(GetJob { job: args.job }).await?;
    out.answer(&*job, people)
}

/// A job as a page of fields.
pub fn people(job: &JobView) -> String {
    let mut page = Page::default();
    page.field("id", &job.id)
        .field("queue", &job.queue)
        .maybe("kind", Some(&job.kind).filter(|kind| !kind.is_empty()))
        .field("state", job.state)
        .maybe("cancel", job.cancel_requested.then_some("requested"))
        .field("attempt", format!("{} of {}", job.attempt, attempts(job.retry.max_attempts)))
        .maybe("lost", Some(job.lost).filter(|lost| *lost > 0))
        .maybe("snoozed", Some(job.snoozed).filter(|snoozed| *snoozed > 0))
        .maybe("priority", Some(job.priority).filter(|priority| *priority != 0))
        .maybe("group", job.group.as_ref())
        .maybe("needs", Some(json(&job.needs)).filter(|_| !job.needs.is_empty()))
        .maybe("flow", job.flow.as_ref())
        .maybe("after", Some(after(job)).filter(|_| job.parents > 0))
        .maybe("unique", job.unique.as_ref().map(json))
        .maybe("labels", Some(json(&job.labels)).filter(|_| !job.labels.is_empty()))
        .field("created", second(job.created_at))
        .field("run at", second(job.run_at))
        .maybe("started", job.started_at.map(second))
        .maybe("finished", job.finished_at.map(second))
        .maybe("expires", job.expires_at.map(second))
        .maybe("timeout", job.timeout)
        .maybe("lease", job.lease.as_ref())
        .maybe("payload", job.payload.as_ref().map(|payload| payload.text().to_owned()))
        .maybe("progress", job.progress.as_ref().map(|progress| progress.text().to_owned()))
        .maybe(
            "result",
            job.result
                .as_ref()
                .filter(|result| !result.is_null())
                .map(|result| result.text().to_owned()),
        )
        .maybe("error", job.error.as_ref());
    for error in &job.errors {
        let text = format!(
            "{} attempt {} {}: {}",
            second(error.at),
            error.attempt,
            error.outcome.as_str(),
            error.error
        );
        page.field("history", text);
    }
    page.render()
}

/// The parents of the job, and how many of them are unfinished.
fn after(job: &JobView) -> String {
    let mut names: Vec<String> = job.after.iter().map(ToString::to_string).collect();
    if names.len() < job.parents as usize {
        names.push(format!("… ({} in all)", job.parents));
    }
    let names = names.join(", ");
    let fails = match job.on_parent_failure {
        OnParentFailure::Cancel => "",
        OnParentFailure::Run => ", however they end",
    };
    match job.state {
        JobState::Dependent => {
            format!("{names}; waits for {} of {}{fails}", job.waiting_on, job.parents)
        }
        _ => format!("{names}{fails}"),
    }
}

/// The JSON that the API writes.
pub fn json(value: &impl serde::Serialize) -> String {
    match tenure_core::secret::Json::of(value) {
        Ok(json) => json.text().to_owned(),
        Err(why) => unreachable!("what an engine answered can be written again: {why}"),
    }
}

fn attempts(max: u32) -> String {
    if max == 0 { "any".to_owned() } else { max.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::flow::ShownParent;
    use tenure_core::names::{FlowName, JobId};

    #[test]
    fn a_job_shows_the_parents_that_it_waits_for() {
        let mut job = tenure_testkit::fake::job(1);
        job.after = vec![
            ShownParent::Job(JobId::parse("a").unwrap()),
            ShownParent::Flow { flow: FlowName::parse("f").unwrap() },
        ];
        (job.parents, job.waiting_on, job.state) = (2, 1, JobState::Dependent);
        assert_eq!(after(&job), "a, flow:f; waits for 1 of 2");
        job.on_parent_failure = OnParentFailure::Run;
        assert_eq!(after(&job), "a, flow:f; waits for 1 of 2, however they end");
        (job.parents, job.state) = (102, JobState::Ready);
        assert_eq!(after(&job), "a, flow:f, … (102 in all), however they end");
        assert!(people(&job).contains("after "));
        job.parents = 0;
        assert!(!people(&job).contains("after "));
    }
}
