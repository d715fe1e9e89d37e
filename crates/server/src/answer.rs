//! From an engine's reply to an answer: its status, and its JSON.

use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{Pushed, Put, Reply};

use crate::out::Out;
use crate::problem;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// An answer is true now, and may hold secrets.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// This value, with a status.
pub(crate) fn json(status: u16, value: &impl Serialize) -> Response<Out> {
    match serde_json::to_vec(value) {
        Ok(bytes) => {
            let mut response = Response::new(Out::whole(bytes));
            *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            response.headers_mut().insert(CONTENT_TYPE, JSON);
            response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
            response
        }
        Err(why) => {
            tracing::error!(%why, "an answer cannot be written as JSON");
            problem::response(&Refusal::new(
                Code::Internal,
                "the server has a bug, and could not write its answer",
                "send the same call again, with the same ids; report it if it stays so",
            ))
        }
    }
}

/// One of many, where one object was sent.
fn some<T: Serialize>(one: bool, items: &[T], status: impl FnOnce(&T) -> u16) -> Response<Out> {
    match items {
        [item] if one => json(status(item), item),
        items => json(200, &items),
    }
}

fn put<T: Serialize>(put: &Put<T>) -> Response<Out> {
    json(if put.created { 201 } else { 200 }, &put.view)
}

fn nothing() -> Response<Out> {
    let mut response = Response::new(Out::whole(Vec::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// A reply; `one`: one object was sent where an array could have been.
pub(crate) fn reply(reply: &Reply, one: bool) -> Response<Out> {
    use Reply as R;
    let created = |duplicate: bool| if duplicate { 200 } else { 201 };
    match reply {
        R::Push(Pushed::Whole(jobs)) => some(one, jobs, |job| created(job.duplicate)),
        R::Push(Pushed::Ids(ids)) => some(one, ids, |id| created(id.duplicate)),
        R::AddResources(views) => some(one, views, |_| 200),
        R::GetJob(view)
        | R::PatchJob(view)
        | R::CancelJob(view)
        | R::RetryJob(view)
        | R::RunJobNow(view) => json(200, view),
        R::DeleteJob(())
        | R::ForceLease(())
        | R::DeleteQueue(())
        | R::DeleteLimit(())
        | R::DeletePool(())
        | R::DeleteResource(()) => nothing(),
        R::ListJobs(list) => json(200, list),
        R::CancelJobs(done) | R::RetryJobs(done) => json(200, done),
        R::ExplainJob(explained) => json(200, explained),
        R::Lease(leased) => lease::json(leased),
        R::Extend(extended) => json(200, extended),
        R::Settle(settled) => json(200, settled),
        R::ListLeases(list) => json(200, list),
        R::ListQueues(list) => json(200, list),
        R::GetQueue(view) | R::PauseQueue(view) | R::ResumeQueue(view) => json(200, view),
        R::PutQueue(done) | R::PatchQueue(done) => put(done),
        R::ListLimits(list) => json(200, list),
        R::GetLimit(view) | R::PauseLimit(view) | R::ResumeLimit(view) | R::ObserveLimit(view) => {
            json(200, view)
        }
        R::PutLimit(done) | R::PatchLimit(done) => put(done),
        R::ListPools(list) => json(200, list),
        R::GetPool(view) => json(200, view),
        R::PutPool(done) | R::PatchPool(done) => put(done),
        R::SyncResources(synced) => json(200, synced),
        R::ListResources(list) => json(200, list),
        R::GetResource(view)
        | R::PatchResource(view)
        | R::CoolResource(view)
        | R::BanResource(view)
        | R::RestoreResource(view) => json(200, view),
        R::ListWorkers(list) => json(200, list),
        R::GetStats(stats) => json(200, stats),
        R::RunAudit(audit) => json(200, audit),
    }
}

/// The answer of a lease call.
mod lease {
    use hyper::Response;
    use serde::Serialize;
    use tenure_core::lease::{Fence, LeaseView, Leased};
    use tenure_core::names::LimitName;

    use crate::out::Out;

    /// A token that was granted and given back in one step has no more to show.
    #[derive(Serialize)]
    struct Token<'a> {
        lease: Option<&'a str>,
        fence: Fence,
        limits: &'a [LimitName],
    }

    #[derive(Serialize)]
    #[serde(untagged)]
    enum One<'a> {
        Lease(&'a LeaseView),
        Token(Token<'a>),
    }

    #[derive(Serialize)]
    struct Tokens<'a> {
        leases: Vec<One<'a>>,
    }

    /// As the contract shows it.
    pub(super) fn json(leased: &Leased) -> Response<Out> {
        if leased.leases.iter().all(|lease| lease.lease.is_some()) {
            return super::json(200, leased);
        }
        let leases = leased.leases.iter().map(|lease| match lease.lease {
            Some(_) => One::Lease(lease),
            None => One::Token(Token { lease: None, fence: lease.fence, limits: &lease.limits }),
        });
        super::json(200, &Tokens { leases: leases.collect() })
    }
}
