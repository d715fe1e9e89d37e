//! R11: rebuild after a loss. The leader keeps its memory, asks the others, acquires the store again and rewrites it.

use tenure_core::time::Span;

use super::looking::Watch;
use super::message::ServerWord;
use super::{Action, Election, ElectionStage, Queued, Tenancy, Warning};
use crate::ids::{Epoch, Generation, ServerId, StoreId, Tip};
use crate::mutant::{Mutant, forgets};
use crate::scripts::{Own, RunNote, ScriptCall, ScriptReply, SnapshotName, SnapshotTurn, Term};

/// The questions of a leader after a loss.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Inquiry {
    pub(super) tenancy: Tenancy,
    /// `own` before the others were asked: the acquisition names it. `Some(None)`: there was none.
    pub(super) seen: Option<Option<(Epoch, ServerId)>>,
    /// The last entry in the store.
    tip: Tip,
    /// Servers that have not answered yet.
    left: Vec<ServerId>,
    /// True if a server could not be asked.
    silent: bool,
}

/// A snapshot that rebuilds the store.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Rebuilding {
    pub(super) tenancy: Tenancy,
    pub(super) generation: Generation,
    /// The number of pieces, and the last entry in them, once all are written.
    pub(super) written: Option<(u32, Tip)>,
    pub(super) call: Option<u64>,
    pub(super) recovers: bool,
}

impl Election {
    /// Begins with a look at `own`, before the questions: the later acquisition compares with that state.
    pub(super) fn lost(&mut self, mut tenancy: Box<Tenancy>, actions: &mut Vec<Action>) {
        if let Some(ending) = &mut tenancy.ending {
            // This belonged to the lost leadership. The store is handed over once it is acquired again.
            ending.give = None;
        }
        let inquiry = Inquiry {
            tenancy: *tenancy,
            seen: None,
            tip: Tip::default(),
            left: Vec::new(),
            silent: false,
        };
        self.stage = ElectionStage::Asking(Box::new(inquiry));
        actions.extend([Action::Warn(Warning::StoreForgot), Action::Look]);
    }

    /// Another server's knowledge is later than this one's if its epoch is above this one.
    fn served_until(&self, mine: Term) -> Epoch {
        if forgets(Mutant::LaterIsAcquired) { mine.epoch } else { self.served }
    }

    pub(super) fn looked_after_loss(
        &mut self,
        store: Option<StoreId>,
        own: Option<Box<Own>>,
        actions: &mut Vec<Action>,
    ) {
        let ElectionStage::Asking(inquiry) = &self.stage else { return };
        let mine = inquiry.tenancy.by;
        if store.or(own.as_ref().map(|own| own.store)).is_some_and(|store| store != mine.store) {
            return actions.push(Action::Warn(Warning::OtherStore));
        }
        let served = self.served_until(mine);
        // If `own` names this server at an epoch that it never acquired, another leader has handed it the store
        // meanwhile. An acquisition changes no entry; a handover without a new entry brings nothing new.
        let is_given = |own: &Own| {
            own.epoch > mine.epoch
                && inquiry.tenancy.wished != Some(own.tip)
                && !forgets(Mutant::GivenIsAcquired)
        };
        let is_later =
            |own: &Own| own.epoch > served && (own.leader != mine.leader || is_given(own));
        if own.as_deref().is_some_and(is_later) && !forgets(Mutant::FencedGoesOn) {
            return self.drop_all(actions);
        }
        let ElectionStage::Asking(inquiry) = &mut self.stage else { return };
        inquiry.tip = own.as_ref().map(|own| own.tip).unwrap_or_default();
        inquiry.seen = Some(own.map(|own| (own.epoch, own.leader)));
        inquiry.left =
            if forgets(Mutant::HealsWithoutAsking) { Vec::new() } else { self.others.clone() };
        inquiry.silent = false;
        actions.extend(inquiry.left.iter().copied().map(Action::AskServer));
        self.all_asked(actions);
    }

    pub(super) fn heard_after_loss(
        &mut self,
        from: ServerId,
        word: ServerWord,
        actions: &mut Vec<Action>,
    ) {
        let ElectionStage::Asking(inquiry) = &self.stage else { return };
        let bound = self.served_until(inquiry.tenancy.by);
        let ElectionStage::Asking(inquiry) = &mut self.stage else { return };
        let Some(place) = inquiry.left.iter().position(|left| *left == from) else { return };
        inquiry.left.remove(place);
        match word {
            // It led the store later: its memory, or the state of the store, is newer than this memory.
            ServerWord::Says { served, .. } if served > bound && !forgets(Mutant::FencedGoesOn) => {
                self.drop_all(actions);
                return actions.push(Action::PassOn(from));
            }
            ServerWord::Says { .. } => {}
            ServerWord::Refused | ServerWord::Silent => {
                inquiry.silent |= !forgets(Mutant::SilenceIsNo);
            }
        }
        self.all_asked(actions);
    }

    fn all_asked(&mut self, actions: &mut Vec<Action>) {
        let ElectionStage::Asking(inquiry) = &self.stage else { return };
        if let (Some(seen), true) = (inquiry.seen, inquiry.left.is_empty()) {
            let tenancy = Tenancy { wished: Some(inquiry.tip), ..inquiry.tenancy.clone() };
            let kept = (Box::new(tenancy), inquiry.silent);
            self.highest = self.highest.max(kept.0.by.epoch);
            self.acquire(seen, false, Some(kept), actions);
        }
    }

    /// Leads the store again, with its own memory. If the journal ends as expected, nothing was lost.
    pub(super) fn acquired_again(
        &mut self,
        mut tenancy: Box<Tenancy>,
        silent: bool,
        by: Term,
        own: &Own,
        at: Span,
        actions: &mut Vec<Action>,
    ) {
        tenancy.by = by;
        tenancy.wished = None;
        tenancy.turning = None;
        // An unfinished recovery goes on: it is for an earlier loss.
        let recovers = silent || tenancy.recovers_until.is_some();
        if !recovers && (own.tip == tenancy.done || own.tip == tenancy.sent()) {
            tenancy.note = RunNote::Whole;
            tenancy.snapshot = own.snapshot;
            tenancy.before = own.before.map(|before| (before, at));
            actions.push(Action::RecoveryOver);
            self.stage = ElectionStage::Owning(tenancy);
            return self.fly_again(at, actions);
        }
        let generation = tenancy.next_generation();
        if silent {
            // The warning comes now, not after the rebuild: grants made meanwhile go out then.
            actions.push(Action::Warn(Warning::Recovering));
        }
        actions.push(Action::WriteSnapshot { by, generation });
        let rebuilding = Rebuilding {
            tenancy: *tenancy,
            generation,
            written: None,
            call: None,
            recovers: silent,
        };
        self.stage = ElectionStage::Rebuilding(Box::new(rebuilding));
    }

    /// Sends the turn that rebuilds the store, or sends it again.
    pub(super) fn send_turn(&mut self, at: Span, actions: &mut Vec<Action>) {
        let ttl = self.largest_ttl;
        let ElectionStage::Rebuilding(rebuilding) = &self.stage else { return };
        let Some((pieces, tip)) = rebuilding.written else { return };
        let tenancy = &rebuilding.tenancy;
        let turn = SnapshotTurn {
            by: tenancy.by,
            snapshot: SnapshotName { generation: rebuilding.generation, tip, pieces },
            heals: true,
            moment: tenancy.wall.at(at),
            ttl,
            // The run may be the noted one, if the store was set back within it.
            note: if rebuilding.recovers || tenancy.recovers_until.is_some() {
                if forgets(Mutant::RecoveryKeepsTheNote) { RunNote::Stays } else { RunNote::Lossy }
            } else {
                RunNote::Whole
            },
        };
        let call = self.send(ScriptCall::Turn(turn), actions);
        if let ElectionStage::Rebuilding(rebuilding) = &mut self.stage {
            rebuilding.call = Some(call);
        }
    }

    pub(super) fn healing_replied(
        &mut self,
        reply: ScriptReply,
        at: Span,
        actions: &mut Vec<Action>,
    ) {
        let ElectionStage::Rebuilding(rebuilding) = &self.stage else { return };
        let mut tenancy = Box::new(rebuilding.tenancy.clone());
        match reply {
            ScriptReply::Done => {
                let Some((pieces, tip)) = rebuilding.written else { return };
                let snapshot = SnapshotName { generation: rebuilding.generation, tip, pieces };
                tenancy.turned_to(snapshot, at, actions);
                let is_doubtful = rebuilding.recovers && tenancy.granted > tenancy.done.number;
                if is_doubtful && !forgets(Mutant::DoubtfulGrantsGoOut) {
                    // The server that could not be asked may have granted the same. These grants are not answered, and
                    // the machine reloads from the store, which has them, and recovers.
                    self.served = tenancy.by.epoch;
                    self.stage = ElectionStage::Looking(Watch::default());
                    return actions.extend([Action::Reload, Action::Look]);
                }
                if rebuilding.recovers {
                    let until = Span::from_us(at.us() + self.largest_ttl.us());
                    tenancy.recovers_until = Some(until);
                    actions.push(Action::Warn(Warning::Recovering));
                } else if tenancy.recovers_until.is_none() {
                    actions.push(Action::RecoveryOver);
                }
                if let Some(up_to) = tenancy.contained(tip) {
                    actions.push(Action::Release { up_to });
                }
                self.served = tenancy.by.epoch;
                self.stage = ElectionStage::Owning(tenancy);
                self.go_on(at, actions);
            }
            ScriptReply::Fenced => self.drop_all(actions),
            _ => self.lost(tenancy, actions),
        }
    }
}

impl Tenancy {
    /// The journal ends with this entry, which was sent or queued: nothing up to it waits any more. Returns the last
    /// ticket of the entries up to it, if there are any.
    fn contained(&mut self, tip: Tip) -> Option<u64> {
        let mut up_to = self.flight.take().map(|flight| flight.covers);
        let is_last = |queued: &Queued| queued.entry == Some(tip);
        if let Some(last) = self.queue.iter().position(is_last) {
            up_to = self.queue.drain(..=last).next_back().map(|queued| queued.ticket);
        }
        self.done = tip;
        up_to
    }
}
