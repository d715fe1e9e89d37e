//! A caller that was admitted, with its grants; and the gate in front of the engine, which every call of it passes. The
//! trail gets its lines about calls here.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, OnceLock};

use tenure_core::access::{Grants, Scope, TokenName};
use tenure_core::names::{JobRef, Namespace};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{GetJob, Reply, Request, Settle};
use tenure_core::sentences::AccessRefusal;
use tenure_core::trail::has_own_line;
use tenure_engine_api::{AroundEngine, CallError, CallFuture, Engine, EngineExt};

use crate::call_bounds::{CallCount, CountedCall};
use crate::trail::{CallRecord, RecordedRefusal};

/// Where the token of a caller is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TokenKept {
    /// In a list of tokens with all rights.
    Whole,
    /// In a file of hashes, with its own grants.
    Listed,
    /// Nowhere in this process: the server asks for none, or another server has checked it.
    Elsewhere,
}

/// A caller whose token was checked.
pub struct Caller {
    pub(crate) grants: Grants,
    pub(crate) kept: TokenKept,
    /// SHA-256 of the token; zeros if it is kept elsewhere.
    pub(crate) sha256: [u8; 32],
    /// Its calls, also those before its file was read again.
    calls: Arc<CallCount>,
}

impl Caller {
    pub(crate) fn new(grants: Grants, kept: TokenKept, sha256: [u8; 32]) -> Arc<Self> {
        Arc::new(Caller { grants, kept, sha256, calls: Arc::default() })
    }

    pub(crate) fn elsewhere(grants: Grants) -> Arc<Self> {
        Caller::new(grants, TokenKept::Elsewhere, [0; 32])
    }

    /// The caller of a server that asks for no token: it has all rights.
    pub fn anyone() -> Arc<Self> {
        static ANYONE: OnceLock<Arc<Caller>> = OnceLock::new();
        ANYONE.get_or_init(|| Caller::elsewhere(Grants::all_of_anyone())).clone()
    }

    /// Counts one more call of it, for as long as it is under way.
    pub(crate) fn counted(&self) -> Result<CountedCall, AccessRefusal> {
        self.calls.begin(&self.grants)
    }

    /// The rights of its token.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Whether its token is one of a file with grants.
    pub fn is_listed(&self) -> bool {
        self.kept == TokenKept::Listed
    }

    /// The name of its token, which is no secret.
    pub fn name(&self) -> &str {
        self.grants.name()
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Caller({})", self.name())
    }
}

/// The engine as one caller may use it. The API, pushed lines, streams of events and pages call the engine through
/// this alone: a request that the token does not permit never reaches the engine, and a reply leaves without the parts
/// that the caller may not see. Each call is recorded in the trail before its answer leaves; the events of one that has
/// a line of its own there name the caller, too.
pub struct GuardedEngine {
    inner: Arc<dyn Engine>,
    caller: Arc<Caller>,
    record: CallRecord,
    records: RecordedHere,
}

/// The calls that a gate records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RecordedHere {
    /// Each call: nothing behind the gate records it.
    Calls,
    /// The calls that it refuses. Those that it lets pass are recorded where they are run, here or at another server.
    Refusals,
}

impl GuardedEngine {
    /// `record`: the origin of the calls, for the trail.
    pub fn new(inner: Arc<dyn Engine>, caller: Arc<Caller>, record: CallRecord) -> Arc<Self> {
        Arc::new(GuardedEngine { inner, caller, record, records: RecordedHere::Calls })
    }

    /// The same before an engine that records the calls itself.
    pub(crate) fn before_recorded(
        inner: Arc<dyn Engine>,
        caller: Arc<Caller>,
        record: CallRecord,
    ) -> Arc<Self> {
        Arc::new(GuardedEngine { inner, caller, record, records: RecordedHere::Refusals })
    }

    /// The record of a call that passes the gate.
    fn record_of_call(&self) -> CallRecord {
        match self.records {
            RecordedHere::Calls => self.record.clone(),
            RecordedHere::Refusals => CallRecord::default(),
        }
    }

    pub fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }
}

impl fmt::Debug for GuardedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GuardedEngine({:?})", self.caller)
    }
}

impl AroundEngine for GuardedEngine {
    fn inner(&self) -> &dyn Engine {
        self.inner.as_ref()
    }

    fn call_around(
        &self,
        _: Option<&TokenName>,
        namespace: &Namespace,
        mut request: Request,
    ) -> CallFuture {
        let grants = self.caller.grants();
        if let Err(no) = grants.permit(namespace, &request) {
            self.record.refused(RecordedRefusal {
                op: request.spec().name,
                caller: Some(self.caller.name()),
                namespace: Some(namespace.as_str()),
                targets: &|| request.trail_subject().targets().collect(),
                code: no.code,
            });
            return refused(no);
        }
        let is_named = has_own_line(request.spec().scope);
        let by = if is_named { grants.token_name() } else { None };
        let record = self.record_of_call();
        let pending = match record.begin(&self.caller, namespace, &request) {
            Ok(pending) => pending,
            Err(no) => return refused(no),
        };
        let mut refused_lease = grants.without_refused_lease(&mut request);
        let mut counted = None;
        if let Request::Settle(Settle { lease: lease @ Some(_), .. }) = &mut request {
            // Settles are not counted; the lease call in one is a call like any other.
            match self.caller.counted() {
                Ok(call) => counted = Some(call),
                Err(no) => {
                    *lease = None;
                    refused_lease = Some(Refusal::from(no).below("/lease"));
                }
            }
        }
        let job = match &request {
            Request::ListParents(list) if grants.closes_queues() => Some(list.job.clone()),
            _ => None,
        };
        // A caller that may read the trail may keep the hash of its last line elsewhere.
        let shows_trail = matches!(request, Request::GetStats(_))
            && record.is_kept()
            && grants.scopes().has(Scope::Admin);
        let is_plain = grants.sees_all() && pending.is_none() && !shows_trail;
        if is_plain && refused_lease.is_none() && counted.is_none() && job.is_none() {
            return self.inner.call_by(by.as_ref(), namespace, request);
        }
        let (inner, caller) = (self.inner.clone(), self.caller.clone());
        let namespace = namespace.clone();
        Box::pin(async move {
            let (grants, _counted) = (caller.grants(), counted);
            if let Some(job) = job {
                open_queue(inner.as_ref(), &namespace, grants, job).await?;
            }
            let before = match pending.reads_before() {
                Some(read) => inner.call(&namespace, read.clone()).await.ok(),
                None => None,
            };
            let mut answer = inner.call_by(by.as_ref(), &namespace, request).await;
            if let Ok(reply) = &mut answer {
                if let (Some(no), Reply::Settle(settled)) = (refused_lease, &mut *reply) {
                    settled.lease = Some(Err(no));
                }
                grants.conceal(reply);
                if let (true, Reply::GetStats(stats)) = (shows_trail, reply) {
                    stats.trail = record.trail_end();
                }
            }
            pending.end(before.as_ref(), &answer)?;
            answer
        })
    }
}

fn refused(no: Refusal) -> CallFuture {
    Box::pin(async move { Err(no.into()) })
}

/// Refuses a job of a queue that the token does not name. A job never changes its queue, so that the answer stays true.
async fn open_queue(
    engine: &dyn Engine,
    namespace: &Namespace,
    grants: &Grants,
    job: JobRef,
) -> Result<(), CallError> {
    let job = engine.run(namespace, GetJob { job }).await?;
    Ok(grants.may_use_queue(&job.queue)?)
}
