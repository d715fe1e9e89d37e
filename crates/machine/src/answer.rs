//! Which step a command is. Each operation says its own beside the rules of its subject, in `ops`; here is what such a
//! step is given, and what it answers.
//!
//! A step finds what its request names, does it and tells what the machine knows of the reply. That is the reply of the
//! operation itself, unless it shows what only rows know.

use super::state::{Seq, Space};
use super::stored::Stands;
use super::{ChangeMany, Command, Done, Rest};
use tenure_core::lease::Explained;
use tenure_core::names::{JobRef, PoolName};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Audited, Operation, Request, Stats};
use tenure_core::time::Moment;

/// What a step of an operation is given.
pub struct Context<'a> {
    /// The namespace.
    pub(crate) space: &'a mut Space,
    /// The time.
    pub(crate) now: Moment,
    /// The number of the next job.
    pub(crate) next_seq: &'a mut Seq,
    /// What only rows know.
    pub(crate) rest: &'a dyn Rest,
}

/// What an operation does to a namespace.
pub trait Act: Operation {
    /// What the machine knows of the reply.
    type Known: Send + 'static;
    /// First checks all that can be refused, then changes.
    fn act(self, context: Context<'_>) -> Result<Self::Known, Refusal>;
}

macro_rules! known {
    ($($request:ident)*) => {
        /// What the machine knows of the reply to a request; the variant is that of the request. The engine makes the
        /// reply of it, so that no operation can be answered with another's.
        #[derive(Clone, PartialEq, Debug)]
        #[allow(missing_docs)]
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

/// A job that is shown: only its row knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobAt {
    /// As the request names it.
    pub job: JobRef,
    /// Where its row is.
    pub seq: Seq,
    /// What its row does not know.
    pub stands: Stands,
}

/// What shows resources of a pool, their data still empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WithoutData<T> {
    /// The pool.
    pub pool: PoolName,
    /// The reply.
    pub reply: T,
}

/// What a job waits for; only its row knows more of one that is finished.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExplainedAt(pub Explained, pub JobAt);

/// Totals, without what only the engine knows of its store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Totals(pub Stats);

/// What the machine found; `deep` asks the engine to read all rows too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compared {
    /// What is wrong in memory.
    pub found: Audited,
    /// As the request says.
    pub deep: bool,
}

/// To a request that only rows answer, or that the engine gives as a command of its own. An engine that shows this to a
/// caller has a bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Elsewhere;

impl Space {
    /// Does one command that is not a tick.
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
