//! Removal of unused things, step by step: groups, queues, namespaces.

use super::store::Store;
use crate::TakerId;
use crate::rows::Kind;
use crate::{Command, Config, Done, LeaseOutcome, Machine};
use tenure_core::job::{NewJob, When};
use tenure_core::lease::{Ending, Fence, SettleItem};
use tenure_core::names::{Group, JobId, JobRef, LimitName, Namespace, QueueName, WorkerId};
use tenure_core::refusal::Code;
use tenure_core::requests::{
    CancelJob, DeleteLimit, DeleteQueue, GetQueue, GetStats, Lease, ListQueues, Page, Push,
    PushAnswer, PutLimit, Settle,
};
use tenure_core::settings::LimitSettings;
use tenure_core::time::{Moment, Span};

/// More than one step forgets, and more than one tick.
const GROUPS: usize = 1_000;

pub(super) struct World {
    pub(super) machine: Machine,
    pub(super) store: Store,
    pub(super) now: Moment,
}

impl World {
    pub(super) fn new() -> Self {
        let now = Moment::from_us(1_700_000_000_000_000);
        World { machine: Machine::new(Config::default()), store: Store::default(), now }
    }

    pub(super) fn apply(&mut self, command: Command) -> Done {
        let done = self.machine.apply(&Namespace::main(), command, self.now, &self.store);
        self.store.write(self.machine.drain().rows);
        done.expect("nothing is refused here")
    }

    fn ticks(&mut self) -> usize {
        for n in 0..10_000 {
            if self.machine.next_due().is_none_or(|due| due > self.now) {
                return n;
            }
            self.machine.tick(self.now, Span::ZERO, &self.store);
            self.store.write(self.machine.drain().rows);
        }
        panic!("something is due for ever");
    }

    fn push(&mut self, n: usize) {
        self.push_retained(n, Span::ZERO);
    }

    fn push_retained(&mut self, n: usize, retain: Span) {
        let mut job = NewJob::new(queue());
        job.id = Some(JobId::parse(&format!("j{n}")).unwrap());
        job.group = Some(Group::parse(&format!("g{n}")).unwrap());
        job.retain = Some(retain);
        let push = Push { jobs: vec![job], answer: PushAnswer::Ids };
        self.apply(Command::Request(push.into()));
    }

    fn run(&mut self, count: usize) {
        for n in 0..count {
            let ask =
                Command::Lease(Box::new(Lease::jobs(vec![queue()], 1)), TakerId::new(1 + n as u64));
            let done = self.apply(ask);
            let Done::Lease(LeaseOutcome::Now(granted)) = done else { panic!("{done:?}") };
            let lease = granted.grants[0].lease.lease.clone().unwrap();
            let ending = Ending::Succeeded { result: None };
            let item = SettleItem::new(lease, ending);
            self.apply(Command::Request(Settle::of(vec![item]).into()));
        }
    }

    /// Remembered groups, and their rows on the disk.
    fn groups(&self) -> (usize, usize) {
        let groups = self.machine.spaces.values().map(|space| space.lines.groups().count()).sum();
        (groups, self.store.count(Kind::Turn))
    }

    pub(super) fn reopen(&mut self) {
        self.machine = self.store.open(Config::default(), self.now);
    }
}

fn queue() -> QueueName {
    QueueName::parse("q").unwrap()
}

#[test]
fn groups_with_one_job_each_are_forgotten_when_nobody_waits() {
    let mut world = World::new();
    for n in 0..GROUPS {
        world.push(n);
    }
    world.run(GROUPS - 1);
    assert!(world.groups().0 >= GROUPS - 1, "one still waits: their turns count");
    world.run(1);
    let at_once = GROUPS - world.groups().0;
    assert!(at_once < 200, "one step forgot {at_once}");
    let ticks = world.ticks();
    assert_eq!(world.groups(), (0, 0), "after {ticks} ticks");
    assert!(ticks > 1, "one tick forgot them all");
}

#[test]
fn a_start_forgets_groups_that_only_a_crash_kept() {
    let mut world = World::new();
    for n in 0..GROUPS {
        world.push(n);
    }
    world.run(GROUPS);
    assert!(world.groups().1 > 0, "no tick came before the crash");
    world.reopen();
    world.ticks();
    assert_eq!(world.groups(), (0, 0));
}

#[test]
fn a_deleted_queue_does_not_come_back_with_its_groups() {
    let mut world = World::new();
    for n in 0..GROUPS {
        world.push(n);
    }
    world.run(GROUPS);
    world.now = world.now.plus(Span::from_s(1));
    // Finished jobs go with the first tick; this many groups do not.
    world.machine.tick(world.now, Span::ZERO, &world.store);
    world.store.write(world.machine.drain().rows);
    let before = world.groups();
    world.apply(Command::Request(DeleteQueue { queue: queue() }.into()));
    assert!(before.1 == 0 || world.groups().1 > 0, "one call forgot {}", before.1);
    world.reopen();
    assert_eq!(world.queues(), 0, "right after the start");
    world.ticks();
    assert_eq!((world.groups(), world.queues()), ((0, 0), 0));
}

impl World {
    /// Number of queues in a list.
    fn queues(&self) -> usize {
        let spaces = self.machine.spaces.values();
        spaces.flat_map(|space| space.lines.queues()).filter(|(_, q)| !q.hidden).count()
    }
}

// ---- Deleted queues that are still needed ----

impl World {
    fn delete_queue(&mut self) {
        self.apply(Command::Request(DeleteQueue { queue: queue() }.into()));
    }

    /// Numbers of limits and of queues with a name, including hidden ones.
    fn entries(&self) -> (usize, usize) {
        let spaces = || self.machine.spaces.values();
        let queues =
            spaces().flat_map(|space| space.lines.queues()).filter(|(_, q)| q.name.is_some());
        (queues.count(), spaces().map(|space| space.limits.iter().count()).sum())
    }
}

#[test]
fn a_deleted_queue_goes_with_its_last_finished_job() {
    let mut world = World::new();
    world.push_retained(0, Span::from_s(5));
    world.run(1);
    world.delete_queue();
    world.ticks();
    assert_eq!(world.entries(), (1, 1), "a finished job is of it");
    world.now = world.now.plus(Span::from_s(6));
    world.ticks();
    assert_eq!(world.entries(), (0, 0));
}

#[test]
fn a_deleted_queue_goes_with_the_last_call_that_waits_for_it() {
    let mut world = World::new();
    world.push(0);
    world.run(1);
    let ask = Lease { wait: Span::from_s(60), ..Lease::jobs(vec![queue()], 1) };
    world.apply(Command::Lease(Box::new(ask), TakerId::new(9)));
    world.delete_queue();
    world.ticks();
    assert_eq!(world.entries(), (1, 1), "a call waits for it");
    world.apply(Command::DropWait(TakerId::new(9)));
    world.ticks();
    assert_eq!(world.entries(), (0, 0));
}

// ---- Queues and namespaces after a single use ----

const DAY: u64 = 86_400;

#[test]
fn a_call_that_only_asks_makes_no_namespace() {
    let mut world = World::new();
    let page = Page { max: 10, cursor: None };
    world.apply(Command::Request(GetStats.into()));
    world.apply(Command::Request(ListQueues { page }.into()));
    let settle = Settle::of(Vec::new());
    world.apply(Command::Request(settle.into()));
    let get = Command::Request(GetQueue { queue: queue() }.into());
    let no = world.machine.apply(&Namespace::main(), get, world.now, &world.store);
    assert!(no.is_err());
    assert!(world.machine.spaces.is_empty(), "nothing was left in it");
    assert!(world.machine.resting.is_empty(), "nor is it at rest");
    assert!(world.machine.drain().rows.is_empty());
    assert_eq!(world.machine.next_due(), None);
}

#[test]
fn an_empty_namespace_ends_about_a_day_after_its_last_call() {
    let mut world = World::new();
    world.push(0);
    world.run(1);
    for _ in 0..30 {
        world.now = world.now.plus(Span::from_s(3_600));
        world.ticks();
    }
    let is_gone = |world: &World| world.machine.last_in(&Namespace::main()).is_none();
    assert!(is_gone(&world), "its queue went, and then it went itself");
    assert_eq!(world.store.rows(), 0, "and its rows with it");
    world.reopen();
    assert!(is_gone(&world));
    world.push(1);
    world.run(1);
}

impl World {
    fn put_limit(&mut self, name: &str) {
        let settings = LimitSettings { concurrency: Some(1), ..LimitSettings::default() };
        let put = PutLimit { limit: LimitName::parse(name).unwrap(), settings, gauge: None };
        self.apply(Command::Request(put.into()));
    }

    fn delete_limit(&mut self, name: &str) {
        let limit = LimitName::parse(name).unwrap();
        self.apply(Command::Request(DeleteLimit { limit }.into()));
    }
}

#[test]
fn a_namespace_at_rest_has_its_numbers_and_no_tables() {
    let mut world = World::new();
    let main = Namespace::main();
    world.push(0);
    world.run(1);
    world.delete_queue();
    world.put_limit("l");
    world.ticks();
    let fence = world.machine.spaces[&main].leases.last_fence();
    assert!(fence > Fence::default(), "a lease was granted");
    let before = world.machine.durable(world.now);
    world.delete_limit("l");
    // The record of the lease goes within the hour.
    for _ in 0..60 {
        world.now = world.now.plus(Span::from_s(60));
        world.ticks();
    }
    assert!(world.machine.spaces.is_empty() && world.machine.resting.len() == 1);
    assert_eq!(world.machine.durable(world.now).last(), before.last(), "its numbers");
    world.reopen();
    world.ticks();
    assert!(world.machine.spaces.is_empty(), "after a start too");
    world.push(1);
    world.run(1);
    assert!(world.machine.spaces[&main].leases.last_fence() > fence);
    assert!(world.machine.resting.is_empty());
}

#[test]
fn a_queue_that_is_left_keeps_no_tables() {
    let mut world = World::new();
    world.push(0);
    let tables = |world: &World| {
        let space = &world.machine.spaces[&Namespace::main()];
        space.jobs.capacity()
    };
    assert!(tables(&world) > 0);
    world.apply(Command::Request(CancelJob { job: JobRef::parse("j0").unwrap() }.into()));
    assert_eq!((tables(&world), world.queues()), (0, 1));
}

#[test]
fn a_namespace_at_rest_goes_with_a_clock_that_is_set_back() {
    let mut world = World::new();
    world.put_limit("l");
    world.delete_limit("l");
    assert_eq!(world.machine.resting.len(), 1);
    world.now = world.now.minus(Span::from_s(DAY));
    world.machine.tick(world.now, Span::ZERO, &world.store);
    world.store.write(world.machine.drain().rows);
    assert_eq!(world.machine.last_in(&Namespace::main()), Some(world.now));
}

#[test]
fn one_namespace_more_than_there_may_be_is_refused() {
    let mut world = World::new();
    world.machine.configure(Config { namespaces_max: 2, ..Config::default() });
    let put = |world: &mut World, name: &str| {
        let settings = LimitSettings { concurrency: Some(1), ..LimitSettings::default() };
        let put = PutLimit { limit: LimitName::parse("l").unwrap(), settings, gauge: None };
        let namespace = Namespace::parse(name).unwrap();
        let put = Command::Request(put.into());
        let done = world.machine.apply(&namespace, put, world.now, &world.store);
        world.store.write(world.machine.drain().rows);
        done.map_err(|no| no.code)
    };
    assert!(put(&mut world, "a").is_ok() && put(&mut world, Namespace::main().as_str()).is_ok());
    assert_eq!(put(&mut world, "b"), Err(Code::NamespacesFull));
    assert!(put(&mut world, "a").is_ok(), "those that are there go on");
    // A resting namespace counts: it has rows and events.
    world.delete_limit("l");
    assert_eq!(world.machine.resting.len(), 1);
    assert_eq!(put(&mut world, "b"), Err(Code::NamespacesFull));
    let rows = world.store.rows();
    assert_eq!(world.machine.spaces.len() + world.machine.resting.len(), 2);
    let ask = Command::Request(GetStats.into());
    let other = Namespace::parse("b").unwrap();
    assert!(
        world.machine.apply(&other, ask, world.now, &world.store).is_ok(),
        "a read is answered"
    );
    assert_eq!(world.store.rows(), rows, "and nothing was stored");
    world.now = world.now.plus(Span::from_s(DAY));
    world.ticks();
    assert!(put(&mut world, "b").is_ok(), "the one at rest has ended");
}

#[test]
fn a_start_does_not_forget_what_was_used_within_a_day() {
    let mut world = World::new();
    world.push(0);
    world.run(1);
    world.now = world.now.plus(Span::from_s(DAY / 2));
    world.ticks();
    world.reopen();
    world.ticks();
    assert_eq!(world.queues(), 1, "half a day ago");
    world.now = world.now.plus(Span::from_s(DAY));
    world.ticks();
    world.now = world.now.plus(Span::from_s(DAY));
    world.ticks();
    assert_eq!(world.queues(), 0);
}

#[test]
fn names_of_queues_that_were_used_once_leave_nothing_behind() {
    let mut world = World::new();
    let push = |world: &mut World, name: &str, delay: Span| {
        let mut job = NewJob::new(QueueName::parse(name).unwrap());
        job.retain = Some(Span::ZERO);
        job.id = JobId::parse(name).ok();
        job.when = When::In(delay);
        world.apply(Command::Request(Push { jobs: vec![job], answer: PushAnswer::Ids }.into()));
    };
    push(&mut world, "waits", Span::from_s(10 * 86_400));
    for n in 0..GROUPS as u64 {
        let name = format!("q{n}");
        push(&mut world, &name, Span::ZERO);
        let mut ask = Lease::jobs(vec![QueueName::parse(&name).unwrap()], 1);
        ask.worker.id = Some(WorkerId::parse("me").unwrap());
        let done = world.apply(Command::Lease(Box::new(ask), TakerId::new(1 + n)));
        let Done::Lease(LeaseOutcome::Now(granted)) = done else { panic!("{done:?}") };
        let lease = granted.grants[0].lease.lease.clone().unwrap();
        let item = SettleItem::new(lease, Ending::Succeeded { result: None });
        world.apply(Command::Request(Settle::of(vec![item]).into()));
        world.ticks();
    }
    assert!(world.store.count(Kind::Queue) > GROUPS);
    for _ in 0..26 {
        world.now = world.now.plus(Span::from_s(3_600));
        world.ticks();
    }
    let space = &world.machine.spaces[&Namespace::main()];
    let names: Vec<&str> = space.lines.queue_by_name().keys().map(QueueName::as_str).collect();
    assert_eq!(names, ["waits"]);
    // The queue of lock waiters has no name.
    assert_eq!((space.lines.queues().count(), space.limits.by_name().len()), (2, 1));
    assert!(space.workers.known().is_empty() && space.lines.next_check().is_some());
    let rows = [Kind::Queue, Kind::Turn, Kind::Limit].map(|kind| world.store.count(kind));
    assert_eq!(rows, [1, 0, 0]);
}
