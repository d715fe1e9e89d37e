//! The reader against addresses that answer well, badly, late, and not at all.

use std::io;

use tenure_core::gauge::{
    Gauge, GaugeAddress, GaugeClaim, GaugeHosts, GaugeResult, GaugeSource, OnStale,
};
use tenure_core::names::LimitName;
use tenure_core::time::{Moment, Span};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::read;

fn claim(source: GaugeSource) -> GaugeClaim {
    let (every, lag, stale) = (Span::from_s(2), Span::from_s(10), Span::from_s(30));
    let gauge = Box::new(Gauge { source, every, lag, stale, on_stale: OnStale::Keep });
    let limit = LimitName::parse("l").unwrap();
    GaugeClaim { limit, number: 1, asked_at: Moment::ZERO, gauge }
}

fn address(text: &str) -> GaugeAddress {
    GaugeAddress::parse(text).unwrap()
}

fn counting(url: &str, pointers: &[&str]) -> GaugeSource {
    let count = pointers.iter().map(|pointer| (*pointer).to_owned()).collect();
    GaugeSource::Count { url: address(url), count }
}

/// Answers one request with this text, and returns that request. Without a text it never answers.
async fn asked(
    answer: Option<String>,
    source: impl FnOnce(&str) -> GaugeSource,
) -> (Result<GaugeResult, String>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let claim = claim(source(&place));
    let served = async {
        let (mut stream, _) = listener.accept().await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).await?;
            head.push(byte[0]);
        }
        match answer {
            Some(answer) => {
                // A reader that has enough may hang up before the end.
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
            None => std::future::pending().await,
        }
        Ok::<_, io::Error>(String::from_utf8_lossy(&head).into_owned())
    };
    let mut served = std::pin::pin!(served);
    let hosts = GaugeHosts::default();
    let mut reading = std::pin::pin!(read(&claim, &hosts));
    let mut head = String::new();
    let result = loop {
        tokio::select! {
            heard = &mut served, if head.is_empty() => head = heard.unwrap(),
            result = &mut reading => break result,
        }
    };
    (result.map_err(|why| why.to_string()), head)
}

fn ok(body: &str) -> Option<String> {
    Some(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
}

#[tokio::test]
async fn numbers_at_pointers_are_added() {
    let body = r#"{"running":3,"a/b":{"~":[0,4]},"x":1.0}"#;
    for (pointers, sum) in [
        (vec!["/running"], 3),
        (vec!["/running", "/a~1b/~0/1"], 7),
        (vec!["/running", "/running", "/a~1b/~0/0"], 6),
    ] {
        let source = |place: &str| counting(&format!("http://{place}/load?x=1"), &pointers);
        let (read, head) = asked(ok(body), source).await;
        assert_eq!(read, Ok(GaugeResult::Sum(sum)), "{pointers:?}");
        assert!(head.starts_with("GET /load?x=1 HTTP/1.1\r\n"), "{head}");
        assert!(!head.to_lowercase().contains("authorization"), "{head}");
    }
    let (read, _) = asked(ok("5"), |place| counting(&format!("http://{place}"), &[""])).await;
    assert_eq!(read, Ok(GaugeResult::Sum(5)), "the whole document");
}

#[tokio::test]
async fn a_login_is_sent_and_never_shown() {
    let source = |place: &str| counting(&format!("http://me:ge%40heim@{place}/"), &["/n"]);
    let (read, head) = asked(Some("HTTP/1.1 401 No\r\n\r\n".to_owned()), source).await;
    assert!(head.contains("authorization: Basic bWU6Z2VAaGVpbQ=="), "{head}");
    assert!(!head.contains("heim"), "{head}");
    assert_eq!(read, Err("http status 401".to_owned()));
}

#[tokio::test]
async fn a_scrapyd_is_asked_for_what_is_pending_or_running() {
    let body = r#"{"status":"ok","pending":[{"id":"a","spider":"s"}],
        "running":[{"id":"b"},{"id":"a"}],"finished":[{"id":"c"}]}"#;
    for (path, project, asks) in [
        ("", None, "/listjobs.json"),
        ("/", Some("news"), "/listjobs.json?project=news"),
        ("/scrapyd/", Some("a b"), "/scrapyd/listjobs.json?project=a%20b"),
    ] {
        let project = project.map(str::to_owned);
        let source = |place: &str| {
            let scrapyd = address(&format!("http://{place}{path}"));
            GaugeSource::Scrapyd { scrapyd, project }
        };
        let (read, head) = asked(ok(body), source).await;
        let ids = ["a", "b", "a"].map(str::to_owned).to_vec();
        assert_eq!(read, Ok(GaugeResult::Ids(ids)));
        assert!(head.starts_with(&format!("GET {asks} HTTP/1.1\r\n")), "{head}");
    }
}

#[tokio::test]
async fn a_wrong_answer_says_what_is_wrong() {
    let long = format!("{{\"n\":1,\"x\":\"{}\"}}", "x".repeat(1024 * 1024));
    let redirect = "HTTP/1.1 302 Found\r\nlocation: /n\r\ncontent-length: 0\r\n\r\n";
    for (answer, why) in [
        (ok("no"), "not JSON"),
        (ok(""), "not JSON"),
        (ok("{}"), "at \"/n\""),
        (ok(r#"{"n":-1}"#), "at \"/n\""),
        (ok(r#"{"n":3.0}"#), "at \"/n\""),
        (ok(r#"{"n":1e2}"#), "at \"/n\""),
        (ok(r#"{"n":"3"}"#), "at \"/n\""),
        (ok(&long), "longer than 1048576 bytes"),
        (Some(redirect.to_owned()), "http status 302"),
        (Some("HTTP/1.1 204 No\r\n\r\n".to_owned()), "http status 204"),
        (Some("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"n\"".to_owned()), "breaks off"),
        (Some("hello\r\n\r\n".to_owned()), "the connection broke"),
        (Some(String::new()), "the connection broke"),
    ] {
        let source = |place: &str| counting(&format!("http://{place}"), &["/n"]);
        let (read, _) = asked(answer, source).await;
        let said = read.unwrap_err();
        assert!(said.contains(why), "{said:?} has no {why:?}");
    }
    for (body, why) in [
        (r#"{"status":"error","message":"geheim"}"#, "scrapyd says \"error\""),
        ("[]", "scrapyd says"),
        (r#"{"status":"ok","running":[]}"#, "at \"pending\""),
        (r#"{"status":"ok","pending":[],"running":[{"id":5}]}"#, "at \"running\""),
    ] {
        let source = |place: &str| {
            let scrapyd = address(&format!("http://{place}"));
            GaugeSource::Scrapyd { scrapyd, project: None }
        };
        let (read, _) = asked(ok(body), source).await;
        let said = read.unwrap_err();
        assert!(said.contains(why) && !said.contains("geheim"), "{said:?} has no {why:?}");
    }
}

#[tokio::test]
async fn an_address_that_does_not_answer_is_given_up() {
    let source = |place: &str| counting(&format!("http://{place}"), &["/n"]);
    let (late, _) = asked(None, source).await;
    assert_eq!(late, Err("no whole answer within 2s".to_owned()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = listener.local_addr().unwrap();
    drop(listener);
    for scheme in ["http", "https"] {
        let claim = claim(counting(&format!("{scheme}://me:geheim@{gone}"), &["/n"]));
        let said = read(&claim, &GaugeHosts::default()).await.unwrap_err().to_string();
        assert!(said.contains("could not connect") && !said.contains("geheim"), "{said}");
    }
}

#[tokio::test]
async fn a_link_local_address_is_not_asked_unless_it_is_allowed() {
    let allowing = GaugeHosts::allowing(["169.254.1.1", "fe80::1", "::ffff:169.254.1.1"]);
    // A resolver reads the second and third as 169.254.1.1, too.
    for (host, is_named) in [
        ("169.254.1.1", true),
        ("2851995905", false),
        ("0xa9fe0101", false),
        ("[::ffff:169.254.1.1]", true),
        ("[fe80::1]", true),
    ] {
        let claim = claim(counting(&format!("http://{host}:9/"), &["/n"]));
        let said = read(&claim, &GaugeHosts::default()).await.unwrap_err().to_string();
        assert!(said.contains("link-local"), "{host}: {said}");
        let said = read(&claim, &allowing).await.unwrap_err().to_string();
        assert_eq!(said.contains("link-local"), !is_named, "{host}: {said}");
    }
}

#[tokio::test]
async fn any_form_of_a_guarded_host_is_checked_as_it_is_dialled() {
    let allowing = GaugeHosts::allowing(["ok.example"]);
    // The first three mean 169.254.1.1 to a resolver alone. In the others a login looks like an allowed host; parsers
    // that take a backslash for a slash read that host in the last one.
    for authority in [
        "169.254.257",
        "0251.0376.1.1",
        "0xa9.0xfe.257",
        "ok.example@169.254.1.1",
        "ok.example:80@x@169.254.1.1",
        r"ok.example\@169.254.1.1",
    ] {
        let claim = claim(counting(&format!("http://{authority}:9/"), &["/n"]));
        let why = read(&claim, &allowing).await.unwrap_err().to_string();
        assert!(why.contains("link-local"), "{authority}: {why}");
    }
}

#[tokio::test]
async fn a_certificate_is_checked() {
    let plain = |place: &str| counting(&format!("https://{place}"), &["/n"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let claim = claim(plain(&listener.local_addr().unwrap().to_string()));
    let answers = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n{\"n\":1}").await;
        std::future::pending::<()>().await;
    };
    let hosts = GaugeHosts::default();
    let heard =
        tokio::select! { () = answers => None, heard = read(&claim, &hosts) => Some(heard) };
    let said = heard.expect("it is read").unwrap_err().to_string();
    assert!(said.starts_with("TLS failed"), "{said}");
}
