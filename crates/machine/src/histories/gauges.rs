//! Random histories of a limit with a gauge, with the outside as witness: it knows each run, ours and others', from its
//! start to its end, independently of leases.
//!
//! Our runs start up to `lag` after their grant, end before or after their lease does, and go on when their holder
//! dies. The fault is a grant while our runs, and outside runs that the last reading could know, exceed the cap.

use super::number;
use super::place::Chance;
use super::store::Store;
use crate::mutant::{Mutant, ON};
use crate::state::{HeldNeed, Seq};
use crate::{Command, Config, Done, LeaseOutcome, Machine, TakerId};
use tenure_core::gauge::{Gauge, GaugeAddress, GaugeClaim, GaugeResult, GaugeSource, OnStale};
use tenure_core::job::{Need, NewJob, Retry};
use tenure_core::lease::{Ending, ExtendItem, SettleItem};
use tenure_core::names::{JobId, LimitName, Namespace, QueueName};
use tenure_core::requests::{Extend, GetLimit, Lease, Push, PushAnswer, PutLimit, Settle};
use tenure_core::settings::LimitSettings;
use tenure_core::time::{Moment, Span};

/// The length of one step of time.
const STEP: Span = Span::from_ms(100);
const TTL: Span = Span::from_s(2);

/// A run at the address of the gauge.
struct WitnessedRun {
    id: String,
    weight: u64,
    /// True for our run, which counts from its grant on.
    ours: bool,
    starts_at: Moment,
    ends_at: Moment,
}

/// A lease of one of our workers.
struct Held {
    lease: String,
    /// The time of the worker's settle; `None`: it died, and there is no settle.
    settles_at: Option<Moment>,
}

struct Outside {
    machine: Machine,
    store: Store,
    chance: Chance,
    now: Moment,
    gauge: Gauge,
    cap: u64,
    runs: Vec<WitnessedRun>,
    held: Vec<Held>,
    /// Claims, each with the time and content of its answer.
    asked: Vec<(Moment, GaugeClaim, GaugeResult)>,
    /// The time at which the last good, stored reading was requested.
    read_at: Moment,
    /// The time of the last failed attempt.
    failed_at: Option<Moment>,
    jobs: u64,
    /// Ends outside runs and deaths of workers.
    calm: bool,
}

fn limit() -> LimitName {
    LimitName::parse("l").unwrap()
}

fn queue() -> QueueName {
    QueueName::parse("q").unwrap()
}

impl Outside {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed);
        chance.below(2);
        let ms = |ms| Span::from_ms(ms);
        let every = ms([500, 1_000, 2_000][chance.below(3) as usize]);
        let url = GaugeAddress::parse("http://host").unwrap();
        let source = match chance.below(2) {
            0 => GaugeSource::Count { url, count: vec!["/n".to_owned()] },
            _ => GaugeSource::Scrapyd { scrapyd: url, project: None },
        };
        let lag = ms(chance.below(31) * 100);
        let (stale, on_stale) = (Span::from_s(8), OnStale::Hold);
        let now = Moment::from_us(1_700_000_000_000_000);
        let mut outside = Outside {
            machine: Machine::new(Config::default()),
            store: Store::default(),
            cap: 1 + chance.below(5),
            gauge: Gauge { source, every, lag, stale, on_stale },
            chance,
            now,
            runs: Vec::new(),
            held: Vec::new(),
            asked: Vec::new(),
            read_at: Moment::ZERO,
            failed_at: None,
            jobs: 0,
            calm: false,
        };
        let put = PutLimit {
            limit: limit(),
            settings: LimitSettings {
                concurrency: Some(outside.cap as u32),
                ..LimitSettings::default()
            },
            gauge: Some(Box::new(outside.gauge.clone())),
        };
        outside.apply(Command::Request(put.into()));
        outside
    }

    fn apply(&mut self, command: Command) -> Done {
        let done = self.machine.apply(&Namespace::main(), command, self.now, &self.store);
        self.store.write(self.machine.drain().rows);
        done.unwrap_or_else(|no| panic!("{no}"))
    }

    fn counts_by_weight(&self) -> bool {
        matches!(self.gauge.source, GaugeSource::Count { .. })
    }

    fn span_below(&mut self, span: Span) -> Span {
        Span::from_us(self.chance.below(span.us().max(1)))
    }

    // ---- Ours ----

    fn push(&mut self) {
        self.jobs += 1;
        let heavy = self.counts_by_weight() && self.cap > 1 && self.chance.below(4) == 0;
        let weight = if heavy { 2 } else { 1 };
        let mut job = NewJob::new(queue());
        job.id = JobId::parse(&format!("j{}", self.jobs)).ok();
        job.needs = Some(vec![Need::Limit { limit: limit(), weight, cost: 1 }]);
        job.retry = Some(Retry { max_attempts: 3, max_lost: 5, ..Retry::default() });
        self.apply(Command::Request(Push { jobs: vec![job], answer: PushAnswer::Ids }.into()));
    }

    fn take(&mut self) -> Result<(), String> {
        let mut ask = Lease::jobs(vec![queue()], 1 + self.chance.below(3) as usize);
        ask.ttl = TTL;
        let done = self.apply(Command::Lease(Box::new(ask), TakerId::new(1)));
        let Done::Lease(LeaseOutcome::Now(granted)) = done else { return Ok(()) };
        for grant in granted.grants {
            let (Some(lease), Some(seq)) = (grant.lease.lease, grant.seq) else { continue };
            let (id, weight) = self.job_in(seq);
            // A worker that starts a run under the id of its job first looks for an earlier one: the former holder may
            // have died.
            let goes_on = self.goes_on(&id);
            let starts_at = self.now.plus(self.span_below(self.gauge.lag));
            let length = Span::from_ms(100 + self.chance.below(6_000));
            let ends_at = goes_on.unwrap_or(starts_at.plus(length));
            let dies = !self.calm && self.chance.below(20) == 0;
            // A worker notices an end late. A settle before the end of its run, but not before its start, is noticed by
            // a gauge that counts; a list of ids cannot tell the end of that run from the start of the next one of its
            // job.
            let notices = match self.chance.below(4) {
                0 if self.counts_by_weight() => {
                    let early = ends_at.minus(self.span_below(Span::from_ms(300)));
                    early.max(self.now).max(starts_at)
                }
                _ => ends_at.plus(self.span_below(Span::from_s(1))),
            };
            self.held.push(Held { lease, settles_at: (!dies).then_some(notices) });
            if goes_on.is_none() {
                self.runs.push(WitnessedRun { id, weight, ours: true, starts_at, ends_at });
            }
            self.check_grant()?;
        }
        Ok(())
    }

    /// The end of the run that the address lists now under the id of a job, if it lists ids at all.
    fn goes_on(&self, id: &str) -> Option<Moment> {
        let mut listed = self
            .runs
            .iter()
            .filter(|run| !self.counts_by_weight() && run.id == id && run.starts_at <= self.now);
        listed.find(|run| run.ends_at > self.now).map(|run| run.ends_at)
    }

    /// The id and the weight of the job in a row.
    fn job_in(&self, seq: Seq) -> (String, u64) {
        let space = &self.machine.spaces[&Namespace::main()];
        let job = &space.jobs[space.jobs.by_seq(seq).expect("it runs")];
        match space.jobs.shape(job.shape).held.first() {
            Some(HeldNeed::Limit { weight, .. }) => (job.id.to_string(), u64::from(*weight)),
            other => panic!("it needs {other:?}"),
        }
    }

    fn check_grant(&self) -> Result<(), String> {
        let known = |run: &&WitnessedRun| run.ours || run.starts_at <= self.read_at;
        let live = self.runs.iter().filter(known).filter(|run| run.ends_at > self.now);
        let sum: u64 = live.map(|run| run.weight).sum();
        if sum > self.cap {
            return Err(format!("{sum} of {} run after a grant", self.cap));
        }
        let fresh = self.read_at.plus(self.gauge.fresh()) >= self.now;
        let tried = self.failed_at.is_some_and(|at| {
            at.plus(self.gauge.every).plus(Span::from_s(5)) > self.now
                && self.read_at.plus(self.gauge.stale) > self.now
        });
        if !fresh && !tried {
            return Err(format!("a grant on what was read at {}", self.read_at));
        }
        Ok(())
    }

    fn work(&mut self) {
        let due = |held: &Held, now| held.settles_at.is_some_and(|at| at <= now);
        let now = self.now;
        let over: Vec<Held> = self.held.extract_if(.., |held| due(held, now)).collect();
        for Held { lease, .. } in over {
            let ending = match self.chance.below(10) {
                0 => Ending::Failed { error: "no".to_owned(), retry_in: None, last: false },
                1 => Ending::Released,
                _ => Ending::Succeeded { result: None },
            };
            // An item whose lease was reaped meanwhile is refused.
            self.apply(Command::Request(Settle::of(vec![SettleItem::new(lease, ending)]).into()));
        }
        let alive = self.held.iter().filter(|held| held.settles_at.is_some());
        let item = |held: &Held| ExtendItem { lease: held.lease.clone(), progress: None };
        let items: Vec<ExtendItem> = alive.map(item).collect();
        if !items.is_empty() {
            self.apply(Command::Request(Extend { leases: items, ttl: None }.into()));
        }
    }

    // ---- The outside ----

    fn begin_runs(&mut self) {
        if self.calm || self.chance.below(30) > 0 {
            return;
        }
        self.jobs += 1;
        let weight = 1 + self.chance.below(2) * u64::from(self.counts_by_weight());
        let ends_at = self.now.plus(Span::from_ms(100 + self.chance.below(8_000)));
        let id = format!("theirs-{}", self.jobs);
        self.runs.push(WitnessedRun { id, weight, ours: false, starts_at: self.now, ends_at });
    }

    /// The present answer of the address.
    fn shown(&self) -> GaugeResult {
        let live =
            self.runs.iter().filter(|run| run.starts_at <= self.now && run.ends_at > self.now);
        if self.counts_by_weight() {
            GaugeResult::Sum(live.map(|run| run.weight).sum())
        } else {
            GaugeResult::Ids(live.map(|run| run.id.clone()).collect())
        }
    }

    fn read(&mut self) {
        if self.machine.next_gauge().is_some_and(|at| at <= self.now) {
            let claim = Command::ClaimGauges { reader: "r".to_owned(), others: Vec::new() };
            let Done::Claimed(claims) = self.apply(claim) else { panic!("no claims") };
            for claim in claims {
                // The answer is made some time after the request, and read some time after that.
                let ms =
                    self.chance.below(3) * 100 + self.chance.below(2) * self.chance.below(1_500);
                let answered_at = self.now.plus(Span::from_ms(ms));
                let result = match self.chance.below(if self.calm { 1 } else { 12 }) {
                    1 => GaugeResult::failed("http status 503"),
                    // It hangs, and its claim ends before the answer comes.
                    2 => {
                        self.asked.push((answered_at.plus(Span::from_s(6)), claim, self.shown()));
                        continue;
                    }
                    _ => self.shown(),
                };
                self.asked.push((answered_at, claim, result));
            }
        }
        let now = self.now;
        let answered: Vec<_> = self.asked.extract_if(.., |(at, ..)| *at <= now).collect();
        for (_, claim, result) in answered {
            self.apply(Command::TakeReading(claim.answered(result)));
        }
        let space = &self.machine.spaces[&Namespace::main()];
        let known = space.limits[space.limits.by_name()[&limit()]].gauge.as_ref().expect("a gauge");
        self.read_at = known.reading.map_or(Moment::ZERO, |reading| reading.asked_at);
        self.failed_at = known.failure.as_ref().map(|failure| failure.at);
    }

    // ---- Time ----

    fn step(&mut self) -> Result<(), String> {
        self.now = self.now.plus(STEP);
        let forget = self.now.minus(Span::from_s(60));
        self.runs.retain(|run| run.ends_at > forget);
        for _ in 0..100 {
            if self.machine.next_due().is_none_or(|due| due > self.now) {
                break;
            }
            self.machine.tick(self.now, Span::ZERO, &self.store);
            self.store.write(self.machine.drain().rows);
        }
        self.begin_runs();
        self.read();
        self.work();
        if !self.calm && self.chance.below(4) == 0 {
            self.push();
        }
        if self.chance.below(3) > 0 {
            self.take()?;
        }
        if !self.calm && self.chance.below(400) == 0 {
            self.reopen()?;
        }
        let audit = self.machine.audit(self.now);
        if audit.ok { Ok(()) } else { Err(audit.faults.join("\n")) }
    }

    fn reopen(&mut self) -> Result<(), String> {
        let before = self.machine.durable(self.now);
        self.machine = self.store.open(Config::default(), self.now);
        let after = self.machine.durable(self.now);
        if before == after { Ok(()) } else { Err(format!("{before:#?}\nis now\n{after:#?}")) }
    }

    /// Plays a history. At its end all parties work well, and every job must come to its end by events alone.
    fn play(mut self) -> Result<(), String> {
        for n in 0..600 {
            self.step().map_err(|why| format!("after step {n}: {why}"))?;
        }
        self.calm = true;
        for _ in 0..20_000 {
            if self.machine.spaces[&Namespace::main()].jobs.iter().next().is_none() {
                return Ok(());
            }
            self.step().map_err(|why| format!("at the end: {why}"))?;
        }
        Err(format!(
            "jobs never end; {:?}",
            self.apply(Command::Request(GetLimit { limit: limit() }.into()))
        ))
    }
}

fn first_fault(histories: impl IntoIterator<Item = u64>) -> Option<String> {
    let one = |seed: u64| {
        let seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Outside::new(seed).play().err().map(|why| format!("replay with TENURE_SEED={seed}: {why}"))
    };
    if let Some(seed) = number("TENURE_SEED") {
        return Outside::new(seed).play().err();
    }
    histories.into_iter().find_map(one)
}

#[test]
fn random_histories_of_a_gauge_never_go_over_the_cap() {
    // Each takes some 0.1 s: as many as of the others would take more than half an hour.
    let histories = number("TENURE_HISTORIES").map_or(30, |most| most.div_ceil(8));
    if let Some(fault) = first_fault(1..=histories) {
        panic!("{fault}");
    }
}

/// True if the outside notices that the machine lacks this rule.
fn caught(mutant: Mutant) -> bool {
    caught_from(1, mutant)
}

/// The same, with histories from this one on: one in a hundred and more notices some rules.
fn caught_from(first: u64, mutant: Mutant) -> bool {
    ON.with(|on| on.set(Some(mutant)));
    let found = std::panic::catch_unwind(|| first_fault(first..=first + 300)).unwrap_or(None);
    ON.with(|on| on.set(None));
    found.is_some_and(|why| why.contains("after a grant") || why.contains("a grant on"))
}

#[test]
fn the_outside_catches_a_permit_freed_while_its_run_is_shown() {
    assert!(caught(Mutant::NoRestForGauge));
}

#[test]
fn the_outside_catches_a_dead_holder_whose_run_has_not_begun() {
    assert!(caught(Mutant::UncleanIsShown));
}

#[test]
fn the_outside_catches_a_start_counted_as_shown_too_early() {
    assert!(caught(Mutant::SeenTooEarly));
}

#[test]
fn the_outside_catches_a_run_counted_for_the_wrong_permit() {
    assert!(caught(Mutant::AnyRunIsOwn));
}

#[test]
fn the_outside_catches_grants_on_an_old_reading() {
    assert!(caught_from(140, Mutant::OldIsFresh));
}
