//! A worker against an engine that says what a test wants, on a clock that a test turns.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tenure_core::lease::{Ending, Extended, SettledLease};
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{Ask, Reply, Request, Settled};
use tenure_core::settings::QueueCounts;
use tenure_engine::Fault;
use tokio::time::sleep;

use super::*;
use crate::fake::{
    Fake, Says, counts, granted, is_lease, is_settle, settled, unavailable, unknown, well,
};
use crate::keeper::lock;

fn queues(names: &[&str]) -> Vec<QueueName> {
    names.iter().map(|name| QueueName::parse(name).unwrap()).collect()
}

fn worker(fake: &Arc<Fake>) -> Worker {
    Client::on_this_runtime(fake.clone()).worker(queues(&["q"]))
}

/// Grants these jobs in the first lease call, and nothing more.
fn once(jobs: std::ops::RangeInclusive<usize>) -> impl FnMut(&Request, usize) -> Says {
    move |call, before| match call {
        Request::Lease(_) if before == 0 => granted(jobs.clone()),
        call => well(call),
    }
}

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn ends(items: &[tenure_core::lease::SettleItem]) -> Vec<(String, &'static str)> {
    items.iter().map(|item| (item.lease.clone(), item.ending.outcome().as_str())).collect()
}

#[tokio::test(start_paused = true)]
async fn what_ends_together_is_settled_in_one_call() {
    let fake = Fake::new(once(1..=10));
    let worked = worker(&fake)
        .concurrency(10)
        .max_jobs(10)
        .run(|job: Job| async move {
            sleep(s(1)).await;
            SettleOutcome::succeeded_with(&job.payload::<usize>().unwrap_or_default())
        })
        .await;
    assert_eq!(worked, Ok(Worked { jobs: 10 }));
    let settles = fake.settles();
    assert_eq!(settles.len(), 1);
    let leases: HashSet<_> = settles[0].iter().map(|item| item.lease.as_str()).collect();
    assert_eq!(leases.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_settle_whose_outcome_is_unknown_is_repeated_as_it_was() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => granted([1]),
        Request::Settle(_) if before < 3 => unknown(),
        Request::Settle(_) if before < 5 => unavailable(),
        call => well(call),
    });
    let push = tenure_core::job::NewJob::new(queues(&["next"]).remove(0));
    let work = worker(&fake).max_jobs(1);
    work.run(move |_| {
        let push = push.clone();
        async move { SettleOutcome::succeeded().then(push) }
    })
    .await
    .unwrap();
    let settles = fake.settles();
    assert_eq!(settles.len(), 6);
    assert!(settles.iter().all(|settle| *settle == settles[0]), "the same, ids included");
    assert!(settles[0][0].push[0].id.is_some(), "a follow-up has its id before it is sent");
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_is_refused_costs_only_its_own_job() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => granted(1..=3),
        Request::Settle(settle) => {
            let bad = |item: &tenure_core::lease::SettleItem| {
                item.lease == "l2" && matches!(item.ending, Ending::Succeeded { .. })
            };
            match settle.settle.iter().position(bad) {
                Some(at) => Says::Now(Err(CallError::Refused(
                    Refusal::new(Code::OutOfBounds, "the result is too long", "").item(at),
                ))),
                None => Says::Now(Ok(settled(settle))),
            }
        }
        call => well(call),
    });
    let ok = Arc::new(Mutex::new(Vec::new()));
    let seen = ok.clone();
    worker(&fake)
        .concurrency(3)
        .max_jobs(3)
        .observe(move |event| {
            if let Event::Settled { job, .. } = event {
                lock(&seen).push(job.to_string());
            }
        })
        .run(|_| sleep(s(1)))
        .await
        .unwrap();
    lock(&ok).sort();
    assert_eq!(*lock(&ok), ["j1", "j2", "j3"]);
    let all = fake.settles();
    let last = all.iter().flatten().rev().find(|item| item.lease == "l2").unwrap();
    let Ending::Failed { error, last: false, .. } = &last.ending else { panic!("{last:?}") };
    assert!(error.contains("the result is too long"), "{error}");
}

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
    let leases = fake.leases();
    let ids: HashSet<_> = leases.iter().map(|(_, lease)| lease.request_id.clone()).collect();
    assert_eq!(ids.len(), leases.len());
    assert_eq!(leases[1].0 - leases[0].0, s(5));
    for (_, lease) in leases {
        assert_eq!((lease.wait, lease.ttl), (Span::from_s(5), Span::from_s(30)));
        assert!(matches!(lease.ask, Ask::Jobs { max: 7, .. }));
        assert!(lease.worker.holder().starts_with("worker_"));
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
async fn a_drain_finishes_what_it_can_and_gives_the_rest_back() {
    let fake = Fake::new(once(1..=2));
    let work = worker(&fake).concurrency(3).drain_timeout(s(10));
    let stopper = work.stopper();
    let begun = Instant::now();
    let run = tokio::spawn(work.run(|job: Job| async move {
        sleep(s(if job.lease_id() == "l1" { 8 } else { 3_600 })).await;
    }));
    fake.until(is_lease, 2).await;
    stopper.drain();
    assert_eq!(run.await.unwrap(), Ok(Worked { jobs: 2 }));
    assert_eq!(begun.elapsed().as_secs(), 10);
    let settles = fake.settles();
    let ends: Vec<_> = settles.iter().map(|items| ends(items)).collect();
    assert_eq!(ends, [[("l1".to_owned(), "succeeded")], [("l2".to_owned(), "released")]]);
    assert_eq!(fake.leases().len(), 2, "nothing was asked for while it drained");
}

#[tokio::test(start_paused = true)]
async fn a_second_stop_is_now_and_the_handler_may_use_its_grace() {
    for (grace, outcome) in [(s(0), "released"), (s(5), "snoozed"), (s(1), "released")] {
        let fake = Fake::new(once(1..=1));
        let work = worker(&fake).stop_grace(grace);
        let stopper = work.stopper();
        let run = tokio::spawn(work.run(|job: Job| async move {
            assert_eq!(job.stopped().await, Stop::Shutdown);
            sleep(s(2)).await;
            SettleOutcome::snoozed(Span::from_s(1))
        }));
        fake.until(is_lease, 1).await;
        stopper.drain();
        stopper.now();
        run.await.unwrap().unwrap();
        assert_eq!(ends(&fake.settles()[0]), [("l1".to_owned(), outcome)], "{grace:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_dropped_when_its_lease_is_lost_and_nothing_is_settled() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => granted([1]),
        Request::Extend(_) => unavailable(),
        call => well(call),
    });
    struct Gone(Arc<AtomicUsize>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let gone = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let inside = gone.clone();
    worker(&fake)
        .max_jobs(1)
        .run(move |_| {
            let mark = Gone(inside.clone());
            async move {
                let _mark = mark;
                std::future::pending::<()>().await;
            }
        })
        .await
        .unwrap();
    assert_eq!(begun.elapsed().as_secs(), 24);
    assert_eq!(gone.load(Ordering::SeqCst), 1);
    assert!(fake.settles().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_job_is_given_back() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => granted([1]),
        Request::Extend(extend) => {
            let Reply::Extend(extended) =
                crate::fake::extended(extend, tenure_core::time::Moment::MAX)
            else {
                unreachable!()
            };
            let cancel = vec!["l1".to_owned()];
            Says::Now(Ok(Reply::Extend(Extended { cancel, ..extended })))
        }
        call => well(call),
    });
    let pending = |_| std::future::pending::<()>();
    worker(&fake).max_jobs(1).run(pending).await.unwrap();
    assert_eq!(ends(&fake.settles()[0]), [("l1".to_owned(), "released")]);
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_returns_is_how_its_run_ends() {
    let fake = Fake::new(once(1..=4));
    worker(&fake)
        .concurrency(4)
        .max_jobs(4)
        .run(|job: Job| async move {
            match job.lease_id() {
                "l1" => Ok(SettleOutcome::failed_for_good("no such page")),
                "l2" => Err("http 500"),
                "l3" => panic!("out of {}", "luck"),
                _ => Ok(SettleOutcome::succeeded()),
            }
        })
        .await
        .unwrap();
    let mut said: Vec<(String, Ending)> =
        fake.settles().into_iter().flatten().map(|item| (item.lease, item.ending)).collect();
    said.sort_by(|a, b| a.0.cmp(&b.0));
    let failed =
        |error: &str, last| Ending::Failed { error: error.to_owned(), retry_in: None, last };
    assert_eq!(
        said.into_iter().map(|(_, ending)| ending).collect::<Vec<_>>(),
        [
            failed("no such page", true),
            failed("http 500", false),
            failed("the handler panicked: out of luck", false),
            Ending::Succeeded { result: None },
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn until_empty_takes_what_is_pushed_while_something_runs() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => granted([1]),
        // Nothing for a while; then what the first one pushed, long before it ends.
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
            // A queue that nobody ever used is empty.
            Request::GetQueue(get) if get.queue.as_str() == "a" => {
                let no = Refusal::new(Code::QueueNotFound, "no", "");
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
async fn an_engine_that_was_there_is_waited_for_and_one_that_never_was_is_not() {
    let fake = Fake::new(|_, _| unavailable());
    let ended = worker(&fake).run(|_| async {}).await;
    assert!(matches!(ended, Err(CallError::Fault(Fault::Unavailable(_)))), "{ended:?}");
    assert_eq!(fake.leases().len(), 1);

    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if (1..200).contains(&before) => unavailable(),
        Request::Lease(_) if before == 200 => granted([1]),
        call => well(call),
    });
    let worked = worker(&fake).max_jobs(1).run(|_| async {}).await.unwrap();
    assert_eq!(worked.jobs, 1);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_ends_the_worker_after_what_runs() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => granted([1]),
        Request::Lease(_) => {
            Says::Now(Err(CallError::Refused(Refusal::new(Code::InvalidField, "no", ""))))
        }
        call => well(call),
    });
    let ended = worker(&fake).concurrency(2).run(|_| sleep(s(7))).await;
    assert_eq!(ended.unwrap_err().code(), Some(Code::InvalidField));
    assert_eq!(ends(&fake.settles()[0]), [("l1".to_owned(), "succeeded")]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_settle_is_told() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => granted([1]),
        Request::Settle(_) => Says::Now(Ok(Reply::Settle(Settled {
            settled: vec![SettledLease {
                lease: "l1".to_owned(),
                ok: false,
                state: None,
                run_at: None,
                code: Some(Code::LeaseLost),
                pushed: Vec::new(),
            }],
        }))),
        call => well(call),
    });
    let told = Arc::new(Mutex::new(Vec::new()));
    let seen = told.clone();
    let work = worker(&fake).max_jobs(1).observe(move |event| lock(&seen).push(event.clone()));
    work.run(|_| async {}).await.unwrap();
    fake.until(is_settle, 1).await;
    let last = lock(&told).last().cloned();
    assert!(
        matches!(&last, Some(Event::NotSettled { why, .. }) if why == "lease_lost"),
        "{last:?}"
    );
}
