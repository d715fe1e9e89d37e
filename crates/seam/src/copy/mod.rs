//! The seam of a copy: what a store does that is copied, and what one does that becomes the copy.
//!
//! No part of [`Engine`](crate::Engine): a copy goes from store to store, past the rules, while nobody
//! is served by either. [`run`] is the whole protocol; a store only keeps its marks and its pages. See
//! docs/decisions/018-copy.md.

mod run;

use std::future::Future;
use std::pin::Pin;

use tenure_core::copy::{CopiedPage, Cursor, Head, Item};
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;

pub use run::{CopyNews, CopyPlan, CopyReport, CopyWatch, Counts, copy, thaw_source, thaw_target};

use crate::fault::{CallError, Fault};

/// The future of one step.
pub type Step<'a, T> = Pin<Box<dyn Future<Output = Result<T, CopyError>> + Send + 'a>>;

/// Why a copy does not go on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CopyError {
    /// The answer is no: what is wrong, and what to do.
    #[error("{sentence}")]
    No {
        /// What is wrong.
        sentence: String,
        /// What to do next.
        hint: String,
    },
    /// A store cannot be used.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The disk of a store does not work.
    #[error("{0}")]
    Disk(String),
    /// Whoever watches it stopped it. It may be taken up again.
    #[error("the copy was stopped")]
    Stopped,
}

impl CopyError {
    /// A no.
    pub fn no(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        CopyError::No { sentence: sentence.into(), hint: hint.into() }
    }
}

impl From<Refusal> for CopyError {
    fn from(no: Refusal) -> Self {
        CopyError::No { sentence: no.detail, hint: no.hint }
    }
}
impl From<CallError> for CopyError {
    fn from(why: CallError) -> Self {
        match why {
            CallError::Refused(no) => no.into(),
            CallError::Fault(fault) => fault.into(),
        }
    }
}

/// What a source says of itself, in its own store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// The copy: a name that no other has. A source that is thawed and frozen again has another.
    pub copy: String,
    /// Where it goes, as it is shown.
    pub to: String,
    /// The copy is whole: it may be in use.
    pub whole: bool,
}

/// What a store is, to somebody who would copy to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// Nothing is there.
    Empty,
    /// An unfinished part of this copy.
    Part(String),
    /// All of this copy, opened; by now it may have changed.
    Whole(String),
    /// Something else.
    Other(String),
}

/// How far a namespace of a copy is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Begun {
    /// It is whole, and opened.
    pub whole: bool,
    /// How many pages are there.
    pub pages: u64,
    /// Where the next one begins; `None` at the begin, or at the end if there are pages.
    pub next: Option<Cursor>,
}

/// A store that is copied.
pub trait Source: Send + Sync {
    /// Its mark, if it is frozen for a copy. Refuses a store that is frozen for something else.
    fn marked(&self) -> Step<'_, Option<Mark>>;

    /// Freezes all that is there, or what of it is not frozen yet, and writes the mark: nothing is
    /// served from now on, whoever asks, until it is thawed.
    fn freeze<'a>(&'a self, mark: &'a Mark) -> Step<'a, ()>;

    /// Serves again. Nothing was granted meanwhile, and every live lease has a ttl of its own from now.
    fn thaw(&self) -> Step<'_, ()>;

    /// All namespaces.
    fn namespaces(&self) -> Step<'_, Vec<Namespace>>;

    /// Numbers of a namespace.
    fn head<'a>(&'a self, namespace: &'a Namespace) -> Step<'a, Head>;

    /// A page of a namespace. The same cursor brings the same page as long as it is frozen.
    fn page<'a>(&'a self, namespace: &'a Namespace, cursor: &'a Cursor) -> Step<'a, CopiedPage>;
}

/// A store that becomes a copy.
pub trait Target: Send + Sync {
    /// What is there.
    fn found(&self) -> Step<'_, Found>;

    /// Begins a namespace, or says how far it is. Refuses one that holds anything else.
    fn begin<'a>(
        &'a self,
        copy: &'a str,
        namespace: &'a Namespace,
        head: &'a Head,
    ) -> Step<'a, Begun>;

    /// Takes page number `page`, from 0 on, and remembers in the same step that it has it and where the
    /// next one begins. A page that is there already changes nothing.
    fn put<'a>(
        &'a self,
        copy: &'a str,
        namespace: &'a Namespace,
        page: u64,
        items: Vec<Item>,
        next: Option<Cursor>,
    ) -> Step<'a, ()>;

    /// The copy is whole: serves from now on. Repeating it does nothing.
    fn open<'a>(&'a self, copy: &'a str) -> Step<'a, ()>;

    /// Forgets an unfinished copy, so that the store is empty.
    fn give_up(&self) -> Step<'_, ()>;
}
