//! The table of answers, row by row.

use super::*;
use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use tenure_core::lease::Later;

fn answer(status: u16, headers: &[(&'static str, &str)], body: &str) -> Received {
    let headers = headers.iter().map(|(name, value)| {
        (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
    });
    let (body, length) = (Bytes::from(body.to_owned()), body.len() as u64);
    Received { status, headers: headers.collect(), body, length, fault: None }
}

fn meant(answer: &Received) -> SettleOutcome {
    let found = verdicts(answer, &[], SystemTime::UNIX_EPOCH);
    assert_eq!(found.strange, Vec::<String>::new());
    found.outcome
}

fn done(result: Option<&str>) -> SettleOutcome {
    Ending::Succeeded { result: result.map(|text| Json::parse(text).unwrap()) }.into()
}

fn limits(names: &[&str]) -> Vec<LimitName> {
    names.iter().map(|name| LimitName::parse(name).unwrap()).collect()
}

#[test]
fn a_2xx_is_done_and_its_body_is_the_result() {
    for (status, body, result) in [
        (200, "", None),
        (204, "", None),
        (200, " \r\n", None),
        (200, "{\"n\": 1.50}\n", Some("{\"n\": 1.50}")),
        (201, "null", Some("null")),
        (200, "thank you\n", Some("\"thank you\"")),
        (206, "{\"a\":1,\"a\":2}", Some("\"{\\\"a\\\":1,\\\"a\\\":2}\"")),
    ] {
        assert_eq!(meant(&answer(status, &[], body)), done(result), "{status} {body}");
    }
}

#[test]
fn a_202_or_a_2xx_with_retry_after_asks_again() {
    let later = |s| SettleOutcome::snoozed(Span::from_s(s));
    let date = ("retry-after", "Thu, 01 Jan 1970 00:02:00 GMT");
    for (status, headers, is) in [
        (202, &[][..], later(30)),
        (202, &[("retry-after", "5")], later(5)),
        (200, &[("retry-after", "90")], later(90)),
        (204, &[date], later(120)),
        (200, &[date, ("date", "Thu, 01 Jan 1970 00:01:59 GMT")], later(1)),
    ] {
        assert_eq!(meant(&answer(status, headers, "ignored")), is, "{status} {headers:?}");
    }
}

#[test]
fn a_429_or_503_with_retry_after_snoozes_and_pauses_limits() {
    let held = limits(&["scrapy", "site:a", "site:b"]);
    for status in [429, 503] {
        let headers = [("retry-after", "7"), ("tenure-pause", " site:b, other ,, site:b,scrapy")];
        let found = verdicts(&answer(status, &headers, ""), &held, SystemTime::UNIX_EPOCH);
        let rest = Span::from_s(7);
        let [scrapy, _, b] = held.clone().try_into().unwrap();
        let paused = SettleOutcome::snoozed(rest).pause(b, rest).pause(scrapy, rest);
        assert_eq!(found, Verdicts { outcome: paused, strange: vec!["other".to_owned()] });
        let headers = [("tenure-pause", "scrapy")];
        let found = verdicts(&answer(status, &headers, "busy"), &held, SystemTime::UNIX_EPOCH);
        assert_eq!(found, SettleOutcome::failed(format!("http {status}: busy")).into());
    }
}

#[test]
fn a_400_410_or_422_is_final_and_all_else_is_tried_again() {
    for status in [400, 410, 422] {
        let is = SettleOutcome::failed_for_good(format!("http {status}: no such page"));
        assert_eq!(meant(&answer(status, &[], "no such\n page")), is);
    }
    for status in [101, 401, 403, 404, 408, 409, 418, 429, 500, 502, 503, 599] {
        let is = SettleOutcome::failed(format!("http {status}: no such page"));
        assert_eq!(meant(&answer(status, &[], "no such\n page")), is);
        let bare = SettleOutcome::failed(format!("http {status}"));
        assert_eq!(meant(&answer(status, &[], "")), bare);
    }
}

#[test]
fn a_redirect_says_where_it_leads_without_what_may_be_secret() {
    for (location, shown) in [
        ("https://me:geheim@other/jobs?token=geheim", " to https://•••@other/jobs?•••"),
        ("/login?next=geheim", " to /login"),
        ("//geheim/x", ""),
        ("HTTPS://me:geheim@other/jobs?token=geheim", ""),
        ("https://other/jobs#token=geheim", ""),
        ("?token=geheim", ""),
        ("geheim", ""),
    ] {
        let said = format!(
            "http 307, a redirect{shown}: it is not followed; give --http the address that it leads to"
        );
        let found = meant(&answer(307, &[("location", location)], "moved"));
        assert_eq!(found, SettleOutcome::failed(said), "{location}");
    }
}

#[test]
fn an_outcome_is_a_settle_item() {
    let of = |text: &str| {
        meant(&answer(200, &[("content-type", "Application/Tenure-Outcome+JSON; v=1")], text))
    };
    let text = r#"{"outcome":"snoozed","for":"5m","limits":[{"limit":"site:a","pause":"30s"}]}"#;
    let [a] = limits(&["site:a"]).try_into().unwrap();
    let five = SettleOutcome::snoozed(Span::from_s(300)).pause(a, Span::from_s(30));
    assert_eq!(of(text), five);
    let text = r#"{"outcome":"failed","error":"gone","final":true}"#;
    assert_eq!(of(text), SettleOutcome::failed_for_good("gone"));
    let silent = SettleOutcome::failed("http 200: the service says \"failed\" and no error");
    assert_eq!(of(r#"{"outcome":"failed"}"#), silent);
    for text in ["", "{", "[]", r#"{"outcome":"done"}"#, r#"{"outcome":"released","lease":"x"}"#] {
        let Ending::Failed { error, last: false, .. } = of(text).ending else {
            panic!("{text} is used")
        };
        assert!(error.starts_with("http 200, and its outcome cannot be used: "), "{error}");
    }
    let later = meant(&answer(
        200,
        &[("content-type", OUTCOME), ("retry-after", "5")],
        r#"{"outcome":"snoozed","until":"2026-12-01T08:00:00Z"}"#,
    ));
    let until = Later::Until("2026-12-01T08:00:00Z".parse().unwrap());
    assert_eq!(later.ending, Ending::Snoozed { later: until, reset: false });
}

#[test]
fn a_truncated_or_unreadable_answer_is_a_failure_with_a_reason() {
    let mut cut = answer(200, &[], "{\"n\":");
    cut.fault = Some(BodyFault::BreaksOff);
    let said = "http 200, and its answer breaks off; the service may have done the work";
    assert_eq!(meant(&cut), SettleOutcome::failed(said));
    let mut long = answer(200, &[], "");
    long.fault = Some(BodyFault::TooLong);
    let said = "http 200, and its answer is longer than 262144 bytes";
    assert_eq!(meant(&long), SettleOutcome::failed(said));
    let quotes = "\"".repeat(PAYLOAD_BYTES_MAX - 10);
    assert_eq!(meant(&answer(200, &[], &quotes)), SettleOutcome::failed(said), "as JSON");
    // The status of a failure is known however its body ends.
    let mut gone = answer(410, &[], "go");
    gone.fault = Some(BodyFault::BreaksOff);
    assert_eq!(meant(&gone), SettleOutcome::failed_for_good("http 410: go"));
    for status in [200, 202, 429] {
        let said = format!(
            "http {status} with a Retry-After that is neither seconds nor an HTTP date: busy"
        );
        let found = meant(&answer(status, &[("retry-after", "soon")], "busy"));
        assert_eq!(found, SettleOutcome::failed(said));
    }
}

#[test]
fn only_the_first_part_of_a_body_is_shown_in_one_line() {
    assert_eq!(first_part(b" <h1>\r\n\tNo\x1b[31m </h1>\n"), "<h1> No[31m </h1>");
    let long = first_part("é".repeat(2_000).as_bytes());
    assert_eq!(long.chars().count(), SHOWN_CHARS + 1);
    assert!(long.ends_with('…'));
    assert_eq!(first_part(b"\xff\xfe"), "\u{fffd}\u{fffd}");
}
