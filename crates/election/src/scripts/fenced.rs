//! The scripts that only a leader calls: each first checks its epoch, its id and the run of Redis.

use tenure_core::time::{Moment, Span};

use super::{
    Append, HandOver, Keys, Logged, Own, PieceCall, RunNote, ScriptReply, SnapshotTurn, Term,
};
use crate::ids::{Epoch, RunId, Tip};
use crate::mutant::{Mutant, forgets};

impl Own {
    /// The marks of every append and turn. A late repeat has an older moment, which does not count.
    fn leaves(&mut self, moment: Moment, beat: Option<Moment>) {
        self.moment = self.moment.max(moment);
        self.beat = beat.unwrap_or(self.beat);
    }
}

impl<B: Clone> Keys<B> {
    /// The fence: checks that the caller still leads this store, in this run of Redis.
    fn fence(&mut self, by: &Term) -> Result<&mut Own, ScriptReply> {
        let run = self.run;
        let own = match &mut self.own {
            Some(own) if own.store == by.store => own,
            _ => return Err(ScriptReply::Moved),
        };
        if own.epoch > by.epoch && !forgets(Mutant::AnyEpochAppends) {
            return Err(ScriptReply::Fenced);
        }
        let mine =
            own.epoch == by.epoch && (own.leader == by.leader || forgets(Mutant::LeadersAreAlike));
        if !mine && !forgets(Mutant::AnyEpochAppends) {
            return Err(ScriptReply::Moved);
        }
        if run != by.run && !forgets(Mutant::AnyRunAppends) {
            return Err(ScriptReply::Moved);
        }
        Ok(own)
    }

    /// Compares the last entry with the caller's: `None` if the caller's is the next one.
    fn is_there(&self, own: &Own, number: u64, checksum: u64) -> Option<ScriptReply> {
        let there = if number == own.tip.number {
            Some(own.tip.checksum)
        } else {
            self.log.get(&number).map(|logged| logged.checksum)
        };
        match there {
            Some(there) if there == checksum || forgets(Mutant::AnyContentIsDone) => {
                Some(ScriptReply::Done)
            }
            Some(_) => Some(ScriptReply::Fenced),
            None if number == own.tip.number + 1 => None,
            None => Some(ScriptReply::At(own.tip.number)),
        }
    }

    /// Checks that this very entry is there.
    fn has(&self, own: &Own, tip: Tip) -> Result<(), ScriptReply> {
        match self.is_there(own, tip.number, tip.checksum) {
            Some(ScriptReply::Done) => Ok(()),
            Some(reply) => Err(reply),
            None => Err(ScriptReply::At(own.tip.number)),
        }
    }

    /// The last step of an append and of a turn.
    fn note(&mut self, mut own: Own, ttl: Span, note: RunNote) -> ScriptReply {
        own.largest_ttl = own.largest_ttl.max(ttl);
        own.noted_run = match note {
            RunNote::Stays => own.noted_run,
            RunNote::Whole => self.run,
            RunNote::Lossy => RunId::NONE,
        };
        self.own = Some(own);
        ScriptReply::Done
    }

    pub(super) fn append(&mut self, call: &Append<B>, time: Moment) -> ScriptReply {
        let mut own = match self.fence(&call.by) {
            Ok(own) => own.clone(),
            Err(reply) => return reply,
        };
        // The log alone is lost: the journal now ends at its snapshot, and `own` is set so.
        let kept = own.snapshot.map_or_else(Tip::default, |snapshot| snapshot.tip);
        if own.tip.number != kept.number && !self.log.contains_key(&own.tip.number) {
            own.tip = kept;
            self.own = Some(own);
            return ScriptReply::At(kept.number);
        }
        match (self.is_there(&own, call.tip.number, call.tip.checksum), &call.body) {
            (Some(ScriptReply::Done), _) => {}
            // A repeat of the check before the first entry: every journal begins there.
            (Some(ScriptReply::At(_)), None) if call.tip == Tip::default() => {}
            (Some(reply), _) => return reply,
            (None, None) => return ScriptReply::At(own.tip.number),
            (None, Some(body)) => {
                let logged = Logged { checksum: call.tip.checksum, body: body.clone() };
                self.log.insert(call.tip.number, logged);
                own.tip = call.tip;
            }
        }
        if call.body.is_some() || !forgets(Mutant::EmptyAppendsDoNotBeat) {
            own.leaves(call.moment, call.beats.then_some(time));
        }
        self.note(own, call.ttl, call.note)
    }

    pub(super) fn piece(&mut self, call: &PieceCall<B>) -> ScriptReply {
        let named = match self.fence(&call.by) {
            Ok(own) => own.snapshot.is_some_and(|named| named.generation == call.generation),
            Err(_) if forgets(Mutant::PiecesAreUnfenced) => false,
            Err(reply) => return reply,
        };
        let key = (call.generation, call.index);
        match &call.body {
            Some(body) => {
                self.pieces.insert(key, body.clone());
            }
            None if named && !forgets(Mutant::PiecesAreUnfenced) => return ScriptReply::Refused,
            None => {
                self.pieces.remove(&key);
            }
        }
        ScriptReply::Done
    }

    pub(super) fn turn(&mut self, call: &SnapshotTurn, time: Moment) -> ScriptReply {
        let mut own = match self.fence(&call.by) {
            Ok(own) => own.clone(),
            Err(reply) => return reply,
        };
        let generation = call.snapshot.generation;
        let is_there = |index| self.pieces.contains_key(&(generation, index));
        if own.snapshot.is_none_or(|named| named.generation != generation) {
            if !(0..call.snapshot.pieces).all(is_there) {
                return ScriptReply::Refused;
            }
            let tip = call.snapshot.tip;
            if call.heals {
                self.log.clear();
                own.tip = tip;
            } else {
                if let Err(reply) = self.has(&own, tip) {
                    return reply;
                }
                self.log.retain(|number, _| *number > tip.number);
            }
            own.before = own.snapshot.replace(call.snapshot);
        }
        own.leaves(call.moment, Some(time));
        self.note(own, call.ttl, call.note)
    }

    /// A repeat finds the other server named at a later epoch.
    pub(super) fn give(&mut self, call: &HandOver, time: Moment) -> ScriptReply {
        let given = |own: &Own| {
            own.store == call.by.store && own.leader == call.to && own.epoch > call.by.epoch
        };
        if self.own.as_ref().is_some_and(given) {
            return ScriptReply::Done;
        }
        let mut own = match self.fence(&call.by) {
            Ok(own) => own.clone(),
            Err(reply) => return reply,
        };
        if let Err(reply) = self.has(&own, call.tip) {
            return reply;
        }
        own.epoch = Epoch((own.epoch.0 + 1).max(time.us()));
        own.leader = call.to;
        own.beat = time;
        self.own = Some(own);
        ScriptReply::Done
    }
}
