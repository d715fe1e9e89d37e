//! A call from the caller's side: from a request to a command, and from what was answered to the
//! reply.

use std::sync::Arc;

use tenure_core::job::{JobState, JobView};
use tenure_core::lease::{Explained, SettledLease};
use tenure_core::names::{JobRef, Namespace, PoolName};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{BulkChange, Push, Pushed, PushedId, Reply, Request, Settle, Settled};
use tenure_core::sentences::JobRefusal;
use tenure_core::settings::ResourceView;
use tenure_engine::{CallError, Fault, ids};
use tenure_machine::{Command, Done, Seq};

use crate::audit;
use crate::batch::{Answer, SettledShown};
use crate::damage::UNREADABLE;
use crate::inbox::Ask;
use crate::lease_call;
use crate::lists;
use crate::replies;
use crate::shared::Shared;
use crate::show;

fn broken(name: &str) -> CallError {
    Fault::Broken(format!("{name} got another operation's answer")).into()
}

/// Answers one request.
pub(crate) async fn call(
    shared: Arc<Shared>,
    namespace: Namespace,
    request: Request,
) -> Result<Reply, CallError> {
    let name = request.spec().name;
    // Held until the call is answered.
    let _taken = shared.room.admit(&request)?;
    if let Some(make) = replies::maker(&request) {
        let ask = Ask::Command(Box::new(Command::Request(request)));
        return match shared.ask(&namespace, ask).await? {
            Answer::Done(done) => make(done).ok_or_else(|| broken(name)),
            _ => Err(broken(name)),
        };
    }
    let (shared, ns) = (&shared, &namespace);
    match request {
        Request::Push(push) => Ok(Reply::Push(self::push(shared, ns, push).await?)),
        Request::Settle(settle) => Ok(Reply::Settle(self::settle(shared, ns, settle).await?)),
        Request::Lease(lease) => {
            let leased = lease_call::lease(shared.clone(), namespace, lease).await?;
            Ok(Reply::Lease(leased))
        }
        Request::GetJob(get) => {
            let job = get.job.clone();
            Ok(Reply::GetJob(self::job(shared, ns, job, Request::GetJob(get)).await?))
        }
        Request::PatchJob(patch) => {
            let job = patch.job.clone();
            Ok(Reply::PatchJob(self::job(shared, ns, job, Request::PatchJob(patch)).await?))
        }
        Request::CancelJob(cancel) => {
            let job = cancel.job.clone();
            Ok(Reply::CancelJob(self::job(shared, ns, job, Request::CancelJob(cancel)).await?))
        }
        Request::RetryJob(retry) => {
            let job = retry.job.clone();
            Ok(Reply::RetryJob(self::job(shared, ns, job, Request::RetryJob(retry)).await?))
        }
        Request::RunJobNow(run) => {
            let job = run.job.clone();
            Ok(Reply::RunJobNow(self::job(shared, ns, job, Request::RunJobNow(run)).await?))
        }
        Request::ListJobs(list) => Ok(Reply::ListJobs(lists::list(shared, ns, list).await?)),
        Request::CancelJobs(all) => {
            let done = lists::many(shared, ns, BulkChange::Cancel, all.filter, all.max).await?;
            Ok(Reply::CancelJobs(done))
        }
        Request::RetryJobs(all) => {
            let done = lists::many(shared, ns, BulkChange::Retry, all.filter, all.max).await?;
            Ok(Reply::RetryJobs(done))
        }
        Request::AddResources(add) => {
            let pool = add.pool.clone();
            let (views, _) = resources(shared, ns, pool, Request::AddResources(add)).await?;
            Ok(Reply::AddResources(views))
        }
        Request::ListResources(list) => {
            let pool = list.pool.clone();
            let (items, next) = resources(shared, ns, pool, Request::ListResources(list)).await?;
            let mut listed = tenure_core::requests::Listed { items, next, partial: false };
            listed.cut(|view| 512 + view.data.text().len(), |view| view.id.to_string());
            Ok(Reply::ListResources(listed))
        }
        Request::GetResource(get) => {
            let pool = get.pool.clone();
            Ok(Reply::GetResource(resource(shared, ns, pool, Request::GetResource(get)).await?))
        }
        Request::PatchResource(patch) => {
            let pool = patch.pool.clone();
            let view = resource(shared, ns, pool, Request::PatchResource(patch)).await?;
            Ok(Reply::PatchResource(view))
        }
        Request::CoolResource(cool) => {
            let pool = cool.pool.clone();
            Ok(Reply::CoolResource(resource(shared, ns, pool, Request::CoolResource(cool)).await?))
        }
        Request::BanResource(ban) => {
            let pool = ban.pool.clone();
            Ok(Reply::BanResource(resource(shared, ns, pool, Request::BanResource(ban)).await?))
        }
        Request::RestoreResource(restore) => {
            let pool = restore.pool.clone();
            let view = resource(shared, ns, pool, Request::RestoreResource(restore)).await?;
            Ok(Reply::RestoreResource(view))
        }
        Request::GetStats(get) => match done(shared, ns, Request::GetStats(get)).await? {
            Done::Stats(mut stats) => {
                stats.store.kind = "embedded".to_owned();
                stats.store.bytes = shared.bytes();
                Ok(Reply::GetStats(stats))
            }
            _ => Err(broken(name)),
        },
        Request::ExplainJob(explain) => {
            let job = explain.job.clone();
            match done(shared, ns, Request::ExplainJob(explain)).await? {
                Done::Explained(explained) => {
                    Ok(Reply::ExplainJob(explain_end(shared, ns, job, explained).await?))
                }
                _ => Err(broken(name)),
            }
        }
        Request::Audit(audit) => match done(shared, ns, Request::Audit(audit)).await? {
            Done::Audit(mut found) => {
                if audit.deep {
                    audit::read_all(shared, ns, &mut found).await?;
                }
                found.faults.extend(shared.damage.faults(ns));
                found.ok = found.faults.is_empty();
                Ok(Reply::Audit(found))
            }
            _ => Err(broken(name)),
        },
        other => Err(broken(other.spec().name)),
    }
}

/// Adds why a job failed that could not be read, which only its row knows.
async fn explain_end(
    shared: &Shared,
    ns: &Namespace,
    job: JobRef,
    mut explained: Explained,
) -> Result<Explained, CallError> {
    if explained.state != JobState::Failed {
        return Ok(explained);
    }
    let locate = Ask::Command(Box::new(Command::Locate(job)));
    let Answer::Done(Done::Job(seq, state)) = shared.ask(ns, locate).await? else {
        return Ok(explained);
    };
    let view = show::job(shared, ns, seq, state).await?;
    let error = view.and_then(|view| view.error);
    if error.is_some_and(|error| error.starts_with(UNREADABLE)) {
        explained.summary =
            "it failed because it is unreadable: what the store holds of it is not \
                             what was written; `tenure audit --deep` names what is damaged"
                .to_owned();
    }
    Ok(explained)
}

/// What the machine answers to a request.
async fn done(shared: &Shared, ns: &Namespace, request: Request) -> Result<Done, CallError> {
    let name = request.spec().name;
    match shared.ask(ns, Ask::Command(Box::new(Command::Request(request)))).await? {
        Answer::Done(done) => Ok(done),
        _ => Err(broken(name)),
    }
}

async fn push(shared: &Shared, ns: &Namespace, mut push: Push) -> Result<Pushed, CallError> {
    ids::fill_in(push.jobs.iter_mut(), shared.clock.now())?;
    match shared.ask(ns, Ask::Push(push)).await? {
        Answer::Pushed(jobs) => Ok(Pushed::Whole(show::pushed(shared, ns, jobs, true).await?)),
        Answer::Done(Done::Pushed(jobs)) => {
            let ids = jobs.into_iter().map(|job| PushedId {
                id: job.id,
                duplicate: job.duplicate,
                replaced: job.replaced,
                workers: job.unasked.then_some(0),
            });
            Ok(Pushed::Ids(ids.collect()))
        }
        _ => Err(broken("push")),
    }
}

async fn settle(shared: &Shared, ns: &Namespace, mut settle: Settle) -> Result<Settled, CallError> {
    let jobs = settle.settle.iter_mut().flat_map(|item| item.push.iter_mut());
    ids::fill_in(jobs, shared.clock.now())?;
    let items = match shared.ask(ns, Ask::Settle(settle)).await? {
        Answer::Settled(items) => items,
        Answer::Done(Done::Settled(items)) => {
            let plain = items.into_iter().map(|one| SettledShown {
                lease: one.lease,
                result: one.result,
                pushed: Vec::new(),
            });
            plain.collect()
        }
        _ => return Err(broken("settle")),
    };
    let mut settled = Vec::with_capacity(items.len());
    for SettledShown { lease, result, pushed } in items {
        let pushed = show::pushed(shared, ns, pushed, false).await?;
        settled.push(match result {
            Ok(known) => SettledLease {
                lease,
                ok: true,
                state: known.state,
                run_at: known.run_at,
                code: None,
                pushed,
            },
            Err(code) => SettledLease {
                lease,
                ok: false,
                state: None,
                run_at: None,
                code: Some(code),
                pushed,
            },
        });
    }
    Ok(Settled { settled })
}

/// What shows one job.
async fn job(
    shared: &Shared,
    ns: &Namespace,
    job: JobRef,
    request: Request,
) -> Result<Box<JobView>, CallError> {
    let name = request.spec().name;
    let (seq, state): (Seq, JobState) = match done(shared, ns, request).await? {
        Done::Job(seq, state) => (seq, state),
        _ => return Err(broken(name)),
    };
    let view = show::job(shared, ns, seq, state).await?;
    view.map(Box::new).ok_or_else(|| {
        Refusal::from(JobRefusal::ForgottenMeanwhile { job: job.to_string() }).into()
    })
}

/// What shows resources of one pool; the cursor beside it.
async fn resources(
    shared: &Shared,
    ns: &Namespace,
    pool: PoolName,
    request: Request,
) -> Result<(Vec<ResourceView>, Option<String>), CallError> {
    let name = request.spec().name;
    match done(shared, ns, request).await? {
        Done::Resources(listed) => {
            Ok((show::resources(shared, ns, pool, listed.items).await?, listed.next))
        }
        _ => Err(broken(name)),
    }
}

async fn resource(
    shared: &Shared,
    ns: &Namespace,
    pool: PoolName,
    request: Request,
) -> Result<ResourceView, CallError> {
    let name = request.spec().name;
    let (mut views, _) = resources(shared, ns, pool, request).await?;
    views.pop().ok_or_else(|| broken(name))
}
