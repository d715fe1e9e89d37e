//! A call for a flow, which may wait until no member of it is unfinished.

use tenure_core::flow::{FlowState, FlowView};
use tenure_core::names::FlowName;
use tenure_core::requests::GetFlow;
use tenure_core::time::Span;
use tenure_engine::CallError;

use super::end_call::{Awaited, wait_for_end};
use crate::alphabet::awaited;
use crate::answer::Answerable;
use crate::call::Caller;
use crate::decode::FlowReply;
use crate::encode::{FlowArgs, pack};
use crate::function::{Function, WAIT_FLOW};

const GET_FLOW: Function = Function::of::<GetFlow>();

impl Answerable for GetFlow {
    async fn answer(self, caller: Caller) -> Result<Box<FlowView>, CallError> {
        let GetFlow { flow, wait } = self;
        let awaited = AwaitedFlow { caller: &caller, flow: &flow };
        let found = awaited.read().await?;
        if AwaitedFlow::is_finished(&found) || wait == Span::ZERO || caller.shared.is_draining() {
            return Ok(Box::new(found));
        }
        // Ten thousand calls may wait here: their futures stay small until they do.
        Box::pin(wait_for_end(&caller, &awaited, wait)).await.map(Box::new)
    }
}

struct AwaitedFlow<'a> {
    caller: &'a Caller,
    flow: &'a FlowName,
}

impl Awaited for AwaitedFlow<'_> {
    type Found = FlowView;
    const STAYS: bool = true;

    fn name(&self) -> String {
        format!("{}{}", awaited::flow, self.flow)
    }

    fn is_finished(found: &FlowView) -> bool {
        found.state == FlowState::Finished
    }

    async fn read(&self) -> Result<FlowView, CallError> {
        let asked = self.caller.ask::<FlowReply>(GET_FLOW, pack(&FlowArgs::of(self.flow))).await?;
        Ok(asked.reply.view())
    }

    fn register(
        &self,
        wait: u64,
    ) -> impl Future<Output = Result<(FlowView, Option<u64>), CallError>> + Send + 'static {
        let caller = self.caller.clone();
        let args = pack(&FlowArgs::of(self.flow).waiting(&caller.shared.proc, wait));
        async move {
            let reply = caller.ask::<FlowReply>(WAIT_FLOW, args).await?.reply;
            let registered = reply.registered();
            Ok((reply.view(), registered))
        }
    }

    fn lost(&self, why: CallError) -> CallError {
        why
    }
}
