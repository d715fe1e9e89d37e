//! The leases that this process holds, and when each must be extended or given up.
//!
//! Pure bookkeeping on instants that it is given: it sends nothing, sleeps nowhere and reads no
//! clock.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::bounds::ITEMS_MAX;
use tenure_core::lease::{ExtendItem, Extended};
use tenure_core::secret::Json;
use tenure_core::time::{Moment, Span};
use tokio::sync::watch;
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

/// A progress report that has not been told yet.
pub type PendingProgress = Arc<Mutex<Option<Json>>>;

struct Entry {
    key: u64,
    ttl: Duration,
    /// In the engine's time.
    deadline: Option<Moment>,
    /// The next heartbeat.
    next: Instant,
    /// An unsure lease that no extend confirms is given up then.
    unsure_until: Instant,
    pulse: watch::Sender<Pulse>,
    report: PendingProgress,
}

impl Entry {
    /// When something is to be done about it.
    fn due(&self) -> Instant {
        let pulse = self.pulse.borrow();
        let stop = match pulse.sure {
            true => pulse.stop_by(self.ttl),
            false => self.unsure_until,
        };
        self.next.min(stop)
    }
}

/// A lease as it is taken into the table.
pub struct Taken {
    /// Its id.
    pub lease: String,
    /// Its ttl.
    pub ttl: Duration,
    /// When the call was first sent under its request id.
    pub asked: Instant,
    /// Now.
    pub now: Instant,
    /// When the run must be over, in the engine's time.
    pub deadline: Option<Moment>,
    /// How long the run may take, from the grant.
    pub time: Option<Span>,
}

/// One item of an extend call, and what must be known when its answer comes.
pub struct Beat {
    /// The lease.
    pub lease: String,
    key: u64,
    /// What is reported along.
    pub progress: Option<Json>,
}

/// Heartbeats of one call.
pub struct Beats {
    /// When they were sent.
    pub sent: Instant,
    /// Which.
    pub beats: Vec<Beat>,
    /// The longest ttl among them: an answer is worth nothing after that.
    pub ttl: Duration,
}

impl Beats {
    /// As an extend call has them.
    pub fn items(&self) -> Vec<ExtendItem> {
        let one =
            |beat: &Beat| ExtendItem { lease: beat.lease.clone(), progress: beat.progress.clone() };
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

/// The leases that are held.
#[derive(Default)]
pub struct Table {
    entries: HashMap<String, Entry>,
    keys: u64,
    /// When the keeper looks again by itself.
    planned: Option<Instant>,
}

impl Table {
    /// Takes a lease in. Says whether the keeper must be woken for it.
    pub fn take(
        &mut self,
        taken: Taken,
        report: PendingProgress,
    ) -> (u64, watch::Receiver<Pulse>, bool) {
        self.keys += 1;
        let sure = taken.now < taken.asked + part(taken.ttl, FRESH);
        let (pulse, watched) = watch::channel(Pulse {
            sent: taken.asked,
            sure,
            // By the own clock from the moment it was read; every answered extend corrects it.
            deadline: taken.time.map(|time| taken.now + time.std()),
            cancelled: false,
            ended: None,
        });
        let next = if sure { taken.asked + part(taken.ttl, BEAT) } else { taken.now };
        let entry = Entry {
            key: self.keys,
            ttl: taken.ttl,
            deadline: taken.deadline,
            next,
            unsure_until: taken.now + part(taken.ttl, STOP),
            pulse,
            report,
        };
        let wake = self.planned.is_none_or(|planned| entry.due() < planned);
        self.entries.insert(taken.lease, entry);
        (self.keys, watched, wake)
    }

    /// Lets a lease go: it is not extended any more.
    pub fn drop_lease(&mut self, lease: &str, key: u64) {
        if self.entries.get(lease).is_some_and(|entry| entry.key == key) {
            self.entries.remove(lease);
        }
    }

    /// What is due, and when to look again. What could not be kept ends here.
    pub fn plan(&mut self, now: Instant) -> Plan {
        self.entries.retain(|_, entry| {
            let pulse = *entry.pulse.borrow();
            let unkept = !pulse.sure && entry.unsure_until <= now;
            let stop = match pulse.stop(entry.ttl, now) {
                Some(stop @ (Stop::Lost | Stop::Deadline)) => Some(stop),
                _ if unkept => Some(Stop::Lost),
                _ => None,
            };
            // One whose deadline came is extended on while its holder stops, so that the engine
            // and nobody else ends it.
            let over = stop == Some(Stop::Lost) || pulse.ended == Some(Stop::Lost);
            if let Some(stop) = stop.filter(|_| pulse.ended.is_none()) {
                entry.pulse.send_modify(|pulse| pulse.ended = Some(stop));
            }
            !over
        });
        let mut calls: Vec<Beats> = Vec::new();
        if self.entries.values().any(|entry| entry.next <= now) {
            for (lease, entry) in &mut self.entries {
                if entry.next > now + part(entry.ttl, TOGETHER) {
                    continue;
                }
                entry.next = now + part(entry.ttl, BEAT);
                let progress = lock(&entry.report).take();
                let beat = Beat { lease: lease.clone(), key: entry.key, progress };
                match calls.last_mut().filter(|call| call.beats.len() < ITEMS_MAX) {
                    Some(call) => {
                        call.ttl = call.ttl.max(entry.ttl);
                        call.beats.push(beat);
                    }
                    None => calls.push(Beats { sent: now, beats: vec![beat], ttl: entry.ttl }),
                }
            }
        }
        let due = |entry: &Entry| match entry.pulse.borrow().ended {
            Some(_) => entry.next,
            None => entry.due(),
        };
        self.planned = self.entries.values().map(due).min();
        Plan { calls, next: self.planned }
    }

    /// An extend call was answered.
    pub fn heard(&mut self, beats: &Beats, answer: &Extended) {
        let keys: HashMap<&str, u64> =
            beats.beats.iter().map(|beat| (beat.lease.as_str(), beat.key)).collect();
        let mine = |table: &mut Self, lease: &str, change: &dyn Fn(&mut Pulse, &Entry)| {
            if let Some(entry) = table.entries.get(lease)
                && keys.get(lease) == Some(&entry.key)
            {
                entry.pulse.send_modify(|pulse| change(pulse, entry));
            }
        };
        for extended in &answer.extended {
            mine(self, &extended.lease, &|pulse, entry| {
                pulse.sent = pulse.sent.max(beats.sent);
                pulse.sure = true;
                // The engine's time of the answer is `expires_at - ttl`, or later if its deadline
                // cut the extension: either way the run is over no later than this.
                if let (Some(end), Some(known)) = (entry.deadline, pulse.deadline) {
                    let left = end.plus(span(entry.ttl)).since(extended.expires_at).std();
                    pulse.deadline = Some(known.min(beats.sent + left));
                }
            });
        }
        for lease in &answer.cancel {
            mine(self, lease, &|pulse, _| pulse.cancelled = true);
        }
        for lease in &answer.lost {
            mine(self, lease, &|pulse, _| {
                pulse.ended.get_or_insert(Stop::Lost);
            });
            if let Some(key) = keys.get(lease.as_str()) {
                self.drop_lease(lease, *key);
            }
        }
    }

    /// An extend call failed: its leases are tried again soon, with what they wanted to report
    /// unless that was refused.
    pub fn failed(&mut self, beats: Beats, now: Instant, refused: bool) {
        for beat in beats.beats {
            let Some(entry) = self.entries.get_mut(&beat.lease) else { continue };
            if entry.key != beat.key {
                continue;
            }
            let reported = beat.progress.is_some();
            if let Some(progress) = beat.progress.filter(|_| !refused) {
                lock(&entry.report).get_or_insert(progress);
            }
            // A report that was refused must not cost the lease: at once again without it.
            let again =
                if refused && reported { Duration::ZERO } else { part(entry.ttl, BEAT_AGAIN) };
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
