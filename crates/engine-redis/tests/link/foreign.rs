//! Replies that belong to no request, or to another: doubled, cut, put in by something in between. Nobody
//! is ever given another's answer, and the connection is closed at the first such reply.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tenure_core::job::NewJob;
use tenure_core::names::{JobId, JobRef, Namespace, QueueName};
use tenure_core::requests::{GetJob, Push, PushAnswer};
use tenure_engine::{CallError, EngineExt, Fault};
use tenure_engine_redis::link::{Address, Link, LinkError, LinkOptions, Value, cmd};
use tenure_engine_redis::{Options, RedisEngine};
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use crate::calls::{link_with, until, until_it_works};
use crate::proxy::{Proxy, Spoiling};

/// Callers at once.
const CALLERS: usize = 8;
/// Calls of each, at the most.
const CALLS_MAX: usize = 20_000;

/// Everything that can come between, by the names that a failure shows.
const SPOILINGS: &[(&str, Spoiling)] = &[
    ("doubled", Spoiling::Twice),
    ("cut at the front", Spoiling::Without(5)),
    ("cut by a byte", Spoiling::Without(1)),
    ("a status before it", Spoiling::Behind(b"+OK\r\n")),
    ("a text before it", Spoiling::Behind(b"$1\r\nx\r\n")),
    ("a number before it", Spoiling::Behind(b":1\r\n")),
    ("nothing before it", Spoiling::Behind(b"$-1\r\n")),
    ("an empty list before it", Spoiling::Behind(b"*0\r\n")),
    ("an error before it", Spoiling::Behind(b"-OOM command not allowed\r\n")),
    ("a redirection before it", Spoiling::Behind(b"-READONLY no\r\n")),
    ("a message before it", Spoiling::Behind(b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n")),
    ("a push of RESP3 before it", Spoiling::Behind(b">2\r\n+invalidate\r\n*0\r\n")),
    ("another protocol before it", Spoiling::Behind(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
    ("half a text before it", Spoiling::Behind(b"$9\r\nabc")),
];

/// One connection, so that one spoiled reply meets all callers.
async fn through_a_proxy() -> (RedisServer, Proxy, Link) {
    let server = RedisServer::start(Aof::Off, &[]);
    let proxy = Proxy::to(server.port()).await;
    let options = LinkOptions { connections: 1, ..LinkOptions::default() };
    let link = link_with(&proxy.url(), options);
    until_it_works(&link, "default").await;
    (server, proxy, link)
}

/// Asks for what no other call asks for.
async fn echo(link: &Link, text: &str) -> Result<Value, LinkError> {
    let mut echo = cmd("ECHO");
    echo.arg(text);
    link.command("default", &echo).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_given_the_answer_of_another() {
    if !wanted() {
        return;
    }
    let (_server, proxy, link) = through_a_proxy().await;
    let proxy = Arc::new(proxy);
    for (name, how) in SPOILINGS {
        let taken = proxy.taken.load(Ordering::SeqCst);
        let mut callers = tokio::task::JoinSet::new();
        for caller in 0..CALLERS {
            let (link, proxy) = (link.clone(), proxy.clone());
            callers.spawn(async move {
                let mut foreign = Vec::new();
                for call in 0..CALLS_MAX {
                    let text = format!("{caller} {call}");
                    match echo(&link, &text).await {
                        Ok(Value::BulkString(own)) if own == text.as_bytes() => {}
                        // Nothing was sent, or it may have happened: either is true.
                        Err(LinkError::Unavailable(_) | LinkError::Unknown(_)) => {}
                        other => foreign.push((text, other)),
                    }
                    if proxy.taken.load(Ordering::SeqCst) > taken {
                        break;
                    }
                }
                foreign
            });
        }
        proxy.spoil(how.clone());
        while let Some(foreign) = callers.join_next().await {
            assert_eq!(foreign.unwrap(), [], "{name}");
        }
        until(&format!("{name}: a new connection"), || proxy.taken.load(Ordering::SeqCst) > taken)
            .await;
        until_it_works(&link, "default").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_nobody_asked_for_ends_an_idle_connection() {
    if !wanted() {
        return;
    }
    let (_server, proxy, link) = through_a_proxy().await;
    for text in [&b"+OK\r\n"[..], b"$", b">1\r\n+x\r\n", b"\0"] {
        let taken = proxy.taken.load(Ordering::SeqCst);
        proxy.spoil(Spoiling::Unasked(text));
        until("a new connection", || proxy.taken.load(Ordering::SeqCst) > taken).await;
        until_it_works(&link, "default").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_belongs_to_another_call_does_not_say_that_nothing_happened() {
    if !wanted() {
        return;
    }
    let (server, proxy, link) = through_a_proxy().await;
    let mut add = cmd("INCR");
    add.arg("n");
    proxy.spoil(Spoiling::Behind(b"-OOM command not allowed\r\n"));
    let said = link.command("default", &add).await.unwrap_err();
    assert!(matches!(said, LinkError::Unknown(_)), "{said:?}");
    assert_eq!(server.must(&["GET", "n"]).text(), "1");
    until_it_works(&link, "default").await;
    // What the server itself refuses is known to have done nothing.
    server.must(&["SET", "n", "x"]);
    let said = link.command("default", &add).await.unwrap_err();
    assert!(said.nothing_happened(), "{said:?}");
    // A function that is not there is answered with an error too: the library is loaded, and it works.
    server.must(&["FUNCTION", "FLUSH"]);
    until_it_works(&link, "default").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_shown_the_job_of_another() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let proxy = Arc::new(Proxy::to(server.port()).await);
    let url = proxy.url();
    let address = Address::parse(&url).expect("an address");
    let engine = Arc::new(RedisEngine::open(Options::new(address)).expect("an engine"));
    let id = |caller: usize| JobId::parse(&format!("job-of-{caller}")).expect("an id");
    let queue = QueueName::parse("q").expect("a name");
    for caller in 0..CALLERS {
        let job = NewJob { id: Some(id(caller)), ..NewJob::new(queue.clone()) };
        let push = Push { jobs: vec![job], answer: PushAnswer::Ids };
        engine.run(&Namespace::main(), push).await.expect("a push");
    }
    for (name, how) in SPOILINGS {
        let taken = proxy.taken.load(Ordering::SeqCst);
        let mut callers = tokio::task::JoinSet::new();
        for caller in 0..CALLERS {
            let (engine, proxy) = (engine.clone(), proxy.clone());
            callers.spawn(async move {
                for _ in 0..CALLS_MAX {
                    let get = GetJob { job: JobRef::Id(id(caller)) };
                    match engine.run(&Namespace::main(), get).await {
                        Ok(job) => assert_eq!(job.id, id(caller), "{name}"),
                        Err(CallError::Fault(Fault::Unavailable(_) | Fault::Unknown(_))) => {}
                        other => panic!("{name}: {other:?}"),
                    }
                    if proxy.taken.load(Ordering::SeqCst) > taken {
                        break;
                    }
                }
            });
        }
        proxy.spoil(how.clone());
        while let Some(done) = callers.join_next().await {
            done.expect("its own job, or none");
        }
    }
}
