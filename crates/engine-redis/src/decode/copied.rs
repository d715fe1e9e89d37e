//! A namespace that is copied, as `lua/ops/copy_out.lua` shows it. Resources come with their data.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tenure_core::copy::{
    CopiedJob, CopiedKey, CopiedLease, CopiedLimit, CopiedPage, CopiedPool, CopiedQueue,
    CopiedResource, CopiedSetting, CopiedTurn, CopiedUnshown, Cursor, Head, Holds, Item,
};
use tenure_core::lease::Fence;
use tenure_core::names::{
    FlowName, Group, JobId, LimitName, PoolName, QueueName, ResourceId, Tag, UniqueKey,
};
use tenure_core::secret::Json;
use tenure_core::time::{Moment, Span};

use super::jobs::{EndedReply, NeedReply, Noted, RetryReply, State, UniqueReply, errors};
use super::lenient::{LuaMap, Maybe};
use super::resources::resource_state;
use super::row::OriginReply;
use super::settings::{RateReply, limit_settings, pool_settings, queue_settings, stored_gauge};
use super::{Blobs, Malformed};
use crate::encode::{FOREVER_US, JobBody, read_body};

/// What a namespace is in a copy.
#[derive(Deserialize)]
pub(crate) struct LookReply {
    #[serde(default)]
    pub frozen: Maybe<String>,
    #[serde(default)]
    pub copied: Maybe<String>,
    #[serde(default)]
    pub empty: bool,
    #[serde(default)]
    pub to: Maybe<String>,
    #[serde(default)]
    pub whole: bool,
}

/// Whether a freeze is to be asked for again.
#[derive(Deserialize)]
pub(crate) struct FrozenReply {
    #[serde(default)]
    pub more: bool,
}

/// How far a copy is.
#[derive(Deserialize)]
pub(crate) struct BegunReply {
    #[serde(default)]
    pub whole: bool,
    #[serde(default)]
    pub pages: u64,
    #[serde(default)]
    pub next: Maybe<String>,
}

/// Numbers of a namespace.
#[derive(Deserialize)]
pub(crate) struct HeadReply {
    fence: Fence,
    arrival: u64,
    used: u64,
    jobs: u64,
    #[serde(default, rename = "learns")]
    recovers_until: Maybe<u64>,
}

impl HeadReply {
    pub(crate) fn head(self, now: u64) -> Head {
        let HeadReply { fence, arrival, used, jobs, recovers_until } = self;
        let (now, recovers_until) = (Moment::from_us(now), recovers_until.0.map(Moment::from_us));
        Head { fence, arrival, used, jobs, now, recovers_until }
    }
}

/// A page; what is in it depends on its section.
#[derive(Deserialize)]
pub(crate) struct CopiedReply<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
    #[serde(default)]
    next: Maybe<String>,
}

/// What a section brings.
pub(crate) trait Copied: DeserializeOwned {
    fn item(self, blobs: &Blobs) -> Result<Item, Malformed>;
}

impl<T: Copied> CopiedReply<T> {
    /// The page behind a cursor.
    pub(crate) fn page(self, cursor: &Cursor, blobs: &Blobs) -> Result<CopiedPage, Malformed> {
        let items = self.items.into_iter().map(|one| one.item(blobs));
        let next = match self.next.0 {
            Some(after) => Some(cursor.behind(after)),
            None => cursor.next_section(),
        };
        Ok(CopiedPage { items: items.collect::<Result<_, _>>()?, next })
    }
}

/// A moment that may be without end.
pub(super) fn until(at: Maybe<u64>) -> Option<Moment> {
    at.0.map(endless)
}

/// The same for a moment that is there.
pub(super) fn endless(us: u64) -> Moment {
    if us >= FOREVER_US { Moment::MAX } else { Moment::from_us(us) }
}

#[derive(Deserialize)]
pub(crate) struct QueueCopied {
    name: QueueName,
    #[serde(default)]
    needs: Vec<NeedReply>,
    #[serde(default)]
    retry: Maybe<RetryReply>,
    #[serde(default)]
    timeout: Maybe<u64>,
    #[serde(default)]
    retain: Maybe<u64>,
    #[serde(default)]
    max_waiting: Maybe<u32>,
    #[serde(default)]
    lost_delay: Maybe<u64>,
    #[serde(default)]
    shares: LuaMap<u32>,
    #[serde(default)]
    paused_until: Maybe<u64>,
    since: u64,
    #[serde(default)]
    skipped: Maybe<u64>,
}

impl Copied for QueueCopied {
    fn item(self, _: &Blobs) -> Result<Item, Malformed> {
        Ok(Item::Queue(CopiedQueue {
            name: self.name,
            settings: queue_settings(
                self.needs,
                self.retry,
                self.timeout,
                self.retain,
                self.max_waiting,
                self.lost_delay,
                self.shares,
            )?,
            paused_until: until(self.paused_until),
            since: Moment::from_us(self.since),
            skipped: self.skipped.0.unwrap_or_default(),
        }))
    }
}

#[derive(Deserialize)]
pub(crate) struct SettingCopied {
    name: LimitName,
    #[serde(default)]
    concurrency: Maybe<u32>,
    #[serde(default)]
    rate: Maybe<RateReply>,
    #[serde(default)]
    gap: Maybe<u64>,
    #[serde(default)]
    quarantine: Maybe<u64>,
    #[serde(default)]
    gauge: Maybe<String>,
}

impl Copied for SettingCopied {
    fn item(self, _: &Blobs) -> Result<Item, Malformed> {
        let settings = limit_settings(self.concurrency, self.rate, self.gap, self.quarantine);
        let gauge = self.gauge.0.as_deref().map(stored_gauge).transpose()?;
        Ok(Item::Setting(CopiedSetting { name: self.name, settings, gauge }))
    }
}

#[derive(Deserialize)]
pub(crate) struct LimitCopied {
    name: LimitName,
    #[serde(default)]
    tat: u64,
    #[serde(default)]
    paused_until: Maybe<u64>,
    #[serde(default)]
    resting: Vec<(u64, u32)>,
    /// `[end of the lease, its grant if that was no settle, end of the gap, weight]` each.
    #[serde(default)]
    unshown: Vec<(u64, Maybe<u64>, u64, u32)>,
    #[serde(default)]
    external: u32,
    #[serde(default)]
    external_until: Maybe<u64>,
}

impl Copied for LimitCopied {
    fn item(self, _: &Blobs) -> Result<Item, Malformed> {
        let resting = self.resting.into_iter().map(|(at, weight)| (Moment::from_us(at), weight));
        let unshown = self.unshown.into_iter().map(|(ended_at, unsettled, until, weight)| {
            let (ended_at, until) = (Moment::from_us(ended_at), Moment::from_us(until));
            CopiedUnshown { ended_at, unsettled: unsettled.0.map(Moment::from_us), until, weight }
        });
        Ok(Item::Limit(CopiedLimit {
            name: self.name,
            tat: Moment::from_us(self.tat),
            paused_until: until(self.paused_until),
            resting: resting.collect(),
            unshown: unshown.collect(),
            external: self.external,
            external_until: until(self.external_until),
        }))
    }
}

#[derive(Deserialize)]
pub(crate) struct LeaseCopied {
    has_job: bool,
    granted_at: u64,
    expires_at: u64,
    #[serde(default)]
    limits: Vec<(LimitName, u32)>,
    #[serde(default)]
    resources: Vec<(PoolName, ResourceId)>,
    #[serde(default)]
    called_off_in: Maybe<FlowName>,
}

impl Copied for LeaseCopied {
    fn item(self, _: &Blobs) -> Result<Item, Malformed> {
        Ok(Item::Lease(CopiedLease {
            has_job: self.has_job,
            granted_at: Moment::from_us(self.granted_at),
            expires_at: Moment::from_us(self.expires_at),
            limits: self.limits,
            resources: self.resources,
            called_off_in: self.called_off_in.0,
        }))
    }
}

#[derive(Deserialize)]
pub(crate) struct TurnCopied {
    q: QueueName,
    pr: i8,
    #[serde(default)]
    g: Maybe<Group>,
    own: u64,
    v: u64,
}

impl Copied for TurnCopied {
    fn item(self, _: &Blobs) -> Result<Item, Malformed> {
        let TurnCopied { q: queue, pr: priority, g, own, v } = self;
        Ok(Item::Turn(CopiedTurn { queue, priority, group: g.0, own, v }))
    }
}

#[derive(Deserialize)]
pub(crate) struct PoolCopied {
    name: PoolName,
    #[serde(default)]
    quarantine: Maybe<u64>,
    #[serde(default)]
    cooldown: Maybe<u64>,
    #[serde(default)]
    rate: Maybe<RateReply>,
    #[serde(default)]
    max_uses: Maybe<u32>,
    #[serde(default)]
    pick: Maybe<String>,
    #[serde(default)]
    version: u64,
    #[serde(default)]
    generation: u64,
}

impl Copied for PoolCopied {
    fn item(self, _: &Blobs) -> Result<Item, Malformed> {
        Ok(Item::Pool(CopiedPool {
            name: self.name,
            settings: pool_settings(
                self.quarantine,
                self.cooldown,
                self.rate,
                self.max_uses,
                self.pick,
            )?,
            version: self.version,
            generation: self.generation,
        }))
    }
}

#[derive(Deserialize)]
pub(crate) struct ResourceCopied {
    pool: PoolName,
    id: ResourceId,
    data: usize,
    #[serde(default)]
    tags: Vec<Tag>,
    slots: u32,
    state: String,
    #[serde(default)]
    till: u64,
    #[serde(default)]
    rest: u64,
    #[serde(default)]
    reason: Maybe<Noted>,
    #[serde(default)]
    uses: u64,
    #[serde(default)]
    used: u64,
    #[serde(default)]
    last_used_at: Maybe<u64>,
    #[serde(default)]
    tat: u64,
    #[serde(default)]
    retiring: bool,
    #[serde(default)]
    generation: u64,
}

impl Copied for ResourceCopied {
    fn item(self, blobs: &Blobs) -> Result<Item, Malformed> {
        Ok(Item::Resource(Box::new(CopiedResource {
            data: blobs.json(self.data)?,
            pool: self.pool,
            id: self.id,
            tags: self.tags,
            slots: self.slots,
            state: resource_state(&self.state)?,
            until: Moment::from_us(self.till),
            rest: Span::from_us(self.rest),
            reason: self.reason.0.map(Noted::text),
            uses: self.uses,
            used: self.used,
            last_used_at: self.last_used_at.0.map(Moment::from_us),
            tat: Moment::from_us(self.tat),
            retiring: self.retiring,
            generation: self.generation,
        })))
    }
}

#[derive(Deserialize)]
pub(crate) struct JobCopied {
    id: JobId,
    st: State,
    sh: usize,
    body: usize,
    ar: u64,
    cr: u64,
    at: u64,
    #[serde(default)]
    sa: Maybe<u64>,
    #[serde(default)]
    fa: Maybe<u64>,
    #[serde(default)]
    ku: Maybe<u64>,
    #[serde(default)]
    ex: Maybe<u64>,
    w: u64,
    n: u32,
    l: u32,
    rel: u32,
    und: u32,
    ca: bool,
    kp: bool,
    #[serde(default)]
    u: Maybe<UniqueReply>,
    #[serde(default)]
    og: Maybe<OriginReply>,
    #[serde(default)]
    f: Maybe<FlowName>,
    #[serde(default)]
    cc: u64,
    #[serde(default)]
    eu: bool,
    #[serde(default)]
    h: Maybe<(bool, Maybe<u64>)>,
    by: u32,
    #[serde(default)]
    err: Maybe<String>,
    #[serde(default)]
    r: Maybe<usize>,
    #[serde(default)]
    p: Maybe<usize>,
    #[serde(default)]
    e: Maybe<usize>,
}

impl Copied for JobCopied {
    fn item(self, blobs: &Blobs) -> Result<Item, Malformed> {
        let JobBody { kind, payload, labels, traceparent } =
            read_body(blobs.get(self.body)?).ok_or(Malformed("the body of a job"))?;
        let shape = blobs.shape(self.sh)?;
        let json = |number: Maybe<usize>| -> Result<Option<Json>, Malformed> {
            number.0.map(|number| blobs.json(number)).transpose()
        };
        let State(state) = self.st;
        let at = |at: Maybe<u64>| at.0.filter(|us| *us > 0).map(Moment::from_us);
        Ok(Item::Job(Box::new(CopiedJob {
            id: self.id,
            kind,
            payload,
            labels,
            traceparent,
            queue: shape.queue.clone(),
            priority: shape.priority,
            group: shape.group.clone(),
            needs: shape.needs.clone(),
            retry: shape.retry.clone(),
            timeout: shape.timeout,
            retain: shape.retain,
            state,
            arrival: self.ar,
            created_at: Moment::from_us(self.cr),
            run_at: Moment::from_us(self.at),
            started_at: at(self.sa),
            finished_at: at(self.fa),
            kept_until: at(self.ku).filter(|_| state.is_finished()),
            expires_at: at(self.ex),
            wait: Span::from_us(self.w),
            ended: self.n,
            lost: self.l,
            released: self.rel,
            undelivered: self.und,
            ended_unsettled: self.eu,
            cancel_requested: self.ca,
            keeps_place: self.kp,
            wait_began: self.u.0.as_ref().and_then(UniqueReply::began),
            unique: self.u.0.map(UniqueReply::read),
            holds: self
                .h
                .0
                .map(|(by_job, till)| Holds { by_job, until: till.0.map(Moment::from_us) }),
            bytes: self.by,
            result: json(self.r)?,
            progress: json(self.p)?,
            error: self.err.0,
            errors: errors(self.e, blobs)?,
            origin: self.og.0.map(OriginReply::whole),
            flow: self.f.0,
            cancelled_children: self.cc,
        })))
    }
}

#[derive(Deserialize)]
pub(crate) struct KeyCopied {
    key: UniqueKey,
    id: JobId,
    till: u64,
    #[serde(default)]
    ended: Maybe<EndedReply>,
}

impl Copied for KeyCopied {
    fn item(self, _: &Blobs) -> Result<Item, Malformed> {
        Ok(Item::Key(CopiedKey {
            key: self.key,
            job: self.id,
            until: Moment::from_us(self.till),
            ended: self.ended.0.map(EndedReply::read),
        }))
    }
}
