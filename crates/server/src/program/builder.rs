//! The settings of a server in a program, and its start.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tenure_journal::threads::task_or_die;

use tenure::Client;
use tenure::remote::Trust;
use tenure::url::{StoreUrl, UrlError};
use tenure_core::bounds::NAMESPACES_MAX_DEFAULT;
use tenure_core::gauge::GaugeHosts;
use tenure_core::names::Namespace;
use tenure_core::secret::Secret;
use tenure_core::time::Span;
use tenure_engine::{Embedded, Fatal, Location, OpenError, Options, Seal};
use tenure_node::{NodeError, StoreSettings};
use tenure_tls::{ServerFiles, ServerTls, ServerTlsError};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

use super::Server;
use super::advertised::Advertised;
use super::opened::OpenedPlace;
use super::shared::{SharedStore, node_options};
use crate::accept;
use crate::config::Config;
use crate::deps::Deps;
use crate::forward::ForwardingEngine;
use crate::listen::{ListenRefused, may_listen};
use crate::tokens::{ListedRefused, ListedToken, Tokens, check_listed};
use crate::trail::{Trail, TrailOptions, follow_leadership};

/// The default address of the listener.
const USUAL_LISTEN: &str = "127.0.0.1:7171";

/// Why a server does not start. No text shows a password or a token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address of the store cannot be parsed.
    #[error(transparent)]
    Store(#[from] UrlError),
    /// The address of the store is that of a server.
    #[error(
        "the store is the address of a server; name a folder (file:PATH), memory: or a Redis (redis://HOST:6379)"
    )]
    IsServer,
    /// The advertised address is not HOST:PORT.
    #[error("the address to be advertised {0}")]
    Advertise(&'static str),
    /// The listener has no token or a short one beyond loopback.
    #[error(transparent)]
    Listen(#[from] ListenRefused),
    /// Tokens with grants of their own cannot be told apart, or are too many.
    #[error(transparent)]
    Tokens(#[from] ListedRefused),
    /// The system cannot listen there.
    #[error(
        "could not listen on {at}: {why}; end the other program that listens there, or choose another address"
    )]
    Bind {
        /// As it was given.
        at: String,
        /// The error of the system.
        #[source]
        why: io::Error,
    },
    /// The certificate or the key cannot be used.
    #[error(transparent)]
    Tls(#[from] ServerTlsError),
    /// The folder cannot be opened.
    #[error(transparent)]
    Folder(#[from] OpenError),
    /// The server cannot take part in the shared store.
    #[error(transparent)]
    Node(#[from] NodeError),
}

/// A server before its start: see [`Server::open`]. Add settings, then [`start`](ServerBuilder::start) it.
#[must_use = "nothing is opened until `start` is awaited"]
pub struct ServerBuilder {
    store: String,
    listen: String,
    advertise: Option<String>,
    tokens: Vec<Secret>,
    listed: Vec<ListedToken>,
    /// Initially `None`: no trail.
    trail: Option<TrailOptions>,
    tls: Option<ServerFiles>,
    trust: Trust,
    settings: StoreSettings,
    gauge_allow: Vec<String>,
    bounds: Config,
    seal: Seal,
    /// At most this many; initially [`NAMESPACES_MAX_DEFAULT`].
    namespaces_max: usize,
}

impl ServerBuilder {
    pub(super) fn new(store: &str) -> Self {
        ServerBuilder {
            store: store.to_owned(),
            listen: USUAL_LISTEN.to_owned(),
            advertise: None,
            tokens: Vec::new(),
            listed: Vec::new(),
            trail: None,
            tls: None,
            trust: Trust::default(),
            settings: StoreSettings::default(),
            gauge_allow: Vec::new(),
            bounds: Config::default(),
            seal: Seal::none(),
            namespaces_max: NAMESPACES_MAX_DEFAULT,
        }
    }

    /// Where the server listens: a host and a port, 0 for any free one. Default `127.0.0.1:7171`. Beyond loopback it
    /// needs a token.
    pub fn listen(mut self, at: &str) -> Self {
        at.clone_into(&mut self.listen);
        self
    }

    /// The host and port by which clients and other servers of the store reach the server, for a store in Redis. By
    /// default the address of the listener; if others cannot reach that, a guess with a warning in the log.
    pub fn advertise(mut self, host_and_port: &str) -> Self {
        self.advertise = Some(host_and_port.to_owned());
        self
    }

    /// A token that callers may show, of at least 32 characters beyond loopback. Each further one is valid too. Calls
    /// of this process need none.
    pub fn token(mut self, token: Secret) -> Self {
        self.tokens.push(token);
        self
    }

    /// A token with grants of its own, as a block of the file of `tenure serve --tokens` is one: the server knows its
    /// hash alone. Each further one is valid too. All servers of a store in Redis need the same.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tenure_server::{GivenGrants, Grants, ListedToken, Server, token_hash};
    ///
    /// let pusher = Grants::read(&GivenGrants {
    ///     name: "pusher".to_owned(),
    ///     scopes: vec!["push".to_owned()],
    ///     namespaces: vec!["*".to_owned()],
    ///     ..GivenGrants::default()
    /// })?;
    /// let sha256 = token_hash(b"tnr_pusher_and-a-random-text");
    /// let server = Server::open("memory:").listed_token(ListedToken { grants: pusher, sha256 });
    /// # let _ = server;
    /// # Ok(())
    /// # }
    /// ```
    pub fn listed_token(mut self, token: ListedToken) -> Self {
        self.listed.push(token);
        self
    }

    /// Keeps a trail: one line for each change, refusal and lease of a resource, with its caller. Calls of this process
    /// by [`Server::client`] have no caller, and no line. The server fills in its address.
    pub fn trail(mut self, options: TrailOptions) -> Self {
        self.trail = Some(options);
        self
    }

    /// Speaks HTTPS with the certificate and key in these files.
    pub fn tls(mut self, files: ServerFiles) -> Self {
        self.tls = Some(files);
        self
    }

    /// The certificates to trust where another server of the store speaks HTTPS, and the certificate to show if it asks
    /// for one. By default the authorities of the system.
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// How many namespaces there may be; a call that would begin another one is refused as `namespaces_full`. Default
    /// 10,000.
    pub fn namespaces_max(mut self, namespaces: usize) -> Self {
        self.namespaces_max = namespaces;
        self
    }

    /// This and the next four are settings of the store. A store in Redis keeps those of the server that made it, and
    /// another server with other settings says so in its log; `tenure store set` changes them.
    ///
    /// After being blocked this long, a job reserves its needs. Default 10 s.
    pub fn patience(mut self, patience: Span) -> Self {
        self.settings.patience = Some(patience);
        self
    }

    /// How many bytes finished jobs may take. Default 1 GiB.
    pub fn retain_bytes(mut self, bytes: u64) -> Self {
        self.settings.retain_bytes = Some(bytes);
        self
    }

    /// How many bytes the events of each namespace may take; 0 keeps none. Default 16 MiB.
    pub fn events_bytes(mut self, bytes: u64) -> Self {
        self.settings.events_bytes = Some(bytes);
        self
    }

    /// Seals contents of the store with these keys. All servers of a store in Redis need them. Default: contents are clear.
    pub fn seal(mut self, keys: Seal) -> Self {
        self.seal = keys;
        self
    }

    /// For a store in Redis: how many replicas must have a write before its call is answered. No answered call is lost
    /// if these are all replicas that may become the primary. Default 0.
    pub fn replicas(mut self, replicas: u32) -> Self {
        self.settings.replicas = Some(replicas);
        self
    }

    /// For a store in Redis that never loses an answered write, because each write is synced and no replica is
    /// promoted: a server that takes the store after a restart of Redis need not wait for leases that it may not know.
    pub fn forgets_never(mut self) -> Self {
        self.settings.forgets_never = Some(true);
        self
    }

    /// A host that a gauge may ask although its address is link-local.
    pub fn gauge_allow(mut self, host: &str) -> Self {
        self.gauge_allow.push(host.to_owned());
        self
    }

    /// Bounds of connections, bodies and times.
    pub fn bounds(mut self, bounds: Config) -> Self {
        self.bounds = bounds;
        self
    }

    /// Opens the store and begins to take calls. Must be awaited inside a tokio runtime with all its drivers, which
    /// must live as long as the server. Redis need not be there yet: until it is, calls wait, for at most 8 s each.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(self) -> Result<Server, StartError> {
        let store: StoreUrl = self.store.parse()?;
        check_listed(&self.listed)?;
        let tls = self.tls.clone().map(ServerTls::read).transpose()?;
        let given = self.advertise.as_deref();
        let given = given.map(|text| Advertised::given(text, tls.is_some())).transpose();
        let given = given.map_err(StartError::Advertise)?;
        let (listener, at) = self.bound().await?;
        let (tell, fatal) = watch::channel(None);
        let said = match (&store, given) {
            (_, Some(given)) => given,
            (StoreUrl::Redis(redis), None) => Advertised::guessed(at, tls.is_some(), redis).await,
            _ => Advertised::listening(at, tls.is_some()),
        };
        if let Some(warning) = &said.warning {
            tracing::warn!("{warning}");
        }
        let own_name = match &store {
            StoreUrl::Redis(_) => said.url.clone(),
            _ => at.to_string(),
        };
        let opened = self.opened(store, &said.url, tell).await?;
        // After the store, whose lock keeps a second server away from a trail in its folder, too.
        let trail = self.opened_trail(own_name);
        let (leadership, tokens) = (opened.leadership(), self.all_tokens());
        let gauge_hosts = GaugeHosts::allowing(self.gauge_allow);
        let forwarding = ForwardingEngine::trying_for(leadership.clone(), self.bounds.pass_on_max);
        let mut beside = opened.beside(gauge_hosts.clone());
        let (keeps, follows) =
            (trail.clone(), follow_leadership(leadership.clone(), trail.clone()));
        let keeps = async move { match keeps.keep().await {} };
        beside.spawn(task_or_die("keeping the trail", keeps));
        let follows = async move { match follows.await {} };
        beside.spawn(task_or_die("following the leader for the trail", follows));
        let deps = Deps {
            leadership,
            tokens,
            config: self.bounds,
            tls,
            gauge_hosts,
            moved: None,
            pages: None,
            metrics: None,
            trail: trail.clone(),
        };
        let (shutdown, told) = oneshot::channel();
        let leaving = opened.clone();
        let told = async move {
            // A dropped sender ends the server too.
            let _ = told.await;
            // From then on other servers can serve the store.
            let leaving = async move { leaving.hand_over().await };
            tokio::spawn(task_or_die("the hand-over of the store", leaving));
        };
        Ok(Server {
            at,
            url: said.url,
            client: Client::new(Arc::new(forwarding), Namespace::main()),
            _beside: beside,
            opened,
            trail,
            fatal,
            shutdown: Some(shutdown),
            serving: tokio::spawn(task_or_die("the listener", accept::run(listener, deps, told))),
        })
    }

    fn opened_trail(&self, server: String) -> Trail {
        let options = self.trail.clone();
        options
            .map_or_else(Trail::default, |options| Trail::open(TrailOptions { server, ..options }))
    }

    /// The tokens of callers; none: callers need none.
    fn all_tokens(&self) -> Tokens {
        if self.listed.is_empty() {
            return Tokens::of(self.tokens.clone());
        }
        // Sessions need a secret seed, and a server in a program has no pages.
        let tokens = Tokens::locking("");
        tokens.replace(self.tokens.clone());
        tokens.replace_listed(self.listed.clone());
        tokens
    }

    async fn bound(&self) -> Result<(TcpListener, SocketAddr), StartError> {
        let bind = |why| StartError::Bind { at: self.listen.clone(), why };
        let found: Vec<SocketAddr> =
            tokio::net::lookup_host(&self.listen).await.map_err(bind)?.collect();
        for at in &found {
            may_listen(*at, &self.tokens, !self.listed.is_empty())?;
        }
        let listener = TcpListener::bind(found.as_slice()).await.map_err(bind)?;
        let at = listener.local_addr().map_err(bind)?;
        Ok((listener, at))
    }

    async fn opened(
        &self,
        store: StoreUrl,
        url: &str,
        tell: watch::Sender<Option<Fatal>>,
    ) -> Result<OpenedPlace, StartError> {
        let location = match store {
            StoreUrl::Memory => Location::Memory,
            StoreUrl::File(folder) => Location::Folder(folder),
            StoreUrl::Server(_) | StoreUrl::Servers(_) => return Err(StartError::IsServer),
            StoreUrl::Redis(address) => {
                let mut options = node_options(address, url.to_owned(), &self.trust);
                options.settings = self.settings.clone().or(&options.settings);
                options.engine.config.namespaces_max = self.namespaces_max;
                options.engine.seal = self.seal.clone();
                let shared = SharedStore::open(options, self.trust.clone())?;
                return Ok(OpenedPlace::Shared(Arc::new(shared)));
            }
        };
        let mut options = Options::new(location);
        let StoreSettings { patience, retain_bytes, events_bytes, .. } = self.settings;
        options.config.namespaces_max = self.namespaces_max;
        options.seal = self.seal.clone();
        options.config.patience = patience.unwrap_or(options.config.patience);
        options.config.retain_bytes = retain_bytes.unwrap_or(options.config.retain_bytes);
        options.events_bytes = events_bytes.unwrap_or(options.events_bytes);
        options.on_fatal = Arc::new(move |why| {
            tracing::error!("{why}");
            tell.send_replace(Some(why.clone()));
        });
        // Blocks: it reads the whole index.
        let opening = tokio::task::spawn_blocking(move || Embedded::open(options));
        match opening.await {
            Ok(opened) => Ok(OpenedPlace::Own(Arc::new(opened?))),
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }
}

/// The address may contain a password, so it is not shown.
impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("listen", &self.listen).finish_non_exhaustive()
    }
}
