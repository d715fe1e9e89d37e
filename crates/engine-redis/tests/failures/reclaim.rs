//! A store that forgot leases, and holders who claim them again by what their ids tell.
//!
//! What the server had at its last `SAVE` is what it has after a kill. Time is the test's, so that learning
//! lasts for as long as a test wants.

use std::sync::Arc;

use tenure_core::job::{JobState, Need, NewJob};
use tenure_core::lease::{Extended, Later, LeaseView, ReasonKind};
use tenure_core::names::{JobRef, LimitName, Namespace, PoolName, ResourceId};
use tenure_core::refusal::Code;
use tenure_core::requests::{
    CoolResource, ExplainJob, Extend, ForceLease, GetLimit, GetResource, Lease, ListLeases,
    ListResources, Page, PutLimit, SyncResources,
};
use tenure_core::secret::Json;
use tenure_core::settings::{LimitSettings, LimitView, NewResource};
use tenure_core::time::Span;
use tenure_engine::{Clock as _, Engine as _};
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine, Time};
use tenure_testkit::TestClock;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use crate::calls::*;

const TTL: Span = Span::from_s(30);
const HOUR: Span = Span::from_s(3_600);

/// A server that forgets, an engine that lives through it, and their clock.
pub struct Store {
    pub server: RedisServer,
    pub engine: Arc<RedisEngine>,
    pub clock: TestClock,
}

impl Store {
    /// `None` where these tests are left out.
    pub async fn start() -> Option<Self> {
        if !wanted() {
            return None;
        }
        let server = RedisServer::start(Aof::Off, &[]);
        let engine = another(&server);
        let store = Store { server, engine, clock: TestClock::default() };
        store.pass(Span::ZERO).await;
        Some(store)
    }

    /// Lets time go by as it does: somebody ticks at least once a second.
    pub async fn pass(&self, span: Span) {
        let mut left = span;
        loop {
            let step = left.min(Span::from_s(1));
            self.clock.advance(step);
            set(&self.engine, &self.clock).await;
            left = Span::from_us(left.us() - step.us());
            if left == Span::ZERO {
                return;
            }
        }
    }

    /// Lets much time go by at once: nobody was there.
    pub async fn leap(&self, span: Span) {
        self.clock.advance(span);
        set(&self.engine, &self.clock).await;
    }

    /// What is there now is what will be remembered.
    pub fn save(&self) {
        self.server.must(&["SAVE"]);
    }

    /// All since the last save is forgotten.
    pub async fn forget(&mut self) {
        self.restart();
        self.pass(Span::from_ms(1)).await;
    }

    /// The same, and nobody has asked yet. What the clock shows is forgotten with all else, which no
    /// clock of a server is.
    pub fn restart(&mut self) {
        self.server.kill();
        self.server.restart();
        // No start is over in the same moment.
        self.clock.advance(Span::from_ms(1));
        let now = self.clock.now().us().to_string();
        self.server.must(&["SET", "tenure:{default}now", &now]);
    }
}

pub fn another(server: &RedisServer) -> Arc<RedisEngine> {
    let address = Address::parse(&server.url()).expect("the address of the fixture is one");
    let options = Options { time: Time::TestingByHand, ..Options::testing(address) };
    Arc::new(RedisEngine::open(options).expect("an engine can be opened"))
}

pub async fn set(engine: &RedisEngine, clock: &TestClock) {
    eventually("the clock is set", async || {
        engine.testing_set_clock(clock, &[Namespace::main()]).await.is_ok()
    })
    .await;
}

pub async fn lock(engine: &RedisEngine, name: &str, worker: &str) -> Option<LeaseView> {
    take(engine, locks(name, worker, TTL)).await
}

pub async fn limit(engine: &RedisEngine, name: &str) -> LimitView {
    ok(engine, GetLimit { limit: LimitName::parse(name).expect("a name") }).await
}

pub fn pool() -> PoolName {
    PoolName::parse("accounts").expect("a name")
}

/// A pool of these accounts, of one holder each.
pub async fn accounts(engine: &RedisEngine, ids: &[&str]) {
    let new = |id: &&str| NewResource {
        id: ResourceId::parse(id).expect("an id"),
        data: Json::from("secret"),
        tags: Vec::new(),
        slots: 1,
    };
    let resources = ids.iter().map(new).collect();
    let meant = tenure_core::requests::Meant::Yes;
    ok(engine, SyncResources { pool: pool(), resources, meant, version: None }).await;
}

fn account() -> Need {
    Need::Pool { pool: pool(), tag: None, prefer: None, id: None, count: 1 }
}

async fn account_by(engine: &RedisEngine, worker: &str) -> Option<LeaseView> {
    let mut asked = Lease { ttl: TTL, ..Lease::needs(vec![account()]) };
    asked.worker.id = tenure_core::names::WorkerId::parse(worker).ok();
    take(engine, asked).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_whose_grant_was_forgotten_is_its_holders_until_he_gives_it_back() {
    let Some(mut store) = Store::start().await else { return };
    let before = lock(&store.engine, "lock:other", "before").await.expect("a lock");
    store.save();
    let held = lock(&store.engine, "lock:deploy", "holder").await.expect("the lock");
    store.forget().await;
    let engine = &store.engine.clone();
    assert!(lock(engine, "lock:deploy", "early").await.is_none(), "it learns");
    assert!(lives(engine, &held).await, "its id tells what it is");
    assert!(lives(engine, &before).await, "this one was remembered");
    let shown = limit(engine, "lock:deploy").await;
    assert_eq!((shown.in_use, shown.over_limit), (1, 0));
    assert_eq!(shown.holders[0].lease, name(&held), "it is the same lease");
    assert_eq!(shown.holders[0].holder, "holder");
    assert!(lock(engine, "lock:deploy", "while").await.is_none());
    for n in 0..8 {
        store.pass(Span::from_s(10)).await;
        assert!(lives(engine, &held).await, "it is a lease like any other");
        let asked = lock(engine, "lock:deploy", &format!("after{n}")).await;
        assert!(asked.is_none(), "learning is over, and it is held");
    }
    assert!(settle(engine, &held).await.ok);
    assert!(settle(engine, &held).await.ok, "as the first time");
    let next = lock(engine, "lock:deploy", "next").await.expect("it is free");
    assert!(next.fence > held.fence);
    is_whole(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claimed_lease_that_is_not_kept_alive_goes_to_the_next() {
    let Some(mut store) = Store::start().await else { return };
    lock(&store.engine, "lock:other", "before").await.expect("a lock");
    store.save();
    let held = lock(&store.engine, "lock:deploy", "holder").await.expect("the lock");
    store.forget().await;
    let engine = &store.engine.clone();
    store.pass(Span::from_s(20)).await;
    assert!(lives(engine, &held).await);
    store.pass(Span::from_s(25)).await;
    assert!(lock(engine, "lock:deploy", "early").await.is_none(), "it has a ttl of its own");
    store.pass(Span::from_s(10)).await;
    assert!(lock(engine, "lock:deploy", "next").await.is_some());
    is_whole(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_job_runs_on_under_its_lease() {
    let Some(mut store) = Store::start().await else { return };
    cap_of_one(&store.engine, "one").await;
    accounts(&store.engine, &["a"]).await;
    let all = vec![needs("one").remove(0), account()];
    let timeout = Some(Span::from_s(600));
    for id in ["extended", "settled"] {
        push(&store.engine, NewJob { timeout, ..job("q", id) }).await;
    }
    push(&store.engine, NewJob { needs: Some(all.clone()), timeout, ..job("c", "capped") }).await;
    push(&store.engine, NewJob { needs: Some(all), ..job("c", "behind") }).await;
    store.save();
    let extended = take(&store.engine, asks("q", "w1", TTL)).await.expect("a job");
    let settled = take(&store.engine, asks("q", "w2", TTL)).await.expect("a job");
    let capped = take(&store.engine, asks("c", "w3", TTL)).await.expect("a job");
    store.forget().await;
    let engine = &store.engine.clone();
    for id in ["extended", "settled", "capped"] {
        assert_ne!(see(engine, id).await.state, JobState::Running, "{id} was forgotten");
    }
    // All in one call, as heartbeats are sent.
    let mut all = extends(&extended);
    all.leases.extend(extends(&capped).leases);
    let Extended { extended: kept, lost, .. } = ok(engine, all).await;
    assert_eq!((kept.len(), lost.len()), (2, 0));
    assert_eq!([&kept[0].lease, &kept[1].lease], [&name(&extended), &name(&capped)]);
    let answer = settle(engine, &settled).await;
    assert!(answer.ok, "it is claimed and settled in one step");
    assert_eq!(see(engine, "settled").await.state, JobState::Succeeded);
    for (id, lease) in [("extended", &extended), ("capped", &capped)] {
        let job = see(engine, id).await;
        assert_eq!((job.state, job.lease), (JobState::Running, Some(name(lease))), "{id}");
        assert_eq!(job.attempt, 1, "{id}");
    }
    let listed = ok(engine, ListLeases::default()).await.items;
    let of_capped = listed.iter().find(|one| one.lease == name(&capped)).expect("it is listed");
    assert_eq!(of_capped.deadline.map(|at| at.since(of_capped.granted_at)), timeout);
    assert_eq!(of_capped.resources.len(), 1);
    let all = ok(engine, ListResources { pool: pool(), page: Page::default() }).await;
    assert_eq!(all.items[0].holders[0].lease, name(&capped));
    assert_eq!((all.items[0].in_use, all.items[0].uses), (1, 1));
    store.pass(Span::from_s(20)).await;
    assert!(lives(engine, &capped).await && lives(engine, &extended).await);
    store.pass(Span::from_s(20)).await;
    // It has learnt, and what they hold is not granted to others.
    assert!(take(engine, asks("c", "w4", TTL)).await.is_none());
    assert!(settle(engine, &extended).await.ok && settle(engine, &capped).await.ok);
    for id in ["extended", "capped"] {
        assert_eq!(see(engine, id).await.state, JobState::Succeeded, "{id}");
    }
    let behind = take(engine, asks("c", "w5", TTL)).await.expect("the next");
    assert_eq!(behind.job.expect("a job").id.as_str(), "behind");
    is_whole(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_waited_for_its_moment_runs_under_its_lease_again() {
    let Some(mut store) = Store::start().await else { return };
    push(&store.engine, job("q", "a")).await;
    let first = take(&store.engine, asks("q", "w1", TTL)).await.expect("a job");
    let mut later = settles(&first);
    later.settle[0].ending =
        tenure_core::lease::Ending::Snoozed { later: Later::For(Span::from_s(60)), reset: false };
    assert!(ok(&store.engine, later).await.settled[0].ok);
    store.save();
    // A minute later it ran again; the store has forgotten that.
    store.pass(Span::from_s(61)).await;
    let second = take(&store.engine, asks("q", "w2", TTL)).await.expect("a job");
    store.restart();
    let engine = &store.engine.clone();
    eventually("the store is there", async || find(engine, "a").await.is_some()).await;
    assert_eq!(see(engine, "a").await.state, JobState::Scheduled);
    assert!(lives(engine, &second).await);
    assert_eq!(see(engine, "a").await.state, JobState::Running);
    store.pass(Span::from_s(1)).await;
    assert!(settle(engine, &second).await.ok);
    is_whole(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_two_claim_one_thing_the_higher_fence_has_it() {
    let Some(mut store) = Store::start().await else { return };
    accounts(&store.engine, &["a"]).await;
    // These are remembered, and were given back since.
    let old = lock(&store.engine, "lock:a", "old").await.expect("the lock");
    let old_account = account_by(&store.engine, "old").await.expect("the account");
    store.save();
    assert!(settle(&store.engine, &old).await.ok && settle(&store.engine, &old_account).await.ok);
    // This one was forgotten, and taken from a holder who was silent.
    let silent = lock(&store.engine, "lock:b", "silent").await.expect("the lock");
    store.pass(Span::from_s(31)).await;
    let new = lock(&store.engine, "lock:a", "new").await.expect("the lock");
    let new_account = account_by(&store.engine, "new").await.expect("the account");
    let other = lock(&store.engine, "lock:b", "other").await.expect("the lock");
    store.forget().await;
    let engine = &store.engine.clone();
    assert!(lives(engine, &silent).await, "nobody else has said anything yet");
    for (higher, lower, what) in [
        (&new, &old, "a lock"),
        (&new_account, &old_account, "an account"),
        (&other, &silent, "a lock that both claim"),
    ] {
        assert!(lives(engine, higher).await, "{what}");
        assert!(!lives(engine, lower).await, "{what}");
        let late = settle(engine, lower).await;
        assert_eq!((late.ok, late.code), (false, Some(Code::LeaseLost)), "{what}");
        assert!(lives(engine, higher).await, "{what}");
    }
    for name in ["lock:a", "lock:b"] {
        assert_eq!(limit(engine, name).await.in_use, 1, "{name}");
    }
    let one = GetResource { pool: pool(), resource: ResourceId::parse("a").expect("an id") };
    let one = ok(engine, one).await;
    assert_eq!((one.in_use, &one.holders[0].lease), (1, &name(&new_account)));
    is_whole(engine).await;
    for lease in [&new, &new_account, &other] {
        assert!(settle(engine, lease).await.ok);
    }
    is_whole(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_shows_by_how_much_claims_are_over_it() {
    let Some(mut store) = Store::start().await else { return };
    let settings = LimitSettings { concurrency: Some(2), ..LimitSettings::default() };
    let two = LimitName::parse("two").expect("a name");
    ok(&store.engine, PutLimit { limit: two, settings, gauge: None }).await;
    let mut old = Vec::new();
    for worker in ["a", "b"] {
        old.push(lock(&store.engine, "two", worker).await.expect("a permit"));
    }
    store.save();
    for lease in &old {
        assert!(settle(&store.engine, lease).await.ok);
    }
    let mut new = Vec::new();
    for worker in ["c", "d"] {
        new.push(lock(&store.engine, "two", worker).await.expect("a permit"));
    }
    store.forget().await;
    let engine = &store.engine.clone();
    for lease in &new {
        assert!(lives(engine, lease).await);
    }
    let shown = limit(engine, "two").await;
    assert_eq!((shown.in_use, shown.over_limit), (4, 2));
    // Those who were done are found out when it has learnt.
    for _ in 0..3 {
        store.pass(Span::from_s(25)).await;
        for lease in &new {
            assert!(lives(engine, lease).await);
        }
    }
    let shown = limit(engine, "two").await;
    assert_eq!((shown.in_use, shown.over_limit), (2, 0));
    is_whole(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_went_on_without_its_holder_is_not_given_back_to_him() {
    let Some(mut store) = Store::start().await else { return };
    for id in ["finished", "granted", "deleted"] {
        push(&store.engine, job("q", id)).await;
    }
    store.save();
    let mut old = Vec::new();
    for worker in ["a", "b", "c"] {
        old.push(take(&store.engine, asks("q", worker, TTL)).await.expect("a job"));
    }
    store.forget().await;
    let engine = &store.engine.clone();
    // Jobs that need nothing exclusive go on at once.
    let mut new = Vec::new();
    for worker in ["d", "e"] {
        new.push(take(engine, asks("q", worker, TTL)).await.expect("it is granted again"));
    }
    assert!(settle(engine, &new[0]).await.ok);
    let gone = JobRef::parse("deleted").expect("an id");
    ok(engine, tenure_core::requests::DeleteJob { job: gone }).await;
    for lease in &old {
        assert!(!lives(engine, lease).await);
        let late = settle(engine, lease).await;
        assert_eq!((late.ok, late.code), (false, Some(Code::LeaseLost)));
    }
    assert_eq!(see(engine, "finished").await.state, JobState::Succeeded);
    assert_eq!(see(engine, "granted").await.lease, Some(name(&new[1])));
    assert!(lives(engine, &new[1]).await);
    is_whole(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_another_job_has_now_is_not_the_job_that_was_forgotten() {
    let Some(mut store) = Store::start().await else { return };
    lock(&store.engine, "lock:a", "a").await.expect("a lock");
    store.save();
    push(&store.engine, job("q", "old")).await;
    let old = take(&store.engine, asks("q", "w", TTL)).await.expect("a job");
    store.forget().await;
    let engine = &store.engine.clone();
    push(engine, job("q", "new")).await;
    assert!(!lives(engine, &old).await, "its job is gone");
    assert_eq!(see(engine, "new").await.state, JobState::Ready);
    is_whole(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_ended_is_not_claimed_again() {
    let Some(mut store) = Store::start().await else { return };
    let engine = store.engine.clone();
    let engine = &engine;
    push(engine, job("q", "a")).await;
    push(engine, job("q", "b")).await;
    // Ended before: nothing of it is remembered but that fences were higher.
    let reaped = take(engine, asks("q", "dead", TTL)).await.expect("a job");
    let given = lock(engine, "lock:a", "done").await.expect("a lock");
    assert!(settle(engine, &given).await.ok);
    store.pass(Span::from_s(100)).await;
    let long = take(engine, locks("lock:long", "long", HOUR)).await.expect("a lock");
    assert_eq!(see(engine, "a").await.lost, 1);
    store.save();
    let settled = lock(engine, "lock:b", "settled").await.expect("a lock");
    let forced = lock(engine, "lock:c", "forced").await.expect("a lock");
    let forced_job = take(engine, asks("q", "forced-too", TTL)).await.expect("a job");
    store.forget().await;
    for lease in [&reaped, &given] {
        assert!(!lives(engine, lease).await, "it was ended long ago");
    }
    // Ended while it learns.
    assert!(settle(engine, &settled).await.ok);
    for lease in [&forced, &forced_job] {
        assert!(lives(engine, lease).await);
        ok(engine, ForceLease { lease: name(lease) }).await;
    }
    for _ in 0..2 {
        for lease in [&settled, &forced, &forced_job] {
            assert!(!lives(engine, lease).await);
        }
        // An hour of learning is longer than what ended is remembered for otherwise.
        store.pass(Span::from_s(100)).await;
        assert!(lives(engine, &long).await);
    }
    assert!(settle(engine, &settled).await.ok, "as the first time");
    is_whole(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_after_learning_has_lost() {
    let Some(mut store) = Store::start().await else { return };
    lock(&store.engine, "lock:b", "a").await.expect("a lock");
    store.save();
    let held = lock(&store.engine, "lock:a", "a").await.expect("a lock");
    store.forget().await;
    let engine = &store.engine.clone();
    store.pass(Span::from_s(31)).await;
    assert!(!lives(engine, &held).await);
    let late = settle(engine, &held).await;
    assert_eq!((late.ok, late.code), (false, Some(Code::LeaseLost)));
    assert!(lock(engine, "lock:a", "b").await.is_some());
    is_whole(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_is_lost_and_who_lives_through_it_remembers() {
    let Some(mut store) = Store::start().await else { return };
    push(&store.engine, job("q", "gone")).await;
    let running = take(&store.engine, asks("q", "w", TTL)).await.expect("a job");
    let held = lock(&store.engine, "lock:deploy", "holder").await.expect("the lock");
    let other = lock(&store.engine, "lock:other", "other").await.expect("the lock");
    // Nothing was ever saved: the server is empty.
    store.forget().await;
    let engine = &store.engine.clone();
    assert!(find(engine, "gone").await.is_none());
    assert!(lock(engine, "lock:deploy", "early").await.is_none(), "it learns although it is empty");
    let notice = engine.notice().expect("who runs it is told");
    assert!(notice.contains("nothing exclusive is granted for another 30s"), "{notice}");
    assert!(engine.health().degraded.is_none(), "heartbeats are wanted now more than ever");
    assert!(lives(engine, &held).await);
    assert!(!lives(engine, &running).await, "its job is gone");
    // A process that has just begun knows the same key.
    let newcomer = another(&store.server);
    set(&newcomer, &store.clock).await;
    assert!(lives(&newcomer, &other).await && lives(&newcomer, &held).await);
    assert!(lock(&newcomer, "lock:deploy", "while").await.is_none());
    store.pass(Span::from_s(25)).await;
    assert!(lives(engine, &held).await);
    store.pass(Span::from_s(10)).await;
    assert_eq!(engine.notice(), None);
    assert!(lock(engine, "lock:deploy", "after").await.is_none(), "it has learnt, and it is held");
    assert!(lock(engine, "lock:other", "after").await.is_some(), "this one fell silent");
    assert!(settle(engine, &held).await.ok);
    let next = lock(engine, "lock:deploy", "next").await.expect("it is free");
    assert!(next.fence > held.fence);
    is_whole(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_somebody_else_came_first_after_all_was_lost_it_learns_as_soon_as_it_is_told() {
    let Some(mut store) = Store::start().await else { return };
    let held = lock(&store.engine, "lock:deploy", "holder").await.expect("the lock");
    store.restart();
    let newcomer = another(&store.server);
    set(&newcomer, &store.clock).await;
    let first = lock(&newcomer, "lock:first", "first").await.expect("it knows of nobody");
    store.pass(Span::from_ms(1)).await;
    let engine = &store.engine.clone();
    assert!(lock(&newcomer, "lock:deploy", "early").await.is_none(), "it was told");
    assert!(!lives(engine, &held).await, "its id was signed with a key that is gone");
    assert!(lives(engine, &first).await, "the key that is there is known to all");
    is_whole(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_was_changed_or_is_of_another_namespace_is_lost() {
    let Some(mut store) = Store::start().await else { return };
    lock(&store.engine, "lock:b", "a").await.expect("a lock");
    store.save();
    let held = lock(&store.engine, "lock:a", "a").await.expect("a lock");
    let lives_on = lock(&store.engine, "lock:c", "a").await.expect("a lock");
    let elsewhere = Namespace::parse("elsewhere").expect("a name");
    let set = store.engine.testing_set_clock(&store.clock, std::slice::from_ref(&elsewhere));
    set.await.expect("the clock is set");
    let foreign = {
        use tenure_engine::EngineExt as _;
        let asked = locks("lock:a", "a", TTL);
        let mut leased = store.engine.run(&elsewhere, asked).await.expect("a lock");
        leased.leases.remove(0)
    };
    store.forget().await;
    let engine = &store.engine.clone();
    assert!(lives(engine, &lives_on).await);
    let id = name(&held);
    let changed = |at: usize| {
        let mut id = id.clone().into_bytes();
        id[at] = if id[at] == b'x' { b'y' } else { b'x' };
        String::from_utf8(id).expect("letters")
    };
    let ids = [
        changed(3),
        changed(id.len() / 2),
        changed(id.len() - 1),
        id[..id.len() - 4].to_owned(),
        name(&foreign),
        "6390f5c7f8f0e-10".to_owned(),
        "no lease".to_owned(),
        // What lives is named by its own id alone.
        name(&lives_on).replacen(&name(&lives_on)[20..24], "xxxx", 1),
    ];
    for id in ids {
        let lease = LeaseView { lease: Some(id.clone()), ..held.clone() };
        assert!(!lives(engine, &lease).await, "{id}");
        let late = settle(engine, &lease).await;
        assert_eq!((late.ok, late.code), (false, Some(Code::LeaseLost)), "{id}");
        let no = answered(engine, ForceLease { lease: id.clone() }).await;
        assert_eq!(no.err().and_then(|why| why.code()), Some(Code::LeaseNotFound), "{id}");
    }
    assert!(lives(engine, &held).await, "none of them has done any harm");
    is_whole(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_ttl_is_forgotten_when_it_has_passed() {
    let Some(mut store) = Store::start().await else { return };
    let long = take(&store.engine, locks("lock:a", "long", HOUR)).await.expect("a lock");
    assert!(settle(&store.engine, &long).await.ok);
    for n in 0..15 {
        store.leap(Span::from_s(600)).await;
        let short = lock(&store.engine, "lock:a", &format!("short{n}")).await.expect("a lock");
        assert!(settle(&store.engine, &short).await.ok);
    }
    store.save();
    store.restart();
    // One that does not remember it either.
    store.engine = another(&store.server);
    store.pass(Span::from_ms(1)).await;
    let engine = &store.engine.clone();
    assert!(lock(engine, "lock:a", "early").await.is_none());
    store.pass(TTL).await;
    assert!(lock(engine, "lock:a", "next").await.is_some(), "it learns for the ttl of today");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_ttl_that_is_in_use_is_not_forgotten() {
    let Some(mut store) = Store::start().await else { return };
    let long = take(&store.engine, locks("lock:a", "long", HOUR)).await.expect("a lock");
    for n in 0..15 {
        store.leap(Span::from_s(600)).await;
        assert!(lives(&store.engine, &long).await);
        let short = lock(&store.engine, "lock:b", &format!("short{n}")).await.expect("a lock");
        assert!(settle(&store.engine, &short).await.ok);
    }
    store.save();
    store.restart();
    store.engine = another(&store.server);
    store.pass(Span::from_ms(1)).await;
    store.leap(Span::from_s(3_500)).await;
    assert!(lock(&store.engine, "lock:b", "early").await.is_none());
    store.leap(Span::from_s(200)).await;
    assert!(lock(&store.engine, "lock:b", "next").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ttl_that_was_forgotten_with_its_lease_is_told_by_who_granted_it() {
    let Some(mut store) = Store::start().await else { return };
    lock(&store.engine, "lock:a", "a").await.expect("a lock");
    store.save();
    let long = take(&store.engine, locks("lock:b", "long", HOUR)).await.expect("a lock");
    store.forget().await;
    let engine = &store.engine.clone();
    store.leap(Span::from_s(3_000)).await;
    assert!(lock(engine, "lock:b", "early").await.is_none());
    assert!(lives(engine, &long).await, "he has as long as he was told");
    store.leap(Span::from_s(700)).await;
    assert!(lock(engine, "lock:b", "held").await.is_none());
    assert!(lock(engine, "lock:c", "free").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_claimed_by_what_it_was_whatever_was_changed_since() {
    let Some(mut store) = Store::start().await else { return };
    let held = lock(&store.engine, "lock:a", "a").await.expect("a lock");
    let longer = Extend { ttl: Some(Span::from_s(60)), ..extends(&held) };
    assert_eq!(ok(&store.engine, longer).await.extended.len(), 1);
    let shown = limit(&store.engine, "lock:a").await;
    assert_eq!(shown.holders[0].lease, name(&held), "an extend changes no id");
    store.save();
    store.forget().await;
    assert!(lives(&store.engine, &held).await);
    assert_eq!(limit(&store.engine, "lock:a").await.holders[0].lease, name(&held));
    is_whole(&store.engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_losses_in_a_row_are_one_long_one() {
    let Some(mut store) = Store::start().await else { return };
    lock(&store.engine, "lock:x", "a").await.expect("a lock");
    store.save();
    let first = lock(&store.engine, "lock:a", "a").await.expect("a lock");
    let second = lock(&store.engine, "lock:b", "b").await.expect("a lock");
    store.forget().await;
    // The higher fence is claimed and saved before it is all forgotten again.
    assert!(lives(&store.engine, &second).await);
    store.save();
    store.forget().await;
    assert!(lives(&store.engine, &first).await, "it was not ended, only forgotten");
    assert!(lives(&store.engine, &second).await);
    is_whole(&store.engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_says_that_it_learns_and_until_when() {
    let Some(mut store) = Store::start().await else { return };
    cap_of_one(&store.engine, "one").await;
    accounts(&store.engine, &["a", "b"]).await;
    push(&store.engine, NewJob { needs: Some(needs("one")), ..job("q", "capped") }).await;
    push(&store.engine, NewJob { needs: Some(vec![account()]), ..job("p", "pooled") }).await;
    lock(&store.engine, "lock:a", "a").await.expect("a lock");
    store.save();
    store.forget().await;
    let engine = &store.engine.clone();
    // The tick of the new clock was the first call.
    let until = store.clock.now().plus(TTL);
    for (queue, id, kind) in [("q", "capped", ReasonKind::Limit), ("p", "pooled", ReasonKind::Pool)]
    {
        assert!(take(engine, asks(queue, queue, TTL)).await.is_none());
        let said = ok(engine, ExplainJob { job: JobRef::parse(id).expect("an id") }).await;
        assert_eq!(said.state, JobState::Blocked, "{id}");
        assert_eq!((&said.reasons[0].kind, said.reasons[0].earliest), (&kind, Some(until)), "{id}");
        assert!(said.summary.contains("may have forgotten"), "{id}: {}", said.summary);
        assert!(said.summary.contains(&until.to_string()), "{id}: {}", said.summary);
    }
    let alone = ok(engine, locks("lock:b", "b", TTL)).await;
    assert!(alone.reasons[0].detail.contains("may have forgotten"), "{:?}", alone.reasons);
    // A resource that cools for other reasons is no way around it.
    let resource = ResourceId::parse("b").expect("an id");
    let cool = CoolResource { pool: pool(), resource, until: Later::For(Span::from_s(1)) };
    ok(engine, cool).await;
    store.pass(TTL).await;
    for queue in ["q", "p"] {
        let worker = format!("{queue}-after");
        assert!(take(engine, asks(queue, &worker, TTL)).await.is_some(), "{queue}");
    }
    is_whole(engine).await;
}
