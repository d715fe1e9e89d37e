//! Members of a test in one process, and their network.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tenure_core::job::NewJob;
use tenure_core::names::{JobId, JobRef, Namespace, QueueName};
use tenure_core::redis_address::Address;
use tenure_core::requests::{GetJob, Lease, Operation, Push, PushAnswer};
use tenure_core::time::Span;
use tenure_engine::Embedded;
use tenure_engine_api::{CallError, EngineExt};
use tenure_node::{
    AskServer, AskedServer, Node, NodeOptions, ServerWord, SnapshotName, SnapshotWish, StoreLeader,
};
use tenure_testkit::redis::{Aof, RedisServer};
use tokio::runtime::Runtime;

pub const LONG: Duration = Duration::from_secs(90);

/// A tenth of the default: the rule is the same, and tests need not push as much.
pub const SNAPSHOT_LOG_BYTES: u64 = tenure_redis::SNAPSHOT_LOG_BYTES / 10;

/// The addresses of a test, and the members behind them.
#[derive(Default)]
pub struct Network {
    pub nodes: Mutex<HashMap<String, Weak<Node>>>,
    pub is_silent: AtomicBool,
    /// While a test holds it, no question is answered.
    pub answers: Mutex<()>,
    /// Each request for a snapshot, with the address that it went to.
    pub snapshots: Mutex<Vec<(String, SnapshotWish)>>,
    /// Replaces the behaviour of a server that is asked for a snapshot; `None`: that of a member.
    pub writer: Mutex<Option<DoesSnapshot>>,
}

impl AskServer for Network {
    fn ask(&self, server: &AskedServer, _within: Duration) -> ServerWord {
        drop(self.answers.lock().unwrap());
        if self.is_silent.load(Ordering::Relaxed) {
            return ServerWord::Silent;
        }
        let asked = self.nodes.lock().unwrap().get(&server.url).and_then(Weak::upgrade);
        match asked.filter(|asked| asked.id() == server.id) {
            Some(asked) => asked.word(),
            None => ServerWord::Refused,
        }
    }

    fn write_snapshot(
        &self,
        server: &AskedServer,
        wish: &SnapshotWish,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Option<SnapshotName> {
        let asked = self.nodes.lock().unwrap().get(&server.url).and_then(Weak::upgrade)?;
        self.snapshots.lock().unwrap().push((server.url.clone(), wish.clone()));
        let Some(does) = self.writer.lock().unwrap().clone() else {
            return asked.write_snapshot(wish, goes_on);
        };
        does(&asked, wish, goes_on)
    }
}

/// The behaviour of a follower that is asked for a snapshot; its last argument is true while the leader waits.
pub type DoesSnapshot = Arc<
    dyn Fn(&Node, &SnapshotWish, &(dyn Fn() -> bool + Sync)) -> Option<SnapshotName> + Send + Sync,
>;

/// A Redis, and the network of the members of a store in it.
pub struct Bench {
    pub redis: RedisServer,
    pub network: Arc<Network>,
    pub runtime: Runtime,
}

impl Bench {
    pub fn start() -> Bench {
        Self::start_with(Aof::Off)
    }

    pub fn start_with(aof: Aof) -> Bench {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let redis = RedisServer::start(aof, &[]);
        Bench { redis, network: Arc::default(), runtime }
    }

    pub fn member_with(
        &self,
        redis: &str,
        url: &str,
        change: impl FnOnce(&mut NodeOptions),
    ) -> Arc<Node> {
        let address = Address::parse(redis).unwrap();
        let mut options = NodeOptions::new(address, "shop", url, self.network.clone());
        options.snapshot_log_bytes = SNAPSHOT_LOG_BYTES;
        change(&mut options);
        let node = Arc::new(Node::open(options).unwrap());
        let all = &mut *self.network.nodes.lock().unwrap();
        all.insert(url.to_owned(), Arc::downgrade(&node));
        node
    }

    pub fn node(&self, url: &str) -> Arc<Node> {
        self.member_with(&self.redis.url(), url, |_| {})
    }

    /// A bench with its first member, `http://first`, that leads the store, and the engine of that.
    pub fn led() -> (Bench, Arc<Node>, Arc<Embedded>) {
        let bench = Self::start();
        let first = bench.node("http://first");
        let engine = bench.here(&first);
        (bench, first, engine)
    }

    /// A leader with its engine, and a server that forwards calls to it.
    pub fn two(&self) -> (Arc<Node>, Arc<Embedded>, Arc<Node>) {
        let first = self.node("http://first");
        let engine = self.here(&first);
        let second = self.node("http://second");
        self.there(&second, "http://first");
        (first, engine, second)
    }

    /// Crashes a member: its address refuses connections from then on.
    pub fn crash(&self, node: &Node, url: &str) {
        self.network.nodes.lock().unwrap().remove(url);
        node.crash();
    }

    /// Waits until the place of a member is one of these.
    pub fn until<T>(&self, node: &Node, what: &str, is: impl Fn(&StoreLeader) -> Option<T>) -> T {
        let mut place = node.place();
        let waits = async {
            loop {
                if let Some(found) = is(&place.seen()) {
                    return found;
                }
                place.changed().await;
            }
        };
        let waited = self.runtime.block_on(async { tokio::time::timeout(LONG, waits).await });
        waited.unwrap_or_else(|_| panic!("{what}: {:?}, {:?}", node.place(), node.health()))
    }

    pub fn here(&self, node: &Node) -> Arc<Embedded> {
        self.until(node, "it serves", |place| match place {
            StoreLeader::Local { engine, .. } => Some(engine.clone()),
            _ => None,
        })
    }

    pub fn there(&self, node: &Node, url: &str) {
        self.until(node, "another serves", |place| match place {
            StoreLeader::Remote(there) if there.url == url => Some(()),
            _ => None,
        });
    }

    /// Waits until this member has seen the present registrations: it does so each time that it registers.
    pub fn knows(&self, node: &Node) {
        let said = || {
            let all = self.redis.must(&["HGETALL", "{shop}:servers"]);
            all.field(&format!("{:032x}", node.id()))
        };
        let begun = Instant::now();
        for _ in 0..2 {
            let before = said();
            while said() == before {
                assert!(begun.elapsed() < LONG, "it registers no more");
                std::thread::yield_now();
            }
        }
    }

    /// The last entry of the store in Redis.
    pub fn end(&self) -> u64 {
        self.redis.must(&["HGET", "{shop}:own", "number"]).text().parse().unwrap()
    }

    /// Waits until the rows of a follower have all entries of the store.
    pub fn follows(&self, standby: &Node) {
        let begun = Instant::now();
        while standby.applied() != self.end() {
            let (has, end) = (standby.applied(), self.end());
            assert!(begun.elapsed() < LONG, "it has {has} of {end} entries");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Microseconds, by the clock of Redis.
    pub fn redis_time(&self) -> u64 {
        let reply = self.redis.must(&["TIME"]);
        let part = |at: usize| reply.list()[at].text().parse::<u64>().unwrap();
        part(0) * 1_000_000 + part(1)
    }

    pub fn push(
        &self,
        engine: &Arc<Embedded>,
        ids: std::ops::Range<usize>,
    ) -> Result<(), CallError> {
        let push = Push { jobs: ids.map(job).collect(), answer: PushAnswer::Ids };
        self.runtime.block_on(engine.run(&Namespace::main(), push)).map(drop)
    }

    /// Leases up to `max` jobs; returns the ends of the leases.
    pub fn lease(&self, engine: &Arc<Embedded>, max: usize, ttl: Span) -> Vec<(JobId, u64)> {
        let lease = Lease { ttl, wait: Span::from_s(20), ..Lease::jobs(vec![queue()], max) };
        let leased = self.run(engine, lease);
        let jobs = leased.leases.into_iter();
        jobs.map(|lease| (lease.job.unwrap().id, lease.expires_at.us())).collect()
    }

    pub fn run<O: Operation>(&self, engine: &Arc<Embedded>, call: O) -> O::Reply {
        self.runtime.block_on(engine.run(&Namespace::main(), call)).unwrap()
    }

    pub fn is_there(&self, engine: &Arc<Embedded>, n: usize) -> bool {
        let get = GetJob { job: JobRef::Id(id(n)) };
        self.runtime.block_on(engine.run(&Namespace::main(), get)).is_ok()
    }
}

pub fn id(n: usize) -> JobId {
    JobId::parse(&format!("j{n}")).unwrap()
}

pub fn job(n: usize) -> NewJob {
    NewJob { id: Some(id(n)), ..NewJob::new(queue()) }
}

pub fn queue() -> QueueName {
    QueueName::parse("mail").unwrap()
}
