//! Query parameters, parts of paths, headers, bodies without content.

use super::{is_a_good_refusal, read};
use crate::decode::*;
use crate::job::JobState;
use crate::refusal::Code::{self, *};
use crate::refusal::Refusal;
use crate::requests::*;
use crate::time::Span;

type Pairs<'t> = &'t [(&'static str, &'static str)];

fn none() -> Pairs<'static> {
    &[]
}

fn refused<T: std::fmt::Debug>(
    rows: &[(Pairs<'_>, Code, &str, &str)],
    read: impl Fn(Pairs<'_>) -> Result<T, Refusal>,
) {
    for (query, code, pointer, hint) in rows {
        let no = read(query).unwrap_err();
        assert_eq!((no.code, no.pointer.as_deref()), (*code, Some(*pointer)), "{query:?}: {no}");
        assert!(no.hint.contains(hint), "{query:?}: {}", no.hint);
        is_a_good_refusal(&no);
    }
}

#[test]
fn jobs_are_listed_by_what_is_asked() {
    let list = read::<ListJobs>("", none()).unwrap();
    assert_eq!((list.page.max, list.full, list.filter), (100, false, Default::default()));
    let list = read::<ListJobs>(
        "",
        &[
            ("queue", "größe b"),
            ("state", "ready,blocked,ready"),
            ("kind", "a/b"),
            ("label", "k:v:w"),
            ("max", "1000"),
            ("cursor", "c"),
            ("full", "true"),
            ("error", "502: \"gone\""),
            ("finished_after", "2026-12-01T17:55:00+08:00"),
            ("finished_before", "1969-01-01T00:00:00Z"),
        ],
    )
    .unwrap();
    assert_eq!(list.filter.error.as_deref(), Some("502: \"gone\""));
    assert_eq!(list.filter.finished_after, "2026-12-01T09:55:00Z".parse().ok());
    assert_eq!(list.filter.finished_before, Some(crate::time::Moment::ZERO));
    assert_eq!(list.filter.states, [JobState::Ready, JobState::Blocked]);
    assert_eq!(list.filter.label, Some(("k:v".into(), "w".into())));
    assert_eq!((list.page.max, list.page.cursor.as_deref(), list.full), (1_000, Some("c"), true));
    refused(
        &[
            (&[("stat", "ready")], UnknownField, "/query/stat", "did you mean \"state\"?"),
            (&[("a/b", "")], UnknownField, "/query/a~1b", "\"cursor\""),
            (&[("state", "done")], InvalidField, "/query/state", "\"succeeded\""),
            (&[("state", "")], InvalidField, "/query/state", "\"ready\""),
            (&[("queue", "")], InvalidField, "/query/queue", "1 to 128"),
            (&[("queue", "a"), ("queue", "b")], InvalidField, "/query/queue", "once"),
            (&[("label", "k")], InvalidField, "/query/label", "source:feed"),
            (&[("label", ":v")], InvalidField, "/query/label", "source:feed"),
            (&[("full", "1")], InvalidField, "/query/full", "\"true\" or \"false\""),
            (&[("max", "0")], OutOfBounds, "/query/max", "1 to 1000"),
            (&[("max", "1001")], OutOfBounds, "/query/max", "1 to 1000"),
            (&[("max", "-1")], OutOfBounds, "/query/max", "1 to 1000"),
            (&[("max", "ten")], InvalidField, "/query/max", "1 to 1000"),
            (&[("max", "1.0")], InvalidField, "/query/max", "whole"),
            (&[("max", "")], InvalidField, "/query/max", "whole"),
            (&[("cursor", "")], InvalidField, "/query/cursor", "the page before"),
            (&[("finished_after", "now")], InvalidField, "/query/finished_after", "RFC 3339"),
            (&[("finished_before", "")], InvalidField, "/query/finished_before", "RFC 3339"),
        ],
        |query| read::<ListJobs>("", query),
    );
    assert_eq!(
        read::<ListJobs>("", &[("error", &"x".repeat(8_193))]).unwrap_err().code,
        OutOfBounds
    );
}

#[test]
fn failures_are_asked_for_by_queue_kind_and_time() {
    let none: Pairs<'_> = &[];
    assert_eq!(read::<ListFailures>("", none).unwrap(), ListFailures::default());
    let at = "2026-12-01T09:55:00Z";
    let asked = [("queue", "q"), ("kind", ""), ("finished_after", at), ("max", "5")];
    let asked = read::<ListFailures>("", &asked).unwrap();
    assert_eq!((asked.kind.as_deref(), asked.max), (Some(""), 5));
    assert_eq!(asked.finished_after, at.parse().ok());
    refused(
        &[
            (&[("cursor", "c")], UnknownField, "/query/cursor", "\"max\""),
            (&[("state", "failed")], UnknownField, "/query/state", "\"queue\""),
            (&[("max", "1001")], OutOfBounds, "/query/max", "1 to 1000"),
            (&[("finished_after", "x")], InvalidField, "/query/finished_after", "RFC 3339"),
        ],
        |query| read::<ListFailures>("", query),
    );
}

#[test]
fn events_are_read_from_a_place_and_by_what_they_are_about() {
    use crate::events::EventType;

    assert_eq!(read::<ReadEvents>("", none()).unwrap(), ReadEvents::default());
    let asked = read::<ReadEvents>(
        "",
        &[
            ("since", "6c1f-184467"),
            ("type", "job.failed,flow.*,job.failed"),
            ("queue", "q"),
            ("job", "j"),
            ("flow", "f"),
            ("schedule", "s"),
            ("limit", "site:x"),
            ("pool", "p"),
            ("max", "7"),
            ("wait", "60s"),
        ],
    )
    .unwrap();
    assert_eq!(asked.since, EventsSince::Id("6c1f-184467".parse().unwrap()));
    assert_eq!(asked.filter.types, [EventType::JobFailed, EventType::FlowFinished]);
    assert_eq!(asked.filter.job.unwrap().as_str(), "j");
    assert_eq!((asked.max, asked.wait), (7, Span::from_us(60_000_000)));
    let first = read::<ReadEvents>("", &[("since", "first")]).unwrap();
    assert_eq!(first.since, EventsSince::First);
    refused(
        &[
            (&[("since", "6C1F-1")], InvalidField, "/query/since", "as it is"),
            (&[("since", "")], InvalidField, "/query/since", "\"first\""),
            (&[("type", "job.exploded")], InvalidField, "/query/type", "job.failed"),
            (&[("type", "")], InvalidField, "/query/type", "schedule.*"),
            (&[("wait", "61s")], OutOfBounds, "/query/wait", "1m"),
            (&[("max", "0")], OutOfBounds, "/query/max", "1 to 1000"),
            (&[("worker", "w")], UnknownField, "/query/worker", "\"since\""),
        ],
        |query| read::<ReadEvents>("", query),
    );
}

#[test]
fn the_other_lists_have_their_own_parameters() {
    let leases =
        read::<ListLeases>("", &[("queue", "a"), ("limit", "b"), ("pool", "c"), ("worker", "d")]);
    let leases = leases.unwrap();
    assert_eq!((leases.limit.unwrap().as_str(), leases.worker.as_deref()), ("b", Some("d")));
    refused(
        &[
            (&[("limit", "B")], InvalidField, "/query/limit", "family"),
            (&[("pool", "a/b")], InvalidField, "/query/pool", "'/'"),
            (&[("state", "ready")], UnknownField, "/query/state", "\"worker\""),
        ],
        |query| read::<ListLeases>("", query),
    );
    let page: [(&str, &str); 2] = [("max", "5"), ("cursor", "c")];
    assert_eq!(read::<ListQueues>("", &page).unwrap().page.max, 5);
    assert_eq!(read::<ListLimits>("", &page).unwrap().page.max, 5);
    assert_eq!(read::<ListPools>("", &page).unwrap().page.max, 5);
    assert_eq!(read::<ListWorkers>("", &page).unwrap().page.max, 5);
    assert_eq!(read::<ListResources>("p", &page).unwrap().page.max, 5);
    let rows: &[(Pairs<'_>, Code, &str, &str)] = &[
        (&[("max", "5000")], OutOfBounds, "/query/max", "1 to 1000"),
        (&[("full", "true")], UnknownField, "/query/full", "\"max\" and \"cursor\""),
    ];
    refused(rows, |query| read::<ListQueues>("", query));
    refused(rows, |query| read::<ListLimits>("", query));
    refused(rows, |query| read::<ListPools>("", query));
    refused(rows, |query| read::<ListWorkers>("", query));
    refused(rows, |query| read::<ListResources>("p", query));
    refused(&[(&[("x", "1")], UnknownField, "/query/x", "no query parameters")], no_query);
    refused(
        &[
            (&[("force", "yes")], InvalidField, "/query/force", "\"true\""),
            (&[("version", "x")], InvalidField, "/query/version", "whole"),
            (&[("version", "-1")], OutOfBounds, "/query/version", "0 to"),
            (&[("version", "9007199254740992")], OutOfBounds, "/query/version", "0 to"),
            (&[("forse", "true")], UnknownField, "/query/forse", "did you mean \"force\"?"),
        ],
        |query| read::<SyncResources>("p", query),
    );
    // Owned pairs work as well.
    assert!(ListJobs::of_query((), &[("queue".to_owned(), "a".to_owned())]).is_ok());
}

#[test]
fn a_result_may_be_waited_for_up_to_a_minute() {
    let of = |query: Pairs<'_>| read::<GetResult>("a", query);
    assert_eq!(of(none()).unwrap().wait, Span::ZERO);
    assert_eq!(of(&[("wait", "60s")]).unwrap().wait, Span::from_s(60));
    assert_eq!(read::<GetResult>("key:k", &[("wait", "1ms")]).unwrap().wait, Span::from_ms(1));
    refused(
        &[
            (&[("wait", "60001ms")], OutOfBounds, "/query/wait", "1m"),
            (&[("wait", "5")], InvalidField, "/query/wait", "500ms"),
            (&[("wait", "")], InvalidField, "/query/wait", "500ms"),
            (&[("wait", "1s"), ("wait", "2s")], InvalidField, "/query/wait", "once"),
            (&[("weit", "1s")], UnknownField, "/query/weit", "did you mean \"wait\"?"),
        ],
        of,
    );
}

#[test]
fn parts_of_paths_and_headers_are_checked() {
    for (no, pointer) in [
        (read::<GetResult>("key:", none()).map(drop), "/path/id"),
        (job_path("").map(drop), "/path/id"),
        (job_path("key:").map(drop), "/path/id"),
        (job_path("a\u{0}").map(drop), "/path/id"),
        (lease_path("").map(drop), "/path/id"),
        (queue_path("a,b").map(drop), "/path/name"),
        (queue_path(".").map(drop), "/path/name"),
        (pool_path("..").map(drop), "/path/name"),
        (GetLimit::of(&["."], b"").map(drop), "/path/name"),
        (PutLimit::of(&[".."], br#"{"concurrency":1}"#).map(drop), "/path/name"),
        (pool_path(" ").map(drop), "/path/name"),
        (GetLimit::of(&["A"], b"").map(drop), "/path/name"),
        (namespace_header(Some("")).map(drop), "/header/Tenure-Namespace"),
        (namespace_header(Some("Main")).map(drop), "/header/Tenure-Namespace"),
    ] {
        let no = no.unwrap_err();
        assert_eq!((no.code, no.pointer.as_deref()), (InvalidField, Some(pointer)), "{no}");
        is_a_good_refusal(&no);
    }
    assert_eq!(job_path(&"x".repeat(257)).unwrap_err().code, OutOfBounds);
    assert_eq!(namespace_header(None).unwrap().as_str(), "default");
    assert_eq!(namespace_header(Some("team-7")).unwrap().as_str(), "team-7");
    assert!(job_path("key:a b").is_ok() && lease_path("l").is_ok());
}

#[test]
fn a_call_without_fields_takes_nothing_or_an_empty_object() {
    for body in ["", " \n", "{}"] {
        assert!(no_body(body.as_bytes()).is_ok(), "{body}");
    }
    assert_eq!(no_body(br#"{"x":1}"#).unwrap_err().pointer.as_deref(), Some("/x"));
    assert_eq!(no_body(b"[]").unwrap_err().code, InvalidField);
    assert_eq!(no_body(b"{").unwrap_err().code, BadJson);
}
