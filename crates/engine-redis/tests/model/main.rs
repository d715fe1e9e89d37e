//! The engine against the state machine: random programs, time under the test's control, compared reply
//! by reply and, at the end, state by state.
//!
//! The state machine runs in the embedded engine, in memory. Each program has a namespace of its own on
//! one server. A program that tells the two apart is shrunk, and printed so that it can be played again
//! ([`programs`]).

mod awaiting;
mod events;
mod flows;
mod gauges;
mod pair;
mod programs;
mod repeats;
mod step;

use pair::Server;
use tenure_core::time::Span;

/// How many programs `./test` plays; a soak plays more.
const PROGRAMS: u32 = 520;
/// The same around gauges.
const PROGRAMS_AT_GAUGES: u32 = 190;
/// The same around flows.
const PROGRAMS_AT_FLOWS: u32 = 150;
/// Steps of one program at most.
const STEPS: usize = 60;

#[test]
fn random_programs_are_answered_as_the_state_machine_answers_them() {
    if !tenure_testkit::redis::wanted() {
        return;
    }
    let server = Server::start();
    let program = proptest::collection::vec(step::step(), 1..STEPS);
    programs::play_programs(PROGRAMS, 4_000, program, |steps| server.play(&steps));
}

#[test]
fn random_programs_around_gauges_are_answered_as_the_state_machine_answers_them() {
    if !tenure_testkit::redis::wanted() {
        return;
    }
    let server = Server::patient(Span::from_s(3_600));
    // Three limits have gauges from the begin.
    let program = proptest::collection::vec(step::step_at_gauges(), 1..STEPS);
    programs::play_programs(PROGRAMS_AT_GAUGES, 4_000, program, |steps| {
        let gauges = (0u8..3).map(|n| step::Step::Gauge { limit: n, cap: 2, how: 17 * n });
        let steps: Vec<_> = gauges.chain(steps).collect();
        server.play(&steps)
    });
}

#[test]
fn random_programs_around_flows_are_answered_as_the_state_machine_answers_them() {
    if !tenure_testkit::redis::wanted() {
        return;
    }
    let server = Server::start();
    let program = proptest::collection::vec(flows::step_at_flows(), 1..STEPS);
    programs::play_programs(PROGRAMS_AT_FLOWS, 4_000, program, |steps| {
        // All that can be seen of flows is compared at the end.
        let last = step::Step::Flow(flows::FlowStep::Lists);
        let steps: Vec<_> = steps.into_iter().chain([last]).collect();
        server.play(&steps)
    });
}
