//! Findings of a doctor: the state of each thing that was examined, and what to do about it.

use serde::Serialize;

/// The state of an examined thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is to be changed.
    Ok,
    /// Worth a look: a choice with a price, or something that will be wrong one day.
    Look,
    /// Something must be changed.
    Wrong,
}

impl Severity {
    /// The word in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Ok => "ok",
            Severity::Look => "look",
            Severity::Wrong => "wrong",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// The primary that it was seen on; `None` if it is about the whole.
    pub server: Option<String>,
    /// The name of the check, for programs; it never changes.
    pub check: &'static str,
    pub level: Severity,
    /// The observation, in words.
    pub found: String,
    /// What to change; `None` if it is well.
    pub fix: Option<String>,
}

/// The severity, the observation, and what to change.
pub type RuleVerdict = (Severity, String, Option<String>);

/// A verdict: all is well.
pub fn ok(found: impl Into<String>) -> RuleVerdict {
    (Severity::Ok, found.into(), None)
}
/// A verdict: worth a look.
pub fn look(found: impl Into<String>, fix: impl Into<String>) -> RuleVerdict {
    (Severity::Look, found.into(), Some(fix.into()))
}
/// A verdict: to be changed.
pub fn wrong(found: impl Into<String>, fix: impl Into<String>) -> RuleVerdict {
    (Severity::Wrong, found.into(), Some(fix.into()))
}

impl Finding {
    /// A finding about the whole, and not about one of several servers.
    pub fn of(check: &'static str, (level, found, fix): RuleVerdict) -> Self {
        Finding { server: None, check, level, found, fix }
    }
}

/// An examined thing with its findings.
pub struct Examined {
    /// A word for it.
    pub what: &'static str,
    /// Its address, without a password.
    pub store: String,
    /// If it is more than one server: the name of each, as findings have it.
    pub servers: Vec<String>,
    pub findings: Vec<Finding>,
}
