//! The contract's mirror: the request for every operation, and the reading of its answer.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use crate::mapping::words::whole_job;
use crate::scripted::{Scripted, Seen, Then};
use serde_json::Value;
use tenure::core::decode::RawCall;
use tenure::core::percent::decoded;
use tenure::core::refusal::Refusal;
use tenure::core::requests::*;
use tenure::{Engine, Namespace};

/// Without the line ends and indentation of the literals.
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

/// The request that a server would read.
fn read_back(sent: &Request, seen: &Seen) -> Result<Request, Refusal> {
    let (_, target) = seen.line.split_once(' ').unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let parts = sent.spec().path.split('/').zip(path.split('/'));
    let names: Vec<_> = parts
        .filter(|(part, _)| part.starts_with('{'))
        .map(|(_, text)| decoded(text).unwrap())
        .collect();
    let query: Vec<_> = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (decoded(key).unwrap(), decoded(value).unwrap()))
        .collect();
    let call = RawCall { names: &names, query: &query, body: seen.body.as_bytes() };
    let mut read = (sent.spec().decode)(call)?;
    if let (Request::Push(read), Request::Push(sent)) = (&mut read, sent) {
        // A header asks for the form of the answer.
        read.answer = sent.answer;
    }
    Ok(read)
}

#[tokio::test]
async fn every_operation_is_sent_and_read_as_the_contract_says() {
    let next: Arc<Mutex<(u16, String)>> = Arc::default();
    let answers = next.clone();
    let mut server = Scripted::start(move |_| {
        let (status, body) = answers.lock().unwrap().clone();
        Then::Answer(status, "content-type: application/json\r\n", body)
    })
    .await;
    let remote = server.remote();
    let mut names = HashSet::new();
    for (request, line, body, status, answer, right) in crate::mapping::rows() {
        names.insert(request.spec().name);
        *next.lock().unwrap() = (status, answer);
        let reply = remote.call(&Namespace::main(), request.clone()).await;
        let seen = server.request().await;
        assert_eq!(seen.line, line);
        if body.is_empty() {
            assert_eq!(seen.body, "", "{line}");
            assert!(!seen.headers.contains_key("content-type"), "{line}");
        } else {
            assert_eq!(json(&seen.body), json(&body), "{line}");
            assert_eq!(seen.headers["content-type"], "application/json", "{line}");
        }
        // The server's own reader reads back the original request.
        assert_eq!(read_back(&request, &seen), Ok(request), "{line}");
        let reply = reply.unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(right(&reply), "{line}: {reply:?}");
    }
    for spec in OPERATIONS {
        assert!(names.contains(spec.name), "no row says what is sent for {}", spec.name);
    }
}

#[tokio::test]
async fn the_text_of_a_payload_is_sent_as_it_is() {
    let mut server =
        Scripted::start(|_| crate::scripted::ok(r#"[{"id":"j1","duplicate":false}]"#)).await;
    let push = Push { jobs: vec![whole_job()], answer: PushAnswer::Ids };
    server.remote().call(&Namespace::main(), push.into()).await.unwrap();
    assert!(server.request().await.body.contains(r#""payload":{"n": 1.50}"#));
}

#[tokio::test]
async fn an_address_may_have_a_prefix() {
    let mut server =
        Scripted::start(|_| crate::scripted::ok(r#"{"ok":true,"checked":0,"faults":[]}"#)).await;
    let url = format!("http://127.0.0.1:{}/tenure/", server.port).parse();
    let Ok(tenure::StoreUrl::Server(url)) = url else { unreachable!() };
    let remote = tenure::Remote::open(&url, None).unwrap();
    remote.call(&Namespace::main(), Audit::default().into()).await.unwrap();
    assert_eq!(server.request().await.line, "GET /tenure/v1/audit");
}
