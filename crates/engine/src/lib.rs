//! The seam between those who ask and where state lives.
//!
//! An [`Engine`] takes a [`Request`] and answers its [`Reply`]. The server, the command line and the
//! library know this trait and no engine; no engine knows them. Nothing here decides anything: the
//! rules are in `tenure-core`.

mod clock;
mod fault;

use std::future::Future;
use std::pin::Pin;

pub use clock::{Clock, SystemClock};
pub use fault::{CallError, Fault};
use tenure_core::names::Namespace;
use tenure_core::requests::{Operation, Reply, Request};

/// The future of a call. Dropping it says that the caller is gone: a lease that is granted to it
/// then is given back at once.
pub type CallFuture = Pin<Box<dyn Future<Output = Result<Reply, CallError>> + Send>>;

/// How an engine is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Health {
    /// `None`: well. Else what is wrong: a clock that stepped back, a store that does not answer.
    pub degraded: Option<String>,
    /// `embedded`, `redis`, `remote`.
    pub store: &'static str,
}

/// Where state lives.
pub trait Engine: Send + Sync + 'static {
    /// Answers one request of one namespace. A mutating request that is repeated with the same ids
    /// does nothing twice.
    fn call(&self, namespace: &Namespace, request: Request) -> CallFuture;

    /// How it is; never waits.
    fn health(&self) -> Health;

    /// From now on waiting lease calls are answered with an empty list and new ones are refused as
    /// draining; all else is answered. Repeating it does nothing.
    fn drain(&self);
}

/// Typed calls on any engine.
pub trait EngineExt {
    /// Answers one request with the reply of its operation.
    fn run<O: Operation>(
        &self,
        namespace: &Namespace,
        request: O,
    ) -> impl Future<Output = Result<O::Reply, CallError>> + Send;
}

impl<E: Engine + ?Sized> EngineExt for E {
    fn run<O: Operation>(
        &self,
        namespace: &Namespace,
        request: O,
    ) -> impl Future<Output = Result<O::Reply, CallError>> + Send {
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
}
