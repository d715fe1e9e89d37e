//! Pushes that replaced the content of a job: the time that they are remembered, and their state after a start.

use super::forgetting::World;
use crate::rows::Kind;
use crate::state::Space;
use crate::{Command, Done, Known, PushedOne};
use tenure_core::bounds::{REQUEST_US, TICK_MAX};
use tenure_core::job::{NewJob, OnConflict, Unique, Until};
use tenure_core::names::{JobId, Namespace, QueueName, UniqueKey};
use tenure_core::requests::{Push, PushAnswer};
use tenure_core::time::Span;

fn id(name: &str) -> JobId {
    JobId::parse(name).unwrap()
}

fn push(world: &mut World, name: &str) -> PushedOne {
    let mut job = NewJob::new(QueueName::parse("q").unwrap());
    job.id = Some(id(name));
    job.unique = Some(Unique {
        key: UniqueKey::parse("k").unwrap(),
        until: Until::Start,
        hold: None,
        on_conflict: OnConflict::Replace,
        within: None,
    });
    let push = Push { jobs: vec![job], answer: PushAnswer::Whole };
    match world.apply(Command::Request(push.into())) {
        Done::Request(Known::Push(mut pushed)) => pushed.pop().unwrap(),
        other => panic!("{other:?}"),
    }
}

fn space(world: &World) -> &Space {
    &world.machine.spaces[&Namespace::main()]
}

/// All remembered pushes.
fn remembered(world: &World) -> Vec<String> {
    let past = space(world).jobs.replacing.iter();
    let mut all: Vec<String> = past.map(|(by, past)| format!("{by} {past:?}")).collect();
    all.sort();
    all
}

/// A job whose content these pushes replaced in turn.
fn replaced(pushes: usize) -> World {
    let mut world = World::new();
    push(&mut world, "a");
    for n in 0..pushes {
        assert!(push(&mut world, &format!("b{n}")).replaced);
    }
    world
}

#[test]
fn a_start_knows_the_pushes_that_replaced_a_job() {
    let mut world = replaced(5);
    let before = remembered(&world);
    assert_eq!((before.len(), world.store.count(Kind::Replacing)), (5, 5));
    world.reopen();
    assert_eq!(remembered(&world), before);
    let again = push(&mut world, "b0");
    assert!(again.duplicate && !again.replaced);
    assert!(world.machine.audit(world.now).ok);
}

#[test]
fn a_tick_forgets_a_portion_of_the_pushes_that_replaced_a_job() {
    let mut world = replaced(2 * TICK_MAX + 1);
    world.now = world.now.plus(Span::from_us(REQUEST_US));
    for left in [TICK_MAX + 1, 1, 0] {
        assert!(world.machine.next_due().is_some_and(|due| due <= world.now));
        world.machine.tick(world.now, Span::ZERO, &world.store);
        world.store.write(world.machine.drain().rows);
        assert_eq!(
            (space(&world).jobs.replacing.len(), world.store.count(Kind::Replacing)),
            (left, left)
        );
    }
    assert!(push(&mut world, "b0").replaced);
}

#[test]
fn an_expired_push_is_not_recalled_even_before_a_tick() {
    let mut world = replaced(1);
    world.now = world.now.plus(Span::from_us(REQUEST_US - 1));
    assert!(!push(&mut world, "b0").replaced);
    world.now = world.now.plus(Span::from_us(1));
    assert!(push(&mut world, "b0").replaced);
    assert_eq!(space(&world).jobs.replacing.len(), 1);
    assert!(world.machine.audit(world.now).ok);
}

type Damage = fn(&mut Space);

fn rename(space: &mut Space, replaced: &str) {
    space.jobs.replacing.keep_if(&id("b0"), |past| {
        past.id = id(replaced);
        true
    });
}

#[test]
fn the_audit_finds_each_fault_of_a_push_that_replaced_a_job() {
    let faults: &[(Damage, &str)] = &[
        (|space| rename(space, "b0"), "as one that replaced its own job"),
        (|space| rename(space, "c"), "as one that replaced another job"),
    ];
    for (make, told) in faults {
        let mut world = replaced(1);
        assert!(world.machine.audit(world.now).ok);
        make(world.machine.spaces.get_mut(&Namespace::main()).unwrap());
        let audit = world.machine.audit(world.now);
        let found = audit.faults.join("\n");
        assert!(!audit.ok && found.contains(told), "{told}: {found}");
    }
}
