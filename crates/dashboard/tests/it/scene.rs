//! A store with everything that a page can show, once with names as people give them and once with names that would be
//! markup; and the paths of all pages that show it.

use serde_json::json;
use tenure_core::decode::{self, Decode};
use tenure_core::percent::encoded;
use tenure_core::requests::{BanResource, PauseQueue, PutLimit, PutPool, RunScheduleNow};

use crate::served::Served;

/// A text that would become an element, end an attribute, or begin a script, for any field that can hold it.
pub const MARK: &str = r#"<xss a="b" onload='c'>&"#;

/// Texts that no page may show: data of resources, and payloads that nobody asked for.
pub const SECRETS: [&str; 2] = ["hunter2-secret", "payload-secret"];

/// Names in a scene, as paths contain them.
pub struct Scene {
    /// A job that waits in a line.
    pub waits: String,
    /// A job that failed for good.
    pub failed: String,
    /// A lease on a job.
    pub lease: String,
}

const ONCE: &str =
    r#"{"max_attempts":1,"max_lost":1,"backoff":{"kind":"fixed","base":"1s","jitter":false}}"#;

/// One of everything, with names as people give them.
pub fn filled(served: &Served) -> Scene {
    served.ask(PutLimit::of(&["site:*"], br#"{"concurrency":5,"gap":"20m"}"#).unwrap());
    served.ask(PutLimit::of(&["llm:tokens"], br#"{"rate":{"count":10000,"per":"1m"}}"#).unwrap());
    let accounts: Vec<_> = (0..24)
        .map(|n| json!({"id": format!("138000000{n:02}"), "data": {"password": SECRETS[0]}, "tags": ["cn"]}))
        .collect();
    served.ask(PutPool::of(&["accounts"], br#"{"cooldown":"10s"}"#).unwrap());
    let accounts = json!(accounts).to_string();
    served.ask(decode::add_resources("accounts", accounts.as_bytes()).unwrap());
    let retry = json!({"max_attempts": 5, "max_lost": 3,
        "backoff": {"kind": "fixed", "base": "100ms", "jitter": false}});
    let page = |n: u32| {
        json!({"id": format!("page-{n:03}"), "queue": "crawl", "kind": "page",
            "payload": {"url": format!("https://example.com/{n}"), "token": SECRETS[1]},
            "group": format!("tenant-{}", n % 4), "labels": {"site": "example.com"}, "retry": retry,
            "needs": [{"limit": "site:example.com"}, {"pool": "accounts", "tag": "cn"}]})
    };
    served.push(&json!((0..60).map(page).collect::<Vec<_>>()).to_string());
    for worker in ["worker-a7", "worker-b1", "worker-b2"] {
        served.lease("crawl", worker);
    }
    let lease = served.lease("crawl", "worker-a7").lease.unwrap();
    let error = "http 503: upstream connect error or disconnect/reset before headers";
    let failed = json!({"lease": lease, "outcome": "failed", "error": error, "retry_in": "1h"});
    served.settle(&json!({"settle": [failed]}).to_string());
    while served.try_lease("crawl", "worker-b1").is_some() {}
    let mails: Vec<_> = (0..312)
        .map(|n| json!({"id": format!("mail-{n}"), "queue": "mail", "payload": {"to": n}}))
        .collect();
    served.push(&json!(mails).to_string());
    for n in 0..8 {
        served.push(&format!(r#"{{"id":"index-{n}","queue":"index","retry":{ONCE}}}"#));
        let lease = served.lease("index", "worker-c3").lease.unwrap();
        let ends = match n % 3 {
            0 => json!({"lease": lease, "outcome": "failed", "error": format!("http 50{n}")}),
            _ => json!({"lease": lease, "outcome": "succeeded"}),
        };
        served.settle(&json!({"settle": [ends]}).to_string());
    }
    for (id, says) in [
        (
            "news",
            br#"{"cron":"0 6 * * *","zone":"Europe/Berlin","job":{"queue":"news"}}"#.as_slice(),
        ),
        (
            "prices",
            br#"{"every":"45m","job":{"queue":"news","payload":{"api_key":"payload-secret"}}}"#,
        ),
    ] {
        served.ask(decode::put_schedule(id, says).unwrap());
    }
    served.ask(RunScheduleNow::of(&["news"], b"").unwrap());
    let release = json!([
        {"id": "build-linux", "ref": "linux", "queue": "ci", "flow": "release"},
        {"id": "build-mac", "ref": "mac", "queue": "ci", "flow": "release"},
        {"id": "test", "ref": "test", "queue": "ci", "flow": "release", "after": [{"ref": "linux"}, {"ref": "mac"}]},
        {"id": "sign", "ref": "sign", "queue": "ci", "flow": "release", "after": [{"ref": "linux"}]},
        {"id": "publish", "queue": "ci", "flow": "release", "after": [{"ref": "test"}, {"ref": "sign"}]},
    ]);
    served.push(&release.to_string());
    let lease = served.lease("ci", "worker-c3").lease.unwrap();
    served.settle(&json!({"settle": [{"lease": lease, "outcome": "succeeded"}]}).to_string());
    served.push(r#"{"queue":"later","delay":"2h"}"#);
    served.ask(PauseQueue::of(&["later"], b"{}").unwrap());
    let many = served.get("/jobs?q=state:blocked").page();
    let waits = many.split("/jobs/page-").nth(1).unwrap().split('"').next().unwrap();
    let lease = served.get("/leases?queue=crawl").page();
    let lease = lease.split("href=\"/leases/").nth(1).unwrap().split('"').next().unwrap();
    Scene { waits: format!("page-{waits}"), failed: "index-0".to_owned(), lease: lease.to_owned() }
}

/// Every name would be markup.
pub fn named_so(served: &Served) -> Scene {
    let limit = format!("site:{MARK}");
    served.ask(PutLimit::of(&[&limit], br#"{"concurrency":1}"#).unwrap());
    served.ask(PutPool::of(&[MARK], b"{}").unwrap());
    let resource = json!({"id": MARK, "tags": ["t"],
        "data": {"password": SECRETS[0], MARK: SECRETS[0]}});
    served.ask(decode::add_resources(MARK, resource.to_string().as_bytes()).unwrap());
    let needs = json!([{"limit": limit}, {"pool": MARK}]);
    let job = |n: u32| {
        json!({"id": format!("marked-{n}"), "queue": MARK, "kind": MARK, "group": MARK,
            "payload": {"secret": SECRETS[1], "x": MARK}, "labels": {"l": MARK},
            "unique": {"key": format!("{MARK}{n}")}, "needs": needs})
    };
    let mut failed = job(0);
    failed["retry"] = serde_json::from_str(ONCE).unwrap();
    let failed = served.push(&failed.to_string());
    let lease = served.lease(MARK, MARK).lease.unwrap();
    let settle = json!({"settle": [{"lease": lease, "outcome": "failed", "error": MARK}]});
    served.settle(&settle.to_string());
    served.push(&job(1).to_string());
    let lease = served.lease(MARK, MARK).lease.unwrap();
    let child = json!({"id": MARK, "queue": MARK, "needs": needs, "flow": MARK, "after": [failed],
        "on_parent_failure": "run"});
    served.push(&child.to_string());
    assert!(served.try_lease(MARK, MARK).is_none());
    served.ask(
        BanResource::of(&[MARK, MARK], json!({"reason": MARK}).to_string().as_bytes()).unwrap(),
    );
    let scheduled = json!({"every": "1h", "job": {"queue": MARK, "kind": MARK, "payload": {"password": SECRETS[1], "x": MARK}}});
    served.ask(decode::put_schedule(MARK, scheduled.to_string().as_bytes()).unwrap());
    Scene { waits: encoded(MARK).to_string(), failed, lease: encoded(&lease).to_string() }
}

/// The names under which [`filled`] has its queue, limit, pool, resource, schedule and flow.
pub const NAMES: [&str; 6] =
    ["crawl", "site:example.com", "accounts", "13800000005", "news", "release"];

/// The same for [`named_so`].
pub fn marked_names() -> [String; 6] {
    let mark = encoded(MARK).to_string();
    let limit = format!("site:{mark}");
    [mark.clone(), limit, mark.clone(), mark.clone(), mark.clone(), mark]
}

/// The paths of all pages for things of these names.
pub fn paths(scene: &Scene, names: &[String; 6]) -> Vec<String> {
    let [queue, limit, pool, resource, schedule, flow] = names;
    let of_queue = queue.replace("%22", "%5C%22");
    let Scene { waits, failed, lease } = scene;
    let mut all: Vec<String> = [
        "/",
        "/?over=day",
        "/queues",
        "/queues?sort=ready",
        "/jobs",
        "/jobs?q=state:failed",
        "/failures",
        "/failures?over=day",
        "/flows",
        "/schedules",
        "/limits",
        "/pools",
        "/leases",
        "/workers",
        "/events",
        "/events?type=job.*",
        "/system",
        "/trail",
        "/trail?op=put_*",
    ]
    .map(str::to_owned)
    .into();
    all.extend([
        format!("/queues/{queue}"),
        format!("/queues/{queue}?over=day"),
        format!("/queues/{queue}/delete"),
        format!("/jobs?q=queue:%22{of_queue}%22"),
        format!("/jobs/{waits}"),
        format!("/jobs/{failed}"),
        format!("/jobs/{waits}/edit"),
        format!("/jobs/{failed}/edit"),
        format!("/jobs/{waits}/cancel"),
        format!("/jobs/{failed}/delete"),
        format!("/limits/{limit}"),
        format!("/limits/{limit}/delete"),
        format!("/pools/{pool}"),
        format!("/pools/{pool}/delete"),
        format!("/pools/{pool}/resources/{resource}/ban"),
        format!("/pools/{pool}/resources/{resource}/cool"),
        format!("/pools/{pool}/resources/{resource}/remove"),
        format!("/pools/{pool}/add"),
        format!("/pools/{pool}?state=available"),
        format!("/schedules/{schedule}"),
        format!("/schedules/{schedule}/delete"),
        format!("/flows/{flow}"),
        format!("/flows/{flow}/cancel"),
        format!("/leases/{lease}"),
    ]);
    all.extend(
        ["cancel", "retry", "delete"].map(|verb| format!("/bulk/{verb}?q=queue:%22{of_queue}%22")),
    );
    all
}
