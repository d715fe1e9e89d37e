//! Tests of the content of pages.

use std::io::{BufRead, BufReader};

use tenure_core::decode::{self, Decode};
use tenure_core::names::{Namespace, QueueName};
use tenure_core::requests::{BanResource, Extend, PauseQueue, PutLimit, PutPool};
use tenure_core::time::{Moment, Span};
use tenure_dashboard::{History, Minute};

use crate::served::Served;

/// A limit of one permit, a job that holds it and a job that waits for it: their ids.
pub fn one_waits_for_the_other(served: &Served) -> (String, String) {
    served.ask(PutLimit::of(&["site:a"], br#"{"concurrency":1}"#).unwrap());
    let needs = r#""needs":[{"limit":"site:a"}],"payload":{"token":"payload-secret"}"#;
    let first = served.push(&format!(r#"{{"queue":"crawl",{needs}}}"#));
    served.lease("crawl", "worker-7");
    let second = served.push(&format!(r#"{{"queue":"crawl",{needs},"labels":{{"site":"a"}}}}"#));
    assert!(served.try_lease("crawl", "worker-8").is_none());
    (first, second)
}

/// Pages of a store with one queue and one job.
fn pages(job: &str) -> Vec<String> {
    let fixed = [
        "/",
        "/?over=day",
        "/queues",
        "/queues?sort=oldest",
        "/queues/crawl",
        "/queues/crawl/delete",
        "/jobs",
    ];
    let mut all: Vec<String> = fixed.iter().map(|path| (*path).to_owned()).collect();
    all.extend(["", "/edit", "/cancel"].map(|end| format!("/jobs/{job}{end}")));
    all.extend(
        ["/limits", "/limits/site:a", "/limits/site:a/delete", "/pools", "/leases", "/workers"]
            .map(str::to_owned),
    );
    all.extend(["/failures", "/failures?over=day", "/jobs?q=state:failed"].map(str::to_owned));
    all.extend(
        ["/schedules", "/flows", "/events", "/events?type=job.*", "/system"].map(str::to_owned),
    );
    all.extend(["cancel", "retry", "delete"].map(|verb| format!("/bulk/{verb}?q=queue:crawl")));
    all
}

#[test]
fn every_page_is_drawn_in_both_languages() {
    let served = Served::start();
    let (_, job) = one_waits_for_the_other(&served);
    for path in pages(&job) {
        for (language, lang, word) in
            [("en-GB,en", "lang=\"en\"", "Overview"), ("zh-CN,zh;q=0.9", "lang=\"zh-CN\"", "总览")]
        {
            let headers = format!("Accept-Language: {language}\r\n");
            let page = served.request("GET", &path, &headers, "").page();
            assert!(page.contains(lang) && page.contains(word), "{path} {language}");
            assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"), "{path}");
            assert_eq!(page.matches("<h1").count(), 1, "{path} has one title");
            assert!(!page.contains(" style=") && !page.contains("<style"), "{path}");
            assert!(!page.contains("<script>") && !page.contains(" onclick="), "{path}");
        }
    }
}

#[test]
fn lists_show_a_line_of_each_payload_unless_its_queue_hides_it() {
    let served = Served::start();
    let once = r#""retry":{"max_attempts":1,"max_lost":1}"#;
    let payload = r#"{"url": "https://ann:pw@a.b/7", "n": 7}"#;
    let job = format!(r#"{{"id":"failed-7","queue":"crawl","payload":{payload},{once}}}"#);
    served.push(&job);
    let lease = served.lease("crawl", "w").lease.unwrap();
    let settle = format!(r#"{{"settle":[{{"lease":"{lease}","outcome":"failed","error":"no"}}]}}"#);
    served.settle(&settle);
    let job = r#"{"id":"member-7","queue":"crawl","flow":"f","group":"g","payload":{"n": 8}}"#;
    served.push(job);
    let seven = "{&quot;url&quot;:&quot;https://•••@a.b/7&quot;,&quot;n&quot;:7}";
    let eight = "{&quot;n&quot;:8}";
    let lists = [
        ("/jobs", vec![seven, eight]),
        ("/jobs?q=group:g", vec![eight]),
        ("/jobs?q=member", vec![eight]),
        ("/queues/crawl", vec![seven, eight]),
        ("/failures", vec![seven]),
        ("/flows/f", vec![eight]),
    ];
    for (path, lines) in &lists {
        let page = served.get(path).page();
        for line in lines {
            assert!(page.contains(line), "{path}: {line} is not in {page}");
        }
    }
    served.post("/queues/crawl/hide-payload", "");
    for (path, _) in &lists {
        let page = served.get(path).page();
        assert!(!page.contains(":7}") && !page.contains(":8}"), "{path}: {page}");
    }
    // A queue that is gone has no setting: payloads that it hid stay hidden.
    served.post("/jobs/member-7/cancel", "");
    assert_eq!(served.post("/queues/crawl/delete", "").leads_to(), "/queues");
    let page = served.get("/jobs").page();
    assert!(page.contains("failed-7") && !page.contains(":7}"), "{page}");
}

/// An hour in which things got worse.
pub struct WorseHour;

impl History for WorseHour {
    fn minutes(&self, _: &Namespace, queue: Option<&QueueName>, minutes: usize) -> Vec<Minute> {
        // A queue other than the one of the scene has done nothing.
        if queue.is_some_and(|queue| queue.as_str() != "crawl") {
            return Vec::new();
        }
        let minute = |n: u64| Minute {
            at: Moment::from_us(n * 60_000_000),
            pushed: 940 + 6 * n,
            lost: n % 2,
            succeeded: 900 - 5 * n + 120 * (n % 3),
            failed: if n > 40 { 4 * (n - 40) } else { n % 2 },
            oldest_ready: Some(Span::from_s(2 + n * n / 40)),
            half_waited: (n != 20).then(|| Span::from_ms(400 + 3 * n * n)),
            most_waited: (n != 20).then(|| Span::from_ms(1_500 + 9 * n * n)),
            half_ran: (n != 20).then(|| Span::from_ms(2_000 + 90 * (n % 4))),
            most_ran: (n != 20).then(|| Span::from_ms(7_000 + 400 * (n % 5))),
        };
        (0..60.min(minutes as u64)).map(minute).collect()
    }

    fn namespaces(&self) -> Vec<Namespace> {
        ["default", "shop"].map(|name| Namespace::parse(name).unwrap()).into()
    }
}

#[test]
fn the_last_hour_is_drawn_from_what_was_counted() {
    let served = Served::with_history(WorseHour);
    let page = served.get("/").page();
    assert_eq!(page.matches("class=\"good\"").count(), 60 + 1, "{page}");
    // The arrivals; two lines of waits, each with a gap where no job was granted; and the oldest ready job.
    assert_eq!(page.matches("<polyline").count(), 1 + 4 + 1, "{page}");
    for part in ["Runs per minute", "role=\"img\"", "60 min ago", "Failed runs"] {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
    let page = served.get("/?over=day").page();
    assert_eq!(page.matches("class=\"good\"").count(), 4 + 1, "{page}");
    assert!(page.contains("24 h ago"));
}

#[test]
fn the_page_of_a_queue_has_the_pictures_of_that_queue() {
    let served = Served::with_history(WorseHour);
    for queue in ["crawl", "mail"] {
        served.push(&format!(r#"{{"queue":"{queue}"}}"#));
    }
    let page = served.get("/queues/crawl").page();
    assert_eq!(page.matches("class=\"good\"").count(), 60, "{page}");
    // The arrivals; two lines of waits and two of run times, each with a gap where no job was granted.
    assert_eq!(page.matches("<polyline").count(), 1 + 4 + 4, "{page}");
    for name in ["Runs per minute", "Wait from due to start", "Run time"] {
        let label = format!("role=\"img\" aria-label=\"{name}\"");
        assert!(page.contains(&label), "{label} is missing in {page}");
    }
    assert!(!page.contains("Age of the oldest ready job"), "nobody looks at it of a queue");
    for part in ["60 min ago", "from the events that the store keeps", "?over=day\">Day</a>"] {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
    let page = served.get("/queues/crawl?over=day").page();
    assert_eq!(page.matches("class=\"good\"").count(), 4, "{page}");
    assert!(page.contains("24 h ago") && page.contains("Runs per 15 minutes"), "{page}");
    let page = served.get("/queues/mail").page();
    assert_eq!(page.matches("class=\"good\"").count(), 0, "{page}");
    assert!(
        !Served::with(None).get("/").page().contains("since it began to serve"),
        "nobody counts there"
    );
}

#[test]
fn queues_that_fit_on_a_page_can_be_sorted_by_column() {
    let served = Served::start();
    for queue in ["b", "c", "a", "c"] {
        served.push(&format!(r#"{{"queue":"{queue}"}}"#));
    }
    served.lease("a", "worker-7");
    let order = |path: &str| {
        let page = served.get(path).page();
        let rows = page.split("<th scope=\"row\"><a href=\"/queues/").skip(1);
        rows.map(|row| row.split('"').next().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    for (query, wanted) in [
        ("", "a b c"),
        ("?sort=name", "a b c"),
        ("?sort=ready", "c b a"),
        ("?sort=running", "a b c"),
        ("?sort=oldest", "b c a"),
        ("?sort=nothing", "a b c"),
    ] {
        assert_eq!(order(&format!("/queues{query}")), wanted, "{query}");
    }
    let page = served.get("/queues?sort=oldest").page();
    let head = "aria-sort=\"descending\"><a href=\"/queues?sort=oldest\">Oldest ready</a>";
    assert!(page.contains(head) && page.matches("aria-sort").count() == 1, "{page}");
    assert!(!served.get("/").page().contains("?sort="), "the overview has the busiest ones");
    for n in 0..100 {
        served.push(&format!(r#"{{"queue":"many-{n}"}}"#));
    }
    let page = served.get("/queues?sort=ready").page();
    assert!(!page.contains("aria-sort") && !page.contains("sort=name"), "{page}");
}

#[test]
fn the_system_page_links_to_namespaces_called_at_this_server() {
    let page = Served::with_history(WorseHour).get("/system").page();
    let links = ["href=\"/\">default</a>", "href=\"/?ns=shop\">shop</a>"];
    assert!(links.iter().all(|link| page.contains(link)), "{page}");
    assert!(!Served::start().get("/system").page().contains("called at this server"));
}

#[test]
fn an_empty_store_says_what_to_do() {
    let served = Served::start();
    assert!(served.get("/").page().contains("Nothing needs attention."));
    assert!(served.get("/jobs").page().contains("tenure push hello"));
    assert!(served.get("/queues").page().contains("There is no queue yet."));
}

#[test]
fn a_waiting_job_shows_its_need_the_holder_and_its_place() {
    let served = Served::start();
    let (first, second) = one_waits_for_the_other(&served);
    let page = served.get(&format!("/jobs/{second}")).page();
    for part in [
        "Why it waits",
        "1 of 1 in use",
        "href=\"/limits/site:a\"",
        "worker-7",
        &format!("href=\"/jobs/{first}\""),
        "Place 1 of 1 in line",
        "site=a",
        "Pushed",
        &format!("tenure explain {second}"),
    ] {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
    let page = served.get(&format!("/jobs/{first}")).page();
    assert!(page.contains("Holder") && page.contains("worker-7"), "{page}");
}

#[test]
fn a_limit_shows_its_holders_and_waiting_jobs() {
    let served = Served::start();
    let (first, second) = one_waits_for_the_other(&served);
    let page = served.get("/limits/site:a").page();
    for part in ["1 of 1 in use", "worker-7", &first, "In line: 1", &second, "tenure limit site:a"]
    {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
    let page = served.get("/limits").page();
    assert!(page.contains("href=\"/limits/site:a\"") && page.contains("full"), "{page}");
    assert_eq!(served.get("/limits?name=site:a").leads_to(), "/limits/site:a");
    let page = served.get("/workers").page();
    assert!(page.contains("worker-7") && page.contains(&first), "{page}");
}

#[test]
fn resources_of_one_state_are_found_among_many() {
    let served = Served::start();
    served.ask(PutPool::of(&["p"], b"{}").unwrap());
    let ids: Vec<_> = (0..1_000).map(|n| serde_json::json!({"id": format!("r{n:04}")})).collect();
    for some in ids.chunks(500) {
        let some = serde_json::json!(some).to_string();
        served.ask(decode::add_resources("p", some.as_bytes()).unwrap());
    }
    served.ask(BanResource::of(&["p", "r0999"], b"").unwrap());
    let page = served.get("/pools/p?state=banned").page();
    assert!(page.contains("r0999") && !page.contains("r0001"), "{page}");
    let page = served.get("/pools/p?state=available").page();
    assert!(page.contains("r0001") && page.contains("rel=\"next\""), "{page}");
    let page = served.get("/pools/p?state=cooling").page();
    assert!(page.contains("No resource is in this state."), "{page}");
}

#[test]
fn a_flow_is_drawn_step_by_step_and_says_what_it_leaves_out() {
    let served = Served::start();
    let many: Vec<_> = (0..120)
        .map(|n| match n {
            0 => serde_json::json!({"id": "root", "ref": "r", "queue": "q", "flow": "f"}),
            n => serde_json::json!({"id": format!("leaf-{n:03}"), "queue": "q", "flow": "f", "after": [{"ref": "r"}]}),
        })
        .collect();
    served.push(&serde_json::json!(many).to_string());
    let page = served.get("/flows/f").page();
    assert!(page.contains("the newest 100 of 120 jobs"), "{page}");
    let chain = serde_json::json!([
        {"id": "a", "ref": "a", "queue": "q", "flow": "g"},
        {"id": "b", "ref": "b", "queue": "q", "flow": "g", "after": [{"ref": "a"}]},
        {"id": "c", "queue": "q", "flow": "g", "after": [{"ref": "a"}, {"ref": "b"}]},
    ]);
    served.push(&chain.to_string());
    let page = served.get("/flows/g").page();
    assert_eq!(page.matches("class=\"edge\"").count(), 3, "{page}");
    // Each stands right of the last of its parents.
    let x = |id: &str| {
        let drawn =
            page.split(&format!("<title>{id} · q</title><rect class=\"box\" x=\"")).nth(1).unwrap();
        drawn.split('"').next().unwrap().parse::<u32>().unwrap()
    };
    assert!(x("a") < x("b") && x("b") < x("c"), "{page}");
}

#[test]
fn flows_stand_newest_first() {
    let served = Served::start();
    for n in 0..120 {
        served.push(&format!(r#"{{"queue":"q","flow":"flow-{n:03}"}}"#));
    }
    let first = served.get("/flows").page();
    let places = [119, 118, 20].map(|n| first.find(&format!("/flows/flow-{n:03}")));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
    assert!(!first.contains("/flows/flow-019"), "a page has a hundred");
    let second = served.get("/flows?cursor=100").page();
    assert!(second.contains("/flows/flow-019") && second.contains("/flows/flow-000"));
    assert!(!second.contains("/flows/flow-020"));
}

#[test]
fn events_stand_newest_first_and_are_filtered() {
    let served = Served::start();
    served.push(r#"{"id":"first","queue":"q"}"#);
    served.push(r#"{"id":"second","queue":"r"}"#);
    let page = served.get("/events").page();
    let (first, second) = (page.find("/jobs/first"), page.find("/jobs/second"));
    assert!(second.unwrap() < first.unwrap(), "{page}");
    let page = served.get("/events?queue=r&type=job.*").page();
    assert!(page.contains("job.pushed") && !page.contains("/jobs/first"), "{page}");
    assert_eq!(served.get("/events?type=nothing.at_all").status, 422);
}

#[test]
fn failures_stand_by_their_errors_and_lead_to_their_jobs() {
    let served = Served::start();
    for n in [500, 502] {
        served.push(&format!(r#"{{"id":"j{n}","queue":"q"}}"#));
        let lease = served.lease("q", "w").lease.unwrap();
        let ends = serde_json::json!({"settle": [
            {"lease": lease, "outcome": "failed", "final": true, "error": format!("http {n}")}
        ]});
        served.settle(&ends.to_string());
    }
    let page = served.get("/failures").page();
    let link = page.split("href=\"").find(|link| link.contains("state:failed")).unwrap();
    let link = link.split('"').next().unwrap().replace("&amp;", "&");
    let jobs = served.get(&link).page();
    assert!(jobs.contains("/jobs/j500\"") && jobs.contains("/jobs/j502\""), "{link}: {jobs}");
    assert!(!served.get("/failures?queue=other").page().contains("http #"));
}

#[test]
fn a_long_id_is_whole_in_the_page_and_its_button_copies_it() {
    let served = Served::start();
    let id = format!("job_{}", "1a21d675e19b4f6c8e0d5a7b3c2f1e09");
    served.push(&format!(r#"{{"id":"{id}","queue":"q"}}"#));
    let page = served.get("/jobs").page();
    let shown = "job_1a21d675<span class=\"mid\">e19b4f6c8e0d5a7b</span>3c2f1e09";
    for part in [shown, &format!("title=\"{id}\""), &format!("data-copy=\"{id}\"")] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn a_running_job_shows_its_progress_and_nothing_else_unasked() {
    let served = Served::start();
    let job = served.push(r#"{"queue":"q","payload":"payload-secret"}"#);
    let lease = served.lease("q", "w").lease.unwrap();
    let extend = serde_json::json!({"leases": [{"lease": lease, "progress": {"pages": 17}}]});
    served.ask(Extend::of(&[""; 0], extend.to_string().as_bytes()).unwrap());
    let page = served.get(&format!("/jobs/{job}")).page();
    assert!(page.contains("&quot;pages&quot;: 17"), "{page}");
    assert!(!page.contains("payload-secret"), "{page}");
}

#[test]
fn a_name_that_turns_text_around_is_shown_as_it_is_stored() {
    let served = Served::start();
    let job = served.push("{\"id\":\"bad\u{202e}tpircs\",\"queue\":\"q\"}");
    let page = served.get("/jobs").page();
    let text = page.split('<').map(|part| part.split_once('>').map_or("", |(_, text)| text));
    assert!(text.clone().all(|text| !text.contains('\u{202e}')), "{page}");
    assert!(text.into_iter().any(|text| text.contains("bad\\u{202e}tpircs")), "{page}");
    assert!(served.get(&format!("/jobs/{}", tenure_core::percent::encoded(&job))).status == 200);
}

#[test]
fn a_pause_is_a_note_and_no_alarm() {
    let served = Served::start();
    served.push(r#"{"queue":"q"}"#);
    served.ask(PauseQueue::of(&["q"], b"{}").unwrap());
    let page = served.get("/").page();
    let note = page.split("<li class=\"note\">").nth(1).unwrap();
    assert!(note.contains("is paused until it is resumed"), "{page}");
    assert!(page.contains("Nothing needs attention.") && !page.contains("<li class=\"bad\">"));
}

#[test]
fn what_a_job_carries_is_shown_only_when_it_is_asked_for() {
    let served = Served::start();
    let (_, job) = one_waits_for_the_other(&served);
    for path in pages(&job).iter().filter(|path| !path.ends_with("/edit")) {
        assert!(!served.get(path).page().contains("payload-secret"), "{path}");
    }
    let page = served.get(&format!("/jobs/{job}?show=content")).page();
    assert!(page.contains("payload-secret"));
    assert!(!page.contains("data-live="), "a page that is read does not change");
}

#[test]
fn what_happened_to_a_job_is_told_attempt_by_attempt() {
    let served = Served::start();
    let job = served.push(r#"{"queue":"q"}"#);
    let lease = served.lease("q", "w1").lease.unwrap();
    let settle = serde_json::json!({"settle": [
        {"lease": lease, "outcome": "failed", "error": "http 503", "retry_in": "0s"}
    ]});
    served.settle(&settle.to_string());
    let lease = served.lease("q", "w2").lease.unwrap();
    let settle = serde_json::json!({"settle": [{"lease": lease, "outcome": "succeeded"}]});
    served.settle(&settle.to_string());
    let page = served.get(&format!("/jobs/{job}")).page();
    let steps =
        ["Pushed", "Attempt 1 granted to w1", "http 503", "Attempt 2 granted to w2", "Succeeded"];
    let places: Vec<_> = steps.iter().map(|step| page.find(step)).collect();
    assert!(places.iter().all(Option::is_some), "{places:?} {page}");
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn a_search_names_its_jobs_and_stays_in_its_field() {
    let served = Served::start();
    let of = |queue: &str, group: &str| {
        served.push(&format!(r#"{{"queue":"{queue}","group":"{group}"}}"#))
    };
    let (a, b, c) = (of("q", "1"), of("q", "2"), of("r", "1"));
    for (search, shown, hidden) in [
        ("queue:q", vec![&a, &b], vec![&c]),
        ("group:1", vec![&a, &c], vec![&b]),
        ("queue:q+group:2", vec![&b], vec![&a, &c]),
        ("state:failed", vec![], vec![&a, &b, &c]),
    ] {
        let page = served.get(&format!("/jobs?q={search}")).page();
        assert!(shown.iter().all(|id| page.contains(id.as_str())), "{search}");
        assert!(!hidden.iter().any(|id| page.contains(id.as_str())), "{search}");
        assert!(page.contains(&format!("value=\"{}\"", search.replace('+', " "))), "{search}");
        // A call on many jobs cannot be limited to a group.
        assert_eq!(page.contains("/bulk/delete"), !search.contains("group"), "{search}");
    }
    let page = served.get("/jobs?q=colour:red").page();
    assert!(page.contains("&quot;colour&quot; is not a word of the filter."), "{page}");
    assert!(page.contains("role=\"alert\"") && !page.contains("finished_after"), "{page}");
    assert_eq!(served.get(&format!("/jobs?q={a}")).leads_to(), format!("/jobs/{a}"));
}

#[test]
fn a_word_finds_jobs_by_id_prefix_kind_and_label() {
    let served = Served::start();
    for (id, kind, site) in
        [("maps-1", "page", "a.b"), ("maps-2", "tile", "c.d"), ("x", "maps", "e")]
    {
        served.push(&format!(
            r#"{{"id":"{id}","queue":"q","kind":"{kind}","labels":{{"site":"{site}"}}}}"#
        ));
    }
    for (search, shown) in [
        ("maps", vec!["maps-1", "maps-2", "x"]),
        ("maps-", vec!["maps-1", "maps-2"]),
        ("maps+tile", vec!["maps-2"]),
        ("site=a.b", vec!["maps-1"]),
        ("c.d", vec!["maps-2"]),
        ("nothing", vec![]),
    ] {
        let page = served.get(&format!("/jobs?q={search}")).page();
        for id in ["maps-1", "maps-2", "x"] {
            let is_shown = page.contains(&format!("data-copy=\"{id}\""));
            assert_eq!(is_shown, shown.contains(&id), "{search}: {id}");
        }
    }
    assert_eq!(served.get("/jobs?q=maps-1").leads_to(), "/jobs/maps-1");
}

#[test]
fn a_long_list_is_shown_by_the_page() {
    let served = Served::start();
    let jobs: Vec<String> =
        (0..130).map(|n| format!(r#"{{"id":"j{n:03}","queue":"q"}}"#)).collect();
    served.push(&format!("[{}]", jobs.join(",")));
    let page = served.get("/jobs?q=queue:q").page();
    assert!(page.contains("/jobs/j129\"") && !page.contains("/jobs/j029\""));
    let next = page.split("rel=\"next\"").next().unwrap().rsplit("href=\"").next().unwrap();
    let next = next.split('"').next().unwrap().replace("&amp;", "&");
    assert!(next.contains("q=queue:q"), "{next}");
    let page = served.get(&next).page();
    assert!(page.contains("/jobs/j029\"") && !page.contains("/jobs/j129\""));
}

#[test]
fn a_job_that_more_than_ten_thousand_others_came_after_is_found() {
    let served = Served::start();
    served.push(r#"{"id":"old","queue":"quiet"}"#);
    for _ in 0..11 {
        let others = vec![r#"{"queue":"loud"}"#; 1_000];
        served.push(&format!("[{}]", others.join(",")));
    }
    let page = served.get("/jobs?q=queue:quiet").page();
    assert!(page.contains("href=\"/jobs/old\""), "{page}");
    assert!(served.get("/bulk/cancel?q=queue:quiet").page().contains("Jobs that match now: 1."));
    let page = served.get(served.post("/bulk/cancel", "q=queue:quiet").leads_to()).page();
    assert!(page.contains("Jobs cancelled, or asked to stop: 1."), "{page}");
    let page = served.get("/jobs?q=kind:none-such").page();
    assert!(page.contains("No job matches."), "{page}");
}

#[test]
fn a_namespace_is_kept_in_every_link() {
    let served = Served::start();
    served.push(r#"{"id":"main-job","queue":"q"}"#);
    let page = served.get("/jobs?ns=other").page();
    assert!(!page.contains("main-job"));
    for link in page.split("href=\"/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(link.starts_with("assets/") || link.contains("ns=other"), "{link}");
    }
    let page = served.get("/jobs?ns=Not+One").body;
    assert!(page.contains("The request was refused"), "{page}");
}

#[test]
fn a_tab_hears_of_a_change_and_of_the_end() {
    let mut served = Served::start();
    let head = format!("GET /live HTTP/1.1\r\nHost: {}\r\n\r\n", served.at);
    let mut lines = BufReader::new(served.connect(&head)).lines();
    let mut next = |wanted: &str| {
        let found = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains(wanted)));
        assert!(found.is_some(), "{wanted} did not come");
    };
    next("text/event-stream");
    next("retry:");
    served.push(r#"{"queue":"q"}"#);
    next("event: changed");
    served.drain();
    // The last chunk of the stream.
    next("0");
}

#[test]
fn below_v1_everything_is_the_api() {
    let served = Served::start();
    for (path, status) in
        [("/v1/nothing", 404), ("/v1", 404), ("/nothing", 404), ("/queues/nothing", 404)]
    {
        let got = served.get(path);
        assert_eq!(got.status, status, "{path}");
        let is_page = got.body.contains("<!DOCTYPE");
        assert_eq!(is_page, !path.starts_with("/v1"), "{path}: {}", got.body);
        // A program that forgot the /v1 gets the answer for programs.
        let json = "Content-Type: application/json\r\n";
        let got = served.request("POST", "/jobs", json, "{}");
        assert!(got.status == 404 && got.body.contains("route_not_found"), "{}", got.body);
    }
}
