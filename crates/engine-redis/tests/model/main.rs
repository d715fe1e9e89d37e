//! The engine against the state machine: random programs, time under the test's control, compared reply
//! by reply and, at the end, state by state.
//!
//! The state machine runs in the embedded engine, in memory. Each program has a namespace of its own on
//! one server. A program that tells the two apart is shrunk, and printed so that it can be played again:
//! `TENURE_SEED=N` plays the programs of one seed, `TENURE_HISTORIES=N` sets how many there are.

mod pair;
mod step;

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use pair::Server;

/// Programs in `./test`; a soak plays more.
const PROGRAMS: u32 = 2_000;
/// Steps of one program at most.
const STEPS: usize = 60;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_programs_are_answered_as_the_state_machine_answers_them() {
    if !tenure_testkit::redis::wanted() {
        return;
    }
    let programs =
        number("TENURE_HISTORIES").map_or(PROGRAMS, |n| u32::try_from(n).unwrap_or(u32::MAX));
    let seed = number("TENURE_SEED").unwrap_or_else(|| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(1, |since| since.as_nanos() as u64)
    });
    eprintln!("TENURE_SEED={seed}");
    let mut bytes = [0u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases: programs,
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let server = Server::start();
    let program = proptest::collection::vec(step::step(), 1..STEPS);
    if let Err(why) = runner.run(&program, |steps| server.play(&steps)) {
        panic!("TENURE_SEED={seed}\n{why}");
    }
}
