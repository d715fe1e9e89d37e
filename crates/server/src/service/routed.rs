//! The steps from the head of a request to the answer of its route, in order. Each may end the request.

use std::borrow::Cow;

use hyper::http::request::Parts;
use hyper::{Method, Response};
use tenure_core::decode;
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Effect, Lease, Operation, Spec};
use tenure_core::sentences::ServerRefusal;
use tenure_core::time::Span;
use tenure_engine_api::{Clock, SystemClock};

use super::{Service, Stop, StoreCall, cut};
use crate::answer;
use crate::backups;
use crate::body::{self, Media, Reading};
use crate::budget::{HeldBytes, Rank};
use crate::deps::MetricsDoor;
use crate::forward;
use crate::gate;
use crate::leadership::ServingLeader;
use crate::openapi;
use crate::out::Out;
use crate::pages;
use crate::peers;
use crate::problem;
use crate::routes::system::{ALIVE, Ready, VERSION};
use crate::routes::test_clock::StandingAt;
use crate::routes::{self, Asked, Does, Found, Read, Route, Takes};
use crate::target;
use crate::tokens::{Tokens, shown_token};
use crate::traffic::Turn;

/// The caller of a request, before its token is checked.
struct Caller<'s> {
    /// Another server of the store, which has shown the secret of the servers.
    is_server: bool,
    /// The route answers callers without a token.
    is_open: bool,
    /// The tokens that are valid here.
    tokens: &'s Tokens,
}

/// A request that may be answered by this route.
struct Admitted<'r> {
    route: &'static Route,
    /// The parts of the path that the route names.
    names: Vec<Cow<'r, str>>,
    query: Vec<(Cow<'r, str>, Cow<'r, str>)>,
    namespace: Namespace,
    body: bytes::Bytes,
    /// True if the body comes in lines, which the call reads.
    in_lines: bool,
    held: HeldBytes,
}

impl Service {
    /// `name` becomes the name of the route.
    pub(super) async fn routed(
        &self,
        head: &Parts,
        reading: &mut Option<Reading>,
        turn: &Turn,
        name: &mut &'static str,
    ) -> Result<Response<Out>, Stop> {
        let found = self.find(head, name)?;
        let caller = self.identify(head, &found, turn)?;
        if caller.is_server && peers::is_theirs(head.uri.path()) {
            return self.answer_peer(head, reading).await;
        }
        self.check_origin(head, &caller)?;
        if let (Found::Nothing, Some(pages)) = (&found, &self.deps.pages)
            && pages::is_for_page(head, pages.as_ref())
        {
            return self.page(pages.as_ref(), head, reading, turn).await;
        }
        self.check_token(head, &found, &caller, turn)?;
        body::codings(&head.headers)?;
        let (route, names) = the_route(found, head)?;
        self.keep_if_vital(route, turn);
        let admitted = self.read(head, reading, route, &names).await?;
        self.answer_route(head, reading, turn, &caller, admitted).await
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

    fn identify(&self, head: &Parts, found: &Found<'_>, turn: &Turn) -> Result<Caller<'_>, Stop> {
        let is_open = matches!(found, Found::Route(route, _) if route.is_open());
        // On a port of its own, a token for the metrics protects them also where the server has none.
        let tokens = match self.own_port() {
            Some(door) if !self.deps.tokens.are_asked_for() => &door.tokens,
            Some(_) | None => &self.deps.tokens,
        };
        let forwarding = self.forwarding();
        let mark = forwarding.as_ref().map(|forwarding| &forwarding.mark);
        let waits =
            mark.is_none() && !matches!(self.deps.leadership.now(), ServingLeader::Local { .. });
        let former = || self.forwarding.former();
        let is_server = forward::is_from_server(&head.headers, mark, former, waits)?;
        if is_server {
            turn.is_of_a_caller();
        }
        Ok(Caller { is_server, is_open, tokens })
    }

    fn check_origin(&self, head: &Parts, caller: &Caller<'_>) -> Result<(), Stop> {
        let any_host = caller.is_open || caller.is_server || caller.tokens.are_asked_for();
        Ok(gate::origin(&head.headers, head.uri.authority(), any_host, self.here)?)
    }

    fn check_token(
        &self,
        head: &Parts,
        found: &Found<'_>,
        caller: &Caller<'_>,
        turn: &Turn,
    ) -> Result<(), Stop> {
        if caller.is_open {
            return Ok(());
        }
        if !caller.is_server {
            gate::token(&head.headers, caller.tokens)
                .or_else(|no| self.may_read_metrics(found, head).then_some(()).ok_or(no))?;
        }
        turn.is_of_a_caller();
        Ok(())
    }

    /// Whether the request is for the metrics and shows a token that is only for them.
    fn may_read_metrics(&self, found: &Found<'_>, head: &Parts) -> bool {
        let own = self.deps.metrics.as_ref().map(|door| &door.tokens);
        let own = own.filter(|own| is_metrics(found) && own.are_asked_for());
        own.is_some_and(|own| gate::token(&head.headers, own).is_ok())
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
        route: &'static Route,
        names: &[(&'static str, &'r str)],
    ) -> Result<Admitted<'r>, Stop> {
        let namespace = decode::namespace_header(gate::namespace(&head.headers)?)?;
        let query = target::query(head.uri.query())?;
        if route.query.is_none() {
            decode::no_query(&query)?;
        }
        let names = routes::names(names)?;
        let mut held = self.budget.take(0, route.rank)?;
        let in_lines = route.takes.lines() && body::media(&head.headers) == Media::Lines;
        let body = match reading {
            Some(reading) if !in_lines && !reading.is_empty() => {
                self.body(route, head, reading, &mut held).await?
            }
            Some(_) | None => bytes::Bytes::new(),
        };
        if route.takes == Takes::Nothing {
            decode::no_body(&body)?;
        }
        Ok(Admitted { route, names, query, namespace, body, in_lines, held })
    }

    async fn answer_route(
        &self,
        head: &Parts,
        reading: &mut Option<Reading>,
        turn: &Turn,
        caller: &Caller<'_>,
        admitted: Admitted<'_>,
    ) -> Result<Response<Out>, Stop> {
        match admitted.route.does {
            Does::Ask(spec, read) => {
                self.answer_call(head, reading, turn, caller, (spec, read), admitted).await
            }
            Does::Health => Ok(answer::json(200, &ALIVE)),
            Does::Ready => {
                let is_refused = self.forwarding.is_refused();
                let has_token = || gate::token(&head.headers, caller.tokens).is_ok();
                let is_stranger = !caller.is_server && !has_token();
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
                let now = moved.advance(span).await.map_err(problem::of_error)?;
                Ok(answer::json(200, &StandingAt { now }))
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
                let ends = caller.tokens.removed_of(&head.headers);
                Ok(backups::answer(makes.clone(), &self.backups, ends).await?)
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
        caller: &Caller<'_>,
        (spec, read): (&'static Spec, Read),
        admitted: Admitted<'_>,
    ) -> Result<Response<Out>, Stop> {
        let Admitted { route, names, query, namespace, body, in_lines, held } = admitted;
        let asked = Asked { names: &names, query: &query, body: &[] };
        let waited = if caller.is_server { forward::waited(&head.headers) } else { Span::ZERO };
        let call = StoreCall { route, spec, read, asked, head, namespace, body, waited };
        let lines = if in_lines { reading } else { &mut None };
        let is_alone = self.forwarding().is_none();
        let answered = async {
            match self.deps.leadership.now() {
                ServingLeader::Local { engine, .. } if is_alone => {
                    self.here(&engine, &call, lines, held, turn).await
                }
                _ => self.forwarded(&call, lines, held, turn, caller.is_server).await,
            }
        };
        let is_wait = spec.effect == Some(Effect::Reads) || spec.name == Lease::NAME;
        match shown_token(&head.headers).filter(|_| is_wait && !caller.is_server) {
            // A wait ends with the token that began it: a caller that lost its token is granted nothing more.
            Some(shown) => tokio::select! {
                biased;
                answer = answered => answer,
                () = caller.tokens.removed(shown) => {
                    Err(Refusal::from(ServerRefusal::TokenWrong).into())
                }
            },
            None => answered.await,
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
