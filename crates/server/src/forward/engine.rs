//! The engine of a program that shares a store with other servers: the leader of the store answers each call, in this
//! process or in another.
//!
//! Calls of this process follow the rules by which calls of clients are forwarded (`forward`). The engine decides
//! nothing and counts nothing: calls are counted where the store is served.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure::ServerUrl;
use tenure::remote::Remote;
use tenure::repeat::identify;
use tenure_core::names::Namespace;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{Effect, Reply, Request};
use tenure_engine_api::{
    CallError, CallFuture, Engine, Fault, Health, LeaderAddress, SharedServer, StoreWork,
};
use tokio::time::{Instant, sleep_until};

use crate::caller::{Caller, GuardedEngine};
use crate::config::Config;
use crate::forward::{self, Forwarding, InVain, KeptForwarding, NotYet};
use crate::leadership::{Leadership, SILENT_BEFORE, ServingLeader};
use crate::silence::Silence;
use crate::trail::CallRecord;

/// Answers calls wherever the store is served. A call that no leader answers within [`Config::pass_on_max`] is refused
/// as unavailable, or its outcome is unknown if an attempt may have been executed. Clones share their connections.
///
/// Calls to other servers need a Tokio runtime. The engine of the leader reads the gauges, and is asked for them.
#[derive(Clone)]
pub struct ForwardingEngine {
    inner: Arc<ForwardingInner>,
    /// `None`: the calls are those of this process itself.
    behalf: Option<Behalf>,
}

/// The caller on whose behalf this process calls.
#[derive(Clone)]
struct Behalf {
    caller: Arc<Caller>,
    record: CallRecord,
}

/// Calls the engine of this process. On behalf of a caller the call is recorded here, since it is run here.
fn call_here(
    engine: &Arc<dyn Engine>,
    behalf: Option<&Behalf>,
    namespace: &Namespace,
    request: Request,
) -> CallFuture {
    let Some(Behalf { caller, record }) = behalf else { return engine.call(namespace, request) };
    let guarded = GuardedEngine::new(engine.clone(), caller.clone(), record.clone());
    guarded.call(namespace, request)
}

struct ForwardingInner {
    leadership: Leadership,
    most: Duration,
    forwarding: KeptForwarding,
    /// `None`: reads wait as long as other calls.
    silence: Option<Silence>,
    /// The leader that was called last, and the identity by which it was called. Connections to earlier leaders are
    /// closed.
    remote: Mutex<Option<(Remote, Arc<Forwarding>)>>,
}

impl ForwardingEngine {
    pub fn new(leadership: Leadership) -> Self {
        ForwardingEngine::trying_for(leadership, Config::default().pass_on_max)
    }

    /// The same, with another bound for the time without a leader.
    pub fn trying_for(leadership: Leadership, most: Duration) -> Self {
        ForwardingEngine::with(leadership, most, None)
    }

    /// For pages that people look at: reads that nobody answers are refused after about 3 s, and sooner while the store
    /// stays silent.
    pub fn for_pages(leadership: Leadership) -> Self {
        ForwardingEngine::with(leadership, Config::default().pass_on_max, Some(Silence::default()))
    }

    fn with(leadership: Leadership, most: Duration, silence: Option<Silence>) -> Self {
        let (forwarding, remote) = Default::default();
        let inner = ForwardingInner { leadership, most, forwarding, silence, remote };
        ForwardingEngine { inner: Arc::new(inner), behalf: None }
    }

    /// The engine as this caller may use it, for pages. The server that runs a call writes its line into its trail, with
    /// the name and the address of the caller: one change leaves one line, at the leader, whichever server is asked.
    /// `record`: the origin of the calls.
    pub fn on_behalf_of(&self, caller: Arc<Caller>, record: CallRecord) -> Arc<GuardedEngine> {
        let behalf = Behalf { caller: caller.clone(), record: record.clone() };
        let inner = ForwardingEngine { inner: self.inner.clone(), behalf: Some(behalf) };
        GuardedEngine::before_recorded(Arc::new(inner), caller, record)
    }
}

type CallAnswer = Result<Reply, CallError>;

/// A call of this process.
struct OwnCall {
    namespace: Namespace,
    /// With all ids that a retry needs.
    request: Request,
    behalf: Option<Behalf>,
    /// An attempt may have been executed.
    unknown: bool,
    /// Since when the caller has waited longer than the request says.
    waits_since: Instant,
}

impl OwnCall {
    /// The request of the next attempt.
    fn next(&mut self) -> Request {
        let now = Instant::now();
        self.request.waited(now.duration_since(self.waits_since).into());
        self.waits_since = now;
        self.request.clone()
    }

    /// A retry does nothing that the first attempt has done.
    fn is_repeatable(&self) -> bool {
        self.request.effect() != Effect::Adds
    }

    /// Reads an answer of this process's engine. `left`: the engine no longer serves the store.
    fn heard_here(&self, answer: CallAnswer, left: bool) -> Result<CallAnswer, NotYet> {
        match answer {
            Err(CallError::Fault(Fault::Unavailable(why) | Fault::StoreAway(why)))
                if left || self.unknown =>
            {
                Err(NotYet::Because(why))
            }
            Err(CallError::Refused(no)) => match no.code {
                Code::StoreUnavailable | Code::Draining if left => Err(NotYet::Refused(no)),
                _ => Ok(self.refused(no)),
            },
            answered => Ok(answered),
        }
    }

    /// Reads a refusal: if it says that the work is done already, an earlier attempt may have done it.
    fn refused(&self, no: Refusal) -> CallAnswer {
        let done = self.request.done_already(no.code).filter(|_| self.unknown);
        done.ok_or(no.into())
    }

    /// Reads an answer of the leader: it is for the caller, or the call must be tried again.
    fn heard(
        &mut self,
        answer: CallAnswer,
        owner: &LeaderAddress<ServerUrl>,
    ) -> Result<CallAnswer, NotYet> {
        let because = |why: String| Err(NotYet::Because(forward::why_of(&owner.url, why)));
        match answer {
            Err(CallError::Refused(no)) => match no.code {
                Code::NotOwner => because("it does not own it now".to_owned()),
                // The leader hands the store over; the next one answers.
                Code::Draining => Err(NotYet::Refused(no)),
                _ => Ok(self.refused(no)),
            },
            Err(CallError::Fault(fault)) => match fault {
                Fault::Denied(_) => {
                    because("it does not take the secret of this server".to_owned())
                }
                Fault::Unavailable(why) => because(why),
                // The outcome of an earlier attempt is as unknown as before.
                Fault::StoreAway(why) if self.unknown => because(why),
                Fault::Unknown(why) => {
                    self.unknown = true;
                    because(why)
                }
                other => Ok(Err(other.into())),
            },
            answered => Ok(answered),
        }
    }
}

impl ForwardingInner {
    fn forwarding(&self) -> Option<Arc<Forwarding>> {
        self.forwarding.get(&self.leadership)
    }

    /// An engine that calls this leader.
    fn remote(&self, owner: &LeaderAddress<ServerUrl>) -> Result<Remote, String> {
        let forwarding = self.forwarding().ok_or(forward::NO_SECRET)?;
        let mut kept = self.remote.lock().unwrap_or_else(PoisonError::into_inner);
        let lasts = |(remote, by): &&(Remote, Arc<Forwarding>)| {
            remote.server().as_ref() == Some(&owner.url) && Arc::ptr_eq(by, &forwarding)
        };
        if let Some((remote, _)) = kept.as_ref().filter(lasts) {
            return Ok(remote.clone());
        }
        let remote = forwarding.remote(&owner.url)?;
        *kept = Some((remote.clone(), forwarding));
        Ok(remote)
    }

    async fn call(&self, call: &mut OwnCall) -> CallAnswer {
        let is_read = call.request.effect() == Effect::Reads && call.request.wait_mut().is_none();
        let Some(silence) = self.silence.as_ref().filter(|_| is_read) else {
            return self.tried(call, self.most, None).await;
        };
        let began = Instant::now();
        let left = silence.left(began);
        let answer = self.tried(call, left, Some(began + left)).await;
        let is_silent =
            matches!(&answer, Err(CallError::Fault(Fault::Unavailable(_) | Fault::StoreAway(_))));
        silence.ended(began, !is_silent);
        answer
    }

    /// Retries a call for at most `most` without an answer. An attempt ends at `before`, or takes as long as it needs.
    async fn tried(
        &self,
        call: &mut OwnCall,
        most: Duration,
        before: Option<Instant>,
    ) -> CallAnswer {
        let mut vain = InVain::default();
        // A page waits no longer than the silence before it.
        let cut_off_most = before.map_or(most, |_| SILENT_BEFORE);
        loop {
            let serves = self.leadership.now();
            let why = match &serves {
                ServingLeader::Local { engine, .. } => {
                    let request = call.next();
                    let behalf = call.behalf.as_ref();
                    let asked = call_here(engine, behalf, &call.namespace, request);
                    let answer = tokio::select! {
                        biased;
                        answer = asked => answer,
                        why = self.leadership.cut_off(&serves, cut_off_most) => {
                            let unknown = call.unknown || call.request.effect() != Effect::Reads;
                            return Err(NotYet::Because(why).at_last(unknown));
                        }
                    };
                    let left = match &answer {
                        Err(CallError::Fault(Fault::Unavailable(_) | Fault::StoreAway(_))) => {
                            self.leadership.left_by_now(&serves).await
                        }
                        _ => self.leadership.left(&serves),
                    };
                    match call.heard_here(answer, left) {
                        Ok(answered) => return answered,
                        Err(why) => why,
                    }
                }
                ServingLeader::Remote(owner) => {
                    match self.ask(call, owner, &serves, before).await {
                        Ok(answered) => return answered,
                        Err(why) => why,
                    }
                }
                ServingLeader::None(why) | ServingLeader::Paused(why) => {
                    NotYet::Because(why.clone())
                }
            };
            let is_over = before.is_some_and(|before| Instant::now() >= before);
            let ends = is_over || call.unknown && !call.is_repeatable();
            if ends || !vain.may_try_again(&self.leadership, &serves, most).await {
                return Err(why.at_last(call.unknown));
            }
        }
    }

    /// Calls the leader, as long as it leads.
    async fn ask(
        &self,
        call: &mut OwnCall,
        owner: &LeaderAddress<ServerUrl>,
        serves: &ServingLeader,
        before: Option<Instant>,
    ) -> Result<CallAnswer, NotYet> {
        let remote = self.remote(owner).and_then(|remote| match &call.behalf {
            Some(Behalf { caller, record }) => {
                let headers = forward::on_behalf(caller, record).map_err(|why| why.to_string())?;
                Ok(remote.also_showing(headers))
            }
            None => Ok(remote),
        });
        let remote = remote.map_err(|why| NotYet::Because(forward::why_of(&owner.url, why)))?;
        let request = call.next();
        let asked = remote.call(&call.namespace, request);
        let answer = tokio::select! {
            biased;
            answer = asked => answer,
            () = forward::given_up(&self.leadership, serves, call.is_repeatable()) => {
                Err(Fault::Unknown(forward::DEPOSED.to_owned()).into())
            }
            () = reached(before) => {
                Err(Fault::Unavailable("it has not answered in time".to_owned()).into())
            }
        };
        call.heard(answer, owner)
    }
}

/// Ends at this time, or never.
async fn reached(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

impl Engine for ForwardingEngine {
    fn call(&self, namespace: &Namespace, mut request: Request) -> CallFuture {
        if self.inner.leadership.peer_group().is_none()
            && let ServingLeader::Local { engine, .. } = self.inner.leadership.now()
        {
            return call_here(&engine, self.behalf.as_ref(), namespace, request);
        }
        identify(&mut request);
        let mut call = OwnCall {
            namespace: namespace.clone(),
            request,
            behalf: self.behalf.clone(),
            unknown: false,
            waits_since: Instant::now(),
        };
        let inner = self.inner.clone();
        Box::pin(async move { inner.call(&mut call).await })
    }

    /// The same as `/readyz`.
    fn health(&self) -> Health {
        self.inner.leadership.health()
    }

    fn notice(&self) -> Option<String> {
        self.inner.leadership.news()
    }

    fn servers(&self) -> Vec<SharedServer> {
        self.inner.leadership.servers()
    }

    /// Work of this process on the store.
    fn store_work(&self) -> StoreWork {
        match self.inner.leadership.now() {
            ServingLeader::Local { engine, .. } => engine.store_work(),
            _ => StoreWork::default(),
        }
    }

    fn undo(&self, namespace: &Namespace, leases: Vec<String>) {
        match self.inner.leadership.now() {
            ServingLeader::Local { engine, .. } => engine.undo(namespace, leases),
            ServingLeader::Remote(owner) => {
                if let Some(forwarding) = self.inner.forwarding() {
                    forwarding.undoing(&owner, namespace.clone())(leases);
                }
            }
            // The leases end with their ttl.
            ServingLeader::None(_) | ServingLeader::Paused(_) => {}
        }
    }

    /// Drains the engine of this process. Calls that wait at another server go on waiting.
    fn drain(&self) {
        self.inner.leadership.drain();
    }
}

impl fmt::Debug for ForwardingEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Anywhere({:?})", self.inner.leadership)
    }
}
