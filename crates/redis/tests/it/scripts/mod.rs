//! The scripts on a real Redis: each refuses what it must, and answers a repeat like the first call.

mod appends;
mod copies;
mod hostile;
mod loads;
mod model;
mod snapshots;

use tenure_core::redis_address::Address;
use tenure_journal::{JournalEntry, Position};
use tenure_redis::{
    Acquisition, AppendCall, HandOver, Own, PieceCall, RedisStore, RunNote, ScriptReply,
    SnapshotTurn, Term,
};
use tenure_testkit::redis::{Aof, RedisServer};

const STORE: u128 = 7;
const A: u128 = 1;
const B: u128 = 2;

/// A Redis, and a store in it.
struct World {
    redis: RedisServer,
    store: RedisStore,
}

/// The reply of a script, without the clock.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Said {
    Done,
    NotAsSeen,
    Fenced,
    Moved,
    At(u64),
    Refused,
}

fn said(reply: &ScriptReply) -> Said {
    match reply {
        ScriptReply::Done { .. } | ScriptReply::Acquired { .. } => Said::Done,
        ScriptReply::NotAsSeen => Said::NotAsSeen,
        ScriptReply::Fenced => Said::Fenced,
        ScriptReply::Moved => Said::Moved,
        ScriptReply::At(number) => Said::At(*number),
        ScriptReply::Refused => Said::Refused,
    }
}

impl World {
    fn with(more: &[&str]) -> World {
        World::on(RedisServer::start(Aof::Off, more))
    }

    fn on(redis: RedisServer) -> World {
        let address = Address::parse(&redis.url()).unwrap();
        World { store: RedisStore::open(address, "shop").unwrap(), redis }
    }

    fn new() -> World {
        World::with(&[])
    }

    fn acquire(&self, acquisition: &Acquisition) -> ScriptReply {
        self.store.acquire(acquisition).unwrap()
    }

    /// Acquires the store for `leader`, by force.
    fn own(&self, leader: u128) -> Term {
        match self.acquire(&self.acquisition(leader)) {
            ScriptReply::Acquired { own, run, .. } => {
                Term { store: STORE, epoch: own.epoch, leader, run }
            }
            other => panic!("not acquired: {other:?}"),
        }
    }

    /// An acquisition from the current state of the store.
    fn acquisition(&self, leader: u128) -> Acquisition {
        let seen = self.store.look().unwrap();
        let of_own = seen.own.map(|own| (own.epoch, own.leader));
        let (store, run) = (STORE, seen.run);
        Acquisition { store, leader, seen: of_own, run, above: 0, is_new: true, ttl: 0 }
    }

    fn append(&self, call: &AppendCall) -> Said {
        said(&self.store.append(call).unwrap())
    }

    fn piece(&self, call: &PieceCall) -> Said {
        said(&self.store.piece(call).unwrap())
    }

    fn turn(&self, call: &SnapshotTurn) -> Said {
        said(&self.store.turn(call).unwrap())
    }

    fn give(&self, call: &HandOver) -> Said {
        said(&self.store.give(call).unwrap())
    }

    /// The hash `own`, as it is in Redis now.
    fn seen(&self) -> Own {
        self.store.look().unwrap().own.expect("the store has an owner")
    }

    /// Fills the store with these entries.
    fn fill(&self, by: &Term, bodies: &[&[u8]]) -> Vec<JournalEntry> {
        let mut entries: Vec<JournalEntry> = Vec::new();
        for body in bodies {
            let before = entries.last().map(JournalEntry::position).unwrap_or_default();
            let entry = JournalEntry::after(before, 1, body);
            assert_eq!(self.append(&entry_call(by, &entry)), Said::Done);
            entries.push(entry);
        }
        entries
    }
}

fn entry_call(by: &Term, entry: &JournalEntry) -> AppendCall {
    AppendCall { entry: Some(entry.clone()), ..empty_call(by, entry.position()) }
}

fn empty_call(by: &Term, tip: Position) -> AppendCall {
    let (by, note) = (by.clone(), RunNote::Stays);
    AppendCall { by, tip, entry: None, moment: 0, ttl: 0, note, beats: true }
}

fn entry(before: Position, body: &[u8]) -> JournalEntry {
    JournalEntry::after(before, 1, body)
}
