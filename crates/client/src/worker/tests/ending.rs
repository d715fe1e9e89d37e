//! How runs and workers are ended: drains, stops, lost leases, cancels, refusals.

use std::sync::atomic::{AtomicUsize, Ordering};

use tenure_core::lease::Extended;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{Reply, Request};
use tokio::time::sleep;

use super::*;
use crate::lease_clock::{LOOK, Slept};
use tenure_testkit::fake::{Fake, Says, granted, is_lease, unavailable, unknown, well};

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
    assert_eq!(asked_for(&fake).len(), 2, "nothing was asked for while it drained");
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
async fn a_lost_lease_drops_its_handler_and_settles_nothing() {
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
                tenure_testkit::fake::extended(extend, tenure_core::time::Moment::MAX)
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
async fn a_refusal_ends_the_worker_after_what_runs() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => granted([1]),
        Request::Lease(_) => {
            Says::Now(Err(CallError::Refused(Refusal::heard(Code::InvalidField, "no", ""))))
        }
        call => well(call),
    });
    let ended = worker(&fake).concurrency(2).run(|_| sleep(s(7))).await;
    assert_eq!(ended.unwrap_err().code(), Some(Code::InvalidField));
    assert_eq!(ends(&fake.settles()[0]), [("l1".to_owned(), "succeeded")]);
}

#[tokio::test(start_paused = true)]
async fn what_is_granted_in_the_moment_of_a_stop_is_given_back() {
    // The waiting call is answered late, with a job; so is the call that cancels it.
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => {
            let Says::Now(answer) = granted([1]) else { unreachable!() };
            Says::After(s(1), answer)
        }
        Request::Lease(_) => granted([1, 2]),
        call => well(call),
    });
    let work = worker(&fake).concurrency(2);
    let stopper = work.stopper();
    let run = tokio::spawn(work.run(|_| async {}));
    fake.until(is_lease, 1).await;
    stopper.drain();
    assert_eq!(run.await.unwrap(), Ok(Worked { jobs: 0 }));
    let leases = fake.leases();
    assert!(
        leases.len() > 1
            && leases.iter().all(|(_, lease)| { lease.request_id == leases[0].1.request_id })
    );
    let released = |lease: &str| (lease.to_owned(), "released");
    assert_eq!(
        fake.settles().iter().map(|items| ends(items)).collect::<Vec<_>>(),
        [[released("l1"), released("l2"),]]
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_lost_answer_granted_is_given_back_at_a_stop() {
    // The first answer is lost; so is the first one to the call that asks again.
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before < 2 => unknown(),
        Request::Lease(_) if before == 2 => granted([1]),
        call => well(call),
    });
    let work = worker(&fake);
    let stopper = work.stopper();
    let run = tokio::spawn(work.run(|_| async {}));
    fake.until(is_lease, 1).await;
    stopper.drain();
    assert_eq!(run.await.unwrap(), Ok(Worked { jobs: 0 }));
    let leases = fake.leases();
    assert!(leases.iter().all(|(_, lease)| lease.request_id == leases[0].1.request_id));
    assert_eq!(ends(&fake.settles()[0]), [("l1".to_owned(), "released")]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_an_engine_that_no_call_has_reached() {
    let fake = Fake::new(|_, _| unavailable());
    let work = worker(&fake);
    let stopper = work.stopper();
    let run = tokio::spawn(work.run(|_| async {}));
    fake.until(is_lease, 2).await;
    let begun = Instant::now();
    stopper.drain();
    run.await.unwrap().unwrap();
    assert_eq!(begun.elapsed(), s(0));
}

#[tokio::test(start_paused = true)]
async fn a_handler_ends_when_its_machine_was_suspended_for_longer_than_its_lease() {
    // Suspended while the handler works, and while it uses its grace after its lease was lost in second 24.
    for (at, grace, extends) in [(s(3), s(0), true), (s(25), s(60), false)] {
        let fake = Fake::new(move |call, before| match call {
            Request::Lease(_) if before == 0 => granted([1]),
            Request::Extend(_) if !extends => unavailable(),
            call => well(call),
        });
        let slept = Slept::default();
        let work = Client::that_sleeps(fake.clone(), &slept).worker(queues(&["q"]));
        let begun = Instant::now();
        let run = work.max_jobs(1).stop_grace(grace).run(async move |job: Job| {
            job.stopped().await;
            sleep(s(3_600)).await;
        });
        let suspended = async {
            sleep(at).await;
            slept.suspend(s(60));
        };
        let (worked, ()) = tokio::join!(run, suspended);
        assert_eq!(worked, Ok(Worked { jobs: 1 }));
        assert!(begun.elapsed() <= at + LOOK, "{:?}", begun.elapsed());
        assert!(fake.settles().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_grant_whose_answer_was_read_after_a_suspension_is_not_worked_on() {
    let slept = Slept::default();
    let suspends = slept.clone();
    let fake = Fake::new(move |call, before| match call {
        Request::Lease(_) if before == 0 => {
            suspends.suspend(s(60));
            granted([1])
        }
        Request::Extend(extend) => Says::Now(Ok(Reply::Extend(Extended {
            lost: extend.leases.iter().map(|item| item.lease.clone()).collect(),
            ..Extended::default()
        }))),
        call => well(call),
    });
    let work = Client::that_sleeps(fake.clone(), &slept).worker(queues(&["q"]));
    let begun = Arc::new(AtomicUsize::new(0));
    let inside = begun.clone();
    let run = work.max_jobs(1).run(move |_| {
        inside.fetch_add(1, Ordering::SeqCst);
        std::future::ready(())
    });
    run.await.unwrap();
    assert_eq!(begun.load(Ordering::SeqCst), 0, "it is another's by now");
    assert_eq!(ends(&fake.settles()[0]), [("l1".to_owned(), "released")]);
}
