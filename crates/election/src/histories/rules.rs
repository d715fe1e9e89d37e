//! Each rule left out once, and the faults that show its absence.

use super::NONE;
use super::world::{Faults, Setting};
use crate::mutant::Mutant;

/// A row of the table.
pub(super) struct LeftOutRule {
    pub(super) left_out: [Option<Mutant>; 2],
    pub(super) setting: Setting,
    /// True if a rule breaks; otherwise the rule is hygiene, or another one covers it.
    pub(super) breaks: bool,
    /// The walk that the search begins with.
    pub(super) first: u64,
}

const CUT: Faults = Faults { cuts: 1, ..NONE };
const CUT_AND_STEP: Faults = Faults { steps: 1, ..CUT };
const FAILOVER: Faults = Faults { failovers: 1, ..NONE };
const FAILOVER_AND_CUT: Faults = Faults { failovers: 1, cuts: 1, ..NONE };
const FAILOVER_AND_DEATH: Faults = Faults { failovers: 1, deaths: 1, ..NONE };
const FAILOVER_AND_DEATHS: Faults = Faults { failovers: 1, deaths: 2, ..NONE };
const FAILOVER_AND_STEP: Faults = Faults { failovers: 1, cuts: 2, steps: 1, doubles: 1, ..NONE };
const LOSS: Faults = Faults { losses: 1, doubles: 1, ..NONE };
const SNAPSHOTS: Faults = Faults { failovers: 1, cuts: 1, turns: 2, ..NONE };

const fn two(faults: Faults) -> Setting {
    Setting { servers: 2, faults, waits: false, held: true }
}

const fn row(left_out: Mutant, setting: Setting, breaks: bool) -> LeftOutRule {
    LeftOutRule { left_out: [Some(left_out), None], setting, breaks, first: 0 }
}

const fn both(one: Mutant, other: Mutant, setting: Setting) -> LeftOutRule {
    LeftOutRule { left_out: [Some(one), Some(other)], setting, breaks: true, first: 0 }
}

pub(super) const ROWS: &[LeftOutRule] = &[
    row(Mutant::AnyEpochAppends, two(CUT), true),
    row(Mutant::LeadersAreAlike, two(FAILOVER_AND_STEP), false),
    row(Mutant::AnyContentIsDone, two(FAILOVER_AND_STEP), false),
    LeftOutRule {
        breaks: false,
        ..both(Mutant::LeadersAreAlike, Mutant::AnyContentIsDone, two(FAILOVER_AND_STEP))
    },
    LeftOutRule { first: 4189, ..row(Mutant::AnyRunAppends, two(FAILOVER_AND_CUT), true) },
    row(Mutant::EmptyAppendsDoNotBeat, two(CUT_AND_STEP), true),
    row(Mutant::LoadsAreNotProved, two(Faults { flushes: 1, ..FAILOVER }), true),
    row(Mutant::GivenIsAcquired, two(Faults { failovers: 1, ends: 1, losses: 1, ..NONE }), true),
    row(Mutant::ReadsSkipTheFence, two(CUT), true),
    LeftOutRule { first: 1647, ..row(Mutant::AppendsLetOutAll, two(CUT), true) },
    row(Mutant::UnsureIsNever, two(LOSS), true),
    both(Mutant::UnsureIsNever, Mutant::AnyContentIsDone, two(LOSS)),
    row(Mutant::FencedGoesOn, two(CUT), true),
    row(Mutant::LoadsEndLeases, two(CUT), true),
    row(Mutant::NamedDoesNothing, two(Faults { ends: 1, ..NONE }), true),
    row(
        Mutant::OnlyTheDeadAreReplaced,
        two(Faults { losses: 1, cuts: 1, stops: 1, ..NONE }),
        false,
    ),
    row(Mutant::LeasesEndByTime, two(Faults { steps: 1, ..NONE }), true),
    row(Mutant::BeginsBeforeTheBeat, two(CUT_AND_STEP), true),
    LeftOutRule {
        first: 2880,
        ..row(
            Mutant::EndsAreHandedOver,
            Setting { servers: 3, ..two(Faults { ends: 1, deaths: 1, ..NONE }) },
            true,
        )
    },
    LeftOutRule {
        first: 14_011,
        ..row(Mutant::AcquisitionsNameNoRun, two(Faults { failovers: 2, doubles: 1, ..NONE }), true)
    },
    row(
        Mutant::LaterIsAcquired,
        Setting { waits: true, ..two(Faults { splits: 1, cuts: 1, ..NONE }) },
        true,
    ),
    row(Mutant::MovedIsFenced, two(FAILOVER), true),
    row(Mutant::HealsWithoutAsking, two(Faults { stops: 1, flushes: 1, ..NONE }), true),
    row(Mutant::SilenceIsNo, two(Faults { stops: 2, flushes: 1, ..NONE }), false),
    LeftOutRule { first: 2150, ..row(Mutant::RunIsNotedAtOnce, two(FAILOVER_AND_DEATHS), true) },
    row(Mutant::NobodyRecovers, two(FAILOVER_AND_DEATH), true),
    row(
        Mutant::NobodyWaits,
        Setting { waits: true, ..two(Faults { splits: 1, cuts: 1, ..NONE }) },
        true,
    ),
    row(Mutant::PiecesAreUnfenced, two(SNAPSHOTS), false),
    row(Mutant::SnapshotsAreCounted, two(SNAPSHOTS), true),
    LeftOutRule {
        first: 10_522,
        ..both(Mutant::PiecesAreUnfenced, Mutant::SnapshotsAreCounted, two(SNAPSHOTS))
    },
    row(Mutant::AbsenceIsEmptiness, two(Faults { flushes: 1, deaths: 1, ..NONE }), true),
];
