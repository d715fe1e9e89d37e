//! Table of operations: one row each. Every layer derives its own part from it.
//!
//! The requests and replies of an engine, the server's routes, the paths of the remote engine, and the calls that may
//! be repeated all come from here. Nothing here decides.
//!
//! The columns of a row, below a sentence about the operation:
//! - the operation's name, the same in every layer, with the types of its request and of its reply;
//! - its route in HTTP: method and path. The fields of the request that fill the braces of the path follow in
//!   brackets, in their order;
//! - the scope that a token needs for it ([`Scope`]), exactly one;
//! - the effect of sending the same request a second time ([`Effect`]). `Depends` calls the request's own method
//!   `effect`. `gone` lists the refusals that tell a repeat that the deletion was done.
//!
//! The query and the body of an operation, and the way to them and back, come from its request ([`Decode`], [`Encode`]).

use super::*;
use crate::access::{Concealed, Grants, Scope};
use crate::bounded::Bounded;
use crate::decode::{BodySpec, Decode, Encode, EncodedBody, ParameterSpec, RawCall};
use crate::flow::{ChildView, FlowView, ParentView};
use crate::job::{JobView, PushedJob, ResultView};
use crate::lease::{Explained, Extended, LeaseSummary, Leased};
use crate::percent::encoded;
use crate::refusal::{Code, Refusal};
use crate::schedule::{ScheduleView, SyncedSchedules};
use crate::settings::{LimitView, PoolView, QueueView, ResourceView, Synced};
use crate::words;

/// One row of the table, as data.
#[derive(Debug)]
pub struct Spec {
    /// The name of the operation, the same in every layer.
    pub name: &'static str,
    /// One sentence about it, for readers of the documentation.
    pub summary: &'static str,
    /// The method of its route.
    pub method: HttpMethod,
    /// The path of its route, with names in braces.
    pub path: &'static str,
    /// The scope that a token needs for it.
    pub scope: Scope,
    /// Effect of a second sending; `None` if it depends on the request: see [`Request::effect`].
    pub effect: Option<Effect>,
    /// Refusals of a repeat that mean that the first sending, or another caller, has already deleted the thing.
    pub gone: &'static [Code],
    /// The parameters of its query; `None`: it has no query.
    pub query: Option<fn() -> Vec<ParameterSpec>>,
    /// The body that its call has.
    pub body: BodySpec,
    /// Turns a call of it into its request.
    pub decode: fn(RawCall<'_>) -> Answer<Request>,
}

words! {
    /// A method of HTTP.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum HttpMethod {
        Get = "GET",
        Post = "POST",
        Put = "PUT",
        Patch = "PATCH",
        Delete = "DELETE",
    }
}

/// Effect of sending the same request a second time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// None, like the first: the request only reads.
    Reads,
    /// None beyond the first: a caller that does not know if the first one arrived may send it again.
    Sets,
    /// Possibly the same change once more: a caller must check before it sends it again.
    Adds,
}

/// An operation of an engine: a request and its reply.
pub trait Operation: Into<Request> + Bounded + Decode + Encode + Send + 'static {
    /// The value that an engine answers with.
    type Reply: Send + 'static;
    /// Its row of the table.
    const SPEC: Spec;
    /// Its name, the same in every layer.
    const NAME: &'static str = Self::SPEC.name;
    /// Wraps its reply as a reply of any operation.
    fn wrap(reply: Self::Reply) -> Reply;
    /// Unwraps its reply; `None` if an engine answered another operation.
    fn reply(reply: Reply) -> Option<Self::Reply>;
}

/// The answer to a request: its reply, or a refusal.
pub type Answer<T> = Result<T, Refusal>;

/// Fills the braces of a path with these names.
fn filled(template: &str, names: &[String]) -> String {
    let mut path = String::with_capacity(template.len() + 32);
    let (mut left, mut names) = (template, names.iter());
    while let Some((before, (_, after))) =
        left.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        path += before;
        path += &names.next().map_or_else(String::new, |name| encoded(name).to_string());
        left = after;
    }
    path + left
}

/// The number of braces in a path.
const fn names_in(template: &str) -> usize {
    let (bytes, mut at, mut names) = (template.as_bytes(), 0, 0);
    while at < bytes.len() {
        if bytes[at] == b'{' {
            names += 1;
        }
        at += 1;
    }
    names
}

macro_rules! effect {
    (Depends $request:expr) => {
        $request.effect()
    };
    ($effect:ident $request:expr) => {
        Effect::$effect
    };
}
macro_rules! fixed_effect {
    (Depends) => {
        None
    };
    ($effect:ident) => {
        Some(Effect::$effect)
    };
}

macro_rules! operations {
    ($d:tt $(
        #[doc = $summary:literal]
        $name:ident $request:ident => $reply:ty,
        $method:ident $path:literal $([$($field:ident)+])?,
        $scope:ident, $effect:ident $(gone $($gone:ident)+)?;
    )*) => {
        /// A request of any operation.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Request { $($request($request)),* }

        /// A reply of any operation; its variant has the name of the request.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Reply { $($request($reply)),* }

        /// All rows, in the order of the table.
        pub const OPERATIONS: &[&Spec] = &[$(&<$request as Operation>::SPEC),*];

        impl Request {
            /// The row of the operation.
            pub fn spec(&self) -> &'static Spec {
                match self { $(Request::$request(_) => &<$request as Operation>::SPEC),* }
            }

            /// Effect of sending this request a second time.
            pub fn effect(&self) -> Effect {
                match self { $(Request::$request(_request) => effect!($effect _request)),* }
            }

            /// The names that fill the braces of its path, in their order.
            pub(crate) fn names(&self) -> Vec<String> {
                match self {
                    $(Request::$request(_request) => vec![$($(_request.$field.to_string()),+)?],)*
                }
            }

            /// The path of the request: that of its row, with percent-encoded names. It has no query.
            pub fn path(&self) -> String {
                filled(self.spec().path, &self.names())
            }

            /// The reply to a deletion whose *repeat* was refused with `code`: the first sending or another caller has
            /// deleted the thing, and that is what this caller wanted.
            pub fn done_already(&self, code: Code) -> Option<Reply> {
                match self {
                    $($(Request::$request(_) if [$(Code::$gone),+].contains(&code) => {
                        Some(Reply::$request(()))
                    })?)*
                    _ => None,
                }
            }
        }
        impl Encode for Request {
            fn encode_query(&self) -> Vec<(&'static str, String)> {
                match self { $(Request::$request(request) => request.encode_query()),* }
            }
            fn encode_body(&self) -> serde_json::Result<EncodedBody> {
                match self { $(Request::$request(request) => request.encode_body()),* }
            }
        }
        impl Bounded for Request {
            fn within_bounds(&self) -> Answer<()> {
                match self { $(Request::$request(request) => request.within_bounds()),* }
            }
        }
        impl Concealed for Reply {
            fn conceal(&mut self, grants: &Grants) {
                match self { $(Reply::$request(reply) => reply.conceal(grants)),* }
            }
        }
        $(
            impl From<$request> for Request {
                fn from(request: $request) -> Request { Request::$request(request) }
            }
            impl Operation for $request {
                type Reply = $reply;
                const SPEC: Spec = Spec {
                    name: stringify!($name),
                    summary: $summary.trim_ascii_start(),
                    method: HttpMethod::$method,
                    path: $path,
                    scope: Scope::$scope,
                    effect: fixed_effect!($effect),
                    gone: &[$($(Code::$gone),+)?],
                    query: <$request as Decode>::QUERY,
                    body: <$request as Decode>::BODY,
                    decode: |call| Ok(Request::$request(Decode::decode(call)?)),
                };
                fn wrap(reply: $reply) -> Reply { Reply::$request(reply) }
                fn reply(reply: Reply) -> Option<$reply> {
                    match reply { Reply::$request(reply) => Some(reply), _ => None }
                }
            }
            const _: () = assert!(
                names_in($path) == <[&str]>::len(&[$($(stringify!($field)),+)?]),
                "the path of a row has other names than the row",
            );
        )*

        /// Passes the types of all requests to another macro, in the order of the table: `each_operation!(mine)` is
        /// `mine! { Push GetJob … }`. So a layer that lacks an operation does not compile.
        #[macro_export]
        macro_rules! each_operation {
            ($d with:ident) => { $d with! { $($request)* } };
        }
    };
}

operations! { $
    /// Store jobs: one, an array, or a job a line
    push             Push            => Pushed,               Post   "/v1/jobs",                                                Push,    Depends;
    /// Show a job
    get_job          GetJob          => Box<JobView>,         Get    "/v1/jobs/{id}" [job],                                     View,    Reads;
    /// List jobs, newest first
    list_jobs        ListJobs        => Listed<JobView>,      Get    "/v1/jobs",                                                View,    Reads;
    /// Change a job that waits
    patch_job        PatchJob        => Box<JobView>,         Patch  "/v1/jobs/{id}" [job],                                     Operate, Sets;
    /// Cancel a job and forget it
    delete_job       DeleteJob       => (),                   Delete "/v1/jobs/{id}" [job],                                     Operate, Sets gone JobNotFound;
    /// Cancel a job
    cancel_job       CancelJob       => Box<JobView>,         Post   "/v1/jobs/{id}/cancel" [job],                              Operate, Sets;
    /// Make a finished job ready again
    retry_job        RetryJob        => Box<JobView>,         Post   "/v1/jobs/{id}/retry" [job],                               Operate, Depends;
    /// Make a scheduled job ready
    run_job_now      RunJobNow       => Box<JobView>,         Post   "/v1/jobs/{id}/run-now" [job],                             Operate, Sets;
    /// Cancel the jobs that match
    cancel_jobs      CancelJobs      => DoneMany,             Post   "/v1/jobs/cancel",                                         Operate, Sets;
    /// Retry the jobs that match
    retry_jobs       RetryJobs       => DoneMany,             Post   "/v1/jobs/retry",                                          Operate, Adds;
    /// Forget the jobs that match and do not run
    delete_jobs      DeleteJobs      => DoneMany,             Post   "/v1/jobs/delete",                                         Operate, Sets;
    /// Show how a job ended, or wait for its end
    get_result       GetResult       => Box<ResultView>,      Get    "/v1/jobs/{id}/result" [job],                              View,    Reads;
    /// List what a job waits or waited for
    list_parents     ListParents     => Listed<ParentView>,   Get    "/v1/jobs/{id}/parents" [job],                             Work,    Reads;
    /// List the jobs that wait or waited for a job
    list_children    ListChildren    => Listed<ChildView>,    Get    "/v1/jobs/{id}/children" [job],                            View,    Reads;
    /// Say what a job waits for
    explain_job      ExplainJob      => Explained,            Get    "/v1/jobs/{id}/explain" [job],                             View,    Reads;

    /// Ask for jobs, or for needs alone
    lease            Lease           => Leased,               Post   "/v1/leases",                                              Work,    Depends;
    /// Keep leases alive
    extend           Extend          => Extended,             Post   "/v1/leases/extend",                                       Work,    Sets;
    /// End leases, and ask for the next ones
    settle           Settle          => Settled,              Post   "/v1/leases/settle",                                       Work,    Depends;
    /// List live leases
    list_leases      ListLeases      => Listed<LeaseSummary>, Get    "/v1/leases",                                              View,    Reads;
    /// Take a lease back by force
    force_lease      ForceLease      => (),                   Delete "/v1/leases/{id}" [lease],                                 Operate, Sets gone LeaseNotFound;

    /// List queues
    list_queues      ListQueues      => Listed<QueueView>,    Get    "/v1/queues",                                              View,    Reads;
    /// Show a queue
    get_queue        GetQueue        => QueueView,            Get    "/v1/queues/{name}" [queue],                               View,    Reads;
    /// Replace all settings of a queue
    put_queue        PutQueue        => Put<QueueView>,       Put    "/v1/queues/{name}" [queue],                               Admin,   Sets;
    /// Change settings of a queue
    patch_queue      PatchQueue      => Put<QueueView>,       Patch  "/v1/queues/{name}" [queue],                               Admin,   Sets;
    /// Forget a queue
    delete_queue     DeleteQueue     => (),                   Delete "/v1/queues/{name}" [queue],                               Admin,   Sets gone QueueNotFound;
    /// Pause a queue
    pause_queue      PauseQueue      => QueueView,            Post   "/v1/queues/{name}/pause" [queue],                         Operate, Sets;
    /// End a pause
    resume_queue     ResumeQueue     => QueueView,            Post   "/v1/queues/{name}/resume" [queue],                        Operate, Sets;

    /// List limits that are set or in use
    list_limits      ListLimits      => Listed<LimitView>,    Get    "/v1/limits",                                              View,    Reads;
    /// Show a limit
    get_limit        GetLimit        => LimitView,            Get    "/v1/limits/{name}" [limit],                               View,    Reads;
    /// Replace all settings of a limit
    put_limit        PutLimit        => Put<LimitView>,       Put    "/v1/limits/{name}" [limit],                               Admin,   Sets;
    /// Change settings of a limit
    patch_limit      PatchLimit      => Put<LimitView>,       Patch  "/v1/limits/{name}" [limit],                               Admin,   Sets;
    /// Forget settings of a limit
    delete_limit     DeleteLimit     => (),                   Delete "/v1/limits/{name}" [limit],                               Admin,   Sets gone LimitNotFound;
    /// Pause a limit
    pause_limit      PauseLimit      => LimitView,            Post   "/v1/limits/{name}/pause" [limit],                         Operate, Sets;
    /// End a pause
    resume_limit     ResumeLimit     => LimitView,            Post   "/v1/limits/{name}/resume" [limit],                        Operate, Sets;
    /// Say how many permits work outside takes
    observe_limit    ObserveLimit    => LimitView,            Post   "/v1/limits/{name}/observe" [limit],                       Operate, Sets;

    /// List pools
    list_pools       ListPools       => Listed<PoolView>,     Get    "/v1/pools",                                               View,    Reads;
    /// Show a pool
    get_pool         GetPool         => PoolView,             Get    "/v1/pools/{name}" [pool],                                 View,    Reads;
    /// Replace all settings of a pool
    put_pool         PutPool         => Put<PoolView>,        Put    "/v1/pools/{name}" [pool],                                 Admin,   Sets;
    /// Change settings of a pool
    patch_pool       PatchPool       => Put<PoolView>,        Patch  "/v1/pools/{name}" [pool],                                 Admin,   Sets;
    /// Forget a pool
    delete_pool      DeletePool      => (),                   Delete "/v1/pools/{name}" [pool],                                 Admin,   Sets gone PoolNotFound;

    /// Make this the whole set of a pool: an array, or a resource a line
    sync_resources   SyncResources   => Synced,               Put    "/v1/pools/{name}/resources" [pool],                       Admin,   Sets;
    /// Add or update resources: one, or an array
    add_resources    AddResources    => Vec<ResourceView>,    Post   "/v1/pools/{name}/resources" [pool],                       Admin,   Sets;
    /// List resources
    list_resources   ListResources   => Listed<ResourceView>, Get    "/v1/pools/{name}/resources" [pool],                       View,    Reads;
    /// Show a resource
    get_resource     GetResource     => ResourceView,         Get    "/v1/pools/{name}/resources/{id}" [pool resource],         View,    Reads;
    /// Change a resource
    patch_resource   PatchResource   => ResourceView,         Patch  "/v1/pools/{name}/resources/{id}" [pool resource],         Admin,   Sets;
    /// Retire a resource: it goes when it is free
    delete_resource  DeleteResource  => (),                   Delete "/v1/pools/{name}/resources/{id}" [pool resource],         Admin,   Sets gone ResourceNotFound PoolNotFound;
    /// Let a resource rest
    cool_resource    CoolResource    => ResourceView,         Post   "/v1/pools/{name}/resources/{id}/cool" [pool resource],    Operate, Sets;
    /// Hand a resource out no more
    ban_resource     BanResource     => ResourceView,         Post   "/v1/pools/{name}/resources/{id}/ban" [pool resource],     Operate, Sets;
    /// Make a resource available again
    restore_resource RestoreResource => ResourceView,         Post   "/v1/pools/{name}/resources/{id}/restore" [pool resource], Operate, Sets;

    /// List flows
    list_flows       ListFlows       => Listed<FlowView>,     Get    "/v1/flows",                                               View,    Reads;
    /// Show a flow, or wait until it is finished
    get_flow         GetFlow         => Box<FlowView>,        Get    "/v1/flows/{flow}" [flow],                                 View,    Reads;
    /// Cancel all unfinished jobs of a flow
    cancel_flow      CancelFlow      => Box<FlowView>,        Post   "/v1/flows/{flow}/cancel" [flow],                          Operate, Sets;

    /// Count failed jobs by their errors
    list_failures    ListFailures    => Failures,             Get    "/v1/failures",                                            View,    Reads;
    /// List schedules
    list_schedules   ListSchedules   => Listed<ScheduleView>, Get    "/v1/schedules",                                           View,    Reads;
    /// Show a schedule
    get_schedule     GetSchedule     => Box<ScheduleView>,    Get    "/v1/schedules/{id}" [schedule],                           View,    Reads;
    /// Replace all settings of a schedule
    put_schedule     PutSchedule     => Put<Box<ScheduleView>>, Put  "/v1/schedules/{id}" [schedule],                           Admin,   Sets;
    /// Change settings of a schedule
    patch_schedule   PatchSchedule   => Put<Box<ScheduleView>>, Patch "/v1/schedules/{id}" [schedule],                          Admin,   Sets;
    /// Forget a schedule; its jobs go on
    delete_schedule  DeleteSchedule  => (),                   Delete "/v1/schedules/{id}" [schedule],                           Admin,   Sets gone ScheduleNotFound;
    /// Pause a schedule
    pause_schedule   PauseSchedule   => Box<ScheduleView>,    Post   "/v1/schedules/{id}/pause" [schedule],                     Operate, Sets;
    /// End a pause of a schedule
    resume_schedule  ResumeSchedule  => Box<ScheduleView>,    Post   "/v1/schedules/{id}/resume" [schedule],                    Operate, Sets;
    /// Make a job of a schedule at once
    run_schedule_now RunScheduleNow  => Box<PushedJob>,       Post   "/v1/schedules/{id}/run-now" [schedule],                   Operate, Depends;
    /// Make this the whole set of an owner: an array, or a schedule a line
    sync_schedules   SyncSchedules   => SyncedSchedules,      Put    "/v1/schedules",                                           Admin,   Sets;

    /// List who called within the last minute
    list_workers     ListWorkers     => Listed<WorkerView>,   Get    "/v1/workers",                                             View,    Reads;
    /// Show totals
    get_stats        GetStats        => Stats,                Get    "/v1/stats",                                               View,    Reads;
    /// Read what happened, or wait for it; with Accept: text/event-stream as a stream
    read_events      ReadEvents      => EventsRead,           Get    "/v1/events",                                              View,    Reads;
    /// Check what is cached against what is held
    audit            Audit           => Audited,              Get    "/v1/audit",                                               View,    Reads;
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::names::{JobRef, PoolName, ResourceId};

    /// Turns `PauseQueue` into `pause_queue`.
    fn snake(type_name: &str) -> String {
        let mut name = String::new();
        for c in type_name.chars() {
            if c.is_ascii_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.push(c.to_ascii_lowercase());
        }
        name
    }

    #[test]
    fn an_operation_has_the_name_of_its_request() {
        macro_rules! types {
            ($($request:ident)*) => {
                [$((stringify!($request), &<$request as Operation>::SPEC)),*]
            };
        }
        let types = each_operation!(types);
        assert_eq!(types.len(), OPERATIONS.len());
        for (request, spec) in types {
            assert_eq!(snake(request), spec.name);
        }
    }

    #[test]
    fn no_two_rows_have_one_name_or_one_route() {
        let (mut names, mut routes) = (HashSet::new(), HashSet::new());
        for spec in OPERATIONS {
            assert!(names.insert(spec.name), "{} stands twice", spec.name);
            let route = (format!("{:?}", spec.method), spec.path);
            assert!(routes.insert(route), "the route of {} stands twice", spec.name);
            assert!(spec.path.starts_with("/v1/"), "{}", spec.path);
        }
    }

    #[test]
    fn what_only_reads_is_got_and_nothing_else_is() {
        for spec in OPERATIONS {
            let reads = spec.effect == Some(Effect::Reads);
            assert_eq!(reads, spec.method == HttpMethod::Get, "{}", spec.name);
            let deletes = spec.method == HttpMethod::Delete;
            assert_eq!(deletes, !spec.gone.is_empty(), "{}", spec.name);
        }
    }

    #[test]
    fn names_fill_the_path_in_their_order_and_encoded() {
        let pool = PoolName::parse("p").unwrap();
        let resource = ResourceId::parse("a/b {id}").unwrap();
        let path = Request::from(RestoreResource { pool, resource }).path();
        assert_eq!(path, "/v1/pools/p/resources/a%2Fb%20%7Bid%7D/restore");
        let job = JobRef::parse("key:x y").unwrap();
        assert_eq!(Request::from(GetJob { job }).path(), "/v1/jobs/key:x%20y");
        assert_eq!(Request::from(GetStats).path(), "/v1/stats");
    }

    #[test]
    fn a_repeated_deletion_of_what_is_gone_is_done() {
        let delete = Request::from(ForceLease { lease: "l".to_owned() });
        assert_eq!(delete.done_already(Code::LeaseNotFound), Some(Reply::ForceLease(())));
        assert_eq!(delete.done_already(Code::JobNotFound), None);
        assert_eq!(Request::from(GetStats).done_already(Code::JobNotFound), None);
    }
}
