//! The servers of a store in Redis: their entries, and the secret.

use tenure_core::redis_address::Address;
use tenure_core::secret::Secret;
use tenure_redis::{RedisStore, ServerEntry, find_servers};
use tenure_testkit::needs_redis;
use tenure_testkit::redis::{Aof, RedisCluster, RedisServer};

fn server(id: u128) -> ServerEntry {
    let url = format!("http://10.0.0.{id}:7070");
    ServerEntry { id, url, release: "0.1.0".to_owned(), format: 1, applied: 0 }
}

fn ids(all: &tenure_redis::StoreServers) -> Vec<u128> {
    let mut ids: Vec<_> = all.servers.iter().map(|(_, server)| server.id).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn servers_share_entries_and_one_secret_even_in_a_full_redis() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Off, &[]);
    let store = RedisStore::open(Address::parse(&redis.url()).unwrap(), "shop").unwrap();
    let first = store.register(&server(1), &Secret::new("first")).unwrap();
    assert_eq!((ids(&first), first.secret.reveal()), (vec![1], "first"));
    redis.must(&["CONFIG", "SET", "maxmemory", "1"]);
    let second = store.register(&server(2), &Secret::new("second")).unwrap();
    assert_eq!((ids(&second), second.secret.reveal()), (vec![1, 2], "first"));
    assert!(second.servers.iter().any(|(_, one)| *one == server(1)));
    assert!(!format!("{second:?}").contains("first"), "the secret is not shown");
    store.unregister(1).unwrap();
    assert_eq!(ids(&store.register(&server(2), &Secret::new("third")).unwrap()), [2]);
}

#[test]
fn a_server_silent_for_a_minute_is_removed_by_any_other() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Off, &[]);
    let store = RedisStore::open(Address::parse(&redis.url()).unwrap(), "shop").unwrap();
    let time = redis.must(&["TIME"]);
    let now: u64 = time.list()[0].text().parse().unwrap();
    for (id, ago, stays) in [(3, 50, true), (4, 70, false)] {
        let said = format!("{}000000 0.1.0 1 0 http://10.0.0.{id}:7070", now - ago);
        redis.must(&["HSET", "{shop}:servers", &format!("{id:032x}"), &said]);
        let all = store.register(&server(1), &Secret::new("x")).unwrap();
        assert_eq!(ids(&all).contains(&id), stays, "{ago} s ago");
    }
}

fn found(address: &str) -> Result<Vec<u128>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let found = runtime.block_on(find_servers(Address::parse(address).unwrap()));
    Ok(found.map_err(|why| why.to_string())?.into_iter().map(|server| server.id).collect())
}

#[test]
fn a_client_finds_servers_leader_first_with_read_only_rights() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Off, &[]);
    // All rights that a client needs.
    let rights = "on >geheim ~{shop}:own ~{shop}:servers +hget +hgetall +time +ping +auth";
    let words: Vec<&str> = ["ACL", "SETUSER", "ann"].into_iter().chain(rights.split(' ')).collect();
    redis.must(&words);
    let given = redis.url().replace("redis://", "redis://ann:geheim@") + "?name=shop";
    assert_eq!(found(&given), Ok(vec![]));
    let store = RedisStore::open(Address::parse(&redis.url()).unwrap(), "shop").unwrap();
    for id in [1, 2, 3] {
        store.register(&server(id), &Secret::new("x")).unwrap();
    }
    assert_eq!(found(&given), Ok(vec![3, 2, 1]));
    redis.must(&["HSET", "{shop}:own", "owner", &format!("{:032x}", 1)]);
    assert_eq!(found(&given), Ok(vec![1, 3, 2]));
    for (part, other, says) in [("geheim", "other", "WRONGPASS"), ("shop", "another", "NOPERM")] {
        let why = found(&given.replace(part, other)).unwrap_err();
        assert!(why.contains(says) && !why.contains("geheim"), "{why}");
    }
    let gone = found("redis://127.0.0.1:1").unwrap_err();
    assert!(gone.contains("127.0.0.1:1"), "{gone}");
}

#[test]
fn the_servers_of_a_store_are_found_through_any_cluster_node() {
    needs_redis!();
    let cluster = RedisCluster::start(2);
    let store = RedisStore::open(Address::parse(&cluster.url()).unwrap(), "tenure").unwrap();
    store.register(&server(1), &Secret::new("x")).unwrap();
    for port in cluster.ports() {
        assert_eq!(found(&format!("redis-cluster://127.0.0.1:{port}")), Ok(vec![1]), "{port}");
    }
}
