//! The state machine: the whole coordinator as a value.
//!
//! [`Machine::apply`] takes a command and the time and answers it; what it changed comes out as rows
//! ([`Machine::drain`]), what happened as facts, and what waiting calls are answered as deliveries.
//! It is deterministic, does no I/O and reads no clock. The embedded engine runs it in production,
//! whether its rows go to memory, to a folder or into the journal in Redis.
//!
//! The way of a job: `ops/push` stores it, `order` and `line` hold its place, `grant` gives it away
//! or `doors` hold it back, `ops/extend` keeps it, `ops/settle` and `ending` end it, `tick` does what
//! time does.

mod agenda;
mod answer;
mod audit;
mod awaits;
mod budget;
mod changes;
pub(crate) mod codec;
pub(crate) mod doors;
mod drain;
mod dropped;
mod durable;
pub(crate) mod ending;
mod entries;
mod explain;
pub mod facts;
mod firing;
mod flows;
mod gauges;
pub(crate) mod grant;
mod happening;
#[cfg(test)]
mod histories;
mod jobs;
mod kin;
pub(crate) mod limits;
mod line;
mod moments;
mod mutant;
mod ops;
mod order;
mod place;
mod pools;
mod progress;
mod recovery;
mod replacing;
mod reservations;
mod resting;
mod restore;
pub mod rows;
mod schedule_index;
mod schedule_text;
mod slots;
mod space;
pub(crate) mod state;
pub(crate) mod stored;
mod text_codec;
mod tick;
mod timers;
mod trim;
mod views;
pub(crate) mod waiting;

use std::collections::{BTreeMap, BTreeSet};

use agenda::{Agenda, Duty, Spaces, is_ahead};
use audit::Findings;
use budget::class_index;
use recovery::Recovery;
use resting::Resting;
pub use restore::BadRow;
use rows::{Archive, DataKey, Kind, LiveRow, RowKey, Rows};
use state::Space;
pub use state::{NO_JOB, Seq, TakerId};
pub use stored::{
    LifeSeen, Stands, StoredJob, UnreadableEnd, lease_id, lets_origin_of_life, parse_lease_id,
    seen_in_life, unreadable_end,
};

pub use self::answer::{Compared, Elsewhere, ExplainedAt, JobAt, Known, Totals, WithoutData};
pub use self::awaits::{FlowOutcome, FlowWait, JobStands, Look, ResultOutcome, ResultWait};
pub use self::changes::{BatchEvents, CHANGES_FORMAT, Changes, NewEvents};
pub use self::entries::{decode_events, encode_events};
use self::facts::{Delivery, Fact, Notified};
pub use self::kin::{child_key, child_of};
pub use crate::ops::flows::{ChildrenAt, ParentAt, ParentsAt};
pub use crate::ops::lease::LeaseOutcome;
pub use crate::ops::many::{ManyDone, SeenJob};
pub use crate::ops::push::PushedOne;
pub use crate::ops::retry::RetriedAt;
pub use crate::ops::schedules::{PushedAt, WithoutNext};
pub use crate::ops::settle::{SettledAs, SettledOne};
use tenure_core::bounds::{LEAP_US, NAMESPACES_MAX_DEFAULT, PATIENCE_US_DEFAULT};
use tenure_core::events::Happened;
use tenure_core::gauge::{GaugeClaim, Reading};
use tenure_core::job::JobState;
use tenure_core::lease::Fence;
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Audited, BulkChange, JobFilter, Lease, Request};
use tenure_core::schedule::{Plan, PlanWanted};
use tenure_core::secret::Json;
use tenure_core::sentences::StoreRefusal;
use tenure_core::time::{Moment, Span};

/// Settings of the machine itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// A head that stood blocked so long may reserve.
    pub patience: Span,
    /// Bytes that finished jobs may take; of these, failed ones own half.
    pub retain_bytes: u64,
    /// Namespaces that there may be; a call that would begin another one is refused. Those that a store has when it is
    /// opened stay.
    pub namespaces_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            patience: Span::from_us(PATIENCE_US_DEFAULT),
            retain_bytes: 1 << 30,
            namespaces_max: NAMESPACES_MAX_DEFAULT,
        }
    }
}

/// What the machine is asked.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// Any request that the state answers. Those that only rows answer (lists of jobs) are the
    /// engine's.
    Request(Request),
    /// A lease call, which may wait under this number.
    Lease(Box<Lease>, TakerId),
    /// A call for the result of a job, which may wait.
    WaitForResult(Box<ResultWait>),
    /// A call for a flow, which may wait.
    WaitForFlow(Box<FlowWait>),
    /// The connection of a waiting call broke.
    DropWait(TakerId),
    /// These leases were granted to a caller who was gone.
    Undo(Vec<Fence>),
    /// Cancels, retries or deletes those of these jobs that match.
    ChangeMany(ChangeMany),
    /// What to show for jobs that wait: ready or blocked.
    StatesOf(Vec<Seq>),
    /// Moments of a schedule that were computed.
    Plan(Plan),
    /// Moments of schedules that are due are decided.
    Fire,
    /// A process that reads gauges claims those that are due.
    ClaimGauges {
        /// What it is called.
        reader: String,
        /// What others that read now are called.
        others: Vec<String>,
    },
    /// The answer to such a claim.
    TakeReading(Reading),
    /// Time passes.
    Tick {
        /// What the wall clock gained on a monotonic clock since the last tick; zero if it did not leap.
        leapt: Span,
    },
}

/// A change of jobs that a store found by a filter: at most 256.
#[derive(Clone, PartialEq, Debug)]
pub struct ChangeMany {
    /// What becomes of them.
    pub change: BulkChange,
    /// The filter, which they must match in this step too.
    pub filter: JobFilter,
    /// The jobs whose rows matched, in the order in which they are changed.
    pub seen: Vec<SeenJob>,
}

/// What the machine answers.
#[derive(Clone, PartialEq, Debug)]
pub enum Done {
    /// To a request.
    Request(Known),
    /// To a lease call.
    Lease(LeaseOutcome),
    /// To a call for a result.
    Result(ResultOutcome),
    /// To a call for a flow.
    Flow(FlowOutcome),
    /// To a change of many.
    Many(ManyDone),
    /// To `StatesOf`, in its order; `None` for a job that is not waiting.
    States(Vec<Option<Stands>>),
    /// To `ClaimGauges`: what is to be read now.
    Claimed(Vec<GaugeClaim>),
    /// To a command that nobody waits for.
    Nothing,
}

/// What steps did since the last drain.
#[derive(Debug, Default)]
pub struct Effects {
    /// Rows to write, in one durable batch.
    pub rows: Rows,
    /// What happened, in its order: a list for each namespace.
    pub events: Vec<(Namespace, Vec<Happened>)>,
    /// Namespaces that ended: what an engine keeps of them beside their rows goes too.
    pub ended: Vec<Namespace>,
    /// What happened inside, with the namespace.
    pub facts: Vec<(Namespace, Fact)>,
    /// What waiting calls are answered, once the rows are durable.
    pub deliveries: Vec<(Namespace, Delivery)>,
    /// Schedules that want to be planned, by whoever has a calendar.
    pub wanted: Vec<(Namespace, PlanWanted)>,
    /// Calls that waited for an end, and look now.
    pub notified: Vec<Notified>,
}

/// What the machine reads beside its own state: rows that no index in memory knows.
pub trait Rest: Archive {
    /// Whether a resource's data is this.
    fn has_data(&self, key: &DataKey, data: &Json) -> bool;
}

/// See the module.
#[derive(Debug)]
pub struct Machine {
    config: Config,
    spaces: Spaces,
    /// Namespaces that hold nothing; none of them is among `spaces`.
    resting: BTreeMap<Namespace, Resting>,
    agenda: Agenda,
    next_seq: Seq,
    /// Namespaces that ended since the last drain: their last row is to go.
    gone: Vec<Namespace>,
    /// Bytes of archived jobs: failed, and others.
    kept: [u64; 2],
    /// The longest ttl of any lease, also of namespaces that ended. It never falls.
    largest_ttl: Span,
    /// As long as its store may have forgotten what was answered.
    recovery: Option<Recovery>,
}

impl Machine {
    /// A machine that knows nothing yet.
    pub fn new(config: Config) -> Self {
        Machine {
            config,
            spaces: BTreeMap::new(),
            resting: BTreeMap::new(),
            agenda: Agenda::default(),
            next_seq: NO_JOB.next(),
            gone: Vec::new(),
            kept: [0, 0],
            largest_ttl: Span::ZERO,
            recovery: None,
        }
    }

    /// Goes on with other settings. A head whose patience is counted already keeps the moment at which it ends.
    pub fn configure(&mut self, config: Config) {
        self.config = config;
        for space in self.spaces.values_mut() {
            space.patience = config.patience;
        }
    }

    /// The space of a row or of a start, which changes.
    fn space(&mut self, namespace: &Namespace) -> &mut Space {
        self.agenda.steps(namespace);
        if !self.spaces.contains_key(namespace) && !self.wake(namespace) {
            let space = Space::new(namespace.clone(), self.config.patience);
            self.spaces.insert(namespace.clone(), Box::new(space));
        }
        match self.spaces.get_mut(namespace) {
            Some(space) => space,
            None => panic!("a namespace that was just made is not there"),
        }
    }

    /// Applies one command at what the engine's clock says.
    pub fn apply(
        &mut self,
        namespace: &Namespace,
        command: Command,
        clock: Moment,
        rest: &dyn Rest,
    ) -> Result<Done, Refusal> {
        if let Some(space) = self.spaces.get_mut(namespace) {
            self.agenda.steps(namespace);
            let done = space.step(command, clock, &mut self.next_seq, rest);
            self.largest_ttl = self.largest_ttl.max(space.largest_ttl);
            return done;
        }
        if self.wake(namespace) {
            return self.apply(namespace, command, clock, rest);
        }
        // A namespace begins with the first call that leaves something in it. One that only asks, or
        // that is refused, is answered as an empty one answers, and makes nothing.
        let mut space = self.new_space(namespace, clock);
        let done = space.step(command, clock, &mut self.next_seq, rest);
        if space.holds_nothing() {
            return done;
        }
        if self.spaces.len() + self.resting.len() >= self.config.namespaces_max {
            return Err(StoreRefusal::NamespacesFull { most: self.config.namespaces_max }.into());
        }
        self.largest_ttl = self.largest_ttl.max(space.largest_ttl);
        self.agenda.steps(namespace);
        self.spaces.insert(namespace.clone(), Box::new(space));
        done
    }

    /// Ticks every namespace that is due; after a leap, each in which leases live. `leapt` is what the wall clock
    /// gained on a monotonic clock since the last call of this.
    pub fn tick(&mut self, clock: Moment, leapt: Span, rest: &dyn Rest) {
        self.tick_recovery(clock, leapt);
        let mut due = self.agenda.due(Duty::Tick, clock, &self.spaces);
        // All are looked at where the clock leapt or stepped back: seldom, and by what is in none's own moments.
        let leaps = leapt > Span::from_us(LEAP_US);
        if leaps || self.agenda.may_be_ahead(clock, &self.spaces) {
            let meant = |space: &&Space| {
                leaps && !space.leases.is_empty()
                    || is_ahead(space.last, clock) && space.next_due().is_some()
            };
            let awake = self.spaces.values().map(|space| &**space).filter(meant);
            due.extend(awake.map(|space| space.name.clone()));
            due.extend(self.resting_ahead(clock));
        }
        for namespace in due {
            // A tick refuses nothing.
            let _ = self.apply(&namespace, Command::Tick { leapt }, clock, rest);
            let ends = self.spaces.get(&namespace).and_then(|space| space.ends_at());
            if ends.is_some_and(|at| at <= clock) {
                self.spaces.remove(&namespace);
                self.agenda.forget(&namespace);
                self.gone.push(namespace);
            }
        }
        self.keep_budget(rest);
    }

    /// Decides moments of schedules that are due, in each namespace that has some.
    pub fn fire(&mut self, clock: Moment, rest: &dyn Rest) {
        let due = self.agenda.due(Duty::Fire, clock, &self.spaces);
        for namespace in due {
            // It refuses nothing.
            let _ = self.apply(&namespace, Command::Fire, clock, rest);
        }
    }

    /// The soonest moment at which a `fire` has something to decide. It makes no tick due.
    pub fn next_fire(&self) -> Option<Moment> {
        self.agenda.next(Duty::Fire, &self.spaces)
    }

    /// The soonest moment at which a process that reads has a gauge to claim. It makes no tick due.
    pub fn next_gauge(&self) -> Option<Moment> {
        self.agenda.next(Duty::Gauge, &self.spaces)
    }

    /// The namespaces that have gauges to claim.
    pub fn gauges_due(&self, clock: Moment) -> impl IntoIterator<Item = Namespace> + use<> {
        self.agenda.due(Duty::Gauge, clock, &self.spaces)
    }

    /// The soonest moment at which a tick has something to do.
    pub fn next_due(&self) -> Option<Moment> {
        let due = self.agenda.next(Duty::Tick, &self.spaces);
        due.into_iter().chain(self.recovers_until()).min()
    }

    /// By how much the clock is behind what was seen, if that is worth telling. It looks at every namespace.
    pub fn clock_behind(&self) -> Option<Span> {
        self.spaces.values().filter_map(|space| space.behind).max()
    }

    /// The longest ttl of any lease that this machine granted, extended or restored; zero before the first. It
    /// never falls: a store that forgets the grants of its last moments has to recover for as long.
    pub fn largest_ttl(&self) -> Span {
        self.largest_ttl
    }

    /// Takes what steps did since the last time.
    pub fn drain(&mut self) -> Effects {
        let mut effects = Effects::default();
        for namespace in self.gone.drain(..) {
            let (kind, key) = (Kind::Meta, String::new());
            let key = RowKey { namespace: namespace.clone(), kind, key };
            effects.rows.other.insert(key, None);
            effects.ended.push(namespace);
        }
        for name in self.agenda.take_stepped() {
            let Some(space) = self.spaces.get_mut(&name) else { continue };
            let Rows { jobs, errors, other, data, childless } = space.drain_rows();
            effects.rows.jobs.extend(jobs);
            effects.rows.errors.extend(errors);
            effects.rows.other.extend(other);
            effects.rows.childless.extend(childless);
            effects.rows.data.extend(data);
            for (state, bytes) in space.out.archived.drain(..) {
                self.kept[class_index(state)] += bytes;
            }
            for (state, bytes) in space.out.purged.drain(..) {
                let kept = &mut self.kept[class_index(state)];
                *kept = kept.saturating_sub(bytes);
            }
            if !space.out.events.is_empty() {
                effects.events.push((name.clone(), std::mem::take(&mut space.out.events)));
            }
            effects.facts.extend(space.out.facts.drain(..).map(|fact| (name.clone(), fact)));
            effects.notified.append(&mut space.out.notified);
            let deliveries = space.out.deliveries.drain(..);
            effects.deliveries.extend(deliveries.map(|delivery| (name.clone(), delivery)));
            let wanted = space.out.wanted.drain(..);
            effects.wanted.extend(wanted.map(|wanted| (name.clone(), wanted)));
            self.agenda.note(space);
            self.let_rest(&name);
        }
        effects
    }

    // ---- A start ----

    /// Takes one row that is not a job; in the order of [`Kind::ALL`], but `Lease` last of all.
    pub fn restore_row(
        &mut self,
        namespace: &Namespace,
        kind: Kind,
        key: &str,
        value: &str,
    ) -> Result<(), BadRow> {
        self.space(namespace).restore_row(kind, key, value)
    }

    /// Takes one live job, after the other rows but `Lease`.
    pub fn restore_job(&mut self, row: &LiveRow<'_>) -> Result<(), BadRow> {
        let namespace = Namespace::parse(row.namespace)
            .map_err(|_| BadRow { row: format!("job {:?}", row.id) })?;
        self.next_seq = self.next_seq.max(row.seq.next());
        let space = self.space(&namespace);
        let now = space.last;
        space.restore_job(row, now)
    }

    /// Takes how many finished jobs of a queue there are, and their bytes.
    pub fn restore_finished(
        &mut self,
        namespace: &Namespace,
        queue: &tenure_core::names::QueueName,
        state: JobState,
        jobs: u64,
        bytes: u64,
    ) {
        self.kept[class_index(state)] += bytes;
        let space = self.space(namespace);
        let slot = space.queue_of_remains(queue);
        let q = &mut space.queues[slot];
        match state {
            JobState::Succeeded => q.counts.succeeded += jobs,
            JobState::Failed => q.counts.failed += jobs,
            _ => q.counts.cancelled += jobs,
        }
    }

    /// After the last row. `last_seq` is the highest row number ever used.
    pub fn restored(&mut self, last_seq: Seq, clock: Moment) {
        self.next_seq = self.next_seq.max(last_seq.next());
        for space in self.spaces.values_mut() {
            space.restored(clock);
            self.largest_ttl = self.largest_ttl.max(space.largest_ttl);
        }
    }

    /// Ends every lease of a restored machine, each at the moment at which it would have expired: the store becomes a copy,
    /// which no holder knows. Answers how many there were, and the last of these moments.
    pub fn release_all(&mut self) -> (u64, Option<Moment>) {
        let (mut leases, mut last) = (0, None);
        for (name, space) in &mut self.spaces {
            let ends = space.leases.iter().map(|(fence, lease)| (lease.expires_at, *fence));
            let ends: BTreeSet<(Moment, Fence)> = ends.collect();
            if !ends.is_empty() {
                self.agenda.steps(name);
            }
            for (at, fence) in ends {
                space.end_lease(fence, ending::End::Copied, at);
                leases += 1;
                last = last.max(Some(at));
            }
        }
        (leases, last)
    }

    // ---- For tests ----

    /// The rows that would make this machine anew, in text: two machines that know the same durable
    /// things have the same.
    pub fn durable(&self, now: Moment) -> Vec<String> {
        let awake = self.spaces.values().map(|space| (space.name.clone(), space.durable(now)));
        let resting = self.woken().map(|space| (space.name.clone(), space.durable(now)));
        let by_name: BTreeMap<Namespace, Vec<String>> = awake.chain(resting).collect();
        by_name.into_values().flatten().collect()
    }

    /// Checks every namespace.
    pub fn audit(&self, now: Moment) -> Audited {
        let mut own = Findings::default();
        self.agenda.audit(&self.spaces, &self.resting, &mut own);
        let mut all = own.done();
        for space in self.spaces.values() {
            let audit = space.audit(now.max(space.last));
            all.ok &= audit.ok;
            all.checked += audit.checked;
            all.faults.extend(audit.faults);
        }
        all
    }
}
