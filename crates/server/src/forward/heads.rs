//! The heads of forwarded calls and answers: which headers are forwarded, and how a server knows another one.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE,
    EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue, ORIGIN,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{Request, Uri};
use tenure::ServerUrl;
pub(crate) use tenure::remote::wire::OWNER;
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::{AccessRefusal, ServerRefusal};
use tenure_core::time::Span;

use super::Forwarding;
use super::sent_body::SentBody;
use crate::caller::Caller;
use crate::gate;
use crate::leadership::PeerGroup;
use crate::listed::listed;
use crate::tokens::Tokens;
use crate::trail::CallRecord;

/// Marks a call from another server: the id of the server that sent it. Such a call shows the secret of the servers in
/// place of a token.
pub(crate) const FROM_SERVER: HeaderName = HeaderName::from_static("tenure-from-server");

/// For how many milliseconds the caller of a forwarded call had waited before this attempt: the wait of the call is
/// that much shorter. Absent in the first attempt.
const WAITED: HeaderName = HeaderName::from_static("tenure-waited");

/// The name of the token that the caller of a forwarded call has shown, or one that stands for all rights. A release
/// without grants of tokens sends none: its callers have all rights. Believed only beside the secret of the servers.
pub(crate) const CALLER: HeaderName = HeaderName::from_static("tenure-caller");

/// The IP address from which a forwarded call came to the first server, for the trail. Believed only beside the secret
/// of the servers; a release without a trail sends none.
const PEER: HeaderName = HeaderName::from_static("tenure-peer");

/// The id by which the caller knows its call.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Headers that belong to one connection and not to a message (RFC 9110, 7.6.1).
const OF_ONE_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];
/// Headers that the first server has checked and the leader must not see: the caller's name for the server, and its
/// secrets.
const OF_THE_CALLER: [HeaderName; 9] =
    [HOST, AUTHORIZATION, ORIGIN, COOKIE, EXPECT, CONTENT_LENGTH, WAITED, CALLER, PEER];

/// The headers of a call that Tenure itself reads. They are forwarded even if `Connection` names them: the leader must
/// understand the same call as the first server.
const READ_BY_TENURE: [HeaderName; 8] = [
    ACCEPT,
    CONTENT_ENCODING,
    CONTENT_TYPE,
    gate::NAMESPACE,
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static("prefer"),
    HeaderName::from_static("traceparent"),
    REQUEST_ID,
];
/// If a head has more headers than this, only [`READ_BY_TENURE`] are forwarded: a server reads at most 100, and a
/// forwarded call has some of its own.
const HEADERS_MAX: usize = 80;

/// The headers that are forwarded to the other side.
fn passed(headers: &HeaderMap, without: &[HeaderName]) -> HeaderMap {
    let named: Vec<&str> = listed(headers, CONNECTION).collect();
    let stays = |name: &HeaderName| {
        OF_ONE_HOP.contains(name)
            || without.contains(name)
            || !READ_BY_TENURE.contains(name)
                && named.iter().any(|named| named.eq_ignore_ascii_case(name.as_str()))
    };
    let mut passed = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers.iter().filter(|(name, _)| !stays(name)) {
        passed.append(name.clone(), value.clone());
    }
    passed
}

fn read_by_tenure(headers: &HeaderMap) -> HeaderMap {
    let mut read = HeaderMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| READ_BY_TENURE.contains(name)) {
        read.append(name.clone(), value.clone());
    }
    read
}

/// The headers of an answer that are forwarded to the caller.
pub(crate) fn of_answer(headers: &HeaderMap) -> HeaderMap {
    passed(headers, &[])
}

/// The identity of a server in its calls to other servers.
#[derive(Clone)]
pub(crate) struct ServerMark {
    server: HeaderValue,
    secret: HeaderValue,
    secrets: Tokens,
}

impl ServerMark {
    pub(crate) fn of(peer_group: &PeerGroup) -> Result<Self, InvalidHeaderValue> {
        let mut secret = HeaderValue::from_str(&format!("Bearer {}", peer_group.secret.reveal()))?;
        secret.set_sensitive(true);
        let server = HeaderValue::from_str(&hex(peer_group.server))?;
        Ok(ServerMark { server, secret, secrets: Tokens::of(vec![peer_group.secret.clone()]) })
    }

    /// Adds the identity to a call to a server at this address.
    pub(crate) fn put(
        &self,
        headers: &mut HeaderMap,
        to: &ServerUrl,
    ) -> Result<(), InvalidHeaderValue> {
        headers.insert(HOST, HeaderValue::from_str(&to.authority())?);
        headers.insert(FROM_SERVER, self.server.clone());
        headers.insert(AUTHORIZATION, self.secret.clone());
        Ok(())
    }
}

impl fmt::Debug for ServerMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerMark")
    }
}

/// Whether a server sent the call. A marked call with a wrong secret is refused. `waits`: this server does not know its
/// store yet, so it cannot identify itself to anybody.
pub(crate) fn is_from_server(
    headers: &HeaderMap,
    mark: Option<&ServerMark>,
    former: impl FnOnce() -> Option<Arc<Forwarding>>,
    waits: bool,
) -> Result<bool, Refusal> {
    if !headers.contains_key(FROM_SERVER) {
        return Ok(false);
    }
    let Some(mark) = mark else {
        return Err(if waits { super::not_owner() } else { ServerRefusal::TokenWrong.into() });
    };
    gate::token(headers, &mark.secrets).or_else(|no| match former() {
        Some(former) => gate::token(headers, &former.mark.secrets),
        None => Err(no),
    })?;
    Ok(true)
}

/// The caller of a call from a server, which has checked its token. This server decides by its own list what the caller
/// may do: a name that it does not know may do nothing.
pub(crate) fn caller(headers: &HeaderMap, tokens: &Tokens) -> Result<Arc<Caller>, Refusal> {
    let mut names = headers.get_all(CALLER).iter();
    let Some(name) = names.next() else { return Ok(Caller::anyone()) };
    let name = name.to_str().ok().filter(|_| names.next().is_none()).unwrap_or_default();
    tokens.named(name).ok_or_else(|| AccessRefusal::CallerUnknown { caller: cut(name) }.into())
}

/// The address from which a forwarded call came to the first server.
pub(crate) fn peer(headers: &HeaderMap) -> Option<IpAddr> {
    headers.get(PEER)?.to_str().ok()?.parse().ok()
}

/// A name from outside, for a message.
fn cut(name: &str) -> String {
    name.chars().take(80).collect()
}

/// How long the caller of a forwarded call has waited already.
pub(crate) fn waited(headers: &HeaderMap) -> Span {
    let said = headers.get(WAITED).and_then(|value| value.to_str().ok()?.parse().ok());
    Duration::from_millis(said.unwrap_or(0)).into()
}

/// An id in the form that servers use among themselves.
pub(crate) fn hex(id: u128) -> String {
    format!("{id:032x}")
}

/// A path below the address of a server.
pub(crate) fn uri(to: &ServerUrl, path: &str) -> Result<Uri, hyper::http::uri::InvalidUri> {
    Uri::from_maybe_shared(format!("{}{path}", to.prefix))
}

/// A query without its parameter `wait`.
fn unwaited(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
    let left = query.split('&').filter(|pair| !pair.starts_with("wait="));
    format!("{path}?{}", left.collect::<Vec<_>>().join("&"))
}

/// The parts of a call that this server adds.
#[derive(Clone, Copy)]
pub(crate) struct Added<'c> {
    pub namespace: &'c Namespace,
    pub caller: &'c Arc<Caller>,
    /// The address of the caller, if it is known.
    pub peer: Option<IpAddr>,
}

/// Adds the caller of a forwarded call, and its address if that is known.
fn put_caller(
    headers: &mut HeaderMap,
    caller: &Caller,
    peer: Option<IpAddr>,
) -> Result<(), InvalidHeaderValue> {
    headers.insert(CALLER, HeaderValue::from_str(caller.name())?);
    if let Some(peer) = peer {
        headers.insert(PEER, HeaderValue::from_str(&peer.to_string())?);
    }
    Ok(())
}

/// The headers that say whose call of this process it is, with its id.
pub(crate) fn on_behalf(
    caller: &Caller,
    record: &CallRecord,
) -> Result<HeaderMap, InvalidHeaderValue> {
    let mut headers = HeaderMap::new();
    put_caller(&mut headers, caller, record.peer())?;
    if let Some(id) = record.request_id() {
        headers.insert(REQUEST_ID, HeaderValue::from_str(id)?);
    }
    Ok(headers)
}

/// The differences between an attempt and the first one.
#[derive(Clone, Copy, Default)]
pub(crate) struct SentWhen {
    /// How long the caller has waited. 0 for the first attempt.
    pub waited: Duration,
    /// Leaves out the wait that the query asks for.
    pub hurries: bool,
}

/// The call for the server at this address.
pub(crate) fn request(
    head: &Parts,
    added: Added<'_>,
    when: SentWhen,
    to: &ServerUrl,
    mark: &ServerMark,
    body: SentBody,
) -> Result<Request<SentBody>, hyper::http::Error> {
    let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let mut headers = passed(&head.headers, &OF_THE_CALLER);
    if headers.len() > HEADERS_MAX {
        headers = read_by_tenure(&headers);
    }
    headers.insert(gate::NAMESPACE, HeaderValue::from_str(added.namespace.as_str())?);
    put_caller(&mut headers, added.caller, added.peer)?;
    mark.put(&mut headers, to)?;
    if let waited @ 1.. = when.waited.as_millis() {
        headers.insert(WAITED, HeaderValue::from_str(&waited.to_string())?);
    }
    if !matches!(body, SentBody::Whole(None)) {
        // A body may consist of an added id alone.
        headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
    }
    let mut request = Request::new(body);
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = if when.hurries { uri(to, &unwaited(path))? } else { uri(to, path)? };
    *request.headers_mut() = headers;
    Ok(request)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tenure::StoreUrl;
    use tenure_core::secret::Secret;

    use super::*;

    fn mark(secret: &str) -> ServerMark {
        let (secret, trust) = (Secret::new(secret), Default::default());
        ServerMark::of(&PeerGroup { server: 7, store: 1, secret, trust }).unwrap()
    }

    #[test]
    fn a_call_goes_along_without_what_was_for_the_first_server() {
        let Ok(StoreUrl::Server(to)) = "http://[::1]:7/below".parse() else { panic!("a server") };
        let came = Request::post("http://a.example/v1/jobs?full=true")
            .header("host", "a.example")
            .header("authorization", "Bearer of-the-caller")
            .header("origin", "http://a.example")
            .header("connection", "keep-alive, X-Mine, Tenure-Namespace, prefer")
            .header("x-mine", "1")
            .header("transfer-encoding", "chunked")
            .header("cookie", "session")
            .header("tenure-namespace", "other")
            .header("tenure-waited", "60000")
            .header("tenure-caller", "token-1")
            .header("tenure-peer", "198.51.100.9")
            .header("prefer", "return=minimal")
            .header("x-two", "1")
            .header("x-two", "2");
        let (head, ()) = came.body(()).unwrap().into_parts();
        let body = SentBody::whole(Bytes::from_static(b"{}"));
        let other = "other".parse().unwrap();
        let anyone = Caller::anyone();
        let added = Added { namespace: &other, caller: &anyone, peer: "192.0.2.7".parse().ok() };
        let sent = request(&head, added, SentWhen::default(), &to, &mark("s3cret"), body).unwrap();
        assert_eq!(
            (sent.method().as_str(), sent.uri().to_string().as_str()),
            ("POST", "/below/v1/jobs?full=true")
        );
        let mut headers: Vec<(&str, &str)> = sent
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        headers.sort_unstable();
        assert_eq!(
            headers,
            [
                ("authorization", "Bearer s3cret"),
                ("content-type", "application/json"),
                ("host", "[::1]:7"),
                ("prefer", "return=minimal"),
                ("tenure-caller", "anyone"),
                ("tenure-from-server", "00000000000000000000000000000007"),
                ("tenure-namespace", "other"),
                ("tenure-peer", "192.0.2.7"),
                ("x-two", "1"),
                ("x-two", "2"),
            ]
        );
        assert!(!format!("{:?} {:?}", sent.headers(), mark("s3cret")).contains("s3cret"));
    }

    #[test]
    fn a_call_that_hurries_waits_for_nothing() {
        for (path, sent) in [
            ("/v1/jobs/a/result?wait=60s", "/v1/jobs/a/result?"),
            ("/v1/events?since=first&wait=1s&max=7", "/v1/events?since=first&max=7"),
            ("/v1/flows/f", "/v1/flows/f"),
        ] {
            assert_eq!(unwaited(path), sent);
        }
    }

    #[test]
    fn a_mark_needs_the_secret_of_the_servers() {
        let ours = mark("s3cret");
        let Ok(StoreUrl::Server(to)) = "http://h:7".parse() else { panic!("a server") };
        let shown = |secret: &str| {
            let mut headers = HeaderMap::new();
            mark(secret).put(&mut headers, &to).unwrap();
            headers
        };
        assert_eq!(is_from_server(&HeaderMap::new(), Some(&ours), || None, false), Ok(false));
        assert_eq!(is_from_server(&shown("s3cret"), Some(&ours), || None, false), Ok(true));
        let mut without = shown("s3cret");
        without.remove(AUTHORIZATION);
        assert!(is_from_server(&shown("other"), Some(&ours), || None, false).is_err());
        assert!(is_from_server(&without, Some(&ours), || None, false).is_err());
        assert!(is_from_server(&shown("s3cret"), None, || None, false).is_err());
    }
}
