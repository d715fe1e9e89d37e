//! What each request does when it is sent twice: the one place that says what may be repeated.
//!
//! It decides nothing about waiting or sending; [`crate::repeat`] and [`crate::remote`] ask here.

use tenure_core::refusal::Code;
use tenure_core::requests::{Reply, Request};

/// What a second sending of the same request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It changes nothing, the first time neither.
    Reads,
    /// It changes something, and the second time nothing more.
    Sets,
    /// It could do more the second time: whoever asked must look before asking again.
    Adds,
}

/// The effect of a request, as it stands.
pub fn effect(request: &Request) -> Effect {
    use Request as R;
    match request {
        R::GetJob(_)
        | R::ListJobs(_)
        | R::ExplainJob(_)
        | R::ListLeases(_)
        | R::ListQueues(_)
        | R::GetQueue(_)
        | R::ListLimits(_)
        | R::GetLimit(_)
        | R::ListPools(_)
        | R::GetPool(_)
        | R::ListResources(_)
        | R::GetResource(_)
        | R::ListWorkers(_)
        | R::GetStats(_)
        | R::RunAudit(_) => Effect::Reads,
        R::Push(push) if push.jobs.iter().any(|job| job.id.is_none()) => Effect::Adds,
        R::Lease(lease) if lease.request_id.is_none() => Effect::Adds,
        // A job that ran and failed again between the two would lose its attempts again.
        R::RetryJob(retry) if retry.finished_at.is_none() => Effect::Adds,
        R::RetryJobs(_) => Effect::Adds,
        R::Push(_)
        | R::Lease(_)
        | R::RetryJob(_)
        | R::PatchJob(_)
        | R::DeleteJob(_)
        | R::CancelJob(_)
        | R::RunJobNow(_)
        | R::CancelJobs(_)
        | R::Extend(_)
        | R::Settle(_)
        | R::ForceLease(_)
        | R::PutQueue(_)
        | R::PatchQueue(_)
        | R::DeleteQueue(_)
        | R::PauseQueue(_)
        | R::ResumeQueue(_)
        | R::PutLimit(_)
        | R::PatchLimit(_)
        | R::DeleteLimit(_)
        | R::PauseLimit(_)
        | R::ResumeLimit(_)
        | R::ObserveLimit(_)
        | R::PutPool(_)
        | R::PatchPool(_)
        | R::DeletePool(_)
        | R::SyncResources(_)
        | R::AddResources(_)
        | R::PatchResource(_)
        | R::DeleteResource(_)
        | R::CoolResource(_)
        | R::BanResource(_)
        | R::RestoreResource(_) => Effect::Sets,
    }
}

/// The reply of a deletion whose *repeat* was refused with `code`: what is gone was deleted by the
/// first sending, or by somebody, and that is what was asked for.
pub fn done_already(request: &Request, code: Code) -> Option<Reply> {
    match (request, code) {
        (Request::DeleteJob(_), Code::JobNotFound) => Some(Reply::DeleteJob(())),
        (Request::ForceLease(_), Code::LeaseNotFound) => Some(Reply::ForceLease(())),
        (Request::DeleteQueue(_), Code::QueueNotFound) => Some(Reply::DeleteQueue(())),
        (Request::DeleteLimit(_), Code::LimitNotFound) => Some(Reply::DeleteLimit(())),
        (Request::DeletePool(_), Code::PoolNotFound) => Some(Reply::DeletePool(())),
        (Request::DeleteResource(_), Code::ResourceNotFound | Code::PoolNotFound) => {
            Some(Reply::DeleteResource(()))
        }
        _ => None,
    }
}
