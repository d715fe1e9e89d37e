//! Sends answers to the callers.

use tenure_engine_api::CallError;

use crate::batch::{Answer, Pending};
use crate::inbox::Ask;
use crate::shared::Shared;

/// Sends answers whose batch is durable. A lease that nobody receives is given back.
pub(crate) fn send(shared: &Shared, answers: Vec<Pending>) {
    for Pending { namespace, reply, answer } in answers {
        if let Err(Ok(Answer::Leased(leased))) = reply.send(answer)
            && !leased.fresh.is_empty()
        {
            shared.tell(&namespace, Ask::Undo(leased.fresh));
        }
    }
}

/// Sends `no` to all callers that wait for these answers.
pub(crate) fn refuse(answers: Vec<Pending>, no: &CallError) {
    for Pending { reply, .. } in answers {
        let _ = reply.send(Err(no.clone()));
    }
}
