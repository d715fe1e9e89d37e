//! What this process knows of one namespace: who waits, and when something is due.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::names::Namespace;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::leaving::Leaving;
use super::parcels::{Came, Parcel, Parcels};
use super::sight::Sight;
use super::timer::Timer;
use crate::events::Readers;
use crate::known::Known;
use crate::link::Address;

/// After an answer that tells of denied notifications, calls that wait look for themselves for so long. The store
/// tells of them for 10 s, and whoever waits ticks once a second.
const UNSAID_FOR: Duration = Duration::from_secs(3);

/// See the module.
pub(crate) struct Space {
    pub name: Namespace,
    /// The one key that every call declares.
    pub meta: String,
    /// The key by which a test sets the clock.
    pub now: String,
    /// Where waiting calls of this process are signalled.
    pub signals: String,
    /// Where due moments are told.
    pub times: String,
    pub timer: Timer,
    /// What is seen here of the server's clock.
    pub sight: Sight,
    /// What is known here of the namespace, in case the store forgets it.
    pub known: Known,
    /// What the operator of this process says of the namespace has counted there. Starts as false; true from the
    /// answer on that says so.
    pub said: AtomicBool,
    /// Until when notifications here are known to be denied to some process. Moves on with each answer that says so.
    unsaid: Mutex<Option<Instant>>,
    /// What the store sent to calls that wait here.
    pub parcels: Parcels,
    /// Calls that waited here, and whose callers are gone.
    pub(super) leaving: Leaving,
    waiters: Mutex<HashMap<u64, Arc<Waiter>>>,
    /// Those of them that wait for the end of something.
    awaiting: Mutex<Awaiting>,
    last_call: Mutex<Instant>,
    /// Grows when messages may have been missed, or a test moved the clock.
    stirred: watch::Sender<u64>,
    /// For tests: signals are known to come.
    pub live: AtomicBool,
    /// Signals that came and were not yet acted upon, to their end.
    busy: watch::Sender<usize>,
    /// Who waits here for events.
    pub readers: Readers,
    /// When its name was last written among those in which something happens by itself.
    noted: Mutex<Option<Instant>>,
    /// What a tick asked for (plans, moments to decide) is under way.
    pub asked: AtomicBool,
    /// Gauges are being claimed.
    pub claims: AtomicBool,
    /// Gauges are to be read here, now or later.
    pub gauges: AtomicBool,
    /// One tick at a time, with what it asked for, where a test moves the clock: who waits until nothing is due waits
    /// for it too.
    pub ticking: tokio::sync::Mutex<()>,
}

/// Calls that wait for the end of something.
#[derive(Default)]
struct Awaiting {
    /// By its name in the store.
    calls: HashMap<String, Vec<u64>>,
    /// A task looks after them, until none is left.
    looked_after: bool,
}

/// One call that may wait.
pub(crate) struct Waiter {
    pub signal: Notify,
    /// A signal came, and nobody acted upon it yet.
    pending: AtomicBool,
    /// What it was granted.
    parcel: Mutex<Option<Parcel>>,
}

impl Waiter {
    /// What it was granted, once.
    pub(super) fn parcel(&self) -> Option<Parcel> {
        self.parcel.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Space {
    pub(crate) fn new(name: Namespace, address: &Address, proc: &str) -> Self {
        let key = |rest: &str| address.key(name.as_str(), rest);
        Space {
            meta: key("m"),
            now: key("now"),
            signals: key(&format!("w:{proc}")),
            times: key("t:"),
            name,
            timer: Timer::default(),
            sight: Sight::default(),
            known: Known::default(),
            said: AtomicBool::new(false),
            unsaid: Mutex::default(),
            parcels: Parcels::default(),
            leaving: Leaving::default(),
            waiters: Mutex::default(),
            awaiting: Mutex::default(),
            last_call: Mutex::new(Instant::now()),
            stirred: watch::Sender::new(0),
            live: AtomicBool::new(false),
            busy: watch::Sender::new(0),
            readers: Readers::default(),
            noted: Mutex::default(),
            asked: AtomicBool::new(false),
            claims: AtomicBool::new(false),
            gauges: AtomicBool::new(false),
            ticking: tokio::sync::Mutex::default(),
        }
    }

    /// Whether its name was not written for so long among those in which something happens by itself.
    pub(crate) fn is_to_be_noted(&self, every: Duration) -> bool {
        let noted = *self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.is_none_or(|at| at.elapsed() >= every)
    }

    /// It was written.
    pub(crate) fn noted(&self) {
        *self.noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn waiters(&self) -> MutexGuard<'_, HashMap<u64, Arc<Waiter>>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call is made here.
    pub(crate) fn called(&self) {
        *self.last_call.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether nobody called for so long, nobody waits and nothing is due.
    pub(crate) fn is_idle(&self, idle: Duration) -> bool {
        let called = *self.last_call.lock().unwrap_or_else(PoisonError::into_inner);
        called.elapsed() >= idle
            && self.waiting() == 0
            && !self.readers.are_there()
            && self.timer.due().is_none()
    }

    /// How many calls of this process may wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiters().len()
    }

    /// A call begins that may wait; from now on it can be signalled.
    pub(crate) fn enter(&self, taker: u64) -> Arc<Waiter> {
        let waiter = Arc::new(Waiter {
            signal: Notify::new(),
            pending: AtomicBool::new(false),
            parcel: Mutex::default(),
        });
        let mut waiters = self.waiters();
        waiters.insert(taker, waiter.clone());
        let first = waiters.len() == 1;
        drop(waiters);
        if first {
            self.timer.somebody_waits();
        }
        waiter
    }

    /// It ended. What it was granted and did not look at is for nobody.
    pub(super) fn leave(&self, taker: u64) -> Option<Parcel> {
        let waiter = self.waiters().remove(&taker)?;
        if waiter.pending.swap(false, Ordering::AcqRel) {
            self.acted();
        }
        waiter.parcel()
    }

    fn awaiting(&self) -> MutexGuard<'_, Awaiting> {
        self.awaiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call that entered waits for the end of this. True if no task looks after such calls yet: then the caller starts
    /// one, which goes on until [`Space::awaited`] answers nothing.
    pub(super) fn awaits(&self, name: &str, taker: u64) -> bool {
        let mut awaiting = self.awaiting();
        awaiting.calls.entry(name.to_owned()).or_default().push(taker);
        !std::mem::replace(&mut awaiting.looked_after, true)
    }

    /// What is waited for here; or nothing, and then no task looks after it.
    pub(super) fn awaited(&self) -> Option<Vec<String>> {
        let mut awaiting = self.awaiting();
        awaiting.looked_after = !awaiting.calls.is_empty();
        awaiting.looked_after.then(|| awaiting.calls.keys().cloned().collect())
    }

    /// It waits no more.
    pub(super) fn awaits_no_more(&self, name: &str, taker: u64) {
        let mut awaiting = self.awaiting();
        if let Some(takers) = awaiting.calls.get_mut(name) {
            takers.retain(|other| *other != taker);
            if takers.is_empty() {
                awaiting.calls.remove(name);
            }
        }
    }

    /// This has ended: the calls that wait for it look.
    pub(super) fn ended(&self, name: &str) {
        let takers = self.awaiting().calls.get(name).cloned().unwrap_or_default();
        for taker in takers {
            self.signal(taker);
        }
    }

    /// A call that has entered asks the store: until it says [`Space::acted`] it is as if it acted upon a signal.
    pub(super) fn acting(&self) {
        self.busy.send_modify(|busy| *busy += 1);
    }

    /// A waiting call of this process was signalled.
    pub(crate) fn signal(&self, taker: u64) {
        if let Some(waiter) = self.waiters().get(&taker) {
            self.wake(waiter);
        }
    }

    /// A waiting call of this process was granted something. What is for nobody is handed back.
    pub(super) fn deliver(&self, parcel: Parcel) -> Option<Parcel> {
        let came = self.parcels.came(parcel.number, parcel.taker);
        if came == Came::Early {
            self.stir();
        }
        let waiters = self.waiters();
        let Some(waiter) = waiters.get(&parcel.taker) else {
            // What came before was taken: given back now, it would be taken from its holder.
            return (came != Came::Again).then_some(parcel);
        };
        if came != Came::Again && !parcel.parts.is_empty() {
            *waiter.parcel.lock().unwrap_or_else(PoisonError::into_inner) = Some(parcel);
        }
        self.wake(waiter);
        None
    }

    fn wake(&self, waiter: &Waiter) {
        if !waiter.pending.swap(true, Ordering::AcqRel) {
            self.busy.send_modify(|busy| *busy += 1);
        }
        waiter.signal.notify_one();
    }

    /// The waiter acts upon its signal from now on; whether there was one. Who got `true` says
    /// [`Space::acted`] when it has.
    pub(crate) fn acts(&self, waiter: &Waiter) -> bool {
        waiter.pending.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn acted(&self) {
        self.busy.send_modify(|busy| *busy = busy.saturating_sub(1));
    }

    /// Tells how many signals are not yet acted upon.
    pub(crate) fn busy(&self) -> watch::Receiver<usize> {
        self.busy.subscribe()
    }

    /// Some process may not publish its notifications here: for a while, calls that wait look for themselves.
    pub(crate) fn heard_of_unsaid(&self) {
        let mut until = self.unsaid.lock().unwrap_or_else(PoisonError::into_inner);
        let began = until.is_none_or(|until| until < Instant::now());
        *until = Some(Instant::now() + UNSAID_FOR);
        drop(until);
        if began {
            self.stir();
        }
    }

    /// Whether notifications are known to be missing here.
    pub(crate) fn misses_signals(&self) -> bool {
        let until = *self.unsaid.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| until > Instant::now())
    }

    /// All who wait look for themselves.
    pub(crate) fn stir(&self) {
        self.stirred.send_modify(|times| *times += 1);
    }

    /// Tells when all who wait are to look for themselves.
    pub(crate) fn stirred(&self) -> watch::Receiver<u64> {
        self.stirred.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parcel_that_comes_twice_is_neither_delivered_nor_given_back_again() {
        let address = Address::parse("redis://host").unwrap();
        let space = Space::new(Namespace::main(), &address, "proc");
        let deliver = |number, taker| {
            let given_back = space.deliver(Parcel { number, taker, parts: vec![vec![1]] });
            given_back.is_some()
        };
        let waiter = space.enter(1);
        assert!(!deliver(1, 1) && waiter.parcel().is_some());
        assert!(!deliver(1, 1) && waiter.parcel().is_none(), "while its call has not ended");
        space.leave(1);
        assert!(!deliver(1, 1), "its holder works on it");
        assert!(deliver(2, 2), "nobody waits for this one");
        assert!(!deliver(2, 2), "and it was given back");
    }
}
