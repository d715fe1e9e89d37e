//! The address of a Redis or Valkey, parsed once from the text of a URL.
//!
//! The client's library finds the servers of a store by it, and the journal is kept there. It opens no connection.
//!
//! An address holds passwords. `Debug`, `Display` and the errors of this module show none of them, and no text that
//! might be part of one.
//!
//! ```text
//! redis://[[USER]:PASSWORD@]HOST[:6379][/DB]           valkey: the same; rediss, valkeys: with TLS
//! redis-sentinel://[[USER]:PASSWORD@]HOST[:26379],…/MASTER[/DB]
//! redis-cluster://[[USER]:PASSWORD@]HOST[:6379],…
//!     ?name=TEXT                    the name of the store, one of several in this Redis; default "tenure"
//!     ?replicas=N                   a write counts once N replicas have it; default 0
//!     ?forgets=never                this store never loses a write that it answered
//!     ?tls=true                     TLS, also to the sentinels
//!     ?ca=FILE                      trust these certificates (PEM), and not the system's
//!     ?sentinel_user=U&sentinel_password=P        the login at the sentinels themselves
//! ```
//! Users, passwords, the master's name and the values after `?` are percent-encoded.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::bounds::NAME_BYTES_MAX;
use crate::percent::{self, BadEscape};
use crate::secret::Secret;

/// The name of a store if the address has none.
pub const DEFAULT_NAME: &str = "tenure";
/// No primary has more replicas than this.
const REPLICAS_MAX: u32 = 100;
const SERVER_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// A host and its port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Endpoint {
    /// A name or an address; an IPv6 address has no brackets here.
    pub host: String,
    pub port: u16,
}

impl Endpoint {
    /// Parses `HOST[:PORT]`. An error names the fault, and shows nothing of the text.
    pub fn parse(text: &str, default_port: u16) -> Result<Self, &'static str> {
        const NO_PORT: &str = "has a port that is not a number from 1 to 65535";
        let (host, port) = match text.strip_prefix('[') {
            Some(v6) => {
                let (host, after) = v6.split_once(']').ok_or("has a '[' without its ']'")?;
                match after.strip_prefix(':') {
                    Some(number) => (host, number.parse().map_err(|_| NO_PORT)?),
                    None if after.is_empty() => (host, default_port),
                    None => return Err(NO_PORT),
                }
            }
            None => match text.rsplit_once(':') {
                Some((host, _)) if host.contains(':') => {
                    return Err("has an IPv6 address without brackets; write [ADDRESS]:PORT");
                }
                Some((host, number)) => (host, number.parse().map_err(|_| NO_PORT)?),
                None => (text, default_port),
            },
        };
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
        if host.is_empty() || !host.chars().all(fits) {
            return Err("has no host that can be reached; write HOST or HOST:PORT");
        }
        if port == 0 {
            return Err(NO_PORT);
        }
        Ok(Endpoint { host: host.to_owned(), port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Endpoint { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// The servers and their roles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Topology {
    /// A single server, without sentinels and not in a cluster.
    Single(Endpoint),
    /// One primary, found through the sentinels.
    Sentinel {
        /// The sentinels; at least one.
        sentinels: Vec<Endpoint>,
        /// The name under which the sentinels watch the primary.
        master: String,
    },
    /// A cluster; these are some of its nodes.
    Cluster(Vec<Endpoint>),
}

/// The user and password of a connection. Without a password no login is sent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Login {
    /// `None`: the server's default user.
    pub user: Option<String>,
    /// `None`: no login at all.
    pub password: Option<Secret>,
}

/// A Redis or Valkey, as the text of an address describes it.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    topology: Topology,
    login: Login,
    sentinel_login: Login,
    db: u32,
    tls: bool,
    ca: Option<PathBuf>,
    name: String,
    replicas: Option<u32>,
    forgets_never: bool,
    shown: String,
}

impl Address {
    /// Parses the text of a URL. Opens nothing.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = text.trim().split_once(':').ok_or(AddressError::NoScheme)?;
        let letters = |c: u8| c.is_ascii_alphanumeric() || b"+.-".contains(&c);
        if scheme.is_empty() || !scheme.bytes().all(letters) {
            return Err(AddressError::NoScheme);
        }
        let scheme = scheme.to_ascii_lowercase();
        let kind = AddressKind::of(&scheme).ok_or(AddressError::UnknownScheme)?;
        let rest = rest.strip_prefix("//").ok_or("needs \"//\" and a host after its scheme");
        rest.and_then(|rest| understood(&scheme, kind, rest))
            .map_err(|why| AddressError::Invalid { scheme, why })
    }

    /// The name of the store: its keys begin with it, in braces.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if the operator states that this store never loses a write that it answered: every write is synced, and no
    /// replica ever takes the primary's place.
    pub fn forgets_never(&self) -> bool {
        self.forgets_never
    }

    /// A write counts once this many replicas have it; `None` if the address does not say.
    pub fn replicas(&self) -> Option<u32> {
        self.replicas
    }

    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The login at the servers.
    pub fn login(&self) -> &Login {
        &self.login
    }

    /// The login at the sentinels, which the login at the servers does not replace.
    pub fn sentinel_login(&self) -> &Login {
        &self.sentinel_login
    }

    /// The number of the database; 0 on a cluster.
    pub fn db(&self) -> u32 {
        self.db
    }

    /// True if connections use TLS.
    pub fn tls(&self) -> bool {
        self.tls
    }

    /// The file of the certificates that are trusted in place of the system's.
    pub fn ca(&self) -> Option<&Path> {
        self.ca.as_deref()
    }
}

/// True if an address with this scheme is one of a Redis or Valkey.
pub fn is_scheme(scheme: &str) -> bool {
    AddressKind::of(&scheme.to_ascii_lowercase()).is_some()
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Address::parse(text)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Reasons to reject a text as the address of a Redis.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AddressError {
    /// There is no `SCHEME://` in front.
    #[error("the address has no scheme; write \"redis://HOST:6379\"")]
    NoScheme,
    /// The scheme is not one of those that the message lists.
    #[error(
        "the scheme of the address is none of redis, rediss, valkey, valkeys, redis-sentinel and \
         redis-cluster; use one of these"
    )]
    UnknownScheme,
    /// The scheme is known, the rest is wrong.
    #[error("the {scheme} address {why}")]
    Invalid {
        /// The scheme, in small letters.
        scheme: String,
        /// The fault, and the text to write instead.
        why: &'static str,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AddressKind {
    Single { tls: bool },
    Sentinel,
    Cluster,
}

impl AddressKind {
    /// The kind of a scheme in small letters.
    fn of(scheme: &str) -> Option<AddressKind> {
        match scheme {
            "redis" | "valkey" => Some(AddressKind::Single { tls: false }),
            "rediss" | "valkeys" => Some(AddressKind::Single { tls: true }),
            "redis-sentinel" => Some(AddressKind::Sentinel),
            "redis-cluster" => Some(AddressKind::Cluster),
            _ => None,
        }
    }
}

fn understood(scheme: &str, kind: AddressKind, rest: &str) -> Result<Address, &'static str> {
    let (body, query) = rest.split_once('?').unwrap_or((rest, ""));
    if body.contains('#') || query.contains('#') {
        return Err("has a '#'; percent-encode it as %23");
    }
    let (authority, path) = body.split_once('/').unwrap_or((body, ""));
    if path.contains('@') || query.contains('@') {
        return Err("has a '/' or '?' before an '@'; percent-encode it in the password");
    }
    let (login, hosts) = match authority.rsplit_once('@') {
        Some((login, hosts)) => (login_of(login)?, hosts),
        None => (Login::default(), authority),
    };
    let asked = parameters(query)?;
    let path = path.trim_end_matches('/');
    let port = if kind == AddressKind::Sentinel { SENTINEL_PORT } else { SERVER_PORT };
    let mut hosts =
        hosts.split(',').map(|host| Endpoint::parse(host, port)).collect::<Result<Vec<_>, _>>()?;
    let (topology, db) = match kind {
        AddressKind::Single { .. } if hosts.len() > 1 => {
            return Err("names more than one host; use redis-cluster or redis-sentinel for that");
        }
        AddressKind::Single { .. } => (Topology::Single(hosts.swap_remove(0)), path),
        AddressKind::Sentinel => {
            let (master, db) = path.split_once('/').unwrap_or((path, ""));
            if master.is_empty() {
                return Err("names no master; write /MASTER after the sentinels");
            }
            (Topology::Sentinel { sentinels: hosts, master: decoded(master)? }, db)
        }
        AddressKind::Cluster if path.trim_start_matches('0').is_empty() => {
            (Topology::Cluster(hosts), "")
        }
        AddressKind::Cluster => {
            return Err("names a database, and a cluster has only 0; leave it out");
        }
    };
    let db = match db {
        "" => 0,
        number => number.parse().map_err(|_| "has a database that is not a number from 0 on")?,
    };
    if kind != AddressKind::Sentinel && asked.sentinel_login != Login::default() {
        return Err("has a parameter for sentinels, and is none of redis-sentinel; leave it out");
    }
    let tls = asked.tls.unwrap_or(false) || kind == (AddressKind::Single { tls: true });
    if asked.tls == Some(false) && tls {
        return Err("says both TLS and \"tls=false\"; leave the parameter out");
    }
    if asked.ca.is_some() && !tls {
        return Err("has \"ca\" without TLS; use rediss, or \"tls=true\"");
    }
    let whole = if authority.contains('@') { "•••@" } else { "" };
    let listed = match &topology {
        Topology::Single(host) => host.to_string(),
        Topology::Sentinel { sentinels: hosts, .. } | Topology::Cluster(hosts) => {
            let hosts: Vec<String> = hosts.iter().map(Endpoint::to_string).collect();
            hosts.join(",")
        }
    };
    let slash = if path.is_empty() { "" } else { "/" };
    let name = asked.name.unwrap_or_else(|| DEFAULT_NAME.to_owned());
    let which = if name == DEFAULT_NAME { String::new() } else { format!("?name={name}") };
    Ok(Address {
        topology,
        login,
        sentinel_login: asked.sentinel_login,
        db,
        tls,
        ca: asked.ca,
        name,
        replicas: asked.replicas,
        forgets_never: asked.forgets_never,
        shown: format!("{scheme}://{whole}{listed}{slash}{path}{which}"),
    })
}

fn login_of(text: &str) -> Result<Login, &'static str> {
    let (user, password) = text
        .split_once(':')
        .ok_or("has a user without a password; write USER:PASSWORD@ or :PASSWORD@")?;
    let password = decoded(password)?;
    if password.is_empty() {
        return Err("has an empty password; leave out everything up to the '@'");
    }
    let user = decoded(user)?;
    Ok(Login { user: (!user.is_empty()).then_some(user), password: Some(Secret::new(password)) })
}

#[derive(Default)]
struct AskedOptions {
    name: Option<String>,
    replicas: Option<u32>,
    forgets_never: bool,
    tls: Option<bool>,
    ca: Option<PathBuf>,
    sentinel_login: Login,
}

fn parameters(query: &str) -> Result<AskedOptions, &'static str> {
    let mut asked = AskedOptions::default();
    let mut seen = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or(PARAMETERS)?;
        if seen.contains(&name) {
            return Err("has a parameter twice; say it once");
        }
        seen.push(name);
        let value = decoded(value)?;
        match name {
            "name" => asked.name = Some(name_of(value)?),
            "prefix" => return Err(PREFIX),
            "replicas" => {
                let replicas = value.parse().ok().filter(|replicas| *replicas <= REPLICAS_MAX);
                asked.replicas =
                    Some(replicas.ok_or("has \"replicas\" that is no number from 0 to 100")?);
            }
            "forgets" if value == "never" => asked.forgets_never = true,
            "forgets" => return Err("has a \"forgets\" that is not never; leave it out"),
            "tls" => {
                asked.tls = Some(match value.as_str() {
                    "true" => true,
                    "false" => false,
                    _ => return Err("has a \"tls\" that is neither true nor false"),
                });
            }
            "ca" if value.is_empty() => return Err("has a \"ca\" that names no file"),
            "ca" => asked.ca = Some(PathBuf::from(value)),
            "sentinel_user" => asked.sentinel_login.user = Some(value),
            "sentinel_password" => asked.sentinel_login.password = Some(Secret::new(value)),
            _ => return Err(PARAMETERS),
        }
    }
    if asked.sentinel_login.user.is_some() && asked.sentinel_login.password.is_none() {
        return Err("has a \"sentinel_user\" without a \"sentinel_password\"");
    }
    Ok(asked)
}

/// The message does not repeat the unknown name: an unencoded password may have ended up there.
const PARAMETERS: &str = "has an unknown parameter; known are name, replicas, forgets, tls, ca, \
                          sentinel_user and sentinel_password, each as NAME=VALUE";

/// Addresses of earlier releases had this parameter.
const PREFIX: &str = "has a \"prefix\", as addresses of earlier releases had; use ?name=NAME for one of several stores, and \
                      move what lies under the prefix through a folder: `tenure copy` of the release before";

/// A brace would end the hash tag, by which all keys of the store lie in one slot of a cluster.
fn name_of(text: String) -> Result<String, &'static str> {
    let fits = |c: u8| c.is_ascii_graphic() && c != b'{' && c != b'}';
    if text.is_empty() || text.len() > NAME_BYTES_MAX || !text.bytes().all(fits) {
        return Err(
            "has a name that is no text of 1 to 128 visible ASCII characters without braces",
        );
    }
    Ok(text)
}

fn decoded(text: &str) -> Result<String, &'static str> {
    percent::decoded(text).map(Cow::into_owned).map_err(|why| match why {
        BadEscape::Digits => {
            "has a '%' that is not followed by two hexadecimal digits; write %25 for it"
        }
        BadEscape::Utf8 => "has percent-encoded bytes that are not UTF-8",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_in_full_form_without_its_password() {
        for (text, shown) in [
            ("redis://host", "redis://host:6379"),
            ("redis://host/", "redis://host:6379"),
            ("redis://host:7000/3", "redis://host:7000/3"),
            ("valkey://host", "valkey://host:6379"),
            ("RediSS://[::1]:7000", "rediss://[::1]:7000"),
            ("valkeys://[::1]", "valkeys://[::1]:6379"),
            ("redis://:geheim@host", "redis://•••@host:6379"),
            ("redis://me:ge@heim@host/1?name=x", "redis://•••@host:6379/1?name=x"),
            ("redis-sentinel://:geheim@a,b:2/main", "redis-sentinel://•••@a:26379,b:2/main"),
            (
                "redis-sentinel://a/my%20main/2?sentinel_user=s&sentinel_password=geheim",
                "redis-sentinel://a:26379/my%20main/2",
            ),
            ("redis-cluster://a,b:7000?tls=true", "redis-cluster://a:6379,b:7000"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), shown, "{text}");
            let seen = format!("{address} {address:?} {:?}", address.login);
            assert!(!seen.contains("heim"), "{seen}");
        }
    }

    #[test]
    fn every_part_is_understood() {
        let address = Address::parse(
            "redis-sentinel://me:ge%40heim@a:1,[::1]/my%20main/2?name=app&replicas=2&tls=true&ca=/x/ca.pem\
             &sentinel_user=s&sentinel_password=p%26p",
        )
        .unwrap();
        let host = |host: &str, port| Endpoint { host: host.to_owned(), port };
        assert_eq!(
            address.topology,
            Topology::Sentinel {
                sentinels: vec![host("a", 1), host("::1", 26379)],
                master: "my main".to_owned()
            }
        );
        assert_eq!(address.login.user.as_deref(), Some("me"));
        assert_eq!(address.login.password, Some(Secret::new("ge@heim")));
        assert_eq!(address.sentinel_login.user.as_deref(), Some("s"));
        assert_eq!(address.sentinel_login.password, Some(Secret::new("p&p")));
        assert_eq!((address.db, address.tls()), (2, true));
        assert_eq!(address.ca(), Some(Path::new("/x/ca.pem")));
        assert_eq!((address.name(), address.replicas()), ("app", Some(2)));
        let plain = Address::parse("redis://h").unwrap();
        assert_eq!((plain.name(), plain.replicas()), ("tenure", None));
        assert!(
            !plain.forgets_never()
                && Address::parse("redis://h?forgets=never").unwrap().forgets_never()
        );
        assert_eq!((plain.login, plain.tls), (Login::default(), false));
    }

    #[test]
    fn a_wrong_address_says_what_to_write_and_shows_no_password() {
        for (text, part) in [
            ("", "no scheme"),
            ("geheim@host", "no scheme"),
            ("redis:host", "needs \"//\""),
            ("http://geheim", "none of redis, rediss"),
            ("redis://", "no host"),
            ("redis://:geheim@", "no host"),
            ("redis://geheim@host", "user without a password"),
            ("redis://me:@host", "empty password"),
            ("redis://:ge/heim@host", "percent-encode it in the password"),
            ("redis://:ge?heim@host", "percent-encode it in the password"),
            ("redis://:ge#heim@host", "%23"),
            ("redis://:ge%heim@host", "%25"),
            ("redis://:%ffgeheim@host", "UTF-8"),
            ("redis://host:geheim", "not a number from 1 to 65535"),
            ("redis://host:0", "not a number from 1 to 65535"),
            ("redis://::1", "without brackets"),
            ("redis://[::1", "without its ']'"),
            ("redis://a,b", "more than one host"),
            ("redis://host/geheim", "not a number from 0 on"),
            ("redis://host/-1", "not a number from 0 on"),
            ("redis-cluster://host/1", "a cluster has only 0"),
            ("redis-sentinel://host", "names no master"),
            ("redis://host?geheim", "unknown parameter"),
            ("redis://host?geheim=1", "unknown parameter"),
            ("redis://host?name=a&name=b", "twice"),
            ("redis://host?name={x}", "without braces"),
            ("redis://host?name=", "1 to 128"),
            ("redis://host?prefix=geheim", "move what lies under the prefix"),
            ("redis://host?replicas=101", "from 0 to 100"),
            ("redis://host?forgets=geheim", "not never; leave it out"),
            ("redis://host?tls=geheim", "neither true nor false"),
            ("rediss://host?tls=false", "leave the parameter out"),
            ("redis://host?ca=/geheim", "without TLS"),
            ("redis://host?sentinel_password=geheim", "for sentinels"),
            ("redis-sentinel://host/m?sentinel_user=geheim", "without a \"sentinel_password\""),
        ] {
            let said = Address::parse(text).unwrap_err();
            let seen = format!("{said} {said:?}");
            assert!(said.to_string().contains(part), "{text}: {said}");
            assert!(!seen.contains("heim"), "{seen}");
        }
    }
}
