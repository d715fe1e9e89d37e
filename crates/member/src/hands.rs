//! The hands of the value: whoever has news tells it, and what it says is done in its order, by one thread at a time.
//!
//! An action is done with the lock let go of (in `deeds`), so who hears of it may bring news at once. Nothing here blocks but the
//! thread of the member (`look`, `register`) and threads that are started for one thing.

use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use tenure_core::bounds::TTL_US_MAX;
use tenure_core::time::{Moment, Span};
use tenure_engine::{Embedded, Options};
use tenure_journal_redis::{RedisStore, ServerEntry, StoreError, StoreNaming};
use tenure_owner::ids::{Epoch, ServerId, StoreId};
use tenure_owner::owner::{Input, ServerWord};
use tokio::sync::watch;

use crate::clock::StoreClock;
use crate::copy;
use crate::options::AskServer;
use crate::place::StorePlace;
use crate::settings::StoreSettings;
use crate::standby_rows::StandbyRows;
use crate::state::{Deed, MemberState};

/// What the thread of the member does.
pub(crate) enum Errand {
    Look,
    Name(StoreId, Span),
    /// Time is to be told sooner than it thought.
    Wake,
    Stop,
}

/// See the module.
pub(crate) struct Hands {
    pub me: ServerId,
    pub entry: ServerEntry,
    /// The address of the store, as it is shown.
    pub address: String,
    pub store: RedisStore,
    /// A line of its own, for what takes Redis long.
    pub bulk: RedisStore,
    pub clock: Arc<StoreClock>,
    /// As this server was started; see [`Hands::engine_options`].
    pub engine: Options,
    /// The settings of the store that this server was started with.
    pub given: StoreSettings,
    /// The settings of the store, as far as they are known.
    pub settings: Mutex<StoreSettings>,
    /// Redis had no room for more when it was asked last.
    pub is_full: Arc<AtomicBool>,
    pub asks: Arc<dyn AskServer>,
    /// Does one thing that the value said. It is [`crate::deeds::do_deed`], put in when the member is opened and never changed.
    /// Imported, it would close a circle of files: what is done there tells these hands what came of it.
    pub do_deed: fn(&Arc<Hands>, Deed),
    pub errands: Sender<Errand>,
    pub place: watch::Sender<StorePlace>,
    pub state: Mutex<MemberState>,
    pub changed: Condvar,
    pub standby: StandbyRows,
    /// Held while this server writes a snapshot for the owner: one at a time.
    pub writes: Mutex<()>,
    /// A snapshot has been due for too long: see [`crate::member`].
    pub is_overdue: AtomicBool,
}

impl Hands {
    pub fn lock(&self) -> MutexGuard<'_, MemberState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the value something, and does what it says.
    pub fn tell(self: &Arc<Self>, input: Input) {
        let mut state = self.lock();
        state.take(input, &self.clock);
        self.act(state);
    }

    /// Does what is to be done, unless another thread, or this one further up, is at it.
    pub fn act<'h>(self: &'h Arc<Self>, mut state: MutexGuard<'h, MemberState>) {
        if state.is_acting {
            return;
        }
        state.is_acting = true;
        let mut wakes = false;
        while let Some(action) = state.todo.pop_front() {
            let deed = state.deed(action);
            let is_usual = matches!(deed, Deed::Call { .. } | Deed::Done(_));
            if !is_usual {
                // Before an engine that lost the store ends: calls that it refuses then are passed on.
                self.show(&state);
                wakes = true;
            }
            drop(state);
            (self.do_deed)(self, deed);
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

    /// Where calls are answered now.
    pub fn place_now(&self) -> StorePlace {
        self.place.borrow().clone()
    }

    /// Shows where calls are answered.
    pub fn show(&self, state: &MemberState) {
        let place = state.place(self.clock.at());
        self.place.send_if_modified(|shown| {
            let is_new = !shown.is_same(&place);
            if is_new {
                tracing::info!("{place}");
                *shown = place;
            }
            is_new
        });
    }

    /// Why the store is served to nobody, if a copy says so now. Blocks.
    pub fn pause(&self) -> Result<Option<String>, StoreError> {
        let paused = copy::pause(&self.bulk.look()?.copy, &self.address);
        self.lock().paused.clone_from(&paused);
        Ok(paused)
    }

    /// Lets an acquisition go that waits for a copy to end, once none says anything any more: the store is looked at anew.
    /// Blocks.
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

    /// The engine could not be opened, or cannot go on.
    pub fn cannot_serve(self: &Arc<Self>) {
        let to = self.lock().servers.furthest();
        self.tell(Input::CannotServe { to });
    }

    /// Looks at the store. Blocks. Whether it could be read.
    pub fn look(self: &Arc<Self>) -> bool {
        match self.store.look() {
            Ok(seen) => {
                let mut state = self.lock();
                state.unreadable = None;
                state.paused = copy::pause(&seen.copy, &self.address);
                let own = seen.own.as_ref().map(|own| Box::new(state.words.own(own)));
                state.seen = own.as_ref().map(|own| (own.owner, own.epoch));
                if state.seen.is_some_and(|(owner, _)| owner == self.me) {
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

    /// The store could not be read or written, for this reason. Blocks.
    pub fn failed(self: &Arc<Self>, why: &StoreError) {
        match why {
            StoreError::Format { .. } => self.only_pass_on(why),
            _ => self.away(why),
        }
    }

    /// R18: a store of a format that this release does not read is served by servers of another one. Calls are passed on to its
    /// owner, and the value hears of nothing, so the store is not taken here. Blocks.
    fn only_pass_on(self: &Arc<Self>, why: &StoreError) {
        // Before it shows an owner: whom it passes calls on to must know it by the secret.
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
        let named = named.map(|named| (ServerId(named.owner), Epoch(named.epoch)));
        state.seen = named.filter(|(owner, _)| *owner != self.me);
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

    /// Writes what this server says of itself, and hears of the others. Blocks. Whether it was written.
    pub fn register(self: &Arc<Self>) -> bool {
        let (secret, owned) = {
            let state = self.lock();
            (state.secret.clone(), state.owner.sent())
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

    /// An engine was opened with what was loaded.
    pub fn opened(self: &Arc<Self>, term: u64, engine: Embedded) {
        let engine = Arc::new(engine);
        let mut state = self.lock();
        if state.term == term && !state.is_over {
            state.engine = Some(engine);
            self.show(&state);
            // It may have been over, or begun, before this engine could be told.
            let (engine, recovers) = (state.engine.clone(), state.owner.recovers());
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

    /// Whether what an engine of this term says counts.
    pub fn is_current(&self, term: u64) -> bool {
        let state = self.lock();
        state.term == term && !state.is_over
    }

    /// Whether an engine of this term is being opened, and its load is not proved yet.
    pub fn loads(&self, term: u64) -> bool {
        let state = self.lock();
        state.term == term && state.is_loading && !state.is_over
    }

    /// Options of an engine that goes by the settings of the store, as far as they are known.
    pub fn engine_options(&self) -> Options {
        let mut options = self.engine.clone();
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).put(&mut options);
        options
    }

    /// For how long the value wants to hear of no time.
    pub fn patience(&self) -> Duration {
        let at = self.clock.at();
        let wakes_at = self.lock().owner.wakes_at(at);
        Span::from_us(wakes_at.us().saturating_sub(at.us())).std()
    }

    /// The last epoch at which this server served.
    pub fn served(&self) -> Option<Epoch> {
        match self.lock().word(self.clock.at()) {
            ServerWord::Says { served, .. } if served > Epoch(0) => Some(served),
            _ => None,
        }
    }
}

/// Asks an engine something without waiting for its answer: that waits for an append, and this thread may be the one that
/// brings the store's reply.
pub(crate) fn begin(asks: impl Future) {
    let _ = pin!(asks).poll(&mut Context::from_waker(Waker::noop()));
}
