//! Names, labels and errors that would be markup, and secrets, searched for in every page.

use tenure_core::decode;

use crate::served::Served;

/// What would become an element, end an attribute, or begin a script, in any field that may hold it.
const MARK: &str = r#"<xss a="b" onload='c'>&"#;

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A store in which everything that has a name is named so. Answers the id of a job.
fn named_so(served: &Served) -> String {
    let mark = json(MARK);
    let encoded = tenure_core::percent::encoded(MARK).to_string();
    let limit = format!("site:{MARK}");
    served.ask(decode::put_limit(&limit, br#"{"concurrency":1}"#).unwrap());
    served.ask(decode::put_pool(MARK, b"{}").unwrap());
    let resource = format!(
        r#"{{"id":{mark},"data":{{"password":"hunter2-secret",{mark}:"hunter2-secret"}},"tags":["t"]}}"#
    );
    served.ask(decode::add_resources(MARK, resource.as_bytes()).unwrap());
    let needs = format!(r#"[{{"limit":{}}},{{"pool":{mark}}}]"#, json(&limit));
    let job = |more: &str| {
        format!(
            r#"{{"queue":{mark},"kind":{mark},"group":{mark},"payload":{{"secret":"payload-secret","x":{mark}}},
            "labels":{{"l":{mark}}},"unique":{{"key":{}}},"needs":{needs}{more}}}"#,
            json(&format!("{MARK}{more}"))
        )
    };
    let failed = served.push(&job(r#","retry":{"max_attempts":1,"max_lost":1,"backoff":{"kind":"fixed","base":"1s","jitter":false}}"#));
    let lease = served.lease(MARK, MARK).lease.unwrap();
    let settle =
        serde_json::json!({"settle": [{"lease": lease, "outcome": "failed", "error": MARK}]});
    served.settle(&settle.to_string());
    served.push(&job(""));
    served.lease(MARK, MARK);
    let id = served.push(&format!(
        r#"{{"id":{mark},"queue":{mark},"needs":{needs},"flow":{mark},"after":[{}]}}"#,
        json(&failed)
    ));
    assert_eq!(id, MARK);
    encoded
}

#[test]
fn no_name_or_error_becomes_markup_and_no_secret_is_shown() {
    let served = Served::start();
    let name = named_so(&served);
    let failed = served.get("/jobs?q=state:failed").page();
    let failed = failed.split("href=\"/jobs/job_").nth(1).unwrap().split('"').next().unwrap();
    let paths = [
        "/".to_owned(),
        "/queues".to_owned(),
        format!("/queues/{name}"),
        format!("/queues/{name}/delete"),
        "/jobs".to_owned(),
        format!("/jobs?q=queue:%22{name}%22"),
        format!("/jobs?q=error:{name}"),
        format!("/jobs?q={name}:1"),
        format!("/jobs/{name}"),
        format!("/jobs/{name}/edit"),
        format!("/jobs/{name}/cancel"),
        format!("/jobs/job_{failed}"),
        format!("/bulk/delete?q=kind:{name}"),
        format!("/queues/x?did={name}"),
        format!("/jobs?did={name}&n={name}"),
        format!("/jobs?ns={name}"),
        format!("/{name}"),
        "/limits".to_owned(),
        format!("/limits/site:{name}"),
        "/pools".to_owned(),
        format!("/pools/{name}"),
        "/leases".to_owned(),
        "/workers".to_owned(),
        "/failures".to_owned(),
        "/flows".to_owned(),
        format!("/flows/{name}"),
        "/schedules".to_owned(),
        "/events".to_owned(),
        "/system".to_owned(),
    ];
    let mut seen = 0;
    for path in paths {
        for language in ["en", "zh"] {
            let got = served.request("GET", &path, &format!("Accept-Language: {language}\r\n"), "");
            assert!(got.status < 500, "{path}: {}", got.body);
            let page = got.body;
            assert!(!page.contains("<xss"), "{path} lets a name become markup: {page}");
            // Each value of an attribute ends where we end it.
            assert!(!page.contains("a=\"b\""), "{path} lets a name end an attribute: {page}");
            assert!(!page.contains("hunter2-secret"), "{path} shows the data of a resource");
            assert!(!page.contains("payload-secret"), "{path} shows a payload");
            seen += page.matches("&lt;xss").count();
        }
    }
    assert!(seen > 50, "the names stand in {seen} places only: these pages show nothing");
}

#[test]
fn what_a_job_carries_is_text_also_when_it_is_shown() {
    let served = Served::start();
    let name = named_so(&served);
    let page = served.get("/jobs?q=state:failed").page();
    let failed = page.split("href=\"/jobs/job_").nth(1).unwrap().split('"').next().unwrap();
    for path in [format!("/jobs/job_{failed}?show=content"), format!("/jobs/job_{failed}/edit")] {
        let page = served.get(&path).page();
        assert!(page.contains("payload-secret") && !page.contains("<xss"), "{path}: {page}");
    }
    assert!(!served.get(&format!("/jobs/{name}?show=content")).body.contains("<xss"));
}
