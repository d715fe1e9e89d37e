//! Two releases on one Redis: side by side on one layout, and never on two.

use tenure_engine::{CallError, EngineExt as _, Fault};
use tenure_engine_redis::library::{LAYOUT, Library};
use tenure_engine_redis::link::Address;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use crate::calls::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_of_another_layout_is_refused_and_left_alone() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &["--enable-debug-command", "yes"]);
    let engine = open(&server.url());
    push(&engine, job("q", "a")).await;
    let held = take(&engine, asks("q", "w", tenure_core::time::Span::from_s(30))).await;
    let held = held.expect("a job");
    // As a later release would have left it.
    let meta = Address::parse(&server.url()).expect("an address").key("default", "m");
    let layout = (LAYOUT + 1).to_string();
    server.must(&["HSET", &meta, "layout", &layout]);
    let other = open(&server.url());
    let before = all(&server);
    for engine in [&engine, &other] {
        for refused in [
            engine.run(&ns(), pushes(job("q", "b"))).await.map(|_| ()),
            engine.run(&ns(), settles(&held)).await.map(|_| ()),
            engine.run(&ns(), tenure_core::requests::GetStats).await.map(|_| ()),
            engine.run(&ns(), tenure_core::requests::Audit::default()).await.map(|_| ()),
        ] {
            let Err(CallError::Fault(Fault::Unavailable(why))) = refused else {
                panic!("it is of another layout: {refused:?}");
            };
            assert!(why.contains(&format!("layout {layout}")), "{why}");
        }
    }
    assert_eq!(all(&server), before);
    server.must(&["HSET", &meta, "layout", &LAYOUT.to_string()]);
    assert!(settle(&other, &held).await.ok);
    is_whole(&engine).await;
}

/// Every key and a digest of all values.
fn all(server: &RedisServer) -> String {
    server.must(&["DEBUG", "DIGEST"]).text()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_libraries_lie_on_one_server_side_by_side() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let engine = open(&server.url());
    push(&engine, job("q", "a")).await;
    // The one for tests stands for another release: another name, other functions.
    let another = Library::testing();
    server.must(&["FUNCTION", "LOAD", another.text()]);
    let there = server.must(&["FUNCTION", "LIST"]).to_string();
    assert!(there.contains(Library::release().name()) && there.contains(another.name()));
    push(&engine, job("q", "b")).await;
    assert!(take(&engine, asks("q", "w", tenure_core::time::Span::from_s(30))).await.is_some());
    is_whole(&engine).await;
}
