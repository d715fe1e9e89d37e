//! `tenure cancel`, `retry` and `run-now`: one call for each id, or one call for all that match.
//!
//! A refused id does not stop the others: it is told on stderr, and the exit code is 1 at the end.

use tenure::Client;
use tenure_core::bounds::ITEMS_MAX;
use tenure_core::job::JobView;
use tenure_core::names::JobRef;
use tenure_core::requests::{
    CancelJob, CancelJobs, DoneMany, JobFilter, Operation, RetryJob, RetryJobs, RunJobNow,
};

use crate::args::jobs::{ManyArgs, RunNowArgs};
use crate::exit::Failure;
use crate::output::Output;

/// Calls jobs off.
pub async fn cancel(client: &Client, out: Output, args: ManyArgs) -> Result<(), Failure> {
    if !args.ids.is_empty() {
        return each(client, out, args.ids, |job| CancelJob { job }).await;
    }
    let make = |filter, max| CancelJobs { filter, max };
    matching(client, out, args, "cancel", "cancelled", make).await
}

/// Makes finished jobs ready again.
pub async fn retry(client: &Client, out: Output, args: ManyArgs) -> Result<(), Failure> {
    if !args.ids.is_empty() {
        return each(client, out, args.ids, |job| RetryJob { job, finished_at: None }).await;
    }
    let make = |filter, max| RetryJobs { filter, max };
    matching(client, out, args, "retry", "made ready again", make).await
}

/// Makes scheduled jobs ready.
pub async fn run_now(client: &Client, out: Output, args: RunNowArgs) -> Result<(), Failure> {
    each(client, out, args.ids, |job| RunJobNow { job }).await
}

async fn each<O>(
    client: &Client,
    out: Output,
    ids: Vec<JobRef>,
    make: impl Fn(JobRef) -> O,
) -> Result<(), Failure>
where
    O: Operation<Reply = Box<JobView>>,
{
    let one = ids.len() == 1;
    let mut done: Vec<JobView> = Vec::new();
    let mut worst: Option<Failure> = None;
    for id in ids {
        match client.run(make(id.clone())).await {
            Ok(job) => done.push(*job),
            Err(error) => {
                let failure = Failure::from(error);
                // Without a store the next id fares no better.
                let stop = one || failure.code != crate::exit::NO;
                if stop {
                    if done.is_empty() {
                        return Err(failure);
                    }
                    // What was done is the answer; what went wrong is told on stderr alone.
                    show(out, &done, false)?;
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
    show(out, &done, one)?;
    worst.map_or(Ok(()), Err)
}

/// The answer: of one id the job, of several a list.
fn show(out: Output, done: &[JobView], one: bool) -> Result<(), Failure> {
    let line = |job: &JobView| match job.cancel_requested && !job.state.is_finished() {
        true => format!("{} is {}, cancel requested\n", job.id, job.state),
        false => format!("{} is {}\n", job.id, job.state),
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
    make: impl Fn(JobFilter, usize) -> O,
) -> Result<(), Failure>
where
    O: Operation<Reply = DoneMany>,
{
    if args.filter.is_empty() {
        return Err(Failure::usage(format!("{verb} what? name ids, or a filter"))
            .hint(format!("tenure {verb} ID…, or tenure {verb} --queue NAME --state STATE")));
    }
    let filter = args.filter.filter();
    let mut left = args.max.unwrap_or(u64::MAX);
    let mut sum = DoneMany { done: 0, more: true };
    // One call does at most 1,000; people mean all. A call that did nothing ends it, so that no
    // engine can keep this going for ever.
    while sum.more && left > 0 {
        let max = usize::try_from(left).unwrap_or(ITEMS_MAX).min(ITEMS_MAX);
        let step = client.run(make(filter.clone(), max)).await?;
        sum = DoneMany { done: sum.done + step.done, more: step.more };
        left = left.saturating_sub(step.done);
        if step.done == 0 {
            break;
        }
    }
    out.answer(&sum, |sum| format!("{} {done_word}\n", sum.done))
}
