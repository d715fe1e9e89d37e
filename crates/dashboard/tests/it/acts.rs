//! Tests of the buttons: each action, and the page after it.

use tenure_core::decode::{self, Decode};
use tenure_core::job::JobState;
use tenure_core::requests::{GetJob, GetLimit, GetQueue, PutLimit, PutPool};

use crate::served::Served;
use crate::shows::one_waits_for_the_other;

impl Served {
    fn state(&self, id: &str) -> JobState {
        self.ask(GetJob { job: decode::job_path(id).unwrap() }).state
    }
    fn paused(&self, queue: &str) -> bool {
        self.ask(GetQueue { queue: decode::queue_path(queue).unwrap() }).paused
    }
}

/// Follows an action to the page that says what was done.
#[track_caller]
fn says(served: &Served, path: &str, form: &str, sentence: &str) {
    let got = served.post(path, form);
    let page = served.get(got.leads_to()).page();
    assert!(page.contains(sentence), "{path}: {page}");
}

#[test]
fn a_queue_is_paused_set_resumed_and_deleted() {
    let served = Served::start();
    served.push(r#"{"id":"j","queue":"q"}"#);
    says(&served, "/queues/q/pause", "for=10m", "The queue is paused");
    assert!(served.paused("q"));
    says(&served, "/queues/q/resume", "", "The queue is resumed");
    assert!(!served.paused("q"));
    says(&served, "/queues/q/set", "max_waiting=5", "The settings are changed");
    let queue = served.ask(GetQueue { queue: decode::queue_path("q").unwrap() });
    assert_eq!(queue.settings.max_waiting, Some(5));
    says(&served, "/queues/q/hide-payload", "", "Lists do not show its payloads");
    says(&served, "/queues/q/show-payload", "", "Lists show one line of each payload");
    let queue = served.ask(GetQueue { queue: decode::queue_path("q").unwrap() });
    assert_eq!((queue.settings.max_waiting, queue.settings.show_payload), (Some(5), true));
    let no = served.post("/queues/q/set", "max_waiting=many");
    assert!(no.status == 422 && no.body.contains("max_waiting"), "{}", no.body);
    // The engine refuses, and the page says why.
    let no = served.post("/queues/q/delete", "");
    assert!(no.status == 409 && no.body.contains("The request was refused"), "{}", no.body);
    assert!(served.get("/queues/q/delete").page().contains("tenure queue delete q"));
    served.post("/jobs/j/delete", "");
    assert_eq!(served.post("/queues/q/delete", "").leads_to(), "/queues");
    assert_eq!(served.get("/queues/q").status, 404);
}

#[test]
fn a_job_is_run_now_cancelled_retried_and_deleted() {
    let served = Served::start();
    served.push(r#"{"id":"j","queue":"q","delay":"1h"}"#);
    says(&served, "/jobs/j/run-now", "", "The job is ready.");
    assert_eq!(served.state("j"), JobState::Ready);
    let page = served.get("/jobs/j/cancel").page();
    assert!(page.contains("tenure cancel j") && page.contains("method=\"post\""), "{page}");
    assert_eq!(served.state("j"), JobState::Ready, "a question changes nothing");
    says(&served, "/jobs/j/cancel", "", "The job is cancelled");
    assert_eq!(served.state("j"), JobState::Cancelled);
    says(&served, "/jobs/j/retry", "", "The job is ready again");
    assert_eq!(served.state("j"), JobState::Ready);
    says(&served, "/jobs/j/delete", "", "The job was deleted");
    assert_eq!(served.get("/jobs/j").status, 404);
}

#[test]
fn a_job_that_waits_is_edited_and_one_that_ran_is_pushed_again() {
    let served = Served::start();
    let (runs, waits) = one_waits_for_the_other(&served);
    let form = "payload=%7B%22n%22%3A+2%7D&priority=7&group=g&delay=";
    says(&served, &format!("/jobs/{waits}/edit"), form, "The job is changed");
    let job = served.ask(GetJob { job: decode::job_path(&waits).unwrap() });
    assert_eq!(job.payload.unwrap().text(), r#"{"n": 2}"#);
    assert_eq!((job.priority, job.group.unwrap().as_str()), (7, "g"));
    let no = served.post(&format!("/jobs/{waits}/edit"), "payload=%7B");
    assert!(no.status == 400 && no.body.contains("The request was refused"), "{}", no.body);
    // The payload cannot smuggle in fields of a push.
    let form = "payload=1%2C+%22priority%22%3A+9";
    assert!(served.post(&format!("/jobs/{runs}/again"), form).status >= 400);
    let got = served.post(&format!("/jobs/{runs}/again"), "payload=3&priority=0");
    let id = got.leads_to().split(['/', '?']).nth(2).unwrap().to_owned();
    assert_ne!(id, runs);
    let job = served.ask(GetJob { job: decode::job_path(&id).unwrap() });
    assert_eq!((job.queue.as_str(), job.payload.unwrap().text()), ("crawl", "3"));
    assert_eq!(job.needs.len(), 1);
}

#[test]
fn a_limit_is_set_in_place_paused_resumed_and_deleted() {
    let served = Served::start();
    let limit = || served.ask(GetLimit::of(&["site:a"], b"").unwrap());
    served.ask(PutLimit::of(&["site:a"], br#"{"concurrency":1}"#).unwrap());
    says(&served, "/limits/site:a/set", "concurrency=8", "The limit is changed");
    assert_eq!(limit().settings.concurrency, Some(8));
    let no = served.post("/limits/site:a/set", "concurrency=-1");
    assert!(no.status == 422 && no.body.contains("concurrency"), "{}", no.body);
    says(&served, "/limits/site:a/pause", "for=10m", "The limit is paused");
    assert!(limit().paused_until.is_some());
    says(&served, "/limits/site:a/resume", "", "The limit is resumed");
    assert!(limit().paused_until.is_none());
    says(&served, "/limits/site:a/delete", "", "The limit is deleted");
    assert_eq!(served.get("/limits/site:a").status, 404);
}

#[test]
fn a_resource_is_cooled_banned_and_restored() {
    let served = Served::start();
    served.ask(PutPool::of(&["p"], b"{}").unwrap());
    served.ask(decode::add_resources("p", br#"[{"id":"a/b","data":{"k":"hunter2"}}]"#).unwrap());
    let at = "/pools/p/resources/a%2Fb";
    assert!(served.get(&format!("{at}/ban")).page().contains("tenure pool ban p a/b"));
    says(&served, &format!("{at}/ban"), "reason=captcha", "is banned");
    let page = served.get("/pools/p").page();
    assert!(page.contains("captcha") && !page.contains("hunter2"), "{page}");
    says(&served, &format!("{at}/restore"), "", "is available again");
    says(&served, &format!("{at}/cool"), "for=10m", "rests");
    assert!(served.get("/pools/p").page().contains("cooling"));
    assert_eq!(served.post("/pools/p/delete", "").leads_to(), "/pools");
    assert_eq!(served.get("/pools/p").status, 404);
}

#[test]
fn a_schedule_is_run_now_paused_resumed_and_deleted() {
    let served = Served::start();
    let set = br#"{"cron":"0 6 * * *","job":{"queue":"news"}}"#;
    served.ask(decode::put_schedule("s", set).unwrap());
    let page = served.get("/schedules/s").page();
    assert!(page.contains("0 6 * * *") && page.matches("06:00:00 UTC").count() >= 5, "{page}");
    says(&served, "/schedules/s/run-now", "", "An extra job was pushed");
    assert!(served.get("/jobs?q=schedule:s").page().contains("href=\"/jobs/"));
    says(&served, "/schedules/s/pause", "", "The schedule is paused");
    assert!(served.get("/schedules").page().contains("state paused"));
    says(&served, "/schedules/s/resume", "", "The schedule is resumed");
    says(&served, "/schedules/s/delete", "", "The schedule is deleted");
    assert_eq!(served.get("/schedules/s").status, 404);
}

#[test]
fn a_flow_is_shown_and_cancelled() {
    let served = Served::start();
    served.push(
        r#"[{"id":"a","queue":"q","flow":"f"},{"id":"b","queue":"q","flow":"f","after":["a"]}]"#,
    );
    let page = served.get("/flows/f").page();
    assert!(page.contains("/jobs/a") && page.contains("/jobs/b"), "{page}");
    assert!(served.get("/flows").page().contains("/flows/f"));
    let page = served.get("/jobs/b").page();
    assert!(page.contains("Waits for") && page.contains("/jobs/a"), "{page}");
    assert!(served.get("/jobs/a").page().contains("Dependents"));
    says(&served, "/flows/f/cancel", "", "The flow is being cancelled");
    assert_eq!(served.state("a"), JobState::Cancelled);
}

#[test]
fn the_audit_says_what_it_found() {
    let served = Served::start();
    served.push(r#"{"queue":"q"}"#);
    assert!(served.get("/system").page().contains("embedded"));
    let page = served.post("/system/audit", "").page();
    assert!(page.contains("Nothing is wrong"), "{page}");
}

#[test]
fn a_lease_is_ended_by_force_after_a_question() {
    let served = Served::start();
    let (runs, waits) = one_waits_for_the_other(&served);
    let page = served.get("/leases").page();
    assert!(page.contains("worker-7") && page.contains(&runs), "{page}");
    assert!(!served.get("/leases?worker=nobody").page().contains("worker-7"));
    let job = served.ask(GetJob { job: decode::job_path(&runs).unwrap() });
    let path = format!("/leases/{}", job.lease.unwrap());
    assert!(served.get(&path).page().contains("two may then do the same work"));
    assert_eq!(served.state(&runs), JobState::Running, "a question changes nothing");
    says(&served, &path, "", "The lease has ended");
    assert_ne!(served.state(&runs), JobState::Running);
    assert_ne!(served.state(&waits), JobState::Cancelled);
}

#[test]
fn many_jobs_are_counted_first_and_then_changed() {
    let served = Served::start();
    let jobs: Vec<String> = (0..38).map(|n| format!(r#"{{"id":"j{n}","queue":"q"}}"#)).collect();
    served.push(&format!("[{}]", jobs.join(",")));
    served.push(r#"{"id":"other","queue":"r"}"#);
    let page = served.get("/bulk/cancel?q=queue:q").page();
    assert!(
        page.contains("Jobs that match now: 38.") && page.contains("tenure cancel --queue q"),
        "{page}"
    );
    assert!(served.get("/bulk/retry?q=queue:q").page().contains("No matching job"));
    says(&served, "/bulk/cancel", "q=queue:q", "Jobs cancelled, or asked to stop: 38.");
    assert_eq!(served.state("j0"), JobState::Cancelled);
    assert_eq!(served.state("other"), JobState::Ready);
    says(&served, "/bulk/retry", "q=queue:q+state:cancelled", "Jobs ready again: 38.");
    says(&served, "/bulk/delete", "q=queue:q", "Jobs deleted: 38.");
    assert_eq!(served.get("/jobs/j0").status, 404);
    // A search that names all jobs, or more than the visitor sees, changes none of them.
    for search in ["", "group:7", "queue:r+group:7"] {
        served.post("/bulk/delete", &format!("q={search}")).leads_to();
        assert_eq!(served.state("other"), JobState::Ready, "{search}");
    }
}

#[test]
fn checked_jobs_are_changed_after_a_confirmation() {
    let served = Served::start();
    for id in ["a", "b", "c"] {
        served.push(&format!(r#"{{"id":"{id}","queue":"q"}}"#));
    }
    let page = served.get("/jobs").page();
    assert_eq!(page.matches("type=\"checkbox\" name=\"job\"").count(), 3, "{page}");
    let asked = served.post("/chosen", "do=cancel&q=queue%3Aq&job=a&job=c").page();
    assert!(asked.contains("Jobs: a, c") && asked.contains("name=\"sure\""), "{asked}");
    let state = |id: &str| {
        let page = served.get(&format!("/jobs/{id}")).page();
        page.contains("state pill cancelled")
    };
    assert!(!state("a") && !state("c"), "a question changes nothing");
    let done = served.post("/chosen", "do=cancel&q=queue%3Aq&sure=1&job=a&job=c&job=gone");
    assert!(served.get(done.leads_to()).page().contains("Jobs cancelled, or asked to stop: 2."));
    assert_eq!(["a", "b", "c"].map(state), [true, false, true]);
}
