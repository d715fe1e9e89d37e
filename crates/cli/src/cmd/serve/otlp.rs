//! `--otlp`: traces and metrics sent to a collector.

use std::sync::Arc;
use std::time::Duration;

use crate::otlp::{Collector, Exporter, Pace, PostFuture, SpanQueue, TracedEngine, exporter};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use tenure_engine_api::Engine;
use tenure_journal::threads::task_or_die;
use tenure_server::metrics::Metrics;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::exchange::{Destination, Keep};
use crate::exit::Failure;
use crate::settings::shown::has_password;

/// Longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How long the last sending may take after the server has ended.
const LAST_MAX: Duration = Duration::from_secs(3);
/// Headers for the collector, such as the key of a vendor, in the form of OpenTelemetry.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");

/// The spans and the exporter, if a collector is named.
#[derive(Default)]
pub struct Otlp {
    parts: Option<(SpanQueue, Exporter)>,
}

/// The task that sends.
#[derive(Default)]
pub struct Sending {
    task: Option<(watch::Sender<bool>, JoinHandle<()>)>,
}

/// A collector over HTTP.
struct OverHttp {
    destination: Destination,
    headers: HeaderMap,
}

impl Otlp {
    /// To this address.
    ///
    /// # Errors
    /// It is no address, or holds a login; or the headers for it cannot be read.
    pub fn of(address: Option<&str>) -> Result<Self, Failure> {
        let Some(address) = address else { return Ok(Otlp::default()) };
        if has_password(address) {
            return Err(Failure::usage(
                "--otlp: the address contains a login, which other users could see",
            )
            .hint(format!("put it into {HEADERS} as Authorization=Basic%20…")));
        }
        let destination = Destination::parse(address).map_err(|why| {
            Failure::usage(format!("--otlp: {why}"))
                .hint("use the address of a collector, such as http://127.0.0.1:4318")
        })?;
        let headers = headers(&std::env::var(HEADERS).unwrap_or_default()).ok_or_else(|| {
            Failure::usage(format!("{HEADERS} cannot be read"))
                .hint("write it as NAME=VALUE,NAME=VALUE with percent-encoded values")
        })?;
        let collector = Arc::new(Http(Arc::new(OverHttp { destination, headers })));
        let worker = tenure::ids::this_process();
        let instance = worker.id.as_ref().map(ToString::to_string).unwrap_or_default();
        let parts = exporter(collector, &instance, Pace::default());
        Ok(Otlp { parts: Some(parts) })
    }

    /// The engine, with a span of each call that belongs to a trace.
    pub fn around(&self, engine: Arc<dyn Engine>) -> Arc<dyn Engine> {
        match &self.parts {
            Some((spans, _)) => Arc::new(TracedEngine::new(engine, spans.clone())),
            None => engine,
        }
    }

    /// Sends from now on.
    pub fn start(self, metrics: &Arc<Metrics>) -> Sending {
        let task = self.parts.map(|(_, exporter)| {
            let (end, ended) = watch::channel(false);
            let sends = exporter.run(metrics.clone(), ended);
            (end, tokio::spawn(task_or_die("the exporter", sends)))
        });
        Sending { task }
    }
}

impl Sending {
    /// Sends the rest, if the collector takes it soon.
    pub async fn end(self) {
        let Some((end, task)) = self.task else { return };
        end.send_replace(true);
        if tokio::time::timeout(LAST_MAX, task).await.is_err() {
            tracing::warn!(
                "the collector of --otlp did not take the last spans and metrics in time"
            );
        }
    }
}

/// `NAME=VALUE,NAME=VALUE`; `None` if the text has another form.
fn headers(text: &str) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_bytes(name.trim().as_bytes()).ok()?, value);
    }
    Some(headers)
}

struct Http(Arc<OverHttp>);

impl Collector for Http {
    fn post(&self, path: &'static str, message: Vec<u8>) -> PostFuture {
        let to = self.0.clone();
        Box::pin(async move {
            let target = to.destination.below(path, "").ok_or("the address has no such path")?;
            let mut request = Request::post(target)
                .body(Full::new(Bytes::from(message)))
                .map_err(|why| why.to_string())?;
            *request.headers_mut() = to.headers.clone();
            request.headers_mut().insert(CONTENT_TYPE, PROTOBUF);
            let answer = to.destination.exchange(request, |_| Keep::Head(0), ANSWER_MAX).await;
            answer.map(|answer| answer.status).map_err(|why| why.to_string())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_pairs_with_encoded_values() {
        let found = headers("Authorization=Basic%20eDp5, x-key = 1 ,").unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(
            (&found["authorization"], &found["x-key"]),
            (&"Basic eDp5".parse().unwrap(), &"1".parse().unwrap())
        );
        assert!(!format!("{found:?}").contains("eDp5"));
        for wrong in ["a", "a b=1", "a=%0A"] {
            assert!(headers(wrong).is_none(), "{wrong}");
        }
    }
}
