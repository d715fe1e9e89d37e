//! R18: a store of a format that this release cannot read.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use tenure_node::{Node, StoreLeader};
use tenure_testkit::needs_redis;

use crate::nodes::bench::{Bench, LONG};

impl Bench {
    /// Waits until this server has reported a few times, so it has looked at the store as often. It must not serve.
    fn only_passes_on_for_a_while(&self, node: &Node) {
        let (begun, id, mut said) =
            (Instant::now(), format!("{:032x}", node.id()), BTreeSet::new());
        while said.len() < 4 {
            assert!(begun.elapsed() < LONG, "it says no more that it lives");
            let place = node.place().now();
            assert!(!matches!(place, StoreLeader::Local { .. }), "it has taken the store");
            said.insert(self.redis.must(&["HGET", "{shop}:servers", &id]).text());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn says_the_format(&self, node: &Node) {
        let begun = Instant::now();
        while !node.health().warnings.iter().any(|why| why.contains("has format 2")) {
            assert!(begun.elapsed() < LONG, "{:?}", node.health());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_server_that_cannot_read_a_format_forwards_and_never_leads() {
    needs_redis!();
    let bench = Bench::start();
    let (first, engine, second) = bench.two();
    bench.push(&engine, 0..3).unwrap();
    drop(engine);
    bench.redis.must(&["HSET", "{shop}:store", "format", "2"]);
    let third = bench.node("http://third");
    for node in [&second, &third] {
        bench.says_the_format(node);
        bench.there(node, "http://first");
    }
    bench.crash(&first, "http://first");
    for node in [&second, &third] {
        bench.only_passes_on_for_a_while(node);
    }
    let own = bench.redis.must(&["HGET", "{shop}:own", "owner"]);
    assert_eq!(own.text(), format!("{:032x}", first.id()));
    // They forward calls to the present leader.
    let other = format!("{:032x}", third.id());
    bench.redis.must(&["HSET", "{shop}:own", "owner", &other]);
    bench.there(&second, "http://third");
    bench.redis.must(&["HSET", "{shop}:own", "owner", &own.text()]);
    // They can read it again, and one of them takes it.
    bench.redis.must(&["HSET", "{shop}:store", "format", "1"]);
    third.close();
    let engine = bench.here(&second);
    assert!(bench.is_there(&engine, 2));
    assert_eq!(second.health().warnings, Vec::<String>::new());
    second.close();
}
