//! The table of all routes. It drives the router and the OpenAPI document alike, so that the two
//! cannot differ: each route is answered and documented, and no other path is.
//!
//! The route of an operation comes from the table of operations, and its answers from the type of its reply. A route
//! decides nothing.

pub(crate) mod events;
pub(crate) mod me;
pub(crate) mod previews;
pub(crate) mod push_lines;
pub(crate) mod sync_lines;
pub(crate) mod system;
pub(crate) mod test_clock;
mod trail;

use std::borrow::Cow;
use std::sync::OnceLock;

use hyper::Method;
use tenure_core::access::Scope;
use tenure_core::decode::{BodySpec, ParameterSpec};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{self, HttpMethod, Operation, Request, Spec};
use tenure_core::trail::target_in_path;

use crate::answer::{Answers, Respond};
use crate::budget::Rank;
use crate::target;

/// A request for the engine.
#[derive(Debug)]
pub(crate) struct Call {
    pub request: Request,
    /// The request sent one object where an array was possible, so the answer is one object.
    pub one: bool,
    /// The line numbers of items that came on lines of their own.
    pub lines: Option<Vec<usize>>,
}

impl<R: Into<Request>> From<R> for Call {
    fn from(request: R) -> Self {
        Call { request: request.into(), one: false, lines: None }
    }
}

/// The action of a route.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Does {
    /// Calls the engine with this operation.
    Ask(&'static Spec),
    /// Says that the process is alive.
    Health,
    /// Says that the server is ready for calls, or why not.
    Ready,
    /// Says its version and commit.
    Version,
    /// Says who the caller is, and what it may do.
    Me,
    Metrics,
    /// Sends a backup of the whole store.
    Backup,
    /// Shows lines of the trail of this server.
    Trail,
    /// Shows the OpenAPI document.
    Document,
    /// Shows the moments of a timing, which needs no engine.
    Preview,
    /// Shows the time of a server with a test clock.
    ShowTime,
    /// Advances the test clock.
    AdvanceTime,
}

/// What a caller must have to use a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Nothing, not even a token.
    Open,
    /// Any token: the answer has nothing of a namespace.
    AnyToken,
    /// This scope, in no namespace.
    Server(Scope),
    /// This scope, in the namespace of the request.
    Namespace(Scope),
    /// The right to see every namespace with all its secrets.
    WholeStore,
}

/// The item on each line of a body in NDJSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LineItem {
    Job,
    Resource,
    Schedule,
}

#[derive(Debug)]
pub(crate) struct Route {
    pub method: HttpMethod,
    /// The path, with names in braces.
    pub path: &'static str,
    /// The operation, by the name that it has in every layer.
    pub name: &'static str,
    /// One sentence, for the OpenAPI document.
    pub summary: &'static str,
    /// The parameters of its query; `None`: it has no query.
    pub query: Option<fn() -> Vec<ParameterSpec>>,
    pub body: BodySpec,
    /// The body may be NDJSON with this item on each line.
    pub lines: Option<LineItem>,
    /// The body may be one object in place of an array, and is then answered by one object.
    pub may_be_one: bool,
    pub answers: Answers,
    pub does: Does,
    /// The part of the budget that its calls may use.
    pub rank: Rank,
}

/// Adds what the routes of a few operations have beside the rest.
macro_rules! with_more {
    (Push $route:expr) => {
        $route.lines_of(LineItem::Job).may_be_one()
    };
    (AddResources $route:expr) => {
        $route.may_be_one()
    };
    (SyncResources $route:expr) => {
        $route.lines_of(LineItem::Resource)
    };
    (SyncSchedules $route:expr) => {
        $route.lines_of(LineItem::Schedule)
    };
    (Extend $route:expr) => {
        $route.vital()
    };
    (Settle $route:expr) => {
        $route.vital()
    };
    ($request:ident $route:expr) => {
        $route
    };
}
macro_rules! routes {
    ($($request:ident)*) => {
        /// The routes of all operations, in the order of their table.
        static OF_OPERATIONS: &[Route] = &[$(with_more!($request Route::of(
            &<requests::$request as Operation>::SPEC,
            <<requests::$request as Operation>::Reply as Respond>::ANSWERS,
        ))),*];
    };
}
tenure_core::each_operation!(routes);

impl Route {
    /// The route of an operation, from its row and from the answers that its reply may become.
    const fn of(spec: &'static Spec, answers: Answers) -> Self {
        // A patch makes nothing new.
        let answers = match spec.method {
            HttpMethod::Patch => answers.split_at(1).0,
            HttpMethod::Get | HttpMethod::Post | HttpMethod::Put | HttpMethod::Delete => answers,
        };
        let Spec { method, path, name, summary, .. } = *spec;
        let own = Route::own(method, path, name, summary, Does::Ask(spec), answers);
        Route { query: spec.query, body: spec.body, ..own }
    }
    /// A route of the server itself, without a query and a body.
    const fn own(
        method: HttpMethod,
        path: &'static str,
        name: &'static str,
        summary: &'static str,
        does: Does,
        answers: Answers,
    ) -> Self {
        Route {
            method,
            path,
            name,
            summary,
            query: None,
            body: BodySpec::Nothing,
            lines: None,
            may_be_one: false,
            answers,
            does,
            rank: Rank::Ordinary,
        }
    }
    const fn body(mut self, schema: &'static str) -> Self {
        self.body = BodySpec::Required(schema);
        self
    }
    const fn lines_of(mut self, item: LineItem) -> Self {
        self.lines = Some(item);
        self
    }
    const fn may_be_one(mut self) -> Self {
        self.may_be_one = true;
        self
    }
    /// Marks calls that keep leases alive or end them: they come first when memory is short.
    const fn vital(mut self) -> Self {
        self.rank = Rank::Vital;
        self
    }

    /// The names in its path, in their order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(name_of)
    }

    /// What its callers need.
    pub(crate) fn access(&self) -> Access {
        match self.does {
            Does::Ask(spec) => Access::Namespace(spec.scope),
            Does::Health | Does::Ready => Access::Open,
            Does::Version | Does::Me | Does::Document | Does::Preview | Does::ShowTime => {
                Access::AnyToken
            }
            Does::Metrics => Access::Server(Scope::Metrics),
            Does::AdvanceTime | Does::Trail => Access::Server(Scope::Admin),
            Does::Backup => Access::WholeStore,
        }
    }

    /// Whether this body is one object where an array was possible.
    pub(crate) fn is_one(&self, body: &[u8]) -> bool {
        self.may_be_one && !body.trim_ascii_start().starts_with(b"[")
    }

    /// Whether a caller without a token gets an answer.
    pub(crate) fn is_open(&self) -> bool {
        self.access() == Access::Open
    }
}

/// The name inside `{name}`.
fn name_of(part: &'static str) -> Option<&'static str> {
    part.strip_prefix('{')?.strip_suffix('}')
}

/// All routes: those of the operations, and those of the server itself.
pub(crate) fn all() -> impl Iterator<Item = &'static Route> {
    [OF_OPERATIONS, me::ROUTES, previews::ROUTES, system::ROUTES, trail::ROUTES]
        .into_iter()
        .flatten()
}

/// The name of each route, by which requests are counted.
pub fn names_of_all() -> impl Iterator<Item = &'static str> {
    all().map(|route| route.name)
}

/// A part of a route's path.
enum Part {
    Is(&'static str),
    Named(&'static str),
}

struct Pattern {
    route: &'static Route,
    parts: Vec<Part>,
}

impl Pattern {
    /// The value of each name, still encoded.
    fn matches<'p>(&self, path: &[&'p str], names: &mut Vec<(&'static str, &'p str)>) -> bool {
        names.clear();
        self.parts.len() == path.len()
            && self.parts.iter().zip(path).all(|(part, text)| match part {
                Part::Is(is) => is == text,
                Part::Named(name) => {
                    names.push((name, text));
                    !text.is_empty()
                }
            })
    }
}

fn pattern(route: &'static Route) -> Pattern {
    let part = |part| name_of(part).map_or(Part::Is(part), Part::Named);
    Pattern { route, parts: route.path.split('/').skip(1).map(part).collect() }
}

fn patterns() -> &'static [Pattern] {
    static PATTERNS: OnceLock<Vec<Pattern>> = OnceLock::new();
    PATTERNS.get_or_init(|| {
        let mut found: Vec<Pattern> = all().map(pattern).collect();
        // A fixed part is meant before a name that it would also be.
        found.sort_by_key(|pattern| pattern.route.names().count());
        found
    })
}

/// Routes of a server with a test clock, beside the others.
fn patterns_of_tests() -> &'static [Pattern] {
    static PATTERNS: OnceLock<Vec<Pattern>> = OnceLock::new();
    PATTERNS.get_or_init(|| test_clock::ROUTES.iter().map(pattern).collect())
}

/// The result of a look-up.
pub(crate) enum Found<'p> {
    /// A route, with the values of its names.
    Route(&'static Route, Vec<(&'static str, &'p str)>),
    /// A path with other methods.
    Methods(String),
    /// No route has this path.
    Nothing,
}

/// Looks a request up; `tests`: also among the routes of a test clock.
pub(crate) fn find<'p>(method: &Method, path: &'p str, tests: bool) -> Found<'p> {
    let Some(path) = path.strip_prefix('/') else { return Found::Nothing };
    let parts: Vec<&str> = path.split('/').collect();
    let mut names = Vec::new();
    let mut methods: Vec<&str> = Vec::new();
    let of_tests = if tests { patterns_of_tests() } else { &[] };
    // HEAD is answered as GET; hyper leaves the body out.
    let wanted = if *method == Method::HEAD { "GET" } else { method.as_str() };
    for pattern in patterns().iter().chain(of_tests) {
        if pattern.matches(&parts, &mut names) {
            let here = pattern.route.method.as_str();
            if here == wanted {
                return Found::Route(pattern.route, names);
            }
            if !methods.contains(&here) {
                methods.push(here);
                methods.extend((here == "GET").then_some("HEAD"));
            }
        }
    }
    match methods.as_slice() {
        [] => Found::Nothing,
        methods => Found::Methods(methods.join(", ")),
    }
}

/// The thing that the path of a refused call names, for its line in the trail.
pub(crate) fn named_thing(method: &Method, path: &str) -> Option<String> {
    let Found::Route(route, found) = find(method, path, false) else { return None };
    target_in_path(route.path, &names(&found).ok()?)
}

/// Decodes the values of the names of a path.
pub(crate) fn names<'p>(found: &[(&'static str, &'p str)]) -> Result<Vec<Cow<'p, str>>, Refusal> {
    found.iter().map(|(name, text)| target::part(text, name)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn name(method: &Method, path: &str) -> Option<&'static str> {
        match find(method, path, false) {
            Found::Route(route, _) => Some(route.name),
            _ => None,
        }
    }

    #[test]
    fn a_fixed_path_is_found_before_one_with_a_name() {
        for (method, path, is) in [
            (Method::POST, "/v1/jobs", Some("push")),
            (Method::POST, "/v1/jobs/cancel", Some("cancel_jobs")),
            (Method::GET, "/v1/jobs/cancel", Some("get_job")),
            (Method::POST, "/v1/jobs/x/cancel", Some("cancel_job")),
            (Method::GET, "/v1/jobs/x/parents", Some("list_parents")),
            (Method::POST, "/v1/flows/a%2Fb/cancel", Some("cancel_flow")),
            (Method::POST, "/v1/leases/extend", Some("extend")),
            (Method::DELETE, "/v1/leases/extend", Some("force_lease")),
            (Method::GET, "/v1/pools/p/resources/a%2Fb", Some("get_resource")),
            (Method::GET, "/v1/pools/p/resources/a/b", None),
            (Method::GET, "/v1/jobs/", None),
            (Method::GET, "//v1/jobs", None),
            (Method::GET, "/", None),
            (Method::POST, "/v1/jobs/x", None),
            (Method::HEAD, "/v1/jobs/x", Some("get_job")),
            (Method::HEAD, "/healthz", Some("healthz")),
            (Method::HEAD, "/v1/leases/extend", None),
        ] {
            assert_eq!(name(&method, path), is, "{method} {path}");
        }
        assert!(
            matches!(find(&Method::POST, "/v1/jobs/x", false), Found::Methods(m) if m == "GET, HEAD, PATCH, DELETE")
        );
        assert!(matches!(find(&Method::PUT, "/v1/jobs/cancel", false), Found::Methods(_)));
    }

    #[test]
    fn the_clock_is_found_on_a_server_for_tests_alone() {
        for tests in [true, false] {
            let found = find(&Method::POST, "/v1/test/clock", tests);
            assert_eq!(matches!(found, Found::Route(..)), tests);
            assert_eq!(
                matches!(find(&Method::PUT, "/v1/test/clock", tests), Found::Nothing),
                !tests
            );
        }
    }

    #[test]
    fn every_route_has_a_name_and_good_answers_of_its_own() {
        let mut seen = HashSet::new();
        for route in all() {
            assert!(seen.insert(route.name), "{} stands twice", route.name);
            assert!(!route.answers.is_empty(), "{} answers nothing", route.name);
            assert!(!route.summary.is_empty() && !route.summary.ends_with('.'), "{}", route.name);
        }
    }
}
