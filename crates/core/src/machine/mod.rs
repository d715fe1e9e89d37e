//! The state machine: the whole coordinator as a value.
//!
//! [`Machine::apply`] takes a command and the time and answers it; what it changed comes out as rows
//! ([`Machine::drain`]), what happened as facts, and what waiting calls are answered as deliveries.
//! It is deterministic, does no I/O and reads no clock. The embedded engine runs it in production;
//! for the other engines it is the model they are compared with.
//!
//! The way of a job: `ops/push` stores it, `order` and `line` hold its place, `grant` gives it away
//! or `doors` hold it back, `ops/extend` keeps it, `ops/settle` and `ending` end it, `tick` does what
//! time does.

mod audit;
pub(crate) mod codec;
pub(crate) mod doors;
mod drain;
pub(crate) mod ending;
mod explain;
pub mod facts;
pub(crate) mod grant;
#[cfg(test)]
mod histories;
mod jobs;
pub(crate) mod limits;
mod line;
mod marks;
mod mutant;
mod order;
mod pools;
mod restore;
pub mod rows;
mod slots;
pub(crate) mod state;
pub(crate) mod stored;
mod tick;
mod timers;
mod views;
pub(crate) mod waiting;

use std::collections::BTreeMap;

pub use restore::BadRow;
use rows::{Archive, Class, DataKey, Kind, LiveRow, Rows};
use state::{CALLERS, Place, Queue, Space};
pub use state::{Seq, TakerId};
pub use stored::{StoredJob, lease_id, parse_lease_id};

use self::facts::{Delivery, Fact};
use crate::bounds::{PATIENCE_US_DEFAULT, TICK_MAX};
use crate::job::JobState;
use crate::lease::{Explained, Extended, Fence};
use crate::names::{JobId, JobRef, Namespace};
pub use crate::ops::lease::LeaseOutcome;
pub use crate::ops::push::PushedOne;
pub use crate::ops::settle::{SettledAs, SettledOne};
use crate::refusal::Refusal;
use crate::requests::{Audit, Lease, Listed, Put, Request, Stats, WorkerView};
use crate::secret::Json;
use crate::settings::{LimitView, PoolView, QueueView, ResourceView, Synced};
use crate::time::{Moment, Span};

/// Settings of the machine itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// A head that stood blocked so long may reserve.
    pub patience: Span,
    /// Bytes that finished jobs may take; of these, failed ones own half.
    pub retain_bytes: u64,
}

impl Default for Config {
    fn default() -> Self {
        Config { patience: Span::from_us(PATIENCE_US_DEFAULT), retain_bytes: 1 << 30 }
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
    /// The connection of a waiting call broke.
    DropWait(TakerId),
    /// These leases were granted to a caller who was gone.
    Undo(Vec<Fence>),
    /// Cancels those of these jobs that live.
    CancelMany(Vec<Seq>),
    /// Retries those of these jobs that may be.
    RetryMany(Vec<Seq>),
    /// Where a job's row is.
    Locate(JobRef),
    /// What to show for jobs that wait: ready or blocked.
    StatesOf(Vec<Seq>),
    /// Time passes.
    Tick,
}

/// What the machine answers.
#[derive(Clone, PartialEq, Debug)]
pub enum Done {
    /// To a push.
    Pushed(Vec<PushedOne>),
    /// To what shows one job: its row, and what to show for `waiting`.
    Job(Seq, JobState),
    /// To what shows nothing.
    Nothing,
    /// To calls on many: how many.
    Many(u64),
    /// To explain.
    Explained(Explained),
    /// To a lease call.
    Lease(LeaseOutcome),
    /// To extend.
    Extended(Extended),
    /// To settle.
    Settled(Vec<SettledOne>),
    /// To list leases.
    Leases(Listed<crate::lease::LeaseSummary>),
    /// A queue, and whether it is new.
    Queue(Put<QueueView>),
    /// Queues.
    Queues(Listed<QueueView>),
    /// A limit, and whether it is new.
    Limit(Put<LimitView>),
    /// Limits.
    Limits(Listed<LimitView>),
    /// A pool, and whether it is new.
    Pool(Put<PoolView>),
    /// Pools.
    Pools(Listed<PoolView>),
    /// To a sync.
    Synced(Synced),
    /// Resources, their data still empty.
    Resources(Listed<ResourceView>),
    /// Workers.
    Workers(Listed<WorkerView>),
    /// Totals.
    Stats(Stats),
    /// To audit.
    Audit(Audit),
    /// To `StatesOf`, in its order; `None` for a job that is not waiting.
    States(Vec<Option<JobState>>),
}

/// What steps did since the last drain.
#[derive(Debug, Default)]
pub struct Effects {
    /// Rows to write, in one durable batch.
    pub rows: Rows,
    /// What happened, with the namespace.
    pub facts: Vec<(Namespace, Fact)>,
    /// What waiting calls are answered, once the rows are durable.
    pub deliveries: Vec<(Namespace, Delivery)>,
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
    spaces: BTreeMap<Namespace, Space>,
    next_seq: Seq,
    /// Bytes of archived jobs: failed, and others.
    kept: [u64; 2],
}

impl Machine {
    /// A machine that knows nothing yet.
    pub fn new(config: Config) -> Self {
        Machine { config, spaces: BTreeMap::new(), next_seq: 1, kept: [0, 0] }
    }

    fn space(&mut self, namespace: &Namespace) -> &mut Space {
        if !self.spaces.contains_key(namespace) {
            self.spaces
                .insert(namespace.clone(), new_space(namespace.clone(), self.config.patience));
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
        let mut next_seq = self.next_seq;
        let space = self.space(namespace);
        let done = if let Command::Tick = command {
            space.tick(clock, rest);
            Ok(Done::Nothing)
        } else {
            let now = space.advance(clock);
            space.run(command, &mut next_seq, rest, now)
        };
        let now = space.last;
        space.serve(now);
        self.next_seq = next_seq;
        done
    }

    /// Ticks every namespace that is due.
    pub fn tick(&mut self, clock: Moment, rest: &dyn Rest) {
        let due: Vec<Namespace> = self
            .spaces
            .iter()
            .filter(|(_, space)| {
                space.next_due().is_some_and(|at| at <= clock || behind(space, clock))
            })
            .map(|(name, _)| name.clone())
            .collect();
        for namespace in due {
            // A tick refuses nothing.
            let _ = self.apply(&namespace, Command::Tick, clock, rest);
        }
        self.keep_budget(rest);
    }

    /// The soonest moment at which a tick has something to do.
    pub fn next_due(&self) -> Option<Moment> {
        self.spaces.values().filter_map(Space::next_due).min()
    }

    /// By how much the clock is behind what was seen, if that is worth telling.
    pub fn clock_behind(&self) -> Option<Span> {
        self.spaces.values().filter_map(|space| space.behind).max()
    }

    /// Takes what steps did since the last time.
    pub fn drain(&mut self) -> Effects {
        let mut effects = Effects::default();
        for (name, space) in &mut self.spaces {
            let Rows { jobs, errors, other, data } = space.drain_rows();
            effects.rows.jobs.extend(jobs);
            effects.rows.errors.extend(errors);
            effects.rows.other.extend(other);
            effects.rows.data.extend(data);
            for (state, bytes) in space.out.archived.drain(..) {
                self.kept[class_index(state)] += bytes;
            }
            for (state, bytes) in space.out.purged.drain(..) {
                let kept = &mut self.kept[class_index(state)];
                *kept = kept.saturating_sub(bytes);
            }
            effects.facts.extend(space.out.facts.drain(..).map(|fact| (name.clone(), fact)));
            let deliveries = space.out.deliveries.drain(..);
            effects.deliveries.extend(deliveries.map(|delivery| (name.clone(), delivery)));
        }
        effects
    }

    /// Within the byte budget what would go soonest goes first, and failed jobs own half of it: an
    /// hour of successes does not evict yesterday's failures.
    fn keep_budget(&mut self, rest: &dyn Rest) {
        let [failed, ended] = self.kept;
        // What this very tick purged is in the archive still: nothing may be dropped twice. The
        // budget is looked at again once that is drained.
        let purged = self.spaces.values().any(|space| !space.out.purged.is_empty());
        if purged || failed + ended <= self.config.retain_bytes {
            return;
        }
        let class =
            if failed > self.config.retain_bytes / 2 { Class::Failed } else { Class::Ended };
        let mut over = failed + ended - self.config.retain_bytes;
        for (namespace, job) in rest.soonest(class, TICK_MAX) {
            if over == 0 {
                break;
            }
            over = over.saturating_sub(u64::from(job.bytes));
            self.space(&namespace).forget_archived(&job);
        }
    }

    /// Whether finished jobs take more than their budget: a tick is due now.
    pub fn over_budget(&self) -> bool {
        self.kept[0] + self.kept[1] > self.config.retain_bytes
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
        self.next_seq = self.next_seq.max(row.seq + 1);
        let space = self.space(&namespace);
        let now = space.last;
        space.restore_job(row, now)
    }

    /// Takes how many finished jobs of a queue there are, and their bytes.
    pub fn restore_finished(
        &mut self,
        namespace: &Namespace,
        queue: &crate::names::QueueName,
        state: JobState,
        jobs: u64,
        bytes: u64,
    ) {
        self.kept[class_index(state)] += bytes;
        let space = self.space(namespace);
        let known = space.queue_by_name.contains_key(queue);
        let now = space.last;
        let slot = space.queue_for(queue, now);
        let q = &mut space.queues[slot];
        // A queue without a row was deleted; only its finished jobs are still kept.
        q.hidden |= !known;
        match state {
            JobState::Succeeded => q.counts.succeeded += jobs,
            JobState::Failed => q.counts.failed += jobs,
            _ => q.counts.cancelled += jobs,
        }
    }

    /// After the last row. `last_seq` is the highest row number ever used.
    pub fn restored(&mut self, last_seq: Seq, clock: Moment) {
        self.next_seq = self.next_seq.max(last_seq + 1);
        for space in self.spaces.values_mut() {
            space.restored(clock);
        }
    }

    // ---- For tests ----

    /// The rows that would make this machine anew, in text: two machines that know the same durable
    /// things have the same.
    pub fn durable(&self, now: Moment) -> Vec<String> {
        self.spaces.values().flat_map(|space| space.durable(now)).collect()
    }

    /// Checks every namespace.
    pub fn audit(&self, now: Moment) -> Audit {
        let mut all = Audit { ok: true, ..Audit::default() };
        for space in self.spaces.values() {
            let audit = space.audit(now.max(space.last));
            all.ok &= audit.ok;
            all.checked += audit.checked;
            all.faults.extend(audit.faults);
        }
        all
    }
}

fn behind(space: &Space, clock: Moment) -> bool {
    space.last.since(clock) > Span::from_us(crate::bounds::CLOCK_BEHIND_LOUD_US)
}

fn class_index(state: JobState) -> usize {
    usize::from(state != JobState::Failed)
}

impl Space {
    fn run(
        &mut self,
        command: Command,
        next_seq: &mut Seq,
        rest: &dyn Rest,
        now: Moment,
    ) -> Result<Done, Refusal> {
        Ok(match command {
            Command::Request(request) => return self.answer(request, next_seq, rest, now),
            Command::Lease(ask, taker) => Done::Lease(self.lease(&ask, taker, now)?),
            Command::DropWait(taker) => {
                self.drop_wait(taker, now);
                Done::Nothing
            }
            Command::Undo(fences) => {
                self.undo(&fences, now);
                Done::Nothing
            }
            Command::CancelMany(seqs) => Done::Many(self.cancel_many(&seqs, now)),
            Command::RetryMany(seqs) => Done::Many(self.retry_many(&seqs, rest, now)),
            Command::Locate(job) => {
                let (seq, state) = self.locate(&job, rest)?;
                Done::Job(seq, state)
            }
            Command::StatesOf(seqs) => Done::States(
                seqs.iter().map(|seq| Some(self.state_of(self.job_by_seq(*seq)?))).collect(),
            ),
            Command::Tick => Done::Nothing,
        })
    }

    fn shown(&self, seq: Seq) -> Done {
        let state = self.job_by_seq(seq).map(|slot| self.state_of(slot));
        Done::Job(seq, state.unwrap_or(JobState::Ready))
    }

    fn answer(
        &mut self,
        request: Request,
        next_seq: &mut Seq,
        rest: &dyn Rest,
        now: Moment,
    ) -> Result<Done, Refusal> {
        let has_data = |key: &DataKey, data: &Json| rest.has_data(key, data);
        Ok(match request {
            Request::Push(push) => Done::Pushed(self.push(push.jobs, next_seq, rest, now)?),
            Request::GetJob(get) => {
                let (seq, state) = self.locate(&get.job, rest)?;
                Done::Job(seq, state)
            }
            Request::PatchJob(patch) => {
                let seq = self.patch(patch, rest, now)?;
                self.shown(seq)
            }
            Request::DeleteJob(delete) => {
                self.delete(&delete.job, rest, now)?;
                Done::Nothing
            }
            Request::CancelJob(cancel) => {
                let seq = self.cancel(&cancel.job, rest, now)?;
                self.shown(seq)
            }
            Request::RetryJob(retry) => {
                let seq = self.retry(&retry.job, retry.finished_at, rest, now)?;
                self.shown(seq)
            }
            Request::RunJobNow(run) => {
                let seq = self.run_now(&run.job, rest, now)?;
                self.shown(seq)
            }
            Request::ExplainJob(explain) => {
                Done::Explained(match self.named(&explain.job, rest)? {
                    crate::ops::cancel::Named::Live(slot) => self.explain(slot, now),
                    crate::ops::cancel::Named::Finished(job) => {
                        Space::explain_finished(job.id, job.state)
                    }
                })
            }
            Request::Extend(extend) => Done::Extended(self.extend(extend, now)),
            Request::Settle(settle) => {
                Done::Settled(self.settle(settle.settle, next_seq, rest, now)?)
            }
            Request::ListLeases(list) => Done::Leases(self.list_leases(&list)),
            Request::ForceLease(force) => {
                self.force(&force.lease, now)?;
                Done::Nothing
            }
            Request::ListQueues(list) => Done::Queues(self.list_queues(&list.page, now)),
            Request::GetQueue(get) => {
                let queue = self.queue_named(&get.queue)?;
                self.queue_done(queue, false, now)?
            }
            Request::PutQueue(put) => {
                let (queue, created) = self.put_queue(put, now)?;
                self.queue_done(queue, created, now)?
            }
            Request::PatchQueue(patch) => {
                let (queue, created) = self.patch_queue(patch, now)?;
                self.queue_done(queue, created, now)?
            }
            Request::DeleteQueue(delete) => {
                self.delete_queue(&delete.queue)?;
                Done::Nothing
            }
            Request::PauseQueue(pause) => {
                let queue = self.pause_queue(&pause.queue, pause.until, now);
                self.queue_done(queue, false, now)?
            }
            Request::ResumeQueue(resume) => {
                let queue = self.resume_queue(&resume.queue)?;
                self.queue_done(queue, false, now)?
            }
            Request::ListLimits(list) => Done::Limits(self.list_limits(&list.page, now)),
            Request::GetLimit(get) => {
                if !self.limit_is_known(&get.limit) {
                    return Err(crate::ops::limits::limit_not_found(&get.limit));
                }
                self.limit_done(&get.limit, false, now)
            }
            Request::PutLimit(put) => {
                let name = put.limit.clone();
                let created = self.put_limit(put, now)?;
                self.limit_done(&name, created, now)
            }
            Request::PatchLimit(patch) => {
                let name = patch.limit.clone();
                let created = self.patch_limit(patch, now)?;
                self.limit_done(&name, created, now)
            }
            Request::DeleteLimit(delete) => {
                self.delete_limit(&delete.limit, now)?;
                Done::Nothing
            }
            Request::PauseLimit(pause) => {
                self.pause_limit(&pause.limit, pause.until, now)?;
                self.limit_done(&pause.limit, false, now)
            }
            Request::ResumeLimit(resume) => {
                self.resume_limit(&resume.limit, now)?;
                self.limit_done(&resume.limit, false, now)
            }
            Request::ObserveLimit(observe) => {
                let name = observe.limit.clone();
                self.observe_limit(observe, now)?;
                self.limit_done(&name, false, now)
            }
            Request::ListPools(list) => Done::Pools(self.list_pools(&list.page)),
            Request::GetPool(get) => {
                let pool = self.pool_named(&get.pool)?;
                Done::Pool(Put { view: self.pool_view(pool), created: false })
            }
            Request::PutPool(put) => {
                let (pool, created) = self.put_pool(put, now);
                Done::Pool(Put { view: self.pool_view(pool), created })
            }
            Request::PatchPool(patch) => {
                let (pool, created) = self.patch_pool(patch, now);
                Done::Pool(Put { view: self.pool_view(pool), created })
            }
            Request::DeletePool(delete) => {
                self.delete_pool(&delete.pool, now)?;
                Done::Nothing
            }
            Request::SyncResources(sync) => {
                Done::Synced(self.sync_resources(sync, &has_data, now)?)
            }
            Request::AddResources(add) => {
                let slots = self.add_resources(add, &has_data, now);
                let items = slots.iter().map(|slot| self.resource_view(*slot, now)).collect();
                Done::Resources(Listed { items, next: None, partial: false })
            }
            Request::ListResources(list) => {
                let pool = self.pool_named(&list.pool)?;
                Done::Resources(self.list_resources(pool, &list.page, now))
            }
            Request::GetResource(get) => {
                let slot = self.resource_named(&get.pool, &get.resource)?;
                self.resource_done(slot, now)
            }
            Request::PatchResource(patch) => {
                let slot = self.patch_resource(patch, now)?;
                self.resource_done(slot, now)
            }
            Request::DeleteResource(delete) => {
                self.delete_resource(&delete.pool, &delete.resource, now)?;
                Done::Nothing
            }
            Request::CoolResource(cool) => {
                let slot = self.cool_resource(cool, now)?;
                self.resource_done(slot, now)
            }
            Request::BanResource(ban) => {
                let slot = self.ban_resource(ban, now)?;
                self.resource_done(slot, now)
            }
            Request::RestoreResource(restore) => {
                let slot = self.restore_resource(&restore.pool, &restore.resource, now)?;
                self.resource_done(slot, now)
            }
            Request::ListWorkers(list) => Done::Workers(self.list_workers(&list.page, now)),
            Request::GetStats(_) => Done::Stats(self.stats()),
            Request::RunAudit(_) => Done::Audit(self.audit(now)),
            // These are read from rows, or come as commands of their own.
            Request::ListJobs(_)
            | Request::CancelJobs(_)
            | Request::RetryJobs(_)
            | Request::Lease(_) => Done::Nothing,
        })
    }

    fn queue_done(&self, queue: u32, created: bool, now: Moment) -> Result<Done, Refusal> {
        let view = self.queue_view(queue, now);
        match view {
            Some(view) => Ok(Done::Queue(Put { view, created })),
            None => panic!("a queue that was just found is not there"),
        }
    }

    fn limit_done(&self, name: &crate::names::LimitName, created: bool, now: Moment) -> Done {
        Done::Limit(Put { view: self.limit_view(name, true, now), created })
    }

    fn resource_done(&self, slot: u32, now: Moment) -> Done {
        let items = vec![self.resource_view(slot, now)];
        Done::Resources(Listed { items, next: None, partial: false })
    }

    fn durable(&self, now: Moment) -> Vec<String> {
        let mut all = Vec::new();
        let mut jobs: Vec<(JobId, String)> = self
            .jobs
            .iter()
            .map(|(slot, job)| {
                let mut life = self.life_of(slot);
                // Of a lease its end is not a row.
                life.bytes = 0;
                (job.id.clone(), format!("{} {:?} {life:?}", self.name, self.state_name(slot)))
            })
            .collect();
        jobs.sort();
        all.extend(jobs.into_iter().map(|(id, text)| format!("{id} {text}")));
        for (fence, lease) in &self.leases {
            all.push(format!("lease {fence} {:?} {:?}", lease.seq, self.stored_lease(*fence)));
        }
        for (name, settings) in &self.limit_settings {
            all.push(format!("setting {name} {settings:?}"));
        }
        for (name, slot) in &self.limit_by_name {
            let l = &self.limits[*slot];
            if l.in_use > 0
                || l.resting_sum > 0
                || l.external > 0
                || l.paused_until.is_some()
                || l.tat > now
            {
                let tat = l.tat.max(now);
                all.push(format!(
                    "limit {name} {} {:?} {} {:?} {tat} {:?}",
                    l.in_use, l.resting, l.external, l.external_until, l.paused_until
                ));
            }
        }
        for (name, slot) in &self.queue_by_name {
            let q = &self.queues[*slot];
            if !q.hidden {
                let c = &q.counts;
                all.push(format!(
                    "queue {name} {:?} {:?} {:?}",
                    q.settings,
                    q.paused_until,
                    (c.scheduled, c.waiting, c.running, c.succeeded, c.failed, c.cancelled)
                ));
            }
        }
        for (name, slot) in &self.pool_by_name {
            let p = &self.pools[*slot];
            let Some(settings) = &p.settings else { continue };
            all.push(format!("pool {name} {settings:?} {} {}", p.version, p.generation));
            for (id, slot) in &p.resources {
                let r = &self.resources[*slot];
                let mut holders = r.holders.clone();
                holders.sort_unstable();
                all.push(format!(
                    "resource {id} {:?} {} {:?} {:?} {holders:?} {} {} {:?} {}",
                    r.tags, r.slots, r.state, r.reason, r.uses, r.used, r.last_used_at, r.retiring
                ));
            }
        }
        let mut keys: Vec<String> =
            self.keys.iter().map(|(key, holder)| format!("key {key} {holder:?}")).collect();
        keys.sort();
        all.extend(keys);
        all.push(format!("numbers {} {} {}", self.fence, self.arrival, self.used));
        all
    }

    fn state_name(&self, slot: u32) -> &'static str {
        match self.jobs[slot].stand {
            state::Stand::Scheduled => "scheduled",
            state::Stand::Waiting(_) => "waiting",
            state::Stand::Running(_) => "running",
        }
    }
}

fn new_space(name: Namespace, patience: Span) -> Space {
    let mut queues = slots::Slots::default();
    let callers = queues.insert(Queue {
        name: None,
        settings: Default::default(),
        paused_until: None,
        priorities: Default::default(),
        counts: Default::default(),
        takers: Default::default(),
        asked_at: None,
        limit: None,
        place: Place::Open,
        out: None,
        hidden: true,
        since: Moment::ZERO,
    });
    debug_assert_eq!(callers, CALLERS);
    Space {
        name,
        patience,
        last: Moment::ZERO,
        pulse: Moment::ZERO,
        deaf_at: Moment::ZERO,
        behind: None,
        fence: 0,
        arrival: 0,
        used: 0,
        jobs: Default::default(),
        by_id: Default::default(),
        by_seq: Default::default(),
        shapes: Default::default(),
        shape_by_bytes: Default::default(),
        due: Default::default(),
        expiring: Default::default(),
        keys: Default::default(),
        key_ends: Default::default(),
        purge_at: None,
        queues,
        queue_by_name: Default::default(),
        queue_pauses: Default::default(),
        groups: Default::default(),
        bundles: Default::default(),
        lanes: Default::default(),
        lane_by_key: Default::default(),
        doors: Default::default(),
        pending: Default::default(),
        families: Default::default(),
        door_timers: Default::default(),
        touched: Default::default(),
        impatient: Default::default(),
        marks: Default::default(),
        limit_settings: Default::default(),
        settings_generation: 0,
        limits: Default::default(),
        limit_by_name: Default::default(),
        limit_timers: Default::default(),
        pools: Default::default(),
        pool_by_name: Default::default(),
        resources: Default::default(),
        resource_timers: Default::default(),
        leases: Default::default(),
        expiries: Default::default(),
        deadlines: Default::default(),
        requests: Default::default(),
        request_ends: Default::default(),
        stubs: Default::default(),
        stub_ends: Default::default(),
        takers: Default::default(),
        callers: Default::default(),
        caller_by_taker: Default::default(),
        waiting_requests: Default::default(),
        waits: Default::default(),
        places: Default::default(),
        place_ends: Default::default(),
        workers: Default::default(),
        worker_ends: Default::default(),
        holding: Default::default(),
        out: Default::default(),
    }
}
