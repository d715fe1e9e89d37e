//! Refusals: a refused call is an answer, not an error. It has a stable code, the problem, and the next step.
//!
//! A refused call changed nothing. A failure on the way (a disk, a network) is another type, `tenure_engine_api::Fault`. The
//! sentences are elsewhere: a refusal is made from a case of [`sentences`](crate::sentences), so that each sentence is
//! written once, for every engine.

mod code;
mod problem;

use std::fmt;

pub use code::Code;
pub use problem::Problem;

/// A refused call: the problem, its place, and the next step.
///
/// Only two things make one: a case of [`sentences`](crate::sentences), and [`Refusal::heard`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// Programs compare it; it never changes its meaning.
    pub code: Code,
    /// The problem of this very call: lower case, names quoted.
    pub detail: String,
    /// The next step, in a sentence.
    pub hint: String,
    /// A pointer into the body (RFC 6901), or `/query/NAME`, `/header/NAME`, `/path/NAME`.
    pub pointer: Option<String>,
    /// Number of the item in an array, from 0.
    pub index: Option<usize>,
    /// Number of the line in an NDJSON body, from 1.
    pub line: Option<usize>,
    /// Id of the job that is in the way (`unique_conflict`).
    pub job: Option<String>,
    /// Name of the caller's token, if that has used up its `calls` or `in_flight` (`line_full`): the caller alone waits,
    /// as long as `retry_after_s` says. `None` for every other refusal.
    pub caller: Option<String>,
    /// Seconds after which a repeat may succeed; `None` if time alone changes nothing.
    pub retry_after_s: Option<u64>,
}

impl Refusal {
    /// Called only by the table of sentences.
    pub(crate) fn made(code: Code, detail: String, hint: String) -> Self {
        Refusal {
            code,
            detail,
            hint,
            pointer: None,
            index: None,
            line: None,
            job: None,
            caller: None,
            retry_after_s: None,
        }
    }
    /// A refusal that another process made and sent as text: a server over HTTP. Nothing else may use it, because a
    /// sentence of our own is a case of [`sentences`](crate::sentences).
    pub fn heard(code: Code, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Refusal::made(code, detail.into(), hint.into())
    }
    /// Sets its place in the request.
    pub fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }
    /// Names its field or parameter, `label`, in front of the sentence.
    pub(crate) fn about(mut self, label: impl fmt::Display) -> Self {
        self.detail = format!("{label}: {}", self.detail);
        self
    }
    /// Prefixes its place: an array does so with the refusal of an item.
    pub fn below(mut self, prefix: &str) -> Self {
        let tail = self.pointer.unwrap_or_default();
        self.pointer = Some(format!("{prefix}{tail}"));
        self
    }
    /// Sets its item in an array.
    pub fn item(mut self, index: usize) -> Self {
        self.index = Some(index);
        self
    }
    /// Removes its item, for a call whose body is no array.
    pub fn without_item(mut self) -> Self {
        self.index = None;
        self
    }
    /// Sets its line in an NDJSON body, from 1.
    pub fn on_line(mut self, number: usize) -> Self {
        self.line = Some(number);
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)?;
        if let Some(pointer) = &self.pointer {
            write!(f, " (at \"{pointer}\")")?;
        }
        Ok(())
    }
}
impl std::error::Error for Refusal {}
