//! The scripts of the journal, as pure functions over the keys of one store. They are the specification of the Lua: a
//! test runs the same calls against both and compares.
//!
//! Every call may arrive twice, late or never, and a repeat gets the same answer as the first. Bodies have no meaning
//! here: a [`Keys`] holds bodies of any type.

mod fenced;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use tenure_core::time::{Moment, Span};

use crate::ids::{Epoch, Generation, RunId, ServerId, StoreId, Tip};
use crate::mutant::{Mutant, forgets};

/// All keys of one store, and the run id of their Redis.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Keys<B> {
    /// The id in `{NAME}:store`.
    pub store: Option<StoreId>,
    /// In `{NAME}:store`: the longest ttl that its writer knew. After a loss of `own`, a recovery takes this long.
    pub store_ttl: Span,
    /// The hash `{NAME}:own`; `None` before the first acquisition or after a loss.
    pub own: Option<Own>,
    /// The stream `{NAME}:log`, by number.
    pub log: BTreeMap<u64, Logged<B>>,
    /// The strings `{NAME}:snap:GEN:I`, by snapshot and index.
    pub pieces: BTreeMap<(Generation, u32), B>,
    /// The run id of this Redis.
    pub run: RunId,
}

/// `{NAME}:own`: the leader of the store, and the end of its journal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Own {
    /// The id of the store that this belongs to.
    pub store: StoreId,
    /// Rises with each acquisition.
    pub epoch: Epoch,
    /// The process that leads the store, or is to take over.
    pub leader: ServerId,
    /// The last entry of the journal.
    pub tip: Tip,
    /// The leader's time at its last append. Never falls.
    pub moment: Moment,
    /// Redis's time at the last append with a heartbeat.
    pub beat: Moment,
    /// The run id under which no loss is known. If the Redis has another one, entries may be missing.
    pub noted_run: RunId,
    /// The snapshot that a load begins with.
    pub snapshot: Option<SnapshotName>,
    /// The previous snapshot, whose pieces stay until the next turn, or for a minute.
    pub before: Option<SnapshotName>,
    /// The longest ttl of any lease until now: the length of a recovery.
    pub largest_ttl: Span,
}

/// A snapshot, as `own` describes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SnapshotName {
    /// The epoch and counter that name it.
    pub generation: Generation,
    /// The last entry that it contains.
    pub tip: Tip,
    /// The number of its pieces.
    pub pieces: u32,
}

/// An entry of the log.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Logged<B> {
    /// Chained: over this entry and the checksum before it.
    pub checksum: u64,
    /// The rows of a batch.
    pub body: B,
}

/// The identity of a leader in each of its calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Term {
    /// The store that it leads.
    pub store: StoreId,
    /// The epoch at which it leads the store.
    pub epoch: Epoch,
    /// Its own id, new with each process.
    pub leader: ServerId,
    /// The run id of Redis that it knows.
    pub run: RunId,
}

/// A call of one script.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ScriptCall<B> {
    /// Acquires the store, if epoch, owner and run are still as the caller saw them.
    Acquire(Acquisition),
    /// Writes an entry, or checks that the last one is there.
    Append(Append<B>),
    /// Writes or unlinks one piece of a snapshot.
    Piece(PieceCall<B>),
    /// Installs a snapshot: loads begin with it from now on.
    Turn(SnapshotTurn),
    /// Hands the store to another server.
    Give(HandOver),
}

#[cfg(test)]
impl<B> ScriptCall<B> {
    /// True if the answer must contain Redis's time.
    pub(crate) fn tells_time(&self) -> bool {
        match self {
            ScriptCall::Append(append) => append.beats,
            ScriptCall::Acquire(_)
            | ScriptCall::Piece(_)
            | ScriptCall::Turn(_)
            | ScriptCall::Give(_) => true,
        }
    }
}

/// The arguments of [`ScriptCall::Acquire`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Acquisition {
    /// The id of the store; if there is no store, one is made with this id.
    pub store: StoreId,
    /// Epoch and owner as the caller saw them; `None`: there was no `own`.
    pub seen: Option<(Epoch, ServerId)>,
    /// The run id of Redis that was seen: otherwise a late repeat could find the same epoch and owner again after a
    /// failover, and fence out its own sender.
    pub run: RunId,
    /// The highest epoch that the caller knows; the new epoch is above it.
    pub above: Epoch,
    /// The process that acquires.
    pub leader: ServerId,
    /// True if nothing was here before. If `own` is made and this is false, no run is noted, and the next load
    /// recovers.
    pub is_new: bool,
    /// The longest ttl that the caller knows.
    pub ttl: Span,
}

/// The arguments of [`ScriptCall::Append`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Append<B> {
    /// The identity for the fence.
    pub by: Term,
    /// The number and checksum of this entry; for an empty append, those of the last one.
    pub tip: Tip,
    /// The rows; `None` for an empty append.
    pub body: Option<B>,
    /// The leader's time at this append.
    pub moment: Moment,
    /// The longest ttl that the leader has granted.
    pub ttl: Span,
    /// The change of the noted run.
    pub note: RunNote,
    /// True if the append writes Redis's time as the leader's heartbeat, and returns it.
    pub beats: bool,
}

/// The change that an append or a turn makes to the noted run of Redis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RunNote {
    /// The noted run does not change.
    Stays,
    /// Nothing is missing under this run from now on.
    Whole,
    /// Entries may be missing even if this run is noted: no run is noted, so the next leader recovers too.
    Lossy,
}

/// The arguments of [`ScriptCall::Piece`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PieceCall<B> {
    /// The identity for the fence.
    pub by: Term,
    /// The name of the snapshot.
    pub generation: Generation,
    /// The index of the piece, from 0.
    pub index: u32,
    /// The content; `None` unlinks the piece.
    pub body: Option<B>,
}

/// The arguments of [`ScriptCall::Turn`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SnapshotTurn {
    /// The identity for the fence.
    pub by: Term,
    /// The snapshot; all of its pieces are written.
    pub snapshot: SnapshotName,
    /// True for a rebuild: the journal ends with this snapshot, and the log is dropped. Otherwise the entries behind
    /// the snapshot stay.
    pub heals: bool,
    /// The leader's time at this turn.
    pub moment: Moment,
    /// The longest ttl that the leader has granted.
    pub ttl: Span,
    /// The change of the noted run; `Stays` without `heals`.
    pub note: RunNote,
}

/// The arguments of [`ScriptCall::Give`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HandOver {
    /// The identity for the fence.
    pub by: Term,
    /// The last entry, which the journal must end with.
    pub tip: Tip,
    /// The server that becomes the leader.
    pub to: ServerId,
}

/// The reply of a script.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ScriptReply {
    /// Done, now or earlier.
    Done,
    /// The caller leads the store, with this `own` and this run of Redis.
    Acquired(Box<Own>, RunId),
    /// Epoch, owner or run have changed since the caller saw them.
    NotAsSeen,
    /// Another server leads the store at a later epoch, or this number has different content.
    Fenced,
    /// This is not the store that the caller led: it lost data, it is another one, or it is in another run.
    Moved,
    /// The journal ends with this number.
    At(u64),
    /// `own` names the snapshot, or pieces of it are missing.
    Refused,
}

impl<B: Clone> Keys<B> {
    /// A Redis without any key of the store.
    pub fn empty(run: RunId) -> Self {
        Keys {
            store: None,
            store_ttl: Span::ZERO,
            own: None,
            log: BTreeMap::new(),
            pieces: BTreeMap::new(),
            run,
        }
    }

    /// Runs one script at the moment `time` of Redis's clock.
    pub fn call(&mut self, call: &ScriptCall<B>, time: Moment) -> ScriptReply {
        match call {
            ScriptCall::Acquire(acquisition) => self.acquire(acquisition, time),
            ScriptCall::Append(append) => self.append(append, time),
            ScriptCall::Piece(piece) => self.piece(piece),
            ScriptCall::Turn(turn) => self.turn(turn, time),
            ScriptCall::Give(give) => self.give(give, time),
        }
    }

    /// Writes the id of a store that lost it, and the longest ttl that the caller knows.
    pub fn name_store(&mut self, store: StoreId, ttl: Span) {
        if self.store.is_none() {
            self.store = Some(store);
            self.store_ttl = ttl;
        }
    }

    /// A repeat finds its own id above the epoch that it saw, and gets the same answer as the first call.
    fn acquire(&mut self, call: &Acquisition, time: Moment) -> ScriptReply {
        let own = self.own.as_ref().map(|own| own.store);
        if self.store.into_iter().chain(own).any(|store| store != call.store) {
            return ScriptReply::Moved;
        }
        let known = call.above.max(call.seen.map_or(Epoch(0), |(epoch, _)| epoch));
        if let Some(own) = &self.own
            && own.leader == call.leader
            && own.epoch > known
        {
            return ScriptReply::Acquired(Box::new(own.clone()), self.run);
        }
        let is_run = call.run == self.run || forgets(Mutant::AcquisitionsNameNoRun);
        if self.own.as_ref().map(|own| (own.epoch, own.leader)) != call.seen || !is_run {
            return ScriptReply::NotAsSeen;
        }
        let epoch = Epoch((known.0 + 1).max(time.us()));
        // Only after a loss is `store` there without `own`.
        self.name_store(call.store, call.ttl);
        let run = self.run;
        let own = self.own.get_or_insert(Own {
            store: call.store,
            epoch,
            leader: call.leader,
            tip: Tip::default(),
            moment: Moment::ZERO,
            beat: time,
            noted_run: if call.is_new { run } else { RunId::NONE },
            snapshot: None,
            before: None,
            largest_ttl: self.store_ttl.max(call.ttl),
        });
        own.epoch = epoch;
        own.leader = call.leader;
        own.beat = time;
        let seen = own.clone();
        if forgets(Mutant::RunIsNotedAtOnce) {
            own.noted_run = run;
        }
        ScriptReply::Acquired(Box::new(seen), run)
    }
}
