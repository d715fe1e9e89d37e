//! The thread that owns the machine: it applies what is asked, one after the other, ticks when
//! something is due, and hands rows and answers on in batches.
//!
//! It must never wait for the disk, nor for who asked.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tenure_core::bounds::{CLOCK_BEHIND_LOUD_US, PULSE_US};
use tenure_core::job::JobState;
use tenure_core::machine::facts::{Delivery, Grant, Granted};
use tenure_core::machine::rows::{Kind, RowKey, Rows};
use tenure_core::machine::{
    Command, Done, LeaseOutcome, Machine, PushedOne, Seq, SettledOne, StoredJob, TakerId,
};
use tenure_core::names::Namespace;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{Lease, Push, PushAnswer, Request, Settle};
use tenure_core::time::{Moment, Span};
use tenure_engine::CallError;

use crate::batch::{Answer, Batch, Leased, Pending, PushedShown, Reply, SettledShown, Shown};
use crate::disk;
use crate::inbox::{Ask, Envelope};
use crate::options::Fatal;
use crate::shared::Shared;
use crate::shelf::Shelf;

/// A batch of so many jobs is handed on although more is asked already, if the disk has room.
const ROWS_ENOUGH: usize = 1_000;

/// A lease call that waits.
struct Waiting {
    namespace: Namespace,
    reply: Reply,
}

/// See the module.
pub(crate) struct State {
    shared: Arc<Shared>,
    machine: Machine,
    shelf: Shelf,
    batch: Batch,
    waiting: HashMap<TakerId, Waiting>,
    /// Calls whose bounded work was not enough: they go on behind those that came meanwhile.
    again: Vec<Envelope>,
    /// The latest that the clock said.
    seen: Moment,
    /// Finished jobs take too much, but none could go: not tried again before something changes.
    stuck: bool,
}

/// Why the thread ends.
pub(crate) enum Ended {
    Closed,
    Crashed,
}

fn draining() -> CallError {
    let mut no = Refusal::new(
        Code::Draining,
        "the server is draining and grants nothing more",
        "ask again in a moment: another server answers, or this one when it is back",
    );
    no.retry_after_s = Some(1);
    CallError::Refused(no)
}

impl State {
    pub(crate) fn new(shared: Arc<Shared>, machine: Machine, shelf: Shelf) -> Self {
        State {
            shared,
            machine,
            shelf,
            batch: Batch { number: 1, ..Batch::default() },
            waiting: HashMap::new(),
            again: Vec::new(),
            seen: Moment::ZERO,
            stuck: false,
        }
    }

    /// Runs until the inbox is closed.
    pub(crate) fn run(&mut self) -> Ended {
        let shared = self.shared.clone();
        loop {
            let taken = shared.inbox.take(self.patience());
            if taken.crashed {
                return Ended::Crashed;
            }
            if shared.fatal().is_some() {
                self.refuse(taken.calls);
                if taken.closing {
                    return Ended::Closed;
                }
                continue;
            }
            self.shelf.committed(shared.committed.load(Ordering::Acquire));
            let again = std::mem::take(&mut self.again);
            for call in again.into_iter().chain(taken.calls) {
                self.tick();
                self.take(call);
                if self.batch.rows.jobs.len() >= ROWS_ENOUGH {
                    self.hand_on();
                }
            }
            self.tick();
            self.hand_on();
            if taken.closing && self.again.is_empty() {
                self.close();
                return Ended::Closed;
            }
        }
    }

    // ---- Time ----

    fn due(&self) -> Option<Moment> {
        if self.machine.over_budget() && !self.stuck {
            return Some(Moment::ZERO);
        }
        self.machine.next_due()
    }

    /// How long nothing is to do. At most a second, since only who looks sees a clock step back.
    fn patience(&self) -> Duration {
        let most = Span::from_us(PULSE_US).std();
        if !self.again.is_empty() {
            return Duration::ZERO;
        }
        match self.due() {
            Some(due) if due <= self.shared.clock.now() => Duration::ZERO,
            Some(due) => self.shared.clock.sleep(due).min(most),
            None => most,
        }
    }

    /// Ticks once if something is due.
    fn tick(&mut self) {
        let now = self.shared.clock.now();
        let behind = self.seen.since(now) > Span::from_us(CLOCK_BEHIND_LOUD_US);
        self.seen = self.seen.max(now);
        if !behind && self.due().is_none_or(|due| due > now) {
            return;
        }
        let over = self.machine.over_budget();
        self.machine.tick(now, &self.shelf);
        let behind = self.machine.clock_behind();
        if behind.is_none() {
            // It was accepted, or it has caught up.
            self.seen = now;
        }
        self.shared.behind_us.store(behind.map_or(0, Span::us), Ordering::Relaxed);
        let changed = self.absorb();
        self.stuck = over && self.machine.over_budget() && !changed;
    }

    // ---- Calls ----

    fn take(&mut self, call: Envelope) {
        let Envelope { namespace, ask, reply } = call;
        match ask {
            Ask::Command(command) => {
                let done = self.apply(&namespace, *command);
                self.answer_step(namespace, reply, done.map(Answer::Done));
            }
            Ask::Push(push) => self.push(namespace, push, reply),
            Ask::Settle(settle) => self.settle(namespace, settle, reply),
            Ask::Lease(lease, taker) => self.lease(namespace, lease, taker, reply),
            Ask::DropWait(taker) => {
                self.waiting.remove(&taker);
                let _ = self.apply(&namespace, Command::DropWait(taker));
                self.absorb();
            }
            Ask::Undo(fences) => {
                let _ = self.apply(&namespace, Command::Undo(fences));
                self.absorb();
            }
            Ask::Drain => self.end_waits(namespace, reply),
            Ask::Settled => {
                self.tick();
                while self.due().is_some_and(|due| due <= self.shared.clock.now()) {
                    self.tick();
                }
                self.answer(namespace, reply, Ok(Answer::Done(Done::Nothing)));
            }
            Ask::Durable => {
                let lines = self.machine.durable(self.shared.clock.now());
                self.answer(namespace, reply, Ok(Answer::Lines(lines)));
            }
        }
    }

    fn apply(&mut self, namespace: &Namespace, command: Command) -> Result<Done, Refusal> {
        let now = self.shared.clock.now();
        self.machine.apply(namespace, command, now, &self.shelf)
    }

    fn answer(
        &mut self,
        namespace: Namespace,
        reply: Option<Reply>,
        answer: Result<Answer, CallError>,
    ) {
        if let Some(reply) = reply {
            self.batch.answers.push(Pending { namespace, reply, answer });
        }
    }

    /// Takes the rows of a step, and answers it with them.
    fn answer_step(
        &mut self,
        namespace: Namespace,
        reply: Option<Reply>,
        done: Result<Answer, Refusal>,
    ) {
        self.absorb();
        self.answer(namespace, reply, done.map_err(CallError::Refused));
    }

    fn push(&mut self, namespace: Namespace, push: Push, reply: Option<Reply>) {
        let whole = push.answer == PushAnswer::Whole;
        let done = self.apply(&namespace, Command::Request(Request::Push(push)));
        let answer = match done {
            Ok(Done::Pushed(pushed)) if whole => {
                let states = self.states(&namespace, pushed.iter().map(|one| one.seq));
                let rows = self.drain();
                let shown = shown(pushed, states, &rows, true);
                self.keep(rows);
                Ok(Answer::Pushed(shown))
            }
            other => other.map(Answer::Done),
        };
        self.answer_step(namespace, reply, answer);
    }

    fn settle(&mut self, namespace: Namespace, settle: Settle, reply: Option<Reply>) {
        let plain = settle.settle.iter().all(|item| item.push.is_empty());
        let done = self.apply(&namespace, Command::Request(Request::Settle(settle)));
        let answer = match done {
            Ok(Done::Settled(settled)) if !plain => {
                let seqs: Vec<Seq> =
                    settled.iter().flat_map(|one| one.pushed.iter().map(|job| job.seq)).collect();
                let mut states = self.states(&namespace, seqs.into_iter()).into_iter();
                let rows = self.drain();
                let each = |SettledOne { lease, result, pushed }: SettledOne| {
                    let states = states.by_ref().take(pushed.len()).collect();
                    SettledShown { lease, result, pushed: shown(pushed, states, &rows, false) }
                };
                let settled = settled.into_iter().map(each).collect();
                self.keep(rows);
                Ok(Answer::Settled(settled))
            }
            other => other.map(Answer::Done),
        };
        self.answer_step(namespace, reply, answer);
    }

    /// What to show for jobs that wait.
    fn states(&mut self, namespace: &Namespace, seqs: impl Iterator<Item = Seq>) -> Vec<JobState> {
        let seqs: Vec<Seq> = seqs.collect();
        if seqs.is_empty() {
            return Vec::new();
        }
        match self.apply(namespace, Command::StatesOf(seqs.clone())) {
            Ok(Done::States(states)) => {
                states.into_iter().map(|state| state.unwrap_or(JobState::Ready)).collect()
            }
            _ => vec![JobState::Ready; seqs.len()],
        }
    }

    fn lease(
        &mut self,
        namespace: Namespace,
        lease: Box<Lease>,
        taker: TakerId,
        reply: Option<Reply>,
    ) {
        // Whoever is gone already asks for nothing.
        let Some(reply) = reply.filter(|reply| !reply.is_closed()) else { return };
        if self.shared.draining.load(Ordering::Acquire) {
            self.answer(namespace, Some(reply), Err(draining()));
            return;
        }
        match self.apply(&namespace, Command::Lease(lease.clone(), taker)) {
            Ok(Done::Lease(LeaseOutcome::Now(granted))) => {
                let rows = self.drain();
                let leased = self.leased(&namespace, granted, &rows);
                self.keep(rows);
                self.answer(namespace, Some(reply), Ok(Answer::Leased(leased)));
            }
            Ok(Done::Lease(LeaseOutcome::Waits)) => {
                self.waiting.insert(taker, Waiting { namespace, reply });
                self.absorb();
            }
            Ok(Done::Lease(LeaseOutcome::Again)) => {
                self.absorb();
                let ask = Ask::Lease(lease, taker);
                self.again.push(Envelope { namespace, ask, reply: Some(reply) });
            }
            other => self.answer_step(namespace, Some(reply), other.map(Answer::Done)),
        }
    }

    fn drain_waiting(&mut self) {
        for (taker, Waiting { namespace, reply }) in std::mem::take(&mut self.waiting) {
            let _ = self.apply(&namespace, Command::DropWait(taker));
            self.answer(namespace, Some(reply), Ok(Answer::Leased(Leased::default())));
        }
        self.absorb();
    }

    fn end_waits(&mut self, namespace: Namespace, reply: Option<Reply>) {
        self.drain_waiting();
        self.answer(namespace, reply, Ok(Answer::Done(Done::Nothing)));
    }

    // ---- What steps did ----

    /// A grant before payload and data are read, with the lives of its jobs.
    fn leased(&self, namespace: &Namespace, granted: Granted, rows: &Rows) -> Leased {
        let lives = granted
            .grants
            .iter()
            .map(|grant| rows.jobs.get(&grant.seq?).and_then(|change| change.life.clone()))
            .collect();
        // What was granted in this step is in its rows; what a repeat answers is not.
        let is_fresh = |grant: &&Grant| match grant.seq {
            Some(seq) => rows.jobs.get(&seq).is_some_and(|change| change.life.is_some()),
            None => {
                let key = grant.lease.fence.to_string();
                let key = RowKey { namespace: namespace.clone(), kind: Kind::Lease, key };
                rows.other.get(&key).is_some_and(Option::is_some)
            }
        };
        let fresh = granted.grants.iter().filter(is_fresh).map(|grant| grant.lease.fence);
        let fresh = fresh.collect();
        Leased { granted, lives, fresh }
    }

    /// Takes what the machine did since the last time; deliveries become answers.
    fn drain(&mut self) -> Rows {
        let effects = self.machine.drain();
        for (namespace, Delivery { taker, granted }) in effects.deliveries {
            let leased = self.leased(&namespace, granted, &effects.rows);
            match self.waiting.remove(&taker) {
                Some(Waiting { reply, .. }) => {
                    self.answer(namespace, Some(reply), Ok(Answer::Leased(leased)));
                }
                // Its caller is gone, and this was granted in the same moment.
                None if !leased.fresh.is_empty() => {
                    self.shared.tell(&namespace, Ask::Undo(leased.fresh));
                }
                None => {}
            }
        }
        effects.rows
    }

    /// Lays rows over the disk and puts them into the batch.
    fn keep(&mut self, rows: Rows) -> bool {
        self.shelf.lay(&rows, self.batch.number);
        let some = !rows.is_empty();
        self.batch.add(rows);
        self.stuck &= !some;
        some
    }

    /// Takes the rows of a step; whether there were any.
    fn absorb(&mut self) -> bool {
        let rows = self.drain();
        self.keep(rows)
    }

    // ---- Batches ----

    /// Hands the batch on, if there is room for it.
    fn hand_on(&mut self) {
        if let Some(why) = self.shelf.failure() {
            // A step asked the disk and got no answer: it may have decided wrongly.
            self.shared.stop_for(Fatal::Disk(why));
        }
        if self.shared.fatal().is_some() {
            self.refuse(Vec::new());
            return;
        }
        if self.batch.is_empty() {
            return;
        }
        if self.batch.rows.is_empty() && self.shared.durable() + 1 == self.batch.number {
            // All that these answers saw is durable.
            disk::send(&self.shared, std::mem::take(&mut self.batch.answers));
            return;
        }
        if !self.shared.slot.has_room() {
            return;
        }
        let next = Batch { number: self.batch.number + 1, ..Batch::default() };
        let batch = std::mem::replace(&mut self.batch, next);
        if let Err(batch) = self.shared.slot.put(batch) {
            // Only this thread puts, so there still is room; but nothing is lost if there is not.
            self.batch = batch;
        }
    }

    /// Everybody who waits is told that nothing of theirs was written.
    fn refuse(&mut self, calls: Vec<Envelope>) {
        let no = self.shared.unavailable();
        let calls = calls.into_iter().chain(std::mem::take(&mut self.again));
        let calls = calls.filter_map(|call| call.reply);
        let waiting = std::mem::take(&mut self.waiting).into_values().map(|wait| wait.reply);
        let answers = std::mem::take(&mut self.batch.answers).into_iter().map(|one| one.reply);
        for reply in calls.chain(waiting).chain(answers) {
            let _ = reply.send(Err(no.clone()));
        }
    }

    /// The last batch goes to the disk; who waits is told that nothing comes.
    fn close(&mut self) {
        let no = self.shared.unavailable();
        for Waiting { reply, .. } in std::mem::take(&mut self.waiting).into_values() {
            let _ = reply.send(Err(no.clone()));
        }
        while !self.batch.is_empty() && self.shared.fatal().is_none() {
            self.hand_on();
            if !self.batch.is_empty() {
                // The disk pokes when it takes what is in the slot.
                if !self.shared.inbox.wait_for_poke() {
                    return;
                }
            }
        }
    }
}

/// Jobs of a push as its answer shows them: from their new rows where these are there.
fn shown(
    pushed: Vec<PushedOne>,
    states: Vec<JobState>,
    rows: &Rows,
    full: bool,
) -> Vec<PushedShown> {
    let one = |(one, state): (PushedOne, JobState)| PushedShown {
        shown: match built(&one, rows, full) {
            Some(job) => Shown::Built(Box::new(job), state),
            None => Shown::Read(one.seq, state),
        },
        duplicate: one.duplicate,
        replaced: one.replaced,
        unasked: one.unasked,
    };
    pushed.into_iter().zip(states).map(one).collect()
}

fn built(one: &PushedOne, rows: &Rows, full: bool) -> Option<StoredJob> {
    let change = rows.jobs.get(&one.seq)?;
    // What was replaced in the same call has a patch beside it.
    if change.patch.is_some() {
        return None;
    }
    let (_, id, content) = change.new.as_deref()?;
    Some(StoredJob {
        seq: one.seq,
        id: id.clone(),
        kind: content.kind.clone(),
        state: change.state?,
        shape: change.shape.as_deref()?.to_vec(),
        life: change.life.clone()?,
        payload: full.then(|| content.payload.clone()),
        labels: content.labels.clone(),
        result: None,
        error: None,
        errors: Vec::new(),
        progress: None,
    })
}
