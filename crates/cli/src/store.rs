//! The one place that opens an engine: from the address of TENURE_URL and the token of TENURE_TOKEN.
//!
//! All commands speak to what is opened here, and none knows what it is. A call whose outcome is
//! unknown is repeated here, with the same ids, and nowhere else.

use std::sync::Arc;

use tenure::remote::{Remote, RemoteError};
use tenure::repeat::Repeat;
use tenure::url::StoreUrl;
use tenure_core::names::Namespace;
use tenure_core::requests::Operation;
use tenure_core::secret::Secret;
use tenure_engine::{CallError, Engine, EngineExt};

use crate::exit::{Failure, UNAVAILABLE};

/// An engine and the namespace that this command speaks of.
#[derive(Clone)]
pub struct Store {
    /// As it is: for who repeats by himself.
    engine: Arc<dyn Engine>,
    repeat: Repeat,
    namespace: Namespace,
}

impl Store {
    /// Opens what an address names. Nothing is sent before the first call.
    pub fn open(url: &str, namespace: Namespace) -> Result<Self, Failure> {
        let url: StoreUrl = url
            .parse()
            .map_err(|error| Failure::usage(format!("{error}")).hint("see --url and TENURE_URL"))?;
        let engine: Arc<dyn Engine> = match &url {
            StoreUrl::Server(server) => {
                let token = token()?;
                let remote = Remote::open(server, token.as_ref()).map_err(|error| match error {
                    RemoteError::Token => Failure::usage(format!("TENURE_TOKEN: {error}")),
                    error => Failure::new(UNAVAILABLE, error.to_string()),
                })?;
                Arc::new(remote)
            }
            other => {
                return Err(Failure::usage(format!("'{other}' cannot be opened by this command"))
                    .hint("run `tenure serve` on it, and name the server with --url"));
            }
        };
        Ok(Store::of(engine, namespace))
    }

    fn of(engine: Arc<dyn Engine>, namespace: Namespace) -> Self {
        Store { repeat: Repeat::new(engine.clone()), engine, namespace }
    }

    /// A store on any engine.
    #[cfg(test)]
    pub fn on(engine: Arc<dyn Engine>) -> Self {
        Store::of(engine, Namespace::main())
    }

    /// The engine itself, which repeats nothing: the keeper of leases repeats by himself.
    pub fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    /// The namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Answers one request; an unknown outcome is asked for again.
    pub async fn run<O: Operation>(&self, request: O) -> Result<O::Reply, CallError> {
        self.repeat.run(&self.namespace, request).await
    }
}

/// The token; one that is empty is none.
fn token() -> Result<Option<Secret>, Failure> {
    match std::env::var("TENURE_TOKEN") {
        Ok(token) if token.is_empty() => Ok(None),
        Ok(token) => Ok(Some(Secret::new(token))),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(Failure::usage("TENURE_TOKEN is not UTF-8").hint("set it to the server's token"))
        }
    }
}
