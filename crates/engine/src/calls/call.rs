//! A call from the caller's side: makes a command from the request, and the reply from the machine's answer.

use std::sync::Arc;

use tenure_core::access::TokenName;
use tenure_core::names::Namespace;
use tenure_core::requests::{Push, Pushed, Reply, Request, Settle, Settled};
use tenure_engine_api::{CallError, ids};
use tenure_machine::{Done, Known};

use crate::batch::Answer;
use crate::calls::ask::{broken, known, reply};
use crate::calls::show::{self, Show};
use crate::calls::{events, lease_call, many, replaced, result_call, schedules};
use crate::inbox::Ask;
use crate::shared::Shared;
use crate::sqlite::capacity::TakenRoom;
use crate::sqlite::capacity::growth::{Growth, growth};
use crate::sqlite::read::readers::Haste;
use crate::sqlite::read::{failures, lists};

/// `by`: the name of its caller, for events.
pub(crate) async fn call(
    shared: Arc<Shared>,
    by: Option<TokenName>,
    namespace: Namespace,
    request: Request,
) -> Result<Reply, CallError> {
    // Held until the call is answered.
    let _taken = admitted(&shared, &namespace, &request).await?;
    let (there, ns, by) = (&shared, &namespace, by.as_ref());
    Ok(match request {
        Request::Push(push) => Reply::Push(self::push(there, ns, push).await?),
        Request::Settle(settle) => {
            Reply::Settle(self::settle(shared.clone(), namespace, settle).await?)
        }
        Request::Lease(lease) => {
            Reply::Lease(lease_call::lease(shared.clone(), namespace, lease).await?)
        }
        Request::GetResult(get) => {
            Reply::GetResult(result_call::result(&shared, &namespace, get).await?)
        }
        Request::GetFlow(get) => Reply::GetFlow(result_call::flow(&shared, &namespace, get).await?),
        Request::ListJobs(list) => Reply::ListJobs(lists::list(there, ns, list).await?),
        Request::PutSchedule(put) => Reply::PutSchedule(schedules::put(there, ns, by, put).await?),
        Request::PatchSchedule(patch) => {
            Reply::PatchSchedule(schedules::patch(there, ns, by, patch).await?)
        }
        Request::RunScheduleNow(run) => {
            Reply::RunScheduleNow(schedules::run_now(there, ns, by, run).await?)
        }
        Request::SyncSchedules(sync) => {
            Reply::SyncSchedules(schedules::sync(there, ns, by, sync).await?)
        }
        Request::CancelJobs(asked) => Reply::CancelJobs(many::many(there, ns, by, asked).await?),
        Request::RetryJobs(asked) => Reply::RetryJobs(many::many(there, ns, by, asked).await?),
        Request::DeleteJobs(asked) => Reply::DeleteJobs(many::many(there, ns, by, asked).await?),
        Request::ReadEvents(asked) => Reply::ReadEvents(events::read(there, ns, asked).await?),
        Request::ListFailures(asked) => {
            Reply::ListFailures(failures::list(there, ns, asked).await?)
        }
        request => {
            let name = request.spec().name;
            match known(there, ns, by, request).await? {
                Some(known) => reply(there, ns, known).await?,
                None => return Err(broken(name)),
            }
        }
    })
}

/// Takes the room that a request needs.
///
/// The bytes that a patch replaces are looked up only where there is no room for the whole: a patch that makes nothing
/// larger goes on in a full store, and elsewhere no patch costs a read.
async fn admitted<'s>(
    shared: &'s Shared,
    ns: &Namespace,
    request: &Request,
) -> Result<Option<TakenRoom<'s>>, CallError> {
    let growth = growth(request);
    let admit = |growth: Growth<'_>| {
        shared.room.admit(if shared.seal.is_on() { growth.sealed() } else { growth })
    };
    let mut admitted = admit(growth);
    if let Err(CallError::Refused(_)) = admitted
        && shared.room.has_unwritten()
    {
        // The bytes to be written are only an estimate, until they are written and measured.
        shared.read_rows(Haste::Now, |_| Ok(())).await?;
        admitted = admit(growth);
    }
    match (admitted, growth) {
        (Err(CallError::Refused(_)), Growth::Replaces(_, replaced)) => {
            let replaced_bytes = replaced::bytes(shared, ns, replaced).await?;
            admit(growth.beyond(replaced_bytes))
        }
        (admitted, _) => admitted,
    }
}

async fn push(shared: &Shared, ns: &Namespace, mut push: Push) -> Result<Pushed, CallError> {
    ids::fill_in(push.jobs.iter_mut(), shared.clock.now())?;
    match shared.ask(ns, Ask::Push(push)).await? {
        Answer::Pushed(jobs) => Ok(Pushed::Whole(show::pushed(shared, ns, jobs, true).await?)),
        Answer::Done(Done::Request(Known::Push(jobs))) => {
            Show::<Pushed>::show(jobs, shared, ns).await
        }
        _ => Err(broken("push")),
    }
}

async fn settle(
    shared: Arc<Shared>,
    ns: Namespace,
    mut settle: Settle,
) -> Result<Settled, CallError> {
    let jobs = settle.settle.iter_mut().flat_map(|item| item.push.iter_mut());
    ids::fill_in(jobs, shared.clock.now())?;
    if let Some(lease) = settle.lease.take() {
        return lease_call::settle_and_lease(shared, ns, settle, lease).await;
    }
    let answer = shared.ask(&ns, Ask::Settle(settle)).await?;
    show::settled(&shared, &ns, answer).await
}
