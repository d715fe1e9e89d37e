//! The messages to a collector, and the cost of one that is gone.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{Collector, Pace, PostFuture, TracedEngine, exporter};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tenure_core::job::NewJob;
use tenure_core::lease::{Ending, Leased, SettleItem};
use tenure_core::names::{Namespace, QueueName};
use tenure_core::requests::{Lease, Push, PushAnswer, Settle};
use tenure_core::trace::TraceParent;
use tenure_engine::{Embedded, Location, Options};
use tenure_engine_api::{Engine, EngineExt};
use tenure_server::metrics::{CallCounts, CountingEngine, Metrics};
use tokio::sync::watch;

const WAIT_MAX: Duration = Duration::from_secs(60);

/// A collector that answers with a status and keeps accepted messages.
struct Keeps {
    status: AtomicU16,
    posts: AtomicUsize,
    traces: Mutex<Vec<Span>>,
    metrics: Mutex<Vec<ExportMetricsServiceRequest>>,
}

impl Keeps {
    fn answering(status: u16) -> Arc<Self> {
        Arc::new(Keeps {
            status: AtomicU16::new(status),
            posts: AtomicUsize::new(0),
            traces: Mutex::default(),
            metrics: Mutex::default(),
        })
    }

    fn spans(&self) -> Vec<Span> {
        self.traces.lock().unwrap().clone()
    }
}

struct To(Arc<Keeps>);

impl Collector for To {
    fn post(&self, path: &'static str, message: Vec<u8>) -> PostFuture {
        let status = self.0.status.load(Ordering::Relaxed);
        if path == "/v1/traces" {
            self.0.posts.fetch_add(1, Ordering::Relaxed);
        }
        if status == 200 && path == "/v1/traces" {
            let message = ExportTraceServiceRequest::decode(&message[..]).unwrap();
            let of = message.resource_spans.into_iter().flat_map(|of| of.scope_spans);
            self.0.traces.lock().unwrap().extend(of.flat_map(|of| of.spans));
        } else if status == 200 {
            let message = ExportMetricsServiceRequest::decode(&message[..]).unwrap();
            self.0.metrics.lock().unwrap().push(message);
        }
        Box::pin(async move { Ok(status) })
    }
}

struct World {
    engine: Arc<dyn Engine>,
    metrics: Arc<Metrics>,
    collector: Arc<Keeps>,
    end: watch::Sender<bool>,
    sending: tokio::task::JoinHandle<()>,
}

impl World {
    fn new(status: u16) -> Self {
        let inner: Arc<dyn Engine> =
            Arc::new(Embedded::open(Options::new(Location::Memory)).unwrap());
        let counts = Arc::new(CallCounts::default());
        let counted = Arc::new(CountingEngine::new(inner.clone(), counts.clone()));
        let metrics = Arc::new(Metrics::new(inner, counts, ["push"].into_iter()));
        let collector = Keeps::answering(status);
        let often = Duration::from_millis(20);
        let pace = Pace { spans: often, metrics: often };
        let (spans, exporter) = exporter(Arc::new(To(collector.clone())), "here:1", pace);
        let engine = Arc::new(TracedEngine::new(counted, spans));
        let (end, ended) = watch::channel(false);
        let sending = tokio::spawn(exporter.run(metrics.clone(), ended));
        World { engine, metrics, collector, end, sending }
    }

    async fn push(&self, traces: &[Option<String>]) {
        let job = |trace: &Option<String>| NewJob {
            traceparent: trace.as_ref().map(|text| TraceParent::parse(text).unwrap()),
            ..NewJob::new(QueueName::parse("mail").unwrap())
        };
        let jobs = traces.iter().map(job).collect();
        let push = Push { jobs, answer: PushAnswer::Ids };
        self.engine.run(&Namespace::main(), push).await.unwrap();
    }

    async fn lease(&self, max: usize) -> Leased {
        let queues = vec![QueueName::parse("mail").unwrap()];
        self.engine.run(&Namespace::main(), Lease::jobs(queues, max)).await.unwrap()
    }

    async fn until(&self, what: &str, well: impl Fn(&Keeps) -> bool) {
        let end = Instant::now() + WAIT_MAX;
        while !well(&self.collector) {
            assert!(Instant::now() < end, "waited in vain for {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn trace(n: usize, flags: &str) -> Option<String> {
    Some(format!("00-{:032x}-{:016x}-{flags}", n + 1, 7))
}

fn text_of(span: &Span, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|pair| pair.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_sampled_job_is_traced_from_its_push_to_its_end() {
    let world = World::new(200);
    world.push(&[trace(0, "01"), trace(1, "00"), None]).await;
    let leased = world.lease(10).await;
    assert_eq!(leased.leases.len(), 3);
    let ends = leased.leases.iter().map(|lease| {
        let ending = Ending::Failed { error: "a-secret".to_owned(), retry_in: None, last: true };
        SettleItem::new(lease.lease.clone().unwrap(), ending)
    });
    let settle = Settle { settle: ends.collect(), lease: None };
    world.engine.run(&Namespace::main(), settle).await.unwrap();
    world.until("three spans", |collector| collector.spans().len() >= 3).await;
    let spans = world.collector.spans();
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["tenure.server.push", "tenure.server.wait", "tenure.server.run"]);
    let ids: HashSet<_> = spans.iter().map(|span| span.span_id.clone()).collect();
    assert_eq!(ids.len(), 3);
    for span in &spans {
        assert_eq!(span.trace_id[15], 1);
        assert_eq!(span.parent_span_id, [0, 0, 0, 0, 0, 0, 0, 7]);
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{span:?}");
        assert_eq!(text_of(span, "messaging.destination.name").as_deref(), Some("mail"));
        assert!(!format!("{span:?}").contains("a-secret"), "{span:?}");
    }
    assert_eq!(text_of(&spans[2], "tenure.outcome").as_deref(), Some("failed"));
    assert_eq!(text_of(&spans[2], "tenure.attempt").as_deref(), Some("1"));
    assert_eq!(spans[2].status.as_ref().map(|status| status.code), Some(2));

    // The collector gets the same metrics that Prometheus would read.
    let ended = |collector: &Keeps| collector.metrics.lock().unwrap().iter().any(has_ends);
    world.until("metrics with the ends of runs", ended).await;
    let text = world.metrics.text().await;
    let told = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let told: HashSet<String> =
        told.map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    let message = world.collector.metrics.lock().unwrap().last().unwrap().clone();
    let of = message.resource_metrics.into_iter().flat_map(|of| of.scope_metrics);
    let sent: HashSet<String> = of.flat_map(|of| of.metrics).map(|metric| metric.name).collect();
    assert_eq!(sent, told);
    world.end.send_replace(true);
    world.sending.await.unwrap();
}

fn has_ends(message: &ExportMetricsServiceRequest) -> bool {
    let of = message.resource_metrics.iter().flat_map(|of| &of.scope_metrics);
    let sums = of.flat_map(|of| &of.metrics).filter(|metric| metric.name == "tenure_jobs_total");
    sums.into_iter().any(|metric| match &metric.data {
        Some(Data::Sum(sum)) => sum.is_monotonic && !sum.data_points.is_empty(),
        _ => false,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_collector_blocks_nothing_and_gets_a_bounded_backlog() {
    const ROUNDS: usize = 12;
    let world = World::new(503);
    world.push(&[trace(0, "01")]).await;
    world.until("a try", |collector| collector.posts.load(Ordering::Relaxed) > 0).await;
    for round in 1..=ROUNDS {
        let traces: Vec<_> = (0..1000).map(|n| trace(1000 * round + n, "01")).collect();
        world.push(&traces).await;
    }
    world.collector.status.store(200, Ordering::Relaxed);
    world
        .until("spans after the collector came back", |collector| !collector.spans().is_empty())
        .await;
    world.end.send_replace(true);
    world.sending.await.unwrap();
    let spans = world.collector.spans();
    // A batch that was refused for now is sent again.
    assert!(spans[0].trace_id.ends_with(&[0, 1]), "{:?}", spans[0].trace_id);
    let taken = spans.len();
    assert!((512..=2 * 4096 + 512).contains(&taken), "{taken} of {}", ROUNDS * 1000);
}
