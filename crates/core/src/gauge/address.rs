//! Addresses of gauges: `http` or `https` URLs, checked once.
//!
//! An address may have a password in front of the host and tokens in its query. Shown forms have neither: `Debug` and
//! `Display` redact, and so does an error of this module. Only `reveal` and the store have the whole text.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::bounds::GAUGE_URL_BYTES_MAX;
use crate::percent;
use crate::secret::{HIDDEN, Secret};

/// A value of a query with fewer bytes, such as `1` or `on`, occurs in any text, so it is hidden only with its whole
/// query.
const VALUE_BYTES_MIN: usize = 4;

/// The address of a gauge. One that was read from an answer may be redacted; it leads nowhere.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GaugeAddress(String);

/// The reason why a text is no such address, and the form to write instead. It shows nothing of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadAddress(pub &'static str);

/// The login that a GET sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GaugeLogin {
    /// The part before the colon; often empty.
    pub user: String,
    /// The part behind the colon; empty if it is absent.
    pub password: Secret,
}

/// The parts of an address.
struct Parts<'a> {
    scheme: &'a str,
    /// With the `@` at its end; empty if absent.
    login: &'a str,
    /// Host, port and path.
    rest: &'a str,
    /// With the `?` in front; empty if absent.
    query: &'a str,
}

impl GaugeAddress {
    /// Reads an `http` or `https` URL of at most 2 KiB.
    pub fn parse(text: &str) -> Result<Self, BadAddress> {
        if text.contains(HIDDEN) {
            return Err(BadAddress("is one that was shown with its secrets left out; give them"));
        }
        if text.len() > GAUGE_URL_BYTES_MAX {
            return Err(BadAddress("is longer than 2048 bytes; use a shorter one"));
        }
        if !text.bytes().all(|c| c.is_ascii_graphic()) {
            return Err(BadAddress("has characters that must be percent-encoded"));
        }
        let parts = parts(text).ok_or(BadAddress("is no URL; write http://HOST/PATH"))?;
        if !matches!(parts.scheme, "http" | "https") {
            return Err(BadAddress("is of another scheme; write http:// or https://"));
        }
        if text.contains('#') {
            return Err(BadAddress("has a fragment; leave it out"));
        }
        let authority = parts.rest.split('/').next().unwrap_or_default();
        check_authority(authority).map_err(BadAddress)?;
        if percent::decoded(parts.login).is_err() {
            return Err(BadAddress("has a '%' in its login that begins no escape; write %25"));
        }
        Ok(GaugeAddress(text.to_owned()))
    }

    /// The whole text, for the one place that must have it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The text without its login, which no request line has.
    pub fn without_login(&self) -> String {
        match parts(&self.0) {
            Some(Parts { scheme, rest, query, .. }) => format!("{scheme}://{rest}{query}"),
            None => self.0.clone(),
        }
    }

    /// The login in front of the host; `None` without one.
    pub fn login(&self) -> Option<GaugeLogin> {
        let login = parts(&self.0)?.login.strip_suffix('@')?;
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let decoded = |text| percent::decoded(text).ok().map(|text| text.into_owned());
        Some(GaugeLogin { user: decoded(user)?, password: Secret::new(decoded(password)?) })
    }

    /// A text of the other side with everything hidden that [`GaugeAddress::redacted`] hides, in case it echoes the
    /// password, the query or its values, encoded or decoded. A login without a password counts as one.
    pub fn hidden_in(&self, text: &str) -> String {
        let mut secrets: Vec<String> = Vec::new();
        let mut add = |secret: &str| {
            secrets.push(secret.to_owned());
            secrets.extend(percent::decoded(secret).ok().map(Cow::into_owned));
        };
        let Some(Parts { login, query, .. }) = parts(&self.0) else { return HIDDEN.to_owned() };
        let login = login.strip_suffix('@').unwrap_or(login);
        add(login.split_once(':').map_or(login, |(_, password)| password));
        let query = query.strip_prefix('?').unwrap_or(query);
        add(query);
        for pair in query.split('&') {
            let value = pair.split_once('=').map_or(pair, |(_, value)| value);
            if value.len() >= VALUE_BYTES_MIN {
                add(value);
                add(&value.replace('+', " "));
            }
        }
        secrets.retain(|secret| !secret.is_empty());
        // A secret may be a part of another one: if it went first, the rest of the longer one would stay visible.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN))
    }

    /// The address for showing: `•••` for a login and for a query.
    pub fn redacted(&self) -> GaugeAddress {
        GaugeAddress(self.to_string())
    }
}

fn parts(text: &str) -> Option<Parts<'_>> {
    let (scheme, rest) = text.split_once("://")?;
    let (rest, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
    let end = rest.find('/').unwrap_or(rest.len());
    let login = rest[..end].rfind('@').map_or(0, |at| at + 1);
    let (login, rest) = rest.split_at(login);
    Some(Parts { scheme, login, rest, query })
}

fn check_authority(authority: &str) -> Result<(), &'static str> {
    const NO_PORT: &str = "has a port that is not a number from 1 to 65535";
    let (host, port) = match authority.strip_prefix('[') {
        Some(v6) => {
            let (host, after) = v6.split_once(']').ok_or("has a '[' without its ']'")?;
            let port = after.strip_prefix(':');
            if port.is_none() && !after.is_empty() {
                return Err(NO_PORT);
            }
            (host, port)
        }
        None => match authority.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => {
                return Err("has an IPv6 address without brackets; write [ADDRESS]:PORT");
            }
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    if host.is_empty() || !host.chars().all(fits) {
        return Err("has no host that can be reached; write http://HOST/PATH");
    }
    match port.map(str::parse::<u16>) {
        None | Some(Ok(1..)) => Ok(()),
        Some(_) => Err(NO_PORT),
    }
}

impl fmt::Display for GaugeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Parts { scheme, login, rest, query }) = parts(&self.0) else {
            return f.write_str(HIDDEN);
        };
        write!(f, "{scheme}://")?;
        if !login.is_empty() {
            write!(f, "{HIDDEN}@")?;
        }
        f.write_str(rest)?;
        if query.is_empty() { Ok(()) } else { write!(f, "?{HIDDEN}") }
    }
}

impl fmt::Debug for GaugeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_what_is_secret() {
        for (text, shown) in [
            ("http://host", "http://host"),
            ("https://host:8443/a/b", "https://host:8443/a/b"),
            ("http://[::1]:6800/", "http://[::1]:6800/"),
            ("http://me:geheim@host/x", "http://•••@host/x"),
            ("http://geheim@host/x", "http://•••@host/x"),
            ("http://me:ge@heim@host/x@y", "http://•••@host/x@y"),
            ("http://host/x?token=geheim", "http://host/x?•••"),
        ] {
            let address = GaugeAddress::parse(text).unwrap();
            let seen = format!("{address} {address:?}");
            assert_eq!(address.to_string(), shown, "{text}");
            assert_eq!(address.redacted().redacted().reveal(), shown);
            assert!(!seen.contains("heim"), "{seen}");
            assert_eq!(address.reveal(), text);
            assert_eq!(GaugeAddress::parse(shown).is_ok(), text == shown, "{shown}");
        }
    }

    #[test]
    fn the_secrets_of_an_address_are_hidden_in_texts_that_echo_it() {
        for (address, text, shown) in [
            ("http://me:geheim@host", "who is me:geheim?", "who is me:•••?"),
            ("http://me:ge%2Dheim@host", "is it ge-heim or ge%2Dheim", "is it ••• or •••"),
            ("http://geheim@host", "geheim is nobody", "••• is nobody"),
            ("http://host/x?key=geheim", "POST /x?key=geheim HTTP/1.1", "POST /x?••• HTTP/1.1"),
            (
                "http://host/x?key=ge%20heim&n=1",
                r#"{"key":"ge heim","n":1}"#,
                r#"{"key":"•••","n":1}"#,
            ),
            ("http://host/x?key=ge+heim", "ge heim; ge+heim", "•••; •••"),
            ("http://host/x?geheim", "geheim", "•••"),
            ("http://host/x?a=geheim&b=geheimer", "geheimer", "•••"),
            ("http://host/x?n=1", "1 of 1", "1 of 1"),
            ("http://host/x", "POST /x", "POST /x"),
        ] {
            let address = GaugeAddress::parse(address).unwrap();
            assert_eq!(address.hidden_in(text), shown, "{address:?}");
        }
    }

    #[test]
    fn a_login_is_decoded_and_stands_in_no_request_line() {
        let login = |text: &str| GaugeAddress::parse(text).unwrap().login();
        let is = |user: &str, password: &str| {
            Some(GaugeLogin { user: user.to_owned(), password: Secret::new(password) })
        };
        assert_eq!(login("http://me:a%40b@host"), is("me", "a@b"));
        assert_eq!(login("http://me@host"), is("me", ""));
        assert_eq!(login("http://:p@host"), is("", "p"));
        assert_eq!(login("http://host/a@b"), None);
        let address = GaugeAddress::parse("http://me:p@host:1/x?y=1").unwrap();
        assert_eq!(address.without_login(), "http://host:1/x?y=1");
    }

    #[test]
    fn a_wrong_address_says_what_to_write_and_shows_nothing() {
        let long = format!("http://host/{}", "a".repeat(2_048));
        for (text, part) in [
            ("", "is no URL"),
            ("host", "is no URL"),
            ("ftp://host", "http:// or https://"),
            ("HTTP://host", "http:// or https://"),
            ("http://", "no host"),
            ("http:///x", "no host"),
            ("http://geheim@/x", "no host"),
            ("http://a b/x", "percent-encoded"),
            ("http://hä/x", "percent-encoded"),
            ("http://host:0/", "port"),
            ("http://host:99999", "port"),
            ("http://host:geheim", "port"),
            ("http://[::1", "']'"),
            ("http://[::1]geheim", "port"),
            ("http://::1/x", "brackets"),
            ("http://host/x#geheim", "fragment"),
            ("http://me:ge%heim@host", "%25"),
            ("http://•••@host", "left out"),
            (&long, "longer"),
        ] {
            let BadAddress(why) = GaugeAddress::parse(text).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
