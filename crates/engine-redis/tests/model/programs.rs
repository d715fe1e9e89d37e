//! Random programs, as tests play them: the same in each run, so that a failure is about the change and not about the dice.
//! `TENURE_SEED=N` plays others, `TENURE_SEED=random` others each time, `TENURE_HISTORIES=N` sets how many there are. One that
//! fails is shrunk, and printed with its seed.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Plays `many` programs, unless the environment sets how many; panics with the first that fails, which is shrunk by
/// `shrinks` tries at most.
pub fn play_programs<P: Strategy>(
    many: u32,
    shrinks: u32,
    program: P,
    play: impl Fn(P::Value) -> Result<(), TestCaseError>,
) {
    let cases = number("TENURE_HISTORIES").map_or(many, |n| u32::try_from(n).unwrap_or(u32::MAX));
    let seed = match std::env::var("TENURE_SEED").as_deref() {
        Ok("random") => {
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            since.map_or(1, |since| since.as_nanos() as u64)
        }
        _ => number("TENURE_SEED").unwrap_or(1),
    };
    eprintln!("TENURE_SEED={seed}");
    let mut bytes = [0u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: shrinks, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    if let Err(why) = TestRunner::new_with_rng(config, rng).run(&program, play) {
        panic!("TENURE_SEED={seed}\n{why}");
    }
}
