//! Counts the work of handlers. Called from every handler, so it must cost next to nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use crate::{Payload, now_us};

/// After this long without a handled job, the rest is given up.
const QUIET_MAX: Duration = Duration::from_secs(60);

/// Counts handled jobs up to a number.
pub struct Tally {
    wanted: u64,
    timed: bool,
    handled: AtomicU64,
    begin: AtomicU64,
    end: AtomicU64,
    full: Notify,
    latencies: Mutex<Vec<i64>>,
    keys: Mutex<HashMap<String, bool>>,
    overlaps: AtomicU64,
    gave_up: AtomicBool,
}

impl Tally {
    /// A tally that is full after `wanted` handled jobs.
    pub fn new(wanted: u64) -> Self {
        Tally {
            wanted,
            timed: false,
            handled: AtomicU64::new(0),
            begin: AtomicU64::new(0),
            end: AtomicU64::new(0),
            full: Notify::new(),
            latencies: Mutex::new(Vec::new()),
            keys: Mutex::new(HashMap::new()),
            overlaps: AtomicU64::new(0),
            gave_up: AtomicBool::new(false),
        }
    }

    /// As [`Tally::new`], but each handler's start is measured from its job's time.
    pub fn timed(wanted: u64) -> Self {
        Tally { timed: true, ..Tally::new(wanted) }
    }

    /// Starts the clock now, and not at the first handler's start.
    pub fn begin_now(&self) {
        self.begin.store(now_us(), Ordering::Relaxed);
    }

    /// The whole handler of a job that does nothing.
    pub fn handle(&self, payload: &Payload) {
        let now = now_us();
        let _ = self.begin.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        if self.timed {
            let late = now as i64 - payload.t as i64;
            self.latencies.lock().unwrap_or_else(PoisonError::into_inner).push(late);
        }
        self.count();
    }

    /// Counts one more handled job.
    pub fn count(&self) {
        if self.handled.fetch_add(1, Ordering::Relaxed) + 1 == self.wanted {
            self.end.store(now_us(), Ordering::Relaxed);
            self.full.notify_one();
        }
    }

    /// The whole handler of a job that must not overlap with another of its key. It yields once, so
    /// that another one has the chance to overlap.
    pub async fn handle_keyed(&self, payload: &Payload) {
        let keys = || self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if keys().insert(payload.k.clone(), true) == Some(true) {
            self.overlaps.fetch_add(1, Ordering::Relaxed);
        }
        tokio::task::yield_now().await;
        keys().insert(payload.k.clone(), false);
        self.handle(payload);
    }

    /// The whole handler beside blocked jobs: a free job is counted, a blocked one takes long.
    pub async fn handle_beside_blocked(&self, payload: &Payload) {
        if payload.k == "free" {
            self.handle(payload);
        } else {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Returns when all jobs were handled, or when none was for a minute.
    pub async fn done(&self) {
        let mut before = self.handled.load(Ordering::Relaxed);
        while tokio::time::timeout(QUIET_MAX, self.full.notified()).await.is_err() {
            let handled = self.handled.load(Ordering::Relaxed);
            if handled == before {
                self.gave_up.store(true, Ordering::Relaxed);
                self.end.store(now_us(), Ordering::Relaxed);
                return;
            }
            before = handled;
        }
    }

    /// The counts as figures.
    pub fn figures(&self) -> Map<String, Value> {
        let handled = self.handled.load(Ordering::Relaxed);
        let us =
            self.end.load(Ordering::Relaxed) as i64 - self.begin.load(Ordering::Relaxed) as i64;
        let mut figures = Map::new();
        figures.insert("jobs".to_owned(), handled.into());
        figures.insert("seconds".to_owned(), (us as f64 / 1e6).into());
        figures.insert("overlaps".to_owned(), self.overlaps.load(Ordering::Relaxed).into());
        if self.gave_up.load(Ordering::Relaxed) {
            figures.insert("gave_up".to_owned(), true.into());
        }
        let mut late = self.latencies.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if !late.is_empty() {
            late.sort_unstable();
            let at =
                |part: f64| late[((late.len() - 1) as f64 * part).round() as usize] as f64 / 1e3;
            figures.insert("min_ms".to_owned(), json!(at(0.0)));
            figures.insert("p50_ms".to_owned(), json!(at(0.5)));
            figures.insert("p99_ms".to_owned(), json!(at(0.99)));
            figures.insert("max_ms".to_owned(), json!(at(1.0)));
        }
        figures
    }
}
