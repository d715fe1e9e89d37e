//! Ends that the source had not told yet: parents have ended in it that its children still wait for.

use std::collections::BTreeSet;
use std::sync::Arc;

use tenure_core::flow::{FlowState, ParentView};
use tenure_core::job::{JobState, NewJob};
use tenure_core::names::Namespace;
use tenure_core::requests::*;
use tenure_core::time::Span;
use tenure_engine_api::{Engine, EngineExt};
use tenure_testkit::needs_redis;

use crate::copy::filled::{lease_jobs, queue};
use crate::copy::kin::*;
use crate::copy::stores::{Store, copy_all};
use crate::copy::world::is_sound;

/// Children of each parent: more than are told at once.
const CHILDREN: usize = 300;

fn parent(name: &str) -> NewJob {
    NewJob { queue: queue("parents"), retain: Some(Span::ZERO), ..job(name) }
}

async fn fill(engine: &Arc<dyn Engine>, ns: &Namespace) {
    push(engine, ns, vec![parent("good"), parent("bad")]).await;
    push(engine, ns, vec![NewJob { queue: queue("parents"), ..member("m", "f") }]).await;
    for (name, of) in [("g", "good"), ("b", "bad"), ("m", "flow:f")] {
        let all = (0..CHILDREN).map(|n| child(&format!("{name}{n}"), &[of]));
        push(engine, ns, all.collect()).await;
    }
    push(engine, ns, vec![runs(child("both", &["good", "bad"])), child("on", &["good", "g0"])])
        .await;
    // Those of this flow are being called off, and only begun.
    let all = (0..CHILDREN).map(|n| member(&format!("c{n}"), "c"));
    push(engine, ns, all.collect()).await;
    push(engine, ns, vec![runs(child("after c", &["flow:c"]))]).await;
}

/// Ends the parents. The engine tells up to 256 children at once and the others by ticks, so the store that is closed right after
/// this has told only some.
async fn end_parents(engine: &Arc<dyn Engine>, ns: &Namespace) {
    for lease in lease_jobs(engine, ns, "parents", 3).await {
        let is_bad = lease.job.as_ref().is_some_and(|job| job.id.as_str() == "bad");
        settle(engine, ns, &lease, if is_bad { failed() } else { succeeded() }).await;
    }
    engine.run(ns, CancelFlow { flow: flow("c") }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_that_the_source_had_not_told_are_told_in_the_copy() {
    needs_redis!();
    let ns = Namespace::main();
    for (from, to) in [(Store::folder(), Store::redis()), (Store::redis(), Store::folder())] {
        {
            let opened = from.open();
            fill(&opened.engine(), &ns).await;
            end_parents(&opened.engine(), &ns).await;
        }
        copy_all(&from, &to);
        let opened = to.open();
        let engine = opened.engine();
        // Nobody works here: ticks tell.
        quiet(&engine, &ns).await;
        let jobs = engine.run(&ns, GetStats).await.unwrap().jobs;
        let count = |state| jobs.get(&state).copied().unwrap_or_default() as usize;
        let ready = count(JobState::Ready) + count(JobState::Blocked);
        let counts = (ready, count(JobState::Dependent), count(JobState::Cancelled));
        assert_eq!(counts, (2 * CHILDREN + 2, 1, 2 * CHILDREN), "{jobs:?}");
        let f = engine.run(&ns, GetFlow { flow: flow("f"), wait: Span::ZERO }).await.unwrap();
        assert_eq!((f.state, f.counts.succeeded), (FlowState::Finished, 1));
        let again = RetryJob { job: named("bad"), finished_at: None };
        let again = engine.run(&ns, again).await.unwrap();
        assert_eq!(again.cancelled_children, Some(CHILDREN as u64));
        let ended = run_all(&engine, &ns, &BTreeSet::new()).await;
        let ran = ended.iter().filter(|job| job.contains("Succeeded")).count();
        assert!(ran >= 2 * CHILDREN + 3, "{ran}");
        assert!(ended.contains(&"after c Succeeded None".to_owned()));
    }
}

/// A list of parents is in many pieces on Redis, and of one thing in a page.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_waits_for_thousands_comes_along() {
    needs_redis!();
    const PARENTS: usize = 4_000;
    let ns = Namespace::main();
    for chain in Store::there_and_back() {
        let names: Vec<String> = (0..PARENTS).map(|n| format!("p{n}")).collect();
        let before = {
            let opened = chain[0].open();
            let engine = opened.engine();
            for some in names.chunks(1_000) {
                push(&engine, &ns, some.iter().map(|name| parent(name)).collect()).await;
            }
            let named: Vec<&str> = names.iter().map(String::as_str).collect();
            push(&engine, &ns, vec![child("all", &named)]).await;
            for lease in lease_jobs(&engine, &ns, "parents", 50).await {
                settle(&engine, &ns, &lease, succeeded()).await;
            }
            seen(&engine, &ns).await
        };
        assert_eq!(before.0, (PARENTS - 50) as u32);
        for (from, to) in [(0, 1), (1, 2)] {
            copy_all(&chain[from], &chain[to]);
            assert_eq!(seen(&chain[to].open().engine(), &ns).await, before, "to the store {to}");
        }
    }
}

/// How many parents one job waits for, and its last ones.
async fn seen(engine: &Arc<dyn Engine>, ns: &Namespace) -> (u32, Vec<ParentView>) {
    is_sound(engine, ns).await;
    let all = engine.run(ns, GetJob { job: named("all") }).await.unwrap();
    let page = Page { max: 100, cursor: Some((all.parents - 100).to_string()) };
    let list = ListParents { job: named("all"), full: true, page };
    (all.waiting_on, engine.run(ns, list).await.unwrap().items)
}
