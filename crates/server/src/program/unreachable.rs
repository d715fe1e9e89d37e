//! Finds out which of the other servers cannot be reached from here.
//!
//! Nothing is decided by it: an operator sees it. A connection is opened and closed, and nothing is sent.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure_node::Node;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::asks::server_url;

/// Each server is tried this often.
const TRY_EVERY: Duration = Duration::from_secs(5);
/// A server that accepts no connection within this is unreachable.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// Why servers cannot be reached, by their addresses. Initially empty.
#[derive(Default)]
pub(super) struct UnreachableServers(Mutex<BTreeMap<String, String>>);

impl UnreachableServers {
    /// Why this server cannot be reached; `None`: it can.
    pub fn why(&self, url: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(url).cloned()
    }

    /// Tries the other servers for as long as the future is polled.
    pub async fn follow(&self, node: &Node) -> Infallible {
        loop {
            let mut found = BTreeMap::new();
            for server in node.servers().into_iter().filter(|server| !server.is_self) {
                if let Err(why) = reach(&server.url).await {
                    found.insert(server.url, why);
                }
            }
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = found;
            sleep(TRY_EVERY).await;
        }
    }
}

async fn reach(url: &str) -> Result<(), String> {
    let Some(to) = server_url(url) else { return Err("this is no address".to_owned()) };
    match timeout(CONNECT_WITHIN, TcpStream::connect((to.host.as_str(), to.port))).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(why)) => Err(why.to_string()),
        Err(_) => Err(format!("no connection within {} s", CONNECT_WITHIN.as_secs())),
    }
}
