//! "No" is an answer, not an error: a refused call, with a stable code, what is wrong and what to do next.
//!
//! A refused call changed nothing. What went wrong on the way (a disk, a network) is another type,
//! `tenure_seam::Fault`. The sentences are not here: a refusal is made from a case of
//! [`sentences`](crate::sentences), so that each sentence is written once, for every engine.

mod code;
mod problem;

use std::fmt;

pub use code::Code;
pub use problem::Problem;

/// A refused call: what is wrong, where, and what to do next.
///
/// Only two things make one: a case of [`sentences`](crate::sentences), and [`Refusal::heard`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// For programs.
    pub code: Code,
    /// What is wrong with this very call: lower case, names quoted.
    pub detail: String,
    /// What to do next.
    pub hint: String,
    /// Where in the body (RFC 6901), or `/query/NAME`, `/header/NAME`, `/path/NAME`.
    pub pointer: Option<String>,
    /// Which item of an array.
    pub index: Option<usize>,
    /// Which line of an NDJSON body, from 1.
    pub line: Option<usize>,
    /// The job that is in the way (`unique_conflict`).
    pub job: Option<String>,
    /// After how many seconds a repeat may go through.
    pub retry_after_s: Option<u64>,
}

impl Refusal {
    /// Only the table of sentences calls it.
    pub(crate) fn made(code: Code, detail: String, hint: String) -> Self {
        Refusal {
            code,
            detail,
            hint,
            pointer: None,
            index: None,
            line: None,
            job: None,
            retry_after_s: None,
        }
    }
    /// A refusal that another process made and told as text: a server over HTTP. Nothing else may use it, because a
    /// sentence of our own is a case of [`sentences`](crate::sentences).
    pub fn heard(code: Code, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Refusal::made(code, detail.into(), hint.into())
    }
    /// The same, at this place of the request.
    pub fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }
    /// The same, of the field or parameter that sentences call `label`.
    pub(crate) fn about(mut self, label: impl fmt::Display) -> Self {
        self.detail = format!("{label}: {}", self.detail);
        self
    }
    /// The same, below `prefix`: what an array adds to its item's refusal.
    pub fn below(mut self, prefix: &str) -> Self {
        let tail = self.pointer.unwrap_or_default();
        self.pointer = Some(format!("{prefix}{tail}"));
        self
    }
    /// The same, in this item of an array.
    pub fn item(mut self, index: usize) -> Self {
        self.index = Some(index);
        self
    }
    /// The same, of the call as a whole: what was sent is no array.
    pub fn without_item(mut self) -> Self {
        self.index = None;
        self
    }
    /// The same, on this line of an NDJSON body, from 1.
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
