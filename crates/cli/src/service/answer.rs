//! The meaning of a service's answer for its job.
//!
//! Pure. For every answer there is an outcome; a sentence holds the status and the first part of the body, and nothing
//! of the request.

use std::time::SystemTime;

use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use tenure::SettleOutcome;
use tenure_core::bounds::PAYLOAD_BYTES_MAX;
use tenure_core::decode;
use tenure_core::gauge::GaugeAddress;
use tenure_core::lease::Ending;
use tenure_core::names::LimitName;
use tenure_core::secret::Json;
use tenure_core::time::Span;

use crate::child::outcome::json_or_string;
use crate::exchange::{BodyFault, Keep, Received};
use crate::service::retry_after::{self, RetryAfter};

/// A service says "not yet" with 202 and does not say when to ask again: as CMD with exit code 75.
const SNOOZE: Span = Span::from_s(30);
/// Bytes of the body of a failure that are awaited.
const SAID_BYTES: usize = 4 * 1024;
/// Characters of it that are shown.
const SHOWN_CHARS: usize = 500;
/// The body of such an answer is a settle item.
const OUTCOME: &str = "application/tenure-outcome+json";
/// Names limits of the lease that rest for as long as the job.
const PAUSE: &str = "tenure-pause";

/// Why an answer is a failure.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
enum AnswerFault {
    #[error("http {status}{}", said(.text))]
    Status { status: u16, text: String },
    #[error(
        "http {status}, a redirect{}: it is not followed; give --http the address that it leads to",
        to(.location)
    )]
    Redirect { status: u16, location: Option<String> },
    #[error("http {status}, and its answer is longer than {PAYLOAD_BYTES_MAX} bytes")]
    TooLong { status: u16 },
    #[error("http {status}, and its answer breaks off; the service may have done the work")]
    BreaksOff { status: u16 },
    #[error(
        "http {status} with a Retry-After that is neither seconds nor an HTTP date{}",
        said(.text)
    )]
    RetryAfter { status: u16, text: String },
    #[error("http {status}, and its outcome cannot be used: {why}")]
    Outcome { status: u16, why: String },
    #[error("http {status}: the service says \"failed\" and no error")]
    Silent { status: u16 },
}

fn said(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

fn to(location: &Option<String>) -> String {
    location.as_ref().map(|location| format!(" to {location}")).unwrap_or_default()
}

/// The meaning of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdicts {
    /// How the lease ends.
    pub outcome: SettleOutcome,
    /// Names in `Tenure-Pause` that the lease does not hold: nothing rests for them.
    pub strange: Vec<String>,
}

impl From<SettleOutcome> for Verdicts {
    fn from(outcome: SettleOutcome) -> Self {
        Verdicts { outcome, strange: Vec::new() }
    }
}

/// How much of the body of such an answer is read.
pub fn keep(status: u16) -> Keep {
    if is_success(status) { Keep::Whole(PAYLOAD_BYTES_MAX) } else { Keep::Head(SAID_BYTES) }
}

/// Whether a run was answered well, whatever the answer means.
pub fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

/// The meaning of this answer for a job that holds these limits.
pub fn verdicts(answer: &Received, held: &[LimitName], now: SystemTime) -> Verdicts {
    let status = answer.status;
    if is_success(status) {
        return success(answer, now).unwrap_or_else(SettleOutcome::failed).into();
    }
    let text = || first_part(&answer.body);
    match status {
        300..400 => {
            let location = location(&answer.headers);
            SettleOutcome::failed(AnswerFault::Redirect { status, location }).into()
        }
        400 | 410 | 422 => {
            SettleOutcome::failed_for_good(AnswerFault::Status { status, text: text() }).into()
        }
        429 | 503 => match retry_after::read(&answer.headers, now) {
            RetryAfter::Wait(wait) => pausing(wait, &answer.headers, held),
            RetryAfter::Absent => {
                SettleOutcome::failed(AnswerFault::Status { status, text: text() }).into()
            }
            RetryAfter::Unreadable => {
                SettleOutcome::failed(AnswerFault::RetryAfter { status, text: text() }).into()
            }
        },
        _ => SettleOutcome::failed(AnswerFault::Status { status, text: text() }).into(),
    }
}

fn success(answer: &Received, now: SystemTime) -> Result<SettleOutcome, AnswerFault> {
    let status = answer.status;
    match answer.fault {
        Some(BodyFault::TooLong) => return Err(AnswerFault::TooLong { status }),
        Some(BodyFault::BreaksOff) => return Err(AnswerFault::BreaksOff { status }),
        None => {}
    }
    if is_outcome(&answer.headers) {
        let item = decode::settle_item_without_lease(&answer.body);
        let item = item.map_err(|no| AnswerFault::Outcome { status, why: no.to_string() })?;
        let mut outcome = SettleOutcome::from(item);
        if let Ending::Failed { error, .. } = &mut outcome.ending
            && error.is_empty()
        {
            *error = AnswerFault::Silent { status }.to_string();
        }
        return Ok(outcome);
    }
    match retry_after::read(&answer.headers, now) {
        RetryAfter::Wait(wait) => return Ok(SettleOutcome::snoozed(wait)),
        RetryAfter::Unreadable => {
            return Err(AnswerFault::RetryAfter { status, text: first_part(&answer.body) });
        }
        RetryAfter::Absent if status == StatusCode::ACCEPTED => {
            return Ok(SettleOutcome::snoozed(SNOOZE));
        }
        RetryAfter::Absent => {}
    }
    match result(&answer.body) {
        // A string has more letters as JSON than it had bytes.
        Some(json) if json.text().len() > PAYLOAD_BYTES_MAX => Err(AnswerFault::TooLong { status }),
        result => Ok(Ending::Succeeded { result }.into()),
    }
}

fn result(body: &[u8]) -> Option<Json> {
    (!body.trim_ascii().is_empty()).then(|| json_or_string(body))
}

fn is_outcome(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = value.and_then(|value| value.split(';').next()).unwrap_or_default();
    media.trim().eq_ignore_ascii_case(OUTCOME)
}

/// Not yet; until then nobody is granted the limits that the answer names.
fn pausing(wait: Span, headers: &HeaderMap, held: &[LimitName]) -> Verdicts {
    let (mut outcome, mut strange) = (SettleOutcome::snoozed(wait), Vec::new());
    let values = headers.get_all(PAUSE).iter();
    let text = values.map(|value| String::from_utf8_lossy(value.as_bytes()));
    let text = text.collect::<Vec<_>>().join(",");
    let mut paused: Vec<&LimitName> = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        match held.iter().find(|limit| limit.as_str() == name) {
            Some(limit) if paused.contains(&limit) => {}
            Some(limit) => {
                paused.push(limit);
                outcome = outcome.pause(limit.clone(), wait);
            }
            None => strange.push(name.chars().take(SHOWN_CHARS).collect()),
        }
    }
    Verdicts { outcome, strange }
}

/// Where a redirect leads, as far as it may be shown: neither a login nor a query.
fn location(headers: &HeaderMap) -> Option<String> {
    let header = headers.get(LOCATION)?.to_str().ok()?;
    let shown = match GaugeAddress::parse(header) {
        Ok(address) => address.to_string(),
        Err(_) if header.starts_with('/') && !header.starts_with("//") => {
            header.split(['?', '#']).next().unwrap_or_default().to_owned()
        }
        Err(_) => return None,
    };
    Some(shown.chars().take(SHOWN_CHARS).collect())
}

/// The beginning of a body in one line.
fn first_part(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    let mut letters = line.chars().filter(|c| !c.is_control());
    let shown: String = letters.by_ref().take(SHOWN_CHARS).collect();
    if letters.next().is_some() { format!("{shown}…") } else { shown }
}

#[cfg(test)]
mod tests;
