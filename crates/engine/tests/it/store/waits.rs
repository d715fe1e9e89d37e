//! Calls that wait, drains, closes, and payloads on their way.

use std::sync::Arc;

use tenure_core::job::{JobState, NewJob};
use tenure_core::lease::Ending;
use tenure_core::names::{JobRef, PoolName, ResourceId};
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::settings::NewResource;
use tenure_core::time::Span;
use tenure_engine::{Embedded, Location, Options};
use tenure_engine_api::{CallError, Engine, Fault, SystemClock};

use crate::store::calls::*;

#[test]
fn an_idle_worker_gets_a_job_at_its_push_or_when_it_is_due() {
    block(async {
        let engine = Embedded::open(Options {
            clock: Arc::new(SystemClock),
            ..Options::new(Location::Memory)
        })
        .unwrap();
        let waits = call(&engine, ask(1, 30));
        let waits = tokio::spawn(waits);
        let mut new = job("a");
        new.payload = text("hello");
        push(&engine, vec![new]).await;
        let leased = tokio::time::timeout(PATIENCE, waits).await.unwrap().unwrap().unwrap();
        let got = leased.leases[0].job.as_ref().unwrap();
        assert_eq!((got.id.as_str(), got.payload.clone()), ("a", Some(text("hello"))));
        let waits = tokio::spawn(call(&engine, ask(1, 30)));
        let mut later = job("b");
        later.when = tenure_core::job::When::In(Span::from_ms(50));
        push(&engine, vec![later]).await;
        let leased = tokio::time::timeout(PATIENCE, waits).await.unwrap().unwrap().unwrap();
        assert_eq!(leased.leases[0].job.as_ref().unwrap().id.as_str(), "b");
    });
}

#[test]
fn a_drained_engine_answers_its_waiters_and_refuses_lease_calls() {
    block(async {
        let here = Here::new();
        let waits = tokio::spawn(call(&here.engine, ask(1, 60)));
        let needs = Lease { wait: Span::from_s(60), ..Lease::needs(vec![lock("x")]) };
        run(&here.engine, Lease::needs(vec![lock("x")])).await.unwrap();
        let waits_too = tokio::spawn(call(&here.engine, needs));
        here.engine.settled().await;
        here.engine.drain();
        here.engine.drain();
        for one in [waits, waits_too] {
            match tokio::time::timeout(PATIENCE, one).await.unwrap().unwrap() {
                Ok(leased) => assert!(leased.leases.is_empty()),
                // The call came after the drain.
                Err(no) => assert_eq!(no.code(), Some(Code::Draining)),
            }
        }
        let no = run(&here.engine, ask(1, 0)).await.unwrap_err();
        assert_eq!(no.code(), Some(Code::Draining));
        push(&here.engine, vec![job("a")]).await;
        assert_eq!(run(&here.engine, GetStats).await.unwrap().jobs[&JobState::Ready], 1);
    });
}

#[test]
fn a_closed_engine_says_that_it_is_closed() {
    block(async {
        let here = Here::new();
        let waits = tokio::spawn(call(&here.engine, ask(1, 60)));
        here.engine.settled().await;
        here.engine.close();
        let no = tokio::time::timeout(PATIENCE, waits).await.unwrap().unwrap().unwrap_err();
        assert!(matches!(no, CallError::Fault(Fault::Unavailable(_))), "{no:?}");
        let no = run(&here.engine, GetStats).await.unwrap_err();
        assert!(matches!(no, CallError::Fault(Fault::Unavailable(_))), "{no:?}");
    });
}

#[test]
fn what_is_pushed_is_what_is_leased_from_memory_and_from_rows() {
    block(async {
        let mut here = Here::new();
        let whole = |n: usize| {
            let mut new = job(&format!("j{n}"));
            new.kind = "fetch".to_owned();
            new.payload = text(&"x".repeat(n * 1_000));
            new.labels.insert("a\"b".to_owned(), "ü".to_owned());
            new
        };
        let jobs: Vec<NewJob> = (0..8).map(whole).collect();
        push(&here.engine, jobs.clone()).await;
        let mut seen = take(&here.engine, 4).await;
        here.engine.crash();
        here.reopen();
        seen.extend(take(&here.engine, 4).await);
        assert_eq!(seen.len(), 8);
        for (lease, pushed) in seen.iter().zip(&jobs) {
            let got = lease.job.as_deref().unwrap();
            assert_eq!(Some(&got.id), pushed.id.as_ref());
            assert_eq!((&got.kind, &got.labels), (&pushed.kind, &pushed.labels));
            assert_eq!(got.payload.as_ref(), Some(&pushed.payload));
            assert_eq!((got.state, got.attempt, &got.lease), (JobState::Running, 1, &lease.lease));
            let shown =
                run(&here.engine, GetJob { job: JobRef::Id(got.id.clone()) }).await.unwrap();
            assert_eq!(*shown, *got, "a lease shows the job as its row does");
        }
    });
}

#[test]
fn a_second_run_knows_what_the_first_said() {
    block(async {
        let here = Here::new();
        push(&here.engine, vec![job("a")]).await;
        let first = take(&here.engine, 1).await.remove(0);
        let lease = first.lease.clone().unwrap();
        let item = tenure_core::lease::ExtendItem { lease, progress: Some(text("half")) };
        run(&here.engine, Extend { leases: vec![item], ttl: None }).await.unwrap();
        let failed =
            Ending::Failed { error: "no".to_owned(), retry_in: Some(Span::ZERO), last: false };
        settle(&here.engine, vec![ending(&first, failed)]).await;
        let second = take(&here.engine, 1).await.remove(0);
        let job = second.job.unwrap();
        assert_eq!((job.attempt, job.errors.len()), (2, 1));
        assert_eq!((job.error.as_deref(), job.progress), (Some("no"), Some(text("half"))));
    });
}

#[test]
fn only_the_last_errors_are_kept() {
    block(async {
        let here = Here::new();
        let mut new = job("a");
        new.retry = Some(tenure_core::job::Retry { max_attempts: 0, ..Default::default() });
        push(&here.engine, vec![new]).await;
        for n in 1..=25 {
            let lease = take(&here.engine, 1).await.remove(0);
            let error = format!("error {n}");
            let failed = Ending::Failed { error, retry_in: Some(Span::ZERO), last: false };
            settle(&here.engine, vec![ending(&lease, failed)]).await;
        }
        let job = JobRef::parse("a").unwrap();
        let view = run(&here.engine, GetJob { job: job.clone() }).await.unwrap();
        let texts: Vec<String> = view.errors.iter().map(|error| error.error.clone()).collect();
        let last: Vec<String> = (6..=25).map(|n| format!("error {n}")).collect();
        assert_eq!(texts, last);
        run(&here.engine, DeleteJob { job }).await.unwrap();
        push(&here.engine, vec![crate::store::calls::job("a")]).await;
        let view = run(&here.engine, GetJob { job: JobRef::parse("a").unwrap() }).await.unwrap();
        assert!(view.errors.is_empty(), "they went with their job");
    });
}

#[test]
fn one_settle_call_may_end_a_job_repeat_that_and_push_its_id() {
    block(async {
        let here = Here::new();
        push(&here.engine, vec![job("a"), job("b")]).await;
        let leases = take(&here.engine, 2).await;
        let mut second = done(&leases[1]);
        second.push = vec![job("a"), job("c")];
        let answer = settle(&here.engine, vec![done(&leases[0]), done(&leases[0]), second]).await;
        assert!(answer.settled.iter().all(|one| one.ok), "{answer:?}");
        let pushed = &answer.settled[2].pushed;
        assert_eq!((pushed[0].duplicate, pushed[1].duplicate), (true, false));
        assert_eq!(pushed[0].job.state, JobState::Succeeded);
        let left = take(&here.engine, 10).await;
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].job.as_ref().unwrap().id.as_str(), "c");
    });
}

#[test]
fn secrets_reach_their_holder_and_nobody_else() {
    block(async {
        let here = Here::new();
        let pool = PoolName::parse("accounts").unwrap();
        let id = ResourceId::parse("anna").unwrap();
        let data = tenure_core::secret::Json::parse(r#"{"user":"anna","pw":"s3cret"}"#).unwrap();
        let new = NewResource { id: id.clone(), data: data.clone(), tags: vec![], slots: 1 };
        let add = AddResources { pool: pool.clone(), resources: vec![new] };
        let shown = run(&here.engine, add).await.unwrap();
        assert_eq!(shown[0].data.text(), r#"{"user":"•","pw":"•"}"#);
        let get = GetResource { pool: pool.clone(), resource: id };
        assert_eq!(run(&here.engine, get).await.unwrap().data, shown[0].data);
        let need =
            tenure_core::job::Need::Pool { pool, tag: None, prefer: None, id: None, count: 1 };
        let held = run(&here.engine, Lease::needs(vec![need])).await.unwrap();
        assert_eq!(held.leases[0].resources[0].data, data);
    });
}
