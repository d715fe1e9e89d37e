//! One job of `tenure work --http`: posts it, and reads its outcome from the answer.
//!
//! The request is dropped when the job must stop: the service sees that its connection is closed, and nothing else.

use std::fmt;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request};
use tenure::keeper::Stop;
use tenure::{Execute, Executed, Job, SettleOutcome};
use tenure_core::lease::Ending;

use crate::exchange::Destination;
use crate::exit::Failure;
use crate::output::tell;
use crate::service::answer::{self, Verdicts};
use crate::service::headers;
use crate::service::signature::SigningSecrets;

/// A payload of fewer bytes, such as `null` or a number, is in every text.
const ECHO_BYTES_MIN: usize = 8;

/// A service that executes jobs.
pub struct HttpService {
    destination: Destination,
    secrets: Option<SigningSecrets>,
    /// Longest wait for an answer; a sooner deadline of the run ends it before.
    request_timeout: Duration,
}

impl HttpService {
    /// Posts to `destination`, signed if there are secrets.
    pub fn new(
        destination: Destination,
        secrets: Option<SigningSecrets>,
        request_timeout: Duration,
    ) -> Self {
        HttpService { destination, secrets, request_timeout }
    }

    fn request(&self, job: &Job) -> Request<Full<Bytes>> {
        let body = Bytes::from(job.payload_json().to_owned());
        let key = headers::idempotency_key(job.view());
        let mut headers = headers::of(job.lease(), job.view(), &key);
        if let Some(secrets) = &self.secrets {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let timestamp = since.unwrap_or_default().as_secs();
            let signed = secrets.sign(&key, timestamp, &body);
            for (name, value) in [
                ("webhook-id", key),
                ("webhook-timestamp", timestamp.to_string()),
                ("webhook-signature", signed),
            ] {
                if let Ok(value) = HeaderValue::from_str(&value) {
                    headers.insert(HeaderName::from_static(name), value);
                }
            }
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.destination.target();
        *request.headers_mut() = headers;
        request
    }

    async fn post(&self, job: &Job) -> SettleOutcome {
        let request = self.request(job);
        let answer = self.destination.exchange(request, answer::keep, self.request_timeout).await;
        let mut answer = match answer {
            Ok(answer) => answer,
            Err(why) => return SettleOutcome::failed(why),
        };
        if !answer::is_success(answer.status) {
            answer.body = without(answer.body, job.payload_json());
        }
        let Verdicts { mut outcome, strange } =
            answer::verdicts(&answer, &job.lease().limits, SystemTime::now());
        for name in strange {
            tell(&format!(
                "job '{}': Tenure-Pause names {name:?}, which its lease does not hold; it is not paused",
                job.id()
            ));
        }
        if let Ending::Failed { error, .. } = &mut outcome.ending {
            *error = self.destination.redact(error);
        }
        outcome
    }
}

/// The body of a failure without the payload, should the service echo it.
fn without(body: Bytes, payload: &str) -> Bytes {
    match std::str::from_utf8(&body) {
        Ok(text) if payload.len() >= ECHO_BYTES_MIN && text.contains(payload) => {
            Bytes::from(text.replace(payload, "•••"))
        }
        _ => body,
    }
}

impl Execute for HttpService {
    type Failure = Failure;

    async fn execute(&self, job: Job) -> Executed<Failure> {
        let stop = tokio::select! {
            outcome = self.post(&job) => return outcome.into(),
            stop = job.stopped() => stop,
        };
        let outcome = match stop {
            Stop::Cancelled | Stop::Shutdown => Some(SettleOutcome::released()),
            Stop::Deadline => {
                tell(&format!("job '{}' was stopped: its time is over", job.id()));
                None
            }
            Stop::Lost => {
                tell(&format!("job '{}' was stopped: its lease was lost", job.id()));
                None
            }
        };
        Executed { outcome, failure: None }
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpService({})", self.destination)
    }
}
