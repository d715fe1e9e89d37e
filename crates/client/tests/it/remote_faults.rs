//! The remote engine against bad answers, and against no answer at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::scripted::{Event, Scripted, Then, ok, remote};
use tenure::core::job::Need;
use tenure::core::requests::{
    AddResources, Audit, GetQueue, GetStats, Lease, ResumeQueue, SyncResources,
};
use tenure::core::settings::NewResource;
use tenure::{
    CallError, Code, Engine, EngineExt, Fault, Json, LimitName, Namespace, PoolName, QueueName,
    Refusal, ResourceId, Span,
};
use tokio::net::TcpListener;

const AUDIT: &str = r#"{"ok":true,"checked":1,"faults":[],"new":{"field":1}}"#;

fn main_space() -> Namespace {
    Namespace::main()
}

fn queue() -> QueueName {
    QueueName::parse("q").unwrap()
}

fn problem(status: u16, code: &str) -> Then {
    let body = format!(
        r#"{{"type":"t","title":"T","status":{status},"code":"{code}","detail":"d","hint":"h",
            "pointer":"/a/0","index":3,"line":4,"job":"j1","caller":"crawler","later":[1]}}"#
    );
    Then::Answer(status, "content-type: application/problem+json\r\nretry-after: 7\r\n", body)
}

fn whole(code: Code) -> Refusal {
    let mut no = Refusal::heard(code, "d", "h").at("/a/0").item(3).on_line(4);
    no.job = Some("j1".to_owned());
    no.caller = Some("crawler".to_owned());
    no.retry_after_s = Some(7);
    no
}

#[tokio::test]
async fn a_grant_that_cannot_be_undone_over_http_is_released() {
    let mut server = Scripted::start(|_| ok(r#"{"settled":[]}"#)).await;
    server.remote().undo(&main_space(), vec!["l1".to_owned(), "l2".to_owned()]);
    let seen = server.request().await;
    assert_eq!(seen.line, "POST /v1/leases/settle");
    let items = r#"[{"lease":"l1","outcome":"released"},{"lease":"l2","outcome":"released"}]"#;
    assert_eq!(seen.body, format!(r#"{{"settle":{items}}}"#));
    // Without a runtime nothing can send it, and the ttl ends them.
    let remote = server.remote();
    let outside = std::thread::spawn(move || remote.undo(&main_space(), vec!["l1".to_owned()]));
    outside.join().unwrap();
}

/// The answers to a call that reads and to one that changes something.
async fn both(then: impl Fn() -> Then + Send + 'static) -> [CallError; 2] {
    let server = Scripted::start(move |_| then()).await;
    let remote = server.remote();
    let reads = remote.run(&main_space(), GetQueue { queue: queue() }).await.unwrap_err();
    let sets = remote.run(&main_space(), ResumeQueue { queue: queue() }).await.unwrap_err();
    [reads, sets]
}

#[tokio::test]
async fn a_problem_is_a_refusal_with_all_its_members() {
    for code in Code::ALL.iter().copied() {
        for error in both(move || problem(code.status(), code.as_str())).await {
            match code {
                Code::Unauthorized | Code::ForbiddenOrigin => {
                    assert_eq!(error, CallError::Fault(Fault::Denied(whole(code))));
                }
                Code::OutcomeUnknown | Code::StoreUnavailable | Code::Internal => {
                    assert!(matches!(error, CallError::Fault(_)), "{code}: {error:?}");
                }
                _ => assert_eq!(error, CallError::Refused(whole(code))),
            }
        }
    }
}

#[tokio::test]
async fn what_is_no_refusal_is_a_fault_of_the_right_kind() {
    let unavailable = |error: &CallError| matches!(error, CallError::Fault(Fault::Unavailable(_)));
    let store_away = |error: &CallError| matches!(error, CallError::Fault(Fault::StoreAway(_)));
    let unknown = |error: &CallError| matches!(error, CallError::Fault(Fault::Unknown(_)));
    let broken = |error: &CallError| matches!(error, CallError::Fault(Fault::Broken(_)));
    let denied = |error: &CallError| matches!(error, CallError::Fault(Fault::Denied(_)));
    type Is<'a> = &'a dyn Fn(&CallError) -> bool;
    type Row<'a> = (&'a str, fn() -> Then, Is<'a>, Is<'a>);
    let rows: [Row<'_>; 10] = [
        ("outcome_unknown", || problem(503, "outcome_unknown"), &unavailable, &unknown),
        ("store_unavailable", || problem(503, "store_unavailable"), &store_away, &store_away),
        ("internal", || problem(500, "internal"), &broken, &broken),
        ("a later code", || problem(422, "not_yet_invented"), &broken, &broken),
        ("a proxy", || Then::Answer(502, "", "<html>".into()), &unavailable, &unknown),
        ("another program", || Then::Answer(404, "", "<html>".into()), &unavailable, &unavailable),
        ("a proxy's 401", || Then::Answer(401, "", String::new()), &denied, &denied),
        (
            "a redirect",
            || Then::Answer(302, "location: /x\r\n", "".into()),
            &unavailable,
            &unavailable,
        ),
        ("not JSON", || ok("<html>geheim"), &broken, &broken),
        ("a cut connection", || Then::Close, &unavailable, &unknown),
    ];
    for (what, then, reads, sets) in rows {
        let [of_read, of_set] = both(then).await;
        assert!(reads(&of_read), "{what}, reading: {of_read:?}");
        assert!(sets(&of_set), "{what}, setting: {of_set:?}");
        assert!(!format!("{of_read} {of_set:?}").contains("geheim"), "{of_read}");
    }
}

#[tokio::test]
async fn where_nobody_listens_nothing_happened() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let remote = remote(port, None);
    assert_eq!(remote.health().degraded, None);
    let error = remote.run(&main_space(), ResumeQueue { queue: queue() }).await.unwrap_err();
    assert!(matches!(error, CallError::Fault(Fault::Unavailable(_))), "{error:?}");
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
    assert!(remote.health().degraded.is_some());
}

#[tokio::test]
async fn every_call_carries_namespace_and_token_and_no_debug_shows_it() {
    let mut server = Scripted::start(|_| ok(AUDIT)).await;
    let remote = remote(server.port, Some("geheim"));
    let audit = remote.run(&Namespace::parse("shop-2").unwrap(), Audit::default()).await.unwrap();
    assert!(audit.ok);
    let seen = server.request().await;
    assert_eq!(seen.headers["tenure-namespace"], "shop-2");
    assert_eq!(seen.headers["authorization"], "Bearer geheim");
    assert_eq!(seen.headers["host"], format!("127.0.0.1:{}", server.port));
    assert!(seen.headers["user-agent"].starts_with("tenure/"));
    assert!(!seen.headers.contains_key("content-type"));
    assert!(!format!("{remote:?}").contains("geheim"));
}

#[tokio::test]
async fn connections_are_kept_and_a_dead_one_costs_no_call() {
    let count = Arc::new(AtomicUsize::new(0));
    let mut server = Scripted::start({
        let count = count.clone();
        // Every third request finds its connection closed, as by a server that restarts.
        move |_| match count.fetch_add(1, Ordering::SeqCst) % 3 {
            2 => Then::Close,
            _ => ok(AUDIT),
        }
    })
    .await;
    let remote = server.remote();
    for _ in 0..6 {
        remote.run(&main_space(), Audit::default()).await.unwrap();
    }
    let mut connections = Vec::new();
    for _ in 0..count.load(Ordering::SeqCst) {
        connections.push(server.request().await.connection);
    }
    assert_eq!(connections, [0, 0, 0, 1, 1, 1, 2, 2]);
}

#[tokio::test]
async fn an_aborted_call_closes_its_connection() {
    let mut server = Scripted::start(|_| Then::Silence).await;
    let remote = server.remote();
    let need = Need::Limit { limit: LimitName::parse("lock:a").unwrap(), weight: 1, cost: 1 };
    let mut lease = Lease::needs(vec![need]);
    lease.wait = Span::from_s(60);
    let call = tokio::spawn(async move { remote.run(&main_space(), lease).await });
    let seen = server.request().await;
    call.abort();
    match server.next().await {
        Event::Gone(connection) => assert_eq!(connection, seen.connection),
        Event::Request(seen) => panic!("{seen:?}"),
    }
}

#[tokio::test]
async fn only_a_set_may_exceed_a_body_and_is_then_sent_in_lines() {
    let answer = r#"{"added":200,"updated":0,"unchanged":0,"retired":0,"retiring":0}"#;
    let mut server = Scripted::start(move |_| ok(answer)).await;
    let remote = server.remote();
    let pool = PoolName::parse("accounts").unwrap();
    let one = |n: usize| NewResource {
        id: ResourceId::parse(&format!("r{n}")).unwrap(),
        data: Json::from("x".repeat(60_000).as_str()),
        tags: Vec::new(),
        slots: 1,
    };
    let sync = SyncResources {
        pool: pool.clone(),
        resources: (0..200).map(one).collect(),
        meant: Default::default(),
        version: None,
    };
    let synced = remote.run(&main_space(), sync).await.unwrap();
    assert_eq!(synced.added, 200);
    let seen = server.request().await;
    assert_eq!(seen.headers["content-type"], "application/x-ndjson");
    assert_eq!(seen.body.lines().count(), 200);
    assert!(seen.body.lines().all(|line| line.starts_with(r#"{"id":"r"#)));

    let add = AddResources { pool, resources: (0..200).map(one).collect() };
    let error = remote.run(&main_space(), add).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::TooLarge));
}

#[test]
fn connections_belong_to_the_runtime_that_drives_them() {
    // The first runtime stands still while the second calls: they must not share connections.
    let still = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server_runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut server = server_runtime.block_on(Scripted::start(|_| ok(AUDIT)));
    let remote = server.remote();
    still.block_on(remote.run(&main_space(), Audit::default())).unwrap();
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let call = async {
        tokio::time::timeout(Duration::from_secs(10), remote.run(&main_space(), Audit::default()))
            .await
    };
    other.block_on(call).unwrap().unwrap();
    still.block_on(remote.run(&main_space(), Audit::default())).unwrap();
    let seen = |server: &mut Scripted| server_runtime.block_on(server.request()).connection;
    let connections = [seen(&mut server), seen(&mut server), seen(&mut server)];
    assert_eq!(connections, [0, 1, 0]);
}

#[tokio::test]
async fn what_is_unknown_in_an_answer_is_ignored() {
    let body = r#"{"jobs":{"ready":1},"queues":{},"leases":0,"oldest_ready_at":null,
                   "store":{"kind":"embedded","bytes":1,"files":2},"shape":[[]]}"#;
    let server = Scripted::start(move |_| ok(body)).await;
    assert_eq!(server.remote().run(&main_space(), GetStats).await.unwrap().leases, 0);
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_not_reached_by_https() {
    let server = Scripted::start(|_| ok(AUDIT)).await;
    let url = format!("https://127.0.0.1:{}", server.port).parse();
    let Ok(tenure::StoreUrl::Server(url)) = url else { unreachable!() };
    let remote = tenure::Remote::open(&url, None).unwrap();
    let error = remote.run(&main_space(), ResumeQueue { queue: queue() }).await.unwrap_err();
    assert!(matches!(error, CallError::Fault(Fault::Unavailable(_))), "{error:?}");
}
