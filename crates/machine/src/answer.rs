//! Dispatch of commands to steps. `ops` has the step of each operation, beside the rules of its subject; this module
//! has the context and the answers of steps.
//!
//! A step finds the things in its request, changes them, and returns the machine's part of the reply. This is the whole
//! reply, unless the reply shows data that only rows have.

use crate::rows::stored::Stands;
use crate::state::{Seq, Space};
use crate::{ChangeMany, Command, Done, Rest};
use tenure_core::lease::Explained;
use tenure_core::names::{JobRef, PoolName};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Audited, Operation, Request, Stats};
use tenure_core::time::Moment;

/// The context of one step.
pub struct Context<'a> {
    pub(crate) space: &'a mut Space,
    pub(crate) now: Moment,
    /// The row number of the next job.
    pub(crate) next_seq: &'a mut Seq,
    /// Access to data that only rows have.
    pub(crate) rest: &'a dyn Rest,
}

/// The step of an operation in a namespace.
pub trait Act: Operation {
    /// The machine's part of the reply.
    type Known: Send + 'static;
    /// First makes all checks that can refuse, then changes the namespace.
    fn act(self, context: Context<'_>) -> Result<Self::Known, Refusal>;
}

/// Declares the [`Act`] of operations: each its request, its [`Act::Known`], and its rule as a closure of the request and
/// the [`Context`].
macro_rules! acts {
    ($($request:ident => $known:ty, |$ask:pat_param, $at:pat_param| $does:expr;)+) => {
        $(impl $crate::answer::Act for $request {
            type Known = $known;
            fn act(
                self,
                $at: $crate::answer::Context<'_>,
            ) -> Result<$known, tenure_core::refusal::Refusal> {
                let $ask = self;
                $does
            }
        })+
    };
}
pub(crate) use acts;

macro_rules! known {
    ($($request:ident)*) => {
        /// The machine's part of the reply to a request; the variant is that of the request. The engine completes it,
        /// so that no operation can get another's reply.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Known {
            $($request(<tenure_core::requests::$request as Act>::Known)),*
        }

        fn act(request: Request, context: Context<'_>) -> Result<Known, Refusal> {
            match request {
                $(Request::$request(request) => request.act(context).map(Known::$request)),*
            }
        }
    };
}
tenure_core::each_operation!(known);

/// A job to show; its data is in its row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobAt {
    /// The job as the request names it.
    pub job: JobRef,
    /// The row number of the job.
    pub seq: Seq,
    /// The part of its state that is not in its row.
    pub stands: Stands,
}

/// A view of resources of a pool, still without their data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WithoutData<T> {
    pub pool: PoolName,
    /// The reply, with empty data.
    pub reply: T,
}

/// The reasons why a job waits; for a finished job only its row has more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExplainedAt(pub Explained, pub JobAt);

/// Totals, without the numbers that only the engine knows about its store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Totals(pub Stats);

/// The findings of the machine; with `deep` the engine also reads all rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compared {
    /// Faults that were found in memory.
    pub found: Audited,
    /// Copied from the request.
    pub deep: bool,
}

/// The part for a request that only rows answer, or that the engine turns into a command of its own. An engine that
/// shows this to a caller has a bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Elsewhere;

impl Space {
    /// Runs one command that is not a tick.
    pub(super) fn run(
        &mut self,
        command: Command,
        next_seq: &mut Seq,
        rest: &dyn Rest,
        now: Moment,
    ) -> Result<Done, Refusal> {
        Ok(match command {
            Command::Request(request) => {
                Done::Request(act(request, Context { space: self, now, next_seq, rest })?)
            }
            Command::By(caller, command) => {
                let from = self.outbox.events.len();
                let done = self.run(*command, next_seq, rest, now)?;
                self.outbox.name_caller(from, &caller);
                done
            }
            Command::Lease(ask, taker) => Done::Lease(self.lease(&ask, taker, now)?),
            Command::WaitForResult(wait) => Done::Result(self.wait_for_result(&wait, rest, now)?),
            Command::WaitForFlow(wait) => Done::Flow(self.wait_for_flow(&wait, now)?),
            Command::DropWait(taker) => {
                self.drop_wait(taker, now);
                Done::Nothing
            }
            Command::Undo(fences) => {
                self.undo(&fences, now);
                Done::Nothing
            }
            Command::ChangeMany(ChangeMany { change, filter, seen }) => {
                Done::Many(self.change_many(change, &filter, &seen, rest, now))
            }
            Command::StatesOf(seqs) => Done::States(self.states_of(&seqs)),
            Command::Plan(plan) => {
                self.plan(plan, now);
                Done::Nothing
            }
            Command::Fire => {
                self.fire(next_seq, rest, now);
                Done::Nothing
            }
            Command::ClaimGauges { reader, others } => {
                Done::Claimed(self.claim_gauges(&reader, &others, now))
            }
            Command::TakeReading(reading) => {
                self.take_reading(reading, now);
                Done::Nothing
            }
            Command::Tick { .. } => Done::Nothing,
        })
    }
}
