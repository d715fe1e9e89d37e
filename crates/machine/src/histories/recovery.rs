//! A machine whose store may have lost answered grants: its reports about leases, and its behaviour until it has
//! recovered.

use super::forgetting::World;
use crate::mutant::{Mutant, ON};
use crate::{Command, Done, ExplainedAt, Known, LeaseOutcome, TakerId};
use tenure_core::events::{EventType, Happened};
use tenure_core::gauge::{Gauge, GaugeAddress, GaugeResult, GaugeSource, OnStale};
use tenure_core::job::{Need, NewJob};
use tenure_core::lease::{Ending, ExtendItem, Reason, SettleItem};
use tenure_core::names::{
    JobId, JobRef, LimitName, Namespace, PoolName, QueueName, RequestId, ResourceId,
};
use tenure_core::requests::{
    AddResources, ExplainJob, Extend, ForceLease, Lease, Push, PushAnswer, PutLimit, Settle,
};
use tenure_core::secret::Json;
use tenure_core::sentences::STORE_FORGOT;
use tenure_core::settings::{LimitSettings, NewResource, Rate};
use tenure_core::time::Span;

fn lock(name: &str) -> Need {
    Need::Limit { limit: LimitName::parse(&format!("lock:{name}")).unwrap(), weight: 1, cost: 1 }
}

impl World {
    /// The lease of a lock, if it is granted at once.
    fn lock(&mut self, name: &str, ttl: Span) -> Option<String> {
        let ask = Lease { ttl, ..Lease::needs(vec![lock(name)]) };
        let done = self.apply(Command::Lease(Box::new(ask), TakerId::new(1)));
        let Done::Lease(LeaseOutcome::Now(granted)) = done else { panic!("{done:?}") };
        granted.grants.into_iter().next().and_then(|grant| grant.lease.lease)
    }

    fn released(&mut self, lease: String) {
        let settle = Settle::of(vec![SettleItem::new(lease, Ending::Released)]);
        self.apply(Command::Request(settle.into()));
    }

    fn extend(&mut self, lease: &str, ttl: Option<Span>) {
        let leases = vec![ExtendItem { lease: lease.to_owned(), progress: None }];
        self.apply(Command::Request(Extend { leases, ttl }.into()));
    }
}

#[test]
fn the_largest_ttl_covers_each_lease_ever_granted_or_extended() {
    let mut world = World::new();
    assert_eq!(world.machine.largest_ttl(), Span::ZERO, "nothing was granted");
    let long = world.lock("a", Span::from_s(90)).unwrap();
    let short = world.lock("b", Span::from_s(5)).unwrap();
    assert_eq!(world.machine.largest_ttl(), Span::from_s(90));
    world.released(long);
    assert_eq!(world.machine.largest_ttl(), Span::from_s(90), "its lease is over");
    world.extend(&short, Some(Span::from_s(120)));
    assert_eq!(world.machine.largest_ttl(), Span::from_s(120), "a heartbeat raised it");
    world.reopen();
    assert_eq!(world.machine.largest_ttl(), Span::from_s(120), "after a start");
}

// ---- The machine during a recovery ----

/// Equal to the largest ttl that the store notes.
const SPAN: Span = Span::from_s(30);

fn limit(name: &str) -> Need {
    Need::Limit { limit: LimitName::parse(name).unwrap(), weight: 1, cost: 1 }
}

fn resource() -> Need {
    let pool = PoolName::parse("p").unwrap();
    Need::Pool { pool, tag: None, prefer: None, id: None, count: 1 }
}

fn queue(name: &str) -> QueueName {
    QueueName::parse(name).unwrap()
}

/// A machine over a store that has a pool and some limits, with its events.
struct Recovering {
    world: World,
    events: Vec<Happened>,
}

impl Recovering {
    fn new() -> Self {
        let mut world = World::new();
        let id = ResourceId::parse("r").unwrap();
        let resources = vec![NewResource { id, data: Json::null(), tags: Vec::new(), slots: 1 }];
        let pool = PoolName::parse("p").unwrap();
        world.apply(Command::Request(AddResources { pool, resources }.into()));
        let rate = Rate { count: 100, per: Span::from_s(1), burst: 100 };
        let rated = LimitSettings { rate: Some(rate), ..LimitSettings::default() };
        let capped = LimitSettings { concurrency: Some(5), ..LimitSettings::default() };
        for (name, settings) in [("rated", rated), ("capped", capped), ("queue:capped", capped)] {
            let limit = LimitName::parse(name).unwrap();
            world.apply(Command::Request(PutLimit { limit, settings, gauge: None }.into()));
        }
        Recovering { world, events: Vec::new() }
    }

    /// A machine that begins to recover.
    fn begun() -> Self {
        let mut here = Recovering::new();
        here.world.machine.recover_for(SPAN, here.world.now);
        here
    }

    fn push(&mut self, name: &str, needs: Vec<Need>) {
        let mut job = NewJob::new(queue(name));
        job.id = JobId::parse(name).ok();
        job.needs = Some(needs);
        let push = Push { jobs: vec![job], answer: PushAnswer::Ids };
        self.world.apply(Command::Request(push.into()));
    }

    /// True if a job of this queue is granted at once.
    fn takes(&mut self, name: &str) -> bool {
        let ask = Lease { ttl: Span::from_s(5), ..Lease::jobs(vec![queue(name)], 1) };
        match self.world.apply(Command::Lease(Box::new(ask), TakerId::new(1))) {
            Done::Lease(LeaseOutcome::Now(granted)) => !granted.grants.is_empty(),
            done => panic!("{done:?}"),
        }
    }

    fn why(&mut self, job: &str) -> Vec<Reason> {
        let job = JobRef::parse(job).unwrap();
        match self.world.apply(Command::Request(ExplainJob { job }.into())) {
            Done::Request(Known::ExplainJob(ExplainedAt(explained, _))) => explained.reasons,
            done => panic!("{done:?}"),
        }
    }

    fn ticks(&mut self, leapt: Span) {
        self.world.machine.tick(self.world.now, leapt, &self.world.store);
        let effects = self.world.machine.drain();
        self.world.store.write(effects.rows);
        self.events.extend(effects.events.into_iter().flat_map(|(_, events)| events));
    }

    /// Time passes, and the engine ticks whenever something is due.
    fn passes(&mut self, span: Span) {
        let end = self.world.now.plus(span);
        for _ in 0..1_000 {
            match self.world.machine.next_due() {
                Some(due) if due <= end => self.world.now = self.world.now.max(due),
                _ => {
                    self.world.now = end;
                    return;
                }
            }
            self.ticks(Span::ZERO);
        }
        panic!("something is due for ever");
    }

    fn recovers(&self) -> bool {
        self.world.machine.recovers_until().is_some()
    }

    fn happened(&self, kind: EventType) -> usize {
        self.events.iter().filter(|event| event.kind == kind).count()
    }
}

#[test]
fn only_exclusive_needs_wait_until_a_store_has_recovered() {
    for (name, needs, exclusive) in [
        ("lock", vec![lock("x")], true),
        ("limit", vec![limit("capped")], true),
        ("capped", vec![], true),
        ("pool", vec![resource()], true),
        ("both", vec![limit("rated"), lock("y")], true),
        ("nothing", vec![], false),
        ("rate", vec![limit("rated")], false),
    ] {
        let mut here = Recovering::begun();
        let until = here.world.now.plus(SPAN);
        here.push(name, needs);
        assert_eq!(here.takes(name), !exclusive, "{name}, at once");
        if exclusive {
            let reasons = here.why(name);
            let told = reasons.iter().find(|why| why.detail.contains("may have forgotten"));
            let told = told.unwrap_or_else(|| panic!("{name}: {reasons:?}"));
            assert_eq!((told.earliest, told.position), (Some(until), Some(1)), "{name}");
            here.passes(Span::from_us(SPAN.us() - 1));
            assert!(!here.takes(name), "{name}, a moment before the end");
            here.passes(Span::from_us(1));
            assert!(here.takes(name), "{name}, at the end");
        }
        assert!(here.recovers() != exclusive, "{name}");
    }
}

#[test]
fn a_lock_waiter_gets_its_lock_when_the_store_has_recovered() {
    let mut here = Recovering::begun();
    let ask = Lease { wait: Span::from_s(60), ..Lease::needs(vec![lock("x")]) };
    let taker = TakerId::new(7);
    let waits = here.world.apply(Command::Lease(Box::new(ask), taker));
    assert_eq!(waits, Done::Lease(LeaseOutcome::Waits));
    here.passes(Span::from_us(SPAN.us() - 1));
    here.world.now = here.world.now.plus(Span::from_us(1));
    here.world.machine.tick(here.world.now, Span::ZERO, &here.world.store);
    let deliveries = here.world.machine.drain().deliveries;
    assert_eq!(deliveries.len(), 1);
    assert_eq!((deliveries[0].1.taker, deliveries[0].1.granted.grants.len()), (taker, 1));
}

#[test]
fn no_lease_ends_by_time_before_a_store_has_recovered() {
    let mut here = Recovering::new();
    let silent = here.world.lock("silent", Span::from_s(5)).unwrap();
    let beats = here.world.lock("beats", Span::from_s(5)).unwrap();
    let mut job = NewJob::new(queue("timed"));
    (job.id, job.timeout) = (JobId::parse("timed").ok(), Some(Span::from_s(2)));
    let push = Push { jobs: vec![job], answer: PushAnswer::Ids };
    here.world.apply(Command::Request(push.into()));
    assert!(here.takes("timed"));
    here.world.machine.recover_for(SPAN, here.world.now);
    here.passes(Span::from_s(28));
    here.world.extend(&beats, None);
    here.passes(Span::from_us(2_000_000 - 1));
    assert_eq!(here.happened(EventType::LeaseEnded) + here.happened(EventType::JobLost), 0);
    assert_eq!(here.world.machine.spaces[&Namespace::main()].leases.len(), 3);
    here.passes(Span::from_us(1));
    assert!(!here.recovers());
    let left = &here.world.machine.spaces[&Namespace::main()].leases;
    assert_eq!(left.len(), 1, "who was silent for its whole ttl has lost its lease by now");
    assert!(here.world.lock("silent", Span::from_s(5)).is_some(), "{silent} is over");
    assert!(here.world.lock("beats", Span::from_s(5)).is_none());
}

#[test]
fn a_release_or_a_force_ends_a_lease_during_a_recovery() {
    let mut here = Recovering::new();
    let (given, forced) =
        (here.world.lock("a", SPAN).unwrap(), here.world.lock("b", SPAN).unwrap());
    here.world.machine.recover_for(SPAN, here.world.now);
    here.world.released(given);
    here.world.apply(Command::Request(ForceLease { lease: forced }.into()));
    assert!(here.world.machine.spaces[&Namespace::main()].leases.is_empty());
    assert!(
        here.world.lock("a", SPAN).is_none(),
        "somebody may hold it whom the store has forgotten"
    );
}

#[test]
fn a_recovery_may_be_ended_before_its_time() {
    let mut here = Recovering::begun();
    here.push("lock", vec![lock("x")]);
    assert!(!here.takes("lock"));
    here.world.machine.end_recovery();
    assert!(!here.recovers());
    here.ticks(Span::ZERO);
    assert!(here.takes("lock"));
}

#[test]
fn a_recovery_lasts_as_long_by_a_clock_that_does_not_leap() {
    let s = Span::from_s;
    // The clock is set after ten seconds; `left` is the length of the recovery from then.
    for (what, ahead, back, left) in [
        ("nothing", 0, 0, 20),
        ("a leap ahead", 100, 0, 20),
        ("a step back", 0, 7, 27),
        ("a far step back", 0, 3_600, 30),
    ] {
        let mut here = Recovering::begun();
        here.push("lock", vec![lock("x")]);
        assert!(!here.takes("lock"));
        here.passes(s(10));
        here.world.now = here.world.now.plus(s(ahead)).minus(s(back));
        here.ticks(s(ahead));
        here.passes(Span::from_us(s(left).us() - 1));
        assert!(here.recovers() && !here.takes("lock"), "{what}: it is over before its time");
        here.passes(Span::from_us(1));
        assert!(!here.recovers(), "{what}: it lasts too long");
        here.passes(s(1));
        assert!(here.takes("lock"), "{what}");
    }
}

#[test]
fn the_longer_of_two_recoveries_counts() {
    for (first, second) in [(30, 5), (5, 30)] {
        let mut here = Recovering::new();
        for span in [first, second] {
            here.world.machine.recover_for(Span::from_s(span), here.world.now);
        }
        here.ticks(Span::ZERO);
        let until = here.world.machine.recovers_until();
        assert_eq!(until, Some(here.world.now.plus(SPAN)), "{first} s, then {second} s");
        assert_eq!(here.happened(EventType::EngineLearning), 1, "it is told once");
    }
    let mut here = Recovering::new();
    here.world.machine.recover_for(Span::ZERO, here.world.now);
    assert!(!here.recovers(), "no lease was ever granted there");
}

#[test]
fn a_repeat_gets_no_exclusive_lease_while_a_store_recovers() {
    let mut here = Recovering::new();
    let grants = |here: &mut Recovering| {
        let request_id = RequestId::parse("once").ok();
        let ask = Lease { request_id, ttl: SPAN, ..Lease::needs(vec![lock("x")]) };
        match here.world.apply(Command::Lease(Box::new(ask), TakerId::new(1))) {
            Done::Lease(LeaseOutcome::Now(granted)) => granted.grants.len(),
            done => panic!("{done:?}"),
        }
    };
    assert_eq!((grants(&mut here), grants(&mut here)), (1, 1));
    here.world.machine.recover_for(SPAN, here.world.now);
    assert_eq!(grants(&mut here), 0, "somebody else may have got it since");
    here.world.machine.end_recovery();
    assert_eq!(grants(&mut here), 1);
}

#[test]
fn an_answer_replaces_the_time_for_which_it_was_asked() {
    let hour = Span::from_s(3_600);
    let mut here = Recovering::new();
    here.world.machine.doubt_for(hour, here.world.now);
    here.ticks(Span::ZERO);
    assert!(here.recovers() && !here.world.machine.is_lossy());
    assert_eq!(here.happened(EventType::EngineLearning), 0, "nothing may have been lost");
    here.world.machine.recover_for(SPAN, here.world.now);
    here.ticks(Span::ZERO);
    assert_eq!(here.world.machine.recovers_until(), Some(here.world.now.plus(SPAN)));
    assert_eq!(here.happened(EventType::EngineLearning), 1);
    here.world.machine.doubt_for(hour, here.world.now);
    here.world.machine.end_recovery();
    here.ticks(Span::ZERO);
    assert!(!here.recovers());
    assert_eq!(here.happened(EventType::EngineLearning), 1);
}

#[test]
fn each_namespace_even_a_forgotten_one_learns_of_a_recovery() {
    let mut here = Recovering::begun();
    here.ticks(Span::ZERO);
    let other = Namespace::parse("other").unwrap();
    let ask = Command::Lease(Box::new(Lease::needs(vec![lock("x")])), TakerId::new(1));
    let World { machine, store, now } = &mut here.world;
    let Ok(Done::Lease(LeaseOutcome::Now(none))) = machine.apply(&other, ask, *now, &*store) else {
        panic!("it does not wait")
    };
    assert!(none.grants.is_empty(), "nobody knows who holds it there");
    let put = LimitSettings { concurrency: Some(1), ..LimitSettings::default() };
    let limit = LimitName::parse("l").unwrap();
    let put = Command::Request(PutLimit { limit, settings: put, gauge: None }.into());
    machine.apply(&other, put, *now, &*store).unwrap();
    here.ticks(Span::ZERO);
    let told: Vec<_> =
        here.events.iter().filter(|event| event.kind == EventType::EngineLearning).collect();
    assert_eq!(told.len(), 2);
    for event in told {
        assert_eq!(event.about.why.as_deref(), Some(STORE_FORGOT));
        assert_eq!(event.about.until, Some(here.world.now.plus(SPAN)));
    }
}

#[test]
fn a_recovering_store_makes_no_reservations() {
    let mut here = Recovering::begun();
    here.push("lock", vec![limit("rated"), lock("x")]);
    here.push("pool", vec![limit("rated"), resource()]);
    for _ in 0..29 {
        assert!(!here.takes("lock") && !here.takes("pool"));
        here.passes(Span::from_s(1));
    }
    let space = &here.world.machine.spaces[&Namespace::main()];
    assert!(space.lines.reserving().count() == 0, "a lane reserves");
}

/// True if, after the recovery, a permit of a limit with a gauge is granted on a reading that was requested `after` the
/// loss.
fn goes_on_a_reading(after: Span) -> bool {
    let mut here = Recovering::new();
    let url = GaugeAddress::parse("http://host").unwrap();
    let gauge = Gauge {
        source: GaugeSource::Count { url, count: vec!["/n".to_owned()] },
        every: Span::from_s(1),
        lag: Span::from_s(40),
        stale: Span::from_s(600),
        on_stale: OnStale::Keep,
    };
    let settings = LimitSettings { concurrency: Some(5), ..LimitSettings::default() };
    let limit_name = LimitName::parse("outside").unwrap();
    let put = PutLimit { limit: limit_name, settings, gauge: Some(Box::new(gauge)) };
    here.world.apply(Command::Request(put.into()));
    here.world.machine.recover_for(SPAN, here.world.now);
    here.push("outside", vec![limit("outside")]);
    assert!(!here.takes("outside"), "it recovers");
    here.passes(after);
    let claim = Command::ClaimGauges { reader: "r".to_owned(), others: Vec::new() };
    let Done::Claimed(claims) = here.world.apply(claim) else { panic!("no claims") };
    let claim = claims.into_iter().next().expect("an attempt is due");
    let reading = claim.answered(GaugeResult::Sum(0));
    here.world.apply(Command::TakeReading(reading));
    here.passes(Span::from_us(SPAN.us().saturating_sub(after.us())));
    assert!(!here.recovers());
    here.takes("outside")
}

#[test]
fn a_gauge_counts_when_it_must_show_each_run_that_was_forgotten() {
    assert!(!goes_on_a_reading(Span::from_s(29)), "runs begin up to 40 s after their grant");
    assert!(goes_on_a_reading(Span::from_s(40)));
    ON.with(|on| on.set(Some(Mutant::ForgottenRunsAreShown)));
    let forgets = goes_on_a_reading(Span::from_s(29));
    ON.with(|on| on.set(None));
    assert!(forgets, "what this test sees");
}
