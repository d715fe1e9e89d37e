//! The thread that owns the machine: it applies requests one after the other, ticks when
//! something is due, and hands rows and answers on in batches.
//!
//! It must never wait for a sync, for a write of rows or for a caller. A step that names finished jobs or data of
//! resources does read SQLite (`sqlite/read/overlay.rs`).

mod batches;
mod calls;
mod events;
mod facts;
mod gauges;
mod passing;
mod recovery;
mod schedules;
mod steps;
mod time;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::events::EventId;
use tenure_core::names::{FlowName, Namespace};
use tenure_core::refusal::Refusal;
use tenure_core::schedule::PlanWanted;
use tenure_core::time::Moment;
use tenure_engine_api::CallError;
use tenure_machine::rows::RowKey;
use tenure_machine::{Command, Done, Machine, Seq, TakerId};

use self::events::EventStreams;
use self::time::SeenClock;
use crate::batch::{Answer, AnswerHaste, Batch, Pending, Reply};
use crate::inbox::{Ask, Envelope};
use crate::shared::Shared;
use crate::sqlite::read::overlay::Overlay;
use crate::sqlite::watch::LookWhen;

/// A waiting lease call.
struct Waiting {
    namespace: Namespace,
    reply: Reply,
}

/// A call that waits for the end of a job or a flow.
struct AwaitingEnd {
    namespace: Namespace,
    reply: Reply,
    on: AwaitingOn,
}

/// The job or flow whose end a call waits for.
enum AwaitingOn {
    /// The job of this row.
    Result {
        seq: Seq,
        /// The time at which the call is answered in any case.
        until: Moment,
    },
    Flow(FlowName),
}

pub(crate) struct StateThread {
    shared: Arc<Shared>,
    machine: Machine,
    overlay: Overlay,
    batch: Batch,
    /// Earlier batches that are closed, and for which the disk had no room yet.
    closed: VecDeque<Batch>,
    /// The row of the key that seals, until it is written.
    seal_row: Option<RowKey>,
    waiting: HashMap<TakerId, Waiting>,
    /// Calls that wait for the end of a job or a flow.
    awaiting: HashMap<TakerId, AwaitingEnd>,
    /// Calls that have used up their bounded work: they go on behind the calls that came meanwhile.
    again: Vec<Envelope>,
    clock: SeenClock,
    told: facts::FactCounts,
    streams: EventStreams,
    /// Finished jobs take too much, but none could be removed: not retried before something changes.
    stuck: bool,
    /// Schedules that asked for a plan.
    wanted: Vec<(Namespace, PlanWanted)>,
    /// By the monotonic clock: occurrences are decided again no sooner, so that firing leaves half of the time to
    /// others.
    no_fire_before: Duration,
    /// Processes that read usage probes.
    gauge_readers: gauges::GaugeReaders,
}

/// The way in which the thread ends.
pub(crate) enum Ended {
    Closed,
    Crashed,
}

impl StateThread {
    /// `ends` has the newest event of each namespace.
    pub(crate) fn new(
        shared: Arc<Shared>,
        machine: Machine,
        overlay: Overlay,
        ends: HashMap<Namespace, EventId>,
        seal_row: Option<RowKey>,
    ) -> Self {
        StateThread {
            shared,
            machine,
            overlay,
            batch: Batch { number: 1, ..Batch::default() },
            closed: VecDeque::new(),
            seal_row,
            waiting: HashMap::new(),
            awaiting: HashMap::new(),
            again: Vec::new(),
            clock: SeenClock::default(),
            told: facts::FactCounts::default(),
            streams: EventStreams::new(ends),
            stuck: false,
            wanted: Vec::new(),
            no_fire_before: Duration::ZERO,
            gauge_readers: gauges::GaugeReaders::default(),
        }
    }

    /// Runs until the inbox is closed.
    pub(crate) fn run(&mut self) -> Ended {
        let shared = self.shared.clone();
        loop {
            let taken = shared.inbox.take(self.patience(), shared.answers_at_once);
            if taken.crashed {
                return Ended::Crashed;
            }
            // The thread wakes at least once a second, even without calls.
            if let Err(fatal) = shared.look(LookWhen::EverySecond) {
                shared.stop_for(fatal);
            }
            if shared.fatal().is_some() {
                self.refuse(taken.calls);
                if taken.closing {
                    return Ended::Closed;
                }
                continue;
            }
            self.overlay.committed(shared.hand_off.written());
            let again = std::mem::take(&mut self.again);
            for call in again.into_iter().chain(taken.calls) {
                if self.tick() {
                    self.do_asked();
                }
                self.take(call);
                self.hand_on_if_enough();
            }
            self.tick();
            self.do_asked();
            self.hand_on();
            self.told.warn();
            if taken.closing && self.again.is_empty() {
                self.close();
                self.told.sum_up();
                return Ended::Closed;
            }
        }
    }

    /// Does the work that ticks ask for, after each of them and before the next call, so that the order of events does
    /// not depend on how many calls came at once.
    fn do_asked(&mut self) {
        self.gauges();
        self.schedules();
    }

    fn take(&mut self, call: Envelope) {
        let Envelope { namespace, ask, reply } = call;
        match ask {
            Ask::Command(command) => {
                let done = self.apply(&namespace, *command);
                self.answer_step(namespace, reply, done.map(Answer::Done));
            }
            Ask::Push(push) => self.push(namespace, push, reply),
            Ask::Settle(settle) => self.settle(namespace, settle, reply, None),
            Ask::Lease(lease, taker) => self.lease(namespace, lease, taker, reply),
            Ask::SettleAndLease(settle, lease, taker, of_lease) => {
                self.settle(namespace, settle, reply, Some((lease, taker, of_lease)));
            }
            Ask::WaitForResult(wait) => self.wait_for_result(namespace, *wait, reply),
            Ask::WaitForEvents { after, until, taker } => {
                self.wait_for_events(namespace, (after, until), taker, reply);
            }
            Ask::WaitForFlow(wait) => self.wait_for_flow(namespace, *wait, reply),
            Ask::DropWait(taker) => {
                self.waiting.remove(&taker);
                self.awaiting.remove(&taker);
                self.drop_reader(taker);
                let _ = self.apply(&namespace, Command::DropWait(taker));
                self.absorb();
            }
            Ask::Undo(fences) => {
                let _ = self.apply(&namespace, Command::Undo(fences));
                self.absorb();
            }
            Ask::ReadGauges(reader) => self.gauge_readers.add(reader),
            Ask::Pass => self.answer(namespace, reply, Ok(Answer::Done(Done::Nothing))),
            Ask::Drain => self.end_waits(namespace, reply),
            Ask::Settled => {
                self.settle_due();
                self.answer(namespace, reply, Ok(Answer::Done(Done::Nothing)));
            }
            Ask::Recover(span) => {
                self.recover(span);
                self.answer(namespace, reply, Ok(Answer::Done(Done::Nothing)));
            }
            Ask::Doubt(span) => {
                self.doubt(span);
                self.answer(namespace, reply, Ok(Answer::Done(Done::Nothing)));
            }
            Ask::EndRecovery => {
                self.end_recovery();
                self.answer(namespace, reply, Ok(Answer::Done(Done::Nothing)));
            }
            Ask::Configure(config) => {
                self.machine.configure(config);
                self.answer(namespace, reply, Ok(Answer::Done(Done::Nothing)));
            }
            Ask::PassTime(clock, span) => {
                self.pass_time(&clock, span);
                self.answer(namespace, reply, Ok(Answer::Done(Done::Nothing)));
            }
            Ask::Durable => {
                let lines = self.machine.durable(self.shared.clock.now());
                self.answer(namespace, reply, Ok(Answer::Lines(lines)));
            }
        }
    }

    fn apply(&mut self, namespace: &Namespace, command: Command) -> Result<Done, Refusal> {
        let now = self.shared.clock.now();
        self.machine.apply(namespace, command, now, &self.overlay)
    }

    fn answer(
        &mut self,
        namespace: Namespace,
        reply: Option<Reply>,
        answer: Result<Answer, CallError>,
    ) {
        if let Some(reply) = reply {
            self.batch.answer(Pending { namespace, reply, answer }, AnswerHaste::Now);
        }
    }

    /// Takes the rows of a step, and answers the step together with them.
    fn answer_step(
        &mut self,
        namespace: Namespace,
        reply: Option<Reply>,
        done: Result<Answer, Refusal>,
    ) {
        self.absorb();
        self.answer(namespace, reply, done.map_err(CallError::Refused));
    }
}
