//! Messages of the election state machine: inputs and actions.

use tenure_core::time::{Moment, Span};

use crate::ids::{Epoch, Generation, RunId, ServerId, StoreId, Tip};
use crate::scripts::{Own, ScriptCall, ScriptReply, SnapshotName, Term};

/// An input of the state machine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Input {
    /// The servers that are registered or known, without this one.
    Others(Vec<ServerId>),
    /// The highest entry in the rows of this server, or of a registered server by its own report; 0: none.
    Known(u64),
    /// The monotonic clock has moved on; due at `Election::wakes_at` at the latest.
    Time,
    /// The reply to [`Action::Look`].
    Looked {
        /// The content of `{NAME}:store`.
        store: Option<StoreId>,
        /// The content of `{NAME}:own`.
        own: Option<Box<Own>>,
        /// The run id of the Redis that answered.
        run: RunId,
        /// Redis's time, in the same reply.
        time: Moment,
    },
    /// The answer to [`Action::AskServer`].
    Heard {
        /// The server that was asked.
        from: ServerId,
        /// Its answer, or the failure to get one.
        word: ServerWord,
    },
    /// The reply to [`Action::Call`], confirmed by the required number of replicas.
    Replied {
        /// The number of the call.
        call: u64,
        /// The reply of the script.
        reply: ScriptReply,
        /// Redis's time in the reply: always for an acquisition, and for an append with a heartbeat.
        time: Option<Moment>,
    },
    /// No reply to [`Action::Call`]: the connection broke, it took too long, or too few replicas confirmed it.
    Unsure {
        /// The number of the call.
        call: u64,
    },
    /// [`Action::Load`] is complete: numbers without gaps, checksums chained.
    Loaded {
        /// The last entry that was read.
        tip: Tip,
    },
    /// [`Action::Load`] could not be done.
    LoadFailed {
        /// True if a part is missing or broken; otherwise the store changed meanwhile.
        damaged: bool,
    },
    /// The machine closed a batch; its answers, and earlier ones, have tickets up to `ticket`.
    Decided {
        /// Chained to the entry before.
        checksum: u64,
        /// The last ticket of the batch.
        ticket: u64,
        /// The longest ttl that was granted.
        ttl: Span,
        /// True if the batch granted leases.
        grants: bool,
    },
    /// The machine decided an answer without a change of rows, or rows were read from the file.
    AnswerWaits {
        /// The ticket of the answer.
        ticket: u64,
    },
    /// The log is long enough for a new snapshot.
    SnapshotDue,
    /// All pieces of a snapshot are written.
    SnapshotWritten {
        /// The epoch and counter that name it.
        generation: Generation,
        /// The number of pieces.
        pieces: u32,
        /// The last entry in it: not before the last one that was sent, and already decided.
        tip: Tip,
    },
    /// Redis refused a piece of a snapshot.
    SnapshotFailed {
        /// The epoch and counter that name it.
        generation: Generation,
        /// The reply of the script.
        reply: ScriptReply,
    },
    /// The engine could not be opened with the loaded rows, or cannot go on.
    CannotServe {
        /// The next leader; `None`: no other server is known.
        to: Option<ServerId>,
    },
    /// The process was asked to end.
    End {
        /// The most advanced follower, if there is one.
        to: Option<ServerId>,
    },
}

/// The result of asking a server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ServerWord {
    /// The server answered in time.
    Says {
        /// It leads the store and serves.
        serves: bool,
        /// The last epoch at which it served; 0 for never.
        served: Epoch,
    },
    /// Its address refused the connection, or another process answered.
    Refused,
    /// It did not answer within 500 ms.
    Silent,
}

/// An effect for the driver to run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Read `store` and `own`.
    Look,
    /// Write the id of the store, if it has none, and the longest known ttl.
    NameStore(StoreId, Span),
    /// Run a script. A `body` marks the place for the bytes of the entry with that number.
    Call {
        /// The reply carries the same number.
        number: u64,
        /// The script and its arguments, without bodies.
        call: ScriptCall<()>,
    },
    /// Ask a server whether it serves, and when it last did.
    AskServer(ServerId),
    /// Read the snapshot and the log that `own` names.
    Load(Box<Own>),
    /// Open the machine with the loaded rows, give every lease its whole ttl from now, and accept calls.
    Serve,
    /// Write all pieces of a snapshot of the state that is decided now, or a moment later.
    WriteSnapshot {
        /// The identity for the fence.
        by: Term,
        /// The epoch and counter that name it.
        generation: Generation,
    },
    /// Unlink the pieces of a snapshot that is no longer named.
    UnlinkSnapshot {
        /// The identity for the fence.
        by: Term,
        /// The snapshot to unlink.
        snapshot: SnapshotName,
    },
    /// Send the answers whose tickets are at most this one.
    Release {
        /// The last ticket to release.
        up_to: u64,
    },
    /// The recovery is over: leases end and locks are granted again.
    RecoveryOver,
    /// The wall clock leapt ahead by this much.
    ClockLeapt(Span),
    /// As [`Action::DropAll`], but no other server has taken the store. It has all decided changes; load them from it.
    Reload,
    /// Drop memory, file and unsent batches; answer the callers of the batch `outcome_unknown`, and forward all others.
    DropAll,
    /// Undo the entry that was in flight. Only a left-out rule returns this.
    Undo {
        /// The number of the entry.
        number: u64,
    },
    /// Forward calls to this server.
    PassOn(ServerId),
    /// Report this in the log and at `/readyz`.
    Warn(Warning),
    End,
}

/// Warnings for operators, in the log and at `/readyz`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Warning {
    /// The store that this server leads is gone or older than it was. Until [`Action::RecoveryOver`] there are no reaps
    /// and no exclusive grants.
    StoreForgot,
    /// Another store has replaced this one. Nothing is written to it.
    OtherStore,
    /// Answered entries may be lost; for the largest ttl there are no reaps and no exclusive grants.
    Recovering,
    /// The journal has a gap or damage, and cannot be loaded.
    Damaged,
}
