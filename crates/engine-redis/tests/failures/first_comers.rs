//! Random histories of several processes and their holders over a store that loses its last writes, or
//! everything, again and again: whoever comes first, no lock is granted while another holder may still work.
//!
//! What counts is what holders believe: who was granted a lock, or was answered by a heartbeat, may work for a
//! ttl from then on. Each process knows what it saw itself, and says something at least once a second, as
//! processes do; some look on and never ask for a lease.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_core::lease::LeaseView;
use tenure_core::requests::{Audit, ListLeases};
use tenure_core::time::{Moment, Span};
use tenure_engine::Clock as _;
use tenure_engine_redis::RedisEngine;
use tenure_testkit::Dice;

use crate::calls::*;
use crate::reclaim::{Store, another, set};

/// Histories, unless `TENURE_CLAIMS` says how many.
const HISTORIES: u64 = 24;
const STEPS: u32 = 200;
const LOCKS: [&str; 3] = ["lock:a", "lock:b", "lock:c"];

/// What a holder believes.
struct Belief {
    lease: LeaseView,
    ttl: Span,
    /// He may work until then.
    until: Moment,
    /// He has stopped to say anything.
    silent: bool,
    /// Through how many losses he was heard.
    losses: u32,
}

struct History {
    store: Store,
    seed: u64,
    dice: Dice,
    /// Those who ask for leases, and two who never do. The first is the one whose ticks let time pass.
    granters: Vec<Arc<RedisEngine>>,
    onlookers: Vec<Arc<RedisEngine>>,
    holders: BTreeMap<&'static str, Belief>,
    named: u32,
    losses: u32,
    claimed: u64,
    granted: u64,
}

impl History {
    async fn start(seed: u64) -> Option<Self> {
        let store = Store::start().await?;
        let mut granters = vec![store.engine.clone()];
        let mut onlookers = Vec::new();
        for n in 0..4 {
            let engine = another(&store.server);
            set(&engine, &store.clock).await;
            if n < 2 { granters.push(engine) } else { onlookers.push(engine) }
        }
        for engine in &onlookers {
            ok(engine, ListLeases::default()).await;
        }
        let dice = Dice::mixed(seed);
        let holders = BTreeMap::new();
        Some(History {
            store,
            seed,
            dice,
            granters,
            onlookers,
            holders,
            named: 0,
            losses: 0,
            claimed: 0,
            granted: 0,
        })
    }

    fn now(&self) -> Moment {
        self.store.clock.now()
    }

    fn name(&mut self) -> String {
        self.named += 1;
        format!("w{}", self.named)
    }

    fn granter(&mut self) -> Arc<RedisEngine> {
        self.dice.one(&self.granters).expect("there are some").clone()
    }

    /// Every process says something, in any order.
    async fn all_tick(&mut self) {
        let mut all: Vec<_> = self.granters.iter().chain(&self.onlookers).cloned().collect();
        while !all.is_empty() {
            let at = self.dice.below(all.len() as u64) as usize;
            set(&all.swap_remove(at), &self.store.clock).await;
        }
    }

    /// A second goes by at most: who is not silent sends a heartbeat, through any process.
    async fn pass(&mut self) {
        self.store.clock.advance(Span::from_ms(100 + self.dice.below(900)));
        self.all_tick().await;
        let held: Vec<_> = self.holders.keys().copied().collect();
        for lock in held {
            if self.holders.get(lock).is_some_and(|belief| !belief.silent) {
                self.beat(lock).await;
            }
        }
    }

    async fn beat(&mut self, lock: &'static str) {
        let engine = self.granter();
        let now = self.now();
        let Some(belief) = self.holders.get_mut(lock) else { return };
        // Who was not heard for a ttl has stopped.
        if belief.until <= now {
            self.holders.remove(lock);
            return;
        }
        if lives(&engine, &belief.lease).await {
            belief.until = now.plus(belief.ttl);
            if belief.losses < self.losses {
                belief.losses = self.losses;
                self.claimed += 1;
            }
        } else {
            self.holders.remove(lock);
        }
    }

    /// Somebody asks for a lock. Each granter has a ttl of its own: none knows the others' from itself.
    async fn ask(&mut self) {
        let lock = *self.dice.one(&LOCKS).expect("there are some");
        let at = self.dice.below(self.granters.len() as u64) as usize;
        let ttl = Span::from_s(2 + 4 * at as u64);
        let (engine, worker) = (self.granters[at].clone(), self.name());
        let Some(lease) = take(&engine, locks(lock, &worker, ttl)).await else { return };
        let now = self.now();
        if let Some(other) = self.holders.get(lock) {
            assert!(
                other.until <= now,
                "seed {}: {lock} is granted at {now} as fence {}, and fence {} may work until {}",
                self.seed,
                lease.fence,
                other.lease.fence,
                other.until
            );
        }
        self.granted += 1;
        let (until, silent) = (now.plus(ttl), self.dice.below(4) == 0);
        let belief = Belief { lease, ttl, until, silent, losses: self.losses };
        self.holders.insert(lock, belief);
    }

    async fn step(&mut self) {
        match self.dice.below(12) {
            0..=5 => self.ask().await,
            6 => {
                let lock = *self.dice.one(&LOCKS).expect("there are some");
                if let Some(belief) = self.holders.remove(lock) {
                    let engine = self.granter();
                    settle(&engine, &belief.lease).await;
                }
            }
            7 => {
                let (engine, id) = (self.granter(), self.name());
                push(&engine, job("q", &id)).await;
                drop(take(&engine, asks("q", &id, Span::from_s(2))).await);
            }
            8 => self.store.save(),
            9 if self.dice.below(6) == 0 => self.lose().await,
            _ => self.pass().await,
        }
    }

    /// Something, or everything, is lost, and somebody comes first.
    async fn lose(&mut self) {
        self.losses += 1;
        match self.dice.below(4) {
            0 => self.store.restart(),
            1 => {
                self.store.save();
                self.store.restart();
            }
            2 => {
                self.store.clock.advance(Span::from_ms(1));
                self.store.server.must(&["FLUSHALL"]);
            }
            _ => {
                self.store.server.must(&["FLUSHALL"]);
                self.store.save();
                self.store.restart();
            }
        }
        let first = match self.dice.below(3) {
            0 => self.dice.one(&self.onlookers).expect("there are some").clone(),
            // Who knows the shortest ttl.
            1 => self.granters[0].clone(),
            _ => self.granter(),
        };
        set(&first, &self.store.clock).await;
        push(&first, job("looked", "looked")).await;
        ok(&first, ListLeases::default()).await;
        self.all_tick().await;
        for _ in 0..8 {
            self.pass().await;
            self.ask().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_first_no_lock_is_granted_while_another_may_still_work() {
    let histories = std::env::var("TENURE_CLAIMS").ok().and_then(|n| n.parse().ok());
    let histories = histories.unwrap_or(HISTORIES);
    let (mut claimed, mut granted, mut losses) = (0, 0, 0);
    for seed in 1..=histories {
        let Some(mut history) = History::start(seed).await else { return };
        for _ in 0..STEPS {
            history.step().await;
        }
        // Whoever is silent is found out, and nothing is held for ever.
        history.holders.values_mut().for_each(|belief| belief.silent = true);
        for _ in 0..60 {
            history.store.clock.advance(Span::from_s(1));
            history.all_tick().await;
        }
        history.holders.clear();
        let engine = history.granter();
        for lock in LOCKS {
            let worker = history.name();
            assert!(take(&engine, locks(lock, &worker, Span::from_s(2))).await.is_some(), "{seed}");
        }
        let audit = ok(&engine, Audit::default()).await;
        assert!(audit.ok, "seed {seed}: {:?}", audit.faults);
        claimed += history.claimed;
        granted += history.granted;
        losses += u64::from(history.losses);
    }
    println!("{losses} losses, {granted} grants, {claimed} claims");
    assert!(losses > histories && granted > 4 * histories, "{losses} losses, {granted} grants");
    assert!(claimed > histories, "{claimed} claims are too few to show anything");
}
