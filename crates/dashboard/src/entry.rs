//! Leads a request to its page: files, the login, the check of the caller, the table of pages, the headers.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    LOCATION, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use maud::Markup;
use tenure_core::access::Scope;
use tenure_core::bounds::FORM_BYTES_MAX;
use tenure_core::decode;
use tenure_core::names::Namespace;
use tenure_core::percent::decoded;
use tenure_core::requests::{GetStats, ReadEvents};
use tenure_core::time::Moment;
use tenure_engine_api::{Clock, MovedTime, SystemClock};
use tenure_server::{
    CallRecord, Caller, Drains, ForwardingEngine, OverTls, PageBody, PageFuture, Pages,
    SessionChange, Tokens, Trail,
};

use crate::assets;
use crate::history::History;
use crate::language::Tongue;
use crate::layout;
use crate::live::LiveTabs;
use crate::pages::{self, Section};
use crate::pairs::NamedValues;
use crate::session::{Door, is_own_form};
use crate::show::without_turns;
use crate::visit::{Drawn, Sheet, Unanswered, Visit, overview_of};

/// Only scripts, styles and pictures from this server, no page around this one, no form to another site.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
);
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const FOR_GOOD: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// The pages of one server.
#[derive(Clone)]
pub struct Dashboard(Arc<Inner>);

struct Inner {
    engine: ForwardingEngine,
    door: Door,
    moved: Option<Arc<dyn MovedTime>>,
    history: Option<Arc<dyn History>>,
    trail: Trail,
    live: LiveTabs,
}

impl fmt::Debug for Dashboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dashboard").field("door", &self.0.door).finish_non_exhaustive()
    }
}

impl Dashboard {
    /// Pages over the engine of a server. `tokens`: callers that show one may see the pages; without tokens every
    /// caller may, and the server then answers loopback names alone. `moved`: the time of the engine, if a test moves
    /// it. `history`: the source of the pictures on the overview and on queues; `None`: no pictures. `trail`: its lines
    /// have a page, if they can be read.
    pub fn new(
        engine: ForwardingEngine,
        tokens: Tokens,
        moved: Option<Arc<dyn MovedTime>>,
        history: Option<Arc<dyn History>>,
        trail: Trail,
    ) -> Self {
        let (door, live) = (Door::new(tokens), LiveTabs::default());
        Dashboard(Arc::new(Inner { engine, door, moved, history, trail, live }))
    }
}

/// More than a form with a token and a path needs.
const LOGIN_BYTES_MAX: usize = 4 * 1024;

impl Pages for Dashboard {
    fn has(&self, path: &str) -> bool {
        matches!(path, "/login" | "/logout" | "/live")
            || assets::at(path).is_some()
            || pages::find(path).is_some()
    }

    fn admits(&self, head: &Parts) -> Option<Arc<Caller>> {
        self.0.door.lets_in(&head.headers, self.0.now())
    }

    fn body_bytes_max(&self, head: &Parts) -> usize {
        match (head.uri.path(), self.admits(head).is_some()) {
            ("/login", _) => LOGIN_BYTES_MAX,
            (_, true) => FORM_BYTES_MAX,
            (_, false) => 0,
        }
    }

    fn answer(&self, request: Request<Bytes>, drains: Drains) -> PageFuture {
        let inner = self.0.clone();
        Box::pin(async move {
            let mut response = inner.answered(request, drains).await;
            secure(response.headers_mut());
            response
        })
    }
}

/// Sets the headers that every answer has.
fn secure(headers: &mut HeaderMap) {
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    headers.insert(opener, HeaderValue::from_static("same-origin"));
    headers.entry(CACHE_CONTROL).or_insert(NO_STORE);
}

impl Inner {
    fn now(&self) -> Moment {
        self.moved.as_ref().map_or_else(|| SystemClock.now(), |moved| moved.now())
    }

    async fn answered(
        self: &Arc<Self>,
        request: Request<Bytes>,
        drains: Drains,
    ) -> Response<PageBody> {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let tongue = Tongue::of(&head.headers);
        let reads = head.method == Method::GET || head.method == Method::HEAD;
        if let (true, Some(file)) = (reads, assets::at(path)) {
            let mut response = Response::new(PageBody::Static(file.content.as_bytes()));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(file.media));
            response.headers_mut().insert(CACHE_CONTROL, FOR_GOOD);
            return response;
        }
        let posts = head.method == Method::POST;
        let Some(form) = form(&head.headers, &body) else {
            return bare(StatusCode::BAD_REQUEST);
        };
        let Some(query) = NamedValues::read(head.uri.query().unwrap_or_default()) else {
            return bare(StatusCode::BAD_REQUEST);
        };
        if !reads && !posts {
            return bare(StatusCode::METHOD_NOT_ALLOWED);
        }
        let is_foreign = posts && !is_own_form(&head.headers);
        match path {
            "/login" if posts && !is_foreign => return self.login(&head, tongue, &form),
            "/login" if reads => return html(StatusCode::OK, layout::login(tongue, "/", false)),
            _ => {}
        }
        // Past this line only a caller with a token learns anything, even which pages exist.
        let Some(caller) = self.door.lets_in(&head.headers, self.now()) else {
            let to = head.uri.path_and_query().map_or("/", |to| to.as_str());
            let to = if posts { "/" } else { to };
            return html(StatusCode::UNAUTHORIZED, layout::login(tongue, to, false));
        };
        let namespace = decode::namespace_header(query.get("ns"));
        let record = head.extensions.get::<CallRecord>().cloned().unwrap_or_default();
        let mut visit = Visit {
            engine: self.engine.on_behalf_of(caller, record),
            trail: self.trail.clone(),
            scope_of: pages::scope_of,
            history: self.history.clone(),
            namespace: namespace.clone().unwrap_or_else(|_| Namespace::main()),
            tongue,
            now: self.now(),
            logged_in: self.door.is_locked(),
            path: path.to_owned(),
            names: Vec::new(),
            query,
            form,
        };
        if is_foreign {
            let sheet = layout::foreign_form(&visit);
            return self.drawn(&visit, Section::Overview, StatusCode::FORBIDDEN, &sheet).await;
        }
        if let Err(no) = namespace {
            return self.stopped(&visit, Section::Overview, no.into()).await;
        }
        let grants = visit.engine.caller().grants();
        let may_see = grants.may(Scope::View, "the pages");
        if let (Err(no), true) =
            (may_see.and_then(|()| grants.may_enter(&visit.namespace)), path != "/logout")
        {
            return self.stopped(&visit, Section::Overview, no.into()).await;
        }
        match path {
            "/logout" if posts => {
                let mut response = moved("/login");
                set_cookie(&mut response, &Door::ends(&head.headers, is_over_tls(&head)));
                let caller = visit.engine.caller().clone();
                response.extensions_mut().insert(SessionChange::Ended(caller));
                return response;
            }
            "/live" if reads => return self.live(visit, head.headers, drains),
            _ => {}
        }
        let Some((page, names)) = pages::find(path) else {
            return self.stopped(&visit, Section::Overview, Unanswered::NoPage).await;
        };
        let names: Result<Vec<_>, _> =
            names.iter().map(|name| decoded(name).map(|name| name.into_owned())).collect();
        let Ok(names) = names else { return bare(StatusCode::BAD_REQUEST) };
        visit.names = names;
        // The question before an action is for those who may act.
        if let Some((spec, _)) = page.posted.filter(|_| posts || page.asks_first())
            && let Err(no) = visit.engine.caller().grants().may_call(spec)
        {
            return self.stopped(&visit, page.section, no.into()).await;
        }
        let draw = if posts { page.posted.map(|(_, draw)| draw) } else { page.shown };
        let Some(draw) = draw else { return bare(StatusCode::METHOD_NOT_ALLOWED) };
        let begin = Instant::now();
        match draw(&visit).await {
            Ok(Drawn::Page(sheet)) => {
                let drawn = self.drawn(&visit, page.section, StatusCode::OK, &sheet).await;
                if sheet.is_live {
                    self.live.drew(begin.elapsed());
                }
                drawn
            }
            Ok(Drawn::Elsewhere(to)) => moved(&to),
            Err(stop) => self.stopped(&visit, page.section, stop).await,
        }
    }

    /// A stream for one tab. All tabs of a namespace share a watcher, which tells no more than that something happened,
    /// so that each tab is checked here, now and as long as it lasts.
    fn live(
        self: &Arc<Self>,
        visit: Visit,
        headers: HeaderMap,
        drains: Drains,
    ) -> Response<PageBody> {
        let namespace = visit.namespace.clone();
        let may_follow = move |caller: &Caller| {
            caller.grants().permit(&namespace, &ReadEvents::default().into()).is_ok()
        };
        if !may_follow(visit.engine.caller()) {
            return bare(StatusCode::FORBIDDEN);
        }
        let inner = self.clone();
        let ends = move || {
            let caller = inner.door.lets_in(&headers, inner.now());
            drains.is_draining() || !caller.is_some_and(|caller| may_follow(&caller))
        };
        let stream = self.live.stream(Arc::new(self.engine.clone()), visit.namespace, ends);
        stream.unwrap_or_else(|| bare(StatusCode::SERVICE_UNAVAILABLE))
    }

    fn login(&self, head: &Parts, tongue: Tongue, form: &NamedValues) -> Response<PageBody> {
        // Only a path of this server, whatever the form contains.
        let to = form.get("to").filter(|to| is_own_path(to)).unwrap_or("/");
        let token = form.get("token").unwrap_or_default().trim();
        let (is_secure, now) = (is_over_tls(head), self.now());
        let begun = self.door.opens(token).and_then(|caller| {
            let cookie = self.door.begins(&caller, &head.headers, is_secure, now)?;
            Some((caller, cookie))
        });
        let Some((caller, cookie)) = begun else {
            let mut response = html(StatusCode::UNAUTHORIZED, layout::login(tongue, to, true));
            response.extensions_mut().insert(SessionChange::Refused);
            return response;
        };
        // The main namespace may be closed to the token.
        let home = caller.grants().home().filter(|_| to == "/");
        let mut response = match home {
            Some(home) => moved(&overview_of(&home)),
            None => moved(to),
        };
        set_cookie(&mut response, &cookie);
        response.extensions_mut().insert(SessionChange::Begun(caller));
        response
    }

    async fn stopped(&self, visit: &Visit, here: Section, stop: Unanswered) -> Response<PageBody> {
        let sheet = layout::stopped(visit, &stop);
        self.drawn(visit, here, stop.status(), &sheet).await
    }

    async fn drawn(
        &self,
        visit: &Visit,
        here: Section,
        status: StatusCode,
        sheet: &Sheet,
    ) -> Response<PageBody> {
        // A page is drawn without its totals, too.
        let stats = visit.ask(GetStats).await.ok();
        html(status, layout::page(visit, here, sheet, stats.as_ref()))
    }
}

/// The fields of a form; `None` if the body is no form.
fn form(headers: &HeaderMap, body: &[u8]) -> Option<NamedValues> {
    if body.is_empty() {
        return Some(NamedValues::default());
    }
    let media = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let essence = media.split(|c| *c == b';').next().unwrap_or_default().trim_ascii();
    if !essence.eq_ignore_ascii_case(FORM) {
        return None;
    }
    NamedValues::read(std::str::from_utf8(body).ok()?)
}

/// Whether a browser came by TLS: to this server, or to a proxy in front that says so. A browser that forges the header
/// only loses its own cookie.
fn is_over_tls(head: &Parts) -> bool {
    head.extensions.get::<OverTls>().is_some()
        || head.headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "https")
}

fn is_own_path(to: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() && c != '\\';
    to.starts_with('/') && !to.starts_with("//") && to.chars().all(plain)
}

fn html(status: StatusCode, markup: Markup) -> Response<PageBody> {
    let page = without_turns(markup.into_string());
    let mut response = Response::new(PageBody::Whole(page.into_bytes()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HTML);
    response
}

fn bare(status: StatusCode) -> Response<PageBody> {
    let text = status.canonical_reason().unwrap_or_default();
    let mut response = Response::new(PageBody::Whole(text.as_bytes().to_vec()));
    *response.status_mut() = status;
    let media = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, media);
    response
}

fn moved(to: &str) -> Response<PageBody> {
    let mut response = bare(StatusCode::SEE_OTHER);
    let to = HeaderValue::from_str(to).unwrap_or_else(|_| HeaderValue::from_static("/"));
    response.headers_mut().insert(LOCATION, to);
    response
}

fn set_cookie(response: &mut Response<PageBody>, cookie: &str) {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_to_a_path_of_this_server_alone() {
        for (to, may) in [
            ("/", true),
            ("/jobs?q=state:failed&ns=a", true),
            ("//evil.example", false),
            ("/\\evil.example", false),
            ("https://evil.example", false),
            ("jobs", false),
            ("/a\r\nb", false),
            ("", false),
        ] {
            assert_eq!(is_own_path(to), may, "{to:?}");
        }
    }

    #[test]
    fn a_form_is_of_its_one_type() {
        let of = |media: &str, body: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, media.parse().unwrap());
            form(&headers, body.as_bytes()).is_some()
        };
        assert!(of("application/x-www-form-urlencoded; charset=utf-8", "a=1"));
        assert!(of("text/plain", ""));
        for media in ["text/plain", "multipart/form-data", "application/json"] {
            assert!(!of(media, "a=1"), "{media}");
        }
    }
}
