//! Schedules before and after a start: rows are read, and places are computed again.

use super::store::Store;
use crate::rows::Kind;
use crate::state::Schedule;
use crate::{Command, Config, Machine};
use tenure_core::lease::Later;
use tenure_core::names::{JobId, Namespace, Owner, QueueName, ScheduleId};
use tenure_core::requests::{DeleteSchedule, PauseSchedule, PutSchedule, Request, RunScheduleNow};
use tenure_core::schedule::{CatchUp, Overlap, ScheduleSettings, ScheduledJob, TimingSpec};
use tenure_core::secret::Json;
use tenure_core::time::{Moment, Span};

const NOW: Moment = Moment::from_us(1_700_000_000_000_000);
/// Payload sizes that make a job long, or not.
const LONG: usize = 5_000;
const SHORT: usize = 3;

fn id(name: &str) -> ScheduleId {
    ScheduleId::parse(name).unwrap()
}

fn every(span: Span) -> TimingSpec {
    TimingSpec { every: Some(span), jitter: Span::from_s(7), ..TimingSpec::default() }
}

fn put(name: &str, timing: TimingSpec, payload: usize) -> Request {
    let mut job = ScheduledJob::new(QueueName::parse("q").unwrap());
    job.payload = Some(Json::from("x".repeat(payload).as_str()));
    let settings = ScheduleSettings {
        owner: Owner::parse(&name[..1]).ok(),
        timing,
        overlap: Overlap::Allow,
        catch_up: CatchUp::Last,
        catch_up_max: 1,
        job,
    };
    PutSchedule { schedule: id(name), settings: Box::new(settings), plan: None }.into()
}

struct Restarted {
    machine: Machine,
    store: Store,
}

impl Restarted {
    fn apply(&mut self, command: impl Into<Command>, now: Moment) {
        let done = self.machine.apply(&Namespace::main(), command.into(), now, &self.store);
        assert!(done.is_ok(), "{done:?}");
        self.store.write(self.machine.drain().rows);
    }

    /// The full state of each schedule, and the firing order.
    fn known(&self) -> Vec<String> {
        let space = &self.machine.spaces[&Namespace::main()];
        let all = space.schedules.behind(None, None).map(|slot| {
            let s: Schedule = space.schedules.read(slot).into_owned();
            // A plan is computed again, and is requested at once.
            format!("{:?}", Schedule { wanted_at: s.wanted_at.map(|_| NOW), ..s })
        });
        let fires = space.schedules.due(Moment::MAX).map(|slot| {
            let s = space.schedules.read(slot);
            format!("{:?} {}", s.place, s.id)
        });
        all.chain(fires).collect()
    }
}

impl From<Request> for Command {
    fn from(request: Request) -> Self {
        Command::Request(request)
    }
}

#[test]
fn schedules_are_after_a_start_as_they_were_before_it() {
    let (machine, store) = (Machine::new(Config::default()), Store::default());
    let mut world = Restarted { machine, store };
    let cron = TimingSpec { cron: Some("* * * * *".to_owned()), ..TimingSpec::default() };
    let over = TimingSpec { ends_at: Some(NOW.plus(Span::from_s(70))), ..every(Span::from_s(60)) };
    // More than one run of an order, and several at one time.
    for n in 0..600 {
        world.apply(put(&format!("interval-{n}"), every(Span::from_s(1 + n % 90)), SHORT), NOW);
    }
    for (name, timing, payload) in [
        ("long", every(Span::from_s(60)), LONG),
        ("shortened", every(Span::from_s(60)), LONG),
        ("gone", every(Span::from_s(60)), LONG),
        ("shell", every(Span::from_s(60)), LONG),
        ("over", over, SHORT),
        ("planned", cron, SHORT),
        ("paused", every(Span::from_s(60)), SHORT),
        ("paused until", every(Span::from_s(60)), SHORT),
    ] {
        world.apply(put(name, timing, payload), NOW);
    }
    for n in 0..40 {
        let now = NOW.plus(Span::from_s(3 * n));
        world.apply(Command::Fire, now);
    }
    let now = NOW.plus(Span::from_s(120));
    world.apply(put("shortened", every(Span::from_s(60)), SHORT), now);
    let job = JobId::parse("now").ok();
    let request: Request = RunScheduleNow { schedule: id("shell"), id: job }.into();
    world.apply(request, now);
    for name in ["gone", "shell"] {
        let request: Request = DeleteSchedule { schedule: id(name) }.into();
        world.apply(request, now);
    }
    for (name, until) in [("paused", None), ("paused until", Some(Later::For(Span::from_s(9))))] {
        let request: Request = PauseSchedule { schedule: id(name), until }.into();
        world.apply(request, now);
    }
    assert_eq!(world.store.count(Kind::ScheduledJob), 1, "a long job alone has a row of its own");

    let before = world.known();
    world.machine = world.store.open(Config::default(), now);
    let audit = world.machine.audit(now);
    assert!(audit.ok, "{:?}", audit.faults);
    assert_eq!(world.known(), before);
    assert!(world.machine.drain().rows.is_empty());
}
