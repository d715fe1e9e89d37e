//! A server inside a Rust program: it opens its store, takes the calls of others, and has a client that calls the engine in
//! this process.
//!
//! It is the one part of this crate that opens a store; a crate feature, `program`, for those who want it. `tenure serve` has the
//! parts in common: [`SharedStore`], [`Advertised`]. Nothing here decides who owns a store or knows a rule of jobs.

mod advertised;
mod asks;
mod builder;
mod opened;
mod shared;
mod unreachable;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use tenure::Client;
use tenure_engine::Fatal;
use tenure_seam::Engine;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

pub use self::advertised::Advertised;
pub use self::builder::{ServerBuilder, StartError};
use self::opened::OpenedPlace;
pub use self::shared::{SharedStore, member_options};
use crate::accept::DrainReport;
pub use tenure_member::StoreSettings;

/// A running server on a store, in this program.
///
/// Its [`client`](Server::client) calls the engine without a connection between, if this server owns the store, and the owner by
/// HTTP otherwise. Other servers of the store and clients call it at its [`url`](Server::url).
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
/// Dropping it without [`close`](Server::close) is a crash: calls are cut off, and a store that several servers share is not
/// handed over, so the others wait until they know that this one is gone.
pub struct Server {
    at: SocketAddr,
    url: String,
    client: Client,
    opened: OpenedPlace,
    fatal: watch::Receiver<Option<Fatal>>,
    shutdown: Option<oneshot::Sender<()>>,
    serving: JoinHandle<DrainReport>,
    /// What runs beside it for as long as it does.
    _beside: JoinSet<()>,
}

impl Server {
    /// Begins to say what a server is to be: one on the store at this address.
    ///
    /// | address | what it is |
    /// | --- | --- |
    /// | `memory:` | in this process, gone with it |
    /// | `file:PATH` | a folder, made if it is not there, that this process alone has open |
    /// | `redis://HOST:PORT/DB`, `rediss:`, `valkey:`, `redis-sentinel:`, `redis-cluster:` | a store in Redis or Valkey, which all servers that name it share: one owns it |
    pub fn open(store: &str) -> ServerBuilder {
        ServerBuilder::new(store)
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.at
    }

    /// Where other servers and clients reach it, as it says itself.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Calls the store from this process, in the namespace `default`. For another one: [`Client::new`] with
    /// [`engine`](Server::engine).
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// What this process's calls are answered by, wherever the store is served.
    pub fn engine(&self) -> Arc<dyn Engine> {
        self.client.engine().clone()
    }

    /// Ends when the store had to stop: its disk is full or broken, its folder was moved, or there is a bug. Calls are refused
    /// from then on; a server has to be started anew. A store that several servers share goes on elsewhere and never ends this.
    pub async fn stopped(&self) -> Fatal {
        match self.fatal.clone().wait_for(Option::is_some).await.ok().and_then(|why| why.clone()) {
            Some(why) => why,
            None => std::future::pending().await,
        }
    }

    /// Ends it: calls that wait for a lease are answered with none, all others are answered, a store that several servers share
    /// is handed over, and a folder is free for another process. A client of it is refused afterwards.
    pub async fn close(mut self) -> DrainReport {
        if let Some(shutdown) = self.shutdown.take() {
            // It ended before: then there is nothing to tell.
            let _ = shutdown.send(());
        }
        let report = (&mut self.serving).await;
        self.opened.close().await;
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
