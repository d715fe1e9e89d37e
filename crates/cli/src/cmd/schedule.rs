//! `tenure schedule`: shows schedules, sets, pauses and deletes them, and runs one at once.

mod set;
mod show;

use tenure::Client;
use tenure_core::job::JobView;
use tenure_core::names::{JobId, JobRef, ScheduleId};
use tenure_core::refusal::Code;
use tenure_core::requests::ListSchedules;
use tenure_core::schedule::ScheduleView;
use tenure_engine_api::CallError;

use crate::args::schedules::{ScheduleAction, ScheduleArgs};
use crate::cmd::next_page;
use crate::cmd::no_worker;
use crate::cmd::schedule_preview;
use crate::cmd::schedule_sync;
use crate::exit::Failure;
use crate::output::Output;

/// Lists schedules, shows one, or runs the action that the command line names.
pub async fn run(client: &Client, out: Output, args: ScheduleArgs) -> Result<(), Failure> {
    let view = match (args.action, args.id) {
        (None, None) => {
            let list = ListSchedules { owner: args.owner, full: false, page: args.page.page() };
            let listed = client.list_schedules(list).await?;
            return next_page::answer(out, &listed, show::table);
        }
        (None, Some(schedule)) => client.get_schedule(schedule).await?,
        (Some(ScheduleAction::Set(args)), _) => *client.run(set::request(*args)?).await?.view,
        (Some(ScheduleAction::Pause { id, later }), _) => {
            client.pause_schedule(id, later.later()).await?
        }
        (Some(ScheduleAction::Resume { id }), _) => client.resume_schedule(id).await?,
        (Some(ScheduleAction::Sync(args)), _) => {
            return schedule_sync::run(client, out, args).await;
        }
        (Some(ScheduleAction::RunNow { id, job }), _) => {
            return run_now(client, out, id, job).await;
        }
        (Some(ScheduleAction::Delete { id }), _) => {
            client.delete_schedule(id.clone()).await?;
            return out.done(&format!("schedule '{id}' was deleted; the jobs that it made go on"));
        }
        (Some(ScheduleAction::Preview(args)), _) => return schedule_preview::run(out, &args),
    };
    if out.json {
        return out.document(&view);
    }
    let state = show::state(&view, unfinished_job(client, &view).await?.as_ref());
    out.text(&show::page(&view, &state))
}

/// The job of the schedule's last moment, if it has not ended.
async fn unfinished_job(client: &Client, view: &ScheduleView) -> Result<Option<JobView>, Failure> {
    let Some(last) = view.last.as_ref().filter(|_| view.unfinished > 0) else { return Ok(None) };
    match client.get_job(JobRef::Id(last.job.clone())).await {
        Ok(job) => Ok(Some(job).filter(|job| !job.state.is_finished())),
        // It may have ended and gone since.
        Err(CallError::Refused(no)) if no.code == Code::JobNotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Prints the id of the job that was made, or of the one that was unfinished.
async fn run_now(
    client: &Client,
    out: Output,
    schedule: ScheduleId,
    job: Option<JobId>,
) -> Result<(), Failure> {
    // By an id of our own the answer tells whether a job was made.
    let id = job.unwrap_or_else(tenure::ids::job_id);
    let pushed = client.run_schedule_now(schedule.clone(), Some(id.clone())).await?;
    out.answer(&pushed, |pushed| format!("{}\n", pushed.job.id))?;
    if pushed.job.id != id {
        crate::output::tell(&format!(
            "schedule '{schedule}' has an unfinished job, which runs instead of a second one"
        ));
    }
    if pushed.workers == Some(0) {
        no_worker::tell(client, &pushed.job.queue).await;
    }
    Ok(())
}
