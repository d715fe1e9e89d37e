//! `Election`: the election state machine of one server.
//!
//! It takes inputs ([`Input`]) with the time of its own monotonic clock, and returns actions ([`Action`]). Answers to
//! callers are tickets here, numbers that only rise; entries are numbers and checksums.

mod leading;
mod looking;
mod message;
mod rebuilding;
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
    Acquisition, Append, Own, RunNote, ScriptCall, ScriptReply, SnapshotName, Term,
};
use crate::wall::Wall;
use looking::Watch;

/// A replaced snapshot is kept for this long, so that a running load of it can finish.
pub const BEFORE_KEPT: Span = Span::from_s(60);
/// An idle leader appends this often.
pub const BEAT_EVERY: Span = Span::from_s(1);
/// A follower looks this often, so that a dead leader is replaced soon.
pub const LOOK_EVERY: Span = Span::from_ms(200);
/// A server that could not serve its store leaves it to others for this long.
pub const RESTS_FOR: Span = Span::from_s(10);
/// A leader whose heartbeat has stopped for this long by Redis's clock may be dead.
pub const BEAT_STANDS: Span = Span::from_s(3);
/// After a leader has begun to refuse connections, its heartbeat must stop for this long: a busy one appends sooner.
pub const REFUSED_STANDS: Span = Span::from_ms(50);
/// And for this long by Redis's clock if this server never reached that leader: an idle one appends each second.
pub const UNREACHED_STANDS: Span = Span::from_ms(1_500);
/// A living server that lost the store to another one trusts no refusal for this long: the others may be just as wrong.
pub const DOUBTS_FOR: Span = Span::from_s(600);
/// A store that has been absent for this long is made: living servers would have written its id by then.
pub const ABSENT_FOR: Span = Span::from_s(2);

/// The election state machine of one server; see the module.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Election {
    me: ServerId,
    /// The id of the store, once it was seen; a store that this server makes gets `fresh`.
    store: Option<StoreId>,
    fresh: StoreId,
    /// The servers to ask after a loss.
    others: Vec<ServerId>,
    /// The highest epoch seen anywhere.
    highest: Epoch,
    /// The highest entry that a server is known to have, by its last report.
    known: u64,
    /// The leader that answered this server, until it refuses a connection and lives.
    reached: Option<ServerId>,
    /// Set when another server took the store although this one lived: for a while a refused connection proves little.
    robbed: Option<Span>,
    /// The last epoch at which the store accepted an append of this server. A mere acquisition may be on a partitioned
    /// primary, and proves nothing.
    served: Epoch,
    /// The longest ttl seen or granted.
    largest_ttl: Span,
    /// The run id of Redis that was seen last.
    run: RunId,
    /// The time of the store's last answer, by the own monotonic clock.
    heard: Span,
    /// True if the operator promised that the store loses nothing: no takeover recovers.
    forgets_never: bool,
    /// The number of the last call.
    calls: u64,
    stage: ElectionStage,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum ElectionStage {
    /// Forwards calls, and watches the leader.
    Looking(Watch),
    /// Has sent an acquisition; `kept`, for a rebuild, is its earlier tenancy.
    Acquiring { call: u64, wish: Acquisition, kept: Option<(Box<Tenancy>, bool)> },
    /// Reads snapshot and log; then an empty append proves that they are complete.
    Loading { by: Term, own: Box<Own>, began: Moment, proof: Option<(u64, Tip)>, at: Span },
    /// Serves; the tenancy marks a recovery or a handover.
    Owning(Box<Tenancy>),
    /// The store has changed: asks the others before any other step.
    Asking(Box<rebuilding::Inquiry>),
    /// Rebuild: writes a snapshot of everything under a new epoch, and installs it.
    Rebuilding(Box<rebuilding::Rebuilding>),
    /// Has ended, as it was asked.
    Ended,
}

/// The state of a server while it leads the store.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Tenancy {
    by: Term,
    /// The last entry that is known to be in the journal.
    done: Tip,
    /// The last decided entry: `done`, the one in flight, or the last in the queue.
    decided: Tip,
    /// The last ticket of a decided answer.
    ticket: u64,
    flight: Option<Flight>,
    /// Decided entries that are sent after the flight has landed, in order.
    queue: VecDeque<Queued>,
    /// The time of the last append with a heartbeat.
    beaten: Span,
    /// Before this time there are no reaps and no exclusive grants.
    recovers_until: Option<Span>,
    /// The change of the noted run by the next append.
    note: RunNote,
    /// The last entry that granted leases.
    granted: u64,
    wall: Wall,
    snapshot: Option<SnapshotName>,
    /// The snapshot before it, and the time since which it is, or was seen, replaced.
    before: Option<(SnapshotName, Span)>,
    /// Number of snapshots in this tenancy.
    snapshots: u64,
    turning: Option<leading::Turning>,
    ending: Option<leading::Ending>,
    /// The store's last entry at the last attempt to acquire it again after a loss; `None`: no attempt.
    wished: Option<Tip>,
}

/// A decided entry or answer whose append has not begun.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Queued {
    /// `None`: an answer without rows.
    entry: Option<Tip>,
    ticket: u64,
}

/// An append without a reply yet. It is fixed: a retry is the same.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Flight {
    /// The calls that sent it: a reply to any of them is its reply.
    calls: Vec<u64>,
    append: Append<()>,
    /// The last ticket that was decided before it began.
    covers: u64,
    /// The entry before this one.
    after: Tip,
}

impl Election {
    /// A server without any knowledge. `me` and `fresh` are random and were never used before.
    pub fn new(me: ServerId, fresh: StoreId) -> Self {
        Election {
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
            stage: ElectionStage::Looking(Watch::default()),
        }
    }

    /// Sets or withdraws the promise that the store loses nothing: with it, a takeover under another run of Redis does not
    /// recover.
    pub fn forget_never(&mut self, never: bool) {
        self.forgets_never = never;
    }

    /// Takes an input at the time `at` of the own monotonic clock.
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

    /// The answer of this server to another one, at the time `at` of its monotonic clock.
    pub fn word(&self, at: Span) -> ServerWord {
        ServerWord::Says {
            serves: matches!(self.stage, ElectionStage::Owning(_)) && !self.is_cut_off(at),
            served: self.served,
        }
    }

    /// True if it can decide entries: also while the store is away, or during the questions after a loss.
    pub fn decides(&self) -> bool {
        self.tenancy().is_some_and(|tenancy| tenancy.ending.is_none())
    }

    /// The last entry that was sent: a rebuilding snapshot contains it.
    pub fn sent(&self) -> Option<Tip> {
        self.tenancy().map(Tenancy::sent)
    }

    /// True if calls are accepted here; otherwise they are forwarded.
    pub fn serves(&self) -> bool {
        matches!(&self.stage, ElectionStage::Owning(tenancy) if tenancy.ending.is_none())
    }

    /// True if earlier holders may still believe in leases that are unknown here: no reaps and no exclusive grants.
    /// This may start at a loss, and lasts until the others have answered that they know no more and the store is
    /// whole.
    pub fn recovers(&self) -> bool {
        let may_lack = match &self.stage {
            ElectionStage::Asking(_) | ElectionStage::Rebuilding(_) => true,
            ElectionStage::Acquiring { kept, .. } => kept.is_some(),
            _ => false,
        };
        may_lack && !forgets(Mutant::GrantsWhileItAsks)
            || self.tenancy().is_some_and(|tenancy| tenancy.recovers_until.is_some())
    }

    /// The length of a recovery that begins with this load or rebuild; `None`: no recovery. It ends with
    /// [`Action::RecoveryOver`].
    pub fn recovery(&self) -> Option<Span> {
        let recovers = match &self.stage {
            ElectionStage::Loading { by, own, .. } => self.may_have_lost(own, *by),
            ElectionStage::Rebuilding(rebuilding) => rebuilding.recovers || self.recovers(),
            _ => self.recovers(),
        };
        recovers.then_some(self.largest_ttl)
    }

    /// True if it leads the store, but the store has been silent for as long as others need to take over. During a
    /// rebuild the store answers the pieces of the snapshot.
    pub fn is_cut_off(&self, at: Span) -> bool {
        let is_healing = matches!(self.stage, ElectionStage::Rebuilding(_));
        let is_silent = at.us() >= self.heard.us() + BEAT_STANDS.us();
        self.tenancy().is_some() && !is_healing && is_silent
    }

    /// The machine's wall clock.
    pub fn moment(&self, at: Span) -> Option<Moment> {
        self.tenancy().map(|tenancy| tenancy.wall.at(at))
    }

    /// The latest time for the next [`Input::Time`], by the own monotonic clock.
    pub fn wakes_at(&self, now: Span) -> Span {
        let later = |at: Span, span: Span| Span::from_us(at.us() + span.us());
        match &self.stage {
            ElectionStage::Looking(watch) => watch.due_at().unwrap_or(now),
            ElectionStage::Owning(tenancy) => {
                let beat = match tenancy.flight {
                    Some(_) => later(now, BEAT_EVERY),
                    None => later(tenancy.beaten, BEAT_EVERY),
                };
                tenancy.recovers_until.map_or(beat, |until| until.min(beat))
            }
            ElectionStage::Asking(_) => later(now, LOOK_EVERY),
            _ => later(now, BEAT_EVERY),
        }
    }

    /// True if it has ended, as it was asked.
    pub fn has_ended(&self) -> bool {
        matches!(self.stage, ElectionStage::Ended)
    }

    /// The id of the store, if it is known.
    pub fn store(&self) -> Option<StoreId> {
        self.store
    }

    /// The longest known ttl of a lease.
    pub fn largest_ttl(&self) -> Span {
        self.largest_ttl
    }

    /// The epoch at which it leads the store.
    pub fn epoch(&self) -> Option<Epoch> {
        self.tenancy().map(|tenancy| tenancy.by.epoch)
    }

    fn tenancy(&self) -> Option<&Tenancy> {
        match &self.stage {
            ElectionStage::Owning(tenancy) => Some(tenancy),
            ElectionStage::Asking(inquiry) => Some(&inquiry.tenancy),
            ElectionStage::Rebuilding(rebuilding) => Some(&rebuilding.tenancy),
            ElectionStage::Acquiring { kept: Some((tenancy, _)), .. } => Some(tenancy),
            _ => None,
        }
    }

    fn tenancy_mut(&mut self) -> Option<&mut Tenancy> {
        match &mut self.stage {
            ElectionStage::Owning(tenancy) => Some(tenancy),
            ElectionStage::Asking(inquiry) => Some(&mut inquiry.tenancy),
            ElectionStage::Rebuilding(rebuilding) => Some(&mut rebuilding.tenancy),
            ElectionStage::Acquiring { kept: Some((tenancy, _)), .. } => Some(tenancy),
            _ => None,
        }
    }

    /// Sends a call under the next number.
    fn send(&mut self, call: ScriptCall<()>, actions: &mut Vec<Action>) -> u64 {
        self.calls += 1;
        actions.push(Action::Call { number: self.calls, call });
        self.calls
    }

    /// The leader of the store, if it refuses the connections of this server but lives: its heartbeat goes on.
    pub fn unreached(&self) -> Option<ServerId> {
        match &self.stage {
            ElectionStage::Looking(watch) => watch.unreached(),
            _ => None,
        }
    }

    /// R5: drops everything, and looks at the store.
    fn drop_all(&mut self, actions: &mut Vec<Action>) {
        self.robbed = self.tenancy().map(|_| self.heard).or(self.robbed);
        self.stage = ElectionStage::Looking(Watch::default());
        actions.push(Action::DropAll);
    }

    fn time_passed(&mut self, at: Span, actions: &mut Vec<Action>) {
        match &mut self.stage {
            ElectionStage::Looking(watch) if watch.is_due(at) => actions.push(Action::Look),
            ElectionStage::Owning(_) => self.owning_time(at, actions),
            ElectionStage::Asking(inquiry) if inquiry.seen.is_none() => actions.push(Action::Look),
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
            ElectionStage::Acquiring { call: awaited, .. } if *awaited == call => {
                self.acquiring_replied(reply, time, at, actions);
            }
            ElectionStage::Loading { proof: Some((awaited, tip)), .. } if *awaited == call => {
                let tip = *tip;
                self.proof_replied(tip, reply, at, actions);
            }
            ElectionStage::Owning(_) => self.owning_replied(call, reply, time, at, actions),
            ElectionStage::Rebuilding(rebuilding) if rebuilding.call == Some(call) => {
                self.healing_replied(reply, at, actions);
            }
            _ => {}
        }
    }

    /// The outcome of a call is unknown. A repeatable call is retried; a look at the store settles an acquisition.
    fn unsure(&mut self, call: u64, at: Span, actions: &mut Vec<Action>) {
        match &mut self.stage {
            ElectionStage::Acquiring { call: awaited, .. } if *awaited == call => {
                self.acquisition_failed(actions);
            }
            ElectionStage::Loading { proof: Some((awaited, tip)), .. } if *awaited == call => {
                let tip = *tip;
                self.loaded(tip, at, actions);
            }
            ElectionStage::Owning(_) => self.owning_unsure(call, at, actions),
            ElectionStage::Rebuilding(rebuilding) if rebuilding.call == Some(call) => {
                self.send_turn(at, actions);
            }
            _ => {}
        }
    }
}

impl Tenancy {
    fn begin(by: Term, own: &Own, tip: Tip, wall: Wall, at: Span) -> Self {
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
        if forgets(Mutant::SnapshotsAreCounted) {
            let last = self.snapshot.map_or(0, |snapshot| snapshot.generation.count);
            Generation { epoch: Epoch(0), count: last + 1 }
        } else {
            Generation { epoch: self.by.epoch, count: self.snapshots }
        }
    }
}
