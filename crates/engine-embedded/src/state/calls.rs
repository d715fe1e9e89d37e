//! The calls whose answers show more than the machine says: pushes, settles, leases.
//!
//! It must never read the disk: what an answer shows is in the rows of its own step, or is left to
//! the readers.

use std::sync::atomic::Ordering;

use tenure_core::job::JobState;
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Lease, Push, PushAnswer, Request, Settle};
use tenure_core::sentences::StoreRefusal;
use tenure_machine::rows::Rows;
use tenure_machine::{
    Command, Done, Known, LeaseOutcome, PushedOne, Seq, SettledOne, StoredJob, TakerId,
};

use super::{State, Waiting};
use crate::batch::{Answer, Leased, PushedShown, Reply, SettledShown, Shown};
use crate::inbox::{Ask, Envelope};

impl State {
    pub(super) fn push(&mut self, namespace: Namespace, push: Push, reply: Option<Reply>) {
        let whole = push.answer == PushAnswer::Whole;
        let done = self.apply(&namespace, Command::Request(Request::Push(push)));
        let answer = match done {
            Ok(Done::Request(Known::Push(pushed))) if whole => {
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

    /// Whether they are settled, and not refused.
    pub(super) fn settle(
        &mut self,
        namespace: Namespace,
        settle: Settle,
        reply: Option<Reply>,
    ) -> bool {
        let plain = settle.settle.iter().all(|item| item.push.is_empty());
        let done = self.apply(&namespace, Command::Request(Request::Settle(settle)));
        let answer = match done {
            Ok(Done::Request(Known::Settle(settled))) if !plain => {
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
        let is_done = answer.is_ok();
        self.answer_step(namespace, reply, answer);
        is_done
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

    pub(super) fn lease(
        &mut self,
        namespace: Namespace,
        lease: Box<Lease>,
        taker: TakerId,
        reply: Option<Reply>,
    ) {
        // Whoever is gone already asks for nothing.
        let Some(reply) = reply.filter(|reply| !reply.is_closed()) else { return };
        if self.shared.draining.load(Ordering::Acquire) {
            self.answer(namespace, Some(reply), Err(Refusal::from(StoreRefusal::Draining).into()));
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

    pub(super) fn end_waits(&mut self, namespace: Namespace, reply: Option<Reply>) {
        self.drain_waiting();
        self.answer(namespace, reply, Ok(Answer::Done(Done::Nothing)));
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
        known: one.known,
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
