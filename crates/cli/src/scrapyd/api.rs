//! The calls of a scrapyd that a worker needs, each made once, with all that may be wrong with their answers.
//!
//! It answers errors with 200, so the body decides. No error here shows the login of the address or the arguments of a
//! spider.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderValue, RANGE};
use hyper::http::uri::Uri;
use hyper::{Method, Request};
use serde_json::Value;
use tenure_core::percent;

use crate::exchange::{BodyFault, Destination, ExchangeError, Keep, Received};
use crate::scrapyd::spider::{Spider, form};

/// Longest list of waiting spiders with their arguments.
const LIST_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The end of a log: the statistics of Scrapy are a tenth of it.
const LOG_BYTES: u64 = 64 * 1024;
/// The name of the log in errors.
const LOG: &str = "the log";
const CALL_MAX: Duration = Duration::from_secs(30);
/// For the first spider of a project scrapyd starts Python, and answers no call meanwhile.
const SCHEDULE_MAX: Duration = Duration::from_secs(120);
/// Characters of an error that are shown.
const SHOWN_CHARS: usize = 500;
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// Why a call did not do what it was to do.
#[derive(Debug, thiserror::Error)]
pub enum ScrapydError {
    /// There is no answer.
    #[error("{call}: {why}")]
    Exchange {
        call: &'static str,
        #[source]
        why: ExchangeError,
    },
    /// It reports the error itself, in these words.
    #[error("{call}: {said}")]
    Refused { call: &'static str, said: String },
    /// Another program answers, or a proxy in front of it.
    #[error("{call}: http {status} with an answer that is not from scrapyd; check the address")]
    Strange { call: &'static str, status: u16 },
    /// The answer is cut or too long.
    #[error("{call}: the answer is incomplete")]
    NotWhole { call: &'static str },
    /// It ran the spider under an id of its own.
    #[error("{call}: scrapyd did not accept the id of the job; use version 1.2 or later")]
    OtherId { call: &'static str },
    /// A name that no request can carry.
    #[error("{call}: a name cannot be part of the path of a request")]
    NoPath { call: &'static str },
}

impl ScrapydError {
    /// Whether the scrapyd certainly did nothing.
    pub fn did_nothing(&self) -> bool {
        match self {
            ScrapydError::Exchange { why, .. } => why.nothing_was_sent(),
            ScrapydError::Refused { .. } | ScrapydError::NoPath { .. } => true,
            ScrapydError::Strange { .. }
            | ScrapydError::NotWhole { .. }
            | ScrapydError::OtherId { .. } => false,
        }
    }
}

/// State of an id on the scrapyd.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaderReport {
    /// It waits for a free slot.
    Pending,
    Running,
    /// It ran; the list does not say how it ended.
    Finished,
    /// It is in no list: it never ran, or it is forgotten.
    Absent,
}

/// The end of a log.
pub struct LogTail {
    /// How long the whole log is.
    pub length: u64,
    bytes: Bytes,
}

impl LogTail {
    /// The bytes beyond the first `before`, as far as they are kept; `None` if there are none. A shorter log was
    /// started again, and is fresh as a whole.
    pub fn beyond(&self, before: u64) -> Option<&[u8]> {
        if self.length == before || self.bytes.is_empty() {
            return None;
        }
        let old = if self.length < before { 0 } else { before };
        let fresh = usize::try_from(self.length - old).unwrap_or(usize::MAX);
        Some(&self.bytes[self.bytes.len().saturating_sub(fresh)..])
    }
}

/// A scrapyd at one address.
pub struct ScrapydApi {
    destination: Destination,
}

impl ScrapydApi {
    pub fn new(destination: Destination) -> Self {
        ScrapydApi { destination }
    }

    /// The state of this id in the lists of a project.
    pub async fn standing(&self, project: &str, id: &str) -> Result<LeaderReport, ScrapydError> {
        const CALL: &str = "listjobs.json";
        let query = form(&[("project", project.to_owned())]);
        let uri = self.destination.below("/listjobs.json", &query);
        let answer = self.ask(CALL, uri, None, CALL_MAX).await?;
        for (list, standing) in [
            ("running", LeaderReport::Running),
            ("pending", LeaderReport::Pending),
            ("finished", LeaderReport::Finished),
        ] {
            let runs = answer.get(list).and_then(Value::as_array);
            let runs = runs.ok_or(ScrapydError::Strange { call: CALL, status: 200 })?;
            if runs.iter().any(|run| run.get("id").and_then(Value::as_str) == Some(id)) {
                return Ok(standing);
            }
        }
        Ok(LeaderReport::Absent)
    }

    /// Requests a run of a spider under this id. A second request runs it twice.
    pub async fn schedule(&self, spider: &Spider, id: &str) -> Result<(), ScrapydError> {
        const CALL: &str = "schedule.json";
        let uri = self.destination.below("/schedule.json", "");
        let answer = self.ask(CALL, uri, Some(spider.form(id)), SCHEDULE_MAX).await?;
        match answer.get("jobid").and_then(Value::as_str) {
            Some(other) if other != id => Err(ScrapydError::OtherId { call: CALL }),
            _ => Ok(()),
        }
    }

    /// Removes a waiting run from its line, or asks a running one to stop; asked again, it stops at once.
    pub async fn cancel(&self, project: &str, id: &str) -> Result<(), ScrapydError> {
        let uri = self.destination.below("/cancel.json", "");
        let body = form(&[("project", project.to_owned()), ("job", id.to_owned())]);
        self.ask("cancel.json", uri, Some(body), CALL_MAX).await.map(drop)
    }

    /// The end of the log of an id; `None` if it has none.
    ///
    /// Its length is requested first: Twisted answers 500 to "the last 64 KiB" of a log that is shorter.
    pub async fn log(&self, spider: &Spider, id: &str) -> Result<Option<LogTail>, ScrapydError> {
        let (project, name) = (percent::encoded(&spider.project), percent::encoded(&spider.name));
        let path = format!("/logs/{project}/{name}/{}.log", percent::encoded(id));
        let path = self.destination.below(&path, "").ok_or(ScrapydError::NoPath { call: LOG })?;
        let head = self.read_log(Method::HEAD, &path, 0).await?;
        let length = match head.status {
            404 | 410 => return Ok(None),
            200 => head.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()),
            // A proxy that lets no HEAD through: all of it is read.
            _ => None,
        };
        let length = length.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let answer = self.read_log(Method::GET, &path, length.saturating_sub(LOG_BYTES)).await?;
        if answer.fault.is_some() && matches!(answer.status, 200 | 206) {
            return Err(ScrapydError::NotWhole { call: LOG });
        }
        match answer.status {
            200 => Ok(Some(LogTail { length: answer.length, bytes: answer.body })),
            206 => {
                let length = whole(&answer.headers);
                let length = length.ok_or(ScrapydError::Strange { call: LOG, status: 206 })?;
                Ok(Some(LogTail { length, bytes: answer.body }))
            }
            // It was started again in between, and is looked at again.
            416 => Ok(Some(LogTail { length: 0, bytes: Bytes::new() })),
            404 | 410 => Ok(None),
            status => Err(ScrapydError::Strange { call: LOG, status }),
        }
    }

    async fn read_log(
        &self,
        method: Method,
        path: &Uri,
        from: u64,
    ) -> Result<Received, ScrapydError> {
        let mut request = Request::new(Full::default());
        *request.uri_mut() = path.clone();
        *request.method_mut() = method;
        if from > 0 {
            request.headers_mut().insert(RANGE, range(from));
        }
        let keep = |_| Keep::Tail(LOG_BYTES as usize);
        let answer = self.destination.exchange(request, keep, CALL_MAX).await;
        answer.map_err(|why| ScrapydError::Exchange { call: LOG, why })
    }

    /// One call whose answer is an object with `"status": "ok"`.
    async fn ask(
        &self,
        call: &'static str,
        uri: Option<Uri>,
        form: Option<String>,
        within: Duration,
    ) -> Result<Value, ScrapydError> {
        let mut request = Request::new(Full::default());
        *request.uri_mut() = uri.ok_or(ScrapydError::NoPath { call })?;
        if let Some(form) = form {
            *request.method_mut() = Method::POST;
            request.headers_mut().insert(CONTENT_TYPE, FORM);
            *request.body_mut() = Full::from(form);
        }
        let keep = |_| Keep::Whole(LIST_BYTES_MAX);
        let answer = self.destination.exchange(request, keep, within).await;
        let answer = answer.map_err(|why| ScrapydError::Exchange { call, why })?;
        self.understood(call, &answer)
    }

    fn understood(&self, call: &'static str, answer: &Received) -> Result<Value, ScrapydError> {
        match answer.fault {
            Some(BodyFault::BreaksOff | BodyFault::TooLong) => {
                return Err(ScrapydError::NotWhole { call });
            }
            None => {}
        }
        let strange = ScrapydError::Strange { call, status: answer.status };
        let Ok(body) = serde_json::from_slice::<Value>(&answer.body) else { return Err(strange) };
        match body.get("status").and_then(Value::as_str) {
            Some("ok") => Ok(body),
            Some("error") => {
                let message = body.get("message").and_then(Value::as_str).unwrap_or("error");
                let line = message.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
                let said = self.destination.redact(&line).chars().take(SHOWN_CHARS).collect();
                Err(ScrapydError::Refused { call, said })
            }
            _ => Err(strange),
        }
    }
}

fn range(from: u64) -> HeaderValue {
    let Ok(value) = HeaderValue::from_str(&format!("bytes={from}-")) else {
        unreachable!("a number is visible ASCII")
    };
    value
}

/// The length of the whole log, of whose bytes this answer is a part.
fn whole(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_RANGE)?.to_str().ok()?.rsplit_once('/')?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_beyond_the_old_log_counts() {
        let tail = |length, text: &'static str| LogTail { length, bytes: Bytes::from(text) };
        for (log, before, is) in [
            (tail(5, "hello"), 0, Some("hello")),
            (tail(5, "hello"), 3, Some("lo")),
            (tail(5, "hello"), 5, None),
            (tail(1_000, "hello"), 100, Some("hello")),
            (tail(1_000, "hello"), 998, Some("lo")),
            (tail(5, "hello"), 9, Some("hello")),
            (tail(0, ""), 0, None),
            (tail(0, ""), 7, None),
        ] {
            let found = log.beyond(before).map(|bytes| std::str::from_utf8(bytes).unwrap());
            assert_eq!(found, is, "{} {before}", log.length);
        }
    }

    #[test]
    fn the_length_of_the_whole_is_read() {
        let whole_of = |text: &'static str| {
            whole(&HeaderMap::from_iter([(CONTENT_RANGE, HeaderValue::from_static(text))]))
        };
        assert_eq!(whole_of("bytes 0-9/1234"), Some(1234));
        assert_eq!(whole_of("bytes */0"), Some(0));
        assert_eq!(whole_of("bytes 0-9/*"), None);
        assert_eq!(whole_of("1234"), None);
    }

    #[test]
    fn the_body_decides_whatever_the_status_is() {
        let there = Destination::parse("http://me:geheim@host").unwrap();
        let api = ScrapydApi::new(there);
        let understood = |status, body: &'static str| {
            let (headers, length) = (HeaderMap::new(), body.len() as u64);
            let body = Bytes::from(body);
            let answer = Received { status, headers, body, length, fault: None };
            api.understood("x.json", &answer).map(drop).map_err(|why| why.to_string())
        };
        assert_eq!(understood(200, r#"{"status":"ok"}"#), Ok(()));
        let error = r#"{"status":"error","message":"spider 's' not\n found for me:geheim"}"#;
        let said = "x.json: spider 's' not found for me:•••";
        assert_eq!(understood(200, error), Err(said.to_owned()));
        assert_eq!(understood(404, error), Err(said.to_owned()));
        let strange = "with an answer that is not from scrapyd; check the address";
        for body in ["", "<html>geheim</html>", "[]", r#"{"status":"fine"}"#] {
            assert_eq!(understood(502, body), Err(format!("x.json: http 502 {strange}")));
        }
    }
}
