//! One request for a page: its caller, namespace and language, and its calls to the engine.

use std::sync::Arc;

use http::StatusCode;
use maud::Markup;
use tenure_core::access::Scope;
use tenure_core::bounds::LIST_DEFAULT;
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Change, Operation, Page};
use tenure_core::time::{Moment, Span};
use tenure_engine_api::{CallError, EngineExt, Fault};
use tenure_server::{GuardedEngine, Trail};

use crate::command::ShownCommand;
use crate::history::History;
use crate::language::Tongue;
use crate::pairs::{NamedValues, link};

/// A request for a page, and everything to draw one.
pub(crate) struct Visit {
    /// The engine as this visitor may use it.
    pub engine: Arc<GuardedEngine>,
    pub trail: Trail,
    /// The scope of the action at a path; `None`: there is no action.
    pub scope_of: fn(&str) -> Option<Scope>,
    pub history: Option<Arc<dyn History>>,
    pub namespace: Namespace,
    pub tongue: Tongue,
    /// The time of the engine.
    pub now: Moment,
    /// Whether the visitor has shown a token, and can log out.
    pub logged_in: bool,
    /// The path of the request, still encoded.
    pub path: String,
    /// The values of the names in the path, decoded, in their order.
    pub names: Vec<String>,
    pub query: NamedValues,
    /// Fields of a form; empty for a page.
    pub form: NamedValues,
}

/// The answer of a page.
pub(crate) enum Drawn {
    /// An answer with a body.
    Page(Box<Sheet>),
    /// A redirect: the action is done, or the page is elsewhere.
    Elsewhere(String),
}

/// A page without its frame.
pub(crate) struct Sheet {
    pub title: String,
    pub body: Markup,
    /// The page is drawn again when something changes. Not so a form that somebody fills in.
    pub is_live: bool,
}

impl Sheet {
    /// A page that follows changes.
    pub(crate) fn live(title: impl Into<String>, body: Markup) -> Result<Drawn, Unanswered> {
        let sheet = Sheet { title: title.into(), body, is_live: true };
        Ok(Drawn::Page(Box::new(sheet)))
    }

    /// A page that stays as it is, since somebody reads or writes in it.
    pub(crate) fn still(title: impl Into<String>, body: Markup) -> Result<Drawn, Unanswered> {
        let sheet = Sheet { title: title.into(), body, is_live: false };
        Ok(Drawn::Page(Box::new(sheet)))
    }
}

/// Why there is no page.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The engine or a reader of the API refuses.
    Refused(Refusal),
    /// The engine does not answer.
    Fault(Fault),
    /// No page has this path.
    NoPage,
}

impl From<Refusal> for Unanswered {
    fn from(no: Refusal) -> Self {
        Unanswered::Refused(no)
    }
}

impl From<CallError> for Unanswered {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(no) => Unanswered::Refused(no),
            CallError::Fault(fault) => Unanswered::Fault(fault),
        }
    }
}

impl Unanswered {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Unanswered::NoPage => StatusCode::NOT_FOUND,
            Unanswered::Fault(_) => StatusCode::SERVICE_UNAVAILABLE,
            Unanswered::Refused(no) => {
                StatusCode::from_u16(no.code.status()).unwrap_or(StatusCode::BAD_REQUEST)
            }
        }
    }

    /// Whether the thing does not exist: a page can do without it.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Unanswered::Refused(no) if no.code.status() == 404)
    }
}

impl Visit {
    /// Calls the engine, once.
    pub(crate) async fn ask<O: Operation>(&self, request: O) -> Result<O::Reply, Unanswered> {
        Ok(self.engine.run(&self.namespace, request).await?)
    }

    /// Sets a queue, a limit or a pool, whether it exists or not.
    pub(crate) async fn set<C: Change>(&self, change: C) -> Result<C::Reply, Unanswered> {
        Ok(self.engine.set(&self.namespace, change).await?)
    }

    /// The name of the token that began the session, for the visitor to see.
    pub(crate) fn caller(&self) -> &str {
        self.engine.caller().name()
    }

    /// Whether the visitor has this scope, so that a page shows a button.
    pub(crate) fn may(&self, scope: Scope) -> bool {
        self.engine.caller().grants().scopes().has(scope)
    }

    /// Whether the visitor may look at the trail of this server.
    pub(crate) fn may_see_trail(&self) -> bool {
        self.trail.is_readable() && self.may(Scope::Admin)
    }

    /// Whether the visitor has the scope of the action at this path.
    pub(crate) fn may_act(&self, path: &str) -> bool {
        (self.scope_of)(path).is_some_and(|scope| self.may(scope))
    }

    /// The page of a list that the visitor asks for.
    pub(crate) fn page(&self) -> Page {
        Page { max: LIST_DEFAULT, cursor: self.query.get("cursor").map(str::to_owned) }
    }

    /// The first name in the path.
    pub(crate) fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// The namespace for links.
    pub(crate) fn ns(&self) -> &str {
        ns_of(&self.namespace)
    }

    /// A link within this namespace.
    pub(crate) fn link(&self, path: &str) -> String {
        self.link_with(path, &[])
    }

    /// The same with a query.
    pub(crate) fn link_with(&self, path: &str, pairs: &[(&str, &str)]) -> String {
        let mut all = vec![("ns", self.ns())];
        all.extend_from_slice(pairs);
        link(path, &all)
    }

    /// The page of a thing of this name: `to("limits", name)`.
    pub(crate) fn to(&self, folder: &str, name: impl std::fmt::Display) -> String {
        self.link(&crate::pairs::path(&[folder, &name.to_string()]))
    }

    /// The jobs that a filter names.
    pub(crate) fn to_jobs(&self, filter: &str) -> String {
        self.link_with("/jobs", &[("q", filter)])
    }

    /// A command of the command line, in this namespace.
    pub(crate) fn command(&self, words: &[&str]) -> ShownCommand {
        ShownCommand::new(&self.namespace, words)
    }

    /// How long ago something was.
    pub(crate) fn since(&self, moment: Moment) -> Span {
        self.now.since(moment)
    }
}

/// A namespace for links, which leave out the main one.
fn ns_of(namespace: &Namespace) -> &str {
    if *namespace == Namespace::main() { "" } else { namespace.as_str() }
}

/// The overview of a namespace.
pub(crate) fn overview_of(namespace: &Namespace) -> String {
    link("/", &[("ns", ns_of(namespace))])
}
