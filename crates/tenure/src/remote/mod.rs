//! The engine that is another Tenure, over HTTP.
//!
//! Method and path of a request come from the table of operations (`tenure_core::requests`). Its query and its body are
//! said in the file of its subject, by [`ask::OverHttp`]; `answer` reads the reply by its type, `wire` sends and hears.
//! Nothing here decides, repeats what changes something ([`crate::repeat`] does), or reads a clock, except for timeouts.

mod answer;
mod ask;
mod body;
mod events;
mod flows;
mod jobs;
mod leases;
mod limits;
mod pools;
mod queues;
mod resources;
mod schedules;
mod stats;
pub mod wire;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Uri;
use hyper::header::{
    AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue,
    USER_AGENT,
};
use tenure_core::bounds::ITEMS_MAX;
use tenure_core::lease::{Ending, SettleItem};
use tenure_core::names::Namespace;
use tenure_core::requests::{GetFlow, GetResult, ReadEvents, Reply, Request, Settle};
use tenure_core::secret::Secret;
use tenure_engine::joining::{Joining, MakesCalls};
use tenure_engine::{CallError, CallFuture, Engine, Fault, Health};
pub use tenure_tls::{Identity, Trust};
use tenure_tls::{TlsError, for_http_trusting};

use self::ask::{HttpCall, Unsendable};
use self::wire::{NoAnswer, Wire};
use crate::url::ServerUrl;

const NAMESPACE: HeaderName = HeaderName::from_static("tenure-namespace");
const PREFER: HeaderName = HeaderName::from_static("prefer");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("tenure/", env!("CARGO_PKG_VERSION")));

/// How long an answer may take, beyond the wait that a call asks for itself.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// A whole set of a pool, or a page of a thousand jobs, is more work.
const LONG_ANSWER_MAX: Duration = Duration::from_secs(60);

/// Why a remote engine could not be made. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The token has characters that no header can carry.
    #[error("the token has characters that no header can carry; use printable ASCII")]
    Token,
    /// The host cannot stand in a request.
    #[error("the host \"{0}\" cannot be reached by that name; check the address")]
    Host(String),
    /// TLS cannot be set up, or no certificate can carry the host's name.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Another Tenure over HTTP. Cheap to clone; all clones share their connections.
///
/// Every call needs a Tokio runtime with I/O and time enabled, and its connection belongs to that
/// runtime. Dropping the future of a call closes the connection it was sent on, by which the server
/// learns that the caller is gone and takes back what it would have granted.
#[derive(Clone)]
pub struct Remote {
    inner: Arc<RemoteInner>,
    joining: Joining<HttpSender>,
}

struct RemoteInner {
    wire: Wire,
    /// What every call shows, such as the token.
    shown: HeaderMap,
    /// Why the last call could not be sent; `None` after one that was answered.
    trouble: Mutex<Option<String>>,
}

impl Remote {
    /// A server at this address. Nothing is sent before the first call.
    ///
    /// # Errors
    /// [`RemoteError`]: the token or host cannot stand in a request, or TLS cannot be set up.
    pub fn open(url: &ServerUrl, token: Option<&Secret>) -> Result<Self, RemoteError> {
        Remote::trusting(url, token, &Trust::default())
    }

    /// The same, of a server whose certificate is of another authority than those of the system, or that asks for one of its
    /// clients. In clear (`http://`) it is the same as [`Remote::open`].
    ///
    /// # Errors
    /// As [`Remote::open`], and if a file of `trust` cannot be used.
    pub fn trusting(
        url: &ServerUrl,
        token: Option<&Secret>,
        trust: &Trust,
    ) -> Result<Self, RemoteError> {
        let mut shown = HeaderMap::new();
        if let Some(token) = token {
            shown.insert(AUTHORIZATION, bearer(token).map_err(|_| RemoteError::Token)?);
        }
        Remote::showing(url, shown, trust)
    }

    /// The same, where every call has these headers, of which one may be a token.
    ///
    /// # Errors
    /// As [`Remote::trusting`].
    pub fn showing(
        url: &ServerUrl,
        mut shown: HeaderMap,
        trust: &Trust,
    ) -> Result<Self, RemoteError> {
        let host = HeaderValue::from_str(&url.authority())
            .map_err(|_| RemoteError::Host(url.host.clone()))?;
        shown.insert(HOST, host);
        shown.insert(USER_AGENT, AGENT);
        let tls = match url.tls {
            true => Some(for_http_trusting(trust, &url.host)?),
            false => None,
        };
        let wire = Wire::new(url.clone(), tls);
        let inner = Arc::new(RemoteInner { wire, shown, trouble: Mutex::default() });
        Ok(Remote { joining: Joining::new(HttpSender(inner.clone())), inner })
    }

    /// The server.
    pub fn url(&self) -> &ServerUrl {
        self.inner.wire.url()
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({})", self.url())
    }
}

fn bearer(token: &Secret) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.reveal()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// How long the answer to a request may take.
fn patience(request: &Request) -> Duration {
    match request {
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

impl RemoteInner {
    fn http(
        &self,
        namespace: &Namespace,
        ask: HttpCall,
    ) -> Result<hyper::Request<Full<Bytes>>, CallError> {
        let broken = |what: String| CallError::Fault(Fault::Broken(what));
        let path = match self.wire.url().prefix.as_str() {
            "" => ask.path,
            prefix => format!("{prefix}{}", ask.path),
        };
        let uri = Uri::from_maybe_shared(path)
            .map_err(|why| broken(format!("a path cannot be sent: {why}")))?;
        let name = HeaderValue::from_str(namespace.as_str())
            .map_err(|why| broken(format!("a namespace cannot be sent: {why}")))?;
        let (media, bytes) = match ask.body {
            Some(body) => (Some(body.media), body.bytes),
            None => (None, Bytes::new()),
        };
        let mut http = hyper::Request::new(Full::new(bytes));
        *http.method_mut() = ask.method;
        *http.uri_mut() = uri;
        let headers = http.headers_mut();
        headers.clone_from(&self.shown);
        headers.insert(NAMESPACE, name);
        if let Some(media) = media {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
        }
        if ask.minimal {
            headers.insert(PREFER, HeaderValue::from_static("return=minimal"));
        }
        Ok(http)
    }

    async fn call(&self, namespace: Namespace, request: Request) -> Result<Reply, CallError> {
        let name = request.spec().name;
        let effect = request.effect();
        let limit = patience(&request);
        let ask = ask::ask(&request).map_err(|why| match why {
            Unsendable::Refused(no) => CallError::Refused(no),
            Unsendable::Broken(fault) => CallError::Fault(fault),
        })?;
        // What was written into the body is not kept twice while the answer is waited for.
        drop(request);
        let read = ask.read;
        let http = self.http(&namespace, ask)?;
        let place = || self.wire.url().authority();
        match self.wire.send(http, effect, limit).await {
            Ok(heard) => {
                self.note(None);
                answer::answer(&heard, read, name, effect, &place())
            }
            Err(NoAnswer::NotSent(why)) => {
                self.note(Some(why.clone()));
                Err(CallError::Fault(Fault::Unavailable(why)))
            }
            Err(NoAnswer::Lost(why)) => {
                let why = format!("{}: {why}", place());
                self.note(Some(why.clone()));
                Err(CallError::Fault(answer::lost(effect, why)))
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

    /// HTTP knows no undo, since only the side that wrote the answer can know that it did not leave.
    /// The leases are settled `released`, once and without an answer: what they held is free at once
    /// and not after a ttl, at the price that a job whose releases are two in a row waits a second.
    /// Without a Tokio runtime nothing is sent, and they end with their ttl.
    fn undo(&self, namespace: &Namespace, leases: Vec<String>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let released = |lease| SettleItem::new(lease, Ending::Released);
        for chunk in leases.chunks(ITEMS_MAX) {
            let settle = Settle::of(chunk.iter().cloned().map(released).collect());
            let (inner, namespace) = (self.inner.clone(), namespace.clone());
            runtime.spawn(async move { inner.call(namespace, settle.into()).await });
        }
    }

    /// Nothing to do here: the other side drains when it is told to.
    fn drain(&self) {}
}
