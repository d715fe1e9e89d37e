//! Random steps in some of many namespaces: the agenda must agree with every namespace, and must not look at idle ones.

use std::collections::BTreeMap;

use super::place::Chance;
use super::store::Store;
use crate::state::Space;
use crate::time::agenda::Duty;
use crate::{Command, Config, Done, LeaseOutcome, Machine, TakerId};
use tenure_core::events::{EventType, Happened};
use tenure_core::gauge::{Gauge, GaugeAddress, GaugeSource, OnStale};
use tenure_core::job::{Need, NewJob, When};
use tenure_core::lease::{Ending, SettleItem};
use tenure_core::names::{JobId, LimitName, Namespace, QueueName, ScheduleId};
use tenure_core::requests::{Lease, Push, PushAnswer, PutLimit, PutSchedule, Settle};
use tenure_core::schedule::{CatchUp, Overlap, ScheduleSettings, ScheduledJob, TimingSpec};
use tenure_core::settings::LimitSettings;
use tenure_core::time::{Moment, Span};

const NOW: Moment = Moment::from_us(1_700_000_000_000_000);

fn namespace(n: u64) -> Namespace {
    Namespace::parse(&format!("n{n}")).unwrap()
}

fn queue() -> QueueName {
    QueueName::parse("q").unwrap()
}

fn limit() -> LimitName {
    LimitName::parse("l").unwrap()
}

struct Many {
    machine: Machine,
    store: Store,
    chance: Chance,
    now: Moment,
    names: u64,
    calls: u64,
    held: Vec<(Namespace, String)>,
}

impl Many {
    fn new(names: u64, seed: u64) -> Self {
        let machine = Machine::new(Config::default());
        let (store, chance) = (Store::default(), Chance(seed));
        Many { machine, store, chance, now: NOW, names, calls: 0, held: Vec::new() }
    }

    fn apply(&mut self, namespace: &Namespace, command: Command) -> Done {
        self.calls += 1;
        let done = self.machine.apply(namespace, command, self.now, &self.store);
        done.unwrap_or_else(|no| panic!("{no}"))
    }

    fn drain(&mut self) {
        self.store.write(self.machine.drain().rows);
    }

    fn push(&mut self, namespace: &Namespace) {
        let mut job = NewJob::new(queue());
        job.id = JobId::parse(&format!("j{}", self.calls)).ok();
        job.when = When::In(Span::from_ms(self.chance.below(3) * 700));
        let limits =
            self.machine.spaces.get(namespace).map_or(0, |space| space.limits.settings().len());
        if limits > 0 {
            job.needs = Some(vec![Need::Limit { limit: limit(), weight: 1, cost: 1 }]);
        }
        job.retain = Some(Span::from_s(self.chance.below(3)));
        let push = Push { jobs: vec![job], answer: PushAnswer::Ids };
        self.apply(namespace, Command::Request(push.into()));
    }

    fn lease(&mut self, namespace: &Namespace) {
        let mut ask = Lease::jobs(vec![queue()], 2);
        ask.ttl = Span::from_s(1 + self.chance.below(3));
        ask.wait = Span::from_s(self.chance.below(3));
        let taker = TakerId::new(1 + self.calls);
        if let Done::Lease(LeaseOutcome::Now(granted)) =
            self.apply(namespace, Command::Lease(Box::new(ask), taker))
        {
            let leases = granted.grants.into_iter().filter_map(|grant| grant.lease.lease);
            self.held.extend(leases.map(|lease| (namespace.clone(), lease)));
        }
    }

    fn settle(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let one = self.chance.below(self.held.len() as u64) as usize;
        let (namespace, lease) = self.held.swap_remove(one);
        let item = SettleItem::new(lease, Ending::Succeeded { result: None });
        self.apply(&namespace, Command::Request(Settle::of(vec![item]).into()));
    }

    fn schedule(&mut self, namespace: &Namespace) {
        let settings = Box::new(ScheduleSettings {
            owner: None,
            timing: TimingSpec { every: Some(Span::from_s(2)), ..TimingSpec::default() },
            overlap: Overlap::Allow,
            catch_up: CatchUp::Last,
            catch_up_max: 1,
            job: ScheduledJob::new(queue()),
        });
        let schedule = ScheduleId::parse("s").unwrap();
        let put = PutSchedule { schedule, settings, plan: None };
        self.apply(namespace, Command::Request(put.into()));
    }

    fn gauge(&mut self, namespace: &Namespace) {
        let url = GaugeAddress::parse("http://host").unwrap();
        let source = GaugeSource::Count { url, count: vec!["/n".to_owned()] };
        let every = Span::from_s(1 + self.chance.below(3));
        let (lag, stale, on_stale) = (Span::from_s(1), Span::from_s(8), OnStale::Hold);
        let put = PutLimit {
            limit: limit(),
            settings: LimitSettings { concurrency: Some(1), ..LimitSettings::default() },
            gauge: Some(Box::new(Gauge { source, every, lag, stale, on_stale })),
        };
        self.apply(namespace, Command::Request(put.into()));
    }

    fn claim(&mut self) {
        for namespace in self.machine.gauges_due(self.now) {
            let claim = Command::ClaimGauges { reader: "1".to_owned(), others: Vec::new() };
            self.apply(&namespace, claim);
        }
    }

    /// Time goes on, and rarely leaps or steps back.
    fn tick(&mut self) {
        let mut leapt = Span::ZERO;
        self.now = match self.chance.below(20) {
            0 => self.now.minus(Span::from_s(1 + self.chance.below(30))),
            1 => {
                leapt = Span::from_s(5);
                self.now.plus(leapt)
            }
            2 => self.now.plus(Span::from_s(90_000)),
            _ => self.now.plus(Span::from_ms(self.chance.below(1_500))),
        };
        self.machine.tick(self.now, leapt, &self.store);
    }

    fn step(&mut self) {
        let namespace = namespace(self.chance.below(self.names));
        match self.chance.below(16) {
            0..3 => self.push(&namespace),
            3..5 => self.lease(&namespace),
            5 => self.settle(),
            6 => self.schedule(&namespace),
            7 => self.gauge(&namespace),
            8 => self.claim(),
            9 => self.machine.fire(self.now, &self.store),
            10 => {
                self.held.clear();
                self.drain();
                self.machine = self.store.open(Config::default(), self.now);
            }
            11..13 => self.tick(),
            _ => self.drain(),
        }
    }

    /// Asks every namespace, including resting ones, which the machine must never do.
    fn asked(&self, duty: fn(&Space) -> Option<Moment>) -> BTreeMap<Namespace, Moment> {
        let awake = self.machine.spaces.values().map(|space| (space.name.clone(), duty(space)));
        let resting = self.machine.woken().map(|space| (space.name.clone(), duty(&space)));
        awake.chain(resting).filter_map(|(name, at)| Some((name, at?))).collect()
    }

    fn check(&self) {
        let soonest = |duty| self.asked(duty).into_values().min();
        assert_eq!(self.machine.next_due(), soonest(Space::next_due));
        assert_eq!(self.machine.next_fire(), soonest(Space::next_fire));
        assert_eq!(self.machine.next_gauge(), soonest(Space::next_gauge));
        for (duty, of) in [
            (Duty::Tick, Space::next_due as fn(&Space) -> Option<Moment>),
            (Duty::Fire, Space::next_fire),
            (Duty::Gauge, Space::next_gauge),
        ] {
            let asked = self.asked(of).into_iter();
            let all = asked.filter(|(_, at)| *at <= self.now).map(|(name, _)| name);
            let noted = self.machine.agenda.due(duty, self.now, &self.machine.spaces);
            assert_eq!(noted, all.collect(), "{duty:?}");
        }
        let ahead = self.machine.spaces.values().any(|s| crate::is_ahead(s.last, self.now))
            || self.machine.resting_ahead(self.now).next().is_some();
        let may_be = self.machine.agenda.may_be_ahead(self.now, &self.machine.spaces);
        assert!(may_be || !ahead, "a namespace is ahead of the clock, and nobody looks");
        let audit = self.machine.audit(self.now);
        assert!(audit.ok, "{:?}", audit.faults);
    }
}

#[test]
fn what_is_noted_of_namespaces_is_what_they_say() {
    for seed in 0..40 {
        let mut many = Many::new(5, seed);
        for _ in 0..300 {
            many.step();
            many.check();
        }
    }
}

#[test]
fn a_namespace_in_which_nothing_happens_is_not_looked_at() {
    let mut many = Many::new(1_000, 0);
    for n in 0..1_000 {
        many.push(&namespace(n));
    }
    many.drain();
    let stepped = |many: &Many| many.machine.agenda.stepped().count();
    assert_eq!(stepped(&many), 0);
    many.schedule(&namespace(8));
    assert_eq!(stepped(&many), 1, "the one that was called");
    many.drain();
    many.now = many.now.plus(Span::from_s(3));
    many.machine.fire(many.now, &many.store);
    assert_eq!(stepped(&many), 1, "the one whose schedule is due");
    many.drain();
    many.gauge(&namespace(7));
    let needs = Some(vec![Need::Limit { limit: limit(), weight: 1, cost: 1 }]);
    let id = JobId::parse("needing").ok();
    let job = NewJob { id, needs, ..NewJob::new(queue()) };
    let push = Push { jobs: vec![job], answer: PushAnswer::Ids };
    many.apply(&namespace(7), Command::Request(push.into()));
    many.lease(&namespace(7));
    many.drain();
    many.claim();
    assert_eq!(stepped(&many), 1, "the one whose gauge is due");
}

#[test]
fn the_audit_finds_a_moment_that_is_not_noted() {
    let mut many = Many::new(2, 0);
    many.push(&namespace(0));
    many.push(&namespace(1));
    many.drain();
    assert!(many.machine.audit(many.now).ok);
    // Only a step may change it, and this is not a step.
    let space = many.machine.spaces.get_mut(&namespace(1)).unwrap();
    space.purge_at = Some(Moment::from_us(1));
    let audit = many.machine.audit(many.now);
    assert!(!audit.ok && audit.faults[0].contains("namespace \"n1\": Tick is noted"), "{audit:?}");
}

#[test]
fn a_clock_that_stepped_back_is_told_where_nothing_is_due() {
    let mut many = Many::new(2, 0);
    for n in 0..2 {
        many.push(&namespace(n));
        many.lease(&namespace(n));
    }
    many.drain();
    many.now = many.now.minus(Span::from_s(3));
    many.machine.tick(many.now, Span::ZERO, &many.store);
    assert_eq!(many.machine.clock_behind(), Some(Span::from_s(3)));
    let told = many.machine.drain().events;
    let behind = |events: &[Happened]| events.iter().any(|e| e.kind == EventType::ClockBehind);
    assert_eq!(told.iter().filter(|(_, events)| behind(events)).count(), 2, "{told:?}");
}
