//! Turns a request into HTTP: method and path come from the table of operations, query and body from the request.
//!
//! It sends nothing and checks only the size of a body, so that the refusal of an oversized one costs no transfer.

use bytes::Bytes;
use hyper::Method;
use tenure_core::bounds::BODY_BYTES_MAX;
use tenure_core::decode::{Encode, EncodedBody};
use tenure_core::percent::encoded;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{self, HttpMethod, Push, PushAnswer, Pushed, Reply, Request};
use tenure_core::sentences::ServerRefusal;
use tenure_engine_api::Fault;

use super::answer::{Reader, one_or_many, read};

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

/// A body of JSON, if it is not too long.
fn json(bytes: Vec<u8>) -> Result<Body, Unsendable> {
    if bytes.len() > BODY_BYTES_MAX {
        let no = ServerRefusal::RequestTooLarge { bytes: bytes.len(), most: BODY_BYTES_MAX };
        return Err(Unsendable::Refused(no.into()));
    }
    Ok(Body { bytes: Bytes::from(bytes), media: JSON })
}

/// A whole set: an array if it has at most `most` items and fits into a body, otherwise one line per item.
fn set(items: &[Vec<u8>], most: usize) -> Body {
    if items.len() <= most {
        let array = [b"[", items.join(&b',').as_slice(), b"]"].concat();
        if array.len() <= BODY_BYTES_MAX {
            return Body { bytes: Bytes::from(array), media: JSON };
        }
    }
    let lines = items.iter().flat_map(|item| [item.as_slice(), b"\n"]).collect::<Vec<_>>().concat();
    Body { bytes: Bytes::from(lines), media: NDJSON }
}

/// What to send for a request.
pub fn ask(request: &Request) -> Result<HttpCall, Unsendable> {
    let mut path = request.path();
    for (index, (name, value)) in request.encode_query().iter().enumerate() {
        let separator = if index == 0 { '?' } else { '&' };
        path += &format!("{separator}{name}={}", encoded(value));
    }
    let body = request.encode_body().map_err(|why| {
        Unsendable::Broken(Fault::Broken(format!("a request cannot be written as JSON: {why}")))
    })?;
    let body = match body {
        EncodedBody::Nothing => None,
        EncodedBody::Json(bytes) => Some(json(bytes)?),
        EncodedBody::Set { items, most } => Some(set(&items, most)),
    };
    let method = match request.spec().method {
        HttpMethod::Get => Method::GET,
        HttpMethod::Post => Method::POST,
        HttpMethod::Put => Method::PUT,
        HttpMethod::Patch => Method::PATCH,
        HttpMethod::Delete => Method::DELETE,
    };
    let minimal = matches!(request, Request::Push(Push { answer: PushAnswer::Ids, .. }));
    let read = if minimal { read_ids } else { reader(request) };
    Ok(HttpCall { method, path, body, minimal, read })
}

/// Reads the ids of pushed jobs.
fn read_ids(_: u16, body: &[u8]) -> Result<Reply, serde_json::Error> {
    Ok(Reply::Push(Pushed::Ids(one_or_many(body)?)))
}

macro_rules! readers {
    ($($request:ident)*) => {
        fn reader(request: &Request) -> Reader {
            match request { $(Request::$request(_) => read::<requests::$request>),* }
        }
    };
}
tenure_core::each_operation!(readers);
