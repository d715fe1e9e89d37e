//! The direct way of one plain job (`lua/machine/direct.lua`, `direct_push.lua`) leaves, byte by byte, what the usual way
//! leaves.
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

use pair::{Pair, Store};
use tenure_testkit::redis::{Aof, RedisCluster, RedisServer, wanted};

/// How many programs `./test` plays.
const PROGRAMS: u32 = 100;
/// Steps of one program at most.
const STEPS: usize = 120;
/// At least this many calls are to go the direct way, of some 350 that do.
const DIRECT_AT_LEAST: u64 = 50;

/// Plays programs, of which some calls are to go the direct way, and some are to be granted to a call that waits.
fn play(store: Store<'_>, programs: u32) {
    let program = proptest::collection::vec(step::step(), 1..STEPS);
    let (direct, parcels) = (Cell::new(0), Cell::new(0));
    programs::play_programs(programs, 2_000, program, |steps| {
        let mut pair = Pair::begin(store);
        for step in &steps {
            pair.take(step)?;
        }
        direct.set(direct.get() + pair.gone_directly());
        parcels.set(parcels.get() + pair.parcels);
        Ok(())
    });
    let (direct, parcels) = (direct.get(), parcels.get());
    eprintln!("{direct} calls went the direct way, {parcels} parcels came");
    assert!(direct >= DIRECT_AT_LEAST, "only {direct} calls went the direct way");
    assert!(parcels > 0, "no call that waited was granted anything");
}

#[test]
fn the_direct_way_leaves_what_the_usual_way_leaves() {
    if wanted() {
        let server = RedisServer::start(Aof::Off, &[]);
        play(Store::alone(&server), PROGRAMS);
    }
}

#[test]
fn it_does_so_in_a_cluster_too() {
    if wanted() {
        let cluster = RedisCluster::start(1);
        play(Store::clustered(cluster.server(0)), PROGRAMS);
    }
}
