//! A server inside a Rust program: its own store, and one that several servers share.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure::{Client, JobRef, Secret};
use tenure_core::refusal::Code;
use tenure_core::requests::{GetStats, PutLimit};
use tenure_core::settings::LimitSettings;
use tenure_server::{Server, StartError, TrailOptions, TrailPlace};
use tenure_testkit::redis::{Aof, RedisServer};
use tenure_testkit::{TempDir, needs_redis};

use crate::scopes::listed;
use crate::trail::text;

const PATIENCE: Duration = Duration::from_secs(60);

async fn shared(redis: &RedisServer) -> Server {
    Server::open(&redis.url()).listen("127.0.0.1:0").start().await.unwrap()
}

/// Whether this server answers calls itself, as the leader of its store.
fn owns(server: &Server) -> bool {
    let engine = server.engine();
    let leads = engine.servers().iter().any(|one| one.is_self && one.is_leader);
    engine.health().degraded.is_none() && leads
}

/// Ends when one of these answers calls itself and the others forward them.
async fn one_owns(servers: &[&Server]) {
    let begun = Instant::now();
    let is_degraded = |server: &Server| server.engine().health().degraded.is_some();
    while servers.iter().filter(|server| owns(server)).count() != 1
        || servers.iter().any(|server| is_degraded(server))
    {
        assert!(begun.elapsed() < PATIENCE, "{servers:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_a_program_share_a_store_and_survive_each_other() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Off, &[]);
    let first = shared(&redis).await;
    first.client().push("q").id("by-the-owner").await.unwrap();
    let second = shared(&redis).await;
    one_owns(&[&first, &second]).await;
    assert!(owns(&first));
    second.client().push("q").id("passed-on").await.unwrap();
    // A drop is a crash: nothing is handed over.
    drop(first);
    let third = shared(&redis).await;
    second.client().push("q").id("after-the-crash").await.unwrap();
    // Either may find out first.
    one_owns(&[&second, &third]).await;
    let (owner, other) = if owns(&second) { (second, third) } else { (third, second) };
    owner.close().await;
    other.client().push("q").id("after-the-end").await.unwrap();
    let elsewhere = Client::connect(&other.url()).await.unwrap();
    for id in ["by-the-owner", "passed-on", "after-the-crash", "after-the-end"] {
        elsewhere.get_job(JobRef::Id(id.parse().unwrap())).await.unwrap();
    }
    other.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_serves_its_folder_to_others_and_frees_it_at_close() {
    let folder = TempDir::new();
    let store = format!("file:{}", folder.path().display());
    let token = Secret::new("s3cret-s3cret-s3cret-s3cret-s3cret");
    for id in ["one", "two"] {
        let server = Server::open(&store).listen("127.0.0.1:0").token(token.clone());
        let server = server.start().await.unwrap();
        let by_http = Client::connect(&server.url()).await.unwrap();
        by_http.push("q").id(id).await.expect_err("without the token");
        let by_http = Client::connect(&server.url()).token(token.clone()).await.unwrap();
        by_http.push("q").id(id).await.unwrap();
        server.client().get_job(JobRef::Id(id.parse().unwrap())).await.unwrap();
        server.client().get_job(JobRef::Id("one".parse().unwrap())).await.unwrap();
        assert_eq!(server.close().await.cut, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_takes_tokens_with_scopes_and_keeps_a_trail() {
    let folder = TempDir::new();
    let place = TrailPlace::Folder(folder.join("trail"));
    let admin = listed("admin", |of| of.scopes = vec!["view".to_owned(), "admin".to_owned()]);
    let server = Server::open("memory:")
        .listen("127.0.0.1:0")
        .listed_token(admin)
        .listed_token(listed("view", |_| {}))
        .trail(TrailOptions::new(place))
        .start()
        .await
        .unwrap();
    let as_caller = async |name: &str| {
        let token = Secret::new(crate::scopes::token(name));
        Client::connect(&server.url()).token(token).await.unwrap()
    };
    let nobody = Client::connect(&server.url()).await.unwrap();
    nobody.run(GetStats).await.expect_err("without a token");
    let limit = || PutLimit {
        limit: "site".parse().unwrap(),
        settings: LimitSettings { concurrency: Some(3), ..LimitSettings::default() },
        gauge: None,
    };
    as_caller("admin").await.run(limit()).await.unwrap();
    let viewer = as_caller("view").await;
    let no = viewer.run(limit()).await.unwrap_err();
    assert_eq!(no.code(), Some(Code::Forbidden), "{no}");
    // A call of this process has no caller.
    server.client().run(limit()).await.unwrap();
    let at = server.address().to_string();
    server.close().await;
    let text = text(&folder);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |op: &str| {
        let of = lines.iter().filter(|line| line["op"] == op);
        of.map(|line| (line["caller"].clone(), line["status"].clone())).collect::<Vec<_>>()
    };
    let both = [(json!("admin"), json!(200)), (json!("view"), json!(403))];
    assert_eq!(told("put_limit"), both);
    assert_eq!((told("server_started").len(), told("server_stopped").len()), (1, 1));
    assert!(lines.iter().all(|line| line["server"] == at), "{text}");
    let twice = Server::open("memory:").listed_token(listed("view", |_| {}));
    let no = twice.listed_token(listed("view", |_| {})).start().await.unwrap_err();
    assert!(no.to_string().contains("1 and 2 have one name"), "{no}");
}

#[tokio::test]
async fn what_cannot_be_served_is_refused_with_a_sentence() {
    let listens = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listens.local_addr().unwrap().to_string();
    let start = |store, listen, advertise: Option<&str>| {
        let server = Server::open(store).listen(listen);
        match advertise {
            Some(at) => server.advertise(at),
            None => server,
        }
        .start()
    };
    let refused = [
        (start("nowhere", "127.0.0.1:0", None).await, "no scheme"),
        (start("http://127.0.0.1:1", "127.0.0.1:0", None).await, "the address of a server"),
        (start("memory:", "0.0.0.0:0", None).await, "there is no token"),
        (start("memory:", "127.0.0.1:0", Some("example.org")).await, "write HOST:PORT"),
        (start("memory:", &taken, None).await, "could not listen on"),
    ];
    for (started, part) in refused {
        let why: StartError = started.expect_err(part);
        assert!(why.to_string().contains(part), "{why}");
    }
}
