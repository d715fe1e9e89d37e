//! The trail: one line for each change and refusal, with its caller. Lines never contain a payload, a result, an error,
//! data of a resource or a token.
//!
//! Here are the form of a line and the parts of a request that a line has. The server writes and reads the files.

mod subject;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use subject::TrailSubject;

use crate::access::Scope;
use crate::bounds::TRAIL_TARGET_BYTES_MAX;
use crate::names::Namespace;
use crate::refusal::Code;
use crate::requests::{OPERATIONS, Page};
use crate::time::Moment;
use crate::view;
use crate::words;

/// The most targets that a line lists. `targets_count` has the number of all.
pub const TRAIL_TARGETS_MAX: usize = 10;

/// The code of a line whose caller left before the answer.
pub const UNANSWERED: &str = "unanswered";

/// Whether a call that needs this scope has a line of its own. All others are counted.
pub const fn has_own_line(scope: Scope) -> bool {
    match scope {
        Scope::Operate | Scope::Admin => true,
        Scope::Metrics | Scope::View | Scope::Read | Scope::Push | Scope::Work => false,
    }
}

/// The thing that a path names, as a line shows it: the names of `/v1/pools/{name}/resources/{id}` are the target
/// `pool:NAME/ID`. `None`: there are none, or they are too long for a target.
///
/// A refused call needs it: the names in its path are known, and its body was not read.
pub fn target_in_path<N: AsRef<str>>(path: &str, names: &[N]) -> Option<String> {
    let kind = path.split('/').nth(2)?.strip_suffix('s')?;
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let target = format!("{kind}:{}", names.join("/"));
    (!names.is_empty() && target.len() <= TRAIL_TARGET_BYTES_MAX).then_some(target)
}

crate::schemas!(TrailVia = view::words(&TrailVia::ALL.map(TrailVia::as_str)));

words! {
    /// The way on which a call came to the server that wrote its line.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TrailVia {
        /// A call of the HTTP API.
        Api = "api",
        /// A page of the dashboard.
        Page = "page",
        /// Another server of the same store, which has checked the caller.
        Server = "server",
        /// A command that opened the folder of the store itself, without a server. The caller is a user of its machine.
        Command = "command",
    }
}

view! {
    /// One line. Fields that do not apply are absent. A file that does not start with a line that `begins` it has lost its
    /// beginning.
    #[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
    #[serde(default)]
    pub struct TrailLine {
        /// The number of the line, from 0.
        pub seq: u64,
        /// When the line was written.
        pub at: Moment,
        /// The address of the server that wrote it, or offline.
        pub server: String,
        /// The name of the token, or anyone; absent for an unknown caller and the server's own lines.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub caller: Option<String>,
        /// The IP address from which the call came.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub peer: Option<String>,
        /// How the call came: api, page, server if another one forwarded it, or command for one without a server.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub via: Option<TrailVia>,
        /// The name of the operation, or of what the server did.
        pub op: String,
        /// The namespace of the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub namespace: Option<String>,
        /// What the call names, as kind:name; at most 10.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub targets: Vec<String>,
        /// The number of all targets, if there are more than 10.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub targets_count: Option<u64>,
        /// Changed settings by name, each with old, new or both; contents are •••.
        #[serde(skip_serializing_if = "Map::is_empty")]
        pub changed: Map<String, Value>,
        /// 200 if it was done, otherwise the HTTP status of the refusal; absent if the caller left.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub status: Option<u16>,
        /// The code of the refusal, or unanswered.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub code: Option<String>,
        /// How many calls the line stands for, or how many jobs a bulk call changed.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub count: Option<u64>,
        /// The X-Request-Id of the call, or the trace id of its traceparent.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub request_id: Option<String>,
        /// More about a line of the server itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub detail: Option<String>,
        /// The name of the file that the line begins; absent in other lines.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub begins: Option<String>,
        /// SHA-256 of the line before, in hex.
        pub prev: String,
    }
}

impl TrailLine {
    /// A line about this operation, with nothing else yet.
    pub fn of(op: &str) -> Self {
        TrailLine { op: op.to_owned(), ..TrailLine::default() }
    }

    /// Adds targets, as many as a line lists, and their number.
    #[must_use]
    pub fn about(mut self, targets: impl IntoIterator<Item = String>) -> Self {
        let mut count = 0;
        for target in targets {
            if count < TRAIL_TARGETS_MAX {
                self.targets.push(target);
            }
            count += 1;
        }
        self.targets_count = (count > TRAIL_TARGETS_MAX).then_some(count as u64);
        self
    }

    /// Whether it is the line of a call that changed something, or may have changed it: not a lease, a refusal, or a
    /// line of the server itself.
    pub fn is_change(&self) -> bool {
        let is_done = self.status == Some(200);
        let may_be_done = |code: &str| code == UNANSWERED || code == Code::OutcomeUnknown.as_str();
        let mut operations = OPERATIONS.iter().filter(|spec| has_own_line(spec.scope));
        (is_done || self.code.as_deref().is_some_and(may_be_done))
            && operations.any(|spec| spec.name == self.op)
    }

    /// Whether it names this target. A pool stands for its resources, too.
    pub fn is_about(&self, target: &str) -> bool {
        let is_resource = |rest: &str| rest.starts_with('/') && target.starts_with("pool:");
        self.targets.iter().any(|one| {
            one.strip_prefix(target).is_some_and(|rest| rest.is_empty() || is_resource(rest))
        })
    }

    /// Adds a detail.
    #[must_use]
    pub fn saying(self, detail: impl Into<String>) -> Self {
        TrailLine { detail: Some(detail.into()), ..self }
    }
}

/// Reads lines, newest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReadTrail {
    /// Only lines of this moment or later.
    pub since: Option<Moment>,
    /// Only lines of this caller.
    pub caller: Option<String>,
    /// Only lines of this operation; a `*` at its end stands for any rest.
    pub op: Option<String>,
    /// Only lines that name this target, as `kind:name`.
    pub target: Option<String>,
    /// Only lines of this namespace.
    pub namespace: Option<Namespace>,
    pub page: Page,
}

impl ReadTrail {
    /// Whether a line matches. Its moment is not looked at: a reader stops at the first line that is too old.
    pub fn matches(&self, line: &TrailLine) -> bool {
        let is_op = |wanted: &String| match wanted.strip_suffix('*') {
            Some(beginning) => line.op.starts_with(beginning),
            None => line.op == *wanted,
        };
        let is_namespace = |wanted: &Namespace| line.namespace.as_deref() == Some(wanted.as_str());
        self.caller.as_ref().is_none_or(|wanted| line.caller.as_ref() == Some(wanted))
            && self.op.as_ref().is_none_or(is_op)
            && self.target.as_ref().is_none_or(|wanted| line.is_about(wanted))
            && self.namespace.as_ref().is_none_or(is_namespace)
    }
}
