//! `tenure cancel`, `retry`, `delete` and `run-now`: one call for each id, or as many calls as it takes for all that match.
//!
//! A refused id does not stop the others: it is reported on stderr, and the exit code is 1 at the end.

use std::time::Duration;

use tenure::Client;
use tenure_core::bounds::ITEMS_MAX;
use tenure_core::count::{self, grouped};
use tenure_core::job::JobView;
use tenure_core::names::JobRef;
use tenure_core::requests::{
    CancelJob, CancelJobs, DeleteJob, DeleteJobs, DoneMany, JobFilter, Operation, RetryJob,
    RetryJobs, RunJobNow,
};

use crate::args::jobs::{ManyArgs, RunNowArgs};
use crate::exit::Failure;
use crate::output::Output;

/// A call that changed nothing and is not at its end may have met jobs that cannot be retried for some milliseconds,
/// since the jobs that waited for them are being notified of their end.
const NOTHING_YET: Duration = Duration::from_millis(20);

/// Cancels jobs: by id, or all that match.
pub async fn cancel(client: &Client, out: Output, args: ManyArgs) -> Result<(), Failure> {
    if !args.ids.is_empty() {
        return each_shown(client, out, args.ids, |job| CancelJob { job }).await;
    }
    let make = |filter, max, cursor| CancelJobs { filter, max, cursor };
    matching(client, out, args, "cancel", "cancelled", make).await
}

/// Makes finished jobs ready again.
pub async fn retry(client: &Client, out: Output, args: ManyArgs) -> Result<(), Failure> {
    if !args.ids.is_empty() {
        return each_shown(client, out, args.ids, |job| RetryJob { job, finished_at: None }).await;
    }
    let make = |filter, max, cursor| RetryJobs { filter, max, cursor };
    matching(client, out, args, "retry", "made ready again", make).await
}

/// Forgets jobs that do not run; those that wait are cancelled by it.
pub async fn delete(client: &Client, out: Output, args: ManyArgs) -> Result<(), Failure> {
    if args.ids.is_empty() {
        let make = |filter, max, cursor| DeleteJobs { filter, max, cursor };
        return matching(client, out, args, "delete", "deleted", make).await;
    }
    let one = args.ids.len() == 1;
    each(
        client,
        args.ids,
        |job| DeleteJob { job },
        |done| {
            let ids: Vec<JobRef> = done.into_iter().map(|(id, ())| id).collect();
            match ids.as_slice() {
                [id] if one => out.done(&format!("{id} was deleted")),
                [] if !out.json => Ok(()),
                // A program gets their ids, since the calls themselves answer nothing.
                ids if out.json => {
                    out.document(&ids.iter().map(ToString::to_string).collect::<Vec<_>>())
                }
                ids => {
                    let lines = ids.iter().map(|id| format!("{id} was deleted\n"));
                    out.text(&lines.collect::<String>())
                }
            }
        },
    )
    .await
}

/// Makes scheduled jobs ready.
pub async fn run_now(client: &Client, out: Output, args: RunNowArgs) -> Result<(), Failure> {
    each_shown(client, out, args.ids, |job| RunJobNow { job }).await
}

async fn each_shown<O>(
    client: &Client,
    out: Output,
    ids: Vec<JobRef>,
    make: impl Fn(JobRef) -> O,
) -> Result<(), Failure>
where
    O: Operation<Reply = Box<JobView>>,
{
    let one = ids.len() == 1;
    each(client, ids, make, |done| {
        let done: Vec<JobView> = done.into_iter().map(|(_, job)| *job).collect();
        show(out, &done, one)
    })
    .await
}

/// Makes one call for each id, and shows the jobs that were not refused.
async fn each<O: Operation>(
    client: &Client,
    ids: Vec<JobRef>,
    make: impl Fn(JobRef) -> O,
    show: impl FnOnce(Vec<(JobRef, O::Reply)>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let one = ids.len() == 1;
    let mut done = Vec::new();
    let mut worst: Option<Failure> = None;
    for id in ids {
        match client.run(make(id.clone())).await {
            Ok(reply) => done.push((id, reply)),
            Err(error) => {
                let failure = Failure::from(error);
                // Without a store the next id fares no better.
                let stop = one || failure.code != crate::exit::NO;
                if stop {
                    if done.is_empty() {
                        return Err(failure);
                    }
                    // The jobs that are done are the answer; the error is reported on stderr alone.
                    show(done)?;
                    return Err(Failure { refusal: None, ..failure });
                }
                crate::output::tell(&format!(
                    "'{id}': {}",
                    failure.sentence.as_deref().unwrap_or("refused")
                ));
                worst = Some(Failure::silent(failure.code));
            }
        }
    }
    show(done)?;
    worst.map_or(Ok(()), Err)
}

/// The answer: for one id the job, for several a list.
fn show(out: Output, done: &[JobView], one: bool) -> Result<(), Failure> {
    let line = |job: &JobView| {
        let is_requested = job.cancel_requested && !job.state.is_finished();
        let note = if is_requested { ", cancel requested" } else { "" };
        let children = job.cancelled_children.map(|n| {
            let stay = count::of(n, "job that waited for it stays", "jobs that waited for it stay");
            format!("; {} {stay} cancelled", grouped(n))
        });
        format!("{} is {}{note}{}\n", job.id, job.state, children.unwrap_or_default())
    };
    match done {
        [job] if one => out.answer(job, line),
        [] if !out.json => Ok(()),
        _ => out.answer(done, |jobs| jobs.iter().map(line).collect()),
    }
}

async fn matching<O>(
    client: &Client,
    out: Output,
    args: ManyArgs,
    verb: &str,
    done_word: &str,
    make: impl Fn(JobFilter, usize, Option<String>) -> O,
) -> Result<(), Failure>
where
    O: Operation<Reply = DoneMany>,
{
    let filter = args.filter.filter();
    if filter.is_empty() {
        return Err(Failure::usage(format!("{verb} needs ids, or a filter"))
            .hint(format!("tenure {verb} ID…, or tenure {verb} --queue NAME --state STATE")));
    }
    let sum = walk(client, &filter, args.max.unwrap_or(u64::MAX), make).await?;
    out.answer(&sum, |sum| format!("{} {done_word}\n", grouped(sum.done)))
}

/// Changes the jobs that match, at most `most` of them. One call changes at most 1,000 and looks at 10,000, but people
/// mean all. Each call goes on where the one before stopped, so that this ends even where jobs are pushed all the
/// while.
pub async fn walk<O>(
    client: &Client,
    filter: &JobFilter,
    most: u64,
    make: impl Fn(JobFilter, usize, Option<String>) -> O,
) -> Result<DoneMany, Failure>
where
    O: Operation<Reply = DoneMany>,
{
    let mut left = most;
    let mut sum = DoneMany::default();
    let mut cursor = None;
    loop {
        let max = usize::try_from(left).unwrap_or(ITEMS_MAX).min(ITEMS_MAX);
        let step = client.run(make(filter.clone(), max, cursor.take())).await?;
        let step_done = step.done;
        sum = DoneMany { done: sum.done + step_done, ..step };
        left = left.saturating_sub(step_done);
        cursor.clone_from(&sum.next);
        if cursor.is_none() || left == 0 {
            return Ok(sum);
        }
        if step_done == 0 {
            tokio::time::sleep(NOTHING_YET).await;
        }
    }
}
