//! Every rule of the suite, over HTTP: the remote engine, a server, and the embedded engine.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tenure::{Remote, StoreUrl};
use tenure_conformance::{Bench, Capabilities, Factory, MovedClock, Store, Task};
use tenure_core::names::Namespace;
use tenure_core::requests::Request;
use tenure_engine::{AroundEngine, CallFuture, Engine};
use tenure_engine_embedded::{Durability, Embedded, Location, Options};
use tenure_server::{Config, Deps};
use tenure_testkit::{TempDir, TestClock};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

struct OverHttp;

/// What is open now.
struct Open {
    engine: Arc<Embedded>,
    server: JoinHandle<()>,
}

struct Here {
    dir: TempDir,
    clock: Arc<TestClock>,
    open: Arc<Mutex<Open>>,
}

/// Calls go over HTTP. What no call of the contract says is asked of the engine behind the server:
/// how it is, to drain, and to undo what did not arrive.
struct Both {
    remote: Remote,
    behind: Arc<Embedded>,
}

impl AroundEngine for Both {
    fn inner(&self) -> &dyn Engine {
        &*self.behind
    }
    fn call_around(&self, namespace: &Namespace, request: Request) -> CallFuture {
        self.remote.call(namespace, request)
    }
}

/// A server on a new port, and the engine that speaks to it.
async fn open(dir: &TempDir, clock: &Arc<TestClock>) -> (Open, Arc<dyn Engine>) {
    let options = Options {
        clock: clock.clone(),
        // Syncing is tested elsewhere; here it would only be slow.
        durability: Durability::Everysec,
        ..Options::new(Location::Folder(dir.join("store")))
    };
    let engine = Arc::new(Embedded::open(options).expect("the store can be opened"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let at = listener.local_addr().expect("it is bound");
    let config = Config::default();
    let deps = Deps {
        pages: None,
        metrics: None,
        engine: engine.clone(),
        tokens: Default::default(),
        tls: None,
        config,
        gauge_hosts: Default::default(),
        moved: None,
    };
    let server = tokio::spawn(async move {
        tenure_server::run(listener, deps, std::future::pending()).await;
    });
    let both = Both { remote: remote(at), behind: engine.clone() };
    (Open { engine, server }, Arc::new(both))
}

fn remote(at: SocketAddr) -> Remote {
    match format!("http://{at}").parse() {
        Ok(StoreUrl::Server(url)) => Remote::open(&url, None).expect("it can be asked"),
        other => panic!("{other:?} is no server"),
    }
}

impl Factory for OverHttp {
    fn open(&self) -> Task<'_, Bench> {
        Box::pin(async {
            let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
            let (now_open, remote) = open(&dir, &clock).await;
            let now_open = Arc::new(Mutex::new(now_open));
            let open_now = now_open.clone();
            let control = MovedClock::new(clock.clone(), move || {
                let engine = open_now.lock().expect("nobody panics with it").engine.clone();
                Box::pin(async move { engine.settled().await })
            });
            let store = Here { dir, clock, open: now_open };
            // More connections than a process may have files would be needed for a crowd.
            let can = Capabilities { reopen: true, clock_back: true, crowd: false, gauges: true };
            Bench::new(remote, Arc::new(control), can, Box::new(store))
        })
    }
}

impl Store for Here {
    fn reopen(&mut self, old: Arc<dyn Engine>) -> Task<'_, Arc<dyn Engine>> {
        Box::pin(async move {
            drop(old);
            let crashed = {
                let open = self.open.lock().expect("nobody panics with it");
                open.server.abort();
                open.engine.clone()
            };
            crashed.crash();
            let (now_open, remote) = open(&self.dir, &self.clock).await;
            *self.open.lock().expect("nobody panics with it") = now_open;
            remote
        })
    }
}

tenure_conformance::conformance_tests!(OverHttp);
