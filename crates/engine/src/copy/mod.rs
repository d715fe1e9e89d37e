//! Copies of whole stores: the two sides of a copy, and its protocol.
//!
//! A copy is a snapshot: all rows of the source at one entry, loaded into the target, where every lease ends as `released`.
//! It passes by the rules, while neither store serves anybody. See docs/decisions/018-copy.md.

mod fill;
mod folder;
mod run;

use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::time::{Moment, Span};
use tenure_engine_api::{CallError, Fault};
use tenure_journal::Snapshot;

pub use fill::{CopyCounts, Filled};
pub use folder::CopyFolder;
pub(crate) use folder::refuse_marked;
pub use run::{CopyPlan, CopyReport, copy, thaw_source, thaw_target};

use crate::seal::Seal;
use crate::sqlite::snapshot::RowsSnapshot;

/// Why a copy stops.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CopyError {
    #[error("{sentence}")]
    No { sentence: String, hint: String },
    /// A store cannot be used.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The disk of a store does not work.
    #[error("{0}")]
    Disk(String),
    /// Contents of the source are sealed with a key that is not here, or were changed. Nothing was copied.
    #[error("{0}")]
    Sealed(String),
    /// Its watcher stopped it. The same copy may begin again.
    #[error("the copy was stopped")]
    Stopped,
}

impl CopyError {
    pub fn no(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        CopyError::No { sentence: sentence.into(), hint: hint.into() }
    }

    /// `what` is followed by "is not here".
    pub(crate) fn sealed(what: &str) -> Self {
        CopyError::Sealed(format!("{what} is not here"))
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

/// The mark of a source, kept in its own store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// The copy: a name that no other has. A source that is thawed and frozen again has another.
    pub copy: String,
    /// The target, without a password.
    pub to: String,
    /// The copy is complete: it may be in use.
    pub whole: bool,
}

/// The state of a store before a copy goes to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    Empty,
    /// An unfinished copy of this name.
    Part(String),
    /// The finished copy of this name; by now it may have changed.
    Whole(String),
    Other(String),
}

/// All rows of a store, on their way into a target. They have no events: the target begins its own streams.
pub trait CopiedRows: Snapshot {
    /// Jobs in the parts that were read already.
    fn jobs_read(&self) -> u64;
}

/// All rows of a frozen source, or of a backup.
pub struct Frozen {
    rows: Box<dyn CopiedRows>,
    /// All jobs in the rows.
    jobs: u64,
    /// Empty for a backup, which does not list them.
    namespaces: Vec<Namespace>,
    /// From then on nothing was granted, by the clock of the source: each lease lives for one ttl from then at most.
    frozen_at: Moment,
    /// Until then somebody may hold what the source has forgotten; `None` if it has forgotten nothing.
    recovers_until: Option<Moment>,
    /// The store went on after the rows were read, so it has given fences that they do not have.
    went_on: bool,
    /// Opens the contents, and seals those of the target.
    seal: Seal,
}

impl Frozen {
    /// Rows of a store that nobody writes to.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub fn new(
        rows: RowsSnapshot,
        frozen_at: Moment,
        recovers_until: Option<Moment>,
    ) -> Result<Frozen, CopyError> {
        let (jobs, namespaces) = (rows.jobs()?, rows.namespaces()?);
        let rows = Box::new(rows.without_events());
        let (went_on, seal) = (false, Seal::none());
        Ok(Frozen { rows, jobs, namespaces, frozen_at, recovers_until, went_on, seal })
    }

    /// Rows of a backup with this number of jobs. `now`: the store that was backed up grants nothing from now on.
    pub(crate) fn of_backup(rows: impl CopiedRows + 'static, jobs: u64, now: Moment) -> Frozen {
        let (rows, namespaces) = (Box::new(rows), Vec::new());
        let (frozen_at, went_on, seal) = (now, true, Seal::none());
        Frozen { rows, jobs, namespaces, frozen_at, recovers_until: None, went_on, seal }
    }

    /// The same with these keys. Without any, a source with sealed contents is refused.
    pub(crate) fn sealed(self, seal: Seal) -> Frozen {
        Frozen { seal, ..self }
    }
}

/// A store that is copied. Calls block.
pub trait Source {
    /// Its mark, if it is frozen for a copy. Refuses a store that is an unfinished copy itself.
    fn marked(&self) -> Result<Option<Mark>, CopyError>;

    /// Freezes the store and writes the mark: nothing is served from now on until it is thawed.
    fn freeze(&self, mark: &Mark) -> Result<(), CopyError>;

    /// Serves again. Nothing was granted meanwhile, and every live lease has a ttl of its own from now.
    fn thaw(&self) -> Result<(), CopyError>;

    /// Now, by the clock of the store.
    fn now(&self) -> Moment;

    /// All rows of the frozen store.
    fn rows(&self) -> Result<Frozen, CopyError>;
}

/// A store that becomes a copy. Calls block.
pub trait Target {
    fn found(&self) -> Result<Found, CopyError>;

    /// Marks an empty store as this unfinished copy. `false`: it is this copy, finished. Refuses a store that holds
    /// anything else.
    fn claim(&self, copy: &str) -> Result<bool, CopyError>;

    /// Replaces everything in this unfinished copy by the rows of the source, and ends its leases.
    fn fill(
        &self,
        copy: &str,
        from: Frozen,
        watch: &mut dyn CopyWatch,
    ) -> Result<Filled, CopyError>;

    /// The copy is complete: it is served from now on. Repeating it does nothing.
    fn open(&self, copy: &str) -> Result<(), CopyError>;

    /// Empties an unfinished copy.
    fn give_up(&self) -> Result<(), CopyError>;
}

/// The steps of a copy that its watcher is notified of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CopyNews {
    /// The source is frozen.
    Paused {
        /// It was frozen by an earlier call of the same copy.
        again: bool,
    },
    /// Part of the rows is in the target.
    Moved {
        /// Jobs in the target so far.
        jobs: u64,
        /// Jobs of the source.
        of: u64,
    },
    /// The copy waits this long for leases of the source to expire.
    Waits(Span),
    /// A store cannot be reached, or did not answer: the copy is retried in a moment.
    Away(Fault),
}

/// Watches a copy, and waits for it.
pub trait CopyWatch: Send {
    /// An error stops the copy; the same copy may begin again.
    fn told(&mut self, news: &CopyNews) -> Result<(), CopyError>;
    /// Returns after this time.
    fn wait(&mut self, long: Span);
}
