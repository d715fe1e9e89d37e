//! A call for the result of a job, or for a flow, from the caller's side: it may wait for the end, and its caller may go away at any
//! moment.
//!
//! The state answers it with the batch of the step that ends the job; the result is then read from its row. If the job
//! lives again by then, the call waits again, until its own time is over.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tenure_core::bounds::PROGRESS_TOLD_US;
use tenure_core::flow::FlowView;
use tenure_core::job::ResultView;
use tenure_core::lease::Later;
use tenure_core::names::{JobRef, Namespace};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{GetFlow, GetResult};
use tenure_core::sentences::{FlowRefusal, JobRefusal};
use tenure_core::time::{Moment, Span};
use tenure_engine_api::{CallError, Fault};
use tenure_machine::{FlowWait, JobStands, ResultWait, Seq, TakerId};

use crate::batch::{Answer, ResultStands};
use crate::calls::show;
use crate::inbox::Ask;
use crate::shared::Shared;

/// Ends the wait of a caller that has gone.
pub(crate) struct AwaitingCaller<'a> {
    pub shared: &'a Shared,
    pub namespace: &'a Namespace,
    pub taker: TakerId,
    pub answered: bool,
}

impl Drop for AwaitingCaller<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.shared.tell(self.namespace, Ask::DropWait(self.taker));
        }
    }
}

/// The result of a job, once it is finished, the wait is over, or its progress is newer than `seen`.
pub(crate) async fn result(
    shared: &Arc<Shared>,
    namespace: &Namespace,
    GetResult { job, wait, seen }: GetResult,
) -> Result<Box<ResultView>, CallError> {
    let end = shared.clock.now().plus(wait);
    let mut row = None;
    // A caller that names the progress it has seen gets newer progress at once.
    let mut until = if seen.is_some() { Later::Until(Moment::ZERO) } else { Later::For(wait) };
    loop {
        let stands = ask(shared, namespace, &job, row, until, seen.is_some()).await?;
        let ResultStands { stands: JobStands { seq, stands }, over, until: asked_until } = stands;
        // Taken before the row is read: the look a second from here finds a report that comes after this one.
        let now = shared.clock.now();
        let view = show::job(shared, namespace, seq, stands).await?;
        let view = ResultView::from(view.ok_or_else(|| forgotten(&job))?);
        let has_news = seen.is_some_and(|seen| seen.is_behind(view.progress_id));
        let draining = shared.draining.load(Ordering::Acquire);
        let over = if seen.is_some() { draining || now >= end } else { over };
        if over || has_news || view.state.is_finished() {
            return Ok(Box::new(view));
        }
        row = Some(seq);
        // A report that came between the look and the wait wakes nobody, so the caller looks again in a second.
        let look = now.plus(Span::from_us(PROGRESS_TOLD_US));
        until = Later::Until(if seen.is_some() { end.min(look) } else { asked_until });
    }
}

/// A flow, once it is finished or the wait is over.
pub(crate) async fn flow(
    shared: &Arc<Shared>,
    namespace: &Namespace,
    GetFlow { flow, wait }: GetFlow,
) -> Result<Box<FlowView>, CallError> {
    let taker = shared.next_taker();
    let wait = FlowWait { flow: flow.clone(), taker, until: Later::For(wait) };
    let receiver = shared.send(namespace, Ask::WaitForFlow(Box::new(wait)))?;
    let mut waiting = AwaitingCaller { shared, namespace, taker, answered: false };
    let answer = receiver.await;
    waiting.answered = true;
    match answer.unwrap_or_else(|_| Err(shared.gone()))? {
        Answer::Flow(Some(view)) => Ok(view),
        Answer::Flow(None) => Err(Refusal::from(FlowRefusal::NotFound { flow }).into()),
        _ => Err(Fault::Broken("a call for a flow got another answer".to_owned()).into()),
    }
}

fn forgotten(job: &JobRef) -> CallError {
    Refusal::from(JobRefusal::ForgottenMeanwhile { job: job.to_string() }).into()
}

/// Asks once; returns when the row can be read.
async fn ask(
    shared: &Shared,
    namespace: &Namespace,
    job: &JobRef,
    row: Option<Seq>,
    until: Later,
    progress: bool,
) -> Result<ResultStands, CallError> {
    let taker = shared.next_taker();
    let wait = ResultWait { job: job.clone(), row, taker, until, progress };
    let receiver = shared.send(namespace, Ask::WaitForResult(Box::new(wait)))?;
    let mut waiting = AwaitingCaller { shared, namespace, taker, answered: false };
    let answer = receiver.await;
    waiting.answered = true;
    match answer.unwrap_or_else(|_| Err(shared.gone()))? {
        Answer::Result(stands) => Ok(stands),
        _ => Err(Fault::Broken("a call for a result got another answer".to_owned()).into()),
    }
}
