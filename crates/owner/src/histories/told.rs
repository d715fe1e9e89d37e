//! Histories that were told rather than found: each is played to its end, event by event.

use super::judge::Violation;
use super::world::{Event, Faults, Setting, World};
use super::{NONE, leave_out};
use crate::mutant::Mutant;

/// Ticks after which a server that stands still was taken over and loaded.
const TAKEN_OVER: usize = 8;

impl World {
    fn all(&mut self, events: &[Event]) {
        for event in events {
            self.step(*event);
        }
    }

    /// Delivers what is on its way, and what comes of it.
    fn deliver_all(&mut self) {
        while self.step(Event::Deliver(0)) || (0..2).any(|at| self.step(Event::LoadStep(at))) {}
    }

    fn pass(&mut self, ticks: usize) {
        for _ in 0..ticks {
            self.step(Event::Tick);
            self.deliver_all();
        }
    }

    /// A client asks a server, and is answered if it can be.
    fn asks(&mut self, client: usize, server: usize) {
        self.all(&[Event::Asks(client), Event::Handle { server, client }]);
        self.deliver_all();
    }
}

/// An owner stands still, is taken over, and goes on; the lock is held by a grant that only the other server knows. Everything is
/// forgotten while that one stands still. The first owner grants the lock before it knows of the loss, or while it asks the other.
fn a_grant_that_only_a_silent_server_knows(before_it_knows: bool) -> Option<Violation> {
    let faults = Faults { stops: 2, flushes: 1, ..NONE };
    let mut world = World::new(Setting { servers: 2, faults, waits: false, held: false });
    world.step(Event::Stop(0));
    world.pass(TAKEN_OVER);
    world.asks(1, 1);
    assert!(world.clients[1].believes(world.tick), "the next owner granted it");
    world.all(&[Event::Stop(1), Event::Flush, Event::Wake(0)]);
    if before_it_knows {
        world.all(&[Event::Asks(0), Event::Handle { server: 0, client: 0 }]);
    } else {
        // An append of another kind tells it.
        world.all(&[Event::Push(0), Event::Deliver(0), Event::Deliver(0)]);
        world.all(&[Event::Asks(0), Event::Handle { server: 0, client: 0 }]);
    }
    world.deliver_all();
    world.violation
}

#[test]
fn nothing_exclusive_is_granted_while_an_owner_asks_whether_another_one_knows_more() {
    assert_eq!(a_grant_that_only_a_silent_server_knows(false), None);
    leave_out([Some(Mutant::GrantsWhileItAsks), None]);
    let found = a_grant_that_only_a_silent_server_knows(false);
    leave_out([None; 2]);
    assert_eq!(found, Some(Violation::TwoHolders));
}

/// Not mended: see `docs/decisions/125-nothing-exclusive-is-granted-while-the-others-are-asked.md`.
#[test]
fn a_grant_that_was_decided_before_a_loss_was_known_goes_out_although_a_silent_server_may_know_more()
 {
    assert_eq!(a_grant_that_only_a_silent_server_knows(true), Some(Violation::TwoHolders));
}
