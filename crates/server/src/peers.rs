//! Requests between the servers of one store, beside forwarded calls: does a server serve, undo grants that did not
//! reach their callers, write a snapshot for the leader. Only a server that shows the secret of the servers is
//! answered; for anybody else these paths lead nowhere.

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
use crate::forward::{self, ServerMark, UNDO_PATH, hex, not_owner};
use crate::leadership::{Leadership, PeerGroup, ServingLeader};
use crate::out::Out;
use crate::problem;
use crate::snapshots::{AskedSnapshot, WrittenSnapshot};

/// Where a server says whether it serves.
const SERVER_PATH: &str = "/v1/server";
/// A server that does not know its store yet is asked again after this.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// Where the leader asks a server to write a snapshot.
const SNAPSHOT_PATH: &str = "/v1/server/snapshot";
/// Only a bound: the leader ends the call when it no longer waits.
const SNAPSHOT_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Longer answers do not come from a server of Tenure.
const ANSWER_BYTES_MAX: usize = 4 * 1024;

/// A server's description of itself.
#[derive(Debug, Serialize, Deserialize)]
struct ServerSelf {
    /// The id of its process, as 32 hexadecimal digits.
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

/// Notifies a thread that the call for which it works has ended.
struct EndsWith(Arc<AtomicBool>);

impl Drop for EndsWith {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Writes a snapshot for as long as the future is polled.
async fn written(body: &[u8], leadership: &Leadership) -> Option<WrittenSnapshot> {
    let (writes, asked) = (leadership.snapshots()?.clone(), serde_json::from_slice(body).ok()?);
    let is_over = Arc::new(AtomicBool::new(false));
    let _ends = EndsWith(is_over.clone());
    let goes_on = move || !is_over.load(Ordering::Acquire);
    spawn_blocking(move || writes.write(&asked, &goes_on)).await.ok().flatten()
}

/// Answers another server; `None`: no such method. `drained` ends when this server drains.
pub(crate) async fn answered(
    method: &Method,
    path: &str,
    namespace: &Namespace,
    body: &[u8],
    leadership: &Leadership,
    drained: impl Future<Output = ()>,
) -> Option<Response<Out>> {
    let peer_group = leadership.peer_group()?;
    let serves = leadership.now();
    match (method, path) {
        (&Method::GET, SERVER_PATH) => Some(answer::json(
            200,
            &ServerSelf {
                server: hex(peer_group.server),
                store: hex(peer_group.store),
                serves: matches!(serves, ServingLeader::Local { .. }),
                served_at: leadership.served_at(),
            },
        )),
        (&Method::POST, UNDO_PATH) => {
            let ServingLeader::Local { engine, .. } = serves else {
                return Some(problem::response(&not_owner()));
            };
            // A body that is no list of leases undoes nothing: an undo is a hint.
            engine.undo(namespace, serde_json::from_slice(body).unwrap_or_default());
            let mut response = Response::new(Out::whole(Vec::new()));
            *response.status_mut() = StatusCode::NO_CONTENT;
            Some(response)
        }
        (&Method::POST, SNAPSHOT_PATH) => {
            let written = tokio::select! {
                written = written(body, leadership) => written,
                () = drained => None,
            };
            Some(answer::json(200, &written))
        }
        _ => None,
    }
}

/// The answer of a server to [`AsksServers::ask`], or its absence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerSays {
    /// The process is gone: its address refuses connections, or another process answers there.
    Refused,
    /// It did not answer in time, and may still be alive.
    Silent,
    /// An answer of the process that was asked.
    Says {
        /// Whether it answers calls itself.
        serves: bool,
        /// The last epoch at which one of its appends was confirmed; `None`: no append was.
        served_at: Option<u64>,
    },
}

/// The future of [`AsksServers::ask`].
pub type ServerSaysFuture = Pin<Box<dyn Future<Output = ServerSays> + Send>>;

/// Asks the other servers of a store whether they serve it.
#[derive(Clone, Debug)]
pub struct AsksServers(Arc<PeerGroup>);

impl AsksServers {
    /// Asks as a server of this store.
    pub fn new(peer_group: PeerGroup) -> Self {
        AsksServers(Arc::new(peer_group))
    }

    /// Asks the process with this id at this address, and waits for at most `within`.
    pub fn ask(&self, url: &ServerUrl, server: u128, within: Duration) -> ServerSaysFuture {
        let (peer_group, url) = (self.0.clone(), url.clone());
        Box::pin(async move {
            let asks = async {
                loop {
                    if let Some(says) = asked(&peer_group, &url, server, within).await {
                        return says;
                    }
                    sleep(ASK_AGAIN_AFTER).await;
                }
            };
            timeout(within, asks).await.unwrap_or(ServerSays::Silent)
        })
    }

    /// Has the server at this address write a snapshot for the leader. It writes for as long as the future is polled,
    /// which may be minutes. `None`: it did not write one, or cannot be reached.
    pub fn write_snapshot(&self, url: &ServerUrl, asked: &AskedSnapshot) -> WrittenSnapshotFuture {
        let (peer_group, url) = (self.0.clone(), url.clone());
        let body = serde_json::to_vec(asked).unwrap_or_default();
        Box::pin(async move {
            let wire = forward::wire::<Full<Bytes>>(&url, &peer_group).ok()?;
            let request = marked(&peer_group, &url, Method::POST, SNAPSHOT_PATH, body.into())?;
            said(wire.begin(request, SNAPSHOT_MAX).await.ok()?).await?
        })
    }
}

/// The future of [`AsksServers::write_snapshot`].
pub type WrittenSnapshotFuture = Pin<Box<dyn Future<Output = Option<WrittenSnapshot>> + Send>>;

/// Asks once; `None`: the server does not know its store yet.
async fn asked(
    peer_group: &PeerGroup,
    url: &ServerUrl,
    server: u128,
    within: Duration,
) -> Option<ServerSays> {
    let Ok(wire) = forward::wire::<Full<Bytes>>(url, peer_group) else {
        return Some(ServerSays::Silent);
    };
    let Some(request) = marked(peer_group, url, Method::GET, SERVER_PATH, Bytes::new()) else {
        return Some(ServerSays::Silent);
    };
    let begun = match wire.begin(request, within).await {
        Ok(begun) => begun,
        Err(NotBegun::NotSent { refused: true, .. }) => return Some(ServerSays::Refused),
        Err(_) => return Some(ServerSays::Silent),
    };
    // A server that has just started does not know its store yet, and cannot identify itself for some ms, until the
    // store exists. Without the retry a healthy server would count as silent, and a warning would name it.
    let (status, says) = answer_of::<ServerSelf>(begun).await;
    if status == StatusCode::SERVICE_UNAVAILABLE {
        return None;
    }
    // A server with another secret right now is a server, and a proxy that cannot reach one has not seen it end.
    if status == StatusCode::UNAUTHORIZED || status.is_server_error() {
        return Some(ServerSays::Silent);
    }
    // Any other answer is not from the process that was asked.
    let says =
        says.filter(|says| says.server == hex(server) && says.store == hex(peer_group.store));
    Some(says.map_or(ServerSays::Refused, |says| ServerSays::Says {
        serves: says.serves,
        served_at: says.served_at,
    }))
}

/// A request that shows the secret of the servers.
fn marked(
    peer_group: &PeerGroup,
    url: &ServerUrl,
    method: Method,
    path: &str,
    body: Bytes,
) -> Option<Request<Full<Bytes>>> {
    let mut request = Request::new(Full::from(body));
    *request.method_mut() = method;
    *request.uri_mut() = format!("{}{path}", url.prefix).parse().ok()?;
    ServerMark::of(peer_group).ok()?.put(request.headers_mut(), url).ok()?;
    Some(request)
}

async fn said<T: DeserializeOwned>(begun: AnswerBegun<Full<Bytes>>) -> Option<T> {
    answer_of(begun).await.1
}

/// The status, and the parsed body if the status is 200.
async fn answer_of<T: DeserializeOwned>(
    begun: AnswerBegun<Full<Bytes>>,
) -> (StatusCode, Option<T>) {
    // The connection is closed after this one answer.
    let (head, body, _used) = begun.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map(Collected::to_bytes);
    let says = body.ok().filter(|_| head.status == StatusCode::OK);
    (head.status, says.and_then(|body| serde_json::from_slice(&body).ok()))
}
