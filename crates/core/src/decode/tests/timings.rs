//! Timings of schedules, in the body of a preview.

use super::{refused, row};
use crate::decode::*;
use crate::refusal::Code::*;
use crate::time::Span;

#[test]
fn a_preview_says_a_timing_and_how_much_of_it_to_show() {
    let asked = preview(
        br#"{"id":"news-42","cron":"0 9 * * 1-5","zone":"Europe/Berlin","every":null,
            "starts_at":"2026-12-01T00:00:00Z","ends_at":"2027-12-01T00:00:00Z","from":"2026-11-01T00:00:00Z","count":3}"#,
    )
    .unwrap();
    assert_eq!(asked.id.unwrap().as_str(), "news-42");
    assert_eq!(asked.timing.cron.as_deref(), Some("0 9 * * 1-5"));
    assert_eq!(asked.timing.zone.as_deref(), Some("Europe/Berlin"));
    assert_eq!(asked.timing.starts_at, Some("2026-12-01T00:00:00Z".parse().unwrap()));
    assert_eq!(asked.timing.ends_at, Some("2027-12-01T00:00:00Z".parse().unwrap()));
    assert_eq!(asked.from, Some("2026-11-01T00:00:00Z".parse().unwrap()));
    assert_eq!((asked.count, asked.timing.jitter), (3, Span::ZERO));

    let asked = preview(br#"{"cron":"@daily"}"#).unwrap();
    assert_eq!((asked.id, asked.from, asked.count), (None, None, 5));
    assert_eq!(asked.timing.zone.as_deref(), Some("UTC"), "the zone is UTC unless it is named");

    let asked = preview(br#"{"every":"1h30m","id":"a"}"#).unwrap();
    assert_eq!(asked.timing.every, Some(Span::from_s(5_400)));
    assert_eq!((asked.timing.cron, asked.timing.zone), (None, None));
    assert!(preview(br#"{"every":"1s","starts_at":"2026-12-01T00:00:00Z"}"#).is_ok());
    assert!(preview(br#"{"every":"3650d","id":"a","count":100}"#).is_ok());
}

#[test]
fn a_wrong_preview_is_refused_with_its_place() {
    let long = format!(r#"{{"cron":"{}"}}"#, "1".repeat(1_025));
    refused(
        vec![
            row("", InvalidField, "", "object"),
            row("[]", InvalidField, "", "object"),
            row("{}", InvalidField, "/cron", "or \"every\": \"15m\""),
            row(r#"{"zone":"UTC"}"#, InvalidField, "/cron", "add \"cron\""),
            row(r#"{"cron":null,"every":null}"#, InvalidField, "/cron", "add \"cron\""),
            row(r#"{"cron":"@daily","every":"1d"}"#, ConflictingFields, "/every", "not both"),
            row(r#"{"every":"1d","zone":"UTC"}"#, ConflictingFields, "/zone", "not both"),
            row(r#"{"cron":5}"#, InvalidField, "/cron", "string"),
            row(long, OutOfBounds, "/cron", "1024"),
            row(r#"{"cron":"@daily","zone":1}"#, InvalidField, "/zone", "string"),
            row(r#"{"id":"a","every":60}"#, InvalidField, "/every", "\"5m\""),
            row(r#"{"id":"a","every":"soon"}"#, InvalidField, "/every", "\"5m\""),
            row(r#"{"id":"a","every":"1500ms"}"#, InvalidField, "/every", "whole seconds"),
            row(r#"{"id":"a","every":"1d1ms"}"#, InvalidField, "/every", "whole seconds"),
            row(r#"{"id":"a","every":"500ms"}"#, OutOfBounds, "/every", "\"1s\" to \"3650d\""),
            row(r#"{"id":"a","every":"0s"}"#, OutOfBounds, "/every", "\"1s\" to \"3650d\""),
            row(r#"{"id":"a","every":"3651d"}"#, OutOfBounds, "/every", "\"1s\" to \"3650d\""),
            row(r#"{"every":"1h"}"#, InvalidField, "/id", "phase"),
            row(r#"{"every":"1h","id":""}"#, InvalidField, "/id", "1 to"),
            row(r#"{"every":"1h","id":"key:a"}"#, InvalidField, "/id", "choose another"),
            row(r#"{"cron":"@daily","starts_at":"now"}"#, InvalidField, "/starts_at", "RFC 3339"),
            row(r#"{"cron":"@daily","ends_at":"2027"}"#, InvalidField, "/ends_at", "RFC 3339"),
            row(r#"{"cron":"@daily","from":"noon"}"#, InvalidField, "/from", "RFC 3339"),
            row(r#"{"cron":"@daily","count":0}"#, OutOfBounds, "/count", "1 to 100"),
            row(r#"{"cron":"@daily","count":101}"#, OutOfBounds, "/count", "1 to 100"),
            row(r#"{"cron":"@daily","count":"5"}"#, InvalidField, "/count", "whole"),
            row(r#"{"cron":"@daily","jitter":"1m"}"#, UnknownField, "/jitter", "a preview"),
            row(r#"{"cron":"@daily","next":[]}"#, UnknownField, "/next", "cannot be set"),
        ],
        preview,
    );
}
