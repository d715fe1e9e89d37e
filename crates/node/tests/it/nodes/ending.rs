//! The reported place of the store while a server ends.

use tenure_node::StoreLeader;
use tenure_testkit::needs_redis;

use crate::nodes::bench::Bench;

#[test]
fn a_server_without_a_store_ends_without_a_word_of_a_handover() {
    needs_redis!();
    let bench = Bench::start();
    // So that no server leads the store: no store is kept in such a Redis.
    bench.redis.must(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let first = bench.node("http://first");
    bench.until(&first, "it says why", |place| match place {
        StoreLeader::None(why) if why.contains("allkeys-lru") => Some(()),
        _ => None,
    });
    for _ in 0..2 {
        first.close();
        let place = tenure_node::leader_sentence(&first.place().now());
        assert_eq!(place, "no server serves the store: this server ends");
    }
}

#[test]
fn a_leader_ending_without_a_follower_claims_no_handover() {
    needs_redis!();
    let bench = Bench::start();
    let first = bench.node("http://first");
    drop(bench.here(&first));
    for _ in 0..2 {
        first.close();
        let place = tenure_node::leader_sentence(&first.place().now());
        assert!(place.contains("this server ends"), "{place}");
    }
}

#[test]
fn a_server_that_hands_over_names_no_epoch_it_does_not_know() {
    needs_redis!();
    let bench = Bench::start();
    let (first, engine, second) = bench.two();
    bench.knows(&first);
    drop(engine);
    first.close();
    let place = tenure_node::leader_sentence(&first.place().now());
    assert_eq!(place, "http://second owns the store; calls are passed on to it");
    let health = first.health().leader;
    assert_eq!(health, "http://second owns the store");
    second.close();
}
