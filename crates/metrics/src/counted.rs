//! An engine that counts what is asked of another one.

use std::sync::Arc;

use tenure_core::job::JobState;
use tenure_core::lease::{Ending, SettledLease};
use tenure_core::names::Namespace;
use tenure_core::refusal::Code;
use tenure_core::requests::{Reply, Request};
use tenure_engine::{AroundEngine, CallFuture, Engine};

use crate::counts::{Counts, End};

/// Counts grants and ends in [`Counts`]. It changes no call and no answer, and remembers of a job only its queue. A grant that
/// is undone since its caller left stays counted as a grant.
pub struct Counted {
    inner: Arc<dyn Engine>,
    counts: Arc<Counts>,
}

impl Counted {
    /// Around this engine.
    pub fn new(inner: Arc<dyn Engine>, counts: Arc<Counts>) -> Self {
        Counted { inner, counts }
    }
}

impl AroundEngine for Counted {
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

fn how(ending: &Ending) -> End {
    match ending {
        Ending::Succeeded { .. } => End::Succeeded,
        Ending::Failed { .. } => End::Failed,
        Ending::Snoozed { .. } => End::Snoozed,
        Ending::Released => End::Released,
    }
}

fn heard(counts: &Counts, namespace: &Namespace, endings: &[End], reply: &Reply) {
    match reply {
        Reply::Lease(leased) => counts.granted(namespace, &leased.leases),
        Reply::Extend(extended) => counts.lost(extended.lost.iter().map(String::as_str)),
        Reply::Settle(settled) => {
            let ends = settled.settled.iter().zip(endings).filter_map(|(item, end)| {
                // A lease without a job has no state.
                let state = item.state.filter(|_| item.ok && item.code.is_none())?;
                let again = *end == End::Failed && state != JobState::Failed;
                Some((item.lease.as_str(), if again { End::Retried } else { *end }))
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
