//! How a handler's return value becomes a settle, and what happens after the answer.

use std::collections::HashSet;
use std::sync::Mutex;

use tenure_core::lease::{Ending, SettleItem, SettledLease};
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{Reply, Request, Settle, Settled};
use tenure_core::secret::Json;
use tenure_core::time::Span;
use tokio::time::sleep;

use super::*;
use crate::keeper::lock;
use tenure_testkit::fake::{Fake, Says, granted, is_settle, settled, unavailable, unknown, well};

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
async fn an_unserializable_result_is_a_failed_attempt_with_a_reason() {
    let fake = Fake::new(once(1..=1));
    let work = worker(&fake).max_jobs(1);
    work.run(|_| async {
        let by_pair = std::collections::BTreeMap::from([((1, 2), "x")]);
        SettleOutcome::succeeded_with(&by_pair)
    })
    .await
    .unwrap();
    let Ending::Failed { error, last, .. } = &fake.settles()[0][0].ending else {
        panic!("it was not failed");
    };
    assert!(error.contains("key must be a string"), "{error}");
    assert!(!last, "another attempt may do better");
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
                    Refusal::heard(Code::OutOfBounds, "the result is too long", "").item(at),
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
async fn what_a_handler_reported_last_goes_with_its_outcome() {
    let fake = Fake::new(once(1..=3));
    worker(&fake)
        .concurrency(3)
        .max_jobs(3)
        .run(|job: Job| async move {
            let report = |n: i64| job.set_progress(Json::from(n)).unwrap();
            match job.lease_id() {
                "l1" => report(1),
                "l2" => {
                    report(2);
                    job.set_progress(Json::null()).unwrap();
                    return SettleOutcome::snoozed(Span::from_s(5)).reset_attempts();
                }
                _ => {
                    report(3);
                    return SettleOutcome::released().progress(Json::from(4)).reset_attempts();
                }
            }
            SettleOutcome::succeeded()
        })
        .await
        .unwrap();
    let mut said: Vec<_> = fake.settles().into_iter().flatten().collect();
    said.sort_by(|a, b| a.lease.cmp(&b.lease));
    let reports = said.iter().map(|item| item.progress.as_ref().map(|json| json.text().to_owned()));
    assert_eq!(reports.collect::<Vec<_>>(), ["1", "2", "4"].map(|text| Some(text.to_owned())));
    assert!(matches!(said[1].ending, Ending::Snoozed { reset: true, .. }));
    assert_eq!(said[2].ending, Ending::Released, "there are no attempts to start again");
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
                next_at: None,
                code: Some(Code::LeaseLost),
                pushed: Vec::new(),
            }],
            lease: None,
        }))),
        call => well(call),
    });
    let told = Arc::new(Mutex::new(Vec::new()));
    let seen = told.clone();
    let work = worker(&fake).max_jobs(1).observe(move |event| lock(&seen).push(event.clone()));
    work.run(|_| async {}).await.unwrap();
    fake.until(is_settle, 1).await;
    let last = lock(&told).last().cloned();
    assert!(matches!(&last, Some(Event::NotSettled { why: NotSettled::Lost, .. })), "{last:?}");
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_outcome_is_refused_twice_is_given_back() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => granted([1]),
        Request::Settle(_) if before < 2 => {
            let no = Refusal::heard(Code::UnknownPool, "no pool 'x'", "make it");
            Says::Now(Err(CallError::Refused(no)))
        }
        call => well(call),
    });
    let refused = Arc::new(Mutex::new(0));
    let seen = refused.clone();
    let work = worker(&fake).max_jobs(1).observe(move |event| {
        *lock(&seen) += u32::from(matches!(event, Event::OutcomeRefused { .. }));
    });
    work.run(|_| async {}).await.unwrap();
    let endings: Vec<Ending> =
        fake.settles().into_iter().flatten().map(|item| item.ending).collect();
    let error = "the outcome was refused: no pool 'x'; make it".to_owned();
    let failed = Ending::Failed { error, retry_in: None, last: false };
    assert_eq!(endings, [Ending::Succeeded { result: None }, failed, Ending::Released]);
    assert_eq!(*lock(&refused), 2);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_waits_for_room_in_the_queue_of_its_follow_up() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => granted([1]),
        Request::Settle(_) if before < 5 => {
            Says::Now(Err(CallError::Refused(Refusal::heard(Code::QueueFull, "full", ""))))
        }
        call => well(call),
    });
    worker(&fake).max_jobs(1).run(|_| async {}).await.unwrap();
    let settles = fake.settles();
    assert_eq!(settles.len(), 6);
    assert!(settles.iter().all(|settle| *settle == settles[0]), "it did not fail");
}

/// Settles as an engine does whose queue `next` has no room while `full`: a call is refused if its first item pushes
/// there; a later item alone is answered so.
fn settled_without_room(settle: &Settle, full: bool) -> Says {
    let stays = |item: &SettleItem| full && !item.push.is_empty();
    if settle.settle.first().is_some_and(stays) {
        let no = Refusal::heard(Code::QueueFull, "queue 'next' is full", "");
        return Says::Now(Err(CallError::Refused(no.item(0))));
    }
    let Reply::Settle(mut answer) = settled(settle) else { unreachable!() };
    for (item, answer) in settle.settle.iter().zip(&mut answer.settled) {
        if stays(item) {
            (answer.ok, answer.state, answer.code) = (false, None, Some(Code::QueueFull));
        }
    }
    Says::Now(Ok(Reply::Settle(answer)))
}

/// Each job succeeds; the second one pushes to this queue.
fn pushing_to(
    queue: &str,
) -> impl Fn(Job) -> std::future::Ready<SettleOutcome> + Send + Sync + 'static {
    let push = tenure_core::job::NewJob::new(queues(&[queue]).remove(0));
    move |job: Job| {
        let said = SettleOutcome::succeeded();
        std::future::ready(if job.lease_id() == "l2" { said.then(push.clone()) } else { said })
    }
}

fn events_of(work: Worker) -> (Worker, Arc<Mutex<Vec<Event>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let seen = told.clone();
    (work.observe(move |event| lock(&seen).push(event.clone())), told)
}

#[tokio::test(start_paused = true)]
async fn an_outcome_whose_room_an_earlier_one_took_is_sent_again_while_its_lease_is_held() {
    for rides in [true, false] {
        let begun = Instant::now();
        let fake = Fake::new(move |call, before| match call {
            Request::Lease(_) if before == 0 => granted(1..=2),
            Request::Settle(settle) => settled_without_room(settle, begun.elapsed() < s(100)),
            call => well(call),
        });
        let work = worker(&fake).concurrency(2);
        let work = if rides { work } else { work.max_jobs(2) };
        let (work, told) = events_of(work);
        let stopper = work.stopper();
        let run = tokio::spawn(work.run(pushing_to("next")));
        fake.until(is_settle, 1).await;
        sleep(s(110)).await;
        stopper.drain();
        assert_eq!(run.await.unwrap(), Ok(Worked { jobs: 2 }));
        let settled: Vec<String> = lock(&told)
            .iter()
            .filter_map(|event| match event {
                Event::Settled { job, .. } => Some(job.to_string()),
                Event::NotSettled { .. } | Event::OutcomeRefused { .. } => panic!("{event:?}"),
                _ => None,
            })
            .collect();
        assert_eq!(settled, ["j1", "j2"]);
        let sent = fake.settled();
        let last = sent.last().unwrap();
        assert_eq!((ends(&sent[sent.len() - 1..])[0].1, last.push.len()), ("succeeded", 1));
        assert!((50..100).contains(&sent.len()), "{} calls, after pauses that grow", sent.len());
        let extended = |(_, call): &(Instant, tenure_core::requests::Extend)| {
            call.leases.iter().any(|item| item.lease == "l2")
        };
        assert!(fake.extends().iter().filter(|call| extended(call)).count() >= 16);
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_waits_a_minute_for_room_if_its_worker_stops_or_makes_the_room_itself() {
    for (queue, ends) in [("next", "drained"), ("next", "dropped"), ("q", "never")] {
        let fake = Fake::new(|call, before| match call {
            Request::Lease(_) if before == 0 => granted(1..=2),
            Request::Settle(settle) => settled_without_room(settle, true),
            call => well(call),
        });
        let (work, told) = events_of(worker(&fake).concurrency(2).drain_timeout(s(100)));
        let stopper = work.stopper();
        let run = tokio::spawn(work.run(pushing_to(queue)));
        fake.until(is_settle, 1).await;
        if ends != "never" {
            sleep(s(70)).await;
        }
        match ends {
            "drained" => stopper.drain(),
            "dropped" => run.abort(),
            _ => {}
        }
        let begun = Instant::now();
        let refused = |event: &Event| matches!(event, Event::OutcomeRefused { .. });
        while !lock(&told).iter().any(refused) {
            assert!(begun.elapsed() < s(100), "it waits without an end");
            sleep(s(1)).await;
        }
        assert!((56..64).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
        stopper.drain();
        assert_eq!(run.await.is_err(), ends == "dropped");
        let sent = fake.settled();
        let Ending::Failed { error, .. } = &sent.last().unwrap().ending else { panic!("{sent:?}") };
        assert!(error.contains("queue 'next' is full"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_waits_for_room_is_lost_with_its_lease() {
    let begun = Instant::now();
    let fake = Fake::new(move |call, before| match call {
        Request::Lease(_) if before == 0 => granted(1..=2),
        Request::Settle(settle) if begun.elapsed() > s(30) => {
            let Reply::Settle(mut answer) = settled(settle) else { unreachable!() };
            for answer in &mut answer.settled {
                (answer.ok, answer.state, answer.code) = (false, None, Some(Code::LeaseLost));
            }
            Says::Now(Ok(Reply::Settle(answer)))
        }
        Request::Settle(settle) => settled_without_room(settle, true),
        Request::Extend(_) => unavailable(),
        call => well(call),
    });
    let (work, told) = events_of(worker(&fake).concurrency(2).max_jobs(2).drain_timeout(s(100)));
    work.run(pushing_to("next")).await.unwrap();
    assert!((30..33).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    let last = lock(&told).last().cloned();
    assert!(matches!(&last, Some(Event::NotSettled { why: NotSettled::Lost, .. })), "{last:?}");
}
