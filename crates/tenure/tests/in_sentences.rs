//! A client from an address, and calls that read like sentences.
#![cfg(feature = "embedded")]
#![allow(clippy::unwrap_used)]

use std::time::{Duration, SystemTime};

use tenure::core::requests::{GetLimit, GetStats};
use tenure::core::settings::Rate;
use tenure::{
    CallError, Client, Code, ConnectError, JobRef, LockError, Moment, Need, Secret, Span, UrlError,
};

async fn memory() -> Client {
    Client::connect("memory:").await.unwrap()
}

async fn jobs(client: &Client) -> u64 {
    client.run(GetStats).await.unwrap().jobs.values().sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_stored_as_it_was_said() {
    let client = memory().await;
    client.limit("smtp").concurrency(2).set().await.unwrap();
    let first = client.push("mail").id("first").await.unwrap();
    let pushing = client.push("mail").id("m1").kind("welcome").payload(&["ann"]).unwrap();
    let pushing = pushing.need(Need::limit("smtp").weight(2)).delay(Duration::from_secs(60));
    let pushing = pushing.priority(7).group("tenant-7").unique("mail:ann").label("by", "test");
    let pushing = pushing.timeout(Duration::from_secs(9)).retain(Duration::from_secs(99));
    let pushed = pushing.after(first.id.as_str()).flow("f").await.unwrap();
    assert_eq!((pushed.id.as_str(), pushed.duplicate), ("m1", false));

    let job = client.get_job("m1".parse().unwrap()).await.unwrap();
    assert_eq!((job.kind.as_str(), job.priority), ("welcome", 7));
    assert_eq!(job.payload.as_ref().unwrap().text(), r#"["ann"]"#);
    assert_eq!(job.group.as_ref().unwrap().as_str(), "tenant-7");
    assert_eq!(job.labels["by"], "test");
    assert_eq!(serde_json::to_value(&job.needs).unwrap()[0]["weight"], 2);
    assert_eq!(job.run_at.since(job.created_at), Span::from_s(60));
    let shown = serde_json::to_value(&job).unwrap();
    assert_eq!(shown["after"][0], "first");
    assert_eq!((&shown["flow"], &shown["timeout"]), (&"f".into(), &"9s".into()));
    let again = client.push("mail").unique("mail:ann").await.unwrap();
    assert_eq!((again.id.as_str(), again.duplicate), ("m1", true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_none_is_refused_and_stores_nothing() {
    let client = memory().await;
    let no = |answer: Result<_, CallError>| match answer {
        Err(CallError::Refused(no)) => no,
        other => panic!("it was to be refused: {other:?}"),
    };
    for pushing in [
        client.push(""),
        client.push("q").id("key:x"),
        client.push("q").need(Need::limit("Site")),
        client.push("q").need(Need::pool("p").tag("")),
        client.push("a/b").id(""),
    ] {
        assert_eq!(no(pushing.await.map(|_| ())).code, Code::InvalidField);
    }
    assert_eq!(
        no(client.limit("*").concurrency(1).set().await.map(|_| ())).code,
        Code::InvalidField
    );
    assert_eq!(jobs(&client).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_changed_in_what_is_said() {
    let client = memory().await;
    let second = Duration::from_secs(1);
    client.limit("api").concurrency(3).rate(10, second).burst(4).set().await.unwrap();
    let view = client.limit("api").gap(second).quarantine(2 * second).set().await.unwrap();
    assert_eq!(view, client.run(GetLimit { limit: "api".parse().unwrap() }).await.unwrap());
    let settings = view.settings;
    assert_eq!(settings.rate, Some(Rate { count: 10, per: Span::from_s(1), burst: 4 }));
    assert_eq!((settings.concurrency, settings.gap), (Some(3), Some(Span::from_s(1))));
    assert_eq!(settings.quarantine, Span::from_s(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn needs_are_acquired_together_and_given_back() {
    let client = memory().await;
    client.limit("gpu").concurrency(1).set().await.unwrap();
    let needs = || [Need::limit("gpu"), Need::limit("lock:deploy")];
    let guard = client.acquire(needs()).ttl(Duration::from_secs(5)).await.unwrap();
    let busy = client.acquire([Need::limit("gpu")]).within(Duration::ZERO).await;
    assert!(matches!(busy, Err(LockError::Busy(_))), "{busy:?}");
    guard.release().await.unwrap();
    client.acquire(needs()).within(Duration::ZERO).await.unwrap().release().await.unwrap();
    let none = client.acquire([Need::limit("Gpu")]).await;
    assert!(matches!(none, Err(LockError::Call(CallError::Refused(_)))), "{none:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_free_again_once_its_client_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("file:{}", dir.path().join("data").display());
    let client = Client::connect(&url).await.unwrap();
    client.push("q").id("j").await.unwrap();
    let other = Client::connect(&url).await;
    assert!(matches!(other, Err(ConnectError::Folder(_))), "{other:?}");
    client.close().await;
    let again = Client::connect(&url).namespace("default").await.unwrap();
    assert_eq!(again.get_job(JobRef::parse("j").unwrap()).await.unwrap().id.as_str(), "j");
    let elsewhere = Client::new(again.engine().clone(), "other".parse().unwrap());
    assert_eq!(jobs(&elsewhere).await, 0);
    again.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_cannot_be_used_says_why() {
    let no = async |url: &str| Client::connect(url).await.unwrap_err();
    assert!(matches!(no("localhost").await, ConnectError::Url(UrlError::NoScheme)));
    let bad = Client::connect("memory:").namespace("no good").await.unwrap_err();
    assert!(matches!(bad, ConnectError::Namespace(_)), "{bad}");
    let token = Client::connect("memory:").token(Secret::new("geheim")).await.unwrap_err();
    assert!(
        matches!(token, ConnectError::TokenForStore) && !format!("{token:?}").contains("geheim")
    );
    let connect = Client::connect("http://127.0.0.1:1").token(Secret::new("geheim"));
    assert!(!format!("{connect:?}").contains("geheim"));
}

#[cfg(feature = "redis")]
#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_away_is_told_by_the_first_call() {
    // The port was free a moment ago, and nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("redis://:geheim@127.0.0.1:{port}");
    let connect = Client::connect(&url);
    assert!(!format!("{connect:?}").contains("geheim"), "{connect:?}");
    let client = connect.await.unwrap();
    let away = client.engine().health();
    assert!(!format!("{away:?} {client:?}").contains("geheim"));
    client.close().await;
}

#[test]
fn times_of_other_libraries_are_read_by_way_of_the_standard_library() {
    let moment = Moment::from_us(1_795_000_000_123_456);
    assert_eq!(Moment::from(SystemTime::from(moment)), moment);
    assert_eq!(Moment::from(SystemTime::UNIX_EPOCH - Duration::from_secs(1)), Moment::ZERO);
    assert_eq!(Span::from(Duration::from_millis(1_500)), Span::from_ms(1_500));
    assert_eq!(Duration::from(Span::from_ms(1_500)), Duration::from_millis(1_500));
    assert_eq!(Span::from(Duration::MAX), Span::from_us(u64::MAX));
}
