//! Lease calls of a worker: what they ask for, how often, and when they end.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{Ask, Reply, Request};
use tenure_core::sentences::{AccessRefusal, LeaseRefusal};
use tenure_core::settings::QueueCounts;
use tokio::time::sleep;

use super::*;
use crate::ids::holder_shown;
use tenure_testkit::fake::{Fake, Says, counts, granted, is_lease, unavailable, unknown, well};

#[tokio::test(start_paused = true)]
async fn queues_take_turns_unless_it_is_strict() {
    for (order, want) in [(Order::Turning, ["abc", "bca", "cab"]), (Order::Strict, ["abc"; 3])] {
        let fake = Fake::new(|call, _| well(call));
        let work =
            Client::on_this_runtime(fake.clone()).worker(queues(&["a", "b", "c"])).order(order);
        let stopper = work.stopper();
        let run = tokio::spawn(work.run(|_| async {}));
        fake.until(is_lease, 3).await;
        stopper.drain();
        run.await.unwrap().unwrap();
        let asked: Vec<String> = fake.leases()[..3]
            .iter()
            .map(|(_, lease)| match &lease.ask {
                Ask::Jobs { queues, .. } => queues.iter().map(|name| name.as_str()).collect(),
                Ask::Needs(_) => unreachable!(),
            })
            .collect();
        assert_eq!(asked, want);
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_asked_for_in_slices_each_under_its_own_id() {
    let fake = Fake::new(|call, _| well(call));
    let work = worker(&fake).concurrency(7);
    let stopper = work.stopper();
    let run = tokio::spawn(work.run(|_| async {}));
    fake.until(is_lease, 4).await;
    stopper.drain();
    run.await.unwrap().unwrap();
    let leases = asked_for(&fake);
    let ids: HashSet<_> = leases.iter().map(|(_, lease)| lease.request_id.clone()).collect();
    assert_eq!(ids.len(), leases.len());
    assert_eq!(leases[1].0 - leases[0].0, s(5));
    for (_, lease) in leases {
        assert_eq!((lease.wait, lease.ttl), (Span::from_s(5), Span::from_s(30)));
        assert!(matches!(lease.ask, Ask::Jobs { max: 7, .. }));
        assert_ne!(holder_shown(lease.worker.holder()), lease.worker.holder());
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_is_asked_for_than_there_are_free_slots() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => granted(1..=2),
        Request::Lease(_) if before == 1 => granted(3..=3),
        call => well(call),
    });
    let work = worker(&fake).concurrency(3);
    let stopper = work.stopper();
    let run = tokio::spawn(work.run(|job: Job| async move {
        sleep(s(if job.lease_id() == "l1" { 1 } else { 60 })).await;
    }));
    fake.until(is_lease, 3).await;
    let max: Vec<usize> = fake
        .leases()
        .iter()
        .map(|(_, lease)| match lease.ask {
            Ask::Jobs { max, .. } => max,
            Ask::Needs(_) => unreachable!(),
        })
        .collect();
    assert_eq!(max, [3, 1, 1], "three free, then one, then the one that ended");
    stopper.now();
    run.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn until_empty_takes_what_is_pushed_while_something_runs() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => granted([1]),
        // No job for a while; then one that the first one pushed, long before it ends.
        Request::Lease(_) if before == 3 => granted([2]),
        call => well(call),
    });
    let begun = Instant::now();
    let work = worker(&fake).concurrency(2).until_empty();
    let worked = work.run(|job: Job| sleep(s(if job.lease_id() == "l1" { 60 } else { 1 }))).await;
    assert_eq!(worked.unwrap().jobs, 2);
    assert!(begun.elapsed() < s(61), "the second ran beside the first: {:?}", begun.elapsed());
    let leases = fake.leases();
    let second = leases[3].0 - begun;
    assert!(second < s(5), "it was asked for while the first ran: {second:?}");
    assert_eq!((leases[0].1.wait, leases[1].1.wait), (Span::ZERO, Span::from_ms(500)));
}

#[tokio::test(start_paused = true)]
async fn until_empty_waits_for_what_may_go_and_for_nothing_else() {
    fn of(ready: u64, blocked: u64, scheduled: u64, running: u64) -> QueueCounts {
        QueueCounts { ready, blocked, scheduled, dependent: 1, running }
    }
    for (case, paused, first, waits) in [
        ("nothing is there", false, of(0, 0, 0, 0), false),
        ("a job is ready, for another moment", false, of(1, 0, 0, 0), true),
        ("a job waits for a limit", false, of(0, 1, 0, 0), true),
        ("a job waits for a moment", false, of(0, 0, 1, 0), false),
        ("others run the last ones", false, of(0, 0, 0, 1), false),
        ("the queue is paused", true, of(1, 1, 0, 0), false),
    ] {
        let fake = Fake::new(move |call, before| match call {
            Request::GetQueue(get) if get.queue.as_str() == "b" && before < 8 => {
                let mut reply = counts(get, first);
                if let Reply::GetQueue(view) = &mut reply {
                    view.paused = paused;
                }
                Says::Now(Ok(reply))
            }
            // A queue that was never used is empty.
            Request::GetQueue(get) if get.queue.as_str() == "a" => {
                let no = Refusal::heard(Code::QueueNotFound, "no", "");
                Says::Now(Err(CallError::Refused(no)))
            }
            call => well(call),
        });
        let client = Client::on_this_runtime(fake.clone());
        let worked = client.worker(queues(&["a", "b"])).until_empty().run(|_| async {}).await;
        assert_eq!(worked, Ok(Worked { jobs: 0 }), "{case}");
        let asked = fake.leases().len();
        assert_eq!(asked > 1, waits, "{case}: asked {asked} times");
    }
}

#[tokio::test(start_paused = true)]
async fn until_empty_does_not_end_because_a_look_failed() {
    let fake = Fake::new(|call, before| match call {
        Request::GetQueue(_) if before < 5 => unavailable(),
        call => well(call),
    });
    let worked = worker(&fake).until_empty().run(|_| async {}).await;
    assert_eq!(worked, Ok(Worked { jobs: 0 }));
    assert_eq!(fake.leases().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn an_engine_is_waited_for_whether_it_was_ever_there_or_not() {
    for first in [0, 1] {
        let fake = Fake::new(move |call, before| match call {
            Request::Lease(_) if (first..200).contains(&before) => unavailable(),
            Request::Lease(_) if before == 200 => granted([1]),
            call => well(call),
        });
        let worked = worker(&fake).max_jobs(1).run(|_| async {}).await.unwrap();
        assert_eq!(worked.jobs, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_ends_when_the_engine_is_away_for_the_allowed_time() {
    for answer in [unavailable, unknown] {
        let fake = Fake::new(move |call, before| match call {
            Request::Lease(_) if before > 0 => answer(),
            Request::Lease(_) => granted([1]),
            call => well(call),
        });
        let begun = Instant::now();
        // Jobs that run by then may finish.
        let ran = Arc::new(AtomicUsize::new(0));
        let runs = ran.clone();
        let ended = worker(&fake).concurrency(2).exit_when_away(s(10)).run(move |_| {
            let runs = runs.clone();
            async move {
                tokio::time::sleep(s(20)).await;
                runs.fetch_add(1, Ordering::SeqCst);
            }
        });
        assert!(matches!(ended.await, Err(CallError::Fault(_))));
        assert_eq!(ran.load(Ordering::SeqCst), 1);
        assert!((s(20)..s(21)).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn trouble_is_reported_at_the_first_failure_or_late_answer() {
    let silent: fn() -> Says = || Says::Never;
    for (answer, within) in [(unavailable as fn() -> Says, s(0)), (unknown, s(0)), (silent, s(7))] {
        let fake = Fake::new(move |call, before| match call {
            Request::Lease(_) if before == 0 => answer(),
            Request::Lease(_) => granted([1]),
            call => well(call),
        });
        let begun = Instant::now();
        let told = Arc::new(Mutex::new(Vec::new()));
        let hears = told.clone();
        let work = worker(&fake).max_jobs(1).exit_when_away(s(60)).observe(move |event| {
            if matches!(event, Event::Trouble { .. }) {
                hears.lock().unwrap().push(begun.elapsed());
            }
        });
        let _ = work.run(|_| async {}).await;
        let first = told.lock().unwrap()[0];
        assert!(first <= within, "{first:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_worker_learns_of_an_absent_engine_by_its_heartbeats() {
    let begun = Instant::now();
    let fake = Fake::new(move |call, before| match call {
        Request::Lease(_) if before == 0 => granted([1]),
        Request::Extend(_) if begun.elapsed() < s(12) => unavailable(),
        call => well(call),
    });
    let events = Arc::new(Mutex::new(Vec::new()));
    let hears = events.clone();
    let work = worker(&fake).max_jobs(1).observe(move |event| match event {
        Event::Trouble { away, .. } => hears.lock().unwrap().push(Some(*away)),
        Event::Recovered => hears.lock().unwrap().push(None),
        _ => {}
    });
    work.run(|_| tokio::time::sleep(s(20))).await.unwrap();
    let events = events.lock().unwrap();
    assert_eq!(events[0], Some(s(0)));
    assert!(events[1].is_some_and(|away| away > s(0)), "{events:?}");
    assert_eq!(events.last(), Some(&None), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn jobs_whose_answer_was_lost_are_found_under_the_same_id() {
    let begun = Instant::now();
    let fake = Fake::new(move |call, before| match call {
        // Longer than one call is retried by itself.
        Request::Lease(_) if before > 0 && begun.elapsed() < s(80) => unknown(),
        Request::Lease(_) if before > 0 => granted([1]),
        call => well(call),
    });
    let recovered = Arc::new(AtomicUsize::new(0));
    let seen = recovered.clone();
    let work = worker(&fake).max_jobs(1).observe(move |event| {
        seen.fetch_add(usize::from(*event == Event::Recovered), Ordering::SeqCst);
    });
    work.run(|_| async {}).await.unwrap();
    let leases = fake.leases();
    assert!(leases[1..].iter().all(|(_, one)| one.request_id == leases[1].1.request_id));
    assert_eq!(fake.extends().len(), 1, "known to be held before it was run");
    assert_eq!(recovered.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn the_bounds_of_the_token_are_waited_for_and_no_job_is_lost() {
    let no = |call: &Request| {
        assert!(matches!(call, Request::Lease(_)));
        let (caller, calls) = ("crawler".to_owned(), "2/1s".to_owned());
        let no = AccessRefusal::TooManyCalls { caller, calls, wait_s: 7 };
        Says::Now(Err(CallError::Refused(no.into())))
    };
    let fake = Fake::new(move |call, before| match (call, before) {
        (Request::Lease(_), 1..=3 | 5) => no(call),
        (Request::Lease(_), 0) => granted([1]),
        (Request::Lease(_), 4) => granted([2]),
        (Request::Lease(_), 6) => granted([3]),
        (call, _) => well(call),
    });
    // A refusal is an answer: the engine is not away.
    let work = worker(&fake).max_jobs(3).exit_when_away(s(5));
    assert_eq!(work.run(|_| async {}).await, Ok(Worked { jobs: 3 }));
    let leases = fake.leases();
    assert_eq!(leases.len(), 7);
    for refused in [1, 2, 3, 5] {
        let [(at, one), (next_at, next)] = &leases[refused..][..2] else { unreachable!() };
        assert!((s(7)..s(8)).contains(&(*next_at - *at)), "as long as it was told");
        assert_eq!(one.request_id, next.request_id, "the same call");
    }
    let settled: Vec<_> = fake.settled().into_iter().map(|item| item.lease).collect();
    assert_eq!(settled, ["l1", "l2", "l3"]);
}

#[tokio::test(start_paused = true)]
async fn a_full_line_ends_a_worker() {
    let fake = Fake::new(|call, _| match call {
        Request::Lease(_) => {
            let no = LeaseRefusal::LineFull { most: 10_000 };
            Says::Now(Err(CallError::Refused(no.into())))
        }
        call => well(call),
    });
    let ended = worker(&fake).run(|_| async {}).await;
    assert_eq!(ended.unwrap_err().code(), Some(Code::LineFull));
    assert_eq!(fake.leases().len(), 1);
}
