//! Turns a request into HTTP. Method and path come from the table of operations; the request's [`OverHttp`] adds
//! query and body.
//!
//! It sends nothing and checks only the size of a body, so that the refusal of an oversized one costs no transfer.

use bytes::Bytes;
use hyper::Method;
use serde::Serialize;
use tenure_core::bounds::BODY_BYTES_MAX;
use tenure_core::percent::encoded;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{HttpMethod, Operation, Request};
use tenure_core::sentences::ServerRefusal;
use tenure_engine_api::Fault;

use super::answer::{FromHttp, Reader, read};

/// A request as HTTP carries it.
#[derive(Debug)]
pub struct HttpCall {
    /// The method, from the table of operations.
    pub method: Method,
    /// Path and query, percent-encoded.
    pub path: String,
    /// `None`: the request has no body.
    pub body: Option<Body>,
    /// Whether the answer may have the ids alone: `Prefer: return=minimal`.
    pub minimal: bool,
    /// How the answer is read.
    pub read: Reader,
}

/// A body with its media type.
#[derive(Debug)]
pub struct Body {
    /// The text. May hold secrets and payloads: never shown.
    pub bytes: Bytes,
    /// Either `application/json` or `application/x-ndjson`.
    pub media: &'static str,
}

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";

/// Why a request cannot be sent.
#[derive(Debug)]
pub enum Unsendable {
    /// The server would refuse it.
    Refused(Refusal),
    /// It cannot be written as JSON.
    Broken(Fault),
}

/// The parts of an HTTP request besides its method and its path.
pub trait OverHttp: Operation<Reply: FromHttp> {
    /// Names and values of its query; none by default.
    fn query(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    /// Its body; none by default.
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        Ok(None)
    }
    /// Whether the answer may have the ids alone.
    fn minimal(&self) -> bool {
        false
    }
    /// How its answer is read.
    fn reader(&self) -> Reader {
        read::<Self>
    }
}

/// A body of JSON.
pub fn json(value: &impl Serialize) -> Result<Option<Body>, Unsendable> {
    let bytes = serde_json::to_vec(value).map_err(|why| {
        Unsendable::Broken(Fault::Broken(format!("a request cannot be written as JSON: {why}")))
    })?;
    if bytes.len() > BODY_BYTES_MAX {
        let no = ServerRefusal::RequestTooLarge { bytes: bytes.len(), most: BODY_BYTES_MAX };
        return Err(Unsendable::Refused(no.into()));
    }
    Ok(Some(Body { bytes: Bytes::from(bytes), media: JSON }))
}

/// A whole set: an array if it has at most `most` items and fits into a body, otherwise one line per item.
pub fn set(items: &[impl Serialize], most: usize) -> Result<Option<Body>, Unsendable> {
    if items.len() > most {
        return lines(items);
    }
    match json(&items) {
        Err(Unsendable::Refused(_)) => lines(items),
        done => done,
    }
}

/// A body of JSON values, one per line.
fn lines(items: &[impl Serialize]) -> Result<Option<Body>, Unsendable> {
    let mut lines = Vec::new();
    for item in items {
        serde_json::to_writer(&mut lines, item).map_err(|why| {
            Unsendable::Broken(Fault::Broken(format!("a request cannot be written as JSON: {why}")))
        })?;
        lines.push(b'\n');
    }
    Ok(Some(Body { bytes: Bytes::from(lines), media: NDJSON }))
}

fn ask_for<O: OverHttp>(operation: &O, path: String) -> Result<HttpCall, Unsendable> {
    let mut path = path;
    for (index, (name, value)) in operation.query().iter().enumerate() {
        let separator = if index == 0 { '?' } else { '&' };
        path += &format!("{separator}{name}={}", encoded(value));
    }
    let method = match O::SPEC.method {
        HttpMethod::Get => Method::GET,
        HttpMethod::Post => Method::POST,
        HttpMethod::Put => Method::PUT,
        HttpMethod::Patch => Method::PATCH,
        HttpMethod::Delete => Method::DELETE,
    };
    Ok(HttpCall {
        method,
        path,
        body: operation.body()?,
        minimal: operation.minimal(),
        read: operation.reader(),
    })
}

macro_rules! asks {
    ($($request:ident)*) => {
        /// What to send for a request.
        pub fn ask(request: &Request) -> Result<HttpCall, Unsendable> {
            let path = request.path();
            match request { $(Request::$request(operation) => ask_for(operation, path)),* }
        }
    };
}
tenure_core::each_operation!(asks);
