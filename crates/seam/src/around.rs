//! Engines that stand around another one: they do some things themselves, and hand on the rest.

use tenure_core::gauge::Reading;
use tenure_core::names::Namespace;
use tenure_core::requests::Request;

use crate::{CallFuture, Engine, GaugeFeed, Health, ReadingFuture, SharedServer, StoreWork};

/// An engine around another one. It says here what it does itself; all else the inner one does, so that no wrapper leaves
/// out a part of [`Engine`] that has a default.
pub trait AroundEngine: Send + Sync + 'static {
    /// The engine that it stands around.
    fn inner(&self) -> &dyn Engine;

    /// As [`Engine::call`].
    fn call_around(&self, namespace: &Namespace, request: Request) -> CallFuture {
        self.inner().call(namespace, request)
    }

    /// As [`Engine::notice`].
    fn notice_around(&self) -> Option<String> {
        self.inner().notice()
    }
}

impl<E: AroundEngine> Engine for E {
    fn call(&self, namespace: &Namespace, request: Request) -> CallFuture {
        self.call_around(namespace, request)
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
