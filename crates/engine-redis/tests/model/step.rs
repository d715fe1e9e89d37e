//! What a program may do, in few names, so that its steps meet.

use proptest::prelude::*;

use crate::flows::FlowStep;

/// One step. Numbers are small and name things: a queue, a job, a lease of those that were granted.
#[derive(Clone, Debug)]
pub enum Step {
    Push {
        jobs: Vec<Job>,
    },
    /// A job whose content may replace that of another.
    Replace {
        job: u8,
        key: u8,
        start: bool,
        hold_ms: Option<u64>,
        delay_ms: u64,
        retain_ms: Option<u64>,
    },
    /// One of the last pushes once more, as it was.
    Repeat {
        push: u8,
        twice: bool,
    },
    /// Plain jobs of one shape, one after the other: on Redis they may be a block.
    Bulk {
        first: u8,
        many: u8,
        queue: u8,
        retain_ms: Option<u64>,
    },
    /// Jobs of which each needs one keyed limit: the next of [`KEYED`] from one on.
    Keyed {
        first: u8,
        many: u8,
        queue: u8,
        from: u8,
        weight: u32,
        retain_ms: Option<u64>,
    },
    /// Jobs that all need the same limits, so that they stand in one lane; the limits get this cap before.
    Alike {
        cap: Option<u32>,
        first: u8,
        many: u8,
        queue: u8,
        limits: Vec<u8>,
        weight: u32,
        retain_ms: Option<u64>,
    },
    Lease {
        queues: Vec<u8>,
        max: usize,
        ttl_s: u64,
        worker: u8,
        request: Option<u8>,
    },
    Hold {
        needs: Vec<Need>,
        ttl_s: u64,
        worker: u8,
        request: Option<u8>,
    },
    Extend {
        leases: Vec<u8>,
        ttl_s: Option<u64>,
    },
    Settle {
        leases: Vec<(u8, End)>,
    },
    /// Leases that were granted one after the other, as succeeded and without a result.
    Finish {
        first: u8,
        many: u8,
    },
    /// Such leases or others, and a lease call right after them; once more if `twice`.
    SettleAndLease {
        leases: Vec<(u8, End)>,
        first: u8,
        many: u8,
        call: Call,
        twice: bool,
    },
    Force {
        lease: u8,
    },
    /// Nobody received it, and the server says so.
    Undo {
        lease: u8,
    },
    /// A worker asks where there is nothing.
    Asks {
        worker: u8,
    },
    Cancel {
        job: u8,
    },
    Delete {
        job: u8,
    },
    Retry {
        job: u8,
    },
    RunNow {
        job: u8,
    },
    Patch {
        job: u8,
        what: Change,
    },
    Limit {
        limit: u8,
        set: LimitSet,
    },
    DropLimit {
        limit: u8,
    },
    PauseLimit {
        limit: u8,
        ms: u64,
    },
    ResumeLimit {
        limit: u8,
    },
    Observe {
        limit: u8,
        external: u32,
        ms: u64,
    },
    Pool {
        pool: u8,
        cooldown_ms: u64,
        quarantine_ms: u64,
        max_uses: Option<u32>,
        rate: bool,
    },
    Sync {
        pool: u8,
        resources: Vec<u8>,
        slots: u32,
    },
    Retag {
        pool: u8,
        resource: u8,
        tags: Vec<u8>,
    },
    Cool {
        pool: u8,
        resource: u8,
        ms: u64,
    },
    Ban {
        pool: u8,
        resource: u8,
    },
    Restore {
        pool: u8,
        resource: u8,
    },
    Queue {
        queue: u8,
        needs: Vec<Need>,
        max_waiting: Option<u32>,
        lost_delay_ms: Option<u64>,
        share: Option<u32>,
    },
    PauseQueue {
        queue: u8,
        ms: Option<u64>,
    },
    ResumeQueue {
        queue: u8,
    },
    /// Sets a schedule.
    Schedule {
        schedule: u8,
        set: ScheduleSet,
    },
    /// Changes its job alone.
    PatchSchedule {
        schedule: u8,
        overlap: u8,
    },
    DropSchedule {
        schedule: u8,
    },
    PauseSchedule {
        schedule: u8,
        ms: Option<u64>,
    },
    ResumeSchedule {
        schedule: u8,
    },
    RunSchedule {
        schedule: u8,
        job: u8,
    },
    /// These are the whole set of an owner.
    SyncSchedules {
        schedules: Vec<(u8, ScheduleSet)>,
        meant: bool,
    },
    LookAtSchedule {
        schedule: u8,
    },
    /// Cancels (0), retries (1) or deletes up to `max` jobs.
    Many {
        what: u8,
        which: Filter,
        max: usize,
    },
    Look {
        job: u8,
    },
    /// A call waits for the result of a job, or of the one that holds a key.
    Await {
        of: u8,
        by_key: bool,
        wait_ms: u64,
    },
    /// A caller that waits for a result goes away.
    GiveUp {
        call: u8,
    },
    Lists,
    Pass {
        ms: u64,
    },
    /// A limit gets a gauge, or another.
    Gauge {
        limit: u8,
        cap: u32,
        how: u8,
    },
    /// A claim is answered, be it over: this one of the last, with what is there outside.
    Read {
        claim: u8,
        what: u8,
    },
    /// What is about jobs that wait for others, and about flows.
    Flow(FlowStep),
    /// The wall clock alone is set ahead.
    WallLeap {
        ms: u64,
    },
}

/// Which jobs: of a queue, in some states, with an error; `kind`: the filter asks for one, which all have.
#[derive(Clone, Debug)]
pub struct Filter {
    pub queue: Option<u8>,
    pub states: Vec<u8>,
    pub kind: bool,
    pub error: bool,
    /// Jobs that ended within this many milliseconds before now.
    pub ended_ms: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Job {
    pub id: u8,
    pub queue: u8,
    pub priority: i8,
    pub group: Option<u8>,
    pub needs: Option<Vec<Need>>,
    pub delay_ms: u64,
    pub timeout_ms: Option<u64>,
    pub expires_ms: Option<u64>,
    pub unique: Option<(u8, bool, Option<u64>, u8)>,
    pub within_ms: Option<u64>,
    pub attempts: u32,
    pub retain_ms: Option<u64>,
}

impl Job {
    /// One that needs nothing.
    pub fn plain(id: u8, queue: u8) -> Job {
        Job {
            id,
            queue,
            priority: 0,
            group: None,
            needs: Some(Vec::new()),
            delay_ms: 0,
            timeout_ms: None,
            expires_ms: None,
            unique: None,
            within_ms: None,
            attempts: 3,
            retain_ms: None,
        }
    }
}

/// What a schedule is: seconds of its interval, or a cron expression; and what is not usual.
#[derive(Clone, Debug)]
pub struct ScheduleSet {
    pub every_s: Option<u64>,
    /// From now on, or from a moment that lies ahead.
    pub start_ms: Option<i64>,
    pub end_ms: Option<u64>,
    pub jitter_ms: u64,
    pub overlap: u8,
    pub catch_up: u8,
    pub most: u32,
    pub owned: bool,
    pub queue: u8,
    pub needs: Option<Vec<Need>>,
    pub expires_ms: Option<u64>,
    pub retain_ms: Option<u64>,
}

/// A lease call after settles: for jobs of these queues, or for needs.
#[derive(Clone, Debug)]
pub struct Call {
    pub queues: Vec<u8>,
    pub max: usize,
    pub needs: Option<Vec<Need>>,
    pub ttl_s: u64,
    pub worker: u8,
    pub request: Option<u8>,
}

#[derive(Clone, Debug)]
pub enum Need {
    Limit { limit: u8, weight: u32, cost: u32 },
    Any { pool: u8, count: u32 },
    Tag { pool: u8, tag: u8 },
    Id { pool: u8, resource: u8 },
}

#[derive(Clone, Debug)]
pub enum End {
    Succeeded,
    Failed {
        last: bool,
    },
    Snoozed {
        ms: u64,
        reset: bool,
    },
    /// Says when its schedule is next, if it has one.
    Next {
        s: u64,
        done: bool,
    },
    /// Succeeds or is given back, and reports.
    Reporting {
        done: bool,
    },
    Released,
    Cooling {
        ms: u64,
    },
    Pausing {
        limit: u8,
        ms: u64,
    },
    Spent {
        limit: u8,
        cost: u32,
    },
    Pushing {
        job: u8,
    },
    /// Pushes what one of the last pushes did.
    Repeating {
        push: u8,
    },
    /// Pushes the id of its own job, and another.
    Again,
}

impl End {
    pub fn pushes(&self) -> bool {
        matches!(self, End::Pushing { .. } | End::Repeating { .. } | End::Again)
    }
}

#[derive(Clone, Debug)]
pub enum Change {
    Priority(i8),
    Needs(Vec<Need>),
    Delay(u64),
    Payload,
    Group(Option<u8>),
}

#[derive(Clone, Debug)]
pub enum LimitSet {
    Cap(u32),
    Rate { count: u32, per_ms: u64, burst: u32 },
    Both { cap: u32, count: u32 },
    Rests { cap: u32, gap_ms: Option<u64>, quarantine_ms: u64 },
}

/// Queues, jobs and so on that programs speak of.
pub const JOBS: u8 = 24;

/// The limits that have a key.
pub const KEYED: [u8; 5] = [2, 3, 4, 7, 8];

/// Any limit; the sixth is a template, which nothing needs.
fn limit() -> impl Strategy<Value = u8> {
    prop_oneof![6 => 0u8..6, 2 => 7u8..9]
}

fn need() -> impl Strategy<Value = Need> {
    prop_oneof![
        6 => (limit(), 1u32..3, 0u32..3).prop_map(|(limit, weight, cost)| Need::Limit { limit, weight, cost }),
        2 => (0u8..2, 1u32..3).prop_map(|(pool, count)| Need::Any { pool, count }),
        1 => (0u8..2, 0u8..2).prop_map(|(pool, tag)| Need::Tag { pool, tag }),
        1 => (0u8..2, 0u8..4).prop_map(|(pool, resource)| Need::Id { pool, resource }),
    ]
}

fn needs() -> impl Strategy<Value = Vec<Need>> {
    proptest::collection::vec(need(), 0..3)
}

pub(crate) fn call() -> impl Strategy<Value = Call> {
    let queues = proptest::collection::vec(0u8..3, 1..3);
    let max = prop_oneof![2 => 1usize..5, 1 => 5usize..14];
    let alone = proptest::collection::vec(need(), 1..3);
    let request = proptest::option::weighted(0.6, 0u8..3);
    (queues, max, proptest::option::weighted(0.2, alone), 1u64..9, 0u8..3, request).prop_map(
        |(queues, max, needs, ttl_s, worker, request)| Call {
            queues,
            max,
            needs,
            ttl_s,
            worker,
            request,
        },
    )
}

fn job() -> impl Strategy<Value = Job> {
    let who = (0..JOBS, 0u8..3, prop_oneof![4 => Just(0i8), 1 => -1i8..2]);
    let group = proptest::option::weighted(0.3, 0u8..3);
    let needs = proptest::option::weighted(0.7, needs());
    let delay = prop_oneof![5 => Just(0u64), 1 => 1u64..5_000];
    let timeout = proptest::option::weighted(0.15, 500u64..8_000);
    let expires = proptest::option::weighted(0.1, 500u64..8_000);
    let hold = proptest::option::weighted(0.4, 500u64..6_000);
    let unique = proptest::option::weighted(0.2, (0u8..3, any::<bool>(), hold, 0u8..3));
    let retain = prop_oneof![1 => Just(0u64), 2 => 0u64..9_000];
    let within = proptest::option::weighted(0.5, 0u64..6_000);
    let more = (0u32..4, proptest::option::weighted(0.4, retain), within);
    (who, group, needs, delay, timeout, expires, unique, more).prop_map(
        |((id, queue, priority), group, needs, delay_ms, timeout_ms, expires_ms, unique, more)| {
            Job {
                id,
                queue,
                priority,
                group,
                needs,
                delay_ms,
                timeout_ms,
                expires_ms,
                unique,
                attempts: more.0,
                retain_ms: more.1,
                within_ms: more.2,
            }
        },
    )
}

fn schedule() -> impl Strategy<Value = ScheduleSet> {
    let every_s = proptest::option::weighted(0.6, 1u64..6);
    let start_ms = proptest::option::weighted(0.4, -65_000i64..5_000);
    let end_ms = proptest::option::weighted(0.2, 1u64..12_000);
    let jitter_ms = prop_oneof![2 => Just(0u64), 1 => 1u64..4_000];
    let what = (0u8..3, proptest::option::weighted(0.3, needs()), proptest::bool::weighted(0.3));
    let ends = (
        proptest::option::weighted(0.2, 500u64..6_000),
        proptest::option::weighted(0.4, 0u64..6_000),
    );
    let rules = (0u8..3, 0u8..3, 1u32..4);
    (every_s, start_ms, end_ms, jitter_ms, what, ends, rules).prop_map(
        |(every_s, start_ms, end_ms, jitter_ms, what, ends, rules)| ScheduleSet {
            every_s,
            start_ms,
            end_ms,
            jitter_ms,
            overlap: rules.0,
            catch_up: rules.1,
            most: rules.2,
            owned: what.2,
            queue: what.0,
            needs: what.1,
            expires_ms: ends.0,
            retain_ms: ends.1,
        },
    )
}

pub(crate) fn filter() -> impl Strategy<Value = Filter> {
    let queue = proptest::option::weighted(0.6, 0u8..3);
    let states = proptest::collection::vec(0u8..8, 0..4);
    let ended = proptest::option::weighted(0.2, 0u64..6_000);
    (queue, states, any::<bool>(), proptest::bool::weighted(0.2), ended).prop_map(
        |(queue, states, kind, error, ended_ms)| Filter { queue, states, kind, error, ended_ms },
    )
}

pub(crate) fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        4 => Just(End::Succeeded),
        2 => any::<bool>().prop_map(|last| End::Failed { last }),
        1 => (100u64..4_000, any::<bool>()).prop_map(|(ms, reset)| End::Snoozed { ms, reset }),
        1 => any::<bool>().prop_map(|done| End::Reporting { done }),
        1 => (1u64..9, any::<bool>()).prop_map(|(s, done)| End::Next { s, done }),
        2 => Just(End::Released),
        1 => (1u64..4_000).prop_map(|ms| End::Cooling { ms }),
        1 => (limit(), 1u64..3_000).prop_map(|(limit, ms)| End::Pausing { limit, ms }),
        1 => (limit(), 0u32..4).prop_map(|(limit, cost)| End::Spent { limit, cost }),
        1 => (0..JOBS).prop_map(|job| End::Pushing { job }),
        1 => (0u8..8).prop_map(|push| End::Repeating { push }),
        1 => Just(End::Again),
    ]
}

fn limit_set() -> impl Strategy<Value = LimitSet> {
    prop_oneof![
        4 => prop_oneof![3 => 0u32..4, 1 => 4u32..12].prop_map(LimitSet::Cap),
        2 => (1u32..4, 1u64..4_000, 1u32..4)
            .prop_map(|(count, per_ms, burst)| LimitSet::Rate { count, per_ms, burst }),
        1 => (0u32..4, 1u32..4).prop_map(|(cap, count)| LimitSet::Both { cap, count }),
        2 => (1u32..4, proptest::option::of(1u64..3_000), prop_oneof![Just(0u64), 1u64..4_000]).prop_map(
            |(cap, gap_ms, quarantine_ms)| LimitSet::Rests { cap, gap_ms, quarantine_ms }),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (-1i8..2).prop_map(Change::Priority),
        needs().prop_map(Change::Needs),
        (0u64..5_000).prop_map(Change::Delay),
        Just(Change::Payload),
        proptest::option::of(0u8..3).prop_map(Change::Group),
    ]
}

fn alike() -> impl Strategy<Value = Step> {
    let limits = proptest::collection::btree_set(limit(), 1..3);
    let cap = proptest::option::weighted(0.8, 0u32..14);
    let weight = prop_oneof![4 => Just(1u32), 1 => 2u32..4];
    let retain = proptest::option::weighted(0.2, 0u64..9_000);
    ((0..JOBS, 2u8..14), 0u8..3, limits, cap, weight, retain).prop_map(
        |((first, many), queue, limits, cap, weight, retain_ms)| {
            let limits = limits.into_iter().collect();
            Step::Alike { cap, first, many, queue, limits, weight, retain_ms }
        },
    )
}

pub fn step() -> impl Strategy<Value = Step> {
    let some = |of: std::ops::Range<u8>, n| proptest::collection::vec(of, 1..n);
    let request = || proptest::option::weighted(0.2, 0u8..3);
    let jobs = prop_oneof![
        14 => proptest::collection::vec(job(), 1..4).prop_map(|jobs| Step::Push { jobs }),
        5 => (0..JOBS, 2u8..14, 0u8..3, proptest::option::weighted(0.3, 0u64..9_000)).prop_map(
            |(first, many, queue, retain_ms)| Step::Bulk { first, many, queue, retain_ms }),
        7 => (0..JOBS, 2u8..14, 0u8..3, 0u8..5, prop_oneof![5 => Just(1u32), 1 => Just(2)],
            proptest::option::weighted(0.2, 0u64..9_000)).prop_map(
            |(first, many, queue, from, weight, retain_ms)|
                Step::Keyed { first, many, queue, from, weight, retain_ms }),
        6 => alike(),
        6 => (0..JOBS, 0u8..3, any::<bool>(), proptest::option::weighted(0.3, 500u64..6_000),
            prop_oneof![2 => Just(0u64), 1 => 1u64..4_000], proptest::option::weighted(0.4, 0u64..9_000)).prop_map(
            |(job, key, start, hold_ms, delay_ms, retain_ms)|
                Step::Replace { job, key, start, hold_ms, delay_ms, retain_ms }),
        6 => (0u8..8, proptest::bool::weighted(0.2)).prop_map(|(push, twice)| Step::Repeat { push, twice }),
        12 => (some(0..3, 3), prop_oneof![2 => 1usize..5, 1 => 5usize..14], 1u64..9, 0u8..3, request()).prop_map(
            |(queues, max, ttl_s, worker, request)| Step::Lease { queues, max, ttl_s, worker, request }),
        4 => (proptest::collection::vec(need(), 1..3), 1u64..9, 0u8..3, request()).prop_map(
            |(needs, ttl_s, worker, request)| Step::Hold { needs, ttl_s, worker, request }),
        4 => (some(0..16, 4), proptest::option::of(1u64..9))
            .prop_map(|(leases, ttl_s)| Step::Extend { leases, ttl_s }),
        12 => proptest::collection::vec((0u8..16, end()), 1..4).prop_map(|leases| Step::Settle { leases }),
        5 => (0u8..16, 1u8..9).prop_map(|(first, many)| Step::Finish { first, many }),
        8 => (proptest::collection::vec((0u8..16, end()), 0..3), 0u8..16, 0u8..9, call(), proptest::bool::weighted(0.3))
            .prop_map(|(leases, first, many, call, twice)| Step::SettleAndLease { leases, first, many, call, twice }),
        1 => (0u8..16).prop_map(|lease| Step::Force { lease }),
        1 => (0u8..16).prop_map(|lease| Step::Undo { lease }),
        3 => (0u8..3).prop_map(|worker| Step::Asks { worker }),
        2 => (0..JOBS).prop_map(|job| Step::Cancel { job }),
        1 => (0..JOBS).prop_map(|job| Step::Delete { job }),
        2 => (0..JOBS).prop_map(|job| Step::Retry { job }),
        1 => (0..JOBS).prop_map(|job| Step::RunNow { job }),
        2 => (0u8..3, filter(), 1usize..9).prop_map(|(what, which, max)| Step::Many { what, which, max }),
        2 => (0..JOBS, change()).prop_map(|(job, what)| Step::Patch { job, what }),
        3 => (0..JOBS).prop_map(|job| Step::Look { job }),
        4 => (0..JOBS, proptest::bool::weighted(0.2), prop_oneof![1 => Just(0u64), 5 => 1u64..9_000])
            .prop_map(|(of, by_key, wait_ms)| Step::Await { of, by_key, wait_ms }),
        1 => any::<u8>().prop_map(|call| Step::GiveUp { call }),
        1 => Just(Step::Lists),
        10 => prop_oneof![4 => 1u64..1_500, 1 => 1u64..12_000].prop_map(|ms| Step::Pass { ms }),
        1 => (101u64..5_000).prop_map(|ms| Step::WallLeap { ms }),
    ];
    let maybe_ms = || proptest::option::of(1u64..4_000);
    let settings = prop_oneof![
        4 => (0u8..9, limit_set()).prop_map(|(limit, set)| Step::Limit { limit, set }),
        1 => (0u8..9).prop_map(|limit| Step::DropLimit { limit }),
        1 => (limit(), 1u64..4_000).prop_map(|(limit, ms)| Step::PauseLimit { limit, ms }),
        1 => limit().prop_map(|limit| Step::ResumeLimit { limit }),
        1 => (limit(), 0u32..3, 1u64..4_000)
            .prop_map(|(limit, external, ms)| Step::Observe { limit, external, ms }),
        3 => (0u8..2, prop_oneof![2 => Just(0u64), 1 => 1u64..2_000], prop_oneof![Just(0u64), 1u64..2_000],
            proptest::option::weighted(0.2, 1u32..4), proptest::bool::weighted(0.2)).prop_map(
            |(pool, cooldown_ms, quarantine_ms, max_uses, rate)|
                Step::Pool { pool, cooldown_ms, quarantine_ms, max_uses, rate }),
        3 => (0u8..2, proptest::collection::btree_set(0u8..4, 0..5), 1u32..3).prop_map(
            |(pool, resources, slots)|
                Step::Sync { pool, resources: resources.into_iter().collect(), slots }),
        1 => (0u8..2, 0u8..4, proptest::collection::btree_set(0u8..2, 0..3)).prop_map(
            |(pool, resource, tags)| Step::Retag { pool, resource, tags: tags.into_iter().collect() }),
        1 => (0u8..2, 0u8..4, 1u64..3_000).prop_map(|(pool, resource, ms)| Step::Cool { pool, resource, ms }),
        1 => (0u8..2, 0u8..4).prop_map(|(pool, resource)| Step::Ban { pool, resource }),
        1 => (0u8..2, 0u8..4).prop_map(|(pool, resource)| Step::Restore { pool, resource }),
        1 => (0u8..3, needs(), proptest::option::weighted(0.3, 0u32..6), proptest::option::of(1u32..5),
            prop_oneof![3 => Just(None), 1 => Just(Some(0u64)), 1 => (1u64..9_000).prop_map(Some)]).prop_map(
            |(queue, needs, max_waiting, share, lost_delay_ms)|
                Step::Queue { queue, needs, max_waiting, lost_delay_ms, share }),
        1 => (0u8..3, maybe_ms()).prop_map(|(queue, ms)| Step::PauseQueue { queue, ms }),
        1 => (0u8..3).prop_map(|queue| Step::ResumeQueue { queue }),
    ];
    let maybe_ms = || proptest::option::of(1u64..8_000);
    let set = || proptest::collection::btree_set(0u8..4, 0..4);
    let schedules = prop_oneof![
        6 => (0u8..4, schedule()).prop_map(|(schedule, set)| Step::Schedule { schedule, set }),
        1 => (0u8..4, 0u8..3).prop_map(|(schedule, overlap)| Step::PatchSchedule { schedule, overlap }),
        1 => (0u8..4).prop_map(|schedule| Step::DropSchedule { schedule }),
        1 => (0u8..4, maybe_ms()).prop_map(|(schedule, ms)| Step::PauseSchedule { schedule, ms }),
        1 => (0u8..4).prop_map(|schedule| Step::ResumeSchedule { schedule }),
        2 => (0u8..4, 0..JOBS).prop_map(|(schedule, job)| Step::RunSchedule { schedule, job }),
        1 => (set(), schedule(), any::<bool>()).prop_map(|(ids, set, meant)| {
            let one = |id: u8| (id, set.clone());
            Step::SyncSchedules { schedules: ids.into_iter().map(one).collect(), meant }
        }),
        3 => (0u8..4).prop_map(|schedule| Step::LookAtSchedule { schedule }),
    ];
    prop_oneof![12 => jobs, 3 => settings, 2 => schedules, 1 => gauged()]
}

fn gauged() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (0u8..9, 0u32..4, any::<u8>()).prop_map(|(limit, cap, how)| Step::Gauge { limit, cap, how }),
        6 => (0u8..8, any::<u8>()).prop_map(|(claim, what)| Step::Read { claim, what }),
    ]
}

/// A worker takes jobs of both queues.
pub fn leased(
    max: std::ops::Range<usize>,
    ttl_s: impl Strategy<Value = u64>,
) -> impl Strategy<Value = Step> {
    (max, ttl_s, 0u8..3).prop_map(|(max, ttl_s, worker)| Step::Lease {
        queues: vec![0, 1],
        max,
        ttl_s,
        worker,
        request: None,
    })
}

/// Steps around a few limits with gauges: jobs that need them, how they end, readings, and time in between.
pub fn step_at_gauges() -> impl Strategy<Value = Step> {
    let needing = (0..JOBS, 0u8..2, 0u8..3, 1u32..3).prop_map(|(id, queue, limit, weight)| {
        let needs = Some(vec![Need::Limit { limit, weight, cost: 1 }]);
        Step::Push { jobs: vec![Job { needs, ..Job::plain(id, queue) }] }
    });
    let leased = leased(1..4, prop_oneof![Just(2u64), Just(9), Just(60)]);
    prop_oneof![
        6 => needing,
        6 => leased,
        3 => proptest::collection::vec((0u8..16, end()), 1..3).prop_map(|leases| Step::Settle { leases }),
        2 => (0u8..16, 1u8..4).prop_map(|(first, many)| Step::Finish { first, many }),
        1 => (0u8..16).prop_map(|lease| Step::Force { lease }),
        1 => (0u8..3, 1u32..4, any::<u8>()).prop_map(|(limit, cap, how)| Step::Gauge { limit, cap, how }),
        9 => (0u8..4, any::<u8>()).prop_map(|(claim, what)| Step::Read { claim, what }),
        6 => prop_oneof![4 => 1u64..1_500, 1 => 1u64..12_000].prop_map(|ms| Step::Pass { ms }),
        3 => step(),
    ]
}
