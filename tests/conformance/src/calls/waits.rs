//! Lease calls that wait, and their ends.

use std::future::Future;
use std::panic::Location;

use tenure_core::lease::{LeaseView, Leased, SettleItem};
use tenure_core::names::WorkerId;
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_engine_api::{CallError, EngineExt};
use tokio::task::JoinHandle;

use super::PROMPT;
use crate::bench::Bench;

impl Bench {
    /// Starts a call for jobs that waits, and returns when the engine has registered it. Its worker must be new to the
    /// engine.
    pub(crate) async fn waiting(&self, lease: Lease) -> Waiting {
        let id = lease.worker.id.clone().expect("a waiting worker has an id");
        let waiting = self.start(lease);
        self.heard_of(&id, || waiting.is_answered()).await;
        waiting
    }
    /// Starts a call for needs alone that waits, and returns when `line` callers stand in the line of the limit.
    pub(crate) async fn waiting_at(&self, name: &str, line: u64, lease: Lease) -> Waiting {
        let waiting = self.start(lease);
        self.eventually("the waiting call stands in line", async || {
            self.limit(name).await.waiting == line
        })
        .await;
        waiting
    }
    /// Reports that the answer with this lease was not delivered.
    pub(crate) fn undo(&self, lease: &LeaseView) {
        self.engine().undo(&self.namespace, lease.lease.iter().cloned().collect());
    }
    /// Starts a call that settles and then waits, and returns when the engine has registered it. Its worker must be new
    /// to the engine.
    pub(crate) async fn waiting_after(
        &self,
        settle: Vec<SettleItem>,
        lease: Lease,
    ) -> Waiting<Settled> {
        let id = lease.worker.id.clone().expect("a waiting worker has an id");
        let waiting = self.start(Settle { settle, lease: Some(Box::new(lease)) });
        self.heard_of(&id, || waiting.is_answered()).await;
        waiting
    }
    async fn heard_of(&self, id: &WorkerId, is_answered: impl Fn() -> bool) {
        self.eventually("the waiting call is heard of", async || {
            let page = Page { max: 1_000, cursor: None };
            let workers = self.ok(ListWorkers { page }).await.items;
            workers.iter().any(|worker| worker.id == *id) || is_answered()
        })
        .await;
    }
    /// Starts a call without waiting.
    pub(crate) fn start<O: Operation>(&self, request: O) -> Waiting<O::Reply> {
        let task = tokio::spawn(self.engine().run(&self.namespace, request));
        Waiting { task: Some(task) }
    }
}

/// A call that waits for a lease. Dropping it drops the call: its caller is gone.
pub(crate) struct Waiting<R = Leased> {
    task: Option<JoinHandle<Result<R, CallError>>>,
}

impl<R: Send + 'static> Waiting<R> {
    pub(crate) fn is_answered(&self) -> bool {
        self.task.as_ref().is_some_and(JoinHandle::is_finished)
    }
    /// Its answer, which must come without time passing.
    #[track_caller]
    pub(crate) fn answer(mut self) -> impl Future<Output = R> + Send {
        let at = Location::caller();
        let task = self.task.take().expect("a waiting call is answered once");
        async move {
            let answer = tokio::time::timeout(PROMPT, task).await;
            let answer = answer.unwrap_or_else(|_| panic!("{at}: the waiting call has no answer"));
            let answer = answer.unwrap_or_else(|why| panic!("{at}: the waiting call ended: {why}"));
            answer.unwrap_or_else(|no| panic!("{at}: the waiting call failed: {no}"))
        }
    }
    /// Checks that it is refused with this code, without time passing.
    #[track_caller]
    pub(crate) fn refusal(mut self, code: Code) -> impl Future<Output = ()> + Send
    where
        R: std::fmt::Debug,
    {
        let at = Location::caller();
        let task = self.task.take().expect("a waiting call is answered once");
        async move {
            let answer = tokio::time::timeout(PROMPT, task).await;
            let answer = answer.unwrap_or_else(|_| panic!("{at}: the waiting call has no answer"));
            match answer.unwrap_or_else(|why| panic!("{at}: the waiting call ended: {why}")) {
                Err(CallError::Refused(no)) => assert_eq!(no.code, code, "{at}: {no}"),
                other => panic!("{at}: the waiting call was not refused: {other:?}"),
            }
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
impl Waiting {
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
}
impl<R> Drop for Waiting<R> {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
