//! Patches, retries and cancels of jobs.

use super::{NONE, refused, row};
use crate::decode::Decode;
use crate::job::{JobState, Need, When};
use crate::refusal::Code::*;
use crate::requests::*;
use crate::time::Span;

#[test]
fn a_patch_keeps_resets_and_sets() {
    let kept = PatchJob::of(&["a"], b"{}").unwrap();
    assert_eq!((kept.when, kept.priority, kept.needs), (Patch::Keep, Patch::Keep, Patch::Keep));
    let reset = PatchJob::of(
        &["key:a"],
        br#"{"delay":null,"priority":null,"payload":null,"needs":null,"group":null,
            "labels":null,"timeout":null,"expires_at":null}"#,
    )
    .unwrap();
    assert_eq!(reset.job.to_string(), "key:a");
    assert_eq!((reset.when, reset.priority), (Patch::Reset, Patch::Reset));
    assert_eq!((reset.payload, reset.labels), (Patch::Reset, Patch::Reset));
    assert_eq!((reset.needs, reset.group), (Patch::Reset, Patch::Reset));
    assert_eq!((reset.timeout, reset.expires_at), (Patch::Reset, Patch::Reset));
    let set = PatchJob::of(
        &["a"],
        br#"{"run_at":null,"delay":"1s","priority":5,"payload":1,"needs":[{"limit":"a"}]}"#,
    )
    .unwrap();
    assert_eq!(set.when, Patch::Set(When::In(Span::from_s(1))));
    assert_eq!(set.priority, Patch::Set(5));
    assert!(matches!(&set.needs, Patch::Set(needs) if matches!(needs[0], Need::Limit { .. })));
    refused(
        vec![
            row("", InvalidField, "", "{}"),
            row("[]", InvalidField, "", "object"),
            row(r#"{"queue":"b"}"#, UnknownField, "/queue", "the fields of a patch of a job"),
            row(r#"{"state":"ready"}"#, UnknownField, "/state", "cannot be set"),
            row(
                r#"{"delay":"1s","run_at":"2026-12-01T09:55:00Z"}"#,
                ConflictingFields,
                "/run_at",
                "not both",
            ),
            row(r#"{"priority":200}"#, OutOfBounds, "/priority", "-100 to 100"),
            row(r#"{"timeout":5}"#, InvalidField, "/timeout", "\"5m\""),
            row(r#"{"needs":[{"limit":"a"},{"limit":"a"}]}"#, DuplicateNeed, "/needs/1", "once"),
        ],
        |body| PatchJob::of(&["a"], body),
    );
    assert_eq!(PatchJob::of(&["key:"], b"{}").unwrap_err().pointer.unwrap(), "/path/id");
}

#[test]
fn a_retry_may_say_which_end_it_saw() {
    for body in ["", "{}", r#"{"finished_at":null}"#] {
        assert_eq!(RetryJob::of(&["a"], body.as_bytes()).unwrap().finished_at, None, "{body}");
    }
    let at = br#"{"finished_at":"2026-12-01T09:55:00.000001Z"}"#;
    assert!(RetryJob::of(&["a"], at).unwrap().finished_at.is_some());
    refused(
        vec![
            row("1", InvalidField, "", "object"),
            row(r#"{"finished_at":1}"#, InvalidField, "/finished_at", "RFC 3339"),
            row(r#"{"finished":1}"#, UnknownField, "/finished", "the only field"),
        ],
        |body| RetryJob::of(&["a"], body),
    );
}

#[test]
fn many_jobs_are_named_by_a_filter() {
    let many = CancelJobs::of(
        &NONE,
        br#"{"queue":"a","state":"ready,blocked","kind":"k","label":"a:b:c"}"#,
    );
    let many = many.unwrap();
    assert_eq!(many.max, 1_000);
    assert_eq!(many.filter.states, [JobState::Ready, JobState::Blocked]);
    assert_eq!(many.filter.label, Some(("a:b".to_owned(), "c".to_owned())));
    assert_eq!(RetryJobs::of(&NONE, br#"{"state":"failed","max":5}"#).unwrap().max, 5);
    let many = DeleteJobs::of(
        &NONE,
        br#"{"error":"a, \"b\"","finished_after":"2026-12-01T17:55:00+08:00",
            "finished_before":"2026-12-02T00:00:00Z","cursor":"7"}"#,
    )
    .unwrap();
    assert_eq!(many.filter.error.as_deref(), Some("a, \"b\""));
    assert_eq!(many.filter.finished_after, "2026-12-01T09:55:00Z".parse().ok());
    assert_eq!(many.filter.finished_before, "2026-12-02T00:00:00Z".parse().ok());
    assert_eq!(many.cursor.as_deref(), Some("7"));
    let long = format!(r#"{{"error":"{}"}}"#, "x".repeat(8_193));
    refused(
        vec![
            row("", InvalidField, "", "object"),
            row(r#"{"max":0}"#, OutOfBounds, "/max", "1 to 1000"),
            row(r#"{"max":1001}"#, OutOfBounds, "/max", "1 to 1000"),
            row(r#"{"state":"redy"}"#, InvalidField, "/state", "did you mean \"ready\"?"),
            row(r#"{"state":"ready,"}"#, InvalidField, "/state", "\"cancelled\""),
            row(r#"{"label":{"k":"v"}}"#, InvalidField, "/label", "string"),
            row(r#"{"label":"k"}"#, InvalidField, "/label", "source:feed"),
            row(r#"{"group":"g"}"#, UnknownField, "/group", "\"label\""),
            row(r#"{"error":5}"#, InvalidField, "/error", "string"),
            row(&long, OutOfBounds, "/error", "8192"),
            row(r#"{"finished_after":"9 o'clock"}"#, InvalidField, "/finished_after", "RFC 3339"),
            row(r#"{"finished_before":1}"#, InvalidField, "/finished_before", "RFC 3339"),
            row(r#"{"state":"ready","cursor":""}"#, InvalidField, "/cursor", "the page before"),
            row(r#"{"state":"ready","next":"7"}"#, UnknownField, "/next", "cannot be set"),
        ],
        |body| CancelJobs::of(&NONE, body),
    );
    // A program that forgot its filter must not empty the store.
    let none = [
        "{}",
        r#"{"max":5}"#,
        r#"{"cursor":"7","max":5}"#,
        r#"{"queue":null,"state":null,"kind":null,"label":null,"error":null}"#,
    ];
    for body in none {
        let rows = || vec![row(body, InvalidField, "", "\"finished_before\"")];
        refused(rows(), |body| CancelJobs::of(&NONE, body));
        refused(rows(), |body| RetryJobs::of(&NONE, body));
        refused(rows(), |body| DeleteJobs::of(&NONE, body));
    }
}
