//! Stores of a test: folders and servers of its own, and who watches a copy.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure_core::time::Span;
use tenure_engine::Engine;
use tenure_engine::copy::{
    self, CopyError, CopyNews, CopyPlan, CopyReport, CopyWatch, Source, Target,
};
use tenure_engine_embedded::{CopyFolder, Embedded, Location, Options};
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options as RedisOptions, RedisCopy, RedisEngine};
use tenure_testkit::TempDir;
use tenure_testkit::redis::{Aof, RedisCluster, RedisServer};

/// Where a store is.
pub enum Store {
    Folder { path: PathBuf, _dir: TempDir },
    Redis(RedisServer),
    Cluster(RedisCluster),
}

impl Store {
    /// Three stores in a row, to each of which the one before it is copied: from a folder, and from a Redis.
    pub fn there_and_back() -> [[Store; 3]; 2] {
        [
            [Store::folder(), Store::redis(), Store::folder()],
            [Store::redis(), Store::folder(), Store::redis()],
        ]
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

    pub fn server(&self) -> &RedisServer {
        match self {
            Store::Folder { .. } => panic!("a server is asked for"),
            Store::Redis(server) => server,
            Store::Cluster(_) => panic!("a server of its own is asked for"),
        }
    }

    pub fn shown(&self) -> String {
        match self {
            Store::Folder { path, .. } => format!("file:{}", path.display()),
            Store::Redis(server) => server.url(),
            Store::Cluster(cluster) => cluster.url(),
        }
    }

    fn link(&self) -> RedisEngine {
        let address = Address::parse(&self.shown()).unwrap();
        // As patient as a test that moves the clock, by the server's clock.
        let link = RedisOptions::testing(address.clone()).link;
        RedisEngine::open(RedisOptions { link, ..RedisOptions::new(address) }).unwrap()
    }

    /// The engine on it.
    pub fn open(&self) -> Opened {
        match self {
            Store::Folder { path, .. } => {
                let options = Options::new(Location::Folder(path.clone()));
                Opened::Folder(Arc::new(Embedded::open(options).unwrap()))
            }
            Store::Redis(_) | Store::Cluster(_) => Opened::Redis(Arc::new(self.link())),
        }
    }

    /// It, to be copied or to become a copy.
    pub fn hands(&self) -> Hands {
        match self {
            Store::Folder { path, .. } => {
                Hands::Folder(Box::new(CopyFolder::target(path).unwrap()))
            }
            Store::Redis(_) | Store::Cluster(_) => {
                let engine = self.link();
                Hands::Redis { copy: Box::new(engine.copying()), _engine: engine }
            }
        }
    }
}

pub enum Opened {
    Folder(Arc<Embedded>),
    Redis(Arc<RedisEngine>),
}

impl Opened {
    pub fn engine(&self) -> Arc<dyn Engine> {
        match self {
            Opened::Folder(engine) => engine.clone(),
            Opened::Redis(engine) => engine.clone(),
        }
    }
}

pub enum Hands {
    Folder(Box<CopyFolder>),
    Redis { copy: Box<RedisCopy>, _engine: RedisEngine },
}

impl Hands {
    pub fn source(&self) -> &dyn Source {
        match self {
            Hands::Folder(folder) => &**folder,
            Hands::Redis { copy, .. } => &**copy,
        }
    }
    pub fn target(&self) -> &dyn Target {
        match self {
            Hands::Folder(folder) => &**folder,
            Hands::Redis { copy, .. } => &**copy,
        }
    }
}

/// Stops a copy after so many pages, and remembers for how long it waited.
#[derive(Default)]
pub struct Watcher {
    pub stop_after: Option<u64>,
    pub pages: u64,
    pub waited: Option<Span>,
    /// How often a store was away.
    pub away: u64,
}

impl CopyWatch for Watcher {
    fn told(&mut self, what: &CopyNews) -> Result<(), CopyError> {
        if let CopyNews::Moved { .. } = what {
            self.pages += 1;
            if self.stop_after.is_some_and(|most| self.pages > most) {
                return Err(CopyError::Stopped);
            }
        }
        if let CopyNews::Waits(long) = what {
            self.waited = Some(*long);
        }
        self.away += u64::from(matches!(what, CopyNews::Away(_)));
        Ok(())
    }
    fn wait(&mut self, long: Span) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(tokio::time::sleep(Duration::from_micros(long.us())))
    }
}

/// Copies one to the other, watched.
pub async fn copied(
    from: &Store,
    to: &Store,
    watch: &mut Watcher,
) -> Result<CopyReport, CopyError> {
    static COPIES: AtomicU64 = AtomicU64::new(0);
    let (source, target) = (from.hands(), to.hands());
    let number = COPIES.fetch_add(1, Ordering::Relaxed);
    let plan = CopyPlan { copy: format!("copy_{number}"), from: from.shown(), to: to.shown() };
    copy::copy(source.source(), target.target(), &plan, watch).await
}

pub async fn copy_all(from: &Store, to: &Store) -> CopyReport {
    copied(from, to, &mut Watcher::default()).await.unwrap()
}

/// Serves a source again though its copy is whole.
pub async fn thaw(store: &Store) {
    copy::thaw_source(store.hands().source(), &store.shown(), true).await.unwrap();
}
