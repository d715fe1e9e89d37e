//! Joins calls of one kind that wait at the same time into one call.
//!
//! A call that finds none of its kind under way is made at once, by its own caller, as if this module did not exist.
//! Calls that come while it is under way gather, and leave as one call as soon as it has ended. So no call waits for
//! others to come: only for the call that is on its way, and for that at most [`GATHERS_MAX`].
//!
//! Each caller is answered as if its call had been made alone. Calls that name the same thing are never in one call
//! ([`calls`]), so no call sees another. A refused call changed nothing, so its parts are made again: the
//! refused one alone, and the others without it. Nothing here changes a request or gives it another id, and
//! a call that may have happened is never repeated.

mod calls;
#[cfg(test)]
mod tests;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::names::Namespace;
use tenure_core::requests::{Reply, Request};
use tokio::runtime::{Handle, Id};
use tokio::sync::oneshot;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, timeout};

use self::calls::{Size, Verb, answers_of, joined, read};
use crate::{CallError, CallFuture, Fault};

/// A call that has gathered for this long leaves although another is under way. It is the most that a call can lose
/// here: a link may be long, and a connection may have died silently.
const GATHERS_MAX: Duration = Duration::from_millis(2);

/// The way to make a single call.
pub trait MakesCalls: Clone + Send + Sync + 'static {
    /// Makes the call. It is polled inside a Tokio runtime.
    fn make(&self, namespace: &Namespace, request: Request) -> CallFuture;
}

/// Joins the calls of an engine. Clones share the gathered calls.
#[derive(Clone)]
pub struct Joining<M> {
    makes: M,
    lines: Arc<Mutex<HashMap<LineKey, CallLine>>>,
}

/// Calls with the same key may be joined. Those of another runtime may not: a runtime that somebody blocks must not
/// hold up the heartbeats of one that runs.
#[derive(Clone, PartialEq, Eq, Hash)]
struct LineKey {
    namespace: Namespace,
    verb: Verb,
    runtime: Id,
}

type CallAnswer = Result<Reply, CallError>;

/// The way in which a call leaves.
#[allow(clippy::large_enum_variant)] // made once per call, and moved on at once
enum Entered {
    /// At once, made by its own caller.
    Alone(Request),
    /// With others; the receiver gets its answer.
    Gathers(oneshot::Receiver<CallAnswer>),
}

/// The calls of one key. It exists while a call of that key is under way.
struct CallLine {
    /// More than one if some calls were overdue.
    under_way: usize,
    gathered: VecDeque<Gathered>,
}

/// A call that waits for the one under way.
struct Gathered {
    request: Request,
    size: Size,
    /// Hashes of the names in the request.
    names: Vec<u64>,
    since: Instant,
    told: oneshot::Sender<CallAnswer>,
}

impl CallLine {
    /// Takes the calls that leave as one: as many from the front as may be joined.
    fn take(&mut self) -> Vec<Gathered> {
        let (mut taken, mut size, mut names) = (Vec::new(), Size::default(), HashSet::new());
        while let Some(next) = self.gathered.front() {
            if next.told.is_closed() {
                // The caller has gone, and its call was never sent.
                self.gathered.pop_front();
                continue;
            }
            let both = size + next.size;
            let alone = taken.is_empty();
            if !alone && (!both.fits() || next.names.iter().any(|name| names.contains(name))) {
                break;
            }
            size = both;
            names.extend(next.names.iter().copied());
            taken.extend(self.gathered.pop_front());
        }
        taken
    }
}

impl<M: MakesCalls> Joining<M> {
    /// A joiner without gathered calls.
    pub fn new(makes: M) -> Self {
        Joining { makes, lines: Arc::default() }
    }

    /// Makes a call, alone or with others.
    pub fn call(&self, namespace: &Namespace, request: Request) -> CallFuture {
        let Some((verb, size, names)) = read(&request) else {
            return self.makes.make(namespace, request);
        };
        let (joining, namespace) = (self.clone(), namespace.clone());
        Box::pin(async move {
            let Ok(runtime) = Handle::try_current() else {
                return joining.makes.make(&namespace, request).await;
            };
            let key = LineKey { namespace, verb, runtime: runtime.id() };
            match joining.enter(&key, request, size, names) {
                Entered::Alone(request) => {
                    let call = UnderWay { joining, key, runtime };
                    call.joining.makes.make(&call.key.namespace, request).await
                }
                Entered::Gathers(answer) => joining.gathered(key, runtime, answer).await,
            }
        })
    }

    /// Joins the queue behind the call under way, if there is one.
    fn enter(&self, key: &LineKey, request: Request, size: Size, names: Vec<u64>) -> Entered {
        match self.lock().entry(key.clone()) {
            Entry::Vacant(line) => {
                line.insert(CallLine { under_way: 1, gathered: VecDeque::new() });
                Entered::Alone(request)
            }
            Entry::Occupied(mut line) => {
                let (told, answer) = oneshot::channel();
                let since = Instant::now();
                let call = Gathered { request, size, names, since, told };
                line.get_mut().gathered.push_back(call);
                Entered::Gathers(answer)
            }
        }
    }

    /// Waits for the answer to a call that gathers.
    async fn gathered(
        &self,
        key: LineKey,
        runtime: Handle,
        mut answer: oneshot::Receiver<CallAnswer>,
    ) -> CallAnswer {
        let answer = match timeout(GATHERS_MAX, &mut answer).await {
            Ok(answer) => answer,
            Err(_) => {
                while let Some(taken) = self.overdue(&key) {
                    self.send(&key, &runtime, taken);
                }
                answer.await
            }
        };
        let ended = || Fault::Unknown("the call was given up when its runtime ended".to_owned());
        answer.unwrap_or_else(|_| Err(ended().into()))
    }

    /// Takes the calls that have waited long enough; they are under way now.
    fn overdue(&self, key: &LineKey) -> Option<Vec<Gathered>> {
        let mut lines = self.lock();
        let line = lines.get_mut(key)?;
        if line.gathered.front()?.since.elapsed() < GATHERS_MAX {
            return None;
        }
        let taken = line.take();
        if taken.is_empty() {
            return None;
        }
        line.under_way += 1;
        Some(taken)
    }

    /// Sends the taken calls, in a task of their own: a caller that goes away does not cancel the call of another.
    fn send(&self, key: &LineKey, runtime: &Handle, taken: Vec<Gathered>) {
        let call = UnderWay { joining: self.clone(), key: key.clone(), runtime: runtime.clone() };
        runtime.spawn(async move {
            call.joining.clone().together(call.key.namespace.clone(), taken).await;
            // The answered callers run first, so that their next calls leave together.
            yield_now().await;
            drop(call);
        });
    }

    /// Makes these calls as one, and gives each caller its own answer.
    fn together(
        self,
        namespace: Namespace,
        mut taken: Vec<Gathered>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            if taken.len() <= 1 {
                if let Some(one) = taken.pop() {
                    self.alone(namespace, one).await;
                }
                return;
            }
            let calls = || taken.iter().map(|call| &call.request);
            let Some(request) = joined(calls()) else { return };
            match self.makes.make(&namespace, request).await {
                Ok(reply) => match answers_of(calls(), reply) {
                    Some(answers) => {
                        for (call, answer) in taken.into_iter().zip(answers) {
                            let _ = call.told.send(Ok(answer));
                        }
                    }
                    None => {
                        let what = "calls that were sent as one were answered as another number";
                        tell_all(taken, &Fault::Broken(what.to_owned()).into());
                    }
                },
                Err(CallError::Refused(no)) => self.apart(namespace, taken, no.index).await,
                Err(why) => tell_all(taken, &why),
            }
        })
    }

    /// Makes these calls after they were refused as one because of the item at `index`: nothing was changed.
    async fn apart(self, namespace: Namespace, mut taken: Vec<Gathered>, index: Option<usize>) {
        match index.and_then(|index| place_of(&taken, index)).filter(|place| *place > 0) {
            Some(place) => {
                let behind = taken.split_off(place + 1);
                let refused = taken.pop();
                self.clone().together(namespace.clone(), taken).await;
                if let Some(refused) = refused {
                    self.clone().alone(namespace.clone(), refused).await;
                }
                self.together(namespace, behind).await;
            }
            // Nothing is known about the others: each of them could be refused next, one after the other.
            None => {
                let mut calls = JoinSet::new();
                for call in taken {
                    calls.spawn(self.clone().alone(namespace.clone(), call));
                }
                while calls.join_next().await.is_some() {}
            }
        }
    }

    async fn alone(self, namespace: Namespace, call: Gathered) {
        // The call of a caller that has gone meanwhile has changed nothing yet.
        if !call.told.is_closed() {
            let _ = call.told.send(self.makes.make(&namespace, call.request).await);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LineKey, CallLine>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of the call that has the item at this index of all.
fn place_of(taken: &[Gathered], index: usize) -> Option<usize> {
    let ends = taken.iter().scan(0, |end, call| {
        *end += call.size.items;
        Some(*end)
    });
    ends.enumerate().find(|(_, end)| index < *end).map(|(place, _)| place)
}

fn tell_all(taken: Vec<Gathered>, why: &CallError) {
    for call in taken {
        let _ = call.told.send(Err(why.clone()));
    }
}

/// A call under way. When it ends, answered or dropped, the gathered calls leave.
struct UnderWay<M: MakesCalls> {
    joining: Joining<M>,
    key: LineKey,
    runtime: Handle,
}

impl<M: MakesCalls> Drop for UnderWay<M> {
    fn drop(&mut self) {
        let taken = {
            let mut lines = self.joining.lock();
            let Some(line) = lines.get_mut(&self.key) else { return };
            line.under_way -= 1;
            let taken = line.take();
            if !taken.is_empty() {
                line.under_way += 1;
            } else if line.under_way == 0 {
                lines.remove(&self.key);
            }
            taken
        };
        if !taken.is_empty() {
            self.joining.send(&self.key, &self.runtime, taken);
        }
    }
}
