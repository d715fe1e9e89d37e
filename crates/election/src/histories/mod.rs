//! The exploration: without any one rule it finds a broken history; with all rules it finds no such history.

mod executor;
mod explore;
mod judge;
mod rules;
mod told;
mod work;
mod world;

use explore::{Count, breadth_first, walks};
use world::{Faults, Setting};

use crate::mutant::{LEFT_OUT, Mutant};

const NONE: Faults = Faults {
    stops: 0,
    deaths: 0,
    cuts: 0,
    losses: 0,
    doubles: 0,
    failovers: 0,
    set_backs: 0,
    flushes: 0,
    splits: 0,
    steps: 0,
    ends: 0,
    turns: 0,
};
const NET: Faults = Faults { stops: 2, deaths: 1, cuts: 1, losses: 2, doubles: 2, ..NONE };

fn settings() -> Vec<(&'static str, Setting)> {
    let of = |faults, waits| Setting { servers: 2, faults, waits, held: true };
    vec![
        ("nothing is forgotten", of(Faults { turns: 2, ends: 1, ..NET }, false)),
        (
            "three servers",
            Setting { servers: 3, ..of(Faults { deaths: 2, turns: 1, ends: 1, ..NET }, false) },
        ),
        ("failover", of(Faults { failovers: 2, turns: 1, ..NET }, false)),
        ("failover and ends", of(Faults { failovers: 1, ends: 1, ..NET }, false)),
        ("flush", of(Faults { flushes: 1, turns: 1, ..NET }, false)),
        ("flush and failover", of(Faults { flushes: 1, failovers: 1, ..NET }, false)),
        ("clock", of(Faults { steps: 2, ends: 1, ..NET }, false)),
        ("failover and clock", of(Faults { failovers: 1, steps: 1, ..NET }, false)),
        ("split with replicas", of(Faults { splits: 1, ..NET }, true)),
        ("failover with replicas", of(Faults { failovers: 2, turns: 1, ..NET }, true)),
    ]
}

/// Tries of steps in a walk; about every sixth try is possible at its time.
const TRIES: u32 = 600;
/// Walks after which a left-out rule counts as not missed.
const WALKS_MAX: u64 = 40_000;

fn leave_out(left_out: [Option<Mutant>; 2]) {
    LEFT_OUT.with(|rules| rules.set(left_out));
}

/// The number of walks of each kind; a soak by hand sets more.
fn walks_wanted(usual: u64) -> u64 {
    std::env::var("TENURE_WALKS").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

#[test]
fn the_law_holds_under_every_fault_that_it_does_not_admit() {
    for (name, setting) in settings() {
        let mut count = Count::default();
        let found = breadth_first(setting, 10_000, &mut count)
            .or_else(|| walks(setting, 0..walks_wanted(500), TRIES, &mut count));
        println!("| {name} | {count} |");
        assert!(
            found.is_none(),
            "{name}: {}",
            found.map(|found| found.to_string()).unwrap_or_default()
        );
    }
}

#[test]
fn each_rule_that_is_left_out_is_missed() {
    for row in rules::ROWS.iter().filter(|row| row.breaks) {
        let mut count = Count::default();
        leave_out(row.left_out);
        let seeds = row.first..row.first + WALKS_MAX;
        let found = walks(row.setting, seeds, TRIES, &mut count);
        leave_out([None; 2]);
        let found = found.unwrap_or_else(|| panic!("{:?} is not missed", row.left_out));
        // With the rule, the same history breaks nothing.
        assert_eq!(
            explore::replay(row.setting, &found.events),
            None,
            "{:?}: {found}",
            row.left_out
        );
    }
}

/// Prints the rows of the table on the decision page.
#[test]
#[ignore = "long: run by hand, with --nocapture"]
fn what_each_left_out_rule_breaks() {
    let wanted = std::env::var("TENURE_RULE").unwrap_or_default();
    for row in rules::ROWS.iter().filter(|row| format!("{:?}", row.left_out).contains(&wanted)) {
        leave_out(row.left_out);
        let mut count = Count::default();
        let found = walks(row.setting, 0..walks_wanted(WALKS_MAX), TRIES, &mut count);
        let found = match &found {
            Some(found) => format!("{found} (walk {})", count.walks - 1),
            None => "nothing".to_owned(),
        };
        println!("| {:?} | {count} | {found} |", row.left_out);
    }
    leave_out([None; 2]);
}
