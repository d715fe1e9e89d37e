//! Parents and flows of pushed jobs, and calls on flows.

use super::{NONE, is_a_good_refusal, read, refused, row};
use crate::decode::*;
use crate::flow::{After, OnParentFailure, Parent};
use crate::job::NewJob;
use crate::names::{FlowName, JobRef, Ref};
use crate::refusal::Code::*;
use crate::requests::*;
use crate::time::Span;

fn one(body: &str) -> NewJob {
    push(body.as_bytes()).unwrap_or_else(|no| panic!("{body}: {no}")).remove(0)
}

#[test]
fn every_form_of_a_parent_is_taken() {
    let job = one(r#"{"after":["a","key:k",{"job":"b","gone":"done"},{"job":"key:l"},{"ref":"r"},
        {"flow":"f","gone":"done"},{"flow":"f","job":null,"gone":null}],
        "on_parent_failure":"run","ref":"me","flow":"mine"}"#);
    let named = |text: &str| Parent::Job(JobRef::parse(text).unwrap());
    let flow = || Parent::Flow(FlowName::parse("f").unwrap());
    let expected = [
        (named("a"), false),
        (named("key:k"), false),
        (named("b"), true),
        (named("key:l"), false),
        (Parent::Item(Ref::parse("r").unwrap()), false),
        (flow(), true),
        (flow(), false),
    ];
    let expected = expected.map(|(parent, gone_is_done)| After { parent, gone_is_done });
    assert_eq!(job.after, expected);
    assert_eq!(job.on_parent_failure, OnParentFailure::Run);
    assert_eq!(job.reference.unwrap().as_str(), "me");
    assert_eq!(job.flow.unwrap().as_str(), "mine");
    let plain = one(r#"{"after":[],"on_parent_failure":null,"ref":null,"flow":null}"#);
    assert_eq!((plain.after.len(), plain.on_parent_failure), (0, OnParentFailure::Cancel));
    assert_eq!((plain.reference, plain.flow), (None, None));
}

#[test]
fn what_names_no_parent_is_refused_with_its_place() {
    let long = |n: usize| "x".repeat(n);
    let many = format!(r#"{{"after":[{}]}}"#, vec!["\"a\""; 10_001].join(","));
    refused(
        vec![
            row(r#"{"after":"a"}"#, InvalidField, "/after", "JSON array"),
            row(many, OutOfBounds, "/after", "10000"),
            row(r#"{"after":[1]}"#, InvalidField, "/after/0", "{\"flow\": \"FLOW\"}"),
            row(r#"[{},{"after":["a",[]]}]"#, InvalidField, "/1/after/1", "\"key:KEY\""),
            row(r#"{"after":["key:"]}"#, InvalidField, "/after/0", "1 to 256"),
            row(r#"{"after":[""]}"#, InvalidField, "/after/0", "1 to 256"),
            row(r#"{"after":[{}]}"#, InvalidField, "/after/0/job", "{\"ref\": \"REF\"}"),
            row(r#"{"after":[{"gone":"done"}]}"#, InvalidField, "/after/0/job", ""),
            row(r#"{"after":[{"id":"a"}]}"#, UnknownField, "/after/0/id", "\"job\""),
            row(
                r#"{"after":[{"job":"a","flow":"f"}]}"#,
                ConflictingFields,
                "/after/0/flow",
                "not both",
            ),
            row(r#"{"after":[{"job":"a","ref":"r"}]}"#, ConflictingFields, "/after/0/ref", ""),
            row(r#"{"after":[{"ref":"r","flow":"f"}]}"#, ConflictingFields, "/after/0/flow", ""),
            row(r#"{"after":[{"ref":"r","gone":"done"}]}"#, ConflictingFields, "/after/0/gone", ""),
            row(r#"{"after":[{"job":"a","gone":true}]}"#, InvalidField, "/after/0/gone", "done"),
            row(
                r#"{"on_parent_failure":"stop"}"#,
                InvalidField,
                "/on_parent_failure",
                "\"cancel\" or \"run\"",
            ),
            row(r#"{"flow":""}"#, InvalidField, "/flow", "1 to 256"),
            row(format!(r#"{{"flow":"{}"}}"#, long(257)), OutOfBounds, "/flow", "256"),
            row(r#"{"ref":"a\u0000"}"#, InvalidField, "/ref", "control characters"),
            row(format!(r#"{{"ref":"{}"}}"#, long(129)), OutOfBounds, "/ref", "128"),
            row(
                r#"{"after":["a"],"unique":{"key":"k","on_conflict":"replace"}}"#,
                ConflictingFields,
                "/after",
                "leave out",
            ),
            row(r#"{"parents":1}"#, UnknownField, "/parents", "answered and cannot be set"),
            row(r#"{"waiting_on":1}"#, UnknownField, "/waiting_on", "answered"),
        ],
        push,
    );
    let patch = |body: &[u8]| PatchJob::of(&["a"], body);
    refused(vec![row(r#"{"after":["b"]}"#, UnknownField, "/after", "")], patch);
    refused(vec![row(r#"{"flow":"f"}"#, UnknownField, "/flow", "")], patch);
}

#[test]
fn a_line_names_no_other_line() {
    refused(
        vec![
            row(r#"{"ref":"r"}"#, InvalidField, "/ref", "\"id\""),
            row(r#"{"after":["a",{"ref":"r"}]}"#, InvalidField, "/after/1", "earlier line"),
        ],
        push_line,
    );
    assert!(push_line(br#"{"ref":null,"after":["a"],"flow":"f"}"#).is_ok());
}

#[test]
fn flows_and_schedules_narrow_a_filter() {
    let listed = read::<ListJobs>("", &[("flow", "a/b"), ("schedule", "news")]).unwrap().filter;
    let many = CancelJobs::of(&NONE, br#"{"flow":"a/b","schedule":"news"}"#).unwrap().filter;
    assert_eq!(
        (listed.flow.as_ref(), listed.schedule.as_ref()),
        (many.flow.as_ref(), many.schedule.as_ref())
    );
    assert_eq!(many.flow.unwrap().as_str(), "a/b");
    for (query, pointer) in [(("flow", ""), "/query/flow"), (("schedule", ".."), "/query/schedule")]
    {
        let no = read::<ListJobs>("", &[query]).unwrap_err();
        assert_eq!((no.code, no.pointer.as_deref()), (InvalidField, Some(pointer)));
        is_a_good_refusal(&no);
    }
    refused(vec![row(r#"{"flow":7}"#, InvalidField, "/flow", "JSON string")], |body| {
        RetryJobs::of(&NONE, body)
    });
}

#[test]
fn a_flow_may_be_waited_for_up_to_a_minute() {
    let none: &[(&str, &str)] = &[];
    assert_eq!(read::<GetFlow>("a b", none).unwrap().wait, Span::ZERO);
    assert_eq!(read::<GetFlow>("f", &[("wait", "60s")]).unwrap().wait, Span::from_s(60));
    assert!(read::<ListParents>("key:k", &[("full", "true"), ("max", "7")]).unwrap().full);
    assert_eq!(read::<ListChildren>("a", none).unwrap().page, Default::default());
    assert_eq!(
        read::<ListFlows>("", &[("cursor", "f")]).unwrap().page.cursor.as_deref(),
        Some("f")
    );
    for (no, code, pointer) in [
        (read::<GetFlow>("", none).map(drop), InvalidField, "/path/flow"),
        (read::<GetFlow>("f", &[("wait", "61s")]).map(drop), OutOfBounds, "/query/wait"),
        (read::<GetFlow>("f", &[("full", "true")]).map(drop), UnknownField, "/query/full"),
        (read::<ListParents>("", none).map(drop), InvalidField, "/path/id"),
        (read::<ListParents>("a", &[("full", "1")]).map(drop), InvalidField, "/query/full"),
        (read::<ListChildren>("key:", none).map(drop), InvalidField, "/path/id"),
        (read::<ListChildren>("a", &[("full", "true")]).map(drop), UnknownField, "/query/full"),
        (read::<ListFlows>("", &[("max", "0")]).map(drop), OutOfBounds, "/query/max"),
        (flow_path("a\n").map(drop), InvalidField, "/path/flow"),
    ] {
        let no = no.unwrap_err();
        assert_eq!((no.code, no.pointer.as_deref()), (code, Some(pointer)), "{no}");
        is_a_good_refusal(&no);
    }
}
