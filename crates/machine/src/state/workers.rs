//! Workers that called within the last minute.

use std::collections::BTreeMap;

use super::QueueId;
use crate::audit::findings::Findings;
use crate::time::timers::Timers;
use tenure_core::bounds::{TICK_MAX, WORKER_US};
use tenure_core::lease::Worker;
use tenure_core::names::WorkerId;
use tenure_core::time::{Moment, Span};

/// True if a call at that time still shows that its caller is there.
pub(crate) fn is_recent(at: Moment, now: Moment) -> bool {
    at.plus(Span::from_us(WORKER_US)) > now
}

/// A worker that called within the last minute.
#[derive(Debug, Default)]
pub(crate) struct WorkerState {
    pub host: Option<String>,
    pub pid: Option<u32>,
    pub version: Option<String>,
    pub queues: BTreeMap<QueueId, Moment>,
    pub seen_at: Moment,
    /// Number of its lease calls that wait now.
    pub waiting: u32,
}

impl WorkerState {
    /// The queues that it asked for recently.
    pub(crate) fn asked_lately(&self, now: Moment) -> impl Iterator<Item = QueueId> + use<'_> {
        let lately = self.queues.iter().filter(move |(_, at)| is_recent(**at, now));
        lately.map(|(queue, _)| *queue)
    }
}

/// All known workers.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    known: BTreeMap<WorkerId, WorkerState>,
    /// The time at which a tick looks if each is still there.
    ends: Timers<WorkerId>,
}

impl Workers {
    pub fn known(&self) -> &BTreeMap<WorkerId, WorkerState> {
        &self.known
    }

    /// Notes a call of a worker, and the queues in it.
    pub fn see(&mut self, worker: &Worker, queues: &[QueueId], now: Moment) {
        let Some(id) = &worker.id else { return };
        if !self.known.contains_key(id) {
            self.ends.set(now.plus(Span::from_us(WORKER_US)), id.clone());
        }
        let state = self.known.entry(id.clone()).or_default();
        state.host = worker.host.clone().or(state.host.take());
        state.pid = worker.pid.or(state.pid);
        state.version = worker.version.clone().or(state.version.take());
        state.seen_at = now;
        for queue in queues {
            state.queues.insert(*queue, now);
        }
    }

    /// Notes a sign of life of a worker, by one of its leases.
    pub fn hear(&mut self, id: Option<&WorkerId>, now: Moment) {
        if let Some(worker) = id.and_then(|id| self.known.get_mut(id)) {
            worker.seen_at = now;
        }
    }

    /// One more lease call of a worker waits, or one less.
    pub fn count_waiting(&mut self, id: Option<&WorkerId>, by: i32) {
        if let Some(worker) = id.and_then(|id| self.known.get_mut(id)) {
            worker.waiting = worker.waiting.saturating_add_signed(by);
        }
    }

    /// A queue is gone.
    pub fn forget_queue(&mut self, queue: QueueId) {
        for worker in self.known.values_mut() {
            worker.queues.remove(&queue);
        }
    }

    pub fn next_end(&self) -> Option<Moment> {
        self.ends.next()
    }

    /// Forgets workers that are silent and wait for nothing.
    pub fn tick(&mut self, now: Moment) {
        for _ in 0..TICK_MAX {
            let Some((_, id)) = self.ends.take_due(now) else { return };
            let Some(worker) = self.known.get_mut(&id) else { continue };
            let ends = worker.seen_at.plus(Span::from_us(WORKER_US));
            if ends > now || worker.waiting > 0 {
                worker.queues.retain(|_, at| is_recent(*at, now));
                let again = if ends > now { ends } else { now.plus(Span::from_us(WORKER_US)) };
                self.ends.set(again, id);
            } else {
                self.known.remove(&id);
            }
        }
    }

    pub fn audit(&self, found: &mut Findings) {
        found.check(self.ends.len() == self.known.len(), || {
            "workers and the times at which they are looked at differ in number".to_owned()
        });
    }
}
