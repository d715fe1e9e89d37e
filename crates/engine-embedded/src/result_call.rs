//! A call for the result of a job, or for a flow, from the caller's side: it may wait for the end, and its caller may go away at any
//! moment.
//!
//! The state answers it with the batch of the step that ends the job; the result is then read from its row. A job that
//! lives again by then is waited for again, until the call's own time is over.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tenure_core::flow::FlowView;
use tenure_core::job::ResultView;
use tenure_core::lease::Later;
use tenure_core::names::{JobRef, Namespace};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{GetFlow, GetResult};
use tenure_core::sentences::{FlowRefusal, JobRefusal};
use tenure_core::time::Moment;
use tenure_engine::{CallError, Fault};
use tenure_machine::{FlowWait, JobStands, ResultWait, Seq, TakerId};

use crate::batch::{Answer, ResultStands};
use crate::inbox::Ask;
use crate::shared::Shared;
use crate::show;

/// Ends the wait of a caller that is gone.
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

/// The result of a job, once it is finished or the wait is over.
pub(crate) async fn result(
    shared: &Arc<Shared>,
    namespace: &Namespace,
    GetResult { job, wait }: GetResult,
) -> Result<Box<ResultView>, CallError> {
    let mut known: Option<(Seq, Moment)> = None;
    loop {
        // A draining engine keeps nobody waiting.
        let draining = shared.draining.load(Ordering::Acquire);
        let until = match known {
            _ if draining => Later::Until(Moment::ZERO),
            Some((_, until)) => Later::Until(until),
            None => Later::For(wait),
        };
        let stands = ask(shared, namespace, &job, known.map(|(seq, _)| seq), until).await?;
        let ResultStands { stands: JobStands { seq, stands }, over, until } = stands;
        let view = show::job(shared, namespace, seq, stands).await?;
        let view = view.ok_or_else(|| forgotten(&job))?;
        if over || view.state.is_finished() {
            return Ok(Box::new(ResultView::from(view)));
        }
        known = Some((seq, until));
    }
}

/// A flow, once it is finished or the wait is over.
pub(crate) async fn flow(
    shared: &Arc<Shared>,
    namespace: &Namespace,
    GetFlow { flow, wait }: GetFlow,
) -> Result<Box<FlowView>, CallError> {
    let draining = shared.draining.load(Ordering::Acquire);
    let until = if draining { Later::Until(Moment::ZERO) } else { Later::For(wait) };
    let taker = shared.next_taker();
    let wait = FlowWait { flow: flow.clone(), taker, until };
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

/// Asks once; answered when there is something to be read.
async fn ask(
    shared: &Shared,
    namespace: &Namespace,
    job: &JobRef,
    row: Option<Seq>,
    until: Later,
) -> Result<ResultStands, CallError> {
    let taker = shared.next_taker();
    let wait = ResultWait { job: job.clone(), row, taker, until };
    let receiver = shared.send(namespace, Ask::WaitForResult(Box::new(wait)))?;
    let mut waiting = AwaitingCaller { shared, namespace, taker, answered: false };
    let answer = receiver.await;
    waiting.answered = true;
    match answer.unwrap_or_else(|_| Err(shared.gone()))? {
        Answer::Result(stands) => Ok(stands),
        _ => Err(Fault::Broken("a call for a result got another answer".to_owned()).into()),
    }
}
