//! Calls that are made at the same time: each is answered, refused and repeated as if it had been made alone.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::task::Poll;

use tenure_core::job::{JobState, NewJob, OnConflict};
use tenure_core::lease::{ExtendItem, Extended, LeaseView, SettleItem, Verdict};
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::*;
use tenure_core::settings::QueueSettings;
use tenure_engine_api::{CallError, EngineExt};

use crate::bench::Bench;
use crate::words::*;

/// The number of callers that call at the same time.
const CALLERS: usize = 64;

/// The answers to these calls, which are all made at the same time.
async fn at_once<O: Operation<Reply: Send + 'static>>(
    b: &Bench,
    requests: impl IntoIterator<Item = O>,
) -> Vec<Result<O::Reply, CallError>> {
    let engine = b.engine();
    let call = |request| tokio::spawn(engine.run(&b.namespace, request));
    let calls: Vec<_> = requests.into_iter().map(call).collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.expect("no call panics"));
    }
    answers
}

fn push(job: NewJob) -> Push {
    Push { jobs: vec![job], answer: PushAnswer::Ids }
}

/// The id of the pushed job, or the refusal.
fn pushed(answer: Result<Pushed, CallError>) -> Result<PushedId, Refusal> {
    match answer {
        Ok(Pushed::Ids(mut ids)) if ids.len() == 1 => Ok(ids.remove(0)),
        Err(CallError::Refused(no)) => Err(no),
        other => panic!("{other:?}"),
    }
}

fn refusal<R: std::fmt::Debug>(answer: Result<R, CallError>) -> Refusal {
    match answer {
        Err(CallError::Refused(no)) => no,
        other => panic!("{other:?}"),
    }
}

fn settle(item: SettleItem) -> Settle {
    Settle::of(vec![item])
}

/// The number of stored jobs.
async fn ready(b: &Bench) -> usize {
    usize::try_from(b.queue("q").await.counts.ready).expect("a few")
}

fn ids() -> impl Iterator<Item = String> {
    (0..CALLERS).map(|n| format!("j{n}"))
}

/// All callers push at the same time, two of them with a mistake.
pub(crate) async fn a_bad_push_harms_no_other(b: &mut Bench) {
    let bad = |id: &str| job("q").id(id).needs([need("unknown")]);
    let alone = refusal(at_once(b, [push(bad("alone"))]).await.remove(0));
    let said = |id: String| match id.as_str() {
        "j17" | "j40" => push(bad(&id)),
        _ => push(job("q").id(&id)),
    };
    for (id, answer) in ids().zip(at_once(b, ids().map(said)).await) {
        match pushed(answer) {
            Ok(one) => assert_eq!((one.id.as_str(), one.duplicate), (id.as_str(), false)),
            Err(no) => {
                assert!(["j17", "j40"].contains(&id.as_str()), "{id}: {no}");
                assert_eq!(no, alone, "with the pointer of its own call");
            }
        }
    }
    b.no_job("j17").await;
    assert_eq!(ready(b).await, CALLERS - 2);
}

/// All callers push, and push again under the same ids.
pub(crate) async fn pushes_that_are_repeated_at_once_are_the_same_jobs(b: &mut Bench) {
    for duplicate in [false, true] {
        let answers = at_once(b, ids().map(|id| push(job("q").id(&id)))).await;
        for (id, answer) in ids().zip(answers) {
            let one = pushed(answer).expect("it is stored");
            assert_eq!((one.id.as_str(), one.duplicate), (id.as_str(), duplicate));
        }
    }
    assert_eq!(ready(b).await, CALLERS);
    let answers = at_once(b, (0..CALLERS).map(|_| push(job("q").id("one")))).await;
    let new = answers.into_iter().map(|one| pushed(one).expect("it is there").duplicate);
    assert_eq!(new.filter(|duplicate| !duplicate).count(), 1, "only one of them stored it");
}

/// Each sees its own job, whole.
pub(crate) async fn pushes_at_once_show_each_its_own_job(b: &mut Bench) {
    let said = |id: String| Push {
        jobs: vec![job("q").id(&id).kind(&id), job("q").id(&format!("{id}-too")).delay(s(60))],
        answer: PushAnswer::Whole,
    };
    for (id, answer) in ids().zip(at_once(b, ids().map(said)).await) {
        let Ok(Pushed::Whole(jobs)) = answer else { panic!("{answer:?}") };
        let shown: Vec<_> = jobs.iter().map(|one| (one.job.id.as_str(), one.job.state)).collect();
        let too = format!("{id}-too");
        let both = [(id.as_str(), JobState::Ready), (too.as_str(), JobState::Scheduled)];
        assert_eq!(shown, both);
        assert_eq!(jobs[0].job.kind, id);
    }
}

pub(crate) async fn of_pushes_at_once_one_takes_the_key(b: &mut Bench) {
    let said = |id: String| push(job("q").id(&id).unique(unique("k", OnConflict::Reject)));
    let answers = at_once(b, ids().map(said)).await.into_iter().map(pushed);
    let (stored, refused): (Vec<_>, Vec<_>) = answers.partition(Result::is_ok);
    let [Ok(holder)] = stored.as_slice() else { panic!("{} have it", stored.len()) };
    for no in refused {
        let no = no.expect_err("it is held");
        assert_eq!(no.code, Code::UniqueConflict);
        assert_eq!(no.job.as_deref(), Some(holder.id.as_str()));
        // Over HTTP it is that of the body, which is an array.
        assert!(no.pointer.is_some_and(|pointer| pointer.ends_with("/unique/key")));
        assert_eq!(no.index, Some(0));
    }
}

pub(crate) async fn pushes_at_once_fill_a_queue_to_its_bound(b: &mut Bench) {
    const MOST: usize = 10;
    b.set_queue("q", QueueSettings { max_waiting: Some(MOST as u32), ..QueueSettings::default() })
        .await;
    let answers = at_once(b, ids().map(|id| push(job("q").id(&id)))).await;
    let (stored, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().map(pushed).partition(Result::is_ok);
    assert_eq!(stored.len(), MOST);
    assert!(refused.into_iter().all(|no| no.expect_err("it is full").code == Code::QueueFull));
    assert_eq!(ready(b).await, MOST);
}

/// A caller that goes away does not take another's call with it.
pub(crate) async fn a_push_that_is_given_up_harms_no_other(b: &mut Bench) {
    let engine = b.engine();
    let (mut kept, mut left) = (Vec::new(), Vec::new());
    for (n, id) in ids().enumerate() {
        let mut call = Box::pin(engine.run(&b.namespace, push(job("q").id(&id))));
        // Runs it as far as it goes without waiting.
        match (poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await, n % 2) {
            (Poll::Ready(answer), _) => {
                pushed(answer).expect("it is stored");
            }
            (Poll::Pending, 0) => left.push(call),
            (Poll::Pending, _) => kept.push((id, call)),
        }
    }
    drop(left);
    for (id, call) in kept {
        let one = pushed(call.await).expect("it is stored");
        assert_eq!((one.id.as_str(), one.duplicate), (id.as_str(), false));
        b.is(&id, JobState::Ready).await;
    }
}

async fn taken(b: &Bench, many: usize) -> Vec<LeaseView> {
    b.push_all(jobs("q", "j", many)).await;
    b.take_all("q", many).await
}

/// All callers settle at the same time: one a lease that is lost, and one with a verdict on something it does not hold.
pub(crate) async fn a_bad_settle_harms_no_other(b: &mut Bench) {
    let leases = taken(b, CALLERS).await;
    b.settle(succeeded(&leases[3])).await;
    let strange = |lease: &LeaseView| settle(succeeded(lease).verdict("p", "x", Verdict::Ok));
    let alone = refusal(at_once(b, [strange(&leases[9])]).await.remove(0));
    let said = |(n, lease): (usize, &LeaseView)| match n {
        3 => settle(failed(lease)),
        9 => strange(lease),
        _ if n.is_multiple_of(3) => settle(failed_for_good(lease)),
        _ => settle(succeeded(lease)),
    };
    let answers = at_once(b, leases.iter().enumerate().map(said)).await;
    for (n, (lease, answer)) in leases.iter().zip(answers).enumerate() {
        if n == 9 {
            assert_eq!(refusal(answer), alone, "with the pointer of its own call");
            continue;
        }
        let settled = answer.expect("it is settled").settled;
        let [one] = settled.as_slice() else { panic!("{settled:?}") };
        assert_eq!(one.lease, id_of(lease));
        let expected = match n {
            3 => (false, None, Some(Code::AlreadySettled)),
            _ if n.is_multiple_of(3) => (true, Some(JobState::Failed), None),
            _ => (true, Some(JobState::Succeeded), None),
        };
        assert_eq!((one.ok, one.state, one.code), expected, "{n}");
    }
    b.lives(&leases[9]).await;
}

/// All callers settle the same lease, each in another way: one of them ends it.
pub(crate) async fn of_settles_at_once_one_ends_the_lease(b: &mut Bench) {
    let lease = taken(b, 1).await.remove(0);
    let said = |n: usize| match n % 2 {
        0 => settle(succeeded(&lease)),
        _ => settle(failed_for_good(&lease)),
    };
    let answers = at_once(b, (0..CALLERS).map(said)).await;
    let ok = |answer: Result<Settled, CallError>| answer.expect("it is answered").settled[0].ok;
    let ok: Vec<bool> = answers.into_iter().map(ok).collect();
    let ways: BTreeSet<usize> = (0..CALLERS).filter(|n| ok[*n]).map(|n| n % 2).collect();
    assert_eq!(ways.len(), 1, "one outcome holds");
    assert_eq!(ok.iter().filter(|ok| **ok).count(), CALLERS / 2, "and is answered the same again");
}

/// All callers extend at the same time, with one lost lease beside their own.
pub(crate) async fn extends_at_once_are_answered_apart(b: &mut Bench) {
    let leases = taken(b, CALLERS).await;
    b.cancel(job_of(&leases[5])).await;
    b.pass(s(2)).await;
    let item = |lease: String| ExtendItem { lease, progress: None };
    let said = |(n, lease): (usize, &LeaseView)| Extend {
        leases: vec![item(id_of(lease)), item(format!("nobody's {n}"))],
        ttl: (n % 4 == 0).then_some(s(90)),
    };
    let answers = at_once(b, leases.iter().enumerate().map(said)).await;
    for (n, (lease, answer)) in leases.iter().zip(answers).enumerate() {
        let Extended { extended, lost, cancel, .. } = answer.expect("it is extended");
        let [one] = extended.as_slice() else { panic!("{extended:?}") };
        let ttl = if n % 4 == 0 { s(90) } else { s(30) };
        assert_eq!((&one.lease, one.expires_at), (&id_of(lease), b.now().plus(ttl)));
        assert_eq!(lost, [format!("nobody's {n}")]);
        assert_eq!(cancel, if n == 5 { vec![id_of(lease)] } else { Vec::new() });
    }
}
