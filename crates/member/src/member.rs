//! The server's part in a store: opens it, shows where the store is served, closes it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tenure_journal::threads::spawn_or_die;

use tenure_core::secret::Secret;
use tenure_core::time::Span;
use tenure_journal_redis::{FORMAT, RedisStore, ServerEntry, SnapshotName};
use tenure_owner::Owner;
use tenure_owner::ids::{Epoch, ServerId, StoreId};
use tenure_owner::owner::{Input, LOOK_EVERY, ServerWord};
use tenure_seam::{Clock, Engine, SharedServer};
use tokio::sync::watch;

use crate::clock::StoreClock;
use crate::deeds::do_deed;
use crate::engine::MemberEngine;
use crate::hands::{Errand, Hands};
use crate::known_servers::RELEASE;
use crate::known_settings::KnownSettings;
use crate::lent_snapshots;
use crate::options::{MemberError, MemberOptions, SnapshotWish};
use crate::place::{MemberHealth, Places};
use crate::random;
use crate::settings::StoreSettings;
use crate::standby;
use crate::standby_rows::StandbyRows;
use crate::state::{ENDS, MemberState};
use crate::watchdog::Watchdog;

/// The interval of a server's reports.
const REGISTER_EVERY: Duration = Duration::from_secs(1);
/// The interval at which the place of the store is checked, even without news.
const SHOW_EVERY: Duration = Duration::from_millis(500);
/// A snapshot that was due for this long is reported as missing.
const OVERDUE_AFTER: Duration = Duration::from_secs(600);
/// The longest wait of an ending server for the store.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// A server of a store. It ends when this is dropped, without handing the store over: see [`Member::close`].
pub struct Member {
    hands: Arc<Hands>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Member {
    /// Joins the store. Redis need not be reachable yet.
    ///
    /// # Errors
    /// The certificates of the address cannot be used, or the system gives no thread or no random numbers.
    pub fn open(options: MemberOptions) -> Result<Member, MemberError> {
        let MemberOptions { address, name, url, engine, settings: given, asks, clock } = options;
        let settings = given.clone().or(&StoreSettings::usual(&engine));
        let replicas = settings.replicas.unwrap_or_default();
        let (me, shown) = (ServerId(random::id()?), address.to_string());
        let (release, format) = (RELEASE.to_owned(), FORMAT);
        let entry = ServerEntry { id: me.0, url, release, format, applied: 0 };
        let store = RedisStore::open(address.clone(), &name)?.with_replicas(replicas);
        let bulk = RedisStore::open(address, &name)?.with_replicas(replicas);
        let mut owner = Owner::new(me, StoreId(random::id()?));
        owner.forget_never(settings.forgets_never == Some(true));
        let state = MemberState::new(owner, random::secret()?);
        let (errands, to_do) = channel();
        let hands = Arc::new(Hands {
            me,
            entry,
            address: shown,
            store,
            bulk,
            clock: Arc::new(StoreClock::new(clock)),
            engine,
            given,
            settings: Mutex::new(settings),
            is_full: Arc::default(),
            asks,
            do_deed,
            errands,
            place: watch::Sender::new(state.place(Span::ZERO)),
            state: Mutex::new(state),
            changed: Condvar::new(),
            standby: StandbyRows::default(),
            writes: Mutex::default(),
            is_overdue: AtomicBool::new(false),
        });
        let member = Member { hands: hands.clone(), threads: Mutex::default() };
        let (runs, shows, follows) = (hands.clone(), hands.clone(), hands);
        let mut threads = member.threads();
        threads.push(spawn_or_die("tenure-member", move || run(&runs, &to_do))?);
        threads.push(spawn_or_die("tenure-place", move || show(&shows))?);
        threads.push(spawn_or_die("tenure-standby", move || standby::run(&follows))?);
        drop(threads);
        Ok(member)
    }

    /// The place where the store is served, and its changes.
    pub fn place(&self) -> Places {
        Places::of(&self.hands.place)
    }

    /// The id of this process among the servers of the store.
    pub fn id(&self) -> u128 {
        self.hands.me.0
    }

    /// The id of the store, and the secret of its servers; `None` until the store was seen.
    pub fn store(&self) -> Option<(u128, Secret)> {
        let state = self.hands.lock();
        state
            .owner
            .store()
            .or(state.named)
            .filter(|_| state.is_registered)
            .map(|store| (store.0, state.secret.clone()))
    }

    /// The engine that answers calls while this server leads the store, and refuses them as unavailable otherwise.
    pub fn engine(&self) -> MemberEngine {
        MemberEngine::new(self.hands.clone())
    }

    /// The answer of this server to another one that asks.
    pub fn word(&self) -> ServerWord {
        self.hands.lock().word(self.hands.clock.at())
    }

    /// The last epoch at which an append of this server was confirmed; `None` before the first. Never falls.
    pub fn served(&self) -> Option<Epoch> {
        self.hands.served()
    }

    /// The last entry in the rows of this server while another one leads the store; 0 without any.
    pub fn applied(&self) -> u64 {
        self.hands.standby.applied()
    }

    /// Writes the chunks of a snapshot for the leader, from the rows of this server, once they have reached the entry
    /// that the leader names. Blocks; writes no more once `goes_on` returns false. `None`: the snapshot is not written,
    /// or not whole. The leader and the content of Redis decide if it counts.
    pub fn write_snapshot(
        &self,
        wish: &SnapshotWish,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Option<SnapshotName> {
        lent_snapshots::write(&self.hands, wish, goes_on)
    }

    /// Its health; never waits.
    pub fn health(&self) -> MemberHealth {
        self.hands.lock().health(self.hands.clock.at())
    }

    /// This server and the others of the store; never waits. Their reachability is not known here.
    pub fn servers(&self) -> Vec<SharedServer> {
        let (hands, applied) = (&self.hands, self.applied());
        hands.lock().shared_servers(&hands.entry, applied, hands.clock.at())
    }

    /// Checks at once if the leader is dead, because its address refused a connection.
    pub fn look(&self) {
        let _ = self.hands.errands.send(Errand::Look);
    }

    /// Ends: answers or cancels the calls that wait at the engine, and hands the store over to another server, if there
    /// is one. Waits some seconds for an unreachable store. Blocks. Repeating it does nothing.
    pub fn close(&self) {
        let engine = {
            let mut state = self.hands.lock();
            if state.is_over {
                return;
            }
            state.is_closing = true;
            state.why = match state.owner.epoch() {
                Some(_) => format!("{ENDS}, and hands the store over"),
                None => ENDS.to_owned(),
            };
            self.hands.show(&state);
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
        self.hands.register();
        let mut given = None;
        // The engine may have needed all of its time: the handover has its own.
        let begun = Instant::now();
        while !self.hands.lock().owner.has_ended() && begun.elapsed() < CLOSE_WITHIN {
            let to = {
                let state = self.hands.lock();
                let to = state.servers.furthest();
                let owns = state.owner.epoch().is_some();
                given = to
                    .filter(|_| owns)
                    .and_then(|to| state.servers.url(to).map(str::to_owned))
                    .or(given);
                to
            };
            self.hands.tell(Input::End { to });
            let state = self.hands.lock();
            if !state.owner.has_ended() && !state.is_over {
                let waited = self.hands.changed.wait_timeout(state, LOOK_EVERY.std());
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
        if let Some(to) = given {
            tracing::info!("the store is handed over to {to}");
        }
        self.stop();
        if let Err(why) = self.hands.store.unregister(self.hands.me.0) {
            tracing::debug!("the registration of this server stays for a minute: {why}");
        }
    }

    /// Ends as if the process had been killed: hands nothing over, and answers nothing. For tests.
    pub fn crash(&self) {
        let (engine, waiting) = {
            let mut state = self.hands.lock();
            state.is_over = true;
            state.is_closing = true;
            (state.engine.take(), state.appends.take_all())
        };
        self.hands.changed.notify_all();
        if let Some(engine) = engine {
            engine.crash();
        }
        drop(waiting);
        self.stop();
    }

    fn stop(&self) {
        {
            let mut state = self.hands.lock();
            state.is_over = true;
            self.hands.show(&state);
        }
        self.hands.changed.notify_all();
        let _ = self.hands.errands.send(Errand::Stop);
        for thread in std::mem::take(&mut *self.threads()) {
            let _ = thread.join();
        }
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if !self.hands.lock().is_over {
            self.crash();
        }
    }
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("place", &self.place()).finish_non_exhaustive()
    }
}

/// The server's own thread: gives the election the time, looks at the store, and reports that this server lives.
fn run(hands: &Arc<Hands>, errands: &Receiver<Errand>) {
    let mut registered: Option<Duration> = None;
    let (mut is_fit, mut measured, mut due_since) = (false, 0, None);
    let mut settings = KnownSettings::default();
    let mut watchdog = Watchdog::default();
    loop {
        let now = hands.clock.monotonic();
        if registered.is_none_or(|at| now.saturating_sub(at) >= REGISTER_EVERY) {
            registered = Some(now);
            watchdog.look(hands);
            is_fit = is_fit || fits(hands);
            // A server that only forwards calls must know the others, and they must know it.
            let takes_part = is_fit || hands.lock().unreadable.is_some();
            if takes_part && hands.register() && is_fit {
                hands.end_pause();
                settings.follow(hands);
                look_for_room(hands);
                snapshot_if_due(hands, &mut measured);
                see_if_overdue(hands, &mut due_since);
                hands.lock().tell_of_laggards();
            }
        }
        if is_fit {
            hands.tell(Input::Time);
        }
        let to_register = registered.map_or(Duration::ZERO, |at| {
            (at + REGISTER_EVERY).saturating_sub(hands.clock.monotonic())
        });
        let mut patience = match is_fit {
            true => hands.patience().min(to_register),
            false => LOOK_EVERY.std(),
        };
        loop {
            match errands.recv_timeout(patience) {
                Ok(Errand::Look) if is_fit && !hands.look() => {
                    patience = LOOK_EVERY.std();
                    continue;
                }
                Ok(Errand::Look | Errand::Wake) | Err(RecvTimeoutError::Timeout) => break,
                Ok(Errand::Name(store, ttl)) => {
                    if let Err(why) = hands.name_store(store, ttl) {
                        hands.failed(&why);
                    }
                }
                Ok(Errand::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

/// Shows that the leader is partitioned, while the server's own thread waits for the store.
fn show(hands: &Hands) {
    let mut state = hands.lock();
    while !state.is_over {
        // A call reports the trouble only when it is given up.
        let trouble = hands.store.trouble().map(|why| why.to_string());
        if let Some(why) = &trouble {
            state.why = why.clone();
        }
        state.trouble = match state.owner.is_cut_off(hands.clock.at()) {
            true => state.trouble.take().or(trouble),
            false => None,
        };
        state.shortage = hands.store.shortage();
        hands.show(&state);
        let waited = hands.changed.wait_timeout(state, SHOW_EVERY);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// True if a store can be kept in this Redis.
fn fits(hands: &Arc<Hands>) -> bool {
    let fits = hands.store.check_server().and_then(|()| {
        let seen = hands.store.look()?;
        match (seen.store, seen.own) {
            (None, None) => hands.store.refuse_earlier_layout(),
            _ => Ok(()),
        }
    });
    match fits {
        Ok(()) => true,
        Err(why) => {
            hands.failed(&why);
            false
        }
    }
}

/// R15: calls that make the store grow are refused before Redis has no room for an append, and the operator is warned
/// of a Redis that would drop keys: it did not when this server started.
fn look_for_room(hands: &Hands) {
    {
        let mut state = hands.lock();
        if !state.owner.serves() {
            return state.tell_of_eviction(None);
        }
    }
    match hands.store.room() {
        Ok(room) => {
            hands.is_full.store(room.is_full(), Ordering::Release);
            hands.lock().tell_of_eviction(room.evicts.map(|why| why.to_string()));
        }
        Err(why) => tracing::debug!("the room in Redis could not be asked: {why}"),
    }
}

/// R15: the health of the server shows that no snapshot could be made for a long time.
fn see_if_overdue(hands: &Hands, due_since: &mut Option<Duration>) {
    let serves = hands.lock().owner.serves();
    if !serves || !hands.store.sizes().snapshot_is_due() {
        *due_since = None;
    }
    let since = due_since.get_or_insert(hands.clock.monotonic());
    let overdue = hands.clock.monotonic().saturating_sub(*since) >= OVERDUE_AFTER;
    hands.is_overdue.store(overdue, Ordering::Release);
}

/// Measures the store where the counted size is not reliable: after a load, and while a snapshot is made, it is too low
/// or too high.
fn snapshot_if_due(hands: &Arc<Hands>, measured: &mut u64) {
    let (serves, term) = {
        let state = hands.lock();
        (state.owner.serves(), state.term)
    };
    if !serves || *measured == term && !hands.store.sizes().snapshot_is_due() {
        return;
    }
    match hands.store.measure() {
        Ok(sizes) => {
            *measured = term;
            if sizes.snapshot_is_due() {
                hands.tell(Input::SnapshotDue);
            }
        }
        Err(why) => tracing::debug!("the size of the store could not be asked: {why}"),
    }
}
