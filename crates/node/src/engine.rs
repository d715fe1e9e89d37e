//! The engine of this server for its callers: the real one while this server leads the store.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tenure_core::access::TokenName;
use tenure_core::gauge::Reading;
use tenure_core::names::Namespace;
use tenure_core::requests::Request;
use tenure_engine::Embedded;
use tenure_engine_api::{
    CallFuture, Engine, Fault, Health, LeaderAddress, ReadingFuture, StoreWork,
};
use tenure_redis::STORE_KIND;

use crate::driver::Driver;
use crate::place::StoreLeader;

/// The reason why a leader whose log keeps growing is not well.
const OVERDUE: &str = "no snapshot of the store could be made for 10 min, so its log grows in Redis; see in the log of this server \
                       why not, make room in Redis, and ask for one: tenure store compact";

/// Answers calls while this server leads the store. Otherwise a call is refused as unavailable, with a sentence that
/// names the leader. It reads no usage probes itself: [`Node::place`](crate::Member::place) has the engine that does.
#[derive(Clone)]
pub struct NodeEngine(Arc<Driver>);

impl NodeEngine {
    pub(crate) fn new(driver: Arc<Driver>) -> Self {
        NodeEngine(driver)
    }

    fn here(&self) -> Result<Arc<Embedded>, Fault> {
        match self.0.place_now() {
            StoreLeader::Local { engine, .. } => Ok(engine),
            StoreLeader::Remote(LeaderAddress { url, .. }) => {
                Err(Fault::Unavailable(format!("the store is served by {url}; call that server")))
            }
            StoreLeader::None(why) | StoreLeader::Paused(why) => Err(Fault::Unavailable(why)),
        }
    }
}

impl Engine for NodeEngine {
    fn call(&self, namespace: &Namespace, request: Request) -> CallFuture {
        self.call_by(None, namespace, request)
    }

    fn call_by(
        &self,
        by: Option<&TokenName>,
        namespace: &Namespace,
        request: Request,
    ) -> CallFuture {
        match self.here() {
            Ok(engine) => engine.call_by(by, namespace, request),
            Err(no) => Box::pin(async move { Err(no.into()) }),
        }
    }

    fn health(&self) -> Health {
        let degraded = match self.0.place_now() {
            StoreLeader::Local { engine, .. } => {
                let overdue = self.0.is_overdue.load(Ordering::Acquire);
                engine.health().degraded.or_else(|| overdue.then(|| OVERDUE.to_owned()))
            }
            StoreLeader::Remote(_) => None,
            StoreLeader::None(why) | StoreLeader::Paused(why) => Some(why),
        };
        Health { degraded, store: STORE_KIND }
    }

    fn notice(&self) -> Option<String> {
        let warnings = self.0.lock().health(self.0.clock.at()).warnings;
        let of_engine = || self.here().ok().and_then(|engine| engine.notice());
        warnings.into_iter().next().or_else(of_engine)
    }

    fn store_work(&self) -> StoreWork {
        self.here().map(|engine| engine.store_work()).unwrap_or_default()
    }

    fn undo(&self, namespace: &Namespace, leases: Vec<String>) {
        // A lease that is unknown here ends with its ttl.
        if let Ok(engine) = self.here() {
            engine.undo(namespace, leases);
        }
    }

    fn answer_gauge(&self, namespace: &Namespace, reading: Reading) -> ReadingFuture {
        match self.here() {
            Ok(engine) => engine.answer_gauge(namespace, reading),
            Err(no) => Box::pin(async move { Err(no.into()) }),
        }
    }

    fn drain(&self) {
        if let Ok(engine) = self.here() {
            engine.drain();
        }
    }
}

impl std::fmt::Debug for NodeEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemberEngine").field("place", &self.0.place_now()).finish()
    }
}
