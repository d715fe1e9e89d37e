//! Histories made by hand: the checker itself must refuse the bad ones, and take the good ones.

use tenure_core::job::{JobState, Outcome};

use crate::linear::faults::{fences_that_do_not_rise, lease_of, verdict};
use crate::linear::history::{Answer, Call, Event, NEVER};
use crate::linear::job::Jobs;
use crate::linear::search::{Verdict, search_within, smallest};

const MS: u64 = 1_000;
const LOCK: &str = "lock:a";
const JOB: &str = "job";

/// Begin and end in ms; no answer is an open call.
pub fn event(object: &str, begin: u64, end: u64, call: Call, answer: Option<Answer>) -> Event {
    let end = if answer.is_some() { end * MS } else { NEVER };
    let (who, object) = ("p0.0".to_owned(), object.to_owned());
    Event { who, object, call, begin: begin * MS, end, answer, dropped: false }
}
pub fn lease(request: &str) -> Call {
    Call::Lease { request: request.to_owned(), wait_ms: 0 }
}
fn waiting(request: &str) -> Call {
    Call::Lease { request: request.to_owned(), wait_ms: 30 }
}
fn settle(fence: u64, outcome: Outcome) -> Call {
    Call::Settle { fence, outcome, wait_ms: 20, last: false }
}
fn extend(fence: u64) -> Call {
    Call::Extend { fence }
}
fn extended(cancel: bool) -> Option<Answer> {
    Some(Answer::Extended { cancel })
}
fn failed_for(wait_ms: u64) -> Call {
    Call::Settle { fence: 1, outcome: Outcome::Failed, wait_ms, last: false }
}
fn held(fence: u64) -> Option<Answer> {
    Some(Answer::Granted { fence, job: None })
}
fn runs(fence: u64, attempt: u32) -> Option<Answer> {
    Some(Answer::Granted { fence, job: Some((JOB.to_owned(), attempt)) })
}
fn settled(state: Option<JobState>) -> Option<Answer> {
    Some(Answer::Settled { state })
}
pub fn cancel() -> Call {
    Call::Cancel { id: JOB.to_owned() }
}
pub fn retry() -> Call {
    Call::Retry { id: JOB.to_owned() }
}
pub fn push(id: &str) -> Call {
    Call::Push { id: id.to_owned() }
}
pub fn get(id: &str) -> Call {
    Call::Get { id: id.to_owned() }
}
pub fn pushed(id: &str, duplicate: bool) -> Option<Answer> {
    Some(Answer::Pushed { id: id.to_owned(), duplicate })
}
pub fn shown(state: JobState, attempt: u32) -> Option<Answer> {
    Some(Answer::Shown { state, attempt })
}
fn dropped(event: Event) -> Event {
    Event { dropped: true, ..event }
}

/// A history by its name.
struct Sample(&'static str);

fn history(name: &'static str) -> Sample {
    Sample(name)
}

impl Sample {
    #[track_caller]
    fn is_taken(&self, events: &[Event]) {
        assert_eq!(verdict(events), Verdict::Linearizable, "{}", self.0);
    }

    #[track_caller]
    fn is_refused(&self, events: &[Event]) {
        assert_eq!(verdict(events), Verdict::Not, "{}", self.0);
    }
}

#[test]
fn good_histories_of_a_lock_are_taken() {
    let give_back = || settle(1, Outcome::Released);
    history("nothing").is_taken(&[]);
    history("one after the other").is_taken(&[
        event(LOCK, 0, 1, lease("a"), held(1)),
        event(LOCK, 2, 3, give_back(), settled(None)),
        event(LOCK, 4, 5, lease("b"), held(2)),
    ]);
    history("at once: the settle came to pass first, although it was answered last").is_taken(&[
        event(LOCK, 0, 1, lease("a"), held(1)),
        event(LOCK, 2, 9, give_back(), settled(None)),
        event(LOCK, 3, 4, lease("b"), held(2)),
    ]);
    history("a holder that was silent for its ttl, and learns it").is_taken(&[
        event(LOCK, 0, 1, lease("a"), held(1)),
        event(LOCK, 998, 1_010, lease("b"), held(2)),
        event(LOCK, 1_011, 1_012, give_back(), Some(Answer::Lost)),
    ]);
    history("a settle without an answer came to pass at some time").is_taken(&[
        event(LOCK, 0, 1, lease("a"), held(1)),
        event(LOCK, 2, 0, give_back(), None),
        event(LOCK, 50, 51, extend(1), extended(false)),
        event(LOCK, 60, 61, lease("b"), held(2)),
        event(LOCK, 70, 71, give_back(), settled(None)),
    ]);
    history("a lease without an answer holds, and its repeat is answered it").is_taken(&[
        event(LOCK, 0, 0, lease("a"), None),
        event(LOCK, 5, 6, lease("b"), Some(Answer::Nothing)),
        event(LOCK, 7, 8, lease("a"), held(1)),
    ]);
    history("a caller that was gone: its grant is undone at some time, and its request is new")
        .is_taken(&[
            dropped(event(LOCK, 0, 0, lease("a"), None)),
            event(LOCK, 5, 6, lease("b"), held(2)),
            event(LOCK, 7, 8, settle(2, Outcome::Released), settled(None)),
            event(LOCK, 9, 10, lease("a"), held(3)),
        ]);
    history("a call that waited is granted, but a repeat of its request is answered, late")
        .is_taken(&[
            event(LOCK, 0, 2_000, waiting("a"), Some(Answer::Nothing)),
            event(LOCK, 900, 901, lease("a"), held(1)),
            event(LOCK, 1_100, 1_101, lease("b"), held(2)),
        ]);
}

#[test]
fn bad_histories_of_a_lock_are_refused() {
    let give_back = || settle(1, Outcome::Released);
    history("two holders at once").is_refused(&[
        event(LOCK, 0, 1, lease("a"), held(1)),
        event(LOCK, 2, 3, lease("b"), held(2)),
    ]);
    history("two holders at once, asked for at once").is_refused(&[
        event(LOCK, 0, 9, lease("a"), held(1)),
        event(LOCK, 0, 9, lease("b"), held(2)),
    ]);
    history("taken back before its ttl was over").is_refused(&[
        event(LOCK, 0, 1, lease("a"), held(1)),
        event(LOCK, 900, 980, lease("b"), held(2)),
    ]);
    history("taken back within the ttl of an extend").is_refused(&[
        event(LOCK, 0, 1, lease("a"), held(1)),
        event(LOCK, 500, 501, extend(1), extended(false)),
        event(LOCK, 1_200, 1_300, lease("b"), held(2)),
    ]);
    history("a settle accepted after a later grant").is_refused(&[
        event(LOCK, 0, 1, lease("a"), held(1)),
        event(LOCK, 1_500, 1_501, lease("b"), held(2)),
        event(LOCK, 1_502, 1_503, give_back(), settled(None)),
    ]);
    history("an extend accepted after a later grant").is_refused(&[
        event(LOCK, 0, 1, lease("a"), held(1)),
        event(LOCK, 1_500, 1_501, lease("b"), held(2)),
        event(LOCK, 1_502, 1_503, extend(1), extended(false)),
    ]);
    history("a fence that goes back").is_refused(&[
        event(LOCK, 0, 1, lease("a"), held(2)),
        event(LOCK, 2, 3, settle(2, Outcome::Released), settled(None)),
        event(LOCK, 4, 5, lease("b"), held(1)),
    ]);
    history("a second grant to one request").is_refused(&[
        event(LOCK, 0, 1, lease("a"), held(1)),
        event(LOCK, 2, 3, give_back(), settled(None)),
        event(LOCK, 4, 5, lease("a"), held(2)),
    ]);
    history("a repeat that is not answered its lease, which lives").is_refused(&[
        event(LOCK, 0, 1, lease("a"), held(1)),
        event(LOCK, 2, 3, lease("a"), Some(Answer::Nothing)),
        event(LOCK, 4, 5, give_back(), settled(None)),
    ]);
    history("a settle is forgotten").is_refused(&[
        event(LOCK, 0, 1, lease("a"), held(1)),
        event(LOCK, 2, 3, give_back(), settled(None)),
        event(LOCK, 4, 5, give_back(), Some(Answer::Lost)),
    ]);
    history("what was unavailable came to pass all the same").is_refused(&[
        event(LOCK, 0, 1, lease("a"), held(1)),
        event(LOCK, 2, 3, give_back(), Some(Answer::Unavailable)),
        event(LOCK, 4, 5, lease("b"), held(2)),
    ]);
    history("a grant to a caller who was gone is undone after a repeat was answered it")
        .is_refused(&[
            dropped(event(LOCK, 0, 0, lease("a"), None)),
            event(LOCK, 5, 6, lease("a"), held(1)),
            event(LOCK, 7, 8, lease("b"), held(2)),
        ]);
    history("a call that did not wait got nothing, and its lease was taken back too soon")
        .is_refused(&[
            event(LOCK, 0, 2_000, lease("a"), Some(Answer::Nothing)),
            event(LOCK, 900, 901, lease("a"), held(1)),
            event(LOCK, 1_100, 1_101, lease("b"), held(2)),
        ]);
}

#[test]
fn good_histories_of_a_job_are_taken() {
    let failed = || settle(1, Outcome::Failed);
    history("pushed, run, done, and all of it again").is_taken(&[
        event(JOB, 0, 1, get(JOB), Some(Answer::NotFound)),
        event(JOB, 2, 3, push(JOB), pushed(JOB, false)),
        event(JOB, 4, 5, push(JOB), pushed(JOB, true)),
        event(JOB, 6, 7, lease("a"), runs(1, 1)),
        event(JOB, 8, 9, lease("b"), Some(Answer::Nothing)),
        event(JOB, 10, 11, settle(1, Outcome::Succeeded), settled(Some(JobState::Succeeded))),
        event(JOB, 12, 13, settle(1, Outcome::Succeeded), settled(Some(JobState::Succeeded))),
        event(JOB, 14, 15, failed(), Some(Answer::AlreadySettled)),
        event(JOB, 16, 17, get(JOB), shown(JobState::Succeeded, 1)),
    ]);
    history("failed, due again, and the second attempt").is_taken(&[
        event(JOB, 0, 1, push(JOB), pushed(JOB, false)),
        event(JOB, 2, 3, lease("a"), runs(1, 1)),
        event(JOB, 4, 5, failed(), settled(Some(JobState::Scheduled))),
        event(JOB, 6, 7, lease("b"), Some(Answer::Nothing)),
        event(JOB, 30, 31, lease("c"), runs(2, 2)),
    ]);
    history("cancelled while it ran, then retried").is_taken(&[
        event(JOB, 0, 1, push(JOB), pushed(JOB, false)),
        event(JOB, 2, 3, lease("a"), runs(1, 1)),
        event(JOB, 4, 5, cancel(), shown(JobState::Running, 1)),
        event(JOB, 6, 7, extend(1), extended(true)),
        event(JOB, 8, 9, failed(), settled(Some(JobState::Cancelled))),
        event(JOB, 10, 11, retry(), shown(JobState::Ready, 0)),
        event(JOB, 12, 13, lease("b"), runs(2, 1)),
    ]);
    history("one of a key at a time").is_taken(&[
        event("key", 0, 1, push("x"), pushed("x", false)),
        event("key", 2, 3, push("y"), pushed("x", true)),
        event("key", 4, 5, Call::Cancel { id: "x".to_owned() }, shown(JobState::Cancelled, 0)),
        event("key", 6, 7, push("y"), pushed("y", false)),
        event("key", 8, 9, Call::Retry { id: "x".to_owned() }, Some(Answer::Conflict)),
    ]);
    history("a cancel that would do nothing at first, and comes to pass later").is_taken(&[
        event(JOB, 0, 1, push(JOB), pushed(JOB, false)),
        event(JOB, 2, 3, cancel(), shown(JobState::Cancelled, 0)),
        event(JOB, 4, 20, cancel(), shown(JobState::Cancelled, 0)),
        event(JOB, 5, 6, retry(), shown(JobState::Ready, 0)),
        event(JOB, 21, 22, lease("a"), Some(Answer::Nothing)),
    ]);
    history("a push without an answer may come to pass late").is_taken(&[
        event(JOB, 0, 0, push(JOB), None),
        event(JOB, 1, 2, get(JOB), Some(Answer::NotFound)),
        event(JOB, 3, 4, get(JOB), shown(JobState::Ready, 0)),
        event(JOB, 5, 6, push(JOB), pushed(JOB, true)),
    ]);
    history("a call that waited and lost the store: its process gives its grant back at some time")
        .is_taken(&[
            event(JOB, 0, 1, push(JOB), pushed(JOB, false)),
            event(JOB, 2, 2, waiting("a"), None),
            event(JOB, 5, 6, lease("b"), Some(Answer::Nothing)),
            event(JOB, 7, 8, cancel(), shown(JobState::Cancelled, 0)),
        ]);
    history("a call that waited is granted, but a repeat of its request is answered").is_taken(&[
        event(JOB, 0, 40, waiting("a"), Some(Answer::Nothing)),
        event(JOB, 2, 3, push(JOB), pushed(JOB, false)),
        event(JOB, 4, 5, lease("b"), Some(Answer::Nothing)),
        event(JOB, 20, 21, lease("a"), runs(1, 1)),
        event(JOB, 22, 23, settle(1, Outcome::Succeeded), settled(Some(JobState::Succeeded))),
    ]);
}

#[test]
fn bad_histories_of_a_job_are_refused() {
    let there = || event(JOB, 0, 1, push(JOB), pushed(JOB, false));
    history("a push is lost after its answer")
        .is_refused(&[there(), event(JOB, 2, 3, get(JOB), Some(Answer::NotFound))]);
    history("a push is stored twice")
        .is_refused(&[there(), event(JOB, 2, 3, push(JOB), pushed(JOB, false))]);
    history("two runs at once").is_refused(&[
        there(),
        event(JOB, 2, 3, lease("a"), runs(1, 1)),
        event(JOB, 4, 5, lease("b"), runs(2, 1)),
    ]);
    history("a settle accepted after a later grant").is_refused(&[
        there(),
        event(JOB, 2, 3, lease("a"), runs(1, 1)),
        event(JOB, 1_500, 1_501, lease("b"), runs(2, 1)),
        event(JOB, 1_502, 1_503, settle(1, Outcome::Succeeded), settled(Some(JobState::Succeeded))),
    ]);
    history("a settle is lost after its answer").is_refused(&[
        there(),
        event(JOB, 2, 3, lease("a"), runs(1, 1)),
        event(JOB, 4, 5, settle(1, Outcome::Succeeded), settled(Some(JobState::Succeeded))),
        event(JOB, 1_500, 1_501, lease("b"), runs(2, 1)),
    ]);
    history("a repeated settle is answered otherwise").is_refused(&[
        there(),
        event(JOB, 2, 3, lease("a"), runs(1, 1)),
        event(JOB, 4, 5, settle(1, Outcome::Released), settled(Some(JobState::Ready))),
        event(JOB, 6, 7, lease("b"), runs(2, 1)),
        event(JOB, 8, 9, settle(1, Outcome::Released), settled(Some(JobState::Running))),
    ]);
    history("a job that is ready is not given to a worker that asks")
        .is_refused(&[there(), event(JOB, 2, 3, lease("a"), Some(Answer::Nothing))]);
    history("a job runs before it is due").is_refused(&[
        there(),
        event(JOB, 2, 3, lease("a"), runs(1, 1)),
        event(JOB, 4, 5, failed_for(400), settled(Some(JobState::Scheduled))),
        event(JOB, 6, 100, lease("b"), runs(2, 2)),
    ]);
    history("an attempt is not counted").is_refused(&[
        there(),
        event(JOB, 2, 3, lease("a"), runs(1, 1)),
        event(JOB, 4, 5, settle(1, Outcome::Failed), settled(Some(JobState::Scheduled))),
        event(JOB, 60, 61, lease("b"), runs(2, 1)),
    ]);
    history("two of one key").is_refused(&[
        event("key", 0, 1, push("x"), pushed("x", false)),
        event("key", 2, 3, push("y"), pushed("y", false)),
    ]);
    history("a call that did not wait gives nothing back").is_refused(&[
        event(JOB, 0, 1, push(JOB), pushed(JOB, false)),
        event(JOB, 2, 2, lease("a"), None),
        event(JOB, 5, 6, lease("b"), Some(Answer::Nothing)),
        event(JOB, 7, 8, cancel(), shown(JobState::Cancelled, 0)),
    ]);
    history("a call that waited got nothing, and no repeat of its request was told of a grant")
        .is_refused(&[
            event(JOB, 0, 40, waiting("a"), Some(Answer::Nothing)),
            event(JOB, 2, 3, push(JOB), pushed(JOB, false)),
            event(JOB, 4, 5, lease("b"), Some(Answer::Nothing)),
            event(JOB, 20, 21, lease("c"), runs(1, 1)),
        ]);
    history("a call that waited got nothing while its lease lived").is_refused(&[
        event(JOB, 0, 10, waiting("a"), Some(Answer::Nothing)),
        event(JOB, 2, 3, push(JOB), pushed(JOB, false)),
        event(JOB, 4, 5, lease("b"), Some(Answer::Nothing)),
        event(JOB, 20, 21, lease("a"), runs(1, 1)),
    ]);
}

#[test]
fn open_calls_that_make_no_difference_cost_no_search() {
    let mut events = vec![
        event(JOB, 0, 1, push(JOB), pushed(JOB, false)),
        event(JOB, 2, 3, lease("a"), runs(1, 1)),
    ];
    events.extend((0..20).map(|_| event(JOB, 4, 0, cancel(), None)));
    events.push(event(JOB, 50, 51, lease("b"), runs(2, 2)));
    assert_eq!(search_within(&Jobs::new(&events), &events, 1_000), Verdict::Not);
}

#[test]
fn fences_rise_over_all_objects() {
    let apart = |second| {
        [
            event("lock:a", 0, 1, lease("a"), held(5)),
            event("lock:b", 2, 3, lease("b"), held(second)),
        ]
    };
    assert_eq!(fences_that_do_not_rise(&apart(6)), None);
    assert!(fences_that_do_not_rise(&apart(4)).is_some());
    assert!(fences_that_do_not_rise(&apart(5)).is_some(), "one fence for two");
    let at_once =
        [event("lock:a", 0, 3, lease("a"), held(5)), event("lock:b", 2, 4, lease("b"), held(4))];
    assert_eq!(fences_that_do_not_rise(&at_once), None);
    // The answer to a repeat is the grant of the first call.
    let repeat = [
        event("lock:a", 0, 0, lease("a"), None),
        event("lock:b", 1, 2, lease("b"), held(5)),
        event("lock:a", 3, 4, lease("a"), held(4)),
    ];
    assert_eq!(fences_that_do_not_rise(&repeat), None);
}

#[test]
fn what_does_not_matter_is_left_out_of_what_is_printed() {
    let events = [
        event(LOCK, 0, 1, lease("a"), held(1)),
        event(LOCK, 2, 3, settle(1, Outcome::Released), settled(None)),
        event(LOCK, 4, 5, lease("b"), held(2)),
        event(LOCK, 6, 7, lease("x"), Some(Answer::Nothing)),
        event(LOCK, 6, 0, lease("y"), None),
        event(LOCK, 8, 9, lease("c"), held(3)),
        event(LOCK, 10, 11, settle(3, Outcome::Released), settled(None)),
    ];
    let is_not = |part: &[Event]| verdict(part) == Verdict::Not;
    let least = smallest(&events, lease_of(&events), is_not);
    let fences: Vec<_> = least.iter().map(|event| event.answer.clone()).collect();
    assert_eq!(fences, [held(2), held(3)]);
}
