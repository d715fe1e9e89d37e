//! Two servers on one store, in steps of ten milliseconds, and the answers that they get.

use tenure_core::time::{Moment, Span};

use super::{Action, Election, Input, ServerWord};
use crate::ids::{RunId, ServerId, StoreId};
use crate::scripts::{Keys, ScriptCall};

/// A step of both clocks.
const STEP: Span = Span::from_ms(10);

/// The path from one server to the other.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    Open,
    Refused,
    /// Half of the questions reach the asking server itself, as behind a balancer.
    Balanced,
}

struct Pair {
    leaders: [Election; 2],
    alive: [bool; 2],
    keys: Keys<()>,
    at: Span,
    way: Way,
    asked: u32,
    moves: u32,
}

impl Pair {
    /// The first server leads the store; the other one starts after it.
    fn new(way: Way) -> Pair {
        let leaders = [1, 2].map(|id| Election::new(ServerId(id), StoreId(6 + id)));
        let keys = Keys::empty(RunId(1));
        let mut pair = Pair {
            leaders,
            alive: [true, false],
            keys,
            at: Span::from_s(1),
            way,
            asked: 0,
            moves: 0,
        };
        pair.passes(Span::from_s(3));
        assert!(pair.leaders[0].serves());
        pair.alive[1] = true;
        pair.moves = 0;
        pair
    }

    fn passes(&mut self, span: Span) {
        let end = Span::from_us(self.at.us() + span.us());
        while self.at < end {
            self.at = Span::from_us(self.at.us() + STEP.us());
            for at in 0..2 {
                if self.alive[at] && self.leaders[at].wakes_at(self.at) <= self.at {
                    self.hears(at, Input::Time);
                }
            }
        }
    }

    fn word(&mut self, of: usize) -> ServerWord {
        self.asked += 1;
        match self.way {
            _ if !self.alive[of] => ServerWord::Refused,
            Way::Refused => ServerWord::Refused,
            Way::Balanced if self.asked.is_multiple_of(2) => ServerWord::Refused,
            Way::Open | Way::Balanced => self.leaders[of].word(self.at),
        }
    }

    fn hears(&mut self, at: usize, input: Input) {
        let time = Moment::ZERO.plus(self.at);
        for action in self.leaders[at].take(input, self.at) {
            match action {
                Action::Look => {
                    let (store, own) = (self.keys.store, self.keys.own.clone().map(Box::new));
                    self.hears(at, Input::Looked { store, own, run: self.keys.run, time });
                }
                Action::AskServer(from) => {
                    let word = self.word(1 - at);
                    self.hears(at, Input::Heard { from, word });
                }
                Action::Call { number, call } => {
                    self.moves += u32::from(matches!(call, ScriptCall::Acquire(_)));
                    let reply = self.keys.call(&call, time);
                    let time = call.tells_time().then_some(time);
                    self.hears(at, Input::Replied { call: number, reply, time });
                }
                Action::Load(own) => self.hears(at, Input::Loaded { tip: own.tip }),
                _ => {}
            }
        }
    }
}

#[test]
fn leader_changes_are_bounded_while_servers_refuse_each_other() {
    // Leader changes in ten minutes, for servers that reached each other before or never did.
    for (before, way, most) in [
        (Way::Refused, Way::Refused, 0),
        (Way::Open, Way::Refused, 1),
        (Way::Balanced, Way::Balanced, 2),
    ] {
        let mut pair = Pair::new(before);
        pair.passes(Span::from_s(10));
        pair.way = way;
        pair.passes(Span::from_s(590));
        assert!(pair.moves <= most, "{before:?}, {way:?}: {}", pair.moves);
        let unreached = pair.leaders.iter().any(|leader| leader.unreached().is_some());
        assert_eq!(unreached, way == Way::Refused, "{before:?}, {way:?}");
    }
}

#[test]
fn a_dead_leader_is_replaced_within_a_bound_for_each_path() {
    // Dead leaders are refused; `most` limits the time of a takeover.
    for (way, most) in [(Way::Open, 270), (Way::Refused, 1_600)] {
        for phase in 0..20 {
            let mut pair = Pair::new(way);
            pair.passes(Span::from_ms(3_000 + 50 * phase));
            assert!(!pair.leaders[1].serves());
            pair.alive[0] = false;
            pair.passes(Span::from_ms(most));
            assert!(pair.leaders[1].serves(), "{way:?}, {phase}");
        }
    }
}
