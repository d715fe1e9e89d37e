//! Progress reports of a holder: where and for how long they are shown, and to whom.

use tenure_core::job::{JobState, NewJob, OnConflict, ResultView};
use tenure_core::lease::{Ending, ExtendItem, LeaseView};
use tenure_core::progress::ProgressSeen;
use tenure_core::requests::*;
use tenure_core::secret::Json;

use crate::bench::Bench;
use crate::words::*;

impl Bench {
    /// The holder reports with a heartbeat.
    async fn reports(&self, lease: &LeaseView, text: &str) {
        let leases = vec![ExtendItem { lease: id_of(lease), progress: Some(json(text)) }];
        let answer = self.ok(Extend { leases, ttl: None }).await;
        assert_eq!(answer.extended.len(), 1, "the lease is held: {answer:?}");
    }
    /// Checks that the job has this progress, wherever it is shown.
    async fn shows(&self, id: &str, text: Option<&str>) {
        let expected = text.map(json).as_ref().map(value);
        let told = |progress: Option<&Json>| progress.map(value);
        assert_eq!(told(self.job(id).await.progress.as_ref()), expected, "of {id}");
        for full in [false, true] {
            let list = self.ok(ListJobs { full, ..ListJobs::default() }).await.items;
            let listed = list.iter().find(|one| one.id.as_str() == id).expect("it is listed");
            assert_eq!(told(listed.progress.as_ref()), expected, "of {id} in a list");
        }
    }
    /// The next run of the job, whose lease shows this progress.
    async fn next_run(&self, id: &str, text: &str) -> LeaseView {
        let lease = self.take_job("q", id).await;
        let progress = lease.job.as_ref().and_then(|job| job.progress.as_ref());
        assert_eq!(progress.map(value), Some(value(&json(text))), "in the lease of {id}");
        lease
    }
}

pub(crate) async fn a_report_is_an_event_at_most_once_a_second(b: &mut Bench) {
    b.push_all(["a", "b"].map(|id| job("q").id(id)).to_vec()).await;
    let leases = b.take_all("q", 2).await;
    let mark = b.mark().await;
    for (lease, text) in [(0, "1"), (0, "2"), (1, "3"), (0, "4"), (1, "null")] {
        b.reports(&leases[lease], text).await;
    }
    let first = ["job.progress a attempt 1", "job.progress b attempt 1"];
    assert_eq!(b.heard(mark).await, first);
    let event = &b.since(mark).await[0].happened;
    assert_eq!((event.at, event.about.queue.as_ref()), (b.now(), Some(&queue("q"))));
    assert_eq!(event.about.lease, leases[0].lease);
    // The last report is never left out: a reader finds it now.
    b.pass(s(1)).await;
    assert_eq!(b.heard(mark).await, [first[0], first[1], first[0]]);
    b.pass(s(3)).await;
    assert_eq!(b.heard(mark).await.len(), 3);
    let mark = b.mark().await;
    b.reports(&leases[1], "5").await;
    assert_eq!(b.heard(mark).await, [first[1]]);
    // An end is an event of its own; a report after it would add nothing new.
    b.reports(&leases[1], "6").await;
    b.settle(succeeded(&leases[1]).reporting("7")).await;
    b.pass(s(3)).await;
    assert_eq!(b.heard(mark).await, [first[1], "job.succeeded b attempt 1"]);
}

pub(crate) async fn a_wait_for_a_result_may_end_with_the_next_report(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    let asking = |seen| GetResult { job: job_ref("a"), wait: s(60), seen };
    let waits = async |seen| {
        let before = b.ok(GetStats).await.result_waiters as usize;
        let waiting = b.start(asking(Some(seen)));
        b.result_waiters(before + 1).await;
        waiting
    };
    let said = |view: &ResultView| view.progress.as_ref().map(|json| json.text().to_owned());
    let waiting = waits(ProgressSeen::Nothing).await;
    b.reports(&lease, "1").await;
    let view = waiting.answer().await;
    assert_eq!((view.state, said(&view).as_deref()), (JobState::Running, Some("1")));
    let one = ProgressSeen::Id(view.progress_id.expect("it was reported"));
    // A wait starts after the seen report, and a wait for the end alone is not woken by reports.
    let plain = b.start(asking(None));
    b.result_waiters(1).await;
    let waiting = waits(one).await;
    b.pass(s(3)).await;
    assert!(!waiting.is_answered());
    b.reports(&lease, "1").await;
    b.pass(s(3)).await;
    assert!(!waiting.is_answered(), "the same again is nothing new");
    b.reports(&lease, "2").await;
    // At the latest: a call that looks just now is not woken.
    b.pass(s(1)).await;
    assert_eq!(said(&*waiting.answer().await).as_deref(), Some("2"));
    assert!(!plain.is_answered());
    // A report between two calls is answered at once.
    let view = b.ok(asking(Some(one))).await;
    let two = ProgressSeen::Id(view.progress_id.expect("it was reported"));
    let view = b.ok(asking(Some(ProgressSeen::Nothing))).await;
    assert_eq!(said(&view).as_deref(), Some("2"));
    let waiting = waits(two).await;
    b.settle(succeeded(&lease)).await;
    for waiting in [waiting, plain] {
        let view = waiting.answer().await;
        assert_eq!((view.state, said(&view).as_deref()), (JobState::Succeeded, Some("2")));
    }
}

pub(crate) async fn progress_is_shown_in_lists_and_stays_until_the_next_report(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    b.shows("a", None).await;
    b.reports(&lease, r#"{"page": 3}"#).await;
    b.shows("a", Some(r#"{"page": 3}"#)).await;
    b.reports(&lease, "null").await;
    b.shows("a", Some(r#"{"page": 3}"#)).await;
    b.reports(&lease, "4").await;
    b.shows("a", Some("4")).await;
    b.settle(succeeded(&lease)).await;
    b.shows("a", Some("4")).await;
}

pub(crate) async fn any_outcome_may_report(b: &mut Bench) {
    b.push_all(["s", "f", "z", "r"].map(|id| job("q").id(id)).to_vec()).await;
    let leases = b.take_all("q", 4).await;
    let ends = [
        succeeded(&leases[0]).reporting(r#"["s"]"#),
        failed_for_good(&leases[1]).reporting(r#"["f"]"#),
        snoozed(&leases[2], s(5)).reporting(r#"["z"]"#),
        released(&leases[3]).reporting(r#"["r"]"#),
    ];
    let settled = b.ok(Settle::of(ends.to_vec())).await.settled;
    assert!(settled.iter().all(|one| one.ok), "{settled:?}");
    let states = settled.iter().map(|one| one.state);
    let expected =
        [JobState::Succeeded, JobState::Failed, JobState::Scheduled, JobState::Ready].map(Some);
    assert_eq!(states.collect::<Vec<_>>(), expected);
    for id in ["s", "f", "z", "r"] {
        b.shows(id, Some(&format!("[\"{id}\"]"))).await;
    }
}

pub(crate) async fn many_that_succeed_may_report_and_have_results(b: &mut Bench) {
    b.push_all(jobs("q", "j", 12)).await;
    let leases = b.take_all("q", 12).await;
    let item = |(n, lease): (usize, &LeaseView)| {
        let result = Some(json(&format!("{n}")));
        let item = ending(lease, Ending::Succeeded { result });
        if n % 3 == 0 { item.reporting(&format!("[{n}]")) } else { item }
    };
    b.ok(Settle::of(leases.iter().enumerate().map(item).collect())).await;
    for n in 0..12 {
        let view = b.is(&format!("j{n}"), JobState::Succeeded).await;
        assert_eq!(view.result.as_ref().map(Json::text), Some(format!("{n}").as_str()));
        let progress = (n % 3 == 0).then(|| format!("[{n}]"));
        b.shows(&format!("j{n}"), progress.as_deref()).await;
    }
}

pub(crate) async fn progress_stays_into_the_next_runs(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(3, 5, fixed(s(1))))).await;
    let lease = b.take("q").await;
    b.reports(&lease, "1").await;
    b.settle(failed(&lease)).await;
    b.pass(s(2)).await;
    let lease = b.next_run("a", "1").await;
    b.settle(snoozed(&lease, s(1)).reporting("2")).await;
    b.pass(s(2)).await;
    let lease = b.next_run("a", "2").await;
    b.settle(released(&lease)).await;
    let lease = b.granted(b.ask("q").ttl(s(5))).await;
    b.reports(&lease, "3").await;
    b.until_it_ends("a", s(20)).await;
    b.pass(s(3)).await;
    let lease = b.next_run("a", "3").await;
    b.settle(failed_for_good(&lease)).await;
    b.shows("a", Some("3")).await;
    b.ok(RetryJob { job: job_ref("a"), finished_at: None }).await;
    b.next_run("a", "3").await;
}

pub(crate) async fn replace_takes_progress_away(b: &mut Bench) {
    let held = || unique("k", OnConflict::Replace);
    b.push(job("q").id("a").unique(held())).await;
    let lease = b.take("q").await;
    b.settle(snoozed(&lease, s(5)).reporting("1")).await;
    b.shows("a", Some("1")).await;
    assert!(b.push(job("q").unique(held())).await.replaced);
    b.shows("a", None).await;
    let lease = b.take_job("q", "a").await;
    assert_eq!(lease.job.and_then(|job| job.progress), None);
}

pub(crate) async fn progress_of_a_lease_that_is_lost_changes_nothing(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    b.settle(released(&lease).reporting("1")).await;
    // A repeat is answered as the first was, and reports nothing new.
    b.settle(released(&lease).reporting("2")).await;
    b.shows("a", Some("1")).await;
    b.settle_any(succeeded(&lease).reporting("3")).await;
    let leases = vec![ExtendItem { lease: id_of(&lease), progress: Some(json("4")) }];
    assert_eq!(b.ok(Extend { leases, ttl: None }).await.lost.len(), 1);
    b.shows("a", Some("1")).await;
}

pub(crate) async fn progress_of_a_lease_without_a_job_means_nothing(b: &mut Bench) {
    let lock = b.hold([need("lock:x")]).await;
    b.reports(&lock, "1").await;
    b.settle(released(&lock).reporting("2")).await;
    b.in_use("lock:x", 0).await;
}

pub(crate) async fn progress_of_four_kibibytes_is_kept_whole(b: &mut Bench) {
    let text = format!("\"{}\"", "x".repeat(tenure_core::bounds::PROGRESS_BYTES_MAX - 2));
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    b.reports(&lease, &text).await;
    b.settle(released(&lease).reporting(&text)).await;
    b.next_run("a", &text).await;
}

pub(crate) async fn a_snooze_may_start_the_attempts_again(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(2, 3, fixed(s(1))))).await;
    let run = async |item: fn(&LeaseView) -> tenure_core::lease::SettleItem, attempt: u32| {
        let lease = b.take_job("q", "a").await;
        assert_eq!(lease.job.as_ref().map(|job| job.attempt), Some(attempt));
        let settled = b.settle(item(&lease)).await;
        b.pass(s(2)).await;
        settled
    };
    for _ in 0..3 {
        run(failed, 1).await;
        run(|lease| snoozed_anew(lease, s(1)), 2).await;
        let view = b.is("a", JobState::Ready).await;
        assert_eq!(view.attempt, 0, "from 0 again");
    }
    assert_eq!(b.job("a").await.errors.len(), 3, "errors are kept");
    run(failed, 1).await;
    run(|lease| snoozed(lease, s(1)), 2).await;
    assert_eq!(run(failed, 2).await.state, Some(JobState::Failed), "a plain snooze resets nothing");
}

pub(crate) async fn progress_of_a_job_that_is_gone_does_not_come_back(b: &mut Bench) {
    let again = || -> NewJob { job("q").id("a").retain(s(0)) };
    b.push(again()).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease).reporting("1")).await;
    b.pass(ms(10)).await;
    b.no_job("a").await;
    b.push(again()).await;
    b.shows("a", None).await;
    let lease = b.take("q").await;
    assert_eq!(lease.job.and_then(|job| job.progress), None);
}
