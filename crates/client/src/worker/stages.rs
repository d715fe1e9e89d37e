//! Stages of a worker's jobs: waiting for a slot, running, ended, or with an outcome under way.
//!
//! A slot is one handler that may be at work. It is free again as soon as its handler has ended: it takes the next
//! waiting job; without one, more are asked for in the same step in which outcomes are sent. Unanswered outcomes beyond
//! the number of slots take up room. A worker with one slot waits for its answer, so that it never holds two jobs.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tenure_core::bounds::{BODY_BYTES_MAX, ITEMS_MAX};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::ended_run::EndedRun;
use super::job::Job;
use super::pace::{AHEAD_MAX, Pace};

/// How long the first outcome of a call waits for others, and a free slot of a busy worker for other slots: a
/// call for many jobs costs an engine little more than a call for one.
pub const GATHER_MAX: Duration = Duration::from_millis(1);
/// The outcomes of one call stay well below the largest body.
const GATHER_BYTES: usize = BODY_BYTES_MAX / 2;

/// A job without a slot.
struct WaitingJob {
    job: Job,
    since: Instant,
}

struct StagesState {
    waiting: VecDeque<WaitingJob>,
    running: usize,
    /// Outcomes gathered for the next call.
    ended: Vec<EndedRun>,
    ended_bytes: usize,
    /// When the first of them was added.
    ended_since: Option<Instant>,
    /// Outcomes that were sent and are not answered yet.
    sent: usize,
    /// The part of these that must be sent again, a batch each.
    back: Vec<Vec<EndedRun>>,
    /// Whether the sender is gone.
    closed: bool,
    pace: Pace,
}

/// How many more jobs may be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// The number of free slots.
    pub slots: usize,
    /// How many jobs may be asked for, including those that will wait for a slot.
    pub jobs: usize,
}

/// The stages of all jobs of one worker; shared by its loop and its slots.
pub struct Stages {
    slots: usize,
    inside: Mutex<StagesState>,
    /// Notified when outcomes or free slots need attention.
    changed: Notify,
}

impl Stages {
    /// For this many slots, at least one, all of them free.
    pub fn new(slots: usize) -> Self {
        let inside = StagesState {
            waiting: VecDeque::new(),
            running: 0,
            ended: Vec::new(),
            ended_bytes: 0,
            ended_since: None,
            sent: 0,
            back: Vec::new(),
            closed: false,
            pace: Pace::new(slots),
        };
        Stages { slots, inside: Mutex::new(inside), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, StagesState> {
        crate::keeper::lock(&self.inside)
    }

    /// How many of the waiting jobs have a free slot: those that have waited longest.
    fn fillable(&self, inside: &StagesState) -> usize {
        self.slots.saturating_sub(inside.running).min(inside.waiting.len())
    }

    /// This many jobs or outcomes are enough for a call; it does not wait for more.
    fn batch(&self) -> usize {
        self.slots.min(ITEMS_MAX)
    }

    /// Adds granted jobs; they wait for a slot.
    pub fn arrived(&self, jobs: impl IntoIterator<Item = Job>, since: Instant) {
        self.lock().waiting.extend(jobs.into_iter().map(|job| WaitingJob { job, since }));
    }

    /// Gives the free slots to the jobs that have waited longest; returns the jobs to run now.
    pub fn fill_slots(&self) -> Vec<Job> {
        let mut inside = self.lock();
        let free = self.fillable(&inside);
        inside.running += free;
        inside.waiting.drain(..free).map(|waiting| waiting.job).collect()
    }

    /// A run is over, `ran` after it got its slot; without an outcome if the run has none to send. Returns the job that
    /// gets its slot; with none, or unless `takes`, the slot is free.
    pub fn ended(
        &self,
        said: Option<EndedRun>,
        ran: Duration,
        now: Instant,
        takes: bool,
    ) -> Option<Job> {
        let mut inside = self.lock();
        inside.pace.ran(ran);
        // The first outcome starts the time in which others are gathered.
        let mut tells = said.is_none() || inside.ended.is_empty();
        if let Some(said) = said {
            inside.ended_bytes += said.bytes();
            inside.ended.push(said);
            inside.ended_since.get_or_insert(now);
        }
        let next = if takes { inside.waiting.pop_front() } else { None };
        if next.is_none() {
            inside.running -= 1;
        }
        tells |= self.must_send(&inside);
        drop(inside);
        if tells {
            self.changed.notify_one();
        }
        next.map(|waiting| waiting.job)
    }

    /// Whether another outcome is not worth waiting for.
    fn must_send(&self, inside: &StagesState) -> bool {
        let nobody_else = inside.running == 0 && inside.waiting.is_empty();
        nobody_else || inside.ended.len() >= self.batch() || inside.ended_bytes >= GATHER_BYTES
    }

    /// When the gathered outcomes must be sent; `now` if that is at once.
    pub fn sends_at(&self, now: Instant) -> Option<Instant> {
        let inside = self.lock();
        let since = inside.ended_since?;
        Some(if self.must_send(&inside) { now } else { since + GATHER_MAX })
    }

    /// Takes the outcomes of the next call; they count as sent until [`Stages::answered`].
    fn send(&self) -> Vec<EndedRun> {
        let mut inside = self.lock();
        let count = inside.ended.len().min(ITEMS_MAX);
        let rest = inside.ended.split_off(count);
        let said = std::mem::replace(&mut inside.ended, rest);
        inside.ended_bytes = inside.ended.iter().map(EndedRun::bytes).sum();
        if inside.ended.is_empty() {
            inside.ended_since = None;
        }
        inside.sent += said.len();
        said
    }

    /// All gathered outcomes, a batch for each call.
    pub fn send_all(&self) -> Vec<Vec<EndedRun>> {
        std::iter::from_fn(|| Some(self.send()).filter(|said| !said.is_empty())).collect()
    }

    /// This many outcomes are answered, or never will be.
    pub fn answered(&self, outcomes: usize) {
        self.lock().sent -= outcomes;
        self.changed.notify_one();
    }

    /// Outcomes that rode with another call were not answered by it. They are returned if the sender is gone.
    pub fn came_back(&self, outcomes: Vec<EndedRun>) -> Option<Vec<EndedRun>> {
        let mut inside = self.lock();
        if inside.closed {
            return Some(outcomes);
        }
        inside.back.push(outcomes);
        drop(inside);
        self.changed.notify_one();
        None
    }

    /// Takes the outcomes that came back, a batch each.
    pub fn send_again(&self) -> Vec<Vec<EndedRun>> {
        std::mem::take(&mut self.lock().back)
    }

    /// Nothing is sent any more after this.
    pub fn close(&self) {
        self.lock().closed = true;
    }

    /// Whether the worker is gone.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Room for more jobs. `ahead`: also for as many as end while a call is under way. `rides`: the gathered outcomes
    /// are sent in the same call that asks for these jobs, before it is granted any.
    pub fn room(&self, ahead: bool, rides: bool) -> Room {
        let inside = self.lock();
        let held = inside.waiting.len() + inside.running;
        let gathered = if rides { 0 } else { inside.ended.len() };
        let unsettled = held + gathered + inside.sent;
        let taken = match self.slots {
            1 => unsettled,
            slots => held.max(unsettled.saturating_sub(slots)),
        };
        let ahead = if ahead { inside.pace.ahead() } else { 0 };
        Room {
            slots: self.slots.saturating_sub(taken),
            jobs: self.slots.saturating_add(ahead).saturating_sub(taken).min(ITEMS_MAX),
        }
    }

    /// Whether to ask for more jobs now and not a moment later, when there may be more room.
    pub fn asks_at_once(&self, room: Room) -> bool {
        let inside = self.lock();
        inside.running == 0 && inside.waiting.is_empty() || room.jobs >= self.batch()
    }

    /// A lease call was answered; see [`Pace::answered`].
    pub fn asked(&self, filled: bool, scarce: bool, took: Duration) {
        self.lock().pace.answered(filled, scarce, took);
    }

    /// When the job that waits longest has waited for too long.
    pub fn late_at(&self) -> Option<Instant> {
        self.lock().waiting.front().map(|first| first.since + AHEAD_MAX)
    }

    /// Takes the jobs that have waited for too long, to be given back. A job with a free slot stays: the thread stood
    /// still, and not the slots.
    pub fn late(&self, now: Instant) -> Vec<Job> {
        let mut inside = self.lock();
        let free = self.fillable(&inside);
        let waits = inside.waiting.iter().skip(free);
        let late = waits.take_while(|one| one.since + AHEAD_MAX <= now).count();
        if late > 0 {
            inside.pace.waited_too_long();
        }
        inside.waiting.drain(free..free + late).map(|waiting| waiting.job).collect()
    }

    /// Takes all jobs that wait.
    pub fn all_waiting(&self) -> Vec<Job> {
        self.lock().waiting.drain(..).map(|waiting| waiting.job).collect()
    }

    /// Whether it holds no job, and no outcome of one.
    pub fn is_empty(&self) -> bool {
        let inside = self.lock();
        inside.waiting.is_empty() && inside.running + inside.ended.len() + inside.sent == 0
    }

    /// Returns if something has changed since the last call, or when it does.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}
