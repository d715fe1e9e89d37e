//! R13: too few replicas have the writes of a leader.

use std::sync::Arc;

use tenure_core::redis_address::Address;
use tenure_node::{Node, StoreAdministration, StoreLeader, StoreSettings};
use tenure_testkit::needs_redis;
use tenure_testkit::redis::{Aof, RedisServer};

use crate::nodes::bench::Bench;

impl Bench {
    /// Does the same as `tenure store set --replicas N`.
    fn wants_replicas(&self, replicas: u32) {
        let address = Address::parse(&format!("{}?name=shop", self.redis.url())).unwrap();
        let store = StoreAdministration::open(address).unwrap();
        let settings = StoreSettings { replicas: Some(replicas), ..StoreSettings::default() };
        assert!(store.set(&settings).unwrap());
    }

    fn is_short(&self, node: &Arc<Node>, have: &str, so_many: &str) {
        self.until(node, "it says how many replicas are missing", |place| match place {
            StoreLeader::None(why) if why.contains(have) => {
                for said in ["add a replica", so_many] {
                    assert!(why.contains(said), "{why}");
                }
                assert!(!why.contains("has not answered"), "{why}");
                Some(())
            }
            _ => None,
        });
        let health = node.health();
        assert!(health.leader.contains(have), "{health:?}");
    }
}

#[test]
fn an_owner_says_how_many_replicas_lack_what_it_writes() {
    needs_redis!();
    let (bench, first, engine) = Bench::led();
    bench.push(&engine, 0..1).unwrap();
    assert_eq!(first.health().warnings, [] as [&str; 0]);
    bench.wants_replicas(2);
    bench.is_short(&first, "0 of 2 replicas", "tenure store set --replicas 0");
    bench.wants_replicas(1);
    bench.is_short(&first, "0 of 1 replicas", "tenure store set --replicas 0");
    let of = bench.redis.port().to_string();
    bench.redis.must(&["CONFIG", "SET", "repl-diskless-sync-delay", "0"]);
    let replica = RedisServer::start(Aof::Off, &["--replicaof", "127.0.0.1", &of]);
    let again = bench.here(&first);
    assert!(Arc::ptr_eq(&engine, &again), "it lost nothing");
    bench.push(&engine, 1..2).unwrap();
    assert_eq!(first.health().warnings, [] as [&str; 0]);
    bench.wants_replicas(2);
    bench.is_short(&first, "1 of 2 replicas", "tenure store set --replicas 1");
    bench.wants_replicas(0);
    bench.here(&first);
    assert_eq!(first.health().warnings, [] as [&str; 0]);
    drop(replica);
    first.close();
}

#[test]
fn a_loading_server_says_how_many_replicas_are_missing() {
    needs_redis!();
    let bench = Bench::start();
    let first = bench.member_with(&bench.redis.url(), "http://first", |options| {
        options.settings.replicas = Some(1);
    });
    bench.is_short(&first, "0 of 1 replicas", "tenure store set --replicas 0");
    let place = tenure_node::leader_sentence(&first.place().now());
    assert!(place.contains("this server has taken the store"), "{place}");
    let of = bench.redis.port().to_string();
    bench.redis.must(&["CONFIG", "SET", "repl-diskless-sync-delay", "0"]);
    let _replica = RedisServer::start(Aof::Off, &["--replicaof", "127.0.0.1", &of]);
    let engine = bench.here(&first);
    bench.push(&engine, 0..1).unwrap();
    assert_eq!(first.health().warnings, [] as [&str; 0]);
    first.close();
}
