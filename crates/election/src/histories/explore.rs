//! Exploration: breadth-first from a start, then random walks; a history that breaks a rule is shortened.

use std::collections::VecDeque;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashSet};

use super::judge::Violation;
use super::world::{Event, Setting, World};

/// Counters of an exploration.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Count {
    /// Distinct states of the breadth-first search, and the depth at which all were seen.
    pub(super) states: u64,
    pub(super) depth: u32,
    /// Random walks, and their steps.
    pub(super) walks: u64,
    pub(super) steps: u64,
}

/// A history that breaks a rule.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) violation: Violation,
    pub(super) events: Vec<Event>,
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Count { states, depth, walks, steps } = self;
        write!(f, "{states} states to depth {depth}, {steps} steps in {walks} walks")
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} in {} steps: {:?}", self.violation, self.events.len(), self.events)
    }
}

/// A generator of our own, so that a seed means the same history everywhere.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % n
    }
}

/// All events that may be steps of this world.
fn events(world: &World) -> Vec<Event> {
    let servers = world.servers.len();
    let mut all = vec![Event::Tick, Event::Replicate, Event::Failover, Event::Flush, Event::Rejoin];
    all.extend([Event::Step(-4), Event::Step(4)]);
    for place in 0..world.net.len() {
        all.extend([Event::Deliver(place), Event::Lose(place), Event::Double(place)]);
    }
    for client in 0..2 {
        all.extend([Event::Asks(client), Event::Beats(client), Event::GivesUp(client)]);
    }
    for at in 0..servers {
        all.extend([
            Event::Handle { server: at, client: 0 },
            Event::Handle { server: at, client: 1 },
        ]);
        all.extend([Event::Unsure(at), Event::LoadStep(at), Event::Push(at), Event::Stop(at)]);
        all.extend([Event::Wake(at), Event::Kill(at), Event::Start(at), Event::Cut(at)]);
        all.extend([Event::Join(at), Event::Split(at), Event::End(at), Event::SnapshotDue(at)]);
    }
    all
}

/// Visits every reachable state, nearest first, up to `most` states.
pub(super) fn breadth_first(setting: Setting, most: usize, count: &mut Count) -> Option<Found> {
    let hasher = DefaultHashBuilder::default();
    let mut seen = HashSet::new();
    let first = World::new(setting);
    seen.insert(hasher.hash_one(&first));
    let mut queue = VecDeque::from([(first, Vec::new())]);
    while let Some((world, path)) = queue.pop_front() {
        count.depth = count.depth.max(path.len() as u32);
        for event in events(&world) {
            let mut next = world.clone();
            if !next.step(event) || !seen.insert(hasher.hash_one(&next)) {
                continue;
            }
            count.states += 1;
            let mut path = path.clone();
            path.push(event);
            if let Some(violation) = next.violation {
                return Some(Found { violation, events: path });
            }
            if seen.len() < most && !next.is_admitted {
                queue.push_back((next, path));
            }
        }
        if seen.len() >= most {
            break;
        }
    }
    None
}

/// The weight of each kind of event. Weights differ between walks: some prefer takeovers, some heartbeats.
struct Taste([u64; 25]);

impl Taste {
    const USUAL: [u64; 25] =
        [130, 20, 50, 12, 50, 30, 30, 3, 12, 12, 6, 6, 4, 4, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 3];

    fn draw(chance: &mut Chance) -> Self {
        let mut weights = Taste::USUAL;
        for weight in &mut weights[1..] {
            *weight *= [0, 1, 1, 2, 6][chance.below(5) as usize];
        }
        weights[1] = weights[1].max(1);
        Taste(weights)
    }

    fn pick(&self, world: &World, chance: &mut Chance) -> Event {
        let at = chance.below(world.servers.len() as u64) as usize;
        let client = chance.below(2) as usize;
        let place = chance.below(world.net.len().max(1) as u64) as usize;
        let mut drawn = chance.below(self.0.iter().sum());
        let mut kind = 0;
        while drawn >= self.0[kind] {
            drawn -= self.0[kind];
            kind += 1;
        }
        match kind {
            0 => Event::Deliver(place),
            1 => Event::Tick,
            2 => Event::LoadStep(at),
            3 => Event::Push(at),
            4 => Event::Handle { server: at, client },
            5 => Event::Asks(client),
            6 => Event::Beats(client),
            7 => Event::GivesUp(client),
            8 => Event::Replicate,
            9 => Event::Unsure(at),
            10 => Event::Wake(at),
            11 => Event::Start(at),
            12 => Event::Join(at),
            13 => Event::Rejoin,
            14 => Event::Stop(at),
            15 => Event::Kill(at),
            16 => Event::Cut(at),
            17 => Event::Lose(place),
            18 => Event::Double(place),
            19 => Event::Failover,
            20 => Event::Flush,
            21 => Event::Split(at),
            22 => Event::Step(if client == 0 { -4 } else { 4 }),
            23 => Event::End(at),
            _ => Event::SnapshotDue(at),
        }
    }
}

/// One walk with this number of tries; then all faults end, and some server must serve.
pub(super) fn walk(setting: Setting, seed: u64, tries: u32, count: &mut Count) -> Option<Found> {
    let mut chance = Chance(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let taste = Taste::draw(&mut chance);
    let mut world = World::new(setting);
    let mut taken = Vec::new();
    count.walks += 1;
    for _ in 0..tries {
        let event = taste.pick(&world, &mut chance);
        if world.step(event) {
            taken.push(event);
            count.steps += 1;
        }
        if world.violation.is_some() || world.is_admitted {
            break;
        }
    }
    if world.violation.is_none() && !world.is_admitted {
        world.calm_down();
    }
    let violation = world.violation.filter(|_| !world.is_admitted)?;
    Some(shorter(setting, Found { violation, events: taken }))
}

/// Plays a history, and returns the violation that it ends in.
pub(super) fn replay(setting: Setting, events: &[Event]) -> Option<Violation> {
    let mut world = World::new(setting);
    for event in events {
        world.step(*event);
        if world.violation.is_some() || world.is_admitted {
            return world.violation;
        }
    }
    world.calm_down();
    world.violation.filter(|_| !world.is_admitted)
}

/// Removes every step that the violation does not need.
fn shorter(setting: Setting, mut found: Found) -> Found {
    let mut size = found.events.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        let mut fewer = false;
        while from < found.events.len() {
            let mut events = found.events.clone();
            events.drain(from..(from + size).min(found.events.len()));
            if replay(setting, &events) == Some(found.violation) {
                found.events = events;
                fewer = true;
            } else {
                from += size;
            }
        }
        if !fewer || size > 1 {
            size = if size == 1 { 0 } else { size / 2 };
        }
    }
    found
}

/// Walks from these seeds until a rule breaks.
pub(super) fn walks(
    setting: Setting,
    seeds: std::ops::Range<u64>,
    tries: u32,
    count: &mut Count,
) -> Option<Found> {
    seeds.into_iter().find_map(|seed| walk(setting, seed, tries, count))
}
