//! Access to the pages, and the headers of every answer.

use tenure_core::decode;
use tenure_core::requests::GetJob;

use crate::served::{Got, Served};

const TOKEN: &str = "a-token-of-more-than-32-characters-00";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

#[test]
fn every_answer_forbids_what_a_page_must_not_do() {
    let served = Served::start();
    let page = served.get("/").page();
    let asset = page.split("href=\"/assets/").nth(1).unwrap().split('"').next().unwrap();
    let asset = format!("/assets/{asset}");
    for (path, cache) in [
        ("/", "no-store"),
        ("/jobs", "no-store"),
        ("/nothing", "no-store"),
        ("/login", "no-store"),
        (asset.as_str(), "public, max-age=31536000, immutable"),
    ] {
        let got = served.get(path);
        let policy = got.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"),
            "{path}"
        );
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{path}");
        assert_eq!(got.header("x-frame-options"), Some("DENY"), "{path}");
        assert_eq!(got.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(got.header("cache-control"), Some(cache), "{path}");
        assert!(got.header("referrer-policy").is_some(), "{path}");
    }
}

#[test]
fn a_form_of_another_page_changes_nothing() {
    let served = Served::start();
    served.push(r#"{"id":"j","queue":"q"}"#);
    let at = served.at;
    for headers in [
        "Sec-Fetch-Site: cross-site\r\n".to_owned(),
        "Sec-Fetch-Site: same-site\r\n".to_owned(),
        "Sec-Fetch-Site: none\r\n".to_owned(),
        String::new(),
        "Origin: http://evil.example\r\n".to_owned(),
        "Origin: null\r\n".to_owned(),
    ] {
        let got = served.request("POST", "/jobs/j/cancel", &format!("{FORM}{headers}"), "");
        assert_eq!(got.status, 403, "{headers}: {}", got.body);
    }
    let job = || served.ask(GetJob { job: decode::job_path("j").unwrap() }).state.as_str();
    assert_eq!(job(), "ready");
    // Any site can send a body of another type without a preflight; a form cannot send JSON.
    let json = "Content-Type: text/plain\r\nSec-Fetch-Site: same-origin\r\n";
    assert_eq!(served.request("POST", "/jobs/j/cancel", json, "a=1").status, 400);
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS"] {
        assert_eq!(served.request(method, "/jobs/j", "", "").status, 404, "{method}");
    }
    assert_eq!(served.get("/jobs/j/retry").status, 405, "an action is no page");
    assert_eq!(job(), "ready");
    let own = format!("{FORM}Origin: http://{at}\r\n");
    assert_eq!(served.request("POST", "/jobs/j/cancel", &own, "").status, 303);
    assert_eq!(job(), "cancelled");
}

#[test]
fn a_name_that_was_made_to_point_here_is_not_answered() {
    let served = Served::start();
    for host in ["evil.example", "evil.example:7171", "localhost.evil.example"] {
        for path in ["/", "/jobs", "/login", "/live"] {
            let got = served.request("GET", path, &format!("Host: {host}\r\n"), "");
            assert_eq!(got.status, 403, "{host} {path}");
        }
    }
}

fn log_in(served: &Served, token: &str) -> Got {
    let headers = format!("{FORM}Sec-Fetch-Site: same-origin\r\n");
    served.request("POST", "/login", &headers, &format!("token={token}&to=%2Fjobs%3Fq%3Dqueue:q"))
}

#[test]
fn without_the_token_nothing_is_told() {
    let served = Served::with(Some(TOKEN));
    served.push(r#"{"id":"seen-by-few","queue":"q"}"#);
    for path in ["/", "/jobs", "/jobs/seen-by-few", "/nothing", "/queues?ns=x"] {
        for cookie in ["", "Cookie: tenure_web=1.00\r\n", &format!("Cookie: tenure={TOKEN}\r\n")] {
            let got = served.request("GET", path, cookie, "");
            assert_eq!(got.status, 401, "{path}");
            assert!(got.body.contains("type=\"password\"") && got.header("set-cookie").is_none());
            // The form names the requested page, which its visitor knows.
            assert!(path.contains("seen") || !got.body.contains("seen-by-few"), "{path}");
        }
    }
    assert_eq!(served.get("/live").status, 401);
    assert_eq!(served.post("/jobs/seen-by-few/cancel", "").status, 401);
    for wrong in ["", "wrong", "a-token-of-more-than-32-characters-0"] {
        let got = log_in(&served, wrong);
        assert_eq!(got.status, 401, "{wrong}");
        assert!(got.header("set-cookie").is_none() && got.body.contains("not the token"));
    }
    let foreign = format!("{FORM}Sec-Fetch-Site: cross-site\r\n");
    let got = served.request("POST", "/login", &foreign, &format!("token={TOKEN}"));
    assert!(got.header("set-cookie").is_none(), "{}", got.status);
}

#[test]
fn the_token_begins_a_session_that_does_not_hold_it() {
    let served = Served::with(Some(TOKEN));
    served.push(r#"{"id":"seen","queue":"q"}"#);
    let got = log_in(&served, TOKEN);
    assert_eq!(got.leads_to(), "/jobs?q=queue:q");
    let set = got.header("set-cookie").unwrap();
    assert!(set.contains("; HttpOnly") && set.contains("; SameSite=Strict"), "{set}");
    assert!(!set.contains(TOKEN) && !set.contains("token"), "{set}");
    let cookie = format!("Cookie: {}\r\n", set.split(';').next().unwrap());
    let page = served.request("GET", "/jobs", &cookie, "").page();
    assert!(page.contains("seen") && page.contains("Log out"));
    // The cookie opens pages but not the API, which a page elsewhere could call with it.
    assert_eq!(served.request("GET", "/v1/jobs", &cookie, "").status, 401);
    let own = format!("{cookie}{FORM}Sec-Fetch-Site: same-origin\r\n");
    assert_eq!(served.request("POST", "/jobs/seen/cancel", &own, "").status, 303);
    let got = served.request("POST", "/logout", &own, "");
    assert!(got.header("set-cookie").unwrap().contains("Max-Age=0"));
}

/// A caller that has shown nothing may send no more than a login takes.
#[test]
fn a_strangers_form_is_not_read() {
    let served = Served::with(Some(TOKEN));
    // Nothing of the body is sent: a server that reads it waits for it.
    for (path, length, status) in [
        ("/login", 5_000, 413),
        ("/jobs", 1_000_000, 401),
        ("/jobs/j/cancel", 1_000_000, 401),
        ("/nothing", 1_000_000, 401),
    ] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n{FORM}Sec-Fetch-Site: same-origin\r\n\
             Connection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        let got = Served::read(served.connect(&head));
        assert_eq!(got.status, status, "{path}: {}", got.body);
    }
    // A login is read.
    let form = format!("token={TOKEN}&to=%2Fjobs");
    let headers = format!("{FORM}Sec-Fetch-Site: same-origin\r\n");
    assert_eq!(served.request("POST", "/login", &headers, &form).leads_to(), "/jobs");
}

/// A tab that follows a page ends with the session that opened it.
#[test]
fn a_stream_of_news_ends_with_its_session() {
    let served = Served::with(Some(TOKEN));
    let form = format!("token={TOKEN}&to=%2F");
    let headers = format!("{FORM}Sec-Fetch-Site: same-origin\r\n");
    let login = served.request("POST", "/login", &headers, &form);
    let cookie = login.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let head = format!(
        "GET /live HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nCookie: {cookie}\r\n\r\n",
        served.at
    );
    let stream = served.connect(&head);
    assert_eq!(stream.peek(&mut [0]).unwrap(), 1, "it begins");
    served.tokens.replace(vec![tenure_core::secret::Secret::new(
        "another-token-of-more-than-32-characters",
    )]);
    // Read to its end.
    let got = Served::read(stream);
    assert_eq!(got.status, 200);
    assert!(got.body.contains("retry:"), "{}", got.body);
}

/// A program with a wrong path gets a problem, and a person gets a page.
#[test]
fn an_unknown_path_is_a_page_only_to_clients_that_accept_html() {
    let served = Served::start();
    for (accept, kind) in [
        ("Accept: */*\r\n", "application/problem+json"),
        ("Accept: application/json\r\n", "application/problem+json"),
        ("Accept: application/xhtml+xml, text/HTML;q=0.9\r\n", "text/html; charset=utf-8"),
    ] {
        for path in ["/nothing", "/v2/jobs"] {
            let got = served.request("GET", path, accept, "");
            assert_eq!(
                (got.status, got.header("content-type")),
                (404, Some(kind)),
                "{accept}{path}"
            );
        }
        // A page that exists is shown to everybody.
        let got = served.request("GET", "/jobs", accept, "");
        assert_eq!(
            (got.status, got.header("content-type")),
            (200, Some("text/html; charset=utf-8"))
        );
    }
}
