//! An engine that makes spans of the calls of another one.

use std::sync::Arc;

use tenure_core::access::TokenName;
use tenure_core::job::{NewJob, Outcome};
use tenure_core::lease::LeaseView;
use tenure_core::names::{JobId, Namespace, QueueName};
use tenure_core::requests::{Reply, Request};
use tenure_core::time::Moment;
use tenure_core::trace::TraceParent;
use tenure_engine_api::{AroundEngine, CallFuture, Clock, Engine, SystemClock};
use tenure_server::metrics::OpenRuns;

use crate::otlp::spans::{ServerSpan, SpanOf, SpanQueue, is_sampled};

/// Makes a span of each push, wait and run whose job carries a sampled trace. It changes no call and no answer. The
/// span of a run needs both the grant and the settle to be calls of this process.
pub struct TracedEngine {
    inner: Arc<dyn Engine>,
    tracer: Arc<Tracer>,
}

impl TracedEngine {
    pub fn new(inner: Arc<dyn Engine>, spans: SpanQueue) -> Self {
        TracedEngine { inner, tracer: Arc::new(Tracer { spans, open: OpenRuns::default() }) }
    }
}

/// A run of a traced job.
#[derive(Clone, Debug)]
struct TracedRun {
    parent: TraceParent,
    queue: QueueName,
    job: JobId,
    attempt: u32,
    granted_at: Moment,
}

/// The parts of a call that its answer does not repeat.
enum AskedFor {
    /// The traces and queues of the pushed jobs.
    Push(Vec<(TraceParent, QueueName)>),
    /// The outcomes of runs, in the order of the call.
    Ends(Vec<Outcome>),
    Leases,
}

struct Tracer {
    spans: SpanQueue,
    open: OpenRuns<TracedRun>,
}

impl AroundEngine for TracedEngine {
    fn inner(&self) -> &dyn Engine {
        &*self.inner
    }

    fn call_around(
        &self,
        by: Option<&TokenName>,
        namespace: &Namespace,
        request: Request,
    ) -> CallFuture {
        let asked = match &request {
            Request::Push(push) => AskedFor::Push(traces(&push.jobs)),
            Request::Settle(settle) => {
                AskedFor::Ends(settle.settle.iter().map(|item| item.ending.outcome()).collect())
            }
            Request::Lease(_) => AskedFor::Leases,
            _ => return self.inner.call_by(by, namespace, request),
        };
        let answer = self.inner.call_by(by, namespace, request);
        if matches!(&asked, AskedFor::Push(traces) if traces.is_empty()) {
            return answer;
        }
        let (tracer, namespace) = (self.tracer.clone(), namespace.clone());
        Box::pin(async move {
            let began = SystemClock.now();
            let reply = answer.await?;
            tracer.heard(&namespace, &asked, &reply, began);
            Ok(reply)
        })
    }
}

/// The trace and queue of each job whose trace is sampled.
fn traces(jobs: &[NewJob]) -> Vec<(TraceParent, QueueName)> {
    let traced = jobs.iter().filter_map(|job| {
        let trace = job.traceparent.as_ref().filter(|trace| is_sampled(trace))?;
        Some((trace.clone(), job.queue.clone()))
    });
    traced.collect()
}

impl Tracer {
    fn heard(&self, namespace: &Namespace, asked: &AskedFor, reply: &Reply, began: Moment) {
        match (reply, asked) {
            (Reply::Push(_), AskedFor::Push(traces)) => self.pushed(namespace, traces, began),
            (Reply::Lease(leased), _) => self.granted(namespace, &leased.leases),
            (Reply::Settle(settled), AskedFor::Ends(outcomes)) => {
                for (item, outcome) in settled.settled.iter().zip(outcomes) {
                    let run = self.open.ended(&item.lease);
                    if let Some(run) = run.filter(|_| item.ok && item.code.is_none()) {
                        self.ended(namespace, run, *outcome);
                    }
                }
                if let Some(Ok(leased)) = &settled.lease {
                    self.granted(namespace, &leased.leases);
                }
            }
            _ => {}
        }
    }

    fn pushed(&self, namespace: &Namespace, traces: &[(TraceParent, QueueName)], began: Moment) {
        // The jobs of a bulk mostly come from one place.
        for same in traces.chunk_by(|one, next| one == next) {
            let (parent, queue) = same[0].clone();
            self.spans.put(ServerSpan {
                id: self.spans.id(),
                parent,
                of: SpanOf::Push { jobs: same.len() },
                namespace: namespace.clone(),
                queue,
                job: None,
                start: began,
                end: SystemClock.now().max(began),
            });
        }
    }

    fn granted(&self, namespace: &Namespace, leases: &[LeaseView]) {
        for lease in leases {
            let (Some(job), Some(id)) = (&lease.job, &lease.lease) else { continue };
            let Some(parent) = job.traceparent.as_ref().filter(|trace| is_sampled(trace)) else {
                continue;
            };
            let due = job.run_at.max(job.created_at);
            self.spans.put(ServerSpan {
                id: self.spans.id(),
                parent: parent.clone(),
                of: SpanOf::Wait { attempt: job.attempt },
                namespace: namespace.clone(),
                queue: job.queue.clone(),
                job: Some(job.id.clone()),
                start: due.min(lease.granted_at),
                end: lease.granted_at,
            });
            let run = TracedRun {
                parent: parent.clone(),
                queue: job.queue.clone(),
                job: job.id.clone(),
                attempt: job.attempt,
                granted_at: lease.granted_at,
            };
            self.open.began(id, run);
        }
    }

    fn ended(&self, namespace: &Namespace, run: TracedRun, outcome: Outcome) {
        let TracedRun { parent, queue, job, attempt, granted_at } = run;
        self.spans.put(ServerSpan {
            id: self.spans.id(),
            parent,
            of: SpanOf::Run { attempt, outcome },
            namespace: namespace.clone(),
            queue,
            job: Some(job),
            start: granted_at,
            // The clock of the store may differ from ours.
            end: SystemClock.now().max(granted_at),
        });
    }
}
