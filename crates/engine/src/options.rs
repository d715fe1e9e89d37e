//! The options of an engine.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tenure_core::bounds::EVENTS_BYTES_DEFAULT;
use tenure_core::refusal::Refusal;
use tenure_core::time::Span;
use tenure_engine_api::{Clock, SystemClock};
use tenure_journal::{Appended, Journal};
use tenure_machine::Config;

use crate::seal::Seal;

/// The place of the rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Location {
    /// In a private folder that is deleted with the engine (or, if the process was killed, when the next
    /// such engine is opened); nothing waits for the disk.
    Memory,
    /// In this folder, made if it does not exist. It must be on a local file system.
    Folder(PathBuf),
}

/// The promise of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// An answered change survives a kill of the process, a crash of the system and a power loss: its
    /// batch was written and synced before.
    #[default]
    Always,
    /// An answered change survives a kill of the process at once, since its batch was written before;
    /// a crash of the system or a power loss takes at most the last second, because the disk is
    /// synced once a second. The store is never corrupt, only a second older.
    Everysec,
}

/// The reason why an engine stopped. Every later call is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fatal {
    /// The disk is full or does not work. The effect of the last calls is unknown.
    Disk(String),
    /// The folder, or a file in it, was removed, moved or replaced. Recent answered changes are in the
    /// files that this process had open, and in no folder if those were removed.
    Moved(String),
    /// The journal takes no more entries; this is its reply to the last append.
    Journal(LostJournal),
    /// The machine, or a thread that it waits for, hangs for an unknown reason.
    Hangs,
    /// A broken invariant; nothing of the step that broke it was written.
    Bug(String),
}

/// The reason why a journal takes no more entries of an engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LostJournal {
    /// Another process appends to it now.
    Fenced,
    /// It is not the journal that was opened, or its program was restarted.
    Moved,
    /// It has forgotten entries that it had taken.
    Forgot {
        /// The last entry that was taken.
        end: u64,
        /// The last entry that it has.
        has: u64,
    },
    /// It has no room.
    Full,
    /// The engine was closed before the journal could confirm the last entries.
    Unsure(String),
    /// It cannot be written any more.
    Broken(String),
}

impl LostJournal {
    /// Reads the outcome of an append; `None` if it is done. `end` is the last entry that the journal took before.
    pub(crate) fn of(appended: Appended, end: u64) -> Option<LostJournal> {
        match appended {
            Appended::Done => None,
            Appended::Fenced => Some(LostJournal::Fenced),
            Appended::Moved => Some(LostJournal::Moved),
            Appended::At(has) => Some(LostJournal::Forgot { end, has }),
            Appended::Unsure(why) => Some(LostJournal::Unsure(why)),
            Appended::Full => Some(LostJournal::Full),
            Appended::Broken(why) => Some(LostJournal::Broken(why)),
            Appended::Ended => Some(LostJournal::Unsure("it was closed".to_owned())),
        }
    }
}

impl fmt::Display for LostJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LostJournal::Fenced => f.write_str("another process owns the store now"),
            LostJournal::Moved => f.write_str("its journal is not the one that was opened"),
            LostJournal::Forgot { end, has } => {
                write!(f, "its journal ends at entry {has}, and had taken all up to {end}")
            }
            LostJournal::Full => f.write_str("there is no room for its journal"),
            LostJournal::Unsure(why) => {
                write!(f, "it was closed before its journal answered the last entries: {why}")
            }
            LostJournal::Broken(why) => f.write_str(why),
        }
    }
}

impl From<LostJournal> for Fatal {
    fn from(lost: LostJournal) -> Self {
        match lost {
            LostJournal::Broken(why) => Fatal::Disk(why),
            LostJournal::Fenced
            | LostJournal::Moved
            | LostJournal::Forgot { .. }
            | LostJournal::Full
            | LostJournal::Unsure(_) => Fatal::Journal(lost),
        }
    }
}

impl Fatal {
    /// The exit code that a process should end with.
    pub const fn exit_code(&self) -> i32 {
        match self {
            Fatal::Disk(_) | Fatal::Moved(_) | Fatal::Journal(_) | Fatal::Hangs => 74,
            Fatal::Bug(_) => 70,
        }
    }
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fatal::Disk(why) => write!(f, "the store cannot be written: {why}"),
            Fatal::Moved(seen) => write!(
                f,
                "{seen}; put the folder back where it was, or start again with what is there now"
            ),
            Fatal::Journal(lost) => write!(f, "the store is not served here any more: {lost}"),
            Fatal::Hangs => f.write_str(
                "the engine does not answer; see whether this machine has processor time, memory and a disk that writes",
            ),
            Fatal::Bug(why) => write!(f, "the engine stopped, this is a bug: {why}"),
        }
    }
}

/// Options of an engine; [`Options::new`] has the defaults.
#[derive(Clone)]
pub struct Options {
    /// The place of the rows.
    pub location: Location,
    /// The promise of an answer. With [`Location::Memory`] all ends with the process.
    pub durability: Durability,
    /// A journal that other processes may lead, too. The rows are brought up to it when the engine is opened, and
    /// answers wait for its appends, whatever `durability` says. With [`Location::Memory`] the rows are deleted with
    /// the engine; those in a folder may be used again. `None`: a folder has a journal of its own, in files, and memory
    /// has none.
    pub journal: Option<Arc<dyn Journal>>,
    /// The keys that seal contents in the rows and in the journal. All that open a store of sealed contents need them.
    /// [`Seal::none`]: contents stay clear.
    pub seal: Seal,
    /// Settings of the state machine: `patience`, `retain_bytes`.
    pub config: Config,
    /// Bytes of the newest events that each namespace keeps; 0: none. Where `max_bytes` is set, at most an eighth of
    /// it.
    pub events_bytes: u64,
    /// The clock that decides everything.
    pub clock: Arc<dyn Clock>,
    /// Called once when the engine had to stop, after all waiting callers were answered. The process
    /// should end with [`Fatal::exit_code`], and be restarted.
    pub on_fatal: Arc<dyn Fn(&Fatal) + Send + Sync>,
    /// Bytes of payloads that are kept in memory between a push and its first grant.
    pub body_bytes: usize,
    /// The most bytes of the folder; pushes are refused as `store_full` before that. `None`: as many
    /// as the file system has. Whatever the bound, settles, cancels and deletes are taken.
    pub max_bytes: Option<u64>,
    /// The refusal while there is no room where the journal is kept: of pushes, leases and PUTs, which make the store
    /// grow. It is asked by each such call, so it must be quick. Settles, extends, cancels and deletes are taken.
    pub no_room: Arc<dyn Fn() -> Option<Refusal> + Send + Sync>,
    /// Opens a store that has lost synced commits, or has unreadable rows, without
    /// them. Starts as `false`: such a store is refused.
    pub accept_loss: bool,
    /// Recent answered changes may be forgotten, and with them leases of at most this ttl: for this long after the
    /// opening no lease ends by time, and nothing is granted that needs a limit with a concurrency or a pool; events
    /// begin another life. `None`: nothing is forgotten. See [`Embedded::recover`](crate::Embedded::recover).
    pub recovers: Option<Span>,
    /// The most pages of 4 KiB in the store, which is full then; for tests. `None`: no bound.
    pub page_max: Option<u32>,
}

impl Options {
    /// The defaults for a location: durable always, the system's clock, no callback at the end.
    pub fn new(location: Location) -> Self {
        Options {
            location,
            durability: Durability::Always,
            journal: None,
            seal: Seal::none(),
            config: Config::default(),
            events_bytes: EVENTS_BYTES_DEFAULT,
            clock: Arc::new(SystemClock),
            on_fatal: Arc::new(|_| {}),
            body_bytes: 32 << 20,
            max_bytes: None,
            no_room: Arc::new(|| None),
            accept_loss: false,
            recovers: None,
            page_max: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("location", &self.location)
            .field("durability", &self.durability)
            .field("appends", &self.journal.is_some())
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
