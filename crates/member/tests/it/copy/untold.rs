//! Ends that the source had not told yet. An engine tells within milliseconds, so what a source says is changed here on its
//! way: parents have ended in it that its children still wait for.

use std::collections::BTreeSet;
use std::sync::Arc;

use tenure_core::copy::{CopiedPage, Cursor, Item, Section};
use tenure_core::flow::{FlowState, ParentView};
use tenure_core::job::{JobState, NewJob};
use tenure_core::names::Namespace;
use tenure_core::requests::*;
use tenure_core::time::{Moment, Span};
use tenure_seam::copy::{Mark, Source, Target};
use tenure_seam::{Clock as _, Engine, EngineExt, SystemClock};
use tenure_testkit::redis::wanted;

use crate::copy::filled::{lease_jobs, queue};
use crate::copy::kin::*;
use crate::copy::stores::{Store, copy_all};
use crate::copy::world::is_sound;

/// Children of each parent: to tell them takes several calls.
const CHILDREN: usize = 600;

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

/// The source, with ends in it.
fn with_ends(item: &mut Item, now: Moment) {
    match item {
        Item::Job(job) => {
            job.state = match job.id.as_str() {
                "good" | "m" => JobState::Succeeded,
                "bad" => JobState::Failed,
                _ => return,
            };
            // Nobody keeps them but their children; without a member its flow would go.
            let kept = if job.flow.is_some() { Span::from_s(3_600) } else { Span::ZERO };
            (job.finished_at, job.kept_until) = (Some(now), Some(now.plus(kept)));
        }
        Item::Flow(flow) if flow.flow.as_str() == "c" => flow.cancelling = true,
        Item::Flow(flow) => {
            flow.ended.succeeded = 1;
            flow.finished_at = Some(now);
        }
        _ => {}
    }
}

async fn moved(source: &dyn Source, target: &dyn Target, ns: &Namespace) {
    let (copy, to) = ("copy_untold".to_owned(), "there".to_owned());
    let mark = Mark { copy, to, whole: false };
    source.freeze(&mark).await.unwrap();
    let head = source.head(ns).await.unwrap();
    target.begin(&mark.copy, ns, &head).await.unwrap();
    let (mut number, mut next) = (0, Some(Cursor::of(Section::ALL[0])));
    while let Some(cursor) = next {
        let CopiedPage { mut items, next: then } = source.page(ns, &cursor).await.unwrap();
        items.iter_mut().for_each(|item| with_ends(item, SystemClock.now()));
        // Its answer is lost each time.
        for _ in 0..2 {
            target.put(&mark.copy, ns, number, items.clone(), then.clone()).await.unwrap();
        }
        (number, next) = (number + 1, then);
    }
    target.open(&mark.copy).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_not_told_is_told_in_the_copy() {
    if !wanted() {
        return;
    }
    let ns = Namespace::main();
    for (from, to) in [(Store::folder(), Store::redis()), (Store::redis(), Store::folder())] {
        fill(&from.open().engine(), &ns).await;
        moved(from.hands().source(), to.hands().target(), &ns).await;
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
    if !wanted() {
        return;
    }
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
            copy_all(&chain[from], &chain[to]).await;
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
