//! The engine that asks again: a call whose outcome is unknown is repeated with the same ids until
//! it is known, or for at most a minute.
//!
//! What was given no id gets one before it is first sent, since only by that can it be repeated. It
//! never repeats what could do more the second time, and never after the engine may have forgotten
//! the first ([`tenure_core::bounds::REQUEST_US`]).

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::bounds::REQUEST_US;
use tenure_core::names::Namespace;
use tenure_core::refusal::Code;
use tenure_core::requests::{Effect, Reply, Request, Settle};
use tenure_seam::{AroundEngine, CallError, CallFuture, Engine, Fault};
use tokio::time::{Instant, sleep};

use crate::asking::is_engines;
use crate::ids;

/// The first wait between two sendings; each is twice the one before.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// The longest wait between two sendings.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// No repeat is sent later than this after the first sending.
const REPEAT_MAX: Duration = Duration::from_micros(REQUEST_US);

/// Waits that grow, with chance in them so that a crowd does not come back as one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { next: FIRST_WAIT, longest: LONGEST_WAIT }
    }
}

impl Backoff {
    /// The next wait: between half of it and the whole.
    pub(crate) fn wait(&mut self) -> Duration {
        let whole = self.next;
        self.next = (whole * 2).min(self.longest);
        // Each RandomState is seeded anew, which is all the chance that is needed here.
        let chance = RandomState::new().build_hasher().finish() as u32;
        whole / 2 + (whole / 2).mul_f64(f64::from(chance) / f64::from(u32::MAX))
    }
}

/// An engine whose calls are repeated while their outcome is unknown.
#[derive(Clone)]
pub struct Repeat {
    engine: Arc<dyn Engine>,
    longest: Duration,
}

impl Repeat {
    /// Repeats the calls of this engine, for at most a minute each.
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Repeat { engine, longest: REPEAT_MAX }
    }
    /// The same, but no repeat is sent later than `longest` after the first sending; at most a
    /// minute, zero for none.
    pub fn at_most(mut self, longest: Duration) -> Self {
        self.longest = longest.min(REPEAT_MAX);
        self
    }
}

/// Gives every part of a request the id by which it can be repeated.
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

async fn repeated(repeat: Repeat, namespace: Namespace, request: Request) -> EngineAnswer {
    let begun = Instant::now();
    let mut backoff = Backoff::default();
    // Why the outcome is unknown, once it was.
    let mut unknown: Option<String> = None;
    loop {
        let answer = repeat.engine.call(&namespace, request.clone()).await;
        match answer {
            Err(CallError::Fault(Fault::Unknown(why))) => unknown = Some(why),
            // Nothing happened this time; what the first time did is as unknown as before.
            Err(CallError::Fault(Fault::Unavailable(_) | Fault::StoreAway(_)))
                if unknown.is_some() => {}
            Err(CallError::Refused(no)) if unknown.is_some() => {
                if let Some(reply) = request.done_already(no.code) {
                    return Ok(reply);
                }
                match (&request, no.code) {
                    (_, code) if is_engines(code) => {}
                    // It is no longer at that end, perhaps by our own first sending.
                    (Request::RetryJob(_), Code::WrongState) => {
                        return Err(CallError::Fault(Fault::Unknown(no.detail)));
                    }
                    _ => return Err(CallError::Refused(no)),
                }
            }
            known => return known,
        }
        let wait = backoff.wait();
        if begun.elapsed() + wait > repeat.longest {
            let why = unknown.unwrap_or_default();
            return Err(CallError::Fault(Fault::Unknown(why)));
        }
        sleep(wait).await;
    }
}

type EngineAnswer = Result<Reply, CallError>;

impl AroundEngine for Repeat {
    fn inner(&self) -> &dyn Engine {
        &*self.engine
    }
    fn call_around(&self, namespace: &Namespace, mut request: Request) -> CallFuture {
        identify(&mut request);
        // Whoever calls here is in this process, and so is the store unless another serves it.
        match &mut request {
            Request::Lease(lease) => lease.local = true,
            Request::Settle(Settle { lease: Some(lease), .. }) => lease.local = true,
            _ => {}
        }
        match request.effect() {
            Effect::Reads | Effect::Adds => self.engine.call(namespace, request),
            Effect::Sets => Box::pin(repeated(self.clone(), namespace.clone(), request)),
        }
    }
}

#[cfg(test)]
mod tests;
