//! `Owner`: one server's part in the question who owns the store.
//!
//! It is told what it hears ([`Input`]) and what its own monotonic clock shows, and says what is to be done ([`Action`]).
//! Answers to callers are tickets here, numbers that only rise; entries are numbers and checksums.

mod healing;
mod looking;
mod message;
mod owning;
#[cfg(test)]
mod refusal_tests;
#[cfg(test)]
mod tests;

pub use message::{Action, Input, ServerWord, Warning};

use std::collections::VecDeque;

use tenure_core::time::{Moment, Span};

use crate::ids::{Epoch, Generation, RunId, ServerId, StoreId, Tip};
use crate::mutant::{Mutant, forgets};
use crate::scripts::{
    Acquisition, Append, Own, Ownership, RunNote, ScriptCall, ScriptReply, SnapshotName,
};
use crate::wall::Wall;
use looking::Watch;

/// A snapshot is kept for this long after another one has taken its place, so that a load that reads it may end.
pub const BEFORE_KEPT: Span = Span::from_s(60);
/// An owner that does nothing else appends this often.
pub const BEAT_EVERY: Span = Span::from_s(1);
/// A server that does not own the store looks this often, so that a dead owner is replaced soon.
pub const LOOK_EVERY: Span = Span::from_ms(200);
/// A server that could not serve what it took leaves the store to others for this long.
pub const RESTS_FOR: Span = Span::from_s(10);
/// An owner whose beat has stood for this long by the store's clock may be dead.
pub const BEAT_STANDS: Span = Span::from_s(3);
/// The beat of an owner that has just begun to refuse connections has to stand for this long: one that is busy appends sooner.
pub const REFUSED_STANDS: Span = Span::from_ms(50);
/// And for this long by the store's clock if this server never reached that owner: one that is idle beats each second.
pub const UNREACHED_STANDS: Span = Span::from_ms(1_500);
/// A server from which the store was taken while it lived believes no refusal for this long: the others may be as wrong.
pub const DOUBTS_FOR: Span = Span::from_s(600);
/// A store that has been absent for this long is made: living servers would have written its id by then.
pub const ABSENT_FOR: Span = Span::from_s(2);

/// See the module.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Owner {
    me: ServerId,
    /// The id of the store, once it was seen; a store that this server makes gets `fresh`.
    store: Option<StoreId>,
    fresh: StoreId,
    /// The servers that are asked after a loss.
    others: Vec<ServerId>,
    /// The highest epoch that was seen anywhere.
    highest: Epoch,
    /// The highest entry that a server is known to have, as it was told last.
    known: u64,
    /// The owner that answered this server, until it refuses a connection and lives.
    reached: Option<ServerId>,
    /// Another server took the store although this one lived, at this time: for a while a refused connection says little.
    robbed: Option<Span>,
    /// The last epoch at which the store took an append of this server: one that was only acquired may be that of a
    /// primary that is cut off, and proves nothing.
    served: Epoch,
    /// The longest time to live that was seen or granted.
    largest_ttl: Span,
    /// The run of Redis that was seen last.
    run: RunId,
    /// When the store last answered, by the own monotonic clock.
    heard: Span,
    /// It was promised that the store forgets nothing, so no takeover recovers.
    forgets_never: bool,
    /// The number of the last call.
    calls: u64,
    stage: OwnerStage,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum OwnerStage {
    /// Passes calls on, and watches the owner.
    Looking(Watch),
    /// Has sent an acquisition; with what it owned before, if it is to heal.
    Acquiring { call: u64, wish: Acquisition, kept: Option<(Box<Tenancy>, bool)> },
    /// Reads snapshot and log; then proves by an empty append that they are whole.
    Loading { by: Ownership, own: Box<Own>, began: Moment, proof: Option<(u64, Tip)>, at: Span },
    /// Serves; recovers and hands over by marks of the tenancy.
    Owning(Box<Tenancy>),
    /// The store is not the one it was: asks the others before anything else.
    Asking(Box<healing::Inquiry>),
    /// Writes a snapshot of everything under a new epoch, and turns to it.
    Healing(Box<healing::Healing>),
    /// Was asked to end, and has.
    Ended,
}

/// What a server has while it owns the store.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Tenancy {
    by: Ownership,
    /// The last entry that is known to be in the journal.
    done: Tip,
    /// The last entry that was decided: `done`, the one in flight, or the last that is queued.
    decided: Tip,
    /// The last ticket that was given to anything decided.
    ticket: u64,
    flight: Option<Flight>,
    /// What was decided and is to be sent when the flight has landed, in its order.
    queue: VecDeque<Queued>,
    /// When the last append was begun that beats.
    beaten: Span,
    /// Until then nothing is reaped and nothing exclusive is granted.
    recovers_until: Option<Span>,
    /// What the next append notes of the run.
    note: RunNote,
    /// The last entry that granted leases.
    granted: u64,
    wall: Wall,
    snapshot: Option<SnapshotName>,
    /// The one before it, and since when that is so, or was seen to be.
    before: Option<(SnapshotName, Span)>,
    /// Snapshots made in this tenancy.
    snapshots: u64,
    turning: Option<owning::Turning>,
    ending: Option<owning::Ending>,
    /// The last entry of the store that it tried to acquire anew since a loss; `None`: it tried none.
    wished: Option<Tip>,
}

/// Something decided that no append was begun for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Queued {
    /// `None`: an answer without rows.
    entry: Option<Tip>,
    ticket: u64,
}

/// An append whose reply is awaited. It is fixed: what is sent again is the same.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Flight {
    /// The calls that sent it: a reply to any of them is its reply.
    calls: Vec<u64>,
    append: Append<()>,
    /// The last ticket that was decided before it was begun.
    covers: u64,
    /// The entry before.
    after: Tip,
}

impl Owner {
    /// A server that knows nothing yet. `me` and `fresh` are random and never used before.
    pub fn new(me: ServerId, fresh: StoreId) -> Self {
        Owner {
            me,
            store: None,
            fresh,
            others: Vec::new(),
            highest: Epoch(0),
            known: 0,
            reached: None,
            robbed: None,
            served: Epoch(0),
            largest_ttl: Span::ZERO,
            run: RunId::NONE,
            heard: Span::ZERO,
            forgets_never: false,
            calls: 0,
            stage: OwnerStage::Looking(Watch::default()),
        }
    }

    /// It is promised that the store forgets nothing: whoever takes it over under another run of Redis does not recover.
    pub fn forgetting_never(mut self) -> Self {
        self.forget_never(true);
        self
    }

    /// Whether it is promised from now on that the store forgets nothing.
    pub fn forget_never(&mut self, never: bool) {
        self.forgets_never = never;
    }

    /// Takes what was heard when the own monotonic clock shows `at`.
    pub fn take(&mut self, input: Input, at: Span) -> Vec<Action> {
        let mut actions = Vec::new();
        if matches!(input, Input::Looked { .. } | Input::Replied { .. }) {
            self.heard = at;
        }
        match input {
            Input::Others(others) => self.others = others,
            Input::Known(number) => self.known = number,
            Input::Time => self.time_passed(at, &mut actions),
            Input::Looked { store, own, run, time } => {
                self.run = run;
                self.looked(store, own, time, at, &mut actions);
            }
            Input::Heard { from, word } => self.heard(from, word, at, &mut actions),
            Input::Replied { call, reply, time } => {
                self.replied(call, reply, time, at, &mut actions);
            }
            Input::Unsure { call } => self.unsure(call, at, &mut actions),
            Input::Loaded { tip } => self.loaded(tip, at, &mut actions),
            Input::LoadFailed { damaged } => self.load_failed(damaged, at, &mut actions),
            Input::CannotServe { to } => self.cannot_serve(to, at, &mut actions),
            Input::Decided { checksum, ticket, ttl, grants } => {
                self.decided(checksum, ticket, (ttl, grants), at, &mut actions);
            }
            Input::AnswerWaits { ticket } => self.answer_waits(ticket, at, &mut actions),
            Input::SnapshotDue => self.snapshot_due(&mut actions),
            Input::SnapshotWritten { generation, pieces, tip } => {
                self.snapshot_written(generation, (pieces, tip), at, &mut actions);
            }
            Input::SnapshotFailed { generation, reply } => {
                self.snapshot_failed(generation, reply, at, &mut actions);
            }
            Input::End { to } => self.end(to, at, &mut actions),
        }
        actions
    }

    /// What this server answers another one that asks when its monotonic clock shows `at`.
    pub fn word(&self, at: Span) -> ServerWord {
        ServerWord::Says {
            serves: matches!(self.stage, OwnerStage::Owning(_)) && !self.is_cut_off(at),
            served: self.served,
        }
    }

    /// Whether something can be decided: also while the store is away, or is asked for after a loss.
    pub fn decides(&self) -> bool {
        self.tenancy().is_some_and(|tenancy| tenancy.ending.is_none())
    }

    /// The last entry that was sent: a snapshot that heals contains it.
    pub fn sent(&self) -> Option<Tip> {
        self.tenancy().map(Tenancy::sent)
    }

    /// Whether calls are taken here; elsewhere they are passed on.
    pub fn serves(&self) -> bool {
        matches!(&self.stage, OwnerStage::Owning(tenancy) if tenancy.ending.is_none())
    }

    /// Whether holders of before may still believe in leases that are unknown here: nothing is reaped, and nothing
    /// exclusive granted. So it may be from a loss on, until the others have said that they know no more and the store is whole.
    pub fn recovers(&self) -> bool {
        let may_lack = match &self.stage {
            OwnerStage::Asking(_) | OwnerStage::Healing(_) => true,
            OwnerStage::Acquiring { kept, .. } => kept.is_some(),
            _ => false,
        };
        may_lack && !forgets(Mutant::GrantsWhileItAsks)
            || self.tenancy().is_some_and(|tenancy| tenancy.recovers_until.is_some())
    }

    /// For how long a machine that is opened now recovers, or one that heals a store; `None`: it does not. It ends when
    /// [`Action::RecoveryOver`] says so.
    pub fn recovery(&self) -> Option<Span> {
        let recovers = match &self.stage {
            OwnerStage::Loading { by, own, .. } => self.may_have_lost(own, *by),
            OwnerStage::Healing(healing) => healing.recovers || self.recovers(),
            _ => self.recovers(),
        };
        recovers.then_some(self.largest_ttl)
    }

    /// Whether it owns the store, and the store has not answered for so long that others may take it. A store that is
    /// healed answers the pieces of a snapshot meanwhile.
    pub fn is_cut_off(&self, at: Span) -> bool {
        let is_healing = matches!(self.stage, OwnerStage::Healing(_));
        let is_silent = at.us() >= self.heard.us() + BEAT_STANDS.us();
        self.tenancy().is_some() && !is_healing && is_silent
    }

    /// The machine's wall clock.
    pub fn moment(&self, at: Span) -> Option<Moment> {
        self.tenancy().map(|tenancy| tenancy.wall.at(at))
    }

    /// When time is to be told at the latest, by the own monotonic clock.
    pub fn wakes_at(&self, now: Span) -> Span {
        let later = |at: Span, span: Span| Span::from_us(at.us() + span.us());
        match &self.stage {
            OwnerStage::Looking(watch) => watch.due_at().unwrap_or(now),
            OwnerStage::Owning(tenancy) => {
                let beat = match tenancy.flight {
                    Some(_) => later(now, BEAT_EVERY),
                    None => later(tenancy.beaten, BEAT_EVERY),
                };
                tenancy.recovers_until.map_or(beat, |until| until.min(beat))
            }
            OwnerStage::Asking(_) => later(now, LOOK_EVERY),
            _ => later(now, BEAT_EVERY),
        }
    }

    /// Whether it was asked to end, and has.
    pub fn has_ended(&self) -> bool {
        matches!(self.stage, OwnerStage::Ended)
    }

    /// The store that it knows of.
    pub fn store(&self) -> Option<StoreId> {
        self.store
    }

    /// The longest ttl of a lease that it knows of.
    pub fn largest_ttl(&self) -> Span {
        self.largest_ttl
    }

    /// The epoch at which it owns the store.
    pub fn epoch(&self) -> Option<Epoch> {
        self.tenancy().map(|tenancy| tenancy.by.epoch)
    }

    fn tenancy(&self) -> Option<&Tenancy> {
        match &self.stage {
            OwnerStage::Owning(tenancy) => Some(tenancy),
            OwnerStage::Asking(inquiry) => Some(&inquiry.tenancy),
            OwnerStage::Healing(healing) => Some(&healing.tenancy),
            OwnerStage::Acquiring { kept: Some((tenancy, _)), .. } => Some(tenancy),
            _ => None,
        }
    }

    fn tenancy_mut(&mut self) -> Option<&mut Tenancy> {
        match &mut self.stage {
            OwnerStage::Owning(tenancy) => Some(tenancy),
            OwnerStage::Asking(inquiry) => Some(&mut inquiry.tenancy),
            OwnerStage::Healing(healing) => Some(&mut healing.tenancy),
            OwnerStage::Acquiring { kept: Some((tenancy, _)), .. } => Some(tenancy),
            _ => None,
        }
    }

    /// Sends a call under the next number.
    fn send(&mut self, call: ScriptCall<()>, actions: &mut Vec<Action>) -> u64 {
        self.calls += 1;
        actions.push(Action::Call { number: self.calls, call });
        self.calls
    }

    /// The owner of the store, which refuses the connections of this server and lives: its beat goes on.
    pub fn unreached(&self) -> Option<ServerId> {
        match &self.stage {
            OwnerStage::Looking(watch) => watch.unreached(),
            _ => None,
        }
    }

    /// R5: everything is dropped, and the store is looked at.
    fn drop_all(&mut self, actions: &mut Vec<Action>) {
        self.robbed = self.tenancy().map(|_| self.heard).or(self.robbed);
        self.stage = OwnerStage::Looking(Watch::default());
        actions.push(Action::DropAll);
    }

    fn time_passed(&mut self, at: Span, actions: &mut Vec<Action>) {
        match &mut self.stage {
            OwnerStage::Looking(watch) if watch.is_due(at) => actions.push(Action::Look),
            OwnerStage::Owning(_) => self.owning_time(at, actions),
            OwnerStage::Asking(inquiry) if inquiry.seen.is_none() => actions.push(Action::Look),
            _ => {}
        }
    }

    fn replied(
        &mut self,
        call: u64,
        reply: ScriptReply,
        time: Option<Moment>,
        at: Span,
        actions: &mut Vec<Action>,
    ) {
        match &self.stage {
            OwnerStage::Acquiring { call: awaited, .. } if *awaited == call => {
                self.acquiring_replied(reply, time, at, actions);
            }
            OwnerStage::Loading { proof: Some((awaited, tip)), .. } if *awaited == call => {
                let tip = *tip;
                self.proof_replied(tip, reply, at, actions);
            }
            OwnerStage::Owning(_) => self.owning_replied(call, reply, time, at, actions),
            OwnerStage::Healing(healing) if healing.call == Some(call) => {
                self.healing_replied(reply, at, actions);
            }
            _ => {}
        }
    }

    /// Nobody knows whether a call happened. What can be sent again is; an acquisition shows when the store is looked at.
    fn unsure(&mut self, call: u64, at: Span, actions: &mut Vec<Action>) {
        match &mut self.stage {
            OwnerStage::Acquiring { call: awaited, .. } if *awaited == call => {
                self.acquisition_failed(actions);
            }
            OwnerStage::Loading { proof: Some((awaited, tip)), .. } if *awaited == call => {
                let tip = *tip;
                self.loaded(tip, at, actions);
            }
            OwnerStage::Owning(_) => self.owning_unsure(call, at, actions),
            OwnerStage::Healing(healing) if healing.call == Some(call) => {
                self.send_turn(at, actions);
            }
            _ => {}
        }
    }
}

impl Tenancy {
    fn begin(by: Ownership, own: &Own, tip: Tip, wall: Wall, at: Span) -> Self {
        Tenancy {
            by,
            done: tip,
            decided: tip,
            ticket: 0,
            flight: None,
            queue: VecDeque::new(),
            beaten: at,
            recovers_until: None,
            note: RunNote::Stays,
            granted: 0,
            wall,
            snapshot: own.snapshot,
            before: own.before.map(|before| (before, at)),
            snapshots: 0,
            turning: None,
            ending: None,
            wished: None,
        }
    }

    /// The last entry that was sent.
    fn sent(&self) -> Tip {
        self.flight.as_ref().map_or(self.done, |flight| flight.append.tip)
    }

    /// The name of the next snapshot.
    fn next_generation(&mut self) -> Generation {
        self.snapshots += 1;
        match forgets(Mutant::SnapshotsAreCounted) {
            true => {
                let last = self.snapshot.map_or(0, |snapshot| snapshot.generation.count);
                Generation { epoch: Epoch(0), count: last + 1 }
            }
            false => Generation { epoch: self.by.epoch, count: self.snapshots },
        }
    }
}
