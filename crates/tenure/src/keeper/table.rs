//! The leases that this process holds, and when each must be extended or given up.
//!
//! Pure bookkeeping on instants that it is given: it sends nothing, sleeps nowhere and reads no
//! clock.

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
use tokio::time::Instant;

/// Parts of a ttl at which something happens, in hundredths: a heartbeat.
const BEAT: u32 = 20;
/// A heartbeat again, when the last one failed.
const BEAT_AGAIN: u32 = 5;
/// What is due within this is sent along, so that all leases come to beat together.
const TOGETHER: u32 = 10;
/// A lease that is read later than this after it was asked for is extended before its work starts.
const FRESH: u32 = 20;
/// The holder stops its work.
const STOP: u32 = 80;
/// The last moment at which anything of it may still run.
const HARD: u32 = 95;

const _: () = assert!(BEAT_AGAIN < BEAT && BEAT < STOP && STOP < HARD && HARD < 100);
const _: () = assert!(FRESH <= BEAT && TOGETHER < BEAT);

fn part(ttl: Duration, hundredths: u32) -> Duration {
    ttl * hundredths / 100
}

/// Why a holder must stop its work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stop {
    /// The lease is no longer held, or could not be kept: somebody else may soon have it.
    Lost,
    /// Its job was called off.
    Cancelled,
    /// The time of this run is over.
    Deadline,
    /// This process stops and has no more time to finish.
    Shutdown,
}

/// What is known of one lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pulse {
    /// When the last heartbeat that was answered was sent; at first, when the lease was asked for.
    pub sent: Instant,
    /// Whether it is known to be held: its answer was fresh, or an extend was answered since.
    pub sure: bool,
    /// When its run must be over, by this process's clock.
    pub deadline: Option<Instant>,
    /// Its job was called off; the lease is held on while the holder stops.
    pub cancelled: bool,
    /// It is over.
    pub ended: Option<Stop>,
}

impl Pulse {
    /// When the holder stops, if no heartbeat is answered before.
    pub fn stop_by(&self, ttl: Duration) -> Instant {
        let by = self.sent + part(ttl, STOP);
        self.deadline.map_or(by, |deadline| by.min(deadline))
    }
    /// When nothing of it may run any more.
    pub fn hard_limit(&self, ttl: Duration) -> Instant {
        self.sent + part(ttl, HARD)
    }
    /// Why the holder must stop, as of `now`.
    pub fn stop(&self, ttl: Duration, now: Instant) -> Option<Stop> {
        match self.ended {
            Some(stop) => Some(stop),
            None if self.deadline.is_some_and(|at| at <= now) => Some(Stop::Deadline),
            None if self.sure && self.stop_by(ttl) <= now => Some(Stop::Lost),
            None if self.cancelled => Some(Stop::Cancelled),
            None => None,
        }
    }
}

/// One lease in care, as its holder and the keeper both see it.
pub struct Kept {
    pub lease: String,
    /// The one that it was asked for with.
    pub ttl: Duration,
    pulse: Mutex<Pulse>,
    /// The last progress report, until a heartbeat takes it along.
    pub report: Mutex<Option<Json>>,
    /// Nobody extends it any more. Never becomes false again.
    let_go: AtomicBool,
    changed: Notify,
}

impl Kept {
    /// What is known of it now.
    pub fn pulse(&self) -> Pulse {
        *lock(&self.pulse)
    }
    /// See [`Held::stop_by`](super::Held::stop_by).
    pub fn stop_by(&self) -> std::time::Instant {
        self.pulse().stop_by(self.ttl).into_std()
    }
    /// See [`Held::hard_limit`](super::Held::hard_limit).
    pub fn hard_limit(&self) -> std::time::Instant {
        self.pulse().hard_limit(self.ttl).into_std()
    }
    /// Whether nobody extends it any more.
    pub fn is_let_go(&self) -> bool {
        self.let_go.load(Ordering::Acquire)
    }
    /// Completes at the next change; one that is only polled later misses what came before.
    pub fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }
    fn change(&self, how: impl FnOnce(&mut Pulse)) {
        how(&mut lock(&self.pulse));
        self.changed.notify_waiters();
    }
}

/// A lease in the table, as its holder names it there.
pub struct Taken {
    pub kept: Arc<Kept>,
    place: usize,
}

struct Entry {
    kept: Arc<Kept>,
    /// In the engine's time.
    deadline: Option<Moment>,
    /// The next heartbeat.
    next: Instant,
    /// An unsure lease that no extend confirms is given up then.
    unsure_until: Instant,
}

impl Entry {
    /// When something is to be done about it.
    fn due(&self) -> Instant {
        let pulse = self.kept.pulse();
        if pulse.ended.is_some() {
            return self.next;
        }
        let stop = match pulse.sure {
            true => pulse.stop_by(self.kept.ttl),
            false => self.unsure_until,
        };
        self.next.min(stop)
    }
}

/// When leases that came with one answer were asked for, and read.
#[derive(Clone, Copy)]
pub struct Granted {
    /// The ttl that they were asked for with.
    pub ttl: Duration,
    /// When the call was first sent under its request id.
    pub asked: Instant,
    pub now: Instant,
}

/// One item of an extend call, and what must be known when its answer comes.
pub struct Beat {
    place: usize,
    kept: Arc<Kept>,
    /// What is reported along.
    progress: Option<Json>,
}

/// Heartbeats of one call.
pub struct Beats {
    /// When they were sent.
    pub sent: Instant,
    /// At most [`ITEMS_MAX`].
    pub beats: Vec<Beat>,
    /// The longest ttl among them: an answer is worth nothing after that.
    pub ttl: Duration,
}

impl Beats {
    /// As an extend call has them.
    pub fn items(&self) -> Vec<ExtendItem> {
        let one = |beat: &Beat| ExtendItem {
            lease: beat.kept.lease.clone(),
            progress: beat.progress.clone(),
        };
        self.beats.iter().map(one).collect()
    }
}

/// What to do now.
pub struct Plan {
    /// To be sent, each at most [`ITEMS_MAX`] long.
    pub calls: Vec<Beats>,
    /// When to look again; `None` while nothing is held.
    pub next: Option<Instant>,
}

/// The leases that are held. A lease has a place by number, since a worker that handles jobs by the ten
/// thousand a second takes and drops that many.
#[derive(Default)]
pub struct Table {
    entries: Vec<Option<Entry>>,
    /// Places without an entry.
    vacant: Vec<usize>,
    /// When the keeper looks again by itself.
    planned: Option<Instant>,
}

impl Table {
    /// Takes a lease in. Says whether the keeper must be woken for it.
    pub fn take(&mut self, lease: String, view: &LeaseView, granted: Granted) -> (Taken, bool) {
        let Granted { ttl, asked, now } = granted;
        let sure = now < asked + part(ttl, FRESH);
        let time = view.deadline.map(|end| end.since(view.granted_at));
        let pulse = Pulse {
            sent: asked,
            sure,
            // By the own clock from the moment it was read; every answered extend corrects it.
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

    /// Lets a lease go: it is not extended any more.
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

    /// What is due, and when to look again. What could not be kept ends here.
    pub fn plan(&mut self, now: Instant) -> Plan {
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

    fn end_unkept(&mut self, now: Instant) {
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
            // One whose deadline came is extended on while its holder stops, so that the engine
            // and nobody else ends it.
            if stop == Some(Stop::Lost) || pulse.ended == Some(Stop::Lost) {
                over.push((place, entry.kept.clone()));
            }
        }
        for (place, kept) in over {
            self.vacate(place, &kept);
        }
    }

    /// An extend call was answered.
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
                    // The engine's time of the answer is `expires_at - ttl`, or later if its deadline
                    // cut the extension: either way the run is over no later than this.
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

    /// An extend call failed: its leases are tried again soon, with what they wanted to report
    /// unless that was refused.
    pub fn failed(&mut self, beats: Beats, now: Instant, refused: bool) {
        for beat in beats.beats {
            let Some(entry) = self.entry_mut(beat.place, &beat.kept) else { continue };
            let reported = beat.progress.is_some();
            if let Some(progress) = beat.progress.filter(|_| !refused) {
                lock(&beat.kept.report).get_or_insert(progress);
            }
            // A report that was refused must not cost the lease: at once again without it.
            let again = match refused && reported {
                true => Duration::ZERO,
                false => part(entry.kept.ttl, BEAT_AGAIN),
            };
            entry.next = entry.next.min(now + again);
        }
    }
}

fn span(time: Duration) -> Span {
    Span::from_us(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

/// A lock that no panic elsewhere can take away.
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
