//! Answers on their way to the callers.

use tenure_seam::CallError;

use crate::batch::{Answer, Pending};
use crate::inbox::Ask;
use crate::shared::Shared;

/// Sends answers whose batch is durable. A lease that nobody takes is given back.
pub(crate) fn send(shared: &Shared, answers: Vec<Pending>) {
    for Pending { namespace, reply, answer } in answers {
        if let Err(Ok(Answer::Leased(leased))) = reply.send(answer)
            && !leased.fresh.is_empty()
        {
            shared.tell(&namespace, Ask::Undo(leased.fresh));
        }
    }
}

/// Tells everybody who waits for these answers `no` instead.
pub(crate) fn refuse(answers: Vec<Pending>, no: &CallError) {
    for Pending { reply, .. } in answers {
        let _ = reply.send(Err(no.clone()));
    }
}
