//! Lease and extend calls.

use super::{NONE, refused, row};
use crate::decode::{Decode, lease};
use crate::refusal::Code::*;
use crate::requests::{Ask, Extend};
use crate::time::Span;

#[test]
fn a_lease_call_has_defaults() {
    let call = lease(br#"{"queues":["a","b"]}"#).unwrap();
    assert!(matches!(&call.ask, Ask::Jobs { queues, max: 1 } if queues.len() == 2));
    assert_eq!((call.wait, call.ttl), (Span::ZERO, Span::from_s(30)));
    assert_eq!((call.worker.holder(), call.request_id, call.place), ("anonymous", None, None));
    let call = lease(
        br#"{"queues":["a"],"needs":null,"max":1000,"wait":"60s","ttl":"1h","request_id":"r",
            "place":"p","worker":{"id":"w","host":"h","pid":4294967295,"version":"1"}}"#,
    )
    .unwrap();
    assert!(matches!(call.ask, Ask::Jobs { max: 1_000, .. }));
    assert_eq!((call.wait, call.ttl), (Span::from_s(60), Span::from_s(3_600)));
    assert_eq!((call.worker.holder(), call.worker.pid), ("w", Some(u32::MAX)));
    assert_eq!(call.request_id.unwrap().as_str(), "r");
    assert_eq!(call.place.unwrap().as_str(), "p");
}

#[test]
fn a_token_needs_no_ttl_and_anonymous_is_nobody() {
    let call = lease(br#"{"needs":[{"limit":"a"}],"max":1,"ttl":"0s"}"#).unwrap();
    assert!(matches!(&call.ask, Ask::Needs(needs) if needs.len() == 1));
    assert_eq!(call.ttl, Span::ZERO);
    for worker in [r#""anonymous""#, r#"{"id":"anonymous"}"#, "{}", "null"] {
        let body = format!(r#"{{"queues":["a"],"worker":{worker}}}"#);
        assert_eq!(lease(body.as_bytes()).unwrap().worker.id, None, "{worker}");
    }
    let named = lease(br#"{"queues":["a"],"worker":"w1"}"#).unwrap();
    assert_eq!(named.worker.holder(), "w1");
}

#[test]
fn a_wrong_lease_call_is_refused_with_its_place() {
    let queues = |n: usize| {
        let names: Vec<String> = (0..n).map(|i| format!("\"q{i}\"")).collect();
        format!(r#"{{"queues":[{}]}}"#, names.join(","))
    };
    assert!(lease(queues(32).as_bytes()).is_ok());
    let needs = r#"[{"limit":"a"}]"#;
    refused(
        vec![
            row("", InvalidField, "", "object"),
            row("[]", InvalidField, "", "object"),
            row("{}", InvalidField, "/queues", "\"needs\""),
            row(r#"{"queues":null,"needs":null}"#, InvalidField, "/queues", "\"needs\""),
            row(
                format!(r#"{{"queues":["a"],"needs":{needs}}}"#),
                ConflictingFields,
                "/needs",
                "not both",
            ),
            row(r#"{"queues":[]}"#, OutOfBounds, "/queues", "1 to 32"),
            row(queues(33), OutOfBounds, "/queues", "1 to 32"),
            row(r#"{"queues":"a"}"#, InvalidField, "/queues", "array"),
            row(r#"{"queues":["a",1]}"#, InvalidField, "/queues/1", "string"),
            row(r#"{"queues":["a/b"]}"#, InvalidField, "/queues/0", "'/'"),
            row(r#"{"needs":[]}"#, OutOfBounds, "/needs", "1 to 16"),
            row(r#"{"needs":[{"limit":"a"},{"limit":"a"}]}"#, DuplicateNeed, "/needs/1", "once"),
            row(
                r#"{"needs":[{"pool":"a"},{"limit":"a"},{"pool":"a","tag":"x"}]}"#,
                DuplicateNeed,
                "/needs/2",
                "once",
            ),
            row(r#"{"queues":["a"],"max":0}"#, OutOfBounds, "/max", "1 to 1000"),
            row(r#"{"queues":["a"],"max":1001}"#, OutOfBounds, "/max", "1 to 1000"),
            row(r#"{"queues":["a"],"max":"5"}"#, InvalidField, "/max", "1 to 1000"),
            row(format!(r#"{{"needs":{needs},"max":2}}"#), ConflictingFields, "/max", "leave out"),
            row(r#"{"queues":["a"],"wait":"61s"}"#, OutOfBounds, "/wait", "at most \"1m\""),
            row(r#"{"queues":["a"],"wait":10}"#, InvalidField, "/wait", "\"5m\""),
            row(r#"{"queues":["a"],"ttl":"999ms"}"#, OutOfBounds, "/ttl", "\"1s\" to \"1h\""),
            row(r#"{"queues":["a"],"ttl":"1h1ms"}"#, OutOfBounds, "/ttl", "\"1s\" to \"1h\""),
            row(r#"{"queues":["a"],"ttl":"0s"}"#, InvalidField, "/ttl", "only rates"),
            row(r#"{"queues":["a"],"ttl":30}"#, InvalidField, "/ttl", "\"5m\""),
            row(r#"{"queues":["a"],"worker":7}"#, InvalidField, "/worker", "random id"),
            row(r#"{"queues":["a"],"worker":""}"#, InvalidField, "/worker", "1 to 256"),
            row(r#"{"queues":["a"],"worker":{"id":""}}"#, InvalidField, "/worker/id", "1 to 256"),
            row(r#"{"queues":["a"],"worker":{"pid":-1}}"#, OutOfBounds, "/worker/pid", "0 to"),
            row(r#"{"queues":["a"],"worker":{"pid":"1"}}"#, InvalidField, "/worker/pid", "whole"),
            row(
                r#"{"queues":["a"],"worker":{"name":"x"}}"#,
                UnknownField,
                "/worker/name",
                "\"host\"",
            ),
            row(r#"{"queues":["a"],"request_id":""}"#, InvalidField, "/request_id", "1 to 256"),
            row(
                format!(r#"{{"queues":["a"],"request_id":"{}"}}"#, "x".repeat(257)),
                OutOfBounds,
                "/request_id",
                "256",
            ),
            row(
                r#"{"queues":["a"],"queue":"b"}"#,
                UnknownField,
                "/queue",
                "did you mean \"queues\"?",
            ),
        ],
        lease,
    );
}

#[test]
fn extend_takes_ids_and_reports() {
    assert!(Extend::of(&NONE, br#"{"leases":[]}"#).unwrap().leases.is_empty());
    let call =
        Extend::of(&NONE, br#"{"leases":["a",{"lease":"b","progress":{"n": 1}}],"ttl":"5s"}"#)
            .unwrap();
    assert_eq!((call.leases[0].lease.as_str(), call.ttl), ("a", Some(Span::from_s(5))));
    assert_eq!(call.leases[1].progress.as_ref().unwrap().text(), r#"{"n": 1}"#);
    let big = "x".repeat(4_095);
    refused(
        vec![
            row("", InvalidField, "", "object"),
            row("{}", InvalidField, "/leases", "add \"leases\""),
            row(r#"{"leases":"a"}"#, InvalidField, "/leases", "array"),
            row(r#"{"leases":["a",5]}"#, InvalidField, "/leases/1", "the lease's id"),
            row(r#"{"leases":[{}]}"#, InvalidField, "/leases/0/lease", "add \"lease\""),
            row(r#"{"leases":[{"lease":1}]}"#, InvalidField, "/leases/0/lease", "string"),
            row(
                r#"{"leases":[{"lease":"a","ttl":"5s"}]}"#,
                UnknownField,
                "/leases/0/ttl",
                "\"progress\"",
            ),
            row(
                format!(r#"{{"leases":[{{"lease":"a","progress":"{big}"}}]}}"#),
                OutOfBounds,
                "/leases/0/progress",
                "elsewhere",
            ),
            row(
                format!(r#"{{"leases":[{}]}}"#, vec!["\"a\""; 1_001].join(",")),
                OutOfBounds,
                "/leases",
                "at most 1000",
            ),
            row(r#"{"leases":[],"ttl":"0s"}"#, OutOfBounds, "/ttl", "\"1s\" to \"1h\""),
            row(r#"{"leases":[],"ttl":5}"#, InvalidField, "/ttl", "\"5m\""),
            row(r#"{"leases":[],"lease":"a"}"#, UnknownField, "/lease", "did you mean \"leases\"?"),
        ],
        |body| Extend::of(&NONE, body),
    );
    assert_eq!(Extend::of(&NONE, br#"{"leases":["a",5]}"#).unwrap_err().index, Some(1));
}
