//! Turns replies of an engine into answers: status and JSON.

use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use tenure_core::bounds::{PAGE_BYTES_MAX, PAYLOAD_BYTES_MAX};
use tenure_core::flow::{ChildView, FlowView, ParentView};
use tenure_core::job::{JobView, PushedJob, ResultView};
use tenure_core::lease::{Explained, Extended, LeaseSummary, Leased, SettledLease};
use tenure_core::requests::{
    Audited, DoneMany, Effect, EventsRead, Failures, Listed, PushAnswer, Pushed, Put, Reply,
    Request, Settled, Stats, WorkerView,
};
use tenure_core::schedule::{ScheduleView, SyncedSchedules};
use tenure_core::sentences::ServerRefusal;
use tenure_core::settings::{LimitView, PoolView, QueueView, ResourceView, Synced};
use tenure_core::view::{HasSchema, Schema};

use crate::out::Out;
use crate::problem;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// No cache may keep an answer: it is true only for a moment, and may contain secrets.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Unused memory above this is freed before an answer waits for its reader.
const SLACK_BYTES_MAX: usize = 64 * 1024;
/// Typical upper bound of a view, without its texts of any length.
const VIEW_BYTES: usize = 2 * 1024;

/// Size and kind of an answer, known before the engine is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Expected {
    /// Estimated bytes, taken from the budget before the call.
    pub bytes: usize,
    /// The call changes nothing, so an answer that turns out too large may still be refused.
    pub is_read: bool,
}

impl Expected {
    /// `body`: bytes of the request's body.
    pub(crate) fn of(request: &Request, body: usize) -> Self {
        use Request as R;
        let list = |max: usize, each: usize| (max * each).min(PAGE_BYTES_MAX);
        let bytes = match request {
            R::Push(push) if push.answer == PushAnswer::Ids => push.jobs.len() * 128,
            R::Push(push) => body + push.jobs.len() * VIEW_BYTES,
            R::AddResources(add) => body + add.resources.len() * VIEW_BYTES,
            R::ListJobs(jobs) if jobs.full => list(jobs.page.max, PAYLOAD_BYTES_MAX),
            R::ListJobs(jobs) => list(jobs.page.max, VIEW_BYTES),
            R::ListParents(some) if some.full => list(some.page.max, PAYLOAD_BYTES_MAX),
            R::ListParents(some) => list(some.page.max, VIEW_BYTES),
            R::ListChildren(some) => list(some.page.max, VIEW_BYTES),
            R::ListFlows(some) => list(some.page.max, VIEW_BYTES),
            R::ListResources(some) => list(some.page.max, VIEW_BYTES),
            R::ListLeases(some) => list(some.page.max, VIEW_BYTES),
            R::ListQueues(some) => list(some.page.max, VIEW_BYTES),
            R::ListLimits(some) => list(some.page.max, VIEW_BYTES),
            R::ListPools(some) => list(some.page.max, VIEW_BYTES),
            R::ListSchedules(some) if some.full => list(some.page.max, PAYLOAD_BYTES_MAX),
            R::ListSchedules(some) => list(some.page.max, VIEW_BYTES),
            R::ListWorkers(some) => list(some.page.max, VIEW_BYTES),
            R::ListFailures(some) => list(some.max, VIEW_BYTES),
            R::ReadEvents(some) => list(some.max, VIEW_BYTES),
            _ => VIEW_BYTES,
        };
        Expected { bytes, is_read: request.effect() == Effect::Reads }
    }
}

/// This value as JSON, with a status.
pub(crate) fn json(status: u16, value: &impl Serialize) -> Response<Out> {
    let mut response = written(serde_json::to_vec(value));
    if response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    }
    response
}

/// This text, with a media type other than JSON.
pub(crate) fn text(text: String, media: &'static str) -> Response<Out> {
    let mut response = Response::new(Out::whole(text.into_bytes()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

/// This JSON text, as an answer.
fn written(text: serde_json::Result<Vec<u8>>) -> Response<Out> {
    match text {
        Ok(bytes) => {
            let mut response = Response::new(Out::whole(bytes));
            response.headers_mut().insert(CONTENT_TYPE, JSON);
            response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
            response
        }
        Err(why) => {
            tracing::error!(%why, "an answer cannot be written as JSON");
            problem::response(&ServerRefusal::AnswerNotWritten.into())
        }
    }
}

/// One item where the request sent one object, all items otherwise.
fn some<T: Serialize>(
    one: bool,
    mut items: Vec<T>,
    status: impl FnOnce(&T) -> u16,
) -> Response<Out> {
    match items.pop() {
        Some(item) if one && items.is_empty() => json(status(&item), &item),
        last => {
            items.extend(last);
            written(streamed("[]", items))
        }
    }
}

/// A page. Each item is freed as soon as it is written, so that the page is never in memory twice.
fn page<T: Serialize>(list: Listed<T>) -> Response<Out> {
    let Listed { items, next, partial } = list;
    let shell = serde_json::to_string(&Listed::<()> { items: Vec::new(), next, partial });
    written(shell.and_then(|shell| streamed(&shell, items)))
}

/// `shell` with these items in its first array, which is empty.
fn streamed<T: Serialize>(shell: &str, items: Vec<T>) -> serde_json::Result<Vec<u8>> {
    let at = shell.find("[]").map_or(shell.len(), |at| at + 1);
    let (before, after) = shell.split_at(at);
    let mut text = Vec::from(before);
    for (n, item) in items.into_iter().enumerate() {
        if n > 0 {
            text.push(b',');
        }
        serde_json::to_writer(&mut text, &item)?;
    }
    text.extend_from_slice(after.as_bytes());
    if text.capacity() - text.len() > SLACK_BYTES_MAX {
        text.shrink_to_fit();
    }
    Ok(text)
}

/// Good answers: status, and schema or a media type with `/` (empty: no body).
pub(crate) type Answers = &'static [(u16, &'static str)];

/// A reply that is turned into an answer.
pub(crate) trait Respond {
    /// The good answers that it may become.
    const ANSWERS: Answers;
    /// `one`: the request sent one object where an array was possible.
    fn respond(self, one: bool) -> Response<Out>;
}

impl Respond for () {
    const ANSWERS: Answers = &[(204, "")];
    fn respond(self, _: bool) -> Response<Out> {
        let mut response = Response::new(Out::whole(Vec::new()));
        *response.status_mut() = StatusCode::NO_CONTENT;
        response
    }
}

impl Respond for Pushed {
    const ANSWERS: Answers = &[(200, "PushedJobs"), (201, "PushedJobs")];
    fn respond(self, one: bool) -> Response<Out> {
        let created = |duplicate: bool| if duplicate { 200 } else { 201 };
        match self {
            Pushed::Whole(jobs) => some(one, jobs, |job| created(job.duplicate)),
            Pushed::Ids(ids) => some(one, ids, |id| created(id.duplicate)),
        }
    }
}

/// A job that a run-now made or found.
impl Respond for Box<PushedJob> {
    const ANSWERS: Answers = &[(200, "PushedJob"), (201, "PushedJob")];
    fn respond(self, _: bool) -> Response<Out> {
        json(if self.duplicate { 200 } else { 201 }, &self)
    }
}

impl Respond for Vec<ResourceView> {
    const ANSWERS: Answers = &[(200, "Resources")];
    fn respond(self, one: bool) -> Response<Out> {
        some(one, self, |_| 200)
    }
}

impl Respond for Leased {
    const ANSWERS: Answers = &[(200, "Leased")];
    fn respond(self, _: bool) -> Response<Out> {
        written(lease::json(self))
    }
}

/// The reply of a lease call stands beside the settled leases; if it is refused, they stay settled.
impl Respond for Settled {
    const ANSWERS: Answers = &[(200, "Settled")];
    fn respond(self, _: bool) -> Response<Out> {
        #[derive(Serialize)]
        struct Settles {
            settled: Vec<SettledLease>,
        }
        let Settled { settled, lease } = self;
        let settles = serde_json::to_vec(&Settles { settled });
        let beside = match lease {
            None => return written(settles),
            Some(Ok(leased)) => lease::json(leased),
            Some(Err(no)) => lease::refused(&no),
        };
        written(settles.and_then(|settles| Ok(joined(settles, &beside?))))
    }
}

/// One object with the members of both.
fn joined(mut one: Vec<u8>, other: &[u8]) -> Vec<u8> {
    one.pop();
    one.push(b',');
    one.extend_from_slice(other.get(1..).unwrap_or_default());
    one
}

macro_rules! plain {
    ($($reply:ty = $schema:literal),* $(,)?) => {
        $(impl Respond for $reply {
            const ANSWERS: Answers = &[(200, $schema)];
            fn respond(self, _: bool) -> Response<Out> {
                json(200, &self)
            }
        })*
    };
}
plain!(
    Box<JobView> = "Job",
    Box<ResultView> = "Result",
    Box<FlowView> = "Flow",
    DoneMany = "DoneMany",
    Failures = "Failures",
    EventsRead = "Events",
    Explained = "Explained",
    Extended = "Extended",
    QueueView = "Queue",
    LimitView = "Limit",
    PoolView = "Pool",
    ResourceView = "Resource",
    Synced = "Synced",
    SyncedSchedules = "SyncedSchedules",
    Box<ScheduleView> = "Schedule",
    Stats = "Stats",
    Audited = "Audit",
);

macro_rules! lists {
    ($($item:ty = $schema:literal),* $(,)?) => {
        $(impl Respond for Listed<$item> {
            const ANSWERS: Answers = &[(200, $schema)];
            fn respond(self, _: bool) -> Response<Out> {
                page(self)
            }
        })*

        /// The schemas of lists, each with that of its items.
        pub(crate) const LISTS: &[(&str, fn() -> Schema)] =
            &[$(($schema, <$item as HasSchema>::schema)),*];
    };
}
lists!(
    JobView = "Jobs",
    ParentView = "Parents",
    ChildView = "Children",
    LeaseSummary = "Leases",
    QueueView = "Queues",
    LimitView = "Limits",
    PoolView = "Pools",
    ResourceView = "ResourceList",
    FlowView = "Flows",
    ScheduleView = "Schedules",
    WorkerView = "Workers",
);

/// Shows the thing as it is after the change.
impl<T: Serialize + Respond> Respond for Put<T> {
    const ANSWERS: Answers = &[T::ANSWERS[0], (201, T::ANSWERS[0].1)];
    fn respond(self, _: bool) -> Response<Out> {
        json(if self.created { 201 } else { 200 }, &self.view)
    }
}

macro_rules! responses {
    ($($request:ident)*) => {
        /// A reply; `one`: the request sent one object where an array was possible.
        pub(crate) fn reply(reply: Reply, one: bool) -> Response<Out> {
            match reply { $(Reply::$request(reply) => reply.respond(one)),* }
        }
    };
}
tenure_core::each_operation!(responses);

/// Answers to lease calls.
pub(crate) mod lease {
    use serde::Serialize;
    use tenure_core::lease::{Fence, Leased};
    use tenure_core::names::LimitName;
    use tenure_core::refusal::{Problem, Refusal};
    use tenure_core::view::{self, HasSchema as _};

    tenure_core::view! {
        /// A token that was granted and returned in one step has nothing more to show.
        #[derive(Serialize)]
        pub(crate) struct Token<'a> as "Tokens" {
            /// Always null: tokens leave no lease, and nothing to settle.
            lease: Option<&'a str> as view::nothing(),
            /// A number that grows with every grant in the namespace.
            fence: Fence,
            /// Names of the limits whose tokens were taken.
            limits: &'a [LimitName] as Vec::<LimitName>::schema(),
        }
    }

    #[derive(Serialize)]
    struct Tokens<'a> {
        leases: Vec<Token<'a>>,
    }

    /// As the contract shows it. A call for tokens grants one at most.
    pub(super) fn json(leased: Leased) -> serde_json::Result<Vec<u8>> {
        if leased.leases.iter().all(|lease| lease.lease.is_some()) {
            let Leased { leases, next_at, reasons } = leased;
            let shell = Leased { leases: Vec::new(), next_at, reasons };
            let shell = serde_json::to_string(&shell);
            return shell.and_then(|shell| super::streamed(&shell, leases));
        }
        let leases = leased.leases.iter();
        let leases = leases.map(|l| Token { lease: None, fence: l.fence, limits: &l.limits });
        serde_json::to_vec(&Tokens { leases: leases.collect() })
    }

    /// A refusal instead of a grant, inside an answer that succeeded.
    pub(super) fn refused(no: &Refusal) -> serde_json::Result<Vec<u8>> {
        #[derive(Serialize)]
        struct Refused<'a> {
            #[serde(flatten)]
            nothing: Leased,
            refused: Problem<'a>,
        }
        serde_json::to_vec(&Refused { nothing: Leased::default(), refused: Problem::of(no) })
    }
}
