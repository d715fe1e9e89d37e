//! Sends a call to the leader once, judges the answer, and decides when to try again.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::response::Parts as AnswerParts;
use hyper::{Method, Response, StatusCode};
use tenure::ServerUrl;
use tenure::remote::wire::NotBegun;
use tenure_core::bounds::WAIT_US_MAX;
use tenure_core::lease::Leased;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{Effect, Reply, Spec};
use tenure_core::sentences::StoreRefusal;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::answer::{self, Cut, Cutting, ForwardedAnswer, Link};
use super::heads::{self, SentWhen};
use super::sent_body::{RestRefused, SentBody};
use super::{
    CallBody, DEPOSED, ForwardOutcome, ForwardedCall, Forwarding, InVain, KeptForwarding,
    LAST_WORDS, NO_SECRET, NotYet, given_up, why_of,
};
use crate::answer::reply as answer_of;
use crate::body::Reading;
use crate::budget::{Budget, HeldBytes, overloaded};
use crate::caller::Caller;
use crate::config::Config;
use crate::leadership::{Leadership, ServingLeader};
use crate::out::Out;
use crate::problem;
use crate::tokens::Tokens;
use crate::traffic::{Traffic, Turn};
use crate::undelivered::Undelivered;
use tenure_engine_api::LeaderAddress;

/// The head of an answer comes within this: the longest wait, and time for a call that is much work.
const ANSWER_MAX: Duration = Duration::from_micros(WAIT_US_MAX + 60_000_000);

/// Answers up to this are not counted in the budget, like those of this server.
const SMALL_BYTES: u64 = 4 * 1024;
/// Bytes of an answer that may stay in memory while its caller does not read: the connection to the leader reads this
/// far ahead.
const UNREAD_BYTES: u64 = 512 * 1024;

/// The parts of a follower that an attempt uses.
pub(crate) struct ForwardingServer<'s> {
    /// `None`: no other server can be asked, or the store is not known yet.
    pub forwarding: Option<Arc<Forwarding>>,
    /// Remembers a refusal of this server's secret by the leader.
    pub kept: &'s KeptForwarding,
    /// Watched for another leader while a call is away.
    pub leadership: &'s Leadership,
    /// Says when the server drains.
    pub traffic: &'s Arc<Traffic>,
    /// A stream ends with the token that began it.
    pub tokens: &'s Tokens,
    /// Counts the lines of a body that is read while it is sent.
    pub budget: &'s Arc<Budget>,
    /// How long to look for a leader, and the times of a body that is read.
    pub config: Config,
}

impl ForwardingServer<'_> {
    /// Reads a body from its caller while it is sent.
    pub(crate) fn streamed(&self, spec: &Spec, reading: Reading, rest: &RestRefused) -> CallBody {
        let are_jobs = spec.name == "push";
        let (budget, config) = (self.budget.clone(), self.config);
        let body = SentBody::streamed(reading, are_jobs, budget, config, rest.clone());
        CallBody::Streamed(Some(Box::new(body)))
    }

    /// Waits until an unanswered call can be tried again, and returns the refusal if its time is over.
    pub(crate) async fn again(
        &self,
        call: &ForwardedCall<'_>,
        serves: &ServingLeader,
        vain: &mut InVain,
        why: NotYet,
    ) -> Result<(), Refusal> {
        let (most, leadership) = (self.config.pass_on_max, self.leadership);
        let sent = matches!(call.body, CallBody::Streamed(None));
        let ends = sent || call.unknown && !call.body.is_repeatable();
        let tries = async {
            // Nobody is there to take the store of a server that ends.
            let is_last =
                || matches!(leadership.now(), ServingLeader::None(_) | ServingLeader::Paused(_));
            tokio::select! {
                again = vain.may_try_again(leadership, serves, most) => again,
                () = self.ends(), if is_last() => !is_last(),
            }
        };
        if !ends && tries.await {
            Ok(())
        } else {
            Err(problem::of_error(why.at_last(call.unknown)))
        }
    }

    /// Sends a call to the leader and begins to answer.
    pub(crate) async fn send(
        &self,
        call: &mut ForwardedCall<'_>,
        owner: &LeaderAddress<ServerUrl>,
        turn: &Turn,
        mut held: HeldBytes,
    ) -> ForwardOutcome {
        let Some(forwarding) = &self.forwarding else {
            return ForwardOutcome::NotDone(NO_SECRET.to_owned());
        };
        let at = |why: String| why_of(&owner.url, why);
        let wire = match forwarding.wire(&owner.url) {
            Ok(wire) => wire,
            Err(why) => return ForwardOutcome::NotDone(at(why)),
        };
        let body = match &mut call.body {
            CallBody::Whole(prepared) => SentBody::whole(prepared.body.clone()),
            CallBody::Streamed(body) => match body.take() {
                Some(body) => *body,
                None => {
                    return ForwardOutcome::MayBeDone(at("the body was sent already".to_owned()));
                }
            },
            CallBody::Unread => {
                return ForwardOutcome::NotDone(at("the body was not read".to_owned()));
            }
        };
        let waited = if call.was_sent { call.began.elapsed() } else { Duration::ZERO };
        let when = SentWhen { waited, hurries: call.hurries };
        call.was_sent = true;
        let (to, mark) = (&owner.url, &forwarding.mark);
        let request = match heads::request(call.head, call.added, when, to, mark, body) {
            Ok(request) => request,
            Err(why) => return ForwardOutcome::NotDone(at(why.to_string())),
        };
        let serves = ServingLeader::Remote(owner.clone());
        let begun = tokio::select! {
            biased;
            begun = wire.begin(request, ANSWER_MAX) => begun,
            () = given_up(self.leadership, &serves, call.body.is_repeatable()) => {
                return ForwardOutcome::MayBeDone(at(DEPOSED.to_owned()));
            }
            () = self.ends(), if !call.hurries => {
                // A read is repeated without its wait, for the present state.
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
                return ForwardOutcome::NotDone(why_of(&owner.url, why));
            }
            Err(NotBegun::Lost { why, .. }) => {
                // A whole set with a part missing changed nothing.
                let refused = call.rest.take().filter(|_| call.spec.name != "push");
                return match refused {
                    Some((_, no)) => ForwardOutcome::Refused(no),
                    None => ForwardOutcome::MayBeDone(at(why)),
                };
            }
        };
        let (head, body, used) = begun.into_parts();
        self.kept.was_taken(head.status != StatusCode::UNAUTHORIZED);
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
        let cutting = self.cutting(serves, is_stream.then_some(call.added.caller));
        let unread = body.size_hint().exact().unwrap_or(0);
        if unread > SMALL_BYTES && held.grow(unread.min(UNREAD_BYTES) as usize).is_err() {
            if call.spec.effect == Some(Effect::Reads) {
                return ForwardOutcome::Refused(overloaded());
            }
            held.force(unread.min(UNREAD_BYTES) as usize);
        }
        let rest = call.rest.clone();
        let out = Out::passed(ForwardedAnswer::new(body, link, cutting, rest, held));
        ForwardOutcome::Answered(passed(head, out, owner))
    }

    /// Ends when this server drains and has waited long enough for a missing answer.
    async fn ends(&self) {
        self.traffic.drained().await;
        sleep(self.config.quiet).await;
    }

    /// Ends when the rest of an answer is no longer worth a wait.
    /// `streamed`: the answer is a stream, for this caller.
    fn cutting(&self, serves: ServingLeader, streamed: Option<&Arc<Caller>>) -> Cutting {
        let leadership = self.leadership.clone();
        let Some(caller) = streamed else { return Box::pin(cut(leadership, serves)) };
        let (tokens, caller) = (self.tokens.clone(), caller.clone());
        let ends = async move { drop(tokens.changed(&caller).await) };
        Box::pin(end(leadership, self.traffic.clone(), serves, ends))
    }

    /// An answer that may not be for the caller: the leader no longer leads, or does not know this server.
    async fn refused(
        &self,
        call: &ForwardedCall<'_>,
        owner: &LeaderAddress<ServerUrl>,
        head: AnswerParts,
        body: Incoming,
        link: Link,
        mut held: HeldBytes,
    ) -> ForwardOutcome {
        let at = |why: &str| why_of(&owner.url, why.to_owned());
        let bytes = match answer::whole(body, link).await {
            Ok(bytes) => bytes,
            Err(why) => return ForwardOutcome::MayBeDone(at(&why.to_string())),
        };
        match answer::code(&bytes) {
            Some(Code::NotOwner) => return ForwardOutcome::NotDone(at("it does not own it now")),
            // The leader hands the store over; the next one answers.
            Some(Code::Draining) => return ForwardOutcome::NotNow(StoreRefusal::Draining.into()),
            Some(Code::OutcomeUnknown) if call.body.is_repeatable() => {
                return ForwardOutcome::MayBeDone(at("it could not say whether it was done"));
            }
            Some(Code::Unauthorized) => {
                return ForwardOutcome::NotDone(at("it does not take the secret of this server"));
            }
            // An earlier attempt executed the call.
            Some(code) if call.unknown && call.spec.gone.contains(&code) => {
                let mut response = Response::new(Out::whole(Vec::new()));
                *response.status_mut() = StatusCode::NO_CONTENT;
                return ForwardOutcome::Answered(response);
            }
            _ => {}
        }
        held.force(bytes.len());
        let out = Out::whole(bytes.into()).holding(held);
        ForwardOutcome::Answered(passed(head, out, owner))
    }

    /// An answer that may grant leases: they are undone if it does not leave.
    #[allow(clippy::too_many_arguments, reason = "the parts of one answer")]
    async fn granted(
        &self,
        call: &ForwardedCall<'_>,
        owner: &LeaderAddress<ServerUrl>,
        head: AnswerParts,
        body: Incoming,
        link: Link,
        turn: &Turn,
        mut held: HeldBytes,
    ) -> ForwardOutcome {
        let lost = || {
            let why = "its answer broke off".to_owned();
            ForwardOutcome::MayBeDone(why_of(&owner.url, why))
        };
        let (told, heard) = oneshot::channel();
        let undoing = self
            .forwarding
            .as_ref()
            .map(|forwarding| forwarding.undoing(owner, call.added.namespace.clone()));
        // A task of its own: the leader takes the grant for delivered, so the answer must be read even if the caller
        // has gone.
        tokio::spawn(async move {
            let Ok(bytes) = answer::whole(body, link).await else { return };
            let leases = answer::leases(&bytes);
            let grant = undoing
                .filter(|_| !leases.is_empty())
                .map(|undoing| InHand(Some(Undelivered::by(undoing, leases))));
            // If nobody listens, dropping the grant undoes it.
            let _ = told.send((bytes, grant));
        });
        let Ok((bytes, grant)) = heard.await else { return lost() };
        if held.set(bytes.len()).is_err() {
            if call.spec.name == "lease" {
                // Dropping the grant undoes it.
                return ForwardOutcome::Refused(overloaded());
            }
            // The settles are done, so their answer may go above the budget.
            held.force(bytes.len());
        }
        if let Some(grant) = grant.and_then(InHand::taken) {
            turn.granted(grant);
        }
        let out = Out::whole(bytes.into()).holding(held);
        ForwardOutcome::Answered(passed(head, out, owner))
    }
}

/// A grant between the leader and the connection of its caller: undone on drop.
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

/// Ends when the rest of an answer with an end is no longer worth a wait.
async fn cut(leadership: Leadership, serves: ServingLeader) -> Cut {
    leadership.moved(&serves).await;
    sleep(LAST_WORDS).await;
    Cut::Breaks
}

/// Ends when a stream must end: the leader changes, this server drains, or the token that began the stream is removed.
async fn end(
    leadership: Leadership,
    traffic: Arc<Traffic>,
    serves: ServingLeader,
    removed: impl Future<Output = ()>,
) -> Cut {
    tokio::select! {
        () = leadership.moved(&serves) => {}
        () = traffic.drained() => {}
        () = removed => {}
    }
    Cut::Ends
}

/// The answer of the leader, for the caller.
fn passed(head: AnswerParts, out: Out, owner: &LeaderAddress<ServerUrl>) -> Response<Out> {
    let mut response = Response::new(out);
    *response.status_mut() = head.status;
    *response.headers_mut() = heads::of_answer(&head.headers);
    if let Ok(url) = HeaderValue::from_str(&owner.url.to_string()) {
        response.headers_mut().insert(heads::OWNER, url);
    }
    response
}

/// The answer to a call that is still unanswered when this server ends.
fn ended(spec: &Spec) -> ForwardOutcome {
    match spec.name {
        // As for every waiting lease call when a server drains. The leader sees that nobody takes its grant.
        "lease" => ForwardOutcome::Answered(answer_of(Reply::Lease(Leased::default()), false)),
        _ => {
            let why = NotYet::Because("this server is draining".to_owned());
            ForwardOutcome::Refused(problem::of_error(why.at_last(true)))
        }
    }
}
