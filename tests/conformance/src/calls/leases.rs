//! Short calls for leases: ask for them, extend them, settle them.

use std::future::Future;
use std::panic::Location;

use tenure_core::job::Need;
use tenure_core::lease::{ExtendItem, Extended, LeaseView, Leased, SettleItem, SettledLease};
use tenure_core::refusal::Code;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

impl Bench {
    /// A call for one job of a queue, by a worker that is new to the engine, without a wait.
    pub(crate) fn ask(&self, name: &str) -> Lease {
        Lease::jobs(vec![queue(name)], 1).by(&self.stranger())
    }
    /// A call for needs alone, by a worker that is new to the engine, without a wait.
    pub(crate) fn ask_needs<const N: usize>(&self, needs: [Need; N]) -> Lease {
        Lease::needs(needs.to_vec()).by(&self.stranger())
    }
    /// One lease, granted at once.
    #[track_caller]
    pub(crate) fn granted(&self, lease: Lease) -> impl Future<Output = LeaseView> + Send + use<> {
        let at = Location::caller();
        let call = self.ok(lease);
        async move {
            let mut leased = call.await;
            assert_eq!(leased.leases.len(), 1, "{at}: one lease is granted: {leased:?}");
            leased.leases.remove(0)
        }
    }
    /// Checks that nothing is granted, and that the answer comes at once.
    #[track_caller]
    pub(crate) fn not_granted(&self, lease: Lease) -> impl Future<Output = Leased> + Send + use<> {
        let at = Location::caller();
        let call = self.ok(lease);
        async move {
            let leased = call.await;
            assert!(leased.leases.is_empty(), "{at}: nothing is granted: {leased:?}");
            leased
        }
    }
    /// One job of a queue, granted at once.
    #[track_caller]
    pub(crate) fn take(&self, name: &str) -> impl Future<Output = LeaseView> + Send + use<> {
        self.granted(self.ask(name))
    }
    /// As many jobs of a queue as there are, at most `max`.
    #[track_caller]
    pub(crate) fn take_all(
        &self,
        name: &str,
        max: usize,
    ) -> impl Future<Output = Vec<LeaseView>> + Send + use<> {
        let call = self.ok(self.ask(name).max(max));
        async move { call.await.leases }
    }
    /// This job, granted at once.
    #[track_caller]
    pub(crate) fn take_job(
        &self,
        name: &str,
        id: &str,
    ) -> impl Future<Output = LeaseView> + Send + use<> {
        let at = Location::caller();
        let id = id.to_owned();
        let call = self.take(name);
        async move {
            let lease = call.await;
            assert_eq!(job_of(&lease), id, "{at}: this job goes next");
            lease
        }
    }
    /// Checks that no job of a queue can be granted now.
    #[track_caller]
    pub(crate) fn none(&self, name: &str) -> impl Future<Output = Leased> + Send + use<> {
        self.not_granted(self.ask(name))
    }
    /// Needs alone, granted at once.
    #[track_caller]
    pub(crate) fn hold<const N: usize>(
        &self,
        needs: [Need; N],
    ) -> impl Future<Output = LeaseView> + Send + use<N> {
        self.granted(self.ask_needs(needs).ttl(hours(1)))
    }
    /// Checks that needs alone cannot be granted now.
    #[track_caller]
    pub(crate) fn denied<const N: usize>(
        &self,
        needs: [Need; N],
    ) -> impl Future<Output = Leased> + Send + use<N> {
        self.not_granted(self.ask_needs(needs))
    }

    /// A settle that must be accepted.
    #[track_caller]
    pub(crate) fn settle(
        &self,
        item: SettleItem,
    ) -> impl Future<Output = SettledLease> + Send + use<> {
        let at = Location::caller();
        let call = self.settle_any(item);
        async move {
            let settled = call.await;
            assert!(settled.ok, "{at}: the settle is accepted: {settled:?}");
            settled
        }
    }
    /// A settle, accepted or not.
    #[track_caller]
    pub(crate) fn settle_any(
        &self,
        item: SettleItem,
    ) -> impl Future<Output = SettledLease> + Send + use<> {
        let at = Location::caller();
        let call = self.ok(Settle::of(vec![item]));
        async move {
            let mut settled = call.await.settled;
            assert_eq!(settled.len(), 1, "{at}: one item, one answer");
            settled.remove(0)
        }
    }
    /// A settle that must be refused, for this reason.
    #[track_caller]
    pub(crate) fn no_settle(
        &self,
        code: Code,
        item: SettleItem,
    ) -> impl Future<Output = ()> + Send + use<> {
        let at = Location::caller();
        let call = self.settle_any(item);
        async move {
            let settled = call.await;
            assert_eq!((settled.ok, settled.code), (false, Some(code)), "{at}: {settled:?}");
        }
    }
    #[track_caller]
    pub(crate) fn extend(
        &self,
        lease: &LeaseView,
    ) -> impl Future<Output = Extended> + Send + use<> {
        let leases = vec![ExtendItem { lease: id_of(lease), progress: None }];
        self.ok(Extend { leases, ttl: None })
    }
    /// Checks that the lease is held: it can be extended.
    #[track_caller]
    pub(crate) fn lives(&self, lease: &LeaseView) -> impl Future<Output = ()> + Send + use<> {
        let at = Location::caller();
        let call = self.extend(lease);
        async move {
            let answer = call.await;
            let alive = answer.extended.len() == 1 && answer.lost.is_empty();
            assert!(alive, "{at}: the lease is held: {answer:?}");
        }
    }
    /// Checks that the lease is no longer held.
    #[track_caller]
    pub(crate) fn is_lost(&self, lease: &LeaseView) -> impl Future<Output = ()> + Send + use<> {
        let at = Location::caller();
        let id = id_of(lease);
        let call = self.extend(lease);
        async move {
            let answer = call.await;
            let lost = answer.extended.is_empty() && answer.lost == [id];
            assert!(lost, "{at}: the lease is lost: {answer:?}");
        }
    }
}
