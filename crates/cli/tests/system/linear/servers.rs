//! Servers that share a store: killed, stood still, and asked at random.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tenure::{Remote, ServerUrl};
use tenure_core::names::Namespace;
use tenure_core::requests::{GetStats, Request};
use tenure_engine_api::{CallFuture, Engine, EngineExt, Health};
use tenure_testkit::redis::free_port;
use tenure_testkit::tenure::Process;
use tenure_testkit::{Dice, TempDir};

use crate::tenure;

/// A server answers within this after its start, also on a machine that builds meanwhile.
const READY_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// One server. It is killed when this is dropped.
struct Server {
    port: u16,
    process: Process,
}

/// All servers of one store.
pub struct Servers {
    store: String,
    all: Vec<Server>,
    /// The folder of their logs.
    words: TempDir,
}

impl Servers {
    /// Starts this many, and waits until each answers.
    pub async fn start(store: String, count: usize) -> Self {
        let mut servers = Servers { store, all: Vec::new(), words: TempDir::new() };
        for _ in 0..count {
            let port = free_port();
            let process = servers.spawn(port);
            servers.all.push(Server { port, process });
        }
        for remote in servers.remotes() {
            let begin = Instant::now();
            while let Err(why) = remote.run(&Namespace::main(), GetStats).await {
                let waited = begin.elapsed();
                assert!(
                    waited < READY_WITHIN,
                    "a server does not answer: {why}\n{}",
                    servers.said()
                );
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
        servers
    }

    fn spawn(&self, port: u16) -> Process {
        let words = self.words.path().join(format!("{port}.log"));
        let words = std::fs::File::options().create(true).append(true).open(words);
        let mut command = tenure(&["serve", "--listen", &format!("127.0.0.1:{port}")]);
        command.env("TENURE_STORE", &self.store).stdout(Stdio::null());
        Process::start(command.stderr(words.expect("a file of its own")), READY_WITHIN)
    }

    /// The logs of all, for a message.
    pub fn said(&self) -> String {
        let said = |server: &Server| {
            let log = self.words.path().join(format!("{}.log", server.port));
            format!("{}: {}", server.port, std::fs::read_to_string(log).unwrap_or_default())
        };
        self.all.iter().map(said).collect::<Vec<_>>().join("\n")
    }

    /// One engine for each, which repeats nothing.
    pub fn remotes(&self) -> Vec<Remote> {
        let remote = |server: &Server| {
            let (host, prefix) = ("127.0.0.1".to_owned(), String::new());
            let url = ServerUrl { tls: false, host, port: server.port, prefix };
            Remote::open(&url, None).expect("an engine for an address")
        };
        self.all.iter().map(remote).collect()
    }

    /// The place of the server that says that it leads the store.
    pub fn owner(&self) -> Option<usize> {
        self.all.iter().position(|server| crate::owner::owns(server.port))
    }

    /// Sends SIGKILL, and waits for the end.
    pub fn kill(&mut self, place: usize) {
        self.all[place].process.kill();
    }

    /// Starts another in the place of one that was killed.
    pub fn restart(&mut self, place: usize) {
        self.all[place].process = self.spawn(self.all[place].port);
    }

    /// Lets one stand still, or go on.
    pub fn signal(&self, place: usize, signal: Signal) {
        self.all[place].process.signal(signal);
    }
}

/// Asks any of the servers with each call.
pub struct AnyServer {
    servers: Vec<Remote>,
    dice: Mutex<Dice>,
}

impl AnyServer {
    /// All servers as one engine.
    pub fn of(servers: Vec<Remote>, dice: Dice) -> Arc<dyn Engine> {
        Arc::new(AnyServer { servers, dice: Mutex::new(dice) })
    }

    fn one(&self) -> &Remote {
        let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        &self.servers[dice.below(self.servers.len() as u64) as usize]
    }
}

impl Engine for AnyServer {
    fn call(&self, namespace: &Namespace, request: Request) -> CallFuture {
        self.one().call(namespace, request)
    }
    fn health(&self) -> Health {
        Health { degraded: None, store: "remote" }
    }
    fn undo(&self, namespace: &Namespace, leases: Vec<String>) {
        self.one().undo(namespace, leases);
    }
    fn drain(&self) {}
}
