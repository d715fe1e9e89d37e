//! Several servers of one store: which one is called, when it is left, and which leader is
//! followed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::scripted::{Scripted, Then, ok};
use tenure::core::job::NewJob;
use tenure::core::requests::{Audit, Push, PushAnswer, ResumeQueue};
use tenure::remote::{Callee, Trust};
use tenure::{CallError, Client, Code, EngineExt, Fault, Namespace, QueueName, Remote, Secret};
use tenure::{ServerUrl, StoreUrl};
use tokio::net::TcpListener;

const AUDIT: &str = r#"{"ok":true,"checked":1,"faults":[]}"#;

/// A server that counts its calls, and answers each by a closure.
struct Double {
    port: u16,
    calls: Arc<AtomicUsize>,
    listens: Scripted,
    is_gone: Arc<AtomicBool>,
}

impl Double {
    async fn start(mut says: impl FnMut() -> Then + Send + 'static) -> Self {
        let (calls, is_gone) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, gone) = (calls.clone(), is_gone.clone());
        let listens = Scripted::start(move |_| {
            if gone.load(Ordering::SeqCst) {
                return Then::Close;
            }
            count.fetch_add(1, Ordering::SeqCst);
            says()
        })
        .await;
        Double { port: listens.port, calls, listens, is_gone }
    }

    async fn well() -> Self {
        Double::start(|| ok(AUDIT)).await
    }

    /// It refuses, with a `Retry-After` that is too long to wait: another server needs no wait.
    async fn refusing(code: Code) -> Self {
        Double::start(move || refusal(code)).await
    }

    /// It forwards calls to this leader.
    async fn naming(owner: &Double) -> Self {
        let header = format!("tenure-owner: {}\r\n", owner.url());
        let header: &'static str = Box::leak(header.into_boxed_str());
        Double::start(move || Then::Answer(200, header, AUDIT.to_owned())).await
    }

    /// From now on it refuses connections, and closes those that it has.
    fn is_stopped(&self) {
        self.is_gone.store(true, Ordering::SeqCst);
        self.listens.stop();
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

fn refusal(code: Code) -> Then {
    let body = format!(r#"{{"code":"{code}","detail":"d","hint":"h"}}"#);
    Then::Answer(code.status(), "retry-after: 3600\r\n", body)
}

fn list<'a>(doubles: impl IntoIterator<Item = &'a Double>) -> String {
    let urls: Vec<String> = doubles.into_iter().map(Double::url).collect();
    urls.join(",")
}

fn remote(list: &str, token: Option<&str>) -> Remote {
    let url: StoreUrl = list.parse().unwrap();
    let callee = Callee::of(&url).unwrap();
    Remote::trusting(callee, token.map(Secret::new).as_ref(), &Trust::default()).unwrap()
}

async fn audit(remote: &Remote) -> Result<(), CallError> {
    remote.run(&Namespace::main(), Audit::default()).await.map(drop)
}

fn counts<const N: usize>(doubles: [&Double; N]) -> [usize; N] {
    doubles.map(Double::calls)
}

async fn nobody_at() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[tokio::test]
async fn the_first_that_answers_is_used_and_stays() {
    let (second, third) = (Double::well().await, Double::well().await);
    let remote = remote(&format!("{},{}", nobody_at().await, list([&second, &third])), None);
    for _ in 0..3 {
        audit(&remote).await.unwrap();
    }
    assert_eq!(counts([&second, &third]), [3, 0]);
}

#[tokio::test]
async fn a_stopped_server_is_left_for_the_next_one_in_the_list() {
    let (first, second) = (Double::well().await, Double::well().await);
    let remote = remote(&list([&first, &second]), None);
    audit(&remote).await.unwrap();
    first.is_stopped();
    audit(&remote).await.unwrap();
    audit(&remote).await.unwrap();
    assert_eq!(counts([&first, &second]), [1, 2]);
    second.is_stopped();
    let error = audit(&remote).await.unwrap_err();
    assert!(matches!(error, CallError::Fault(Fault::Unavailable(_))), "{error:?}");
    for url in [first.url(), second.url()] {
        assert!(error.to_string().contains(&url), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_serve_is_left_at_once_by_every_call() {
    for code in [Code::Draining, Code::NotOwner, Code::StoreUnavailable] {
        let (first, second) = (Double::refusing(code).await, Double::well().await);
        let called = remote(&list([&first, &second]), None);
        audit(&called).await.unwrap();
        assert_eq!(counts([&first, &second]), [1, 1], "{code}");
        // Nothing happened.
        let called = remote(&list([&first, &second]), None);
        let _ = called.run(&Namespace::main(), push_without_an_id()).await;
        assert_eq!(counts([&first, &second]), [2, 2], "{code}");
    }
}

#[tokio::test]
async fn a_refusal_that_all_servers_would_repeat_moves_nobody() {
    for code in [Code::Overloaded, Code::StoreFull, Code::OutcomeUnknown, Code::Internal] {
        let (first, second) = (Double::refusing(code).await, Double::well().await);
        let remote = remote(&list([&first, &second]), None);
        audit(&remote).await.unwrap_err();
        audit(&remote).await.unwrap_err();
        assert_eq!(counts([&first, &second]), [2, 0], "{code}");
    }
}

#[tokio::test]
async fn each_is_asked_once_before_a_call_is_given_up() {
    let one = || Double::refusing(Code::StoreUnavailable);
    let (first, second, third) = (one().await, one().await, one().await);
    let remote = remote(&list([&first, &second, &third]), None);
    let error = audit(&remote).await.unwrap_err();
    assert!(matches!(error, CallError::Fault(Fault::StoreAway(_))), "{error:?}");
    assert_eq!(counts([&first, &second, &third]), [1, 1, 1]);
}

/// A call that could do more a second time.
fn push_without_an_id() -> Push {
    let jobs = vec![NewJob::new(QueueName::parse("q").unwrap())];
    Push { jobs, answer: PushAnswer::Ids }
}

#[tokio::test]
async fn a_call_in_doubt_goes_to_another_server_only_if_repeatable() {
    let lost: [fn() -> Then; 2] = [|| Then::Close, || Then::Answer(502, "", "<html>".to_owned())];
    for then in lost {
        let (first, second) = (Double::start(then).await, Double::well().await);
        let called = remote(&list([&first, &second]), None);
        let error = called.run(&Namespace::main(), push_without_an_id()).await.unwrap_err();
        assert!(matches!(error, CallError::Fault(Fault::Unknown(_))), "{error:?}");
        assert_eq!(counts([&first, &second]), [1, 0]);
        // The next call goes to the next server.
        audit(&called).await.unwrap();
        assert_eq!(counts([&first, &second]), [1, 1]);
        // A client retries a call that sets something, with the same ids.
        let (first, second) = (Double::start(then).await, Double::well().await);
        let called = remote(&list([&first, &second]), None);
        let client = Client::new(Arc::new(called), Namespace::main());
        let _ = client.run(ResumeQueue { queue: QueueName::parse("q").unwrap() }).await;
        assert_eq!(counts([&first, &second]), [1, 1]);
    }
}

#[tokio::test]
async fn a_client_follows_a_named_leader_and_returns_when_it_is_gone() {
    let owner = Double::well().await;
    let (first, second) = (Double::naming(&owner).await, Double::well().await);
    let called = remote(&list([&first, &second]), Some("a-token-of-at-least-32-characters-long"));
    for _ in 0..3 {
        audit(&called).await.unwrap();
    }
    assert_eq!(counts([&first, &second, &owner]), [1, 0, 2]);
    owner.is_stopped();
    // Each of these answers names it again, and it is not tried: a try would not show as a call.
    for _ in 0..3 {
        audit(&called).await.unwrap();
    }
    assert_eq!(counts([&first, &second, &owner]), [4, 0, 2]);
    let shown = format!("{called:?}");
    assert_eq!(shown, format!("Remote({})", list([&first, &second])));
}

#[tokio::test]
async fn a_draining_leader_is_left_and_followed_again_when_named() {
    let drains = Arc::new(AtomicBool::new(false));
    let draining = drains.clone();
    let owner = Double::start(move || {
        if draining.load(Ordering::SeqCst) { refusal(Code::Draining) } else { ok(AUDIT) }
    })
    .await;
    let (first, second) = (Double::naming(&owner).await, Double::well().await);
    let called = remote(&list([&first, &second]), None);
    audit(&called).await.unwrap();
    drains.store(true, Ordering::SeqCst);
    audit(&called).await.unwrap();
    drains.store(false, Ordering::SeqCst);
    audit(&called).await.unwrap();
    assert_eq!(counts([&first, &second, &owner]), [2, 0, 2]);
}

#[tokio::test]
async fn a_client_of_one_address_stays_there() {
    let owner = Double::well().await;
    let only = Double::naming(&owner).await;
    let called = remote(&only.url(), None);
    audit(&called).await.unwrap();
    audit(&called).await.unwrap();
    assert_eq!(counts([&only, &owner]), [2, 0]);
    let server: Option<ServerUrl> = called.server();
    assert_eq!(server.map(|server| server.to_string()), Some(only.url()));
}

#[tokio::test]
async fn a_client_is_connected_to_a_list_as_to_one() {
    let second = Double::well().await;
    let list = format!("{},{}", nobody_at().await, second.url());
    let client = Client::connect(&list).token(Secret::new("geheim")).await.unwrap();
    client.run(Audit::default()).await.unwrap();
    assert_eq!(second.calls(), 1);
}

#[cfg(feature = "redis")]
mod searched {
    use super::*;
    use tenure_testkit::needs_redis;
    use tenure_testkit::redis::{Aof, RedisServer};

    /// Registers a server as servers do; `ago` seconds ago.
    fn written(redis: &RedisServer, id: u32, url: &str, ago: u64) {
        let time = redis.must(&["TIME"]);
        let now: u64 = time.list()[0].text().parse().unwrap();
        let said = format!("{}000000 0.1.0 1 0 {url}", now - ago);
        redis.must(&["HSET", "{shop}:servers", &format!("{id:032x}"), &said]);
    }

    fn owned_by(redis: &RedisServer, id: u32) {
        redis.must(&["HSET", "{shop}:own", "owner", &format!("{id:032x}")]);
    }

    #[tokio::test]
    async fn the_servers_of_a_store_are_looked_up_again_when_all_are_gone() {
        needs_redis!();
        let redis = RedisServer::start(Aof::Off, &[]);
        let store = format!("{}?name=shop", redis.url());
        let (other, owner) = (Double::well().await, Double::well().await);
        written(&redis, 1, &other.url(), 0);
        written(&redis, 2, &owner.url(), 1);
        // An hour ago.
        written(&redis, 3, &nobody_at().await, 3_600);
        owned_by(&redis, 2);
        let called = remote(&store, None);
        assert_eq!(called.server(), None);
        audit(&called).await.unwrap();
        assert_eq!(counts([&other, &owner]), [0, 1]);
        owner.is_stopped();
        audit(&called).await.unwrap();
        assert_eq!(counts([&other, &owner]), [1, 1]);
        other.is_stopped();
        // Both are still registered.
        let later = Double::well().await;
        written(&redis, 4, &later.url(), 0);
        audit(&called).await.unwrap();
        audit(&called).await.unwrap();
        assert_eq!(later.calls(), 2);
        let client = Client::connect(&store).token(Secret::new("geheim")).await.unwrap();
        owned_by(&redis, 4);
        client.run(Audit::default()).await.unwrap();
        assert_eq!(later.calls(), 3);
    }

    #[tokio::test]
    async fn a_client_with_an_authority_calls_no_server_in_clear() {
        needs_redis!();
        let redis = RedisServer::start(Aof::Off, &[]);
        let store = format!("{}?name=shop", redis.url());
        let listens = Double::well().await;
        written(&redis, 1, &listens.url(), 0);
        owned_by(&redis, 1);
        let url: StoreUrl = store.parse().unwrap();
        let trust = Trust { ca: Some("ca.pem".into()), identity: None };
        let token = Some(Secret::new("geheim"));
        let called = Remote::trusting(Callee::of(&url).unwrap(), token.as_ref(), &trust).unwrap();
        let error = audit(&called).await.unwrap_err();
        assert!(error.to_string().contains("none is called in clear"), "{error}");
        assert_eq!(listens.calls(), 0);
        audit(&remote(&store, None)).await.unwrap();
        assert_eq!(listens.calls(), 1, "without one it is");
    }

    #[tokio::test]
    async fn calls_that_need_a_server_at_the_same_time_search_once() {
        needs_redis!();
        let redis = RedisServer::start(Aof::Off, &[]);
        let server = Double::well().await;
        written(&redis, 1, &server.url(), 0);
        let called = remote(&format!("{}?name=shop", redis.url()), None);
        // Redis is asked, and does not answer yet.
        redis.must(&["CLIENT", "PAUSE", "500", "ALL"]);
        let calls: Vec<_> = (0..20)
            .map(|_| {
                let called = called.clone();
                tokio::spawn(async move { audit(&called).await })
            })
            .collect();
        for call in calls {
            call.await.unwrap().unwrap();
        }
        let stats = redis.must(&["INFO", "commandstats"]);
        let stats = stats.text();
        let searches = stats.lines().find(|line| line.starts_with("cmdstat_hgetall"));
        assert!(searches.unwrap().contains("calls=1,"), "{searches:?}");
    }

    #[tokio::test]
    async fn a_missing_server_is_reported_with_a_command_and_no_password() {
        needs_redis!();
        let redis = RedisServer::start(Aof::Off, &[]);
        redis.must(&["ACL", "SETUSER", "ann", "on", ">geheim", "~*", "+@all"]);
        let given = redis.url().replace("redis://", "redis://ann:geheim@");
        let shown = redis.url().replace("redis://", "redis://•••@");
        let called = remote(&given, None);
        let error = audit(&called).await.unwrap_err();
        let says =
            format!("no server of Tenure uses {shown}; start one: tenure serve --store {shown}");
        assert_eq!(error, CallError::Fault(Fault::Unavailable(says)));
        let called = remote(&given.replace("geheim", "gehe1m"), None);
        let error = audit(&called).await.unwrap_err();
        assert!(error.to_string().contains("cannot look up its servers"), "{error}");
        assert!(!format!("{error:?} {called:?}").contains("gehe"), "{error}");
    }
}
