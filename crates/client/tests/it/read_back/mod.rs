//! Reads a sent request back with the reader of a server.

use tenure::core::decode;
use tenure::core::percent::decoded;
use tenure::core::refusal::Refusal;
use tenure::core::requests::{Push, Request};

use crate::scripted::Seen;

/// The request that a server would see; `None` if the path holds all of it.
pub fn read(asked: &Request, seen: &Seen) -> Option<Result<Request, Refusal>> {
    use Request as R;
    let (_, target) = seen.line.split_once(' ').unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let parts: Vec<String> = path.split('/').skip(2).map(plain).collect();
    let name = parts.get(1).map_or("", String::as_str);
    let id = parts.get(3).map_or("", String::as_str);
    let resource = decode::ResourcePath { name, id };
    let query: Vec<(String, String)> = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (plain(key), plain(value)))
        .collect();
    let body = seen.body.as_bytes();
    Some(match asked {
        R::Push(push) => {
            decode::push(body).map(|(_, jobs)| Push { jobs, answer: push.answer }.into())
        }
        R::ListJobs(_) => decode::list_jobs(&query).map(R::from),
        R::GetResult(_) => decode::get_result(name, &query).map(R::from),
        R::ListParents(_) => decode::list_parents(name, &query).map(R::from),
        R::ListChildren(_) => decode::list_children(name, &query).map(R::from),
        R::ListFlows(_) => decode::list_flows(&query).map(R::from),
        R::GetFlow(_) => decode::get_flow(name, &query).map(R::from),
        R::PatchJob(_) => decode::patch_job(name, body).map(R::from),
        R::RetryJob(_) => decode::retry_job(name, body).map(R::from),
        R::CancelJobs(_) => decode::cancel_jobs(body).map(R::from),
        R::RetryJobs(_) => decode::retry_jobs(body).map(R::from),
        R::DeleteJobs(_) => decode::delete_jobs(body).map(R::from),
        R::ReadEvents(_) => decode::read_events(&query).map(R::from),
        R::ListFailures(_) => decode::list_failures(&query).map(R::from),
        R::Lease(_) => decode::lease(body).map(R::from),
        R::Extend(_) => decode::extend(body).map(R::from),
        R::Settle(_) => decode::settle(body).map(R::from),
        R::ListLeases(_) => decode::list_leases(&query).map(R::from),
        R::ListQueues(_) => decode::list_queues(&query).map(R::from),
        R::PutQueue(_) => decode::put_queue(name, body).map(R::from),
        R::PatchQueue(_) => decode::patch_queue(name, body).map(R::from),
        R::PauseQueue(_) => decode::pause_queue(name, body).map(R::from),
        R::ListLimits(_) => decode::list_limits(&query).map(R::from),
        R::PutLimit(_) => decode::put_limit(name, body).map(R::from),
        R::PatchLimit(_) => decode::patch_limit(name, body).map(R::from),
        R::PauseLimit(_) => decode::pause_limit(name, body).map(R::from),
        R::ObserveLimit(_) => decode::observe_limit(name, body).map(R::from),
        R::ListPools(_) => decode::list_pools(&query).map(R::from),
        R::PutPool(_) => decode::put_pool(name, body).map(R::from),
        R::PatchPool(_) => decode::patch_pool(name, body).map(R::from),
        R::SyncResources(_) => decode::sync_resources(name, &query, body).map(R::from),
        R::AddResources(_) => decode::add_resources(name, body).map(R::from),
        R::ListResources(_) => decode::list_resources(name, &query).map(R::from),
        R::PatchResource(_) => decode::patch_resource(resource, body).map(R::from),
        R::CoolResource(_) => decode::cool_resource(resource, body).map(R::from),
        R::BanResource(_) => decode::ban_resource(resource, body).map(R::from),
        R::ListSchedules(_) => decode::list_schedules(&query).map(R::from),
        R::PutSchedule(_) => decode::put_schedule(name, body).map(R::from),
        R::PatchSchedule(_) => decode::patch_schedule(name, body).map(R::from),
        R::PauseSchedule(_) => decode::pause_schedule(name, body).map(R::from),
        R::RunScheduleNow(_) => decode::run_schedule_now(name, body).map(R::from),
        R::SyncSchedules(_) => decode::sync_schedules(&query, body).map(R::from),
        R::ListWorkers(_) => decode::list_workers(&query).map(R::from),
        R::GetJob(_)
        | R::DeleteJob(_)
        | R::CancelJob(_)
        | R::RunJobNow(_)
        | R::ExplainJob(_)
        | R::ForceLease(_)
        | R::GetQueue(_)
        | R::DeleteQueue(_)
        | R::ResumeQueue(_)
        | R::GetLimit(_)
        | R::DeleteLimit(_)
        | R::ResumeLimit(_)
        | R::GetPool(_)
        | R::DeletePool(_)
        | R::GetResource(_)
        | R::DeleteResource(_)
        | R::RestoreResource(_)
        | R::CancelFlow(_)
        | R::GetSchedule(_)
        | R::DeleteSchedule(_)
        | R::ResumeSchedule(_)
        | R::GetStats(_)
        | R::Audit(_) => return None,
    })
}

fn plain(text: &str) -> String {
    decoded(text).expect("a path that is percent-encoded").into_owned()
}
