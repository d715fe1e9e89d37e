//! An engine that counts what is asked of another one.

use std::sync::Arc;

use tenure_core::job::JobState;
use tenure_core::lease::{Ending, SettledLease};
use tenure_core::names::Namespace;
use tenure_core::refusal::Code;
use tenure_core::requests::{Reply, Request};
use tenure_engine::{AroundEngine, CallFuture, Engine};

use crate::counts::{CallCounts, RunEnd};

/// Counts grants and ends in [`CallCounts`]. It changes no call and no answer, and remembers of a job only its queue. A grant that
/// is undone since its caller left stays counted as a grant.
pub struct CountingEngine {
    inner: Arc<dyn Engine>,
    counts: Arc<CallCounts>,
}

impl CountingEngine {
    /// Around this engine.
    pub fn new(inner: Arc<dyn Engine>, counts: Arc<CallCounts>) -> Self {
        CountingEngine { inner, counts }
    }
}

impl AroundEngine for CountingEngine {
    fn inner(&self) -> &dyn Engine {
        &*self.inner
    }

    fn call_around(&self, namespace: &Namespace, request: Request) -> CallFuture {
        let endings = match &request {
            Request::Settle(settle) => {
                settle.settle.iter().map(|item| how(&item.ending)).collect::<Vec<_>>()
            }
            Request::Lease(_) | Request::Extend(_) => Vec::new(),
            _ => return self.inner.call(namespace, request),
        };
        let answer = self.inner.call(namespace, request);
        let (counts, namespace) = (self.counts.clone(), namespace.clone());
        Box::pin(async move {
            let reply = answer.await?;
            heard(&counts, &namespace, &endings, &reply);
            Ok(reply)
        })
    }
}

fn how(ending: &Ending) -> RunEnd {
    match ending {
        Ending::Succeeded { .. } => RunEnd::Succeeded,
        Ending::Failed { .. } => RunEnd::Failed,
        Ending::Snoozed { .. } => RunEnd::Snoozed,
        Ending::Released => RunEnd::Released,
    }
}

fn heard(counts: &CallCounts, namespace: &Namespace, endings: &[RunEnd], reply: &Reply) {
    match reply {
        Reply::Lease(leased) => counts.granted(namespace, &leased.leases),
        Reply::Extend(extended) => counts.lost(extended.lost.iter().map(String::as_str)),
        Reply::Settle(settled) => {
            let ends = settled.settled.iter().zip(endings).filter_map(|(item, end)| {
                // A lease without a job has no state.
                let state = item.state.filter(|_| item.ok && item.code.is_none())?;
                let again = *end == RunEnd::Failed && state != JobState::Failed;
                Some((item.lease.as_str(), if again { RunEnd::Retried } else { *end }))
            });
            counts.ended(namespace, &ends.collect::<Vec<_>>());
            let lost = |item: &&SettledLease| item.code == Some(Code::LeaseLost);
            counts.lost(settled.settled.iter().filter(lost).map(|item| item.lease.as_str()));
            if let Some(Ok(leased)) = &settled.lease {
                counts.granted(namespace, &leased.leases);
            }
        }
        _ => {}
    }
}
