//! Random histories of jobs that wait: whatever happened, counts agree, and no job waits for ever.
//!
//! A seed decides each history, so that a failure can be repeated; how calls and ticks interleave is up to the engine.

use std::collections::BTreeMap;

use tenure_core::flow::{OnParentFailure, ParentState, ParentView};
use tenure_core::job::{JobState, NewJob};
use tenure_core::lease::LeaseView;
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_engine_api::CallError;

use crate::bench::Bench;
use crate::calls::flows::*;
use crate::words::*;

const SEEDS: u64 = 12;
/// Steps of one history; half of them come before the crash.
const STEPS: usize = 160;
/// A job waits for some of the jobs that were pushed this recently.
const RECENT: usize = 12;
const FLOWS: [&str; 3] = ["f", "g", "h"];

/// The state of one history: its random numbers, and the jobs that it made.
struct History {
    seed: u64,
    state: u64,
    ids: Vec<String>,
    leases: Vec<LeaseView>,
}

impl History {
    fn new(seed: u64) -> Self {
        let state = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        History { seed, state, ids: Vec::new(), leases: Vec::new() }
    }
    /// A number below `bound` (xorshift).
    fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 33) as usize % bound
    }
    fn one_of_ids(&mut self) -> Option<String> {
        let from = self.ids.len().saturating_sub(RECENT);
        let recent = self.ids.len() - from;
        if recent == 0 {
            return None;
        }
        let at = from + self.below(recent);
        Some(self.ids[at].clone())
    }
    fn flow(&mut self) -> String {
        format!("{}{}", FLOWS[self.below(FLOWS.len())], self.seed)
    }
    fn new_job(&mut self, id: &str, later: Option<&str>) -> NewJob {
        let mut job = job("q").id(id).retry(retry(2, 3, fixed(s(1))));
        for _ in 0..self.below(3) {
            if let Some(parent) = self.one_of_ids() {
                job = job.after([parent]).or_gone();
            }
        }
        if let Some(later) = later.filter(|_| self.below(2) == 0) {
            job = job.after([later]);
        }
        match self.below(8) {
            0 => job = job.after_flow(&self.flow()).or_gone(),
            1..4 => job = job.in_flow(&self.flow()),
            _ => {}
        }
        if self.below(3) == 0 { job.run_anyway() } else { job }
    }
    fn array(&mut self) -> Vec<NewJob> {
        let (first, count) = (self.ids.len(), 1 + self.below(4));
        let id = |n: usize, seed: u64| format!("{seed}-{n}");
        let mut array = Vec::new();
        for n in first..first + count {
            // A parent may come after its child.
            let later = (n + 1 < first + count).then(|| id(n + 1, self.seed));
            array.push(self.new_job(&id(n, self.seed), later.as_deref()));
        }
        array
    }
}

/// A call that may be refused: by a rule, but not by a fault.
async fn try_it<O: Operation>(b: &Bench, request: O) -> Option<O::Reply> {
    match b.call_in(&b.namespace, request).await {
        Ok(reply) => Some(reply),
        Err(CallError::Refused(no)) => {
            let by_rule = [Code::Cycle, Code::WrongState, Code::InUse, Code::JobNotFound];
            let by_rule = by_rule.contains(&no.code) || no.code == Code::FlowNotFound;
            assert!(by_rule, "{}: {no}", O::NAME);
            None
        }
        Err(CallError::Fault(fault)) => panic!("{}: {fault}", O::NAME),
    }
}

/// A job that a failed parent cancels runs only when all its parents have succeeded, or are gone.
async fn its_parents_have_ended(b: &Bench, lease: &LeaseView, seed: u64) {
    let job = lease.job.as_ref().expect("a lease of a queue has a job");
    if job.parents == 0 || job.on_parent_failure == OnParentFailure::Run {
        return;
    }
    let page = Page { max: 100, cursor: None };
    let list = ListParents { job: job_ref(job.id.as_str()), full: false, page };
    for parent in b.ok(list).await.items {
        let ParentView::Job(parent) = parent else { continue };
        let well = matches!(parent.state, ParentState::There(JobState::Succeeded));
        let gone = matches!(parent.state, ParentState::Gone(_));
        assert!(well || gone, "seed {seed}: {} ran before {parent:?}", job.id);
    }
}

async fn step(b: &Bench, history: &mut History) {
    match history.below(20) {
        0..7 => {
            let array = history.array();
            let ids: Vec<String> =
                array.iter().flat_map(|job| job.id.clone()).map(|id| id.to_string()).collect();
            if try_it(b, briefly(array)).await.is_some() {
                history.ids.extend(ids);
            }
        }
        7..11 => {
            for lease in b.take_all("q", 3).await {
                its_parents_have_ended(b, &lease, history.seed).await;
                history.leases.push(lease);
            }
        }
        11..15 => {
            if history.leases.is_empty() {
                return;
            }
            let at = history.below(history.leases.len());
            let lease = history.leases.swap_remove(at);
            let end = [succeeded, succeeded, failed_for_good, failed, released][history.below(5)];
            let mut item = end(&lease);
            if history.below(3) == 0 {
                let id = format!("{}-{}", history.seed, history.ids.len());
                let child = job("q").id(&id).retry(retry(2, 3, fixed(s(1))));
                item = item.pushing(child.after([job_of(&lease)]));
                history.ids.push(id);
            }
            b.settle(item).await;
        }
        15 | 16 => {
            if let Some(id) = history.one_of_ids() {
                try_it(b, CancelJob { job: job_ref(&id) }).await;
            }
        }
        17 | 18 => {
            if let Some(id) = history.one_of_ids() {
                try_it(b, RetryJob { job: job_ref(&id), finished_at: None }).await;
            }
        }
        _ => match history.below(4) {
            0 => drop(try_it(b, CancelFlow { flow: flow(&history.flow()) }).await),
            1 => b.told().await,
            _ => {
                if let Some(id) = history.one_of_ids() {
                    try_it(b, DeleteJob { job: job_ref(&id) }).await;
                }
            }
        },
    }
}

/// Each flow has the counts that a list of its jobs shows; no job was forgotten by time.
async fn counts_agree(b: &Bench, history: &History) {
    let seed = history.seed;
    b.told().await;
    for name in FLOWS {
        let name = format!("{name}{seed}");
        let filter = JobFilter { flow: Some(flow(&name)), ..JobFilter::default() };
        let page = Page { max: 1_000, cursor: None };
        let listed = b.ok(ListJobs { filter, page, full: false }).await.items;
        let mut expected: BTreeMap<JobState, u64> = BTreeMap::new();
        for job in &listed {
            *expected.entry(job.state).or_default() += 1;
        }
        let ended = |state| expected.get(&state).copied().unwrap_or_default();
        let [succeeded, failed, cancelled] =
            [JobState::Succeeded, JobState::Failed, JobState::Cancelled].map(ended);
        let unfinished = listed.len() as u64 - succeeded - failed - cancelled;
        let get = GetFlow { flow: flow(&name), wait: s(0) };
        let counts = try_it(b, get).await.map_or([0; 4], |view| counts_of(&view));
        assert_eq!(counts, [unfinished, succeeded, failed, cancelled], "seed {seed}: {name}");
    }
}

/// Ends all jobs that can be ended; a job that is left over waits for nobody.
async fn nobody_is_stranded(b: &Bench, history: &mut History) {
    let seed = history.seed;
    let mut leases = std::mem::take(&mut history.leases);
    for _ in 0..history.ids.len() + 10 {
        if !leases.is_empty() {
            b.ok(Settle::of(leases.iter().map(succeeded).collect())).await;
        }
        b.pass(s(1)).await;
        leases = b.take_all("q", 1_000).await;
        for lease in &leases {
            its_parents_have_ended(b, lease, seed).await;
        }
        let counts = b.queue("q").await.counts;
        let left = counts.ready + counts.blocked + counts.scheduled + counts.dependent;
        if leases.is_empty() && left == 0 {
            assert_eq!(counts.running, 0, "seed {seed}");
            return;
        }
    }
    let states = vec![JobState::Dependent, JobState::Scheduled, JobState::Ready];
    let filter = JobFilter { states, ..JobFilter::default() };
    let left = b.ok(ListJobs { filter, ..ListJobs::default() }).await.items;
    panic!("seed {seed}: these wait for ever: {left:?}");
}

async fn run(b: &mut Bench, seed: u64, crashes: bool) {
    let mut history = History::new(seed);
    for n in 0..STEPS {
        if crashes && n == STEPS / 2 && !b.reopen().await {
            return;
        }
        step(b, &mut history).await;
    }
    counts_agree(b, &history).await;
    let audit = b.ok(Audit::default()).await;
    assert!(audit.ok, "seed {seed}: {:?}", audit.faults);
    nobody_is_stranded(b, &mut history).await;
    counts_agree(b, &history).await;
}

pub(crate) async fn counts_agree_and_nobody_is_stranded_after_any_history(b: &mut Bench) {
    for seed in 0..SEEDS {
        run(b, seed, false).await;
    }
}

pub(crate) async fn counts_agree_and_nobody_is_stranded_after_any_crash(b: &mut Bench) {
    for seed in SEEDS..2 * SEEDS {
        run(b, seed, true).await;
    }
}
