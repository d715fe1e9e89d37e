//! Hand-made faults that the audit must find: those of schedules, which no random history has.

use super::{LiveScheduleId, Schedules};
use crate::histories::store::Store;
use crate::{Command, Config, Machine};
use tenure_core::names::{Namespace, Owner, QueueName, ScheduleId};
use tenure_core::requests::{PutSchedule, RunScheduleNow};
use tenure_core::schedule::{CatchUp, Overlap, ScheduleSettings, ScheduledJob, TimingSpec};
use tenure_core::time::{Moment, Span};

const NOW: Moment = Moment::from_us(1_700_000_000_000_000);

fn id(name: &str) -> ScheduleId {
    ScheduleId::parse(name).unwrap()
}

fn settings(timing: TimingSpec, overlap: Overlap) -> Box<ScheduleSettings> {
    Box::new(ScheduleSettings {
        owner: Owner::parse("o").ok(),
        timing,
        overlap,
        catch_up: CatchUp::Last,
        catch_up_max: 1,
        job: ScheduledJob::new(QueueName::parse("q").unwrap()),
    })
}

/// A machine with an interval whose job has not ended, an interval whose due occurrence waits for such a job, and a
/// cron expression that wants a plan.
fn machine() -> Machine {
    let (mut machine, store) = (Machine::new(Config::default()), Store::default());
    let ns = Namespace::main();
    let interval = || TimingSpec { every: Some(Span::from_s(60)), ..TimingSpec::default() };
    let cron = TimingSpec { cron: Some("* * * * *".to_owned()), ..TimingSpec::default() };
    for (name, timing, overlap) in [
        ("interval", interval(), Overlap::Allow),
        ("waits", interval(), Overlap::Queue),
        ("planned", cron, Overlap::Skip),
    ] {
        let settings = settings(timing, overlap);
        let put = PutSchedule { schedule: id(name), settings, plan: None };
        assert!(machine.apply(&ns, Command::Request(put.into()), NOW, &store).is_ok());
    }
    for name in ["interval", "waits"] {
        let job = tenure_core::names::JobId::parse(&format!("{name}-now")).ok();
        let run = RunScheduleNow { schedule: id(name), id: job };
        assert!(machine.apply(&ns, Command::Request(run.into()), NOW, &store).is_ok());
    }
    assert!(machine.apply(&ns, Command::Fire, later(), &store).is_ok());
    machine
}

fn later() -> Moment {
    NOW.plus(Span::from_s(100))
}

#[test]
fn the_audit_finds_nothing_in_sound_schedules() {
    let machine = machine();
    let all = &machine.spaces[&Namespace::main()].schedules;
    assert_eq!((all.firing.len(), all.planning.len(), all.waiting.len()), (1, 1, 1));
    let audit = machine.audit(later());
    assert!(audit.ok, "{:?}", audit.faults);
}

type Damage = fn(&mut Schedules, LiveScheduleId);

#[test]
fn the_audit_finds_each_fault_of_a_schedule() {
    let faults: &[(&str, Damage, &str)] = &[
        ("interval", |all, at| all.open(at).unfinished += 1, "3 unfinished jobs are cached, 2 are"),
        ("interval", |all, at| all.open(at).unfinished = 0, "0 unfinished jobs are cached, 2 are"),
        ("planned", |all, at| all.open(at).shell = true, "is deleted, and kept for no job"),
        (
            "interval",
            |all, at| drop(all.table.remove(at)),
            "a job is of a schedule that is not there",
        ),
        (
            "planned",
            |all, at| {
                let table = &all.table;
                all.by_id.remove(|there| table.id_of(there).cmp(table.id_of(at)));
            },
            "\"planned\" is not found by its id",
        ),
        (
            "planned",
            |all, at| drop(all.table.remove(at)),
            "schedules and their ids differ in number",
        ),
        ("planned", |all, at| all.open(at).owner = None, "schedules by their owners differ"),
        (
            "interval",
            |all, at| all.leave_orders(at),
            "\"interval\" has moments, and stands in no order",
        ),
        (
            "planned",
            |all, at| all.open(at).planned_all = true,
            "\"planned\" has no moment, and stands in an order",
        ),
        ("waits", |all, at| all.open(at).overlap = Overlap::Skip, "\"waits\" waits for no job"),
        ("interval", |all, at| all.open(at).cursor = NOW, "\"interval\" fires at "),
        (
            "planned",
            |all, at| {
                all.open(at).plan.push_back(tenure_core::schedule::PlannedMoment {
                    moment: NOW,
                    due: NOW,
                    passed: 0,
                });
            },
            "its plan is not ascending from its cursor",
        ),
        (
            "interval",
            |all, at| all.open(at).place = Some(later()),
            "the order in which schedules fire differs from the schedules, first in \"interval\"",
        ),
        ("interval", |all, _| all.firing.clear(), "the order in which schedules fire differs"),
        (
            "planned",
            |all, _| all.planning.clear(),
            "the order of schedules that want a plan differs",
        ),
        (
            "waits",
            |all, _| all.waiting.clear(),
            "the order of schedules that wait for a job differs",
        ),
    ];
    for (name, make, told) in faults {
        let mut machine = machine();
        let Some(space) = machine.spaces.get_mut(&Namespace::main()) else { panic!("a namespace") };
        let Some(at) = space.schedules.with_id(name) else { panic!("a schedule") };
        make(&mut space.schedules, at);
        let audit = machine.audit(later());
        let found = audit.faults.join("\n");
        assert!(!audit.ok && found.contains(told), "{told}: {found}");
    }
}
