//! A server inside a Rust program: it opens its store, takes calls, and has a client that calls the engine in this
//! process.
//!
//! This is the only part of the crate that opens a store, and it needs the crate feature `program`. `tenure serve`
//! shares [`SharedStore`] and [`Advertised`] with it. Nothing here decides about the leader of a store, or knows a rule
//! of jobs.

mod advertised;
mod asks;
mod backups;
mod builder;
mod opened;
mod shared;
mod unreachable;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use tenure::Client;
use tenure_engine::Fatal;
use tenure_engine_api::Engine;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

pub use self::advertised::Advertised;
pub use self::backups::OwnBackups;
pub use self::builder::{ServerBuilder, StartError};
use self::opened::OpenedPlace;
pub use self::shared::{SharedStore, node_options};
use crate::accept::DrainReport;
use crate::trail::Trail;
pub use tenure_node::StoreSettings;

/// A running server on a store, in this program.
///
/// If this server leads the store, its [`client`](Server::client) calls the engine without a connection between,
/// otherwise it calls the leader by HTTP. Clients and other servers of the store call it at its [`url`](Server::url).
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tenure_server::Server;
///
/// let server = Server::open("memory:").listen("127.0.0.1:0").start().await?;
/// let client = server.client();
/// let id = client.push("mail").payload(&"ann@example.com")?.await?.id;
///
/// let elsewhere = tenure::Client::connect(&server.url()).await?;
/// assert_eq!(elsewhere.get_job(tenure::JobRef::Id(id)).await?.queue.to_string(), "mail");
/// server.close().await;
/// # Ok(())
/// # }
/// ```
///
/// Dropping it without [`close`](Server::close) is a crash: calls are cut off, and a shared store is not handed over,
/// so the other servers wait until they know that this one is gone.
pub struct Server {
    at: SocketAddr,
    url: String,
    client: Client,
    opened: OpenedPlace,
    trail: Trail,
    fatal: watch::Receiver<Option<Fatal>>,
    shutdown: Option<oneshot::Sender<()>>,
    serving: JoinHandle<DrainReport>,
    /// Background tasks, aborted when the server is dropped.
    _beside: JoinSet<()>,
}

impl Server {
    /// A server on the store at this address, for settings and a start.
    ///
    /// | address | what it is |
    /// | --- | --- |
    /// | `memory:` | in this process, gone with it |
    /// | `file:PATH` | a folder, made if it is not there, that this process alone has open |
    /// | `redis://HOST:PORT/DB`, `rediss:`, `valkey:`, `redis-sentinel:`, `redis-cluster:` | a store in Redis or Valkey, shared by all servers that name it: one leads it |
    pub fn open(store: &str) -> ServerBuilder {
        ServerBuilder::new(store)
    }

    /// The address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.at
    }

    /// The URL that the server advertises to clients and to other servers.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Calls the store from this process, in the namespace `default`. For another one: [`Client::new`] with
    /// [`engine`](Server::engine).
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Answers calls of this process, wherever the store is served.
    pub fn engine(&self) -> Arc<dyn Engine> {
        self.client.engine().clone()
    }

    /// Ends when the store had to stop: its disk is full or broken, its folder was moved, or there is a bug. From then
    /// on calls are refused, and the program must start a new server. A shared store goes on elsewhere and never ends
    /// this.
    pub async fn stopped(&self) -> Fatal {
        match self.fatal.clone().wait_for(Option::is_some).await.ok().and_then(|why| why.clone()) {
            Some(why) => why,
            None => std::future::pending().await,
        }
    }

    /// Ends the server: waiting lease calls get an empty answer, all other calls are answered, a shared store is handed
    /// over, and a folder is free for another process. Afterwards the client's calls are refused.
    pub async fn close(mut self) -> DrainReport {
        if let Some(shutdown) = self.shutdown.take() {
            // If the server has ended before, nobody listens.
            let _ = shutdown.send(());
        }
        let report = (&mut self.serving).await;
        self.opened.close().await;
        let trail = self.trail.clone();
        if let Err(why) = tokio::task::spawn_blocking(move || trail.close()).await {
            tracing::error!("the trail was not closed: {why}");
        }
        report.unwrap_or_else(|why| match why.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => DrainReport { answered: 0, cut: 0 },
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.shutdown.take().is_some() {
            self.serving.abort();
            self.opened.crash();
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("url", &self.url).finish_non_exhaustive()
    }
}
