//! Short calls on a bench: each says what it expects, and panics at the sentence's own line.

use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use tenure_core::job::{JobState, JobView, Need, NewJob, PushedJob};
use tenure_core::lease::{
    Explained, ExtendItem, Extended, LeaseView, Leased, Reason, ReasonKind, SettleItem,
    SettledLease,
};
use tenure_core::names::Namespace;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::*;
use tenure_core::settings::{
    LimitSettings, LimitView, NewResource, PoolSettings, PoolView, QueueSettings, QueueView,
    ResourceView,
};
use tenure_core::time::Span;
use tenure_engine::{CallError, EngineExt};
use tokio::task::JoinHandle;

use crate::bench::Bench;
use crate::words::*;

/// Longest real time in which a call that can be answered is answered.
const PROMPT: Duration = Duration::from_secs(20);
/// Between two looks at something that has no event of its own.
const LOOK: Duration = Duration::from_millis(2);

impl Bench {
    /// Any call, in any namespace; a call that is not answered at all fails the sentence.
    #[track_caller]
    pub(crate) fn call_in<O: Operation>(
        &self,
        namespace: &Namespace,
        request: O,
    ) -> impl Future<Output = Result<O::Reply, CallError>> + Send + use<O> {
        let at = Location::caller();
        let engine = self.engine();
        let namespace = namespace.clone();
        async move {
            let answer = tokio::time::timeout(PROMPT, engine.run(&namespace, request)).await;
            answer.unwrap_or_else(|_| panic!("{at}: {} was not answered", O::NAME))
        }
    }

    /// A call that is answered.
    #[track_caller]
    pub(crate) fn ok<O: Operation>(
        &self,
        request: O,
    ) -> impl Future<Output = O::Reply> + Send + use<O> {
        let at = Location::caller();
        let call = self.call_in(&self.namespace, request);
        async move { call.await.unwrap_or_else(|no| panic!("{at}: {} failed: {no}", O::NAME)) }
    }

    /// A call that is refused, with this code.
    #[track_caller]
    pub(crate) fn refused<O: Operation>(
        &self,
        code: Code,
        request: O,
    ) -> impl Future<Output = Refusal> + Send + use<O> {
        let at = Location::caller();
        let call = self.call_in(&self.namespace, request);
        async move {
            match call.await {
                Ok(_) => panic!("{at}: {} was answered, not refused as {code}", O::NAME),
                Err(CallError::Fault(fault)) => panic!("{at}: {}: {fault}", O::NAME),
                Err(CallError::Refused(no)) => {
                    assert_eq!(no.code, code, "{at}: {} was refused otherwise: {no}", O::NAME);
                    no
                }
            }
        }
    }

    #[track_caller]
    pub(crate) fn push_all(
        &self,
        jobs: Vec<NewJob>,
    ) -> impl Future<Output = Vec<PushedJob>> + Send + use<> {
        let at = Location::caller();
        let call = self.ok(Push { jobs, answer: PushAnswer::Whole });
        async move {
            match call.await {
                Pushed::Whole(jobs) => jobs,
                Pushed::Ids(_) => panic!("{at}: whole jobs were asked for, ids were answered"),
            }
        }
    }
    #[track_caller]
    pub(crate) fn push(&self, job: NewJob) -> impl Future<Output = PushedJob> + Send + use<> {
        let call = self.push_all(vec![job]);
        async move { call.await.remove(0) }
    }
    #[track_caller]
    pub(crate) fn no_push(
        &self,
        code: Code,
        job: NewJob,
    ) -> impl Future<Output = Refusal> + Send + use<> {
        self.refused(code, Push { jobs: vec![job], answer: PushAnswer::Whole })
    }

    /// A call for one job of a queue, by a worker that nobody has heard of, at once or not at all.
    pub(crate) fn ask(&self, name: &str) -> Lease {
        Lease::jobs(vec![queue(name)], 1).by(&self.stranger())
    }
    /// A call for needs alone, by a worker that nobody has heard of, at once or not at all.
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
    /// Nothing, said at once.
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
    /// No job of a queue can go now.
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
    /// Needs alone that cannot be granted now.
    #[track_caller]
    pub(crate) fn denied<const N: usize>(
        &self,
        needs: [Need; N],
    ) -> impl Future<Output = Leased> + Send + use<N> {
        self.not_granted(self.ask_needs(needs))
    }

    /// A settle that is accepted.
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
        let call = self.ok(Settle { settle: vec![item] });
        async move {
            let mut settled = call.await.settled;
            assert_eq!(settled.len(), 1, "{at}: one item, one answer");
            settled.remove(0)
        }
    }
    /// A settle that is not accepted, for this reason.
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
    /// The lease is held: it can be extended.
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
    /// The lease is held no more.
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

    #[track_caller]
    pub(crate) fn job(&self, id: &str) -> impl Future<Output = JobView> + Send + use<> {
        let call = self.ok(GetJob { job: job_ref(id) });
        async move { *call.await }
    }
    #[track_caller]
    pub(crate) fn no_job(&self, id: &str) -> impl Future<Output = Refusal> + Send + use<> {
        self.refused(Code::JobNotFound, GetJob { job: job_ref(id) })
    }
    /// The job is in this state.
    #[track_caller]
    pub(crate) fn is(
        &self,
        id: &str,
        state: JobState,
    ) -> impl Future<Output = JobView> + Send + use<> {
        let at = Location::caller();
        let id = id.to_owned();
        let call = self.job(&id);
        async move {
            let job = call.await;
            assert_eq!(job.state, state, "{at}: the state of {id:?}");
            job
        }
    }
    #[track_caller]
    pub(crate) fn cancel(&self, id: &str) -> impl Future<Output = JobView> + Send + use<> {
        let call = self.ok(CancelJob { job: job_ref(id) });
        async move { *call.await }
    }
    #[track_caller]
    pub(crate) fn explain(&self, id: &str) -> impl Future<Output = Explained> + Send + use<> {
        self.ok(ExplainJob { job: job_ref(id) })
    }
    /// The reason of this kind for which the job waits.
    #[track_caller]
    pub(crate) fn waits_for(
        &self,
        id: &str,
        kind: ReasonKind,
    ) -> impl Future<Output = Reason> + Send + use<> {
        let at = Location::caller();
        let call = self.explain(id);
        async move {
            let explained = call.await;
            let reason = explained.reasons.iter().find(|reason| reason.kind == kind).cloned();
            reason.unwrap_or_else(|| panic!("{at}: it waits for {kind:?}: {explained:?}"))
        }
    }

    #[track_caller]
    pub(crate) fn set_limit(
        &self,
        name: &str,
        settings: LimitSettings,
    ) -> impl Future<Output = Put<LimitView>> + Send + use<> {
        self.ok(PutLimit { limit: limit(name), settings })
    }
    #[track_caller]
    pub(crate) fn limit(&self, name: &str) -> impl Future<Output = LimitView> + Send + use<> {
        self.ok(GetLimit { limit: limit(name) })
    }
    /// So many permits of the limit are in use.
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

    /// Lets time pass until the job is no longer running; at most `most`.
    pub(crate) async fn until_it_ends(&self, id: &str, most: Span) -> JobView {
        let end = self.now().plus(most);
        loop {
            let job = self.job(id).await;
            if job.state != JobState::Running {
                return job;
            }
            assert!(self.now() < end, "{id:?} still runs after {most}");
            self.pass(ms(500)).await;
        }
    }

    /// Starts a call for jobs that waits, and returns when the engine has heard of it. Its worker
    /// must be one that nobody has heard of.
    pub(crate) async fn waiting(&self, lease: Lease) -> Waiting {
        let id = lease.worker.id.clone().expect("a waiting worker has an id");
        let waiting = self.start(lease);
        self.eventually("the waiting call is heard of", async || {
            let page = Page { max: 1_000, cursor: None };
            let workers = self.ok(ListWorkers { page }).await.items;
            workers.iter().any(|worker| worker.id == id) || waiting.is_answered()
        })
        .await;
        waiting
    }
    /// Starts a call for needs alone that waits, and returns when `line` stand in the line of the
    /// limit.
    pub(crate) async fn waiting_at(&self, name: &str, line: u64, lease: Lease) -> Waiting {
        let waiting = self.start(lease);
        self.eventually("the waiting call stands in line", async || {
            self.limit(name).await.waiting == line
        })
        .await;
        waiting
    }
    /// Says that nobody got the answer with this lease.
    pub(crate) fn undo(&self, lease: &LeaseView) {
        self.engine().undo(&self.namespace, lease.lease.iter().cloned().collect());
    }
    /// Starts a call, and does not wait for anything.
    pub(crate) fn start(&self, lease: Lease) -> Waiting {
        let task = tokio::spawn(self.engine().run(&self.namespace, lease));
        Waiting { task: Some(task) }
    }
    /// Looks until it is true; fails the sentence if that takes too long in real time.
    pub(crate) async fn eventually(&self, what: &str, mut is_true: impl AsyncFnMut() -> bool) {
        let look = async {
            while !is_true().await {
                tokio::time::sleep(LOOK).await;
            }
        };
        assert!(tokio::time::timeout(PROMPT, look).await.is_ok(), "this never was so: {what}");
    }
}

/// A lease call that waits. Dropping it drops the call: its caller is gone.
pub(crate) struct Waiting {
    task: Option<JoinHandle<Result<Leased, CallError>>>,
}

impl Waiting {
    pub(crate) fn is_answered(&self) -> bool {
        self.task.as_ref().is_some_and(JoinHandle::is_finished)
    }
    /// Its answer, which must come without time passing.
    #[track_caller]
    pub(crate) fn answer(mut self) -> impl Future<Output = Leased> + Send {
        let at = Location::caller();
        let task = self.task.take().expect("a waiting call is answered once");
        async move {
            let answer = tokio::time::timeout(PROMPT, task).await;
            let answer = answer.unwrap_or_else(|_| panic!("{at}: the waiting call has no answer"));
            let answer = answer.unwrap_or_else(|why| panic!("{at}: the waiting call ended: {why}"));
            answer.unwrap_or_else(|no| panic!("{at}: the waiting call failed: {no}"))
        }
    }
    /// The one lease that it is answered with, without time passing.
    #[track_caller]
    pub(crate) fn lease(self) -> impl Future<Output = LeaseView> + Send {
        let at = Location::caller();
        let answer = self.answer();
        async move {
            let mut leased = answer.await;
            assert_eq!(leased.leases.len(), 1, "{at}: one lease is granted: {leased:?}");
            leased.leases.remove(0)
        }
    }
    /// The caller goes away.
    pub(crate) async fn hang_up(mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            // Aborted or just answered: either way the call is over.
            let _ = task.await;
        }
    }
}
impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
