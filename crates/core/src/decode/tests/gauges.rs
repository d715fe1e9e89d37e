//! The gauge in the body of a limit.

use super::{Row, refused, row};
use crate::decode::Decode;
use crate::gauge::{Gauge, GaugeSource, OnStale};
use crate::refusal::Code::{ConflictingFields, InvalidField, OutOfBounds, UnknownField};
use crate::requests::{Patch, PatchLimit, PutLimit};
use crate::time::Span;

fn gauge(text: &str) -> Gauge {
    let body = format!(r#"{{"concurrency":4,"gauge":{text}}}"#);
    *PutLimit::of(&["a"], body.as_bytes()).unwrap().gauge.expect("a gauge")
}

#[test]
fn a_gauge_is_read_with_its_defaults() {
    let of = gauge(r#"{"url":"http://me:p@host/load","count":["/running",""]}"#);
    let GaugeSource::Count { url, count } = &of.source else { panic!("{of:?}") };
    assert_eq!((url.reveal(), count.len()), ("http://me:p@host/load", 2));
    let spans = (of.every, of.lag, of.stale);
    assert_eq!(spans, (Span::from_s(2), Span::from_s(10), Span::from_s(30)));
    assert_eq!(of.on_stale, OnStale::Keep);
    let of = gauge(r#"{"scrapyd":"https://host","every":"1m","lag":"0s","on_stale":"hold"}"#);
    assert!(matches!(&of.source, GaugeSource::Scrapyd { project: None, .. }), "{of:?}");
    let spans = (of.every, of.lag, of.stale);
    assert_eq!(spans, (Span::from_s(60), Span::ZERO, Span::from_s(180)), "fresh for so long");
    assert_eq!(of.on_stale, OnStale::Hold);
    let of = gauge(r#"{"scrapyd":"https://host","project":"news"}"#);
    assert!(matches!(&of.source, GaugeSource::Scrapyd { project: Some(p), .. } if p == "news"));
}

#[test]
fn a_gauge_is_patched_whole_or_taken_away() {
    let patch = |body: &[u8]| PatchLimit::of(&["a"], body).unwrap().gauge;
    assert_eq!(patch(b"{}"), Patch::Keep);
    assert_eq!(patch(br#"{"gauge":null}"#), Patch::Reset);
    assert!(matches!(patch(br#"{"gauge":{"scrapyd":"http://h"}}"#), Patch::Set(_)));
}

#[test]
fn a_wrong_gauge_is_refused_with_its_place() {
    let many: Vec<String> = (0..17).map(|n| format!("\"/{n}\"")).collect();
    let many = format!(r#"{{"url":"http://h","count":[{}]}}"#, many.join(","));
    let url = |rest: &str| format!(r#"{{"url":"http://h","count":["/n"],{rest}}}"#);
    let whole: Vec<Row> = vec![
        row("5", InvalidField, "/gauge", "object"),
        row("{}", InvalidField, "/gauge/url", "add \"url\""),
        row(r#"{"url":"http://h"}"#, InvalidField, "/gauge/count", "add \"count\""),
        row(r#"{"url":"http://h","count":[]}"#, OutOfBounds, "/gauge/count", "1 to 16"),
        row(many, OutOfBounds, "/gauge/count", "1 to 16"),
        row(r#"{"url":"http://h","count":["n"]}"#, InvalidField, "/gauge/count/0", "\"/running\""),
        row(r#"{"url":"http://h","count":["/~2"]}"#, InvalidField, "/gauge/count/0", "\"~1\""),
        row(r#"{"url":"ftp://h","count":["/n"]}"#, InvalidField, "/gauge/url", "server"),
        row(r#"{"scrapyd":"h"}"#, InvalidField, "/gauge/scrapyd", "server"),
        row(
            r#"{"url":"http://h","scrapyd":"http://h"}"#,
            ConflictingFields,
            "/gauge/scrapyd",
            "not both",
        ),
        row(
            r#"{"scrapyd":"http://h","count":["/n"]}"#,
            ConflictingFields,
            "/gauge/count",
            "leave out",
        ),
        row(url(r#""project":"p""#), ConflictingFields, "/gauge/project", "leave out"),
        row(url(r#""every":"499ms""#), OutOfBounds, "/gauge/every", "\"500ms\" to \"1h\""),
        row(url(r#""every":"1h1s""#), OutOfBounds, "/gauge/every", "\"1h\""),
        row(url(r#""lag":"1h1s""#), OutOfBounds, "/gauge/lag", "at most \"1h\""),
        row(url(r#""stale":"4s""#), OutOfBounds, "/gauge/stale", "at least \"6s\""),
        row(url(r#""every":"10s","stale":"29s""#), OutOfBounds, "/gauge/stale", "at least \"30s\""),
        row(url(r#""stale":"1d1s""#), OutOfBounds, "/gauge/stale", "\"1d\""),
        row(url(r#""on_stale":"open""#), InvalidField, "/gauge/on_stale", "\"hold\""),
        row(url(r#""reading":null"#), UnknownField, "/gauge/reading", "cannot be set"),
        row(url(r#""evry":"1s""#), UnknownField, "/gauge/evry", "did you mean \"every\"?"),
    ];
    let within = |rows: Vec<Row>| {
        let body = |(text, code, at, hint): Row| {
            row(format!(r#"{{"concurrency":4,"gauge":{text}}}"#), code, at, hint)
        };
        rows.into_iter().map(body).collect::<Vec<_>>()
    };
    refused(within(whole.clone()), |body| PutLimit::of(&["a"], body));
    refused(within(whole), |body| PatchLimit::of(&["a"], body));
    let scrapyd = r#"{"gauge":{"scrapyd":"http://h"}"#;
    refused(
        vec![
            row(format!("{scrapyd}}}"), InvalidField, "/gauge", "add \"concurrency\""),
            row(
                format!(r#"{scrapyd},"rate":{{"count":1,"per":"1s"}}}}"#),
                InvalidField,
                "/gauge",
                "add \"concurrency\"",
            ),
        ],
        |body| PutLimit::of(&["a"], body),
    );
    let of_template = format!(r#"{scrapyd},"concurrency":1}}"#);
    refused(vec![row(of_template, InvalidField, "/gauge", "of its own")], |body| {
        PutLimit::of(&["site:*"], body)
    });
}

#[test]
fn a_refusal_of_an_address_shows_nothing_of_it() {
    for text in ["http://me:geheim@", "http://me:ge heim@host", "geheim", "http://h/#geheim"] {
        let body = format!(r#"{{"concurrency":1,"gauge":{{"scrapyd":"{text}"}}}}"#);
        let no = PutLimit::of(&["a"], body.as_bytes()).unwrap_err();
        assert!(!format!("{no} {no:?}").contains("heim"), "{no:?}");
    }
}
