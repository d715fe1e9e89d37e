//! State shared by the threads of one engine and its callers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;

use rusqlite::Connection;
use tenure_core::names::Namespace;
use tenure_engine_api::{CallError, Clock, Fault, LastLeap, StoreTimes};
use tenure_journal::StoreFacts;
use tenure_machine::{Config, Seq, TakerId};
use tokio::sync::oneshot;

use crate::batch::Answer;
use crate::bodies::Bodies;
use crate::data::KnownData;
use crate::hand_off::HandOff;
use crate::inbox::{Ask, Envelope, Inbox};
use crate::journal::confirming::Confirming;
use crate::options::{Durability, Fatal, Location, Options};
use crate::seal::Seal;
use crate::sqlite::capacity::Room;
use crate::sqlite::folder::{Files, Folder};
use crate::sqlite::read::ahead::{ReadAhead, RowsAhead};
use crate::sqlite::read::readers::{Haste, Readers};
use crate::sqlite::scan::damage::Damage;
use crate::sqlite::watch::{LookWhen, Watch};
use crate::sqlite::write::streams;
use crate::sqlite::write::written::Written;

/// Receives the answer of a call.
pub(crate) type Receiver = oneshot::Receiver<Result<Answer, CallError>>;

/// The keys of [`Shared::times`].
pub(crate) const COMMIT: &str = "commit";
pub(crate) const SYNC: &str = "sync";

/// Bytes of resources' data that are kept in memory.
const DATA_BYTES: usize = 16 << 20;

pub(crate) struct Shared {
    pub inbox: Inbox,
    pub hand_off: Arc<HandOff>,
    pub bodies: Bodies,
    pub data: KnownData,
    /// The keys of contents in the rows.
    pub seal: Seal,
    readers: Readers,
    pub room: Room,
    /// The unreadable parts of the store.
    pub damage: Arc<Damage>,
    pub clock: Arc<dyn Clock>,
    pub config: Config,
    /// Appends on their way, and the answers that wait for them.
    pub confirming: Confirming,
    /// Other processes may lead the store, too.
    pub is_shared: bool,
    /// The store ends with this process, and no append waits for anything.
    pub is_volatile: bool,
    /// No answer waits for a disk or another process, and there is a second processor: looking for the next call is
    /// cheaper than to sleep and be woken. See decision 179.
    pub answers_at_once: bool,
    /// The rule by which the files are checked after an append is done.
    pub look_when: LookWhen,
    /// Bytes of events that a namespace keeps; 0: none are kept.
    pub events_bytes: AtomicU64,
    /// The bound of the folder in the options.
    pub max_bytes: Option<u64>,
    /// The number of the last answered batch with rows. Every read must see it.
    pub answered: AtomicU64,
    /// Microseconds by which the clock is behind; 0 if it is not.
    pub behind_us: AtomicU64,
    /// The end of the recovery, in microseconds; 0 without one.
    pub recovers_until_us: AtomicU64,
    /// The longest ttl of any lease in the batches so far, in microseconds. Starts as 0; never falls.
    pub largest_ttl_us: AtomicU64,
    pub last_leap: LastLeap,
    /// The durations of commits and syncs.
    pub times: StoreTimes,
    pub draining: AtomicBool,
    takers: AtomicU64,
    fatal: OnceLock<Fatal>,
    on_fatal: Arc<dyn Fn(&Fatal) + Send + Sync>,
    pub files: Files,
    folder: Mutex<Option<Folder>>,
    watch: Option<Watch>,
    closed: Mutex<bool>,
    ended: Condvar,
}

impl Shared {
    pub(crate) fn new(
        options: &Options,
        folder: Folder,
        watch: Option<Watch>,
        bodies: Bodies,
        readers: Readers,
        damage: Arc<Damage>,
        confirming: Confirming,
    ) -> Self {
        let is_volatile = options.journal.is_none() && options.location == Location::Memory;
        Shared {
            inbox: Inbox::default(),
            hand_off: Arc::default(),
            bodies,
            data: KnownData::new(DATA_BYTES, options.seal.clone()),
            seal: options.seal.clone(),
            readers,
            room: Room::new(options),
            damage,
            clock: options.clock.clone(),
            config: options.config,
            confirming,
            is_shared: options.journal.is_some(),
            is_volatile,
            answers_at_once: (is_volatile
                || options.journal.is_none() && options.durability == Durability::Everysec)
                && thread::available_parallelism().is_ok_and(|count| count.get() > 1),
            look_when: match options.durability {
                // A look costs next to nothing beside a sync, so nothing is answered after its folder is
                // gone.
                Durability::Always => LookWhen::Now,
                Durability::Everysec => LookWhen::BeforeAnswer,
            },
            events_bytes: streams::bound(options.events_bytes, options.max_bytes).into(),
            max_bytes: options.max_bytes,
            answered: AtomicU64::new(0),
            behind_us: AtomicU64::new(0),
            recovers_until_us: AtomicU64::new(0),
            largest_ttl_us: AtomicU64::new(0),
            last_leap: LastLeap::default(),
            times: StoreTimes::default(),
            draining: AtomicBool::new(false),
            takers: AtomicU64::new(1),
            fatal: OnceLock::new(),
            on_fatal: options.on_fatal.clone(),
            files: folder.files(),
            folder: Mutex::new(Some(folder)),
            watch,
            closed: Mutex::new(false),
            ended: Condvar::new(),
        }
    }

    /// True if events are kept for readers.
    pub(crate) fn keeps_events(&self) -> bool {
        self.events_bytes.load(Ordering::Relaxed) > 0
    }

    /// Updates the caches with the changes of a batch that is now safe.
    pub(crate) fn follow(&self, written: Written) {
        written.put(&self.bodies, &self.data);
    }

    /// Reads rows as they are now for an answer, and waits until the answer may be sent.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, CallError> {
        let read = self.read_rows(Haste::Now, read).await?;
        self.read_may_be_answered().await.map(|()| read)
    }

    /// Reads rows that are at least as new as every earlier answer.
    pub(crate) async fn read_rows<T: Send + 'static>(
        &self,
        haste: Haste,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, CallError> {
        self.read_rows_of(self.answered.load(Ordering::Acquire), haste, read).await
    }

    /// Reads rows once the batches up to this one are written.
    pub(crate) async fn read_rows_of<T: Send + 'static>(
        &self,
        batch: u64,
        haste: Haste,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, CallError> {
        let hand_off = self.hand_off.clone();
        let read = move |conn: &Connection| {
            if hand_off.have_written(batch) { read(conn).map(Some) } else { Ok(None) }
        };
        self.readers.read(haste, read).await?.ok_or_else(|| self.gone())
    }

    /// Begins to read the rows of these jobs, without waiting for a batch.
    pub(crate) fn read_ahead(&self, namespace: &Namespace, seqs: Vec<Seq>) -> Option<ReadAhead> {
        let (namespace, seal) = (namespace.clone(), self.seal.clone());
        let read = move |conn: &Connection| RowsAhead::read(conn, (&namespace, &seal), &seqs);
        self.readers.begin(Haste::Now, read).map(ReadAhead)
    }

    /// Ends all reads; returns when the last one is over.
    pub(crate) fn close_readers(&self) {
        self.readers.close();
    }

    /// Waits until rows that were read may be sent: they are durable, and no other process led the store
    /// when they were read.
    pub(crate) async fn read_may_be_answered(&self) -> Result<(), CallError> {
        // The answer comes with a batch like any other, so after an append that begins from now on. The call may have
        // changed something before it read.
        let passed = self.ask(&Namespace::main(), Ask::Pass).await;
        passed.map(drop).map_err(CallError::after_a_part)
    }

    /// True if the journal has taken the rows of all commits up to this one.
    pub(crate) fn journal_has(&self, commit: u64) -> bool {
        self.confirming.has_taken(commit)
    }

    /// A new number for a call that may wait.
    pub(crate) fn next_taker(&self) -> TakerId {
        TakerId::new(self.takers.fetch_add(1, Ordering::Relaxed))
    }

    /// Asks the state, and waits until its answer is durable.
    pub(crate) async fn ask(&self, namespace: &Namespace, ask: Ask) -> Result<Answer, CallError> {
        self.send(namespace, ask)?.await.unwrap_or_else(|_| Err(self.gone()))
    }

    /// Asks the state; the answer comes through the receiver.
    pub(crate) fn send(&self, namespace: &Namespace, ask: Ask) -> Result<Receiver, CallError> {
        let (reply, receiver) = oneshot::channel();
        let call = Envelope { namespace: namespace.clone(), ask, reply: Some(reply) };
        match self.inbox.put(call) {
            Ok(()) => Ok(receiver),
            Err(_) => Err(self.unavailable()),
        }
    }

    /// Sends the state a request without an answer. An engine that ends does not need it.
    pub(crate) fn tell(&self, namespace: &Namespace, ask: Ask) {
        let _ = self.inbox.put(Envelope { namespace: namespace.clone(), ask, reply: None });
    }

    /// The error of a call without an answer: the thread that had it is gone.
    pub(crate) fn gone(&self) -> CallError {
        let why = match self.fatal() {
            Some(fatal) => fatal.to_string(),
            None => "the store was closed before it answered".to_owned(),
        };
        Fault::Unknown(why).into()
    }

    /// The error of a call that did nothing: the engine takes no more.
    pub(crate) fn unavailable(&self) -> CallError {
        let why = match self.fatal() {
            Some(fatal) => fatal.to_string(),
            None => "the store is closed".to_owned(),
        };
        Fault::Unavailable(why).into()
    }

    pub(crate) fn fatal(&self) -> Option<&Fatal> {
        self.fatal.get()
    }

    /// Checks that the open files are still those of the folder; if not, the engine must stop, and the answers of this
    /// moment must be refused before.
    pub(crate) fn look(&self, when: LookWhen) -> Result<(), Fatal> {
        match &self.watch {
            Some(watch) => watch.look(when).map_err(Fatal::Moved),
            None => Ok(()),
        }
    }

    /// Stops the engine. The first reason counts.
    pub(crate) fn stop_for(&self, fatal: Fatal) {
        if self.fatal.set(fatal).is_ok() {
            self.inbox.poke();
            if let Some(fatal) = self.fatal() {
                (self.on_fatal)(fatal);
            }
        }
    }

    /// The kind of the store and its bytes: those of the journal if it is shared, otherwise those of the folder.
    pub(crate) fn facts(&self) -> StoreFacts {
        if self.is_shared {
            return self.confirming.facts();
        }
        let folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        StoreFacts { kind: "embedded", bytes: folder.as_ref().map_or(0, Folder::bytes) }
    }

    /// Calls `does` with the folder; `None` after its release.
    pub(crate) fn with_folder<T>(&self, does: impl FnOnce(&Folder) -> T) -> Option<T> {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(does)
    }

    /// Releases the folder; its threads have ended.
    pub(crate) fn release_folder(&self) {
        drop(self.folder.lock().unwrap_or_else(PoisonError::into_inner).take());
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ended.notify_all();
    }

    /// Returns when the folder is released.
    pub(crate) fn wait_until_released(&self) {
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        while !*closed {
            closed = self.ended.wait(closed).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
