//! The address by which other servers and clients reach a server, as it advertises it.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tenure_core::redis_address::{Address, Endpoint, Topology};
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// A name that is not resolved within this counts as not found.
const RESOLVE_WITHIN: Duration = Duration::from_secs(2);

/// The address that a server advertises.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advertised {
    /// Where it takes calls, according to itself.
    pub url: String,
    /// Why that may be wrong, and what to do; `None`: the address was given, or cannot be wrong.
    pub warning: Option<String>,
}

impl Advertised {
    /// A given address: a host and a port.
    ///
    /// # Errors
    /// The fault of the text, to follow the name of the setting.
    pub fn given(text: &str, tls: bool) -> Result<Advertised, &'static str> {
        if text.contains("://") {
            return Err("has a scheme, which follows from the server; write HOST:PORT");
        }
        // The port that was left out is the listener's about as often as not, so it is not guessed.
        let Ok(endpoint) = Endpoint::parse(text, 0) else {
            let Err(why) = Endpoint::parse(text, 1) else {
                return Err("has no port; write HOST:PORT");
            };
            return Err(why);
        };
        match endpoint.host.parse::<IpAddr>() {
            Ok(ip) if ip.is_unspecified() => {
                Err("is an address that nobody can call; write HOST:PORT, as other servers and \
                                                  clients reach this one")
            }
            _ => Ok(Advertised { url: url(&endpoint.to_string(), tls), warning: None }),
        }
    }

    /// The address of the listener, for a store that no other server has.
    pub(super) fn listening(at: SocketAddr, tls: bool) -> Advertised {
        Advertised { url: url(&at.to_string(), tls), warning: None }
    }

    /// The default: the address of the listener, or a guess where others cannot reach that.
    pub async fn guessed(at: SocketAddr, tls: bool, store: &Address) -> Advertised {
        let ip = at.ip().to_canonical();
        let on_one_machine = is_here(store).await;
        let said = |ip: IpAddr| url(&SocketAddr::new(ip, at.port()).to_string(), tls);
        if ip.is_loopback() {
            let warning = (!on_one_machine).then(|| {
                format!(
                    "this server listens on {at}, which other machines cannot reach, and its store is not on this machine: \
                     servers and clients elsewhere cannot call it; listen on another address, or say with --advertise \
                     HOST:PORT how they reach this one"
                )
            });
            return Advertised { url: said(ip), warning };
        }
        if !ip.is_unspecified() {
            return Advertised { url: said(ip), warning: None };
        }
        let loopback = if ip.is_ipv4() { "127.0.0.1" } else { "::1" };
        let loopback = loopback.parse().unwrap_or(ip);
        if on_one_machine {
            return Advertised { url: said(loopback), warning: None };
        }
        let url = said(own_address(store).await.unwrap_or(loopback));
        let warning = format!(
            "this server listens on all addresses of this machine, and tells other servers and clients to call it at {url}, \
             which is a guess; say with --advertise HOST:PORT how they reach it"
        );
        Advertised { url, warning: Some(warning) }
    }
}

impl Advertised {
    /// Whether only this machine reaches the server at this address, although its store is on another one: each server
    /// of the store would reach itself there, and they would take the store from one another.
    pub async fn is_only_for_this_machine(&self, store: &Address) -> bool {
        let authority = self.url.split_once("://").map_or("", |(_, authority)| authority);
        let host = Endpoint::parse(authority, 0).map(|endpoint| endpoint.host);
        host.is_ok_and(|host| is_loopback(&host)) && !is_here(store).await
    }
}

fn url(authority: &str, tls: bool) -> String {
    let scheme = if tls { "https" } else { "http" };
    format!("{scheme}://{authority}")
}

fn hosts(store: &Address) -> &[Endpoint] {
    match store.topology() {
        Topology::Single(host) => std::slice::from_ref(host),
        Topology::Sentinel { sentinels: hosts, .. } | Topology::Cluster(hosts) => hosts,
    }
}

fn is_loopback(host: &str) -> bool {
    let ip = host.parse::<IpAddr>().map(|ip| ip.to_canonical().is_loopback());
    ip.unwrap_or_else(|_| host.eq_ignore_ascii_case("localhost"))
}

/// Whether all of the store is on this machine. A name that is not found is elsewhere.
async fn is_here(store: &Address) -> bool {
    for Endpoint { host, port } in hosts(store) {
        if !is_loopback(host) && !is_own(host, *port).await {
            return false;
        }
    }
    true
}

/// Whether the host is this machine: calls to one of its own addresses come from that same address. Nothing is sent.
async fn is_own(host: &str, port: u16) -> bool {
    let targets = timeout(RESOLVE_WITHIN, tokio::net::lookup_host((host, port))).await;
    let Ok(Ok(targets)) = targets else { return false };
    let mut is_any = false;
    for target in targets {
        is_any = true;
        if source(target).await != Some(target.ip()) {
            return false;
        }
    }
    is_any
}

/// The address of this machine from which the target is called. Nothing is sent.
async fn source(target: SocketAddr) -> Option<IpAddr> {
    let any = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).await.ok()?;
    socket.connect(target).await.ok()?;
    socket.local_addr().ok().map(|own| own.ip())
}

/// The address of this machine from which it reaches the store. Nothing is sent.
async fn own_address(store: &Address) -> Option<IpAddr> {
    let Endpoint { host, port } = hosts(store).first()?;
    let targets = tokio::net::lookup_host((host.as_str(), *port));
    for target in timeout(RESOLVE_WITHIN, targets).await.ok()?.ok()? {
        if let Some(own) = source(target).await {
            return Some(own).filter(|own| !own.is_unspecified());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_is_given_is_said_with_the_scheme_of_the_server() {
        for (text, tls, is) in [
            ("a.example:7171", false, Ok("http://a.example:7171")),
            ("a.example:7171", true, Ok("https://a.example:7171")),
            ("[fd00::1]:1", true, Ok("https://[fd00::1]:1")),
            ("a.example", false, Err("no port")),
            ("a.example:0", false, Err("port")),
            ("http://a:1", false, Err("has a scheme")),
            ("0.0.0.0:7171", false, Err("nobody can call")),
            ("[::]:7171", false, Err("nobody can call")),
        ] {
            match (Advertised::given(text, tls), is) {
                (Ok(said), Ok(url)) => assert_eq!((said.url.as_str(), said.warning), (url, None)),
                (Err(why), Err(part)) => assert!(why.contains(part), "{text}: {why}"),
                (said, _) => panic!("{text}: {said:?}"),
            }
        }
    }

    #[tokio::test]
    async fn loopback_is_for_a_store_on_this_machine_alone() {
        for (advertised, store, is) in [
            ("127.0.0.1:7", "redis://localhost", false),
            ("localhost:7", "redis://[::1]", false),
            ("[::1]:7", "redis://192.0.2.1", true),
            ("localhost:7", "redis://user:pw@192.0.2.1:6380", true),
            ("127.0.0.1:7", "redis://no-such-name.invalid", true),
            ("127.0.0.1:7", "redis-cluster://127.0.0.1,192.0.2.1", true),
            ("127.0.0.1:7", "redis-sentinel://127.0.0.1,localhost/main", false),
            ("192.0.2.9:7", "redis://192.0.2.1", false),
            ("a.example:7", "redis://192.0.2.1", false),
        ] {
            let advertised = Advertised::given(advertised, false).unwrap();
            let address: Address = store.parse().unwrap();
            let only = advertised.is_only_for_this_machine(&address).await;
            assert_eq!(only, is, "{advertised:?} {store}");
        }
    }

    #[tokio::test]
    async fn a_guessed_address_out_of_reach_comes_with_a_warning() {
        let far = "redis://192.0.2.1";
        for (at, store, says, warns) in [
            ("127.0.0.1:7", "redis://localhost", Some("http://127.0.0.1:7"), None),
            ("127.0.0.1:7", far, Some("http://127.0.0.1:7"), Some("other machines cannot reach")),
            ("192.0.2.9:7", far, Some("http://192.0.2.9:7"), None),
            ("0.0.0.0:7", "redis://[::1]:1", Some("http://127.0.0.1:7"), None),
            ("[::]:7", "redis-cluster://127.0.0.1,localhost", Some("http://[::1]:7"), None),
            // Whatever address this machine has.
            ("0.0.0.0:7", far, None, Some("a guess")),
        ] {
            let store: Address = store.parse().unwrap();
            let said = Advertised::guessed(at.parse().unwrap(), false, &store).await;
            assert!(says.is_none_or(|url| said.url == url), "{at}, {store}: {said:?}");
            assert!(!said.url.contains("0.0.0.0") && said.url.ends_with(":7"), "{said:?}");
            let warning = said.warning.as_deref();
            assert_eq!(warning.is_some(), warns.is_some(), "{at}, {store}: {said:?}");
            let part = warns.unwrap_or_default();
            assert!(warning.unwrap_or_default().contains(part), "{at}, {store}: {said:?}");
        }
    }
}
