//! From what the machine answers to the reply of the operation: the same thing under its own name.

use tenure_core::requests::{Reply, Request};
use tenure_machine::Done;

/// Makes the reply of an operation of what the machine answered to it; `None` if that is the answer
/// to another operation, or if it shows what only rows know.
pub(crate) type Maker = fn(Done) -> Option<Reply>;

macro_rules! maker {
    ($done:pat => $reply:expr) => {
        |done| match done {
            $done => Some($reply),
            _ => None,
        }
    };
}

/// How the reply to a request is made, if no row has to be read for it.
pub(crate) fn maker(request: &Request) -> Option<Maker> {
    use {Done as D, Reply as R, Request as Q};
    Some(match request {
        Q::Push(_)
        | Q::GetJob(_)
        | Q::ListJobs(_)
        | Q::PatchJob(_)
        | Q::CancelJob(_)
        | Q::RetryJob(_)
        | Q::RunJobNow(_)
        | Q::CancelJobs(_)
        | Q::RetryJobs(_)
        | Q::Lease(_)
        | Q::Settle(_)
        | Q::AddResources(_)
        | Q::ListResources(_)
        | Q::GetResource(_)
        | Q::PatchResource(_)
        | Q::CoolResource(_)
        | Q::BanResource(_)
        | Q::RestoreResource(_)
        | Q::GetStats(_)
        | Q::Audit(_)
        | Q::ExplainJob(_) => return None,
        Q::DeleteJob(_) => maker!(D::Nothing => R::DeleteJob(())),
        Q::Extend(_) => maker!(D::Extended(extended) => R::Extend(extended)),
        Q::ListLeases(_) => maker!(D::Leases(leases) => R::ListLeases(leases)),
        Q::ForceLease(_) => maker!(D::Nothing => R::ForceLease(())),
        Q::ListQueues(_) => maker!(D::Queues(queues) => R::ListQueues(queues)),
        Q::GetQueue(_) => maker!(D::Queue(put) => R::GetQueue(put.view)),
        Q::PutQueue(_) => maker!(D::Queue(put) => R::PutQueue(put)),
        Q::PatchQueue(_) => maker!(D::Queue(put) => R::PatchQueue(put)),
        Q::DeleteQueue(_) => maker!(D::Nothing => R::DeleteQueue(())),
        Q::PauseQueue(_) => maker!(D::Queue(put) => R::PauseQueue(put.view)),
        Q::ResumeQueue(_) => maker!(D::Queue(put) => R::ResumeQueue(put.view)),
        Q::ListLimits(_) => maker!(D::Limits(limits) => R::ListLimits(limits)),
        Q::GetLimit(_) => maker!(D::Limit(put) => R::GetLimit(put.view)),
        Q::PutLimit(_) => maker!(D::Limit(put) => R::PutLimit(put)),
        Q::PatchLimit(_) => maker!(D::Limit(put) => R::PatchLimit(put)),
        Q::DeleteLimit(_) => maker!(D::Nothing => R::DeleteLimit(())),
        Q::PauseLimit(_) => maker!(D::Limit(put) => R::PauseLimit(put.view)),
        Q::ResumeLimit(_) => maker!(D::Limit(put) => R::ResumeLimit(put.view)),
        Q::ObserveLimit(_) => maker!(D::Limit(put) => R::ObserveLimit(put.view)),
        Q::ListPools(_) => maker!(D::Pools(pools) => R::ListPools(pools)),
        Q::GetPool(_) => maker!(D::Pool(put) => R::GetPool(put.view)),
        Q::PutPool(_) => maker!(D::Pool(put) => R::PutPool(put)),
        Q::PatchPool(_) => maker!(D::Pool(put) => R::PatchPool(put)),
        Q::DeletePool(_) => maker!(D::Nothing => R::DeletePool(())),
        Q::SyncResources(_) => maker!(D::Synced(synced) => R::SyncResources(synced)),
        Q::DeleteResource(_) => maker!(D::Nothing => R::DeleteResource(())),
        Q::ListWorkers(_) => maker!(D::Workers(workers) => R::ListWorkers(workers)),
    })
}
