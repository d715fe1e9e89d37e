//! What a doctor finds: how it stands with each thing that was looked at, and what to do about it.

use serde::Serialize;

/// How it stands with something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Well.
    Ok,
    /// Worth a look: a choice with a price, or what will be wrong one day.
    Look,
    /// To be changed.
    Wrong,
}

impl Severity {
    /// As it is written.
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
    /// The primary that it was seen on; `None`: of the whole.
    pub server: Option<String>,
    /// What was looked at; for programs, and never changed.
    pub check: &'static str,
    /// How it stands.
    pub level: Severity,
    /// What was found.
    pub found: String,
    /// What to change; `None` if it is well.
    pub fix: Option<String>,
}

/// How it stands, what was found, and what to change.
pub type RuleVerdict = (Severity, String, Option<String>);

/// It is well.
pub fn ok(found: impl Into<String>) -> RuleVerdict {
    (Severity::Ok, found.into(), None)
}
/// It is worth a look.
pub fn look(found: impl Into<String>, fix: impl Into<String>) -> RuleVerdict {
    (Severity::Look, found.into(), Some(fix.into()))
}
/// It is to be changed.
pub fn wrong(found: impl Into<String>, fix: impl Into<String>) -> RuleVerdict {
    (Severity::Wrong, found.into(), Some(fix.into()))
}

impl Finding {
    /// Of the whole, and not of one of several servers.
    pub fn of(check: &'static str, (level, found, fix): RuleVerdict) -> Self {
        Finding { server: None, check, level, found, fix }
    }
}
