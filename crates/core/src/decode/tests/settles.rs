//! Settle calls, and the outcome file.

use super::{refused, row};
use crate::bounds::ERROR_BYTES_MAX;
use crate::decode::{settle, settle_item_without_lease};
use crate::lease::{Ending, Later, Verdict};
use crate::refusal::Code::*;
use crate::requests::Ask;
use crate::time::Span;

#[test]
fn every_outcome_is_taken() {
    let call = settle(
        br#"{"settle":[
        {"lease":"l1","outcome":"succeeded","result":{"n":1},
         "resources":[{"pool":"accounts","id":"13800000000","verdict":"ok"},
                      {"pool":"proxies","id":"p7","verdict":"cool","for":"10m"}],
         "limits":[{"limit":"site:example.com","pause":"30s"},{"limit":"llm:tokens","spent":812}],
         "push":[{"queue":"next","delay":"1s"}]},
        {"lease":"l2","outcome":"failed","error":"http 500","retry_in":"10s"},
        {"lease":"l3","outcome":"failed","error":"no such page","final":true,
         "resources":[{"pool":"accounts","id":"139","verdict":"ban","reason":"captcha"}]},
        {"lease":"l4","outcome":"snoozed","for":"5s"},
        {"lease":"l5","outcome":"released"},
        {"lease":"l6","outcome":"snoozed","until":"2026-12-01T09:55:00Z","result":null},
        {"lease":"l7","outcome":"failed","retry_in":"0s","final":false,"resources":[{"pool":"a","id":"b"}]}]}"#,
    )
    .unwrap();
    let [l1, l2, l3, l4, l5, l6, l7] = &call.settle[..] else { panic!("{call:?}") };
    assert!(
        matches!(&l1.ending, Ending::Succeeded { result: Some(n) } if n.text() == r#"{"n":1}"#)
    );
    assert_eq!(l1.resources[1].verdict, Verdict::Cool(Later::For(Span::from_s(600))));
    assert_eq!(l1.limits[0].pause, Some(Span::from_s(30)));
    assert_eq!((l1.limits[1].spent, l1.push.len()), (Some(812), 1));
    let ten = Some(Span::from_s(10));
    let failed =
        |error: &str, retry_in, last| Ending::Failed { error: error.into(), retry_in, last };
    assert_eq!(l2.ending, failed("http 500", ten, false));
    assert_eq!(l3.ending, failed("no such page", None, true));
    assert_eq!(l3.resources[0].verdict, Verdict::Ban { reason: Some("captcha".into()) });
    assert_eq!(l4.ending, Ending::Snoozed { later: Later::For(Span::from_s(5)), reset: false });
    assert_eq!(l5.ending, Ending::Released);
    assert!(matches!(l6.ending, Ending::Snoozed { later: Later::Until(_), reset: false }));
    assert_eq!(l7.ending, failed("", Some(Span::ZERO), false));
    assert_eq!(l7.resources[0].verdict, Verdict::Ok);
    assert!(settle(br#"{"settle":[]}"#).unwrap().settle.is_empty());
}

#[test]
fn any_outcome_may_report_and_a_snooze_start_the_attempts_again() {
    let call = settle(
        br#"{"settle":[
        {"lease":"l1","outcome":"succeeded","progress":{"n": 1}},
        {"lease":"l2","outcome":"failed","progress":[1]},
        {"lease":"l3","outcome":"snoozed","for":"1s","reset":true,"progress":"x"},
        {"lease":"l4","outcome":"snoozed","for":"1s","reset":false,"progress":null},
        {"lease":"l5","outcome":"released","reset":null,"progress":0}]}"#,
    )
    .unwrap();
    let reports: Vec<_> = call
        .settle
        .iter()
        .map(|item| item.progress.as_ref().map(|progress| progress.text().to_owned()))
        .collect();
    let told = ["{\"n\": 1}", "[1]", "\"x\"", "", "0"];
    assert_eq!(reports, told.map(|text| Some(text.to_owned()).filter(|text| !text.is_empty())));
    let resets = call.settle.iter().map(|item| match item.ending {
        Ending::Snoozed { reset, .. } => reset,
        _ => false,
    });
    assert_eq!(resets.collect::<Vec<_>>(), [false, false, true, false, false]);
}

#[test]
fn a_lease_call_comes_with_a_settle() {
    let call =
        settle(br#"{"settle":[],"lease":{"queues":["a"],"max":5,"wait":"10s","request_id":"r"}}"#);
    let lease = call.unwrap().lease.unwrap();
    assert!(matches!(&lease.ask, Ask::Jobs { max: 5, .. }));
    assert_eq!((lease.wait, lease.request_id.unwrap().as_str()), (Span::from_s(10), "r"));
    assert_eq!(settle(br#"{"settle":[],"lease":null}"#).unwrap().lease, None);
    let lease = |body: &str| format!(r#"{{"settle":[],"lease":{body}}}"#);
    let wrong = r#"{"settle":[{"lease":"l"}],"lease":{}}"#;
    refused(
        vec![
            row(lease("[]"), InvalidField, "/lease", "object"),
            row(lease("1"), InvalidField, "/lease", "object"),
            row(lease(r#"{"queues":["a"]}"#), InvalidField, "/lease/request_id", "\"r-1\""),
            row(
                lease(r#"{"queues":["a"],"request_id":null}"#),
                InvalidField,
                "/lease/request_id",
                "add \"request_id\"",
            ),
            row(lease(r#"{"request_id":"r"}"#), InvalidField, "/lease/queues", "\"needs\""),
            row(
                lease(r#"{"queues":["a"],"request_id":"r","wait":"61s"}"#),
                OutOfBounds,
                "/lease/wait",
                "at most \"1m\"",
            ),
            row(
                lease(r#"{"queues":["a"],"needs":[{"limit":"a"}],"request_id":"r"}"#),
                ConflictingFields,
                "/lease/needs",
                "not both",
            ),
            row(
                lease(r#"{"needs":[{"limit":"a"},{"limit":"a"}],"request_id":"r"}"#),
                DuplicateNeed,
                "/lease/needs/1",
                "once",
            ),
            row(
                lease(r#"{"queues":["a"],"request_id":"r","que":1}"#),
                UnknownField,
                "/lease/que",
                "\"queues\"",
            ),
            row(r#"{"lease":{"queues":["a"],"request_id":"r"}}"#, InvalidField, "/settle", "add"),
            row(wrong, InvalidField, "/settle/0/outcome", "add"),
            row(r#"{"settle":[],"leases":[]}"#, UnknownField, "/leases", "answered"),
        ],
        settle,
    );
}

#[test]
fn of_a_long_error_the_end_is_kept() {
    for (error, kept) in [
        ("x".repeat(ERROR_BYTES_MAX), "x".repeat(ERROR_BYTES_MAX)),
        (format!("a{}", "x".repeat(ERROR_BYTES_MAX)), "x".repeat(ERROR_BYTES_MAX)),
        // Three bytes each: the cut falls inside a character, which is dropped whole.
        ("中".repeat(3_000), "中".repeat(ERROR_BYTES_MAX / 3)),
    ] {
        let body =
            format!(r#"{{"settle":[{{"lease":"l","outcome":"failed","error":"{error}"}}]}}"#);
        let call = settle(body.as_bytes()).unwrap();
        assert!(matches!(&call.settle[0].ending, Ending::Failed { error, .. } if *error == kept));
    }
}

#[test]
fn a_wrong_settle_is_refused_with_its_place() {
    let item = |rest: &str| format!(r#"{{"settle":[{{"lease":"l",{rest}}}]}}"#);
    let push = vec!["{}"; 101].join(",");
    let result = "x".repeat(256 * 1024);
    let report = "x".repeat(4 * 1024);
    let many = vec![r#"{"lease":"l","outcome":"released"}"#; 1_001].join(",");
    refused(
        vec![
            row("", InvalidField, "", "object"),
            row("{}", InvalidField, "/settle", "add \"settle\""),
            row(r#"[{"lease":"l","outcome":"released"}]"#, InvalidField, "", "object"),
            row(r#"{"settle":{}}"#, InvalidField, "/settle", "array"),
            row(r#"{"settle":[1]}"#, InvalidField, "/settle/0", "object"),
            row(format!(r#"{{"settle":[{many}]}}"#), OutOfBounds, "/settle", "at most 1000"),
            row(
                r#"{"settle":[{"outcome":"released"}]}"#,
                InvalidField,
                "/settle/0/lease",
                "add \"lease\"",
            ),
            row(
                r#"{"settle":[{"lease":"l"}]}"#,
                InvalidField,
                "/settle/0/outcome",
                "add \"outcome\"",
            ),
            row(
                item(r#""outcome":"done""#),
                InvalidField,
                "/settle/0/outcome",
                "\"succeeded\", \"failed\", \"snoozed\" or \"released\"",
            ),
            row(item(r#""outcome":"lost""#), InvalidField, "/settle/0/outcome", "\"released\""),
            row(
                item(r#""outcome":"suceeded""#),
                InvalidField,
                "/settle/0/outcome",
                "did you mean \"succeeded\"?",
            ),
            row(item(r#""outcome":1"#), InvalidField, "/settle/0/outcome", "\"succeeded\""),
            row(
                item(r#""outcome":"released","next_in":"1500ms""#),
                InvalidField,
                "/settle/0/next_in",
                "whole seconds",
            ),
            row(
                item(r#""outcome":"released","next_in":"0s""#),
                OutOfBounds,
                "/settle/0/next_in",
                "1s",
            ),
            row(
                item(r#""outcome":"released","retries_in":"1s""#),
                UnknownField,
                "/settle/0/retries_in",
                "\"retry_in\"",
            ),
            row(
                item(r#""outcome":"released","state":"ready""#),
                UnknownField,
                "/settle/0/state",
                "answered",
            ),
            // Fields of another outcome.
            row(
                item(r#""outcome":"failed","result":1"#),
                ConflictingFields,
                "/settle/0/result",
                "the outcome \"failed\"",
            ),
            row(
                item(r#""outcome":"succeeded","error":"x""#),
                ConflictingFields,
                "/settle/0/error",
                "leave out",
            ),
            row(
                item(r#""outcome":"succeeded","for":"1s""#),
                ConflictingFields,
                "/settle/0/for",
                "leave out",
            ),
            row(
                item(r#""outcome":"snoozed","for":"1s","final":true"#),
                ConflictingFields,
                "/settle/0/final",
                "leave out",
            ),
            row(
                item(r#""outcome":"released","retry_in":"1s""#),
                ConflictingFields,
                "/settle/0/retry_in",
                "leave out",
            ),
            // A reset belongs to snoozes alone.
            row(
                item(r#""outcome":"succeeded","reset":true"#),
                InvalidField,
                "/settle/0/reset",
                "leave out \"reset\"",
            ),
            row(
                item(r#""outcome":"failed","reset":false"#),
                InvalidField,
                "/settle/0/reset",
                "leave out",
            ),
            row(
                item(r#""outcome":"released","reset":1"#),
                InvalidField,
                "/settle/0/reset",
                "leave",
            ),
            row(
                item(r#""outcome":"snoozed","for":"1s","reset":"yes""#),
                InvalidField,
                "/settle/0/reset",
                "true or false",
            ),
            row(
                item(&format!(r#""outcome":"released","progress":"{report}""#)),
                OutOfBounds,
                "/settle/0/progress",
                "elsewhere",
            ),
            // Bounds of a result.
            row(
                item(&format!(r#""outcome":"succeeded","result":"{result}""#)),
                OutOfBounds,
                "/settle/0/result",
                "elsewhere",
            ),
            row(
                item(r#""outcome":"failed","error":{"m":1}"#),
                InvalidField,
                "/settle/0/error",
                "string",
            ),
            row(
                item(r#""outcome":"failed","retry_in":5"#),
                InvalidField,
                "/settle/0/retry_in",
                "\"5m\"",
            ),
            row(
                item(r#""outcome":"failed","final":1"#),
                InvalidField,
                "/settle/0/final",
                "true or false",
            ),
            row(
                item(r#""outcome":"failed","final":true,"retry_in":"1s""#),
                ConflictingFields,
                "/settle/0/retry_in",
                "another attempt",
            ),
            row(item(r#""outcome":"snoozed""#), InvalidField, "/settle/0/for", "\"until\""),
            row(
                item(r#""outcome":"snoozed","for":"99ms""#),
                OutOfBounds,
                "/settle/0/for",
                "\"100ms\" to",
            ),
            row(
                item(r#""outcome":"snoozed","for":"0s""#),
                OutOfBounds,
                "/settle/0/for",
                "\"100ms\" to",
            ),
            row(item(r#""outcome":"snoozed","for":30"#), InvalidField, "/settle/0/for", "\"5m\""),
            row(
                item(r#""outcome":"snoozed","for":"5s","until":"2026-12-01T09:55:00Z""#),
                ConflictingFields,
                "/settle/0/until",
                "not both",
            ),
            row(
                item(r#""outcome":"snoozed","until":"5s""#),
                InvalidField,
                "/settle/0/until",
                "RFC 3339",
            ),
            // Verdicts.
            row(
                item(r#""outcome":"released","resources":{}"#),
                InvalidField,
                "/settle/0/resources",
                "array",
            ),
            row(
                item(r#""outcome":"released","resources":[{"id":"a"}]"#),
                InvalidField,
                "/settle/0/resources/0/pool",
                "add \"pool\"",
            ),
            row(
                item(r#""outcome":"released","resources":[{"pool":"a"}]"#),
                InvalidField,
                "/settle/0/resources/0/id",
                "add \"id\"",
            ),
            row(
                item(r#""outcome":"released","resources":[{"pool":"a","id":"b","verdict":"bad"}]"#),
                InvalidField,
                "/settle/0/resources/0/verdict",
                "\"ok\", \"cool\" or \"ban\"",
            ),
            row(
                item(
                    r#""outcome":"released","resources":[{"pool":"a","id":"b","verdict":"cool"}]"#,
                ),
                InvalidField,
                "/settle/0/resources/0/for",
                "add \"for\"",
            ),
            row(
                item(r#""outcome":"released","resources":[{"pool":"a","id":"b","for":"1s"}]"#),
                ConflictingFields,
                "/settle/0/resources/0/for",
                "the verdict \"ok\"",
            ),
            row(
                item(
                    r#""outcome":"released","resources":[{"pool":"a","id":"b","verdict":"ban","for":"1s"}]"#,
                ),
                ConflictingFields,
                "/settle/0/resources/0/for",
                "the verdict \"ban\"",
            ),
            row(
                item(
                    r#""outcome":"released","resources":[{"pool":"a","id":"b","verdict":"ban","reason":1}]"#,
                ),
                InvalidField,
                "/settle/0/resources/0/reason",
                "string",
            ),
            row(
                item(r#""outcome":"released","limits":[{"limit":"a:*"}]"#),
                InvalidField,
                "/settle/0/limits/0/limit",
                "one limit",
            ),
            row(
                item(r#""outcome":"released","limits":[{"pause":"1s"}]"#),
                InvalidField,
                "/settle/0/limits/0/limit",
                "add \"limit\"",
            ),
            row(
                item(r#""outcome":"released","limits":[{"limit":"a","pause":30}]"#),
                InvalidField,
                "/settle/0/limits/0/pause",
                "\"5m\"",
            ),
            row(
                item(r#""outcome":"released","limits":[{"limit":"a","spent":-1}]"#),
                OutOfBounds,
                "/settle/0/limits/0/spent",
                "0 to",
            ),
            row(
                item(r#""outcome":"released","limits":[{"limit":"a","cost":1}]"#),
                UnknownField,
                "/settle/0/limits/0/cost",
                "\"spent\"",
            ),
            // Follow-ups.
            row(
                item(&format!(r#""outcome":"released","push":[{push}]"#)),
                OutOfBounds,
                "/settle/0/push",
                "at most 100",
            ),
            row(item(r#""outcome":"released","push":{}"#), InvalidField, "/settle/0/push", "array"),
            row(
                item(r#""outcome":"released","push":[{},{"priority":"1"}]"#),
                InvalidField,
                "/settle/0/push/1/priority",
                "whole",
            ),
        ],
        settle,
    );
    let second = br#"{"settle":[{"lease":"l","outcome":"released"},{"lease":"l","outcome":"x"}]}"#;
    assert_eq!(settle(second).unwrap_err().index, Some(1));
}

#[test]
fn an_outcome_file_has_no_lease() {
    let item = settle_item_without_lease(br#"{"outcome":"released"}"#).unwrap();
    assert_eq!((item.lease.as_str(), item.ending), ("", Ending::Released));
    let file = br#"{"outcome":"snoozed","for":"1m","reset":true,"progress":7}"#;
    let item = settle_item_without_lease(file).unwrap();
    assert!(matches!(item.ending, Ending::Snoozed { reset: true, .. }));
    assert_eq!(item.progress.unwrap().text(), "7");
    refused(
        vec![
            row("", InvalidField, "", "object"),
            row("{}", InvalidField, "/outcome", "add \"outcome\""),
            row(r#"{"outcome":"released","lease":"x"}"#, UnknownField, "/lease", "\"outcome\""),
            row(r#"{"outcome":"snoozed"}"#, InvalidField, "/for", "\"until\""),
            row(r#"{"outcome":"released","reset":true}"#, InvalidField, "/reset", "leave out"),
            row(r#"{"outcome":"succeeded","push":[1]}"#, InvalidField, "/push/0", "object"),
        ],
        settle_item_without_lease,
    );
}
