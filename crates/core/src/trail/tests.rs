//! What a line may show of a request, and what it hides.

use serde_json::{Value, json};

use super::{ReadTrail, TRAIL_TARGETS_MAX, TrailLine, target_in_path};
use crate::decode::{self, Decode};
use crate::names::JobRef;
use crate::requests::{
    BanResource, DeleteLimit, GetJob, GetLimit, GetResource, GetStats, PatchJob, PatchQueue,
    PatchResource, PutLimit, Reply, Request, RetryJobs,
};
use crate::settings::{LimitSettings, LimitView};

const SECRET: &str = "geheim";

fn shown(request: &Request) -> (Vec<String>, Value) {
    let subject = request.trail_subject();
    (subject.targets().collect(), Value::Object(subject.changed(None)))
}

/// A limit as a reply shows it.
fn limit_view(concurrency: u32) -> Reply {
    limit_view_of(concurrency, Value::Null)
}

/// The same, with the settings of this template.
fn limit_view_of(concurrency: u32, template: Value) -> Reply {
    let settings = LimitSettings { concurrency: Some(concurrency), ..LimitSettings::default() };
    let mut view = serde_json::to_value(settings).unwrap();
    for (name, value) in [
        ("name", json!("site:a")),
        ("template", template),
        ("in_use", json!(0)),
        ("external", json!(0)),
        ("waiting", json!(0)),
        ("over_limit", json!(0)),
        ("paused_until", Value::Null),
        ("holders", json!([])),
    ] {
        view[name] = value;
    }
    Reply::GetLimit(serde_json::from_value::<LimitView>(view).unwrap())
}

#[test]
fn settings_are_shown_and_contents_hidden() {
    let patch = format!(r#"{{"payload": {{"password": "{SECRET}"}}, "priority": 3}}"#);
    let job = PatchJob::of(&["j"], patch.as_bytes()).unwrap();
    let (targets, changed) = shown(&job.into());
    assert_eq!(targets, ["job:j"]);
    assert_eq!(changed, json!({"payload": {"new": "•••"}, "priority": {"new": 3}}));

    let schedule = format!(r#"{{"cron": "0 8 * * *", "job": {{"payload": "{SECRET}"}}}}"#);
    let put = decode::put_schedule("s", schedule.as_bytes()).unwrap();
    let (targets, changed) = shown(&put.into());
    assert_eq!(targets, ["schedule:s"]);
    assert_eq!(
        (&changed["cron"], &changed["job"]),
        (&json!({"new": "0 8 * * *"}), &json!({"new": "•••"}))
    );

    let gauge = format!(
        r#"{{"concurrency": 5, "gauge": {{"url": "http://ann:{SECRET}@count.example/", "count": ["/n"]}}}}"#
    );
    let put = PutLimit::of(&["site"], gauge.as_bytes()).unwrap();
    let (_, changed) = shown(&put.into());
    assert_eq!(
        (&changed["concurrency"], &changed["gauge"]),
        (&json!({"new": 5}), &json!({"new": "•••"}))
    );

    let data = format!(r#"{{"data": {{"password": "{SECRET}"}}, "slots": 2}}"#);
    let patch = PatchResource::of(&["p", "r"], data.as_bytes()).unwrap();
    let (targets, changed) = shown(&patch.into());
    assert_eq!(targets, ["pool:p/r"]);
    assert_eq!(changed, json!({"data": {"new": "•••"}, "slots": {"new": 2}}));

    let ban = format!(r#"{{"reason": "{SECRET}"}}"#);
    let ban = BanResource::of(&["p", "r"], ban.as_bytes()).unwrap();
    assert_eq!(shown(&ban.into()).1, json!({"reason": {"new": "•••"}}));

    let many = format!(r#"{{"queue": "q", "state": "failed", "error": "{SECRET}"}}"#);
    let many = RetryJobs::of(&[""; 0], many.as_bytes()).unwrap();
    assert_eq!(shown(&many.into()).0, ["queue:q", "state:failed", "error:•••"]);
}

#[test]
fn a_change_has_the_old_and_the_new_value_of_what_changed() {
    let put: Request = PutLimit::of(&["site:a"], br#"{"concurrency": 8}"#).unwrap().into();
    let changed = put.trail_subject().changed(Some(&limit_view(5)));
    assert_eq!(Value::Object(changed), json!({"concurrency": {"old": 5, "new": 8}}));
    let changed = put.trail_subject().changed(Some(&limit_view(8)));
    assert!(changed.is_empty(), "{changed:?}");
    let delete: Request = DeleteLimit::of(&["site"], b"").unwrap().into();
    let changed = delete.trail_subject().changed(Some(&limit_view(5)));
    assert_eq!(changed["concurrency"], json!({"old": 5}));
    assert!(delete.trail_subject().changed(None).is_empty());
}

#[test]
fn the_first_settings_of_a_limit_under_a_template_are_new() {
    let put: Request = PutLimit::of(&["site:a"], br#"{"concurrency": 3}"#).unwrap().into();
    for of_template in [2, 3] {
        let before = limit_view_of(of_template, json!("site:*"));
        let changed = put.trail_subject().changed(Some(&before));
        let new = json!({"concurrency": {"new": 3}, "quarantine": {"new": "0s"}});
        assert_eq!(Value::Object(changed), new, "{of_template}");
    }
    // Of such a limit nothing but an observation can be deleted.
    let delete: Request = DeleteLimit::of(&["site:a"], b"").unwrap().into();
    assert!(delete.trail_subject().changed(Some(&limit_view_of(2, json!("site:*")))).is_empty());
}

#[test]
fn a_request_that_only_reads_shows_the_thing_in_its_path() {
    for (request, target) in [
        (Request::from(GetLimit { limit: "site:a".parse().unwrap() }), Some("limit:site:a")),
        (GetJob { job: JobRef::parse("key:a b").unwrap() }.into(), Some("job:key:a b")),
        (
            GetResource { pool: "p".parse().unwrap(), resource: "a/b".parse().unwrap() }.into(),
            Some("pool:p/a/b"),
        ),
        (GetStats.into(), None),
    ] {
        let targets: Vec<String> = request.trail_subject().targets().collect();
        assert_eq!(targets.first().map(String::as_str), target, "{request:?}");
    }
    assert_eq!(target_in_path("/v1/queues/{name}", &["x".repeat(600)]), None);
    assert_eq!(target_in_path::<&str>("/v1/schedules/preview", &[]), None);
}

#[test]
fn a_long_value_is_shown_as_its_length() {
    let groups: Vec<String> = (0..100).map(|n| format!(r#""tenant-{n}": 2"#)).collect();
    let body = format!(r#"{{"shares": {{{}}}}}"#, groups.join(","));
    let patch = PatchQueue::of(&["q"], body.as_bytes()).unwrap();
    let (_, changed) = shown(&patch.into());
    assert!(
        changed["shares"]["new"].as_str().is_some_and(|text| text.ends_with(" bytes)")),
        "{changed}"
    );
}

#[test]
fn a_line_lists_ten_targets_and_counts_all() {
    let ids: Vec<String> =
        (0..30).map(|n| format!(r#"{{"id": "r{n}", "data": "{SECRET}"}}"#)).collect();
    let body = format!("[{}]", ids.join(","));
    let add: Request = decode::add_resources("p", body.as_bytes()).unwrap().into();
    let line = TrailLine::of("add_resources").about(add.trail_subject().targets());
    assert_eq!((line.targets.len(), line.targets_count), (TRAIL_TARGETS_MAX, Some(31)));
    assert_eq!(&line.targets[..2], ["pool:p", "pool:p/r0"]);
    let line = TrailLine::of("x").about((0..10).map(|n| n.to_string()));
    assert_eq!((line.targets.len(), line.targets_count), (10, None));
}

#[test]
fn a_filter_names_operations_by_their_beginning() {
    let line = TrailLine {
        caller: Some("ann".to_owned()),
        namespace: Some("web".to_owned()),
        ..TrailLine::of("put_limit")
    };
    for (query, is) in [
        (vec![], true),
        (vec![("op", "put_limit")], true),
        (vec![("op", "put_*")], true),
        (vec![("op", "*")], true),
        (vec![("op", "put")], false),
        (vec![("op", "delete_*")], false),
        (vec![("caller", "ann"), ("namespace", "web")], true),
        (vec![("caller", "bob")], false),
        (vec![("namespace", "default")], false),
    ] {
        let asked: ReadTrail = decode::read_trail(&query).unwrap();
        assert_eq!(asked.matches(&line), is, "{query:?}");
    }
}

#[test]
fn a_filter_names_a_target_and_a_pool_its_resources() {
    let line = |target: &str| TrailLine::of("x").about([target.to_owned()]);
    for (target, wanted, is) in [
        ("limit:site:*", "limit:site:*", true),
        ("limit:site:a", "limit:site:*", false),
        ("limit:site:a", "limit:site", false),
        ("pool:accounts", "pool:accounts", true),
        ("pool:accounts/acc-7", "pool:accounts", true),
        ("pool:accounts/acc-7", "pool:accounts/acc-7", true),
        ("pool:accounts", "pool:accounts/acc-7", false),
        ("pool:accounts-2", "pool:accounts", false),
        // The name of a schedule may have a slash.
        ("schedule:a/b", "schedule:a", false),
    ] {
        let asked: ReadTrail = decode::read_trail(&[("target", wanted)]).unwrap();
        assert_eq!(asked.matches(&line(target)), is, "{target} {wanted}");
    }
}

#[test]
fn a_change_is_no_lease_no_refusal_and_no_line_of_the_server() {
    for (op, status, code, is) in [
        ("put_limit", Some(200), None, true),
        ("pause_queue", Some(200), None, true),
        ("put_limit", None, Some("unanswered"), true),
        ("put_limit", Some(503), Some("outcome_unknown"), true),
        ("put_limit", Some(403), Some("forbidden"), false),
        ("lease", Some(200), None, false),
        ("push", Some(200), None, false),
        ("login", Some(200), None, false),
        ("server_started", None, None, false),
    ] {
        let line = TrailLine { status, code: code.map(str::to_owned), ..TrailLine::of(op) };
        assert_eq!(line.is_change(), is, "{op} {status:?} {code:?}");
    }
}
