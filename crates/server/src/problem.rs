//! Refusals, as `application/problem+json`.

use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use tenure_core::refusal::{Code, Problem, Refusal};
use tenure_core::sentences::{ServerRefusal, StoreRefusal};
use tenure_engine_api::{CallError, Fault};

use crate::out::Out;

const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
/// When a retry may succeed, if nothing better is known.
const RETRY_AFTER_S: u64 = 1;

/// A refusal as JSON.
pub(crate) fn json(no: &Refusal) -> Vec<u8> {
    // Text and numbers only: it can be written.
    serde_json::to_vec(&Problem::of(no)).unwrap_or_default()
}

/// A refusal as an answer.
pub(crate) fn response(no: &Refusal) -> Response<Out> {
    let mut response = Response::new(Out::whole(json(no)));
    *response.status_mut() =
        StatusCode::from_u16(no.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, PROBLEM);
    if matches!(no.code.status(), 429 | 503) {
        headers.insert(RETRY_AFTER, no.retry_after_s.unwrap_or(RETRY_AFTER_S).max(1).into());
    }
    if no.code == Code::Unauthorized {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"tenure\""));
    }
    response
}

/// The refusal of a method, with the methods that the path has.
pub(crate) fn method_not_allowed(method: &str, allowed: &str) -> Response<Out> {
    let (method, takes) = (method.to_owned(), allowed.to_owned());
    let no = ServerRefusal::MethodNotAllowed { method, allowed: takes };
    let mut response = response(&no.into());
    if let Ok(allowed) = HeaderValue::from_str(allowed) {
        response.headers_mut().insert(ALLOW, allowed);
    }
    response
}

/// The error of an engine, as a refusal.
pub(crate) fn of_error(error: CallError) -> Refusal {
    match error {
        CallError::Refused(no) | CallError::Fault(Fault::Denied(no)) => no,
        CallError::Fault(fault @ (Fault::Unavailable(_) | Fault::StoreAway(_))) => {
            StoreRefusal::Unavailable { fault: fault.to_string() }.into()
        }
        CallError::Fault(fault @ Fault::Unknown(_)) => {
            StoreRefusal::OutcomeUnknown { fault: fault.to_string() }.into()
        }
        CallError::Fault(Fault::Broken(why)) => {
            tracing::error!(why, "an engine broke its contract");
            StoreRefusal::EngineBroke.into()
        }
    }
}
