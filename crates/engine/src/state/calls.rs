//! Calls whose answers show more than the machine's reply: pushes, settles, leases.
//!
//! It must never read the disk: the rows of the step itself have all that its answer shows, or the
//! readers add it.

use std::sync::atomic::Ordering;

use tenure_core::lease::Later;
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{GetFlow, Lease, Push, PushAnswer, Request, Settle};
use tenure_core::sentences::StoreRefusal;
use tenure_core::time::{Moment, Span};
use tenure_engine_api::CallError;
use tenure_machine::facts::Notified;
use tenure_machine::rows::Rows;
use tenure_machine::{
    Command, Done, FlowOutcome, FlowWait, JobStands, Known, LeaseOutcome, Look, PushedOne,
    ResultOutcome, ResultWait, Seq, SettledOne, Stands, StoredJob, TakerId,
};

use super::{AwaitingEnd, AwaitingOn, StateThread, Waiting};
use crate::batch::{
    Answer, AnswerHaste, Leased, Pending, PushedShown, Reply, ResultStands, SettledShown, Shown,
};
use crate::inbox::{Ask, Envelope};

impl StateThread {
    pub(super) fn push(&mut self, namespace: Namespace, push: Push, reply: Option<Reply>) {
        let whole = push.answer == PushAnswer::Whole;
        let done = self.apply(&namespace, Command::Request(Request::Push(push)));
        let answer = match done {
            Ok(Done::Request(Known::Push(pushed))) if whole => {
                let stands = self.stands(&namespace, pushed.iter().map(|one| one.seq));
                let rows = self.drain();
                let shown = shown(pushed, stands, &rows, true);
                self.keep(rows);
                Ok(Answer::Pushed(shown))
            }
            other => other.map(Answer::Done),
        };
        self.answer_step(namespace, reply, answer);
    }

    /// `then` is a lease call that is made once they are settled, unless they are refused.
    pub(super) fn settle(
        &mut self,
        namespace: Namespace,
        settle: Settle,
        reply: Option<Reply>,
        then: Option<(Box<Lease>, TakerId, Reply)>,
    ) {
        let plain = settle.settle.iter().all(|item| item.push.is_empty());
        let done = self.apply(&namespace, Command::Request(Request::Settle(settle)));
        let others_wait = match &done {
            Ok(Done::Request(Known::Settle(settled))) => settled.iter().all(|one| one.others_wait),
            _ => false,
        };
        let answer = match done {
            Ok(Done::Request(Known::Settle(settled))) if !plain => {
                let seqs: Vec<Seq> =
                    settled.iter().flat_map(|one| one.pushed.iter().map(|job| job.seq)).collect();
                let mut stands = self.stands(&namespace, seqs.into_iter()).into_iter();
                let rows = self.drain();
                let each = |SettledOne { lease, result, pushed, .. }: SettledOne| {
                    let stands = stands.by_ref().take(pushed.len()).collect();
                    SettledShown { lease, result, pushed: shown(pushed, stands, &rows, false) }
                };
                let settled = settled.into_iter().map(each).collect();
                self.keep(rows);
                Ok(Answer::Settled(settled))
            }
            other => other.map(Answer::Done),
        };
        self.absorb();
        let mut is_patient = others_wait;
        if let Some((lease, taker, reply)) = then
            && answer.is_ok()
        {
            self.lease(namespace.clone(), lease, taker, Some(reply));
            // The caller of the settle already waits for its next job.
            is_patient |= self.waiting.contains_key(&taker);
        }
        if let Some(reply) = reply {
            let answer = answer.map_err(CallError::Refused);
            let haste = if is_patient { AnswerHaste::Patient } else { AnswerHaste::Now };
            self.batch.answer(Pending { namespace, reply, answer }, haste);
        }
    }

    /// The views of waiting jobs.
    fn stands(&mut self, namespace: &Namespace, seqs: impl Iterator<Item = Seq>) -> Vec<Stands> {
        let seqs: Vec<Seq> = seqs.collect();
        if seqs.is_empty() {
            return Vec::new();
        }
        match self.apply(namespace, Command::StatesOf(seqs.clone())) {
            Ok(Done::States(stands)) => stands.into_iter().map(Option::unwrap_or_default).collect(),
            _ => vec![Stands::default(); seqs.len()],
        }
    }

    pub(super) fn lease(
        &mut self,
        namespace: Namespace,
        mut lease: Box<Lease>,
        taker: TakerId,
        reply: Option<Reply>,
    ) {
        // A caller that has already gone needs no lease.
        let Some(reply) = reply.filter(|reply| !reply.is_closed()) else { return };
        // The next process that opens the journal has no folder lock that proves this one dead.
        lease.local &= !self.shared.is_shared;
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

    /// The end of a wait. A draining engine keeps nobody waiting; it is asked here, because a drain ends only the waits
    /// that have begun.
    fn unless_draining(&self, until: Later) -> Later {
        if self.shared.draining.load(Ordering::Acquire) {
            Later::Until(Moment::ZERO)
        } else {
            until
        }
    }

    /// Waits for a result: the call is answered when its row can be read.
    pub(super) fn wait_for_result(
        &mut self,
        namespace: Namespace,
        mut wait: ResultWait,
        reply: Option<Reply>,
    ) {
        // The caller has gone.
        let Some(reply) = reply.filter(|reply| !reply.is_closed()) else { return };
        wait.until = self.unless_draining(wait.until);
        let taker = wait.taker;
        match self.apply(&namespace, Command::WaitForResult(Box::new(wait))) {
            Ok(Done::Result(ResultOutcome::Waits { seq, until })) => {
                let on = AwaitingOn::Result { seq, until };
                self.awaiting.insert(taker, AwaitingEnd { namespace, reply, on });
                self.absorb();
            }
            Ok(Done::Result(ResultOutcome::Now(stands))) => {
                self.absorb();
                let now = ResultStands { stands, over: true, until: Moment::ZERO };
                self.answer(namespace, Some(reply), Ok(Answer::Result(now)));
            }
            other => self.answer_step(namespace, Some(reply), other.map(Answer::Done)),
        }
    }

    /// Waits for a flow: the call is answered when it is finished.
    pub(super) fn wait_for_flow(
        &mut self,
        namespace: Namespace,
        mut wait: FlowWait,
        reply: Option<Reply>,
    ) {
        let Some(reply) = reply.filter(|reply| !reply.is_closed()) else { return };
        wait.until = self.unless_draining(wait.until);
        let (taker, flow) = (wait.taker, wait.flow.clone());
        match self.apply(&namespace, Command::WaitForFlow(Box::new(wait))) {
            Ok(Done::Flow(FlowOutcome::Waits)) => {
                let on = AwaitingOn::Flow(flow);
                self.awaiting.insert(taker, AwaitingEnd { namespace, reply, on });
                self.absorb();
            }
            Ok(Done::Flow(FlowOutcome::Now(view))) => {
                self.absorb();
                self.answer(namespace, Some(reply), Ok(Answer::Flow(Some(view))));
            }
            other => self.answer_step(namespace, Some(reply), other.map(Answer::Done)),
        }
    }

    /// Answers a call whose job or flow has ended, or whose time is over.
    pub(super) fn notified(&mut self, Notified { taker, look, over }: Notified) {
        // Otherwise its caller has just gone.
        let Some(AwaitingEnd { namespace, reply, on }) = self.awaiting.remove(&taker) else {
            return;
        };
        let answer = match (look, on) {
            (Look::Job(stands), AwaitingOn::Result { until, .. }) => {
                Answer::Result(ResultStands { stands, over, until })
            }
            (Look::Flow(view), _) => Answer::Flow(view),
            (Look::Job(_), AwaitingOn::Flow(_)) => Answer::Flow(None),
        };
        self.answer(namespace, Some(reply), Ok(answer));
    }

    fn drain_awaiting(&mut self) {
        for (taker, AwaitingEnd { namespace, reply, on }) in std::mem::take(&mut self.awaiting) {
            let _ = self.apply(&namespace, Command::DropWait(taker));
            let answer = match on {
                AwaitingOn::Result { seq, until } => {
                    let stands = self.stands(&namespace, [seq].into_iter()).into_iter().next();
                    let stands = JobStands { seq, stands: stands.unwrap_or_default() };
                    Answer::Result(ResultStands { stands, over: true, until })
                }
                AwaitingOn::Flow(flow) => {
                    let get = Request::GetFlow(GetFlow { flow, wait: Span::ZERO });
                    match self.apply(&namespace, Command::Request(get)) {
                        Ok(Done::Request(Known::GetFlow(view))) => Answer::Flow(Some(view)),
                        _ => Answer::Flow(None),
                    }
                }
            };
            self.answer(namespace, Some(reply), Ok(answer));
        }
    }

    fn drain_waiting(&mut self) {
        self.drain_awaiting();
        self.drain_readers();
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

/// Jobs of a push for its answer: from their new rows where there are any.
fn shown(pushed: Vec<PushedOne>, stands: Vec<Stands>, rows: &Rows, full: bool) -> Vec<PushedShown> {
    let one = |(one, stands): (PushedOne, Stands)| PushedShown {
        shown: match built(&one, rows, full) {
            Some(job) => Shown::Built(Box::new(job), stands),
            None => Shown::Read(one.seq, stands),
        },
        duplicate: one.duplicate,
        replaced: one.replaced,
        unasked: one.unasked,
        known: one.known,
    };
    pushed.into_iter().zip(stands).map(one).collect()
}

fn built(one: &PushedOne, rows: &Rows, full: bool) -> Option<StoredJob> {
    let change = rows.jobs.get(&one.seq)?;
    // A job that was replaced in the same call has a patch too.
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
        traceparent: content.traceparent.clone().filter(|_| full),
        result: None,
        error: change.error.clone().flatten(),
        errors: Vec::new(),
        progress: None,
    })
}
