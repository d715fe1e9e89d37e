//! The engine itself: opens, answers calls, drains and closes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tenure_core::access::TokenName;
use tenure_core::bounds::SECOND_US;
use tenure_core::gauge::Reading;
use tenure_core::names::Namespace;
use tenure_core::requests::Request;
use tenure_core::sentences::{clock_behind, recovers};
use tenure_core::time::{Moment, Span};
use tenure_engine_api::{
    CallError, CallFuture, Engine, Fault, GaugeFeed, Health, ReadingFuture, StoreWork, TestClock,
};
use tenure_journal::file::FileJournal;
use tenure_journal::{Journal, VolatileJournal};
use tenure_machine::{Command, Config, parse_lease_id};

use crate::backup::BackupWriter;
use crate::batch::Answer;
use crate::bodies::Bodies;
use crate::calls::call;
use crate::copy::{CopyError, refuse_marked};
use crate::error::OpenError;
use crate::inbox::Ask;
use crate::journal::confirm;
use crate::journal::confirming::Confirming;
use crate::journal::folder::{self, LeftBehind};
use crate::journal::load::{Loading, load};
use crate::journal::replica::Replica;
use crate::options::{Durability, Fatal, Location, Options};
use crate::shared::{COMMIT, SYNC, Shared};
use crate::sqlite::capacity::reserve::Reserve;
use crate::sqlite::folder::Folder;
use crate::sqlite::read::overlay::Overlay;
use crate::sqlite::read::readers::Readers;
use crate::sqlite::scan::damage::Damage;
use crate::sqlite::scan::start::{self, Recovery, Start};
use crate::sqlite::schema;
use crate::sqlite::seal_rows;
use crate::sqlite::snapshot::RowsSnapshot;
use crate::sqlite::snapshot::restored;
use crate::sqlite::write::disk::{self, DiskEnded};
use crate::sqlite::write::streams;
use crate::sqlite::write::upkeep::Upkeep;
use crate::state::{Ended, StateThread};

/// Threads that read for answers. They mostly find the rows in memory.
const READERS: usize = 2;

/// An engine over a folder. Dropping it closes it.
///
/// Calls may be made from any thread and any executor. See [`Options`] for what is promised.
pub struct Embedded {
    pub(crate) shared: Arc<Shared>,
    recovery: Recovery,
    threads: Mutex<Option<Threads>>,
}

struct Threads {
    state: JoinHandle<()>,
    disk: JoinHandle<Option<DiskEnded>>,
    /// Retries appends with an unknown outcome.
    confirm: JoinHandle<()>,
    file_journal: Option<Arc<FileJournal>>,
}

impl Embedded {
    /// Opens the store, made if it is not there, and starts to answer. It reads the whole index of
    /// jobs, which takes 2 to 3 seconds for a million and blocks its thread for that long.
    pub fn open(options: Options) -> Result<Embedded, OpenError> {
        let folder = Folder::open(&options.location)?;
        let conn = open_writer(&folder, &options)?;
        refuse_marked(&conn, &folder)?;
        let bodies = Bodies::new(options.body_bytes);
        Embedded::over(folder, conn, bodies, options)
    }

    /// Opens an engine over rows that followed the journal of these options, and reads only the entries that they lack.
    /// The location of the options must be the one that the rows were opened with. If the rows are refused, those in
    /// memory are gone.
    pub fn open_over(rows: Replica, options: Options) -> Result<Embedded, OpenError> {
        let (folder, conn, bodies) = rows.into_parts();
        Embedded::over(folder, conn, bodies, options)
    }

    fn over(
        folder: Folder,
        conn: Connection,
        bodies: Bodies,
        options: Options,
    ) -> Result<Embedded, OpenError> {
        // Before a journal changes the rows: a store that does not open here stays as it is.
        seal_rows::refuse_others(&conn, &folder, &options.seal)?;
        let events_bytes = streams::bound(options.events_bytes, options.max_bytes);
        let mut numbers = start::numbers(&conn, &folder)?;
        let mut left = None;
        restored::refuse_half(&conn, &folder, &options)?;
        match (&options.journal, &options.location) {
            (Some(journal), _) => {
                let (conn, folder, bodies) = (&conn, &folder, &bodies);
                let loading = Loading { conn, folder, events_bytes, bodies, numbers };
                numbers = load(loading, &**journal)?;
            }
            (None, Location::Folder(_)) => {
                let (conn, folder, bodies) = (&conn, &folder, &bodies);
                let accept_loss = options.accept_loss;
                let behind = LeftBehind { conn, folder, events_bytes, accept_loss, bodies };
                numbers = left.insert(behind.catch_up(numbers)?).numbers;
            }
            (None, Location::Memory) => {}
        }
        let now = options.clock.now();
        // The journal may have brought it.
        seal_rows::refuse_others(&conn, &folder, &options.seal)?;
        let reader =
            || schema::open_reader(&folder).map_err(|why| schema::store_error(&folder, why));
        let damage = Arc::new(Damage::default());
        let mut overlay = Overlay::new(reader()?, options.seal.clone(), damage.clone());
        let start = Start {
            conn: &conn,
            folder: &folder,
            seal: &options.seal,
            numbers,
            config: options.config,
            accept_loss: options.accept_loss && options.journal.is_none(),
            is_copy: options.journal.is_some(),
            forget_clock: false,
            now,
        };
        let (machine, recovery) = start.restore(&mut overlay, &damage)?;
        // A damaged one may have been dropped.
        let missing_row = seal_rows::missing_row(&conn, &options.seal);
        let missing_row = missing_row.map_err(|why| schema::store_error(&folder, why))?;
        // A shared journal keeps all events that it took, even if these rows are lost.
        let (durability, may_lack) = match options.journal {
            Some(_) => (Durability::Always, false),
            None => (options.durability, options.accept_loss),
        };
        let lost = left.map(|left| left.recovers(&conn, machine.largest_ttl(), now)).transpose();
        let lost = lost.map_err(|why| schema::store_error(&folder, why))?.flatten();
        let recovers = options.recovers.max(lost);
        let ends = streams::open(&conn, events_bytes, durability, may_lack, now);
        let ends = ends.map_err(|why| schema::store_error(&folder, why))?;
        schema::may_move_log(&conn).map_err(|why| schema::store_error(&folder, why))?;
        let (journal, checkpoints): (Arc<dyn Journal>, _) = match &options.journal {
            Some(journal) => (journal.clone(), None),
            None if options.location == Location::Memory => (Arc::new(VolatileJournal), None),
            None => {
                let checkpoints = folder::begin(&folder, &options, numbers)?;
                (checkpoints.journal.clone(), Some(checkpoints))
            }
        };
        let file_journal = checkpoints.as_ref().map(|checkpoints| checkpoints.journal.clone());
        let watch = folder.watch()?;
        let readers: Vec<_> = (0..READERS).map(|_| reader()).collect::<Result<_, _>>()?;
        let system = |why: std::io::Error| OpenError::System(why.to_string());
        let readers = Readers::start(readers).map_err(system)?;
        let confirming = Confirming::new(journal, numbers.position());
        let shared = Shared::new(&options, folder, watch, bodies, readers, damage, confirming);
        let shared = Arc::new(shared);
        shared.largest_ttl_us.store(machine.largest_ttl().us(), Ordering::Relaxed);
        let wake = Arc::downgrade(&shared);
        shared.clock.on_move(Arc::new(move || {
            if let Some(shared) = wake.upgrade() {
                shared.inbox.poke();
            }
        }));
        Upkeep::new(&conn, &shared.files).begin(&shared.room);
        let confirm = {
            let shared = shared.clone();
            spawn("tenure-confirm", move || {
                let confirms = AssertUnwindSafe(|| confirm::run(&shared));
                if let Err(panic) = catch_unwind(confirms) {
                    shared.stop_for(Fatal::Bug(words(&*panic)));
                }
            })
        };
        let disk = {
            let shared = shared.clone();
            spawn("tenure-disk", move || {
                let writes = AssertUnwindSafe(|| disk::run(&shared, conn, numbers, checkpoints));
                let ended = catch_unwind(writes);
                let told = |panic: Box<dyn std::any::Any + Send>| {
                    shared.hand_off.crash();
                    shared.confirming.stop(&shared, Fatal::Bug(words(&*panic)));
                };
                ended.map_err(told).ok()
            })
        };
        let disk = disk.map_err(system)?;
        let state = {
            let shared = shared.clone();
            let mut state = StateThread::new(shared.clone(), machine, overlay, ends, missing_row);
            if let Some(span) = recovers {
                state.recover(span);
            }
            spawn("tenure-state", move || {
                let runs = AssertUnwindSafe(|| state.run());
                let ended = catch_unwind(runs).unwrap_or_else(|panic| {
                    shared.inbox.close();
                    shared.stop_for(Fatal::Bug(words(&*panic)));
                    Ended::Closed
                });
                // Callers of requests that are still in the state or the inbox see that the engine is gone.
                drop(state);
                shared.inbox.clear();
                match ended {
                    Ended::Closed => shared.hand_off.close(),
                    Ended::Crashed => shared.hand_off.crash(),
                }
            })
        };
        let confirm = confirm.map_err(system)?;
        let threads = Threads { state: state.map_err(system)?, disk, confirm, file_journal };
        Ok(Embedded { shared, recovery, threads: Mutex::new(Some(threads)) })
    }

    /// Begins a snapshot of all rows as they are on disk now; all answered changes are in them. With a journal they may
    /// be ahead of it: the append of the snapshot's last entry may still be on its way. The engine goes on meanwhile.
    /// Blocks until the rows are written.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub fn snapshot(&self) -> Result<RowsSnapshot, OpenError> {
        let answered = self.shared.answered.load(Ordering::Acquire);
        if !self.shared.hand_off.have_written(answered) {
            return Err(OpenError::Closed);
        }
        self.shared.with_folder(RowsSnapshot::begin).unwrap_or(Err(OpenError::Closed))
    }

    /// Begins a backup of the store as it is now, by [`snapshot`](Embedded::snapshot).
    ///
    /// # Errors
    /// The engine is closed, or the rows cannot be read.
    pub fn backup(&self) -> Result<BackupWriter, CopyError> {
        let rows = self.snapshot().map_err(|why| Fault::Unavailable(why.to_string()))?;
        let largest_ttl = Span::from_us(self.shared.largest_ttl_us.load(Ordering::Relaxed));
        BackupWriter::new(rows, self.shared.clock.now(), largest_ttl)
    }

    /// The findings of the opening.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// Recovers for `span` from now on, or longer if it already does: the store may have forgotten grants of leases
    /// with at most this ttl. Until then no lease ends by time, and nothing is granted that needs a limit with a
    /// concurrency or a pool; calls that wait for such grants get them afterwards. Other jobs, settles and heartbeats
    /// go on.
    ///
    /// # Errors
    /// The engine has stopped, or is closed.
    pub async fn recover(&self, span: Span) -> Result<(), CallError> {
        self.shared.ask(&Namespace::main(), Ask::Recover(span)).await.map(drop)
    }

    /// Recovers like [`recover`](Embedded::recover), for `span` at most, while it is still unknown if the store forgot
    /// anything; but streams of events go on. A later `recover` replaces this.
    ///
    /// # Errors
    /// The engine has stopped, or is closed.
    pub async fn doubt(&self, span: Span) -> Result<(), CallError> {
        self.shared.ask(&Namespace::main(), Ask::Doubt(span)).await.map(drop)
    }

    /// Ends a recovery early: nothing was forgotten, or an operator accepts the risk. Without one it does nothing.
    ///
    /// # Errors
    /// The engine has stopped, or is closed.
    pub async fn end_recovery(&self) -> Result<(), CallError> {
        self.shared.ask(&Namespace::main(), Ask::EndRecovery).await.map(drop)
    }

    /// Goes on with other settings of the machine and of events. Those that it was opened with were [`Options::config`] and
    /// [`Options::events_bytes`]. Events that are over a smaller bound go as new ones come.
    ///
    /// # Errors
    /// The engine has stopped, or is closed.
    pub async fn configure(&self, config: Config, events_bytes: u64) -> Result<(), CallError> {
        let bound = streams::bound(events_bytes, self.shared.max_bytes);
        self.shared.events_bytes.store(bound, Ordering::Relaxed);
        self.shared.ask(&Namespace::main(), Ask::Configure(config)).await.map(drop)
    }

    /// The remaining time of the recovery, if the clock does not leap; `None` without one.
    pub fn recovers_for(&self) -> Option<Span> {
        let until = self.shared.recovers_until_us.load(Ordering::Relaxed);
        (until > 0).then(|| Moment::from_us(until).since(self.shared.clock.now()))
    }

    /// Answers once the machine has handled this request and an append that began after it is done: with a journal,
    /// this proves that the whole engine makes progress.
    ///
    /// # Errors
    /// The engine has stopped, or is closed.
    pub fn goes_on(&self) -> impl Future<Output = Result<(), CallError>> + Send + use<> {
        let shared = self.shared.clone();
        async move { shared.ask(&Namespace::main(), Ask::Pass).await.map(drop) }
    }

    /// Stops an engine that hangs. Callers learn that the outcome of their calls is unknown; callers whose requests the
    /// machine has already taken learn it when the machine goes on. Does not block.
    pub fn give_up(&self) {
        self.shared.confirming.stop(&self.shared, Fatal::Hangs);
        self.shared.inbox.close();
        self.shared.inbox.clear();
    }

    /// Answers the pending requests, writes all rows, and releases the folder; callers that wait
    /// for a lease get none. Blocks until that is done. Repeating it does nothing.
    pub fn close(&self) {
        self.shared.inbox.close();
        self.end();
    }

    /// Ends as if the process had been killed: writes and answers nothing more, and the folder
    /// can be opened again. For tests.
    pub fn crash(&self) {
        self.shared.inbox.crash();
        self.shared.hand_off.crash();
        self.shared.confirming.crash();
        self.end();
    }

    fn end(&self) {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Threads { state, disk, confirm, file_journal }) = threads else {
            self.shared.wait_until_released();
            return;
        };
        // A panic in one of them was already reported as a bug.
        let _ = state.join();
        let disk = disk.join().ok().flatten();
        self.shared.confirming.disk_ended();
        let _ = confirm.join();
        if let Some(journal) = &file_journal {
            journal.close();
        }
        self.shared.close_readers();
        // Closing the last connection moves the log into the store, if it can; if not, the next start does.
        let is_clean = disk.is_some_and(|DiskEnded { conn, is_clean }| {
            drop(conn);
            is_clean && !self.shared.files.log.exists()
        });
        if let Some(journal) = file_journal.filter(|_| is_clean) {
            // All rows are in the store, so deleted data need not stay in the journal.
            let _ = journal.clear();
        }
        self.shared.release_folder();
    }

    /// Returns when the engine has ticked at its clock's present time, and nothing that is due by
    /// then is left. For tests that move the clock.
    pub async fn settled(&self) {
        let _ = self.shared.ask(&Namespace::main(), Ask::Settled).await;
    }

    /// Lets `span` pass on the clock that it was opened with; see [`MovedTime::advance`](tenure_engine_api::MovedTime).
    pub(crate) async fn pass_time(
        &self,
        clock: &Arc<TestClock>,
        span: Span,
    ) -> Result<(), CallError> {
        let ask = Ask::PassTime(clock.clone(), span);
        self.shared.ask(&Namespace::main(), ask).await.map(drop)
    }

    /// All durable state as text, as the machine knows it: after a crash a new engine over the
    /// same folder knows the same. For tests.
    pub async fn durable(&self) -> Vec<String> {
        match self.shared.ask(&Namespace::main(), Ask::Durable).await {
            Ok(Answer::Lines(lines)) => lines,
            _ => Vec::new(),
        }
    }

    /// The settings that it was opened with.
    pub fn config(&self) -> Config {
        self.shared.config
    }
}

impl Embedded {
    /// True if its metrics mention recovery: those of a folder only while it recovers.
    fn may_recover(&self) -> bool {
        self.shared.is_shared || self.recovers_for().is_some()
    }
}

impl Engine for Embedded {
    fn call(&self, namespace: &Namespace, request: Request) -> CallFuture {
        self.call_by(None, namespace, request)
    }

    fn call_by(
        &self,
        by: Option<&TokenName>,
        namespace: &Namespace,
        request: Request,
    ) -> CallFuture {
        Box::pin(call::call(self.shared.clone(), by.cloned(), namespace.clone(), request))
    }

    fn health(&self) -> Health {
        let behind = Span::from_us(self.shared.behind_us.load(Ordering::Relaxed));
        let degraded = match self.shared.fatal() {
            Some(fatal) => Some(fatal.to_string()),
            None if behind > Span::ZERO => Some(clock_behind(behind)),
            None => None,
        };
        Health { degraded, store: self.shared.facts().kind }
    }

    fn notice(&self) -> Option<String> {
        let in_s = |left: Span| recovers(Span::from_s(left.us().div_ceil(SECOND_US)));
        let recovery = || self.recovers_for().map(in_s);
        let clock = || self.shared.last_leap.notice("the clock");
        self.shared.room.notice().or_else(recovery).or_else(clock)
    }

    fn store_work(&self) -> StoreWork {
        StoreWork {
            commits: self.shared.times.seen_of(COMMIT),
            syncs: self.shared.times.seen_of(SYNC),
            opened_in: Some(self.recovery.took),
            recovers_for: self.may_recover().then(|| self.recovers_for().unwrap_or_default().std()),
        }
    }

    fn undo(&self, namespace: &Namespace, leases: Vec<String>) {
        let fences: Vec<_> =
            leases.iter().filter_map(|id| parse_lease_id(id)).map(|(fence, _)| fence).collect();
        if !fences.is_empty() {
            self.shared.tell(namespace, Ask::Undo(fences));
        }
    }

    fn gauges(&self) -> Option<GaugeFeed> {
        let (reader, feed) = GaugeFeed::new();
        self.shared.tell(&Namespace::main(), Ask::ReadGauges(reader));
        Some(feed)
    }

    fn answer_gauge(&self, namespace: &Namespace, reading: Reading) -> ReadingFuture {
        let (shared, namespace) = (self.shared.clone(), namespace.clone());
        Box::pin(async move {
            let command = Box::new(Command::TakeReading(reading));
            shared.ask(&namespace, Ask::Command(command)).await.map(drop)
        })
    }

    fn drain(&self) {
        if !self.shared.draining.swap(true, Ordering::AcqRel) {
            self.shared.tell(&Namespace::main(), Ask::Drain);
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for Embedded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Embedded").finish_non_exhaustive()
    }
}

fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run)
}

/// Opens the store for writing. On a full disk, even that may need the reserve.
fn open_writer(folder: &Folder, options: &Options) -> Result<Connection, OpenError> {
    match schema::open_writer(folder, options) {
        Err(OpenError::Store { .. }) if Reserve::of(folder.path()).release() => {
            schema::open_writer(folder, options)
        }
        opened => opened,
    }
}

/// The message of a panic.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a thread panicked").to_owned()
}
