//! Targets of a measurement: an engine in this process, or a server over HTTP. Each has an empty
//! store: a folder that goes with it, or a part of our scratch of a Redis.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tenure_console::child_processes::{ChildServer, ServerStore, temporary_folder};
use tenure_console::exit::{Failure, UNAVAILABLE};
use tenure_console::scratch::Scratch;
use tenure_core::names::Namespace;
use tenure_core::requests::Operation;
use tenure_engine::{Durability, Embedded, Location, Options};
use tenure_engine_api::{Engine, EngineExt};

use super::args::word;
use super::shared::OwningMember;
use crate::under_test;

/// Where the engine is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    InProcess,
    /// In a server, called over HTTP.
    Http,
    /// In a server, called by way of another one that forwards calls to it.
    PassedOn,
}

impl Place {
    /// Its name in the output.
    pub fn word(self) -> &'static str {
        match self {
            Place::InProcess => "in_process",
            Place::Http => "http",
            Place::PassedOn => "http_passed_on",
        }
    }
}

/// The place where state is kept.
#[derive(Clone, Copy, Debug)]
pub enum Under<'a> {
    /// Temporary folders that are made for the measurement.
    Folder {
        durability: Durability,
        /// The folder for them; `None`: the system's temporary folder.
        dir: Option<&'a Path>,
    },
    Redis(&'a Scratch),
}

impl Under<'_> {
    /// The durability of answers; the default on a Redis, which decides itself.
    pub fn durability(self) -> Durability {
        match self {
            Under::Folder { durability, .. } => durability,
            Under::Redis(_) => Durability::default(),
        }
    }

    /// The name of its durability in the output.
    pub fn word(self) -> &'static str {
        match self {
            Under::Folder { durability, .. } => word(durability),
            Under::Redis(_) => "redis",
        }
    }
}

/// An engine with an empty store. Its parts are dropped in this order.
pub struct Target {
    engine: Arc<dyn Engine>,
    _member: Option<OwningMember>,
    _servers: Vec<ChildServer>,
    folder: tempfile::TempDir,
}

impl Target {
    /// Opens a target with a store of its own.
    pub async fn open(place: Place, under: Under<'_>) -> Result<Self, Failure> {
        Target::with_events(place, under, None).await
    }

    /// The same in this process, with at most this many bytes of events; 0: none are kept.
    pub async fn keeping_events(under: Under<'_>, bytes: u64) -> Result<Self, Failure> {
        Target::with_events(Place::InProcess, under, Some(bytes)).await
    }

    async fn with_events(
        place: Place,
        under: Under<'_>,
        events_bytes: Option<u64>,
    ) -> Result<Self, Failure> {
        static PARTS: AtomicU32 = AtomicU32::new(0);
        let dir = match under {
            Under::Folder { dir, .. } => dir,
            Under::Redis(_) => None,
        };
        let folder = temporary_folder(dir)?;
        let part = match under {
            Under::Folder { .. } => None,
            Under::Redis(scratch) => {
                // Other processes of this measurement use the same scratch.
                let n = PARTS.fetch_add(1, Ordering::Relaxed);
                Some(scratch.part(&format!("{}-{n}", std::process::id()))?)
            }
        };
        let (mut member, mut servers) = (None, Vec::new());
        let engine: Arc<dyn Engine> = match (place, part) {
            (Place::InProcess, Some(part)) => {
                member.insert(OwningMember::of(&part, events_bytes).await?).engine()
            }
            (Place::InProcess, None) => {
                Arc::new(opened(folder.path(), under.durability(), events_bytes)?)
            }
            (Place::Http | Place::PassedOn, part) => {
                let store = match part {
                    Some(part) => ServerStore::Redis(part.url().clone()),
                    None => ServerStore::folder(under.word()),
                };
                // The first server leads the store, and the next one forwards calls.
                let count = if place == Place::PassedOn { 2 } else { 1 };
                for _ in 0..count {
                    servers.push(under_test::server(folder.path(), store.clone()).await?);
                }
                let asked = servers.last().ok_or_else(|| Failure::bug("no server was started"))?;
                asked.engine()?
            }
        };
        Ok(Target { engine, _member: member, _servers: servers, folder })
    }

    /// The engine, without retries.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Closes the engine and keeps its folder, to be opened again with [`embedded`].
    pub fn close(self) -> tempfile::TempDir {
        self.folder
    }

    pub async fn run<O: Operation>(&self, request: O) -> Result<O::Reply, Failure> {
        Ok(self.engine.run(&Namespace::main(), request).await?)
    }
}

/// The embedded engine over the store of a target's folder.
pub fn embedded(folder: &Path, durability: Durability) -> Result<Embedded, Failure> {
    opened(folder, durability, None)
}

fn opened(
    folder: &Path,
    durability: Durability,
    events_bytes: Option<u64>,
) -> Result<Embedded, Failure> {
    let usual = Options::new(Location::Folder(folder.join("store")));
    let events_bytes = events_bytes.unwrap_or(usual.events_bytes);
    let options = Options { durability, events_bytes, ..usual };
    Embedded::open(options).map_err(|error| Failure::new(UNAVAILABLE, error.to_string()))
}
