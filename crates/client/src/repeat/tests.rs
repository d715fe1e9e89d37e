//! Which calls are retried, for how long, and with which ids.

use tenure_core::job::NewJob;
use tenure_core::names::{JobRef, Namespace, QueueName, ScheduleId};
use tenure_core::requests::{
    DeleteJob, GetStats, Lease, Push, PushAnswer, Pushed, RetryJob, RunJobNow, RunScheduleNow,
};
use tenure_core::sentences::AccessRefusal;
use tenure_core::time::{Moment, Span};

use super::*;
use tenure_testkit::fake::{Fake, Says, job, unavailable, unknown, well};

fn job_ref() -> JobRef {
    JobRef::parse("j1").unwrap()
}

fn refused(code: Code) -> Says {
    Says::Now(Err(CallError::Refused(Refusal::heard(code, "no", ""))))
}

async fn ask(fake: &Arc<Fake>, request: impl Into<Request>) -> Result<Reply, CallError> {
    Repeat::new(fake.clone()).call(&Namespace::main(), request.into()).await
}

#[tokio::test(start_paused = true)]
async fn a_request_has_its_ids_before_it_is_sent_and_keeps_them() {
    let fake = Fake::new(|_, before| match before {
        0..2 => unknown(),
        // The outcome of the first one is still unknown.
        2 => unavailable(),
        3 => refused(Code::Draining),
        _ => Says::Now(Ok(Reply::Push(Pushed::Ids(Vec::new())))),
    });
    let new = NewJob::new(QueueName::parse("q").unwrap());
    let push = Push { jobs: vec![new.clone(), new], answer: PushAnswer::Ids };
    ask(&fake, push).await.unwrap();
    let calls = fake.calls();
    assert_eq!(calls.len(), 5);
    assert!(calls.iter().all(|(_, call)| *call == calls[0].1));
    let Request::Push(push) = &calls[0].1 else { unreachable!() };
    assert!(push.jobs.iter().all(|job| job.id.is_some()));
    assert_ne!(push.jobs[0].id, push.jobs[1].id);

    let fake = Fake::new(|_, before| match before {
        0 => unknown(),
        _ => Says::Now(Ok(Reply::Lease(Default::default()))),
    });
    ask(&fake, Lease::needs(Vec::new())).await.unwrap();
    assert_eq!(fake.leases()[0].1, fake.leases()[1].1);
    assert!(fake.leases()[0].1.request_id.is_some());

    let fake = Fake::new(|_, before| match before {
        0 => unknown(),
        _ => refused(Code::QueueFull),
    });
    let schedule = ScheduleId::parse("news-42").unwrap();
    let _ = ask(&fake, RunScheduleNow { schedule, id: None }).await;
    let runs = fake.calls();
    assert_eq!((runs.len(), &runs[0].1), (2, &runs[1].1));
    assert!(matches!(&runs[0].1, Request::RunScheduleNow(run) if run.id.is_some()));

    let fake = Fake::new(|call, before| match (call, before) {
        (Request::Lease(_), 0) => unknown(),
        _ => well(call),
    });
    let lease = Some(Box::new(Lease::needs(Vec::new())));
    ask(&fake, Settle { settle: Vec::new(), lease }).await.unwrap();
    let leases = fake.leases();
    assert_eq!((fake.settles().len(), leases.len(), &leases[0].1), (2, 2, &leases[1].1));
    assert!(leases[0].1.request_id.is_some() && leases[0].1.local);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_repeated_after_a_minute_and_then_it_is_unknown() {
    let fake = Fake::new(|_, _| unknown());
    let begun = Instant::now();
    let answer = ask(&fake, RunJobNow { job: job_ref() }).await;
    assert_eq!(answer, Err(CallError::Fault(Fault::Unknown("cut off".to_owned()))));
    assert!(begun.elapsed() <= REPEAT_MAX);
    let last = fake.calls().last().unwrap().0;
    assert!(last - begun > Duration::from_secs(55));
}

#[tokio::test(start_paused = true)]
async fn reads_and_unrepeatable_calls_are_sent_once() {
    let retry = |finished_at| RetryJob { job: job_ref(), finished_at };
    for (request, calls) in [
        (Request::from(GetStats), 1),
        (retry(None).into(), 1),
        (retry(Some(Moment::from_us(1))).into(), 2),
    ] {
        let fake = Fake::new(|_, before| match before {
            0 => unknown(),
            _ => Says::Now(Ok(Reply::RetryJob(Box::new(job(1))))),
        });
        let _ = ask(&fake, request).await;
        assert_eq!(fake.calls().len(), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_known_is_told_at_once() {
    for (first, code) in [
        (unavailable as fn() -> Says, None),
        (|| refused(Code::JobNotFound), { Some(Code::JobNotFound) }),
    ] {
        let fake = Fake::new(move |_, _| first());
        let answer = ask(&fake, DeleteJob { job: job_ref() }).await;
        assert_eq!(answer.unwrap_err().code(), code);
        assert_eq!(fake.calls().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_finds_nothing_the_second_time_is_done() {
    let fake = Fake::new(|_, before| match before {
        0 => unknown(),
        _ => refused(Code::JobNotFound),
    });
    let answer = ask(&fake, DeleteJob { job: job_ref() }).await;
    assert_eq!(answer, Ok(Reply::DeleteJob(())));
}

/// The refusal of a token that must wait for this long.
fn bounded(wait_s: u64) -> Says {
    let (caller, calls) = ("crawler".to_owned(), "2/1s".to_owned());
    let no: Refusal = AccessRefusal::TooManyCalls { caller, calls, wait_s }.into();
    Says::Now(Err(CallError::Refused(no)))
}

#[tokio::test(start_paused = true)]
async fn a_token_that_must_wait_is_waited_for_within_a_minute() {
    let retry = RetryJob { job: job_ref(), finished_at: None };
    let run = RunJobNow { job: job_ref() };
    // Calls that read, set and add: none of them happened.
    for request in [Request::from(GetStats), retry.into(), run.clone().into()] {
        let fake = Fake::new(|_, before| match before {
            0..2 => bounded(7),
            _ => refused(Code::JobNotFound),
        });
        let begun = Instant::now();
        let no = ask(&fake, request).await.unwrap_err();
        assert_eq!((no.code(), begun.elapsed().as_secs()), (Some(Code::JobNotFound), 14));
    }
    let mut lease = Lease::needs(Vec::new());
    lease.wait = Span::from_s(5);
    for (request, first, calls, code) in [
        // The wait would be too long.
        (run.clone().into(), (|| bounded(61)) as fn() -> Says, 1, Some(Code::LineFull)),
        (run.clone().into(), || bounded(40), 2, Some(Code::LineFull)),
        // Callers that wait for leases wait for their token, too.
        (Request::from(lease), || bounded(7), 1, Some(Code::LineFull)),
        // Others stand in the line: that is not about this caller.
        (run.into(), || refused(Code::LineFull), 1, Some(Code::LineFull)),
        (
            DeleteJob { job: job_ref() }.into(),
            || refused(Code::QueueFull),
            1,
            Some(Code::QueueFull),
        ),
    ] {
        let fake = Fake::new(move |_, _| first());
        let no = ask(&fake, request).await.unwrap_err();
        assert_eq!((no.code(), fake.calls().len()), (code, calls));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_stays_unknown_while_the_token_must_wait() {
    let fake = Fake::new(|_, before| if before == 0 { unknown() } else { bounded(40) });
    let no = ask(&fake, RunJobNow { job: job_ref() }).await;
    assert_eq!(no, Err(CallError::Fault(Fault::Unknown("cut off".to_owned()))));
    let fake = Fake::new(|_, before| match before {
        0 => unknown(),
        1 => bounded(7),
        _ => refused(Code::JobNotFound),
    });
    assert_eq!(ask(&fake, DeleteJob { job: job_ref() }).await, Ok(Reply::DeleteJob(())));
    // A lease may have been granted at the first time: its caller must count from then.
    let fake = Fake::new(|_, before| if before == 0 { unknown() } else { bounded(40) });
    let no = ask(&fake, Lease::needs(Vec::new())).await;
    assert!(matches!(no, Err(CallError::Fault(Fault::Unknown(_)))), "{no:?}");
}
