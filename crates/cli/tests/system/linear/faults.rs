//! Faults of a history, as far as its calls and answers show them.

use std::collections::{BTreeMap, BTreeSet};

use crate::linear::history::{Answer, Call, Event, History, NEVER};
use crate::linear::search::{self, Verdict};
use crate::linear::takeovers::first_sending;
use crate::linear::{job, lock};

/// All faults of a history: of each object by itself, and of all together.
pub fn faults(History { events, takeovers }: &History) -> Vec<String> {
    let mut of_each: BTreeMap<&str, Vec<Event>> = BTreeMap::new();
    for event in events {
        let calls = of_each.entry(&event.object).or_default();
        calls.extend(first_sending(event, takeovers));
        calls.extend(event.clone().parts());
    }
    let mut faults: Vec<_> = fences_that_do_not_rise(events).into_iter().collect();
    for (object, mut events) in of_each {
        events.sort_by_key(|event| event.begin);
        let why = match verdict(&events) {
            Verdict::Linearizable => continue,
            Verdict::Undecided => {
                faults.push(format!("{object}: {} calls are too many to search", events.len()));
                continue;
            }
            Verdict::Not => {
                search::smallest(&events, lease_of(&events), |part| verdict(part) == Verdict::Not)
            }
        };
        let lines: Vec<_> = why.iter().map(|event| format!("  {event}")).collect();
        faults.push(format!("{object} is not linearizable:\n{}", lines.join("\n")));
    }
    faults
}

/// Whether the history of one object is linearizable.
pub fn verdict(events: &[Event]) -> Verdict {
    let is_lock = |event: &Event| event.object.starts_with("lock:");
    if events.iter().any(is_lock) {
        search::search(&lock::Lock::new(events), events)
    } else {
        search::search(&job::Jobs::new(events), events)
    }
}

/// The fence of the lease that a call about a lock is about. The leases of a job count its attempts: no lease can be
/// left out.
pub fn lease_of(events: &[Event]) -> impl Fn(&Event) -> Option<u64> {
    let granted: BTreeMap<_, _> = events
        .iter()
        .filter_map(|event| match (&event.call, &event.answer) {
            (Call::Lease { request, .. }, Some(Answer::Granted { fence, job: None })) => {
                Some((request.clone(), *fence))
            }
            _ => None,
        })
        .collect();
    let all: BTreeSet<_> = granted.values().copied().collect();
    move |event| match &event.call {
        Call::Lease { request, .. } => granted.get(request).copied(),
        Call::Extend { fence } | Call::Settle { fence, .. } => {
            all.contains(fence).then_some(*fence)
        }
        _ => None,
    }
}

/// Fences rise over all objects: a fence that was known before a grant was requested is lower than its fence.
pub fn fences_that_do_not_rise(events: &[Event]) -> Option<String> {
    let mut first: BTreeMap<u64, (&Event, u64)> = BTreeMap::new();
    let mut by_request: BTreeMap<&str, u64> = BTreeMap::new();
    for event in events {
        // A repeat may be answered with the grant of a call before it.
        if let Call::Lease { request, .. } = &event.call {
            let begin = by_request.entry(request).or_insert(NEVER);
            *begin = event.begin.min(*begin);
        }
    }
    for event in events {
        if let (Call::Lease { request, .. }, Some(Answer::Granted { fence, .. })) =
            (&event.call, &event.answer)
        {
            let asked = by_request[request.as_str()];
            let known = first.entry(*fence).or_insert((event, asked));
            if known.0.object != event.object {
                return Some(format!("one fence for two grants:\n  {}\n  {event}", known.0));
            }
            if event.end < known.0.end {
                known.0 = event;
            }
        }
    }
    let mut soonest: Option<(&Event, u64)> = None;
    // From the highest fence to the lowest: no higher one may be over before a lower one was requested.
    for (_, (event, asked)) in first.iter().rev() {
        if let Some((higher, end)) = soonest
            && end < *asked
        {
            return Some(format!("a fence went back:\n  {higher}\n  {event}"));
        }
        if soonest.is_none_or(|(_, end)| event.end < end) {
            soonest = Some((event, event.end));
        }
    }
    None
}
