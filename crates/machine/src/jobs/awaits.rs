//! Calls that wait for the end of a job or flow: registered with it, and notified in the step that ends it.
//!
//! The answer of such a call is never here: the call reads the rows that the step wrote. So a notification only means
//! "look", and a call waits again if its job lives again in the next moment.

use crate::facts::Notified;
use crate::ops::cancel::Named;
use crate::rows::Archive;
use crate::rows::stored::Stands;
use crate::state::{Awaited, AwaitingCall, Seq, Space, TakerId};
use tenure_core::bounds::AWAITED_US;
use tenure_core::flow::{FlowState, FlowView};
use tenure_core::lease::Later;
use tenure_core::names::{FlowName, JobRef};
use tenure_core::refusal::Refusal;
use tenure_core::sentences::JobRefusal;
use tenure_core::time::{Moment, Span};

/// A call that waits for the end of a job.
#[derive(Clone, PartialEq, Debug)]
pub struct ResultWait {
    /// The job, as the caller names it.
    pub job: JobRef,
    /// The row of the job at the caller's first request: a later job with the same id or key is not meant.
    pub row: Option<Seq>,
    /// The number of the call.
    pub taker: TakerId,
    /// The time of its answer in any case.
    pub until: Later,
    /// True if it also looks at each report of the holder.
    pub progress: bool,
}

/// The place of a job, for a caller that reads its row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobStands {
    /// The row number of the job.
    pub seq: Seq,
    /// The part of its state that is not in its row.
    pub stands: Stands,
}

/// A call that waits for the end of a flow.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowWait {
    pub flow: FlowName,
    /// The number of the call.
    pub taker: TakerId,
    /// The time of its answer in any case.
    pub until: Later,
}

/// The answer of a call that waits for a flow.
#[derive(Clone, PartialEq, Debug)]
pub enum FlowOutcome {
    /// Nothing to wait for: the flow is finished, or the time is over.
    Now(Box<FlowView>),
    /// The call is registered, and gets a notification.
    Waits,
}

/// The thing that a notified call looks at.
#[derive(Clone, PartialEq, Debug)]
pub enum Look {
    /// The row of a job.
    Job(JobStands),
    /// A flow, as it is now; `None` if it is gone.
    Flow(Option<Box<FlowView>>),
}

/// The answer of a call that wants a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultOutcome {
    /// Nothing to wait for: the job is finished, or the time is over.
    Now(JobStands),
    /// The call is registered until `until`, and gets a notification.
    Waits {
        /// The row number of its job.
        seq: Seq,
        /// The time at which the wait ends without a result.
        until: Moment,
    },
}

impl Space {
    /// Registers a call with the job whose end it waits for, unless there is nothing to wait for.
    pub(crate) fn wait_for_result(
        &mut self,
        wait: &ResultWait,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<ResultOutcome, Refusal> {
        let slot = match wait.row {
            None => match self.named(&wait.job, archive)? {
                Named::Live(slot) => slot,
                Named::Finished(job) => return Ok(ResultOutcome::Now(self.stands(job.seq))),
            },
            Some(seq) => match self.jobs.by_seq(seq) {
                Some(slot) => slot,
                None if archive.by_seq(&self.name, seq).is_some() => {
                    return Ok(ResultOutcome::Now(self.stands(seq)));
                }
                None => {
                    let job = wait.job.to_string();
                    return Err(JobRefusal::ForgottenMeanwhile { job }.into());
                }
            },
        };
        let seq = self.jobs[slot].seq;
        let until = wait.until.moment(now);
        if until <= now {
            return Ok(ResultOutcome::Now(self.stands(seq)));
        }
        let call = AwaitingCall { on: Awaited::Job(seq), until, progress: wait.progress };
        self.waiters.wait_for_end(wait.taker, call)?;
        Ok(ResultOutcome::Waits { seq, until })
    }

    /// Registers a call with the flow whose end it waits for, unless there is nothing to wait for.
    pub(crate) fn wait_for_flow(
        &mut self,
        wait: &FlowWait,
        now: Moment,
    ) -> Result<FlowOutcome, Refusal> {
        let view = self.flow_view(&wait.flow)?;
        let until = wait.until.moment(now);
        if until <= now || view.state == FlowState::Finished {
            return Ok(FlowOutcome::Now(Box::new(view)));
        }
        let call = AwaitingCall { on: Awaited::Flow(wait.flow.clone()), until, progress: false };
        self.waiters.wait_for_end(wait.taker, call)?;
        Ok(FlowOutcome::Waits)
    }

    fn stands(&self, seq: Seq) -> JobStands {
        let stands = self.jobs.by_seq(seq).map(|slot| self.stands_of(slot)).unwrap_or_default();
        JobStands { seq, stands }
    }

    /// The time that a thing is kept if it ends now; `retain` is its own setting.
    pub(crate) fn kept_for(&self, on: &Awaited, retain: Span) -> Span {
        if self.waiters.is_awaited(on) { retain.max(Span::from_us(AWAITED_US)) } else { retain }
    }

    /// The thing has ended, or is gone: notifies the calls that wait for it.
    pub(crate) fn notify_awaiting(&mut self, on: &Awaited) {
        for taker in self.waiters.take_awaiting(on) {
            self.notify(taker, on, false);
        }
    }

    /// Removes a waiting call. Returns the thing that it waited for.
    pub(crate) fn forget_awaiting(&mut self, taker: TakerId) -> Option<Awaited> {
        let on = self.waiters.stop_awaiting(taker)?;
        if let Awaited::Flow(flow) = &on
            && !self.waiters.is_awaited(&on)
        {
            self.flows.loosen(flow.clone());
        }
        Some(on)
    }

    /// The time of a call is over: it looks at the current state, unless it was already notified.
    pub(crate) fn end_awaiting(&mut self, taker: TakerId) {
        if let Some(on) = self.forget_awaiting(taker) {
            self.notify(taker, &on, true);
        }
    }

    pub(crate) fn notify(&mut self, taker: TakerId, on: &Awaited, over: bool) {
        let look = match on {
            Awaited::Job(seq) => Look::Job(self.stands(*seq)),
            Awaited::Flow(flow) => Look::Flow(self.flow_view(flow).ok().map(Box::new)),
        };
        self.outbox.notified.push(Notified { taker, look, over });
    }
}
