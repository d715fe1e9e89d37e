//! A scrapyd in trouble, and workers that are killed: no job is lost, and no spider runs twice at once, by the scrapyd's own
//! count.

use std::collections::BTreeMap;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::over_http::ours::{Tenure, until};
use crate::over_http::scrapyd::{FakeScrapyd, Mood};
use crate::over_http::spiders::{at_work, is_discreet, job, worker, worker_with_ttl};

#[test]
fn a_worker_that_is_killed_leaves_its_spider_to_the_next_one() {
    let (tenure, scrapyd) = (Tenure::start(), FakeScrapyd::start());
    for (id, ends_alone) in [("a", false), ("b", true)] {
        let first = worker(&tenure, &scrapyd, &[]);
        tenure.push(&job(id));
        until("it runs", || scrapyd.runs(id));
        first.signal(Signal::SIGKILL);
        if ends_alone {
            scrapyd.look().finish(id, "finished");
        }
        let lists = scrapyd.calls("listjobs.json");
        let second = worker(&tenure, &scrapyd, &[]);
        if !ends_alone {
            until("it is followed", || scrapyd.calls("listjobs.json") > lists + 3);
            scrapyd.look().finish(id, "finished");
        }
        let done = tenure.once(id, "succeeded");
        assert_eq!((&done["attempt"], &done["errors"][0]["outcome"]), (&json!(1), &json!("lost")));
        assert_eq!(scrapyd.starts(id), 1);
        is_discreet(&tenure, &[&first, &second]);
    }
    assert_eq!(scrapyd.calls("cancel.json"), 0);
}

#[test]
fn a_spider_that_runs_already_under_the_id_is_followed() {
    let (tenure, scrapyd) = (Tenure::start(), FakeScrapyd::start());
    scrapyd.look().writes("a", "x [scrapy.core.engine] INFO: Spider closed (shutdown)\n");
    scrapyd.look().running.push("a".to_owned());
    let _worker = worker(&tenure, &scrapyd, &[]);
    tenure.push(&job("a"));
    until("it is followed", || tenure.job("a")["progress"]["scrapyd"]["stage"] == "running");
    scrapyd.look().finish("a", "finished");
    tenure.once("a", "succeeded");
    assert_eq!(scrapyd.starts("a"), 0);
}

#[test]
fn a_late_scrapyd_gets_the_spider_with_a_later_attempt() {
    let (tenure, scrapyd) = (Tenure::start(), FakeScrapyd::start());
    scrapyd.server.down();
    let worker = worker(&tenure, &scrapyd, &[]);
    let mut patient = job("a");
    patient["retry"]["max_attempts"] = json!(0);
    tenure.push(&patient);
    until("it failed once", || tenure.job("a")["errors"].as_array().is_some_and(|e| !e.is_empty()));
    let error = tenure.job("a")["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("the spider was not started: the log: could not connect"), "{error}");
    scrapyd.look().mood = Mood::Garbage;
    scrapyd.server.up();
    until("it says what answers", || {
        let job = tenure.job("a");
        job["error"]
            .as_str()
            .is_some_and(|error| error.contains("an answer that is not from scrapyd"))
    });
    scrapyd.look().mood = Mood::Well;
    until("it runs", || scrapyd.runs("a"));
    scrapyd.look().finish("a", "finished");
    tenure.once("a", "succeeded");
    assert_eq!(scrapyd.starts("a"), 1);
    is_discreet(&tenure, &[&worker]);
}

#[test]
fn a_scrapyd_is_asked_again_after_garbage_or_a_restart() {
    let (tenure, scrapyd, worker) = at_work();
    tenure.push(&job("a"));
    until("it runs", || scrapyd.runs("a"));
    scrapyd.look().mood = Mood::Garbage;
    until("it says so", || {
        worker.said().contains("calling scrapyd again: listjobs.json: http 200")
    });
    scrapyd.look().mood = Mood::Well;
    until("it is well again", || worker.said().contains("scrapyd answers again"));
    scrapyd.server.down();
    until("it is gone", || worker.said().matches("calling scrapyd again").count() == 2);
    // It has forgotten the run; the log says how it ended.
    scrapyd.look().finish("a", "finished");
    scrapyd.look().finished.clear();
    scrapyd.server.up();
    let done = tenure.once("a", "succeeded");
    assert_eq!((&done["attempt"], scrapyd.starts("a")), (&json!(1), 1));
    is_discreet(&tenure, &[&worker]);
}

#[test]
fn a_run_that_scrapyd_has_forgotten_and_that_left_no_log_fails() {
    let (tenure, scrapyd, _worker) = at_work();
    let mut once = job("a");
    once["retry"]["max_attempts"] = json!(1);
    tenure.push(&once);
    until("it runs", || scrapyd.runs("a"));
    {
        let mut inside = scrapyd.look();
        inside.running.clear();
        inside.logs.clear();
    }
    let error = tenure.once("a", "failed")["error"].clone();
    assert_eq!(error, "scrapyd no longer knows this job, and there is no log of it");

    once["id"] = json!("b");
    tenure.push(&once);
    until("it runs", || scrapyd.runs("b"));
    {
        let mut inside = scrapyd.look();
        inside.running.clear();
        inside.writes("b", "the last word\n");
    }
    let error = tenure.once("b", "failed")["error"].as_str().unwrap().to_owned();
    assert!(error.ends_with("its last line: the last word"), "{error}");
}

#[test]
fn an_answer_that_is_lost_starts_no_second_spider() {
    let (tenure, scrapyd, worker) = at_work();
    scrapyd.look().mood = Mood::Cuts;
    let mut patient = job("a");
    patient["retry"]["max_attempts"] = json!(0);
    tenure.push(&patient);
    until("it is asked", || scrapyd.calls("listjobs.json") > 1);
    // From now on its lists work, and only calls that schedule are cut off.
    let inside = scrapyd.inside.clone();
    inside.lock().unwrap().mood = Mood::CutsSchedules;
    until("it runs", || scrapyd.runs("a"));
    until("it is found", || tenure.job("a")["progress"]["scrapyd"]["stage"] == "running");
    scrapyd.look().finish("a", "finished");
    tenure.once("a", "succeeded");
    assert_eq!(scrapyd.starts("a"), 1);
    assert_eq!(scrapyd.look().twice, Vec::<String>::new());
    is_discreet(&tenure, &[&worker]);
}

#[test]
fn a_lost_lease_cancels_its_spider_and_the_next_run_restarts_it() {
    let (tenure, scrapyd) = (Tenure::start(), FakeScrapyd::start());
    let worker = worker_with_ttl(&tenure, &scrapyd, "5s", &[]);
    tenure.push(&job("a"));
    until("it runs", || scrapyd.runs("a"));
    // No heartbeat is answered any more.
    tenure.signal(Signal::SIGSTOP);
    until("it is cancelled in time", || scrapyd.calls("cancel.json") > 0);
    assert!(!scrapyd.runs("a"));
    until("it says why", || worker.said().contains("job 'a' was stopped: its lease was lost"));
    tenure.signal(Signal::SIGCONT);
    until("it runs again", || scrapyd.starts("a") == 2 && scrapyd.runs("a"));
    scrapyd.look().finish("a", "finished");
    assert_eq!(tenure.once("a", "succeeded")["attempt"], 1, "it did not fail by itself");
    assert_eq!(scrapyd.look().twice, Vec::<String>::new());
}

#[test]
fn a_failing_scrapyd_loses_no_job_and_runs_none_twice_at_once() {
    const JOBS: usize = 24;
    let (tenure, scrapyd) = (Tenure::start(), FakeScrapyd::start());
    for n in 0..JOBS {
        let mut patient = job(&format!("job-{n}"));
        patient["retry"] =
            json!({"max_attempts":0,"max_lost":0,"backoff":{"kind":"fixed","base":"100ms"}});
        tenure.push(&patient);
    }
    let mut killed = Some(worker(&tenure, &scrapyd, &[]));
    let lives = worker(&tenure, &scrapyd, &[]);
    let mut again = None;
    let (mut step, mut done) = (0_usize, BTreeMap::<String, usize>::new());
    until("all jobs have succeeded", || {
        step += 1;
        {
            let mut inside = scrapyd.look();
            inside.mood = match step % 200 {
                60..90 => Mood::Garbage,
                120..160 => Mood::CutsSchedules,
                _ => Mood::Well,
            };
            // Always the same, and never two equal ones in a row: each lives for a while, some fail.
            for (n, id) in inside.running.clone().into_iter().enumerate() {
                match (step + 7 * n) % 40 {
                    0 if step % 3 == 0 => inside.finish(&id, "closespider_errorcount"),
                    0 => {
                        inside.finish(&id, "finished");
                        *done.entry(id).or_default() += 1;
                    }
                    _ => {}
                }
            }
            if step == 180 {
                // It is restarted: its spiders are killed, and it has forgotten all.
                inside.running.clear();
                inside.finished.clear();
            }
        }
        if step == 100 {
            killed.take().unwrap().signal(Signal::SIGKILL);
        }
        if step == 150 {
            again = Some(worker(&tenure, &scrapyd, &[]));
        }
        step % 20 == 0 && tenure.count("succeeded") == JOBS as u64
    });
    assert!(step > 180, "the trouble came while there was work: {step}");
    assert_eq!(scrapyd.look().twice, Vec::<String>::new());
    assert_eq!(done.len(), JOBS, "each was done, by the scrapyd's own count");
    assert!(done.values().all(|times| *times == 1), "and no more than once: {done:?}");
    is_discreet(&tenure, &[&lives, again.as_ref().unwrap()]);
}
