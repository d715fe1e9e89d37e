//! Parses the address that chooses the engine, such as that in `TENURE_URL`.
//!
//! Nothing here opens anything. An address may carry a password, so neither `Debug`, `Display` nor an error of this
//! module ever shows more of it than its scheme, host, port and path.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use tenure_core::redis_address::{Address, AddressError, Endpoint};

/// The address used without `TENURE_URL` or another address.
pub const DEFAULT_URL: &str = "http://127.0.0.1:7171";
/// The port of `tenure://HOST`, and the one a server listens on.
pub const DEFAULT_PORT: u16 = 7171;

const KNOWN: &str = "http, https, tenure, memory, file, redis, rediss, valkey, valkeys, \
                     redis-sentinel and redis-cluster";

/// Where state lives, as an address names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreUrl {
    /// `http://`, `https://`, `tenure://`, or `HOST:PORT` alone: a server.
    Server(ServerUrl),
    /// Several of these with commas between: servers that share one store. At least two, in the order in which they are tried.
    Servers(Vec<ServerUrl>),
    /// `memory:`: in this process, gone with it.
    Memory,
    /// `file:PATH`: a folder that this process alone has open.
    File(PathBuf),
    /// `redis:` and similar schemes: a Redis in which the servers of its store are looked up.
    Redis(Address),
}

/// The address of a server.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ServerUrl {
    /// Whether it speaks TLS.
    pub tls: bool,
    /// A name or an address, an IPv6 address without its brackets.
    pub host: String,
    /// The TCP port, also if it is the scheme's default.
    pub port: u16,
    /// The start of every path, before `/v1` (a proxy's prefix), without a slash at its end; often empty.
    pub prefix: String,
}

impl ServerUrl {
    /// Host and port as a `Host` header has them: the port only if it is not the scheme's own.
    pub fn authority(&self) -> String {
        let own = if self.tls { 443 } else { 80 };
        let host = &self.host;
        match (host.contains(':'), self.port == own) {
            (true, true) => format!("[{host}]"),
            (true, false) => format!("[{host}]:{}", self.port),
            (false, true) => host.clone(),
            (false, false) => format!("{host}:{}", self.port),
        }
    }
}

/// Why a text is not an address. A usage error: the command line exits with 2.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// There is no `SCHEME:` in front.
    #[error(
        "the address has no scheme; write \"http://HOST:{DEFAULT_PORT}\" for a server, or one of {KNOWN}"
    )]
    NoScheme,
    /// The scheme means nothing here.
    #[error("the scheme \"{scheme}\" is unknown; use one of {KNOWN}")]
    UnknownScheme {
        /// The unknown scheme, in lower case.
        scheme: String,
    },
    /// The scheme is known, the rest is wrong.
    #[error("the {scheme} address {why}")]
    Invalid {
        /// The known scheme, in lower case.
        scheme: String,
        /// The mistake in the rest, and the right form.
        why: &'static str,
    },
    /// Two commas without an address between, or one at the begin or the end.
    #[error(
        "the list of addresses has an empty part; write one comma between two addresses, and none at the end"
    )]
    EmptyPart,
    /// A list has an address that is not that of a server.
    #[error(
        "address {number} of {of} is none of a server; a list is of servers alone (http, https, tenure)"
    )]
    NoServerInList {
        /// Its place in the list, from 1.
        number: usize,
        /// How many addresses the list has.
        of: usize,
    },
    /// One address of a list is invalid.
    #[error("address {number} of {of}: {why}")]
    InList {
        /// Its place in the list, from 1.
        number: usize,
        /// How many addresses the list has.
        of: usize,
        /// The mistake in that address.
        why: Box<UrlError>,
    },
}

impl FromStr for StoreUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let text = text.trim();
        if is_list(text) {
            return list(text);
        }
        let (scheme, rest) = text.split_once(':').ok_or(UrlError::NoScheme)?;
        let letters = |c: u8| c.is_ascii_alphanumeric() || b"+.-".contains(&c);
        if scheme.is_empty() || scheme.len() > 32 || !scheme.bytes().all(letters) {
            return host_and_port(text).unwrap_or(Err(UrlError::NoScheme));
        }
        let scheme = scheme.to_ascii_lowercase();
        let invalid = |why| UrlError::Invalid { scheme: scheme.clone(), why };
        match scheme.as_str() {
            "http" => server(rest, false, 80).map_err(invalid).map(StoreUrl::Server),
            "https" => server(rest, true, 443).map_err(invalid).map(StoreUrl::Server),
            "tenure" => server(rest, false, DEFAULT_PORT).map_err(invalid).map(StoreUrl::Server),
            "memory" if rest.trim_start_matches('/').is_empty() => Ok(StoreUrl::Memory),
            "memory" => Err(invalid("has a path, but memory has none; write \"memory:\"")),
            "file" => file(rest).map_err(invalid).map(StoreUrl::File),
            _ => match Address::parse(text) {
                Ok(address) => Ok(StoreUrl::Redis(address)),
                Err(AddressError::Invalid { why, .. }) => Err(invalid(why)),
                // Its schemes are the last of the known ones.
                Err(_) => host_and_port(text).unwrap_or(Err(UrlError::UnknownScheme { scheme })),
            },
        }
    }
}

/// Whether commas of this text separate addresses. In the address of a folder or of a Redis they do not.
fn is_list(text: &str) -> bool {
    let Some((first, _)) = text.split_once(',') else { return false };
    let Some((scheme, _)) = first.trim().split_once(':') else { return true };
    let scheme = scheme.to_ascii_lowercase();
    !(matches!(scheme.as_str(), "memory" | "file")
        || tenure_core::redis_address::is_scheme(&scheme))
}

/// Addresses of servers with commas between. A repeated one counts once.
fn list(text: &str) -> Result<StoreUrl, UrlError> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(UrlError::EmptyPart);
    }
    let of = parts.len();
    let mut servers = Vec::new();
    for (part, number) in parts.into_iter().zip(1..) {
        match part.parse() {
            Ok(StoreUrl::Server(server)) if servers.contains(&server) => {}
            Ok(StoreUrl::Server(server)) => servers.push(server),
            Ok(_) => return Err(UrlError::NoServerInList { number, of }),
            Err(why) => {
                let why = match why {
                    // A password with a comma in it may have been cut, and a part of it mistaken for a scheme.
                    UrlError::UnknownScheme { .. } if text.contains('@') => UrlError::NoScheme,
                    why => why,
                };
                return Err(UrlError::InList { number, of, why: Box::new(why) });
            }
        }
    }
    Ok(match servers.len() {
        1 => StoreUrl::Server(servers.swap_remove(0)),
        _ => StoreUrl::Servers(servers),
    })
}

/// `HOST:PORT` without a scheme is a server, a usual short form; `None` if the text is something else. It is tried
/// last, since a known scheme is never the name of a host.
fn host_and_port(text: &str) -> Option<Result<StoreUrl, UrlError>> {
    let authority = text.split(['/', '?', '#']).next()?;
    let (host, port) = authority.rsplit_once(':')?;
    if host.is_empty() || port.is_empty() || !port.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    // The part before an @ may be a password, which must not get into a message.
    if text.contains('@') {
        return None;
    }
    let found = server(&format!("//{text}"), false, DEFAULT_PORT);
    let invalid = |why| UrlError::Invalid { scheme: "http".to_owned(), why };
    Some(found.map(StoreUrl::Server).map_err(invalid))
}

fn server(rest: &str, tls: bool, port: u16) -> Result<ServerUrl, &'static str> {
    let rest = rest.strip_prefix("//").ok_or("needs \"//\" and a host after its scheme")?;
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    if rest.contains(['?', '#']) {
        return Err("has a query or a fragment; leave them out");
    }
    if authority.contains('@') {
        return Err("has a user or a password; a server takes a token instead (TENURE_TOKEN)");
    }
    let Endpoint { host, port } = Endpoint::parse(authority, port)?;
    let prefix = path.trim_end_matches('/');
    if !prefix.bytes().all(|c| c.is_ascii_graphic()) {
        return Err("has a path with characters that must be percent-encoded");
    }
    Ok(ServerUrl { tls, host, port, prefix: prefix.to_owned() })
}

fn file(rest: &str) -> Result<PathBuf, &'static str> {
    // `file:///data` is how other programs write the path `/data`. A host is never meant.
    let path = match rest.strip_prefix("//") {
        Some(path) if path.starts_with('/') => path,
        Some(_) => return Err("names a host; write file:PATH"),
        None => rest,
    };
    if path.is_empty() || path.contains('\0') {
        return Err("names no folder; write file:PATH");
    }
    Ok(PathBuf::from(path))
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUrl::Server(url) => url.fmt(f),
            StoreUrl::Servers(servers) => f.write_str(&listed(servers)),
            StoreUrl::Memory => f.write_str("memory:"),
            StoreUrl::File(path) => write!(f, "file:{}", path.display()),
            StoreUrl::Redis(address) => address.fmt(f),
        }
    }
}

/// The addresses in the form of a list.
pub(crate) fn listed(servers: &[ServerUrl]) -> String {
    let shown: Vec<String> = servers.iter().map(ServerUrl::to_string).collect();
    shown.join(",")
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_as_it_is_understood() {
        for (text, shown) in [
            ("http://127.0.0.1:7171", "http://127.0.0.1:7171"),
            ("http://host", "http://host"),
            ("http://host:80/", "http://host"),
            ("HTTPS://host/tenure/", "https://host/tenure"),
            ("https://host:8443", "https://host:8443"),
            ("localhost:7171", "http://localhost:7171"),
            ("127.0.0.1:7171", "http://127.0.0.1:7171"),
            ("my-host.example:80/tenure/", "http://my-host.example/tenure"),
            ("[::1]:7171", "http://[::1]:7171"),
            ("tenure://host", "http://host:7171"),
            ("tenure://host:9", "http://host:9"),
            ("tenure://[::1]", "http://[::1]:7171"),
            ("http://[::1]:9/a", "http://[::1]:9/a"),
            ("memory:", "memory:"),
            ("memory://", "memory:"),
            ("file:./tenure-data", "file:./tenure-data"),
            ("file:/var/lib/t", "file:/var/lib/t"),
            ("file:///var/lib/t", "file:/var/lib/t"),
            ("redis://host:6379/0", "redis://host:6379/0"),
            ("redis://:geheim@host/0", "redis://•••@host:6379/0"),
            ("rediss://me:ge@heim@host?forgets=never", "rediss://•••@host:6379"),
            ("valkey://host", "valkey://host:6379"),
            ("valkeys://:geheim@[::1]:7000/1?name=x", "valkeys://•••@[::1]:7000/1?name=x"),
            ("redis-sentinel://:geheim@a:1,b:2/main", "redis-sentinel://•••@a:1,b:2/main"),
            ("redis-cluster://a,b", "redis-cluster://a:6379,b:6379"),
            ("file:./a,b", "file:./a,b"),
            ("redis://:ge,heim@host", "redis://•••@host:6379"),
            ("http://a:7070,https://b:7070", "http://a:7070,https://b:7070"),
            (" a:1 , b:2/t ", "http://a:1,http://b:2/t"),
            ("tenure://a,[::1]:2,a:7171", "http://a:7171,http://[::1]:2"),
            ("a:7171,http://a:7171/", "http://a:7171"),
            ("redis://:geheim@host", "redis://•••@host:6379"),
        ] {
            let url: StoreUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), shown, "{text}");
            let seen = format!("{url} {url:?}");
            assert!(!seen.contains("heim"), "{seen}");
        }
    }

    #[test]
    fn a_wrong_address_says_what_to_write_and_shows_no_password() {
        for (text, part) in [
            ("", "no scheme"),
            ("127.0.0.1", "no scheme"),
            ("geheim@host:1", "no scheme"),
            ("localhost:", "\"localhost\" is unknown; use one of http, https"),
            ("localhost:seven", "\"localhost\" is unknown"),
            ("localhost:99999", "not a number from 1 to 65535"),
            ("localhost:7171?geheim", "query"),
            (":7171", "no scheme"),
            ("::1:7171", "without brackets"),
            ("http:80", "needs \"//\""),
            ("redis:6379", "needs \"//\""),
            ("ftp://host", "\"ftp\" is unknown"),
            ("http:host", "needs \"//\""),
            ("http://", "no host"),
            ("http://me:geheim@host", "TENURE_TOKEN"),
            ("http://host:0", "not a number from 1 to 65535"),
            ("http://host:99999", "not a number from 1 to 65535"),
            ("http://::1", "without brackets"),
            ("http://[::1", "without its ']'"),
            ("http://host?geheim", "query"),
            ("memory:x", "write \"memory:\""),
            ("file:", "write file:PATH"),
            ("file://host/x", "write file:PATH"),
            ("redis:host", "needs \"//\""),
            ("redis://:geheim@", "no host"),
            ("redis://:ge/heim@host", "percent-encode"),
            ("redis://host?x=geheim", "unknown parameter"),
            ("http://a:1,", "empty part"),
            (",http://a:1", "empty part"),
            ("http://a:1,,http://b:1", "empty part"),
            ("http://a:1,geheim", "address 2 of 2: the address has no scheme"),
            ("http://a:1,http://ann:geheim@b:1", "address 2 of 2: the http address has a user"),
            ("http://ann:ge,heim:x@b:1", "address 1 of 2: the http address has a port"),
            ("a:1,heim:x@b:1", "address 2 of 2: the address has no scheme"),
            ("a:1,redis://:geheim@b:1", "address 2 of 2 is none of a server"),
            ("a:1,b:1,file:/geheim", "address 3 of 3 is none of a server"),
            ("redis://:geheim@b:1,http://a:1", "has a port that is not a number"),
            ("redis://a,b", "names more than one host"),
            ("http://a:1,http://b:99999", "address 2 of 2: the http address has a port"),
        ] {
            let said = text.parse::<StoreUrl>().unwrap_err();
            let seen = format!("{said} {said:?}");
            assert!(said.to_string().contains(part), "{text}: {said}");
            assert!(!seen.contains("heim"), "{seen}");
        }
    }
}
