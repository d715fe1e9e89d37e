//! Jobs that wait for others: short ways to push and end them, all that is shown of them, and a run to the end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::flow::{After, Gone, OnParentFailure, Parent, ParentState, ParentView};
use tenure_core::job::{JobState, JobView, NewJob};
use tenure_core::lease::{Ending, LeaseView, SettleItem};
use tenure_core::names::{FlowName, JobId, JobRef, Namespace, Ref};
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_engine_api::{Engine, EngineExt};

use crate::copy::filled::{lease_jobs, queue, worker};
use crate::copy::world::{is_sound, jobs};

const PROMPT: Duration = Duration::from_secs(60);
/// Nothing has changed for so long: what a tick has to do is done.
const QUIET: Duration = Duration::from_millis(400);

pub fn id(name: &str) -> JobId {
    JobId::parse(name).unwrap()
}
pub fn named(name: &str) -> JobRef {
    JobRef::Id(id(name))
}
pub fn flow(name: &str) -> FlowName {
    FlowName::parse(name).unwrap()
}

/// A job of the queue `q` that bears its id as a ref too.
pub fn job(name: &str) -> NewJob {
    NewJob { id: Some(id(name)), reference: Ref::parse(name).ok(), ..NewJob::new(queue("q")) }
}

/// The same, with what it waits for: ids, `flow:F`, and `ref:R` for an item of its own call. What is gone counts as done.
pub fn child(name: &str, parents: &[&str]) -> NewJob {
    let parent = |named: &&str| match named.split_once(':') {
        Some(("flow", name)) => Parent::Flow(flow(name)),
        Some(("ref", name)) => Parent::Item(Ref::parse(name).unwrap()),
        _ => Parent::Job(JobRef::Id(id(named))),
    };
    let after = parents.iter().map(|name| After { parent: parent(name), gone_is_done: true });
    NewJob { after: after.collect(), ..job(name) }
}
pub fn member(name: &str, of: &str) -> NewJob {
    NewJob { flow: Some(flow(of)), ..job(name) }
}
/// It runs whatever becomes of its parents.
pub fn runs(job: NewJob) -> NewJob {
    NewJob { on_parent_failure: OnParentFailure::Run, ..job }
}

pub async fn push(engine: &Arc<dyn Engine>, ns: &Namespace, jobs: Vec<NewJob>) {
    engine.run(ns, Push { jobs, answer: PushAnswer::Ids }).await.unwrap();
}

pub fn succeeded() -> Ending {
    Ending::Succeeded { result: Some("done".into()) }
}
pub fn failed() -> Ending {
    Ending::Failed { error: "broken".to_owned(), retry_in: None, last: true }
}

pub async fn settle(engine: &Arc<dyn Engine>, ns: &Namespace, lease: &LeaseView, ending: Ending) {
    let item = SettleItem::new(lease.lease.clone().unwrap(), ending);
    engine.run(ns, Settle::of(vec![item])).await.unwrap();
}

/// Runs one job of the queue of its own name, and ends it.
pub async fn end(engine: &Arc<dyn Engine>, ns: &Namespace, name: &str, ending: Ending) {
    let lease = lease_jobs(engine, ns, name, 1).await.remove(0);
    assert_eq!(lease.job.as_ref().unwrap().id, id(name));
    settle(engine, ns, &lease, ending).await;
}

pub async fn code_of<O: Operation>(engine: &Arc<dyn Engine>, ns: &Namespace, ask: O) -> Code {
    let Err(no) = engine.run(ns, ask).await else { panic!("{} is not refused", O::NAME) };
    no.code().unwrap()
}

/// What is asked about a job; `None` if it has gone since it was seen.
async fn of_job<O: Operation>(
    engine: &Arc<dyn Engine>,
    ns: &Namespace,
    ask: O,
) -> Option<O::Reply> {
    match engine.run(ns, ask).await {
        Ok(reply) => Some(reply),
        Err(no) => {
            assert_eq!(no.code(), Some(Code::JobNotFound), "{no}");
            None
        }
    }
}

async fn parents(
    engine: &Arc<dyn Engine>,
    ns: &Namespace,
    job: &JobView,
) -> Option<Vec<ParentView>> {
    let page = Page { max: 1_000, cursor: None };
    let list = ListParents { job: JobRef::Id(job.id.clone()), full: true, page };
    of_job(engine, ns, list).await.map(|listed| listed.items)
}

/// All that is shown of jobs, their parents and children, and flows. What is blocked stands in no line yet.
pub async fn shown(engine: &Arc<dyn Engine>, ns: &Namespace) -> Vec<String> {
    is_sound(engine, ns).await;
    let mut lines = Vec::new();
    for mut job in jobs(engine, ns).await {
        let Some(parents) = parents(engine, ns, &job).await else { continue };
        let page = Page { max: 1_000, cursor: None };
        let list = ListChildren { job: JobRef::Id(job.id.clone()), page };
        let Some(children) = of_job(engine, ns, list).await else { continue };
        let children = children.items;
        if job.state == JobState::Blocked {
            job.state = JobState::Ready;
        }
        lines.push(format!("{job:?}"));
        let mut results: Vec<_> = Vec::new();
        for parent in &parents {
            if let ParentView::Job(parent) = parent {
                results.push(parent.result.as_ref().map(|json| json.text().to_owned()));
            }
        }
        lines.push(format!("{} after {parents:?} {results:?}", job.id));
        lines.push(format!("{} before {children:?}", job.id));
    }
    let list = ListFlows { page: Page { max: 1_000, cursor: None } };
    for mut flow in engine.run(ns, list).await.unwrap().items {
        // That it is counts, not when a tick came to it.
        flow.finished_at = flow.finished_at.map(|_| tenure_core::time::Moment::ZERO);
        lines.push(format!("{flow:?}"));
    }
    lines
}

/// The same once nothing goes or is told any more.
pub async fn quiet(engine: &Arc<dyn Engine>, ns: &Namespace) -> Vec<String> {
    let end = Instant::now() + PROMPT;
    let mut last = shown(engine, ns).await;
    loop {
        tokio::time::sleep(QUIET).await;
        let now = shown(engine, ns).await;
        if now == last {
            return now;
        }
        assert!(Instant::now() < end, "it never comes to rest");
        last = now;
    }
}

/// A job that a failure cancels runs only when all its parents have succeeded, or are gone. Others may have been told of an
/// end that a retry took back, and a flow may have got members again.
async fn may_run(engine: &Arc<dyn Engine>, ns: &Namespace, job: &JobView) {
    if job.on_parent_failure == OnParentFailure::Run {
        return;
    }
    for parent in parents(engine, ns, job).await.expect("it runs") {
        let ParentView::Job(parent) = parent else { continue };
        let well = matches!(
            parent.state,
            ParentState::Gone(Gone::Gone) | ParentState::There(JobState::Succeeded)
        );
        assert!(well, "{} runs before {parent:?}", job.id);
    }
}

/// Runs all that can run until nothing is unfinished, and says how each job ended. Some of the `unlucky` fail.
pub async fn run_all(
    engine: &Arc<dyn Engine>,
    ns: &Namespace,
    unlucky: &BTreeSet<&str>,
) -> Vec<String> {
    let end = Instant::now() + PROMPT;
    loop {
        let all = jobs(engine, ns).await;
        let queues: BTreeSet<_> = all.iter().map(|job| job.queue.clone()).collect();
        let ask = Lease { worker: worker("w"), ..Lease::jobs(queues.into_iter().collect(), 200) };
        let leases = engine.run(ns, ask).await.unwrap().leases;
        for lease in &leases {
            let job = lease.job.as_ref().unwrap();
            may_run(engine, ns, job).await;
            let ending = if unlucky.contains(job.id.as_str()) { failed() } else { succeeded() };
            settle(engine, ns, lease, ending).await;
        }
        for job in all.iter().filter(|job| job.state == JobState::Scheduled) {
            let now = RunJobNow { job: JobRef::Id(job.id.clone()) };
            drop(engine.run(ns, now).await);
        }
        if leases.is_empty() && all.iter().all(|job| job.state.is_finished()) {
            quiet(engine, ns).await;
            let all = jobs(engine, ns).await;
            let line = |job: &JobView| format!("{} {:?} {:?}", job.id, job.state, job.error);
            return all.iter().map(line).collect();
        }
        let left = || all.iter().filter(|job| !job.state.is_finished()).map(|job| &job.id);
        assert!(Instant::now() < end, "these are stranded: {:?}", left().collect::<Vec<_>>());
    }
}
