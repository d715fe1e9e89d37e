//! Rules for callers and requests: content types, origins, tokens, namespaces, sizes and slowness,
//! by raw bytes.

use crate::wire::Server;
use tenure_core::bounds::BODY_BYTES_MAX;
use tenure_server::Config;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn a_body_needs_its_content_type() {
    let server = Server::start();
    let before = server.state();
    let host = format!("Host: {}\r\n", server.at);
    for (line, media, status) in [
        ("POST /v1/jobs", "", 415),
        ("POST /v1/jobs", "Content-Type: text/plain\r\n", 415),
        ("POST /v1/jobs", "Content-Type: application/x-www-form-urlencoded\r\n", 415),
        ("POST /v1/jobs", "Content-Type: application/jsonx\r\n", 415),
        ("POST /v1/leases", "Content-Type: application/x-ndjson\r\n", 415),
        ("POST /v1/pools/p/resources", "Content-Type: application/x-ndjson\r\n", 415),
        ("GET /v1/stats", "Content-Type: text/plain\r\n", 415),
        ("PATCH /v1/limits/x", "", 415),
    ] {
        let (method, path) = line.split_once(' ').unwrap();
        let headers = format!("{host}{media}");
        let answer = server.connect().ask_with(method, path, &headers, b"{}");
        answer.refused(status, "unsupported_media_type", None);
        // The same without a length.
        let mut conn = server.connect();
        let head = format!(
            "{line} HTTP/1.1\r\n{headers}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
        );
        conn.send(head.as_bytes());
        conn.answer().refused(status, "unsupported_media_type", None);
    }
    assert_eq!(server.state(), before);
    for media in ["application/json; charset=utf-8", "Application/JSON"] {
        let headers = format!("{host}Content-Type: {media}\r\n");
        assert_eq!(server.connect().ask_with("POST", "/v1/jobs", &headers, b"{}").status, 201);
    }
    // An empty body needs no type.
    let mut conn = server.connect();
    conn.send(
        format!("POST /v1/jobs HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
            .as_bytes(),
    );
    conn.answer().refused(422, "invalid_field", Some(""));
}

#[test]
fn a_foreign_page_may_not_call() {
    let server = Server::start();
    let port = server.at.port();
    let before = server.state();
    for headers in [
        "Host: evil.example\r\n".to_owned(),
        "Host: localhost.evil.example\r\n".to_owned(),
        "Host: 192.168.1.1\r\n".to_owned(),
        String::new(),
        "Host: localhost\r\nOrigin: http://evil.example\r\n".to_owned(),
        "Host: localhost\r\nOrigin: null\r\n".to_owned(),
        "Host: localhost\r\nOrigin: http://localhost:1\r\n".to_owned(),
    ] {
        for path in ["/v1/jobs", "/healthz", "/readyz", "/nothing"] {
            let answer = server.connect().ask_with("POST", path, &headers, b"");
            answer.refused(403, "forbidden_origin", None);
        }
    }
    assert_eq!(server.state(), before);
    for headers in [
        format!("Host: localhost:{port}\r\n"),
        "Host: LOCALHOST\r\n".to_owned(),
        "Host: [::1]:9\r\n".to_owned(),
        format!("Host: localhost:{port}\r\nOrigin: http://localhost:{port}\r\n"),
    ] {
        assert_eq!(
            server.connect().ask_with("GET", "/healthz", &headers, b"").status,
            200,
            "{headers}"
        );
    }
}

#[test]
fn a_token_is_needed_where_there_is_one() {
    let server = Server::with(Some("s3cret-s3cret-s3cret-s3cret-s3cret"), Config::default());
    for shown in ["", "Authorization: Bearer wrong\r\n", "Authorization: Basic s3cret\r\n"] {
        for line in [
            "GET /v1/jobs",
            "POST /v1/jobs",
            "GET /nothing",
            "PUT /v1/jobs",
            "GET /version",
            "GET /openapi.json",
        ] {
            let (method, path) = line.split_once(' ').unwrap();
            let headers = format!("Host: any.example\r\n{shown}");
            let answer = server.connect().ask_with(method, path, &headers, b"");
            answer.refused(401, "unauthorized", None);
            assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"));
            assert!(!answer.text().contains("s3cret"));
        }
    }
    let right = "Host: any.example\r\nAuthorization: Bearer s3cret-s3cret-s3cret-s3cret-s3cret\r\n";
    assert_eq!(server.connect().ask_with("GET", "/v1/jobs", right, b"").status, 200);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(
            server.connect().ask_with("GET", path, "Host: any.example\r\n", b"").status,
            200
        );
    }
    let foreign = format!("{right}Origin: http://evil.example\r\n");
    server.connect().ask_with("GET", "/v1/jobs", &foreign, b"").refused(
        403,
        "forbidden_origin",
        None,
    );
}

#[test]
fn a_bad_namespace_is_refused() {
    let server = Server::start();
    let before = server.state();
    for name in ["", "UPPER", "-a", "a_b", "größe", &"x".repeat(64)] {
        let headers = format!("Host: localhost\r\nTenure-Namespace: {name}\r\n");
        let answer = server.connect().ask_with("GET", "/v1/jobs", &headers, b"");
        answer.refused(422, "invalid_field", Some("/header/Tenure-Namespace"));
    }
    assert_eq!(server.state(), before);
    let headers =
        "Host: localhost\r\nTenure-Namespace: other-1\r\nContent-Type: application/json\r\n";
    assert_eq!(server.connect().ask_with("POST", "/v1/jobs", headers, b"{}").status, 201);
    assert_eq!(server.state(), before, "namespaces are apart");
}

#[test]
fn a_body_that_is_too_large_is_refused_at_its_length() {
    let server = Server::start();
    let before = server.state();
    let head = |length: usize| {
        format!(
            "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n"
        )
    };
    // Refused before any byte of the body came.
    let mut conn = server.connect();
    conn.send(head(BODY_BYTES_MAX + 1).as_bytes());
    conn.answer().refused(413, "too_large", None);
    assert!(conn.is_closed());
    // A caller that sends everything before it reads sees the refusal too: 10 MB of nested arrays.
    let mut conn = server.connect();
    conn.send(head(10_000_000).as_bytes());
    conn.send(&vec![b'['; 10_000_000]);
    conn.answer().refused(413, "too_large", None);
    // A body without a length.
    let mut conn = server.connect();
    conn.send(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
    let piece = vec![b'['; 1 << 20];
    for _ in 0..9 {
        conn.send(format!("{:x}\r\n", piece.len()).as_bytes());
        conn.send(&piece);
        conn.send(b"\r\n");
    }
    conn.answer().refused(413, "too_large", None);
    assert_eq!(server.state(), before);
    // A body of exactly the maximum is read, and is not valid.
    let mut conn = server.connect();
    conn.send(head(BODY_BYTES_MAX).as_bytes());
    conn.send(&vec![b' '; BODY_BYTES_MAX]);
    conn.answer().refused(422, "invalid_field", Some(""));
}

#[test]
fn a_slow_request_is_answered_with_a_timeout() {
    let config = Config {
        head_max: std::time::Duration::from_millis(100),
        body_pause_max: std::time::Duration::from_millis(100),
        idle_max: std::time::Duration::from_millis(300),
        ..Config::default()
    };
    let server = Server::with(None, config);
    let mut head = server.connect();
    head.send(b"GET /healthz HTTP/1.1\r\nHost: loc");
    head.answer().refused(408, "request_timeout", None);
    assert!(head.is_closed());
    let mut body = server.connect();
    body.send(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{");
    body.answer().refused(408, "request_timeout", None);
    let mut lines = server.connect();
    lines.send(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: 100\r\n\r\n{}\n{}\n{");
    let answers = lines.answer().lines();
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert_eq!(answers[1]["duplicate"], false);
    assert_eq!(answers[2]["code"], "request_timeout");
    // A silent connection gets no answer.
    assert!(server.connect().is_closed());
    // The second request of a connection is timed like the first.
    let mut again = server.connect();
    assert_eq!(again.call("GET", "/healthz", "").status, 200);
    again.send(b"GET");
    again.answer().refused(408, "request_timeout", None);
}

/// Without a token a loopback name is all that a call needs, so nothing may lend that name to
/// others.
#[test]
fn an_open_server_refuses_calls_of_proxies_and_foreign_pages() {
    let (open, locked) = (Server::start(), Server::with(Some(TOKEN), Config::default()));
    for (headers, status) in [
        ("X-Forwarded-For: 10.0.0.9\r\n", 403),
        ("Forwarded: for=10.0.0.9\r\n", 403),
        ("X-Real-IP: 10.0.0.9\r\n", 403),
        ("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n", 403),
        ("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n", 200),
        ("Sec-Fetch-Site: same-origin\r\n", 200),
        ("", 200),
    ] {
        let get = |server: &Server, more: &str| {
            let headers = format!("Host: localhost\r\n{headers}{more}");
            server.connect().ask_with("GET", "/v1/stats", &headers, b"")
        };
        assert_eq!(get(&open, "").status, status, "{headers}");
        // A proxy in front of a server with a token is welcome.
        let token = format!("Authorization: Bearer {TOKEN}\r\n");
        assert_eq!(get(&locked, &token).status, 200, "{headers}");
    }
}

#[test]
fn no_answer_is_guessed_at_or_read_by_another_site() {
    let server = Server::start();
    for path in ["/v1/stats", "/v1/nothing", "/readyz"] {
        let answer = server.get(path);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"), "{path}");
    }
}
