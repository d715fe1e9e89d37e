//! Every wait can be explained: each kind of reason, with its details.

use tenure_core::job::JobState;
use tenure_core::lease::{Later, ReasonKind};
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::settings::PoolSettings;

use crate::bench::Bench;
use crate::words::*;

async fn kinds(b: &Bench, id: &str) -> Vec<ReasonKind> {
    b.explain(id).await.reasons.iter().map(|reason| reason.kind.clone()).collect()
}

pub(crate) async fn a_scheduled_job_waits_for_its_moment(b: &mut Bench) {
    b.push(job("q").id("a").delay(s(60))).await;
    let explained = b.explain("a").await;
    assert_eq!((explained.id.as_str(), explained.state), ("a", JobState::Scheduled));
    assert!(!explained.summary.is_empty() && explained.lease.is_none());
    assert_eq!(explained.reasons.len(), 1);
    assert_eq!(explained.reasons[0].kind, ReasonKind::Scheduled);
    assert_eq!(explained.reasons[0].earliest, Some(b.now().plus(s(60))));
}

pub(crate) async fn a_ready_job_is_behind_others(b: &mut Bench) {
    b.push_all(jobs("q", "j", 4)).await;
    b.push(job("q").id("first").priority(1)).await;
    assert_eq!(b.waits_for("j3", ReasonKind::Behind).await.ahead, Some(4));
    assert_eq!(b.waits_for("j0", ReasonKind::Behind).await.ahead, Some(1));
    assert!(!kinds(b, "first").await.contains(&ReasonKind::Behind), "nobody is ahead of it");
}

pub(crate) async fn a_ready_job_has_no_worker(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    b.waits_for("a", ReasonKind::NoWorker).await;
    let waiting = Lease::jobs(vec![queue("other"), queue("q")], 1);
    b.push(job("other")).await;
    b.granted(waiting.by("me")).await;
    assert!(!kinds(b, "a").await.contains(&ReasonKind::NoWorker), "somebody asks for it");
    b.pass(s(62)).await;
    b.waits_for("a", ReasonKind::NoWorker).await;
}

pub(crate) async fn all_workers_are_busy(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.granted(b.ask("q").by("me")).await;
    b.push(job("q").id("b")).await;
    b.waits_for("b", ReasonKind::WorkersFull).await;
    b.settle(succeeded(&lease)).await;
    assert!(!kinds(b, "b").await.contains(&ReasonKind::WorkersFull), "it holds no lease any more");
}

pub(crate) async fn a_paused_queue_is_named(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    b.ok(PauseQueue { queue: queue("q"), until: Some(Later::For(s(60))) }).await;
    let reason = b.waits_for("a", ReasonKind::QueuePaused).await;
    assert_eq!(reason.earliest, Some(b.now().plus(s(60))));
    b.ok(ResumeQueue { queue: queue("q") }).await;
    assert!(!kinds(b, "a").await.contains(&ReasonKind::QueuePaused));
}

pub(crate) async fn a_full_limit_is_named_with_its_holders(b: &mut Bench) {
    b.set_limit("l", cap(2)).await;
    b.push(job("q").id("a").needs([need("l")])).await;
    let lease = b.granted(b.ask("q").by("me").ttl(hours(1))).await;
    let since = b.now();
    b.pass(s(3)).await;
    b.hold([need("l")]).await;
    let waits = |n: usize| job("q").id(&format!("w{n}")).needs([need("l")]);
    b.push_all((0..3).map(waits).collect()).await;
    b.none("q").await;
    for (n, id) in ["w0", "w1", "w2"].into_iter().enumerate() {
        assert_eq!(b.explain(id).await.state, JobState::Blocked);
        let reason = b.waits_for(id, ReasonKind::Limit).await;
        assert_eq!(reason.name.as_deref(), Some("l"));
        assert_eq!((reason.in_use, reason.capacity), (Some(2), Some(2)));
        assert_eq!(reason.position, Some(n as u64 + 1), "1 is the next");
        assert_eq!(reason.earliest, None, "a holder decides");
        assert_eq!(reason.holders.len(), 2);
        let holder = reason.holders.iter().find(|one| one.lease == id_of(&lease));
        let holder = holder.expect("it is a holder");
        assert_eq!((holder.holder.as_str(), holder.since), ("me", since));
        assert_eq!(holder.job, Some(job_id("a")));
    }
}

pub(crate) async fn holders_are_shown_up_to_a_number(b: &mut Bench) {
    b.set_limit("l", cap(25)).await;
    for _ in 0..25 {
        b.hold([need("l")]).await;
    }
    b.push(job("q").id("a").needs([need("l")])).await;
    b.none("q").await;
    let reason = b.waits_for("a", ReasonKind::Limit).await;
    assert_eq!((reason.in_use, reason.holders.len()), (Some(25), 20));
}

pub(crate) async fn a_rate_says_when_the_next_token_is_there(b: &mut Bench) {
    b.set_limit("r", rate(1, s(10), 1)).await;
    b.hold([need("r")]).await;
    let next = b.now().plus(s(10));
    b.pass(s(3)).await;
    b.push(job("q").id("a").needs([need("r")])).await;
    b.none("q").await;
    let reason = b.waits_for("a", ReasonKind::Rate).await;
    assert_eq!((reason.name.as_deref(), reason.earliest), (Some("r"), Some(next)));
}

pub(crate) async fn a_taken_pool_is_named_with_its_holders(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a"), thing("b")]).await;
    let held = b.granted(b.ask_needs([several_of("p", 2)]).by("me")).await;
    b.push(job("q").id("x").needs([any_of("p")])).await;
    b.none("q").await;
    let reason = b.waits_for("x", ReasonKind::Pool).await;
    assert_eq!((reason.name.as_deref(), reason.capacity), (Some("p"), Some(2)));
    assert!(reason.holders.iter().any(|one| one.lease == id_of(&held)));
    assert_eq!(reason.earliest, None, "a holder decides");
}

pub(crate) async fn a_cooling_pool_says_when_the_first_is_back(b: &mut Bench) {
    b.set_pool("p", PoolSettings { cooldown: s(30), ..plain_pool() }, vec![thing("a")]).await;
    let held = b.hold([any_of("p")]).await;
    b.settle(released(&held)).await;
    b.ok(CoolResource { pool: pool("p"), resource: resource("a"), until: Later::For(s(90)) }).await;
    b.push(job("q").id("x").needs([any_of("p")])).await;
    b.none("q").await;
    let reason = b.waits_for("x", ReasonKind::Pool).await;
    assert!(reason.earliest.is_none_or(|at| at <= b.now().plus(s(90))), "no sooner than");
}

pub(crate) async fn a_resource_that_is_not_there_is_explained_as_its_pool(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a"), thing("b").tags(["t"])]).await;
    b.push(job("q").id("x").needs([tagged("p", "t")])).await;
    b.ok(DeleteResource { pool: pool("p"), resource: resource("b") }).await;
    b.none("q").await;
    b.is("x", JobState::Blocked).await;
    assert_eq!(b.waits_for("x", ReasonKind::Pool).await.capacity, Some(0));
}

pub(crate) async fn work_outside_is_named(b: &mut Bench) {
    b.set_limit("l", cap(2)).await;
    b.ok(ObserveLimit { limit: limit("l"), external: 2, hold: None }).await;
    b.push(job("q").id("a").needs([need("l")])).await;
    b.none("q").await;
    let reason = b.waits_for("a", ReasonKind::External).await;
    assert_eq!(reason.name.as_deref(), Some("l"));
}

pub(crate) async fn a_running_job_names_its_lease(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.granted(b.ask("q").by("me")).await;
    let explained = b.explain("a").await;
    assert_eq!((explained.state, explained.reasons.len()), (JobState::Running, 0));
    let running = explained.lease.expect("a running job has a lease");
    assert_eq!((running.lease, running.holder.as_str()), (id_of(&lease), "me"));
    assert_eq!((running.since, running.expires_at), (lease.granted_at, lease.expires_at));
}

pub(crate) async fn a_finished_job_waits_for_nothing(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease)).await;
    let explained = b.explain("a").await;
    assert_eq!((explained.state, explained.reasons.len()), (JobState::Succeeded, 0));
    assert!(explained.lease.is_none());
    b.refused(Code::JobNotFound, ExplainJob { job: job_ref("nobody") }).await;
}

pub(crate) async fn asking_why_changes_nothing(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.hold([need("l")]).await;
    b.push(job("q").id("a").needs([need("l")])).await;
    b.none("q").await;
    let before = b.job("a").await;
    let first = b.explain("a").await;
    assert_eq!(b.explain("a").await, first);
    assert_eq!(b.job("a").await, before);
}
