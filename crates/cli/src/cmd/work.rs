//! `tenure work`: the library's worker, with signals and with messages for people. Jobs are executed by CMD (see
//! `work_job`), by a service over HTTP, or by a scrapyd.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;
use tenure::keeper::Keeper;
use tenure::{Client, Event, Execute, Order, WorkError};
use tenure_console::stderr;
use tenure_core::bounds::{ITEMS_MAX, LIST_MAX};
use tenure_core::count;
use tenure_core::gauge::GaugeHosts;
use tenure_core::names::QueueName;
use tenure_core::requests::{GetStats, JobFilter, ListJobs, ListQueues, Page};
use tenure_core::time::Span;
use tenure_engine_api::CallError;

use crate::args::leases::WorkArgs;
use crate::child::environment::close_to_cmd;
use crate::child::grace::{GRACE, KILLED_MAX};
use crate::child::guard::process::adopt_orphans;
use crate::child::signals::Signals;
use crate::cmd::contact::Contact;
use crate::cmd::no_worker;
use crate::cmd::work_counted::Counting;
use crate::cmd::work_job::Cmd;
use crate::cmd::work_lines::JobLines;
use crate::cmd::work_over_http;
use crate::exit::{Failure, NOT_STARTED, UNAVAILABLE, by_signal};
use crate::output::{Output, tell};

/// After this long at a queue that never had a job, a message says so.
const STRANGE: Duration = Duration::from_secs(5);

/// The settings of the work, for any way to execute jobs.
pub struct WorkPlan {
    /// The queues in their given order.
    pub queues: Vec<QueueName>,
    /// Most jobs at once.
    pub concurrency: usize,
    /// Always in the order given.
    pub strict: bool,
    /// End when nothing is ready or blocked.
    pub until_empty: bool,
    /// End after this many jobs.
    pub max_jobs: Option<u64>,
    /// How long running jobs may take to finish.
    pub drain_timeout: Duration,
    /// End when the store has been away for this long.
    pub exit_when_away: Option<Span>,
    /// The ttl of the jobs' leases.
    pub ttl: Span,
    /// How long after a success the job's schedule is next due, if its outcome does not state it.
    pub next_in: Option<Span>,
    /// The address of the store.
    pub url: String,
    /// How each job is reported to people or programs.
    pub lines: JobLines,
}

/// Works until a signal ends it, or one of the given ends is reached.
pub async fn run(client: &Client, out: Output, args: WorkArgs, url: &str) -> Result<(), Failure> {
    let cores = || std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let concurrency = args.concurrency.unwrap_or_else(cores);
    let plan = WorkPlan {
        queues: args.queues,
        concurrency: usize::try_from(concurrency).unwrap_or(ITEMS_MAX).clamp(1, ITEMS_MAX),
        strict: args.strict,
        until_empty: args.until_empty,
        max_jobs: args.max_jobs,
        drain_timeout: args.drain_timeout.std(),
        exit_when_away: args.exit_when_away,
        ttl: args.ttl,
        next_in: args.next_in,
        url: url.to_owned(),
        lines: JobLines::of(args.quiet, out.json),
    };
    let gauge_hosts = GaugeHosts::allowing(args.gauge_allow);
    // A command stands on the command line, which takes precedence over the variables and the file of the others.
    let others = args.command.is_empty();
    let http = args.http.as_deref().filter(|_| others);
    let scrapyd = args.scrapyd.as_deref().filter(|_| others);
    if let (Some(_), Some(_)) = (http, scrapyd) {
        return Err(Failure::usage("the settings name both a service (http) and a scrapyd")
            .hint("name one of them, or use --http or --scrapyd"));
    }
    if plan.until_empty && plan.exit_when_away.is_none() {
        // It is to work on the jobs that are there, and to end: without a server it ends as other commands do.
        client.run(GetStats).await?;
    }
    if let Some(address) = http {
        let service = work_over_http::service(address, args.secret_file, args.request_timeout)?;
        return with_signals(client, plan, service, gauge_hosts).await;
    }
    if let Some(address) = scrapyd {
        let spiders = work_over_http::spiders(client, address, args.poll_every)?;
        return with_signals(client, plan, spiders, gauge_hosts).await;
    }
    close_to_cmd();
    if !args.bonds.may_outlive() {
        adopt_orphans();
    }
    let cmd = Cmd::new(client.clone(), args.command, args.bonds, args.ttl);
    with_signals(client, plan, cmd, gauge_hosts).await
}

/// Works, and reads the gauges of a store of its own meanwhile.
async fn with_signals(
    client: &Client,
    plan: WorkPlan,
    execute: impl Execute<Failure = Failure>,
    gauge_hosts: GaugeHosts,
) -> Result<(), Failure> {
    // Jobs must not wait for the reader of stderr.
    stderr::never_wait();
    let mut signals = Signals::listen()?;
    heartbeats(client)?;
    // On a store of its own no other process does; a server reads its gauges itself.
    let reading = tokio::spawn(tenure::read_gauges(client.engine().clone(), gauge_hosts));
    let worked = work(client, plan, execute, async || signals.next().await).await;
    reading.abort();
    worked
}

/// Heartbeats on a thread of their own, started before anything is asked for.
pub fn heartbeats(client: &Client) -> Result<Keeper, Failure> {
    client.keeper().map_err(|error| Failure::new(NOT_STARTED, error.to_string()))
}

/// Works to the end: the first signal drains, the second gives back what runs, now.
pub async fn work(
    client: &Client,
    plan: WorkPlan,
    execute: impl Execute<Failure = Failure>,
    mut next_signal: impl AsyncFnMut() -> Signal,
) -> Result<(), Failure> {
    let queues = plan.queues.clone();
    let taken = Arc::new(AtomicBool::new(false));
    let mut worker = client
        .worker(plan.queues)
        .concurrency(plan.concurrency)
        .ttl(plan.ttl)
        .order(if plan.strict { Order::Strict } else { Order::Turning })
        .drain_timeout(plan.drain_timeout)
        .stop_grace(GRACE + KILLED_MAX)
        .observe(teller(taken.clone(), Contact::with(&plan.url)));
    if plan.until_empty {
        worker = worker.until_empty();
    }
    if let Some(longest) = plan.exit_when_away {
        worker = worker.exit_when_away(longest.std());
    }
    if let Some(jobs) = plan.max_jobs {
        worker = worker.max_jobs(jobs);
    }
    let stopper = worker.stopper();
    let running = Arc::<AtomicU64>::default();
    let counting = Counting {
        inner: execute,
        running: running.clone(),
        next_in: plan.next_in,
        lines: plan.lines,
    };
    let mut working = std::pin::pin!(worker.execute(counting));
    let mut strange = std::pin::pin!(tokio::time::sleep(STRANGE));
    let mut looked = false;
    let mut first: Option<Signal> = None;
    let mut last: Option<Signal> = None;
    let ended = loop {
        tokio::select! {
            biased;
            ended = &mut working => break ended,
            signal = next_signal() => {
                if first.replace(signal).is_none() {
                    let jobs = running.load(Ordering::Relaxed);
                    if jobs > 0 {
                        tell(&still_running(jobs));
                    }
                    stopper.drain();
                } else {
                    last = Some(signal);
                    stopper.now();
                }
            }
            () = &mut strange, if !looked => {
                looked = true;
                if !taken.load(Ordering::Relaxed) && first.is_none() {
                    tokio::spawn(tell_strange(client.clone(), queues.clone()));
                }
            }
        }
    };
    match (ended, last) {
        (Err(WorkError::Call(error)), _) => Err(error.into()),
        (Err(WorkError::Away(error)), _) => Err(gave_up(&error, plan.exit_when_away)),
        (Err(WorkError::Execution(failure)), _) => Err(failure),
        (Ok(_), Some(signal)) => Err(Failure::silent(by_signal(signal as i32))),
        (Ok(_), None) => Ok(()),
    }
}

/// Tells people what they should know of the work; `taken` becomes true with the first job.
fn teller(taken: Arc<AtomicBool>, contact: Contact) -> impl Fn(&Event) + Send + Sync + 'static {
    move |event| match event {
        Event::Started { .. } => taken.store(true, Ordering::Relaxed),
        Event::OutcomeRefused { job, refusal } => {
            tell(&format!("the outcome of job '{job}' was refused: {}", refusal.detail));
        }
        Event::NotSettled { job, why } => {
            tell(&format!("the outcome of job '{job}' was not accepted: {why}"));
        }
        Event::DrainTimedOut => {
            tell("the drain timeout is over: running jobs are given back");
        }
        Event::Trouble { error, away } => contact.lost(error, *away),
        Event::Recovered => contact.found(),
        _ => {}
    }
}

/// The failure of work that no longer waits for its store.
fn gave_up(error: &CallError, longest: Option<Span>) -> Failure {
    let longest = longest.unwrap_or_default();
    let why = error.to_string();
    Failure::new(
        UNAVAILABLE,
        format!("the store did not answer for {longest} (--exit-when-away): {why}"),
    )
    .hint("start the worker again when the store answers; without --exit-when-away it waits")
}

fn still_running(jobs: u64) -> String {
    format!("no more jobs are taken, {jobs} still {}", count::of(jobs, "runs", "run"))
}

/// Says which of the queues never had a job, and which name was perhaps meant.
async fn tell_strange(client: Client, queues: Vec<QueueName>) {
    let page = Page { max: LIST_MAX, cursor: None };
    let Ok(listed) = client.run(ListQueues { page }).await else { return };
    for queue in &queues {
        let filter = JobFilter { queue: Some(queue.clone()), ..JobFilter::default() };
        let page = Page { max: 1, cursor: None };
        let Ok(jobs) = client.run(ListJobs { filter, page, full: false }).await else { return };
        if !jobs.items.is_empty() {
            continue;
        }
        let others = listed.items.iter().filter(|view| !queues.contains(&view.name));
        let names: Vec<&str> = others.map(|view| view.name.as_str()).collect();
        let head = format!("queue '{queue}' has no jobs, not even finished ones");
        match no_worker::some_names(queue.as_str(), &names) {
            Some(names) => tell(&format!("{head}; other queues: {names}")),
            None => tell(&head),
        }
    }
}

#[cfg(test)]
mod tests;
