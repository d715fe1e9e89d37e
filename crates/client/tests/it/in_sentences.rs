//! A client from an address, and its builders.
#![cfg(feature = "embedded")]

use std::time::{Duration, SystemTime};

use tenure::core::requests::{GetLimit, GetStats};
use tenure::core::settings::Rate;
use tenure::{
    CallError, CatchUp, Client, Code, ConnectError, Gauge, JobRef, LockError, Moment, Need, NewJob,
    NoValue, Overlap, PoolItem, Retry, Secret, SettleOutcome, Span, UrlError,
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
async fn what_the_contract_bounds_is_bounded_without_a_server_too() {
    let client = memory().await;
    let minute = Duration::from_secs(60);
    let scrapy = || client.limit("scrapy").concurrency(1);
    let feed = || client.schedule("feed").every(minute).push("feeds");
    let account = || PoolItem::new("ann");
    let long = "x".repeat(300_000);
    let refused: Vec<(&str, Code, Option<CallError>)> = vec![
        ("payload", Code::OutOfBounds, client.push("q").payload(&long).unwrap().await.err()),
        ("priority", Code::OutOfBounds, client.push("q").priority(101).await.err()),
        ("no job", Code::OutOfBounds, client.push_all(Vec::<NewJob>::new()).await.err()),
        (
            "jobs",
            Code::OutOfBounds,
            client.push_all((0..1_001).map(|_| client.push("q"))).await.err(),
        ),
        ("second job", Code::OutOfBounds, {
            client.push_all([client.push("q"), client.push("q").priority(-101)]).await.err()
        }),
        ("second name", Code::InvalidField, {
            client.push_all([client.push("q"), client.push("")]).await.err()
        }),
        ("weight", Code::OutOfBounds, {
            client.push("q").need(Need::limit("lock:a").weight(0)).await.err()
        }),
        ("timeout", Code::OutOfBounds, client.push("q").timeout(Duration::ZERO).await.err()),
        ("rate", Code::OutOfBounds, client.limit("api").rate(0, minute).set().await.err()),
        ("gauge", Code::InvalidField, scrapy().gauge(Gauge::scrapyd("ftp://h")).set().await.err()),
        ("pointer", Code::InvalidField, {
            scrapy().gauge(Gauge::count("http://h", ["running"])).set().await.err()
        }),
        ("read every", Code::OutOfBounds, {
            let gauge = Gauge::scrapyd("http://h").every(Duration::from_millis(1));
            scrapy().gauge(gauge).set().await.err()
        }),
        ("every", Code::InvalidField, {
            client.schedule("s").every(Duration::from_millis(1_500)).push("q").set().await.err()
        }),
        ("no timing job", Code::InvalidField, client.schedule("s").every(minute).set().await.err()),
        ("zone", Code::ConflictingFields, feed().zone("Europe/Berlin").set().await.err()),
        ("unknown zone", Code::UnknownZone, {
            client.schedule("s").cron("@daily").zone("Europe/Nowhere").push("q").set().await.err()
        }),
        ("catch up", Code::OutOfBounds, feed().catch_up_max(0).set().await.err()),
        ("scheduled priority", Code::OutOfBounds, feed().priority(101).set().await.err()),
        ("turns", Code::OutOfBounds, client.queue("q").share("g", 0).set().await.err()),
        ("uses", Code::OutOfBounds, client.pool("p").max_uses(0).set().await.err()),
        ("slots", Code::OutOfBounds, client.pool("p").add([account().slots(0)]).await.err()),
        ("tag", Code::InvalidField, client.pool("p").add([account().tag("")]).await.err()),
    ];
    for (what, code, error) in refused {
        let Some(CallError::Refused(no)) = error else { panic!("{what}: {error:?}") };
        assert_eq!(no.code, code, "{what}: {no}");
        let second = what.starts_with("second");
        assert_eq!(no.index, second.then_some(1), "{what}: {no}");
    }
    assert_eq!(jobs(&client).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_set_as_it_was_said() {
    let client = memory().await;
    let minute = Duration::from_secs(60);
    client.limit("smtp").concurrency(2).set().await.unwrap();
    let said = client.schedule("report").cron("0 9 * * 1-5").zone("Europe/Berlin").jitter(minute);
    let said = said.overlap(Overlap::Allow).catch_up(CatchUp::All).catch_up_max(7).owner("o");
    let said = said.push("mail").kind("report").payload(&[7]).unwrap().priority(-3).group("g");
    let said = said.need(Need::limit("smtp").weight(2)).retry(Retry::new().attempts(2));
    let said = said.timeout(minute).retain(2 * minute).expires_in(3 * minute).label("by", "me");
    let view = said.clone().set().await.unwrap();
    assert_eq!(said.set().await.unwrap(), view);
    let settings = view.settings;
    assert_eq!(settings.timing.cron.as_deref(), Some("0 9 * * 1-5"));
    assert_eq!(settings.timing.zone.as_deref(), Some("Europe/Berlin"));
    assert_eq!((settings.overlap, settings.catch_up), (Overlap::Allow, CatchUp::All));
    assert_eq!((settings.catch_up_max, settings.timing.jitter), (7, minute.into()));
    assert_eq!(settings.owner.unwrap().as_str(), "o");
    let job = settings.job;
    assert_eq!((job.queue.as_str(), job.kind.as_str(), job.priority), ("mail", "report", -3));
    assert_eq!(job.payload.unwrap().text(), "[7]");
    assert_eq!((job.timeout, job.retain), (Some(minute.into()), Some((2 * minute).into())));
    assert_eq!((job.expires_in, job.labels["by"].as_str()), (Some((3 * minute).into()), "me"));
    assert_eq!((job.retry.unwrap().max_attempts, job.needs.unwrap().len()), (2, 1));
    assert_eq!(client.schedules_of("o").list().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_one_call_wait_for_each_other_and_are_stored_together() {
    let client = memory().await;
    let import = client.flow("import-7");
    let page = |name| client.push("pages").id(name).reference(name);
    let report = client.push("reports").id("r").after_ref("a").after_ref("b").whatever_ends();
    let pushed = import.push_all([page("a"), page("b"), report]).await.unwrap();
    assert_eq!(pushed.len(), 3);
    let job = client.job("r").view().await.unwrap();
    assert_eq!((job.state.as_str(), job.parents), ("dependent", 2));
    assert_eq!(client.job("a").children().await.unwrap()[0].id.as_str(), "r");
    assert_eq!(import.view().await.unwrap().counts.unfinished, 3);

    // One invalid job keeps all from being stored.
    let lost = [client.push("pages"), client.push("pages").after_ref("nobody")];
    let no = import.push_all(lost).await.unwrap_err();
    assert_eq!(no.code(), Some(Code::UnknownParent));
    assert_eq!(jobs(&client).await, 3);

    import.cancel().await.unwrap();
    assert_eq!(import.wait().await.unwrap().counts.cancelled, 3);
    assert_eq!(import.retry().await.unwrap(), 3);
    assert_eq!(client.job("r").view().await.unwrap().state.as_str(), "dependent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_is_read_or_the_end_says_why_there_is_none() {
    let client = memory().await;
    for (id, outcome) in [
        ("well", SettleOutcome::succeeded_with(&7)),
        ("empty", SettleOutcome::succeeded()),
        ("bad", SettleOutcome::failed_for_good("no page")),
    ] {
        client.push("q").id(id).await.unwrap();
        let worker = client.worker(["q"]).max_jobs(1);
        worker.run(move |_| std::future::ready(outcome.clone())).await.unwrap();
    }
    client.push("q").id("off").await.unwrap();
    client.job("off").cancel().await.unwrap();
    client.push("q").id("waits").await.unwrap();
    let value = async |id: &str| client.job(id).value_within::<u32>(Duration::ZERO).await;
    assert_eq!(value("well").await.unwrap(), 7);
    assert_eq!(client.job("empty").value::<Option<u32>>().await.unwrap(), None);
    let said = |no: Result<u32, NoValue>| no.unwrap_err().to_string();
    assert_eq!(said(value("bad").await), "job bad failed: no page");
    assert_eq!(said(value("off").await), "job off was cancelled");
    assert_eq!(said(value("waits").await), "job waits is not finished yet");
    let other = client.job("well").value::<String>().await.unwrap_err();
    assert!(std::error::Error::source(&other).is_some(), "{other:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_name_of_a_queue_is_told_by_the_worker() {
    let client = memory().await;
    let no = client.worker(["q", ""]).run(async |_| ()).await.unwrap_err();
    assert_eq!(no.code(), Some(Code::InvalidField));
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
    // The port was free a moment ago, and no process listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("redis://:geheim@127.0.0.1:{port}");
    let connect = Client::connect(&url);
    assert!(!format!("{connect:?}").contains("geheim"), "{connect:?}");
    let client = connect.await.unwrap();
    let away = client.push("q").await.unwrap_err();
    assert!(away.to_string().contains("cannot look up its servers"), "{away}");
    assert!(!format!("{away:?} {away} {client:?}").contains("geheim"), "{away}");
    client.close().await;
}

#[test]
fn times_convert_from_and_to_the_standard_library() {
    let moment = Moment::from_us(1_795_000_000_123_456);
    assert_eq!(Moment::from(SystemTime::from(moment)), moment);
    assert_eq!(Moment::from(SystemTime::UNIX_EPOCH - Duration::from_secs(1)), Moment::ZERO);
    assert_eq!(Span::from(Duration::from_millis(1_500)), Span::from_ms(1_500));
    assert_eq!(Duration::from(Span::from_ms(1_500)), Duration::from_millis(1_500));
    assert_eq!(Span::from(Duration::MAX), Span::from_us(u64::MAX));
}
