//! Short calls for limits, pools and queues.

use std::future::Future;
use std::panic::Location;

use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::*;
use tenure_core::settings::{
    LimitSettings, LimitView, NewResource, PoolSettings, PoolView, QueueSettings, QueueView,
    ResourceView,
};

use crate::bench::Bench;
use crate::words::*;

impl Bench {
    #[track_caller]
    pub(crate) fn set_limit(
        &self,
        name: &str,
        settings: LimitSettings,
    ) -> impl Future<Output = Put<LimitView>> + Send + use<> {
        self.ok(PutLimit { limit: limit(name), settings, gauge: None })
    }
    #[track_caller]
    pub(crate) fn limit(&self, name: &str) -> impl Future<Output = LimitView> + Send + use<> {
        self.ok(GetLimit { limit: limit(name) })
    }
    /// Checks the number of permits of the limit that are in use.
    #[track_caller]
    pub(crate) fn in_use(
        &self,
        name: &str,
        permits: u64,
    ) -> impl Future<Output = ()> + Send + use<> {
        let at = Location::caller();
        let name = name.to_owned();
        let call = self.limit(&name);
        async move { assert_eq!(call.await.in_use, permits, "{at}: in use of {name:?}") }
    }
    /// A pool with these settings and these resources.
    #[track_caller]
    pub(crate) fn set_pool(
        &self,
        name: &str,
        settings: PoolSettings,
        resources: Vec<NewResource>,
    ) -> impl Future<Output = ()> + Send + use<> {
        assert!(!resources.is_empty(), "a call that adds nothing is not a call");
        let put = self.ok(PutPool { pool: pool(name), settings });
        let add = self.ok(AddResources { pool: pool(name), resources });
        async move {
            put.await;
            add.await;
        }
    }
    #[track_caller]
    pub(crate) fn pool(&self, name: &str) -> impl Future<Output = PoolView> + Send + use<> {
        self.ok(GetPool { pool: pool(name) })
    }
    #[track_caller]
    pub(crate) fn thing(
        &self,
        of: &str,
        id: &str,
    ) -> impl Future<Output = ResourceView> + Send + use<> {
        self.ok(GetResource { pool: pool(of), resource: resource(id) })
    }
    #[track_caller]
    pub(crate) fn no_thing(
        &self,
        of: &str,
        id: &str,
    ) -> impl Future<Output = Refusal> + Send + use<> {
        let request = GetResource { pool: pool(of), resource: resource(id) };
        self.refused(Code::ResourceNotFound, request)
    }
    #[track_caller]
    pub(crate) fn set_queue(
        &self,
        name: &str,
        settings: QueueSettings,
    ) -> impl Future<Output = Put<QueueView>> + Send + use<> {
        self.ok(PutQueue { queue: queue(name), settings })
    }
    #[track_caller]
    pub(crate) fn queue(&self, name: &str) -> impl Future<Output = QueueView> + Send + use<> {
        self.ok(GetQueue { queue: queue(name) })
    }
}
