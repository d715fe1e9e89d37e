//! Remote engine: calls another Tenure over HTTP.
//!
//! A request gets its method and path from the table of operations (`tenure_core::requests`), and its query and body
//! from its declaration (`tenure_core::decode`); `answer` reads the reply by its type, `wire` does the I/O.
//! Nothing here decides, retries changes ([`crate::repeat`] does), or reads a clock, except for timeouts.

mod answer;
mod ask;
mod backup;
mod choice;
mod search;
mod servers;
pub mod wire;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue,
    USER_AGENT,
};
use hyper::{Method, Uri};
use tenure_core::bounds::ITEMS_MAX;
use tenure_core::lease::{Ending, SettleItem};
use tenure_core::names::Namespace;
use tenure_core::requests::{Effect, GetFlow, GetResult, ReadEvents, Reply, Request, Settle};
use tenure_core::secret::Secret;
use tenure_engine_api::joining::{Joining, MakesCalls};
use tenure_engine_api::{CallError, CallFuture, Engine, Fault, Health};
use tenure_tls::TlsError;
pub use tenure_tls::{Identity, Trust};

use self::ask::{HttpCall, Unsendable};
pub use self::backup::BackupStream;
pub use self::servers::Callee;
use self::servers::{CalledServer, CalledServers, TriedServers};
use self::wire::NoAnswer;
use crate::asking::broken;
use crate::url::ServerUrl;

const NAMESPACE: HeaderName = HeaderName::from_static("tenure-namespace");
const PREFER: HeaderName = HeaderName::from_static("prefer");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("tenure/", env!("CARGO_PKG_VERSION")));

/// How long an answer may take, beyond the wait that the call requests.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// The same for a heartbeat with several servers: a silent one must be left well before a short lease ends.
const HEARTBEAT_ANSWER_MAX: Duration = Duration::from_secs(3);
/// The same for a whole set of a pool, or a page of a thousand jobs, which take longer.
const LONG_ANSWER_MAX: Duration = Duration::from_secs(60);

/// Why a remote engine could not be made. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The token has characters that a header cannot carry.
    #[error("the token has characters that no header can carry; use printable ASCII")]
    Token,
    /// The host cannot be written in a request.
    #[error("the host \"{0}\" cannot be reached by that name; check the address")]
    Host(String),
    /// TLS cannot be set up, or no certificate can carry the host's name.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Another Tenure over HTTP. Cheap to clone; all clones share their connections.
///
/// Every call needs a Tokio runtime with I/O and time enabled, and its connection belongs to that runtime. Dropping the
/// future of a call closes its connection: so the server learns that the caller is gone, and takes back its grant.
#[derive(Clone)]
pub struct Remote {
    inner: Arc<RemoteInner>,
    joining: Joining<HttpSender>,
}

struct RemoteInner {
    servers: Arc<CalledServers>,
    /// Headers of every call, such as the token.
    shown: HeaderMap,
    /// Why the last call could not be sent; `None` after one that was answered.
    trouble: Mutex<Option<String>>,
}

impl Remote {
    /// A server at this address. Nothing is sent before the first call.
    ///
    /// # Errors
    /// [`RemoteError`]: the token or host cannot be written in a request, or TLS cannot be set up.
    pub fn open(url: &ServerUrl, token: Option<&Secret>) -> Result<Self, RemoteError> {
        Remote::trusting(url.into(), token, &Trust::default())
    }

    /// The servers of one store, called one at a time. `trust` may name an authority for their certificates in place of
    /// the system's, and a certificate of the client for servers that ask for one; without TLS (`http://`) it has no
    /// effect.
    ///
    /// # Errors
    /// As [`Remote::open`], and if a file of `trust` cannot be used.
    pub fn trusting(
        callee: Callee,
        token: Option<&Secret>,
        trust: &Trust,
    ) -> Result<Self, RemoteError> {
        let mut shown = HeaderMap::new();
        if let Some(token) = token {
            shown.insert(AUTHORIZATION, bearer(token).map_err(|_| RemoteError::Token)?);
        }
        Remote::showing(callee, shown, trust)
    }

    /// The same, with these headers on every call; one of them may be a token.
    ///
    /// # Errors
    /// As [`Remote::trusting`].
    pub fn showing(
        callee: Callee,
        mut shown: HeaderMap,
        trust: &Trust,
    ) -> Result<Self, RemoteError> {
        shown.insert(USER_AGENT, AGENT);
        let servers = CalledServers::new(callee, shown.contains_key(AUTHORIZATION), trust)?;
        Ok(Remote::of(Arc::new(servers), shown))
    }

    fn of(servers: Arc<CalledServers>, shown: HeaderMap) -> Self {
        let inner = Arc::new(RemoteInner { servers, shown, trouble: Mutex::default() });
        Remote { joining: Joining::new(HttpSender(inner.clone())), inner }
    }

    /// The same servers by the same connections, with these headers beside its own. Its calls are not joined with
    /// others.
    #[must_use]
    pub fn also_showing(&self, more: HeaderMap) -> Self {
        let mut shown = self.inner.shown.clone();
        shown.extend(more);
        Remote::of(self.inner.servers.clone(), shown)
    }

    /// The server of the next call; `None` if it must be looked up first.
    pub fn server(&self) -> Option<ServerUrl> {
        self.inner.servers.choice().at().cloned()
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({})", self.inner.servers.shown())
    }
}

fn bearer(token: &Secret) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.reveal()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// How long the answer to a request may take, from one server or from one of several.
fn patience(request: &Request, are_several: bool) -> Duration {
    match request {
        Request::Extend(_) if are_several => HEARTBEAT_ANSWER_MAX,
        Request::Lease(lease) => lease.wait.std().saturating_add(ANSWER_MAX),
        Request::Settle(Settle { lease: Some(lease), .. }) => {
            lease.wait.std().saturating_add(ANSWER_MAX)
        }
        Request::GetResult(GetResult { wait, .. })
        | Request::GetFlow(GetFlow { wait, .. })
        | Request::ReadEvents(ReadEvents { wait, .. }) => wait.std().saturating_add(ANSWER_MAX),
        Request::SyncResources(_)
        | Request::ListJobs(_)
        | Request::ListParents(_)
        | Request::Audit(_) => LONG_ANSWER_MAX,
        _ => ANSWER_MAX,
    }
}

/// A request written once, for one server after the other.
struct WrittenCall {
    namespace: HeaderValue,
    http: HttpCall,
    name: &'static str,
    effect: Effect,
    /// How long an answer may take.
    limit: Duration,
}

/// The result of sending a call to one server.
struct OneSending {
    answer: Result<Reply, CallError>,
    /// Another server may be called: this one did not serve.
    leads_elsewhere: bool,
}

impl WrittenCall {
    fn new(namespace: &Namespace, request: &Request, are_several: bool) -> Result<Self, CallError> {
        let namespace = HeaderValue::from_str(namespace.as_str())
            .map_err(|why| broken(&format!("a namespace cannot be sent: {why}")))?;
        let http = ask::ask(request).map_err(|why| match why {
            Unsendable::Refused(no) => CallError::Refused(no),
            Unsendable::Broken(fault) => CallError::Fault(fault),
        })?;
        let (name, effect) = (request.spec().name, request.effect());
        let limit = patience(request, are_several);
        Ok(WrittenCall { namespace, http, name, effect, limit })
    }

    /// The request for one server.
    fn to(
        &self,
        server: &CalledServer,
        shown: &HeaderMap,
    ) -> Result<hyper::Request<Full<Bytes>>, CallError> {
        let (media, bytes) = match &self.http.body {
            Some(body) => (Some(body.media), body.bytes.clone()),
            None => (None, Bytes::new()),
        };
        let (method, path) = (self.http.method.clone(), &self.http.path);
        let mut http = request_to(server, shown, (method, path), bytes)?;
        let headers = http.headers_mut();
        headers.insert(NAMESPACE, self.namespace.clone());
        if let Some(media) = media {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
        }
        if self.http.minimal {
            headers.insert(PREFER, HeaderValue::from_static("return=minimal"));
        }
        Ok(http)
    }
}

/// A request with the headers of every call.
fn request_to(
    server: &CalledServer,
    shown: &HeaderMap,
    (method, path): (Method, &str),
    body: Bytes,
) -> Result<hyper::Request<Full<Bytes>>, CallError> {
    let path = match server.wire.url().prefix.as_str() {
        "" => path.to_owned(),
        prefix => format!("{prefix}{path}"),
    };
    let uri = Uri::from_maybe_shared(path)
        .map_err(|why| broken(&format!("a path cannot be sent: {why}")))?;
    let mut http = hyper::Request::new(Full::new(body));
    *http.method_mut() = method;
    *http.uri_mut() = uri;
    http.headers_mut().clone_from(shown);
    http.headers_mut().insert(HOST, server.host.clone());
    Ok(http)
}

impl RemoteInner {
    /// Tries one server after the other while nothing has happened; only [`crate::repeat`] retries a call that may have
    /// happened, and finds the next server here.
    async fn call(&self, namespace: Namespace, request: Request) -> Result<Reply, CallError> {
        let are_several = self.servers.choice().are_several();
        let call = WrittenCall::new(&namespace, &request, are_several)?;
        // Dropped early: its content is in the body already, and must not be kept twice during the wait.
        drop(request);
        let mut tried = TriedServers::default();
        let mut last = None;
        loop {
            let server = match self.servers.next(&mut tried).await {
                Ok(Some(server)) => server,
                // All servers were tried: the last answer holds.
                Ok(None) => break,
                Err(fault) => {
                    self.note(Some(fault.to_string()));
                    return Err(fault.into());
                }
            };
            let OneSending { answer, leads_elsewhere } = self.send(&call, &server).await?;
            let may_have_happened = matches!(answer, Err(CallError::Fault(Fault::Unknown(_))));
            if !leads_elsewhere || may_have_happened {
                return answer;
            }
            last = Some(answer);
        }
        let nobody = || Err(CallError::Fault(Fault::Unavailable("no server was found".to_owned())));
        last.unwrap_or_else(nobody).map_err(|error| match error {
            CallError::Fault(Fault::Unavailable(why)) if are_several => {
                let all = self.servers.shown();
                let why = format!("no server can be reached at {all}; the last fault: {why}");
                CallError::Fault(Fault::Unavailable(why))
            }
            other => other,
        })
    }

    async fn send(&self, call: &WrittenCall, server: &ServerUrl) -> Result<OneSending, CallError> {
        let unavailable = |why: String| {
            self.note(Some(why.clone()));
            self.servers.choice().lost(server, Instant::now());
            let answer = Err(CallError::Fault(Fault::Unavailable(why)));
            Ok(OneSending { answer, leads_elsewhere: true })
        };
        let called = match self.servers.called(server) {
            Ok(called) => called,
            Err(why) => return unavailable(why),
        };
        let place = server.authority();
        let http = call.to(&called, &self.shown)?;
        match called.wire.send(http, call.effect, call.limit).await {
            Ok(heard) => {
                self.note(None);
                let leads_elsewhere = answer::leads_elsewhere(&heard);
                let mut choice = self.servers.choice();
                match &heard.owner {
                    _ if leads_elsewhere => choice.leave(server),
                    Some(owner) if heard.status < 500 => {
                        choice.named(server, owner, Instant::now())
                    }
                    _ => {}
                }
                drop(choice);
                let answer = answer::answer(&heard, call.http.read, call.name, call.effect, &place);
                Ok(OneSending { answer, leads_elsewhere })
            }
            Err(NoAnswer::NotSent(why)) => unavailable(why),
            Err(NoAnswer::Lost { why, stale }) => {
                let why = format!("{place}: {why}");
                self.note(Some(why.clone()));
                if !stale {
                    self.servers.choice().lost(server, Instant::now());
                }
                let answer = Err(CallError::Fault(answer::lost(call.effect, why)));
                Ok(OneSending { answer, leads_elsewhere: !stale })
            }
        }
    }

    fn note(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

/// Sends calls one by one.
#[derive(Clone)]
struct HttpSender(Arc<RemoteInner>);

impl MakesCalls for HttpSender {
    fn make(&self, namespace: &Namespace, request: Request) -> CallFuture {
        let (inner, namespace) = (self.0.clone(), namespace.clone());
        Box::pin(async move { inner.call(namespace, request).await })
    }
}

impl Engine for Remote {
    fn call(&self, namespace: &Namespace, request: Request) -> CallFuture {
        self.joining.call(namespace, request)
    }

    /// Degraded while the last call got no answer.
    fn health(&self) -> Health {
        let trouble = self.inner.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        Health { degraded: trouble.clone(), store: "remote" }
    }

    /// HTTP has no undo, since only the side that wrote the answer can know that it did not leave. The leases are
    /// settled `released`, once and without waiting: their needs are free at once and not after a ttl, at the price
    /// that a job with two releases in a row waits a second. Without a Tokio runtime nothing is sent, and they end with
    /// their ttl.
    fn undo(&self, namespace: &Namespace, leases: Vec<String>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let released = |lease| SettleItem::new(lease, Ending::Released);
        for chunk in leases.chunks(ITEMS_MAX) {
            let settle = Settle::of(chunk.iter().cloned().map(released).collect());
            let (inner, namespace) = (self.inner.clone(), namespace.clone());
            runtime.spawn(async move { inner.call(namespace, settle.into()).await });
        }
    }

    /// Nothing to do here: the server drains on its own command.
    fn drain(&self) {}
}
