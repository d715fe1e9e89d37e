//! What a namespace knows: the structures, and nothing that acts on them.
//!
//! Truth is the jobs, the leases, the settings and the resources. Everything else here (lines,
//! doors, sums, sets of what is free) is an index of it, kept in the same step, and `audit` proves
//! that it agrees.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use hashbrown::{HashMap, HashTable};

use super::facts::{Delivery, Fact};
use super::line::Line;
use super::rows::Rows;
use super::slots::Slots;
use super::timers::Timers;
use crate::job::{Outcome, Retry, Unique};
use crate::lease::Fence;
use crate::names::{
    Group, JobId, LimitName, Namespace, PoolName, QueueName, RequestId, ResourceId, Tag, UniqueKey,
    WorkerId,
};
use crate::settings::{LimitSettings, PoolSettings, QueueSettings, ResourceState};
use crate::time::{Moment, Span};

/// A slot number: of a job, a lane, a limit. Which table it points into is said by the name.
pub(crate) type Slot = u32;
/// Row number of a job: grows with every push, never used again.
pub type Seq = u64;
/// Who waits: chosen by the engine, growing.
pub type TakerId = u64;
/// The queue of callers who wait for needs alone. It has no name, so no job can be in it.
pub(crate) const CALLERS: Slot = 0;

/// A need as the state sees it: names are slots, and a lane's needs are in the one fixed order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum HeldNeed {
    Limit { limit: Slot, weight: u32, cost: u32, keyed: bool },
    Pool { pool: Slot, which: Which, prefer: Option<ResourceId>, count: u32 },
}

impl HeldNeed {
    /// Plain needs (limits without a key, pools) park a whole bundle; others a lane.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            HeldNeed::Limit { keyed, .. } => !keyed,
            HeldNeed::Pool { which, .. } => !matches!(which, Which::Id(_)),
        }
    }
}

/// Which resources of a pool would do.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Which {
    Any,
    Tag(Tag),
    Id(ResourceId),
}

/// What many jobs have in common, stored once.
#[derive(Debug)]
pub(crate) struct Shape {
    /// The encoded form: its identity, and what the job's row holds.
    pub bytes: Arc<[u8]>,
    pub queue: Slot,
    pub priority: i8,
    pub group: Option<Group>,
    pub held: Arc<[HeldNeed]>,
    pub retry: Retry,
    pub timeout: Option<Span>,
    pub retain: Option<Span>,
    /// Jobs that have it; it goes with the last.
    pub jobs: u32,
    /// Its lane, once a job of it stood in line.
    pub lane: Option<Slot>,
}

/// Where a live job stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stand {
    /// In `due`, until `run_at`.
    Scheduled,
    /// In this lane's line, by its arrival.
    Waiting(Slot),
    /// Held by this lease.
    Running(Fence),
}

/// One settle a job remembers, so that a repeat is answered as the first was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PastSettle {
    pub fence: Fence,
    pub outcome: Outcome,
    pub state: crate::job::JobState,
    pub run_at: Option<Moment>,
}

/// A job that is not finished. Payload, labels, errors and progress are rows, not here.
#[derive(Debug)]
pub(crate) struct Job {
    pub seq: Seq,
    pub id: JobId,
    pub shape: Slot,
    pub stand: Stand,
    /// Its place in the order; 0 until it first became ready.
    pub arrival: u64,
    pub created_at: Moment,
    /// When it may run, or might first; the moment it became due.
    pub run_at: Moment,
    pub started_at: Option<Moment>,
    pub expires_at: Option<Moment>,
    /// Length of a wait that the engine chose (retry, snooze, suspect), to cut it by when the
    /// clock was set back; zero for a moment that the client chose.
    pub wait: Span,
    /// Runs that ended in `succeeded` or `failed`.
    pub ended: u32,
    /// Reaps in a row; 1 or more makes it a suspect.
    pub lost: u32,
    /// `released` in a row.
    pub released: u32,
    pub cancel_requested: bool,
    /// It keeps its arrival when it becomes due: it was released or lost, not delayed.
    pub keeps_place: bool,
    pub unique: Option<Box<Unique>>,
    pub settles: Vec<PastSettle>,
    /// About what its row takes on disk, for the byte budget.
    pub bytes: u32,
    /// It is in the list of rows to write.
    pub dirty: bool,
}

/// Where a lane, a bundle or a queue stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In its queue's ready order, if it is not empty.
    Open,
    /// At this door.
    Parked(Slot),
    /// In this door's list of what can never fit as the settings are.
    Misfit(Slot),
}

/// Since when a head stands parked; counts anew for each head.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadWait {
    /// The head that this is about, by its arrival.
    pub head: u64,
    pub since: Moment,
    /// When it is tried for a reservation, while it is in that list.
    pub try_at: Option<Moment>,
}

/// Jobs of one queue with the same priority, group and needs, in order of arrival.
#[derive(Debug)]
pub(crate) struct Lane {
    pub key: LaneKey,
    pub bundle: Slot,
    pub line: Line,
    pub place: Place,
    /// The door that opened it and waits for it to be tried.
    pub out: Option<Slot>,
    /// Its key in the bundle's order, while it is in it.
    pub ordered: Option<u64>,
    /// Its key at the door, while it is parked.
    pub parked_key: u64,
    pub wait: HeadWait,
    /// It reserves.
    pub marked: bool,
    /// Shapes that point here; the lane goes when there is none and it is empty.
    pub shapes: u32,
}

/// What makes a lane.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct LaneKey {
    pub queue: Slot,
    pub priority: i8,
    pub group: Option<Group>,
    pub needs: Arc<[HeldNeed]>,
    /// Suspects have lanes of their own.
    pub suspect: bool,
}

/// Lanes of one queue, priority and group with the same plain needs: they park as one.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub queue: Slot,
    pub group: Slot,
    pub plain: Arc<[HeldNeed]>,
    pub suspect: bool,
    /// Non-empty open lanes, by the arrival of their heads.
    pub open: BTreeSet<(u64, Slot)>,
    /// Jobs in its open lanes.
    pub waiting: u64,
    pub place: Place,
    pub out: Option<Slot>,
    pub ordered: Option<u64>,
    pub parked_key: u64,
    pub wait: HeadWait,
    /// Its lanes that are out for a door.
    pub outs: BTreeSet<Slot>,
    pub lanes: u32,
}

/// Who shares the turns of a queue and a priority.
#[derive(Debug)]
pub(crate) struct GroupTurn {
    pub queue: Slot,
    pub priority: i8,
    pub name: Option<Group>,
    /// Virtual time; see SEMANTICS 2.
    pub own: u64,
    pub open: BTreeSet<(u64, Slot)>,
    /// Its key in the priority's order, while it is in it.
    pub ordered: Option<(u64, u64)>,
    /// Suspects have bundles of their own: who may have none must not try their bundle.
    pub bundles: HashMap<(Arc<[HeldNeed]>, bool), Slot>,
}

/// One priority of a queue.
#[derive(Debug, Default)]
pub(crate) struct PriorityTurns {
    /// The virtual time of the last grant.
    pub v: u64,
    pub groups: BTreeMap<Option<Group>, Slot>,
    /// Groups with an open lane: virtual time, arrival of the head, group.
    pub open: BTreeSet<(u64, u64, Slot)>,
    /// Groups without a lane, by virtual time: forgotten once it is not above `v`.
    pub idle: BTreeSet<(u64, Slot)>,
    /// A group with a name was here: the times have rows.
    pub grouped: bool,
}

/// Live jobs of a queue; what of `waiting` is blocked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub scheduled: u64,
    pub waiting: u64,
    pub blocked: u64,
    pub running: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub cancelled: u64,
}

/// A named line of jobs.
#[derive(Debug)]
pub(crate) struct Queue {
    /// `None`: the queue of callers.
    pub name: Option<QueueName>,
    pub settings: QueueSettings,
    /// `Some(Moment::MAX)`: until it is resumed.
    pub paused_until: Option<Moment>,
    /// By negated priority, so that the first is the highest.
    pub priorities: BTreeMap<i16, PriorityTurns>,
    pub counts: Counts,
    /// Waiting lease calls that name it, in order.
    pub takers: BTreeSet<TakerId>,
    /// When it was last asked for.
    pub asked_at: Option<Moment>,
    /// The limit `queue:NAME`, if such a name can be.
    pub limit: Option<Slot>,
    /// `Parked`: its own limit is taken; it stands at that door as a whole.
    pub place: Place,
    pub out: Option<Slot>,
    /// It was deleted, and only finished jobs or who waits for it keep it here.
    pub hidden: bool,
    /// When it was first used.
    pub since: Moment,
}

/// What stands at a door.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Entry {
    Bundle(Slot),
    Lane(Slot),
    Queue(Slot),
}

/// Where the waiters of one need stand.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum DoorKey {
    Limit(Slot),
    Pool(Slot, Which),
}

/// Entries of one group at a door, by arrival.
#[derive(Debug, Default)]
pub(crate) struct DoorGroup {
    /// Key in the order: negated priority, virtual time, first arrival.
    pub ordered: Option<(i16, u64, u64)>,
    pub tag: u64,
    pub entries: BTreeSet<(u64, Entry)>,
}

/// Entries of one queue at a door.
#[derive(Debug, Default)]
pub(crate) struct DoorLine {
    /// The queue as a whole, whose own limit this is.
    pub whole: bool,
    /// Lanes that reserve are first.
    pub marked: BTreeSet<(u64, Entry)>,
    pub order: BTreeSet<(i16, u64, u64, Slot)>,
    pub groups: HashMap<Slot, DoorGroup>,
    /// The entry that was opened and is not yet tried.
    pub out: Option<Entry>,
    /// Callers or jobs in it.
    pub waiting: u64,
}

impl DoorLine {
    /// The first in order.
    pub(crate) fn first(&self) -> Option<Entry> {
        let group = self.order.first()?.3;
        self.groups.get(&group)?.entries.first().map(|entry| entry.1)
    }
    pub(crate) fn is_empty(&self) -> bool {
        !self.whole && self.marked.is_empty() && self.order.is_empty()
    }
}

/// See [`DoorKey`].
#[derive(Debug)]
pub(crate) struct Door {
    pub key: DoorKey,
    pub lines: BTreeMap<Slot, DoorLine>,
    /// A pass that runs: how many queues it still looks at. The cursor is kept when it ends, so
    /// that the next pass goes on behind the queue that was opened last.
    pub pass: usize,
    pub cursor: Option<Slot>,
    /// Set while the door is in `pending`.
    pub pending: bool,
    /// When its first lanes may fit by time alone.
    pub timer: Option<Moment>,
    /// What can never fit as the settings are.
    pub misfits: BTreeSet<Entry>,
    /// Misfits that are tried again, since a setting changed.
    pub retry: BTreeSet<Entry>,
    /// Jobs and callers that stand here, misfits too.
    pub waiting: u64,
}

/// What a lane keeps for itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub lane: Slot,
    pub head: u64,
    pub since: Moment,
}

/// A limit: its state, which outlives its setting.
#[derive(Debug)]
pub(crate) struct Limit {
    pub name: LimitName,
    /// Shapes, callers and queues that point here.
    pub uses: u32,
    /// Weights of live leases.
    pub in_use: u64,
    pub holders: BTreeSet<Fence>,
    /// Permits that rest: when each is free again.
    pub resting: BTreeMap<(Moment, u64), u32>,
    pub resting_sum: u64,
    pub external: u32,
    pub external_until: Option<Moment>,
    /// GCRA's theoretical arrival time.
    pub tat: Moment,
    /// `Some(Moment::MAX)`: until it is resumed.
    pub paused_until: Option<Moment>,
    pub door: Option<Slot>,
    pub mark: Option<(Slot, u32, u32)>,
    /// The setting that holds, and the generation of settings it was read at.
    pub cached: Option<(u64, Option<LimitSettings>)>,
    /// Its timer in `limit_timers`.
    pub timer: Option<Moment>,
    /// It has a row.
    pub stored: bool,
}

/// One thing of a pool.
#[derive(Debug)]
pub(crate) struct Resource {
    pub pool: Slot,
    pub id: ResourceId,
    pub tags: Vec<Tag>,
    pub slots: u32,
    pub state: ResourceState,
    /// Until when it is cooling.
    pub until: Moment,
    /// How long that is, to cut it by when the clock was set back.
    pub rest: Span,
    pub reason: Option<String>,
    pub holders: Vec<Fence>,
    pub uses: u64,
    /// A counter, not a time: least recently used first.
    pub used: u64,
    pub last_used_at: Option<Moment>,
    pub tat: Moment,
    /// Not before this, by the pool's rate.
    pub paced_until: Moment,
    pub retiring: bool,
    pub generation: u64,
    /// Kept for this lane, which reserves.
    pub kept_for: Option<Slot>,
    /// Its key in the sets of what is free, while it is in them.
    pub free: Option<u64>,
    pub timer: Option<Moment>,
}

/// A named set of resources.
#[derive(Debug)]
pub(crate) struct Pool {
    pub name: PoolName,
    /// `None`: it is not there, but jobs need it.
    pub settings: Option<PoolSettings>,
    pub uses: u32,
    pub resources: BTreeMap<ResourceId, Slot>,
    /// Resources that may be handed out: by last use.
    pub free: BTreeSet<(u64, Slot)>,
    pub free_by_tag: BTreeMap<Tag, BTreeSet<(u64, Slot)>>,
    /// Resources that have each tag.
    pub tagged: BTreeMap<Tag, u64>,
    pub doors: BTreeMap<Which, Slot>,
    /// The lane that reserves, how many of which, and what is kept for it.
    pub mark: Option<(Slot, Which, u32, Vec<Slot>)>,
    /// The last finished sync.
    pub version: u64,
    pub generation: u64,
    pub leased: u64,
    pub cooling: u64,
    pub banned: u64,
    /// A pick that is not `lru` draws its keys from here.
    pub draw: u64,
}

/// A resource that a lease holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HeldRes {
    pub pool: Slot,
    pub resource: Slot,
}

/// Permits and tokens that a lease holds of a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeldLimit {
    pub limit: Slot,
    pub weight: u32,
    /// Tokens booked, 0 if there was no rate.
    pub cost: u32,
}

/// A live lease.
#[derive(Debug)]
pub(crate) struct LeaseState {
    pub fence: Fence,
    /// The job's slot; `None` if needs alone are held.
    pub job: Option<Slot>,
    /// The job's row number; 0 without a job.
    pub seq: Seq,
    pub holder: Option<WorkerId>,
    pub granted_at: Moment,
    pub ttl: Span,
    pub expires_at: Moment,
    pub deadline: Option<Moment>,
    pub limits: Vec<HeldLimit>,
    pub resources: Vec<HeldRes>,
    pub request: Option<RequestId>,
    /// Its holder extended it at least once.
    pub extended: bool,
    /// A repeat of its call was answered with it: an undo of the first answer no longer counts. Not
    /// a row, since whoever undoes dies with the process.
    pub answered_again: bool,
    /// The last sign of life.
    pub seen_at: Moment,
}

/// What a request id was granted.
#[derive(Debug)]
pub(crate) struct PastRequest {
    pub fences: Vec<Fence>,
    pub until: Moment,
}

/// A lease without a job, after its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stub {
    pub outcome: Outcome,
    pub until: Moment,
}

/// Who holds a unique key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KeyHolder {
    pub seq: Seq,
    pub id: JobId,
    /// Held in any case until then.
    pub until: Option<Moment>,
    /// Held by the job's life too (not yet started or ended, as `until` says).
    pub by_job: bool,
}

/// A waiting lease call for jobs.
#[derive(Clone, Debug)]
pub(crate) struct Taker {
    pub queues: Vec<Slot>,
    pub max: usize,
    pub asker: Asker,
    pub until: Moment,
}

/// Who asks, and for how long.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub worker: Option<WorkerId>,
    pub ttl: Span,
    pub request: Option<RequestId>,
}

/// A waiting lease call for needs alone; it stands in a lane of [`CALLERS`].
#[derive(Debug)]
pub(crate) struct Caller {
    pub taker: TakerId,
    pub lane: Slot,
    pub arrival: u64,
    pub asker: Asker,
    /// The id that its place is kept under.
    pub place: Option<RequestId>,
    pub since: Moment,
    pub until: Moment,
}

/// A place in line whose caller's connection broke or whose wait ended.
#[derive(Clone, Debug)]
pub(crate) struct KeptPlace {
    pub arrival: u64,
    pub since: Moment,
    pub needs: Arc<[HeldNeed]>,
    pub until: Moment,
}

/// What a holder holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Holding {
    pub leases: u64,
    /// Of these, jobs that are suspects; at most one at a time.
    pub suspects: u64,
}

/// Who called within the last minute.
#[derive(Debug, Default)]
pub(crate) struct WorkerState {
    pub host: Option<String>,
    pub pid: Option<u32>,
    pub version: Option<String>,
    pub queues: BTreeMap<Slot, Moment>,
    pub seen_at: Moment,
    /// Lease calls that wait now.
    pub waiting: u32,
}

/// A namespace.
#[derive(Debug)]
pub(crate) struct Space {
    pub name: Namespace,
    pub patience: Span,
    // Time.
    pub last: Moment,
    pub pulse: Moment,
    pub deaf_at: Moment,
    pub behind: Option<Span>,
    // Numbers.
    pub fence: Fence,
    pub arrival: u64,
    pub used: u64,
    // Jobs.
    pub jobs: Slots<Job>,
    pub by_id: HashTable<Slot>,
    pub by_seq: HashTable<Slot>,
    pub shapes: Slots<Shape>,
    pub shape_by_bytes: HashMap<Arc<[u8]>, Slot>,
    pub due: BTreeSet<(Moment, Seq, Slot)>,
    pub expiring: BTreeSet<(Moment, Seq, Slot)>,
    pub keys: HashMap<UniqueKey, KeyHolder>,
    pub key_ends: Timers<UniqueKey>,
    /// The soonest moment at which an archived job may have to go.
    pub purge_at: Option<Moment>,
    // Lines.
    pub queues: Slots<Queue>,
    pub queue_by_name: BTreeMap<QueueName, Slot>,
    pub queue_pauses: Timers<Slot>,
    pub groups: Slots<GroupTurn>,
    pub bundles: Slots<Bundle>,
    pub lanes: Slots<Lane>,
    pub lane_by_key: HashMap<LaneKey, Slot>,
    pub doors: Slots<Door>,
    pub pending: VecDeque<Slot>,
    pub families: VecDeque<(String, Option<LimitName>)>,
    pub door_timers: Timers<Slot>,
    pub touched: BTreeSet<Slot>,
    pub impatient: BTreeSet<(Moment, Entry)>,
    pub marks: BTreeMap<Slot, Mark>,
    // Scarce things.
    pub limit_settings: BTreeMap<LimitName, LimitSettings>,
    pub settings_generation: u64,
    pub limits: Slots<Limit>,
    pub limit_by_name: BTreeMap<LimitName, Slot>,
    pub limit_timers: Timers<Slot>,
    pub pools: Slots<Pool>,
    pub pool_by_name: BTreeMap<PoolName, Slot>,
    pub resources: Slots<Resource>,
    pub resource_timers: Timers<Slot>,
    // Leases.
    pub leases: BTreeMap<Fence, LeaseState>,
    pub expiries: Timers<Fence>,
    pub deadlines: Timers<Fence>,
    pub requests: HashMap<RequestId, PastRequest>,
    pub request_ends: Timers<RequestId>,
    pub stubs: HashMap<Fence, Stub>,
    pub stub_ends: Timers<Fence>,
    // Who waits and who works.
    pub takers: BTreeMap<TakerId, Taker>,
    pub callers: Slots<Caller>,
    pub caller_by_taker: BTreeMap<TakerId, Slot>,
    pub waiting_requests: HashMap<RequestId, TakerId>,
    pub waits: Timers<TakerId>,
    pub places: HashMap<RequestId, KeptPlace>,
    pub place_ends: Timers<RequestId>,
    pub workers: BTreeMap<WorkerId, WorkerState>,
    pub worker_ends: Timers<WorkerId>,
    pub holding: HashMap<Option<WorkerId>, Holding>,
    // What the steps since the last drain did.
    pub out: Out,
}

/// What steps did, until the engine takes it.
#[derive(Debug, Default)]
pub(crate) struct Out {
    pub rows: Rows,
    pub facts: Vec<Fact>,
    pub deliveries: Vec<Delivery>,
    pub dirty_jobs: Vec<Slot>,
    pub dirty_limits: BTreeSet<Slot>,
    pub dirty_resources: BTreeSet<Slot>,
    pub dirty_turns: BTreeSet<Slot>,
    pub dirty_queues: BTreeSet<Slot>,
    pub dirty_pools: BTreeSet<Slot>,
    /// Ends since the engine last looked: how, and about how many bytes.
    pub archived: Vec<(crate::job::JobState, u64)>,
    /// Jobs that ended in this very step: the archive does not know them before the drain.
    pub ended: HashMap<JobId, Seq>,
    /// Archived jobs that went.
    pub purged: Vec<(crate::job::JobState, u64)>,
    pub forgotten_turns: Vec<(Slot, i16, Option<Group>)>,
    /// Numbers as they were written last.
    pub written: Option<(Fence, u64, u64)>,
}
