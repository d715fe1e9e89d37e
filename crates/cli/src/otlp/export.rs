//! The task that sends: spans in batches, metrics every minute.
//!
//! A collector that is gone costs bounded memory, an attempt from time to time, and a line in the log at most once a
//! minute.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use tenure_core::time::Moment;
use tenure_engine_api::{Clock, Seldom, SystemClock};
use tenure_server::metrics::Metrics;
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::otlp::messages::{self, Gathered};
use crate::otlp::spans::{self, ServerSpan, SpanCounts, SpanQueue};

/// Spans of one message.
const BATCH_MAX: usize = 512;
/// Spans that wait while the collector accepts none, beside those of the queue.
const WAITING_MAX: usize = 4096;
/// Between two lines about a collector that accepts nothing.
const LINES_APART: Duration = Duration::from_secs(60);
/// Between two attempts at a collector that accepts nothing: at first, and at most.
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(60);

/// The status of an answer, or the reason why there is no answer, without a secret.
pub type PostFuture = Pin<Box<dyn Future<Output = Result<u16, String>> + Send>>;

/// Delivers messages to a collector, over any transport.
pub trait Collector: Send + Sync + 'static {
    /// Posts a message of protobuf to this path below the collector's address. It must end within a few seconds.
    fn post(&self, path: &'static str, message: Vec<u8>) -> PostFuture;
}

/// How often spans and metrics are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// A span waits for others at most this long.
    pub spans: Duration,
    /// Between two messages of metrics.
    pub metrics: Duration,
}

/// The defaults of the OpenTelemetry specification.
impl Default for Pace {
    fn default() -> Self {
        Pace { spans: Duration::from_secs(5), metrics: Duration::from_secs(60) }
    }
}

/// The task; it must be run.
pub struct Exporter {
    collector: Arc<dyn Collector>,
    pace: Pace,
    come: Receiver<ServerSpan>,
    counts: Arc<SpanCounts>,
    resource: Resource,
    start: Moment,
    waiting: VecDeque<ServerSpan>,
    lines: Seldom,
    /// The pause after the next failure, and the end of the current pause.
    rest: Duration,
    rests_until: Option<Instant>,
}

/// A queue for spans, and the task that sends them. `instance` names this server among others.
pub fn exporter(
    collector: Arc<dyn Collector>,
    instance: &str,
    pace: Pace,
) -> (SpanQueue, Exporter) {
    let (queue, come, counts) = spans::queue();
    let exporter = Exporter {
        collector,
        pace,
        come,
        counts,
        resource: messages::resource(instance),
        start: SystemClock.now(),
        waiting: VecDeque::new(),
        lines: Seldom::every(LINES_APART),
        rest: REST_MIN,
        rests_until: None,
    };
    (queue, exporter)
}

impl Exporter {
    /// Sends until `end` is true, and then sends the rest once more.
    pub async fn run(mut self, metrics: Arc<Metrics>, mut end: watch::Receiver<bool>) {
        let mut spans = interval(self.pace.spans);
        spans.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut scrapes = interval(self.pace.metrics);
        scrapes.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick of an interval comes at once, when there is nothing to send yet.
        scrapes.reset();
        loop {
            tokio::select! {
                () = told(&mut end) => break,
                span = self.come.recv(), if self.waiting.len() < WAITING_MAX => match span {
                    Some(span) => {
                        self.waiting.push_back(span);
                        if self.waiting.len() >= BATCH_MAX {
                            self.send_spans().await;
                        }
                    }
                    None => break,
                },
                _ = spans.tick() => self.send_spans().await,
                _ = scrapes.tick() => self.send_metrics(&metrics).await,
            }
        }
        self.come.close();
        while let Ok(span) = self.come.try_recv() {
            self.waiting.push_back(span);
        }
        self.rests_until = None;
        self.send_spans().await;
        self.send_metrics(&metrics).await;
    }

    fn rests(&self) -> bool {
        self.rests_until.is_some_and(|until| Instant::now() < until)
    }

    async fn send_spans(&mut self) {
        self.tell_dropped();
        while !self.waiting.is_empty() && !self.rests() {
            let batch = self.waiting.len().min(BATCH_MAX);
            let message = messages::of_spans(&self.resource, self.waiting.iter().take(batch));
            match self.post("/v1/traces", message.encode_to_vec()).await {
                PostOutcome::Yes => drop(self.waiting.drain(..batch)),
                PostOutcome::Never => {
                    self.lines.happened(batch as u64);
                    self.waiting.drain(..batch);
                }
                PostOutcome::NotNow => {}
            }
        }
    }

    async fn send_metrics(&mut self, metrics: &Metrics) {
        if self.rests() {
            return;
        }
        let mut gathered = Gathered::new(self.start, SystemClock.now());
        metrics.write(&mut gathered).await;
        // Not retried: the next message contains all of these numbers.
        let message = gathered.message(&self.resource);
        self.post("/v1/metrics", message.encode_to_vec()).await;
    }

    async fn post(&mut self, path: &'static str, message: Vec<u8>) -> PostOutcome {
        let answer = self.collector.post(path, message).await;
        let (taken, why) = match answer {
            Ok(200..=299) => {
                self.rest = REST_MIN;
                return PostOutcome::Yes;
            }
            // The specification allows retries for these alone.
            Ok(status @ (429 | 502 | 503 | 504)) => {
                (PostOutcome::NotNow, format!("status {status}"))
            }
            Ok(status) => (PostOutcome::Never, format!("status {status}")),
            Err(why) => (PostOutcome::NotNow, why),
        };
        if taken == PostOutcome::NotNow {
            self.rests_until = Some(Instant::now() + self.rest);
            self.rest = (self.rest * 2).min(REST_MAX);
        }
        self.lines.happened(1);
        if let Some(times) = self.lines.due(std::time::Instant::now()) {
            tracing::warn!(path, why, times, "the collector of --otlp takes nothing");
        }
        taken
    }

    fn tell_dropped(&mut self) {
        let dropped = self.counts.take_dropped();
        if dropped > 0 {
            self.lines.happened(dropped);
            if let Some(times) = self.lines.due(std::time::Instant::now()) {
                tracing::warn!(
                    times,
                    "spans were dropped: they come faster than the collector of --otlp takes them"
                );
            }
        }
    }
}

/// Ends when the value is true or its sender is gone.
async fn told(end: &mut watch::Receiver<bool>) {
    let _ = end.wait_for(|told| *told).await;
}

/// Whether the collector accepted a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PostOutcome {
    Yes,
    /// The message may be accepted later.
    NotNow,
    /// The same message will never be accepted.
    Never,
}
