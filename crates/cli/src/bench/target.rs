//! What is measured: an engine in this process, or a server of our own binary over HTTP. Each has an
//! empty store in a folder that goes with it.

use std::path::Path;
use std::sync::Arc;

use tenure_core::names::Namespace;
use tenure_core::requests::Operation;
use tenure_engine::{Engine, EngineExt};
use tenure_engine_embedded::{Durability, Embedded, Location, Options};

use super::args::word;
use crate::exit::{Failure, UNAVAILABLE};
use crate::own::{OwnServer, temporary_folder};

/// Where the engine is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In this process.
    InProcess,
    /// In a server, asked over HTTP.
    Http,
}

/// An engine with an empty store. Its parts are dropped in this order.
pub struct Target {
    engine: Arc<dyn Engine>,
    _server: Option<OwnServer>,
    folder: tempfile::TempDir,
}

impl Target {
    /// Opens it; `dir` is where its folder is made.
    pub async fn open(
        place: Place,
        durability: Durability,
        dir: Option<&Path>,
    ) -> Result<Self, Failure> {
        let folder = temporary_folder(dir)?;
        match place {
            Place::InProcess => {
                let engine = Arc::new(embedded(folder.path(), durability)?);
                Ok(Target { engine, _server: None, folder })
            }
            Place::Http => {
                let server = OwnServer::start(folder.path(), word(durability)).await?;
                Ok(Target { engine: server.engine()?, _server: Some(server), folder })
            }
        }
    }

    /// The engine; nothing is repeated.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Closes the engine and keeps its folder, to be opened again with [`embedded`].
    pub fn close(self) -> tempfile::TempDir {
        self.folder
    }

    /// One request.
    pub async fn run<O: Operation>(&self, request: O) -> Result<O::Reply, Failure> {
        Ok(self.engine.run(&Namespace::main(), request).await?)
    }
}

/// The embedded engine over the store of a target's folder.
pub fn embedded(folder: &Path, durability: Durability) -> Result<Embedded, Failure> {
    let location = Location::Folder(folder.join("store"));
    let options = Options { durability, ..Options::new(location) };
    Embedded::open(options).map_err(|error| Failure::new(UNAVAILABLE, error.to_string()))
}
