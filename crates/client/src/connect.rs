//! Makes a client from an address: the scheme selects the engine.

use std::fmt;
use std::future::{Future, IntoFuture};
#[cfg(feature = "http")]
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::secret::Secret;
use tenure_engine_api::Engine;

use crate::client::Client;
use crate::codec::Codec;
use crate::opened::Opened;
use crate::url::{StoreUrl, UrlError};

/// A client to be opened, from [`Client::connect`]: add a token or a namespace if needed, then await it.
#[must_use = "nothing is opened until this is awaited"]
pub struct Connect {
    url: String,
    namespace: Option<String>,
    token: Option<Secret>,
    codec: Option<Arc<dyn Codec>>,
    #[cfg(feature = "http")]
    trust: crate::remote::Trust,
}

/// Not derived: an address may carry a password, so it is not shown.
impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

/// Why no client could be made. The texts never show a password or a token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address is invalid.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The namespace's name is invalid.
    #[error("{}", .0.detail)]
    Namespace(Refusal),
    /// A token was given for a store that uses none.
    #[error(
        "a token is for a server (http:// or https://), and this address is another store; leave it out"
    )]
    TokenForStore,
    /// This program was compiled without support for such an address.
    #[error(
        "this program was built without \"{feature}\", which the address needs; add it to the features of tenure in Cargo.toml"
    )]
    NotBuilt {
        /// The cargo feature of this crate.
        feature: &'static str,
    },
    /// The HTTP client of a server could not be set up.
    #[cfg(feature = "http")]
    #[error(transparent)]
    Server(#[from] crate::remote::RemoteError),
    /// The folder cannot be opened.
    #[cfg(feature = "embedded")]
    #[error(transparent)]
    Folder(#[from] tenure_engine::OpenError),
}

impl Client {
    /// A client for an address; await it, inside of a tokio runtime.
    ///
    /// | address | what it is | cargo feature |
    /// | --- | --- | --- |
    /// | `http://HOST:PORT`, `https://HOST`, `tenure://HOST` | a server | `http` (default) |
    /// | several of these with commas between | servers that share one store: the first that answers is used | `http` (default) |
    /// | `redis://HOST:PORT/DB`, `rediss:`, `valkey:`, `redis-sentinel:`, `redis-cluster:` | a store in Redis or Valkey: its servers are looked up there, and its owner is called | `redis` |
    /// | `file:PATH` | a folder that this process alone has open | `embedded` |
    /// | `memory:` | in this process, gone with it | `embedded` |
    ///
    /// No call is made: the first call reports a server or a Redis that is away. A folder is opened and read.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use tenure::{Client, Secret};
    ///
    /// let client = Client::connect("http://127.0.0.1:7171").await?;
    /// let of_tenant = Client::connect("https://tenure.example.com")
    ///     .token(Secret::new("geheim"))
    ///     .namespace("tenant-7")
    ///     .await?;
    /// // A private authority, and a server that asks its clients for certificates.
    /// let of_our_own = Client::connect("https://tenure.internal")
    ///     .ca("authority.pem")
    ///     .client_certificate("client.pem", "client.key")
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // A store of this process alone, gone with it.
    /// let client = tenure::Client::connect("memory:").await?;
    /// client.push("mail").await?;
    /// client.close().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// An invalid address; a store that cannot be opened; a missing feature. See [`ConnectError`].
    pub fn connect(url: &str) -> Connect {
        Connect {
            url: url.to_owned(),
            namespace: None,
            token: None,
            codec: None,
            #[cfg(feature = "http")]
            trust: Default::default(),
        }
    }
}

impl Connect {
    /// All calls of this client are made in this namespace. `default` unless given.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// The token of a server. An empty one counts as none.
    pub fn token(mut self, token: Secret) -> Self {
        self.token = Some(token).filter(|token| !token.reveal().is_empty());
        self
    }

    /// Seals payloads, results and progress, and opens them: see [`Client::codec`].
    pub fn codec(mut self, codec: impl Codec) -> Self {
        self.codec = Some(Arc::new(codec));
        self
    }

    /// The authority of a server's certificate (`https://`): a PEM file, which takes the place of the system's authorities.
    /// Without effect on other addresses.
    #[cfg(feature = "http")]
    pub fn ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.trust.ca = Some(file.into());
        self
    }

    /// The certificate for a server that asks its clients for one (`https://`): a PEM file with the certificate, and
    /// one with its key. Without effect on other addresses.
    #[cfg(feature = "http")]
    pub fn client_certificate(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        let (certificate, key) = (certificate.into(), key.into());
        self.trust.identity = Some(crate::remote::Identity { certificate, key });
        self
    }

    async fn open(self) -> Result<Client, ConnectError> {
        let namespace = self.namespace.as_deref().map(Namespace::parse);
        let namespace = namespace.transpose().map_err(ConnectError::Namespace)?;
        let url: StoreUrl = self.url.parse()?;
        let is_server =
            matches!(url, StoreUrl::Server(_) | StoreUrl::Servers(_) | StoreUrl::Redis(_));
        if self.token.is_some() && !is_server {
            return Err(ConnectError::TokenForStore);
        }
        let server = ServerAccess {
            token: self.token,
            #[cfg(feature = "http")]
            trust: self.trust,
        };
        let (engine, opened) = open(url, server).await?;
        let namespace = namespace.unwrap_or_else(Namespace::main);
        let mut client = Client::opened(engine, namespace, opened);
        client.codec = self.codec;
        Ok(client)
    }
}

impl IntoFuture for Connect {
    type Output = Result<Client, ConnectError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.open())
    }
}

type Engines = (Arc<dyn Engine>, Opened);

/// How to reach a server, besides its address.
struct ServerAccess {
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "no server is spoken to"))]
    token: Option<Secret>,
    #[cfg(feature = "http")]
    trust: crate::remote::Trust,
}

async fn open(url: StoreUrl, server: ServerAccess) -> Result<Engines, ConnectError> {
    match url {
        #[cfg(feature = "http")]
        StoreUrl::Server(url) => server.remote(crate::remote::Callee::from(&url)),
        #[cfg(feature = "http")]
        StoreUrl::Servers(urls) => server.remote(crate::remote::Callee::Servers(urls)),
        #[cfg(feature = "redis")]
        StoreUrl::Redis(address) => {
            server.remote(crate::remote::Callee::Searched(Box::new(address)))
        }
        #[cfg(feature = "embedded")]
        StoreUrl::Memory => embedded(tenure_engine::Location::Memory).await,
        #[cfg(feature = "embedded")]
        StoreUrl::File(folder) => embedded(tenure_engine::Location::Folder(folder)).await,
        #[cfg(not(feature = "http"))]
        StoreUrl::Server(_) | StoreUrl::Servers(_) => {
            drop(server);
            Err(ConnectError::NotBuilt { feature: "http" })
        }
        #[cfg(not(feature = "embedded"))]
        StoreUrl::Memory | StoreUrl::File(_) => Err(ConnectError::NotBuilt { feature: "embedded" }),
        #[cfg(not(feature = "redis"))]
        StoreUrl::Redis(_) => Err(ConnectError::NotBuilt { feature: "redis" }),
    }
}

#[cfg(feature = "http")]
impl ServerAccess {
    fn remote(self, callee: crate::remote::Callee) -> Result<Engines, ConnectError> {
        let remote = crate::remote::Remote::trusting(callee, self.token.as_ref(), &self.trust)?;
        Ok((Arc::new(remote), Opened::Elsewhere))
    }
}

/// Reading a folder takes a while, so it runs beside the runtime's tasks.
#[cfg(feature = "embedded")]
async fn embedded(location: tenure_engine::Location) -> Result<Engines, ConnectError> {
    use tenure_engine::{Embedded, Options};
    let opening = tokio::task::spawn_blocking(|| Embedded::open(Options::new(location)));
    let embedded = match opening.await {
        Ok(opened) => Arc::new(opened?),
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    };
    Ok((embedded.clone(), Opened::Embedded(embedded)))
}
