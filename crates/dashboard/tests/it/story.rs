//! The story of a job, on its page, among many events of other jobs.

use crate::served::{Served, Store};

/// Pushes `many` other jobs, a thousand in a call.
fn push_others(served: &Served, many: usize) {
    let jobs = [r#"{"queue":"other"}"#; 1_000].join(",");
    for _ in 0..many / 1_000 {
        served.push(&format!("[{jobs}]"));
    }
}

/// A run of the job fails, and it may be tried again.
fn fails(served: &Served, error: &str) {
    let lease = served.lease("crawl", "worker-7").lease.unwrap();
    let settle = serde_json::json!({"settle": [
        {"lease": lease, "outcome": "failed", "error": error, "retry_in": "0s"},
    ]});
    served.settle(&settle.to_string());
}

/// The story on the page of a job, which has these steps in this order.
fn told(served: &Served, job: &str, steps: &[&str]) -> String {
    let page = served.get(&format!("/jobs/{job}")).page();
    let story = page.split("Event history").nth(1).unwrap();
    let places: Vec<_> = steps.iter().map(|step| story.find(step)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} {story}");
    story.to_owned()
}

#[test]
fn a_job_that_waited_for_long_has_its_whole_history() {
    let served = Served::start();
    push_others(&served, 12_000);
    let job = served.push(r#"{"queue":"crawl","retry":{"max_attempts":2}}"#);
    push_others(&served, 12_000);
    fails(&served, "the first error");
    push_others(&served, 12_000);
    fails(&served, "the last error");
    let steps = [
        "Pushed",
        "Attempt 1 granted to worker-7",
        "the first error",
        "Attempt 2 granted to worker-7",
        "Failed for good",
        "the last error",
    ];
    let story = told(&served, &job, &steps);
    assert!(!story.contains("Events are kept since"), "{story}");
}

#[test]
fn a_job_with_dropped_events_still_shows_all_its_errors() {
    let served = Served::over(Store::FewEvents, None, None);
    let job = served.push(r#"{"queue":"crawl","retry":{"max_attempts":2}}"#);
    fails(&served, "the first error");
    push_others(&served, 12_000);
    fails(&served, "the last error");
    let steps = [
        "Pushed",
        "Attempt 1 failed",
        "the first error",
        "Attempt 2 granted to worker-7",
        "Failed for good",
        "the last error",
        "Events are kept since",
    ];
    let story = told(&served, &job, &steps);
    assert_eq!(story.matches("the last error").count(), 1, "no step stands twice: {story}");
}
