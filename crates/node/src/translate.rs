//! Translates the election's ids, calls and replies to those of the store, and back. The election knows a run of Redis
//! by a number.

use tenure_core::time::{Moment, Span};
use tenure_election::ids::{Epoch, Generation, RunId, ServerId, StoreId, Tip};
use tenure_election::scripts::{Own, RunNote, ScriptCall, ScriptReply, SnapshotName, Term};
use tenure_journal::{JournalEntry, Position};
use tenure_redis as redis;
use tenure_redis::StoreCall;

/// `own` names two snapshots, and one is written at a time.
const SNAPSHOTS_MAX: usize = 8;

/// The facts that only the store's form has: its runs, and the sizes of its snapshots.
#[derive(Default)]
pub(crate) struct Dictionary {
    /// The run of number `n` is at `n - 1`.
    runs: Vec<String>,
    snapshots: Vec<redis::SnapshotName>,
}

pub(crate) fn tip(of: Position) -> Tip {
    Tip { number: of.number, checksum: of.sum }
}

pub(crate) fn position(of: Tip) -> Position {
    Position { number: of.number, sum: of.checksum }
}

pub(crate) fn generation(of: Generation) -> redis::Generation {
    redis::Generation { epoch: of.epoch.0, count: of.count }
}

fn note(of: RunNote) -> redis::RunNote {
    match of {
        RunNote::Stays => redis::RunNote::Stays,
        RunNote::Whole => redis::RunNote::Whole,
        RunNote::Lossy => redis::RunNote::Lossy,
    }
}

impl Dictionary {
    pub fn run(&mut self, run: &str) -> RunId {
        if run.is_empty() {
            return RunId::NONE;
        }
        let known = self.runs.iter().position(|known| known == run);
        let place = known.unwrap_or_else(|| {
            self.runs.push(run.to_owned());
            self.runs.len() - 1
        });
        RunId(place as u128 + 1)
    }

    fn run_text(&self, run: RunId) -> String {
        let place = (run.0 as usize).checked_sub(1);
        place.and_then(|place| self.runs.get(place)).cloned().unwrap_or_default()
    }

    /// Remembers a snapshot that was written or seen.
    pub fn snapshot(&mut self, name: redis::SnapshotName) -> SnapshotName {
        self.snapshots.retain(|known| known.generation != name.generation);
        self.snapshots.push(name);
        let old = self.snapshots.len().saturating_sub(SNAPSHOTS_MAX);
        self.snapshots.drain(..old);
        let redis::Generation { epoch, count } = name.generation;
        let generation = Generation { epoch: Epoch(epoch), count };
        SnapshotName { generation, tip: tip(name.tip), pieces: name.pieces }
    }

    fn snapshot_name(&self, of: SnapshotName) -> redis::SnapshotName {
        let SnapshotName { generation: named, tip, pieces } = of;
        let (named, tip) = (generation(named), position(tip));
        let known = self.snapshots.iter().find(|known| known.generation == named);
        let (bytes, sum) = known.map_or((0, 0), |known| (known.bytes, known.sum));
        redis::SnapshotName { generation: named, tip, pieces, bytes, sum }
    }

    pub fn own(&mut self, own: &redis::Own) -> Own {
        Own {
            store: StoreId(own.store),
            epoch: Epoch(own.epoch),
            leader: ServerId(own.leader),
            tip: tip(own.tip),
            moment: Moment::from_us(own.moment),
            beat: Moment::from_us(own.beat),
            noted_run: self.run(&own.noted_run),
            snapshot: own.snapshot.map(|name| self.snapshot(name)),
            before: own.before.map(|name| self.snapshot(name)),
            largest_ttl: Span::from_us(own.largest_ttl),
        }
    }

    pub fn term(&self, by: &Term) -> redis::Term {
        let (store, epoch, leader) = (by.store.0, by.epoch.0, by.leader.0);
        redis::Term { store, epoch, leader, run: self.run_text(by.run) }
    }

    /// A call with its bytes, which `entry` finds by the number; `None` if there are none, or if this call is not made
    /// here.
    pub fn call(
        &self,
        call: &ScriptCall<()>,
        entry: impl FnOnce(u64) -> Option<JournalEntry>,
    ) -> Option<StoreCall> {
        Some(match call {
            ScriptCall::Acquire(call) => StoreCall::Acquire(redis::Acquisition {
                store: call.store.0,
                leader: call.leader.0,
                seen: call.seen.map(|(epoch, leader)| (epoch.0, leader.0)),
                run: self.run_text(call.run),
                above: call.above.0,
                is_new: call.is_new,
                ttl: call.ttl.us(),
            }),
            ScriptCall::Append(call) => StoreCall::Append(redis::AppendCall {
                by: self.term(&call.by),
                tip: position(call.tip),
                entry: match call.body {
                    Some(()) => Some(entry(call.tip.number)?),
                    None => None,
                },
                moment: call.moment.us(),
                ttl: call.ttl.us(),
                note: note(call.note),
                beats: call.beats,
            }),
            ScriptCall::Turn(call) => StoreCall::Turn(redis::SnapshotTurn {
                by: self.term(&call.by),
                snapshot: self.snapshot_name(call.snapshot),
                heals: call.heals,
                moment: call.moment.us(),
                ttl: call.ttl.us(),
                note: note(call.note),
            }),
            ScriptCall::Give(call) => StoreCall::Give(redis::HandOver {
                by: self.term(&call.by),
                tip: position(call.tip),
                to: call.to.0,
            }),
            ScriptCall::Piece(_) => return None,
        })
    }

    /// A reply, and its TIME if it has one.
    pub fn reply(&mut self, reply: redis::ScriptReply) -> (ScriptReply, Option<Moment>) {
        let at = |time| Some(Moment::from_us(time));
        match reply {
            redis::ScriptReply::Done { time } => (ScriptReply::Done, time.and_then(at)),
            redis::ScriptReply::Acquired { own, run, time } => {
                let reply = ScriptReply::Acquired(Box::new(self.own(&own)), self.run(&run));
                (reply, at(time))
            }
            redis::ScriptReply::NotAsSeen => (ScriptReply::NotAsSeen, None),
            redis::ScriptReply::Fenced => (ScriptReply::Fenced, None),
            redis::ScriptReply::Moved => (ScriptReply::Moved, None),
            redis::ScriptReply::At(number) => (ScriptReply::At(number), None),
            redis::ScriptReply::Refused => (ScriptReply::Refused, None),
        }
    }
}
