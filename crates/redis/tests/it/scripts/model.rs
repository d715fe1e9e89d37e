//! Random calls on Redis and on the pure model of the scripts, side by side: all answers and the final states must be
//! equal. The model is the specification.

use std::fmt::Write as _;

use tenure_core::time::{Moment, Span};
use tenure_election::ids::{Epoch, Generation, RunId, ServerId, StoreId, Tip};
use tenure_election::scripts as model;
use tenure_election::scripts::{Keys, ScriptCall, ScriptReply};
use tenure_journal::{JournalEntry, Position};
use tenure_redis as real;
use tenure_redis::ScriptReply as Replied;
use tenure_testkit::redis::{Aof, RedisServer};
use tenure_testkit::{Dice, needs_redis};

use crate::scripts::World;

fn note(of: model::RunNote) -> real::RunNote {
    match of {
        model::RunNote::Stays => real::RunNote::Stays,
        model::RunNote::Whole => real::RunNote::Whole,
        model::RunNote::Lossy => real::RunNote::Lossy,
    }
}

type Call = ScriptCall<JournalEntry>;

const STEPS: u64 = 400;
const SEEDS: u64 = 20;

/// The final state, dumped by Redis: the stream with the checksums and bytes in hex, and the pieces.
const DUMP: &str = r"
local function hex(bytes)
  return (string.gsub(bytes, '.', function(byte) return string.format('%02x', string.byte(byte)) end))
end
local all = {}
for _, entry in ipairs(redis.call('XRANGE', '{shop}:log', '-', '+')) do
  all[#all + 1] = entry[1] .. ' ' .. hex(entry[2][2])
end
local pieces = redis.call('KEYS', '{shop}:snap:*')
table.sort(pieces)
for _, piece in ipairs(pieces) do all[#all + 1] = piece .. ' ' .. hex(redis.call('GET', piece)) end
all[#all + 1] = 'ttl ' .. (redis.call('HGET', '{shop}:store', 'ttl') or '0')
return all";

/// Copies all keys from one prefix to another, and replaces the keys there.
const COPY: &str = r"
for _, key in ipairs(redis.call('KEYS', ARGV[2] .. '*')) do redis.call('DEL', key) end
for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do
  redis.call('COPY', key, ARGV[2] .. string.sub(key, #ARGV[1] + 1))
end";

struct Both {
    world: World,
    keys: Keys<JournalEntry>,
    /// The state at the last copy of the keys: the data of a replica that lags.
    copied: Option<Keys<JournalEntry>>,
    /// The run ids by their numbers in the model, from 1.
    runs: Vec<String>,
    calls: Vec<Call>,
    dice: Dice,
    /// Appends that took the short path.
    short: u32,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn tip(of: Position) -> Tip {
    Tip { number: of.number, checksum: of.sum }
}

fn position(of: Tip) -> Position {
    Position { number: of.number, sum: of.checksum }
}

fn generation(of: Generation) -> real::Generation {
    real::Generation { epoch: of.epoch.0, count: of.count }
}

fn snapshot(of: model::SnapshotName) -> real::SnapshotName {
    let model::SnapshotName { generation: named, tip, pieces } = of;
    let tip = position(tip);
    real::SnapshotName { generation: generation(named), tip, pieces, bytes: 0, sum: 0 }
}

impl Both {
    fn run(&self, run: RunId) -> String {
        match run {
            RunId::NONE => String::new(),
            RunId(n) => self.runs.get(n as usize - 1).cloned().unwrap_or_else(|| "0".repeat(40)),
        }
    }

    /// The model does not know the snapshot that is being written: no script decides by it.
    fn own(&self, own: &model::Own, writing: Option<real::Generation>) -> real::Own {
        real::Own {
            writing,
            store: own.store.0,
            epoch: own.epoch.0,
            leader: own.leader.0,
            tip: position(own.tip),
            moment: own.moment.us(),
            beat: own.beat.us(),
            noted_run: self.run(own.noted_run),
            largest_ttl: own.largest_ttl.us(),
            snapshot: own.snapshot.map(snapshot),
            before: own.before.map(snapshot),
        }
    }

    fn by(&self, by: &model::Term) -> real::Term {
        let (store, epoch, leader) = (by.store.0, by.epoch.0, by.leader.0);
        real::Term { store, epoch, leader, run: self.run(by.run) }
    }

    fn in_redis(&self, call: &Call) -> Replied {
        let store = &self.world.store;
        let reply = match call {
            ScriptCall::Acquire(call) => store.acquire(&real::Acquisition {
                store: call.store.0,
                leader: call.leader.0,
                seen: call.seen.map(|(epoch, leader)| (epoch.0, leader.0)),
                run: self.run(call.run),
                above: call.above.0,
                is_new: call.is_new,
                ttl: call.ttl.us(),
            }),
            ScriptCall::Append(call) => store.append(&real::AppendCall {
                by: self.by(&call.by),
                tip: position(call.tip),
                entry: call.body.clone(),
                moment: call.moment.us(),
                ttl: call.ttl.us(),
                note: note(call.note),
                beats: call.beats,
            }),
            ScriptCall::Piece(call) => store.piece(&real::PieceCall {
                by: self.by(&call.by),
                generation: generation(call.generation),
                index: call.index,
                body: call.body.as_ref().map(|body| body.bytes().to_vec()),
            }),
            ScriptCall::Turn(call) => store.turn(&real::SnapshotTurn {
                by: self.by(&call.by),
                snapshot: snapshot(call.snapshot),
                heals: call.heals,
                moment: call.moment.us(),
                ttl: call.ttl.us(),
                note: note(call.note),
            }),
            ScriptCall::Give(call) => store.give(&real::HandOver {
                by: self.by(&call.by),
                tip: position(call.tip),
                to: call.to.0,
            }),
        };
        reply.unwrap()
    }

    /// Plays one call on both. The model's clock is Redis's, which only shows when a call was done.
    fn play(&mut self, call: &Call) -> (ScriptReply, ScriptReply) {
        let reply = self.in_redis(call);
        let time = match &reply {
            Replied::Done { time: Some(time) } | Replied::Acquired { time, .. } => {
                Moment::from_us(*time)
            }
            Replied::Done { time: None } => {
                self.short += 1;
                Moment::ZERO
            }
            _ => Moment::ZERO,
        };
        let wanted = self.keys.call(call, time);
        let came = match reply {
            Replied::Done { .. } => ScriptReply::Done,
            Replied::Acquired { own, run, .. } => match &wanted {
                ScriptReply::Acquired(wanted, _) => {
                    assert_eq!(*own, self.own(wanted, own.writing), "what {call:?} acquired");
                    assert_eq!(run, self.run(self.keys.run));
                    ScriptReply::Acquired(wanted.clone(), self.keys.run)
                }
                other => panic!("{call:?} acquired {own:?}, and the model says {other:?}"),
            },
            Replied::NotAsSeen => ScriptReply::NotAsSeen,
            Replied::Fenced => ScriptReply::Fenced,
            Replied::Moved => ScriptReply::Moved,
            Replied::At(number) => ScriptReply::At(number),
            Replied::Refused => ScriptReply::Refused,
        };
        (came, wanted)
    }

    fn assert_alike(&self, after: &str) {
        let seen = self.world.store.look().unwrap();
        assert_eq!(seen.store, self.keys.store.map(|id| id.0), "store after {after}");
        let writing = seen.own.as_ref().and_then(|own| own.writing);
        let own = self.keys.own.as_ref().map(|own| self.own(own, writing));
        assert_eq!(seen.own, own, "own after {after}");
        let log = self.keys.log.iter().map(|(number, logged)| {
            assert_eq!(logged.checksum, logged.body.position().sum);
            format!("{number}-0 {}", hex(logged.body.bytes()))
        });
        let pieces = self.keys.pieces.iter().map(|((named, index), body)| {
            let key = self.world.store.keys().piece(generation(*named), *index);
            format!("{key} {}", hex(body.bytes()))
        });
        let mut pieces: Vec<_> = pieces.collect();
        pieces.sort();
        let ttl = format!("ttl {}", self.keys.store_ttl.us());
        let wanted: Vec<_> = log.chain(pieces).chain([ttl]).collect();
        let dump = self.world.redis.must(&["EVAL", DUMP, "0"]);
        let there: Vec<_> = dump.list().iter().map(|line| line.text()).collect();
        assert_eq!(there, wanted, "log and pieces after {after}");
    }

    fn flush(&mut self) {
        self.world.redis.must(&["FLUSHALL"]);
        (self.keys, self.copied) = (Keys::empty(self.keys.run), None);
    }

    fn copy(&self, from: &str, to: &str) {
        self.world.redis.must(&["EVAL", COPY, "0", from, to]);
    }

    fn restart(&mut self) {
        self.world.redis.restart();
        self.runs.push(self.world.redis.info("run_id"));
        self.keys.run = RunId(self.runs.len() as u128);
    }

    /// Changes the store without a script. Returns a description.
    fn loses(&mut self) -> String {
        match self.dice.below(6) {
            0 => {
                self.flush();
                "everything was deleted"
            }
            1 => {
                self.copy("{shop}:", "{copy}:");
                self.copied = Some(self.keys.clone());
                "it was copied"
            }
            2 if let Some(copied) = self.copied.clone() => {
                self.copy("{copy}:", "{shop}:");
                self.keys = Keys { run: self.keys.run, ..copied };
                "a copy took its place"
            }
            3 => {
                self.world.redis.must(&["DEL", "{shop}:store"]);
                (self.keys.store, self.keys.store_ttl) = (None, Span::ZERO);
                "the id of the store was deleted"
            }
            _ => {
                let (store, ttl) = (self.some_store(), self.some_ttl());
                let naming = real::StoreNaming { store: store.0, ttl: ttl.us() };
                let reply = self.world.store.name_store(&naming).unwrap();
                assert!(matches!(reply, Replied::Done { .. }), "{reply:?}");
                self.keys.name_store(store, ttl);
                "the store was named"
            }
        }
        .to_owned()
    }

    fn some_store(&mut self) -> StoreId {
        let own = self.keys.own.as_ref().map(|own| own.store);
        if self.dice.one_in(10) {
            StoreId(8)
        } else {
            own.or(self.keys.store).unwrap_or(StoreId(7))
        }
    }

    fn some_server(&mut self) -> ServerId {
        ServerId(u128::from(1 + self.dice.below(3)))
    }

    fn some_ttl(&mut self) -> Span {
        Span::from_us(self.dice.below(50))
    }

    fn some_run(&mut self) -> RunId {
        if self.dice.one_in(8) {
            RunId(u128::from(self.dice.below(self.runs.len() as u64 + 2)))
        } else {
            self.keys.run
        }
    }

    fn some_by(&mut self) -> model::Term {
        let own = self.keys.own.as_ref().map(|own| (own.epoch, own.leader));
        let (epoch, leader) = own.unwrap_or((Epoch(1), ServerId(1)));
        let epoch = match self.dice.below(16) {
            0 => Epoch(epoch.0 - 1),
            1 => Epoch(epoch.0 + 1),
            _ => epoch,
        };
        let leader = if self.dice.one_in(12) { self.some_server() } else { leader };
        model::Term { store: self.some_store(), epoch, leader, run: self.some_run() }
    }

    fn last(&self) -> Tip {
        self.keys.own.as_ref().map(|own| own.tip).unwrap_or_default()
    }

    /// The tip of an existing or former entry, of one that never existed, or of the last.
    fn some_tip(&mut self) -> Tip {
        let there: Vec<_> = self.keys.log.values().map(|logged| logged.body.position()).collect();
        match self.dice.below(6) {
            0 => Tip { number: self.last().number + self.dice.below(3), checksum: 5 },
            1 | 2 => self.dice.one(&there).map_or_else(Tip::default, |there| tip(*there)),
            _ => self.last(),
        }
    }

    fn some_entry(&mut self) -> JournalEntry {
        let before = if self.dice.one_in(3) { self.some_tip() } else { self.last() };
        JournalEntry::after(position(before), 1, &[self.dice.below(2) as u8])
    }

    fn some_generation(&mut self) -> Generation {
        let named = self.keys.own.as_ref().and_then(|own| own.snapshot);
        let epoch = self.keys.own.as_ref().map_or(Epoch(1), |own| own.epoch);
        match named {
            Some(named) if self.dice.one_in(3) => named.generation,
            _ => Generation { epoch, count: 1 + self.dice.below(3) },
        }
    }

    fn some_call(&mut self) -> Call {
        if self.dice.one_in(4)
            && let Some(old) = self.dice.one(&self.calls)
        {
            return old.clone();
        }
        let moment = Moment::from_us(self.dice.below(100));
        let ttl = self.some_ttl();
        let note = match self.dice.below(8) {
            0 | 1 => model::RunNote::Whole,
            2 => model::RunNote::Lossy,
            _ => model::RunNote::Stays,
        };
        match self.dice.below(10) {
            0 => {
                let seen = self.keys.own.as_ref().map(|own| (own.epoch, own.leader));
                let above = self.some_by().epoch;
                ScriptCall::Acquire(model::Acquisition {
                    store: self.some_store(),
                    seen: if self.dice.one_in(8) { None } else { seen },
                    run: self.some_run(),
                    above: if self.dice.one_in(2) { Epoch(0) } else { above },
                    leader: self.some_server(),
                    is_new: self.dice.one_in(2),
                    ttl,
                })
            }
            1..5 => {
                let body = (!self.dice.one_in(3)).then(|| self.some_entry());
                let tip = body.as_ref().map(|body| tip(body.position()));
                let tip = tip.unwrap_or_else(|| self.some_tip());
                let by = self.some_by();
                let beats = self.dice.one_in(4);
                ScriptCall::Append(model::Append { by, tip, body, moment, ttl, note, beats })
            }
            5..8 => ScriptCall::Piece(model::PieceCall {
                by: self.some_by(),
                generation: self.some_generation(),
                index: self.dice.below(2) as u32,
                body: (!self.dice.one_in(4)).then(|| self.some_entry()),
            }),
            8 => {
                let (generation, pieces) = (self.some_generation(), self.dice.below(3) as u32);
                let snapshot = model::SnapshotName { generation, tip: self.some_tip(), pieces };
                let (by, heals) = (self.some_by(), self.dice.one_in(3));
                ScriptCall::Turn(model::SnapshotTurn { by, snapshot, heals, moment, ttl, note })
            }
            _ => ScriptCall::Give(model::HandOver {
                by: self.some_by(),
                tip: self.some_tip(),
                to: self.some_server(),
            }),
        }
    }
}

#[test]
fn redis_answers_and_holds_what_the_model_says() {
    needs_redis!();
    let world = World::on(RedisServer::start(Aof::Always, &[]));
    let runs = vec![world.redis.info("run_id")];
    let (keys, calls) = (Keys::empty(RunId(1)), Vec::new());
    let (copied, dice) = (None, Dice::mixed(1));
    let mut both = Both { world, keys, copied, runs, calls, dice, short: 0 };
    let mut answers = std::collections::BTreeMap::<String, u32>::new();
    for seed in 1..=SEEDS {
        both.flush();
        both.calls.clear();
        both.dice = Dice::mixed(seed);
        for step in 0..STEPS {
            let after = match both.dice.below(20) {
                0 => both.loses(),
                // It takes a while, so only some seeds do it.
                _ if step == STEPS / 2 && seed % 4 == 0 => {
                    both.restart();
                    "a new start".to_owned()
                }
                _ => {
                    let call = both.some_call();
                    let (came, wanted) = both.play(&call);
                    assert_eq!(came, wanted, "seed {seed}, step {step}: {call:?}");
                    both.calls.push(call.clone());
                    let kinds = [format!("{call:?}"), format!("{came:?}")];
                    let kinds = kinds.map(|kind| kind.split('(').next().unwrap().to_owned());
                    *answers.entry(kinds.join(" ")).or_default() += 1;
                    format!("{call:?}")
                }
            };
            both.assert_alike(&format!("seed {seed}, step {step}: {after}"));
        }
    }
    assert!(both.short > 50, "{} appends were done the short way", both.short);
    // A test that never gets each of these answers compares little.
    for kind in [
        "Acquire Acquired",
        "Acquire NotAsSeen",
        "Acquire Moved",
        "Append Done",
        "Append Fenced",
        "Append Moved",
        "Append At",
        "Piece Done",
        "Piece Moved",
        "Piece Refused",
        "Turn Done",
        "Turn Fenced",
        "Turn At",
        "Turn Refused",
        "Give Done",
        "Give Fenced",
        "Give Moved",
        "Give At",
    ] {
        assert!(answers.get(kind).is_some_and(|count| *count > 2), "{kind} in {answers:?}");
    }
}
