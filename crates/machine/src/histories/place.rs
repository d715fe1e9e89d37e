//! Places in line against the grants themselves: random lines, whose places are asked for, and which are then granted
//! to their end.

use std::collections::BTreeMap;

use super::forgetting::World;
use crate::{Command, Done, ExplainedAt, Known, LeaseOutcome, TakerId};
use tenure_core::job::{Need, NewJob};
use tenure_core::lease::{Ending, Reason, ReasonKind, SettleItem};
use tenure_core::names::{Group, JobId, JobRef, LimitName, QueueName};
use tenure_core::requests::{
    ExplainJob, GetLimit, Lease, Push, PushAnswer, PutLimit, PutQueue, Settle,
};
use tenure_core::settings::{LimitSettings, QueueSettings};

/// A sequence of numbers that a seed decides.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn limit(name: &str) -> LimitName {
    LimitName::parse(name).unwrap()
}
fn need(name: &str) -> Need {
    Need::Limit { limit: limit(name), weight: 1, cost: 1 }
}

struct Line {
    world: World,
    chance: Chance,
    /// Waiting jobs, with their queues.
    jobs: BTreeMap<String, QueueName>,
    pushed: usize,
    takers: u64,
}

impl Line {
    fn put_limit(&mut self, name: &str, cap: u32) {
        let settings = LimitSettings { concurrency: Some(cap), ..Default::default() };
        self.world
            .apply(Command::Request(PutLimit { limit: limit(name), settings, gauge: None }.into()));
    }

    fn push(&mut self, queues: &[QueueName], needing: bool) {
        for _ in 0..2 + self.chance.below(10) {
            let queue = queues[self.chance.below(queues.len() as u64) as usize].clone();
            let id = format!("j{}", self.pushed);
            self.pushed += 1;
            let mut job = NewJob::new(queue.clone());
            job.id = JobId::parse(&id).ok();
            job.group = ["a", "b", "c"]
                .get(self.chance.below(4) as usize)
                .map(|name| Group::parse(name).unwrap());
            job.priority = [0, 0, 0, 1][self.chance.below(4) as usize];
            let mut needs = if needing { vec![need("l")] } else { Vec::new() };
            if self.chance.below(3) == 0 {
                needs.push(need(&format!("k:{}", self.chance.below(3))));
            }
            job.needs = Some(needs);
            let push = Push { jobs: vec![job], answer: PushAnswer::Ids };
            self.world.apply(Command::Request(push.into()));
            self.jobs.insert(id, queue);
        }
    }

    fn take(&mut self, queue: &QueueName) -> Option<(String, String)> {
        self.takers += 1;
        let ask = Lease::jobs(vec![queue.clone()], 1);
        let done = self.world.apply(Command::Lease(Box::new(ask), TakerId::new(self.takers)));
        let Done::Lease(LeaseOutcome::Now(granted)) = done else { panic!("{done:?}") };
        let grant = granted.grants.first()?;
        // Row numbers follow the order of pushes, from 1.
        let id = format!("j{}", grant.seq?.get() - 1);
        self.jobs.remove(&id);
        Some((grant.lease.lease.clone()?, id))
    }

    fn settle(&mut self, lease: String) {
        let ending = Ending::Succeeded { result: None };
        let item = SettleItem::new(lease, ending);
        self.world.apply(Command::Request(Settle::of(vec![item]).into()));
    }

    fn reasons(&mut self, id: &str) -> Vec<Reason> {
        let job = JobRef::Id(JobId::parse(id).unwrap());
        match self.world.apply(Command::Request(ExplainJob { job }.into())) {
            Done::Request(Known::ExplainJob(ExplainedAt(explained, _))) => explained.reasons,
            other => panic!("{other:?}"),
        }
    }
}

/// Plays one line: reported places against actual grants.
fn play(seed: u64, queues: usize, needing: bool) {
    let (world, chance) = (World::new(), Chance(seed));
    let mut line = Line { world, chance, jobs: BTreeMap::new(), pushed: 0, takers: 0 };
    line.put_limit("l", 1);
    line.put_limit("k:*", 50);
    let queues: Vec<QueueName> =
        (0..queues).map(|n| QueueName::parse(&format!("q{n}")).unwrap()).collect();
    for queue in &queues {
        let shares =
            ["a", "b"].map(|name| (Group::parse(name).unwrap(), 1 + line.chance.below(4) as u32));
        let settings = QueueSettings { shares: shares.into(), ..Default::default() };
        line.world.apply(Command::Request(PutQueue { queue: queue.clone(), settings }.into()));
    }
    line.push(&queues, needing);
    let mut held: Option<(String, String)> = None;
    for _ in 0..line.chance.below(7) {
        if let Some((lease, _)) = held.take() {
            line.settle(lease);
        }
        let queue = queues[line.chance.below(queues.len() as u64) as usize].clone();
        held = line.take(&queue);
    }
    line.push(&queues, needing);
    if needing && held.is_none() {
        held = queues.iter().find_map(|queue| line.take(queue));
    }
    let waiting = line.jobs.clone();
    if needing {
        for queue in &queues {
            assert!(line.take(queue).is_none(), "the one permit is held");
        }
    }
    let kind = if needing { ReasonKind::Limit } else { ReasonKind::Behind };
    let mut places: Vec<(u64, String)> = Vec::new();
    for id in waiting.keys() {
        let reason = line.reasons(id).into_iter().find(|reason| reason.kind == kind);
        let position = reason.and_then(|reason| reason.position);
        assert!(position.is_some() || !needing, "{id} is told no place");
        places.push((position.unwrap_or(1), id.clone()));
    }
    places.sort();
    let numbers: Vec<u64> = places.iter().map(|(place, _)| *place).collect();
    assert_eq!(numbers, (1..=places.len() as u64).collect::<Vec<_>>(), "seed {seed}");
    if needing {
        let view = match line.world.apply(Command::Request(GetLimit { limit: limit("l") }.into())) {
            Done::Request(Known::GetLimit(view)) => view,
            other => panic!("{other:?}"),
        };
        let shown: Vec<String> =
            view.line.iter().filter_map(|one| Some(one.job.as_ref()?.to_string())).collect();
        let first: Vec<String> = places.iter().take(20).map(|(_, id)| id.clone()).collect();
        assert_eq!(shown, first, "seed {seed}");
    }
    for (_, id) in &places {
        if let Some((lease, _)) = held.take().filter(|_| needing) {
            line.settle(lease);
        }
        held = line.take(&waiting[id]);
        assert_eq!(held.as_ref().map(|held| &held.1), Some(id), "seed {seed}: {places:?}");
    }
}

#[test]
fn jobs_that_are_ready_go_in_the_order_of_their_places() {
    (0..200).for_each(|seed| play(seed, 1, false));
}

#[test]
fn jobs_at_a_limit_go_in_the_order_of_their_places() {
    (0..200).for_each(|seed| play(seed, 1, true));
}

#[test]
fn queues_at_a_limit_are_granted_in_the_order_of_their_places() {
    (0..200).for_each(|seed| play(seed, 3, true));
}
