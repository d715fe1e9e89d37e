//! Acquisitions and appends.

use tenure_journal::Position;
use tenure_redis::{Acquisition, AppendCall, HandOver, RunNote, ScriptReply, Term};
use tenure_testkit::needs_redis;
use tenure_testkit::redis::{Aof, RedisServer};

use crate::scripts::{A, B, STORE, Said, World, empty_call, entry, entry_call, said};

#[test]
fn an_acquisition_is_repeatable_only_by_the_same_server() {
    needs_redis!();
    let world = World::new();
    let epoch = |reply| match reply {
        ScriptReply::Acquired { own, .. } => Some(own.epoch),
        _ => None,
    };
    let seeing = |seen, leader| Acquisition { seen, ..world.acquisition(leader) };
    let first = epoch(world.acquire(&seeing(None, A)));
    assert!(first.is_some());
    assert_eq!(epoch(world.acquire(&seeing(None, A))), first);
    assert_eq!(world.acquire(&seeing(None, B)), ScriptReply::NotAsSeen);
    let seen = first.map(|epoch| (epoch, A));
    for wrong in [None, Some((first.unwrap(), B)), Some((first.unwrap() - 1, A))] {
        assert_eq!(world.acquire(&seeing(wrong, B)), ScriptReply::NotAsSeen, "{wrong:?}");
    }
    let other = Acquisition { store: 8, ..seeing(seen, B) };
    assert_eq!(world.acquire(&other), ScriptReply::Moved);
    assert!(epoch(world.acquire(&seeing(seen, B))) > first);
}

#[test]
fn an_epoch_is_the_clock_in_us_and_above_each_known_epoch() {
    needs_redis!();
    let world = World::new();
    let by = world.own(A);
    let clock = world.redis.must(&["TIME"]).list()[0].text();
    assert!(by.epoch.to_string().starts_with(&clock[..7]), "{} at {clock}", by.epoch);
    assert_eq!(world.seen().epoch, by.epoch, "all digits are kept");
    // 2^52: like the clock in the year 2112.
    let above = 1 << 52;
    let acquisition = Acquisition { above, ..world.acquisition(B) };
    assert_eq!(said(&world.acquire(&acquisition)), Said::Done);
    assert_eq!(world.seen().epoch, above + 1);
}

#[test]
fn a_store_without_its_own_notes_no_run_unless_it_is_new() {
    needs_redis!();
    for is_new in [true, false] {
        let world = World::new();
        world.acquire(&Acquisition { is_new, ..world.acquisition(A) });
        let run = world.redis.info("run_id");
        assert_eq!(world.seen().noted_run, if is_new { run } else { String::new() });
    }
}

#[test]
fn an_append_is_checked_for_store_epoch_leader_run_and_content() {
    needs_redis!();
    let world = World::new();
    let by = world.own(A);
    let written = world.fill(&by, &[b"one", b"two"]);
    let (one, two) = (&written[0], &written[1]);
    let three = entry(two.position(), b"three");
    let other_two = entry(one.position(), b"zwei");
    let four = entry(three.position(), b"four");
    let epoch = |epoch| Term { epoch, ..by.clone() };
    for (what, call, answer) in [
        ("the last again", entry_call(&by, two), Said::Done),
        ("one before it again", entry_call(&by, one), Said::Done),
        ("another content", entry_call(&by, &other_two), Said::Fenced),
        (
            "another content before",
            entry_call(&by, &entry(Position::default(), b"x")),
            Said::Fenced,
        ),
        ("not the next", entry_call(&by, &four), Said::At(2)),
        ("empty", empty_call(&by, two.position()), Said::Done),
        ("empty, again and late", empty_call(&by, one.position()), Said::Done),
        ("empty, of the beginning", empty_call(&by, Position::default()), Said::Done),
        ("empty, of a missing entry", empty_call(&by, three.position()), Said::At(2)),
        ("empty, of another entry", empty_call(&by, other_two.position()), Said::Fenced),
        ("an older epoch", entry_call(&epoch(by.epoch - 1), &three), Said::Fenced),
        ("a later epoch", entry_call(&epoch(by.epoch + 1), &three), Said::Moved),
        ("another owner", entry_call(&Term { leader: B, ..by.clone() }, &three), Said::Moved),
        ("another store", entry_call(&Term { store: 8, ..by.clone() }, &three), Said::Moved),
        (
            "another run",
            entry_call(&Term { run: "0".repeat(40), ..by.clone() }, &three),
            Said::Moved,
        ),
    ] {
        assert_eq!(world.append(&call), answer, "{what}");
        assert_eq!(world.redis.must(&["XLEN", "{shop}:log"]).text(), "2", "{what}");
    }
    assert_eq!(world.append(&entry_call(&by, &three)), Said::Done);
    assert_eq!(world.store.read(0).unwrap(), [one.clone(), two.clone(), three]);
}

#[test]
fn a_heartbeat_append_notes_its_moment_and_no_repeat_undoes_it() {
    needs_redis!();
    let world = World::new();
    let by = world.own(A);
    let first = entry(Position::default(), b"one");
    let call = AppendCall { moment: 50, ttl: 30, ..entry_call(&by, &first) };
    let mut beat = world.seen().beat;
    let mut append = |call: &AppendCall| {
        assert_eq!(world.append(call), Said::Done);
        let own = world.seen();
        assert!(own.beat > beat, "a beat is the store's clock");
        beat = own.beat;
        (own.moment, own.largest_ttl)
    };
    assert_eq!(append(&call), (50, 30));
    assert_eq!(append(&AppendCall { moment: 70, ..empty_call(&by, first.position()) }), (70, 30));
    assert_eq!(append(&call), (70, 30));
    assert_eq!(append(&AppendCall { ttl: 40, ..empty_call(&by, first.position()) }), (70, 40));
}

#[test]
fn a_run_is_noted_by_the_append_that_says_so() {
    needs_redis!();
    let world = World::new();
    world.acquire(&Acquisition { is_new: false, ..world.acquisition(A) });
    let by = world.own(B);
    let mut call = empty_call(&by, Position::default());
    assert_eq!((world.append(&call), world.seen().noted_run.as_str()), (Said::Done, ""));
    call.note = RunNote::Whole;
    assert_eq!((world.append(&call), world.seen().noted_run), (Said::Done, by.run));
}

#[test]
fn a_fenced_leader_appends_nothing() {
    needs_redis!();
    let world = World::new();
    let (old, new) = (world.own(A), world.own(B));
    let one = entry(Position::default(), b"one");
    assert_eq!(world.append(&entry_call(&old, &one)), Said::Fenced);
    assert_eq!(world.append(&empty_call(&old, Position::default())), Said::Fenced);
    assert_eq!(world.append(&entry_call(&new, &one)), Said::Done);
}

#[test]
fn a_redis_that_was_started_again_or_emptied_takes_no_append() {
    needs_redis!();
    let mut world = World::on(RedisServer::start(Aof::Always, &[]));
    let by = world.own(A);
    let one = world.fill(&by, &[b"one"]).remove(0);
    world.redis.restart();
    assert_eq!(world.store.read(0).unwrap().len(), 1, "it kept all");
    let two = entry(one.position(), b"two");
    assert_eq!(world.append(&entry_call(&by, &two)), Said::Moved);
    assert_eq!(world.append(&empty_call(&by, one.position())), Said::Moved);
    let again = world.own(B);
    assert_eq!(world.append(&entry_call(&again, &two)), Said::Done);
    assert_eq!(world.seen().noted_run, by.run, "an acquisition notes no run");
    world.redis.must(&["FLUSHALL"]);
    assert_eq!(world.append(&empty_call(&again, two.position())), Said::Moved);
}

#[test]
fn a_store_that_is_given_away_is_the_other_servers() {
    needs_redis!();
    let world = World::new();
    let by = world.own(A);
    let one = world.fill(&by, &[b"one"]).remove(0);
    let give = |tip| HandOver { by: by.clone(), tip, to: B };
    assert_eq!(world.give(&give(entry(one.position(), b"two").position())), Said::At(1));
    assert_eq!(world.give(&give(entry(Position::default(), b"uno").position())), Said::Fenced);
    for _ in 0..2 {
        assert_eq!(world.give(&give(one.position())), Said::Done);
    }
    let own = world.seen();
    assert!(own.leader == B && own.epoch > by.epoch);
    assert_eq!(world.append(&empty_call(&by, one.position())), Said::Fenced);
    let foreign = HandOver { by: Term { store: 8, ..by.clone() }, tip: one.position(), to: B };
    assert_eq!(world.give(&foreign), Said::Moved);
}

#[test]
fn a_full_redis_takes_appends_and_acquisitions() {
    needs_redis!();
    let world = World::new();
    let by = world.own(A);
    world.redis.must(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(world.redis.call(&["SET", "x", "y"]).is_err(), "it is full");
    let one = entry(Position::default(), b"one");
    assert_eq!(world.append(&entry_call(&by, &one)), Said::Done);
    assert_eq!(world.append(&empty_call(&by, one.position())), Said::Done);
    let again = world.own(B);
    assert_eq!(again.store, STORE);
}

#[test]
fn entries_of_any_bytes_and_of_8_mib_come_back_as_they_were() {
    needs_redis!();
    let world = World::new();
    let by = world.own(A);
    let all_bytes: Vec<u8> = (0..=255).collect();
    let mut state = 1u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(8 << 20)
    .collect();
    let text = b"a payload that compresses well; ".repeat(1000);
    let entries = world.fill(&by, &[&all_bytes, b"", b"\r\n", &noise, &text]);
    let mut read = Vec::new();
    while read.len() < entries.len() {
        read.extend(world.store.read(read.len() as u64).unwrap());
    }
    assert_eq!(read, entries);
    let last = world.redis.must(&["XRANGE", "{shop}:log", "5-0", "5-0"]);
    let fields = last.list()[0].list()[1].list().to_vec();
    assert_eq!(fields[0].text(), "z", "the text is compressed");
    assert!(fields[1].text().len() < text.len() / 4);
}

#[test]
fn a_log_that_is_gone_ends_the_journal_at_its_snapshot() {
    needs_redis!();
    let gone: [&[&[&str]]; 4] = [
        &[&["DEL", "{shop}:log"]],
        &[&["RENAME", "{shop}:log", "{shop}:elsewhere"]],
        &[&["DEL", "{shop}:log"], &["SET", "{shop}:log", "x"]],
        &[&["PEXPIREAT", "{shop}:log", "1"]],
    ];
    for commands in gone {
        let world = World::new();
        let by = world.own(A);
        let entries = world.fill(&by, &[b"one", b"two"]);
        let last = entries[1].position();
        assert_eq!(world.append(&empty_call(&by, last)), Said::Done);
        for command in commands {
            world.redis.must(command);
        }
        // A heartbeat notices it, and so does an entry.
        assert_eq!(world.append(&empty_call(&by, last)), Said::At(0), "{commands:?}");
        assert_eq!(world.seen().tip, Position::default());
        let next = entry(last, b"three");
        assert_eq!(world.append(&entry_call(&by, &next)), Said::At(0), "{commands:?}");
    }
}
