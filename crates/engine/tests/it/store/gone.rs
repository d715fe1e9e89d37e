//! Callers that go away: grants to them are given back at once, whenever they go.

use std::future::Future;
use std::task::{Context, Poll, Waker};

use tenure_core::job::JobState;
use tenure_core::lease::{Ending, Worker};
use tenure_core::names::{JobRef, RequestId};
use tenure_core::requests::*;
use tenure_core::time::Span;

use crate::store::calls::*;

async fn state(here: &Here, id: &str) -> JobState {
    run(&here.engine, GetJob { job: JobRef::parse(id).unwrap() }).await.unwrap().state
}

/// Polls a call once, so that it is sent.
fn poll<F: Future + ?Sized>(call: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    call.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_job_waiter_that_leaves_takes_no_job() {
    block(async {
        let here = Here::new();
        {
            let mut call = call(&here.engine, ask(1, 60));
            assert!(poll(call.as_mut()).is_pending());
            here.engine.settled().await;
        }
        push(&here.engine, vec![job("a")]).await;
        here.engine.settled().await;
        assert_eq!(state(&here, "a").await, JobState::Ready);
        assert_eq!(take(&here.engine, 1).await.len(), 1);
    });
}

#[test]
fn a_grant_that_is_not_received_is_given_back() {
    block(async {
        let here = Here::new();
        for n in 0..10 {
            {
                let mut call = call(&here.engine, ask(1, 60));
                assert!(poll(call.as_mut()).is_pending());
                here.engine.settled().await;
                // The answer is sent, and never received.
                push(&here.engine, vec![job(&format!("j{n}"))]).await;
                here.engine.settled().await;
                assert_eq!(state(&here, &format!("j{n}")).await, JobState::Running);
            }
            here.engine.settled().await;
            let job = JobRef::parse(&format!("j{n}")).unwrap();
            let view = run(&here.engine, GetJob { job }).await.unwrap();
            assert_eq!((view.state, view.lost, view.attempt), (JobState::Ready, 0, 0));
            assert!(view.errors.is_empty());
            let taken = take(&here.engine, 1).await;
            assert_eq!(taken[0].job.as_ref().unwrap().attempt, 1);
            settle(&here.engine, vec![done(&taken[0])]).await;
        }
    });
}

#[test]
fn a_repeat_that_is_not_received_takes_nothing_back() {
    block(async {
        let mut here = Here::new();
        push(&here.engine, vec![job("a")]).await;
        let request_id = Some(RequestId::parse("r").unwrap());
        let ask = Lease { request_id, ..ask(1, 0) };
        let first = run(&here.engine, ask.clone()).await.unwrap().leases;
        for reopened in [false, true] {
            if reopened {
                here.engine.crash();
                here.reopen();
            }
            {
                let mut again = call(&here.engine, ask.clone());
                let _ = poll(again.as_mut());
                here.engine.settled().await;
            }
            here.engine.settled().await;
            assert_eq!(state(&here, "a").await, JobState::Running);
            let repeat = run(&here.engine, ask.clone()).await.unwrap().leases;
            assert_eq!(repeat[0].lease, first[0].lease);
            assert_eq!(repeat[0].job, first[0].job);
        }
    });
}

#[test]
fn callers_that_come_and_go_leave_every_job_to_be_run_once() {
    block(async {
        let here = Here::new();
        let jobs = 500;
        push(&here.engine, (0..jobs).map(|n| job(&format!("j{n}"))).collect()).await;
        let mut run_once = 0;
        let mut round = 0u64;
        while run_once < jobs {
            round += 1;
            let worker = Worker::default();
            let call = call(&here.engine, Lease { worker, ..ask(3, 1) });
            // Some calls are dropped before their answer, some during it, some after it.
            let patience = std::time::Duration::from_micros(round * 37 % 700);
            if let Ok(leased) = tokio::time::timeout(patience, call).await {
                let leases = leased.unwrap().leases;
                run_once += leases.len();
                settle(&here.engine, leases.iter().map(done).collect()).await;
            }
            if round.is_multiple_of(50) {
                here.clock.advance(Span::from_s(2));
            }
        }
        here.engine.settled().await;
        let stats = run(&here.engine, GetStats).await.unwrap();
        assert_eq!(stats.jobs[&JobState::Succeeded], jobs as u64);
        assert_eq!(stats.leases, 0);
    });
}

#[test]
fn needs_that_are_not_received_are_free_again() {
    block(async {
        let here = Here::new();
        let needs = || Lease::needs(vec![lock("x")]);
        let held = run(&here.engine, needs()).await.unwrap().leases.remove(0);
        {
            let wait = Span::from_s(60);
            let mut call = call(&here.engine, Lease { wait, ..needs() });
            assert!(poll(call.as_mut()).is_pending());
            here.engine.settled().await;
            settle(&here.engine, vec![ending(&held, Ending::Released)]).await;
            here.engine.settled().await;
            assert!(run(&here.engine, needs()).await.unwrap().leases.is_empty());
        }
        here.engine.settled().await;
        assert_eq!(run(&here.engine, needs()).await.unwrap().leases.len(), 1);
    });
}
