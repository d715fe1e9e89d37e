//! A trace goes from the push over the run to the settle and to the jobs that the run pushes; a collector sees its
//! spans.
//!
//! A program of its own: `tracing` asks only the first thread that reaches a span whether it is wanted, and keeps the
//! answer for all threads. Other tests have no collector.
#![cfg(all(feature = "testing", feature = "opentelemetry"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use opentelemetry::trace::{SpanId, TracerProvider as _};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tenure::core::trace::TraceParent;
use tenure::{Client, Job, JobRef, SettleOutcome};
use tracing::subscriber::DefaultGuard;
use tracing::{Instrument, info_span};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Spans that have ended, of this thread.
struct Collector {
    spans: InMemorySpanExporter,
    _provider: SdkTracerProvider,
    _on: DefaultGuard,
}

impl Collector {
    fn start() -> Self {
        let spans = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
        let on = tracing_subscriber::registry().with(layer).set_default();
        Collector { spans, _provider: provider, _on: on }
    }

    fn named(&self, name: &str) -> Vec<SpanData> {
        let all = self.spans.get_finished_spans().unwrap();
        all.into_iter().filter(|span| span.name == name).collect()
    }

    fn only(&self, name: &str) -> SpanData {
        let mut all = self.named(name);
        assert_eq!(all.len(), 1, "spans named {name}");
        all.remove(0)
    }
}

fn said(span: &SpanData, key: &str) -> Option<String> {
    let pair = span.attributes.iter().find(|pair| pair.key.as_str() == key)?;
    Some(pair.value.as_str().into_owned())
}

fn trace_of(span: &SpanData) -> String {
    let context = &span.span_context;
    format!("00-{}-{}-01", context.trace_id(), context.span_id())
}

async fn work(client: &Client, queue: &str) {
    let worker = client.worker([queue]).until_idle();
    let worked = worker.run(|_: Job| async { Ok::<_, String>(()) }).await.unwrap();
    assert!(worked.jobs > 0);
}

#[tokio::test]
async fn a_trace_goes_from_the_producer_to_the_settle() {
    let collector = Collector::start();
    let client = Client::connect("memory:").await.unwrap();
    let request = info_span!("request");
    let pushed = async { client.push("mail").await }.instrument(request.clone()).await.unwrap();
    drop(request);
    work(&client, "mail").await;

    let (request, push) = (collector.only("request"), collector.only("tenure.push"));
    let (run, settle) = (collector.only("tenure.run"), collector.only("tenure.settle"));
    for span in [&push, &run, &settle] {
        assert_eq!(span.span_context.trace_id(), request.span_context.trace_id(), "{}", span.name);
    }
    assert_eq!(push.parent_span_id, request.span_context.span_id());
    assert_eq!(run.parent_span_id, push.span_context.span_id());
    assert_eq!(settle.parent_span_id, run.span_context.span_id());
    assert_eq!(said(&run, "messaging.message.id").as_deref(), Some(pushed.id.as_str()));
    assert_eq!(said(&run, "messaging.destination.name").as_deref(), Some("mail"));
    assert_eq!(said(&run, "tenure.outcome").as_deref(), Some("succeeded"));
    // Any worker can continue it, in any language.
    let job = client.get_job(JobRef::Id(pushed.id)).await.unwrap();
    assert_eq!(job.traceparent.unwrap().as_str(), trace_of(&push));
}

#[tokio::test]
async fn what_a_run_pushes_is_in_its_trace() {
    let collector = Collector::start();
    let client = Client::connect("memory:").await.unwrap();
    client.push("first").await.unwrap();
    let worker = client.worker(["first"]).until_idle();
    let then = client.push("then").into_job().unwrap();
    let inside = client.clone();
    let handler = move |_: Job| {
        let (client, then) = (inside.clone(), then.clone());
        async move {
            client.push("inside").await.map_err(|why| why.to_string())?;
            Ok::<_, String>(SettleOutcome::succeeded().then(then))
        }
    };
    worker.run(handler).await.unwrap();
    let first = collector.only("tenure.run");
    collector.spans.reset();
    for queue in ["inside", "then"] {
        work(&client, queue).await;
    }
    for run in collector.named("tenure.run") {
        assert_eq!(run.span_context.trace_id(), first.span_context.trace_id());
        if said(&run, "messaging.destination.name").as_deref() == Some("then") {
            assert_eq!(run.parent_span_id, first.span_context.span_id());
        }
    }
    assert_eq!(collector.named("tenure.run").len(), 2);
}

#[tokio::test]
async fn a_trace_that_the_push_names_is_gone_on_with() {
    let collector = Collector::start();
    let client = Client::connect("memory:").await.unwrap();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    client.push("mail").traceparent(trace).await.unwrap();
    work(&client, "mail").await;
    let run = collector.only("tenure.run");
    assert_eq!(run.span_context.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(run.parent_span_id, SpanId::from_hex("b7ad6b7169203331").unwrap());
    assert!(client.push("mail").traceparent("00-abc").into_job().is_err());
}

#[tokio::test]
async fn a_failed_run_is_an_error_and_says_nothing_of_its_content() {
    let collector = Collector::start();
    let client = Client::connect("memory:").await.unwrap();
    client.push("mail").payload(&"geheim").unwrap().await.unwrap();
    let worker = client.worker(["mail"]).max_jobs(1);
    worker.run(|_: Job| async { Err::<(), _>("geheim") }).await.unwrap();
    let run = collector.only("tenure.run");
    assert_eq!(said(&run, "tenure.outcome").as_deref(), Some("failed"));
    assert_eq!(run.status, opentelemetry::trace::Status::error(""));
    let all = format!("{:?}", collector.spans.get_finished_spans().unwrap());
    assert!(!all.contains("geheim"), "{all}");
}

#[tokio::test]
async fn a_settle_of_several_runs_is_linked_to_each() {
    let collector = Collector::start();
    let client = Client::connect("memory:").await.unwrap();
    for _ in 0..20 {
        client.push("mail").await.unwrap();
    }
    let worker = client.worker(["mail"]).concurrency(20).until_idle();
    worker.run(|_: Job| async { Ok::<_, String>(()) }).await.unwrap();
    let runs = collector.named("tenure.run");
    assert_eq!(runs.len(), 20);
    let mut told = 0;
    for settle in collector.named("tenure.settle") {
        let of_one = runs.iter().any(|run| run.span_context.span_id() == settle.parent_span_id);
        told += if of_one { 1 } else { settle.links.len() };
    }
    assert_eq!(told, 20, "each run was settled in the sight of its trace");
}

#[tokio::test]
async fn without_a_layer_nothing_is_carried() {
    let client = Client::connect("memory:").await.unwrap();
    let pushed = client.push("mail").await.unwrap();
    let job = client.get_job(JobRef::Id(pushed.id)).await.unwrap();
    assert_eq!(job.traceparent, None::<TraceParent>);
}
