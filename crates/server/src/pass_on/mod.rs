//! Passing calls on to the server that owns the store, by HTTP, as they came.
//!
//! It may never decide who owns a store, and knows no rule of jobs: of a call it knows where ids stand, whether it may be sent
//! twice, and where an answer grants leases. What is refused about a body, the owner refuses.
//!
//! A call has one hop. It is marked and shows the secret of the servers, and a marked call is never passed on again. While it is
//! away, changes of ownership are watched: the same call, with the same ids, is then sent to the next owner.

mod answer;
mod heads;
mod ids;
mod sent_body;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::request::{Builder, Parts};
use hyper::http::response::Parts as AnswerParts;
use hyper::{Method, Request, Response, StatusCode};
use tenure::ServerUrl;
use tenure::remote::Remote;
use tenure::remote::wire::{NotBegun, Wire};
use tenure_core::bounds::WAIT_US_MAX;
use tenure_core::lease::Leased;
use tenure_core::names::Namespace;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{Effect, Reply, Spec};
use tenure_core::sentences::{ServerRefusal, StoreRefusal};
use tenure_seam::{CallError, Fault};
use tenure_tls::for_http_trusting;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use self::answer::{Cut, Cutting, Link, PassedAnswer};
use self::heads::SentWhen;
pub(crate) use self::heads::{ServerMark, hex, is_from_server, waited};
use self::ids::Prepared;
pub(crate) use self::sent_body::RestRefused;
use self::sent_body::SentBody;
use crate::answer::reply as answer_of;
use crate::body::Reading;
use crate::budget::{HeldBytes, overloaded};
use crate::out::Out;
use crate::problem;
use crate::service::Service;
use crate::traffic::{Traffic, Turn};
use crate::undelivered::Undelivered;
use crate::whereabouts::{Fellowship, OwnerAddress, Serves, Whereabouts};

/// The head of an answer comes within this: as long as the longest wait, and a call that is much work beside it.
const ANSWER_MAX: Duration = Duration::from_micros(WAIT_US_MAX + 60_000_000);
/// Between two sendings to an owner that cannot be reached.
const APART: Duration = Duration::from_millis(100);
/// What an owner may still say after another server owns the store.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// An answer that undoes grants is not waited for longer.
const UNDO_MAX: Duration = Duration::from_secs(5);

/// Answers up to this are not counted in the budget, as those that are made here.
const SMALL_BYTES: u64 = 4 * 1024;
/// So many bytes of an answer may lie here while its caller does not read: what the connection to the owner reads ahead.
const UNREAD_BYTES: u64 = 512 * 1024;

/// Why no other server can be asked.
pub(crate) const NO_SECRET: &str = "this server knows no secret of the others";
/// Why an owner is not waited for any more.
pub(crate) const DEPOSED: &str = "it owns the store no longer";

/// Where servers have leases undone whose answer did not reach its caller.
pub(crate) const UNDO_PATH: &str = "/v1/server/undo";

/// What a server needs to pass calls on.
pub(crate) struct PassesOn {
    fellowship: Arc<Fellowship>,
    pub mark: ServerMark,
    /// The connections to the owner. Those to an owner before it are closed.
    wire: Mutex<Option<Arc<Wire<SentBody>>>>,
}

impl fmt::Debug for PassesOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PassesOn")
    }
}

impl PassesOn {
    /// `None`: no other server has the store.
    fn of(whereabouts: &Whereabouts) -> Option<Self> {
        let fellowship = whereabouts.fellowship()?.clone();
        match ServerMark::of(&fellowship) {
            Ok(mark) => Some(PassesOn { fellowship, mark, wire: Mutex::default() }),
            Err(_) => {
                tracing::error!(
                    "the secret of the store's servers has characters that no header can carry"
                );
                None
            }
        }
    }

    /// The one that is kept here, made when the other servers of the store are known.
    pub(crate) fn kept<'k>(
        kept: &'k OnceLock<Self>,
        whereabouts: &Whereabouts,
    ) -> Option<&'k Self> {
        if let (None, Some(passes_on)) = (kept.get(), PassesOn::of(whereabouts)) {
            // Another call may have been faster, with the same.
            let _ = kept.set(passes_on);
        }
        kept.get()
    }

    /// The connections to a server at this address.
    fn wire(&self, to: &ServerUrl) -> Result<Arc<Wire<SentBody>>, String> {
        let mut kept = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wire) = kept.as_ref().filter(|wire| wire.url() == to) {
            return Ok(wire.clone());
        }
        let wire = Arc::new(wire(to, &self.fellowship)?);
        *kept = Some(wire.clone());
        Ok(wire)
    }

    /// An engine that is a server at this address, for calls that are made here.
    pub(crate) fn remote(&self, to: &ServerUrl) -> Result<Remote, String> {
        let mut shown = HeaderMap::new();
        self.mark.put(&mut shown, to).map_err(|why| why.to_string())?;
        Remote::showing(to.into(), shown, &self.fellowship.trust).map_err(|why| why.to_string())
    }

    /// Has the owner undo leases.
    pub(crate) fn undoing(
        &self,
        owner: &OwnerAddress,
        namespace: Namespace,
    ) -> impl FnOnce(Vec<String>) + Send + use<> {
        let request = self.undo_request(owner, &namespace);
        move |leases| {
            let Some((request, wire)) = request else { return };
            let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
            let body = serde_json::to_vec(&leases).unwrap_or_default();
            let Ok(request) = request.body(SentBody::whole(body.into())) else { return };
            // If it is lost, they end with their ttl.
            runtime.spawn(async move { drop(wire.begin(request, UNDO_MAX).await) });
        }
    }

    fn undo_request(
        &self,
        owner: &OwnerAddress,
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

/// Connections to a server of the same store.
pub(crate) fn wire<B>(to: &ServerUrl, fellowship: &Fellowship) -> Result<Wire<B>, String>
where
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
{
    let tls = match to.tls {
        true => {
            Some(for_http_trusting(&fellowship.trust, &to.host).map_err(|why| why.to_string())?)
        }
        false => None,
    };
    Ok(Wire::new(to.clone(), tls))
}

/// A call that is passed on.
pub(crate) struct PassedCall<'c> {
    pub head: &'c Parts,
    pub spec: &'static Spec,
    pub namespace: &'c Namespace,
    pub body: CallBody,
    /// Some sending of it may have been done.
    pub unknown: bool,
    /// Why the rest of a streamed body was not taken.
    pub rest: RestRefused,
    /// It waits for nothing any more, because this server drains. Starts as `false`.
    pub hurries: bool,
    /// When it was to be sent first.
    pub began: Instant,
    /// Starts as `false`.
    pub was_sent: bool,
}

impl PassedCall<'_> {
    /// Its body, if that comes in lines of which none was read: whoever serves next may read them.
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
    /// It is here, and can be sent again.
    Whole(Prepared),
    /// It comes in lines, and nobody has begun to read it: it can be read here or on its way.
    Unread,
    /// It comes from the caller while it leaves, and can be sent once. `None`: it has left, or a part of it.
    Streamed(Option<Box<SentBody>>),
}

impl CallBody {
    /// This body, with the ids that it lacks.
    pub(crate) fn whole(spec: &Spec, bytes: bytes::Bytes) -> Self {
        CallBody::Whole(ids::prepared(spec, bytes))
    }

    /// Whether it comes in lines.
    pub(crate) fn is_streamed(&self) -> bool {
        matches!(self, CallBody::Streamed(_))
    }

    fn is_repeatable(&self) -> bool {
        matches!(self, CallBody::Whole(Prepared { repeatable: true, .. }))
    }
}

/// What came of one sending.
pub(crate) enum PassOutcome {
    /// An answer, for the caller.
    Answered(Response<Out>),
    /// Nothing happened.
    NotDone(String),
    /// Nothing happened, and the refusal is the owner's own. Another owner may come and do it.
    NotNow(Refusal),
    /// It may have happened.
    MayBeDone(String),
    /// It is refused here: this server ends.
    Refused(Refusal),
}

/// Why a call has no answer yet.
pub(crate) enum NotYet {
    /// The owner said so.
    Refused(Refusal),
    /// A sentence, for the refusal of a call that no owner answers.
    Because(String),
}

impl NotYet {
    /// What the call ends with if it is not tried again. `unknown`: some sending of it may have been done.
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
    /// Starts as `None`; since the first sending that was not answered.
    since: Option<Instant>,
}

impl InVain {
    /// Waits until a call that was not answered can be sent again; `false`: it was tried for as long as it may be.
    pub(crate) async fn may_try_again(
        &mut self,
        whereabouts: &Whereabouts,
        serves: &Serves,
        most: Duration,
    ) -> bool {
        let now = Instant::now();
        let left = most.saturating_sub(now - *self.since.get_or_insert(now));
        if left.is_zero() || matches!(serves, Serves::Paused(_)) {
            return false;
        }
        let pause = match serves {
            Serves::Nobody(_) => left,
            _ => left.min(APART),
        };
        // Here also if it is told at once: then there is nothing to wait for.
        let _ = timeout(pause, whereabouts.moved(serves)).await;
        true
    }
}

impl Service {
    /// Reads a body from its caller while it is sent.
    pub(crate) fn streamed(&self, spec: &Spec, reading: Reading, rest: &RestRefused) -> CallBody {
        let are_jobs = spec.name == "push";
        let (budget, config) = (self.budget.clone(), self.deps.config);
        let body = SentBody::streamed(reading, are_jobs, budget, config, rest.clone());
        CallBody::Streamed(Some(Box::new(body)))
    }

    /// Waits until a call that was not answered can be sent again, with the refusal if it waited for too long.
    pub(crate) async fn again(
        &self,
        call: &PassedCall<'_>,
        serves: &Serves,
        vain: &mut InVain,
        why: NotYet,
    ) -> Result<(), Refusal> {
        let (most, whereabouts) = (self.deps.config.pass_on_max, &self.deps.whereabouts);
        let sent = matches!(call.body, CallBody::Streamed(None));
        let ends = sent || call.unknown && !call.body.is_repeatable();
        match !ends && vain.may_try_again(whereabouts, serves, most).await {
            true => Ok(()),
            false => Err(problem::of_error(why.at_last(call.unknown))),
        }
    }

    /// Sends a call to the owner and begins to answer.
    pub(crate) async fn send(
        &self,
        call: &mut PassedCall<'_>,
        owner: &OwnerAddress,
        turn: &Turn,
        mut held: HeldBytes,
    ) -> PassOutcome {
        let Some(passes_on) = self.passes_on() else {
            return PassOutcome::NotDone(NO_SECRET.to_owned());
        };
        let at = |why: String| why_of(&owner.url, why);
        let wire = match passes_on.wire(&owner.url) {
            Ok(wire) => wire,
            Err(why) => return PassOutcome::NotDone(at(why)),
        };
        let body = match &mut call.body {
            CallBody::Whole(prepared) => SentBody::whole(prepared.body.clone()),
            CallBody::Streamed(body) => match body.take() {
                Some(body) => *body,
                None => return PassOutcome::MayBeDone(at("the body was sent already".to_owned())),
            },
            CallBody::Unread => {
                return PassOutcome::NotDone(at("the body was not read".to_owned()));
            }
        };
        let waited = if call.was_sent { call.began.elapsed() } else { Duration::ZERO };
        let when = SentWhen { waited, hurries: call.hurries };
        call.was_sent = true;
        let request = match heads::request(call.head, when, &owner.url, &passes_on.mark, body) {
            Ok(request) => request,
            Err(why) => return PassOutcome::NotDone(at(why.to_string())),
        };
        let serves = Serves::There(owner.clone());
        let begun = tokio::select! {
            biased;
            begun = wire.begin(request, ANSWER_MAX) => begun,
            () = given_up(&self.deps.whereabouts, &serves, call.body.is_repeatable()) => {
                return PassOutcome::MayBeDone(at(DEPOSED.to_owned()));
            }
            () = self.ends(), if !call.hurries => {
                // What is there is asked for once more, without a wait.
                if call.head.method == Method::GET {
                    call.hurries = true;
                    return Box::pin(self.send(call, owner, turn, held)).await;
                }
                return ended(call.spec);
            }
        };
        let begun = match begun {
            Ok(begun) => begun,
            Err(NotBegun::NotSent { why, request, .. }) => {
                if let (CallBody::Streamed(body), Some(request)) = (&mut call.body, request) {
                    *body = Some(Box::new(request.into_body()));
                }
                return PassOutcome::NotDone(why_of(&owner.url, why));
            }
            Err(NotBegun::Lost { why, .. }) => {
                // A whole set of which a part is missing changed nothing.
                let refused = call.rest.take().filter(|_| call.spec.name != "push");
                return match refused {
                    Some((_, no)) => PassOutcome::Refused(no),
                    None => PassOutcome::MayBeDone(at(why)),
                };
            }
        };
        let (head, body, used) = begun.into_parts();
        let link = Link { wire, used };
        let is_grant =
            head.status == StatusCode::OK && matches!(call.spec.name, "lease" | "settle");
        if is_grant && call.head.method != Method::HEAD {
            return self.granted(call, owner, head, body, link, turn, held).await;
        }
        let may_be_no = match head.status.as_u16() {
            401 | 503 => true,
            404 => call.unknown && !call.spec.gone.is_empty(),
            _ => false,
        };
        if may_be_no && call.head.method != Method::HEAD {
            return self.refused(call, owner, head, body, link, held).await;
        }
        let is_stream = head.headers.get(CONTENT_TYPE).is_some_and(|of| of == "text/event-stream");
        let cutting = self.cutting(serves, is_stream);
        let unread = body.size_hint().exact().unwrap_or(0);
        if unread > SMALL_BYTES && held.grow(unread.min(UNREAD_BYTES) as usize).is_err() {
            if call.spec.effect == Some(Effect::Reads) {
                return PassOutcome::Refused(overloaded());
            }
            held.force(unread.min(UNREAD_BYTES) as usize);
        }
        let rest = call.rest.clone();
        let out = Out::passed(PassedAnswer::new(body, link, cutting, rest, held));
        PassOutcome::Answered(passed(head, out, owner))
    }

    /// Ends when this server drains and has waited long enough for an answer that is not here.
    async fn ends(&self) {
        self.traffic.drained().await;
        sleep(self.deps.config.quiet).await;
    }

    /// When the rest of an answer is no longer waited for.
    fn cutting(&self, serves: Serves, is_stream: bool) -> Cutting {
        let (whereabouts, traffic) = (self.deps.whereabouts.clone(), self.traffic.clone());
        Box::pin(cut(whereabouts, traffic, serves, is_stream))
    }

    /// An answer that may be no answer for the caller: the owner owns no longer, or does not know this server.
    async fn refused(
        &self,
        call: &PassedCall<'_>,
        owner: &OwnerAddress,
        head: AnswerParts,
        body: Incoming,
        link: Link,
        mut held: HeldBytes,
    ) -> PassOutcome {
        let at = |why: &str| why_of(&owner.url, why.to_owned());
        let bytes = match answer::whole(body, link).await {
            Ok(bytes) => bytes,
            Err(why) => return PassOutcome::MayBeDone(at(&why.to_string())),
        };
        match answer::code(&bytes) {
            Some(Code::NotOwner) => return PassOutcome::NotDone(at("it does not own it now")),
            // It hands the store over; the next owner answers.
            Some(Code::Draining) => return PassOutcome::NotNow(StoreRefusal::Draining.into()),
            Some(Code::OutcomeUnknown) if call.body.is_repeatable() => {
                return PassOutcome::MayBeDone(at("it could not say whether it was done"));
            }
            Some(Code::Unauthorized) => {
                return PassOutcome::NotDone(at("it does not take the secret of this server"));
            }
            // An earlier sending did it.
            Some(code) if call.unknown && call.spec.gone.contains(&code) => {
                let mut response = Response::new(Out::whole(Vec::new()));
                *response.status_mut() = StatusCode::NO_CONTENT;
                return PassOutcome::Answered(response);
            }
            _ => {}
        }
        held.force(bytes.len());
        let out = Out::whole(bytes.into()).holding(held);
        PassOutcome::Answered(passed(head, out, owner))
    }

    /// An answer that may grant leases: they are undone if it does not leave.
    #[allow(clippy::too_many_arguments, reason = "the parts of one answer")]
    async fn granted(
        &self,
        call: &PassedCall<'_>,
        owner: &OwnerAddress,
        head: AnswerParts,
        body: Incoming,
        link: Link,
        turn: &Turn,
        mut held: HeldBytes,
    ) -> PassOutcome {
        let lost = || {
            let why = "its answer broke off".to_owned();
            PassOutcome::MayBeDone(why_of(&owner.url, why))
        };
        let (told, heard) = oneshot::channel();
        let undoing =
            self.passes_on().map(|passes_on| passes_on.undoing(owner, call.namespace.clone()));
        // A task of its own: the owner takes the grant for delivered, so that it must be read even if the caller has gone.
        tokio::spawn(async move {
            let Ok(bytes) = answer::whole(body, link).await else { return };
            let leases = answer::leases(&bytes);
            let grant = undoing
                .filter(|_| !leases.is_empty())
                .map(|undoing| InHand(Some(Undelivered::by(undoing, leases))));
            // If nobody listens, what was granted is undone as it is dropped.
            let _ = told.send((bytes, grant));
        });
        let Ok((bytes, grant)) = heard.await else { return lost() };
        if held.set(bytes.len()).is_err() {
            if call.spec.name == "lease" {
                // What was granted is undone as it is dropped.
                return PassOutcome::Refused(overloaded());
            }
            // The settles are done, so that their answer may go above the budget.
            held.force(bytes.len());
        }
        if let Some(grant) = grant.and_then(InHand::taken) {
            turn.granted(grant);
        }
        let out = Out::whole(bytes.into()).holding(held);
        PassOutcome::Answered(passed(head, out, owner))
    }
}

/// Ends when an answer is no longer waited for, since another server owns the store.
pub(crate) async fn given_up(whereabouts: &Whereabouts, serves: &Serves, repeatable: bool) {
    whereabouts.moved(serves).await;
    if !repeatable {
        sleep(LAST_WORDS).await;
    }
}

/// A grant between the owner and the connection of its caller: undone if it is dropped.
struct InHand(Option<Undelivered>);

impl InHand {
    fn taken(mut self) -> Option<Undelivered> {
        self.0.take()
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        if let Some(grant) = self.0.take() {
            grant.undo();
        }
    }
}

async fn cut(
    whereabouts: Whereabouts,
    traffic: Arc<Traffic>,
    serves: Serves,
    is_stream: bool,
) -> Cut {
    if is_stream {
        tokio::select! {
            () = whereabouts.moved(&serves) => {}
            () = traffic.drained() => {}
        }
        return Cut::Ends;
    }
    whereabouts.moved(&serves).await;
    sleep(LAST_WORDS).await;
    Cut::Breaks
}

/// What is wrong with a call to the owner, as a sentence that names its address once.
pub(crate) fn why_of(to: &ServerUrl, why: String) -> String {
    let place = to.authority();
    let why = why.strip_prefix(&format!("{place}: ")).unwrap_or(&why);
    format!("the server that owns the store, {to}: {why}")
}

/// The answer of the owner as the caller gets it.
fn passed(head: AnswerParts, out: Out, owner: &OwnerAddress) -> Response<Out> {
    let mut response = Response::new(out);
    *response.status_mut() = head.status;
    *response.headers_mut() = heads::of_answer(&head.headers);
    if let Ok(url) = HeaderValue::from_str(&owner.url.to_string()) {
        response.headers_mut().insert(heads::OWNER, url);
    }
    response
}

/// The answer to a call that has none when this server ends.
fn ended(spec: &Spec) -> PassOutcome {
    match spec.name {
        // As every lease call that waits when a server drains. The owner sees that nobody takes what it grants.
        "lease" => PassOutcome::Answered(answer_of(Reply::Lease(Leased::default()), false)),
        _ => {
            let why = NotYet::Because("this server is draining".to_owned());
            PassOutcome::Refused(problem::of_error(why.at_last(true)))
        }
    }
}

/// The refusal of a call that another server passed on, where the store is not served.
pub(crate) fn not_owner() -> Refusal {
    ServerRefusal::NotOwner.into()
}
