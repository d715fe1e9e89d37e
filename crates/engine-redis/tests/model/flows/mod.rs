//! Flows in random programs: jobs that wait for others and belong together, in few names, so that they meet.

mod play;

use proptest::prelude::*;

use crate::step::{self, Call, End, Filter, Job, Step};

/// Jobs that these steps speak of: few, so that most of what is named is there.
const KIN: u8 = 12;

/// One step about jobs that wait for others.
#[derive(Clone, Debug)]
pub enum FlowStep {
    /// An array whose items may wait for each other; `brief`: answered by ids alone.
    Push {
        jobs: Vec<Member>,
        turned: bool,
        brief: bool,
    },
    /// Children of one parent, more than one call tells.
    Crowd {
        parent: AfterEntry,
        many: u16,
        run: bool,
        flow: Option<u8>,
        retain_ms: Option<u64>,
    },
    /// One child of many parents, more than its end lets go in one call.
    FanIn {
        child: u8,
        many: u16,
        flow: Option<u8>,
    },
    /// Leases end, counted from the newest, and the last of them pushes follow-ups.
    Settle {
        leases: Vec<(u8, End)>,
        push: Vec<Member>,
        call: Option<Call>,
    },
    /// A flow of a crowd is called off while its children are being told.
    CancelWhileTelling {
        many: u16,
    },
    Cancel {
        flow: u8,
    },
    /// Cancels (0), retries (1) or deletes up to `max` members of a flow.
    Many {
        what: u8,
        flow: u8,
        which: Filter,
        max: usize,
    },
    /// A call waits for the end of a flow.
    Await {
        flow: u8,
        wait_ms: u64,
    },
    /// One job, its parents and its children, in pages of `max`.
    Look {
        job: u8,
        full: bool,
        max: usize,
    },
    /// All flows, and the kin of all jobs.
    Lists,
}

/// A job with parents, or with a flow.
#[derive(Clone, Debug)]
pub struct Member {
    pub job: Job,
    pub flow: Option<u8>,
    pub after: Vec<AfterEntry>,
    pub run: bool,
    pub reference: Reference,
}

/// What an item of an array is called within it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reference {
    None,
    Own,
    /// As the first item is: two of one name are refused.
    OfFirst,
}

/// An entry of `after`.
#[derive(Clone, Debug)]
pub struct AfterEntry {
    pub parent: NamedParent,
    pub gone: bool,
}

/// What an entry names.
#[derive(Clone, Copy, Debug)]
pub enum NamedParent {
    /// A job that is no later item of the same array.
    Job(u8),
    Key(u8),
    Flow(u8),
    /// An item of the same array that was made before, by its ref if it has one.
    Earlier(u8),
    /// Any item, itself too: it may make a circle.
    Any(u8),
    /// A ref that no item has.
    Nothing,
    /// The job that is settled.
    Settled,
}

fn entry() -> impl Strategy<Value = AfterEntry> {
    let parent = prop_oneof![
        8 => (0..KIN).prop_map(NamedParent::Job),
        10 => any::<u8>().prop_map(NamedParent::Earlier),
        3 => (0u8..3).prop_map(NamedParent::Flow),
        3 => Just(NamedParent::Settled),
        1 => (0u8..3).prop_map(NamedParent::Key),
    ];
    let refused =
        prop_oneof![2 => any::<u8>().prop_map(NamedParent::Any), 1 => Just(NamedParent::Nothing)];
    let parent = prop_oneof![40 => parent, 1 => refused];
    (parent, proptest::bool::weighted(0.92)).prop_map(|(parent, gone)| AfterEntry { parent, gone })
}

fn member(stated: f64) -> impl Strategy<Value = Member> {
    let when = (prop_oneof![8 => Just(0u64), 1 => 1u64..4_000], 0u8..2);
    let ends = (
        proptest::option::weighted(0.05, 500u64..8_000),
        proptest::option::weighted(0.1, 500u64..5_000),
    );
    let unique = (0u8..3, any::<bool>(), proptest::option::weighted(0.3, 500u64..6_000), 0u8..3);
    let unique = proptest::option::weighted(0.15, unique);
    let retain = prop_oneof![2 => Just(0u64), 1 => 0u64..9_000];
    let kept =
        (prop_oneof![2 => Just(1u32), 1 => 2u32..4], proptest::option::weighted(0.5, retain));
    let flow = proptest::option::weighted(stated, 0u8..3);
    let after = prop_oneof![
        2 => proptest::collection::vec(entry(), 0..2),
        2 => proptest::collection::vec(entry(), 1..4),
    ];
    let reference = prop_oneof![
        20 => Just(Reference::None),
        20 => Just(Reference::Own),
        1 => Just(Reference::OfFirst),
    ];
    let kin = (flow, after, proptest::bool::weighted(0.3), reference);
    (0..KIN, when, ends, unique, kept, kin).prop_map(
        |(id, (delay_ms, queue), (expires_ms, timeout_ms), unique, (attempts, retain_ms), kin)| {
            let (flow, after, run, reference) = kin;
            let job = Job {
                id,
                queue,
                priority: 0,
                group: None,
                needs: None,
                delay_ms,
                timeout_ms,
                expires_ms,
                unique,
                within_ms: None,
                attempts,
                retain_ms,
            };
            Member { job, flow, after, run, reference }
        },
    )
}

fn flow_step() -> impl Strategy<Value = FlowStep> {
    let flow = || 0u8..3;
    let push = (proptest::collection::vec(member(0.3), 1..6), any::<bool>(), any::<bool>());
    let end = prop_oneof![
        10 => Just(End::Succeeded),
        4 => any::<bool>().prop_map(|last| End::Failed { last }),
        3 => step::end(),
    ];
    let ends = proptest::collection::vec((0u8..6, end), 1..4);
    let follow_ups = proptest::collection::vec(member(0.1), 0..4);
    let call = proptest::option::weighted(0.3, step::call());
    let many = || prop_oneof![1 => 2u16..12, 1 => 250u16..320];
    let crowd = (
        entry(),
        many(),
        proptest::bool::weighted(0.3),
        proptest::option::weighted(0.4, flow()),
        proptest::option::weighted(0.5, prop_oneof![1 => Just(0u64), 1 => 1u64..4_000]),
    );
    prop_oneof![
        40 => push.prop_map(|(jobs, turned, brief)| FlowStep::Push { jobs, turned, brief }),
        2 => crowd.prop_map(|(parent, many, run, flow, retain_ms)|
            FlowStep::Crowd { parent, many, run, flow, retain_ms }),
        1 => (0..KIN, many(), proptest::option::weighted(0.4, flow()))
            .prop_map(|(child, many, flow)| FlowStep::FanIn { child, many, flow }),
        40 => (ends, follow_ups, call)
            .prop_map(|(leases, push, call)| FlowStep::Settle { leases, push, call }),
        1 => (250u16..600).prop_map(|many| FlowStep::CancelWhileTelling { many }),
        6 => flow().prop_map(|flow| FlowStep::Cancel { flow }),
        6 => (0u8..3, flow(), step::filter(), 1usize..9)
            .prop_map(|(what, flow, which, max)| FlowStep::Many { what, flow, which, max }),
        6 => (flow(), prop_oneof![1 => Just(0u64), 5 => 1u64..9_000])
            .prop_map(|(flow, wait_ms)| FlowStep::Await { flow, wait_ms }),
        6 => (0..KIN, any::<bool>(), 1usize..4)
            .prop_map(|(job, full, max)| FlowStep::Look { job, full, max }),
        1 => Just(FlowStep::Lists),
    ]
}

/// Steps around flows: what waits, how it ends, what is called off and lives again, and time in between.
pub fn step_at_flows() -> impl Strategy<Value = Step> {
    let leased = step::leased(1..6, prop_oneof![1 => Just(2u64), 3 => Just(9), 3 => Just(60)]);
    prop_oneof![
        12 => flow_step().prop_map(Step::Flow),
        7 => leased,
        1 => (0..KIN).prop_map(|job| Step::Cancel { job }),
        1 => (0..KIN).prop_map(|job| Step::Delete { job }),
        2 => (0..KIN).prop_map(|job| Step::Retry { job }),
        3 => prop_oneof![4 => 1u64..1_500, 1 => 1u64..12_000].prop_map(|ms| Step::Pass { ms }),
        2 => step::step(),
    ]
}
