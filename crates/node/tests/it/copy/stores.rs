//! Stores of a test: folders and servers of its own, and who watches a copy.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tenure_core::redis_address::Address;
use tenure_core::time::Span;
use tenure_engine::copy::{
    self, CopyError, CopyNews, CopyPlan, CopyReport, CopyWatch, Source, Target,
};
use tenure_engine::{CopyFolder, Embedded, Location, Options, Seal};
use tenure_engine_api::{Clock, Engine, SystemClock};
use tenure_node::{
    AskServer, AskedServer, CopyOpenError, CopyRedis, Node, NodeOptions, ServerWord, SnapshotWish,
    StoreLeader,
};
use tenure_redis::SnapshotName;
use tenure_testkit::TempDir;
use tenure_testkit::redis::{Aof, RedisCluster, RedisServer};

/// The name of a store in its Redis.
const NAME: &str = "tenure";
const LONG: Duration = Duration::from_secs(60);

/// Every server that is asked for has ended: one of a test at a time serves a store.
struct NobodyElse;

impl AskServer for NobodyElse {
    fn ask(&self, _server: &AskedServer, _within: Duration) -> ServerWord {
        ServerWord::Refused
    }

    fn write_snapshot(
        &self,
        _server: &AskedServer,
        _wish: &SnapshotWish,
        _goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Option<SnapshotName> {
        None
    }
}

/// Where a store is.
pub enum Store {
    Folder { path: PathBuf, _dir: TempDir },
    Redis(RedisServer),
    Cluster(RedisCluster),
}

impl Store {
    /// Rows of three stores, each of which is copied to the next: from a folder; in `./test --long` also from a Redis, by
    /// the same two copies in the other order.
    pub fn there_and_back() -> Vec<[Store; 3]> {
        let mut chains = vec![[Store::folder(), Store::redis(), Store::folder()]];
        if tenure_testkit::long() {
            chains.push([Store::redis(), Store::folder(), Store::redis()]);
        }
        chains
    }

    /// Each kind of store as source and as target of the other; in `./test --long` also of its own kind.
    pub fn combinations() -> Vec<(Store, Store)> {
        let mut pairs = vec![(Store::folder(), Store::redis()), (Store::redis(), Store::folder())];
        if tenure_testkit::long() {
            pairs.push((Store::redis(), Store::redis()));
        }
        pairs
    }

    pub fn folder() -> Self {
        let dir = TempDir::new();
        Store::Folder { path: dir.join("data"), _dir: dir }
    }

    pub fn redis() -> Self {
        Store::Redis(RedisServer::start(Aof::Off, &[]))
    }

    pub fn cluster() -> Self {
        Store::Cluster(RedisCluster::start(3))
    }

    pub fn shown(&self) -> String {
        match self {
            Store::Folder { path, .. } => format!("file:{}", path.display()),
            Store::Redis(server) => server.url(),
            Store::Cluster(cluster) => cluster.url(),
        }
    }

    /// In the hands of a copy, as a store that is there.
    pub fn source(&self) -> Result<CopyRedis, CopyOpenError> {
        CopyRedis::source(self.address(), NAME)
    }

    fn address(&self) -> Address {
        Address::parse(&self.shown()).unwrap()
    }

    /// A server of it, once it serves or says that a copy paused it.
    fn member(&self) -> Node {
        let at = "http://127.0.0.1:1";
        let options = NodeOptions::new(self.address(), NAME, at, Arc::new(NobodyElse));
        let member = Node::open(options).unwrap();
        let place = member.place();
        let begun = Instant::now();
        loop {
            match place.now() {
                StoreLeader::Local { .. } => break,
                StoreLeader::Paused(ref why) if why.contains("tenure copy") => break,
                place => assert!(begun.elapsed() < LONG, "{place:?}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        member
    }

    /// The engine on it.
    pub fn open(&self) -> Opened {
        self.open_at(Arc::new(SystemClock))
    }

    /// The same with the clock of a folder.
    pub fn open_at(&self, clock: Arc<dyn Clock>) -> Opened {
        match self {
            Store::Folder { path, .. } => {
                let options = Options { clock, ..Options::new(Location::Folder(path.clone())) };
                Opened::Folder(Arc::new(Embedded::open(options).unwrap()))
            }
            Store::Redis(_) | Store::Cluster(_) => Opened::Redis(self.member()),
        }
    }

    /// It, to be copied or to become a copy.
    pub fn hands(&self) -> Hands {
        match self {
            Store::Folder { path, .. } => {
                Hands::Folder(Box::new(CopyFolder::target(path).unwrap()))
            }
            Store::Redis(_) | Store::Cluster(_) => {
                Hands::Redis(Box::new(CopyRedis::target(self.address(), NAME).unwrap()))
            }
        }
    }
}

pub enum Opened {
    Folder(Arc<Embedded>),
    Redis(Node),
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Opened::Redis(member) = self {
            member.close();
        }
    }
}

impl Opened {
    pub fn engine(&self) -> Arc<dyn Engine> {
        match self {
            Opened::Folder(engine) => engine.clone(),
            Opened::Redis(member) => Arc::new(member.engine()),
        }
    }
}

pub enum Hands {
    Folder(Box<CopyFolder>),
    Redis(Box<CopyRedis>),
}

impl Hands {
    pub fn source(&self) -> &dyn Source {
        match self {
            Hands::Folder(folder) => &**folder,
            Hands::Redis(copy) => &**copy,
        }
    }
    pub fn target(&self) -> &dyn Target {
        match self {
            Hands::Folder(folder) => &**folder,
            Hands::Redis(copy) => &**copy,
        }
    }
}

/// Stops a copy after this many steps, and remembers for how long it waited.
#[derive(Default)]
pub struct Watcher {
    pub stop_after: Option<u64>,
    pub steps: u64,
    pub waited: Option<Span>,
    /// How often a store was away.
    pub away: u64,
}

impl CopyWatch for Watcher {
    fn told(&mut self, what: &CopyNews) -> Result<(), CopyError> {
        self.steps += 1;
        if self.stop_after.is_some_and(|most| self.steps > most) {
            return Err(CopyError::Stopped);
        }
        if let CopyNews::Waits(long) = what {
            self.waited = Some(*long);
        }
        self.away += u64::from(matches!(what, CopyNews::Away(_)));
        Ok(())
    }
    fn wait(&mut self, long: Span) {
        assert!(long.std() <= LONG, "it would wait {long}");
        std::thread::sleep(long.std());
    }
}

/// Copies one to the other, watched.
pub fn copied(from: &Store, to: &Store, watch: &mut Watcher) -> Result<CopyReport, CopyError> {
    static COPIES: AtomicU64 = AtomicU64::new(0);
    let (source, target) = (from.hands(), to.hands());
    let number = COPIES.fetch_add(1, Ordering::Relaxed);
    let plan = CopyPlan {
        copy: format!("copy_{number}"),
        from: from.shown(),
        to: to.shown(),
        seal: Seal::none(),
    };
    copy::copy(source.source(), target.target(), &plan, watch)
}

pub fn copy_all(from: &Store, to: &Store) -> CopyReport {
    copied(from, to, &mut Watcher::default()).unwrap()
}

/// Serves a source again though its copy is whole.
pub fn thaw(store: &Store) {
    copy::thaw_source(store.hands().source(), &store.shown(), true).unwrap();
}
