//! Forwards calls to the leader of the store by HTTP, unchanged.
//!
//! The module may never decide about the leader of a store, and knows no rule of jobs. It knows the ids in a call, the
//! calls that may be sent twice, and the leases that an answer grants. Only the leader refuses a body.
//!
//! A call has one hop. It is marked and shows the secret of the servers, and a marked call is never forwarded again.
//! While it is away, the leadership is watched: the next leader gets the same call, with the same ids.

mod answer;
mod engine;
mod heads;
mod ids;
mod sending;
mod sent_body;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::body::Body;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::request::{Builder, Parts};
use hyper::{Request, Response};
use tenure::ServerUrl;
use tenure::remote::Remote;
use tenure::remote::wire::Wire;
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::requests::Spec;
use tenure_core::sentences::ServerRefusal;
use tenure_engine_api::{CallError, Fault, LeaderAddress};
use tenure_tls::for_http_trusting;
use tokio::time::{Instant, sleep, timeout};

pub(crate) use self::heads::{
    Added, ServerMark, caller, hex, is_from_server, on_behalf, peer, waited,
};
use self::ids::Prepared;
pub(crate) use self::sending::ForwardingServer;
pub(crate) use self::sent_body::RestRefused;
use self::sent_body::SentBody;
use crate::body::Reading;
use crate::leadership::{Leadership, PeerGroup, ServingLeader};
use crate::out::Out;
pub use engine::ForwardingEngine;

/// Between two attempts at a leader that cannot be reached.
const APART: Duration = Duration::from_millis(100);
/// How long a former leader may still finish an answer.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How long an undo waits for its answer.
const UNDO_MAX: Duration = Duration::from_secs(5);

/// For how long calls with the former secret of the servers are accepted.
const FORMER_SECRET_FOR: Duration = Duration::from_secs(60);
/// How long a server reports that the leader refused it, unless the leader accepts a call.
const REFUSED_FOR: Duration = Duration::from_secs(10);

/// Why no other server can be asked.
pub(crate) const NO_SECRET: &str = "this server knows no secret of the others";
/// Why nobody waits for the leader any more.
pub(crate) const DEPOSED: &str = "it owns the store no longer";

/// Where servers send leases to undo whose answer did not reach its caller.
pub(crate) const UNDO_PATH: &str = "/v1/server/undo";

/// The identity and the connections with which a server forwards calls.
pub(crate) struct Forwarding {
    peer_group: Arc<PeerGroup>,
    pub mark: ServerMark,
    /// The connections to the leader. Those to an earlier leader are closed.
    wire: Mutex<Option<Arc<Wire<SentBody>>>>,
}

impl fmt::Debug for Forwarding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PassesOn")
    }
}

impl Forwarding {
    fn of(peer_group: Arc<PeerGroup>) -> Option<Self> {
        match ServerMark::of(&peer_group) {
            Ok(mark) => Some(Forwarding { peer_group, mark, wire: Mutex::default() }),
            Err(_) => {
                tracing::error!(
                    "the secret of the store's servers has characters that no header can carry"
                );
                None
            }
        }
    }

    /// The connections to a server at this address.
    fn wire(&self, to: &ServerUrl) -> Result<Arc<Wire<SentBody>>, String> {
        let mut kept = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wire) = kept.as_ref().filter(|wire| wire.url() == to) {
            return Ok(wire.clone());
        }
        let wire = Arc::new(wire(to, &self.peer_group)?);
        *kept = Some(wire.clone());
        Ok(wire)
    }

    /// An engine that calls the server at this address, for calls of this process.
    pub(crate) fn remote(&self, to: &ServerUrl) -> Result<Remote, String> {
        let mut shown = HeaderMap::new();
        self.mark.put(&mut shown, to).map_err(|why| why.to_string())?;
        Remote::showing(to.into(), shown, &self.peer_group.trust).map_err(|why| why.to_string())
    }

    /// Undoes leases at the leader.
    pub(crate) fn undoing(
        &self,
        owner: &LeaderAddress<ServerUrl>,
        namespace: Namespace,
    ) -> impl FnOnce(Vec<String>) + Send + use<> {
        let request = self.undo_request(owner, &namespace);
        move |leases| {
            let Some((request, wire)) = request else { return };
            let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
            let body = serde_json::to_vec(&leases).unwrap_or_default();
            let Ok(request) = request.body(SentBody::whole(body.into())) else { return };
            // If the call is lost, the leases end with their ttl.
            runtime.spawn(async move { drop(wire.begin(request, UNDO_MAX).await) });
        }
    }

    fn undo_request(
        &self,
        owner: &LeaderAddress<ServerUrl>,
        namespace: &Namespace,
    ) -> Option<(Builder, Arc<Wire<SentBody>>)> {
        let mut request = Request::post(heads::uri(&owner.url, UNDO_PATH).ok()?);
        self.mark.put(request.headers_mut()?, &owner.url).ok()?;
        let namespace = HeaderValue::from_str(namespace.as_str()).ok()?;
        let request =
            request.header("tenure-namespace", namespace).header(CONTENT_TYPE, "application/json");
        Some((request, self.wire(&owner.url).ok()?))
    }
}

/// The current [`Forwarding`], made again when the servers of the store get another secret.
///
/// Redis keeps the secret. When Redis is emptied or the secret is replaced, the servers learn the new one within about
/// a second, one after another. Until then a call with the former secret is accepted too.
#[derive(Debug, Default)]
pub(crate) struct KeptForwarding(Mutex<KeptState>);

#[derive(Debug, Default)]
struct KeptState {
    now: Option<Arc<Forwarding>>,
    /// The former one, and until when its secret is accepted.
    former: Option<(Arc<Forwarding>, Instant)>,
    /// Until when this server reports that the leader refused it. Initially none; each refusal sets it, an answer
    /// clears it.
    refused_until: Option<Instant>,
}

impl KeptForwarding {
    /// The current one; `None`: no other server has the store, or the store is not known yet.
    pub fn get(&self, leadership: &Leadership) -> Option<Arc<Forwarding>> {
        let peer_group = leadership.peer_group()?;
        let mut kept = self.lock();
        if let Some(now) = kept.now.as_ref().filter(|now| Arc::ptr_eq(&now.peer_group, &peer_group))
        {
            return Some(now.clone());
        }
        let now = Arc::new(Forwarding::of(peer_group)?);
        if let Some(former) = kept.now.replace(now.clone()) {
            kept.former = Some((former, Instant::now() + FORMER_SECRET_FOR));
        }
        kept.refused_until = None;
        Some(now)
    }

    /// The former one, as long as its secret is accepted.
    pub fn former(&self) -> Option<Arc<Forwarding>> {
        let mut kept = self.lock();
        kept.former = kept.former.take().filter(|(_, until)| Instant::now() < *until);
        kept.former.as_ref().map(|(former, _)| former.clone())
    }

    /// Records that the leader accepted or refused the secret of this server.
    pub fn was_taken(&self, taken: bool) {
        self.lock().refused_until = (!taken).then(|| Instant::now() + REFUSED_FOR);
    }

    /// Whether the leader refused this server a moment ago, so that calls to this server fail.
    pub fn is_refused(&self) -> bool {
        self.lock().refused_until.is_some_and(|until| Instant::now() < until)
    }

    fn lock(&self) -> MutexGuard<'_, KeptState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connections to a server of the same store.
pub(crate) fn wire<B>(to: &ServerUrl, peer_group: &PeerGroup) -> Result<Wire<B>, String>
where
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
{
    let tls = if to.tls {
        Some(for_http_trusting(&peer_group.trust, &to.host).map_err(|why| why.to_string())?)
    } else {
        None
    };
    Ok(Wire::new(to.clone(), tls))
}

/// A call that is forwarded.
pub(crate) struct ForwardedCall<'c> {
    pub head: &'c Parts,
    pub spec: &'static Spec,
    pub added: Added<'c>,
    pub body: CallBody,
    /// An attempt may have been executed.
    pub unknown: bool,
    /// Why the rest of a streamed body was not accepted.
    pub rest: RestRefused,
    /// The call waits for nothing any more, because this server drains. Initially `false`.
    pub hurries: bool,
    /// When the first attempt was due.
    pub began: Instant,
    /// Whether there was a first attempt. Initially `false`.
    pub was_sent: bool,
}

impl ForwardedCall<'_> {
    /// The body, if it comes in lines and nobody has read any of them: the next server may read them.
    pub(crate) fn unread(&mut self) -> Option<Reading> {
        let CallBody::Streamed(body) = &mut self.body else { return None };
        match body.take()?.unread() {
            Ok(reading) => {
                self.body = CallBody::Unread;
                Some(reading)
            }
            Err(begun) => {
                *body = Some(Box::new(begun));
                None
            }
        }
    }
}

/// The body of a call.
pub(crate) enum CallBody {
    /// In memory, and can be sent again.
    Whole(Prepared),
    /// Comes in lines, and nobody has begun to read it: this server can read it or forward it.
    Unread,
    /// Forwarded while it comes from the caller, and can be sent once. `None`: it has left, in whole or in part.
    Streamed(Option<Box<SentBody>>),
}

impl CallBody {
    /// This body, with its missing ids.
    pub(crate) fn whole(spec: &Spec, bytes: bytes::Bytes) -> Self {
        CallBody::Whole(ids::prepared(spec, bytes))
    }

    /// Whether the body comes in lines.
    pub(crate) fn is_streamed(&self) -> bool {
        matches!(self, CallBody::Streamed(_))
    }

    fn is_repeatable(&self) -> bool {
        matches!(self, CallBody::Whole(Prepared { repeatable: true, .. }))
    }
}

/// The outcome of one attempt.
pub(crate) enum ForwardOutcome {
    /// An answer for the caller.
    Answered(Response<Out>),
    /// The call was not executed: why.
    NotDone(String),
    /// The call was not executed, by the leader's own refusal. Another leader may execute it.
    NotNow(Refusal),
    /// The call may have been executed: why that is unknown.
    MayBeDone(String),
    /// This server refuses the call: it ends, it has no memory for the answer, or the body was bad.
    Refused(Refusal),
}

/// Why a call has no answer yet.
pub(crate) enum NotYet {
    /// The leader's own refusal.
    Refused(Refusal),
    /// A sentence, for the refusal of a call that no leader answers.
    Because(String),
}

impl NotYet {
    /// The error with which the call ends if it is not tried again. `unknown`: an attempt may have been executed.
    pub(crate) fn at_last(self, unknown: bool) -> CallError {
        match self {
            NotYet::Refused(no) if !unknown => no.into(),
            NotYet::Refused(no) => Fault::Unknown(no.detail).into(),
            NotYet::Because(why) if unknown => Fault::Unknown(why).into(),
            NotYet::Because(why) => Fault::Unavailable(why).into(),
        }
    }
}

/// How long a call has been tried in vain.
#[derive(Default)]
pub(crate) struct InVain {
    /// When the first attempt went unanswered. Initially `None`.
    since: Option<Instant>,
}

impl InVain {
    /// Waits until an unanswered call can be tried again; `false`: its time is over.
    pub(crate) async fn may_try_again(
        &mut self,
        leadership: &Leadership,
        serves: &ServingLeader,
        most: Duration,
    ) -> bool {
        let now = Instant::now();
        let left = most.saturating_sub(now - *self.since.get_or_insert(now));
        if left.is_zero() || matches!(serves, ServingLeader::Paused(_)) {
            return false;
        }
        let pause = match serves {
            ServingLeader::None(_) => left,
            _ => left.min(APART),
        };
        // If the leader changes at once, there is nothing to wait for.
        let _ = timeout(pause, leadership.moved(serves)).await;
        true
    }
}

/// Ends when an answer is no longer worth a wait, since another server leads the store.
pub(crate) async fn given_up(leadership: &Leadership, serves: &ServingLeader, repeatable: bool) {
    leadership.moved(serves).await;
    if !repeatable {
        sleep(LAST_WORDS).await;
    }
}

/// The error of a call to the leader, as a sentence that names its address once.
pub(crate) fn why_of(to: &ServerUrl, why: String) -> String {
    let place = to.authority();
    let why = why.strip_prefix(&format!("{place}: ")).unwrap_or(&why);
    format!("the server that owns the store, {to}: {why}")
}

/// The refusal of a forwarded call, at a server that does not lead the store.
pub(crate) fn not_owner() -> Refusal {
    ServerRefusal::NotOwner.into()
}
