//! One owner, and a store that runs each action at once.

use super::*;
use crate::election::message::Input;
use crate::ids::RunId;
use crate::scripts::{Keys, PieceCall};

struct World {
    leader: Election,
    keys: Keys<()>,
    at: Span,
}

impl World {
    /// A new store with this server as its leader.
    fn owned() -> World {
        let leader = Election::new(ServerId(1), StoreId(7));
        let mut world = World { leader, keys: Keys::empty(RunId(1)), at: Span::from_s(1) };
        for _ in 0..4 {
            world.passes(Span::from_s(1));
        }
        assert!(world.leader.serves());
        world
    }

    fn passes(&mut self, span: Span) {
        self.at = Span::from_us(self.at.us() + span.us());
        self.hears(Input::Time);
    }

    fn hears(&mut self, input: Input) {
        let time = Moment::ZERO.plus(self.at);
        for action in self.leader.take(input, self.at) {
            match action {
                Action::Look => {
                    let (store, own) = (self.keys.store, self.keys.own.clone().map(Box::new));
                    self.hears(Input::Looked { store, own, run: self.keys.run, time });
                }
                Action::Call { number, call } => {
                    let reply = self.keys.call(&call, time);
                    let time = call.tells_time().then_some(time);
                    self.hears(Input::Replied { call: number, reply, time });
                }
                Action::Load(own) => self.hears(Input::Loaded { tip: own.tip }),
                Action::WriteSnapshot { by, generation } => {
                    self.keys.call(&piece(by, generation, Some(())), time);
                    let tip = self.leader.sent().unwrap();
                    self.hears(Input::SnapshotWritten { generation, pieces: 1, tip });
                }
                Action::UnlinkSnapshot { by, snapshot } => {
                    self.keys.call(&piece(by, snapshot.generation, None), time);
                }
                _ => {}
            }
        }
    }

    fn snapshots(&self) -> Vec<u64> {
        self.keys.pieces.keys().map(|(generation, _)| generation.count).collect()
    }
}

fn piece(by: Term, generation: Generation, body: Option<()>) -> ScriptCall<()> {
    ScriptCall::Piece(PieceCall { by, generation, index: 0, body })
}

#[test]
fn the_former_snapshot_is_kept_until_the_next_or_for_a_minute() {
    let mut world = World::owned();
    for expected in [&[1][..], &[1, 2], &[2, 3]] {
        world.hears(Input::SnapshotDue);
        assert_eq!(world.snapshots(), expected);
        world.passes(Span::from_s(59));
        assert_eq!(world.snapshots(), expected);
    }
    world.passes(Span::from_s(1));
    assert_eq!(world.snapshots(), [3]);
    world.passes(Span::from_s(600));
    assert_eq!(world.snapshots(), [3], "the one that loads begin with stays");
    assert!(world.leader.serves());
}
