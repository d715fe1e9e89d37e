//! Spans of [`tracing`]: one for each push, each run and each settle. With the feature `opentelemetry` they are spans
//! of one trace: the push gives its own to the job, and the run continues it.
//!
//! Names and fields are those of OpenTelemetry's conventions for messaging systems
//! (<https://opentelemetry.io/docs/specs/semconv/messaging/>). They never contain payloads, results or errors.

use tenure_core::job::NewJob;
use tracing::{Span, field, info_span};

use crate::outcome::SettleOutcome;
use crate::worker::Job;

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

/// The span of a run, in the trace of the job.
pub(crate) fn run(job: &Job) -> Span {
    let view = job.view();
    let span = info_span!(
        "tenure.run",
        otel.kind = "consumer",
        otel.status_code = field::Empty,
        messaging.system = "tenure",
        messaging.operation.type = "process",
        messaging.destination.name = %view.queue,
        messaging.message.id = %view.id,
        tenure.kind = %view.kind,
        tenure.attempt = view.attempt,
        tenure.fence = job.fence().get(),
        tenure.outcome = field::Empty,
        traceparent = view.traceparent.as_ref().map(field::display),
    );
    #[cfg(feature = "opentelemetry")]
    if !span.is_disabled() {
        if let Some(trace) = &view.traceparent {
            otel::go_on(&span, trace);
        }
        if let Some(context) = otel::context_of(&span) {
            job.traced(context);
        }
    }
    span
}

/// How a run ended; `None`: its lease was lost, or its time is over.
pub(crate) fn ended(span: &Span, outcome: Option<&SettleOutcome>) {
    if span.is_disabled() {
        return;
    }
    let word = outcome.map_or("lost", |outcome| outcome.ending.outcome().as_str());
    span.record("tenure.outcome", word);
    if matches!(word, "failed" | "lost") {
        span.record("otel.status_code", "ERROR");
    }
}

/// Gives the jobs that a run pushes with its outcome the trace of that run.
pub(crate) fn follow(run: &Job, pushed: &mut [NewJob]) {
    if pushed.is_empty() {
        return;
    }
    #[cfg(feature = "opentelemetry")]
    let own = run.trace().and_then(|context| otel::carried(&context));
    #[cfg(not(feature = "opentelemetry"))]
    let own = None;
    // Without a span of its own, the run uses the trace of its push.
    let trace = own.or_else(|| run.view().traceparent.clone());
    for job in pushed.iter_mut().filter(|job| job.traceparent.is_none()) {
        job.traceparent = trace.clone();
    }
}

/// The span of a settle: of one run in that run's trace, of several with links to all of them.
pub(crate) fn settle<'j>(runs: impl ExactSizeIterator<Item = &'j Job>) -> Span {
    let span = info_span!(
        "tenure.settle",
        otel.kind = "client",
        messaging.system = "tenure",
        messaging.operation.type = "settle",
        messaging.batch.message_count = runs.len(),
    );
    #[cfg(feature = "opentelemetry")]
    if !span.is_disabled() {
        otel::of_runs(&span, runs);
    }
    span
}

#[cfg(feature = "opentelemetry")]
mod otel {
    use opentelemetry::Context;
    use opentelemetry::trace::{
        SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState,
    };
    use tenure_core::trace::TraceParent;
    use tracing::Span;
    use tracing_opentelemetry::OpenTelemetrySpanExt;

    use crate::worker::Job;

    /// The context of a span; `None` if spans are not handed to OpenTelemetry.
    pub(super) fn context_of(span: &Span) -> Option<SpanContext> {
        let context = span.context().span().span_context().clone();
        context.is_valid().then_some(context)
    }

    /// The same, in the form that a job carries.
    pub(super) fn trace_of(span: &Span) -> Option<TraceParent> {
        carried(&context_of(span)?)
    }

    pub(super) fn carried(context: &SpanContext) -> Option<TraceParent> {
        let (trace, id, flags) = (context.trace_id(), context.span_id(), context.trace_flags());
        TraceParent::parse(&format!("00-{trace}-{id}-{:02x}", flags.to_u8())).ok()
    }

    /// Makes a span that has not begun a child of this trace.
    pub(super) fn go_on(span: &Span, trace: &TraceParent) {
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

    /// Parents or links of the span of [`super::settle`].
    pub(super) fn of_runs<'j>(span: &Span, runs: impl ExactSizeIterator<Item = &'j Job>) {
        let alone = runs.len() == 1;
        for context in runs.filter_map(Job::trace) {
            if alone {
                let _ = span.set_parent(Context::new().with_remote_span_context(context));
            } else {
                span.add_link(context);
            }
        }
    }
}
