//! The server's part in a store: opens it, shows where the store is served, closes it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tenure_journal::threads::spawn_or_die;

use tenure_core::secret::Secret;
use tenure_core::time::Span;
use tenure_election::Election;
use tenure_election::election::{Input, LOOK_EVERY, ServerWord};
use tenure_election::ids::{Epoch, ServerId, StoreId};
use tenure_engine::backup::BackupWriter;
use tenure_engine::copy::CopyError;
use tenure_engine_api::{Clock, Engine, SharedServer};
use tenure_redis::{FORMAT, RedisStore, ServerEntry, SnapshotName};
use tokio::sync::watch;

use crate::backup;
use crate::clock::StoreClock;
use crate::driver::{Driver, Errand};
use crate::effects::run_effect;
use crate::engine::NodeEngine;
use crate::known_servers::RELEASE;
use crate::known_settings::KnownSettings;
use crate::lent_snapshots;
use crate::options::{NodeError, NodeOptions, SnapshotWish};
use crate::place::{NodeHealth, Places};
use crate::random;
use crate::settings::StoreSettings;
use crate::standby;
use crate::standby_rows::FollowerRows;
use crate::state::{ENDS, NodeState};
use crate::watchdog::Watchdog;

/// The interval of a server's reports.
const REGISTER_EVERY: Duration = Duration::from_secs(1);
/// The interval at which the place of the store is checked, even without news.
const SHOW_EVERY: Duration = Duration::from_millis(500);
/// A snapshot that was due for this long is reported as missing.
const OVERDUE_AFTER: Duration = Duration::from_secs(600);
/// The longest wait of an ending server for the store.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// A server of a store. It ends when this is dropped, without handing the store over: see [`Node::close`].
pub struct Node {
    driver: Arc<Driver>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Node {
    /// Joins the store. Redis need not be reachable yet.
    ///
    /// # Errors
    /// The certificates of the address cannot be used, or the system gives no thread or no random numbers.
    pub fn open(options: NodeOptions) -> Result<Node, NodeError> {
        let NodeOptions {
            address,
            name,
            url,
            engine,
            settings: given,
            snapshot_log_bytes,
            asks,
            clock,
        } = options;
        let settings = given.clone().or(&StoreSettings::usual(&engine));
        let replicas = settings.replicas.unwrap_or_default();
        let (me, shown) = (ServerId(random::id()?), address.to_string());
        let (release, format) = (RELEASE.to_owned(), FORMAT);
        let entry = ServerEntry { id: me.0, url, release, format, applied: 0 };
        let store = RedisStore::open(address.clone(), &name)?.with_replicas(replicas);
        let bulk = RedisStore::open(address, &name)?.with_replicas(replicas);
        let mut election = Election::new(me, StoreId(random::id()?));
        election.forget_never(settings.forgets_never == Some(true));
        let state = NodeState::new(election, random::secret()?);
        let (errands, to_do) = channel();
        let driver = Arc::new(Driver {
            me,
            entry,
            address: shown,
            store,
            bulk,
            clock: Arc::new(StoreClock::new(clock)),
            engine,
            given,
            snapshot_log_bytes,
            settings: Mutex::new(settings),
            is_full: Arc::default(),
            asks,
            run_effect,
            errands,
            place: watch::Sender::new(state.place(Span::ZERO)),
            state: Mutex::new(state),
            changed: Condvar::new(),
            standby: FollowerRows::default(),
            writes: Mutex::default(),
            is_overdue: AtomicBool::new(false),
        });
        let node = Node { driver: driver.clone(), threads: Mutex::default() };
        let (runs, shows, follows) = (driver.clone(), driver.clone(), driver);
        let mut threads = node.threads();
        threads.push(spawn_or_die("tenure-node", move || run(&runs, &to_do))?);
        threads.push(spawn_or_die("tenure-place", move || show(&shows))?);
        threads.push(spawn_or_die("tenure-standby", move || standby::run(&follows))?);
        drop(threads);
        Ok(node)
    }

    /// The place where the store is served, and its changes.
    pub fn place(&self) -> Places {
        Places::of(&self.driver.place)
    }

    /// The id of this process among the servers of the store.
    pub fn id(&self) -> u128 {
        self.driver.me.0
    }

    /// The id of the store, and the secret of its servers; `None` until the store was seen.
    pub fn store(&self) -> Option<(u128, Secret)> {
        let state = self.driver.lock();
        state
            .election
            .store()
            .or(state.named)
            .filter(|_| state.is_registered)
            .map(|store| (store.0, state.secret.clone()))
    }

    /// The engine that answers calls while this server leads the store, and refuses them as unavailable otherwise.
    pub fn engine(&self) -> NodeEngine {
        NodeEngine::new(self.driver.clone())
    }

    /// The answer of this server to another one that asks.
    pub fn word(&self) -> ServerWord {
        self.driver.lock().word(self.driver.clock.at())
    }

    /// The last epoch at which an append of this server was confirmed; `None` before the first. Never falls.
    pub fn served(&self) -> Option<Epoch> {
        self.driver.served()
    }

    /// The last entry in the rows of this server while another one leads the store; 0 without any.
    pub fn applied(&self) -> u64 {
        self.driver.standby.applied()
    }

    /// Writes the chunks of a snapshot for the leader, from the rows of this server, once they have reached the entry
    /// that the leader names. Blocks; writes no more once `goes_on` returns false. `None`: the snapshot is not written,
    /// or not whole. The leader and the content of Redis decide if it counts.
    pub fn write_snapshot(
        &self,
        wish: &SnapshotWish,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Option<SnapshotName> {
        lent_snapshots::write(&self.driver, wish, goes_on)
    }

    /// Begins a backup of the store from the rows of this server, whether it leads the store or not. It has everything
    /// that was answered before the call. Blocks, at most some seconds beyond the time that Redis needs to answer.
    ///
    /// # Errors
    /// Redis or the leader is away, or the rows of this server are far behind or cannot be read.
    pub fn backup(&self) -> Result<BackupWriter, CopyError> {
        backup::begin(&self.driver)
    }

    /// Its health; never waits.
    pub fn health(&self) -> NodeHealth {
        self.driver.lock().health(self.driver.clock.at())
    }

    /// This server and the others of the store; never waits. Their reachability is not known here.
    pub fn servers(&self) -> Vec<SharedServer> {
        let (driver, applied) = (&self.driver, self.applied());
        driver.lock().shared_servers(&driver.entry, applied, driver.clock.at())
    }

    /// Checks at once if the leader is dead, because its address refused a connection.
    pub fn look(&self) {
        let _ = self.driver.errands.send(Errand::Look);
    }

    /// Ends: answers or cancels the calls that wait at the engine, and hands the store over to another server, if there
    /// is one. Waits some seconds for an unreachable store. Blocks. Repeating it does nothing.
    pub fn close(&self) {
        let engine = {
            let mut state = self.driver.lock();
            if state.is_over {
                return;
            }
            state.is_closing = true;
            state.why = match state.election.epoch() {
                Some(_) => format!("{ENDS}, and hands the store over"),
                None => ENDS.to_owned(),
            };
            self.driver.show(&state);
            state.engine.clone()
        };
        if let Some(engine) = engine {
            engine.drain();
            let (closed, is_closed) = channel();
            let closes = engine.clone();
            let started = spawn_or_die("tenure-close", move || {
                closes.close();
                let _ = closed.send(());
            });
            if started.is_err() || is_closed.recv_timeout(CLOSE_WITHIN).is_err() {
                tracing::warn!("the store did not answer in time: the last calls may be lost");
                return self.crash();
            }
        }
        // Learns of a server that has just joined.
        self.driver.register();
        let mut given = None;
        // The engine may have needed all of its time: the handover has its own.
        let begun = Instant::now();
        while !self.driver.lock().election.has_ended() && begun.elapsed() < CLOSE_WITHIN {
            let to = {
                let state = self.driver.lock();
                let to = state.servers.furthest();
                let leads = state.election.epoch().is_some();
                given = to
                    .filter(|_| leads)
                    .and_then(|to| state.servers.url(to).map(str::to_owned))
                    .or(given);
                to
            };
            self.driver.tell(Input::End { to });
            let state = self.driver.lock();
            if !state.election.has_ended() && !state.is_over {
                let waited = self.driver.changed.wait_timeout(state, LOOK_EVERY.std());
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
        if let Some(to) = given {
            tracing::info!("the store is handed over to {to}");
        }
        self.stop();
        if let Err(why) = self.driver.store.unregister(self.driver.me.0) {
            tracing::debug!("the registration of this server stays for a minute: {why}");
        }
    }

    /// Ends as if the process had been killed: hands nothing over, and answers nothing. For tests.
    pub fn crash(&self) {
        let (engine, waiting) = {
            let mut state = self.driver.lock();
            state.is_over = true;
            state.is_closing = true;
            (state.engine.take(), state.appends.take_all())
        };
        self.driver.changed.notify_all();
        if let Some(engine) = engine {
            engine.crash();
        }
        drop(waiting);
        self.stop();
    }

    fn stop(&self) {
        {
            let mut state = self.driver.lock();
            state.is_over = true;
            self.driver.show(&state);
        }
        self.driver.changed.notify_all();
        let _ = self.driver.errands.send(Errand::Stop);
        for thread in std::mem::take(&mut *self.threads()) {
            let _ = thread.join();
        }
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if !self.driver.lock().is_over {
            self.crash();
        }
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("place", &self.place()).finish_non_exhaustive()
    }
}

/// The server's own thread: gives the election the time, looks at the store, and reports that this server lives.
fn run(driver: &Arc<Driver>, errands: &Receiver<Errand>) {
    let mut registered: Option<Duration> = None;
    let (mut is_fit, mut measured, mut due_since) = (false, 0, None);
    let mut settings = KnownSettings::default();
    let mut watchdog = Watchdog::default();
    loop {
        let now = driver.clock.monotonic();
        if registered.is_none_or(|at| now.saturating_sub(at) >= REGISTER_EVERY) {
            registered = Some(now);
            watchdog.look(driver);
            is_fit = is_fit || fits(driver);
            // A server that only forwards calls must know the others, and they must know it.
            let takes_part = is_fit || driver.lock().unreadable.is_some();
            if takes_part && driver.register() && is_fit {
                driver.end_pause();
                settings.follow(driver);
                look_for_room(driver);
                snapshot_if_due(driver, &mut measured);
                see_if_overdue(driver, &mut due_since);
                driver.lock().tell_of_laggards();
            }
        }
        if is_fit {
            driver.tell(Input::Time);
        }
        let to_register = registered.map_or(Duration::ZERO, |at| {
            (at + REGISTER_EVERY).saturating_sub(driver.clock.monotonic())
        });
        let mut patience =
            if is_fit { driver.patience().min(to_register) } else { LOOK_EVERY.std() };
        loop {
            match errands.recv_timeout(patience) {
                Ok(Errand::Look) if is_fit && !driver.look() => {
                    patience = LOOK_EVERY.std();
                    continue;
                }
                Ok(Errand::Look | Errand::Wake) | Err(RecvTimeoutError::Timeout) => break,
                Ok(Errand::Name(store, ttl)) => {
                    if let Err(why) = driver.name_store(store, ttl) {
                        driver.failed(&why);
                    }
                }
                Ok(Errand::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

/// Shows that the leader is partitioned, while the server's own thread waits for the store.
fn show(driver: &Driver) {
    let mut state = driver.lock();
    while !state.is_over {
        // A call reports the trouble only when it is given up.
        let trouble = driver.store.trouble().map(|why| why.to_string());
        if let Some(why) = &trouble {
            state.why = why.clone();
        }
        state.trouble = if state.election.is_cut_off(driver.clock.at()) {
            state.trouble.take().or(trouble)
        } else {
            None
        };
        state.shortage = driver.store.shortage();
        driver.show(&state);
        let waited = driver.changed.wait_timeout(state, SHOW_EVERY);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// True if a store can be kept in this Redis.
fn fits(driver: &Arc<Driver>) -> bool {
    let fits = driver.store.check_server().and_then(|()| {
        let seen = driver.store.look()?;
        match (seen.store, seen.own) {
            (None, None) => driver.store.refuse_earlier_layout(),
            _ => Ok(()),
        }
    });
    match fits {
        Ok(()) => true,
        Err(why) => {
            driver.failed(&why);
            false
        }
    }
}

/// R15: calls that make the store grow are refused before Redis has no room for an append, and the operator is warned
/// of a Redis that would drop keys: it did not when this server started.
fn look_for_room(driver: &Driver) {
    {
        let mut state = driver.lock();
        if !state.election.serves() {
            return state.tell_of_eviction(None);
        }
    }
    match driver.store.room() {
        Ok(room) => {
            driver.is_full.store(room.is_full(), Ordering::Release);
            driver.lock().tell_of_eviction(room.evicts.map(|why| why.to_string()));
        }
        Err(why) => tracing::debug!("the room in Redis could not be asked: {why}"),
    }
}

/// R15: the health of the server shows that no snapshot could be made for a long time.
fn see_if_overdue(driver: &Driver, due_since: &mut Option<Duration>) {
    let serves = driver.lock().election.serves();
    if !serves || !driver.snapshot_is_due(driver.store.sizes()) {
        *due_since = None;
    }
    let since = due_since.get_or_insert(driver.clock.monotonic());
    let overdue = driver.clock.monotonic().saturating_sub(*since) >= OVERDUE_AFTER;
    driver.is_overdue.store(overdue, Ordering::Release);
}

/// Measures the store where the counted size is not reliable: after a load, and while a snapshot is made, it is too low
/// or too high.
fn snapshot_if_due(driver: &Arc<Driver>, measured: &mut u64) {
    let (serves, term) = {
        let state = driver.lock();
        (state.election.serves(), state.term)
    };
    if !serves || *measured == term && !driver.snapshot_is_due(driver.store.sizes()) {
        return;
    }
    match driver.store.measure() {
        Ok(sizes) => {
            *measured = term;
            if driver.snapshot_is_due(sizes) {
                driver.tell(Input::SnapshotDue);
            }
        }
        Err(why) => tracing::debug!("the size of the store could not be asked: {why}"),
    }
}
