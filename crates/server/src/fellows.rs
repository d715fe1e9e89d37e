//! What the servers of one store ask each other, beside calls that they pass on: whether one serves, to undo grants that did
//! not reach their callers, and to write a snapshot for the owner. Only who shows the secret of the servers is answered; to anybody else these paths lead nowhere.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Collected, Full, Limited};
use hyper::{Method, Request, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenure::ServerUrl;
use tenure::remote::wire::{AnswerBegun, NotBegun};
use tenure_core::names::Namespace;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use crate::answer;
use crate::out::Out;
use crate::pass_on::{self, ServerMark, UNDO_PATH, hex, not_owner};
use crate::problem;
use crate::snapshots::{AskedSnapshot, WrittenSnapshot};
use crate::whereabouts::{Fellowship, Serves, Whereabouts};

/// Where a server says whether it serves.
const SERVER_PATH: &str = "/v1/server";
/// A server that cannot say yet whether it serves is asked again after this long.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// Where a server is asked to write a snapshot for the owner.
const SNAPSHOT_PATH: &str = "/v1/server/snapshot";
/// The owner ends the call when it waits no longer, so this is only a bound.
const SNAPSHOT_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// More than this is no answer of a server.
const ANSWER_BYTES_MAX: usize = 4 * 1024;

/// What a server says of itself.
#[derive(Debug, Serialize, Deserialize)]
struct ServerSelf {
    /// The id of its process, as 32 digits of base 16.
    server: String,
    /// The id of its store, likewise.
    store: String,
    /// Whether it answers calls itself.
    serves: bool,
    /// The last epoch at which it served.
    served_at: Option<u64>,
}

/// Whether a path is one of these.
pub(crate) fn is_theirs(path: &str) -> bool {
    [SERVER_PATH, UNDO_PATH, SNAPSHOT_PATH].contains(&path)
}

/// Tells a thread that the call for which it works has ended.
struct EndsWith(Arc<AtomicBool>);

impl Drop for EndsWith {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Has a snapshot written, as long as this is polled.
async fn written(body: &[u8], whereabouts: &Whereabouts) -> Option<WrittenSnapshot> {
    let (writes, asked) = (whereabouts.snapshots()?.clone(), serde_json::from_slice(body).ok()?);
    let is_over = Arc::new(AtomicBool::new(false));
    let _ends = EndsWith(is_over.clone());
    let goes_on = move || !is_over.load(Ordering::Acquire);
    spawn_blocking(move || writes.write(&asked, &goes_on)).await.ok().flatten()
}

/// Answers another server; `None`: not by this method. `drained` ends when this server drains.
pub(crate) async fn answered(
    method: &Method,
    path: &str,
    namespace: &Namespace,
    body: &[u8],
    whereabouts: &Whereabouts,
    drained: impl Future<Output = ()>,
) -> Option<Response<Out>> {
    let fellowship = whereabouts.fellowship()?;
    let serves = whereabouts.now();
    match (method, path) {
        (&Method::GET, SERVER_PATH) => Some(answer::json(
            200,
            &ServerSelf {
                server: hex(fellowship.server),
                store: hex(fellowship.store),
                serves: matches!(serves, Serves::Here { .. }),
                served_at: whereabouts.served_at(),
            },
        )),
        (&Method::POST, UNDO_PATH) => {
            let Serves::Here { engine, .. } = serves else {
                return Some(problem::response(&not_owner()));
            };
            // What is no list of leases undoes nothing: an undo is a hint.
            engine.undo(namespace, serde_json::from_slice(body).unwrap_or_default());
            let mut response = Response::new(Out::whole(Vec::new()));
            *response.status_mut() = StatusCode::NO_CONTENT;
            Some(response)
        }
        (&Method::POST, SNAPSHOT_PATH) => {
            let written = tokio::select! {
                written = written(body, whereabouts) => written,
                () = drained => None,
            };
            Some(answer::json(200, &written))
        }
        _ => None,
    }
}

/// What is known of a server that was asked whether it serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerSays {
    /// The process is gone: its address refuses connections, or another process answers there.
    Refused,
    /// It did not answer in time. It may live.
    Silent,
    /// It answered.
    Says {
        /// Whether it answers calls itself.
        serves: bool,
        /// The last epoch at which an append of its was confirmed; `None`: none was.
        served_at: Option<u64>,
    },
}

/// The future of a question to another server.
pub type ServerSaysFuture = Pin<Box<dyn Future<Output = ServerSays> + Send>>;

/// Asks the other servers of a store whether they serve it.
#[derive(Clone, Debug)]
pub struct AsksServers(Arc<Fellowship>);

impl AsksServers {
    /// As a server of this store.
    pub fn new(fellowship: Fellowship) -> Self {
        AsksServers(Arc::new(fellowship))
    }

    /// Asks the process with this id at this address, and waits for at most `within`.
    pub fn ask(&self, url: &ServerUrl, server: u128, within: Duration) -> ServerSaysFuture {
        let (fellowship, url) = (self.0.clone(), url.clone());
        Box::pin(async move {
            let asks = async {
                loop {
                    if let Some(says) = asked(&fellowship, &url, server, within).await {
                        return says;
                    }
                    sleep(ASK_AGAIN_AFTER).await;
                }
            };
            timeout(within, asks).await.unwrap_or(ServerSays::Silent)
        })
    }

    /// Has the server at this address write a snapshot for the owner. It goes on for as long as this is polled, which may be
    /// minutes. `None`: it did not, or cannot be reached.
    pub fn write_snapshot(&self, url: &ServerUrl, asked: &AskedSnapshot) -> WrittenSnapshotFuture {
        let (fellowship, url) = (self.0.clone(), url.clone());
        let body = serde_json::to_vec(asked).unwrap_or_default();
        Box::pin(async move {
            let wire = pass_on::wire::<Full<Bytes>>(&url, &fellowship).ok()?;
            let request = marked(&fellowship, &url, Method::POST, SNAPSHOT_PATH, body.into())?;
            said(wire.begin(request, SNAPSHOT_MAX).await.ok()?).await?
        })
    }
}

/// The future of a snapshot that another server writes.
pub type WrittenSnapshotFuture = Pin<Box<dyn Future<Output = Option<WrittenSnapshot>> + Send>>;

/// Asks once; `None`: it cannot say yet.
async fn asked(
    fellowship: &Fellowship,
    url: &ServerUrl,
    server: u128,
    within: Duration,
) -> Option<ServerSays> {
    let Ok(wire) = pass_on::wire::<Full<Bytes>>(url, fellowship) else {
        return Some(ServerSays::Silent);
    };
    let Some(request) = marked(fellowship, url, Method::GET, SERVER_PATH, Bytes::new()) else {
        return Some(ServerSays::Silent);
    };
    let begun = match wire.begin(request, within).await {
        Ok(begun) => begun,
        Err(NotBegun::NotSent { refused: true, .. }) => return Some(ServerSays::Refused),
        Err(_) => return Some(ServerSays::Silent),
    };
    // A server that has just started does not know its store yet, and cannot say who it is. It knows that some ms after it, or
    // another server, has made the store: whoever asks it then would call it silent, and warn of a server that is well.
    let (status, says) = answer_of::<ServerSelf>(begun).await;
    if status == StatusCode::SERVICE_UNAVAILABLE {
        return None;
    }
    // A server that has another secret just now is a server, and a proxy that cannot reach one has not seen it end.
    if status == StatusCode::UNAUTHORIZED || status.is_server_error() {
        return Some(ServerSays::Silent);
    }
    // Whoever answers with anything else is not the process that was asked.
    let says =
        says.filter(|says| says.server == hex(server) && says.store == hex(fellowship.store));
    Some(says.map_or(ServerSays::Refused, |says| ServerSays::Says {
        serves: says.serves,
        served_at: says.served_at,
    }))
}

/// A call of a server, by which the others know it.
fn marked(
    fellowship: &Fellowship,
    url: &ServerUrl,
    method: Method,
    path: &str,
    body: Bytes,
) -> Option<Request<Full<Bytes>>> {
    let mut request = Request::new(Full::from(body));
    *request.method_mut() = method;
    *request.uri_mut() = format!("{}{path}", url.prefix).parse().ok()?;
    ServerMark::of(fellowship).ok()?.put(request.headers_mut(), url).ok()?;
    Some(request)
}

async fn said<T: DeserializeOwned>(begun: AnswerBegun<Full<Bytes>>) -> Option<T> {
    answer_of(begun).await.1
}

/// The status, and what is said if that is 200.
async fn answer_of<T: DeserializeOwned>(
    begun: AnswerBegun<Full<Bytes>>,
) -> (StatusCode, Option<T>) {
    // The connection is closed after the one answer.
    let (head, body, _used) = begun.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map(Collected::to_bytes);
    let says = body.ok().filter(|_| head.status == StatusCode::OK);
    (head.status, says.and_then(|body| serde_json::from_slice(&body).ok()))
}
