//! Table of the leases that this process holds, and when each must be extended or given up.
//!
//! Pure bookkeeping: the caller passes the time. It sends nothing, never sleeps and reads no clock.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::bounds::ITEMS_MAX;
use tenure_core::lease::{ExtendItem, Extended, LeaseView};
use tenure_core::secret::Json;
use tenure_core::time::{Moment, Span};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::lease_clock::LeaseTime;

/// Points in time as parts of a ttl, in hundredths. Here: the next heartbeat.
const BEAT: u32 = 20;
/// The next heartbeat after one that failed.
const BEAT_AGAIN: u32 = 5;
/// Heartbeats due within this are sent along, so that the leases come to share calls.
const TOGETHER: u32 = 10;
/// A lease that is read later than this after its request is extended before its work starts.
const FRESH: u32 = 20;
/// The holder stops its work.
const STOP: u32 = 80;
/// The last time at which any part of the work may still run.
const HARD: u32 = 95;

const _: () = assert!(BEAT_AGAIN < BEAT && BEAT < STOP && STOP < HARD && HARD < 100);
const _: () = assert!(FRESH <= BEAT && TOGETHER < BEAT);

fn part(ttl: Duration, hundredths: u32) -> Duration {
    ttl * hundredths / 100
}

/// Why a holder must stop its work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stop {
    /// The lease is no longer held, or could not be kept: another holder may soon have it.
    Lost,
    /// Its job was cancelled.
    Cancelled,
    /// The time of this run is over.
    Deadline,
    /// This process stops and has no more time to finish.
    Shutdown,
}

/// The state of one lease, as far as this process knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pulse {
    /// When the last answered heartbeat was sent; at first, when the lease was asked for.
    pub sent: LeaseTime,
    /// Whether it is known to be held: its answer was fresh, or an extend was answered since.
    pub sure: bool,
    /// When its run must be over, by this machine's clock.
    pub deadline: Option<LeaseTime>,
    /// Its job was cancelled; the lease is still extended while the holder stops.
    pub cancelled: bool,
    /// Why the lease has ended for its holder; `None` while it is held.
    pub ended: Option<Stop>,
}

impl Pulse {
    /// When the holder must stop, if no heartbeat is answered before.
    pub fn stop_by(&self, ttl: Duration) -> LeaseTime {
        let by = self.sent + part(ttl, STOP);
        self.deadline.map_or(by, |deadline| by.min(deadline))
    }
    /// After this time no part of the work may still run.
    pub fn hard_limit(&self, ttl: Duration) -> LeaseTime {
        self.sent + part(ttl, HARD)
    }
    /// Why the holder must stop, as of `now`.
    pub fn stop(&self, ttl: Duration, now: LeaseTime) -> Option<Stop> {
        match self.ended {
            Some(stop) => Some(stop),
            None if self.deadline.is_some_and(|at| at <= now) => Some(Stop::Deadline),
            None if self.sure && self.stop_by(ttl) <= now => Some(Stop::Lost),
            None if self.cancelled => Some(Stop::Cancelled),
            None => None,
        }
    }
}

/// One lease in the table, shared by its holder and the keeper.
pub struct Kept {
    pub lease: String,
    /// The ttl that it was asked for with.
    pub ttl: Duration,
    pulse: Mutex<Pulse>,
    /// The last progress report, until a heartbeat sends it.
    pub report: Mutex<Option<Json>>,
    /// Nothing extends it any more. Never becomes false again.
    let_go: AtomicBool,
    changed: Notify,
}

impl Kept {
    /// A copy of its present state.
    pub fn pulse(&self) -> Pulse {
        *lock(&self.pulse)
    }
    /// See [`Held::stop_by`](super::Held::stop_by), by the present state.
    pub fn stop_by(&self) -> LeaseTime {
        self.pulse().stop_by(self.ttl)
    }
    /// See [`Held::hard_limit`](super::Held::hard_limit), by the present state.
    pub fn hard_limit(&self) -> LeaseTime {
        self.pulse().hard_limit(self.ttl)
    }
    /// Whether it is no longer extended.
    pub fn is_let_go(&self) -> bool {
        self.let_go.load(Ordering::Acquire)
    }
    /// Completes at the next change; if it is first polled later, it misses the changes before.
    pub fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }
    fn change(&self, how: impl FnOnce(&mut Pulse)) {
        how(&mut lock(&self.pulse));
        self.changed.notify_waiters();
    }
}

/// A lease in the table, with its place there.
pub struct Taken {
    pub kept: Arc<Kept>,
    place: usize,
}

struct Entry {
    kept: Arc<Kept>,
    /// End of the run, in the engine's time.
    deadline: Option<Moment>,
    /// When the next heartbeat is due.
    next: LeaseTime,
    /// When an unsure lease is given up, if no extend confirms it.
    unsure_until: LeaseTime,
}

impl Entry {
    /// When the keeper must act on it next.
    fn due(&self) -> LeaseTime {
        let pulse = self.kept.pulse();
        if pulse.ended.is_some() {
            return self.next;
        }
        let stop = if pulse.sure { pulse.stop_by(self.kept.ttl) } else { self.unsure_until };
        self.next.min(stop)
    }
}

/// When the leases of one answer were asked for, and read.
#[derive(Clone, Copy)]
pub struct Granted {
    /// The ttl that they were asked for with.
    pub ttl: Duration,
    /// When the call was first sent under its request id.
    pub asked: LeaseTime,
    pub now: LeaseTime,
}

/// One item of an extend call, with the state needed when its answer comes.
pub struct Beat {
    place: usize,
    kept: Arc<Kept>,
    /// The progress report sent along with the heartbeat.
    progress: Option<Json>,
}

/// The heartbeats of one call.
pub struct Beats {
    /// When they were sent.
    pub sent: LeaseTime,
    /// At most [`ITEMS_MAX`] items.
    pub beats: Vec<Beat>,
    /// The longest ttl among them: an answer is worthless after that.
    pub ttl: Duration,
}

impl Beats {
    /// The items of the extend call.
    pub fn items(&self) -> Vec<ExtendItem> {
        let one = |beat: &Beat| ExtendItem {
            lease: beat.kept.lease.clone(),
            progress: beat.progress.clone(),
        };
        self.beats.iter().map(one).collect()
    }
}

/// The next steps of the keeper.
pub struct Plan {
    /// Calls to send, each at most [`ITEMS_MAX`] long.
    pub calls: Vec<Beats>,
    /// When to plan again; `None` while no lease is held.
    pub next: Option<LeaseTime>,
}

/// The leases that are held. A lease has a place by number, since a worker that handles tens of thousands of jobs a
/// second takes and drops that many.
#[derive(Default)]
pub struct Table {
    entries: Vec<Option<Entry>>,
    /// Places without an entry.
    vacant: Vec<usize>,
    /// When the keeper wakes next by itself.
    planned: Option<LeaseTime>,
}

impl Table {
    /// Adds a lease. Returns whether the keeper must be woken for it.
    pub fn take(&mut self, lease: String, view: &LeaseView, granted: Granted) -> (Taken, bool) {
        let Granted { ttl, asked, now } = granted;
        let sure = now < asked + part(ttl, FRESH);
        let time = view.deadline.map(|end| end.since(view.granted_at));
        let pulse = Pulse {
            sent: asked,
            sure,
            // By this machine's clock from the time it was read; every answered extend corrects it.
            deadline: time.map(|time| now + time.std()),
            cancelled: false,
            ended: None,
        };
        let kept = Arc::new(Kept {
            lease,
            ttl,
            pulse: Mutex::new(pulse),
            report: Mutex::default(),
            let_go: AtomicBool::new(false),
            changed: Notify::new(),
        });
        let entry = Entry {
            kept: kept.clone(),
            deadline: view.deadline,
            next: if sure { asked + part(ttl, BEAT) } else { now },
            unsure_until: now + part(ttl, STOP),
        };
        let wake = self.planned.is_none_or(|planned| entry.due() < planned);
        let place = match self.vacant.pop() {
            Some(place) => {
                self.entries[place] = Some(entry);
                place
            }
            None => {
                self.entries.push(Some(entry));
                self.entries.len() - 1
            }
        };
        (Taken { kept, place }, wake)
    }

    fn entry(&self, place: usize, kept: &Arc<Kept>) -> Option<&Entry> {
        self.entries.get(place)?.as_ref().filter(|entry| Arc::ptr_eq(&entry.kept, kept))
    }

    fn entry_mut(&mut self, place: usize, kept: &Arc<Kept>) -> Option<&mut Entry> {
        self.entries.get_mut(place)?.as_mut().filter(|entry| Arc::ptr_eq(&entry.kept, kept))
    }

    /// Removes a lease: it is not extended any more.
    pub fn let_go(&mut self, taken: &Taken) {
        self.vacate(taken.place, &taken.kept);
    }

    fn vacate(&mut self, place: usize, kept: &Arc<Kept>) {
        if self.entry(place, kept).is_some() {
            self.entries[place] = None;
            self.vacant.push(place);
        }
        if !kept.let_go.swap(true, Ordering::AcqRel) {
            kept.changed.notify_waiters();
        }
    }

    fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().flatten()
    }

    /// The heartbeats that are due, and when to plan again. Ends the leases that could not be kept.
    pub fn plan(&mut self, now: LeaseTime) -> Plan {
        self.end_unkept(now);
        let mut calls: Vec<Beats> = Vec::new();
        if self.all().any(|entry| entry.next <= now) {
            for (place, entry) in self.entries.iter_mut().enumerate() {
                let Some(entry) = entry else { continue };
                let ttl = entry.kept.ttl;
                if entry.next > now + part(ttl, TOGETHER) {
                    continue;
                }
                entry.next = now + part(ttl, BEAT);
                let progress = lock(&entry.kept.report).take();
                let beat = Beat { place, kept: entry.kept.clone(), progress };
                match calls.last_mut().filter(|call| call.beats.len() < ITEMS_MAX) {
                    Some(call) => {
                        call.ttl = call.ttl.max(ttl);
                        call.beats.push(beat);
                    }
                    None => calls.push(Beats { sent: now, beats: vec![beat], ttl }),
                }
            }
        }
        self.planned = self.all().map(Entry::due).min();
        Plan { calls, next: self.planned }
    }

    fn end_unkept(&mut self, now: LeaseTime) {
        let mut over = Vec::new();
        for (place, entry) in self.entries.iter().enumerate() {
            let Some(entry) = entry else { continue };
            let pulse = entry.kept.pulse();
            let unkept = !pulse.sure && entry.unsure_until <= now;
            let stop = match pulse.stop(entry.kept.ttl, now) {
                Some(stop @ (Stop::Lost | Stop::Deadline)) => Some(stop),
                _ if unkept => Some(Stop::Lost),
                _ => None,
            };
            if let Some(stop) = stop.filter(|_| pulse.ended.is_none()) {
                entry.kept.change(|pulse| pulse.ended = Some(stop));
            }
            // A lease past its deadline is still extended while its holder stops, so that only the engine ends it.
            if stop == Some(Stop::Lost) || pulse.ended == Some(Stop::Lost) {
                over.push((place, entry.kept.clone()));
            }
        }
        for (place, kept) in over {
            self.vacate(place, &kept);
        }
    }

    /// Applies the answer to an extend call.
    pub fn heard(&mut self, beats: &Beats, answer: &Extended) {
        let extended: HashMap<&str, Moment> =
            answer.extended.iter().map(|one| (one.lease.as_str(), one.expires_at)).collect();
        let cancel: HashSet<&str> = answer.cancel.iter().map(String::as_str).collect();
        let lost: HashSet<&str> = answer.lost.iter().map(String::as_str).collect();
        for beat in &beats.beats {
            let Some(entry) = self.entry(beat.place, &beat.kept) else { continue };
            let lease = beat.kept.lease.as_str();
            let (ttl, deadline) = (entry.kept.ttl, entry.deadline);
            let expires_at = extended.get(lease).copied();
            let (cancelled, is_lost) = (cancel.contains(lease), lost.contains(lease));
            beat.kept.change(|pulse| {
                if let Some(expires_at) = expires_at {
                    pulse.sent = pulse.sent.max(beats.sent);
                    pulse.sure = true;
                    // The engine's time of the answer is `expires_at - ttl`, or later if its deadline cut the
                    // extension: either way the run ends no later than this.
                    if let (Some(end), Some(known)) = (deadline, pulse.deadline) {
                        let left = end.plus(span(ttl)).since(expires_at).std();
                        pulse.deadline = Some(known.min(beats.sent + left));
                    }
                }
                pulse.cancelled |= cancelled;
                if is_lost {
                    pulse.ended.get_or_insert(Stop::Lost);
                }
            });
            if is_lost {
                self.vacate(beat.place, &beat.kept);
            }
        }
    }

    /// An extend call failed: its leases are retried soon, with their reports unless the engine refused one.
    pub fn failed(&mut self, beats: Beats, now: LeaseTime, refused: bool) {
        for beat in beats.beats {
            let Some(entry) = self.entry_mut(beat.place, &beat.kept) else { continue };
            let reported = beat.progress.is_some();
            if let Some(progress) = beat.progress.filter(|_| !refused) {
                lock(&beat.kept.report).get_or_insert(progress);
            }
            // A refused report must not cost the lease: retry at once without it.
            let again =
                if refused && reported { Duration::ZERO } else { part(entry.kept.ttl, BEAT_AGAIN) };
            entry.next = entry.next.min(now + again);
        }
    }
}

fn span(time: Duration) -> Span {
    Span::from_us(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

/// Locks a mutex, even if another thread panicked while holding it.
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
