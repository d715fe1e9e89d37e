//! Servers of our own, over a folder or a Redis, that can be killed and started again.
//!
//! A server is ready when it answers for its store; what it says goes to a file in its folder.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use tenure::{Remote, ServerUrl};
use tenure_core::names::Namespace;
use tenure_core::requests::GetStats;
use tenure_core::secret::Secret;
use tenure_engine_api::{Engine, EngineExt};
use tokio::time::sleep;

use super::{ChildProcess, LOOK_EVERY, ProcessWords, READY_MAX};
use crate::exit::{Failure, NOT_STARTED, UNAVAILABLE};

/// Where a server of ours has its state.
#[derive(Clone, Debug)]
pub enum ServerStore {
    /// In `store`, below the server's own folder.
    Folder {
        /// The value of its `--durability`.
        durability: String,
    },
    /// On the Redis at this address, together with any other servers of the store.
    Redis(Secret),
}

impl ServerStore {
    /// In its folder, with this durability.
    pub fn folder(durability: &str) -> Self {
        ServerStore::Folder { durability: durability.to_owned() }
    }
}

/// A server: `tenure serve`.
#[derive(Debug)]
pub struct ChildServer {
    process: ChildProcess,
    program: PathBuf,
    folder: PathBuf,
    store: ServerStore,
    port: u16,
}

impl ChildServer {
    /// Starts a server, by this `tenure`, on a free port of loopback; its log is in `folder`, and its store too if it
    /// has one there. Returns when it answers.
    pub async fn start(program: &Path, folder: &Path, store: ServerStore) -> Result<Self, Failure> {
        let port = free_port()?;
        let process = spawn(program, folder, &store, port)?;
        let (program, folder) = (program.to_owned(), folder.to_owned());
        let mut server = ChildServer { process, program, folder, store, port };
        server.ready().await?;
        Ok(server)
    }

    pub fn url(&self) -> ServerUrl {
        ServerUrl {
            tls: false,
            host: "127.0.0.1".to_owned(),
            port: self.port,
            prefix: String::new(),
        }
    }

    /// An engine that calls it over HTTP; it repeats nothing.
    pub fn engine(&self) -> Result<Arc<dyn Engine>, Failure> {
        let remote = Remote::open(&self.url(), None);
        Ok(Arc::new(remote.map_err(|why| Failure::new(UNAVAILABLE, why.to_string()))?))
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Sends SIGKILL and waits until the process is gone.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again on the same store and port. Returns when it answers.
    pub async fn restart(&mut self) -> Result<(), Failure> {
        self.process.kill();
        self.process = spawn(&self.program, &self.folder, &self.store, self.port)?;
        self.ready().await
    }

    /// The last line of its log, for a message.
    fn last_words(&self) -> String {
        let text = std::fs::read_to_string(log(&self.folder, self.port)).unwrap_or_default();
        // A hint says what to do, and not what is wrong.
        let told = |line: &&str| !line.trim().is_empty() && !line.starts_with("hint: ");
        text.lines().rev().find(told).unwrap_or("it printed nothing").to_owned()
    }

    async fn ready(&mut self) -> Result<(), Failure> {
        let engine = self.engine()?;
        let until = Instant::now() + READY_MAX;
        loop {
            let error = match engine.run(&Namespace::main(), GetStats).await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            if let Some(status) = self.process.ended() {
                let words = self.last_words();
                let said = format!("the server did not start ({status}): {words}");
                return Err(Failure::new(UNAVAILABLE, said));
            }
            if Instant::now() > until {
                let said = format!("the server does not answer: {error}");
                return Err(Failure::new(UNAVAILABLE, said));
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

fn log(folder: &Path, port: u16) -> PathBuf {
    folder.join(format!("server-{port}.log"))
}

fn spawn(
    program: &Path,
    folder: &Path,
    store: &ServerStore,
    port: u16,
) -> Result<ChildProcess, Failure> {
    let listen = format!("127.0.0.1:{port}");
    let (args, words) = (["serve", "--listen", &listen], ProcessWords::File(log(folder, port)));
    match store {
        ServerStore::Redis(address) => {
            ChildProcess::start_program(program, Some(address), &args, words)
        }
        ServerStore::Folder { durability } => {
            let store = format!("file:{}", folder.join("store").display());
            let more = ["--store", &store, "--durability", durability];
            ChildProcess::start_program(program, None, &[&args[..], &more].concat(), words)
        }
    }
}

/// Below the ports that Linux gives to outgoing connections: otherwise, while a server is down, any connection of its
/// own clients could take its port.
const PORTS: std::ops::Range<u32> = 20_000..32_000;

/// A loopback port that is free now. Another process may take it before the server does, and then the server says so.
pub(super) fn free_port() -> Result<u16, Failure> {
    static LOOKED: AtomicU32 = AtomicU32::new(0);
    // Processes that search at the same time begin at different ports.
    let first = std::process::id().wrapping_mul(37);
    for _ in PORTS {
        let place = first.wrapping_add(LOOKED.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(PORTS.start + place % (PORTS.end - PORTS.start)).unwrap_or(0);
        if port != 0 && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(Failure::new(NOT_STARTED, "there is no free port on loopback"))
}
