//! Plain jobs that were pushed together lie together (docs/decisions/021): more of them than one tick looks
//! at, and what happens to single ones among them. That blocks change no reply is for the model test.

use std::collections::BTreeSet;
use std::sync::Arc;

use tenure_core::job::{JobState, NewJob};
use tenure_core::lease::{Ending, ExtendItem, LeaseView, SettleItem};
use tenure_core::names::{JobId, JobRef, Namespace, QueueName, WorkerId};
use tenure_core::requests::{
    Audit, CancelJob, DeleteJob, DeleteJobs, Extend, GetJob, GetStats, JobFilter, Lease, ListJobs,
    ListLeases, Operation, Push, PushAnswer, Pushed, Settle,
};
use tenure_core::time::Span;
use tenure_engine::{Clock as _, EngineExt};
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine, Time};
use tenure_testkit::TestClock;
use tenure_testkit::redis::{Aof, RedisServer, Reply, wanted};

/// More than are one block, and than one tick looks at.
const MANY: usize = 600;
const TTL: Span = Span::from_s(1);

struct Store {
    engine: RedisEngine,
    clock: Arc<TestClock>,
    server: RedisServer,
}

impl Store {
    async fn start() -> Option<Self> {
        if !wanted() {
            return None;
        }
        let server = RedisServer::start(Aof::Off, &[]);
        let address = Address::parse(&server.url()).expect("the address of the fixture is one");
        let options = Options { time: Time::TestingByHand, ..Options::testing(address) };
        let engine = RedisEngine::open(options).expect("an engine can be opened");
        let store = Store { engine, clock: Arc::new(TestClock::default()), server };
        store.pass(Span::ZERO);
        Some(store)
    }

    /// The clock goes on, and nobody ticks.
    fn pass(&self, span: Span) {
        self.clock.advance(span);
        let now = self.clock.now().us().to_string();
        self.server.must(&["SET", "tenure:{default}now", &now]);
        self.engine.testing_set_watch(&*self.clock).expect("the engine is for tests");
    }

    /// Ticks until nothing is due, with an audit after each; how often.
    async fn tick(&self) -> usize {
        let mut ticks = 1;
        while self.engine.testing_tick(&Namespace::main()).await.expect("a tick") {
            self.is_whole().await;
            ticks += 1;
        }
        self.is_whole().await;
        ticks
    }

    /// As long as a lease lives, while somebody ticks: nobody takes the store for deaf.
    async fn outlive(&self) {
        for _ in 0..9 {
            self.pass(Span::from_ms(100));
            self.tick().await;
        }
        self.pass(Span::from_ms(100));
    }

    async fn ok<O: Operation>(&self, request: O) -> O::Reply {
        let answer = self.engine.run(&Namespace::main(), request).await;
        answer.unwrap_or_else(|why| panic!("{}: {why}", O::NAME))
    }

    async fn push(&self, many: usize) -> Vec<JobId> {
        let jobs = (0..many).map(|_| NewJob::new(queue())).collect();
        match self.ok(Push { jobs, answer: PushAnswer::Ids }).await {
            Pushed::Ids(ids) => ids.into_iter().map(|one| one.id).collect(),
            Pushed::Whole(_) => panic!("ids were asked for"),
        }
    }

    async fn lease(&self, most: usize) -> Vec<LeaseView> {
        let mut lease = Lease { ttl: TTL, ..Lease::jobs(vec![queue()], most) };
        lease.worker.id = WorkerId::parse("w").ok();
        self.ok(lease).await.leases
    }

    async fn settle(&self, leases: &[LeaseView]) {
        let settle = leases.iter().map(succeeds).collect();
        let settled = self.ok(Settle::of(settle)).await.settled;
        assert!(settled.iter().all(|one| one.ok && one.state == Some(JobState::Succeeded)));
    }

    async fn is_whole(&self) {
        let audit = self.ok(Audit::default()).await;
        assert!(audit.ok, "{:?}", audit.faults);
    }

    /// How many wait, run and have succeeded.
    async fn counts(&self) -> (u64, u64, u64) {
        let stats = self.ok(GetStats).await;
        let counts = stats.queues.values().next().expect("a queue");
        let of = |state| counts.get(&state).copied().unwrap_or_default();
        let waiting = of(JobState::Ready) + of(JobState::Scheduled);
        (waiting, of(JobState::Running), of(JobState::Succeeded))
    }
}

fn queue() -> QueueName {
    QueueName::parse("q").expect("a name")
}
fn id_of(lease: &LeaseView) -> String {
    lease.lease.clone().expect("it has an id")
}
fn succeeds(lease: &LeaseView) -> SettleItem {
    SettleItem::new(id_of(lease), Ending::Succeeded { result: None })
}

#[tokio::test(flavor = "multi_thread")]
async fn more_leases_of_blocks_than_a_tick_looks_at_are_reaped_by_the_next_ticks() {
    let Some(store) = Store::start().await else { return };
    store.push(MANY).await;
    let mut leases = Vec::new();
    for _ in 0..MANY / 100 {
        leases.extend(store.lease(100).await);
    }
    assert_eq!(leases.len(), MANY);
    let fences: BTreeSet<_> = leases.iter().map(|lease| lease.fence).collect();
    assert_eq!(fences.len(), MANY, "each has its own");
    store.is_whole().await;
    // One ends before, so that a tick does not come out even with what one call granted.
    store.settle(&leases[..1]).await;
    store.outlive().await;
    let ticks = store.tick().await;
    assert!(ticks > 1, "one tick looks at so many at most");
    assert_eq!(store.counts().await, (MANY as u64 - 1, 0, 1));
    // They were lost with their worker, and run again after a while.
    store.pass(Span::from_s(60));
    store.tick().await;
    store.settle(&store.lease(1).await).await;
    store.is_whole().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_a_block_leaves_the_others_as_they_are() {
    let Some(store) = Store::start().await else { return };
    let ids = store.push(MANY).await;
    // One is cancelled where it waits; of those that run one is kept alive, and some end alone.
    let at = |n: usize| JobRef::Id(ids[n].clone());
    store.ok(CancelJob { job: at(50) }).await;
    let mut leases = store.lease(100).await;
    leases.extend(store.lease(100).await);
    assert_eq!(leases.len(), 200);
    assert!(leases.iter().all(|lease| lease.job.as_ref().is_some_and(|job| job.id != ids[50])));
    let kept = leases.swap_remove(120);
    let extend = vec![ExtendItem { lease: id_of(&kept), progress: None }];
    assert_eq!(
        store.ok(Extend { leases: extend, ttl: Some(Span::from_s(9)) }).await.extended.len(),
        1
    );
    store.settle(&leases[..3]).await;
    store.settle(&leases[40..90]).await;
    store.is_whole().await;
    let listed = store.ok(ListLeases::default()).await.items;
    assert!(listed.windows(2).all(|two| two[0].fence < two[1].fence), "in the order of fences");
    assert_eq!(store.counts().await, (MANY as u64 - 201, 147, 53));
    // The rest expires, and the one that was kept alive does not.
    store.outlive().await;
    store.tick().await;
    assert_eq!(store.counts().await, (MANY as u64 - 55, 1, 53));
    store.settle(&[kept]).await;
    store.is_whole().await;
    // A settle that comes again is answered as the first was.
    store.settle(&leases[40..90]).await;
    let job = store.ok(GetJob { job: at(599) }).await;
    assert_eq!((job.state, job.attempt), (JobState::Ready, 0));
    let newest = store.ok(ListJobs::default()).await.items;
    assert_eq!(newest.first().map(|job| &job.id), ids.last(), "newest first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_goes_with_its_last_row() {
    let Some(store) = Store::start().await else { return };
    store.push(MANY).await;
    for _ in 0..MANY / 100 {
        let leases = store.lease(100).await;
        store.settle(&leases[..3]).await;
        store.settle(&leases[3..]).await;
        // Those of one settle go one by one.
        for lease in &leases[..3] {
            let job = lease.job.as_ref().expect("it has a job").id.clone();
            store.ok(DeleteJob { job: JobRef::Id(job) }).await;
        }
        store.is_whole().await;
    }
    assert_eq!(store.counts().await, (0, 0, MANY as u64 - 18));
    store.pass(Span::from_s(2 * 86_400));
    assert!(store.tick().await > 1);
    assert!(store.ok(ListJobs::default()).await.items.is_empty());
    let left = store.server.must(&["KEYS", "*jb:*"]);
    assert!(left.list().is_empty(), "the texts of blocks are left");
    store.is_whole().await;
}

/// The order of finished jobs names those that ended together; they are forgotten all in one call, or one by one.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_block_that_ended_together_leave_nothing_when_they_are_deleted() {
    let Some(store) = Store::start().await else { return };
    let finished = async || {
        let ids = store.push(20).await;
        store.settle(&store.lease(20).await).await;
        ids
    };
    finished().await;
    let filter = JobFilter { queue: Some(queue()), ..JobFilter::default() };
    assert_eq!(store.ok(DeleteJobs { filter, max: 100, cursor: None }).await.done, 20);
    store.is_whole().await;
    for id in finished().await {
        store.ok(DeleteJob { job: JobRef::Id(id) }).await;
        store.is_whole().await;
    }
    let left = store.server.must(&["KEYS", "tenure:{default}fo"]);
    assert!(left.list().is_empty(), "nothing is to be forgotten any more");
}

/// Jobs with ids of their own, as a client makes them before its first call, so that it can repeat it.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_with_ids_of_their_own_are_blocks_too_and_each_is_stored_once() {
    let Some(store) = Store::start().await else { return };
    let push = async |ids: &[usize]| {
        let jobs = ids.iter().map(|n| NewJob {
            id: JobId::parse(&format!("mine-{n}")).ok(),
            ..NewJob::new(queue())
        });
        match store.ok(Push { jobs: jobs.collect(), answer: PushAnswer::Ids }).await {
            Pushed::Ids(pushed) => pushed,
            Pushed::Whole(_) => panic!("ids were asked for"),
        }
    };
    let numbers = |from: usize, to: usize| (from..to).collect::<Vec<_>>();
    assert!(push(&numbers(0, 300)).await.iter().all(|one| !one.duplicate));
    let texts = store.server.must(&["KEYS", "tenure:{default}jb:*"]);
    assert!(matches!(&texts, Reply::List(keys) if keys.len() == 2), "two blocks: {texts:?}");

    let again = push(&numbers(200, 400)).await;
    for (n, one) in (200..400).zip(&again) {
        assert_eq!(one.id.as_str(), format!("mine-{n}"));
        assert_eq!(one.duplicate, n < 300, "{n}");
    }
    let mut twice = numbers(400, 420);
    twice.extend([405, 3]);
    let duplicates: Vec<bool> = push(&twice).await.iter().map(|one| one.duplicate).collect();
    assert_eq!(duplicates, [vec![false; 20], vec![true; 2]].concat());
    store.is_whole().await;
    assert_eq!(store.counts().await, (420, 0, 0));

    let mut ran = BTreeSet::new();
    while ran.len() < 420 {
        let leases = store.lease(100).await;
        assert!(!leases.is_empty());
        for lease in &leases {
            assert!(ran.insert(lease.job.as_ref().expect("a job").id.as_str().to_owned()));
        }
        store.settle(&leases).await;
    }
    store.is_whole().await;
}
