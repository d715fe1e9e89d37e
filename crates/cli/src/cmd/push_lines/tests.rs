//! Lines as jobs, and batches that are refused in part.

use super::*;
use tenure_core::names::{Namespace, PoolName};
use tenure_core::requests::{Reply, Request};
use tenure_core::sentences::NeedRefusal;
use tenure_testkit::fake::{Fake, Says};

/// Stores all but those of the queue `bad`, as an engine does: all of a push, or none.
fn picky() -> std::sync::Arc<Fake> {
    Fake::new(|request, _| {
        let Request::Push(push) = request else { panic!("only pushes") };
        let bad = push.jobs.iter().position(|job| job.queue.as_str() == "bad");
        Says::Now(match bad {
            Some(index) => {
                let pool = PoolName::parse("p").unwrap();
                let no = Refusal::from(NeedRefusal::PoolUnknown { pool });
                Err(no.item(index).into())
            }
            None => {
                let one = |job: &NewJob| PushedId {
                    id: job.id.clone().unwrap(),
                    duplicate: false,
                    replaced: false,
                    workers: None,
                };
                Ok(Reply::Push(Pushed::Ids(push.jobs.iter().map(one).collect())))
            }
        })
    })
}

async fn stored(bad: impl Fn(usize) -> bool, count: usize) -> (Vec<usize>, Vec<usize>, usize) {
    let engine = picky();
    let client = Client::new(engine.clone(), Namespace::main());
    let queue = |at| QueueName::parse(if bad(at) { "bad" } else { "good" }).unwrap();
    let jobs = (0..count).map(|at| {
        let id = Some(tenure::ids::job_id());
        (at, NewJob { id, ..NewJob::new(queue(at)) })
    });
    let mut told = Vec::new();
    store_all(&client, jobs.collect(), &mut told, &mut BTreeSet::new()).await.unwrap();
    told.sort_by_key(|(number, _)| *number);
    assert_eq!(told.len(), count, "every line is answered once");
    let (good, refused): (Vec<_>, Vec<_>) = told.into_iter().partition(|(_, a)| a.is_ok());
    let numbers = |some: Vec<Numbered<_>>| some.into_iter().map(|(number, _)| number).collect();
    (numbers(good), numbers(refused), engine.calls().len())
}

#[tokio::test]
async fn refused_lines_stop_no_other_and_cost_few_calls() {
    let (good, refused, calls) = stored(|_| false, 1_000).await;
    assert_eq!((good.len(), refused.len(), calls), (1_000, 0, 1));
    let (good, refused, calls) = stored(|at| at == 700, 1_000).await;
    assert_eq!((good.len(), refused, calls), (999, vec![700], 3));
    let (good, refused, calls) = stored(|at| at % 2 == 0, 1_000).await;
    assert_eq!((good.len(), refused.len()), (500, 500));
    assert!(calls <= 2_000, "{calls}");
    let (good, refused, calls) = stored(|_| true, 1_000).await;
    assert_eq!((good.len(), refused.len()), (0, 1_000));
    assert!(calls <= 1_000, "{calls}");
}

#[test]
fn lines_are_jobs_or_payloads() {
    let queue = |text| QueueName::parse(text).unwrap();
    let named = Lines::Jobs(Some(queue("q")));
    assert_eq!(job_of(&named, b"{\"payload\":1}").unwrap().queue, queue("q"));
    assert_eq!(job_of(&named, b"{\"queue\":\"x\"}").unwrap().queue, queue("x"));
    assert_eq!(job_of(&Lines::Jobs(None), b"{}").unwrap().queue, queue("default"));
    let template = NewJob { priority: 5, ..NewJob::new(queue("q")) };
    let payloads = Lines::Payloads(Box::new(template));
    let job = job_of(&payloads, b"{\"queue\":\"x\"}").unwrap();
    assert_eq!((job.queue, job.priority), (queue("q"), 5));
    assert_eq!(job.payload.text(), "{\"queue\":\"x\"}");
    for (each, line) in [(&named, "{"), (&named, "[]"), (&payloads, "x"), (&named, "{\"x\":1}")] {
        assert!(job_of(each, line.as_bytes()).is_err(), "{line}");
    }
}

#[test]
fn a_slow_pipe_is_not_kept_waiting_and_a_long_line_is_told() {
    let text = format!("{{}}\n\n{}\n{{\"a\":1}}", "x".repeat(600_000));
    let (send, mut batches) = mpsc::channel(100);
    let read = Box::new(std::io::Cursor::new(text.into_bytes()));
    Source(Input { name: "x".into(), read, bytes: None }).read(&send);
    drop(send);
    let mut seen = Vec::new();
    while let Some(batch) = batches.blocking_recv() {
        seen.extend(batch.unwrap().lines.into_iter().map(|(n, line)| (n, line.is_ok())));
    }
    assert_eq!(seen, [(1, true), (3, false), (4, true)]);
}

#[test]
fn lines_that_met_a_job_are_counted_in_one_sentence() {
    for (good, kept, replaced, said) in [
        (5, 0, 0, None),
        (1, 1, 0, Some("1 of 1 line names an existing job: nothing was pushed for it")),
        (5, 2, 0, Some("2 of 5 lines name existing jobs: nothing was pushed for them")),
        (
            5,
            0,
            1,
            Some("1 of 5 lines replaced the content of a waiting job: no second job was pushed"),
        ),
        (
            5,
            1,
            2,
            Some(
                "1 of 5 lines names an existing job: nothing was pushed for it; 2 of 5 lines \
                 replaced the content of waiting jobs: no second job was pushed",
            ),
        ),
    ] {
        assert_eq!(there_already(good, kept, replaced).as_deref(), said);
    }
}

#[test]
fn what_was_not_stored_is_told_for_one_and_for_many() {
    for (bad, good, text) in [
        (1, 0, "1 line was not stored, 0 were"),
        (1, 1, "1 line was not stored, 1 was"),
        (2, 5, "2 lines were not stored, 5 were"),
    ] {
        assert_eq!(not_all(bad, good), text);
    }
}
