//! Which call of the library a request is, and how its answer becomes the reply: the only place that
//! knows all requests.

use tenure_core::lease::Later;
use tenure_core::names::{PoolName, ResourceId};
use tenure_core::requests::{BulkChange, Listed, Put, Reply, Request};
use tenure_core::settings::{LimitView, PoolView, QueueView, ResourceView};
use tenure_engine::{CallError, Fault};

use crate::call::{Caller, malformed};
use crate::decode::{
    Answered, ExplainedReply, LimitReply, PoolReply, PutReply, QueueReply, ResourceReply,
    WorkerReply,
};
use crate::encode::{
    LimitArgs, NameArgs, PatchLimitArgs, PatchPoolArgs, PatchQueueArgs, PatchResourceArgs,
    PoolArgs, PoolResourcesArgs, QueueArgs, RefArgs, ResourceArgs, new_resources, pack,
};
use crate::lists;
use crate::{holders, jobs, sync, waiting};

type Packed = Result<Vec<u8>, Fault>;

/// Answers one request.
pub(crate) async fn answer(caller: Caller, request: Request) -> Result<Reply, CallError> {
    use {Reply as R, Request as Q};
    let c = &caller;
    Ok(match request {
        Q::Push(push) => R::Push(jobs::push(c, push).await?),
        Q::Settle(settle) => R::Settle(holders::settle(c, settle).await?),
        Q::Lease(lease) => R::Lease(waiting::lease(caller, lease).await?),
        Q::Extend(extend) => R::Extend(holders::extend(c, extend).await?),
        Q::GetJob(get) => R::GetJob(jobs::one(c, "get_job", pack(&RefArgs::of(&get.job))).await?),
        Q::PatchJob(patch) => R::PatchJob(jobs::patch(c, patch).await?),
        Q::CancelJob(cancel) => {
            R::CancelJob(jobs::one(c, "cancel", pack(&RefArgs::of(&cancel.job))).await?)
        }
        Q::RetryJob(retry) => {
            let args = RefArgs::ended(&retry.job, retry.finished_at);
            R::RetryJob(jobs::one(c, "retry", pack(&args)).await?)
        }
        Q::RunJobNow(run) => {
            R::RunJobNow(jobs::one(c, "run_now", pack(&RefArgs::of(&run.job))).await?)
        }
        Q::DeleteJob(delete) => {
            R::DeleteJob(done(c, "delete", pack(&RefArgs::of(&delete.job))).await?)
        }
        Q::ListJobs(list) => R::ListJobs(lists::jobs(c, list).await?),
        Q::CancelJobs(all) => {
            R::CancelJobs(lists::many(c, BulkChange::Cancel, all.filter, all.max).await?)
        }
        Q::RetryJobs(all) => {
            R::RetryJobs(lists::many(c, BulkChange::Retry, all.filter, all.max).await?)
        }
        Q::ExplainJob(explain) => {
            let args = RefArgs::of(&explain.job);
            let Answered { reply, blobs, .. } =
                c.ask::<ExplainedReply>("explain", pack(&args)).await?;
            R::ExplainJob(reply.read(&blobs).map_err(malformed("explain"))?)
        }
        Q::ListLeases(list) => R::ListLeases(lists::leases(c, list).await?),
        Q::ForceLease(force) => R::ForceLease(holders::force(c, &force.lease).await?),

        Q::ListQueues(list) => {
            let view = |queue: QueueReply, _: &_| queue.view();
            R::ListQueues(lists::page(c, "list_queues", (None, list.page), view).await?)
        }
        Q::GetQueue(get) => R::GetQueue(queue(c, "get_queue", name(get.queue.as_str())).await?),
        Q::PutQueue(put) => {
            let args = pack(&QueueArgs::of(put.queue.as_str(), &put.settings));
            R::PutQueue(put_queue(c, "put_queue", args).await?)
        }
        Q::PatchQueue(patch) => {
            R::PatchQueue(put_queue(c, "patch_queue", pack(&PatchQueueArgs::of(&patch))).await?)
        }
        Q::DeleteQueue(delete) => {
            R::DeleteQueue(done(c, "delete_queue", name(delete.queue.as_str())).await?)
        }
        Q::PauseQueue(pause) => {
            let args = pack(&NameArgs::later(pause.queue.as_str(), pause.until));
            R::PauseQueue(queue(c, "pause_queue", args).await?)
        }
        Q::ResumeQueue(resume) => {
            R::ResumeQueue(queue(c, "resume_queue", name(resume.queue.as_str())).await?)
        }

        Q::ListLimits(list) => {
            let of = (None, list.page);
            R::ListLimits(lists::page(c, "list_limits", of, LimitReply::view).await?)
        }
        Q::GetLimit(get) => R::GetLimit(limit(c, "get_limit", name(get.limit.as_str())).await?),
        Q::PutLimit(put) => {
            let args = pack(&LimitArgs::of(put.limit.as_str(), &put.settings));
            R::PutLimit(put_limit(c, "put_limit", args).await?)
        }
        Q::PatchLimit(patch) => {
            R::PatchLimit(put_limit(c, "patch_limit", pack(&PatchLimitArgs::of(&patch))).await?)
        }
        Q::DeleteLimit(delete) => {
            R::DeleteLimit(done(c, "delete_limit", name(delete.limit.as_str())).await?)
        }
        Q::PauseLimit(pause) => {
            let args = pack(&NameArgs::later(pause.limit.as_str(), Some(pause.until)));
            R::PauseLimit(limit(c, "pause_limit", args).await?)
        }
        Q::ResumeLimit(resume) => {
            R::ResumeLimit(limit(c, "resume_limit", name(resume.limit.as_str())).await?)
        }
        Q::ObserveLimit(seen) => {
            let args = pack(&NameArgs::observed(&seen));
            R::ObserveLimit(limit(c, "observe_limit", args).await?)
        }

        Q::ListPools(list) => {
            let view = |pool: PoolReply, _: &_| pool.view();
            R::ListPools(lists::page(c, "list_pools", (None, list.page), view).await?)
        }
        Q::GetPool(get) => {
            let pool: PoolReply = c.reply("get_pool", &NameArgs::of(get.pool.as_str())).await?;
            R::GetPool(pool.view().map_err(malformed("get_pool"))?)
        }
        Q::PutPool(put) => {
            let args = pack(&PoolArgs::of(put.pool.as_str(), &put.settings));
            R::PutPool(put_pool(c, "put_pool", args).await?)
        }
        Q::PatchPool(patch) => {
            R::PatchPool(put_pool(c, "patch_pool", pack(&PatchPoolArgs::of(&patch))).await?)
        }
        Q::DeletePool(delete) => {
            R::DeletePool(done(c, "delete_pool", name(delete.pool.as_str())).await?)
        }

        Q::SyncResources(all) => R::SyncResources(sync::sync(c, all).await?),
        Q::AddResources(add) => {
            let resources = new_resources(&add.resources);
            let args = pack(&PoolResourcesArgs { pool: add.pool.as_str(), resources });
            let Answered { reply, blobs, .. } =
                c.ask::<Vec<ResourceReply>>("add_resources", args).await?;
            let views: Result<_, _> = reply.into_iter().map(|one| one.view(&blobs)).collect();
            R::AddResources(views.map_err(malformed("add_resources"))?)
        }
        Q::ListResources(list) => {
            let of = (Some(list.pool.as_str()), list.page);
            let found = lists::page(c, "list_resources", of, ResourceReply::view).await?;
            let mut listed = Listed { partial: false, ..found };
            listed.cut(|view| 512 + view.data.text().len(), |view| view.id.to_string());
            R::ListResources(listed)
        }
        Q::GetResource(get) => {
            let args = of_resource(&get.pool, &get.resource, None, None);
            R::GetResource(resource(c, "get_resource", args).await?)
        }
        Q::PatchResource(patch) => {
            let args = pack(&PatchResourceArgs::of(&patch));
            R::PatchResource(resource(c, "patch_resource", args).await?)
        }
        Q::DeleteResource(delete) => {
            let args = of_resource(&delete.pool, &delete.resource, None, None);
            R::DeleteResource(done(c, "delete_resource", args).await?)
        }
        Q::CoolResource(cool) => {
            let args = of_resource(&cool.pool, &cool.resource, Some(cool.until), None);
            R::CoolResource(resource(c, "cool_resource", args).await?)
        }
        Q::BanResource(ban) => {
            let args = of_resource(&ban.pool, &ban.resource, None, ban.reason.as_deref());
            R::BanResource(resource(c, "ban_resource", args).await?)
        }
        Q::RestoreResource(restore) => {
            let args = of_resource(&restore.pool, &restore.resource, None, None);
            R::RestoreResource(resource(c, "restore_resource", args).await?)
        }

        Q::ListWorkers(list) => {
            let view = |worker: WorkerReply, _: &_| Ok(worker.view());
            R::ListWorkers(lists::page(c, "list_workers", (None, list.page), view).await?)
        }
        Q::GetStats(_) => R::GetStats(lists::stats(c).await?),
        Q::Audit(_) => R::Audit(lists::audit(c).await?),
    })
}

fn name(name: &str) -> Packed {
    pack(&NameArgs::of(name))
}

/// A call whose answer says only that it was done.
async fn done(c: &Caller, operation: &'static str, args: Packed) -> Result<(), CallError> {
    c.ask::<serde::de::IgnoredAny>(operation, args).await?;
    Ok(())
}

async fn queue(c: &Caller, operation: &'static str, args: Packed) -> Result<QueueView, CallError> {
    let reply = c.ask::<QueueReply>(operation, args).await?.reply;
    reply.view().map_err(malformed(operation))
}

async fn put_queue(
    c: &Caller,
    operation: &'static str,
    args: Packed,
) -> Result<Put<QueueView>, CallError> {
    let put = c.ask::<PutReply<QueueReply>>(operation, args).await?.reply;
    put.read(QueueReply::view).map_err(malformed(operation))
}

async fn limit(c: &Caller, operation: &'static str, args: Packed) -> Result<LimitView, CallError> {
    let Answered { reply, blobs, .. } = c.ask::<LimitReply>(operation, args).await?;
    reply.view(&blobs).map_err(malformed(operation))
}

async fn put_limit(
    c: &Caller,
    operation: &'static str,
    args: Packed,
) -> Result<Put<LimitView>, CallError> {
    let Answered { reply, blobs, .. } = c.ask::<PutReply<LimitReply>>(operation, args).await?;
    reply.read(|limit| limit.view(&blobs)).map_err(malformed(operation))
}

async fn put_pool(
    c: &Caller,
    operation: &'static str,
    args: Packed,
) -> Result<Put<PoolView>, CallError> {
    let put = c.ask::<PutReply<PoolReply>>(operation, args).await?.reply;
    put.read(PoolReply::view).map_err(malformed(operation))
}

fn of_resource(
    pool: &PoolName,
    resource: &ResourceId,
    later: Option<Later>,
    reason: Option<&str>,
) -> Packed {
    let later = later.map_or_else(crate::encode::Later::default, crate::encode::Later::of);
    pack(&ResourceArgs { pool: pool.as_str(), id: resource.as_str(), later, reason })
}

async fn resource(
    c: &Caller,
    operation: &'static str,
    args: Packed,
) -> Result<ResourceView, CallError> {
    let Answered { reply, blobs, .. } = c.ask::<ResourceReply>(operation, args).await?;
    reply.view(&blobs).map_err(malformed(operation))
}
