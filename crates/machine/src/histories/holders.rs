//! Random histories of holders that live through losses of their store, by clocks of their own that never leap: a
//! holder stops when 0.8 of its ttl have passed since it sent its last successful call.
//!
//! The faults are two holders of one lock or one resource, and a lease that is taken back from a holder that goes on.

use super::number;
use super::place::Chance;
use super::store::Store;
use crate::mutant::{Mutant, ON};
use crate::{Command, Config, Done, Effects, Known, LeaseOutcome, Machine, TakerId};
use tenure_core::events::EventType;
use tenure_core::job::{Need, NewJob, Outcome};
use tenure_core::lease::{Ending, ExtendItem, Fence, LeaseView, SettleItem};
use tenure_core::names::{JobId, LimitName, Namespace, PoolName, QueueName, ResourceId};
use tenure_core::requests::{
    Extend, Lease, Meant, Push, PushAnswer, Request, Settle, SyncResources,
};
use tenure_core::secret::Json;
use tenure_core::settings::NewResource;
use tenure_core::time::{Moment, Span};

const STEPS: usize = 400;

/// A lease, in its holder's view.
struct Held {
    lease: String,
    /// Its exclusive locks and resources.
    things: Vec<String>,
    ttl: Span,
    /// By the holder's own clock.
    until_us: u64,
}

struct Losing {
    chance: Chance,
    machine: Machine,
    store: Store,
    /// The state that the store returns to at a loss.
    older: Store,
    /// The time of the engine's clock.
    clock: Moment,
    /// Its leap since the last tick.
    leapt: Span,
    /// The time of all other clocks.
    now_us: u64,
    held: Vec<Held>,
    /// As a leader notes it with each append.
    largest_ttl: Span,
    /// The highest fence ever given.
    fence: Fence,
    jobs: u64,
    takers: u64,
}

impl Losing {
    fn new(seed: u64) -> Self {
        let mut losing = Losing {
            chance: Chance(seed),
            machine: Machine::new(Config::default()),
            store: Store::default(),
            older: Store::default(),
            clock: Moment::from_us(1_700_000_000_000_000),
            leapt: Span::ZERO,
            now_us: 0,
            held: Vec::new(),
            largest_ttl: Span::ZERO,
            fence: Fence::default(),
            jobs: 0,
            takers: 0,
        };
        losing.chance.below(2);
        losing
    }

    fn play(mut self) -> Result<(), String> {
        self.make_pool()?;
        for n in 0..STEPS {
            let what = self.chance.below(20);
            self.step(what).map_err(|why| format!("in step {n} ({what}): {why}"))?;
        }
        self.all_is_free_in_the_end()
    }

    fn step(&mut self, what: u64) -> Result<(), String> {
        let ms = [0, 10, 300, 1_000, 4_000][self.chance.below(5) as usize];
        // Microseconds, so that no two fences are alike, even after the clock was set back.
        let us = self.chance.below(ms * 1_000 + 1);
        self.pass(Span::from_us(us));
        if self.chance.below(12) == 0 {
            self.clock_is_set();
        }
        // An engine ticks before each call; but a clock may be set between the two.
        self.tick()?;
        if self.chance.below(12) == 0 {
            self.clock_is_set();
        }
        match what {
            0..=6 => self.ask(),
            7 | 8 => self.push(),
            9..=13 => self.beat(),
            14 | 15 => self.settle(),
            16 if self.chance.below(4) == 0 => self.forget(),
            17 if self.chance.below(4) == 0 => self.take_over(),
            18 => {
                self.older = self.store.clone();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    // ---- Time ----

    fn pass(&mut self, span: Span) {
        self.now_us += span.us();
        self.clock = self.clock.plus(span);
    }

    fn clock_is_set(&mut self) {
        let by = Span::from_ms(200 + self.chance.below(30_000));
        match self.chance.below(3) {
            0 => self.clock = self.clock.minus(by),
            _ => {
                self.clock = self.clock.plus(by);
                self.leapt = Span::from_us(self.leapt.us() + by.us());
            }
        }
    }

    fn tick(&mut self) -> Result<(), String> {
        let leapt = std::mem::take(&mut self.leapt);
        self.machine.tick(self.clock, leapt, &self.store);
        self.drain()
    }

    // ---- Calls ----

    fn apply(&mut self, command: Command) -> Result<Done, String> {
        let done = self.machine.apply(&Namespace::main(), command, self.clock, &self.store);
        self.drain()?;
        done.map_err(|no| no.to_string())
    }

    fn drain(&mut self) -> Result<(), String> {
        let Effects { rows, events, deliveries, .. } = self.machine.drain();
        self.store.write(rows);
        self.largest_ttl = self.largest_ttl.max(self.machine.largest_ttl());
        for event in events.into_iter().flat_map(|(_, events)| events) {
            let taken = matches!(event.kind, EventType::JobLost)
                || matches!(event.kind, EventType::LeaseEnded)
                    && event.about.outcome == Some(Outcome::Lost);
            let lease = event.about.lease.filter(|_| taken);
            if let Some(lease) = lease
                && let Some(held) = self.held.iter().find(|held| held.lease == lease)
                && held.until_us > self.now_us
            {
                return Err(format!("{lease} is taken from a holder who goes on"));
            }
        }
        for (_, delivery) in deliveries {
            self.granted(delivery.granted.grants.into_iter().map(|grant| grant.lease))?;
        }
        Ok(())
    }

    fn granted(&mut self, leases: impl Iterator<Item = LeaseView>) -> Result<(), String> {
        for view in leases {
            let locks = view.limits.iter().filter(|name| name.family() == "lock");
            let things: Vec<String> = locks
                .map(|name| name.to_string())
                .chain(view.resources.iter().map(|resource| resource.id.to_string()))
                .collect();
            self.fence = self.fence.max(view.fence);
            let ttl = view.expires_at.since(view.granted_at);
            for other in self.held.iter().filter(|other| other.until_us > self.now_us) {
                if let Some(thing) = things.iter().find(|thing| other.things.contains(thing)) {
                    let other = &other.lease;
                    return Err(format!("{thing} has two holders: {other} and {:?}", view.lease));
                }
            }
            let until_us = self.now_us + ttl.us() / 5 * 4;
            let Some(lease) = view.lease else { continue };
            self.held.push(Held { lease, things, ttl, until_us });
        }
        Ok(())
    }

    fn a_ttl(&mut self) -> Span {
        Span::from_s([1, 3, 9, 20][self.chance.below(4) as usize])
    }

    fn a_need(&mut self) -> Need {
        match self.chance.below(3) {
            0 => Need::Pool { pool: pool(), tag: None, prefer: None, id: None, count: 1 },
            n => {
                let limit = LimitName::parse(["lock:a", "lock:b"][n as usize - 1]).unwrap();
                Need::Limit { limit, weight: 1, cost: 1 }
            }
        }
    }

    fn ask(&mut self) -> Result<(), String> {
        let mut lease = match self.chance.below(2) {
            0 => Lease::jobs(vec![queue()], 1),
            _ => Lease::needs(vec![self.a_need()]),
        };
        lease.ttl = self.a_ttl();
        self.takers += 1;
        let asked = Command::Lease(Box::new(lease), TakerId::new(self.takers));
        match self.apply(asked)? {
            Done::Lease(LeaseOutcome::Now(granted)) => {
                self.granted(granted.grants.into_iter().map(|grant| grant.lease))
            }
            other => Err(format!("{other:?}")),
        }
    }

    fn push(&mut self) -> Result<(), String> {
        self.jobs += 1;
        let mut job = NewJob::new(queue());
        job.id = JobId::parse(&format!("j{}", self.jobs)).ok();
        job.needs = Some(match self.chance.below(3) {
            0 => Vec::new(),
            _ => vec![self.a_need()],
        });
        self.request(Push { jobs: vec![job], answer: PushAnswer::Ids })
    }

    fn request(&mut self, request: impl Into<Request>) -> Result<(), String> {
        self.apply(Command::Request(request.into())).map(drop)
    }

    /// A holder that goes on; the others make no calls.
    fn holder(&mut self) -> Option<usize> {
        let now_us = self.now_us;
        self.held.retain(|held| held.until_us > now_us);
        let held = self.held.len() as u64;
        (held > 0).then(|| self.chance.below(held) as usize)
    }

    fn beat(&mut self) -> Result<(), String> {
        let Some(at) = self.holder() else { return Ok(()) };
        // A holder with a changed ttl names it each time: the store may have forgotten the change.
        let ttl = match self.chance.below(3) {
            0 => self.a_ttl(),
            _ => self.held[at].ttl,
        };
        let leases = vec![ExtendItem { lease: self.held[at].lease.clone(), progress: None }];
        let extend = Command::Request(Extend { leases, ttl: Some(ttl) }.into());
        let Done::Request(Known::Extend(answer)) = self.apply(extend)? else {
            return Err("no answer to a heartbeat".to_owned());
        };
        if answer.extended.is_empty() {
            self.held.remove(at);
            return Ok(());
        }
        let held = &mut self.held[at];
        held.ttl = ttl;
        held.until_us = self.now_us + held.ttl.us() / 5 * 4;
        Ok(())
    }

    fn settle(&mut self) -> Result<(), String> {
        let Some(at) = self.holder() else { return Ok(()) };
        let Held { lease, .. } = self.held.remove(at);
        let item = SettleItem::new(lease, Ending::Succeeded { result: None });
        self.request(Settle::of(vec![item]))
    }

    fn make_pool(&mut self) -> Result<(), String> {
        let id = |name: &str| NewResource {
            id: ResourceId::parse(name).unwrap(),
            data: Json::null(),
            tags: Vec::new(),
            slots: 1,
        };
        let resources = ["r1", "r2"].into_iter().map(id).collect();
        self.request(SyncResources { pool: pool(), resources, meant: Meant::Yes, version: None })
    }

    // ---- Losses ----

    /// The leader dies, and the store returns to an earlier state, or to nothing.
    fn forget(&mut self) -> Result<(), String> {
        self.store = match self.chance.below(3) {
            0 => Store::default(),
            _ => self.older.clone(),
        };
        self.older = self.store.clone();
        // After a loss and a step back of the clock, repeated fences are admitted, and so are repeated lease ids.
        self.clock = self.clock.max(Moment::from_us(self.fence.next().get()));
        self.machine = self.store.open(Config::default(), self.clock);
        self.leapt = Span::ZERO;
        self.machine.recover_for(self.largest_ttl, self.clock);
        self.drain()?;
        self.make_pool()
    }

    /// The leader dies, and nothing is lost. An unfinished recovery starts again.
    fn take_over(&mut self) -> Result<(), String> {
        let recovers = self.machine.recovers_until().is_some();
        self.machine = self.store.open(Config::default(), self.clock);
        self.leapt = Span::ZERO;
        if recovers {
            self.machine.recover_for(self.largest_ttl, self.clock);
        }
        self.drain()
    }

    /// All holders are silent from now on: after the longest ttl everything is granted again.
    fn all_is_free_in_the_end(&mut self) -> Result<(), String> {
        for _ in 0..200 {
            self.pass(Span::from_ms(500));
            self.tick()?;
        }
        for need in ["lock:a", "lock:b"].map(|name| Need::Limit {
            limit: LimitName::parse(name).unwrap(),
            weight: 1,
            cost: 1,
        }) {
            self.takers += 1;
            let asked =
                Command::Lease(Box::new(Lease::needs(vec![need])), TakerId::new(self.takers));
            let done = self.apply(asked)?;
            let Done::Lease(LeaseOutcome::Now(granted)) = done else {
                return Err(format!("{done:?}"));
            };
            if granted.grants.is_empty() {
                return Err(format!("nobody gets it: {:?}", granted.answer.reasons));
            }
        }
        match self.machine.recovers_until() {
            None => Ok(()),
            Some(until) => Err(format!("it recovers until {until}, and it is {}", self.clock)),
        }
    }
}

fn pool() -> PoolName {
    PoolName::parse("p").unwrap()
}

fn queue() -> QueueName {
    QueueName::parse("q").unwrap()
}

fn run(histories: u64) -> Result<(), String> {
    (1..=histories).try_for_each(|seed| {
        Losing::new(seed).play().map_err(|why| format!("history {seed}: {why}"))
    })
}

#[test]
fn nothing_has_two_holders_whatever_a_store_forgets() {
    run(number("TENURE_HISTORIES").unwrap_or(300)).unwrap();
}

#[test]
fn each_rule_of_losses_and_takeovers_is_needed() {
    for (mutant, seen) in [
        (Mutant::RecoveryGrantsLimits, "has two holders"),
        (Mutant::RecoveryGrantsPools, "has two holders"),
        (Mutant::NewNamespaceIsWhole, "has two holders"),
        (Mutant::LeapShortensRecovery, "has two holders"),
        (Mutant::CallEndsRecovery, "has two holders"),
        (Mutant::RecoveryReaps, "is taken from a holder"),
        (Mutant::LeapIsNoEvent, "is taken from a holder"),
        (Mutant::TakeoverEndsLeases, "is taken from a holder"),
    ] {
        ON.with(|on| on.set(Some(mutant)));
        let found = run(2_000);
        ON.with(|on| on.set(None));
        let found = found.expect_err(&format!("no history finds {mutant:?}"));
        assert!(found.contains(seen), "{mutant:?}: {found}");
    }
}
