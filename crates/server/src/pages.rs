//! The interface for pages that people look at, at paths that are no route of the API.
//!
//! The server knows no page. It checks the `Host` and `Origin` of a request as for the API, reads a body of bounded
//! size, and hands both over. The implementation controls the access to pages, since a browser shows a cookie and no
//! token.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use hyper::Method;
use hyper::http::request::Parts;
use hyper::http::{Request, Response};
use tenure_core::refusal::Refusal;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::body::{self, Media};
use crate::budget::HeldBytes;
use crate::caller::Caller;
use crate::listed::accepts;
use crate::out::{Out, Tied};
use crate::traffic::Traffic;

/// The future of [`Pages::answer`].
pub type PageFuture = Pin<Box<dyn Future<Output = Response<PageBody>> + Send>>;

/// Pages beside the API.
pub trait Pages: Send + Sync + 'static {
    /// Whether a page or a file exists at this path.
    fn has(&self, path: &str) -> bool;

    /// The caller, if it may see pages, by the head of its request.
    fn admits(&self, head: &Parts) -> Option<Arc<Caller>>;

    /// How many bytes of the body are read for a request with this head. Above them it is refused; 0: its body is not
    /// read. A caller that is not [admitted](Pages::admits) must not make the server hold more than a login takes.
    fn body_bytes_max(&self, head: &Parts) -> usize;

    /// Answers a request whose path is no route of the API. Its body is complete, as far as it is read. `drains` says
    /// when a stream must end.
    fn answer(&self, request: Request<Bytes>, drains: Drains) -> PageFuture;
}

/// The body of a page.
#[derive(Debug)]
pub enum PageBody {
    /// A file inside the program, neither copied nor counted.
    Static(&'static [u8]),
    /// A page made for this request.
    Whole(Vec<u8>),
    /// Chunks from a task, which is aborted when its reader leaves.
    Stream(mpsc::Receiver<Bytes>, AbortHandle),
}

/// Marks a request that came over TLS, in its extensions.
#[derive(Clone, Copy, Debug)]
pub struct OverTls;

/// What an answer says about a session, in its extensions: the log and the trail tell it.
#[derive(Clone, Debug)]
pub enum SessionChange {
    /// This caller has shown its token, and has a session from now on.
    Begun(Arc<Caller>),
    /// The session of this caller is over.
    Ended(Arc<Caller>),
    /// A wrong token was shown.
    Refused,
}

/// Says whether the server drains.
#[derive(Clone)]
pub struct Drains(Arc<Traffic>);

impl Drains {
    pub(crate) fn of(traffic: &Arc<Traffic>) -> Self {
        Drains(traffic.clone())
    }

    /// Whether streams must end now.
    pub fn is_draining(&self) -> bool {
        self.0.is_draining()
    }
}

impl fmt::Debug for Drains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Drains").field(&self.is_draining()).finish()
    }
}

/// Whether a request without a route is for a page. Everything below `/v1` belongs to the API. JSON and methods that no
/// form has come from programs only and get the API's answer, so that a program with a wrong path sees a problem. Where
/// no page exists, only a request for HTML gets the page that says so.
pub(crate) fn is_for_page(head: &Parts, pages: &dyn Pages) -> bool {
    let path = head.uri.path();
    let is_of_api = path == "/v1" || path.starts_with("/v1/");
    let by_browser = matches!(head.method, Method::GET | Method::HEAD | Method::POST);
    !is_of_api
        && by_browser
        && body::media(&head.headers) == Media::Other
        && (pages.has(path) || accepts(&head.headers, "text/html"))
}

/// The answer as the server writes it. Its bytes count in the budget until they have left.
///
/// # Errors
/// The budget has no room for them: a page never gets the part that is reserved for heartbeats.
pub(crate) fn written(
    answer: Response<PageBody>,
    mut held: HeldBytes,
) -> Result<Response<Out>, Refusal> {
    let (head, body) = answer.into_parts();
    let out = match body {
        PageBody::Static(bytes) => Out::unchanging(bytes),
        PageBody::Whole(bytes) => {
            let out = Out::whole(bytes);
            held.set(out.bytes())?;
            out.holding(held)
        }
        PageBody::Stream(lines, task) => Out::lines(lines, Tied(task)),
    };
    Ok(Response::from_parts(head, out))
}
