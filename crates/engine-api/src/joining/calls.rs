//! Rules for joining calls: which calls may be one, how they become one, and how its answer is split.
//!
//! Pushes, settles and extends take many items, and have an answer for each. Their items take effect in order, as
//! single calls would. Calls are not joined where the difference could show: with an id, a unique key or a lease that
//! both name, a settle with follow-ups or with a lease call of its own, and a push of jobs that depend on others: in
//! one call it would find jobs that it must not know.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Add;

use tenure_core::job::NewJob;
use tenure_core::lease::{Ending, ExtendItem, Extended, SettleItem};
use tenure_core::requests::{Effect, Extend, PushAnswer, Pushed, Reply, Request, Settle, Settled};
use tenure_core::secret::Json;
use tenure_core::time::Span;

/// A call with more items, or bytes, gains nothing from joining and goes alone.
const OWN_MAX: Size = Size { items: 16, bytes: 64 * 1024 };
/// The most that one call carries for others. It is little work, and far below every bound of a
/// call, so that no caller is refused because of another.
const JOINED_MAX: Size = Size { items: 128, bytes: 512 * 1024 };
/// Approximate bytes of an item beside its texts.
const ITEM_BYTES: usize = 256;

/// The kind of a call: calls of the same kind may be joined.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Verb {
    Push { whole: bool, adds: bool },
    Settle,
    Extend { ttl: Option<Span> },
}

/// The size of a call.
#[derive(Clone, Copy, Default)]
pub(super) struct Size {
    pub items: usize,
    bytes: usize,
}

impl Add for Size {
    type Output = Size;
    fn add(self, other: Size) -> Size {
        Size { items: self.items + other.items, bytes: self.bytes + other.bytes }
    }
}

impl Size {
    /// True if one call may carry this.
    pub fn fits(self) -> bool {
        self.is_within(JOINED_MAX)
    }

    fn is_within(self, most: Size) -> bool {
        self.items <= most.items && self.bytes <= most.bytes
    }
}

/// The kind and the size of a call, and hashes of the names in it; `None` for a call that is never joined.
pub(super) fn read(request: &Request) -> Option<(Verb, Size, Vec<u64>)> {
    let (verb, size, names) = match request {
        Request::Push(push)
            if push.jobs.iter().all(|job| job.after.is_empty() && job.reference.is_none()) =>
        {
            let (whole, adds) =
                (push.answer == PushAnswer::Whole, request.effect() == Effect::Adds);
            let ids = push.jobs.iter().filter_map(|job| Some(hash("id", job.id.as_ref()?)));
            let keys =
                push.jobs.iter().filter_map(|job| Some(hash("key", &job.unique.as_ref()?.key)));
            let size = size_of(&push.jobs, job_bytes);
            (Verb::Push { whole, adds }, size, ids.chain(keys).collect())
        }
        Request::Settle(Settle { settle, lease: None })
            if settle.iter().all(|item| item.push.is_empty()) =>
        {
            let leases = settle.iter().map(|item| hash("lease", &item.lease)).collect();
            (Verb::Settle, size_of(settle, settle_bytes), leases)
        }
        Request::Extend(Extend { leases, ttl }) => {
            let progress = |item: &ExtendItem| item.lease.len() + reported(&item.progress);
            let names = leases.iter().map(|item| hash("lease", &item.lease)).collect();
            (Verb::Extend { ttl: *ttl }, size_of(leases, progress), names)
        }
        _ => return None,
    };
    (size.items > 0 && size.is_within(OWN_MAX)).then_some((verb, size, names))
}

fn hash(what: &str, name: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    (what, name).hash(&mut hasher);
    hasher.finish()
}

fn size_of<T>(items: &[T], bytes: impl Fn(&T) -> usize) -> Size {
    Size { items: items.len(), bytes: items.iter().map(|item| bytes(item) + ITEM_BYTES).sum() }
}

fn job_bytes(job: &NewJob) -> usize {
    let labels: usize = job.labels.iter().map(|(key, value)| key.len() + value.len()).sum();
    let needs = job.needs.as_ref().map_or(0, Vec::len) * ITEM_BYTES;
    job.kind.len() + job.payload.text().len() + labels + needs
}

/// The bytes of a holder's report.
fn reported(progress: &Option<Json>) -> usize {
    progress.as_ref().map_or(0, |progress| progress.text().len())
}

fn settle_bytes(item: &SettleItem) -> usize {
    let said = match &item.ending {
        Ending::Succeeded { result } => result.as_ref().map_or(0, |result| result.text().len()),
        Ending::Failed { error, .. } => error.len(),
        Ending::Snoozed { .. } | Ending::Released => 0,
    };
    said + reported(&item.progress)
        + item.lease.len()
        + (item.resources.len() + item.limits.len()) * ITEM_BYTES
}

/// Joins these calls into one. All are of the same kind.
pub(super) fn joined<'a>(mut calls: impl Iterator<Item = &'a Request>) -> Option<Request> {
    let mut all = calls.next()?.clone();
    for call in calls {
        match (&mut all, call) {
            (Request::Push(all), Request::Push(push)) => all.jobs.extend_from_slice(&push.jobs),
            (Request::Settle(all), Request::Settle(settle)) => {
                all.settle.extend_from_slice(&settle.settle);
            }
            (Request::Extend(all), Request::Extend(extend)) => {
                all.leases.extend_from_slice(&extend.leases);
            }
            _ => return None,
        }
    }
    Some(all)
}

/// The answer of each of these calls, split from the answer to all; `None` if that has another number of items.
pub(super) fn answers_of<'a>(
    calls: impl Iterator<Item = &'a Request>,
    reply: Reply,
) -> Option<Vec<Reply>> {
    fn replies<T>(parts: Vec<Vec<T>>, reply: impl Fn(Vec<T>) -> Reply) -> Vec<Reply> {
        parts.into_iter().map(reply).collect()
    }
    let items = |call: &Request| match call {
        Request::Push(push) => push.jobs.len(),
        Request::Settle(settle) => settle.settle.len(),
        _ => 0,
    };
    match reply {
        Reply::Push(Pushed::Ids(all)) => {
            Some(replies(parts(all, calls.map(items))?, |part| Reply::Push(Pushed::Ids(part))))
        }
        Reply::Push(Pushed::Whole(all)) => {
            Some(replies(parts(all, calls.map(items))?, |part| Reply::Push(Pushed::Whole(part))))
        }
        Reply::Settle(Settled { settled, lease: None }) => {
            let reply = |settled| Reply::Settle(Settled { settled, lease: None });
            Some(replies(parts(settled, calls.map(items))?, reply))
        }
        Reply::Extend(all) => Some(extended_of(calls, all)),
        _ => None,
    }
}

/// Splits `all` into parts of these sizes, which must add up.
fn parts<T>(all: Vec<T>, sizes: impl Iterator<Item = usize>) -> Option<Vec<Vec<T>>> {
    let mut all = all.into_iter();
    let mut parts = Vec::new();
    for size in sizes {
        let part: Vec<T> = all.by_ref().take(size).collect();
        if part.len() < size {
            return None;
        }
        parts.push(part);
    }
    all.next().is_none().then_some(parts)
}

/// The leases of each call, split from the answer: no two calls name the same lease.
fn extended_of<'a>(calls: impl Iterator<Item = &'a Request>, all: Extended) -> Vec<Reply> {
    let mut calls_of = HashMap::new();
    let mut parts = Vec::new();
    for call in calls {
        if let Request::Extend(extend) = call {
            calls_of.extend(extend.leases.iter().map(|item| (item.lease.as_str(), parts.len())));
        }
        parts.push(Extended::default());
    }
    let Extended { extended, lost, cancel, crossed } = all;
    for one in extended {
        if let Some(at) = calls_of.get(one.lease.as_str()) {
            parts[*at].extended.push(one);
        }
    }
    for one in lost {
        if let Some(at) = calls_of.get(one.as_str()) {
            parts[*at].lost.push(one);
        }
    }
    for one in cancel {
        if let Some(at) = calls_of.get(one.as_str()) {
            parts[*at].cancel.push(one);
        }
    }
    for one in crossed {
        if let Some(at) = calls_of.get(one.as_str()) {
            parts[*at].crossed.push(one);
        }
    }
    parts.into_iter().map(Reply::Extend).collect()
}
