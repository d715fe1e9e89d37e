//! Hand-written histories: each is played to its end, event by event.

use super::explore::replay;
use super::judge::Violation;
use super::world::{Event, Faults, Setting, World};
use super::{NONE, leave_out};
use crate::mutant::Mutant;

/// Ticks after which a stopped server has been replaced, and the next one has loaded.
const TAKEN_OVER: usize = 8;

impl World {
    fn all(&mut self, events: &[Event]) {
        for event in events {
            self.step(*event);
        }
    }

    /// Delivers all messages, and everything that follows from them.
    fn deliver_all(&mut self) {
        while self.step(Event::Deliver(0)) || (0..2).any(|at| self.step(Event::LoadStep(at))) {}
    }

    fn pass(&mut self, ticks: usize) {
        for _ in 0..ticks {
            self.step(Event::Tick);
            self.deliver_all();
        }
    }

    /// A client asks a server, and gets an answer if possible.
    fn asks(&mut self, client: usize, server: usize) {
        self.all(&[Event::Asks(client), Event::Handle { server, client }]);
        self.deliver_all();
    }
}

/// A leader stops, is replaced, and goes on; only the other server knows the grant that holds the lock. Then that
/// server stops, and Redis loses everything. The first leader grants the lock before it knows of the loss, or while it
/// asks the other.
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
        // An append of another kind reveals the loss.
        world.all(&[Event::Push(0), Event::Deliver(0), Event::Deliver(0)]);
        world.all(&[Event::Asks(0), Event::Handle { server: 0, client: 0 }]);
    }
    world.deliver_all();
    world.violation
}

#[test]
fn no_lock_is_granted_while_a_leader_asks_peers_for_newer_data() {
    assert_eq!(a_grant_that_only_a_silent_server_knows(false), None);
    // Two rules protect the lock from a second holder: this one, and the held-back answer to the grant.
    leave_out([Some(Mutant::GrantsWhileItAsks), Some(Mutant::DoubtfulGrantsGoOut)]);
    let found = a_grant_that_only_a_silent_server_knows(false);
    leave_out([None; 2]);
    assert_eq!(found, Some(Violation::TwoHolders));
}

#[test]
fn a_grant_before_a_loss_stays_unanswered_with_a_silent_server() {
    assert_eq!(a_grant_that_only_a_silent_server_knows(true), None);
    leave_out([Some(Mutant::DoubtfulGrantsGoOut), None]);
    let found = a_grant_that_only_a_silent_server_knows(true);
    leave_out([None; 2]);
    assert_eq!(found, Some(Violation::TwoHolders));
}

/// The store is set back behind a grant that a follower has read, in the same run of Redis, and the leader is replaced.
/// `twice`: the next leader, which recovers, is replaced too, by a server that has read nothing.
fn a_store_that_is_set_back(twice: bool) -> Option<Violation> {
    let faults = Faults { stops: 2, deaths: 1, cuts: 2, set_backs: 1, ..NONE };
    let mut world = World::new(Setting { servers: 2, faults, waits: false, held: false });
    world.asks(0, 0);
    assert!(world.clients[0].believes(world.tick), "the owner granted it");
    world.follow(1);
    world.all(&[Event::SetBack, Event::Stop(0), Event::Cut(0)]);
    world.pass(1);
    let mut next = 1;
    if twice {
        world.all(&[Event::Kill(0), Event::Start(0), Event::Stop(1), Event::Cut(1)]);
        // It reported its entries long ago.
        world.servers[1].applied = 0;
        world.pass(1);
        next = 0;
    }
    assert!(world.servers[next].leader.serves());
    world.asks(1, next);
    world.violation
}

#[test]
fn a_store_that_was_set_back_in_the_same_run_is_recovered() {
    for (twice, rule) in [(false, Mutant::SetBackIsUnseen), (true, Mutant::RecoveryKeepsTheNote)] {
        assert_eq!(a_store_that_is_set_back(twice), None);
        leave_out([Some(rule), None]);
        let found = a_store_that_is_set_back(twice);
        leave_out([None; 2]);
        assert_eq!(found, Some(Violation::TwoHolders), "{rule:?}");
    }
}

/// The leader lives and rebuilds a store that was set back, and recovers because the other server cannot be asked. Its
/// successor recovers too.
fn a_recovery_that_is_taken_over() -> bool {
    let faults = Faults { deaths: 1, cuts: 1, stops: 1, set_backs: 1, ..NONE };
    let mut world = World::new(Setting { servers: 2, faults, waits: false, held: false });
    world.all(&[Event::Push(0), Event::Deliver(0), Event::Deliver(0), Event::Kill(1)]);
    world.all(&[Event::SetBack, Event::Push(0)]);
    world.deliver_all();
    assert!(world.servers[0].leader.recovers(), "the other server is dead");
    world.all(&[Event::Start(1), Event::Stop(0), Event::Cut(0)]);
    world.pass(1);
    assert!(world.servers[1].leader.serves());
    world.servers[1].leader.recovers()
}

#[test]
fn a_recovery_after_a_rebuild_goes_on_with_the_next_leader() {
    assert!(a_recovery_that_is_taken_over());
    leave_out([Some(Mutant::RecoveryKeepsTheNote), None]);
    let recovers = a_recovery_that_is_taken_over();
    leave_out([None; 2]);
    assert!(!recovers);
}

/// The number of leader changes in a minute, between two living servers that refuse each other.
fn moves_under_mutual_refusal() -> usize {
    let mut world = World::new(Setting { servers: 2, faults: NONE, waits: false, held: true });
    for server in &mut world.servers {
        server.refuses = true;
    }
    let mut leaders = vec![world.primary.own.as_ref().map(|own| own.leader)];
    for _ in 0..60 {
        world.pass(1);
        let leader = world.primary.own.as_ref().map(|own| own.leader);
        if leaders.last() != Some(&leader) {
            leaders.push(leader);
        }
    }
    assert_eq!(world.violation, None);
    leaders.len() - 1
}

#[test]
fn servers_that_refuse_each_other_leave_the_store_where_it_is() {
    assert_eq!(moves_under_mutual_refusal(), 0);
    leave_out([Some(Mutant::RefusalIsDeath), None]);
    let moves = moves_under_mutual_refusal();
    leave_out([None; 2]);
    assert!(moves > 20, "{moves}");
}

/// A leader that ends hands the store over, and its own heartbeat then reports another leader. The store loses the
/// handover and earlier entries while no server has read them: those are lost with it, as after a leader's death.
#[test]
fn a_handover_that_is_lost_with_the_store_ends_with_a_leader() {
    let faults = Faults { failovers: 1, ends: 1, ..NONE };
    let setting = Setting { servers: 2, faults, waits: false, held: true };
    let events = [
        Event::End(0),
        Event::Deliver(0),
        Event::Tick,
        Event::Unsure(0),
        Event::Deliver(1),
        Event::Failover,
    ];
    assert_eq!(replay(setting, &events), None);
}
