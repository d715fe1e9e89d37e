//! Passwords and certificates: who is let in, and that nobody is told how.

use std::path::PathBuf;
use std::time::Duration;

use tenure_engine_redis::link::{Address, Link, LinkError, LinkOptions, OpenError, TlsError, cmd};
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use crate::calls::{link, touch, until_it_works};

/// A certificate for 127.0.0.1 and the one that signed it, whose key was thrown away.
fn file(name: &str) -> String {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/link/tls");
    here.join(name).display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_password_opens_and_is_never_shown() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &["--requirepass", "ge@heim"]);
    let port = server.port();
    let right = link(&format!("redis://:ge%40heim@127.0.0.1:{port}"));
    until_it_works(&right, "default").await;
    let (listening, mut events) = right.listen();
    listening.subscribe("a");
    assert!(events.recv().await.is_some());
    assert!(!format!("{right:?} {}", right.address()).contains("heim"));
    for (url, code) in [
        (format!("redis://:geheim@127.0.0.1:{port}"), "WRONGPASS"),
        (format!("redis://geheim:ge%40heim@127.0.0.1:{port}"), "WRONGPASS"),
        (format!("redis://127.0.0.1:{port}"), "NOAUTH"),
    ] {
        let wrong = link(&url);
        let said = touch(&wrong, "default").await.unwrap_err();
        assert_eq!(said.code(), Some(code), "{said:?}");
        let seen = format!("{said} {said:?} {wrong:?} {:?}", wrong.down());
        assert!(!seen.contains("heim"), "{seen}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_may_not_load_functions_is_told_what_to_ask_for() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let acl = ["ACL", "SETUSER", "me", "on", ">pw", "~*", "&*", "+@all", "-function|load"];
    server.must(&acl);
    let link = link(&format!("redis://me:pw@127.0.0.1:{}", server.port()));
    let said = touch(&link, "default").await.unwrap_err();
    assert_eq!(said.code(), Some("NOPERM"));
    assert!(said.to_string().contains("\"tenure redis print-library\""), "{said}");
    // The operator does so.
    server.must(&["FUNCTION", "LOAD", link.library().text()]);
    touch(&link, "default").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_are_apart() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let link = link(&format!("{}/3", server.url()));
    until_it_works(&link, "default").await;
    link.command("default", cmd("SET").arg("k").arg("v")).await.unwrap();
    assert!(server.info("db3").starts_with("keys=1,"), "{}", server.info("db3"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_spoken_to_who_shows_the_right_certificate_and_to_nobody_else() {
    if !wanted() {
        return;
    }
    let (certificate, key, ca) = (file("server.pem"), file("server.key"), file("ca.pem"));
    // The fixture itself speaks in the clear, so the server has a port for each.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let tls = free.local_addr().unwrap().port();
    drop(free);
    let server = RedisServer::start(
        Aof::Off,
        &[
            "--tls-port",
            &tls.to_string(),
            "--tls-cert-file",
            &certificate,
            "--tls-key-file",
            &key,
            "--tls-auth-clients",
            "no",
        ],
    );
    let well = link(&format!("rediss://127.0.0.1:{tls}?ca={ca}"));
    until_it_works(&well, "default").await;
    until_it_works(&link(&format!("redis://localhost:{tls}?tls=true&ca={ca}")), "default").await;
    let (_listening, mut events) = well.listen();
    assert!(events.recv().await.is_some());
    for (url, part) in [
        // Signed by nobody whom the system trusts.
        (format!("rediss://127.0.0.1:{tls}"), "certificate"),
        (format!("redis://127.0.0.1:{tls}"), "closed"),
        (format!("rediss://127.0.0.1:{}?ca={ca}", server.port()), "127.0.0.1"),
    ] {
        let options = LinkOptions { patience: Duration::from_secs(3), ..LinkOptions::default() };
        let wrong = crate::calls::link_with(&url, options);
        let said = touch(&wrong, "default").await.unwrap_err();
        assert!(matches!(said, LinkError::Unavailable(_)), "{said:?}");
        assert!(said.to_string().contains(part), "{url}: {said}");
    }
}

#[tokio::test]
async fn certificates_that_cannot_be_read_are_told_at_the_opening() {
    for (name, part) in
        [("nothing.pem", "nothing.pem"), ("server.key", "there is no certificate in")]
    {
        let url = format!("rediss://127.0.0.1:1?ca={}", file(name));
        let address = Address::parse(&url).unwrap();
        let said = Link::open(address, LinkOptions::default()).unwrap_err();
        assert!(matches!(said, OpenError::Tls(TlsError::Certificates { .. })), "{said:?}");
        assert!(said.to_string().contains(part), "{said}");
    }
}

#[test]
fn without_a_runtime_it_says_so() {
    let address = Address::parse("redis://127.0.0.1:1").unwrap();
    let said = Link::open(address, LinkOptions::default()).unwrap_err();
    assert!(matches!(said, OpenError::NoRuntime), "{said:?}");
}
