//! Repeat: an engine that retries a call with an unknown outcome, with the same ids, until the
//! outcome is known, or for at most a minute. It also waits where the token of the caller has used up
//! its bounds ([`crate::token_bounds`]), for as long.
//!
//! A request without an id gets one before it is first sent, since only an id makes it repeatable.
//! It never retries a call that could do more the second time, nor after the engine may have
//! forgotten the first ([`tenure_core::bounds::REQUEST_US`]).

use std::sync::Arc;
use std::time::Duration;

use tenure_core::access::TokenName;
use tenure_core::bounds::REQUEST_US;
use tenure_core::names::Namespace;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{Effect, Reply, Request, Settle};
use tenure_engine_api::{AroundEngine, CallError, CallFuture, Engine, Fault};
use tokio::time::{Instant, sleep};

use crate::asking::is_engines;
use crate::backoff::Backoff;
use crate::ids;
use crate::token_bounds::wait_after;

/// No retry is sent later than this after the first attempt.
const REPEAT_MAX: Duration = Duration::from_micros(REQUEST_US);

/// An engine whose calls are retried while their outcome is unknown or their token must wait.
#[derive(Clone)]
pub struct Repeat {
    engine: Arc<dyn Engine>,
    longest: Duration,
}

impl Repeat {
    /// Retries the calls of this engine, for at most a minute each.
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Repeat { engine, longest: REPEAT_MAX }
    }
    /// The same, but no retry is sent later than `longest` after the first attempt; at most a
    /// minute, zero for none.
    pub fn at_most(mut self, longest: Duration) -> Self {
        self.longest = longest.min(REPEAT_MAX);
        self
    }
}

/// Gives every part of a request the id that makes it repeatable.
pub fn identify(request: &mut Request) {
    match request {
        Request::Push(push) => {
            for job in &mut push.jobs {
                job.id.get_or_insert_with(ids::job_id);
            }
        }
        Request::RunScheduleNow(run) => {
            run.id.get_or_insert_with(ids::job_id);
        }
        Request::Lease(lease) => {
            lease.request_id.get_or_insert_with(ids::request_id);
        }
        Request::Settle(settle) => {
            for job in settle.settle.iter_mut().flat_map(|item| &mut item.push) {
                job.id.get_or_insert_with(ids::job_id);
            }
            if let Some(lease) = &mut settle.lease {
                lease.request_id.get_or_insert_with(ids::request_id);
            }
        }
        _ => {}
    }
}

async fn repeated(
    repeat: Repeat,
    by: Option<TokenName>,
    namespace: Namespace,
    request: Request,
) -> EngineAnswer {
    let begun = Instant::now();
    let mut backoff = Backoff::default();
    let is_repeatable = request.effect() == Effect::Sets;
    // A caller that asks for leases waits for its token by itself: it may be cancelled meanwhile.
    let is_lease = matches!(request, Request::Lease(_));
    // Why the outcome is unknown, if it is.
    let mut unknown: Option<String> = None;
    loop {
        let answer = repeat.engine.call_by(by.as_ref(), &namespace, request.clone()).await;
        // The refusal of a token that has used up its bounds.
        let mut bound: Option<Refusal> = None;
        match answer {
            Err(CallError::Fault(Fault::Unknown(why))) if is_repeatable => unknown = Some(why),
            // Nothing happened this time; the outcome of the first attempt is still unknown.
            Err(CallError::Fault(Fault::Unavailable(_) | Fault::StoreAway(_)))
                if unknown.is_some() => {}
            // The same. An unknown outcome stays so, also for a caller that waits by itself.
            Err(CallError::Refused(no))
                if wait_after(&no).is_some() && (!is_lease || unknown.is_some()) =>
            {
                bound = Some(no);
            }
            Err(CallError::Refused(no)) if unknown.is_some() => {
                if let Some(reply) = request.done_already(no.code) {
                    return Ok(reply);
                }
                match (&request, no.code) {
                    (_, code) if is_engines(code) => {}
                    // It is no longer at that end, perhaps by our own first attempt.
                    (Request::RetryJob(_), Code::WrongState) => {
                        return Err(CallError::Fault(Fault::Unknown(no.detail)));
                    }
                    _ => return Err(CallError::Refused(no)),
                }
            }
            known => return known,
        }
        let wait = bound.as_ref().and_then(wait_after).unwrap_or_else(|| backoff.wait());
        if begun.elapsed() + wait > repeat.longest {
            return Err(match (unknown, bound) {
                (None, Some(no)) => CallError::Refused(no),
                (unknown, _) => CallError::Fault(Fault::Unknown(unknown.unwrap_or_default())),
            });
        }
        sleep(wait).await;
    }
}

type EngineAnswer = Result<Reply, CallError>;

impl AroundEngine for Repeat {
    fn inner(&self) -> &dyn Engine {
        &*self.engine
    }
    fn call_around(
        &self,
        by: Option<&TokenName>,
        namespace: &Namespace,
        mut request: Request,
    ) -> CallFuture {
        identify(&mut request);
        // The caller is in this process, and so is the store unless another engine serves it.
        match &mut request {
            Request::Lease(lease) => lease.local = true,
            Request::Settle(Settle { lease: Some(lease), .. }) => lease.local = true,
            _ => {}
        }
        Box::pin(repeated(self.clone(), by.cloned(), namespace.clone(), request))
    }
}

#[cfg(test)]
mod tests;
