//! The suite over HTTP: through the remote engine, a server and the embedded engine; through a server that forwards
//! each call to the leader of the store; and through the engine of a program that shares the store. They carry calls
//! and interpret no rule, so `./test` tries each answer, wait and refusal of each operation once, and `./test --long`
//! all sentences.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::{Remote, ServerUrl, StoreUrl};
use tenure_conformance::{
    Bench, Capabilities, Case, Factory, MovedClock, Store, Task, all, carried, check_all,
};
use tenure_core::access::TokenName;
use tenure_core::names::Namespace;
use tenure_core::requests::Request;
use tenure_core::secret::Secret;
use tenure_engine::{Durability, Embedded, Location, Options};
use tenure_engine_api::{AroundEngine, CallFuture, Engine, LeaderAddress};
use tenure_server::{
    Config, Deps, ForwardingEngine, LeaderReport, Leadership, PeerGroup, ServingLeader,
};
use tenure_testkit::{TempDir, TestClock};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::description::Description;
use crate::recorded::{Calls, proxy};

/// Where a leader drains, no other one comes.
const PASS_ON_MAX: Duration = Duration::from_millis(300);

/// Calls go to the server whose engine answers them, through a proxy that records them.
#[derive(Default)]
struct OverHttp(Arc<Mutex<Calls>>);

/// Calls go to another server of the same store.
struct PassedOn;

/// Calls of a process that shares the store, which another server leads.
struct FromAnywhere;

/// The way of calls to the leader.
#[derive(Clone)]
enum Way {
    Straight(Arc<Mutex<Calls>>),
    PassedOn,
    FromAnywhere,
}

/// The servers and the engine of a bench.
struct Open {
    engine: Arc<Embedded>,
    servers: Vec<JoinHandle<()>>,
}

struct Here {
    dir: TempDir,
    clock: Arc<TestClock>,
    open: Arc<Mutex<Open>>,
    way: Way,
}

/// Calls go over HTTP. The engine behind the server handles everything that no call of the contract covers: its health,
/// the drain, and the undo of grants that did not arrive.
struct Both {
    remote: Arc<dyn Engine>,
    behind: Arc<Embedded>,
}

impl AroundEngine for Both {
    fn inner(&self) -> &dyn Engine {
        &*self.behind
    }
    fn call_around(
        &self,
        by: Option<&TokenName>,
        namespace: &Namespace,
        request: Request,
    ) -> CallFuture {
        self.remote.call_by(by, namespace, request)
    }
}

/// A server on a new port, and the engine that calls it in this way.
async fn open(dir: &TempDir, clock: &Arc<TestClock>, way: &Way) -> (Open, Arc<dyn Engine>) {
    let options = Options {
        clock: clock.clone(),
        // Syncing is tested elsewhere; here it would only be slow.
        durability: Durability::Everysec,
        ..Options::new(Location::Folder(dir.join("store")))
    };
    let engine = Arc::new(Embedded::open(options).expect("the store can be opened"));
    let here = ServingLeader::Local { engine: engine.clone(), epoch: 1 };
    let (server, owner) = serve(of_several(1, here)).await;
    let mut open = Open { engine: engine.clone(), servers: vec![server] };
    let there = ServingLeader::Remote(LeaderAddress { url: url(owner), epoch: 1 });
    let asks = |at| Arc::new(Remote::open(&url(at), None).expect("it can be asked"));
    let remote: Arc<dyn Engine> = match way {
        Way::Straight(calls) => {
            let (proxy, before) = proxy(owner, calls.clone()).await;
            open.servers.push(proxy);
            asks(before)
        }
        Way::PassedOn => {
            let (server, other) = serve(of_several(2, there)).await;
            open.servers.push(server);
            asks(other)
        }
        Way::FromAnywhere => {
            Arc::new(ForwardingEngine::trying_for(of_several(2, there), PASS_ON_MAX))
        }
    };
    (open, Arc::new(Both { remote, behind: engine }))
}

/// Where one of two servers answers calls, for good.
fn of_several(server: u128, serves: ServingLeader) -> Leadership {
    let (secret, trust) = (Secret::new("of-the-servers"), Default::default());
    let peer_group = PeerGroup { server, store: 7, secret, trust };
    let standing = LeaderReport { serves, served_at: None };
    Leadership::shared("redis", peer_group, watch::channel(standing).1)
}

/// A server on a new port.
async fn serve(leadership: Leadership) -> (JoinHandle<()>, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let at = listener.local_addr().expect("it is bound");
    let deps = Deps {
        pages: None,
        metrics: None,
        trail: Default::default(),
        leadership,
        tokens: Default::default(),
        tls: None,
        config: Config { pass_on_max: PASS_ON_MAX, ..Config::default() },
        gauge_hosts: Default::default(),
        moved: None,
    };
    let server = tokio::spawn(async move {
        tenure_server::run(listener, deps, std::future::pending()).await;
    });
    (server, at)
}

fn url(at: SocketAddr) -> ServerUrl {
    match format!("http://{at}").parse() {
        Ok(StoreUrl::Server(url)) => url,
        other => panic!("{other:?} is no server"),
    }
}

async fn bench(way: Way) -> Bench {
    let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
    let (now_open, remote) = open(&dir, &clock, &way).await;
    let now_open = Arc::new(Mutex::new(now_open));
    let open_now = now_open.clone();
    let control = MovedClock::new(clock.clone(), move || {
        let engine = open_now.lock().expect("nobody panics with it").engine.clone();
        Box::pin(async move { engine.settled().await })
    });
    let hang_up = matches!(way, Way::Straight(_));
    let store = Here { dir, clock, open: now_open, way };
    // A crowd would need more connections than a process may have open files.
    let can = Capabilities { crowd: false, hang_up, ..Capabilities::ALL };
    Bench::new(remote, Arc::new(control), can, Box::new(store))
}

impl Factory for OverHttp {
    fn open(&self) -> Task<'_, Bench> {
        Box::pin(bench(Way::Straight(self.0.clone())))
    }
}

impl Factory for PassedOn {
    fn open(&self) -> Task<'_, Bench> {
        Box::pin(bench(Way::PassedOn))
    }
}

impl Factory for FromAnywhere {
    fn open(&self) -> Task<'_, Bench> {
        Box::pin(bench(Way::FromAnywhere))
    }
}

impl Store for Here {
    fn reopen(&mut self, old: Arc<dyn Engine>) -> Task<'_, Arc<dyn Engine>> {
        Box::pin(async move {
            drop(old);
            let crashed = {
                let open = self.open.lock().expect("nobody panics with it");
                open.servers.iter().for_each(JoinHandle::abort);
                open.engine.clone()
            };
            crashed.crash();
            let (now_open, remote) = open(&self.dir, &self.clock, &self.way).await;
            *self.open.lock().expect("nobody panics with it") = now_open;
            remote
        })
    }
}

/// Checks these sentences, and compares each call on the connections with the description.
fn check_all_and_each_answer(sentences: &[Case]) {
    let description = Description::of_this_build();
    let over_http = OverHttp::default();
    check_all(&over_http, sentences);
    let calls = over_http.0.lock().unwrap();
    assert!(calls.faults.is_empty(), "{}", Vec::from_iter(calls.faults.clone()).join("\n"));
    let routes = description.routes();
    let unseen: Vec<_> = routes.iter().filter(|one| !calls.answered.contains(*one)).collect();
    // Those that the server answers without an engine.
    let without_engine = [
        "/healthz",
        "/metrics",
        "/openapi.json",
        "/readyz",
        "/v1/backup",
        "/v1/me",
        "/v1/trail",
        "/version",
    ];
    let without_engine = without_engine.map(|path| format!("get {path}"));
    let preview = "post /v1/schedules/preview".to_owned();
    assert_eq!(unseen, Vec::from_iter(without_engine.iter().chain([&preview])));
    assert!(calls.refused > 50, "only {} refusals", calls.refused);
}

#[test]
fn each_answer_wait_and_refusal_over_http() {
    check_all_and_each_answer(&carried());
}

#[test]
fn each_answer_wait_and_refusal_of_a_forwarding_server() {
    check_all(&PassedOn, &carried());
}

#[test]
#[ignore = "long: the whole suite"]
fn every_rule_holds_over_http() {
    check_all_and_each_answer(&all());
}

#[test]
#[ignore = "long: the whole suite"]
fn every_rule_holds_where_a_server_passes_calls_on() {
    check_all(&PassedOn, &all());
}

#[test]
#[ignore = "long: the whole suite"]
fn every_rule_holds_in_a_program_of_the_store() {
    check_all(&FromAnywhere, &all());
}
