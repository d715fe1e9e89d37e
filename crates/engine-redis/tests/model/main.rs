//! The engine against the state machine: random programs, time under the test's control, compared reply
//! by reply and, at the end, state by state.
//!
//! The state machine runs in the embedded engine, in memory. Each program has a namespace of its own on
//! one server. A program that tells the two apart is shrunk, and printed so that it can be played again
//! ([`programs`]).

mod awaiting;
mod pair;
mod programs;
mod step;

use pair::Server;

/// How many programs `./test` plays; a soak plays more.
const PROGRAMS: u32 = 2_000;
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
