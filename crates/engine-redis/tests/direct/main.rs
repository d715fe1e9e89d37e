//! The direct way of one plain job (`lua/machine/direct.lua`) leaves, byte by byte, what the usual way leaves.
//!
//! The function library is called by hand, with the same random program in two namespaces of one server, of which one
//! always goes the usual way. After each step the replies, the messages and all keys of both are compared. A program that
//! tells them apart is shrunk, and printed so that it can be played again ([`programs`]).

mod dump;
mod pair;
#[path = "../model/programs.rs"]
mod programs;
mod step;

use std::cell::Cell;

use pair::Pair;

/// How many programs `./test` plays.
const PROGRAMS: u32 = 60;
/// Steps of one program at most.
const STEPS: usize = 120;
/// At least this many calls are to go the direct way, of some 200 that do.
const DIRECT_AT_LEAST: u64 = 50;

#[test]
fn the_direct_way_leaves_what_the_usual_way_leaves() {
    if !tenure_testkit::redis::wanted() {
        return;
    }
    let server = pair::start();
    let program = proptest::collection::vec(step::step(), 1..STEPS);
    let direct = Cell::new(0);
    programs::play_programs(PROGRAMS, 2_000, program, |steps| {
        let mut pair = Pair::begin(&server);
        for step in &steps {
            pair.take(step)?;
        }
        direct.set(direct.get() + pair.gone_directly());
        Ok(())
    });
    let direct = direct.get();
    eprintln!("{direct} calls went the direct way");
    assert!(direct >= DIRECT_AT_LEAST, "only {direct} calls went the direct way");
}
