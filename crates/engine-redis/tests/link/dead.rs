//! Connections that die in silence: no byte comes, and nobody says so.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tenure_engine_redis::link::{LinkError, cmd};
use tenure_testkit::redis::{Aof, RedisServer, wanted};
use tokio::time::Instant;

use crate::calls::{link, touch, until, until_it_works};
use crate::proxy::{Passing, Proxy};

/// The promise.
const NOTICED_WITHIN: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_that_died_is_replaced_within_five_seconds() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let proxy = Proxy::to(server.port()).await;
    let link = link(&proxy.url());
    touch(&link, "default").await.unwrap();
    until("both connections are there", || proxy.taken.load(Ordering::SeqCst) == 2).await;
    let begin = Instant::now();
    proxy.pass(Passing::NewOnly);
    // Nobody calls. Both connections are replaced all the same.
    until("two new connections", || proxy.taken.load(Ordering::SeqCst) == 4).await;
    assert!(begin.elapsed() < NOTICED_WITHIN, "{:?}", begin.elapsed());
    touch(&link, "default").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_on_a_dead_connection_is_told_that_it_may_have_happened() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let proxy = Proxy::to(server.port()).await;
    let link = link(&proxy.url());
    touch(&link, "default").await.unwrap();
    let mut slow = cmd("BLPOP");
    slow.arg("nothing").arg(0);
    let asleep: Vec<_> = (0..4)
        .map(|_| {
            let (link, slow) = (link.clone(), slow.clone());
            tokio::spawn(async move { link.command("default", &slow).await })
        })
        .collect();
    until("somebody waits on each", || server.info("blocked_clients") == "2").await;
    let begin = Instant::now();
    proxy.pass(Passing::Nothing);
    for call in asleep {
        let said = call.await.unwrap().unwrap_err();
        assert!(matches!(said, LinkError::Unknown(_)), "{said:?}");
    }
    assert!(begin.elapsed() < NOTICED_WITHIN, "{:?}", begin.elapsed());
    // While nothing passes, calls are told so: after the first second at once.
    until("it is known", || link.down().is_some()).await;
    let mut fast = false;
    for _ in 0..3 {
        let begin = Instant::now();
        let said = touch(&link, "default").await.unwrap_err();
        assert!(matches!(said, LinkError::Unavailable(_)), "{said:?}");
        fast = begin.elapsed() < Duration::from_millis(100);
    }
    assert!(fast);
    proxy.pass(Passing::All);
    until_it_works(&link, "default").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_on_a_connection_that_is_closed_is_told_at_once() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let proxy = Proxy::to(server.port()).await;
    let link = link(&proxy.url());
    touch(&link, "default").await.unwrap();
    let mut slow = cmd("BLPOP");
    slow.arg("nothing").arg(0);
    let asleep = tokio::spawn({
        let link = link.clone();
        async move { link.command("default", &slow).await }
    });
    until("somebody waits", || server.info("blocked_clients") == "1").await;
    let begin = Instant::now();
    proxy.cut();
    let said = asleep.await.unwrap().unwrap_err();
    assert!(matches!(said, LinkError::Unknown(_)), "{said:?}");
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    until_it_works(&link, "default").await;
}
