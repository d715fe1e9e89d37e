//! Random histories that a store forgets in the middle: whoever claims what, all adds up, and what is
//! exclusive is held once.

use tenure_core::job::{Need, NewJob, When};
use tenure_core::lease::{Ending, Later, LeaseView};
use tenure_core::names::{JobRef, LimitName, PoolName, QueueName, ResourceId};
use tenure_core::requests::{
    CancelJob, ForceLease, GetLimit, Lease, ListResources, Page, PutLimit, PutPool, PutQueue,
};
use tenure_core::settings::{LimitSettings, PoolSettings, QueueSettings, Rate};
use tenure_core::time::Span;
use tenure_testkit::Dice;

use crate::calls::*;
use crate::reclaim::{Store, pool};

/// Histories, unless `TENURE_CLAIMS` says how many; each starts a server twice.
const HISTORIES: u64 = 24;
/// Steps before and after the loss.
const STEPS: u32 = 60;
const QUEUES: [&str; 2] = ["q0", "q1"];
/// Limits: a lock, one of 1, one of 2 with a gap, and a rate.
const LIMITS: [&str; 4] = ["lock:a", "one", "two", "rate"];

struct History {
    store: Store,
    dice: Dice,
    granted: Vec<LeaseView>,
    named: u32,
}

impl History {
    async fn set_up(&self) {
        let engine = &self.store.engine;
        let cap = |n| LimitSettings { concurrency: Some(n), ..LimitSettings::default() };
        let gap = Some(Span::from_ms(1_500));
        let rate = Some(Rate { count: 2, per: Span::from_s(1), burst: 3 });
        for (limit, settings) in [
            ("one", cap(1)),
            ("two", LimitSettings { gap, ..cap(2) }),
            ("rate", LimitSettings { rate, ..LimitSettings::default() }),
            // What every job of a queue has.
            ("queue:q1", cap(3)),
        ] {
            let limit = LimitName::parse(limit).expect("a name");
            ok(engine, PutLimit { limit, settings, gauge: None }).await;
        }
        let quarantine = Span::from_ms(2_500);
        let settings = PoolSettings { quarantine, ..PoolSettings::default() };
        ok(engine, PutPool { pool: pool(), settings }).await;
        crate::reclaim::accounts(engine, &["a", "b", "c"]).await;
        let queue = QueueName::parse("q0").expect("a name");
        ok(engine, PutQueue { queue, settings: QueueSettings::default() }).await;
    }

    fn needs(&mut self) -> Vec<Need> {
        let mut needs = Vec::new();
        for limit in LIMITS {
            if self.dice.below(4) == 0 {
                let limit = LimitName::parse(limit).expect("a name");
                needs.push(Need::Limit { limit, weight: 1, cost: 1 });
            }
        }
        if self.dice.below(3) == 0 {
            let pool = PoolName::parse("accounts").expect("a name");
            let id = (self.dice.below(3) == 0).then(|| ResourceId::parse("a").expect("an id"));
            let count = if id.is_none() && self.dice.below(4) == 0 { 2 } else { 1 };
            needs.push(Need::Pool { pool, tag: None, prefer: None, id, count });
        }
        needs
    }

    fn name(&mut self) -> String {
        self.named += 1;
        format!("w{}", self.named)
    }

    async fn step(&mut self) {
        let engine = self.store.engine.clone();
        let engine = &*engine;
        match self.dice.below(16) {
            0..=3 => {
                let queue = *self.dice.one(&QUEUES).expect("there are some");
                let id = format!("j{}", self.named);
                self.named += 1;
                let needs = self.needs();
                let mut new = NewJob { needs: Some(needs), ..job(queue, &id) };
                if self.dice.below(4) == 0 {
                    new.when = When::In(Span::from_ms(700));
                }
                if self.dice.below(3) == 0 {
                    new.timeout = Some(Span::from_s(9));
                }
                push(engine, new).await;
            }
            4..=6 => {
                let queue = *self.dice.one(&QUEUES).expect("there are some");
                let (worker, ttl) = (self.name(), Span::from_s(2 + self.dice.below(4)));
                let mut asked = asks(queue, &worker, ttl);
                if self.dice.below(3) == 0 {
                    asked.worker.id = None;
                }
                self.granted.extend(ok(engine, asked).await.leases);
            }
            7 => {
                let needs = self.needs();
                if needs.is_empty() {
                    return;
                }
                let asked = Lease { ttl: Span::from_s(3), ..Lease::needs(needs) };
                self.granted.extend(ok(engine, asked).await.leases);
            }
            8..=10 => {
                let Some(lease) = self.dice.one(&self.granted) else { return };
                let mut extend = extends(lease);
                if self.dice.below(4) == 0 {
                    extend.ttl = Some(Span::from_s(6));
                }
                ok(engine, extend).await;
            }
            11 | 12 => {
                let Some(lease) = self.dice.one(&self.granted).cloned() else { return };
                let mut settle = settles(&lease);
                if lease.job.is_some() {
                    settle.settle[0].ending = match self.dice.below(4) {
                        0 => Ending::Succeeded { result: None },
                        1 => Ending::Failed { error: "no".to_owned(), retry_in: None, last: false },
                        2 => {
                            Ending::Snoozed { later: Later::For(Span::from_ms(400)), reset: false }
                        }
                        _ => Ending::Released,
                    };
                }
                ok(engine, settle).await;
            }
            13 => {
                let some = match self.dice.one(&self.granted) {
                    Some(lease) if self.dice.below(2) == 0 => name(lease),
                    _ => return,
                };
                // It may be gone.
                drop(answered(engine, ForceLease { lease: some }).await);
            }
            14 => {
                let id = format!("j{}", self.dice.below(u64::from(self.named) + 1));
                let job = JobRef::parse(&id).expect("an id");
                drop(answered(engine, CancelJob { job }).await);
            }
            _ => {
                let span = Span::from_ms(100 + self.dice.below(1_500));
                self.store.pass(span).await;
            }
        }
    }

    async fn check(&self, what: &str) {
        let engine = &self.store.engine;
        is_whole(engine).await;
        for limit in ["lock:a", "one"] {
            let limit = LimitName::parse(limit).expect("a name");
            let shown = ok(engine, GetLimit { limit }).await;
            assert!(shown.in_use <= 1, "{what}: {shown:?}");
        }
        let listed = ok(engine, ListResources { pool: pool(), page: Page::default() }).await;
        for one in listed.items {
            assert!(one.in_use <= 1, "{what}: {one:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_claims_what_all_adds_up_and_what_is_exclusive_is_held_once() {
    let histories = std::env::var("TENURE_CLAIMS").ok().and_then(|n| n.parse().ok());
    let histories = histories.unwrap_or(HISTORIES);
    let mut claimed = 0;
    for seed in 1..=histories {
        let Some(store) = Store::start().await else { return };
        let dice = Dice::mixed(seed);
        let mut history = History { store, dice, granted: Vec::new(), named: 0 };
        history.set_up().await;
        for _ in 0..STEPS {
            history.step().await;
        }
        history.store.save();
        let saved = history.granted.len();
        for _ in 0..STEPS {
            history.step().await;
        }
        let forgotten = history.granted.len();
        history.store.forget().await;
        // Every holder claims, in any order, and all goes on meanwhile.
        for at in 0..STEPS {
            let all = history.granted.clone();
            if let Some(lease) = history.dice.one(&all) {
                let lives = lives(&history.store.engine, lease).await;
                claimed += u64::from(lives && all[saved..forgotten].contains(lease));
            }
            history.step().await;
            if at % 5 == 0 {
                history.check(&format!("seed {seed}, step {at}")).await;
            }
        }
        // Whoever is silent is found out, and nothing is held for ever.
        history.store.pass(Span::from_s(20)).await;
        history.check(&format!("seed {seed}, at the end")).await;
        let stats = ok(&history.store.engine, tenure_core::requests::GetStats).await;
        assert_eq!(stats.leases, 0, "seed {seed}");
    }
    assert!(claimed > histories, "{claimed} claims are too few to show anything");
}
