//! Spans of [`tracing`]: one for each push, each run and each settle. With the feature `opentelemetry` they are spans
//! of one trace: the push gives its own to the job, and the run continues it.
//!
//! Names and fields are those of OpenTelemetry's conventions for messaging systems
//! (<https://opentelemetry.io/docs/specs/semconv/messaging/>). They never contain payloads, results or errors.

use tenure_core::job::NewJob;
use tracing::{Span, field, info_span};

/// The span of a push. Jobs without a trace get that of the span.
pub(crate) fn push(jobs: &mut [NewJob]) -> Span {
    let span = info_span!(
        "tenure.push",
        otel.kind = "producer",
        messaging.system = "tenure",
        messaging.operation.type = "send",
        messaging.destination.name = field::Empty,
        messaging.batch.message_count = field::Empty,
    );
    if span.is_disabled() {
        return span;
    }
    // A call may push to several queues.
    if let Some(first) =
        jobs.first().filter(|first| jobs.iter().all(|job| job.queue == first.queue))
    {
        span.record("messaging.destination.name", first.queue.as_str());
    }
    if jobs.len() > 1 {
        span.record("messaging.batch.message_count", jobs.len());
    }
    #[cfg(feature = "opentelemetry")]
    if let Some(trace) = otel::trace_of(&span) {
        for job in jobs.iter_mut().filter(|job| job.traceparent.is_none()) {
            job.traceparent = Some(trace.clone());
        }
    }
    span
}

#[cfg(feature = "opentelemetry")]
pub(crate) mod otel {
    use opentelemetry::Context;
    use opentelemetry::trace::{
        SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState,
    };
    use tenure_core::trace::TraceParent;
    use tracing::Span;
    use tracing_opentelemetry::OpenTelemetrySpanExt;

    /// The context of a span; `None` if spans are not handed to OpenTelemetry.
    pub(crate) fn context_of(span: &Span) -> Option<SpanContext> {
        let context = span.context().span().span_context().clone();
        context.is_valid().then_some(context)
    }

    /// The same, in the form that a job carries.
    pub(crate) fn trace_of(span: &Span) -> Option<TraceParent> {
        carried(&context_of(span)?)
    }

    pub(crate) fn carried(context: &SpanContext) -> Option<TraceParent> {
        let (trace, id, flags) = (context.trace_id(), context.span_id(), context.trace_flags());
        TraceParent::parse(&format!("00-{trace}-{id}-{:02x}", flags.to_u8())).ok()
    }

    /// Makes a span that has not begun a child of this trace.
    pub(crate) fn go_on(span: &Span, trace: &TraceParent) {
        if let Some(context) = remote(trace) {
            // It fails if no layer of OpenTelemetry sees this span, and then there is no trace to continue.
            let _ = span.set_parent(Context::new().with_remote_span_context(context));
        }
    }

    fn remote(trace: &TraceParent) -> Option<SpanContext> {
        let mut parts = trace.as_str().split('-').skip(1);
        let trace = TraceId::from_hex(parts.next()?).ok()?;
        let span = SpanId::from_hex(parts.next()?).ok()?;
        let flags = TraceFlags::new(u8::from_str_radix(parts.next()?, 16).ok()?);
        Some(SpanContext::new(trace, span, flags, true, TraceState::default()))
    }
}
