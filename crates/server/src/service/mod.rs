//! Handles one request: `routed` finds its caller and its route, and the rest answers it.

mod routed;

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use hyper::body::{Body, Incoming};
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode, Version};
use tenure_core::bounds::{BODILESS_BYTES_MAX, BODY_BYTES_MAX};
use tenure_core::decode::{self, BodySpec, RawCall};
use tenure_core::names::Namespace;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{
    Effect, Patch, PatchLimit, PushAnswer, PutLimit, ReadEvents, Reply, Request as Asking, Settle,
    Settled, Spec,
};
use tenure_core::sentences::{ServerRefusal, StoreRefusal};
use tenure_core::time::Span;
use tenure_engine_api::Engine;
use tokio::time::Instant;

use crate::answer::{self, Expected};
use crate::backups::OneBackup;
use crate::body::{self, BodyError, Media, Reading};
use crate::budget::{Budget, HeldBytes, Rank};
use crate::caller::{Caller, GuardedEngine};
use crate::deps::Deps;
use crate::forward::{
    self, Added, CallBody, ForwardOutcome, ForwardedCall, Forwarding, ForwardingServer, InVain,
    KeptForwarding, NotYet, RestRefused,
};
use crate::gate::{self, Here};
use crate::handshake::FailedHandshakes;
use crate::leadership::ServingLeader;
use crate::listed::listed;
use crate::out::Out;
use crate::pages::{self, Drains, OverTls, Pages, SessionChange};
use crate::peers;
use crate::problem;
use crate::request_log::{self, LateHolders, RefusedCallers};
use crate::routes::events::{self, EventStreams, StreamAsker};
use crate::routes::{self, Call, LineItem, Route};
use crate::trace;
use crate::traffic::{Traffic, Turn};
use crate::trail::{CallRecord, RecordedRefusal};
use crate::undelivered::Undelivered;

use self::routed::nothing_at;

const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// RFC 7240: a library needs only ids in the answer to a push, and whole jobs cost both sides.
const PREFER: HeaderName = HeaderName::from_static("prefer");
const APPLIED: HeaderName = HeaderName::from_static("preference-applied");
const MINIMAL: HeaderValue = HeaderValue::from_static("return=minimal");

/// Whether a push must be answered with ids alone.
fn prefers_ids(headers: &HeaderMap, request: &mut Asking) -> bool {
    let Asking::Push(push) = request else { return false };
    let minimal = listed(headers, PREFER).any(|one| one == MINIMAL);
    if minimal {
        push.answer = PushAnswer::Ids;
    }
    minimal
}

/// State that all requests of a server share.
#[derive(Debug)]
pub(crate) struct Service {
    pub deps: Deps,
    pub traffic: Arc<Traffic>,
    pub budget: Arc<Budget>,
    pub here: Here,
    pub streams: EventStreams,
    pub backups: OneBackup,
    pub refused: Arc<RefusedCallers>,
    pub late: LateHolders,
    pub handshakes: FailedHandshakes,
    /// Made when it is needed and the other servers of the store are known: see [`Service::forwarding`].
    pub forwarding: KeptForwarding,
}

/// Facts about a request that become known while it is answered, for counters and the trail.
struct RequestFacts {
    /// The name of its route; empty if there is none.
    route: &'static str,
    /// `None`: it has shown no valid token, or needs none.
    caller: Option<Arc<Caller>>,
    peer: Option<IpAddr>,
    record: CallRecord,
}

/// A call of the store, read as far as every server reads it.
struct StoreCall<'c> {
    route: &'c Route,
    spec: &'static Spec,
    /// The parts of the call that came before its body, which is read last.
    raw: RawCall<'c>,
    head: &'c Parts,
    /// It may use the route in this namespace.
    caller: Arc<Caller>,
    namespace: Namespace,
    /// Empty if the body comes in lines.
    body: bytes::Bytes,
    /// How long its caller has waited at another server.
    waited: Span,
    /// The address of its caller.
    peer: Option<IpAddr>,
    record: CallRecord,
}

/// Marks an answer to a lease call that grants nothing, in its extensions.
#[derive(Clone, Copy)]
struct NothingGranted;

const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");

/// Why a request has no good answer.
enum Stop {
    Refused(Refusal),
    Method {
        method: String,
        allowed: String,
    },
    /// Nobody waits for the answer.
    Gone,
}

impl From<Refusal> for Stop {
    fn from(no: Refusal) -> Self {
        Stop::Refused(no)
    }
}
impl From<BodyError> for Stop {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Refused(no) => Stop::Refused(no),
            BodyError::Gone => Stop::Gone,
        }
    }
}

impl Service {
    /// The current identity for forwarding; `None`: no other server has the store, or the store is not known yet.
    fn forwarding(&self) -> Option<Arc<Forwarding>> {
        self.forwarding.get(&self.deps.leadership)
    }

    /// Whether the head of a request shows a credential for this server: a token, a session, or the secret of the
    /// servers.
    pub(crate) fn knows(&self, head: &Parts) -> bool {
        let forwarding = self.forwarding();
        let mark = forwarding.as_ref().map(|forwarding| &forwarding.mark);
        let former = || self.forwarding.former();
        let is_server = || forward::is_from_server(&head.headers, mark, former, false) == Ok(true);
        let is_seen = |pages: &Arc<dyn Pages>| pages.admits(head).is_some();
        gate::token(&head.headers, &self.deps.tokens).is_ok()
            || self.deps.pages.as_ref().is_some_and(is_seen)
            || is_server()
    }

    /// The parts of this server that an attempt at the leader uses.
    fn forwarding_server(&self) -> ForwardingServer<'_> {
        ForwardingServer {
            forwarding: self.forwarding(),
            kept: &self.forwarding,
            leadership: &self.deps.leadership,
            traffic: &self.traffic,
            tokens: &self.deps.tokens,
            budget: &self.budget,
            config: self.deps.config,
        }
    }

    /// Answers one request. The turn ends with the answer.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        turn: Turn,
        peer: Option<IpAddr>,
    ) -> Response<Out> {
        let (mut head, body) = request.into_parts();
        let is_http2 = head.version == Version::HTTP_2;
        if is_http2 {
            name_host(&mut head);
        }
        let began = request_log::begin();
        let mut reading = Some(Reading::new(body, &head.headers));
        let counted = self.deps.metrics.as_ref().map(|door| door.metrics.http.begin());
        let record = CallRecord::of(&self.deps.trail, &head.headers, peer);
        let mut facts = RequestFacts { route: "", caller: None, peer, record };
        let answer = self.routed(&head, &mut reading, &turn, &mut facts).await;
        let (mut response, closes) = match answer {
            Ok(response) => {
                if let Some(change) = response.extensions().get::<SessionChange>() {
                    self.record_session(change, &facts);
                }
                (response, false)
            }
            Err(Stop::Refused(no)) => {
                self.refused.refused(peer, no.code);
                record_refusal(&head, &facts, no.code);
                let closes = matches!(
                    no.code,
                    Code::TooLarge | Code::RequestTimeout | Code::Overloaded | Code::BadRequest
                );
                (problem::response(&no), closes)
            }
            Err(Stop::Method { method, allowed }) => {
                (problem::method_not_allowed(&method, &allowed), false)
            }
            Err(Stop::Gone) => (problem::response(&ServerRefusal::BodyCutOff.into()), true),
        };
        if let Some(counted) = counted {
            counted.answered(facts.route, response.status().as_u16());
        }
        if let Some(reading) = reading {
            reading.linger(self.deps.config.linger);
        }
        // HTTP/2 ends a connection by GOAWAY instead of a header.
        if !is_http2 && (closes || self.traffic.is_draining()) {
            response.headers_mut().insert(CONNECTION, CLOSE);
        }
        let headers = response.headers_mut();
        // No page of another site may read an answer as a script or a style, or guess that it is one.
        headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        headers.insert(RESOURCE_POLICY, SAME_ORIGIN);
        if let Some(began) = began {
            request_log::tell(&head, peer, began, &response, self.deps.moved.is_some());
        }
        if is_http2 && head.method == Method::HEAD {
            response = bodiless(response);
        }
        response.map(|out| out.of(turn))
    }

    /// Tells the log and the trail of a login or its end.
    fn record_session(&self, change: &SessionChange, facts: &RequestFacts) {
        let record = facts.record.on_page();
        match change {
            SessionChange::Begun(caller) => record.session("login", caller.name()),
            SessionChange::Ended(caller) => record.session("logout", caller.name()),
            SessionChange::Refused => {
                self.refused.refused(facts.peer, Code::Unauthorized);
                record.refused(RecordedRefusal {
                    op: "login",
                    caller: None,
                    namespace: None,
                    targets: &Vec::new,
                    code: Code::Unauthorized,
                });
            }
        }
    }

    /// A call that this engine answers. `lines`: its body, if that comes in lines.
    async fn here(
        &self,
        engine: &Arc<dyn Engine>,
        call: &StoreCall<'_>,
        lines: &mut Option<Reading>,
        mut held: HeldBytes,
        turn: &Turn,
    ) -> Result<Response<Out>, Stop> {
        let StoreCall { route, spec, raw, head, caller, namespace, body, waited, record, .. } =
            call;
        let engine = &GuardedEngine::new(engine.clone(), caller.clone(), record.clone());
        if lines.is_some() {
            return match self.lines(engine, call, lines, &mut held).await? {
                NdjsonOutcome::Answer(response) => Ok(response),
                NdjsonOutcome::Ask(asks) => {
                    self.ask(engine, namespace.clone(), asks, held, turn).await
                }
            };
        }
        let request = (spec.decode)(RawCall { body, ..*raw })?;
        let mut call = Call { one: route.is_one(body), ..request.into() };
        match head.method {
            // An answer to HEAD has no body that would be worth a wait.
            Method::HEAD => call.request.waited(Span::MAX),
            _ => call.request.waited(*waited),
        }
        if let Asking::ReadEvents(asked) = &call.request
            && events::wants_stream(&head.headers)
        {
            if head.method == Method::HEAD {
                return Ok(events::head());
            }
            drop(held);
            let asked = asked.clone();
            return Ok(self.events(engine, namespace.clone(), asked, &head.headers).await?);
        }
        trace::give_all(&head.headers, &mut call.request);
        let minimal = prefers_ids(&head.headers, &mut call.request);
        let mut response = self.ask(engine, namespace.clone(), call, held, turn).await?;
        if minimal {
            response.headers_mut().insert(APPLIED, MINIMAL);
        }
        Ok(response)
    }

    /// A call of a shared store: answered here or forwarded, and tried again if the leader changes meanwhile.
    async fn forwarded(
        &self,
        call: &StoreCall<'_>,
        lines: &mut Option<Reading>,
        held: HeldBytes,
        turn: &Turn,
        from_server: bool,
    ) -> Result<Response<Out>, Stop> {
        let &StoreCall { spec, head, .. } = call;
        let began = Instant::now();
        let mut passed: Option<ForwardedCall<'_>> = None;
        let mut vain = InVain::default();
        loop {
            let serves = self.deps.leadership.now();
            // A body that comes in lines is read either here or while it is forwarded.
            let may_be_here = passed.as_ref().is_none_or(|passed| !passed.body.is_streamed());
            let mut why = match &serves {
                ServingLeader::Local { engine, .. } if may_be_here => {
                    let mut own = held.another();
                    own.force(call.body.len());
                    let in_lines = lines.is_some();
                    let answered = tokio::select! {
                        biased;
                        answered = self.here(engine, call, lines, own, turn) => answered,
                        why = self.deps.leadership.cut_off(&serves, self.deps.config.pass_on_max) => {
                            let unknown = spec.effect != Some(Effect::Reads);
                            let why = NotYet::Because(why).at_last(unknown);
                            return Err(problem::of_error(why).into());
                        }
                    };
                    match answered {
                        // This server hands the store over, and the server that forwarded the call finds the next
                        // leader.
                        Ok(response)
                            if from_server
                                && self.traffic.is_draining()
                                && response.extensions().get::<NothingGranted>().is_some() =>
                        {
                            return Err(Stop::Refused(StoreRefusal::Draining.into()));
                        }
                        Err(Stop::Refused(no)) if has_no_store(&no) => {
                            // A body that was read here cannot be sent any more.
                            if in_lines || !self.deps.leadership.left_by_now(&serves).await {
                                return Err(no.into());
                            }
                            NotYet::Refused(no)
                        }
                        answered => return answered,
                    }
                }
                ServingLeader::None(why) | ServingLeader::Paused(why) => {
                    NotYet::Because(why.clone())
                }
                // The attempt below answers it. Nobody does if a body left for another server before this one led the
                // store.
                _ => NotYet::Because("the store has another owner by now".to_owned()),
            };
            if from_server {
                return Err(forward::not_owner().into());
            }
            let may_be_done = passed.as_ref().is_some_and(|passed| passed.unknown);
            if spec.name == "lease" && self.traffic.is_draining() && !may_be_done {
                return Err(Stop::Refused(StoreRefusal::Draining.into()));
            }
            let passed = passed.get_or_insert_with(|| {
                let rest = RestRefused::default();
                let body = match lines {
                    Some(_) => CallBody::Unread,
                    None => CallBody::whole(spec, call.body.clone()),
                };
                ForwardedCall {
                    head,
                    spec,
                    added: Added {
                        namespace: &call.namespace,
                        caller: &call.caller,
                        peer: call.peer,
                    },
                    body,
                    unknown: false,
                    rest,
                    hurries: false,
                    began,
                    was_sent: false,
                }
            });
            if let ServingLeader::Remote(owner) = &serves {
                if let (CallBody::Unread, Some(reading)) = (&passed.body, lines.take()) {
                    passed.body = self.forwarding_server().streamed(spec, reading, &passed.rest);
                }
                why = match self.forwarding_server().send(passed, owner, turn, held.another()).await
                {
                    ForwardOutcome::Answered(response) => return Ok(response),
                    ForwardOutcome::Refused(no) => return Err(no.into()),
                    ForwardOutcome::NotDone(why) => {
                        *lines = passed.unread();
                        NotYet::Because(why)
                    }
                    ForwardOutcome::NotNow(no) => NotYet::Refused(no),
                    ForwardOutcome::MayBeDone(why) => {
                        passed.unknown = true;
                        NotYet::Because(why)
                    }
                };
            }
            self.forwarding_server().again(passed, &serves, &mut vain, why).await?;
        }
    }

    /// Answers a request from another server of the store.
    async fn answer_peer(
        &self,
        head: &Parts,
        reading: &mut Option<Reading>,
    ) -> Result<Response<Out>, Stop> {
        let namespace = decode::namespace_header(gate::namespace(&head.headers)?)?;
        let mut held = self.budget.take(0, Rank::Vital)?;
        let body = match reading {
            Some(reading) => reading.whole(BODY_BYTES_MAX, &self.deps.config, &mut held).await?,
            None => bytes::Bytes::new(),
        };
        let (method, path) = (&head.method, head.uri.path());
        let (leadership, drained) = (&self.deps.leadership, self.traffic.drained());
        let answered = peers::answered(method, path, &namespace, &body, leadership, drained).await;
        answered.ok_or_else(|| nothing_at(head))
    }

    /// A page. The pages themselves control the access to it.
    async fn page(
        &self,
        pages: &dyn Pages,
        head: &Parts,
        reading: &mut Option<Reading>,
        turn: &Turn,
        record: &CallRecord,
    ) -> Result<Response<Out>, Stop> {
        body::codings(&head.headers)?;
        let caller = pages.admits(head);
        if let Some(caller) = &caller {
            turn.is_of_a_caller();
            turn.counts(caller.counted().map_err(Refusal::from)?);
        }
        let mut held = self.budget.take(0, Rank::Ordinary)?;
        let body = match (reading, pages.body_bytes_max(head)) {
            (None, _) | (Some(_), 0) => bytes::Bytes::new(),
            (Some(reading), most) => reading.whole(most, &self.deps.config, &mut held).await?,
        };
        let mut request = Request::from_parts(head.clone(), body);
        if self.deps.tls.is_some() {
            request.extensions_mut().insert(OverTls);
        }
        // The calls of the page have lines of their own at the gate.
        let record = record.on_page();
        request.extensions_mut().insert(record.clone());
        let answer = pages.answer(request, Drains::of(&self.traffic)).await;
        let path = head.uri.path();
        if answer.status() == StatusCode::FORBIDDEN && !record.is_told() && pages.has(path) {
            record.refused(RecordedRefusal {
                op: "page",
                caller: caller.as_ref().map(|caller| caller.name()),
                namespace: None,
                targets: &|| vec![format!("path:{}", cut(path))],
                code: Code::Forbidden,
            });
        }
        Ok(pages::written(answer, held)?)
    }

    /// A body that is not NDJSON.
    async fn body(
        &self,
        route: &Route,
        head: &Parts,
        reading: &mut Reading,
        held: &mut HeldBytes,
    ) -> Result<bytes::Bytes, Stop> {
        let most = match route.body {
            BodySpec::Nothing => BODILESS_BYTES_MAX,
            BodySpec::Optional(_) | BodySpec::Required(_) => BODY_BYTES_MAX,
        };
        reading.at_most(most)?;
        let right = body::media(&head.headers) == Media::Json;
        if !right && reading.is_long() {
            return Err(body::unsupported(route.lines.is_some()).into());
        }
        let body = reading.whole(most, &self.deps.config, held).await?;
        if !right && !body.is_empty() {
            return Err(body::unsupported(route.lines.is_some()).into());
        }
        Ok(body)
    }

    /// The request that an NDJSON body makes.
    async fn lines(
        &self,
        engine: &Arc<GuardedEngine>,
        call: &StoreCall<'_>,
        lines: &mut Option<Reading>,
        held: &mut HeldBytes,
    ) -> Result<NdjsonOutcome, Stop> {
        let config = self.deps.config;
        let mut reading = lines.take().ok_or(Stop::Gone)?;
        let set = match call.route.lines {
            Some(LineItem::Schedule) => {
                routes::sync_lines::schedules(call.raw, &mut reading, &config, held).await
            }
            Some(LineItem::Resource) => {
                routes::sync_lines::resources(call.raw, &mut reading, &config, held).await
            }
            Some(LineItem::Job) | None => {
                let held = self.budget.take(0, Rank::Ordinary)?;
                let trace = trace::of(&call.head.headers);
                let (engine, namespace) = (engine.clone(), call.namespace.clone());
                let answer =
                    routes::push_lines::answer(engine, namespace, reading, trace, held, config);
                return Ok(NdjsonOutcome::Answer(answer));
            }
        };
        // The rest of a body that is refused early is read for a moment.
        *lines = Some(reading);
        Ok(NdjsonOutcome::Ask(set?))
    }

    async fn ask(
        &self,
        engine: &Arc<GuardedEngine>,
        namespace: Namespace,
        Call { mut request, one, lines }: Call,
        body: HeldBytes,
        turn: &Turn,
    ) -> Result<Response<Out>, Stop> {
        self.reaches(&request)?;
        let has_items = matches!(request, Asking::Push(_) | Asking::SyncSchedules(_));
        let expected = Expected::of(&request, body.bytes());
        let mut held = self.budget.take(expected.bytes, body.rank())?;
        if let Asking::Lease(_) | Asking::Settle(Settle { lease: Some(_), .. }) = request {
            // The call may wait for a minute, and takes nothing from the budget meanwhile.
            drop((held, body));
            return self.lease(engine, namespace, request, turn).await;
        }
        if request.wait_mut().is_some_and(|wait| *wait > Span::ZERO) {
            // Like a lease call that waits.
            drop((held, body));
            let reply = engine.call(&namespace, request).await.map_err(problem::of_error)?;
            let mut held = self.budget.take(0, Rank::Ordinary)?;
            let response = answer::reply(reply, one);
            held.set(response.body().bytes())?;
            return Ok(response.map(|out| out.holding(held)));
        }
        let reply = engine.call(&namespace, request).await.map_err(problem::of_error);
        let reply = reply.map_err(|no| match &lines {
            Some(lines) => on_its_line(no, lines),
            None if has_items => of_items(no, one),
            None => no,
        })?;
        drop(body);
        self.late.heard(&reply);
        let response = answer::reply(reply, one);
        if expected.is_read {
            held.set(response.body().bytes())?;
        }
        Ok(response.map(|out| out.holding(held)))
    }

    /// Refuses a gauge at an address that this server would not ask.
    fn reaches(&self, request: &Asking) -> Result<(), Refusal> {
        let gauge = match request {
            Asking::PutLimit(PutLimit { gauge: Some(gauge), .. })
            | Asking::PatchLimit(PatchLimit { gauge: Patch::Set(gauge), .. }) => gauge,
            _ => return Ok(()),
        };
        self.deps.gauge_hosts.check(gauge)
    }

    /// A stream of events, until the caller leaves or the server drains.
    async fn events(
        &self,
        engine: &Arc<GuardedEngine>,
        namespace: Namespace,
        mut asked: ReadEvents,
        headers: &HeaderMap,
    ) -> Result<Response<Out>, Refusal> {
        if let Some(since) = events::last_event_id(headers)? {
            asked.since = since;
        }
        let (engine, traffic) = (engine.clone(), self.traffic.clone());
        let drains = move || traffic.is_draining();
        let (tokens, caller) = (self.deps.tokens.clone(), engine.caller().clone());
        let asker = StreamAsker {
            caller: caller.name().into(),
            is_one_of_several: self.deps.tokens.count() > 1,
        };
        // A stream with other grants would show more or less than before: its caller begins another one.
        let ends = async move { drop(tokens.changed(&caller).await) };
        events::stream(engine, namespace, asked, (&self.streams, asker), drains, ends).await
    }

    /// A lease call, alone or after settles. A grant whose answer does not fit into the budget is undone at once, as if
    /// the answer could not be written; the settles are answered all the same.
    async fn lease(
        &self,
        engine: &Arc<GuardedEngine>,
        namespace: Namespace,
        request: Asking,
        turn: &Turn,
    ) -> Result<Response<Out>, Stop> {
        // A caller can ask for a grant again, also where the settles before it could not wait.
        let mut held = self.budget.take(0, Rank::Ordinary)?;
        let reply = engine.call(&namespace, request).await.map_err(problem::of_error)?;
        self.late.heard(&reply);
        let grant = match &reply {
            Reply::Lease(leased) | Reply::Settle(Settled { lease: Some(Ok(leased)), .. }) => {
                Undelivered::of(engine, &namespace, leased)
            }
            _ => None,
        };
        let settled = match (&reply, &grant) {
            (Reply::Settle(answer), Some(_)) => Some(answer.settled.clone()),
            _ => None,
        };
        let is_empty = matches!(&reply, Reply::Lease(leased) if leased.leases.is_empty());
        let mut response = answer::reply(reply, false);
        if is_empty {
            response.extensions_mut().insert(NothingGranted);
        }
        let Some(grant) = grant else { return Ok(response.map(|out| out.holding(held))) };
        if let Err(no) = held.set(response.body().bytes()) {
            grant.undo();
            let Some(settled) = settled else { return Err(no.into()) };
            let told = Settled { settled, lease: Some(Err(no.below("/lease"))) };
            return Ok(answer::reply(Reply::Settle(told), false).map(|out| out.holding(held)));
        }
        turn.granted(grant);
        Ok(response.map(|out| out.holding(held)))
    }
}

/// Tells the trail of a call that was refused because of its token or its origin, unless the gate has told it.
fn record_refusal(head: &Parts, facts: &RequestFacts, code: Code) {
    let is_told = matches!(code, Code::Unauthorized | Code::Forbidden | Code::ForbiddenOrigin);
    if !is_told || facts.record.is_told() {
        return;
    }
    let namespace = gate::namespace(&head.headers).and_then(decode::namespace_header).ok();
    facts.record.refused(RecordedRefusal {
        op: if facts.route.is_empty() { "unknown_route" } else { facts.route },
        caller: facts.caller.as_ref().map(|caller| caller.name()),
        namespace: namespace.as_ref().map(Namespace::as_str),
        targets: &|| routes::named_thing(&head.method, head.uri.path()).into_iter().collect(),
        code,
    });
}

/// HTTP/2 has the name of the server in the request line alone, and the gate and the pages look for it in the header.
fn name_host(head: &mut Parts) {
    let host = head.uri.authority().map(|host| HeaderValue::from_str(host.as_str()));
    if let (false, Some(Ok(host))) = (head.headers.contains_key(HOST), host) {
        head.headers.insert(HOST, host);
    }
}

/// The head of an answer to HEAD. The HTTP/2 library would send its body.
fn bodiless(mut response: Response<Out>) -> Response<Out> {
    // The head of another server's answer has the length already, and no body to measure.
    if let Some(length) = response.body().size_hint().exact()
        && !response.headers().contains_key(CONTENT_LENGTH)
    {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response.map(Out::headless)
}

/// Whether an engine may have refused the call because the store is served elsewhere by now.
fn has_no_store(no: &Refusal) -> bool {
    matches!(no.code, Code::StoreUnavailable | Code::Draining)
}

/// An engine counts from the item; a caller counts from the body.
fn of_items(no: Refusal, one: bool) -> Refusal {
    match no.index {
        Some(_) if one => no.without_item(),
        Some(index) => no.below(&format!("/{index}")),
        None => no,
    }
}

/// The same where each item came on a line of its own.
fn on_its_line(no: Refusal, lines: &[usize]) -> Refusal {
    match no.index.and_then(|index| lines.get(index).copied()) {
        Some(line) => no.without_item().on_line(line),
        None => no,
    }
}

/// The result of an NDJSON body.
enum NdjsonOutcome {
    Answer(Response<Out>),
    Ask(Call),
}

fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(120) {
        Some((at, _)) => Cow::Owned(format!("{}…", &text[..at])),
        None => Cow::Borrowed(text),
    }
}
