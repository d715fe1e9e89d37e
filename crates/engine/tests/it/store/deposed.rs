//! An engine whose journal takes no more of its entries: none of its later answers gets out.

use std::sync::Arc;

use tenure_core::job::JobState;
use tenure_core::lease::{Ending, ExtendItem, LeaseView};
use tenure_core::names::{JobRef, Namespace};
use tenure_core::requests::*;
use tenure_core::time::Span;
use tenure_engine::{Embedded, Fatal, LostJournal};
use tenure_engine_api::{CallError, Engine, Fault};
use tenure_journal::memory::{Fate, MemoryJournal};
use tenure_journal::{Append, Appended};

use crate::store::calls::*;
use crate::store::journal::{appending, options_in, owner};

fn pushes(id: &str) -> Request {
    Push { jobs: vec![job(id)], answer: PushAnswer::Ids }.into()
}

/// Calls whose answers come about in each way: from rows, from the machine alone, from a read of the rows.
fn calls(lease: &LeaseView) -> Vec<(&'static str, Request)> {
    let id = || JobRef::parse("a").unwrap();
    let extend = ExtendItem { lease: lease.lease.clone().unwrap(), progress: None };
    vec![
        ("a push", pushes("new")),
        ("a push that is there", pushes("a")),
        ("a whole push", Push { jobs: vec![job("whole")], answer: PushAnswer::Whole }.into()),
        ("a heartbeat", Extend { leases: vec![extend], ttl: None }.into()),
        ("an empty lease", ask(1, 0).into()),
        ("a job", GetJob { job: id() }.into()),
        ("a list", ListJobs::default().into()),
        ("events", ReadEvents { since: EventsSince::First, ..ReadEvents::default() }.into()),
        ("the place in a stream", ReadEvents::default().into()),
        ("a result", GetResult { job: id(), wait: Span::ZERO, seen: None }.into()),
        ("stats", GetStats.into()),
        ("an audit", Audit { deep: true }.into()),
        ("failures", ListFailures::default().into()),
        ("a settle", Settle::of(vec![ending(lease, Ending::Released)]).into()),
    ]
}

async fn asked(engine: &Embedded, request: Request) -> Result<Reply, CallError> {
    let call = engine.call(&Namespace::main(), request);
    tokio::time::timeout(PATIENCE, call).await.expect("it is answered")
}

/// A leader with a running job.
async fn running(journal: &Arc<MemoryJournal>) -> (Here, LeaseView) {
    let here = owner(journal);
    push(&here.engine, vec![job("a")]).await;
    let lease = take(&here.engine, 1).await.remove(0);
    (here, lease)
}

#[test]
fn nothing_is_answered_after_a_deposal_whatever_is_asked() {
    block(async {
        let (here, lease) = running(&Arc::new(MemoryJournal::default())).await;
        for (what, request) in calls(&lease) {
            let answer = asked(&here.engine, request).await;
            assert!(answer.is_ok(), "{what}: {answer:?}");
        }
        let n = calls(&lease).len();
        for n in 0..n {
            let journal = Arc::new(MemoryJournal::default());
            let (here, lease) = running(&journal).await;
            journal.end(Appended::Fenced);
            let (what, request) = calls(&lease).swap_remove(n);
            let answer = asked(&here.engine, request).await;
            assert!(matches!(answer, Err(CallError::Fault(_))), "{what}: {answer:?}");
        }
    });
}

/// An append begins before the call, and its reply comes after the fencing: it proves nothing about the call.
#[test]
fn an_answer_waits_for_an_append_begun_after_its_decision() {
    block(async {
        let (_, lease) = running(&Arc::new(MemoryJournal::default())).await;
        let n = calls(&lease).len();
        for n in 0..n {
            let journal = Arc::new(MemoryJournal::default());
            let (here, lease) = running(&journal).await;
            let engine = Arc::new(here.engine);
            let (what, request) = calls(&lease).swap_remove(n);
            journal.hold();
            let begun = journal.begun().len();
            let before = tokio::spawn(engine.call(&Namespace::main(), pushes("before")));
            assert!(journal.wait_for_begun(begun + 1, PATIENCE));
            // Every append that begins from now on arrives after the fencing.
            journal.fates(|_| Fate::Answered(Appended::Fenced));
            let call = tokio::spawn(engine.call(&Namespace::main(), request));
            // The call is decided, and read, when its own append begins; without one there is nothing to wait for.
            journal.wait_for_begun(begun + 2, std::time::Duration::from_secs(2));
            journal.release();
            assert!(before.await.unwrap().is_ok(), "{what}: what was appended before is answered");
            let answer = call.await.unwrap();
            assert!(matches!(answer, Err(CallError::Fault(_))), "{what}: {answer:?}");
        }
    });
}

#[test]
fn only_calls_in_doubt_at_a_fencing_get_an_unknown_outcome() {
    block(async {
        let journal = Arc::new(MemoryJournal::default());
        let (here, lease) = running(&journal).await;
        let extend = ExtendItem { lease: lease.lease.clone().unwrap(), progress: None };
        let heartbeat = Extend { leases: vec![extend], ttl: None };
        journal.end(Appended::Fenced);
        let no = asked(&here.engine, heartbeat.clone().into()).await;
        assert!(matches!(no, Err(CallError::Fault(Fault::Unavailable(_)))), "{no:?}");

        let journal = Arc::new(MemoryJournal::default());
        let (here, _) = running(&journal).await;
        journal.end(Appended::Fenced);
        let no = asked(&here.engine, pushes("doubt")).await;
        assert!(matches!(no, Err(CallError::Fault(Fault::Unknown(_)))), "{no:?}");
        let begun = std::time::Instant::now();
        while here.engine.health().degraded.is_none() {
            assert!(begun.elapsed() < PATIENCE, "the engine did not end");
            tokio::task::yield_now().await;
        }
        let no = asked(&here.engine, pushes("later")).await;
        assert!(matches!(no, Err(CallError::Fault(Fault::Unavailable(_)))), "{no:?}");
    });
}

#[test]
fn an_engine_ends_by_what_its_journal_says_and_says_why() {
    for (answer, lost) in [
        (Appended::Fenced, LostJournal::Fenced),
        (Appended::Moved, LostJournal::Moved),
        (Appended::At(1), LostJournal::Forgot { end: 0, has: 1 }),
        (Appended::Full, LostJournal::Full),
    ] {
        block(async {
            let journal = Arc::new(MemoryJournal::default());
            let here = owner(&journal);
            here.engine.settled().await;
            drop(here.engine);
            let (engine, end) =
                ends(appending(options_in(&here.dir.join("again"), &here.clock), &journal));
            journal.fates(move |_| Fate::Answered(answer.clone()));
            assert!(asked(&engine, pushes("a")).await.is_err());
            let (code, said) = told(&end).await;
            assert_eq!((code, said), (74, Fatal::Journal(lost).to_string()));
        });
    }
}

#[test]
fn a_batch_that_was_not_sent_is_not_sent_after_a_deposal() {
    block(async {
        let journal = Arc::new(MemoryJournal::default());
        let here = owner(&journal);
        here.engine.settled().await;
        let engine = Arc::new(here.engine);
        let begun = journal.begun().len();
        journal.hold();
        journal.end(Appended::Fenced);
        let mut calls = Vec::new();
        for n in 0..5 {
            calls.push(tokio::spawn(engine.call(&Namespace::main(), pushes(&n.to_string()))));
            // At most two appends are on their way; the third batch waits for the disk, the others for that batch.
            if n < 2 {
                assert!(journal.wait_for_begun(begun + n + 1, PATIENCE));
            }
        }
        // No event shows that the third is decided. If it is not by then, it is refused as well.
        for _ in 0..10_000 {
            tokio::task::yield_now().await;
        }
        journal.release();
        let mut said = Vec::new();
        for call in calls {
            said.push(call.await.unwrap().unwrap_err());
        }
        let unknown = said.iter().filter(|no| matches!(no, CallError::Fault(Fault::Unknown(_))));
        assert_eq!(unknown.count(), 2, "{said:?}");
        assert_eq!(journal.begun().len(), begun + 2);
    });
}

/// The append begins while the one before it is lost, so it comes too early.
#[test]
fn an_append_that_overtook_the_one_before_is_sent_again() {
    block(async {
        let journal = Arc::new(MemoryJournal::default());
        let here = owner(&journal);
        here.engine.settled().await;
        let begun = journal.begun().len();
        let mut first = true;
        journal.fates(move |append| match append {
            Append::Entry { .. } if std::mem::take(&mut first) => Fate::Lost,
            _ => Fate::Arrives,
        });
        journal.hold();
        let engine = Arc::new(here.engine);
        let one = tokio::spawn(engine.call(&Namespace::main(), pushes("one")));
        assert!(journal.wait_for_begun(begun + 1, PATIENCE));
        let two = tokio::spawn(engine.call(&Namespace::main(), pushes("two")));
        assert!(journal.wait_for_begun(begun + 2, PATIENCE));
        journal.release();
        assert!(one.await.unwrap().is_ok() && two.await.unwrap().is_ok());
        let there = asked(&engine, ListJobs::default().into()).await.unwrap();
        let Reply::ListJobs(jobs) = there else { panic!("{there:?}") };
        assert!(jobs.items.iter().all(|job| job.state == JobState::Ready) && jobs.items.len() == 2);
    });
}

#[test]
fn an_engine_ends_although_its_journal_is_silent() {
    let journal = Arc::new(MemoryJournal::default());
    let (here, call) = block(async {
        let here = owner(&journal);
        here.engine.settled().await;
        let begun = journal.begun().len();
        journal.fates(|_| Fate::Lost);
        let call = tokio::spawn(here.engine.call(&Namespace::main(), pushes("a")));
        assert!(journal.wait_for_begun(begun + 2, PATIENCE), "it is not sent again");
        here.engine.close();
        (here, call.await.unwrap())
    });
    assert!(matches!(call, Err(CallError::Fault(Fault::Unknown(_)))), "{call:?}");
    drop(here);

    let journal = Arc::new(MemoryJournal::default());
    block(async {
        let here = owner(&journal);
        here.engine.settled().await;
        let begun = journal.begun().len();
        journal.hold();
        let call = tokio::spawn(here.engine.call(&Namespace::main(), pushes("a")));
        assert!(journal.wait_for_begun(begun + 1, PATIENCE));
        here.engine.crash();
        assert!(call.await.unwrap().is_err());
    });
}
