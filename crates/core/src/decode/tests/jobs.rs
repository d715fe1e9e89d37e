//! Pushes of one job and of arrays.

use super::{refused, row};
use crate::decode::{push, push_line, push_line_to};
use crate::job::{Backoff, NewJob, OnConflict, Retry, Until, When};
use crate::names::QueueName;
use crate::refusal::Code::*;
use crate::time::{Moment, Span};

/// In the form of the contract.
const LATEST: &str = "2255-06-01T00:00:00Z";

fn one(body: &str) -> NewJob {
    match push(body.as_bytes()) {
        Ok(mut jobs) if jobs.len() == 1 => jobs.remove(0),
        other => panic!("{body}: {other:?}"),
    }
}

#[test]
fn a_job_of_nothing_has_the_defaults() {
    let default = NewJob::new(QueueName::parse("default").unwrap());
    assert_eq!(one("{}"), default);
    let nulls = r#"{"id":null,"queue":null,"kind":null,"payload":null,"run_at":null,"delay":null,
        "priority":null,"group":null,"needs":null,"unique":null,"retry":null,"timeout":null,
        "expires_at":null,"retain":null,"labels":null}"#;
    assert_eq!(one(nulls), default);
}

#[test]
fn every_field_of_a_job_is_taken() {
    let job = one(r#" {"id":"a","queue":"crawl","kind":"pages/fetch","payload":{ "n" : 1.0 },
        "run_at":"2026-12-01T09:55:00+08:00","priority":-100,"group":"tenant-7",
        "needs":[{"limit":"scrapy"},{"pool":"accounts","tag":"cn"}],
        "unique":{"key":"k","until":"start","for":"1h","on_conflict":"replace"},
        "retry":{"max_attempts":0,"backoff":{"kind":"list","delays":["1s","2s"],"jitter":false}},
        "timeout":"5m","expires_at":"2026-12-02T00:00:00Z","retain":"0s",
        "labels":{"a":"b","gone":null}} "#);
    assert_eq!(job.id.unwrap().as_str(), "a");
    assert_eq!((job.queue.as_str(), job.kind.as_str()), ("crawl", "pages/fetch"));
    assert_eq!(job.payload.text(), r#"{ "n" : 1.0 }"#);
    assert_eq!(job.when, When::At("2026-12-01T01:55:00Z".parse().unwrap()));
    assert_eq!((job.priority, job.group.unwrap().as_str()), (-100, "tenant-7"));
    assert_eq!(job.needs.unwrap().len(), 2);
    let unique = job.unique.unwrap();
    assert_eq!((unique.until, unique.on_conflict), (Until::Start, OnConflict::Replace));
    assert_eq!((unique.key.as_str(), unique.hold), ("k", Some(Span::from_s(3_600))));
    let delays = vec![Span::from_s(1), Span::from_s(2)];
    let backoff = Backoff::List { delays, jitter: false };
    assert_eq!(job.retry, Some(Retry { max_attempts: 0, backoff, ..Retry::default() }));
    assert_eq!((job.timeout, job.retain), (Some(Span::from_s(300)), Some(Span::ZERO)));
    assert_eq!(job.expires_at, Some("2026-12-02T00:00:00Z".parse().unwrap()));
    assert_eq!(job.labels.len(), 1);
}

#[test]
fn what_is_open_is_read_as_a_user_expects() {
    assert_eq!(one(r#"{"delay":"5m","run_at":null}"#).when, When::In(Span::from_s(300)));
    assert_eq!(one(r#"{"needs":[]}"#).needs, Some(vec![]));
    assert_eq!(one(r#"{"retry":{}}"#).retry, Some(Retry::default()));
    assert_eq!(one(r#"{"retry":{"backoff":{}}}"#).retry, Some(Retry::default()));
    let fixed = one(r#"{"retry":{"backoff":{"kind":"fixed","base":"5s"}}}"#).retry.unwrap();
    assert_eq!(fixed.backoff, Backoff::Fixed { base: Span::from_s(5), jitter: true });
    assert_eq!(one(r#"{"priority":-0}"#).priority, 0);
    let long_ago = "1970-01-01T00:00:00Z".parse().unwrap();
    for text in ["1969-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "1970-01-01T00:00:00+08:00"] {
        let job = one(&format!(r#"{{"run_at":"{text}"}}"#));
        assert_eq!(job.when, When::At(long_ago), "{text}");
    }
    // The bounds themselves are inside.
    assert_eq!(one(&format!(r#"{{"run_at":"{LATEST}"}}"#)).when, When::At(Moment::LAST));
    assert!(push(format!(r#"{{"payload":"{}"}}"#, "x".repeat(256 * 1024 - 2)).as_bytes()).is_ok());
    let labels: Vec<String> = (0..16).map(|i| format!("\"{i}\":\"{}\"", "v".repeat(256))).collect();
    assert!(push(format!(r#"{{"labels":{{{}}}}}"#, labels.join(",")).as_bytes()).is_ok());
}

#[test]
fn an_array_is_pushed_in_its_order() {
    let jobs = push(br#"[{"id":"a"},{"id":"b"}]"#).unwrap();
    let ids: Vec<_> = jobs.iter().filter_map(|job| job.id.as_ref()).map(|id| id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
    let many = format!("[{}]", vec!["{}"; 1_000].join(","));
    assert_eq!(push(many.as_bytes()).unwrap().len(), 1_000);
}

#[test]
fn a_wrong_job_is_refused_with_its_place() {
    let long = |n: usize| "x".repeat(n);
    let labels: Vec<String> = (0..17).map(|i| format!("\"{i}\":\"\"")).collect();
    let needs: Vec<String> = (0..17).map(|i| format!(r#"{{"limit":"l{i}"}}"#)).collect();
    let delays = vec!["\"1s\""; 101].join(",");
    refused(
        vec![
            // The body.
            row("", InvalidField, "", "send a JSON object"),
            row(" \n", InvalidField, "", "send a JSON object"),
            row("1", InvalidField, "", "send a job as a JSON object"),
            row("null", InvalidField, "", "as a JSON object"),
            row("\"a\"", InvalidField, "", "as a JSON object"),
            row("[]", OutOfBounds, "", "send 1 to 1000"),
            row(format!("[{}]", vec!["{}"; 1_001].join(",")), OutOfBounds, "", "send 1 to 1000"),
            row("[{},1]", InvalidField, "/1", "as a JSON object"),
            row("[[{}]]", InvalidField, "/0", "as a JSON object"),
            // Fields that do not exist.
            row(r#"{"prioritty":1}"#, UnknownField, "/prioritty", "did you mean \"priority\"?"),
            row(r#"{"zzz":1}"#, UnknownField, "/zzz", "the fields of a job are \"id\", \"queue\","),
            row(r#"{"zzz":null}"#, UnknownField, "/zzz", "\"traceparent\""),
            row(r#"{"a/b~c":1}"#, UnknownField, "/a~1b~0c", ""),
            row(r#"{"state":"ready"}"#, UnknownField, "/state", "answered and cannot be set"),
            row(r#"{"next_in":"1s"}"#, UnknownField, "/next_in", ""),
            row(r#"[{},{"x":1}]"#, UnknownField, "/1/x", ""),
            // Names.
            row(r#"{"id":""}"#, InvalidField, "/id", "1 to 256 bytes"),
            row(r#"{"id":7}"#, InvalidField, "/id", "JSON string"),
            row(r#"{"id":"key:a"}"#, InvalidField, "/id", "choose another id"),
            row(r#"{"id":"a\u0000"}"#, InvalidField, "/id", "control characters"),
            row(format!(r#"{{"id":"{}"}}"#, long(257)), OutOfBounds, "/id", "at most 256"),
            row(r#"{"queue":""}"#, InvalidField, "/queue", "1 to 128 bytes"),
            row(r#"{"queue":"a/b"}"#, InvalidField, "/queue", "'/'"),
            row(r#"{"queue":" a"}"#, InvalidField, "/queue", "space"),
            row(r#"{"queue":"a\u00a0"}"#, InvalidField, "/queue", "space"),
            row(r#"{"id":"a "}"#, InvalidField, "/id", "space"),
            row(r#"{"id":"\u200ba"}"#, InvalidField, "/id", "space"),
            row(r#"{"group":"a "}"#, InvalidField, "/group", "space"),
            row(r#"{"unique":{"key":"k\ufeff"}}"#, InvalidField, "/unique/key", "space"),
            row(r#"{"flow":"f "}"#, InvalidField, "/flow", "space"),
            row(r#"{"queue":{}}"#, InvalidField, "/queue", "JSON string"),
            row(format!(r#"{{"queue":"{}"}}"#, long(129)), OutOfBounds, "/queue", "at most 128"),
            row(r#"{"kind":1}"#, InvalidField, "/kind", "JSON string"),
            row(r#"{"kind":"a\nb"}"#, InvalidField, "/kind", "control characters"),
            row(format!(r#"{{"kind":"{}"}}"#, long(129)), OutOfBounds, "/kind", "at most 128"),
            row(r#"{"group":""}"#, InvalidField, "/group", "1 to 256 bytes"),
            row(format!(r#"{{"group":"{}"}}"#, long(257)), OutOfBounds, "/group", "at most 256"),
            // Payload.
            row(
                format!(r#"{{"payload":"{}"}}"#, long(256 * 1024 - 1)),
                OutOfBounds,
                "/payload",
                "elsewhere",
            ),
            // Time.
            row(r#"{"delay":5}"#, InvalidField, "/delay", "\"5m\""),
            row(r#"{"delay":"5"}"#, InvalidField, "/delay", "\"5m\""),
            row(r#"{"delay":"1m2h"}"#, InvalidField, "/delay", "largest first"),
            row(r#"{"delay":"3651d"}"#, OutOfBounds, "/delay", "\"3650d\""),
            row(r#"{"run_at":1796118900}"#, InvalidField, "/run_at", "\"2026-12-01T09:55:00Z\""),
            row(
                r#"{"run_at":"2026-12-01T09:55:00"}"#,
                InvalidField,
                "/run_at",
                "\"2026-12-01T09:55:00Z\"",
            ),
            row(r#"{"run_at":"tomorrow"}"#, InvalidField, "/run_at", "RFC 3339"),
            row(r#"{"run_at":"2300-01-01T00:00:00Z"}"#, OutOfBounds, "/run_at", LATEST),
            row(r#"{"run_at":"9999-01-01T00:00:00Z"}"#, OutOfBounds, "/run_at", LATEST),
            row(r#"{"expires_at":"2255-06-01T00:00:01Z"}"#, OutOfBounds, "/expires_at", "never"),
            row(
                r#"{"delay":"5m","run_at":"2026-12-01T09:55:00Z"}"#,
                ConflictingFields,
                "/run_at",
                "not both",
            ),
            row(r#"{"timeout":true}"#, InvalidField, "/timeout", "\"5m\""),
            row(r#"{"timeout":"0s"}"#, OutOfBounds, "/timeout", "more than \"0s\""),
            row(r#"{"expires_at":"5m"}"#, InvalidField, "/expires_at", "\"2026-12-01T09:55:00Z\""),
            row(r#"{"retain":60}"#, InvalidField, "/retain", "\"5m\""),
            // Numbers.
            row(r#"{"priority":101}"#, OutOfBounds, "/priority", "-100 to 100"),
            row(r#"{"priority":-101}"#, OutOfBounds, "/priority", "-100 to 100"),
            row(r#"{"priority":99999999999999999999}"#, OutOfBounds, "/priority", "-100 to 100"),
            row(r#"{"priority":1.5}"#, InvalidField, "/priority", "whole number"),
            row(r#"{"priority":1.0}"#, InvalidField, "/priority", "without a point"),
            row(r#"{"priority":1e1}"#, InvalidField, "/priority", "exponent"),
            row(r#"{"priority":"5"}"#, InvalidField, "/priority", "-100 to 100"),
            row(r#"{"priority":[5]}"#, InvalidField, "/priority", "-100 to 100"),
            row(r#"[{},{"priority":"5"}]"#, InvalidField, "/1/priority", ""),
            // Needs; more in the table of needs.
            row(r#"{"needs":{}}"#, InvalidField, "/needs", "JSON array"),
            row(
                format!(r#"{{"needs":[{}]}}"#, needs.join(",")),
                OutOfBounds,
                "/needs",
                "at most 16",
            ),
            row(
                r#"[{"needs":[{"limit":"a"},{"limit":"a"}]}]"#,
                DuplicateNeed,
                "/0/needs/1",
                "once",
            ),
            // Unique.
            row(r#"{"unique":"k"}"#, InvalidField, "/unique", "as a JSON object"),
            row(r#"{"unique":{}}"#, InvalidField, "/unique/key", "add \"key\""),
            row(r#"{"unique":{"key":null}}"#, InvalidField, "/unique/key", "add \"key\""),
            row(r#"{"unique":{"key":""}}"#, InvalidField, "/unique/key", "1 to 256"),
            row(
                format!(r#"{{"unique":{{"key":"{}"}}}}"#, long(257)),
                OutOfBounds,
                "/unique/key",
                "256",
            ),
            row(
                r#"{"unique":{"key":"k","until":"done"}}"#,
                InvalidField,
                "/unique/until",
                "\"end\" or \"start\"",
            ),
            row(
                r#"{"unique":{"key":"k","on_conflict":"rejct"}}"#,
                InvalidField,
                "/unique/on_conflict",
                "did you mean \"reject\"?",
            ),
            row(
                r#"{"unique":{"key":"k","on_conflict":1}}"#,
                InvalidField,
                "/unique/on_conflict",
                "\"keep\", \"replace\" or \"reject\"",
            ),
            row(r#"{"unique":{"key":"k","for":60}}"#, InvalidField, "/unique/for", "\"5m\""),
            row(
                r#"{"unique":{"key":"k","ttl":"1s"}}"#,
                UnknownField,
                "/unique/ttl",
                "\"on_conflict\"",
            ),
            // Retry.
            row(r#"{"retry":3}"#, InvalidField, "/retry", "as a JSON object"),
            row(
                r#"{"retry":{"max_attempts":-1}}"#,
                OutOfBounds,
                "/retry/max_attempts",
                "0 to 1000000000",
            ),
            row(
                r#"{"retry":{"max_attempts":null,"max_lost":"3"}}"#,
                InvalidField,
                "/retry/max_lost",
                "whole number",
            ),
            row(r#"{"retry":{"attempts":1}}"#, UnknownField, "/retry/attempts", "\"max_attempts\""),
            row(
                r#"{"retry":{"backoff":"1s"}}"#,
                InvalidField,
                "/retry/backoff",
                "as a JSON object",
            ),
            row(
                r#"{"retry":{"backoff":{"kind":"linear"}}}"#,
                InvalidField,
                "/retry/backoff/kind",
                "\"exponential\", \"fixed\" or \"list\"",
            ),
            row(
                r#"{"retry":{"backoff":{"base":1}}}"#,
                InvalidField,
                "/retry/backoff/base",
                "\"5m\"",
            ),
            row(
                r#"{"retry":{"backoff":{"jitter":"yes"}}}"#,
                InvalidField,
                "/retry/backoff/jitter",
                "true or false",
            ),
            row(
                r#"{"retry":{"backoff":{"delays":["1s"]}}}"#,
                ConflictingFields,
                "/retry/backoff/delays",
                "leave out",
            ),
            row(
                r#"{"retry":{"backoff":{"kind":"fixed","max":"1s"}}}"#,
                ConflictingFields,
                "/retry/backoff/max",
                "leave out",
            ),
            row(
                r#"{"retry":{"backoff":{"kind":"list"}}}"#,
                InvalidField,
                "/retry/backoff/delays",
                "add \"delays\"",
            ),
            row(
                r#"{"retry":{"backoff":{"kind":"list","delays":[]}}}"#,
                OutOfBounds,
                "/retry/backoff/delays",
                "1 to 100",
            ),
            row(
                format!(r#"{{"retry":{{"backoff":{{"kind":"list","delays":[{delays}]}}}}}}"#),
                OutOfBounds,
                "/retry/backoff/delays",
                "1 to 100",
            ),
            row(
                r#"{"retry":{"backoff":{"kind":"list","delays":["1s",2]}}}"#,
                InvalidField,
                "/retry/backoff/delays/1",
                "\"5m\"",
            ),
            // Traces and labels.
            row(r#"{"traceparent":"00-abc"}"#, InvalidField, "/traceparent", "W3C"),
            row(r#"{"traceparent":7}"#, InvalidField, "/traceparent", "JSON string"),
            row(r#"{"labels":[]}"#, InvalidField, "/labels", "{\"source\": \"feed\"}"),
            row(r#"{"labels":{"k":1}}"#, InvalidField, "/labels/k", "JSON string"),
            row(r#"{"labels":{"a/b":1}}"#, InvalidField, "/labels/a~1b", "JSON string"),
            row(
                format!(r#"{{"labels":{{{}}}}}"#, labels.join(",")),
                OutOfBounds,
                "/labels",
                "at most 16",
            ),
            row(r#"{"labels":{"":"v"}}"#, OutOfBounds, "/labels/", "1 to 64"),
            row(
                format!(r#"{{"labels":{{"k":"{}"}}}}"#, long(257)),
                OutOfBounds,
                "/labels/k",
                "at most 256",
            ),
        ],
        push,
    );
    let key = "k".repeat(65);
    let no = push(format!(r#"{{"labels":{{"{key}":"v"}}}}"#).as_bytes()).unwrap_err();
    assert_eq!((no.code, no.pointer), (OutOfBounds, Some(format!("/labels/{key}"))));
}

#[test]
fn an_item_of_an_array_is_named_by_its_number() {
    for (body, index) in [
        (r#"[{},{},{"priority":"x"}]"#, Some(2)),
        (r#"[1]"#, Some(0)),
        (r#"{"priority":"x"}"#, None),
        ("[]", None),
    ] {
        assert_eq!(push(body.as_bytes()).unwrap_err().index, index, "{body}");
    }
}

#[test]
fn what_is_not_json_is_bad_json() {
    for body in ["{", "{\"a\":1,\"a\":2}", "{} {}", "{\"payload\":{\"k\":1,\"k\":2}}", "\u{1}"] {
        let no = push(body.as_bytes()).unwrap_err();
        assert_eq!((no.code, no.pointer), (BadJson, None), "{body}");
    }
    let deep = |n: usize| format!("{{\"payload\":{}{}}}", "[".repeat(n), "]".repeat(n));
    assert!(push(deep(63).as_bytes()).is_ok());
    assert_eq!(push(deep(64).as_bytes()).unwrap_err().code, BadJson);
}

#[test]
fn a_line_is_one_job() {
    let nightly = QueueName::parse("nightly").unwrap();
    assert_eq!(push_line(b"{}").unwrap().queue.as_str(), "default");
    assert_eq!(push_line_to(b"{}", &nightly).unwrap().queue, nightly);
    assert_eq!(push_line_to(br#"{"queue":"a"}"#, &nightly).unwrap().queue.as_str(), "a");
    let long = format!(r#"{{"payload":"{}"}}"#, "x".repeat(512 * 1024));
    for read in [push_line as fn(&[u8]) -> _, |line| push_line_to(line, &QueueName::parse("a")?)] {
        assert_eq!(read(long.as_bytes()).unwrap_err().code, TooLarge);
        assert_eq!(read(b"[{}]").unwrap_err().code, InvalidField);
        let no = read(b"{").unwrap_err();
        assert_eq!(no.code, BadJson);
        assert!(no.detail.starts_with("the line is not JSON") && !no.detail.contains("line 1"));
        assert_eq!(read(br#"{"x":1}"#).unwrap_err().pointer.unwrap(), "/x");
    }
}
