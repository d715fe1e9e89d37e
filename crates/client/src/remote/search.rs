//! Searches the servers of a store in Redis, where each has registered its address.
//!
//! One search at a time, in a thread of its own: a runtime that a handler blocks does not hold up callers that wait for
//! the result on another one. An error shows the address without its password.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::thread;

use tenure_core::redis_address::Address;
#[cfg(feature = "redis")]
use tenure_core::sentences::StoreRefusal;
use tenure_engine_api::Fault;
use tenure_tls::Trust;
use tokio::sync::watch;

use crate::url::ServerUrl;

/// The servers that a search found, or why it found none.
type FoundServers = Result<Vec<ServerUrl>, Fault>;

/// The future result of a search; `None` until it ends.
type FoundLater = watch::Receiver<Option<FoundServers>>;

/// Which of the found servers may be called, and which of those that they name as leaders. Anyone who can write to the
/// Redis decides what a search finds, and a server that is called sees the token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MayCall {
    /// All: TLS was requested neither for the Redis nor for the servers.
    All,
    /// Servers with TLS, and those on this machine: the Redis has TLS.
    TlsAndLoopback,
    /// Servers with TLS: an authority or a certificate for them was given.
    Tls,
}

impl MayCall {
    pub fn of(address: &Address, trust: &Trust) -> MayCall {
        if trust.ca.is_some() || trust.identity.is_some() {
            MayCall::Tls
        } else if address.tls() {
            MayCall::TlsAndLoopback
        } else {
            MayCall::All
        }
    }

    /// Whether this server may be called.
    pub fn takes(self, server: &ServerUrl) -> bool {
        let is_here = || {
            let address = server.host.parse::<IpAddr>();
            server.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
        };
        match self {
            MayCall::All => true,
            MayCall::TlsAndLoopback => server.tls || is_here(),
            MayCall::Tls => server.tls,
        }
    }
}

/// A store in Redis.
pub(super) struct StoreSearch {
    address: Address,
    may_call: MayCall,
    /// The last search, which may still run.
    last: Mutex<Option<FoundLater>>,
}

impl StoreSearch {
    /// A search for servers that are called with `trust`.
    pub fn new(address: Address, trust: &Trust) -> Self {
        StoreSearch { may_call: MayCall::of(&address, trust), address, last: Mutex::default() }
    }

    /// The living servers, the leader first; an error if there are none.
    pub async fn servers(&self) -> FoundServers {
        let mut told = self.under_way();
        let found = told.wait_for(Option::is_some).await.ok().and_then(|found| found.clone());
        found.unwrap_or_else(|| {
            let why = format!("{}: could not start a thread to look up its servers", self.address);
            Err(Fault::Unavailable(why))
        })
    }

    fn under_way(&self) -> FoundLater {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // A search that has ended may be older than the caller's failure; one whose sender is gone has no result.
        let is_under_way =
            |told: &&FoundLater| told.borrow().is_none() && told.has_changed().is_ok();
        if let Some(told) = last.as_ref().filter(is_under_way) {
            return told.clone();
        }
        let (tell, told) = watch::channel(None);
        let (address, may_call) = (self.address.clone(), self.may_call);
        let search = move || drop(tell.send_replace(Some(search(address, may_call))));
        // If no thread starts, the sender is dropped, which the receiver sees.
        let _ = thread::Builder::new().name("tenure-search".to_owned()).spawn(search);
        *last = Some(told.clone());
        told
    }
}

#[cfg(not(feature = "redis"))]
fn search(address: Address, _: MayCall) -> FoundServers {
    Err(Fault::Unavailable(format!(
        "{address}: this program was built without \"redis\", by which servers are looked up; add it to the features of \
         tenure in Cargo.toml"
    )))
}

#[cfg(feature = "redis")]
fn search(address: Address, may_call: MayCall) -> FoundServers {
    use crate::url::StoreUrl;

    let shown = address.to_string();
    let failed = |why: String| {
        let message = format!("{shown}: cannot look up its servers: {why}");
        // Redis's own codes for an unknown user, or one without this permission.
        let is_denied = ["NOAUTH", "WRONGPASS", "NOPERM"].iter().any(|code| why.contains(code));
        if is_denied {
            let (store, guide) = ("redis".into(), "docs/guides/redis.md".into());
            Fault::Denied(StoreRefusal::Denied { store, message, guide }.into())
        } else {
            Fault::Unavailable(message)
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| failed(why.to_string()))?;
    let found = runtime.block_on(tenure_redis::find_servers(address));
    let mut servers: Vec<ServerUrl> = Vec::new();
    for found in found.map_err(|why| failed(why.to_string()))? {
        match found.url.parse() {
            Ok(StoreUrl::Server(url)) if !servers.contains(&url) => servers.push(url),
            // An address in another release's form is skipped.
            _ => {}
        }
    }
    let all = servers.len();
    servers.retain(|server| may_call.takes(server));
    if servers.is_empty() && all > 0 {
        return Err(Fault::Unavailable(format!(
            "the servers of {shown} are written down there with \"http://\", and none is called in clear where an authority, a \
             certificate or a Redis over TLS is named; start them with --tls-cert and --tls-key"
        )));
    }
    if servers.is_empty() {
        return Err(Fault::Unavailable(format!(
            "no server of Tenure uses {shown}; start one: tenure serve --store {shown}"
        )));
    }
    Ok(servers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_before_is_no_search_under_way() {
        let address = "redis://127.0.0.1:1?name=shop".parse().unwrap();
        let search = StoreSearch::new(address, &Trust::default());
        let is_shared = |told: &FoundLater| search.under_way().same_channel(told);
        let (tell, told) = watch::channel(None);
        *search.last.lock().unwrap() = Some(told.clone());
        assert!(is_shared(&told));
        // Its thread has sent the result, and has not ended yet.
        tell.send_replace(Some(Ok(Vec::new())));
        assert!(!is_shared(&told));
        drop(tell);
        assert!(!is_shared(&told));
    }
}
