//! Flows: groups of jobs that are counted, awaited and cancelled together.

use std::collections::{BTreeMap, BTreeSet};

use super::Seq;
use crate::audit::findings::Findings;
use tenure_core::flow::{FlowCounts, FlowState, FlowView};
use tenure_core::job::JobState;
use tenure_core::names::FlowName;
use tenure_core::time::Moment;

/// Jobs that belong together.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Row numbers of unfinished members.
    pub members: BTreeSet<Seq>,
    /// Counts of ended members, including those whose rows are purged. `unfinished` is not kept here: `members` has it.
    pub ended: FlowCounts,
    /// Number of existing rows of members.
    pub rows: u64,
    /// Set while its members are being cancelled; those up to this one are done.
    pub cancelling: Option<Seq>,
    pub created_at: Moment,
    pub finished_at: Option<Moment>,
}

impl Flow {
    pub fn new(now: Moment) -> Self {
        Flow {
            members: BTreeSet::new(),
            ended: FlowCounts::default(),
            rows: 0,
            cancelling: None,
            created_at: now,
            finished_at: Some(now),
        }
    }

    /// Removes a member that ended in this state from the counts.
    pub fn uncount(&mut self, state: JobState) {
        let ended = self.ended.ended(state);
        *ended = ended.saturating_sub(1);
    }

    pub fn counts(&self) -> FlowCounts {
        FlowCounts { unfinished: self.members.len() as u64, ..self.ended }
    }

    pub fn view(&self, flow: &FlowName) -> FlowView {
        let open = !self.members.is_empty();
        FlowView {
            flow: flow.clone(),
            state: if open { FlowState::Open } else { FlowState::Finished },
            cancelling: self.cancelling.is_some(),
            counts: self.counts(),
            created_at: self.created_at,
            finished_at: self.finished_at.filter(|_| !open),
        }
    }
}

/// All flows of a namespace.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    named: BTreeMap<FlowName, Flow>,
    /// Flows whose cancel is not complete.
    cancelling: BTreeSet<FlowName>,
    /// Flows whose last member ended in this call.
    ended: BTreeSet<FlowName>,
    /// Flows that lost a row, a dependent job or a waiting call in this call: they may be empty.
    loosened: BTreeSet<FlowName>,
    /// Flows whose rows the next drain writes.
    changed: BTreeSet<FlowName>,
}

impl Flows {
    pub fn named(&self) -> &BTreeMap<FlowName, Flow> {
        &self.named
    }

    /// True if a member of a flow is unfinished.
    pub fn is_open(&self, name: &FlowName) -> bool {
        self.named.get(name).is_some_and(|flow| !flow.members.is_empty())
    }

    /// True if a flow counts as a failed parent.
    pub fn has_failed(&self, name: &FlowName) -> bool {
        self.named.get(name).is_some_and(|flow| flow.counts().has_failed())
    }

    // ---- Members ----

    /// Adds an unfinished member, and begins the flow if necessary.
    fn add(&mut self, name: &FlowName, seq: Seq, now: Moment) -> &mut Flow {
        self.changed.insert(name.clone());
        let flow = self.named.entry(name.clone()).or_insert_with(|| Flow::new(now));
        flow.members.insert(seq);
        flow
    }

    /// Adds a stored job to its flow.
    pub fn gets(&mut self, name: &FlowName, seq: Seq, now: Moment) {
        self.add(name, seq, now).rows += 1;
    }

    /// A finished member lives again.
    pub fn member_lives(&mut self, name: &FlowName, seq: Seq, was: JobState, now: Moment) {
        self.add(name, seq, now).uncount(was);
    }

    /// A member ended in this state; `None`: it was deleted with its row while it waited. Returns true if it was the last
    /// unfinished one.
    pub fn member_ended(
        &mut self,
        name: &FlowName,
        seq: Seq,
        state: Option<JobState>,
        now: Moment,
    ) -> bool {
        let Some(flow) = self.named.get_mut(name) else { return false };
        self.changed.insert(name.clone());
        flow.members.remove(&seq);
        match state {
            Some(state) => *flow.ended.ended(state) += 1,
            None => {
                flow.rows = flow.rows.saturating_sub(1);
                self.loosened.insert(name.clone());
            }
        }
        let is_last = flow.members.is_empty();
        if is_last {
            flow.cancelling = None;
            flow.finished_at = Some(now);
            self.ended.insert(name.clone());
        }
        is_last
    }

    /// Removes the row of a finished member, which stays in the counts.
    pub fn loses_row(&mut self, name: &FlowName) {
        let Some(flow) = self.named.get_mut(name) else { return };
        flow.rows = flow.rows.saturating_sub(1);
        self.changed.insert(name.clone());
        self.loosened.insert(name.clone());
    }

    /// Removes a finished member that a call deletes from the counts.
    pub fn uncounts(&mut self, name: &FlowName, state: JobState) {
        let Some(flow) = self.named.get_mut(name) else { return };
        flow.uncount(state);
        self.changed.insert(name.clone());
    }

    // ---- The end of a call ----

    /// The flows whose last member ended, unless they have an unfinished one again.
    pub fn take_ended(&mut self) -> Vec<FlowName> {
        let ended = std::mem::take(&mut self.ended).into_iter();
        ended.filter(|name| !self.is_open(name)).collect()
    }

    /// A flow lost something that kept it.
    pub fn loosen(&mut self, name: FlowName) {
        self.loosened.insert(name);
    }

    /// Drops the loosened flows that have no row, unless somebody waits for them.
    pub fn drop_empty(&mut self, is_awaited: impl Fn(&FlowName) -> bool) {
        for name in std::mem::take(&mut self.loosened) {
            if self.named.get(&name).is_some_and(|flow| flow.rows == 0) && !is_awaited(&name) {
                self.named.remove(&name);
                self.changed.insert(name);
            }
        }
    }

    /// Takes the changed flows, for their rows.
    pub fn take_changed(&mut self) -> BTreeSet<FlowName> {
        std::mem::take(&mut self.changed)
    }

    // ---- Cancel ----

    /// Begins the cancel of the unfinished members; false without any.
    pub fn begin_cancel(&mut self, name: &FlowName) -> bool {
        let flow = self.named.get_mut(name).filter(|flow| !flow.members.is_empty());
        let Some(flow) = flow else { return false };
        flow.cancelling = Some(Seq::new(0));
        self.changed.insert(name.clone());
        self.cancelling.insert(name.clone());
        true
    }

    /// The next flow with members to cancel.
    pub fn first_cancelling(&self) -> Option<&FlowName> {
        self.cancelling.first()
    }

    /// The next members to cancel.
    pub fn to_cancel(&self, name: &FlowName, most: usize) -> Vec<Seq> {
        let Some(flow) = self.named.get(name) else { return Vec::new() };
        let Some(done) = flow.cancelling else { return Vec::new() };
        flow.members.range(done.next()..).take(most).copied().collect()
    }

    /// The members up to this one are cancelled.
    pub fn cancelled_to(&mut self, name: &FlowName, last: Option<Seq>) {
        self.changed.insert(name.clone());
        let flow = self.named.get_mut(name).filter(|flow| flow.cancelling.is_some());
        let goes_on = flow.is_some_and(|flow| {
            let more = last.is_some_and(|last| flow.members.range(last.next()..).next().is_some());
            flow.cancelling = last.filter(|_| more);
            more
        });
        if !goes_on {
            self.cancelling.remove(name);
        }
    }

    // ---- A start ----

    /// Restores a flow from its row.
    pub fn restore(&mut self, name: FlowName, flow: Flow) {
        if flow.cancelling.is_some() {
            self.cancelling.insert(name.clone());
        }
        self.named.insert(name, flow);
    }

    /// Restores a member from its own row, which the flow counts already.
    pub fn restore_member(&mut self, name: &FlowName, seq: Seq, now: Moment) {
        self.add(name, seq, now);
    }

    /// After the last row: no row is to be written. Empty flows go with the next step; a call may have waited for one.
    pub fn restored(&mut self) {
        let is_idle = |flow: &Flow| flow.rows == 0 && flow.members.is_empty();
        let idle = self.named.iter().filter(|(_, flow)| is_idle(flow));
        self.loosened = idle.map(|(name, _)| name.clone()).collect();
        self.ended.clear();
        self.changed.clear();
    }

    /// Compares the flows with the unfinished jobs that name each.
    pub fn audit(&self, found: &mut Findings, mut members: BTreeMap<&FlowName, BTreeSet<Seq>>) {
        for (name, flow) in &self.named {
            let counted = members.remove(name).unwrap_or_default();
            found.check(flow.members == counted, || {
                format!(
                    "flow \"{name}\": {} unfinished jobs are cached, {} are there",
                    flow.members.len(),
                    counted.len()
                )
            });
            found.check(flow.rows >= counted.len() as u64, || {
                format!("flow \"{name}\" counts fewer rows than unfinished jobs")
            });
            found.check(flow.cancelling.is_none() || self.cancelling.contains(name), || {
                format!("flow \"{name}\": nobody goes on with its cancel")
            });
        }
        found.check(members.is_empty(), || format!("flows of jobs are not there: {members:?}"));
    }
}
