//! Engines that wrap another one: they do some things themselves, and leave the rest to the inner engine.

use tenure_core::access::TokenName;
use tenure_core::gauge::Reading;
use tenure_core::names::Namespace;
use tenure_core::requests::Request;

use crate::{CallFuture, Engine, GaugeFeed, Health, ReadingFuture, SharedServer, StoreWork};

/// A wrapper around an engine. It names only the parts that it does itself; the inner engine does the rest, so that no
/// wrapper leaves out a part of [`Engine`] that has a default.
pub trait AroundEngine: Send + Sync + 'static {
    /// The engine inside the wrapper.
    fn inner(&self) -> &dyn Engine;

    /// Answers a call, in place of [`Engine::call`] and [`Engine::call_by`]. It takes the name of the caller in any case,
    /// so that no wrapper loses it.
    fn call_around(
        &self,
        by: Option<&TokenName>,
        namespace: &Namespace,
        request: Request,
    ) -> CallFuture {
        self.inner().call_by(by, namespace, request)
    }

    /// Gives the notice, in place of [`Engine::notice`].
    fn notice_around(&self) -> Option<String> {
        self.inner().notice()
    }
}

impl<E: AroundEngine> Engine for E {
    fn call(&self, namespace: &Namespace, request: Request) -> CallFuture {
        self.call_around(None, namespace, request)
    }
    fn call_by(
        &self,
        by: Option<&TokenName>,
        namespace: &Namespace,
        request: Request,
    ) -> CallFuture {
        self.call_around(by, namespace, request)
    }
    fn health(&self) -> Health {
        self.inner().health()
    }
    fn notice(&self) -> Option<String> {
        self.notice_around()
    }
    fn servers(&self) -> Vec<SharedServer> {
        self.inner().servers()
    }
    fn store_work(&self) -> StoreWork {
        self.inner().store_work()
    }
    fn undo(&self, namespace: &Namespace, leases: Vec<String>) {
        self.inner().undo(namespace, leases);
    }
    fn gauges(&self) -> Option<GaugeFeed> {
        self.inner().gauges()
    }
    fn answer_gauge(&self, namespace: &Namespace, reading: Reading) -> ReadingFuture {
        self.inner().answer_gauge(namespace, reading)
    }
    fn drain(&self) {
        self.inner().drain();
    }
}
