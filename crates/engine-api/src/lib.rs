//! Engine API: the trait between callers and the engines that keep the state.
//!
//! An [`Engine`] takes a [`Request`] and answers with its [`Reply`]. The server, the command line and the
//! library know this trait and no engine; no engine knows them. Nothing here decides anything: the
//! rules are in `tenure-machine`.

mod around;
mod clock;
mod fault;
pub mod gauges;
pub mod histogram;
pub mod ids;
pub mod joining;
mod last_leap;
mod leader;
pub mod schedules;
mod seldom;
mod shared_servers;
mod store_work;
mod test_clock;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::Pin;

pub use around::AroundEngine;
pub use clock::{Clock, SystemClock};
pub use fault::{CallError, Fault};
pub use gauges::{ClaimedGauge, GaugeFeed, GaugeReader, ReadingFuture};
pub use last_leap::LastLeap;
pub use leader::{Leader, LeaderAddress};
pub use seldom::Seldom;
pub use shared_servers::SharedServer;
pub use store_work::{SLOW, StoreTimes, StoreWork};
use tenure_core::access::TokenName;
use tenure_core::gauge::Reading;
use tenure_core::names::Namespace;
use tenure_core::requests::{Change, Operation, Reply, Request};
pub use test_clock::{MovedFuture, MovedTime, TestClock};

/// The future of a call. Dropping it means that the caller has gone: a lease that is granted to it
/// then is given back at once.
pub type CallFuture = Pin<Box<dyn Future<Output = Result<Reply, CallError>> + Send>>;

/// The health of an engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Health {
    /// `None`: well. Otherwise the fault: a clock that stepped back, a store that does not answer.
    pub degraded: Option<String>,
    /// The kind of the store, in the contract's word for it.
    pub store: &'static str,
}

/// An engine, which keeps the state and answers calls.
pub trait Engine: Send + Sync + 'static {
    /// Answers one request of one namespace. A mutating request that is repeated with the same ids
    /// changes nothing twice.
    fn call(&self, namespace: &Namespace, request: Request) -> CallFuture;

    /// The same for a caller whose token has a name. The engine that keeps the state gives the name to the events that a
    /// cancel, a retry, a change of settings or a similar call makes at once; to those of pushes, leases and settles it
    /// does not. An engine that calls a server ignores it: the server knows the caller by its token.
    fn call_by(
        &self,
        by: Option<&TokenName>,
        namespace: &Namespace,
        request: Request,
    ) -> CallFuture {
        let _ = by;
        self.call(namespace, request)
    }

    /// Its health; never waits.
    fn health(&self) -> Health;

    /// A notice for the operator of a healthy engine, such as that it holds something back for a while;
    /// never waits. Callers should go on calling it.
    fn notice(&self) -> Option<String> {
        None
    }

    /// The servers that share its store, including itself; never waits. Empty where no other server can have the store.
    fn servers(&self) -> Vec<SharedServer> {
        Vec::new()
    }

    /// Statistics of its store since it was opened, for metrics; never waits. Empty for an engine without a store of
    /// its own.
    fn store_work(&self) -> StoreWork {
        StoreWork::default()
    }

    /// Undoes grants whose answer the caller never got, as if these leases had never been
    /// granted. No attempt, `released` or `lost` is counted, the job is where it was, and
    /// the `request_id` may be granted again. Resources still rest their quarantine, since
    /// part of the answer may have been read, and rate tokens stay spent.
    ///
    /// A hint: it has no answer, never waits, and may be lost. A lease that was extended, settled or
    /// answered again to a repeat of its call is left alone: a caller got it. An engine that cannot
    /// undo a grant ends the lease as softly as it can, or leaves it to its ttl.
    fn undo(&self, namespace: &Namespace, leases: Vec<String>);

    /// Makes this process a reader of usage probes while it holds the feed: it gets due ones, as ticks of the engine
    /// claim them. `None`: another process ticks for this engine, and has them read.
    ///
    /// May be called several times; each feed is a reader of its own.
    fn gauges(&self) -> Option<GaugeFeed> {
        None
    }

    /// Delivers the answer to a claim.
    fn answer_gauge(&self, namespace: &Namespace, reading: Reading) -> ReadingFuture {
        let _ = (namespace, reading);
        Box::pin(async { Ok(()) })
    }

    /// From now on waiting lease calls are answered with an empty list and new ones are refused as draining; a call
    /// that waits for a result is answered with its present state; all others are answered. Repeating it does nothing.
    fn drain(&self);
}

/// Typed calls on any engine.
pub trait EngineExt: Engine {
    /// Answers one request with the reply of its operation. The future owns its data, so it may
    /// outlive the borrow of the engine, or be a task of its own.
    fn run<O: Operation>(
        &self,
        namespace: &Namespace,
        request: O,
    ) -> impl Future<Output = Result<O::Reply, CallError>> + Send + 'static + use<Self, O> {
        let answer = self.call(namespace, request.into());
        async move {
            O::reply(answer.await?).ok_or_else(|| {
                CallError::Fault(Fault::Broken(format!(
                    "{} got another operation's reply",
                    O::NAME
                )))
            })
        }
    }

    /// Creates a thing with the named settings, or changes them if it exists. A thing
    /// that another caller makes between the two calls has only these settings.
    ///
    /// It looks first: a server writes each refused change into its trail, and the refusal of a patch that a put then
    /// replaces would stand there beside each thing that was made.
    fn set<C: Change>(
        &self,
        namespace: &Namespace,
        change: C,
    ) -> impl Future<Output = Result<C::Reply, CallError>> + Send {
        async move {
            let is_there = match self.run(namespace, change.shows()).await {
                Ok(view) => C::has_own(&view),
                Err(CallError::Refused(no)) if no.code == C::ABSENT => false,
                // A caller that may not look may change all the same.
                Err(CallError::Refused(_)) => true,
                Err(fault @ CallError::Fault(_)) => return Err(fault),
            };
            if !is_there {
                return self.run(namespace, change.whole()).await;
            }
            match self.run(namespace, change.clone()).await {
                Err(CallError::Refused(no)) if no.code == C::ABSENT => {
                    self.run(namespace, change.whole()).await
                }
                answer => answer,
            }
        }
    }
}

impl<E: Engine + ?Sized> EngineExt for E {}
