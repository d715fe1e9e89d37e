//! A clock that steps back is reported, whatever is due.

use tenure_core::bounds::{CLOCK_BEHIND_ACCEPT_US, CLOCK_BEHIND_LOUD_US};
use tenure_core::lease::LeaseView;
use tenure_core::requests::*;
use tenure_core::time::Span;
use tenure_engine_api::Engine;

use crate::store::calls::*;

impl Here {
    /// True if the engine reports a clock that is behind, after a look at it.
    async fn is_loud(&self) -> bool {
        self.engine.settled().await;
        self.engine.health().degraded.is_some_and(|why| why.contains("the clock is"))
    }
    async fn hold(&self, name: &str) -> Vec<LeaseView> {
        let lease = Lease { ttl: Span::from_s(5), ..Lease::needs(vec![lock(name)]) };
        run(&self.engine, lease).await.unwrap().leases
    }
}

#[test]
fn a_step_back_is_told_although_nothing_is_due() {
    let (loud, accepted) = (CLOCK_BEHIND_LOUD_US, CLOCK_BEHIND_ACCEPT_US);
    for (back_us, told) in [
        (loud, false),
        (loud + 1, true),
        (accepted, true),
        (accepted + 1, false), // It is accepted: nothing is behind any more.
    ] {
        block(async {
            let here = Here::new();
            assert!(!here.is_loud().await);
            here.clock.step_back(Span::from_us(back_us));
            assert_eq!(here.is_loud().await, told, "{back_us} us back");
            here.clock.advance(Span::from_us(back_us));
            assert!(!here.is_loud().await, "{back_us} us back, and caught up");
        });
    }
}

#[test]
fn a_clock_step_back_is_reported_until_the_clock_has_caught_up() {
    block(async {
        let here = Here::new();
        push(&here.engine, vec![job("a")]).await;
        let lease = take(&here.engine, 1).await.remove(0);
        here.clock.step_back(Span::from_s(4));
        assert!(here.is_loud().await);
        // Nothing is due from here on.
        settle(&here.engine, vec![done(&lease)]).await;
        here.pass(2).await;
        assert!(here.is_loud().await);
        here.pass(2).await;
        assert!(!here.is_loud().await);
    });
}

#[test]
fn a_clock_that_was_set_back_while_the_engine_was_down_is_told() {
    block(async {
        let mut here = Here::new();
        push(&here.engine, vec![job("a")]).await;
        here.engine.close();
        here.clock.step_back(Span::from_s(5));
        here.reopen();
        assert!(here.is_loud().await);
        here.pass(5).await;
        assert!(!here.is_loud().await);
    });
}

#[test]
fn an_idle_namespace_accepts_a_far_step_back_at_its_next_use() {
    block(async {
        let here = Here::new();
        // The namespace exists, and has no due work.
        let held = here.hold("x").await.remove(0);
        settle(&here.engine, vec![ending(&held, tenure_core::lease::Ending::Released)]).await;
        here.pass(90).await;
        here.clock.step_back(Span::from_s(3_600));
        assert!(!here.is_loud().await, "it is accepted");
        assert_eq!(here.hold("x").await.len(), 1);
        here.pass(7).await;
        assert_eq!(here.hold("x").await.len(), 1, "the dead holder lost it after its ttl");
    });
}

#[test]
fn a_leap_of_the_wall_clock_never_ends_a_lease_early() {
    for (what, ahead_ms, ends) in [
        ("a clock that nobody sets", 0, true),
        ("one that follows its store by a millisecond a second", 1, true),
        ("one that leaps each second: each time its holder has its whole ttl", 3_000, false),
    ] {
        block(async {
            let here = Here::new();
            assert_eq!(here.hold("x").await.len(), 1, "{what}");
            for s in 1..=6 {
                here.pass(1).await;
                here.clock.leap(Span::from_ms(ahead_ms));
                here.engine.settled().await;
                let free = here.hold("x").await.len() == 1;
                assert_eq!(free, ends && s == 5, "{what}: after {s} s");
            }
            here.pass(5).await;
            assert_eq!(here.hold("x").await.len(), 1, "{what}: it is silent for its ttl");
        });
    }
}
