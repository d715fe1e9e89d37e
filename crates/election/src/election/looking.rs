//! A server that does not lead the store: it watches, acquires, loads. It drops nothing, because it has nothing.

use tenure_core::time::{Moment, Span};

use super::message::ServerWord;
use super::{
    ABSENT_FOR, Action, BEAT_STANDS, DOUBTS_FOR, Election, ElectionStage, LOOK_EVERY,
    REFUSED_STANDS, RESTS_FOR, Tenancy, UNREACHED_STANDS, Warning,
};
use crate::ids::{Epoch, ServerId, StoreId, Tip};
use crate::mutant::{Mutant, forgets};
use crate::scripts::{Acquisition, Append, Own, RunNote, ScriptCall, ScriptReply, Term};
use crate::wall::Wall;

/// The observations of the leader.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(super) struct Watch {
    looked: Option<Span>,
    /// Epoch, owner and last moments, and Redis's time when this state was first seen.
    beat: Option<(Epoch, ServerId, Moment, Moment)>,
    since: Moment,
    /// True if the heartbeat has stopped for long enough.
    stands: bool,
    absent_since: Option<Span>,
    /// Age of the heartbeat by Redis's clock, at the last look.
    age: Span,
    /// Set when the leader refused a connection: the state of its heartbeat since.
    refused: Option<Refusal>,
    /// Set after this server could not serve: it takes no store before this time.
    rests_until: Option<Span>,
}

/// The state of a leader that refused a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Refusal {
    /// The heartbeat must be looked at.
    New,
    /// The heartbeat has stopped since this moment of Redis's clock.
    Stands(Moment),
    /// The heartbeat goes on: the leader lives.
    Lives,
}

impl Watch {
    pub(super) fn unreached(&self) -> Option<ServerId> {
        let (_, leader, ..) = self.beat?;
        (self.refused == Some(Refusal::Lives)).then_some(leader)
    }

    /// R7: the leader refused a connection. True if its heartbeat is too old for a living one; otherwise looks again.
    fn refuses(&mut self, doubts: bool, actions: &mut Vec<Action>) -> bool {
        let late = if doubts { BEAT_STANDS } else { UNREACHED_STANDS };
        if self.age >= late || forgets(Mutant::RefusalIsDeath) {
            return true;
        }
        if self.refused.is_none() {
            self.refused = Some(Refusal::New);
            actions.push(Action::Look);
        }
        false
    }

    pub(super) fn is_due(&self, at: Span) -> bool {
        self.due_at().is_none_or(|due| at >= due)
    }

    /// The time of the next look; `None`: at once.
    pub(super) fn due_at(&self) -> Option<Span> {
        let pause = match self.refused {
            Some(Refusal::New | Refusal::Stands(_)) => REFUSED_STANDS,
            _ => LOOK_EVERY,
        };
        self.looked.map(|looked| Span::from_us(looked.us() + pause.us()))
    }

    /// Keeps watching, but leaves the store to others for a while.
    pub(super) fn resting(at: Span) -> Watch {
        let rests_until = Some(Span::from_us(at.us() + RESTS_FOR.us()));
        Watch { looked: Some(at), rests_until, ..Watch::default() }
    }
}

impl Election {
    pub(super) fn looked(
        &mut self,
        store: Option<StoreId>,
        own: Option<Box<Own>>,
        time: Moment,
        at: Span,
        actions: &mut Vec<Action>,
    ) {
        if let Some(own) = &own {
            self.highest = self.highest.max(own.epoch);
            self.largest_ttl = self.largest_ttl.max(own.largest_ttl);
        }
        match &mut self.stage {
            ElectionStage::Asking(_) => self.looked_after_loss(store, own, actions),
            ElectionStage::Looking(watch) => {
                watch.looked = Some(at);
                watch.rests_until = watch.rests_until.filter(|until| at < *until);
                match own {
                    None => self.found_none(store, at, actions),
                    Some(own) => {
                        self.store = Some(own.store);
                        self.found(&own, time, at, actions);
                    }
                }
            }
            _ => {}
        }
    }

    /// R16: a missing store is not an empty one.
    fn found_none(&mut self, store: Option<StoreId>, at: Span, actions: &mut Vec<Action>) {
        let is_new = self.store.is_none() && store.is_none();
        if let (Some(known), None) = (self.store, store) {
            actions.push(Action::NameStore(known, self.largest_ttl));
        }
        let ElectionStage::Looking(watch) = &mut self.stage else { return };
        let since = *watch.absent_since.get_or_insert(at);
        if watch.rests_until.is_some() {
            return;
        }
        if at.us() >= since.us() + ABSENT_FOR.us() || forgets(Mutant::AbsenceIsEmptiness) {
            let id = if forgets(Mutant::AbsenceIsEmptiness) {
                self.fresh
            } else {
                store.or(self.store).unwrap_or(self.fresh)
            };
            let is_new = is_new || forgets(Mutant::AbsenceIsEmptiness);
            if !is_new {
                actions.push(Action::Warn(Warning::StoreForgot));
            }
            self.store = Some(id);
            self.acquire(None, is_new, None, actions);
        }
    }

    fn found(&mut self, own: &Own, time: Moment, at: Span, actions: &mut Vec<Action>) {
        let (reached, doubts) = (self.reached, self.doubts_refusals(at));
        let ElectionStage::Looking(watch) = &mut self.stage else { return };
        watch.absent_since = None;
        if own.leader == self.me {
            // Named without serving: a late acquisition of its own, or the store was handed to it.
            if watch.rests_until.is_none() && !forgets(Mutant::NamedDoesNothing) {
                self.acquire(Some((own.epoch, own.leader)), false, None, actions);
            }
            return;
        }
        let beat = Some((own.epoch, own.leader, own.moment, own.beat));
        let has_moved = watch.beat != beat;
        if watch.beat.is_some_and(|(epoch, leader, ..)| (epoch, leader) != (own.epoch, own.leader))
        {
            watch.refused = None;
        }
        if has_moved {
            watch.beat = beat;
            watch.since = time;
        }
        watch.stands = time.since(watch.since) >= BEAT_STANDS;
        watch.age = time.since(own.beat);
        match watch.refused {
            Some(Refusal::New) => watch.refused = Some(Refusal::Stands(time)),
            Some(Refusal::Stands(_)) if has_moved => {
                watch.refused = Some(Refusal::Lives);
                self.reached = None;
            }
            Some(Refusal::Stands(since)) => {
                let may_be_busy = time.since(since) < REFUSED_STANDS;
                if reached == Some(own.leader) && !doubts && !may_be_busy {
                    return self.acquire(Some((own.epoch, own.leader)), false, None, actions);
                }
            }
            Some(Refusal::Lives) | None => {}
        }
        actions.push(Action::PassOn(own.leader));
        actions.push(Action::AskServer(own.leader));
    }

    pub(super) fn heard(
        &mut self,
        from: ServerId,
        word: ServerWord,
        at: Span,
        actions: &mut Vec<Action>,
    ) {
        let doubts = self.doubts_refusals(at);
        match &mut self.stage {
            ElectionStage::Asking(_) => self.heard_after_loss(from, word, actions),
            ElectionStage::Looking(watch) => {
                let Some((epoch, leader, ..)) = watch.beat else { return };
                if leader != from {
                    return;
                }
                let may_be_taken = match word {
                    ServerWord::Refused => watch.refuses(doubts, actions),
                    ServerWord::Says { serves: true, .. } => {
                        watch.refused = None;
                        self.reached = Some(from);
                        false
                    }
                    ServerWord::Says { .. } | ServerWord::Silent => {
                        watch.stands && !forgets(Mutant::OnlyTheDeadAreReplaced)
                    }
                };
                if may_be_taken && watch.rests_until.is_none() {
                    self.acquire(Some((epoch, leader)), false, None, actions);
                }
            }
            _ => {}
        }
    }

    /// True if another server recently took a refusal of this one for its death.
    fn doubts_refusals(&self, at: Span) -> bool {
        self.robbed.is_some_and(|robbed| at.us() < robbed.us() + DOUBTS_FOR.us())
    }

    /// Sends an acquisition. For a rebuild, `kept` has the earlier tenancy, and the need to recover.
    pub(super) fn acquire(
        &mut self,
        seen: Option<(Epoch, ServerId)>,
        is_new: bool,
        kept: Option<(Box<Tenancy>, bool)>,
        actions: &mut Vec<Action>,
    ) {
        let wish = Acquisition {
            store: self.store.unwrap_or(self.fresh),
            seen,
            run: self.run,
            above: if kept.is_some() || seen.is_none() { self.highest } else { Epoch(0) },
            leader: self.me,
            is_new,
            ttl: self.largest_ttl,
        };
        let call = self.send(ScriptCall::Acquire(wish), actions);
        self.stage = ElectionStage::Acquiring { call, wish, kept };
    }

    pub(super) fn acquiring_replied(
        &mut self,
        reply: ScriptReply,
        time: Option<Moment>,
        at: Span,
        actions: &mut Vec<Action>,
    ) {
        let (ScriptReply::Acquired(own, run), Some(time)) = (reply, time) else {
            return self.acquisition_failed(actions);
        };
        self.highest = self.highest.max(own.epoch);
        let by = Term { store: own.store, epoch: own.epoch, leader: self.me, run };
        let ElectionStage::Acquiring { kept, .. } = &mut self.stage else { return };
        match kept.take() {
            Some((tenancy, recovers)) => {
                self.acquired_again(tenancy, recovers, by, &own, at, actions)
            }
            None => {
                actions.push(Action::Load(own.clone()));
                self.stage = ElectionStage::Loading { by, own, began: time, proof: None, at };
            }
        }
    }

    /// Refused, or unknown. A server that only wanted to take over looks again; one that rebuilds asks the others
    /// again.
    pub(super) fn acquisition_failed(&mut self, actions: &mut Vec<Action>) {
        let ElectionStage::Acquiring { kept, .. } = &mut self.stage else { return };
        match kept.take() {
            Some((tenancy, _)) => self.lost(tenancy, actions),
            None => {
                self.stage = ElectionStage::Looking(Watch::default());
                actions.push(Action::Look);
            }
        }
    }

    /// R2: an empty append proves that the load is complete.
    pub(super) fn loaded(&mut self, tip: Tip, at: Span, actions: &mut Vec<Action>) {
        let ElectionStage::Loading { by, own, began, at: since, .. } = &self.stage else { return };
        let wall = self.first_wall(own, *began, *since);
        if forgets(Mutant::LoadsAreNotProved) {
            return self.serve(tip, at, actions);
        }
        let append = Append {
            by: *by,
            tip,
            body: None,
            moment: wall.at(at),
            ttl: self.largest_ttl,
            note: if self.may_have_lost(own, *by)
                && own.noted_run == by.run
                && !forgets(Mutant::RecoveryKeepsTheNote)
            {
                RunNote::Lossy
            } else {
                RunNote::Stays
            },
            beats: true,
        };
        let call = self.send(ScriptCall::Append(append), actions);
        if let ElectionStage::Loading { proof, .. } = &mut self.stage {
            *proof = Some((call, tip));
        }
    }

    /// R8: the machine begins no earlier than the heartbeat's moment.
    fn first_wall(&self, own: &Own, began: Moment, since: Span) -> Wall {
        if forgets(Mutant::BeginsBeforeTheBeat) {
            Wall::begin(began, since)
        } else {
            Wall::begin(began.max(own.moment), since)
        }
    }

    /// Another server may be able to read the store, so this one rests after damage.
    pub(super) fn load_failed(&mut self, damaged: bool, at: Span, actions: &mut Vec<Action>) {
        if matches!(self.stage, ElectionStage::Loading { .. }) {
            let watch = if damaged {
                actions.push(Action::Warn(Warning::Damaged));
                Watch::resting(at)
            } else {
                Watch { looked: Some(at), ..Watch::default() }
            };
            self.stage = ElectionStage::Looking(watch);
        }
    }

    /// R7: a leader that cannot serve hands the store to another server once all of its entries are written. Without
    /// another one it drops everything, so that its heartbeat stops.
    pub(super) fn cannot_serve(
        &mut self,
        to: Option<ServerId>,
        at: Span,
        actions: &mut Vec<Action>,
    ) {
        if self.serves() && to.is_some() {
            self.hand_over(to, true, at, actions);
        } else if self.tenancy().is_some() || matches!(self.stage, ElectionStage::Loading { .. }) {
            self.drop_all(actions);
            self.stage = ElectionStage::Looking(Watch::resting(at));
        }
    }

    pub(super) fn proof_replied(
        &mut self,
        tip: Tip,
        reply: ScriptReply,
        at: Span,
        actions: &mut Vec<Action>,
    ) {
        match reply {
            ScriptReply::Done => self.serve(tip, at, actions),
            // The loaded state is not the state of the store: a restart loses nothing.
            _ => self.drop_all(actions),
        }
    }

    /// R12: the store may have lost answered entries since its run of Redis was noted.
    pub(super) fn may_have_lost(&self, own: &Own, by: Term) -> bool {
        // A store that was set back ends before the known entries, in any run.
        let is_set_back = self.known > own.tip.number && !forgets(Mutant::SetBackIsUnseen);
        let may_lack = own.noted_run != by.run || is_set_back;
        may_lack && !self.forgets_never && !forgets(Mutant::NobodyRecovers)
    }

    /// The load is complete: the machine opens. R12: if the noted run is another one, it recovers first.
    fn serve(&mut self, tip: Tip, at: Span, actions: &mut Vec<Action>) {
        let ElectionStage::Loading { by, own, began, at: since, .. } = &self.stage else { return };
        let wall = self.first_wall(own, *began, *since);
        let mut tenancy = Tenancy::begin(*by, own, tip, wall, at);
        self.largest_ttl = self.largest_ttl.max(own.largest_ttl);
        actions.push(Action::Serve);
        if self.may_have_lost(own, *by) {
            tenancy.recovers_until = Some(Span::from_us(at.us() + self.largest_ttl.us()));
            actions.push(Action::Warn(Warning::Recovering));
        } else if own.noted_run != by.run && self.forgets_never {
            tenancy.note = RunNote::Whole;
        }
        self.served = by.epoch;
        self.stage = ElectionStage::Owning(Box::new(tenancy));
    }
}
