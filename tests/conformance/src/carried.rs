//! Sentences for engines that interpret no rule and only carry calls: enough of the suite that each operation is
//! answered, waits and is refused with each of its codes at least once.
//!
//! `carried.txt` lists them. Where the whole suite runs on an engine anyway, a recorder notes the results of its calls,
//! and whether the listed sentences have all of them. The list is the result of a greedy choice: next comes the
//! sentence with the most results that no chosen one has, until all are there.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tenure_core::access::TokenName;
use tenure_core::names::Namespace;
use tenure_core::refusal::Code;
use tenure_core::requests::Request;
use tenure_core::time::Span;
use tenure_engine_api::{AroundEngine, CallError, CallFuture, Engine};

use crate::bench::{Bench, Factory, Store, Task};
use crate::run::{Case, on_each};

const CARRIED: &str = include_str!("carried.txt");
const CARRIED_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/carried.txt");

/// The result of a call of this operation.
type Mark = (&'static str, Outcome);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Outcome {
    Answered,
    /// The call was to wait, and another one was answered meanwhile.
    AnsweredAfterAWait,
    Refused(Code),
}

/// The calls of one sentence.
#[derive(Default)]
struct Recorded {
    marks: Mutex<BTreeSet<Mark>>,
    /// How many calls have been answered.
    answered: AtomicUsize,
}

/// An engine whose calls are noted.
struct Recorder {
    engine: Arc<dyn Engine>,
    recorded: Arc<Recorded>,
}

impl AroundEngine for Recorder {
    fn inner(&self) -> &dyn Engine {
        &*self.engine
    }
    fn call_around(
        &self,
        by: Option<&TokenName>,
        namespace: &Namespace,
        request: Request,
    ) -> CallFuture {
        let (name, waits, recorded) = (request.spec().name, waits(&request), self.recorded.clone());
        let before = recorded.answered.load(Ordering::Relaxed);
        let call = self.engine.call_by(by, namespace, request);
        Box::pin(async move {
            let answer = call.await;
            let others = recorded.answered.fetch_add(1, Ordering::Relaxed) - before;
            let outcome = match &answer {
                Ok(_) if waits && others > 0 => Some(Outcome::AnsweredAfterAWait),
                Ok(_) => Some(Outcome::Answered),
                Err(CallError::Refused(no)) => Some(Outcome::Refused(no.code)),
                // Engines that carry calls make faults of their own.
                Err(CallError::Fault(_)) => None,
            };
            let marks = outcome.map(|outcome| (name, outcome));
            recorded.marks.lock().unwrap_or_else(PoisonError::into_inner).extend(marks);
            answer
        })
    }
}

/// Opens benches whose calls are noted.
struct Recording<'a> {
    factory: &'a dyn Factory,
    recorded: Arc<Recorded>,
}

struct Reopened {
    store: Box<dyn Store>,
    recorded: Arc<Recorded>,
}

impl Factory for Recording<'_> {
    fn open(&self) -> Task<'_, Bench> {
        Box::pin(async {
            let recorded = || self.recorded.clone();
            self.factory.open().await.around(
                |engine| Arc::new(Recorder { engine, recorded: recorded() }),
                |store| Box::new(Reopened { store, recorded: recorded() }),
            )
        })
    }
}

impl Store for Reopened {
    fn reopen(&mut self, old: Arc<dyn Engine>) -> Task<'_, Arc<dyn Engine>> {
        Box::pin(async {
            let engine = self.store.reopen(old).await;
            Arc::new(Recorder { engine, recorded: self.recorded.clone() }) as Arc<dyn Engine>
        })
    }
}

/// The sentences for engines that carry calls.
pub fn carried() -> Vec<Case> {
    let listed: BTreeSet<&str> = CARRIED.lines().collect();
    crate::all().into_iter().filter(|case| listed.contains(case.name)).collect()
}

/// Runs all cases, and checks that the carried ones have all results of calls. Panics if a case fails, or if a result
/// is missing; with `TENURE_WRITE_CARRIED=1` it writes the list again.
pub fn check_all_and_carried(factory: &(dyn Factory + Sync)) {
    let cases = crate::all();
    let seen = Mutex::new(vec![BTreeSet::new(); cases.len()]);
    on_each(&cases, |at, case| {
        let recording = Recording { factory, recorded: Arc::default() };
        case.check(&recording);
        let marks = recording.recorded.marks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        seen.lock().unwrap_or_else(PoisonError::into_inner)[at] = marks;
    });
    let seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    if std::env::var_os("TENURE_WRITE_CARRIED").is_some() {
        let mut names: Vec<_> = chosen(&seen).into_iter().map(|at| cases[at].name).collect();
        names.sort_unstable();
        std::fs::write(CARRIED_FILE, names.join("\n") + "\n").expect("the list can be written");
        return;
    }
    let listed: BTreeSet<&str> = CARRIED.lines().collect();
    let is_carried = |(at, _): &(usize, _)| listed.contains(cases[*at].name);
    let has: BTreeSet<_> =
        seen.iter().enumerate().filter(is_carried).flat_map(|(_, m)| m).collect();
    let missing: Vec<_> = seen.iter().flatten().filter(|mark| !has.contains(mark)).collect();
    let unknown: Vec<_> =
        listed.iter().filter(|name| cases.iter().all(|case| case.name != **name)).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "{CARRIED_FILE} lacks sentences with {missing:?}, and lists {unknown:?}, which are none; write it anew: \
         TENURE_WRITE_CARRIED=1 cargo test -p tenure-engine --test it where_a_journal_appends"
    );
}

/// The indexes of sentences that together have every mark.
fn chosen(seen: &[BTreeSet<Mark>]) -> Vec<usize> {
    let mut missing: BTreeSet<Mark> = seen.iter().flatten().copied().collect();
    let mut chosen = vec![];
    while !missing.is_empty() {
        let new = |at: &usize| seen[*at].intersection(&missing).count();
        // The first of two that add the same number.
        let best = (0..seen.len()).rev().max_by_key(new).expect("there are sentences");
        missing.retain(|mark| !seen[best].contains(mark));
        chosen.push(best);
    }
    chosen
}

/// Whether this call is meant to wait.
fn waits(request: &Request) -> bool {
    let wait = match request {
        Request::Lease(call) => call.wait,
        Request::GetResult(call) => call.wait,
        Request::GetFlow(call) => call.wait,
        Request::ReadEvents(call) => call.wait,
        // The other operations have no `wait`.
        _ => return false,
    };
    wait > Span::ZERO
}
