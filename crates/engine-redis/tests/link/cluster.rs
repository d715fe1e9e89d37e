//! A cluster: namespaces in many slots, on many primaries.

use std::collections::BTreeSet;
use std::time::Duration;

use tenure_engine_redis::link::{Value, cmd};
use tenure_testkit::redis::{RedisCluster, wanted};
use tokio::time::timeout;

use crate::calls::{link, touch, until, until_it_works};

#[tokio::test(flavor = "multi_thread")]
async fn every_namespace_finds_its_primary_and_each_gets_the_library() {
    if !wanted() {
        return;
    }
    let mut cluster = RedisCluster::start(3);
    // One node is enough to know all.
    let link = link(&format!("redis-cluster://127.0.0.1:{}", cluster.ports()[1]));
    until_it_works(&link, "default").await;
    let mut owners = BTreeSet::new();
    for number in 0..30 {
        let namespace = format!("n-{number}");
        touch(&link, &namespace).await.unwrap();
        let key = link.address().key(&namespace, "m");
        let there = link.command(&namespace, cmd("SET").arg(&key).arg("1")).await.unwrap();
        assert_eq!(there, Value::Okay);
        owners.insert(cluster.owner(cluster.slot_of(&key)));
    }
    assert_eq!(owners.len(), 3);
    let answers = link.command_all(&cmd("DBSIZE")).await.unwrap();
    let kept: i64 = answers
        .iter()
        .map(|(_, answer)| match answer {
            Ok(Value::Int(keys)) => *keys,
            other => panic!("{other:?}"),
        })
        .sum();
    assert_eq!((answers.len(), kept), (3, 30));

    // Who takes a node for a server of its own is told so, and not sent around.
    let elsewhere = (cluster.owner(cluster.slot_of(&link.address().key("n-0", "m"))) + 1) % 3;
    let alone = crate::calls::link(&cluster.server(elsewhere).url());
    let said = touch(&alone, "n-0").await.unwrap_err();
    assert_eq!(said.code(), Some("MOVED"));
    assert!(said.to_string().contains("write redis-cluster://"), "{said}");

    // A slot moves while the link has the old map: the call finds it, before and after the end.
    let key = link.address().key("n-0", "m");
    let slot = cluster.slot_of(&key);
    let from = cluster.owner(slot);
    let to = (from + 1) % 3;
    let half = cluster.begin_move(slot, from, to);
    while cluster.move_some(half) > 0 {}
    touch(&link, "n-0").await.unwrap();
    let mut get = cmd("GET");
    get.arg(&key);
    assert_eq!(link.command("n-0", &get).await.unwrap(), Value::BulkString(b"1".to_vec()));
    cluster.finish_move(half);
    assert_eq!(link.command("n-0", &get).await.unwrap(), Value::BulkString(b"1".to_vec()));

    // One primary dies: its namespaces are told so, and the others do not notice.
    let lost = cluster.owner(cluster.slot_of(&link.address().key("n-0", "m")));
    let other = (0..30)
        .map(|number| format!("n-{number}"))
        .find(|name| cluster.owner(cluster.slot_of(&link.address().key(name, "m"))) != lost)
        .unwrap();
    cluster.server_mut(lost).kill();
    until("it is known", || link.down().is_some()).await;
    let said = touch(&link, "n-0").await.unwrap_err();
    assert!(said.nothing_happened(), "{said:?}");
    for _ in 0..20 {
        // By now the cluster may know that it is not whole, and refuse; but nobody waits.
        let answer = timeout(Duration::from_millis(500), touch(&link, &other)).await;
        let answer = answer.expect("the others do not freeze");
        assert!(answer.is_ok() || answer.unwrap_err().code() == Some("CLUSTERDOWN"));
    }
    cluster.server_mut(lost).restart();
    cluster.await_whole();
    until_it_works(&link, "n-0").await;
    until_it_works(&link, &other).await;
    until("all is well", || link.down().is_none()).await;
}
