//! Common parts of the models: a lease, and small numbers for names.

use std::collections::{BTreeMap, BTreeSet};

use crate::linear::history::{Answer, Call, Event, NEVER};

/// A lease lives this long without an extend.
pub const TTL_US: u64 = 1_000_000;
/// The most by which the clocks of the machine differ over such spans.
pub const SLACK_US: u64 = 5_000;

/// A moment of the wall clock may come this much sooner than it was set: a server that takes the store over asks Redis
/// for its time, and the answer to the leader before may have come late.
pub const WALL_SLACK_US: u64 = 250_000;

/// A lease that lives.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Grant {
    pub request: usize,
    /// Unknown until some caller was answered it.
    pub fence: Option<u64>,
    /// It may be taken back no sooner than this.
    pub expires: u64,
    /// Its caller was gone, and no other caller learned of it.
    pub undoable: bool,
    /// It is over by then: its caller waited and was answered that there is nothing.
    pub over_by: u64,
}

impl Grant {
    /// The grant of this lease call; `None` if its answer has a fence that does not rise.
    pub fn new(event: &Event, request: usize, highest: u64, at: u64) -> Option<Self> {
        let fence = match &event.answer {
            Some(Answer::Granted { fence, .. }) if *fence > highest => Some(*fence),
            None | Some(Answer::Nothing) => None,
            Some(_) => return None,
        };
        let expires = at + TTL_US - SLACK_US;
        let over_by = if event.is_open() || fence.is_some() { NEVER } else { event.end };
        Some(Grant { request, fence, expires, undoable: event.dropped, over_by })
    }

    /// The same grant in the answer to a repeat of its request; `None` if it is another one.
    pub fn seen(&self, fence: u64, highest: u64) -> Option<Self> {
        let is_it = self.fence == Some(fence) || self.fence.is_none() && fence > highest;
        is_it.then(|| Grant { fence: Some(fence), undoable: false, ..self.clone() })
    }

    pub fn extended(&self, at: u64) -> Self {
        let expires = self.expires.max(at + TTL_US - SLACK_US);
        Grant { expires, undoable: false, ..self.clone() }
    }
}

/// A set of small numbers.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Bits(Vec<u64>);

impl Bits {
    pub fn has(&self, n: usize) -> bool {
        self.0.get(n / 64).is_some_and(|word| word >> (n % 64) & 1 == 1)
    }
    pub fn insert(&mut self, n: usize) {
        if self.0.len() <= n / 64 {
            self.0.resize(n / 64 + 1, 0);
        }
        self.0[n / 64] |= 1 << (n % 64);
    }
    /// No words of zeros at the end: equal sets are equal.
    pub fn remove(&mut self, n: usize) {
        if let Some(word) = self.0.get_mut(n / 64) {
            *word &= !(1 << (n % 64));
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
}

/// Numbers of the requests, leases and jobs that a history names.
pub struct Names<'a> {
    requests: BTreeMap<&'a str, usize>,
    /// Requests with a lease in an answer.
    told: BTreeSet<&'a str>,
    fences: BTreeMap<u64, usize>,
    jobs: BTreeMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    pub fn of(events: &'a [Event]) -> Self {
        let (mut requests, mut fences, mut jobs) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut told = BTreeSet::new();
        fn number<K: Ord>(map: &mut BTreeMap<K, usize>, key: K) {
            let next = map.len();
            map.entry(key).or_insert(next);
        }
        for event in events {
            match &event.call {
                Call::Lease { request, .. } => {
                    number(&mut requests, request.as_str());
                    if let Some(Answer::Granted { .. }) = event.answer {
                        told.insert(request.as_str());
                    }
                }
                Call::Extend { fence } | Call::Settle { fence, .. } => number(&mut fences, *fence),
                Call::Push { id } | Call::Cancel { id } | Call::Retry { id } | Call::Get { id } => {
                    number(&mut jobs, id.as_str());
                }
            }
        }
        Names { requests, told, fences, jobs }
    }
    /// Whether a call with this answer never changed anything.
    pub fn changed_nothing(&self, event: &Event) -> bool {
        event.changed_nothing() && !self.may_have_gone_to_a_repeat(event)
    }
    /// Whether the lease of a waiting call may have been granted although its answer was nothing: a repeat of its
    /// request was answered the lease, and its holder ended it before the answer to the call that waited.
    pub fn may_have_gone_to_a_repeat(&self, event: &Event) -> bool {
        match &event.call {
            Call::Lease { request, wait_ms } => {
                *wait_ms > 0
                    && event.answer == Some(Answer::Nothing)
                    && self.told.contains(request.as_str())
            }
            _ => false,
        }
    }
    pub fn request(&self, name: &str) -> usize {
        self.requests[name]
    }
    pub fn fence(&self, fence: u64) -> usize {
        self.fences[&fence]
    }
    /// `None` if nobody ever pushed it.
    pub fn job(&self, id: &str) -> Option<usize> {
        self.jobs.get(id).copied()
    }
    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }
}
