//! The byte budget of finished jobs when it shrinks: a fixed history, step by step.

use super::store::Store;
use crate::TakerId;
use crate::{Command, Config, Done, LeaseOutcome, Machine};
use tenure_core::job::{NewJob, Retry};
use tenure_core::lease::{Ending, SettleItem};
use tenure_core::names::{JobId, Namespace, QueueName};
use tenure_core::requests::{Lease, Push, PushAnswer, Settle};
use tenure_core::time::{Moment, Span};

/// Ends these numbers of jobs. Returns the disk's content and the bytes of failed and of other
/// jobs.
fn ended(failed: usize, succeeded: usize, now: Moment) -> (Store, [u64; 2]) {
    let (mut store, space) = (Store::default(), Namespace::main());
    let mut machine = Machine::new(Config::default());
    let queue = QueueName::parse("q").unwrap();
    for n in 0..failed + succeeded {
        let mut job = NewJob::new(queue.clone());
        job.id = Some(JobId::parse(&format!("j{n}")).unwrap());
        job.retry = Some(Retry { max_attempts: 1, ..Default::default() });
        job.retain = Some(Span::from_s(3_600));
        let push = Push { jobs: vec![job], answer: PushAnswer::Ids };
        machine.apply(&space, Command::Request(push.into()), now, &store).unwrap();
        let ask = Command::Lease(
            Box::new(Lease::jobs(vec![queue.clone()], 1)),
            TakerId::new(1 + n as u64),
        );
        let done = machine.apply(&space, ask, now, &store);
        let Ok(Done::Lease(LeaseOutcome::Now(granted))) = done else { panic!("{done:?}") };
        let ending = if n < failed {
            Ending::Failed { error: "no".to_owned(), retry_in: None, last: true }
        } else {
            Ending::Succeeded { result: None }
        };
        let lease = granted.grants[0].lease.lease.clone().unwrap();
        let item = SettleItem::new(lease, ending);
        let settle = Settle::of(vec![item]);
        machine.apply(&space, Command::Request(settle.into()), now, &store).unwrap();
        store.write(machine.drain().rows);
    }
    let kept = machine.kept;
    (store, kept)
}

#[test]
fn a_budget_that_shrank_leaves_failed_jobs_their_half() {
    let now = Moment::from_us(1_700_000_000_000_000);
    let (mut store, [failed, succeeded]) = ended(20, 40, now);
    let each = failed / 20;
    // Failed jobs are two over their half, and all together are far over the budget.
    let retain_bytes = 2 * (failed - 2 * each);
    assert!(failed + succeeded - retain_bytes > failed, "the overrun is more than all that failed");
    let mut machine = store.open(Config { retain_bytes, ..Config::default() }, now);
    for _ in 0..10 {
        machine.tick(now, tenure_core::time::Span::ZERO, &store);
        store.write(machine.drain().rows);
        assert!(machine.kept[0] + each > retain_bytes / 2, "{:?} of {retain_bytes}", machine.kept);
        if !machine.over_budget() {
            return;
        }
    }
    panic!("{:?} are kept, of {retain_bytes}", machine.kept);
}
