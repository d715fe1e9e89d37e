//! Reading the entries back: an entry that is missing or damaged is an error, and never the end.

use tenure_journal::{BadEntry, ReadError};
use tenure_testkit::needs_redis;

use crate::scripts::{A, World};

#[test]
fn entries_come_in_pages_without_a_hole() {
    needs_redis!();
    let world = World::new();
    let by = world.own(A);
    let bodies: Vec<Vec<u8>> = (0u32..300).map(|n| n.to_le_bytes().repeat(8_000)).collect();
    let entries = world.fill(&by, &bodies.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let (mut read, mut pages) = (Vec::new(), 0);
    loop {
        let page = world.store.read(read.len() as u64).unwrap();
        if page.is_empty() {
            break;
        }
        assert!(page.len() < 150, "{} entries of 32 KB are too many at once", page.len());
        (read, pages) = ([read, page].concat(), pages + 1);
    }
    assert!(read == entries && pages > 3, "{pages} pages");
}

#[test]
fn what_is_missing_or_damaged_is_said_and_is_never_the_end() {
    needs_redis!();
    let hole = |number| ReadError::Damaged {
        number,
        why: BadEntry::OutOfTurn { number: number + 1, wanted: number },
    };
    let damaged = |number| ReadError::Damaged { number, why: BadEntry::Damaged };
    let missing = |number, last| ReadError::Missing { number, last };
    for (what, words, after, fault) in [
        ("the first is gone", &["XDEL", "{shop}:log", "1-0"][..], 0, hole(1)),
        ("one in the middle is gone", &["XDEL", "{shop}:log", "2-0"], 0, hole(2)),
        ("the last is gone", &["XDEL", "{shop}:log", "3-0"], 2, missing(3, 3)),
        ("the stream is gone", &["UNLINK", "{shop}:log"], 0, missing(1, 3)),
        (
            "an entry is another",
            &["XADD", "{shop}:log", "4-0", "e", "twenty-six bytes are a head"],
            3,
            damaged(4),
        ),
        (
            "an entry is compressed otherwise",
            &["XADD", "{shop}:log", "4-0", "z", "twenty-six bytes are a head and this is none"],
            3,
            damaged(4),
        ),
        ("an entry has no such field", &["XADD", "{shop}:log", "4-0", "x", ""], 3, damaged(4)),
    ] {
        let world = World::new();
        let by = world.own(A);
        world.fill(&by, &[b"one", b"two", b"three"]);
        world.redis.must(words);
        assert_eq!(world.store.read(after), Err(fault), "{what}");
    }
}

#[test]
fn entries_whose_checksums_are_no_chain_are_damage() {
    needs_redis!();
    let world = World::new();
    let by = world.own(A);
    world.fill(&by, &[b"one"]);
    // An intact entry that was written after another one.
    let stray = World::new();
    let other = stray.own(A);
    stray.fill(&other, &[b"uno", b"due"]);
    let dump = stray.redis.must(&["XLEN", "{shop}:log"]).text();
    assert_eq!(dump, "2");
    let due = stray.store.read(1).unwrap().remove(0);
    let call = crate::scripts::entry_call(&by, &due);
    // The script knows checksums but not their chain.
    assert_eq!(world.append(&call), crate::scripts::Said::Done);
    let fault = ReadError::Damaged { number: 2, why: BadEntry::OtherPast { before: 1 } };
    assert_eq!(world.store.read(0), Err(fault));
}
