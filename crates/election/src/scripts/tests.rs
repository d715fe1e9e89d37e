use super::*;

const STORE: StoreId = StoreId(7);
const A: ServerId = ServerId(1);
const B: ServerId = ServerId(2);
const NOW: Moment = Moment::from_us(1_000);

fn acquisition(seen: Option<(Epoch, ServerId)>, leader: ServerId) -> Acquisition {
    Acquisition {
        store: STORE,
        seen,
        run: RunId(1),
        above: Epoch(0),
        leader,
        is_new: true,
        ttl: Span::ZERO,
    }
}

/// A store that `A` leads, and the identity of `A`.
fn owned() -> (Keys<u8>, Term) {
    let mut keys = Keys::empty(RunId(1));
    let epoch = taken(&keys.call(&ScriptCall::Acquire(acquisition(None, A)), NOW));
    (keys, Term { store: STORE, epoch, leader: A, run: RunId(1) })
}

fn taken(reply: &ScriptReply) -> Epoch {
    match reply {
        ScriptReply::Acquired(own, _) => own.epoch,
        other => panic!("not acquired: {other:?}"),
    }
}

fn append(by: Term, number: u64, checksum: u64, body: Option<u8>) -> ScriptCall<u8> {
    let tip = Tip { number, checksum };
    ScriptCall::Append(Append {
        by,
        tip,
        body,
        moment: NOW,
        ttl: Span::ZERO,
        note: RunNote::Stays,
        beats: true,
    })
}

#[test]
fn a_repeated_acquisition_is_answered_as_the_first_one() {
    let mut keys = Keys::<u8>::empty(RunId(1));
    let call = ScriptCall::Acquire(acquisition(None, A));
    let first = keys.call(&call, NOW);
    assert_eq!(keys.call(&call, NOW.plus(Span::from_s(1))), first);
    let other = ScriptCall::Acquire(acquisition(None, B));
    assert_eq!(keys.call(&other, NOW), ScriptReply::NotAsSeen);
}

#[test]
fn an_own_of_another_store_is_not_acquired() {
    let (mut keys, by) = owned();
    let seen = Some((by.epoch, A));
    for lost in [false, true] {
        if lost {
            keys.store = None;
        }
        let other = Acquisition { store: StoreId(8), ..acquisition(seen, B) };
        assert_eq!(keys.clone().call(&ScriptCall::Acquire(other), NOW), ScriptReply::Moved);
    }
}

#[test]
fn an_acquisition_is_above_the_epoch_before_and_above_time() {
    let (mut keys, by) = owned();
    assert_eq!(by.epoch, Epoch(1_000));
    let call = ScriptCall::Acquire(acquisition(Some((by.epoch, A)), B));
    assert_eq!(taken(&keys.call(&call, Moment::from_us(10))), Epoch(1_001));
}

#[test]
fn an_append_is_judged_by_epoch_owner_run_number_and_content() {
    let (mut keys, by) = owned();
    assert_eq!(keys.call(&append(by, 1, 11, Some(1)), NOW), ScriptReply::Done);
    let at = |epoch| Term { epoch, ..by };
    let cases = [
        ("again", append(by, 1, 11, Some(1)), ScriptReply::Done),
        ("another content", append(by, 1, 12, Some(2)), ScriptReply::Fenced),
        ("empty", append(by, 1, 11, None), ScriptReply::Done),
        ("empty, of the beginning", append(by, 0, 0, None), ScriptReply::Done),
        ("empty, of an entry that is missing", append(by, 2, 12, None), ScriptReply::At(1)),
        ("not the next", append(by, 3, 13, Some(3)), ScriptReply::At(1)),
        ("before", append(at(Epoch(999)), 2, 12, Some(2)), ScriptReply::Fenced),
        ("after", append(at(Epoch(1_001)), 2, 12, Some(2)), ScriptReply::Moved),
        ("by another", append(Term { leader: B, ..by }, 2, 12, Some(2)), ScriptReply::Moved),
        ("in a run", append(Term { run: RunId(2), ..by }, 2, 12, Some(2)), ScriptReply::Moved),
        ("store", append(Term { store: StoreId(8), ..by }, 2, 12, Some(2)), ScriptReply::Moved),
    ];
    for (name, call, reply) in cases {
        assert_eq!(keys.clone().call(&call, NOW), reply, "{name}");
    }
    assert_eq!(Keys::empty(RunId(1)).call(&append(by, 1, 11, Some(1)), NOW), ScriptReply::Moved);
}

#[test]
fn every_append_leaves_its_moment_and_no_repeat_takes_that_back() {
    let (mut keys, by) = owned();
    let later = NOW.plus(Span::from_s(2));
    let mut empty = Append {
        by,
        tip: Tip::default(),
        body: None,
        moment: later,
        ttl: Span::from_s(5),
        note: RunNote::Stays,
        beats: true,
    };
    assert_eq!(keys.call(&ScriptCall::Append(empty.clone()), later), ScriptReply::Done);
    (empty.moment, empty.beats) = (NOW, false);
    let much_later = later.plus(Span::from_s(2));
    assert_eq!(keys.call(&ScriptCall::Append(empty), much_later), ScriptReply::Done);
    let own = keys.own.unwrap();
    assert_eq!((own.moment, own.beat, own.largest_ttl), (later, later, Span::from_s(5)));
}

#[test]
fn an_install_needs_its_chunks_and_named_chunks_stay() {
    let (mut keys, by) = owned();
    keys.call(&append(by, 1, 11, Some(1)), NOW);
    keys.call(&append(by, 2, 12, Some(2)), NOW);
    let generation = Generation { epoch: by.epoch, count: 1 };
    let tip = Tip { number: 1, checksum: 11 };
    let turn = ScriptCall::Turn(SnapshotTurn {
        by,
        snapshot: SnapshotName { generation, tip, pieces: 1 },
        heals: false,
        moment: NOW,
        ttl: Span::ZERO,
        note: RunNote::Stays,
    });
    assert_eq!(keys.call(&turn, NOW), ScriptReply::Refused);
    let piece = |body| ScriptCall::Piece(PieceCall { by, generation, index: 0, body });
    assert_eq!(keys.call(&piece(Some(9)), NOW), ScriptReply::Done);
    for _ in 0..2 {
        assert_eq!(keys.call(&turn, NOW), ScriptReply::Done);
        assert_eq!(keys.log.keys().copied().collect::<Vec<_>>(), [2]);
    }
    assert_eq!(keys.call(&piece(None), NOW), ScriptReply::Refused);
    assert_eq!(keys.own.unwrap().tip.number, 2);
}

#[test]
fn a_turn_that_heals_ends_the_journal_with_its_snapshot() {
    let (mut keys, by) = owned();
    keys.call(&append(by, 1, 99, Some(1)), NOW);
    let generation = Generation { epoch: by.epoch, count: 1 };
    keys.call(&ScriptCall::Piece(PieceCall { by, generation, index: 0, body: Some(9) }), NOW);
    let tip = Tip { number: 3, checksum: 13 };
    let turn = SnapshotTurn {
        by,
        snapshot: SnapshotName { generation, tip, pieces: 1 },
        heals: true,
        moment: NOW,
        ttl: Span::ZERO,
        note: RunNote::Whole,
    };
    assert_eq!(keys.call(&ScriptCall::Turn(turn), NOW), ScriptReply::Done);
    assert!(keys.log.is_empty());
    assert_eq!(keys.call(&append(by, 4, 14, Some(4)), NOW), ScriptReply::Done);
}

#[test]
fn a_store_that_is_given_away_is_the_other_servers() {
    let (mut keys, by) = owned();
    let give = ScriptCall::Give(HandOver { by, tip: Tip::default(), to: B });
    for _ in 0..2 {
        assert_eq!(keys.call(&give, NOW), ScriptReply::Done);
    }
    let foreign = Term { store: StoreId(8), ..by };
    let foreign = ScriptCall::Give(HandOver { by: foreign, tip: Tip::default(), to: B });
    assert_eq!(keys.call(&foreign, NOW), ScriptReply::Moved);
    assert_eq!(keys.own.as_ref().map(|own| own.leader), Some(B));
    assert_eq!(keys.call(&append(by, 1, 11, Some(1)), NOW), ScriptReply::Fenced);
}
