//! Another program changes a store between two appends of its leader, while the leader's connection and the Redis
//! process stay. Each row has the answer to the next entry and to the next empty append, equal on the short and the
//! long path.

use tenure_journal::{JournalEntry, Position};
use tenure_redis::{AppendCall, HandOver, Term};
use tenure_testkit::needs_redis;
use tenure_testkit::redis::{Aof, RedisServer};

use crate::replicas::until;
use crate::scripts::{A, B, Said, World, empty_call, entry, entry_call, said};

/// A store with three entries of its leader, and another Redis with its state after the first.
struct Scene {
    world: World,
    other: RedisServer,
    by: Term,
    entries: Vec<JournalEntry>,
}

const DEBUG: [&str; 2] = ["--enable-debug-command", "yes"];
const QUICK: [&str; 2] = ["--repl-diskless-sync-delay", "0"];

impl Scene {
    fn new() -> Scene {
        let more = [DEBUG, QUICK].concat();
        let world = World::with(&more);
        let other = RedisServer::start(Aof::Off, &more);
        let by = world.own(A);
        let mut scene = Scene { world, other, by, entries: Vec::new() };
        scene.begins();
        scene
    }

    /// Restores the state at the start of a row. The leader's connection stays.
    fn begins(&mut self) {
        self.other.must(&["FLUSHALL"]);
        self.world.redis.must(&["CONFIG", "SET", "maxmemory", "0"]);
        self.world.redis.must(&["FLUSHALL"]);
        self.by = self.world.own(A);
        self.entries = Vec::new();
        self.appends(b"one");
        self.copies_to_other();
        self.appends(b"two");
        self.appends(b"three");
    }

    fn last(&self) -> Position {
        self.entries.last().map(JournalEntry::position).unwrap_or_default()
    }

    fn appends(&mut self, body: &[u8]) {
        let next = entry(self.last(), body);
        let call = AppendCall { beats: false, ..entry_call(&self.by, &next) };
        assert_eq!(self.world.append(&call), Said::Done);
        self.entries.push(next);
    }

    fn copies_to_other(&self) {
        follows(&self.other, &self.world.redis);
        self.other.must(&["REPLICAOF", "NO", "ONE"]);
    }

    /// The store's Redis takes over the data of the other one, and is the primary again.
    fn is_set_back(&self) {
        follows(&self.world.redis, &self.other);
        self.world.redis.must(&["REPLICAOF", "NO", "ONE"]);
    }

    fn does(&self, words: &[&str]) {
        self.world.redis.must(words);
    }

    /// The answer; `None` if Redis returns an error.
    fn answer(&self, call: &AppendCall) -> Option<Said> {
        self.world.store.append(call).ok().map(|reply| said(&reply))
    }
}

fn follows(replica: &RedisServer, primary: &RedisServer) {
    replica.must(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    until("it follows", || replica.info("master_link_status") == "up");
}

struct Row {
    what: &'static str,
    does: fn(&Scene),
    entry: Option<Said>,
    empty: Option<Said>,
}

const fn row(what: &'static str, does: fn(&Scene), entry: Said, empty: Said) -> Row {
    Row { what, does, entry: Some(entry), empty: Some(empty) }
}

const ROWS: &[Row] = &[
    row("nothing", |_| {}, Said::Done, Said::Done),
    row("FLUSHALL", |scene| scene.does(&["FLUSHALL"]), Said::Moved, Said::Moved),
    row("FLUSHDB", |scene| scene.does(&["FLUSHDB", "ASYNC"]), Said::Moved, Said::Moved),
    row("SWAPDB", |scene| scene.does(&["SWAPDB", "0", "1"]), Said::Moved, Said::Moved),
    row("own is deleted", |scene| scene.does(&["DEL", "{shop}:own"]), Said::Moved, Said::Moved),
    row(
        "the log is unlinked",
        |scene| scene.does(&["UNLINK", "{shop}:log"]),
        Said::At(0),
        Said::At(0),
    ),
    row(
        "the log is renamed",
        |scene| scene.does(&["RENAME", "{shop}:log", "{shop}:away"]),
        Said::At(0),
        Said::At(0),
    ),
    row(
        "the log expires",
        |scene| scene.does(&["PEXPIREAT", "{shop}:log", "1"]),
        Said::At(0),
        Said::At(0),
    ),
    row(
        "a text in its place",
        |scene| scene.does(&["SET", "{shop}:log", "x"]),
        Said::At(0),
        Said::At(0),
    ),
    row("another acquires", |scene| drop(scene.world.own(B)), Said::Fenced, Said::Fenced),
    row(
        "it is given away",
        |scene| {
            let give = HandOver { by: scene.by.clone(), tip: scene.last(), to: B };
            assert_eq!(scene.world.give(&give), Said::Done);
        },
        Said::Fenced,
        Said::Fenced,
    ),
    // An entry that is missing in the log alone is noticed by the next load, which checks the chain.
    row(
        "XDEL of the newest",
        |scene| scene.does(&["XDEL", "{shop}:log", "3-0"]),
        Said::Done,
        Said::Done,
    ),
    row(
        "XTRIM to one",
        |scene| scene.does(&["XTRIM", "{shop}:log", "MAXLEN", "1"]),
        Said::Done,
        Said::Done,
    ),
    row(
        "XTRIM to none",
        |scene| scene.does(&["XTRIM", "{shop}:log", "MAXLEN", "0"]),
        Said::Done,
        Said::Done,
    ),
    Row {
        what: "a foreign entry of a later id",
        does: |scene| scene.does(&["XADD", "{shop}:log", "*", "a", "b"]),
        entry: None,
        empty: Some(Said::Done),
    },
    Row {
        what: "a foreign entry of the next id",
        does: |scene| scene.does(&["XADD", "{shop}:log", "4-0", "a", "b"]),
        entry: None,
        empty: Some(Said::Done),
    },
    row(
        "own of an older moment",
        |scene| scene.does(&["HSET", "{shop}:own", "number", "1"]),
        Said::At(1),
        Said::At(1),
    ),
    row("DEBUG RELOAD", |scene| scene.does(&["DEBUG", "RELOAD"]), Said::Done, Said::Done),
    row(
        "its memory is full",
        |scene| scene.does(&["CONFIG", "SET", "maxmemory", "1"]),
        Said::Done,
        Said::Done,
    ),
    row("set back to a copy of before", Scene::is_set_back, Said::At(1), Said::At(1)),
    row(
        "set back to a copy with as many entries by chance",
        |scene| {
            for id in ["1-1", "1-2"] {
                scene.other.must(&["XADD", "{shop}:log", id, "a", "b"]);
            }
            scene.is_set_back();
        },
        Said::At(1),
        Said::At(1),
    ),
    row(
        "set back to a copy on which another acquired",
        |scene| {
            let later = (scene.by.epoch + 9).to_string();
            scene.other.must(&[
                "HSET",
                "{shop}:own",
                "epoch",
                &later,
                "owner",
                &format!("{B:032x}"),
            ]);
            scene.is_set_back();
        },
        Said::Fenced,
        Said::Fenced,
    ),
];

#[test]
fn appends_to_an_altered_store_are_answered_right_on_both_paths() {
    needs_redis!();
    let mut scene = Scene::new();
    let run = scene.by.run.clone();
    for Row { what, does, entry: of_entry, empty: of_empty } in ROWS {
        for beats in [false, true] {
            for is_empty in [true, false] {
                scene.begins();
                does(&scene);
                let call = if is_empty {
                    empty_call(&scene.by, scene.last())
                } else {
                    entry_call(&scene.by, &entry(scene.last(), b"four"))
                };
                let answer = scene.answer(&AppendCall { beats, ..call });
                let wanted = if is_empty { of_empty } else { of_entry };
                assert_eq!(answer, *wanted, "{what}; beats: {beats}, empty: {is_empty}");
                assert_eq!(scene.world.redis.info("run_id"), run, "{what}: the process stays");
            }
        }
    }
}

#[test]
fn only_an_append_that_beats_leaves_a_beat_and_says_the_time() {
    needs_redis!();
    let mut scene = Scene::new();
    let before = scene.world.seen();
    let next = entry(scene.last(), b"four");
    for (beats, call) in [
        (false, entry_call(&scene.by, &next)),
        (false, empty_call(&scene.by, next.position())),
        (true, empty_call(&scene.by, next.position())),
    ] {
        let call = AppendCall { beats, moment: 70, ttl: 40, ..call };
        let reply = scene.world.store.append(&call).unwrap();
        let own = scene.world.seen();
        let says = matches!(reply, tenure_redis::ScriptReply::Done { time: Some(_) });
        assert_eq!((own.tip, own.moment, own.largest_ttl), (next.position(), 70, 40));
        assert_eq!((own.beat > before.beat, says), (beats, beats));
        assert!(beats || own.beat == before.beat);
    }
    scene.entries.push(next);
    scene.appends(b"five");
    let own = scene.world.seen();
    assert_eq!((own.moment, own.largest_ttl), (70, 40), "an older moment takes nothing back");
}
