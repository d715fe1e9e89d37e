//! A lock, one call after the other: one holder at most, fences that rise, a holder that is not heard of
//! for its ttl may lose it and not before, a request that is repeated gets the same lease or none.
//!
//! A free lock says nothing about its next holder: others may stand in line. So a call that got nothing is always
//! right, unless the lease of its own request lives.

use crate::linear::history::{Answer, Call, Event};
use crate::linear::search::Model;
use crate::linear::terms::{Bits, Grant, Names};

/// The model, for one history.
pub struct Lock<'a> {
    events: &'a [Event],
    names: Names<'a>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// The highest fence that was granted and seen.
    fence: u64,
    holder: Option<Grant>,
    /// Requests that were granted and not undone.
    granted: Bits,
    /// Leases that their holders gave back.
    given_back: Bits,
}

impl<'a> Lock<'a> {
    pub fn new(events: &'a [Event]) -> Self {
        Lock { events, names: Names::of(events) }
    }
}

impl State {
    fn end(&self, given_back: Option<usize>) -> Vec<State> {
        let mut next = State { holder: None, ..self.clone() };
        if let Some(fence) = given_back {
            next.given_back.insert(fence);
        }
        vec![next]
    }
}

impl Model for Lock<'_> {
    type State = State;

    fn first(&self) -> State {
        State { fence: 0, holder: None, granted: Bits::default(), given_back: Bits::default() }
    }

    fn step(&self, state: &State, call: usize, at: u64) -> Vec<State> {
        let event = &self.events[call];
        if state.holder.as_ref().is_some_and(|held| held.over_by < at) {
            return Vec::new();
        }
        let same = || vec![state.clone()];
        let holds = |fence| state.holder.as_ref().is_some_and(|held| held.fence == Some(fence));
        match (&event.call, &event.answer) {
            (_, Some(Answer::Unavailable)) => same(),
            (Call::Lease { request, .. }, answer) => {
                let request = self.names.request(request);
                let own = state.holder.as_ref().filter(|held| held.request == request);
                let granted = || {
                    if state.holder.is_some() || state.granted.has(request) {
                        return None;
                    }
                    let grant = Grant::new(event, request, state.fence, at)?;
                    let mut next = state.clone();
                    next.granted.insert(request);
                    next.fence = grant.fence.unwrap_or(state.fence);
                    next.holder = Some(grant);
                    Some(next)
                };
                match (answer, own) {
                    (Some(Answer::Granted { fence, .. }), Some(own)) => {
                        match own.seen(*fence, state.fence) {
                            Some(seen) => {
                                vec![State { fence: *fence, holder: Some(seen), ..state.clone() }]
                            }
                            None => Vec::new(),
                        }
                    }
                    (Some(Answer::Granted { .. }) | None, None) => granted().into_iter().collect(),
                    (Some(Answer::Nothing), None) => {
                        let grant = self.names.may_have_gone_to_a_repeat(event);
                        same().into_iter().chain(grant.then(granted).flatten()).collect()
                    }
                    _ => Vec::new(),
                }
            }
            (Call::Extend { fence }, Some(Answer::Extended { cancel: false })) => {
                match &state.holder {
                    Some(held) if holds(*fence) => {
                        vec![State { holder: Some(held.extended(at)), ..state.clone() }]
                    }
                    _ => Vec::new(),
                }
            }
            (Call::Extend { fence }, Some(Answer::Lost)) if !holds(*fence) => same(),
            (Call::Settle { fence, .. }, answer) => {
                let number = self.names.fence(*fence);
                match answer {
                    Some(Answer::Settled { state: None }) | None if holds(*fence) => {
                        state.end(Some(number))
                    }
                    Some(Answer::Settled { state: None }) if state.given_back.has(number) => same(),
                    Some(Answer::Lost) if !holds(*fence) && !state.given_back.has(number) => same(),
                    _ => Vec::new(),
                }
            }
            // An extend whose answer nobody heard only makes a lease live longer.
            _ => Vec::new(),
        }
    }

    fn changed_nothing(&self, call: usize) -> bool {
        self.names.changed_nothing(&self.events[call])
    }

    fn alone(&self, state: &State) -> Vec<(State, u64)> {
        let Some(held) = &state.holder else { return Vec::new() };
        let expired = state.end(None).into_iter().filter(|_| held.expires <= held.over_by);
        let mut all: Vec<_> = expired.map(|state| (state, held.expires)).collect();
        if held.undoable {
            for mut state in state.end(None) {
                state.granted.remove(held.request);
                all.push((state, 0));
            }
        }
        all
    }
}
