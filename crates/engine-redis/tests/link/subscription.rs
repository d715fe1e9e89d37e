//! Messages, and the honest word that some may be missing.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tenure_engine_redis::link::Overheard;
use tenure_testkit::redis::{Aof, RedisServer, wanted};
use tokio::time::{Instant, timeout};

use crate::calls::{DEADLINE, heard, link, message, next, until};
use crate::proxy::{Passing, Proxy};

#[tokio::test(flavor = "multi_thread")]
async fn messages_come_from_the_channels_that_are_wanted_and_from_no_other() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let link = link(&server.url());
    let (listening, mut events) = link.listen();
    assert_eq!(next(&mut events).await, Overheard::Gap { channel: None });
    for channel in ["a", "b"] {
        listening.subscribe(channel);
        assert_eq!(next(&mut events).await, Overheard::Gap { channel: Some(channel.to_owned()) });
    }
    listening.subscribe("a");
    server.must(&["PUBLISH", "a", "1"]);
    server.must(&["PUBLISH", "c", "2"]);
    server.must(&["PUBLISH", "b", "3"]);
    assert_eq!(next(&mut events).await, message("a", "1"));
    assert_eq!(next(&mut events).await, message("b", "3"));
    listening.unsubscribe("a");
    until("nobody listens to a", || server.must(&["PUBLISH", "a", "4"]).text() == "0").await;
    server.must(&["PUBLISH", "b", "5"]);
    // A 4 may have been published before the end of the listening.
    let mut last = next(&mut events).await;
    while last == message("a", "4") {
        last = next(&mut events).await;
    }
    assert_eq!(last, message("b", "5"));
    assert_eq!(listening.down(), None);
    drop(listening);
    until("nobody listens to b", || server.must(&["PUBLISH", "b", "6"]).text() == "0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_a_gap_is_told_and_messages_come_again() {
    if !wanted() {
        return;
    }
    let mut server = RedisServer::start(Aof::Off, &[]);
    let link = link(&server.url());
    let (listening, mut events) = link.listen();
    listening.subscribe("a");
    while next(&mut events).await != (Overheard::Gap { channel: None }) {}
    server.kill();
    until("it is known", || listening.down().is_some()).await;
    // What is wanted meanwhile is there as well.
    listening.subscribe("b");
    server.restart();
    while next(&mut events).await != (Overheard::Gap { channel: None }) {}
    for channel in ["a", "b"] {
        assert_eq!(server.must(&["PUBLISH", channel, "1"]).text(), "1");
        assert_eq!(next(&mut events).await, message(channel, "1"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_subscription_that_died_is_replaced_within_five_seconds() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let proxy = Proxy::to(server.port()).await;
    let link = link(&proxy.url());
    let (listening, mut events) = link.listen();
    listening.subscribe("a");
    while !matches!(next(&mut events).await, Overheard::Gap { .. }) {}
    until("all three connections", || proxy.taken.load(Ordering::SeqCst) == 3).await;
    let begin = Instant::now();
    proxy.pass(Passing::NewOnly);
    while next(&mut events).await != (Overheard::Gap { channel: None }) {}
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    server.must(&["PUBLISH", "a", "1"]);
    assert_eq!(next(&mut events).await, message("a", "1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_too_slowly_is_told_of_a_gap_and_loses_only_what_came_between() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let link = link(&server.url());
    let (listening, mut events) = link.listen();
    listening.subscribe("a");
    heard(&server, "a").await;
    // Far more than is kept for a reader who does not read.
    let flood = "for i = 1, 100000 do redis.call('PUBLISH', 'a', i) end";
    server.must(&["EVAL", flood, "0"]);
    until("no room is left", || events.len() == events.max_capacity()).await;
    let mut messages = 0;
    loop {
        match next(&mut events).await {
            Overheard::Message { .. } => messages += 1,
            Overheard::Gap { channel: None } if messages > 0 => break,
            Overheard::Gap { .. } => {}
        }
    }
    assert!(messages < 100_000, "{messages}");
    // The flood may still go on, and then this is lost as well; what comes after it is not.
    let (last, begin) = (message("a", "last"), Instant::now());
    loop {
        server.must(&["PUBLISH", "a", "last"]);
        let come = async { while next(&mut events).await != last {} };
        if timeout(Duration::from_millis(200), come).await.is_ok() {
            break;
        }
        assert!(begin.elapsed() < DEADLINE, "no message comes any more");
    }
}
