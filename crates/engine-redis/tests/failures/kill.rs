//! SIGKILL of a redis-server, by how it keeps what it is told.

use std::time::{Duration, Instant};

use tenure_core::job::JobState;
use tenure_core::refusal::Code;
use tenure_core::requests::Extend;
use tenure_core::time::Span;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use crate::calls::*;

const TTL: Span = Span::from_s(2);

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_of_redis_that_syncs_always_loses_nothing_that_was_answered() {
    if !wanted() {
        return;
    }
    let mut server = RedisServer::start(Aof::Always, &[]);
    let engine = open(&format!("{}?forgets=never", server.url()));
    for round in 0..3 {
        let mut tasks = Vec::new();
        for task in 0..4 {
            let engine = engine.clone();
            tasks.push(tokio::spawn(async move {
                let (mut settled, mut pushed) = (Vec::new(), Vec::new());
                for n in 0..60 {
                    let id = format!("j-{round}-{task}-{n}");
                    push(&engine, job("q", &id)).await;
                    pushed.push(id);
                    let worker = format!("w-{round}-{task}-{n}");
                    let Some(lease) = take(&engine, asks("q", &worker, Span::from_s(30))).await
                    else {
                        continue;
                    };
                    assert!(settle(&engine, &lease).await.ok, "the lease was not kept");
                    settled.push(lease.job.expect("it has a job").id);
                }
                (pushed, settled)
            }));
        }
        eventually("some is done", async || {
            find(&engine, &format!("j-{round}-0-{}", 10 + 5 * round)).await.is_some()
        })
        .await;
        server.kill();
        server.restart();
        let (mut pushed, mut settled) = (Vec::new(), Vec::new());
        for task in tasks {
            let (more_pushed, more_settled) = task.await.expect("it ends");
            pushed.extend(more_pushed);
            settled.extend(more_settled);
        }
        for id in pushed {
            see(&engine, &id).await;
        }
        for id in settled {
            assert_eq!(see(&engine, id.as_str()).await.state, JobState::Succeeded, "{id}");
        }
    }
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_that_forgets_never_grants_on_after_a_kill_and_leases_have_a_fresh_ttl() {
    if !wanted() {
        return;
    }
    let mut server = RedisServer::start(Aof::Always, &[]);
    let engine = open(&format!("{}?forgets=never", server.url()));
    push(&engine, job("q", "held")).await;
    push(&engine, job("q", "dies")).await;
    let held = take(&engine, asks("q", "holder", TTL)).await.expect("a job");
    take(&engine, asks("q", "dead", TTL)).await.expect("a job");
    server.kill();
    let down = Instant::now();
    // Longer than the ttl, and no call is frozen meanwhile.
    eventually("the ttl is over", async || {
        let called = Instant::now();
        assert!(engine_is_down(&engine).await, "nothing is there to answer");
        assert!(called.elapsed() < Duration::from_secs(5), "{:?}", called.elapsed());
        down.elapsed() > TTL.std() + Duration::from_millis(500)
    })
    .await;
    server.restart();
    let back = Instant::now();
    let lock = take(&engine, locks("lock:deploy", "other", TTL)).await;
    assert!(lock.is_some(), "nothing is learnt where nothing is forgotten");
    assert!(lives(&engine, &held).await, "it did not run out while nobody could extend it");
    // A holder that died meanwhile is found out one ttl later, and that counts like any other reap.
    eventually("the dead holder is found out", async || {
        see(&engine, "dies").await.state != JobState::Running
    })
    .await;
    assert!(back.elapsed() > TTL.std() - Duration::from_millis(200), "{:?}", back.elapsed());
    assert_eq!(see(&engine, "dies").await.lost, 1);
    is_whole(&engine).await;
}

async fn engine_is_down(engine: &tenure_engine_redis::RedisEngine) -> bool {
    use tenure_engine::EngineExt as _;
    engine.run(&ns(), tenure_core::requests::GetStats).await.is_err()
}

/// What the server had at its last `SAVE` is what it has after a kill: the one sure way to make it
/// forget exactly what came later, as a power loss does to `everysec`.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_forgot_grants_nothing_exclusive_until_it_has_learnt() {
    if !wanted() {
        return;
    }
    let mut server = RedisServer::start(Aof::Off, &[]);
    let engine = open(&server.url());
    cap_of_one(&engine, "one").await;
    let capped = |id: &str| tenure_core::job::NewJob { needs: Some(needs("one")), ..job("c", id) };
    for id in ["free", "held"] {
        push(&engine, job("q", id)).await;
    }
    push(&engine, capped("capped")).await;
    let first = take(&engine, asks("q", "first", TTL)).await.expect("a job");
    settle(&engine, &first).await;
    take(&engine, asks("q", "holder", TTL)).await.expect("a job");
    push(&engine, job("q", "free-2")).await;
    server.must(&["SAVE"]);
    let lock = take(&engine, locks("lock:deploy", "locker", TTL)).await.expect("the lock");
    let run = take(&engine, asks("c", "runner", TTL)).await.expect("the job of the limit");
    push(&engine, job("q", "forgotten")).await;
    server.kill();
    server.restart();
    let begin = Instant::now();
    // What is lost is lost; who holds a forgotten lease is silent here (claims: see `reclaim`).
    assert!(find(&engine, "forgotten").await.is_none());
    // The lease that is remembered lives on, and jobs that need nothing exclusive go on.
    let mut tries = 0;
    let free = take(&engine, asks("q", "free-now", TTL)).await.expect("a job that needs nothing");
    assert!(settle(&engine, &free).await.ok);
    let (mut lock_at, mut run_at) = (None, None);
    eventually("both are granted again", async || {
        tries += 1;
        if lock_at.is_none() {
            let asked = locks("lock:deploy", &format!("l{tries}"), TTL);
            let answer = ok(&engine, asked).await;
            if let Some(again) = answer.leases.first() {
                assert!(again.fence > lock.fence, "fences rise");
                lock_at = Some(begin.elapsed());
            }
        }
        if run_at.is_none()
            && let Some(again) = take(&engine, asks("c", &format!("c{tries}"), TTL)).await
        {
            assert!(again.fence > run.fence, "fences rise");
            run_at = Some(begin.elapsed());
        }
        // Learning and the fresh ttl of the silent holder end in the same moment, which may be now.
        let reaped = see(&engine, "held").await.state != JobState::Running;
        let learnt = begin.elapsed() >= TTL.std() - Duration::from_millis(50);
        assert!(learnt || !reaped, "nothing is reaped while it learns");
        lock_at.is_some() && run_at.is_some()
    })
    .await;
    for late in [settle(&engine, &lock).await, settle(&engine, &run).await] {
        assert_eq!((late.ok, late.code), (false, Some(Code::LeaseLost)));
    }
    for at in [lock_at, run_at].into_iter().flatten() {
        // The server was up a little before it was asked first.
        assert!(at >= TTL.std() - Duration::from_millis(50), "{at:?} is too early");
        assert!(at < TTL.std() + Duration::from_secs(5), "{at:?} is too late");
    }
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ttl_that_an_extend_made_longer_is_learnt_too() {
    if !wanted() {
        return;
    }
    let mut server = RedisServer::start(Aof::Off, &[]);
    let engine = open(&server.url());
    let short = take(&engine, locks("lock:a", "a", Span::from_s(1))).await.expect("the lock");
    let longer = Span::from_s(3);
    let extended = ok(&engine, Extend { ttl: Some(longer), ..extends(&short) }).await;
    assert_eq!(extended.extended.len(), 1);
    server.must(&["SAVE"]);
    server.kill();
    server.restart();
    let begin = Instant::now();
    let mut tries = 0;
    eventually("it has learnt", async || {
        tries += 1;
        let asked = locks("lock:b", &format!("b{tries}"), Span::from_s(1));
        take(&engine, asked).await.is_some()
    })
    .await;
    let took = begin.elapsed();
    assert!(took >= longer.std() - Duration::from_millis(50), "{took:?} is too early");
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_that_syncs_every_second_keeps_what_is_older_and_learns() {
    if !wanted() {
        return;
    }
    let mut server = RedisServer::start(Aof::Everysec, &[]);
    let engine = open(&server.url());
    push(&engine, job("q", "old")).await;
    push(&engine, job("q", "free")).await;
    let held = take(&engine, asks("q", "holder", TTL)).await.expect("a job");
    let stored = Instant::now();
    eventually("it is synced", async || {
        assert!(lives(&engine, &held).await);
        stored.elapsed() > Duration::from_millis(2_100)
    })
    .await;
    server.kill();
    server.restart();
    assert_eq!(see(&engine, "old").await.state, JobState::Running);
    assert!(take(&engine, locks("lock:deploy", "a", TTL)).await.is_none(), "it may have forgotten");
    assert!(take(&engine, asks("q", "b", TTL)).await.is_some(), "other jobs go on");
    assert!(lives(&engine, &held).await);
    eventually("it has learnt", async || {
        // Each is a request of its own.
        let worker = format!("w{}", stored.elapsed().as_nanos());
        take(&engine, locks("lock:deploy", &worker, TTL)).await.is_some()
    })
    .await;
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_that_keeps_nothing_begins_anew_and_says_so() {
    if !wanted() {
        return;
    }
    let mut server = RedisServer::start(Aof::Off, &[]);
    let engine = open(&server.url());
    push(&engine, job("q", "a")).await;
    let held = take(&engine, asks("q", "holder", TTL)).await.expect("a job");
    server.kill();
    server.restart();
    assert!(find(&engine, "a").await.is_none());
    assert!(!lives(&engine, &held).await);
    push(&engine, job("q", "a")).await;
    let again = take(&engine, asks("q", "next", TTL)).await.expect("the same id is a new job");
    assert!(again.fence > held.fence, "fences follow the clock, so they rise all the same");
    assert!(settle(&engine, &again).await.ok);
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_its_holders_through_the_loss_of_everything() {
    if !wanted() {
        return;
    }
    let mut server = RedisServer::start(Aof::Off, &[]);
    let engine = open(&server.url());
    let held = take(&engine, locks("lock:deploy", "holder", TTL)).await.expect("the lock");
    let others = open(&server.url());
    assert!(take(&others, locks("lock:deploy", "other", TTL)).await.is_none());
    for round in 0..2 {
        server.kill();
        server.restart();
        let begin = Instant::now();
        let (mut beaten, mut tries) = (begin, 0);
        assert!(lives(&engine, &held).await, "round {round}");
        eventually("it has learnt, and more", async || {
            if beaten.elapsed() > TTL.std() / 5 {
                assert!(lives(&engine, &held).await, "round {round}");
                beaten = Instant::now();
            }
            tries += 1;
            let worker = format!("w{round}-{tries}");
            assert!(take(&others, locks("lock:deploy", &worker, TTL)).await.is_none());
            begin.elapsed() > 2 * TTL.std()
        })
        .await;
    }
    assert!(settle(&engine, &held).await.ok);
    let next = take(&others, locks("lock:deploy", "next", TTL)).await.expect("it is free");
    assert!(next.fence > held.fence);
    is_whole(&engine).await;
}
