//! Driver: runs the effects that the election state machine returns, in order, one thread at a time.
//!
//! An effect runs without the lock (in `effects`), so that its outcome may be the next input at once. Nothing here blocks
//! except the server's own thread (`look`, `register`) and threads that are started for one task.

use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use tenure_core::bounds::TTL_US_MAX;
use tenure_core::time::{Moment, Span};
use tenure_election::election::{Input, ServerWord};
use tenure_election::ids::{Epoch, ServerId, StoreId};
use tenure_engine::{Embedded, Options};
use tenure_redis::{RedisStore, ServerEntry, StoreError, StoreNaming, StoreSizes};
use tokio::sync::watch;

use crate::clock::StoreClock;
use crate::copy;
use crate::options::AskServer;
use crate::place::{StoreLeader, leader_sentence};
use crate::settings::StoreSettings;
use crate::standby_rows::FollowerRows;
use crate::state::{Effect, NodeState};

/// A task for the server's own thread.
pub(crate) enum Errand {
    Look,
    Name(StoreId, Span),
    /// The election must be told the time earlier than that thread planned.
    Wake,
    Stop,
}

/// The driver, and all that its threads share.
pub(crate) struct Driver {
    pub me: ServerId,
    pub entry: ServerEntry,
    /// The address of the store, in the form that is shown.
    pub address: String,
    pub store: RedisStore,
    /// A connection of its own, for requests that take Redis long.
    pub bulk: RedisStore,
    pub clock: Arc<StoreClock>,
    /// The options with which this server was started; see [`Driver::engine_options`].
    pub engine: Options,
    /// The store's settings with which this server was started.
    pub given: StoreSettings,
    /// The settings of the store, as far as they are known.
    pub settings: Mutex<StoreSettings>,
    /// The size of the log, in bytes, below which this server makes no snapshot.
    pub snapshot_log_bytes: u64,
    /// Redis had no room left at the last check.
    pub is_full: Arc<AtomicBool>,
    pub asks: Arc<dyn AskServer>,
    /// Runs one effect. It is [`crate::effects::run_effect`], set when the member is opened and never changed.
    /// An import would make a cycle of files, because that function reports outcomes back to this driver.
    pub run_effect: fn(&Arc<Driver>, Effect),
    pub errands: Sender<Errand>,
    pub place: watch::Sender<StoreLeader>,
    pub state: Mutex<NodeState>,
    pub changed: Condvar,
    pub standby: FollowerRows,
    /// Held while this server writes a snapshot for the leader: one at a time.
    pub writes: Mutex<()>,
    /// A snapshot has been due for too long: see [`crate::node`].
    pub is_overdue: AtomicBool,
}

impl Driver {
    pub fn snapshot_is_due(&self, sizes: StoreSizes) -> bool {
        sizes.snapshot_is_due(self.snapshot_log_bytes)
    }

    pub fn lock(&self) -> MutexGuard<'_, NodeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the election an input, and runs the effects that it returns.
    pub fn tell(self: &Arc<Self>, input: Input) {
        let mut state = self.lock();
        state.take(input, &self.clock);
        self.act(state);
    }

    /// Runs the pending effects, unless another thread, or a caller of this function, already does.
    pub fn act<'h>(self: &'h Arc<Self>, mut state: MutexGuard<'h, NodeState>) {
        if state.is_acting {
            return;
        }
        state.is_acting = true;
        let mut wakes = false;
        while let Some(action) = state.todo.pop_front() {
            let effect = state.effect(action);
            let is_usual = matches!(effect, Effect::Call { .. } | Effect::Done(_));
            if !is_usual {
                // Before the engine of a fenced leader ends: calls that it then refuses are forwarded.
                self.show(&state);
                wakes = true;
            }
            drop(state);
            (self.run_effect)(self, effect);
            state = self.lock();
        }
        state.is_acting = false;
        if wakes || state.is_closing {
            self.show(&state);
            drop(state);
            self.changed.notify_all();
            let _ = self.errands.send(Errand::Wake);
        }
    }

    /// The place where calls are answered now.
    pub fn place_now(&self) -> StoreLeader {
        self.place.borrow().clone()
    }

    /// Publishes the place where calls are answered.
    pub fn show(&self, state: &NodeState) {
        let place = state.place(self.clock.at());
        self.place.send_if_modified(|shown| {
            let is_new = !shown.is_same(&place) || shown.reason() != place.reason();
            if is_new {
                tracing::info!("{}", leader_sentence(&place));
                *shown = place;
            }
            is_new
        });
    }

    /// The reason why a copy pauses the store now, if it does. Blocks.
    pub fn pause(&self) -> Result<Option<String>, StoreError> {
        let paused = copy::pause(&self.bulk.look()?.copy, &self.address);
        self.lock().paused.clone_from(&paused);
        Ok(paused)
    }

    /// Releases an acquisition that waits for a copy to end, once no mark of a copy is left: the store is looked at
    /// again. Blocks.
    pub fn end_pause(self: &Arc<Self>) {
        let Some(call) = self.lock().held_back else { return };
        match self.pause() {
            Ok(None) => {
                self.lock().held_back = None;
                self.tell(Input::Unsure { call });
            }
            Ok(Some(_)) => self.show(&self.lock()),
            Err(why) => self.away(&why),
        }
    }

    /// Reports that the engine could not be opened, or cannot go on.
    pub fn cannot_serve(self: &Arc<Self>) {
        let to = self.lock().servers.furthest();
        self.tell(Input::CannotServe { to });
    }

    /// Looks at the store; false if it could not be read. Blocks.
    pub fn look(self: &Arc<Self>) -> bool {
        match self.store.look() {
            Ok(seen) => {
                let mut state = self.lock();
                state.unreadable = None;
                state.paused = copy::pause(&seen.copy, &self.address);
                let own = seen.own.as_ref().map(|own| Box::new(state.words.own(own)));
                state.seen = own.as_ref().map(|own| (own.leader, own.epoch));
                if state.seen.is_some_and(|(leader, _)| leader == self.me) {
                    state.seen = None;
                }
                let looked = Input::Looked {
                    store: seen.store.map(StoreId),
                    own,
                    run: state.words.run(&seen.run),
                    time: Moment::from_us(seen.time),
                };
                state.take(looked, &self.clock);
                self.show(&state);
                self.act(state);
                true
            }
            Err(why) => {
                self.failed(&why);
                false
            }
        }
    }

    /// Handles a failed read or write of the store. Blocks.
    pub fn failed(self: &Arc<Self>, why: &StoreError) {
        match why {
            StoreError::Format { .. } => self.only_forward(why),
            _ => self.away(why),
        }
    }

    /// R18: a store whose format this release cannot read is served by servers of another release. Calls are forwarded
    /// to its leader, and the election gets no input, so the store is not taken here. Blocks.
    fn only_forward(self: &Arc<Self>, why: &StoreError) {
        // Before it shows a leader: the server that gets its forwarded calls must know it by the secret.
        if !self.lock().is_registered && !self.register() {
            return;
        }
        let named = match self.store.named_owner() {
            Ok(named) => named,
            Err(why) => return self.away(&why),
        };
        let mut state = self.lock();
        if state.unreadable.is_none() {
            tracing::warn!("this server only passes calls on: {why}");
        }
        (state.why, state.unreadable) = (why.to_string(), Some(why.to_string()));
        state.named = named.map(|named| StoreId(named.store));
        let named = named.map(|named| (ServerId(named.leader), Epoch(named.epoch)));
        state.seen = named.filter(|(leader, _)| *leader != self.me);
        self.show(&state);
    }

    fn away(&self, why: &StoreError) {
        let mut state = self.lock();
        state.why = why.to_string();
        self.show(&state);
    }

    /// Writes the id of a store that lost it. Blocks.
    pub fn name_store(&self, store: StoreId, ttl: Span) -> Result<(), StoreError> {
        let naming = StoreNaming { store: store.0, ttl: ttl.us() };
        self.store.name_store(&naming).map(drop)
    }

    /// Writes this server's report, and reads those of the others; true if it was written. Blocks.
    pub fn register(self: &Arc<Self>) -> bool {
        let (secret, owned) = {
            let state = self.lock();
            (state.secret.clone(), state.election.sent())
        };
        let applied = owned.map_or_else(|| self.standby.applied(), |sent| sent.number);
        let entry = ServerEntry { applied, ..self.entry.clone() };
        match self.store.register(&entry, &secret) {
            Ok(all) => {
                let mut state = self.lock();
                state.servers.read(&self.entry, &all, self.clock.at());
                (state.secret, state.is_registered) = (all.secret, true);
                let others = state.servers.ids();
                let known = state.servers.applied().max(applied);
                state.take(Input::Others(others), &self.clock);
                state.take(Input::Known(known), &self.clock);
                self.show(&state);
                self.act(state);
                true
            }
            Err(why) => {
                self.away(&why);
                false
            }
        }
    }

    /// Takes an engine that was opened over the loaded rows.
    pub fn opened(self: &Arc<Self>, term: u64, engine: Embedded) {
        let engine = Arc::new(engine);
        let mut state = self.lock();
        if state.term == term && !state.is_over {
            state.engine = Some(engine);
            self.show(&state);
            // The recovery may have ended, or begun, before this engine could be notified.
            let (engine, recovers) = (state.engine.clone(), state.election.recovers());
            drop(state);
            match engine {
                Some(engine) if !recovers => begin(engine.end_recovery()),
                Some(engine) if engine.recovers_for().is_none() => {
                    begin(engine.doubt(Span::from_us(TTL_US_MAX)));
                }
                _ => {}
            }
            self.changed.notify_all();
        } else {
            drop(state);
            engine.close();
        }
    }

    /// True if reports of an engine of this term count.
    pub fn is_current(&self, term: u64) -> bool {
        let state = self.lock();
        state.term == term && !state.is_over
    }

    /// True if an engine of this term is being opened, and its load is not proved yet.
    pub fn loads(&self, term: u64) -> bool {
        let state = self.lock();
        state.term == term && state.is_loading && !state.is_over
    }

    /// Options of an engine that follows the settings of the store, as far as they are known.
    pub fn engine_options(&self) -> Options {
        let mut options = self.engine.clone();
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).put(&mut options);
        options
    }

    /// The time until the election needs its next look at the clock.
    pub fn patience(&self) -> Duration {
        let at = self.clock.at();
        let wakes_at = self.lock().election.wakes_at(at);
        Span::from_us(wakes_at.us().saturating_sub(at.us())).std()
    }

    /// The last epoch in which this server served.
    pub fn served(&self) -> Option<Epoch> {
        match self.lock().word(self.clock.at()) {
            ServerWord::Says { served, .. } if served > Epoch(0) => Some(served),
            _ => None,
        }
    }
}

/// Begins a request to an engine without waiting for its answer: the answer waits for an append, and this thread may be
/// the one that brings the store's reply.
pub(crate) fn begin(asks: impl Future) {
    let _ = pin!(asks).poll(&mut Context::from_waker(Waker::noop()));
}
