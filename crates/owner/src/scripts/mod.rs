//! The scripts of the journal, as pure functions over the keys of one store. They are the specification of the Lua: a test
//! can run the same calls against both and compare.
//!
//! Every call may arrive twice, late or never, and a repeat is answered as the first time was. What a body means is unknown
//! here: a [`Keys`] holds bodies of any type.

mod fenced;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use tenure_core::time::{Moment, Span};

use crate::ids::{Epoch, Generation, RunId, ServerId, StoreId, Tip};
use crate::mutant::{Mutant, forgets};

/// All keys of one store, and the run of the Redis that has them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Keys<B> {
    /// `{NAME}:store`.
    pub store: Option<StoreId>,
    /// In `{NAME}:store`: the longest time to live that the server which wrote it knew of. A recovery after a loss of `own`
    /// takes this long.
    pub store_ttl: Span,
    /// `{NAME}:own`.
    pub own: Option<Own>,
    /// `{NAME}:log`, by number.
    pub log: BTreeMap<u64, Logged<B>>,
    /// `{NAME}:snap:GEN:I`.
    pub pieces: BTreeMap<(Generation, u32), B>,
    /// The run of this Redis.
    pub run: RunId,
}

/// `{NAME}:own`: who owns the store, and how far its journal goes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Own {
    /// The store that this belongs to.
    pub store: StoreId,
    /// Rises with each acquisition.
    pub epoch: Epoch,
    /// The process that owns the store, or that is to take it up.
    pub owner: ServerId,
    /// The last entry.
    pub tip: Tip,
    /// The owner's moment at its last append. Never falls.
    pub moment: Moment,
    /// The store's TIME at the last append that beat.
    pub beat: Moment,
    /// The run under which nothing is known to be lost. Another one than the store's: entries may be missing.
    pub noted_run: RunId,
    /// The snapshot that a load begins with.
    pub snapshot: Option<SnapshotName>,
    /// The snapshot before it, whose pieces are kept until the next turn, or for a minute.
    pub before: Option<SnapshotName>,
    /// The longest time to live of any lease so far: how long a recovery takes.
    pub largest_ttl: Span,
}

/// A snapshot, as `own` names it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SnapshotName {
    /// Its name.
    pub generation: Generation,
    /// The last entry that it contains.
    pub tip: Tip,
    /// How many pieces it has.
    pub pieces: u32,
}

/// An entry of the log.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Logged<B> {
    /// Chained: of this entry and the checksum before it.
    pub checksum: u64,
    /// The rows of a batch.
    pub body: B,
}

/// What every call of an owner says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ownership {
    /// The store that it owns.
    pub store: StoreId,
    /// The epoch at which it owns the store.
    pub epoch: Epoch,
    /// Its own id.
    pub owner: ServerId,
    /// The run of Redis that it knows.
    pub run: RunId,
}

/// A call of one script.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ScriptCall<B> {
    /// Takes the store, if epoch, owner and run are still those that were seen.
    Acquire(Acquisition),
    /// Writes an entry, or looks whether the last one is there.
    Append(Append<B>),
    /// Writes or unlinks one piece of a snapshot.
    Piece(PieceCall<B>),
    /// Makes a snapshot the one that loads begin with.
    Turn(SnapshotTurn),
    /// Names another server as the owner.
    Give(HandOver),
}

#[cfg(test)]
impl<B> ScriptCall<B> {
    /// Whether the answer need say the store's TIME.
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

/// See [`ScriptCall::Acquire`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Acquisition {
    /// The id of the store; it is made with this id if there is none.
    pub store: StoreId,
    /// Epoch and owner as the caller saw them; `None`: there was no `own`.
    pub seen: Option<(Epoch, ServerId)>,
    /// The run of Redis that was seen: a late repeat would otherwise find the same epoch and owner again after a failover,
    /// and depose its own sender.
    pub run: RunId,
    /// The new epoch is above this one too: the highest that the caller knows of.
    pub above: Epoch,
    /// The caller.
    pub owner: ServerId,
    /// If `own` is made: nothing was here before, so its content is whole. Otherwise no run is noted, and who loads it
    /// recovers.
    pub is_new: bool,
    /// The longest time to live that the caller knows of.
    pub ttl: Span,
}

/// See [`ScriptCall::Append`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Append<B> {
    /// Who appends.
    pub by: Ownership,
    /// The number and checksum of this entry; of the last one if this append is empty.
    pub tip: Tip,
    /// The rows; `None` for an empty append.
    pub body: Option<B>,
    /// The owner's moment.
    pub moment: Moment,
    /// The longest time to live that the owner has granted.
    pub ttl: Span,
    /// What is noted of the run of `by`.
    pub note: RunNote,
    /// It leaves the store's TIME as the owner's beat, and answers it.
    pub beats: bool,
}

/// What an append or a turn notes of the run of Redis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RunNote {
    /// What is noted stays.
    Stays,
    /// Nothing is missing under this run from now on.
    Whole,
    /// Something may be missing although this run may be noted: no run is noted, so the next owner recovers too.
    Lossy,
}

/// See [`ScriptCall::Piece`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PieceCall<B> {
    /// Who writes or unlinks.
    pub by: Ownership,
    /// Of which snapshot.
    pub generation: Generation,
    /// Which piece of it, from 0.
    pub index: u32,
    /// Its content; `None` unlinks it.
    pub body: Option<B>,
}

/// See [`ScriptCall::Turn`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SnapshotTurn {
    /// Who turns.
    pub by: Ownership,
    /// The snapshot, all of whose pieces are written.
    pub snapshot: SnapshotName,
    /// Heals: the journal ends with this snapshot, whatever the log holds, and the run is noted. Otherwise the entries
    /// behind the snapshot stay.
    pub heals: bool,
    /// The owner's moment.
    pub moment: Moment,
    /// The longest time to live that the owner has granted.
    pub ttl: Span,
    /// With `heals`: what is noted of the run of `by`.
    pub note: RunNote,
}

/// See [`ScriptCall::Give`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HandOver {
    /// Who gives.
    pub by: Ownership,
    /// The last entry.
    pub tip: Tip,
    /// Who is to take the store up.
    pub to: ServerId,
}

/// What a script answers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ScriptReply {
    /// It is done, now or before.
    Done,
    /// The caller owns the store, as `own` now says; and the run of this Redis.
    Acquired(Box<Own>, RunId),
    /// Epoch, owner or run are not those that were seen.
    NotAsSeen,
    /// Somebody else owns the store at a later epoch, or this number has another content.
    Deposed,
    /// This is not the store that the caller owned: it forgot, or it is another one, or in another run.
    Moved,
    /// The journal ends with this number.
    At(u64),
    /// The snapshot is named by `own`, or pieces of it are not there.
    Refused,
}

impl<B: Clone> Keys<B> {
    /// A Redis that has nothing of the store.
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

    /// Runs one script at the moment `time` of the store's clock.
    pub fn call(&mut self, call: &ScriptCall<B>, time: Moment) -> ScriptReply {
        match call {
            ScriptCall::Acquire(acquisition) => self.acquire(acquisition, time),
            ScriptCall::Append(append) => self.append(append, time),
            ScriptCall::Piece(piece) => self.piece(piece),
            ScriptCall::Turn(turn) => self.turn(turn, time),
            ScriptCall::Give(give) => self.give(give, time),
        }
    }

    /// Writes the id of a store that lost it, and the longest time to live that the caller knows of.
    pub fn name_store(&mut self, store: StoreId, ttl: Span) {
        if self.store.is_none() {
            self.store = Some(store);
            self.store_ttl = ttl;
        }
    }

    /// A repeat finds its own id at an epoch above what it saw, and is answered as the first time.
    fn acquire(&mut self, call: &Acquisition, time: Moment) -> ScriptReply {
        let own = self.own.as_ref().map(|own| own.store);
        if self.store.into_iter().chain(own).any(|store| store != call.store) {
            return ScriptReply::Moved;
        }
        let known = call.above.max(call.seen.map_or(Epoch(0), |(epoch, _)| epoch));
        if let Some(own) = &self.own
            && own.owner == call.owner
            && own.epoch > known
        {
            return ScriptReply::Acquired(Box::new(own.clone()), self.run);
        }
        let is_run = call.run == self.run || forgets(Mutant::AcquisitionsNameNoRun);
        if self.own.as_ref().map(|own| (own.epoch, own.owner)) != call.seen || !is_run {
            return ScriptReply::NotAsSeen;
        }
        let epoch = Epoch((known.0 + 1).max(time.us()));
        // `store` is never there without `own` but after a loss.
        self.name_store(call.store, call.ttl);
        let run = self.run;
        let own = self.own.get_or_insert(Own {
            store: call.store,
            epoch,
            owner: call.owner,
            tip: Tip::default(),
            moment: Moment::ZERO,
            beat: time,
            noted_run: if call.is_new { run } else { RunId::NONE },
            snapshot: None,
            before: None,
            largest_ttl: self.store_ttl.max(call.ttl),
        });
        own.epoch = epoch;
        own.owner = call.owner;
        own.beat = time;
        let seen = own.clone();
        if forgets(Mutant::RunIsNotedAtOnce) {
            own.noted_run = run;
        }
        ScriptReply::Acquired(Box::new(seen), run)
    }
}
