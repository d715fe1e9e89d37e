//! The steps of a random program.

use proptest::prelude::*;

/// A lease call.
#[derive(Clone, Debug)]
pub struct Asked {
    /// One queue, or both.
    pub both: bool,
    pub max: u8,
    pub waits: bool,
    pub proc: u8,
    pub worker: Option<u8>,
    /// A request id that other calls have too, or one of its own.
    pub shared: Option<u8>,
}

#[derive(Clone, Debug)]
pub enum Step {
    /// Time goes on, in milliseconds.
    Pass(u32),
    /// So many jobs; what is unusual in them.
    Push {
        other: bool,
        many: u8,
        odd: Odd,
    },
    Lease(Asked),
    /// Settles this many of the leases that are held, with a result or without, and asks for the next.
    SettleAndLease(Asked, u8, bool),
    /// Settles one of the leases that are held; which, and whether it is forgotten by that.
    Settle {
        which: u8,
        result: bool,
        forgets: bool,
    },
    /// The same, as failed, released or snoozed.
    End {
        which: u8,
        outcome: u8,
    },
    /// A call waits no more.
    Drop(u8),
    Tick(u8),
    /// The limit of a queue.
    Limit(u8),
    DeleteQueue,
    Extend(u8),
    /// Somebody knew a store that was lost: the namespace learns.
    Learn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Odd {
    Nothing,
    Priority,
    Group,
    Limit,
    Timeout,
    GoesAtOnce,
    KeptShortly,
    Delayed,
    /// At a moment, which may be over.
    At,
    /// With a unique key, which may be held.
    Key,
    DelayedKey,
    /// Its id may be known.
    Known,
}

fn odd() -> impl Strategy<Value = Odd> {
    prop_oneof![
        12 => Just(Odd::Nothing),
        1 => Just(Odd::Priority),
        1 => Just(Odd::Group),
        1 => Just(Odd::Limit),
        1 => Just(Odd::Timeout),
        1 => Just(Odd::GoesAtOnce),
        1 => Just(Odd::KeptShortly),
        1 => Just(Odd::Delayed),
        1 => Just(Odd::At),
        2 => Just(Odd::Key),
        1 => Just(Odd::DelayedKey),
        1 => Just(Odd::Known),
    ]
}

fn asked() -> impl Strategy<Value = Asked> {
    let whom = (0u8..2, proptest::option::weighted(0.9, 0u8..2));
    let how = (prop::bool::weighted(0.2), prop_oneof![3 => Just(1u8), 1 => Just(3u8)]);
    (how, prop::bool::weighted(0.8), whom, proptest::option::weighted(0.15, 0u8..3)).prop_map(
        |((both, max), waits, (proc, worker), shared)| Asked {
            both,
            max,
            waits,
            proc,
            worker,
            shared,
        },
    )
}

pub fn step() -> impl Strategy<Value = Step> {
    let many = prop_oneof![8 => Just(1u8), 1 => Just(2u8), 1 => Just(9u8)];
    let spans = prop_oneof![Just(1u32), Just(50), Just(3_000), Just(40_000)];
    prop_oneof![
        4 => spans.prop_map(Step::Pass),
        9 => (prop::bool::weighted(0.2), many, odd())
            .prop_map(|(other, many, odd)| Step::Push { other, many, odd }),
        3 => asked().prop_map(Step::Lease),
        7 => (asked(), prop_oneof![4 => Just(1u8), 1 => Just(2u8)], prop::bool::weighted(0.3))
            .prop_map(|(asked, many, result)| Step::SettleAndLease(asked, many, result)),
        3 => (any::<u8>(), prop::bool::weighted(0.3), prop::bool::weighted(0.9))
            .prop_map(|(which, result, forgets)| Step::Settle { which, result, forgets }),
        1 => (any::<u8>(), 0u8..3).prop_map(|(which, outcome)| Step::End { which, outcome }),
        1 => any::<u8>().prop_map(Step::Drop),
        2 => (0u8..2).prop_map(Step::Tick),
        1 => (0u8..3).prop_map(Step::Limit),
        1 => Just(Step::DeleteQueue),
        1 => any::<u8>().prop_map(Step::Extend),
        1 => Just(Step::Learn),
    ]
}
