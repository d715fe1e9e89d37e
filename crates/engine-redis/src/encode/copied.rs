//! Arguments of the calls that fill a copy. Resources bring their data: nothing here has a `Debug`.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use tenure_core::copy::{
    CopiedJob, CopiedLimit, CopiedPool, CopiedQueue, CopiedResource, CopiedUnshown, Cursor, Holds,
    Item,
};
use tenure_core::job::JobState;
use tenure_core::lease::Fence;
use tenure_core::names::{FlowName, Group, Tag};

use super::body::body_of;
use super::flows::{CopiedFlowArgs, CopiedKinArgs};
use super::items::{NeedArg, OrFalse, RetryArg, UniqueArg, moment, needs, span};
use super::leases::Knows;
use super::schedules::CopiedScheduleArgs;
use super::settings::{LimitArgs, PoolArgs};
use crate::alphabet::{outcome, resource, state};
use crate::bucket::bucket;

/// Of `copy_look`, `copy_thaw`, `copy_head`, `copy_drop`: nothing.
#[derive(Serialize)]
pub(crate) struct NoArgs {}

/// Of `copy_open`.
#[derive(Serialize)]
pub(crate) struct CopyArgs<'a> {
    pub copy: &'a str,
}

/// Of `copy_freeze`.
#[derive(Serialize)]
pub(crate) struct FreezeArgs<'a> {
    pub copy: &'a str,
    pub to: &'a str,
    pub whole: bool,
    /// What the caller knows of the namespace.
    pub kn: Knows,
}

/// Of `copy_out`.
#[derive(Serialize)]
pub(crate) struct OutArgs<'a> {
    pub section: &'static str,
    pub after: &'a str,
    pub max: usize,
    pub bytes: usize,
}

/// Of `copy_begin`.
#[derive(Serialize)]
pub(crate) struct BeginArgs<'a> {
    pub copy: &'a str,
    pub fence: Fence,
    pub arrival: u64,
    pub used: u64,
}

/// Of `copy_in`: a page.
#[derive(Serialize)]
pub(crate) struct InArgs<'a> {
    copy: &'a str,
    page: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    section: &'static str,
    items: Vec<ItemArg<'a>>,
    shapes: Vec<ShapeArg<'a>>,
}

impl<'a> InArgs<'a> {
    pub(crate) fn of(copy: &'a str, page: u64, items: &'a [Item], next: Option<&Cursor>) -> Self {
        let mut shapes: Vec<&CopiedJob> = Vec::new();
        let items: Vec<_> =
            items.iter().filter_map(|item| ItemArg::of(item, &mut shapes)).collect();
        InArgs {
            copy,
            page,
            next: next.map(Cursor::to_string),
            section: items.first().map_or("", ItemArg::section),
            items,
            shapes: shapes.into_iter().map(ShapeArg::of).collect(),
        }
    }
}

#[derive(Serialize)]
pub(crate) struct QueueArg<'a> {
    name: &'a str,
    // What is not set is not there, or the settings would be of another form than a put's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needs: Vec<NeedArg<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<RetryArg<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retain: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_waiting: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_delay: Option<u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    shares: &'a BTreeMap<Group, u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_until: Option<u64>,
    since: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
}

#[derive(Serialize)]
pub(crate) struct LimitArg<'a> {
    name: &'a str,
    tat: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_until: Option<u64>,
    resting: Vec<(u64, u32)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unshown: Vec<UnshownArg>,
    external: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_until: Option<u64>,
}

#[derive(Serialize)]
pub(crate) struct RestArg<'a> {
    name: &'a str,
    at: u64,
    weight: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    unshown: Option<UnshownArg>,
}

/// Permits that rest until a reading: `[end of the lease, its grant if that was no settle, end of the gap, weight]`.
type UnshownArg = (u64, OrFalse<u64>, u64, u32);

fn unshown_arg(of: &CopiedUnshown) -> UnshownArg {
    (moment(of.ended_at), OrFalse(of.unsettled.map(moment)), moment(of.until), of.weight)
}

#[derive(Serialize)]
pub(crate) struct TurnArg<'a> {
    q: &'a str,
    pr: i8,
    #[serde(skip_serializing_if = "Option::is_none")]
    g: Option<&'a str>,
    own: u64,
    v: u64,
}

#[derive(Serialize)]
pub(crate) struct PoolArg<'a> {
    #[serde(flatten)]
    settings: PoolArgs<'a>,
    version: u64,
    generation: u64,
}

#[derive(Serialize)]
pub(crate) struct ResourceArg<'a> {
    pool: &'a str,
    id: &'a str,
    data: &'a str,
    tags: &'a [Tag],
    slots: u32,
    state: &'static str,
    till: u64,
    rest: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    uses: u64,
    used: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<u64>,
    tat: u64,
    generation: u64,
}

/// What jobs of a page have in common, in the words of a push.
#[derive(Serialize)]
pub(crate) struct ShapeArg<'a> {
    qn: &'a str,
    pr: i8,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    needs: Vec<NeedArg<'a>>,
    retry: RetryArg<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retain: Option<u64>,
}

impl<'a> ShapeArg<'a> {
    fn of(job: &'a CopiedJob) -> Self {
        ShapeArg {
            qn: job.queue.as_str(),
            pr: job.priority,
            group: job.group.as_ref().map(Group::as_str),
            needs: needs(&job.needs),
            retry: RetryArg(&job.retry),
            timeout: job.timeout.map(span),
            retain: job.retain.map(span),
        }
    }
}

/// So many shapes are compared with a job's own; one that comes again further on is sent again.
const SHAPES_COMPARED: usize = 16;

/// The number of a job's shape, from 1.
fn shape<'a>(job: &'a CopiedJob, shapes: &mut Vec<&'a CopiedJob>) -> usize {
    let same = |other: &&CopiedJob| {
        other.queue == job.queue
            && other.priority == job.priority
            && other.group == job.group
            && other.needs == job.needs
            && other.retry == job.retry
            && other.timeout == job.timeout
            && other.retain == job.retain
    };
    let mut known = shapes.iter().enumerate().rev().take(SHAPES_COMPARED);
    if let Some((at, _)) = known.find(|(_, other)| same(other)) {
        return at + 1;
    }
    shapes.push(job);
    shapes.len()
}

/// A job; fields as `lua/ops/copy_in.lua` names them.
#[derive(Serialize)]
pub(crate) struct JobArg<'a> {
    id: &'a str,
    b: String,
    st: &'static str,
    sh: usize,
    body: String,
    ar: u64,
    cr: u64,
    at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sa: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fa: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ku: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ex: Option<u64>,
    w: u64,
    n: u32,
    l: u32,
    rel: u32,
    und: u32,
    ca: bool,
    kp: bool,
    /// Not there if it is not so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    eu: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    u: Option<UniqueArg<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    og: Option<(&'a str, OrFalse<u64>, u64)>,
    /// The flow that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    f: Option<&'a str>,
    /// Children that its failure cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    cc: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    h: Option<(bool, OrFalse<u64>)>,
    by: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    err: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    e: Vec<(u32, u64, &'a str, &'static str)>,
}

impl<'a> JobArg<'a> {
    fn of(job: &'a CopiedJob, shapes: &mut Vec<&'a CopiedJob>) -> Self {
        let holds = |Holds { by_job, until }: Holds| (by_job, OrFalse(until.map(moment)));
        let id = job.id.as_str();
        JobArg {
            id,
            b: bucket(id).to_string(),
            st: state::letter(if job.state == JobState::Blocked {
                JobState::Ready
            } else {
                job.state
            }),
            sh: shape(job, shapes),
            body: body_of(&job.kind, &job.payload, &job.labels, job.traceparent.as_ref()),
            ar: job.arrival,
            cr: moment(job.created_at),
            at: moment(job.run_at),
            sa: job.started_at.map(moment),
            fa: job.finished_at.map(moment),
            ku: job.kept_until.map(moment),
            ex: job.expires_at.map(moment),
            w: span(job.wait),
            n: job.ended,
            l: job.lost,
            rel: job.released,
            und: job.undelivered,
            ca: job.cancel_requested,
            kp: job.keeps_place,
            eu: job.ended_unsettled,
            u: job.unique.as_ref().map(|unique| UniqueArg { unique, began: job.wait_began }),
            og: job.origin.as_ref().map(|origin| {
                (origin.by.id.as_str(), OrFalse(origin.by.at.map(moment)), origin.era)
            }),
            f: job.flow.as_ref().map(FlowName::as_str),
            cc: Some(job.cancelled_children).filter(|cancelled| *cancelled > 0),
            h: job.unique.as_ref().and(job.holds).map(holds),
            by: job.bytes,
            err: job.error.as_deref(),
            r: job.result.as_ref().map(|json| json.text()),
            p: job.progress.as_ref().map(|json| json.text()),
            e: job
                .errors
                .iter()
                .map(|error| {
                    let outcome = outcome::letter(error.outcome);
                    (error.attempt, moment(error.at), error.error.as_str(), outcome)
                })
                .collect(),
        }
    }
}

#[derive(Serialize)]
pub(crate) struct KeyArg<'a> {
    key: &'a str,
    id: &'a str,
    till: u64,
    ended: Option<(&'a str, &'static str, u64, u64)>,
}

#[derive(Serialize)]
pub(crate) struct SetArg<'a> {
    owner: &'a str,
    version: u64,
}

/// A thing.
pub(crate) enum ItemArg<'a> {
    Queue(QueueArg<'a>),
    Setting(LimitArgs<'a>),
    Limit(LimitArg<'a>),
    Rest(RestArg<'a>),
    Turn(TurnArg<'a>),
    Pool(PoolArg<'a>),
    Resource(ResourceArg<'a>),
    Job(Box<JobArg<'a>>),
    Key(KeyArg<'a>),
    Kin(CopiedKinArgs<'a>),
    Flow(CopiedFlowArgs<'a>),
    Schedule(Box<CopiedScheduleArgs<'a>>),
    Set(SetArg<'a>),
}

impl Serialize for ItemArg<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            ItemArg::Queue(arg) => arg.serialize(s),
            ItemArg::Setting(arg) => arg.serialize(s),
            ItemArg::Limit(arg) => arg.serialize(s),
            ItemArg::Rest(arg) => arg.serialize(s),
            ItemArg::Turn(arg) => arg.serialize(s),
            ItemArg::Pool(arg) => arg.serialize(s),
            ItemArg::Resource(arg) => arg.serialize(s),
            ItemArg::Job(arg) => arg.serialize(s),
            ItemArg::Key(arg) => arg.serialize(s),
            ItemArg::Kin(arg) => arg.serialize(s),
            ItemArg::Flow(arg) => arg.serialize(s),
            ItemArg::Schedule(arg) => arg.serialize(s),
            ItemArg::Set(arg) => arg.serialize(s),
        }
    }
}

impl<'a> ItemArg<'a> {
    /// By which the library tells things apart. Rests come where leases stood.
    fn section(&self) -> &'static str {
        use tenure_core::copy::Section;
        match self {
            ItemArg::Queue(_) => Section::Queues,
            ItemArg::Setting(_) => Section::Settings,
            ItemArg::Limit(_) => Section::Limits,
            ItemArg::Rest(_) => Section::Leases,
            ItemArg::Turn(_) => Section::Turns,
            ItemArg::Pool(_) => Section::Pools,
            ItemArg::Resource(_) => Section::Resources,
            ItemArg::Job(_) => Section::Jobs,
            ItemArg::Key(_) => Section::Keys,
            ItemArg::Kin(_) => Section::Kin,
            ItemArg::Flow(_) => Section::Flows,
            ItemArg::Schedule(_) => Section::Schedules,
            ItemArg::Set(_) => Section::Sets,
        }
        .as_str()
    }

    fn of(item: &'a Item, shapes: &mut Vec<&'a CopiedJob>) -> Option<Self> {
        Some(match item {
            Item::Queue(queue) => ItemArg::Queue(queue_arg(queue)),
            Item::Setting(setting) => {
                let gauge = setting.gauge.as_deref();
                ItemArg::Setting(LimitArgs::of(setting.name.as_str(), &setting.settings, gauge))
            }
            Item::Limit(limit) => ItemArg::Limit(limit_arg(limit)),
            Item::Rest(rest) => ItemArg::Rest(RestArg {
                name: rest.limit.as_str(),
                at: moment(rest.until),
                weight: rest.weight,
                unshown: rest.unshown.as_ref().map(unshown_arg),
            }),
            Item::Turn(turn) => ItemArg::Turn(TurnArg {
                q: turn.queue.as_str(),
                pr: turn.priority,
                g: turn.group.as_ref().map(Group::as_str),
                own: turn.own,
                v: turn.v,
            }),
            Item::Pool(pool) => ItemArg::Pool(pool_arg(pool)),
            Item::Resource(resource) => ItemArg::Resource(resource_arg(resource)),
            Item::Job(job) => ItemArg::Job(Box::new(JobArg::of(job, shapes))),
            Item::Key(key) => ItemArg::Key(KeyArg {
                key: key.key.as_str(),
                id: key.job.as_str(),
                till: moment(key.until),
                ended: key.ended.as_ref().map(|ended| {
                    let state = state::letter(ended.state);
                    (
                        ended.queue.as_str(),
                        state,
                        moment(ended.created_at),
                        moment(ended.finished_at),
                    )
                }),
            }),
            Item::Kin(kin) => ItemArg::Kin(CopiedKinArgs::of(kin)),
            Item::Flow(flow) => ItemArg::Flow(CopiedFlowArgs::of(flow)),
            Item::Schedule(one) => ItemArg::Schedule(Box::new(CopiedScheduleArgs::of(one))),
            Item::Set(set) => {
                ItemArg::Set(SetArg { owner: set.owner.as_str(), version: set.version })
            }
            // Leases end on their way.
            Item::Lease(_) => return None,
        })
    }
}

fn queue_arg(queue: &CopiedQueue) -> QueueArg<'_> {
    let settings = &queue.settings;
    QueueArg {
        name: queue.name.as_str(),
        needs: needs(&settings.needs),
        retry: settings.retry.as_ref().map(RetryArg),
        timeout: settings.timeout.map(span),
        retain: settings.retain.map(span),
        max_waiting: settings.max_waiting,
        lost_delay: settings.lost_delay.map(span),
        shares: &settings.shares,
        paused_until: queue.paused_until.map(moment),
        since: moment(queue.since),
        skipped: Some(queue.skipped).filter(|skipped| *skipped > 0),
    }
}

fn limit_arg(limit: &CopiedLimit) -> LimitArg<'_> {
    LimitArg {
        name: limit.name.as_str(),
        tat: moment(limit.tat),
        paused_until: limit.paused_until.map(moment),
        resting: limit.resting.iter().map(|(at, weight)| (moment(*at), *weight)).collect(),
        unshown: limit.unshown.iter().map(unshown_arg).collect(),
        external: limit.external,
        external_until: limit.external_until.map(moment),
    }
}

fn pool_arg(pool: &CopiedPool) -> PoolArg<'_> {
    PoolArg {
        settings: PoolArgs::of(pool.name.as_str(), &pool.settings),
        version: pool.version,
        generation: pool.generation,
    }
}

fn resource_arg(resource: &CopiedResource) -> ResourceArg<'_> {
    ResourceArg {
        pool: resource.pool.as_str(),
        id: resource.id.as_str(),
        data: resource.data.text(),
        tags: &resource.tags,
        slots: resource.slots,
        state: resource::letter(resource.state),
        till: moment(resource.until),
        rest: span(resource.rest),
        reason: resource.reason.as_deref(),
        uses: resource.uses,
        used: resource.used,
        last_used_at: resource.last_used_at.map(moment),
        tat: moment(resource.tat),
        generation: resource.generation,
    }
}
