//! Judges the flows of the chaos: no job ran before its parents had ended, and no job is stranded.
//!
//! Order is judged by the records of workers alone. A worker writes down the end of a run before it settles it, and a
//! job that has ended never runs again. So the last run of a parent is the one whose settle ended it, whether or not
//! the answer to that settle arrived; and each run of a child must begin after the end that was written for the last
//! run of each parent, under a higher fence. A parent without such an end has not ended.
//!
//! A job that is cancelled by its parents has no run. It ended no sooner than the first of its parents that failed or
//! was cancelled.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tenure_core::flow::{FlowCounts, OnParentFailure};
use tenure_core::job::JobState;
use tenure_core::names::FlowName;
use tenure_core::requests::GetFlow;
use tenure_core::time::Span;
use tenure_engine_api::Engine;

use crate::chaos::flows::{Awaited, FLOWS, Planned};
use crate::chaos::records::{Hold, Told};
use crate::chaos::{jobs_of, ok};

/// The error of a job that is cancelled by a parent's failure.
const PARENT_FAILED: &str = "parent_failed";

/// How the store shows a job when the chaos is over.
struct Shown {
    state: JobState,
    flow: Option<String>,
    error: Option<String>,
}

/// Numbers of the judged flows and jobs.
#[derive(Default)]
pub struct Counts {
    flows: usize,
    jobs: usize,
    failed: usize,
    /// Jobs that never ran, since a parent failed or was cancelled.
    cancelled: usize,
    /// Jobs that ran although a parent failed or was cancelled.
    ran_anyway: usize,
    /// Runs that a worker stopped, or that ended with their worker.
    cut_short: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { flows, jobs, failed, cancelled, ran_anyway, cut_short } = self;
        write!(
            f,
            "{flows} flows of {jobs} jobs: {failed} failed, {cancelled} were cancelled by a parent's failure, \
             {ran_anyway} ran after one, {cut_short} runs were cut short"
        )
    }
}

/// A job's end by the records: it ended at this µs or later, and its last fence is this or a higher one.
#[derive(Clone, Copy)]
struct Ended {
    at: u64,
    fence: u64,
}

impl Ended {
    /// The end of a job that waits for nothing.
    const BEFORE_ALL: Ended = Ended { at: 0, fence: 0 };
    /// The end of a job whose end nobody wrote down.
    const NEVER: Ended = Ended { at: u64::MAX, fence: u64::MAX };

    fn later(self, other: Ended) -> Ended {
        Ended { at: self.at.max(other.at), fence: self.fence.max(other.fence) }
    }

    fn earlier(self, other: Ended) -> Ended {
        Ended { at: self.at.min(other.at), fence: self.fence.min(other.fence) }
    }
}

/// The jobs of all flows that are in the store, with their runs.
struct Flows<'t> {
    jobs: BTreeMap<&'t str, &'t Planned>,
    members: BTreeMap<&'t str, Vec<&'t str>>,
    /// The runs of each job, in the order in which they began.
    runs: BTreeMap<&'t str, Vec<&'t Hold>>,
}

impl<'t> Flows<'t> {
    fn new(told: &'t Told, shown: &BTreeMap<String, Shown>) -> Self {
        let there = told.planned.iter().filter(|job| shown.contains_key(&job.id));
        let jobs: BTreeMap<_, _> = there.map(|job| (job.id.as_str(), job)).collect();
        let mut members: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for job in jobs.values() {
            if let Some(flow) = &job.flow {
                members.entry(flow).or_default().push(&job.id);
            }
        }
        let mut runs: BTreeMap<&str, Vec<&Hold>> = BTreeMap::new();
        for run in told.holds.iter().filter(|run| jobs.contains_key(run.job.as_str())) {
            runs.entry(&run.job).or_default().push(run);
        }
        for runs in runs.values_mut() {
            runs.sort_unstable_by_key(|run| run.from);
        }
        Flows { jobs, members, runs }
    }

    fn runs(&self, job: &str) -> &[&'t Hold] {
        self.runs.get(job).map_or(&[], Vec::as_slice)
    }

    /// The jobs that one entry of `after` waits for.
    fn awaited(&self, parent: &'t Awaited) -> Vec<&'t str> {
        match parent {
            Awaited::Job(id) => vec![id],
            Awaited::Flow(flow) => self.members.get(flow.as_str()).cloned().unwrap_or_default(),
        }
    }

    /// Whether an entry of `after` counts as a failed parent.
    fn is_bad(&self, parent: &'t Awaited) -> bool {
        self.awaited(parent).iter().any(|id| self.demanded(id) != Some(JobState::Succeeded))
    }

    /// The state in which a job must end. `None` if it is not there.
    fn demanded(&self, id: &str) -> Option<JobState> {
        let job = self.jobs.get(id)?;
        let bad = job.after.iter().any(|parent| self.is_bad(parent));
        Some(match (job.rule, bad) {
            (OnParentFailure::Cancel, true) => JobState::Cancelled,
            _ => job.way.end(),
        })
    }

    /// When the jobs of one entry of `after` had all ended.
    fn all_ended(&self, parent: &'t Awaited) -> Ended {
        let ends = self.awaited(parent).into_iter().map(|id| self.ended(id));
        ends.fold(Ended::BEFORE_ALL, Ended::later)
    }

    /// When a job had ended.
    fn ended(&self, id: &str) -> Ended {
        let Some(job) = self.jobs.get(id) else { return Ended::NEVER };
        if self.demanded(id) == Some(JobState::Cancelled) {
            let bad = job.after.iter().filter(|parent| self.is_bad(parent));
            return bad.map(|parent| self.all_ended(parent)).fold(Ended::NEVER, Ended::earlier);
        }
        match self.runs(id).last() {
            Some(last) if said(last) == job.way.end().as_str() => {
                Ended { at: last.to, fence: last.fence }
            }
            _ => Ended::NEVER,
        }
    }

    /// The faults of one job.
    fn faults_of(&self, job: &'t Planned, shown: &Shown, faults: &mut Vec<String>) {
        let Planned { id, flow, .. } = job;
        let Some(demanded) = self.demanded(id) else { return };
        let (state, must) = (shown.state.as_str(), demanded.as_str());
        if !shown.state.is_finished() {
            faults.push(format!("{id} is stranded: it is {state} and must be {must}"));
        } else if shown.state != demanded {
            faults.push(format!("{id} is {state} and must be {must}"));
        }
        if shown.flow != *flow {
            faults.push(format!("{id} is in flow {:?} and must be in {flow:?}", shown.flow));
        }
        let runs = self.runs(id);
        if demanded == JobState::Cancelled {
            if shown.error.as_deref() != Some(PARENT_FAILED) {
                faults.push(format!("{id} is cancelled for another reason: {:?}", shown.error));
            }
            if !runs.is_empty() {
                faults.push(format!("{id} ran although a parent cancels it"));
            }
        } else if runs.last().is_none_or(|last| said(last) != must) {
            faults.push(format!("{id} has no last run that wrote that it {must}"));
        }
        for parent in &job.after {
            let ended = self.all_ended(parent);
            if runs.iter().any(|run| run.from < ended.at || run.fence <= ended.fence) {
                faults.push(format!("{id} ran before {parent:?} had ended"));
            }
        }
    }

    /// How many members of each flow must have ended in each state.
    fn counts(&self) -> BTreeMap<&'t str, FlowCounts> {
        let mut all: BTreeMap<&str, FlowCounts> = BTreeMap::new();
        for (flow, members) in &self.members {
            let counts = all.entry(flow).or_default();
            for state in members.iter().filter_map(|id| self.demanded(id)) {
                *counts.ended(state) += 1;
            }
        }
        all
    }

    fn judged(&self) -> Counts {
        let mut counts = Counts { jobs: self.jobs.len(), ..Counts::default() };
        let flows: BTreeSet<_> = self.jobs.values().map(|job| job.call.split('/').next()).collect();
        counts.flows = flows.len();
        for (id, job) in &self.jobs {
            match self.demanded(id) {
                Some(JobState::Cancelled) => counts.cancelled += 1,
                state => {
                    counts.failed += usize::from(state == Some(JobState::Failed));
                    let bad = job.after.iter().any(|parent| self.is_bad(parent));
                    counts.ran_anyway += usize::from(bad);
                }
            }
        }
        let runs = self.runs.values().flatten();
        counts.cut_short = runs.filter(|run| matches!(said(run), "" | "stopped")).count();
        counts
    }
}

/// The outcome of a run's handler; `""` if its process was killed before.
fn said(run: &Hold) -> &str {
    run.outcome.as_deref().unwrap_or_default()
}

/// All that is wrong: with each job, with pushes that are there in part, and with jobs that nobody pushed.
fn faults(told: &Told, shown: &BTreeMap<String, Shown>) -> Vec<String> {
    let flows = Flows::new(told, shown);
    let mut faults = Vec::new();
    for job in flows.jobs.values() {
        flows.faults_of(job, &shown[&job.id], &mut faults);
    }
    // A push that was answered is there; one that was not is there as a whole, or not at all.
    let mut calls: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for job in &told.planned {
        calls.entry(&job.call).or_default().push(&job.id);
    }
    for (call, ids) in calls {
        let (gone, there): (Vec<_>, Vec<_>) =
            ids.into_iter().partition(|id| !shown.contains_key(*id));
        if !gone.is_empty() && (told.answered.contains(call) || !there.is_empty()) {
            faults.push(format!("of the push {call} these are lost: {gone:?}"));
        }
    }
    let strange = shown.keys().filter(|id| !flows.jobs.contains_key(id.as_str()));
    faults.extend(strange.map(|id| format!("nobody pushed {id}")));
    faults
}

/// Judges all flows, and their counts.
pub async fn each_flow_ended_as_it_must(engine: &dyn Engine, told: &Told) -> Counts {
    let mut shown = BTreeMap::new();
    for job in jobs_of(engine, FLOWS).await {
        let flow = job.flow.map(|flow| flow.to_string());
        shown.insert(job.id.to_string(), Shown { state: job.state, flow, error: job.error });
    }
    let faults = faults(told, &shown);
    assert!(faults.is_empty(), "{} faults of flows:\n{}", faults.len(), faults.join("\n"));
    let flows = Flows::new(told, &shown);
    for (flow, counts) in flows.counts() {
        let flow = FlowName::parse(flow).expect("a name");
        let view = ok(engine, GetFlow { flow, wait: Span::ZERO }).await;
        assert_eq!(view.counts, counts, "{view:?}");
    }
    let counts = flows.judged();
    assert!(counts.cancelled > 0 && counts.ran_anyway > 0, "no parent failed: {counts}");
    counts
}

#[cfg(test)]
mod tests;
