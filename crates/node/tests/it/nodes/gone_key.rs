//! R16: the key with the id of the store is lost, and everything else stays.

use std::thread;
use std::time::{Duration, Instant};

use tenure_core::time::Span;
use tenure_node::StoreSettings;
use tenure_testkit::needs_redis;

use crate::nodes::bench::{Bench, LONG};

#[test]
fn an_owner_writes_the_key_of_its_store_again_with_its_settings() {
    needs_redis!();
    let bench = Bench::start();
    let settings = StoreSettings { patience: Some(Span::from_s(3)), ..StoreSettings::default() };
    let first = bench.member_with(&bench.redis.url(), "http://first", |options| {
        options.settings = settings.clone();
    });
    let engine = bench.here(&first);
    bench.push(&engine, 0..3).unwrap();
    drop(engine);
    let said = || {
        let fields =
            ["id", "format", "patience", "retain_bytes", "events_bytes", "forgets", "replicas"];
        fields.map(|field| bench.redis.must(&["HGET", "{shop}:store", field]).text())
    };
    let until = |is_so: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < LONG, "{:?}", said());
            thread::sleep(Duration::from_millis(20));
        }
    };
    until(&|| said()[2] == "3s" || said()[2] == "3000000");
    let before = said();
    bench.redis.must(&["DEL", "{shop}:store"]);
    until(&|| said() == before);
    let second = bench.node("http://second");
    bench.there(&second, "http://first");
    bench.crash(&first, "http://first");
    let engine = bench.here(&second);
    assert!(bench.is_there(&engine, 2));
    second.close();
}
