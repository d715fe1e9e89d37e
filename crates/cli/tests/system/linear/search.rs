//! Decides if a history is linearizable: if all its calls could have happened one after the other, each at one moment
//! between its begin and its end, with their answers.
//!
//! The search is that of J. M. Wing and C. Gong, "Testing and Verifying Concurrent Objects" (Journal of Parallel and
//! Distributed Computing 17, 1993): of the calls that may be the first one is chosen, tried on the model, and the rest
//! is searched alike. A searched part is remembered by the set of calls and the state that they led to, and never
//! searched again: G. Lowe, "Testing for Linearizability" (Concurrency and Computation 29, 2017). Each object is
//! searched by itself, since a history is linearizable if and only if its part about each object is: A. Horn and D.
//! Kroening, "Faster Linearizability Checking via P-Compositionality" (FORTE 2015).
//!
//! Time is part of it: each call is placed as early as it can be, because an effect of time (a lease that runs out) may
//! only come later than its bound. Nothing here knows what the calls mean.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::linear::history::{Event, NEVER};

/// Most states that the search looks at: minutes, and some 3 GB, in a debug build. Most histories need some thousands.
const STATES_MAX: usize = 120_000_000;

/// The model of one object, one call after the other.
pub trait Model {
    type State: Clone + Eq + Hash;

    /// The state before the first call.
    fn first(&self) -> Self::State;
    /// The states that a call may lead to if it happens at `at` with its answer; empty if it could not have that
    /// answer. `call` is its number in the history.
    fn step(&self, state: &Self::State, call: usize, at: u64) -> Vec<Self::State>;
    /// Whether a call with its answer never changes anything, whenever it happens.
    fn changed_nothing(&self, call: usize) -> bool;
    /// Changes that may happen by themselves, each with the soonest moment.
    fn alone(&self, state: &Self::State) -> Vec<(Self::State, u64)>;
}

/// The result of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Linearizable,
    Not,
    /// The search would look at more states than it may.
    Undecided,
}

#[derive(Clone)]
struct Node<S> {
    /// Answered calls before this place of their order have all happened.
    base: usize,
    /// Answered calls beyond it that have happened.
    beyond: Vec<usize>,
    /// Open calls that happened.
    open: Vec<usize>,
    now: u64,
    state: S,
}

impl<S: Hash> Node<S> {
    /// Names the answered calls that have happened, and the state.
    fn key(&self) -> u128 {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            salt.hash(&mut hasher);
            (self.base, &self.beyond, &self.state).hash(&mut hasher);
            u128::from(hasher.finish())
        };
        half(0) << 64 | half(1)
    }
}

/// Nodes that were searched: of each key, the open calls that had happened, and the moment.
#[derive(Default)]
struct Seen {
    nodes: HashMap<u128, Vec<(u64, Vec<usize>)>>,
    count: usize,
}

impl Seen {
    /// Whether all that may follow the node has been searched; keeps the node otherwise.
    ///
    /// An open call need not happen, so where fewer of them have, and no later, at least as much may follow: without
    /// this each set of open calls that did not matter is searched by itself.
    fn has<S: Hash>(&mut self, node: &Node<S>) -> bool {
        let nodes = self.nodes.entry(node.key()).or_default();
        let covers = |(now, open): &(u64, Vec<usize>)| {
            *now <= node.now && open.iter().all(|call| node.open.binary_search(call).is_ok())
        };
        if nodes.iter().any(covers) {
            return true;
        }
        nodes.push((node.now, node.open.clone()));
        self.count += 1;
        false
    }
}

/// Searches a history of one object.
pub fn search<M: Model>(model: &M, events: &[Event]) -> Verdict {
    search_within(model, events, STATES_MAX)
}

/// The same, looking at no more states than these.
pub fn search_within<M: Model>(model: &M, events: &[Event], most: usize) -> Verdict {
    let mut answered: Vec<usize> = (0..events.len()).filter(|&n| !events[n].is_open()).collect();
    answered.sort_by_key(|&n| (events[n].begin, events[n].end));
    let mut open: Vec<usize> = (0..events.len()).filter(|&n| events[n].is_open()).collect();
    open.sort_by_key(|&n| events[n].begin);
    let first =
        Node { base: 0, beyond: Vec::new(), open: Vec::new(), now: 0, state: model.first() };
    let (mut stack, mut seen) = (vec![first], Seen::default());
    while let Some(node) = stack.pop() {
        let Some(node) = settled(model, events, &answered, node) else { continue };
        if node.base == answered.len() {
            return Verdict::Linearizable;
        }
        if seen.has(&node) {
            continue;
        }
        if seen.count > most {
            return Verdict::Undecided;
        }
        let last = last_first(events, &answered, &node);
        if node.now > last {
            continue;
        }
        // The last one pushed is tried first: answered calls in the order of their begin.
        for &call in open.iter().rev() {
            let at = node.now.max(events[call].begin);
            if at <= last.min(events[call].end) && !node.open.contains(&call) {
                for state in model.step(&node.state, call, at) {
                    let mut next = Node { now: at, state, ..node.clone() };
                    next.open.push(call);
                    next.open.sort_unstable();
                    stack.push(next);
                }
            }
        }
        for (state, soonest) in model.alone(&node.state) {
            let now = node.now.max(soonest);
            if now <= last {
                stack.push(Node { now, state, ..node.clone() });
            }
        }
        let window: Vec<_> = window(events, &answered, &node, last).collect();
        for &(place, call) in window.iter().rev() {
            let at = node.now.max(events[call].begin);
            for state in model.step(&node.state, call, at) {
                let mut next = Node { now: at, state, ..node.clone() };
                next.take(place);
                stack.push(next);
            }
        }
    }
    Verdict::Not
}

impl<S> Node<S> {
    fn take(&mut self, place: usize) {
        self.beyond.push(place);
        self.beyond.sort_unstable();
        while self.beyond.first() == Some(&self.base) {
            self.beyond.remove(0);
            self.base += 1;
        }
    }
}

/// Answered calls that have not happened, with their places, that begin before `last`.
fn window<'a, S>(
    events: &'a [Event],
    answered: &'a [usize],
    node: &'a Node<S>,
    last: u64,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let from = answered[node.base..].iter().enumerate();
    from.map(|(n, &call)| (node.base + n, call))
        .take_while(move |&(_, call)| events[call].begin <= last)
        .filter(|(place, _)| node.beyond.binary_search(place).is_err())
}

/// The next call happens before this: the soonest end of those that have not.
fn last_first<S>(events: &[Event], answered: &[usize], node: &Node<S>) -> u64 {
    let mut last = NEVER;
    for (n, &call) in answered[node.base..].iter().enumerate() {
        if events[call].begin > last {
            break;
        }
        if node.beyond.binary_search(&(node.base + n)).is_err() {
            last = last.min(events[call].end);
        }
    }
    last
}

/// Calls that never change anything and began before this moment happen at once: if they may happen here, then all that
/// may follow may follow them too. `None` if a call can no longer be in time.
fn settled<M: Model>(
    model: &M,
    events: &[Event],
    answered: &[usize],
    mut node: Node<M::State>,
) -> Option<Node<M::State>> {
    loop {
        if node.base == answered.len() {
            return Some(node);
        }
        let last = last_first(events, answered, &node);
        if node.now > last {
            return None;
        }
        let idle = window(events, answered, &node, last.min(node.now)).find(|&(_, call)| {
            model.changed_nothing(call) && !model.step(&node.state, call, node.now).is_empty()
        });
        match idle {
            Some((place, _)) => node.take(place),
            None => return Some(node),
        }
    }
}

/// The history up to a moment: a call that ended later is open.
fn until(events: &[Event], moment: u64) -> Vec<Event> {
    let begun = events.iter().filter(|event| event.begin <= moment).cloned();
    begun
        .map(|mut event| {
            if event.end > moment {
                (event.end, event.answer) = (NEVER, None);
            }
            event
        })
        .collect()
}

/// The smallest part of a history that is not linearizable: up to the first answer that could not be, and without the
/// calls that changed nothing and do not matter. `lease_of` says which calls are about one lease and can be left out
/// together, because the calls before it do not matter to the calls after it.
pub fn smallest(
    events: &[Event],
    lease_of: impl Fn(&Event) -> Option<u64>,
    is_not: impl Fn(&[Event]) -> bool,
) -> Vec<Event> {
    let mut ends: Vec<_> =
        events.iter().map(|event| event.end).filter(|&end| end < NEVER).collect();
    ends.sort_unstable();
    let first = ends.partition_point(|&end| !is_not(&until(events, end)));
    let mut rest = until(events, ends.get(first).copied().unwrap_or(NEVER));
    let leases: BTreeSet<_> = rest.iter().filter_map(&lease_of).collect();
    for lease in leases {
        let without: Vec<_> =
            rest.iter().filter(|event| lease_of(event) != Some(lease)).cloned().collect();
        if is_not(&without) {
            rest = without;
        }
    }
    let mut at = rest.len();
    while at > 0 {
        at -= 1;
        if rest[at].is_open() || rest[at].changed_nothing() {
            let without = rest.remove(at);
            if !is_not(&rest) {
                rest.insert(at, without);
            }
        }
    }
    rest.sort_by_key(|event| event.begin);
    rest
}
