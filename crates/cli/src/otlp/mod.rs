//! Traces and metrics of a server, sent to a collector by the protocol of OpenTelemetry (OTLP over HTTP, as protobuf).
//!
//! [`TracedEngine`] wraps an engine and makes a span of each push, wait and run whose job carries a sampled trace.
//! [`exporter`] has a bounded queue for them. A task of its own sends the spans, and the metrics that Prometheus would
//! read. A call never waits for it: a span that finds the queue full is dropped and counted.
//!
//! No message contains anything of a payload, a result, an error or the data of a resource. The implementation of
//! [`Collector`] brings the bytes to the collector.

mod export;
mod messages;
mod spans;
#[cfg(test)]
mod tests;
mod traced;

pub use export::{Collector, Exporter, Pace, PostFuture, exporter};
pub use spans::SpanQueue;
pub use traced::TracedEngine;
