//! An ended job that has not let all its parents go yet.

use super::store::Store;
use crate::{Command, Config, Machine};
use tenure_core::flow::{After, OnParentFailure, Parent};
use tenure_core::job::NewJob;
use tenure_core::names::{JobId, JobRef, Namespace, QueueName};
use tenure_core::requests::{CancelJob, Push, PushAnswer, Request};
use tenure_core::time::{Moment, Span};

const NOW: Moment = Moment::from_us(1_700_000_000_000_000);
/// Three portions of a test.
const PARENTS: usize = 6;

#[test]
fn a_job_that_lets_its_parents_go_in_portions_is_no_fault() {
    let (mut machine, store) = (Machine::new(Config::default()), Store::default());
    let named = |name: &str| NewJob {
        id: JobId::parse(name).ok(),
        ..NewJob::new(QueueName::parse("q").unwrap())
    };
    let parents: Vec<String> = (0..PARENTS).map(|n| format!("p{n}")).collect();
    let mut jobs: Vec<NewJob> = parents.iter().map(|parent| named(parent)).collect();
    let after = |name: &String| After {
        parent: Parent::Job(JobRef::parse(name).unwrap()),
        gone_is_done: false,
    };
    let (after, on_parent_failure) = (parents.iter().map(after).collect(), OnParentFailure::Run);
    jobs.push(NewJob { after, on_parent_failure, ..named("c") });
    let apply = |machine: &mut Machine, command| {
        let done = machine.apply(&Namespace::main(), command, NOW, &store);
        assert!(done.is_ok(), "{done:?}");
        let audit = machine.audit(NOW);
        assert!(audit.ok, "{:?}", audit.faults);
        machine.spaces[&Namespace::main()].dependencies.leaving().count()
    };
    let cancel = |name: &str| {
        Command::Request(Request::from(CancelJob { job: JobRef::parse(name).unwrap() }))
    };
    apply(&mut machine, Command::Request(Push { jobs, answer: PushAnswer::Ids }.into()));
    for parent in &parents {
        apply(&mut machine, cancel(parent));
    }
    let left = [
        apply(&mut machine, cancel("c")),
        apply(&mut machine, Command::Tick { leapt: Span::ZERO }),
        apply(&mut machine, Command::Tick { leapt: Span::ZERO }),
    ];
    assert_eq!(left, [1, 1, 0], "two parents a call");
}
