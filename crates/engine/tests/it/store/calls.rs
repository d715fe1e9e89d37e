//! Short helpers for calls.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tenure_core::access::TokenName;
use tenure_core::job::{Need, NewJob};
use tenure_core::lease::{Ending, LeaseView, Leased, SettleItem, Worker};
use tenure_core::names::{JobId, LimitName, Namespace, QueueName, WorkerId};
use tenure_core::requests::*;
use tenure_core::secret::Json;
use tenure_core::time::Span;
use tenure_engine::{Durability, Embedded, Fatal, Location, Options};
use tenure_engine_api::{CallError, Engine, EngineExt};
use tenure_testkit::{TempDir, TestClock};

/// Longest wait for anything that must come.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// An engine over a folder of its own, and a clock that stands still.
pub struct Here {
    pub dir: TempDir,
    pub clock: Arc<TestClock>,
    pub engine: Embedded,
}

pub fn options(dir: &TempDir, clock: &Arc<TestClock>) -> Options {
    Options { clock: clock.clone(), ..Options::new(Location::Folder(dir.join("store"))) }
}

impl Here {
    pub fn new() -> Self {
        let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
        let durability = Durability::Everysec;
        let engine = Embedded::open(Options { durability, ..options(&dir, &clock) }).unwrap();
        Here { dir, clock, engine }
    }
    pub fn reopen(&mut self) {
        self.engine = Embedded::open(options(&self.dir, &self.clock)).unwrap();
    }
    pub async fn pass(&self, s: u64) {
        for _ in 0..s {
            self.clock.advance(Span::from_s(1));
            self.engine.settled().await;
        }
    }
}

/// Copies a folder with all that is in it.
pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &to);
        } else {
            std::fs::copy(&path, to).unwrap();
        }
    }
}

/// All files of a folder, also those of the folders in it.
pub fn files_of(folder: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    all.flat_map(|path| if path.is_dir() { files_of(&path) } else { vec![path] }).collect()
}

/// Exit code and message of an engine's end, once it has come.
pub type End = Arc<Mutex<Option<(i32, String)>>>;

/// An engine that reports its end. Callers may be refused before that.
pub fn ends(options: Options) -> (Embedded, End) {
    let end = End::default();
    let tell = end.clone();
    let on_fatal = Arc::new(move |fatal: &Fatal| {
        *tell.lock().unwrap() = Some((fatal.exit_code(), fatal.to_string()));
    });
    (Embedded::open(Options { on_fatal, ..options }).unwrap(), end)
}

/// Waits until the engine has reported its end.
pub async fn told(end: &End) -> (i32, String) {
    let begun = Instant::now();
    loop {
        if let Some(told) = end.lock().unwrap().clone() {
            return told;
        }
        assert!(begun.elapsed() < PATIENCE, "the engine did not tell its end");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

pub fn queue() -> QueueName {
    QueueName::parse("q").unwrap()
}
pub fn job(id: &str) -> NewJob {
    NewJob { id: Some(JobId::parse(id).unwrap()), ..NewJob::new(queue()) }
}
pub fn text(text: &str) -> Json {
    Json::from(text)
}
pub fn lock(name: &str) -> Need {
    Need::Limit { limit: LimitName::parse(&format!("lock:{name}")).unwrap(), weight: 1, cost: 1 }
}

pub async fn run<O: Operation>(engine: &Embedded, request: O) -> Result<O::Reply, CallError> {
    run_in(engine, &Namespace::main(), request).await
}
pub async fn run_in<O: Operation>(
    engine: &Embedded,
    namespace: &Namespace,
    request: O,
) -> Result<O::Reply, CallError> {
    let call = engine.run(namespace, request);
    tokio::time::timeout(PATIENCE, call).await.expect("it is answered")
}
/// A call of a caller whose token has this name.
pub async fn run_by<O: Operation>(
    engine: &Embedded,
    by: &str,
    request: O,
) -> Result<Reply, CallError> {
    let by = TokenName::known(by);
    let call = engine.call_by(by.as_ref(), &Namespace::main(), request.into());
    tokio::time::timeout(PATIENCE, call).await.expect("it is answered")
}
pub async fn push(engine: &Embedded, jobs: Vec<NewJob>) -> Vec<PushedId> {
    match run(engine, Push { jobs, answer: PushAnswer::Ids }).await.unwrap() {
        Pushed::Ids(ids) => ids,
        Pushed::Whole(_) => panic!("ids were asked for"),
    }
}
pub fn ask(max: usize, wait_s: u64) -> Lease {
    let worker = Worker { id: Some(WorkerId::parse("w").unwrap()), ..Worker::default() };
    Lease { wait: Span::from_s(wait_s), worker, ..Lease::jobs(vec![queue()], max) }
}
pub async fn take(engine: &Embedded, max: usize) -> Vec<LeaseView> {
    run(engine, ask(max, 0)).await.unwrap().leases
}
pub fn ending(lease: &LeaseView, ending: Ending) -> SettleItem {
    let lease = lease.lease.clone().unwrap();
    SettleItem::new(lease, ending)
}
pub async fn settle(engine: &Embedded, items: Vec<SettleItem>) -> Settled {
    run(engine, Settle::of(items)).await.unwrap()
}
pub fn done(lease: &LeaseView) -> SettleItem {
    ending(lease, Ending::Succeeded { result: Some(text("fine")) })
}

/// A lease call that borrows nothing: nothing is sent before it is polled.
pub fn call(
    engine: &Embedded,
    lease: Lease,
) -> std::pin::Pin<Box<dyn Future<Output = Result<Leased, CallError>> + Send>> {
    let answer = engine.call(&Namespace::main(), lease.into());
    Box::pin(async move { Ok(Lease::reply(answer.await?).expect("the reply to a lease")) })
}

/// Runs a test on a small runtime.
pub fn block<T>(test: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap().block_on(test)
}
