//! One primary that the sentinels know, and the next one.

use std::time::Duration;

use tenure_engine_redis::link::{LinkError, Overheard, Value, cmd};
use tenure_testkit::redis::{RedisSentinel, wanted};
use tokio::time::Instant;

use crate::calls::{DEADLINE, heard, link, message, next, next_message, touch, until_it_works};

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failover_calls_and_messages_come_from_the_new_primary() {
    if !wanted() {
        return;
    }
    let mut servers = RedisSentinel::start();
    let link = link(&servers.url());
    until_it_works(&link, "default").await;
    let (listening, mut events) = link.listen();
    listening.subscribe("news");
    heard(servers.primary(), "news").await;
    while next(&mut events).await != (Overheard::Gap { channel: None }) {}
    let old = servers.kill_primary();
    // Until there is a new one, calls are told so and never freeze.
    let begin = Instant::now();
    let mut longest = Duration::ZERO;
    loop {
        let called = Instant::now();
        let answer = touch(&link, "default").await;
        longest = longest.max(called.elapsed());
        match answer {
            Ok(()) => break,
            Err(LinkError::Unknown(_)) => {}
            Err(why) => assert!(why.nothing_happened()),
        }
        assert!(begin.elapsed() < DEADLINE, "no new primary");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(longest < Duration::from_millis(2500), "{longest:?}");
    let new = servers.await_failover(old);
    let there = link.command("default", cmd("CONFIG").arg("GET").arg("port")).await.unwrap();
    let Value::Array(there) = there else { panic!("{there:?}") };
    assert_eq!(there[1], Value::BulkString(new.to_string().into_bytes()));
    // The subscription moved as well.
    while next(&mut events).await != (Overheard::Gap { channel: None }) {}
    link.command("default", cmd("PUBLISH").arg("news").arg("x")).await.unwrap();
    assert_eq!(next_message(&mut events).await, message("news", "x"));
    // The old one comes back as a replica, and nobody goes there.
    servers.restart(old);
    servers.await_replica();
    touch(&link, "default").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_that_do_not_answer_are_passed_over() {
    if !wanted() {
        return;
    }
    let servers = RedisSentinel::start();
    let port = servers.sentinel_ports()[2];
    let url = format!("redis-sentinel://127.0.0.1:1,127.0.0.1:{port}/{}", servers.name());
    until_it_works(&link(&url), "default").await;
    let unknown = link(&format!("redis-sentinel://127.0.0.1:{port}/nobody"));
    let said = touch(&unknown, "default").await.unwrap_err();
    assert!(said.to_string().contains("No such master"), "{said}");
}
