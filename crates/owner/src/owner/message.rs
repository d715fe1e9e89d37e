//! What an owner hears, and what it has done.

use tenure_core::time::{Moment, Span};

use crate::ids::{Epoch, Generation, RunId, ServerId, StoreId, Tip};
use crate::scripts::{Own, Ownership, ScriptCall, ScriptReply, SnapshotName};

/// What happened.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Input {
    /// The servers that are registered or known, without this one.
    Others(Vec<ServerId>),
    /// The highest entry that the rows of this server have, or that a registered server says it has; 0: none.
    Known(u64),
    /// Time has passed.
    Time,
    /// The reply to [`Action::Look`].
    Looked {
        /// `{NAME}:store`.
        store: Option<StoreId>,
        /// `{NAME}:own`.
        own: Option<Box<Own>>,
        /// The run of the Redis that was asked.
        run: RunId,
        /// Its TIME.
        time: Moment,
    },
    /// The answer to [`Action::AskServer`].
    Heard {
        /// Who was asked.
        from: ServerId,
        /// What came.
        word: ServerWord,
    },
    /// The reply to [`Action::Call`], confirmed by as many replicas as the store's settings ask for.
    Replied {
        /// The number of the call.
        call: u64,
        /// What the script answered.
        reply: ScriptReply,
        /// The TIME of the reply, if it says one: that of an acquisition does, and that of an append that beats.
        time: Option<Moment>,
    },
    /// No reply to [`Action::Call`]: the connection broke, it took too long, or too few replicas confirmed it.
    Unsure {
        /// The number of the call.
        call: u64,
    },
    /// [`Action::Load`] is through: numbers without holes, checksums chained.
    Loaded {
        /// The last entry that was read.
        tip: Tip,
    },
    /// [`Action::Load`] could not be done.
    LoadFailed {
        /// Something is missing or broken; otherwise the store changed meanwhile.
        damaged: bool,
    },
    /// The machine closed a batch, whose answers and those decided before have tickets up to `ticket`.
    Decided {
        /// Chained over the entry before.
        checksum: u64,
        /// The last ticket.
        ticket: u64,
        /// The longest time to live that was granted.
        ttl: Span,
        /// The batch granted leases.
        grants: bool,
    },
    /// The machine decided an answer that changed no rows, or rows were read from the file.
    AnswerWaits {
        /// Its ticket.
        ticket: u64,
    },
    /// The log is long enough for a new snapshot.
    SnapshotDue,
    /// All pieces of a snapshot are written.
    SnapshotWritten {
        /// Its name.
        generation: Generation,
        /// How many there are.
        pieces: u32,
        /// The last entry that it contains: none before the last that was sent, and one that was decided.
        tip: Tip,
    },
    /// A piece of a snapshot was not taken.
    SnapshotFailed {
        /// Its name.
        generation: Generation,
        /// What the script answered.
        reply: ScriptReply,
    },
    /// The engine could not be opened with what was loaded, or cannot go on.
    CannotServe {
        /// Who gets the store; `None`: nobody is known.
        to: Option<ServerId>,
    },
    /// The process was asked to end.
    End {
        /// The standby that is furthest, if there is one.
        to: Option<ServerId>,
    },
}

/// What comes of asking a server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ServerWord {
    /// It answered.
    Says {
        /// It owns the store and serves.
        serves: bool,
        /// The last epoch at which it served; 0 for never.
        served: Epoch,
    },
    /// Its address refused the connection, or another process answered.
    Refused,
    /// It did not answer within 500 ms.
    Silent,
}

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Read `store` and `own`.
    Look,
    /// Write the id of the store, if it has none, and the longest time to live that is known.
    NameStore(StoreId, Span),
    /// Run a script. A body is there where bytes are to be filled in: those of the entry of that number.
    Call {
        /// To which the reply refers.
        number: u64,
        /// What is called.
        call: ScriptCall<()>,
    },
    /// Ask a server whether it serves, and when it last did.
    AskServer(ServerId),
    /// Read the snapshot and the log that `own` names.
    Load(Box<Own>),
    /// Open the machine with what was loaded, give every lease its whole ttl from now, and take calls.
    Serve,
    /// Write all pieces of a snapshot of what is decided now, or a moment later.
    WriteSnapshot {
        /// Under whose fence.
        by: Ownership,
        /// Its name.
        generation: Generation,
    },
    /// Unlink the pieces of a snapshot that nothing names any more.
    UnlinkSnapshot {
        /// Under whose fence.
        by: Ownership,
        /// Which.
        snapshot: SnapshotName,
    },
    /// Let out the answers whose tickets are not above this one.
    Release {
        /// The last ticket.
        up_to: u64,
    },
    /// The recovery is over: leases end and locks are granted again.
    RecoveryOver,
    /// The wall clock leapt ahead by this much.
    ClockLeapt(Span),
    /// As [`Action::DropAll`]; but nobody has taken the store. What was decided is in it, and is read from there.
    Reload,
    /// Drop memory, file and unsent batches; tell the callers of the batch `outcome_unknown`, pass all others on.
    DropAll,
    /// Take back the entry that was in flight. Only a left-out rule says this.
    Undo {
        /// Its number.
        number: u64,
    },
    /// Pass calls on to this server.
    PassOn(ServerId),
    /// Say so in the log and at `/readyz`.
    Warn(Warning),
    /// End the process.
    End,
}

/// What an operator must hear of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Warning {
    /// The store that this server owns is gone or older than it was. Until [`Action::RecoveryOver`] nothing is reaped, and nothing
    /// exclusive granted.
    StoreForgot,
    /// Another store lies where this one was. Nothing is written to it.
    OtherStore,
    /// Answered entries may be lost; for the largest ttl nothing is reaped, and nothing exclusive granted.
    Recovering,
    /// The journal cannot be read as a whole.
    Damaged,
}
