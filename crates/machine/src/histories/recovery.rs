//! A machine whose store may have forgotten answered grants: what it tells of its leases, and what it does until it has
//! recovered.

use super::forgetting::World;
use crate::{Command, Done, LeaseOutcome, TakerId};
use tenure_core::job::Need;
use tenure_core::lease::{Ending, ExtendItem, SettleItem};
use tenure_core::names::LimitName;
use tenure_core::requests::{Extend, Lease, Settle};
use tenure_core::time::Span;

fn lock(name: &str) -> Need {
    Need::Limit { limit: LimitName::parse(&format!("lock:{name}")).unwrap(), weight: 1, cost: 1 }
}

impl World {
    /// The lease of a lock, if it is granted at once.
    fn lock(&mut self, name: &str, ttl: Span) -> Option<String> {
        let ask = Lease { ttl, ..Lease::needs(vec![lock(name)]) };
        let done = self.apply(Command::Lease(Box::new(ask), TakerId::new(1)));
        let Done::Lease(LeaseOutcome::Now(granted)) = done else { panic!("{done:?}") };
        granted.grants.into_iter().next().and_then(|grant| grant.lease.lease)
    }

    fn settle(&mut self, lease: String) {
        let settle = Settle::of(vec![SettleItem::new(lease, Ending::Released)]);
        self.apply(Command::Request(settle.into()));
    }

    fn extend(&mut self, lease: &str, ttl: Option<Span>) {
        let leases = vec![ExtendItem { lease: lease.to_owned(), progress: None }];
        self.apply(Command::Request(Extend { leases, ttl }.into()));
    }
}

#[test]
fn the_largest_ttl_is_that_of_any_lease_ever_granted_extended_or_restored() {
    let mut world = World::new();
    assert_eq!(world.machine.largest_ttl(), Span::ZERO, "nothing was granted");
    let long = world.lock("a", Span::from_s(90)).unwrap();
    let short = world.lock("b", Span::from_s(5)).unwrap();
    assert_eq!(world.machine.largest_ttl(), Span::from_s(90));
    world.settle(long);
    assert_eq!(world.machine.largest_ttl(), Span::from_s(90), "its lease is over");
    world.extend(&short, Some(Span::from_s(120)));
    assert_eq!(world.machine.largest_ttl(), Span::from_s(120), "a heartbeat raised it");
    world.reopen();
    assert_eq!(world.machine.largest_ttl(), Span::from_s(120), "after a start");
}
