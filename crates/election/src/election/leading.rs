//! The leader at work: one append at a time and a queue behind it, answers behind the fence, snapshots, handover.

use tenure_core::time::{Moment, Span};

use super::looking::Watch;
use super::{Action, BEAT_EVERY, BEFORE_KEPT, Election, ElectionStage, Flight, Queued, Tenancy};
use crate::ids::{Generation, ServerId, Tip};
use crate::mutant::{Mutant, forgets};
use crate::scripts::{
    Append, HandOver, RunNote, ScriptCall, ScriptReply, SnapshotName, SnapshotTurn,
};

/// A snapshot on its way: first its pieces, then its installation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Turning {
    generation: Generation,
    /// The number of pieces, and the last entry in them, once all are written.
    written: Option<(u32, Tip)>,
    turn: Option<(u64, SnapshotTurn)>,
}

/// A process that was asked to end, or whose engine cannot go on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Ending {
    to: Option<ServerId>,
    pub(super) give: Option<u64>,
    /// True if the process goes on as a follower, and leaves the store to others for a while.
    goes_on: bool,
}

impl Tenancy {
    /// The next append: of a decided entry, or an empty one.
    fn next_append(&self, tip: Tip, has_rows: bool, ttl: Span, at: Span) -> Append<()> {
        Append {
            by: self.by,
            tip,
            body: has_rows.then_some(()),
            moment: self.wall.at(at),
            ttl,
            note: self.note,
            beats: self.note != RunNote::Stays || self.beat_is_due(at),
        }
    }

    /// True if the next append must write a heartbeat.
    fn beat_is_due(&self, at: Span) -> bool {
        at.us() >= self.beaten.us() + BEAT_EVERY.us()
    }
}

impl Election {
    fn leading(&mut self) -> Option<&mut Tenancy> {
        match &mut self.stage {
            ElectionStage::Owning(tenancy) => Some(tenancy),
            _ => None,
        }
    }

    /// Sends an append, or sends it again. It releases answers with tickets up to `covers`.
    fn fly(&mut self, append: Append<()>, covers: u64, at: Span, actions: &mut Vec<Action>) {
        let call = self.send(ScriptCall::Append(append.clone()), actions);
        let Some(tenancy) = self.leading() else { return };
        if append.beats {
            tenancy.beaten = at;
        }
        match &mut tenancy.flight {
            Some(flight) => flight.calls.push(call),
            none => {
                let after = tenancy.done;
                *none = Some(Flight { calls: vec![call], append, covers, after });
            }
        }
    }

    /// Sends the part of the queue that fits one append: the next entry with the answers before it, or an empty append
    /// for answers alone. Installs a finished snapshot, and hands the store over if nothing waits.
    pub(super) fn go_on(&mut self, at: Span, actions: &mut Vec<Action>) {
        let ttl = self.largest_ttl;
        let Some(tenancy) = self.leading() else { return };
        if tenancy.flight.is_some() {
            return;
        }
        let entry = tenancy.queue.iter().position(|queued| queued.entry.is_some());
        let until = entry.map_or(tenancy.queue.len(), |place| place + 1);
        let last = tenancy.queue.drain(..until).next_back();
        if let Some(Queued { entry, ticket }) = last {
            let append =
                tenancy.next_append(entry.unwrap_or(tenancy.done), entry.is_some(), ttl, at);
            self.fly(append, ticket, at, actions);
        }
        self.turn_if_written(at, actions);
        let Some(tenancy) = self.leading() else { return };
        if tenancy.flight.is_some() {
            return;
        }
        let (by, tip) = (tenancy.by, tenancy.done);
        match &tenancy.ending {
            Some(Ending { to: Some(to), give: None, .. }) => {
                let give = HandOver { by, tip, to: *to };
                let call = self.send(ScriptCall::Give(give), actions);
                if let Some(Tenancy { ending: Some(ending), .. }) = self.leading() {
                    ending.give = Some(call);
                }
            }
            Some(Ending { to: None, .. }) => self.ended(at, actions),
            _ => {}
        }
    }

    /// The server that the store was handed to.
    fn given_to(&self) -> Option<ServerId> {
        match &self.stage {
            ElectionStage::Owning(tenancy) => tenancy.ending.as_ref().and_then(|ending| ending.to),
            _ => None,
        }
    }

    fn ended(&mut self, at: Span, actions: &mut Vec<Action>) {
        if let Some(Tenancy { ending: Some(Ending { goes_on: true, .. }), .. }) = self.leading() {
            self.drop_all(actions);
            self.stage = ElectionStage::Looking(Watch::resting(at));
            return;
        }
        self.stage = ElectionStage::Ended;
        actions.extend([Action::DropAll, Action::End]);
    }

    pub(super) fn owning_time(&mut self, at: Span, actions: &mut Vec<Action>) {
        let ttl = self.largest_ttl;
        let Some(tenancy) = self.leading() else { return };
        if tenancy.recovers_until.is_some_and(|until| at >= until) {
            tenancy.recovers_until = None;
            tenancy.note = RunNote::Whole;
            actions.push(Action::RecoveryOver);
        }
        if tenancy.before.is_some_and(|(_, since)| at.us() >= since.us() + BEFORE_KEPT.us()) {
            tenancy.unlink_before(actions);
        }
        if tenancy.flight.is_none() && tenancy.beat_is_due(at) {
            let append = tenancy.next_append(tenancy.done, false, ttl, at);
            self.fly(append, 0, at, actions);
        }
    }

    /// The machine closed a batch: it gets the next number, and is fixed from now on.
    pub(super) fn decided(
        &mut self,
        checksum: u64,
        ticket: u64,
        (ttl, grants): (Span, bool),
        at: Span,
        actions: &mut Vec<Action>,
    ) {
        self.largest_ttl = self.largest_ttl.max(ttl);
        let Some(tenancy) = self.tenancy_mut() else { return };
        tenancy.decided = Tip { number: tenancy.decided.number + 1, checksum };
        if grants {
            tenancy.granted = tenancy.decided.number;
        }
        tenancy.queue.push_back(Queued { entry: Some(tenancy.decided), ticket });
        tenancy.ticket = ticket;
        self.go_on(at, actions);
    }

    /// R3: an answer without rows waits for an append that begins from now on.
    pub(super) fn answer_waits(&mut self, ticket: u64, at: Span, actions: &mut Vec<Action>) {
        let is_leader = self.leading().is_some();
        let Some(tenancy) = self.tenancy_mut() else { return };
        tenancy.ticket = ticket;
        if forgets(Mutant::ReadsSkipTheFence) && is_leader && tenancy.flight.is_none() {
            return actions.push(Action::Release { up_to: ticket });
        }
        match tenancy.queue.back_mut() {
            Some(Queued { entry: None, ticket: last }) => *last = ticket,
            _ => tenancy.queue.push_back(Queued { entry: None, ticket }),
        }
        self.go_on(at, actions);
    }

    pub(super) fn owning_replied(
        &mut self,
        call: u64,
        reply: ScriptReply,
        time: Option<Moment>,
        at: Span,
        actions: &mut Vec<Action>,
    ) {
        let Some(tenancy) = self.leading() else { return };
        if let Some(leap) = time.and_then(|time| tenancy.wall.hear(time, at)) {
            actions.push(Action::ClockLeapt(leap));
        }
        let is_flight = tenancy.flight.as_ref().is_some_and(|flight| flight.calls.contains(&call));
        let is_turn = matches!(&tenancy.turning, Some(Turning { turn: Some((turn, _)), .. }) if *turn == call);
        let is_give =
            matches!(&tenancy.ending, Some(Ending { give: Some(give), .. }) if *give == call);
        match reply {
            _ if !(is_flight || is_turn || is_give) => {}
            ScriptReply::Done if is_flight => self.landed(at, actions),
            ScriptReply::Done if is_turn => self.turned(at, actions),
            ScriptReply::Done => {
                actions.extend(self.given_to().map(Action::PassOn));
                self.ended(at, actions);
            }
            reply => self.not_done(reply, actions),
        }
    }

    /// A call was refused: the store has another leader, or has changed.
    fn not_done(&mut self, reply: ScriptReply, actions: &mut Vec<Action>) {
        let Some(tenancy) = self.leading() else { return };
        match reply {
            ScriptReply::Refused => tenancy.turning = None,
            ScriptReply::Fenced if !forgets(Mutant::FencedGoesOn) => self.drop_all(actions),
            _ if forgets(Mutant::MovedIsFenced) => self.drop_all(actions),
            _ => {
                if let ElectionStage::Owning(tenancy) = &self.stage {
                    let tenancy = tenancy.clone();
                    self.lost(tenancy, actions);
                }
            }
        }
    }

    /// The append in flight is in the journal: releases the answers that were decided before it began.
    fn landed(&mut self, at: Span, actions: &mut Vec<Action>) {
        let Some(tenancy) = self.leading() else { return };
        let Some(flight) = tenancy.flight.take() else { return };
        tenancy.done = flight.append.tip;
        let epoch = flight.append.by.epoch;
        if tenancy.note == flight.append.note {
            tenancy.note = RunNote::Stays;
        }
        let covers = if forgets(Mutant::AppendsLetOutAll) { tenancy.ticket } else { flight.covers };
        if covers > 0 {
            actions.push(Action::Release { up_to: covers });
        }
        self.served = epoch;
        self.go_on(at, actions);
    }

    /// R4: an append with an unknown outcome is retried unchanged.
    pub(super) fn owning_unsure(&mut self, call: u64, at: Span, actions: &mut Vec<Action>) {
        let Some(tenancy) = self.leading() else { return };
        if let Some(flight) =
            tenancy.flight.as_ref().filter(|flight| flight.calls.last() == Some(&call))
        {
            let append = flight.append.clone();
            if forgets(Mutant::UnsureIsNever) && append.body.is_some() {
                tenancy.decided = flight.after;
                tenancy.flight = None;
                tenancy.queue.clear();
                return actions.push(Action::Undo { number: append.tip.number });
            }
            let covers = flight.covers;
            return self.fly(append, covers, at, actions);
        }
        match (&mut tenancy.turning, &mut tenancy.ending) {
            (Some(Turning { turn: Some((sent, turn)), .. }), _) if *sent == call => {
                let turn = *turn;
                let call = self.send(ScriptCall::Turn(turn), actions);
                if let Some(Tenancy { turning: Some(turning), .. }) = self.leading() {
                    turning.turn = Some((call, turn));
                }
            }
            (_, Some(ending)) if ending.give == Some(call) => {
                ending.give = None;
                self.go_on(at, actions);
            }
            _ => {}
        }
    }

    pub(super) fn snapshot_due(&mut self, actions: &mut Vec<Action>) {
        let Some(tenancy) = self.leading() else { return };
        if tenancy.turning.is_some() || tenancy.ending.is_some() {
            return;
        }
        let (generation, by) = (tenancy.next_generation(), tenancy.by);
        tenancy.turning = Some(Turning { generation, written: None, turn: None });
        actions.push(Action::WriteSnapshot { by, generation });
    }

    pub(super) fn snapshot_written(
        &mut self,
        generation: Generation,
        written: (u32, Tip),
        at: Span,
        actions: &mut Vec<Action>,
    ) {
        if let ElectionStage::Rebuilding(rebuilding) = &mut self.stage {
            if rebuilding.generation == generation && rebuilding.written.is_none() {
                rebuilding.written = Some(written);
                self.send_turn(at, actions);
            }
            return;
        }
        let Some(tenancy) = self.leading() else { return };
        if let Some(turning) = &mut tenancy.turning
            && turning.generation == generation
            && turning.written.is_none()
        {
            turning.written = Some(written);
            self.turn_if_written(at, actions);
        }
    }

    /// Installs a written snapshot once the journal has all of its entries.
    fn turn_if_written(&mut self, at: Span, actions: &mut Vec<Action>) {
        let ttl = self.largest_ttl;
        let Some(tenancy) = self.leading() else { return };
        let Some(Turning { generation, written: Some((pieces, tip)), turn: None }) =
            tenancy.turning
        else {
            return;
        };
        if tip.number > tenancy.done.number {
            return;
        }
        let turn = SnapshotTurn {
            by: tenancy.by,
            snapshot: SnapshotName { generation, tip, pieces },
            heals: false,
            moment: tenancy.wall.at(at),
            ttl,
            note: RunNote::Stays,
        };
        let call = self.send(ScriptCall::Turn(turn), actions);
        if let Some(Tenancy { turning: Some(turning), .. }) = self.leading() {
            turning.turn = Some((call, turn));
        }
    }

    pub(super) fn snapshot_failed(
        &mut self,
        generation: Generation,
        reply: ScriptReply,
        at: Span,
        actions: &mut Vec<Action>,
    ) {
        match &self.stage {
            ElectionStage::Rebuilding(rebuilding) if rebuilding.generation == generation => {
                self.healing_replied(reply, at, actions);
            }
            ElectionStage::Owning(tenancy) => {
                let of_this = |turning: &Turning| turning.generation == generation;
                if tenancy.turning.as_ref().is_some_and(of_this) {
                    self.not_done(reply, actions);
                }
            }
            _ => {}
        }
    }

    /// Continues under a new epoch: the entry in flight is sent again, and an append notes the run in any case.
    pub(super) fn fly_again(&mut self, at: Span, actions: &mut Vec<Action>) {
        let ttl = self.largest_ttl;
        let Some(tenancy) = self.leading() else { return };
        let (tip, has_rows, covers) = match tenancy.flight.take() {
            Some(Flight { append, covers, .. }) => (append.tip, append.body.is_some(), covers),
            None => (tenancy.done, false, 0),
        };
        let append = tenancy.next_append(tip, has_rows, ttl, at);
        self.fly(append, covers, at, actions);
    }

    /// The snapshot before the previous one is no longer named.
    fn turned(&mut self, at: Span, actions: &mut Vec<Action>) {
        let Some(tenancy) = self.leading() else { return };
        if let Some(Turning { turn: Some((_, turn)), .. }) = tenancy.turning.take() {
            tenancy.turned_to(turn.snapshot, at, actions);
        }
        self.go_on(at, actions);
    }

    pub(super) fn end(&mut self, to: Option<ServerId>, at: Span, actions: &mut Vec<Action>) {
        match &mut self.stage {
            ElectionStage::Owning(_) => self.hand_over(to, false, at, actions),
            // Knowledge that only this server has is written first.
            ElectionStage::Asking(_) | ElectionStage::Rebuilding(_) => {}
            // If a named server is gone, it refuses connections, and the next one takes the store.
            _ => self.ended(at, actions),
        }
    }

    /// R10: writes all decided entries, then hands the store over.
    pub(super) fn hand_over(
        &mut self,
        to: Option<ServerId>,
        goes_on: bool,
        at: Span,
        actions: &mut Vec<Action>,
    ) {
        let Some(tenancy) = self.leading() else { return };
        match &mut tenancy.ending {
            // A second request during the handover.
            Some(ending) if ending.give.is_some() => ending.goes_on &= goes_on,
            _ => {
                tenancy.turning = None;
                tenancy.ending = Some(Ending { to, give: None, goes_on });
                self.go_on(at, actions);
            }
        }
    }
}

impl Tenancy {
    pub(super) fn turned_to(
        &mut self,
        snapshot: SnapshotName,
        at: Span,
        actions: &mut Vec<Action>,
    ) {
        self.unlink_before(actions);
        self.before = self.snapshot.replace(snapshot).map(|before| (before, at));
    }

    fn unlink_before(&mut self, actions: &mut Vec<Action>) {
        if let Some((snapshot, _)) = self.before.take() {
            actions.push(Action::UnlinkSnapshot { by: self.by, snapshot });
        }
    }
}
