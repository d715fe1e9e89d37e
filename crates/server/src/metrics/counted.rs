//! An engine that counts the calls of another one.

use std::sync::Arc;

use tenure_core::access::TokenName;
use tenure_core::job::JobState;
use tenure_core::lease::{Ending, SettledLease};
use tenure_core::names::{Namespace, QueueName};
use tenure_core::refusal::Code;
use tenure_core::requests::{Pushed, Reply, Request};
use tenure_engine_api::{AroundEngine, CallFuture, Engine};

use crate::metrics::counts::{CallCounts, RunEnd};

/// Counts pushes, grants and ends in [`CallCounts`]. It changes no call and no answer, and remembers only the queue of
/// a job. A grant that is undone because its caller left still counts as a grant.
pub struct CountingEngine {
    inner: Arc<dyn Engine>,
    counts: Arc<CallCounts>,
}

impl CountingEngine {
    pub fn new(inner: Arc<dyn Engine>, counts: Arc<CallCounts>) -> Self {
        CountingEngine { inner, counts }
    }
}

impl AroundEngine for CountingEngine {
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
            Request::Settle(settle) => {
                AskedFor::Ends(settle.settle.iter().map(|item| how(&item.ending)).collect())
            }
            Request::Push(push) => {
                AskedFor::Jobs(push.jobs.iter().map(|job| job.queue.clone()).collect())
            }
            Request::Lease(_) | Request::Extend(_) => AskedFor::Nothing,
            _ => return self.inner.call_by(by, namespace, request),
        };
        // Before the call is made: no effect of it may be older.
        self.counts.begins();
        let answer = self.inner.call_by(by, namespace, request);
        let (counts, namespace) = (self.counts.clone(), namespace.clone());
        Box::pin(async move {
            let reply = answer.await?;
            heard(&counts, &namespace, &asked, &reply);
            Ok(reply)
        })
    }
}

/// The parts of a call that its answer does not repeat.
enum AskedFor {
    /// The ends of runs, in the order of the call.
    Ends(Vec<RunEnd>),
    /// The queues of the pushed jobs, in the order of the call.
    Jobs(Vec<QueueName>),
    Nothing,
}

fn how(ending: &Ending) -> RunEnd {
    match ending {
        Ending::Succeeded { .. } => RunEnd::Succeeded,
        Ending::Failed { .. } => RunEnd::Failed,
        Ending::Snoozed { .. } => RunEnd::Snoozed,
        Ending::Released => RunEnd::Released,
    }
}

fn heard(counts: &CallCounts, namespace: &Namespace, asked: &AskedFor, reply: &Reply) {
    match (reply, asked) {
        (Reply::Push(pushed), AskedFor::Jobs(queues)) => {
            let there: &mut dyn Iterator<Item = bool> = match pushed {
                Pushed::Whole(jobs) => &mut jobs.iter().map(|job| job.duplicate),
                Pushed::Ids(jobs) => &mut jobs.iter().map(|job| job.duplicate),
            };
            let new =
                queues.iter().zip(there).filter_map(|(queue, there)| (!there).then_some(queue));
            counts.pushed(namespace, &new.collect::<Vec<_>>());
        }
        (Reply::Lease(leased), _) => counts.granted(namespace, &leased.leases),
        (Reply::Extend(extended), _) => counts.lost(extended.too_late()),
        (Reply::Settle(settled), AskedFor::Ends(endings)) => {
            let ends = settled.settled.iter().zip(endings).filter_map(|(item, end)| {
                // The settle of a lease without a job has no state.
                let state = item.state.filter(|_| item.ok && item.code.is_none())?;
                let again = *end == RunEnd::Failed && state != JobState::Failed;
                Some((item.lease.as_str(), if again { RunEnd::Retried } else { *end }))
            });
            counts.ended(namespace, &ends.collect::<Vec<_>>());
            let lost = |item: &&SettledLease| item.code == Some(Code::LeaseLost);
            counts.lost(settled.settled.iter().filter(lost).map(|item| item.lease.as_str()));
            let pushed = settled.settled.iter().flat_map(|item| &item.pushed);
            let new = pushed.filter(|job| !job.duplicate).map(|job| &job.job.queue);
            counts.pushed(namespace, &new.collect::<Vec<_>>());
            if let Some(Ok(leased)) = &settled.lease {
                counts.granted(namespace, &leased.leases);
            }
        }
        _ => {}
    }
}
