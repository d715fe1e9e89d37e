//! The steps from the head of a request to the answer of its route, in order. Each may end the request.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use hyper::http::request::Parts;
use hyper::{Method, Response};
use tenure_core::access::Grants;
use tenure_core::decode::{self, BodySpec, RawCall};
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Effect, Lease, Operation, Settle, Spec};
use tenure_core::sentences::{AccessRefusal, ServerRefusal, StoreRefusal};
use tenure_core::time::Span;
use tenure_engine_api::{Clock, SystemClock};
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::{RequestFacts, Service, Stop, StoreCall, cut};
use crate::answer;
use crate::backups;
use crate::body::{self, Media, Reading};
use crate::budget::{HeldBytes, Rank};
use crate::caller::Caller;
use crate::deps::MetricsDoor;
use crate::forward;
use crate::gate;
use crate::leadership::ServingLeader;
use crate::openapi;
use crate::out::Out;
use crate::pages;
use crate::peers;
use crate::problem;
use crate::routes::me::Me;
use crate::routes::system::{ALIVE, Ready, VERSION};
use crate::routes::test_clock::StandingAt;
use crate::routes::{self, Access, Does, Found, Route};
use crate::target;
use crate::tokens::{Tokens, shown_token};
use crate::traffic::Turn;
use crate::trail::CallRecord;

/// The sender of a request, before its token is checked.
#[derive(Clone, Copy)]
struct Sender {
    /// Another server of the store, which has shown the secret of the servers.
    is_server: bool,
    /// The route answers callers without a token.
    is_open: bool,
    /// Callers of this port need a token.
    needs_token: bool,
}

/// A request that may be answered by this route.
struct Admitted<'r> {
    route: &'static Route,
    caller: Arc<Caller>,
    /// The parts of the path that the route names.
    names: Vec<Cow<'r, str>>,
    query: Vec<(Cow<'r, str>, Cow<'r, str>)>,
    namespace: Namespace,
    body: bytes::Bytes,
    /// True if the body comes in lines, which the call reads.
    in_lines: bool,
    held: HeldBytes,
    /// The address of its caller.
    peer: Option<IpAddr>,
    record: CallRecord,
}

impl Service {
    /// `facts` are filled in as soon as they are known.
    pub(super) async fn routed(
        &self,
        head: &Parts,
        reading: &mut Option<Reading>,
        turn: &Turn,
        facts: &mut RequestFacts,
    ) -> Result<Response<Out>, Stop> {
        let found = self.find(head, &mut facts.route)?;
        let sender = self.identify(head, &found, turn)?;
        if sender.is_server {
            facts.peer = forward::peer(&head.headers).or(facts.peer);
            facts.record = facts.record.forwarded(facts.peer);
        }
        if sender.is_server && peers::is_theirs(head.uri.path()) {
            return self.answer_peer(head, reading).await;
        }
        self.check_origin(head, sender)?;
        if let (Found::Nothing, Some(pages)) = (&found, &self.deps.pages)
            && pages::is_for_page(head, pages.as_ref())
        {
            return self.page(pages.as_ref(), head, reading, turn, &facts.record).await;
        }
        let caller = self.caller(head, &found, sender, turn)?;
        facts.caller = (!sender.is_open).then(|| caller.clone());
        body::codings(&head.headers)?;
        let (route, names) = the_route(found, head)?;
        let namespace = permitted(head, route, &caller)?;
        // The first server of a forwarded call has counted it.
        if route.rank != Rank::Vital && !sender.is_server {
            turn.counts(caller.counted().map_err(Refusal::from)?);
        }
        self.keep_if_vital(route, turn);
        let caller = (caller, sender, &*facts);
        let admitted = self.read(head, reading, (route, &names), caller, namespace).await?;
        self.answer_route(head, reading, turn, sender, admitted).await
    }

    /// Looks the path up. A port of its own for metrics has no other path.
    fn find<'h>(&self, head: &'h Parts, name: &mut &'static str) -> Result<Found<'h>, Stop> {
        let found = routes::find(&head.method, head.uri.path(), self.deps.moved.is_some());
        if let Found::Route(route, _) = &found {
            *name = route.name;
        }
        match self.own_port() {
            Some(_) if !is_metrics(&found) => Err(nothing_at(head)),
            Some(_) | None => Ok(found),
        }
    }

    /// The metrics, if this port answers nothing else.
    fn own_port(&self) -> Option<&MetricsDoor> {
        self.deps.metrics.as_ref().filter(|door| door.alone)
    }

    fn identify(&self, head: &Parts, found: &Found<'_>, turn: &Turn) -> Result<Sender, Stop> {
        let is_open = matches!(found, Found::Route(route, _) if route.is_open());
        let own = self.own_port().is_some_and(|door| door.tokens.are_asked_for());
        let forwarding = self.forwarding();
        let mark = forwarding.as_ref().map(|forwarding| &forwarding.mark);
        let waits =
            mark.is_none() && !matches!(self.deps.leadership.now(), ServingLeader::Local { .. });
        let former = || self.forwarding.former();
        let is_server = forward::is_from_server(&head.headers, mark, former, waits)?;
        if is_server {
            turn.is_of_a_caller();
        }
        let needs_token = own || self.deps.tokens.are_asked_for();
        Ok(Sender { is_server, is_open, needs_token })
    }

    fn check_origin(&self, head: &Parts, sender: Sender) -> Result<(), Stop> {
        let any_host = sender.is_open || sender.is_server || sender.needs_token;
        Ok(gate::origin(&head.headers, head.uri.authority(), any_host, self.here)?)
    }

    /// The caller, by its token. An open route has no use for one.
    fn caller(
        &self,
        head: &Parts,
        found: &Found<'_>,
        sender: Sender,
        turn: &Turn,
    ) -> Result<Arc<Caller>, Stop> {
        if sender.is_open {
            return Ok(Caller::elsewhere(Grants::nothing()));
        }
        let caller = if sender.is_server {
            forward::caller(&head.headers, &self.deps.tokens)
        } else if self.deps.tokens.are_asked_for() || !sender.needs_token {
            let shown = gate::token(&head.headers, &self.deps.tokens);
            shown.or_else(|no| self.metrics_reader(found, head).ok_or(no))
        } else {
            // On a port of its own, a token for the metrics protects them also where the server has none.
            self.metrics_reader(found, head).ok_or_else(|| no_token(head))
        }?;
        turn.is_of_a_caller();
        Ok(caller)
    }

    /// The caller of the metrics that shows a token for them alone.
    fn metrics_reader(&self, found: &Found<'_>, head: &Parts) -> Option<Arc<Caller>> {
        let own = &self.deps.metrics.as_ref()?.tokens;
        let is_reader =
            is_metrics(found) && own.are_asked_for() && gate::token(&head.headers, own).is_ok();
        is_reader.then(|| Caller::elsewhere(Grants::metrics_alone()))
    }

    /// Lets a heartbeat be answered by a server that drains, unless another server answers the next one.
    fn keep_if_vital(&self, route: &Route, turn: &Turn) {
        let is_leaving = self.traffic.is_draining() && self.deps.leadership.is_elsewhere();
        if route.rank == Rank::Vital && !is_leaving {
            turn.keeps();
        }
    }

    /// Reads the rest of the head, and the body unless it comes in lines.
    async fn read<'r>(
        &self,
        head: &'r Parts,
        reading: &mut Option<Reading>,
        (route, names): (&'static Route, &[(&'static str, &'r str)]),
        (caller, sender, facts): (Arc<Caller>, Sender, &RequestFacts),
        namespace: Namespace,
    ) -> Result<Admitted<'r>, Stop> {
        let query = target::query(head.uri.query())?;
        // A probe may say what it likes: a process that lives says so.
        if route.query.is_none() && !route.is_open() {
            decode::no_query(&query)?;
        }
        let names = routes::names(names)?;
        let mut held = self.budget.take(0, route.rank)?;
        let in_lines = route.lines.is_some() && body::media(&head.headers) == Media::Lines;
        let body = match reading {
            Some(reading) if in_lines => {
                let (tokens, caller) = (self.deps.tokens.clone(), caller.clone());
                reading.stop_by(async move { rights_end(&tokens, &caller, sender).await });
                bytes::Bytes::new()
            }
            Some(reading) if !reading.is_empty() => {
                tokio::select! {
                    biased;
                    body = self.body(route, head, reading, &mut held) => body?,
                    no = rights_end(&self.deps.tokens, &caller, sender) => return Err(no.into()),
                }
            }
            Some(_) | None => bytes::Bytes::new(),
        };
        if route.body == BodySpec::Nothing {
            decode::no_body(&body)?;
        }
        let (peer, record) = (facts.peer, facts.record.clone());
        Ok(Admitted { route, caller, names, query, namespace, body, in_lines, held, peer, record })
    }

    async fn answer_route(
        &self,
        head: &Parts,
        reading: &mut Option<Reading>,
        turn: &Turn,
        sender: Sender,
        admitted: Admitted<'_>,
    ) -> Result<Response<Out>, Stop> {
        match admitted.route.does {
            Does::Ask(spec) => self.answer_call(head, reading, turn, sender, spec, admitted).await,
            Does::Me => {
                let me = Me::at(admitted.caller.grants(), &self.deps.tokens);
                Ok(answer::json(200, &me))
            }
            Does::Health => Ok(answer::json(200, &ALIVE)),
            Does::Ready => {
                let is_refused = self.forwarding.is_refused();
                let has_token = || gate::token(&head.headers, &self.deps.tokens).is_ok();
                let is_stranger = !sender.is_server && !has_token();
                let draining = self.traffic.is_draining();
                let ready = Ready::at(&self.deps.leadership, draining, is_refused, is_stranger);
                Ok(answer::json(ready.status(), &ready))
            }
            Does::Preview => {
                let moved = self.deps.moved.as_ref();
                let now = moved.map_or_else(|| SystemClock.now(), |moved| moved.now());
                let preview = routes::previews::answer(&admitted.body, now)?;
                Ok(answer::json(200, &preview))
            }
            Does::ShowTime => {
                let moved = self.deps.moved.as_ref().ok_or_else(|| nothing_at(head))?;
                Ok(answer::json(200, &StandingAt { now: moved.now() }))
            }
            Does::AdvanceTime => {
                let moved = self.deps.moved.as_ref().ok_or_else(|| nothing_at(head))?;
                let span = decode::advance(&admitted.body)?;
                let pending = admitted.record.begin_own(admitted.caller.name(), "advance_time")?;
                let now = moved.advance(span).await.map_err(problem::of_error);
                pending.end_own(now.as_ref().err().map(|no| no.code));
                Ok(answer::json(200, &StandingAt { now: now? }))
            }
            Does::Version => Ok(answer::json(200, &VERSION)),
            Does::Metrics => {
                let Some(door) = &self.deps.metrics else { return Err(nothing_at(head)) };
                let response =
                    answer::text(door.metrics.text().await, crate::metrics::CONTENT_TYPE);
                hold(response, admitted.held)
            }
            Does::Backup => {
                let makes = self.deps.leadership.backups().ok_or_else(|| nothing_at(head))?;
                if head.method == Method::HEAD {
                    return Ok(backups::head());
                }
                let (tokens, caller) = (self.deps.tokens.clone(), admitted.caller.clone());
                let traffic = self.traffic.clone();
                let ends = async move {
                    tokio::select! {
                        _ = tokens.changed(&caller) => {}
                        () = traffic.drained() => {}
                    }
                };
                let pending = admitted.record.begin_own(admitted.caller.name(), "backup")?;
                let answer = backups::answer(makes.clone(), &self.backups, ends).await;
                pending.end_own(answer.as_ref().err().map(|no| no.code));
                Ok(answer?)
            }
            Does::Trail => {
                let asked = decode::read_trail(&admitted.query)?;
                // To look at the trail changes nothing, and must not fill it.
                admitted.record.count(admitted.caller.name(), "read_trail");
                let (trail, caller) = (self.deps.trail.clone(), admitted.caller.clone());
                let read = spawn_blocking(move || trail.read(&asked, caller.grants())).await;
                let read = read.map_err(|_| Refusal::from(StoreRefusal::EngineBroke))?;
                hold(answer::json(200, &read?), admitted.held)
            }
            Does::Document => hold(answer::json(200, openapi::document()), admitted.held),
        }
    }

    /// Answers a call of the store, here or at another server.
    async fn answer_call(
        &self,
        head: &Parts,
        reading: &mut Option<Reading>,
        turn: &Turn,
        sender: Sender,
        spec: &'static Spec,
        admitted: Admitted<'_>,
    ) -> Result<Response<Out>, Stop> {
        let Admitted { route, caller, names, query, namespace, body, .. } = admitted;
        let Admitted { in_lines, held, peer, record, .. } = admitted;
        let raw = RawCall { names: &names, query: &query, body: &[] };
        let waited = if sender.is_server { forward::waited(&head.headers) } else { Span::ZERO };
        let mut call =
            StoreCall { route, spec, raw, head, caller, namespace, body, waited, peer, record };
        let lines = if in_lines { reading } else { &mut None };
        let may_grant = [Lease::NAME, Settle::NAME].contains(&spec.name);
        if spec.effect != Some(Effect::Reads) && !may_grant {
            return self.answer_here_or_there(&call, lines, held, turn, sender).await;
        }
        let mut held = held;
        loop {
            let (began, next) = (Instant::now(), held.another());
            // A wait ends with the token that began it: a caller that lost its token is granted nothing more. If the
            // token got other grants, the rest of the wait is a call of its own under these.
            let now = tokio::select! {
                biased;
                answer = self.answer_here_or_there(&call, lines, held, turn, sender) => {
                    return answer;
                }
                now = self.deps.tokens.changed(&call.caller) => now,
            };
            call.caller = now.ok_or_else(|| token_gone(&call.caller, sender))?;
            permitted(head, route, &call.caller)?;
            call.waited = Span::from_us(call.waited.us() + Span::from(began.elapsed()).us());
            held = next;
        }
    }

    async fn answer_here_or_there(
        &self,
        call: &StoreCall<'_>,
        lines: &mut Option<Reading>,
        held: HeldBytes,
        turn: &Turn,
        sender: Sender,
    ) -> Result<Response<Out>, Stop> {
        let is_alone = self.forwarding().is_none();
        match self.deps.leadership.now() {
            ServingLeader::Local { engine, .. } if is_alone => {
                self.here(&engine, call, lines, held, turn).await
            }
            _ => self.forwarded(call, lines, held, turn, sender.is_server).await,
        }
    }
}

type RouteNames<'h> = Vec<(&'static str, &'h str)>;

fn the_route<'h>(found: Found<'h>, head: &Parts) -> Result<(&'static Route, RouteNames<'h>), Stop> {
    match found {
        Found::Route(route, names) => Ok((route, names)),
        Found::Methods(allowed) => Err(Stop::Method { method: head.method.to_string(), allowed }),
        Found::Nothing => Err(nothing_at(head)),
    }
}

/// The namespace of a request whose route and namespace its caller may use. That is checked before the body is read or
/// forwarded; the engine's gate checks it again, with what the body names.
fn permitted(head: &Parts, route: &Route, caller: &Caller) -> Result<Namespace, Stop> {
    if route.is_open() {
        return Ok(Namespace::main());
    }
    let namespace = decode::namespace_header(gate::namespace(&head.headers)?)?;
    let grants = caller.grants();
    match route.access() {
        Access::Open | Access::AnyToken => {}
        Access::Server(scope) => grants.may(scope, route.name)?,
        Access::WholeStore => grants.may_take_all(route.name)?,
        Access::Namespace(scope) => {
            grants.may(scope, route.name)?;
            grants.may_enter(&namespace)?;
        }
    }
    Ok(namespace)
}

/// The refusal of the rest of a body, once the token of its caller is valid no longer or has other grants.
async fn rights_end(tokens: &Tokens, caller: &Caller, sender: Sender) -> Refusal {
    match tokens.changed(caller).await {
        Some(_) => AccessRefusal::GrantsChanged { caller: caller.name().to_owned() }.into(),
        None => token_gone(caller, sender),
    }
}

/// The refusal of a wait whose token is valid no longer. To the server that forwarded the call, a 401 would say that its
/// own secret is wrong.
fn token_gone(caller: &Caller, sender: Sender) -> Refusal {
    if sender.is_server {
        AccessRefusal::CallerUnknown { caller: caller.name().to_owned() }.into()
    } else {
        ServerRefusal::TokenWrong.into()
    }
}

/// The refusal of a request without a token that opens the metrics.
fn no_token(head: &Parts) -> Refusal {
    let no = match shown_token(&head.headers) {
        Some(_) => ServerRefusal::TokenWrong,
        None => ServerRefusal::TokenMissing,
    };
    no.into()
}

/// An answer that holds its bytes in the budget until it is written.
fn hold(response: Response<Out>, mut held: HeldBytes) -> Result<Response<Out>, Stop> {
    held.set(response.body().bytes())?;
    Ok(response.map(|out| out.holding(held)))
}

/// Whether the path leads to the metrics.
fn is_metrics(found: &Found<'_>) -> bool {
    matches!(found, Found::Route(route, _) if matches!(route.does, Does::Metrics))
}

/// The refusal of a path that leads nowhere.
pub(super) fn nothing_at(head: &Parts) -> Stop {
    Stop::Refused(ServerRefusal::RouteNotFound { path: cut(head.uri.path()).into_owned() }.into())
}
