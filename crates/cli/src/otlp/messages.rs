//! Turns spans and metrics into messages of OTLP.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use tenure_core::job::Outcome;
use tenure_core::time::Moment;
use tenure_core::trace::TraceParent;
use tenure_server::metrics::{Family, SampleSink, Seen};

use crate::otlp::spans::{ServerSpan, SpanOf};

const CUMULATIVE: i32 = AggregationTemporality::Cumulative as i32;

fn nanos(moment: Moment) -> u64 {
    moment.us().saturating_mul(1000)
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn number(key: &str, value: i64) -> KeyValue {
    attribute(key, Value::IntValue(value))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

/// The sender: the same in every message.
pub(crate) fn resource(instance: &str) -> Resource {
    Resource {
        attributes: vec![
            text("service.name", "tenure"),
            text("service.version", env!("CARGO_PKG_VERSION")),
            text("service.instance.id", instance),
        ],
        ..Resource::default()
    }
}

fn scope() -> Option<InstrumentationScope> {
    Some(InstrumentationScope {
        name: "tenure".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    })
}

/// The ids of the trace and of the span in it.
fn ids(parent: &TraceParent) -> (Vec<u8>, Vec<u8>) {
    let mut parts = parent.as_str().split('-').skip(1).map(bytes);
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

/// The bytes of hexadecimal digits, which a `TraceParent` consists of.
fn bytes(hex: &str) -> Vec<u8> {
    let pairs = (0..hex.len() / 2).filter_map(|at| hex.get(2 * at..2 * at + 2));
    pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect()
}

fn span(span: &ServerSpan) -> Span {
    let (trace_id, parent_span_id) = ids(&span.parent);
    let (name, kind) = match span.of {
        SpanOf::Push { .. } => ("tenure.server.push", SpanKind::Server),
        SpanOf::Wait { .. } => ("tenure.server.wait", SpanKind::Internal),
        SpanOf::Run { .. } => ("tenure.server.run", SpanKind::Internal),
    };
    let mut attributes = vec![
        text("messaging.system", "tenure"),
        text("messaging.destination.name", span.queue.as_str()),
        text("tenure.namespace", span.namespace.as_str()),
    ];
    attributes.extend(span.job.as_ref().map(|job| text("messaging.message.id", job.as_str())));
    let mut status = None;
    match span.of {
        SpanOf::Push { jobs } if jobs > 1 => {
            attributes.push(number("messaging.batch.message_count", jobs as i64));
        }
        SpanOf::Push { .. } => {}
        SpanOf::Wait { attempt } => attributes.push(number("tenure.attempt", attempt.into())),
        SpanOf::Run { attempt, outcome } => {
            attributes.push(number("tenure.attempt", attempt.into()));
            attributes.push(text("tenure.outcome", outcome.as_str()));
            status = (outcome == Outcome::Failed)
                .then(|| Status { code: StatusCode::Error as i32, ..Status::default() });
        }
    }
    Span {
        trace_id,
        span_id: span.id.to_be_bytes().to_vec(),
        parent_span_id,
        // The trace is sampled, and its parent is in another program.
        flags: 0x301,
        name: name.to_owned(),
        kind: kind as i32,
        start_time_unix_nano: nanos(span.start),
        end_time_unix_nano: nanos(span.end),
        attributes,
        status,
        ..Span::default()
    }
}

/// A message with these spans.
pub(crate) fn of_spans<'s>(
    resource: &Resource,
    spans: impl Iterator<Item = &'s ServerSpan>,
) -> ExportTraceServiceRequest {
    let spans =
        ScopeSpans { scope: scope(), spans: spans.map(span).collect(), ..ScopeSpans::default() };
    let of = ResourceSpans {
        resource: Some(resource.clone()),
        scope_spans: vec![spans],
        ..ResourceSpans::default()
    };
    ExportTraceServiceRequest { resource_spans: vec![of] }
}

/// Metrics that are gathered for one message.
pub(crate) struct Gathered {
    metrics: Vec<Metric>,
    /// Since when counters count, and now.
    times: (u64, u64),
}

impl Gathered {
    pub(crate) fn new(start: Moment, now: Moment) -> Self {
        Gathered { metrics: Vec::new(), times: (nanos(start), nanos(now)) }
    }

    fn family(&mut self, family: &Family) -> Option<&mut metric::Data> {
        if self.metrics.last().is_none_or(|metric| metric.name != family.name) {
            let data = match family.kind {
                "counter" => metric::Data::Sum(Sum {
                    aggregation_temporality: CUMULATIVE,
                    is_monotonic: true,
                    ..Sum::default()
                }),
                "histogram" => metric::Data::Histogram(Histogram {
                    aggregation_temporality: CUMULATIVE,
                    ..Histogram::default()
                }),
                _ => metric::Data::Gauge(Gauge::default()),
            };
            self.metrics.push(Metric {
                name: family.name.to_owned(),
                description: family.help.to_owned(),
                unit: unit(family.name).to_owned(),
                data: Some(data),
                ..Metric::default()
            });
        }
        self.metrics.last_mut()?.data.as_mut()
    }

    /// All gathered metrics as one message.
    pub(crate) fn message(self, resource: &Resource) -> ExportMetricsServiceRequest {
        let metrics =
            ScopeMetrics { scope: scope(), metrics: self.metrics, ..ScopeMetrics::default() };
        let of = ResourceMetrics {
            resource: Some(resource.clone()),
            scope_metrics: vec![metrics],
            ..ResourceMetrics::default()
        };
        ExportMetricsServiceRequest { resource_metrics: vec![of] }
    }
}

/// The unit in the last part of a name.
fn unit(name: &str) -> &'static str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    match name.rsplit('_').next() {
        Some("seconds") => "s",
        Some("bytes") => "By",
        _ => "1",
    }
}

fn attributes(labels: &[(&str, &str)]) -> Vec<KeyValue> {
    labels.iter().map(|(name, value)| text(name, value)).collect()
}

impl SampleSink for Gathered {
    fn sample(&mut self, family: &Family, labels: &[(&str, &str)], value: f64) {
        let (start, now) = self.times;
        let point = NumberDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: start,
            time_unix_nano: now,
            value: Some(number_data_point::Value::AsDouble(value)),
            ..NumberDataPoint::default()
        };
        match self.family(family) {
            Some(metric::Data::Sum(sum)) => sum.data_points.push(point),
            Some(metric::Data::Gauge(gauge)) => {
                gauge.data_points.push(NumberDataPoint { start_time_unix_nano: 0, ..point });
            }
            _ => {}
        }
    }

    fn histogram(&mut self, family: &Family, labels: &[(&str, &str)], seen: &Seen) {
        let (start, now) = self.times;
        let point = HistogramDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: start,
            time_unix_nano: now,
            count: seen.count(),
            sum: Some(seen.sum),
            bucket_counts: seen.buckets.to_vec(),
            explicit_bounds: seen.bounds.to_vec(),
            ..HistogramDataPoint::default()
        };
        if let Some(metric::Data::Histogram(histogram)) = self.family(family) {
            histogram.data_points.push(point);
        }
    }
}
