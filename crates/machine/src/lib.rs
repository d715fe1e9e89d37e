//! The state machine: the whole coordinator as a value.
//!
//! [`Machine::apply`] takes a command and the time, and answers it; [`Machine::drain`] returns the changed rows, the
//! events and facts, and the answers to waiting calls. The machine is deterministic, does no I/O and reads no clock.
//! The embedded engine runs it in production, with rows in memory, in a folder or in the journal in Redis.
//!
//! The path of a job: `ops/push` stores it, `queue` keeps its place, `lease` grants it or a wait queue blocks it,
//! `ops/extend` keeps its lease alive, `ops/settle` and `lease` end it, `time` runs the timers.

mod answer;
mod audit;
mod emit;
mod explain;
pub mod facts;
#[cfg(test)]
mod histories;
pub(crate) mod jobs;
pub(crate) mod lease;
mod mutant;
mod ops;
pub(crate) mod queue;
pub(crate) mod retention;
pub mod rows;
pub(crate) mod scarce;
pub(crate) mod state;
mod step;
pub(crate) mod time;
mod views;

use std::collections::{BTreeMap, BTreeSet};

use crate::retention::budget::class_index;
use crate::retention::resting::Resting;
use crate::retention::resting::is_ahead;
pub use crate::rows::restore::{BadRow, last_fence};
pub use crate::rows::stored::{
    LifeSeen, Stands, StoredJob, UnreadableEnd, lease_id, lets_origin_of_life, parse_lease_id,
    seen_in_life, unreadable_end,
};
use crate::rows::{Archive, DataKey, Kind, LiveRow, RowKey, Rows};
use crate::time::agenda::{Agenda, Duty, Spaces};
use crate::time::recovery::Recovery;
use audit::findings::Findings;
use state::Space;
pub use state::{NO_JOB, Seq, TakerId};

pub use self::answer::{Compared, Elsewhere, ExplainedAt, JobAt, Known, Totals, WithoutData};
use self::facts::{Delivery, Fact, Notified};
pub use crate::jobs::awaits::{FlowOutcome, FlowWait, JobStands, Look, ResultOutcome, ResultWait};
pub use crate::jobs::dependencies::{child_key, child_of};
pub use crate::ops::flows::{ChildrenAt, ParentAt, ParentsAt};
pub use crate::ops::lease::LeaseOutcome;
pub use crate::ops::many::{ManyDone, SeenJob};
pub use crate::ops::push_plan::PushedOne;
pub use crate::ops::retry::RetriedAt;
pub use crate::ops::schedules::{PushedAt, WithoutNext};
pub use crate::ops::settle::{SettledAs, SettledOne};
pub use crate::rows::changes::{
    BatchEvents, CHANGES_FORMAT, Changes, NAMED_CHANGES_FORMAT, NewEvents, SEALED_CHANGES_FORMAT,
};
pub use crate::rows::entries::{decode_events, encode_events};
use tenure_core::access::TokenName;
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
    /// A head that was blocked for this long may reserve.
    pub patience: Span,
    /// Bytes that finished jobs may take; failed jobs own half of these.
    pub retain_bytes: u64,
    /// The most namespaces; a call that would begin another one is refused. Namespaces that a store has when it opens
    /// stay.
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

/// A command to the machine.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// Any request that the state answers. The engine answers those that need only rows (lists of jobs).
    Request(Request),
    /// A command of a caller with this name. The events that its own step makes have the name; what follows from them,
    /// in the same call or later, does not.
    By(TokenName, Box<Command>),
    /// A lease call, which may wait under this number.
    Lease(Box<Lease>, TakerId),
    /// A call for the result of a job, which may wait.
    WaitForResult(Box<ResultWait>),
    /// A call for a flow, which may wait.
    WaitForFlow(Box<FlowWait>),
    /// The connection of a waiting call broke.
    DropWait(TakerId),
    /// Undoes these leases: the caller was gone when they were granted.
    Undo(Vec<Fence>),
    /// Cancels, retries or deletes the jobs among these that match.
    ChangeMany(ChangeMany),
    /// Asks for the view of waiting jobs: ready or blocked.
    StatesOf(Vec<Seq>),
    /// Computed occurrences of a schedule.
    Plan(Plan),
    /// Decides due occurrences of schedules.
    Fire,
    /// A process that reads gauges claims the due ones.
    ClaimGauges {
        /// The name of the process.
        reader: String,
        /// The names of the other processes that read now.
        others: Vec<String>,
    },
    /// The answer to such a claim.
    TakeReading(Reading),
    /// Runs the work that is due by time.
    Tick {
        /// The gain of the wall clock over a monotonic clock since the last tick; zero without a leap.
        leapt: Span,
    },
}

impl Command {
    /// The same command of a caller with this name, if there is one.
    pub fn by(self, caller: Option<&TokenName>) -> Command {
        match caller {
            Some(name) => Command::By(name.clone(), Box::new(self)),
            None => self,
        }
    }
}

/// A change of at most 256 jobs that a store found by a filter.
#[derive(Clone, PartialEq, Debug)]
pub struct ChangeMany {
    /// The change to make.
    pub change: BulkChange,
    /// The filter, which they must also match in this step.
    pub filter: JobFilter,
    /// The jobs whose rows matched, in the order of the changes.
    pub seen: Vec<SeenJob>,
}

/// The answer of the machine to a command.
#[derive(Clone, PartialEq, Debug)]
pub enum Done {
    /// The answer to a request.
    Request(Known),
    /// The answer to a lease call.
    Lease(LeaseOutcome),
    /// The answer to a call for a result.
    Result(ResultOutcome),
    /// The answer to a call for a flow.
    Flow(FlowOutcome),
    /// The answer to a change of many jobs.
    Many(ManyDone),
    /// The answer to `StatesOf`, in its order; `None` for a job that is not waiting.
    States(Vec<Option<Stands>>),
    /// The answer to `ClaimGauges`: the gauges to read now.
    Claimed(Vec<GaugeClaim>),
    /// The answer to a command without a reply.
    Nothing,
}

/// The effects of all steps since the last drain.
#[derive(Debug, Default)]
pub struct Effects {
    /// Rows to write, in one durable batch.
    pub rows: Rows,
    /// The events in order: a list for each namespace.
    pub events: Vec<(Namespace, Vec<Happened>)>,
    /// Namespaces that ended: an engine deletes its other data about them.
    pub ended: Vec<Namespace>,
    /// Internal observations, with their namespace.
    pub facts: Vec<(Namespace, Fact)>,
    /// Answers to waiting calls, to send once the rows are durable.
    pub deliveries: Vec<(Namespace, Delivery)>,
    /// Schedules that need a plan, for a process with a calendar.
    pub wanted: Vec<(Namespace, PlanWanted)>,
    /// Calls that waited for an end, and must look now.
    pub notified: Vec<Notified>,
}

/// Access to rows that no index in memory has.
pub trait Rest: Archive {
    /// True if a resource has exactly this data.
    fn has_data(&self, key: &DataKey, data: &Json) -> bool;
}

/// All namespaces of one store; see the module.
#[derive(Debug)]
pub struct Machine {
    config: Config,
    spaces: Spaces,
    /// Namespaces that hold nothing; `spaces` has none of them.
    resting: BTreeMap<Namespace, Resting>,
    agenda: Agenda,
    next_seq: Seq,
    /// Namespaces that ended since the last drain: their last row must be deleted.
    gone: Vec<Namespace>,
    /// Bytes of archived jobs: first failed ones, then others.
    kept: [u64; 2],
    /// The longest ttl of any lease, including ended namespaces. Never falls.
    largest_ttl: Span,
    /// Set while its store may have lost answered changes.
    recovery: Option<Recovery>,
}

impl Machine {
    /// A machine without any namespace.
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

    /// Applies new settings. A head whose patience already runs keeps the end of it.
    pub fn configure(&mut self, config: Config) {
        self.config = config;
        for space in self.spaces.values_mut() {
            space.patience = config.patience;
        }
    }

    /// The space of a row or of a start, for a change.
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

    /// Applies one command at the time of the engine's clock.
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
            self.largest_ttl = self.largest_ttl.max(space.leases.largest_ttl());
            return done;
        }
        if self.wake(namespace) {
            return self.apply(namespace, command, clock, rest);
        }
        // A namespace begins with the first call that leaves something in it. A query or a refused call gets the answer
        // of an empty namespace, and makes nothing.
        let mut space = self.new_space(namespace, clock);
        let done = space.step(command, clock, &mut self.next_seq, rest);
        if space.holds_nothing() {
            return done;
        }
        if self.spaces.len() + self.resting.len() >= self.config.namespaces_max {
            return Err(StoreRefusal::NamespacesFull { most: self.config.namespaces_max }.into());
        }
        self.largest_ttl = self.largest_ttl.max(space.leases.largest_ttl());
        self.agenda.steps(namespace);
        self.spaces.insert(namespace.clone(), Box::new(space));
        done
    }

    /// Ticks every namespace that is due; after a leap, also each one with live leases. `leapt` is the gain of the wall
    /// clock over a monotonic clock since the last call.
    pub fn tick(&mut self, clock: Moment, leapt: Span, rest: &dyn Rest) {
        self.tick_recovery(clock, leapt);
        let mut due = self.agenda.due(Duty::Tick, clock, &self.spaces);
        // After a leap or a step back all namespaces are checked: it is rare, and their own times do not show it.
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

    /// Decides due occurrences of schedules, in each namespace that has some.
    pub fn fire(&mut self, clock: Moment, rest: &dyn Rest) {
        let due = self.agenda.due(Duty::Fire, clock, &self.spaces);
        for namespace in due {
            // It refuses nothing.
            let _ = self.apply(&namespace, Command::Fire, clock, rest);
        }
    }

    /// The earliest time at which a `fire` has something to decide. It makes no tick due.
    pub fn next_fire(&self) -> Option<Moment> {
        self.agenda.next(Duty::Fire, &self.spaces)
    }

    /// The earliest time at which a reading process has a gauge to claim. It makes no tick due.
    pub fn next_gauge(&self) -> Option<Moment> {
        self.agenda.next(Duty::Gauge, &self.spaces)
    }

    /// The namespaces with gauges to claim.
    pub fn gauges_due(&self, clock: Moment) -> impl IntoIterator<Item = Namespace> + use<> {
        self.agenda.due(Duty::Gauge, clock, &self.spaces)
    }

    /// The earliest time at which a tick has something to do.
    pub fn next_due(&self) -> Option<Moment> {
        let due = self.agenda.next(Duty::Tick, &self.spaces);
        due.into_iter().chain(self.recovers_until()).min()
    }

    /// The lag of the clock behind the latest time that was seen, if it is worth a report. Looks at every namespace.
    pub fn clock_behind(&self) -> Option<Span> {
        self.spaces.values().filter_map(|space| space.behind).max()
    }

    /// The longest ttl of any lease that this machine granted, extended or restored; zero before the first. Never
    /// falls: after a loss of recent grants, the recovery takes this long.
    pub fn largest_ttl(&self) -> Span {
        self.largest_ttl
    }

    /// Takes the effects of all steps since the last drain.
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
            for (state, bytes) in space.outbox.archived.drain(..) {
                self.kept[class_index(state)] += bytes;
            }
            for (state, bytes) in space.outbox.purged.drain(..) {
                let kept = &mut self.kept[class_index(state)];
                *kept = kept.saturating_sub(bytes);
            }
            if !space.outbox.events.is_empty() {
                effects.events.push((name.clone(), std::mem::take(&mut space.outbox.events)));
            }
            effects.facts.extend(space.outbox.facts.drain(..).map(|fact| (name.clone(), fact)));
            effects.notified.append(&mut space.outbox.notified);
            let deliveries = space.outbox.deliveries.drain(..);
            effects.deliveries.extend(deliveries.map(|delivery| (name.clone(), delivery)));
            let wanted = space.outbox.wanted.drain(..);
            effects.wanted.extend(wanted.map(|wanted| (name.clone(), wanted)));
            self.agenda.note(space);
            self.let_rest(&name);
        }
        effects
    }

    // ---- A start ----

    /// Restores one row that is not a job; in the order of [`Kind::ALL`], except `Lease`, which comes last.
    pub fn restore_row(
        &mut self,
        namespace: &Namespace,
        kind: Kind,
        key: &str,
        value: &str,
    ) -> Result<(), BadRow> {
        self.space(namespace).restore_row(kind, key, value)
    }

    /// Restores one live job, after the other rows except `Lease`.
    pub fn restore_job(&mut self, row: &LiveRow<'_>) -> Result<(), BadRow> {
        let namespace = Namespace::parse(row.namespace)
            .map_err(|_| BadRow { row: format!("job {:?}", row.id) })?;
        self.next_seq = self.next_seq.max(row.seq.next());
        let space = self.space(&namespace);
        let now = space.last;
        space.restore_job(row, now)
    }

    /// Restores the number and the bytes of a queue's finished jobs.
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
        let q = &mut space.lines[slot];
        match state {
            JobState::Succeeded => q.counts.succeeded += jobs,
            JobState::Failed => q.counts.failed += jobs,
            _ => q.counts.cancelled += jobs,
        }
    }

    /// Ends a start, after the last row. `last_seq` is the highest row number ever used.
    pub fn restored(&mut self, last_seq: Seq, clock: Moment) {
        self.next_seq = self.next_seq.max(last_seq.next());
        for space in self.spaces.values_mut() {
            space.restored(clock);
            self.largest_ttl = self.largest_ttl.max(space.leases.largest_ttl());
        }
    }

    /// Forgets the clock of the store whose rows were restored so far, because the store becomes a copy with a clock of its own.
    /// Before jobs and leases: their times follow from the clock.
    pub fn forget_clock(&mut self) {
        for (name, space) in &mut self.spaces {
            space.last = Moment::ZERO;
            // The row of the namespace is written again.
            space.outbox.forget_written();
            self.agenda.steps(name);
        }
    }

    /// Raises the last fence of a namespace, which begins with that if it is not there.
    pub fn raise_fence(&mut self, namespace: &Namespace, fence: Fence) {
        self.space(namespace).leases.raise_fence(fence);
    }

    /// The last fence of each namespace.
    pub fn fences(&self) -> BTreeMap<Namespace, Fence> {
        let last = |space: &Space| (space.name.clone(), space.leases.last_fence());
        self.spaces.values().map(|space| last(space)).collect()
    }

    /// Ends every lease of a restored machine, each at the moment at which it would have expired: the store becomes a copy,
    /// which no holder knows. Answers how many there were, and the last of these moments.
    pub fn release_all(&mut self) -> (u64, Option<Moment>) {
        let (mut leases, mut last) = (0, None);
        for (name, space) in &mut self.spaces {
            let ends = space.leases.iter().map(|lease| (lease.expires_at, lease.fence));
            let ends: BTreeSet<(Moment, Fence)> = ends.collect();
            if !ends.is_empty() {
                self.agenda.steps(name);
            }
            for (at, fence) in ends {
                space.end_lease(fence, crate::lease::ending::End::Copied, at);
                leases += 1;
                last = last.max(Some(at));
            }
        }
        (leases, last)
    }

    // ---- For tests ----

    /// The rows of this machine in text: equal for two machines with the same durable state.
    pub fn durable(&self, now: Moment) -> Vec<String> {
        let awake = self.spaces.values().map(|space| (space.name.clone(), space.durable(now)));
        let resting = self.woken().map(|space| (space.name.clone(), space.durable(now)));
        let by_name: BTreeMap<Namespace, Vec<String>> = awake.chain(resting).collect();
        by_name.into_values().flatten().collect()
    }

    /// Compares all cached values of every namespace with its primary data.
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
