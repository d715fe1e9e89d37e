//! Spans of runs and of settles. They continue the traces of the jobs (see `crate::spans`).

#[cfg(feature = "opentelemetry")]
use opentelemetry::{Context, trace::TraceContextExt};
use tenure_core::job::NewJob;
use tracing::{Span, field, info_span};
#[cfg(feature = "opentelemetry")]
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::job::Job;
use crate::outcome::SettleOutcome;
#[cfg(feature = "opentelemetry")]
use crate::spans::otel;

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
        of_runs(&span, runs);
    }
    span
}

/// Parents or links of the span of [`settle`].
#[cfg(feature = "opentelemetry")]
fn of_runs<'j>(span: &Span, runs: impl ExactSizeIterator<Item = &'j Job>) {
    let alone = runs.len() == 1;
    for context in runs.filter_map(Job::trace) {
        if alone {
            let _ = span.set_parent(Context::new().with_remote_span_context(context));
        } else {
            span.add_link(context);
        }
    }
}
