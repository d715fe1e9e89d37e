//! One server.

use std::time::Duration;

use tenure_engine_redis::library::Library;
use tenure_engine_redis::link::{LinkError, LinkOptions, cmd};
use tenure_testkit::redis::{Aof, RedisServer, wanted};
use tokio::time::Instant;

use crate::calls::{link, link_with, touch, until_it_works};

#[tokio::test(flavor = "multi_thread")]
async fn the_library_is_loaded_by_the_first_who_misses_it_and_once() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let link = link(&server.url());
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let link = link.clone();
            tokio::spawn(async move { touch(&link, "default").await })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let loads = |server: &RedisServer| {
        let stats = server.must(&["INFO", "commandstats"]).text();
        let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_function|load:calls="));
        line.map_or(0, |line| line.split(',').next().unwrap().parse::<u32>().unwrap())
    };
    assert_eq!(loads(&server), 1);
    // It is gone: an operator flushed it, or the server came back with nothing.
    server.must(&["FUNCTION", "FLUSH"]);
    touch(&link, "default").await.unwrap();
    assert_eq!(loads(&server), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_text_under_our_name_is_replaced_at_the_first_use() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let (release, testing) = (Library::release(), Library::testing());
    let stale = release.text().replace(release.fingerprint(), &"0".repeat(40));
    server.must(&["FUNCTION", "LOAD", &stale]);
    touch(&link(&server.url()), "default").await.unwrap();
    // Both libraries stand side by side.
    touch(&link_with(&server.url(), LinkOptions::with(testing.clone())), "a").await.unwrap();
    let there = server.must(&["FUNCTION", "LIST", "WITHCODE"]);
    let texts: Vec<_> = there.list().iter().map(|library| library.field("library_code")).collect();
    assert_eq!(texts.len(), 2);
    for library in [release, testing] {
        assert!(texts.contains(&library.text().to_owned()), "{}", library.name());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_opens_without_its_server_and_says_soon_that_nothing_was_sent() {
    if !wanted() {
        return;
    }
    let mut server = RedisServer::start(Aof::Off, &[]);
    server.kill();
    let link = link(&server.url());
    let begin = Instant::now();
    let first = touch(&link, "default").await.unwrap_err();
    assert!(matches!(first, LinkError::Unavailable(_)), "{first:?}");
    assert!(begin.elapsed() < Duration::from_millis(2500), "{:?}", begin.elapsed());
    // The first second is over: now nobody waits at all.
    let begin = Instant::now();
    let second = touch(&link, "default").await.unwrap_err();
    assert!(second.to_string().contains("refused"), "{second}");
    assert!(begin.elapsed() < Duration::from_millis(200), "{:?}", begin.elapsed());
    assert!(link.down().is_some());
    server.restart();
    until_it_works(&link, "default").await;
    assert_eq!(link.down(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_and_a_restart_it_goes_on() {
    if !wanted() {
        return;
    }
    let mut server = RedisServer::start(Aof::Off, &[]);
    let link = link(&server.url());
    touch(&link, "default").await.unwrap();
    // A call that is under way when the server dies may have happened.
    let asleep = tokio::spawn({
        let link = link.clone();
        let mut slow = cmd("BLPOP");
        slow.arg(link.address().key("default", "nothing")).arg(0);
        async move { link.command("default", &slow).await }
    });
    crate::calls::until("somebody waits", || server.info("blocked_clients") == "1").await;
    server.kill();
    let said = asleep.await.unwrap().unwrap_err();
    assert!(matches!(said, LinkError::Unknown(_)), "{said:?}");
    server.restart();
    until_it_works(&link, "default").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_comes_too_late_is_unknown_and_the_connection_lives() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let link = link(&server.url());
    touch(&link, "default").await.unwrap();
    server.must(&["CLIENT", "PAUSE", "400"]);
    let begin = Instant::now();
    let keys = ["tenure:{default}m"];
    let within = Duration::from_millis(100);
    let said = link.fcall_within(within, "default", "fingerprint", &keys, &[] as &[&str]).await;
    assert!(matches!(said, Err(LinkError::Unknown(_))), "{said:?}");
    assert!(begin.elapsed() < Duration::from_millis(390), "{:?}", begin.elapsed());
    // Its answer comes now, and is nobody else's.
    touch(&link, "default").await.unwrap();
    assert_eq!(link.down(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_keep_their_code_and_lose_what_they_repeat() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let link = link(&server.url());
    touch(&link, "default").await.unwrap();
    let said = link.command("default", cmd("NOSUCH").arg("geheim")).await.unwrap_err();
    assert_eq!(said.code(), Some("ERR"));
    assert!(!format!("{said} {said:?}").contains("geheim"), "{said}");
    server.must(&["REPLICAOF", "127.0.0.1", "1"]);
    let said = link.command("default", cmd("SET").arg("a").arg("b")).await.unwrap_err();
    assert_eq!(said.code(), Some("READONLY"), "{said:?}");
    assert!(said.nothing_happened());
}
