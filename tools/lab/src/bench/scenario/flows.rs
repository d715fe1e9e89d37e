//! A job that waits for thousands, and thousands that wait for one.

use std::time::Instant;

use tenure_console::exit::Failure;
use tenure_core::flow::{After, Parent};
use tenure_core::job::NewJob;
use tenure_core::lease::{Ending, SettleItem};
use tenure_core::names::{FlowName, JobId, JobRef, QueueName};
use tenure_core::requests::{Lease, Push, PushAnswer, Settle};
use tenure_core::time::Span;

use super::super::load::queue;
use super::super::slow_log::SlowLog;
use super::super::target::{Place, Target};
use super::{Figures, Setup};

/// Number of jobs that one job waits for.
const PARENTS: usize = 5_000;
/// Number of jobs that wait for one job.
const CHILDREN: usize = 10_000;
/// Jobs of one call. A call with more of them takes longer, however large the flow is.
const BATCH: usize = 50;
/// A lease call waits this long at most for a job of the flow to become ready.
const WAIT: Span = Span::from_s(60);

/// From the settle of the last parent to the grant of the child; from the settle of the parent to the grant of its last
/// child; and on a Redis the slowest command of all.
pub async fn measure(setup: &Setup<'_>) -> Result<Figures, Failure> {
    let log = SlowLog::of(setup.under).await?;
    let target = setup.open(Place::InProcess).await?;
    let mut figures =
        vec![("fan_in_ms", fan_in(&target).await?), ("fan_out_ms", fan_out(&target).await?)];
    if let Some(log) = log {
        figures.push(("slowest_command_ms", log.slowest_ms().await?));
    }
    Ok(figures)
}

async fn push(target: &Target, jobs: Vec<NewJob>) -> Result<(), Failure> {
    for some in jobs.chunks(BATCH) {
        target.run(Push { jobs: some.to_vec(), answer: PushAnswer::Ids }).await?;
    }
    Ok(())
}

/// Takes `count` jobs of a queue as they become ready, and settles them.
async fn run(target: &Target, from: &QueueName, count: usize) -> Result<(), Failure> {
    let mut left = count;
    while left > 0 {
        let lease = Lease { wait: WAIT, ..Lease::jobs(vec![from.clone()], left.min(BATCH)) };
        let leases = target.run(lease).await?.leases;
        if leases.is_empty() {
            return Err(Failure::bug(format!("{left} jobs of a flow did not become ready")));
        }
        left -= leases.len();
        let ids = leases.into_iter().filter_map(|lease| lease.lease);
        let item = |lease| SettleItem::new(lease, Ending::Succeeded { result: None });
        target.run(Settle::of(ids.map(item).collect())).await?;
    }
    Ok(())
}

async fn fan_in(target: &Target) -> Result<f64, Failure> {
    let (parents, child) = (queue()?, QueueName::parse("child")?);
    let flow = FlowName::parse("fan-in")?;
    let one = |_| NewJob { flow: Some(flow.clone()), ..NewJob::new(parents.clone()) };
    push(target, (0..PARENTS).map(one).collect()).await?;
    let all = After { parent: Parent::Flow(flow.clone()), gone_is_done: false };
    push(target, vec![NewJob { after: vec![all], ..NewJob::new(child.clone()) }]).await?;
    run(target, &parents, PARENTS - 1).await?;
    let begun = Instant::now();
    run(target, &parents, 1).await?;
    run(target, &child, 1).await?;
    Ok(begun.elapsed().as_secs_f64() * 1_000.0)
}

async fn fan_out(target: &Target) -> Result<f64, Failure> {
    let (parent, children) = (queue()?, QueueName::parse("children")?);
    let id = JobId::parse("fan-out")?;
    push(target, vec![NewJob { id: Some(id.clone()), ..NewJob::new(parent.clone()) }]).await?;
    let after = After { parent: Parent::Job(JobRef::Id(id)), gone_is_done: false };
    let child = |_| NewJob { after: vec![after.clone()], ..NewJob::new(children.clone()) };
    push(target, (0..CHILDREN).map(child).collect()).await?;
    let begun = Instant::now();
    run(target, &parent, 1).await?;
    run(target, &children, CHILDREN).await?;
    Ok(begun.elapsed().as_secs_f64() * 1_000.0)
}
