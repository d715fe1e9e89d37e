//! A change of many jobs by rows that are older than the machine's state.

use super::store::Store;
use crate::{ChangeMany, Command, Config, Done, Machine, ManyDone, Seq};
use tenure_core::job::{JobState, NewJob};
use tenure_core::names::{JobId, JobRef, Namespace, QueueName};
use tenure_core::requests::{
    BulkChange, JobFilter, Patch, PatchJob, Push, PushAnswer, Request, RunJobNow,
};
use tenure_core::time::{Moment, Span};

const NOW: Moment = Moment::from_us(1_700_000_000_000_000);

struct Small {
    machine: Machine,
    store: Store,
}

impl Small {
    /// A machine with three jobs, `j0` the oldest, whose rows are written.
    fn new() -> Self {
        let mut small = Small { machine: Machine::new(Config::default()), store: Store::default() };
        let job = |n: usize| {
            let id = JobId::parse(&format!("j{n}")).ok();
            let when = tenure_core::job::When::In(Span::from_s(60));
            NewJob { id, when, ..NewJob::new(QueueName::parse("q").unwrap()) }
        };
        let push = Push { jobs: (0..3).map(job).collect(), answer: PushAnswer::Ids };
        small.request(push.into());
        small.write();
        small
    }

    fn request(&mut self, request: Request) {
        let done =
            self.machine.apply(&Namespace::main(), Command::Request(request), NOW, &self.store);
        assert!(done.is_ok(), "{done:?}");
    }

    fn write(&mut self) {
        let rows = self.machine.drain().rows;
        self.store.write(rows);
    }

    fn change(&mut self, filter: JobFilter, seen: Vec<crate::SeenJob>) -> ManyDone {
        let change = ChangeMany { change: BulkChange::Cancel, filter, seen };
        let command = Command::ChangeMany(change);
        match self.machine.apply(&Namespace::main(), command, NOW, &self.store) {
            Ok(Done::Many(done)) => done,
            other => panic!("{other:?}"),
        }
    }
}

fn the(id: &str) -> JobRef {
    JobRef::parse(id).unwrap()
}

#[test]
fn a_job_whose_content_is_another_by_now_stops_the_change() {
    let mut small = Small::new();
    let seen = small.store.seen(0, 3);
    let mut patch = PatchJob::new(the("j1"));
    patch.labels = Patch::Set([("a".to_owned(), "b".to_owned())].into());
    small.request(patch.into());
    let by_kind = || JobFilter { kind: Some(String::new()), ..JobFilter::default() };
    let done = small.change(by_kind(), seen.clone());
    assert_eq!(done, ManyDone { done: 1, stopped_at: Some(seen[1].seq), untold: None });
    assert_eq!(done.stopped_at.map(Seq::get), Some(2), "j1; j0 behind it is left alone too");
    small.write();
    // Its row is read again.
    let again = small.store.seen(1, 2);
    assert_eq!(again[0].edits, seen[1].edits + 1);
    assert_eq!(small.change(by_kind(), again).done, 2);
}

#[test]
fn what_does_not_match_by_now_is_passed_over() {
    let mut small = Small::new();
    let seen = small.store.seen(0, 3);
    small.request(RunJobNow { job: the("j1") }.into());
    let states = vec![JobState::Scheduled];
    let filter = || JobFilter { states: states.clone(), ..JobFilter::default() };
    let done = small.change(filter(), seen.clone());
    assert_eq!(done, ManyDone { done: 2, stopped_at: None, untold: None }, "j1 is ready by now");
    assert_eq!(small.change(filter(), seen).done, 0, "those are finished by now");
}
