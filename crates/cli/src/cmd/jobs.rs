//! `tenure jobs`: lists jobs, newest first.

use tenure::Client;
use tenure_core::job::{JobState, JobView};
use tenure_core::requests::ListJobs;
use tenure_core::time::Moment;

use crate::args::jobs::JobsArgs;
use crate::cmd::next_page;
use crate::exit::Failure;
use crate::output::Output;
use crate::output::clock;
use crate::output::table::{Table, when};

/// Lists those that match.
pub async fn run(client: &Client, out: Output, args: JobsArgs) -> Result<(), Failure> {
    let request =
        ListJobs { filter: args.filter.filter(), page: args.page.page(), full: args.full };
    let listed = client.run(request).await?;
    next_page::answer(out, &listed, |jobs| people(jobs, clock::now()))
}

fn people(jobs: &[JobView], now: Moment) -> String {
    let mut table =
        Table::new(&["ID", "QUEUE", "STATE", "KIND", "TRY", "SINCE", "NOTE"]).numbers(&["TRY"]);
    for job in jobs {
        table.row([
            job.id.to_string(),
            job.queue.to_string(),
            job.state.to_string(),
            job.kind.clone(),
            job.attempt.to_string(),
            when(since(job), now),
            note(job),
        ]);
    }
    table.render("no jobs")
}

/// The moment that tells most of a job in its state.
fn since(job: &JobView) -> Moment {
    match job.state {
        JobState::Scheduled => job.run_at,
        JobState::Running => job.started_at.unwrap_or(job.created_at),
        state if state.is_finished() => job.finished_at.unwrap_or(job.created_at),
        _ => job.created_at,
    }
}

fn note(job: &JobView) -> String {
    if job.cancel_requested && !job.state.is_finished() {
        return "cancel requested".to_owned();
    }
    if job.state == JobState::Dependent {
        return format!("waits for {} of {} parents", job.waiting_on, job.parents);
    }
    job.error.clone().unwrap_or_default()
}
