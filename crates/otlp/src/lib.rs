//! Traces and metrics of a server, sent to a collector by the protocol of OpenTelemetry (OTLP over HTTP, as protobuf).
//!
//! [`TracedEngine`] stands around an engine and makes a span of each push, wait and run whose job carries a sampled trace.
//! [`exporter`] has a bounded queue for them and sends what is in it, and the metrics that Prometheus would read, from a task of
//! its own. A call never waits for it: a span that finds the queue full is dropped and counted.
//!
//! Nothing of a payload, a result, an error or the data of a resource is in it. How bytes get to the collector is for whoever
//! implements [`Collector`].

mod export;
mod messages;
mod spans;
mod traced;

pub use export::{Collector, Exporter, Pace, PostFuture, exporter};
pub use spans::SpanQueue;
pub use traced::TracedEngine;
