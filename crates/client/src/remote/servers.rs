//! The servers of one remote engine: connections to the called ones, and the search for more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::header::HeaderValue;
use tenure_core::redis_address::Address;
use tenure_engine_api::Fault;
use tenure_tls::{Trust, for_http_trusting};

use super::RemoteError;
use super::choice::{KnownFrom, ServerChoice};
use super::search::{MayCall, StoreSearch};
use super::wire::Wire;
use crate::url::{ServerUrl, StoreUrl, listed};

/// If there are other servers, a connection attempt that takes longer is given up.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// The servers of one store, by address or by search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Callee {
    /// One server, or several that share one store. At least one, in the order in which they are tried.
    Servers(Vec<ServerUrl>),
    /// Servers that are registered in this Redis.
    Searched(Box<Address>),
}

impl Callee {
    /// The callee of an address; `None` if the address is a store without a server.
    pub fn of(url: &StoreUrl) -> Option<Callee> {
        match url {
            StoreUrl::Server(server) => Some(server.into()),
            StoreUrl::Servers(servers) => Some(Callee::Servers(servers.clone())),
            StoreUrl::Redis(address) => Some(Callee::Searched(Box::new(address.clone()))),
            StoreUrl::Memory | StoreUrl::File(_) => None,
        }
    }

    /// The servers; those of a store are looked up, its leader first. With an authority or a certificate in `trust`,
    /// only those with TLS are returned, and with a Redis over TLS also those on this machine. An error shows no
    /// password.
    ///
    /// # Errors
    /// No server uses the store, or Redis cannot be reached, or does not permit the search.
    pub async fn servers(&self, trust: &Trust) -> Result<Vec<ServerUrl>, Fault> {
        match self {
            Callee::Servers(servers) => Ok(servers.clone()),
            Callee::Searched(address) => {
                StoreSearch::new((**address).clone(), trust).servers().await
            }
        }
    }
}

impl From<&ServerUrl> for Callee {
    fn from(server: &ServerUrl) -> Self {
        Callee::Servers(vec![server.clone()])
    }
}

/// The connections to one server, and the host name for its requests.
pub(super) struct CalledServer {
    pub wire: Wire,
    pub host: HeaderValue,
}

/// All servers of one remote engine; shared by its clones.
pub(super) struct CalledServers {
    choice: Mutex<ServerChoice>,
    /// Connections to servers that were called.
    called: Mutex<HashMap<ServerUrl, Arc<CalledServer>>>,
    trust: Trust,
    /// `None`: the addresses were given.
    search: Option<StoreSearch>,
    /// All addresses as they were given, without passwords.
    shown: String,
}

/// The servers that one call has tried.
#[derive(Default)]
pub(super) struct TriedServers {
    tried: Vec<ServerUrl>,
    has_searched: bool,
}

impl CalledServers {
    /// Checks the addresses; connects to none of them yet.
    pub fn new(callee: Callee, shows_token: bool, trust: &Trust) -> Result<Self, RemoteError> {
        let (from, given, shown) = match &callee {
            Callee::Servers(servers) => (KnownFrom::List, servers.clone(), listed(servers)),
            Callee::Searched(address) => {
                let from = KnownFrom::Search(MayCall::of(address, trust));
                (from, Vec::new(), address.to_string())
            }
        };
        let mut called = HashMap::new();
        // An invalid address or certificate is reported before the first call.
        for server in &given {
            called.insert(server.clone(), Arc::new(CalledServer::new(server, trust, given.len())?));
        }
        Ok(CalledServers {
            choice: Mutex::new(ServerChoice::new(from, given, shows_token)),
            called: Mutex::new(called),
            trust: trust.clone(),
            search: match callee {
                Callee::Searched(address) => Some(StoreSearch::new(*address, trust)),
                Callee::Servers(_) => None,
            },
            shown,
        })
    }

    /// All addresses as they were given, without passwords.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    pub fn choice(&self) -> MutexGuard<'_, ServerChoice> {
        self.choice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next server for this call; `None` if all were tried. Searches once per call.
    pub async fn next(&self, tried: &mut TriedServers) -> Result<Option<ServerUrl>, Fault> {
        loop {
            let at = self.choice().at().cloned();
            match at {
                Some(at) if tried.tried.contains(&at) => return Ok(None),
                Some(at) => {
                    tried.tried.push(at.clone());
                    return Ok(Some(at));
                }
                None if tried.has_searched => return Ok(None),
                None => {
                    tried.has_searched = true;
                    let Some(search) = &self.search else { return Ok(None) };
                    let found = search.servers().await?;
                    self.choice().found(found, Instant::now());
                }
            }
        }
    }

    /// The connections to a server.
    pub fn called(&self, server: &ServerUrl) -> Result<Arc<CalledServer>, String> {
        let mut called = self.called.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = called.get(server) {
            return Ok(known.clone());
        }
        // Two, because a search may find more servers than this one.
        let new = CalledServer::new(server, &self.trust, 2).map_err(|why| why.to_string())?;
        let choice = self.choice();
        called.retain(|one, _| choice.knows(one));
        drop(choice);
        Ok(called.entry(server.clone()).or_insert(Arc::new(new)).clone())
    }
}

impl CalledServer {
    fn new(server: &ServerUrl, trust: &Trust, of: usize) -> Result<Self, RemoteError> {
        let host = HeaderValue::from_str(&server.authority())
            .map_err(|_| RemoteError::Host(server.host.clone()))?;
        let tls = if server.tls { Some(for_http_trusting(trust, &server.host)?) } else { None };
        let wire = Wire::new(server.clone(), tls);
        let wire = if of > 1 { wire.connecting_within(CONNECT_WITHIN) } else { wire };
        Ok(CalledServer { wire, host })
    }
}
