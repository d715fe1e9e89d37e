//! The engine of a program that shares a store with other servers: its calls follow the leader.

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::wire::{PATIENCE, Server};
use tenure::StoreUrl;
use tenure_core::job::NewJob;
use tenure_core::names::{JobId, JobRef, Namespace};
use tenure_core::requests::{
    GetJob, GetResult, GetStats, Lease, ListWorkers, Push, PushAnswer, Pushed, RetryJobs,
};
use tenure_core::secret::Secret;
use tenure_core::time::Span;
use tenure_engine::{Embedded, Location, Options};
use tenure_engine_api::{CallError, Engine, EngineExt, Fault, LeaderAddress};
use tenure_server::{Config, ForwardingEngine, LeaderReport, Leadership, PeerGroup, ServingLeader};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

fn memory() -> Arc<Embedded> {
    Arc::new(Embedded::open(Options::new(Location::Memory)).unwrap())
}

fn here(engine: &Arc<Embedded>, epoch: u64) -> ServingLeader {
    ServingLeader::Local { engine: engine.clone(), epoch }
}

fn there(at: SocketAddr, epoch: u64) -> ServingLeader {
    let Ok(StoreUrl::Server(url)) = format!("http://{at}").parse() else { panic!("a server") };
    ServingLeader::Remote(LeaderAddress { url, epoch })
}

fn member(server: u128, serves: ServingLeader) -> (watch::Sender<LeaderReport>, Leadership) {
    let (secret, trust) = (Secret::new("of-the-servers"), Default::default());
    let (tells, standing) = watch::channel(LeaderReport { serves, served_at: None });
    (tells, Leadership::shared("redis", PeerGroup { server, store: 7, secret, trust }, standing))
}

/// A server that leads this store. It asks for a token that the others do not know.
fn owner(engine: &Arc<Embedded>) -> Server {
    let (_, leadership) = member(1, here(engine, 1));
    let token = Some("s3cret-s3cret-s3cret-s3cret-s3cret");
    Server::of_several(leadership, engine.clone(), token, Config::default(), None)
}

fn job(id: Option<&str>) -> Push {
    let id = id.map(|id| id.parse().unwrap());
    let job = NewJob { id, ..NewJob::new("q".parse().unwrap()) };
    Push { jobs: vec![job], answer: PushAnswer::Ids }
}

fn id_of(pushed: &Pushed) -> JobId {
    match pushed {
        Pushed::Ids(ids) => ids[0].id.clone(),
        Pushed::Whole(jobs) => jobs[0].job.id.clone(),
    }
}

fn lease(wait: &str) -> Lease {
    let wait: Span = wait.parse().unwrap();
    let worker = tenure::ids::this_process().clone();
    Lease { wait, worker, ..Lease::jobs(vec!["q".parse().unwrap()], 1) }
}

/// Ends when a worker calls at this engine.
async fn waits_at(engine: &Arc<Embedded>) {
    let begun = Instant::now();
    let main = Namespace::main();
    while engine.run(&main, ListWorkers::default()).await.unwrap().items.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "no worker calls");
        sleep(Duration::from_millis(5)).await;
    }
}

/// A server that accepts one call, reports it, and answers nothing.
fn silent() -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let (taken, was_taken) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (mut text, mut piece) = (String::new(), [0; 65_536]);
        while !text.ends_with(['}', ']']) {
            let count = stream.read(&mut piece).unwrap();
            assert!(count > 0, "{text}");
            text += std::str::from_utf8(&piece[..count]).unwrap();
        }
        taken.send(text).unwrap();
        let _ = stream.read(&mut piece);
    });
    (at, was_taken)
}

#[test]
fn a_call_that_waits_goes_on_waiting_at_the_next_owner_and_here() {
    let main = Namespace::main();
    let stores = [memory(), memory(), memory()];
    let servers = [owner(&stores[0]), owner(&stores[1])];
    let runtime = Runtime::new().unwrap();
    let (tells, leadership) = member(2, there(servers[0].at, 1));
    runtime.block_on(async {
        let engine = ForwardingEngine::new(leadership);
        let leased = tokio::spawn(engine.run(&main, lease("60s")));
        waits_at(&stores[0]).await;
        let now = |serves| tells.send_modify(|standing| standing.serves = serves);
        now(there(servers[1].at, 2));
        waits_at(&stores[1]).await;
        now(ServingLeader::None("its owner is gone".to_owned()));
        now(here(&stores[2], 3));
        waits_at(&stores[2]).await;
        stores[2].run(&main, job(Some("a"))).await.unwrap();
        let leased = leased.await.unwrap().unwrap();
        assert_eq!(leased.leases[0].job.as_ref().unwrap().id.as_str(), "a");
        // The stores where it waited before grant nothing to it.
        for store in &stores[..2] {
            store.run(&main, job(Some("b"))).await.unwrap();
            assert_eq!(store.run(&main, GetStats).await.unwrap().leases, 0);
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_away_goes_to_the_next_owner_with_the_same_ids() {
    let (at, was_taken) = silent();
    let (tells, leadership) = member(2, there(at, 1));
    let engine = ForwardingEngine::new(leadership);
    let pushed = tokio::spawn(engine.run(&Namespace::main(), job(None)));
    let first = tokio::task::spawn_blocking(move || was_taken.recv_timeout(PATIENCE).unwrap());
    let first = first.await.unwrap();
    let store = memory();
    tells.send_modify(|standing| standing.serves = here(&store, 2));
    let id = id_of(&pushed.await.unwrap().unwrap());
    assert!(first.contains(&format!("\"id\":\"{id}\"")), "{first}");
    for header in [
        "tenure-from-server: 00000000000000000000000000000002\r\n",
        "authorization: Bearer of-the-servers\r\n",
    ] {
        assert!(first.contains(header), "{first}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unrepeatable_call_with_an_unknown_outcome_is_not_resent() {
    let (at, was_taken) = silent();
    let (tells, leadership) = member(2, there(at, 1));
    let engine = ForwardingEngine::trying_for(leadership, PATIENCE);
    let retry = RetryJobs { filter: Default::default(), max: 10, cursor: None };
    let retried = tokio::spawn(engine.run(&Namespace::main(), retry));
    tokio::task::spawn_blocking(move || was_taken.recv_timeout(PATIENCE).unwrap()).await.unwrap();
    tells.send_modify(|standing| standing.serves = here(&memory(), 2));
    let lost = retried.await.unwrap();
    assert!(matches!(lost, Err(CallError::Fault(Fault::Unknown(_)))), "{lost:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_is_waited_for_and_then_the_store_is_unavailable() {
    let main = Namespace::main();
    let (tells, leadership) = member(2, ServingLeader::None("its owner is gone".to_owned()));
    let brief = ForwardingEngine::trying_for(leadership.clone(), Duration::from_millis(20));
    let refused = brief.run(&main, GetStats).await;
    let Err(CallError::Fault(Fault::Unavailable(why))) = refused else { panic!("{refused:?}") };
    assert_eq!(why, "its owner is gone");
    assert_eq!(
        brief.health().degraded.as_deref(),
        Some("no server owns the store: its owner is gone")
    );
    let patient = ForwardingEngine::new(leadership);
    let mut waits = Box::pin(patient.run(&main, GetStats));
    tokio::select! {
        biased;
        answer = &mut waits => panic!("{answer:?}"),
        () = std::future::ready(()) => {}
    }
    tells.send_modify(|standing| standing.serves = here(&memory(), 2));
    waits.await.unwrap();
    assert_eq!(patient.health().degraded, None);
}

#[test]
fn leases_are_undone_at_the_owner() {
    let (main, store) = (Namespace::main(), memory());
    let server = owner(&store);
    let (_, leadership) = member(2, there(server.at, 1));
    let (runtime, engine) = (Runtime::new().unwrap(), ForwardingEngine::new(leadership));
    runtime.block_on(async {
        engine.run(&main, job(Some("a"))).await.unwrap();
        let leased = engine.run(&main, lease("0s")).await.unwrap();
        engine.undo(&main, vec![leased.leases[0].lease.clone().unwrap()]);
        // It is granted to the next call at once, and the first grant does not count.
        let again = store.run(&main, lease("10s")).await.unwrap();
        assert_eq!(again.leases.len(), 1);
        let job = store.run(&main, GetJob { job: "a".parse().unwrap() }).await.unwrap();
        assert_eq!(job.attempt, 1);
    });
}

#[tokio::test(start_paused = true)]
async fn pages_fail_fast_without_a_leader_and_client_reads_wait() {
    let main = Namespace::main();
    let store = memory();
    let (tells, leadership) = member(2, ServingLeader::None("its owner is gone".to_owned()));
    let pages = ForwardingEngine::for_pages(leadership.clone());
    let began = Instant::now();
    for most in [3_100, 3_400] {
        let said = pages.run(&main, GetStats).await.unwrap_err();
        assert!(matches!(&said, CallError::Fault(Fault::Unavailable(_))), "{said}");
        assert!(began.elapsed() < Duration::from_millis(most), "{:?}", began.elapsed());
    }
    let clients = ForwardingEngine::new(leadership);
    let read = tokio::spawn(clients.run(&main, GetStats));
    sleep(Duration::from_secs(7)).await;
    assert!(!read.is_finished());
    tells.send_modify(|standing| standing.serves = here(&store, 3));
    read.await.unwrap().unwrap();
    pages.run(&main, GetStats).await.unwrap();
}

#[tokio::test]
async fn a_page_does_not_wait_long_for_an_owner_that_does_not_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (_tells, leadership) = member(2, there(listener.local_addr().unwrap(), 1));
    let began = Instant::now();
    let said = ForwardingEngine::for_pages(leadership)
        .run(&Namespace::main(), GetStats)
        .await
        .unwrap_err();
    assert!(said.to_string().contains("it has not answered in time"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn a_call_at_an_owner_that_is_cut_off_is_answered_after_a_while() {
    let main = Namespace::main();
    let store = memory();
    let (tells, leadership) = member(1, here(&store, 1));
    let engine = ForwardingEngine::trying_for(leadership, Duration::from_millis(3_300));
    Runtime::new().unwrap().block_on(async {
        store.run(&main, job(Some("a"))).await.unwrap();
        let leased = tokio::spawn(engine.run(&main, lease("60s")));
        // The first call takes the job.
        assert_eq!(leased.await.unwrap().unwrap().leases.len(), 1);
        let leased = tokio::spawn(engine.run(&main, lease("60s")));
        let job = JobRef::Id("a".parse().unwrap());
        let read = GetResult { job, wait: Span::from_s(60), seen: None };
        let read = tokio::spawn(engine.run(&main, read));
        waits_at(&store).await;
        let now = |serves| tells.send_modify(|standing| standing.serves = serves);
        // A short silence changes nothing: the same leadership goes on.
        now(ServingLeader::None("Redis does not answer".to_owned()));
        sleep(Duration::from_millis(50)).await;
        now(here(&store, 1));
        sleep(Duration::from_millis(400)).await;
        assert!(!leased.is_finished() && !read.is_finished());
        now(ServingLeader::None("Redis does not answer".to_owned()));
        let said = leased.await.unwrap().unwrap_err();
        assert!(
            matches!(&said, CallError::Fault(Fault::Unknown(why)) if why.contains("Redis")),
            "{said}"
        );
        let said = read.await.unwrap().unwrap_err();
        assert!(matches!(&said, CallError::Fault(Fault::Unavailable(_))), "{said}");
    });
}
