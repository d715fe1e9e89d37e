//! A unique key that is held longer than its job is kept, and the bound of a wait that began before the copy.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::job::{JobState, NewJob, OnConflict, Unique, Until, When};
use tenure_core::lease::Ending;
use tenure_core::names::{JobId, JobRef, Namespace, UniqueKey};
use tenure_core::requests::*;
use tenure_core::time::{Moment, Span};
use tenure_engine_api::{Engine, EngineExt};
use tenure_testkit::needs_redis;

use crate::copy::filled::{give_back, lease_jobs, queue};
use crate::copy::stores::{Store, copy_all};

fn keyed(id: &str, on: &str, retain_s: u64) -> NewJob {
    let mut job = NewJob::new(queue(on));
    job.id = JobId::parse(id).ok();
    job.retain = Some(Span::from_s(retain_s));
    job.unique = Some(Unique {
        key: UniqueKey::parse(id).unwrap(),
        until: Until::End,
        hold: Some(Span::from_s(3_600)),
        on_conflict: OnConflict::Keep,
        within: None,
    });
    job
}

async fn is_gone(engine: &Arc<dyn Engine>, ns: &Namespace, id: &str) {
    let end = Instant::now() + Duration::from_secs(20);
    let get = || GetJob { job: JobRef::Id(JobId::parse(id).unwrap()) };
    while engine.run(ns, get()).await.is_ok() {
        assert!(Instant::now() < end, "{id} was to be forgotten");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What a push with the key of `id` shows of the job that took it.
async fn shown(engine: &Arc<dyn Engine>, ns: &Namespace, id: &str) -> String {
    let mut job = keyed(id, "another", 0);
    job.id = JobId::parse("newcomer").ok();
    let pushed = engine.run(ns, Push { jobs: vec![job], answer: PushAnswer::Whole }).await;
    let Pushed::Whole(pushed) = pushed.unwrap() else { panic!("it was to be whole") };
    assert!(pushed[0].duplicate, "the key of {id} is held");
    let job = &pushed[0].job;
    assert_eq!((job.id.as_str(), job.queue.as_str()), (id, "q"));
    assert_eq!(job.state, JobState::Succeeded);
    format!("{:?} {:?}", job.created_at, job.finished_at)
}

/// `gone` goes before the copy, `going` after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_held_on_there_and_says_what_became_of_its_job() {
    needs_redis!();
    for chain in Store::there_and_back() {
        let ns = Namespace::main();
        let before = {
            let opened = chain[0].open();
            let engine = opened.engine();
            let jobs = vec![keyed("gone", "q", 0), keyed("going", "q", 5)];
            engine.run(&ns, Push { jobs, answer: PushAnswer::Ids }).await.unwrap();
            for lease in lease_jobs(&engine, &ns, "q", 2).await {
                let ending = Ending::Succeeded { result: None };
                give_back(&engine, &ns, lease.lease.unwrap(), ending).await;
            }
            is_gone(&engine, &ns, "gone").await;
            [shown(&engine, &ns, "gone").await, shown(&engine, &ns, "going").await]
        };
        copy_all(&chain[0], &chain[1]);
        copy_all(&chain[1], &chain[2]);
        let opened = chain[2].open();
        let engine = opened.engine();
        is_gone(&engine, &ns, "going").await;
        let after = [shown(&engine, &ns, "gone").await, shown(&engine, &ns, "going").await];
        assert_eq!(before, after);
    }
}

/// A push that moves `a` to `delay_min` minutes from now, and no further than an hour beyond the begin of its wait.
fn moved(id: &str, delay_min: u64) -> Push {
    let mut job = keyed("k", "q", 3_600);
    job.id = JobId::parse(id).ok();
    job.when = When::In(Span::from_s(60 * delay_min));
    let within = Some(Span::from_s(3_600));
    let replaces = |unique| Unique { on_conflict: OnConflict::Replace, within, ..unique };
    job.unique = job.unique.map(replaces);
    Push { jobs: vec![job], answer: PushAnswer::Whole }
}

/// Where the push moved the job to.
async fn run_at(engine: &Arc<dyn Engine>, ns: &Namespace, push: Push) -> Moment {
    let Pushed::Whole(pushed) = engine.run(ns, push).await.unwrap() else {
        panic!("it was to be whole")
    };
    pushed[0].job.run_at
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_began_before_the_copy_is_bounded_from_there() {
    needs_redis!();
    for chain in Store::there_and_back() {
        let ns = Namespace::main();
        let began = {
            let opened = chain[0].open();
            let engine = opened.engine();
            engine.run(&ns, moved("a", 0)).await.unwrap();
            for lease in lease_jobs(&engine, &ns, "q", 1).await {
                let ending = Ending::Succeeded { result: None };
                give_back(&engine, &ns, lease.lease.unwrap(), ending).await;
            }
            // The push that lets it live again begins the wait, not its own push.
            run_at(&engine, &ns, moved("b", 30)).await.minus(Span::from_s(1_800))
        };
        copy_all(&chain[0], &chain[1]);
        copy_all(&chain[1], &chain[2]);
        let opened = chain[2].open();
        let bounded = run_at(&opened.engine(), &ns, moved("c", 600)).await;
        assert_eq!(bounded, began.plus(Span::from_s(3_600)));
    }
}
