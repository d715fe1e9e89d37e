//! Needs of a queue that are filled in from the payload of each job.

use tenure_core::job::JobState;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::*;
use tenure_core::settings::QueueSettings;

use crate::bench::Bench;
use crate::calls::flows::briefly;
use crate::calls::schedules::*;
use crate::words::*;

const HOST: &str = "site:{payload.host}";

fn needing(limit: &str) -> QueueSettings {
    QueueSettings { needs: vec![need(limit)], ..QueueSettings::default() }
}

/// The queue `crawl`, with one permit for each host.
async fn one_of_each_host(b: &Bench) {
    b.set_limit("site:*", cap(1)).await;
    b.set_queue("crawl", needing(HOST)).await;
}

fn visit(host: &str) -> String {
    format!("{{\"host\":\"{host}\"}}")
}

fn lacks_the_host(no: &Refusal, pointer: &str) {
    // Over HTTP a push is an array.
    assert!(no.pointer.as_deref().is_some_and(|at| at.ends_with(pointer)), "{no:?}");
    assert!(no.detail.contains("\"host\"") && no.detail.contains("crawl"), "{}", no.detail);
}

pub(crate) async fn a_queues_need_takes_a_field_of_each_payload(b: &mut Bench) {
    one_of_each_host(b).await;
    b.push(job("crawl").id("a1").payload(&visit("a"))).await;
    b.push(job("crawl").id("a2").payload(&visit("a"))).await;
    b.push(job("crawl").id("b1").payload(&visit("b"))).await;
    assert_eq!(b.job("a1").await.needs, vec![need("site:a")]);
    b.take_job("crawl", "a1").await;
    b.take_job("crawl", "b1").await;
    b.none("crawl").await;
    b.is("a2", JobState::Blocked).await;
    // Its own needs are those that it names.
    b.push(job("crawl").id("own").needs([])).await;
    b.take_job("crawl", "own").await;
}

pub(crate) async fn a_payload_without_the_field_is_refused_by_name(b: &mut Bench) {
    one_of_each_host(b).await;
    lacks_the_host(&b.no_push(Code::InvalidField, job("crawl")).await, "/payload/host");
    let jobs = vec![job("crawl").payload(&visit("a")), job("crawl").payload("{\"host\":[]}")];
    let no = b.refused(Code::InvalidField, briefly(jobs)).await;
    assert_eq!(no.index, Some(1));
    let no = b.no_push(Code::InvalidField, job("crawl").payload(&visit("a/b"))).await;
    assert!(no.pointer.as_deref().is_some_and(|at| at.ends_with("/payload/host")), "{no:?}");
    // For a job that exists already, the fields are not required again.
    b.push(job("crawl").id("there").payload(&visit("a"))).await;
    assert!(b.push(job("crawl").id("there")).await.duplicate);
}

pub(crate) async fn a_template_must_name_a_field_of_the_payload(b: &mut Bench) {
    b.set_limit("site:*", cap(1)).await;
    for bad in ["site:{payload}", "site:{payload.}", "site:{payload.host"] {
        let put = PutQueue { queue: queue("crawl"), settings: needing(bad) };
        let no = b.refused(Code::InvalidField, put).await;
        assert_eq!(no.pointer.as_deref(), Some("/needs/0/limit"), "{bad}");
    }
    let put = PutQueue { queue: queue("crawl"), settings: needing("other:{payload.host}") };
    b.refused(Code::UnknownLimit, put).await;
}

pub(crate) async fn a_patched_job_gets_the_needs_of_its_new_payload(b: &mut Bench) {
    one_of_each_host(b).await;
    b.push(job("crawl").id("j").payload(&visit("a"))).await;
    let patch = || PatchJob::new(job_ref("j"));
    // Since the push, its needs are its own.
    b.ok(PatchJob { payload: Patch::Set(json(&visit("b"))), ..patch() }).await;
    assert_eq!(b.job("j").await.needs, vec![need("site:a")]);
    let no = b.refused(Code::InvalidField, PatchJob { needs: Patch::Reset, ..patch() }).await;
    assert_eq!(no.pointer.as_deref(), Some("/needs"));
    let anew = PatchJob { payload: Patch::Set(json(&visit("c"))), needs: Patch::Reset, ..patch() };
    b.ok(anew).await;
    assert_eq!(b.job("j").await.needs, vec![need("site:c")]);
    let lacking = PatchJob { payload: Patch::Reset, needs: Patch::Reset, ..patch() };
    lacks_the_host(&b.refused(Code::InvalidField, lacking).await, "/payload/host");
}

pub(crate) async fn a_schedules_jobs_have_the_needs_of_their_payload(b: &mut Bench) {
    one_of_each_host(b).await;
    let of = |payload| {
        every(s(60)).making(|job| {
            job.queue = queue("crawl");
            job.payload = payload;
        })
    };
    lacks_the_host(&b.no_put(Code::InvalidField, "news", of(None)).await, "/job/payload/host");
    let moment = b.put("news", of(Some(json(&visit("a"))))).await.next_at.expect("a moment");
    b.leap_to(moment).await;
    let id = job_at("news", moment);
    assert_eq!(b.job(&id).await.needs, vec![need("site:a")]);
    // Settings that are newer than the schedule need a field that its job does not send.
    b.cancel(&id).await;
    b.set_queue("crawl", needing("site:{payload.other}")).await;
    b.leap_to(moment.plus(s(60))).await;
    b.no_job(&job_at("news", moment.plus(s(60)))).await;
    assert_eq!(b.counted("news").await, (1, 1, 0), "fired, skipped, missed");
}
