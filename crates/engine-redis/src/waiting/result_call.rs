//! A call for the result of a job, which may wait for the job's end.

use tenure_core::job::ResultView;
use tenure_core::names::JobRef;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::GetResult;
use tenure_core::sentences::JobRefusal;
use tenure_core::time::Span;
use tenure_engine::CallError;

use super::end_call::{Awaited, wait_for_end};
use crate::alphabet::awaited;
use crate::answer::Answerable;
use crate::call::{Caller, malformed};
use crate::decode::{Answered, ResultFound, ResultReply};
use crate::encode::{ResultArgs, pack};
use crate::function::{Function, WAIT_RESULT};

const GET_RESULT: Function = Function::of::<GetResult>();

impl Answerable for GetResult {
    async fn answer(self, caller: Caller) -> Result<Box<ResultView>, CallError> {
        let GetResult { job, wait } = self;
        let found = read(&caller, ResultArgs::of(&job)).await?;
        if found.is_finished() || wait == Span::ZERO || caller.shared.is_draining() {
            return Ok(Box::new(found.view));
        }
        let row = AwaitedRow {
            caller: &caller,
            job: &job,
            id: found.view.id.as_str(),
            b: found.b,
            seq: found.seq,
        };
        // Ten thousand calls may wait here: their futures stay small until they do.
        let found = Box::pin(wait_for_end(&caller, &row, wait)).await?;
        Ok(Box::new(found.view))
    }
}

async fn read(caller: &Caller, args: ResultArgs<'_>) -> Result<ResultFound, CallError> {
    found(caller.ask::<ResultReply>(GET_RESULT, pack(&args)).await?, GET_RESULT)
}

fn found(answered: Answered<ResultReply>, function: Function) -> Result<ResultFound, CallError> {
    let Answered { reply, blobs, .. } = answered;
    reply.read(&blobs).map_err(malformed(function))
}

/// The job that is waited for, whoever has its id or its key by now.
struct AwaitedRow<'a> {
    caller: &'a Caller,
    /// As the caller named it.
    job: &'a JobRef,
    id: &'a str,
    b: u8,
    seq: u64,
}

impl AwaitedRow<'_> {
    fn args(&self) -> ResultArgs<'_> {
        ResultArgs::of_row(self.id, self.b, self.seq)
    }
}

impl Awaited for AwaitedRow<'_> {
    type Found = ResultFound;
    const STAYS: bool = false;

    fn name(&self) -> String {
        format!("{}{}", awaited::job, self.seq)
    }

    fn is_finished(found: &ResultFound) -> bool {
        found.is_finished()
    }

    async fn read(&self) -> Result<ResultFound, CallError> {
        read(self.caller, self.args()).await
    }

    fn register(
        &self,
        wait: u64,
    ) -> impl Future<Output = Result<(ResultFound, Option<u64>), CallError>> + Send + 'static {
        let caller = self.caller.clone();
        let args = pack(&self.args().waiting(&caller.shared.proc, wait));
        async move {
            let found = found(caller.ask(WAIT_RESULT, args).await?, WAIT_RESULT)?;
            let registered = found.registered;
            Ok((found, registered))
        }
    }

    /// A job that was there and is not any more.
    fn lost(&self, why: CallError) -> CallError {
        match why {
            CallError::Refused(no) if no.code == Code::JobNotFound => {
                let job = self.job.to_string();
                Refusal::from(JobRefusal::ForgottenMeanwhile { job }).into()
            }
            why => why,
        }
    }
}
