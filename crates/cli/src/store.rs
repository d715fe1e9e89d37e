//! The one place that opens an engine: from the address of TENURE_URL and the token of TENURE_TOKEN.
//!
//! All commands call the store through the library's [`Client`], and none knows its kind.

use std::sync::{Arc, OnceLock};

use tenure::Client;
use tenure::remote::{Callee, Remote, RemoteError};
use tenure::url::StoreUrl;
use tenure_core::names::Namespace;
use tenure_core::secret::Secret;
use tenure_engine::{Embedded, Fatal, Location, OpenError, Options};
use tenure_engine_api::Engine;

use crate::exit::{BUG, DISK, Failure, NOT_STARTED, UNAVAILABLE};
use crate::settings::profile;
use crate::settings::seal_file;
use crate::settings::token::own_token;
use crate::settings::trust::trust;

/// An opened store, with the parts to close at the end.
pub struct OpenedStore {
    /// The calls on it, in the namespace of this command.
    pub client: Client,
    /// A store within this process.
    embedded: Option<Arc<Embedded>>,
    /// Why the store within this process stopped, if it had to.
    fatal: Arc<OnceLock<Failure>>,
}

/// The address of a store or a server, as `--url` names it.
pub fn address(url: &str) -> Result<StoreUrl, Failure> {
    url.parse().map_err(|why| Failure::usage(format!("{why}")).hint("see --url and TENURE_URL"))
}

impl OpenedStore {
    /// Opens the store of an address, inside of a runtime. No call is made before the first request. `accept_loss` is
    /// for a damaged folder.
    pub fn open(url: &str, namespace: Namespace, accept_loss: bool) -> Result<Self, Failure> {
        let url = address(url)?;
        if accept_loss && !matches!(url, StoreUrl::File(_)) {
            return Err(Failure::usage("--accept-loss is for a folder")
                .hint("name it with --url file:PATH, or see `tenure serve --accept-loss`"));
        }
        match url {
            StoreUrl::Server(_) | StoreUrl::Servers(_) | StoreUrl::Redis(_) => {
                let callee = Callee::of(&url).ok_or_else(|| Failure::bug("no server is called"))?;
                OpenedStore::remote(callee, namespace)
            }
            StoreUrl::Memory => OpenedStore::embedded(Location::Memory, namespace, false),
            StoreUrl::File(folder) => {
                OpenedStore::embedded(Location::Folder(folder), namespace, accept_loss)
            }
        }
    }

    /// A store within this process. No other process can use its folder until it is closed.
    fn embedded(
        location: Location,
        namespace: Namespace,
        accept_loss: bool,
    ) -> Result<Self, Failure> {
        warnings();
        let fatal = Arc::new(OnceLock::new());
        let told = fatal.clone();
        let seal = seal_file::of_environment()?;
        let mut options = Options { accept_loss, seal, ..Options::new(location) };
        options.on_fatal = Arc::new(move |why: &Fatal| {
            let code = u8::try_from(why.exit_code()).unwrap_or(BUG);
            // Only the first reason counts: later ones follow from it.
            let _ = told.set(Failure::new(code, why.to_string()));
        });
        let embedded = Arc::new(Embedded::open(options).map_err(|error| not_opened(&error))?);
        let opened = OpenedStore::of(embedded.clone(), namespace);
        Ok(OpenedStore { embedded: Some(embedded), fatal, ..opened })
    }

    fn remote(callee: Callee, namespace: Namespace) -> Result<Self, Failure> {
        Ok(OpenedStore::of(Arc::new(remote(callee)?), namespace))
    }

    fn of(engine: Arc<dyn Engine>, namespace: Namespace) -> Self {
        let client = Client::new(engine, namespace);
        OpenedStore { client, embedded: None, fatal: Arc::default() }
    }

    /// Closes the store, and returns why it stopped, if it had to. Blocks until all is written.
    pub async fn close(&self) -> Option<Failure> {
        if let Some(embedded) = &self.embedded {
            embedded.close();
        }
        self.fatal.get().cloned()
    }
}

/// The servers of a store, with the token of this command. Nothing is sent yet.
pub fn remote(callee: Callee) -> Result<Remote, Failure> {
    let token = token()?;
    Remote::trusting(callee, token.as_ref(), &trust()).map_err(|error| match error {
        RemoteError::Token => Failure::usage(format!("TENURE_TOKEN: {error}")),
        // Files that the command line names, and can check itself.
        RemoteError::Tls(error) => Failure::usage(error.to_string()),
        error => Failure::new(UNAVAILABLE, error.to_string()),
    })
}

/// Sends the warnings of an engine in this process to stderr.
fn warnings() {
    let lines = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .with_max_level(tracing::Level::WARN);
    // A second store of this process finds it set already.
    let _ = lines.try_init();
}

/// The token of a client: its variable, otherwise that of its profile.
pub fn token() -> Result<Option<Secret>, Failure> {
    match own_token()? {
        Some(token) => Ok(Some(token)),
        None => profile::token(),
    }
}

/// The failure of a command whose store cannot be opened.
pub fn not_opened(error: &OpenError) -> Failure {
    let code = match error {
        OpenError::Locked { .. }
        | OpenError::Newer { .. }
        | OpenError::Foreign { .. }
        | OpenError::Missing { .. }
        | OpenError::Frozen { .. }
        | OpenError::Unfinished { .. }
        | OpenError::Closed
        | OpenError::Sealed { .. }
        | OpenError::Journal(_) => UNAVAILABLE,
        OpenError::Folder { .. }
        | OpenError::Incomplete { .. }
        | OpenError::Store { .. }
        | OpenError::Row { .. }
        | OpenError::Shorter { .. }
        | OpenError::Unreadable { .. }
        | OpenError::OtherRows { .. } => DISK,
        OpenError::System(_) => NOT_STARTED,
    };
    Failure::told(code, &error.to_string())
}
