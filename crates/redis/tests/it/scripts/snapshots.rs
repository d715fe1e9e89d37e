//! Pieces of snapshots, and their installation.

use tenure_journal::Position;
use tenure_redis::{Generation, PieceCall, RunNote, SnapshotName, SnapshotTurn, Term};
use tenure_testkit::needs_redis;

use crate::scripts::{A, B, Said, World, empty_call, entry, entry_call};

fn piece(by: &Term, count: u64, index: u32, body: Option<&[u8]>) -> PieceCall {
    let generation = Generation { epoch: by.epoch, count };
    PieceCall { by: by.clone(), generation, index, body: body.map(<[u8]>::to_vec) }
}

fn turn(by: &Term, count: u64, tip: Position, heals: bool) -> SnapshotTurn {
    let generation = Generation { epoch: by.epoch, count };
    let snapshot = SnapshotName { generation, tip, pieces: 2, bytes: 10, sum: u64::MAX };
    SnapshotTurn {
        by: by.clone(),
        snapshot,
        heals,
        moment: 9,
        ttl: 8,
        note: if heals { RunNote::Whole } else { RunNote::Stays },
    }
}

fn write(world: &World, by: &Term, count: u64) {
    for index in 0..2 {
        assert_eq!(world.piece(&piece(by, count, index, Some(b"\0rows"))), Said::Done);
    }
}

fn pieces(world: &World) -> usize {
    world.redis.must(&["KEYS", "{shop}:snap:*"]).list().len()
}

#[test]
fn an_install_needs_all_chunks_and_keeps_the_entries_after_it() {
    needs_redis!();
    let world = World::new();
    let by = world.own(A);
    let entries = world.fill(&by, &[b"one", b"two", b"three"]);
    let two = entries[1].position();
    assert_eq!(world.turn(&turn(&by, 1, two, false)), Said::Refused);
    world.piece(&piece(&by, 1, 0, Some(b"rows")));
    assert_eq!(world.turn(&turn(&by, 1, two, false)), Said::Refused);
    write(&world, &by, 1);
    let missing = entry(entries[2].position(), b"four").position();
    assert_eq!(world.turn(&turn(&by, 1, missing, false)), Said::At(3));
    let other = entry(entries[0].position(), b"zwei").position();
    assert_eq!(world.turn(&turn(&by, 1, other, false)), Said::Fenced);
    assert!(world.seen().snapshot.is_none());
    for _ in 0..2 {
        assert_eq!(world.turn(&turn(&by, 1, two, false)), Said::Done);
        let own = world.seen();
        assert_eq!(own.snapshot, Some(turn(&by, 1, two, false).snapshot));
        assert_eq!((own.before, own.tip), (None, entries[2].position()));
        assert_eq!((own.moment, own.largest_ttl), (9, 8));
        assert_eq!(world.store.read(2).unwrap(), entries[2..]);
        assert_eq!(world.redis.must(&["XLEN", "{shop}:log"]).text(), "1");
    }
    let four = entry(entries[2].position(), b"four");
    assert_eq!(world.append(&entry_call(&by, &four)), Said::Done);
    write(&world, &by, 2);
    assert_eq!(world.turn(&turn(&by, 2, four.position(), false)), Said::Done);
    assert_eq!(world.seen().before, Some(turn(&by, 1, two, false).snapshot));
    // All entries are in the snapshot, and the numbers go on.
    assert_eq!(world.append(&empty_call(&by, four.position())), Said::Done);
    let five = entry(four.position(), b"five");
    assert_eq!(world.append(&entry_call(&by, &five)), Said::Done);
}

#[test]
fn no_piece_of_the_snapshot_that_own_names_is_unlinked() {
    needs_redis!();
    let world = World::new();
    let by = world.own(A);
    let tip = world.fill(&by, &[b"one"])[0].position();
    write(&world, &by, 1);
    write(&world, &by, 11);
    world.turn(&turn(&by, 1, tip, false));
    assert_eq!(world.piece(&piece(&by, 1, 0, None)), Said::Refused);
    assert_eq!(pieces(&world), 4);
    for _ in 0..2 {
        assert_eq!(world.piece(&piece(&by, 11, 0, None)), Said::Done);
        assert_eq!(pieces(&world), 3);
    }
    // Once another snapshot is named, it may go.
    write(&world, &by, 11);
    world.turn(&turn(&by, 11, tip, false));
    assert_eq!(world.piece(&piece(&by, 1, 0, None)), Said::Done);
    assert_eq!(world.piece(&piece(&by, 11, 0, None)), Said::Refused);
}

#[test]
fn a_fenced_leader_writes_unlinks_and_installs_nothing() {
    needs_redis!();
    let world = World::new();
    let old = world.own(A);
    let tip = world.fill(&old, &[b"one"])[0].position();
    write(&world, &old, 1);
    let new = world.own(B);
    let elsewhere = Term { run: "0".repeat(40), ..new.clone() };
    for (by, answer) in [(&old, Said::Fenced), (&elsewhere, Said::Moved)] {
        assert_eq!(world.piece(&piece(by, 2, 0, Some(b"rows"))), answer);
        assert_eq!(world.piece(&piece(&old, 1, 0, None)), Said::Fenced);
        for heals in [false, true] {
            let turn = SnapshotTurn { by: by.clone(), ..turn(&old, 1, tip, heals) };
            assert_eq!(world.turn(&turn), answer);
        }
    }
    assert_eq!((pieces(&world), world.seen().snapshot), (2, None));
    assert_eq!(world.store.read(0).unwrap().len(), 1);
    let generation = Generation { epoch: old.epoch, count: 1 };
    let unlink = |index| PieceCall { generation, ..piece(&new, 1, index, None) };
    assert_eq!((world.piece(&unlink(0)), pieces(&world)), (Said::Done, 1));
}

#[test]
fn a_rebuild_ends_the_journal_with_its_snapshot_and_notes_a_run() {
    needs_redis!();
    let world = World::new();
    world.acquire(&tenure_redis::Acquisition { is_new: false, ..world.acquisition(A) });
    let by = world.own(B);
    world.fill(&by, &[b"one", b"two", b"three"]);
    write(&world, &by, 1);
    // The number is below the log's end: the store has entries of another history.
    let one = entry(Position::default(), b"uno");
    for _ in 0..2 {
        assert_eq!(world.turn(&turn(&by, 1, one.position(), true)), Said::Done);
    }
    let own = world.seen();
    assert_eq!((own.tip, own.noted_run), (one.position(), by.run.clone()));
    assert_eq!(world.store.read(1).unwrap(), []);
    let two = entry(one.position(), b"due");
    assert_eq!(world.append(&entry_call(&by, &two)), Said::Done);
    assert_eq!(world.store.read(1).unwrap(), [two]);
}
