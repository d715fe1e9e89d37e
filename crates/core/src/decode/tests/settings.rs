//! Queues, limits, pools and resources.

use super::{read_set, refused, row};
use crate::bounded::Bounded;
use crate::decode::*;
use crate::lease::Later;
use crate::refusal::Code::*;
use crate::requests::*;
use crate::settings::{Pick, Rate};
use crate::time::Span;

const RESOURCE: [&str; 2] = ["accounts", "13800000000"];

#[test]
fn a_queue_is_put_whole_and_patched_in_part() {
    let put = PutQueue::of(&["crawl"], b"{}").unwrap();
    assert_eq!((put.queue.as_str(), put.settings), ("crawl", Default::default()));
    let put = PutQueue::of(
        &["crawl"],
        br#"{"needs":[{"limit":"a"}],"retry":{"max_attempts":1},"timeout":"1m","retain":"1d",
            "max_waiting":10,"lost_delay":"0s","shares":{"g":1000,"h":null},
            "show_payload":false}"#,
    );
    let settings = put.unwrap().settings;
    assert!(!settings.show_payload);
    assert_eq!((settings.needs.len(), settings.max_waiting), (1, Some(10)));
    assert_eq!(settings.lost_delay, Some(Span::ZERO));
    assert_eq!(settings.retry.unwrap().max_lost, 3);
    assert_eq!(settings.shares.values().copied().collect::<Vec<u32>>(), [1_000]);
    let put = PutQueue::of(&["crawl"], br#"{"show_payload":null}"#).unwrap();
    assert!(put.settings.show_payload);
    let patch = PatchQueue::of(&["crawl"], br#"{"timeout":null,"max_waiting":5}"#).unwrap();
    assert_eq!(patch.show_payload, Patch::Keep);
    assert_eq!((patch.timeout, patch.max_waiting), (Patch::Reset, Patch::Set(5)));
    assert_eq!((patch.needs, patch.shares), (Patch::Keep, Patch::Keep));
    let rows = || {
        vec![
            row("", InvalidField, "", "object"),
            row("[]", InvalidField, "", "object"),
            row(r#"{"paused":true}"#, UnknownField, "/paused", "cannot be set"),
            row(r#"{"skipped":1}"#, UnknownField, "/skipped", "cannot be set"),
            row(r#"{"share":{}}"#, UnknownField, "/share", "did you mean \"shares\"?"),
            row(r#"{"shares":{"g":0}}"#, OutOfBounds, "/shares/g", "1 to 1000"),
            row(r#"{"shares":{"g":1001}}"#, OutOfBounds, "/shares/g", "1 to 1000"),
            row(r#"{"shares":{"g":"3"}}"#, InvalidField, "/shares/g", "whole"),
            row(r#"{"shares":{"":3}}"#, InvalidField, "/shares/", "1 to 256"),
            row(r#"{"shares":[]}"#, InvalidField, "/shares", "{\"tenant-7\": 3}"),
            row(r#"{"max_waiting":-1}"#, OutOfBounds, "/max_waiting", "0 to"),
            row(r#"{"lost_delay":"soon"}"#, InvalidField, "/lost_delay", "\"5m\""),
            row(r#"{"show_payload":"no"}"#, InvalidField, "/show_payload", "true or false"),
            row(r#"{"retry":{"x":1}}"#, UnknownField, "/retry/x", "\"backoff\""),
            row(r#"{"needs":[{"limit":"a:*"}]}"#, InvalidField, "/needs/0/limit", "one limit"),
            row(r#"{"needs":[{"pool":"a"},{"pool":"a"}]}"#, DuplicateNeed, "/needs/1", "count"),
            row(r#"{"timeout":"soon"}"#, InvalidField, "/timeout", "\"5m\""),
        ]
    };
    refused(rows(), |body| PutQueue::of(&["a"], body));
    refused(rows(), |body| PatchQueue::of(&["a"], body));
    assert_eq!(PutQueue::of(&["a/b"], b"{}").unwrap_err().pointer.unwrap(), "/path/name");
}

#[test]
fn a_queue_is_paused_with_or_without_an_end() {
    for body in ["", "{}", r#"{"for":null}"#] {
        assert_eq!(PauseQueue::of(&["a"], body.as_bytes()).unwrap().until, None, "{body}");
    }
    let until = PauseQueue::of(&["a"], br#"{"for":"5m"}"#).unwrap().until;
    assert_eq!(until, Some(Later::For(Span::from_s(300))));
    refused(
        vec![
            row("5", InvalidField, "", "object"),
            row(r#"{"for":5}"#, InvalidField, "/for", "\"5m\""),
            row(r#"{"until":"noon"}"#, InvalidField, "/until", "RFC 3339"),
            row(
                r#"{"for":"5m","until":"2026-12-01T09:55:00Z"}"#,
                ConflictingFields,
                "/until",
                "not both",
            ),
            row(r#"{"form":"5m"}"#, UnknownField, "/form", "did you mean \"for\"?"),
        ],
        |body| PauseQueue::of(&["a"], body),
    );
}

#[test]
fn a_limit_is_put_whole_and_patched_in_part() {
    let put = PutLimit::of(
        &["site:*"],
        br#"{"concurrency":0,"rate":{"count":10,"per":"1s"},"gap":"2s"}"#,
    );
    let settings = put.unwrap().settings;
    assert_eq!((settings.concurrency, settings.gap), (Some(0), Some(Span::from_s(2))));
    assert_eq!(settings.quarantine, Span::ZERO, "unless it is given");
    let put = PutLimit::of(&["a"], br#"{"concurrency":1,"quarantine":"1m"}"#).unwrap();
    assert_eq!(put.settings.quarantine, Span::from_s(60));
    assert_eq!(settings.rate, Some(Rate { count: 10, per: Span::from_s(1), burst: 1 }));
    let patch = PatchLimit::of(&["a"], br#"{"rate":null,"concurrency":3}"#).unwrap();
    assert_eq!(
        (patch.rate, patch.concurrency, patch.gap),
        (Patch::Reset, Patch::Set(3), Patch::Keep)
    );
    assert!(PatchLimit::of(&["a"], b"{}").is_ok());
    assert!(
        PatchLimit::of(&["a"], br#"{"gap":"1s"}"#).is_ok(),
        "it may have a concurrency already"
    );
    let rows = || {
        vec![
            row("", InvalidField, "", "object"),
            row(r#"{"in_use":1}"#, UnknownField, "/in_use", "cannot be set"),
            row(r#"{"guage":{}}"#, UnknownField, "/guage", "did you mean \"gauge\"?"),
            row(r#"{"resting":1}"#, UnknownField, "/resting", "cannot be set"),
            row(r#"{"concurrency":1,"quarantine":1}"#, InvalidField, "/quarantine", "\"5m\""),
            row(r#"{"concurrency":-1}"#, OutOfBounds, "/concurrency", "0 to 1000000000"),
            row(r#"{"concurrency":1.5}"#, InvalidField, "/concurrency", "whole"),
            row(r#"{"concurrency":"1"}"#, InvalidField, "/concurrency", "whole"),
            row(r#"{"concurrency":1,"gap":1}"#, InvalidField, "/gap", "\"5m\""),
            row(r#"{"rate":"10/1s"}"#, InvalidField, "/rate", "object"),
            row(r#"{"rate":{"per":"1s"}}"#, InvalidField, "/rate/count", "add \"count\""),
            row(r#"{"rate":{"count":1}}"#, InvalidField, "/rate/per", "add \"per\": \"1s\""),
            row(r#"{"rate":{"count":0,"per":"1s"}}"#, OutOfBounds, "/rate/count", "1 to"),
            row(r#"{"rate":{"count":1,"per":"0s"}}"#, OutOfBounds, "/rate/per", "more than"),
            row(r#"{"rate":{"count":1,"per":1}}"#, InvalidField, "/rate/per", "\"5m\""),
            row(r#"{"rate":{"count":1,"per":"1s","burst":0}}"#, OutOfBounds, "/rate/burst", "1 to"),
            row(
                r#"{"rate":{"count":1,"per":"3650d","burst":29}}"#,
                OutOfBounds,
                "/rate/burst",
                "at most 28",
            ),
            row(
                r#"{"rate":{"count":1,"per":"1d","burst":1000000000}}"#,
                OutOfBounds,
                "/rate/burst",
                "at most",
            ),
            row(
                r#"{"rate":{"count":1,"per":"1s","brust":1}}"#,
                UnknownField,
                "/rate/brust",
                "\"burst\"",
            ),
        ]
    };
    refused(rows(), |body| PutLimit::of(&["a"], body));
    refused(rows(), |body| PatchLimit::of(&["a"], body));
    assert!(PutLimit::of(&["a"], br#"{"rate":{"count":1,"per":"3650d","burst":28}}"#).is_ok());
    refused(
        vec![
            row("{}", InvalidField, "", "at least one"),
            row(r#"{"quarantine":"5s"}"#, InvalidField, "/concurrency", "add \"concurrency\""),
            row(r#"{"quarantine":"0s"}"#, InvalidField, "", "at least one"),
            row(r#"{"concurrency":null}"#, InvalidField, "", "at least one"),
            row(r#"{"gap":"1s"}"#, InvalidField, "/concurrency", "add \"concurrency\""),
            row(
                r#"{"gap":"1s","rate":{"count":1,"per":"1s"}}"#,
                InvalidField,
                "/concurrency",
                "add",
            ),
        ],
        |body| PutLimit::of(&["a"], body),
    );
}

#[test]
fn a_template_is_set_and_not_held() {
    for name in ["site:*", "lock:*"] {
        assert!(PutLimit::of(&[name], br#"{"concurrency":1}"#).is_ok());
        assert!(PatchLimit::of(&[name], b"{}").is_ok());
        assert!(GetLimit::of(&[name], b"").is_ok() && DeleteLimit::of(&[name], b"").is_ok());
        for no in [
            PauseLimit::of(&[name], br#"{"for":"1s"}"#).unwrap_err(),
            ResumeLimit::of(&[name], b"").unwrap_err(),
            ObserveLimit::of(&[name], br#"{"external":1}"#).unwrap_err(),
        ] {
            assert_eq!((no.code, no.pointer.as_deref()), (InvalidField, Some("/path/name")));
        }
    }
    for name in ["", "*", "Site:x", "site:a*"] {
        let no = PutLimit::of(&[name], br#"{"concurrency":1}"#).unwrap_err();
        assert_eq!((no.code, no.pointer.as_deref()), (InvalidField, Some("/path/name")), "{name}");
    }
}

#[test]
fn a_limit_is_paused_and_observed() {
    let pause = PauseLimit::of(&["a"], br#"{"until":"2026-12-01T09:55:00Z"}"#).unwrap();
    assert!(matches!(pause.until, Later::Until(_)));
    refused(
        vec![
            row("", InvalidField, "", "object"),
            row("{}", InvalidField, "/for", "\"until\""),
            row(
                r#"{"for":"1s","until":"2026-12-01T09:55:00Z"}"#,
                ConflictingFields,
                "/until",
                "not both",
            ),
        ],
        |body| PauseLimit::of(&["a"], body),
    );
    assert!(ResumeLimit::of(&["a"], b"{}").is_ok());
    let observed = ObserveLimit::of(&["a"], br#"{"external":3,"for":"60s"}"#).unwrap();
    assert_eq!((observed.external, observed.hold), (3, Some(Span::from_s(60))));
    assert_eq!(ObserveLimit::of(&["a"], br#"{"external":0}"#).unwrap().hold, None);
    refused(
        vec![
            row("", InvalidField, "", "object"),
            row("{}", InvalidField, "/external", "add \"external\""),
            row(r#"{"external":-1}"#, OutOfBounds, "/external", "0 to"),
            row(r#"{"external":"3"}"#, InvalidField, "/external", "whole"),
            row(r#"{"external":3,"for":60}"#, InvalidField, "/for", "\"5m\""),
            row(r#"{"external":3,"until":"1s"}"#, UnknownField, "/until", "\"for\""),
        ],
        |body| ObserveLimit::of(&["a"], body),
    );
}

#[test]
fn a_pool_is_put_whole_and_patched_in_part() {
    assert_eq!(PutPool::of(&["a"], b"{}").unwrap().settings, Default::default());
    let put = PutPool::of(&["a"], br#"{"quarantine":"1m","cooldown":"1s","rate":{"count":1,"per":"1s","burst":2},"max_uses":5,"pick":"random"}"#);
    let settings = put.unwrap().settings;
    assert_eq!((settings.pick, settings.max_uses), (Pick::Random, Some(5)));
    let patch = PatchPool::of(&["a"], br#"{"pick":null,"cooldown":"0s"}"#).unwrap();
    assert_eq!((patch.pick, patch.cooldown), (Patch::Reset, Patch::Set(Span::ZERO)));
    let rows = || {
        vec![
            row("", InvalidField, "", "object"),
            row(r#"{"available":1}"#, UnknownField, "/available", "cannot be set"),
            row(r#"{"pick":"fifo"}"#, InvalidField, "/pick", "\"lru\" or \"random\""),
            row(r#"{"max_uses":0}"#, OutOfBounds, "/max_uses", "1 to"),
            row(r#"{"quarantine":60}"#, InvalidField, "/quarantine", "\"5m\""),
            row(r#"{"cooldown":"4000d"}"#, OutOfBounds, "/cooldown", "\"3650d\""),
            row(r#"{"rate":{"count":1}}"#, InvalidField, "/rate/per", "add"),
        ]
    };
    refused(rows(), |body| PutPool::of(&["a"], body));
    refused(rows(), |body| PatchPool::of(&["a"], body));
    assert_eq!(PutPool::of(&[""], b"{}").unwrap_err().pointer.unwrap(), "/path/name");
}

#[test]
fn a_wrong_resource_is_refused_with_its_place() {
    let tags: Vec<String> = (0..17).map(|i| format!("\"t{i}\"")).collect();
    refused(
        vec![
            row("1", InvalidField, "", "object"),
            row("{}", InvalidField, "/id", "add \"id\""),
            row(r#"{"id":5}"#, InvalidField, "/id", "string"),
            row(r#"{"id":""}"#, InvalidField, "/id", "1 to 256"),
            row(
                format!(r#"{{"id":"a","data":"{}"}}"#, "x".repeat(65_535)),
                OutOfBounds,
                "/data",
                "elsewhere",
            ),
            row(r#"{"id":"a","tags":"cn"}"#, InvalidField, "/tags", "array"),
            row(r#"{"id":"a","tags":["a",""]}"#, InvalidField, "/tags/1", "1 to 128"),
            row(format!(r#"{{"id":"a","tags":[{}]}}"#, tags.join(",")), OutOfBounds, "/tags", "16"),
            row(r#"{"id":"a","slots":0}"#, OutOfBounds, "/slots", "1 to"),
            row(r#"{"id":"a","state":"banned"}"#, UnknownField, "/state", "cannot be set"),
            row(r#"{"id":"a","tag":"x"}"#, UnknownField, "/tag", "did you mean \"tags\"?"),
        ],
        resource_line,
    );
    let one = resource_line(br#"{"id":"a","data":{"p": "s"},"tags":["x","y","x"]}"#).unwrap();
    assert_eq!((one.data.text(), one.tags.len(), one.slots), (r#"{"p": "s"}"#, 2, 1));
    assert!(resource_line(br#"{"id":"a"}"#).unwrap().data.is_null());
}

#[test]
fn a_set_is_synced_and_resources_are_added() {
    let sync = |query: &[(&str, &str)], body: &str| read_set::<SyncResources>("p", query, body);
    let set = sync(&[], r#"[{"id":"a"},{"id":"b"}]"#).unwrap();
    assert_eq!((set.resources.len(), set.meant, set.version), (2, Meant::Ask, None));
    let none = sync(&[("force", "true"), ("version", "7")], "[]").unwrap();
    assert_eq!((none.resources.len(), none.meant, none.version), (0, Meant::Yes, Some(7)));
    let more: Vec<String> = (0..1_500).map(|i| format!(r#"{{"id":"{i}"}}"#)).collect();
    let more = format!("[{}]", more.join(","));
    assert_eq!(sync(&[("force", "false")], &more).unwrap().resources.len(), 1_500);
    refused(
        vec![
            row("", InvalidField, "", "object"),
            row(r#"{"id":"a"}"#, InvalidField, "", "array"),
            row(r#"[{"id":"a"},{"id":1}]"#, InvalidField, "/1/id", "string"),
        ],
        |body| SyncResources::of(&["p"], body),
    );
    refused(
        vec![
            row("", InvalidField, "", "object"),
            row("[]", OutOfBounds, "", "1 to 1000"),
            row(more, OutOfBounds, "", "1 to 1000"),
            row(r#"[{"id":"a"},5]"#, InvalidField, "/1", "object"),
        ],
        |body| add_resources("p", body),
    );
    assert_eq!(add_resources("p", br#"{"id":"a"}"#).unwrap().resources.len(), 1);
    let none = AddResources { resources: vec![], ..add_resources("p", br#"{"id":"a"}"#).unwrap() };
    assert_eq!(none.within_bounds().unwrap_err().code, OutOfBounds);
    let no = add_resources("p", br#"[{"id":"a"},{"id":"b","slots":"2"}]"#).unwrap_err();
    assert_eq!((no.index, no.pointer.as_deref()), (Some(1), Some("/1/slots")));
}

#[test]
fn a_set_of_lines_names_the_line() {
    let lines = ResourceLines::default().read_all(b"{\"id\":\"a\"}\n\n{\"id\":\"b\"}\r\n").unwrap();
    assert_eq!(lines.len(), 2);
    let long = format!("{{\"id\":\"a\"}}\n{}\n", "x".repeat(600_000));
    for (body, code, line) in [
        ("{\"id\":\"a\"}\n\n{\"id\":5}\n", InvalidField, 3),
        ("{\"id\":\"a\"}\n{", BadJson, 2),
        (long.as_str(), TooLarge, 2),
    ] {
        let no = ResourceLines::default().read_all(body.as_bytes()).unwrap_err();
        assert_eq!((no.code, no.line), (code, Some(line)));
    }
}

#[test]
fn a_repeated_id_in_a_set_is_refused_with_both_places() {
    let body = br#"[{"id":"a"},{"id":"b"},{"id":"c"},{"id":"b","data":{"secret":1}}]"#;
    let no = SyncResources::of(&["p"], body).unwrap_err();
    assert_eq!((no.code, no.pointer.as_deref(), no.index), (InvalidField, Some("/3/id"), Some(3)));
    assert!(no.detail.contains("\"b\"") && no.detail.contains("item 1 and item 3"), "{no}");
    let body = b"{\"id\":\"a\"}\n\n{\"id\":\"b\"}\n{\"id\":\"a\"}";
    let no = ResourceLines::default().read_all(body).unwrap_err();
    assert_eq!((no.code, no.pointer.as_deref(), no.line), (InvalidField, Some("/id"), Some(4)));
    assert!(no.detail.contains("line 1 and line 4"), "{no}");
    // Adding twice sets twice: the later item counts, as if it were sent later.
    assert_eq!(add_resources("p", br#"[{"id":"a"},{"id":"a"}]"#).unwrap().resources.len(), 2);
}

#[test]
fn a_resource_is_patched_cooled_and_banned() {
    let patch = PatchResource::of(&RESOURCE, br#"{"data":null,"slots":2}"#).unwrap();
    assert_eq!((patch.data, patch.tags, patch.slots), (Patch::Reset, Patch::Keep, Patch::Set(2)));
    refused(
        vec![
            row("", InvalidField, "", "object"),
            row(r#"{"id":"b"}"#, UnknownField, "/id", "cannot be set"),
            row(r#"{"slots":0}"#, OutOfBounds, "/slots", "1 to"),
        ],
        |body| PatchResource::of(&RESOURCE, body),
    );
    assert!(CoolResource::of(&RESOURCE, br#"{"for":"10m"}"#).is_ok());
    refused(
        vec![
            row("", InvalidField, "", "object"),
            row("{}", InvalidField, "/for", "\"until\""),
            row(r#"{"for":600}"#, InvalidField, "/for", "\"5m\""),
            row(
                r#"{"for":"1s","until":"2026-12-01T09:55:00Z"}"#,
                ConflictingFields,
                "/until",
                "not both",
            ),
        ],
        |body| CoolResource::of(&RESOURCE, body),
    );
    assert_eq!(BanResource::of(&RESOURCE, b"").unwrap().reason, None);
    let banned = BanResource::of(&RESOURCE, br#"{"reason":"captcha"}"#).unwrap();
    assert_eq!(banned.reason.as_deref(), Some("captcha"));
    refused(
        vec![
            row(r#"{"reason":1}"#, InvalidField, "/reason", "string"),
            row(r#"{"for":"1s"}"#, UnknownField, "/for", "\"reason\""),
        ],
        |body| BanResource::of(&RESOURCE, body),
    );
    let no = GetResource::of(&["a", ""], b"").unwrap_err();
    assert_eq!(no.pointer.as_deref(), Some("/path/id"));
    let no = GetResource::of(&["a/b", "c"], b"").unwrap_err();
    assert_eq!(no.pointer.as_deref(), Some("/path/name"));
}

#[test]
fn resources_have_no_blank_at_the_ends_of_their_ids() {
    for (id, pointer) in [(r#"a\u00a0"#, "/id"), (" a", "/id")] {
        let no = resource_line(format!(r#"{{"id":"{id}"}}"#).as_bytes()).unwrap_err();
        assert_eq!((no.code, no.pointer.as_deref()), (InvalidField, Some(pointer)));
    }
    assert!(resource_path("a ").is_ok(), "one that an earlier release took can be deleted");
}

#[test]
fn secrets_are_not_repeated() {
    let secret = "hunter2hunter2";
    for body in [
        format!(r#"{{"id":"a","data":{{"password":"{secret}"}},"x":1}}"#),
        format!(r#"{{"id":"a","data":{{"password":"{secret}"}},"slots":"{}"}}"#, 1),
        format!(r#"{{"id":"a","data":{{"password":"{secret}","password":1}}}}"#),
        format!(r#"{{"id":"a","data":{{"password":"{secret}"#),
        format!(r#"{{"id":"a","data":"{}"}}"#, secret.repeat(10_000)),
    ] {
        let no = resource_line(body.as_bytes()).unwrap_err();
        assert!(!format!("{no:?}").contains(secret), "{no:?}");
    }
}
