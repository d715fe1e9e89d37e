//! What the servers of one store ask each other, beside calls that they pass on: whether one serves, and to undo grants that did
//! not reach their callers. Only who shows the secret of the servers is answered; to anybody else these paths lead nowhere.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Method, Request, Response, StatusCode};
use serde::{Deserialize, Serialize};
use tenure::ServerUrl;
use tenure::remote::wire::{AnswerBegun, NotBegun};
use tenure_core::names::Namespace;
use tokio::time::timeout;

use crate::answer;
use crate::out::Out;
use crate::pass_on::{self, ServerMark, UNDO_PATH, hex, not_owner};
use crate::problem;
use crate::whereabouts::{Fellowship, Serves, Whereabouts};

/// Where a server says whether it serves.
const SERVER_PATH: &str = "/v1/server";
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
    path == SERVER_PATH || path == UNDO_PATH
}

/// Answers another server; `None`: not by this method.
pub(crate) fn answered(
    method: &Method,
    path: &str,
    namespace: &Namespace,
    body: &[u8],
    whereabouts: &Whereabouts,
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
            let asked = timeout(within, asked(&fellowship, &url, server, within)).await;
            asked.unwrap_or(ServerSays::Silent)
        })
    }
}

async fn asked(
    fellowship: &Fellowship,
    url: &ServerUrl,
    server: u128,
    within: Duration,
) -> ServerSays {
    let Ok(wire) = pass_on::wire::<Full<Bytes>>(url, fellowship) else { return ServerSays::Silent };
    let Some(request) = question(fellowship, url) else { return ServerSays::Silent };
    let begun = match wire.begin(request, within).await {
        Ok(begun) => begun,
        Err(NotBegun::NotSent { refused: true, .. }) => return ServerSays::Refused,
        Err(_) => return ServerSays::Silent,
    };
    // Whoever answers with anything else is not the process that was asked.
    let says = said(begun)
        .await
        .filter(|says| says.server == hex(server) && says.store == hex(fellowship.store));
    says.map_or(ServerSays::Refused, |says| ServerSays::Says {
        serves: says.serves,
        served_at: says.served_at,
    })
}

fn question(fellowship: &Fellowship, url: &ServerUrl) -> Option<Request<Full<Bytes>>> {
    let mut request =
        Request::get(format!("{}{SERVER_PATH}", url.prefix)).body(Full::default()).ok()?;
    ServerMark::of(fellowship).ok()?.put(request.headers_mut(), url).ok()?;
    Some(request)
}

async fn said(begun: AnswerBegun<Full<Bytes>>) -> Option<ServerSelf> {
    // The connection is closed after the one answer.
    let (head, body, _used) = begun.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.ok()?.to_bytes();
    (head.status == StatusCode::OK).then(|| serde_json::from_slice(&body).ok()).flatten()
}
