//! Debounce and throttle, by unique keys; and the bound of a wait that each push extends.

use tenure_core::job::{JobState, NewJob, OnConflict, Unique, Until};
use tenure_core::requests::*;
use tenure_core::time::{Moment, Span};

use crate::bench::Bench;
use crate::words::*;

/// Each push moves the job, but at most to `within` after the first.
fn bounded(within: Option<Span>) -> Unique {
    Unique { until: Until::Start, within, ..unique("k", OnConflict::Replace) }
}

fn moved(id: &str, delay: Span, within: Option<Span>) -> NewJob {
    job("q").id(id).delay(delay).unique(bounded(within))
}

async fn run_at(b: &Bench, id: &str) -> Moment {
    b.job(id).await.run_at
}

pub(crate) async fn a_key_with_within_is_not_moved_beyond_it(b: &mut Bench) {
    let began = b.now();
    let push = |id: &str| moved(id, s(10), Some(s(25)));
    assert!(!b.push(push("a")).await.duplicate);
    for (at, expected) in [(8, 18), (16, 25), (24, 25)] {
        b.pass(began.plus(s(at)).since(b.now())).await;
        let pushed = b.push(push(&format!("b{at}")).payload(&at.to_string())).await;
        assert!(pushed.replaced, "at {at} s");
        assert_eq!(pushed.job.run_at, began.plus(s(expected)), "at {at} s");
    }
    b.none("q").await;
    b.pass(s(2)).await;
    let lease = b.take_job("q", "a").await;
    let job = lease.job.as_ref().expect("it has a job");
    assert_eq!(job.payload, Some(json("24")), "the last push has the say");
    // The next push begins another wait.
    let now = b.now();
    assert_eq!(b.push(push("next")).await.job.run_at, now.plus(s(10)));
    b.settle(succeeded(&lease)).await;
}

pub(crate) async fn a_moment_beyond_within_that_is_over_is_now(b: &mut Bench) {
    b.push(moved("a", s(600), None)).await;
    b.pass(s(30)).await;
    let now = b.now();
    let pushed = b.push(moved("b", s(600), Some(s(20)))).await;
    assert_eq!((pushed.job.run_at, pushed.job.state), (now, JobState::Ready));
    b.take_job("q", "a").await;
}

pub(crate) async fn the_push_that_replaces_says_its_own_bound(b: &mut Bench) {
    let began = b.now();
    b.push(moved("a", s(10), Some(s(20)))).await;
    // Without a bound it is moved beyond that of the first.
    let pushed = b.push(moved("b", s(60), None)).await;
    assert_eq!(pushed.job.run_at, began.plus(s(60)));
    assert_eq!(pushed.job.unique.expect("it has a key").within, None);
    let at = began.plus(s(90));
    let said = job("q").id("c").at(at).unique(bounded(Some(s(30))));
    assert_eq!(b.push(said).await.job.run_at, began.plus(s(30)), "a moment is bounded as a delay");
    let sooner = b.push(moved("d", s(5), Some(s(30)))).await;
    assert_eq!(sooner.job.run_at, began.plus(s(5)), "it may come sooner");
}

pub(crate) async fn a_first_push_keeps_a_delay_longer_than_within(b: &mut Bench) {
    let began = b.now();
    let first = b.push(moved("a", s(60), Some(s(20)))).await;
    assert_eq!(first.job.run_at, began.plus(s(60)));
    b.pass(s(5)).await;
    let second = b.push(moved("b", s(60), Some(s(20)))).await;
    assert_eq!(second.job.run_at, began.plus(s(20)));
}

pub(crate) async fn a_wait_that_begins_anew_is_bounded_anew(b: &mut Bench) {
    let held = |id: &str, delay: Span| {
        let unique = Unique { hold: Some(s(600)), ..bounded(Some(s(20))) };
        job("q").id(id).delay(delay).unique(unique)
    };
    b.push(held("a", s(0))).await;
    let lease = b.take_job("q", "a").await;
    b.settle(succeeded(&lease)).await;
    b.pass(s(100)).await;
    // The holder is finished: the push lets it live again, and is the first of its wait.
    let began = b.now();
    let pushed = b.push(held("b", s(10))).await;
    assert!(pushed.replaced && pushed.job.id.as_str() == "a");
    assert_eq!(pushed.job.run_at, began.plus(s(10)));
    b.pass(s(5)).await;
    if !b.reopen().await {
        assert_eq!(run_at(b, "a").await, began.plus(s(10)));
    }
    let pushed = b.push(held("c", s(10))).await;
    assert_eq!(pushed.job.run_at, began.plus(s(15)));
    b.pass(s(7)).await;
    let pushed = b.push(held("d", s(10))).await;
    assert_eq!(pushed.job.run_at, began.plus(s(20)), "counted from where this wait began");
}

pub(crate) async fn within_without_replace_is_shown_and_has_no_effect(b: &mut Bench) {
    let began = b.now();
    let within = Some(s(20));
    let keeps = Unique { on_conflict: OnConflict::Keep, ..bounded(within) };
    let pushed = b.push(job("q").id("a").delay(s(60)).unique(keeps.clone())).await;
    assert_eq!(pushed.job.unique, Some(keeps.clone()));
    assert_eq!(pushed.job.run_at, began.plus(s(60)));
    b.pass(s(30)).await;
    let second = b.push(job("q").id("b").delay(s(60)).unique(keeps.clone())).await;
    assert!(second.duplicate && !second.replaced);
    let shown = b.job("a").await;
    assert_eq!((shown.run_at, shown.unique), (began.plus(s(60)), Some(keeps)));
    let listed = b.ok(ListJobs::default()).await;
    assert_eq!(listed.items[0].unique.as_ref().and_then(|unique| unique.within), within);
}

pub(crate) async fn a_throttled_key_takes_one_push_in_its_window(b: &mut Bench) {
    let throttled = |id: &str| {
        let key = unique("k", OnConflict::Keep);
        job("q").id(id).unique(Unique { until: Until::Start, hold: Some(s(60)), ..key })
    };
    assert!(!b.push(throttled("a")).await.duplicate);
    let lease = b.take_job("q", "a").await;
    b.settle(succeeded(&lease)).await;
    for _ in 0..3 {
        b.pass(s(15)).await;
        assert!(b.push(throttled("b")).await.duplicate, "within the window");
    }
    b.none("q").await;
    b.pass(s(16)).await;
    assert!(!b.push(throttled("b")).await.duplicate, "the next window");
    b.take_job("q", "b").await;
}

pub(crate) async fn a_debounced_key_runs_once_after_the_last_push(b: &mut Bench) {
    for n in 0..4 {
        let pushed = b.push(moved(&format!("j{n}"), s(10), None).payload(&n.to_string())).await;
        assert_eq!(pushed.duplicate, n > 0);
        b.pass(s(6)).await;
        b.none("q").await;
    }
    b.pass(s(5)).await;
    let lease = b.take_job("q", "j0").await;
    assert_eq!(lease.job.as_ref().expect("a job").payload, Some(json("3")));
    b.none("q").await;
    // A push while it runs begins the next wait.
    b.push(moved("again", s(10), None)).await;
    b.settle(succeeded(&lease)).await;
    b.none("q").await;
    b.pass(s(11)).await;
    b.take_job("q", "again").await;
}
