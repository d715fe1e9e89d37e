//! Servers of the demo and their state: one over a folder, or two that share a Redis.
//!
//! It starts and kills nothing by itself, except the Redis that it was asked for.

use std::path::Path;

use crate::child_processes::{ChildRedis, ChildServer, ServerStore};
use crate::exit::Failure;
use crate::scratch::Scratch;

/// `--store` that names no address: a Redis of the demo's own.
const OWN: &str = "redis";

/// Where the state is.
pub enum DemoPlace {
    /// In a temporary folder.
    Folder,
    /// On a Redis that is started for the demo.
    ChildRedis,
    /// In a scratch part of somebody's Redis.
    Redis(Box<Scratch>),
}

impl DemoPlace {
    /// Parses the value of `--store`.
    pub fn of(store: Option<&str>) -> Result<Self, Failure> {
        let Some(store) = store else { return Ok(DemoPlace::Folder) };
        match store {
            OWN => Ok(DemoPlace::ChildRedis),
            _ => Scratch::of(store, "demo")
                .map(|scratch| DemoPlace::Redis(Box::new(scratch)))
                .map_err(|no| no.hint("name a Redis (redis://HOST:6379), or write --store redis")),
        }
    }

    /// Removes what the demo wrote in another's Redis.
    pub async fn leave(&self) -> Result<(), Failure> {
        match self {
            DemoPlace::Folder | DemoPlace::ChildRedis => Ok(()),
            DemoPlace::Redis(scratch) => scratch.clear().await,
        }
    }
}

/// The servers; at least one. Dropped in this order.
pub struct Servers {
    all: Vec<ChildServer>,
    _redis: Option<ChildRedis>,
}

impl Servers {
    /// Starts them; what they write is in `folder`.
    pub async fn start(place: &DemoPlace, folder: &Path) -> Result<Self, Failure> {
        let mut redis = None;
        let (store, count) = match place {
            DemoPlace::Folder => (ServerStore::folder("always"), 1),
            DemoPlace::ChildRedis => {
                let own = redis.insert(ChildRedis::start(folder).await?).url();
                (ServerStore::Redis(own), 2)
            }
            DemoPlace::Redis(scratch) => {
                // Servers would wait for it; the user who names one that is away should know at
                // once.
                scratch.reach().await?;
                (ServerStore::Redis(scratch.url().clone()), 2)
            }
        };
        let mut all = Vec::new();
        let own = std::env::current_exe()
            .map_err(|error| Failure::file("cannot find this program", &error))?;
        for _ in 0..count {
            all.push(ChildServer::start(&own, folder, store.clone()).await?);
        }
        Ok(Servers { all, _redis: redis })
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The one that is killed.
    pub fn mortal(&mut self) -> &mut ChildServer {
        &mut self.all[0]
    }

    /// The killed one, in words for people.
    pub fn which(&self) -> &'static str {
        if self.all.len() > 1 { "one of the servers" } else { "the server" }
    }

    /// The server that is not killed; the only one, if there is no other.
    pub fn lasting(&self) -> &ChildServer {
        &self.all[self.all.len() - 1]
    }

    /// The server that a worker talks to. The last of several has the worker that is killed, and
    /// one that goes on.
    pub fn of_worker(&self, n: usize) -> &ChildServer {
        &self.all[n.min(self.all.len() - 1)]
    }

    /// For people, a line each.
    pub fn described(&self) -> impl Iterator<Item = String> {
        self.all.iter().map(|server| format!("a server: {} (pid {})", server.url(), server.pid()))
    }
}
