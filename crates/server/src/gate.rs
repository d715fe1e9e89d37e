//! Admits callers, by the `Host` and `Origin` of a request and by its token.
//!
//! A web page must not drive a developer's workers. Its `Origin` gives away a page of another site, and its `Host` one
//! that made its own name resolve to this machine. Tokens are compared in constant time and shown to nobody.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::http::uri::Authority;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::{NameRefusal, ServerRefusal};

use crate::caller::Caller;
use crate::tokens::{Tokens, shown_token};

/// Where a server is, as its own pages name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here {
    /// The address of the listener; its port is the port of the server's own origins.
    pub at: SocketAddr,
    /// The scheme of the server's own origins: `http`, or `https` with TLS.
    pub scheme: &'static str,
}

/// Names by which only this machine reaches itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Headers that a proxy adds to a request.
const PASSED_ON: [&str; 3] = ["x-forwarded-for", "forwarded", "x-real-ip"];
/// Headers with which a browser describes the page that asks.
const FETCH_SITE: &str = "sec-fetch-site";
const FETCH_MODE: &str = "sec-fetch-mode";

/// Refuses a request from a web page of another site. `target` is the authority in the request line, if there is one:
/// it takes precedence over the header. `any_host`: the host need not be a name of this machine, since the caller shows
/// a token or asks for something public.
pub(crate) fn origin(
    headers: &HeaderMap,
    target: Option<&Authority>,
    any_host: bool,
    here: Here,
) -> Result<(), Refusal> {
    let target = target.map(Authority::as_str);
    if !any_host {
        let mut hosts = headers.get_all(HOST).iter();
        let header = one(&mut hosts).and_then(|host| host.to_str().ok());
        if !header.is_some_and(is_loopback) || !target.is_none_or(is_loopback) {
            return Err(ServerRefusal::NotLoopback.into());
        }
        let says = |name, value: &str| headers.get_all(name).iter().any(|header| header == value);
        // Any page may link to a page of this server: the person that follows the link sees the answer, and the other
        // page does not.
        let is_foreign = says(FETCH_SITE, "cross-site") && !says(FETCH_MODE, "navigate");
        if is_foreign {
            return Err(ServerRefusal::OtherOrigin.into());
        }
        if PASSED_ON.iter().any(|name| headers.contains_key(*name)) {
            return Err(ServerRefusal::PassedOn.into());
        }
    }
    let mut origins = headers.get_all(ORIGIN).iter();
    let Some(origin) = origins.next() else { return Ok(()) };
    let own = origins.next().is_none()
        && origin.to_str().is_ok_and(|origin| is_own(origin, headers, target, here));
    if own {
        return Ok(());
    }
    Err(ServerRefusal::OtherOrigin.into())
}

/// The value, if there is exactly one.
fn one<'h>(values: &mut impl Iterator<Item = &'h HeaderValue>) -> Option<&'h HeaderValue> {
    values.next().filter(|_| values.next().is_none())
}

fn is_loopback(host: &str) -> bool {
    LOOPBACK.iter().any(|name| {
        let (Some(start), Some(rest)) = (host.get(..name.len()), host.get(name.len()..)) else {
            return false;
        };
        let port = rest.strip_prefix(':').map(|port| {
            !port.is_empty() && port.len() <= 5 && port.bytes().all(|c| c.is_ascii_digit())
        });
        start.eq_ignore_ascii_case(name) && (rest.is_empty() || port == Some(true))
    })
}

/// Whether a page of this origin came from this server: by the name of this request, or by a loopback name and the port
/// of the listener.
fn is_own(origin: &str, headers: &HeaderMap, target: Option<&str>, here: Here) -> bool {
    let Some((scheme, place)) = origin.split_once("://") else { return false };
    let scheme = scheme.to_ascii_lowercase();
    if scheme != "http" && scheme != "https" {
        return false;
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    if target.or(host).is_some_and(|host| host.eq_ignore_ascii_case(place)) {
        return true;
    }
    let port = format!(":{}", here.at.port());
    scheme == here.scheme && is_loopback(place) && place.ends_with(&port)
}

/// The caller of a request, by the token that it shows. Where there are no tokens, everybody is the same caller.
pub(crate) fn token(headers: &HeaderMap, tokens: &Tokens) -> Result<Arc<Caller>, Refusal> {
    if !tokens.are_asked_for() {
        return Ok(Caller::anyone());
    }
    let Some(shown) = shown_token(headers) else { return Err(ServerRefusal::TokenMissing.into()) };
    tokens.who(shown).ok_or_else(|| ServerRefusal::TokenWrong.into())
}

/// The header that names the namespace.
pub(crate) const NAMESPACE: HeaderName = HeaderName::from_static("tenure-namespace");

/// The value of the header; `None` if it is absent.
pub(crate) fn namespace(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let mut values = headers.get_all(NAMESPACE).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let refuse = |no: NameRefusal| Refusal::from(no).at("/header/Tenure-Namespace");
    if values.next().is_some() {
        return Err(refuse(NameRefusal::NamespaceTwice));
    }
    value.to_str().map(Some).map_err(|_| refuse(NameRefusal::NamespaceNotAscii))
}

#[cfg(test)]
mod tests {
    use tenure_core::secret::Secret;

    use super::*;

    fn here(scheme: &'static str) -> Here {
        Here { at: "127.0.0.1:7171".parse().unwrap(), scheme }
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn without_a_token_only_loopback_names_are_answered() {
        for (host, may) in [
            ("localhost", true),
            ("LocalHost:80", true),
            ("127.0.0.1:7171", true),
            ("[::1]:9", true),
            ("[::1]", true),
            ("localhost.evil.example", false),
            ("localhost:", false),
            ("localhost:1x", false),
            ("127.0.0.1.evil.example:7171", false),
            ("127.0.0.2", false),
            ("::1", false),
            ("evil.example", false),
            ("", false),
        ] {
            let headers = headers(&[("host", host)]);
            assert_eq!(origin(&headers, None, false, here("http")).is_ok(), may, "{host}");
            assert!(origin(&headers, None, true, here("http")).is_ok(), "{host}");
        }
        let here = here("http");
        let twice = headers(&[("host", "localhost"), ("host", "localhost")]);
        assert!(origin(&twice, None, false, here).is_err());
        assert!(origin(&HeaderMap::new(), None, false, here).is_err());
        let target: Authority = "evil.example".parse().unwrap();
        let local = headers(&[("host", "localhost")]);
        assert!(origin(&local, Some(&target), false, here).is_err());
    }

    #[test]
    fn only_its_own_pages_may_call() {
        for (host, from, may) in [
            ("localhost:7171", "http://localhost:7171", true),
            ("127.0.0.1:7171", "http://localhost:7171", true),
            ("localhost:7171", "http://localhost:3000", false),
            ("localhost:7171", "http://localhost", false),
            ("localhost:7171", "https://localhost:7171", true),
            ("127.0.0.1:7171", "https://localhost:7171", false),
            ("localhost:7171", "null", false),
            ("localhost:7171", "file://localhost:7171", false),
            ("localhost:7171", "http://evil.example", false),
            ("tenure.example", "https://tenure.example", true),
            ("tenure.example", "https://evil.example", false),
        ] {
            let headers = headers(&[("host", host), ("origin", from)]);
            let may_call = |scheme| origin(&headers, None, true, here(scheme)).is_ok();
            assert_eq!(may_call("http"), may, "{host} {from}");
        }
        let headers = headers(&[("host", "127.0.0.1:7171"), ("origin", "https://localhost:7171")]);
        assert!(origin(&headers, None, true, here("https")).is_ok());
    }

    #[test]
    fn the_token_must_be_shown_once_and_whole() {
        let secret = Tokens::of(vec![Secret::new("s3cret")]);
        for (shown, may) in [
            ("Bearer s3cret", true),
            ("bearer  s3cret", true),
            ("Bearer s3cre", false),
            ("Bearer s3crets", false),
            ("Bearer ", false),
            ("Basic s3cret", false),
            ("s3cret", false),
        ] {
            let headers = headers(&[("authorization", shown)]);
            assert_eq!(token(&headers, &secret).is_ok(), may, "{shown}");
            assert!(token(&headers, &Tokens::default()).is_ok());
        }
        assert!(token(&HeaderMap::new(), &secret).is_err());
        let twice = headers(&[("authorization", "Bearer s3cret"), ("authorization", "Bearer x")]);
        assert!(token(&twice, &secret).is_err());
    }
}
