//! Flows: groups of jobs that are counted, awaited and cancelled together.

use crate::jobs::dependencies::PORTION;
use crate::state::{Awaited, Flow, ParentKey, Seq, Space};
use tenure_core::events::{About, EventType};
use tenure_core::job::JobState;
use tenure_core::names::FlowName;
use tenure_core::time::Moment;

impl Space {
    /// True if a member of a flow is unfinished.
    pub(crate) fn flow_is_open(&self, flow: &FlowName) -> bool {
        self.flows.get(flow).is_some_and(|flow| !flow.members.is_empty())
    }

    /// True if a flow counts as a failed parent.
    pub(crate) fn flow_has_failed(&self, flow: &FlowName) -> bool {
        self.flows.get(flow).is_some_and(|flow| flow.counts().has_failed())
    }

    /// The flow of this name; begins it if necessary.
    pub(crate) fn flow_for(&mut self, name: &FlowName, now: Moment) -> &mut Flow {
        self.out.dirty_flows.insert(name.clone());
        self.flows.entry(name.clone()).or_insert_with(|| Flow::new(now))
    }

    /// Adds a stored job to its flow.
    pub(crate) fn flow_gets(&mut self, name: &FlowName, seq: Seq, now: Moment) {
        let flow = self.flow_for(name, now);
        flow.rows += 1;
        flow.members.insert(seq);
    }

    /// A finished member lives again.
    pub(crate) fn flow_member_lives(
        &mut self,
        name: &FlowName,
        seq: Seq,
        was: JobState,
        now: Moment,
    ) {
        let flow = self.flow_for(name, now);
        flow.uncount(was);
        flow.members.insert(seq);
    }

    /// A member ended in this state; `None`: it was deleted with its row while it waited.
    pub(crate) fn flow_member_ended(
        &mut self,
        name: &FlowName,
        seq: Seq,
        state: Option<JobState>,
        now: Moment,
    ) {
        let Some(flow) = self.flows.get_mut(name) else { return };
        self.out.dirty_flows.insert(name.clone());
        flow.members.remove(&seq);
        if let Some(state) = state {
            *flow.ended.ended(state) += 1;
        }
        if flow.members.is_empty() {
            flow.cancelling = None;
            flow.finished_at = Some(now);
            self.out.ended_flows.insert(name.clone());
            self.tell_end(&ParentKey::Flow(name.clone()));
        }
        if state.is_none() {
            self.flow_loses_row(name);
        }
    }

    /// Removes the row of a finished member, which stays in the counts.
    pub(crate) fn flow_loses_row(&mut self, name: &FlowName) {
        let Some(flow) = self.flows.get_mut(name) else { return };
        flow.rows = flow.rows.saturating_sub(1);
        self.out.dirty_flows.insert(name.clone());
        self.out.loosened_flows.insert(name.clone());
    }

    /// Removes a finished member that a call deletes from the counts.
    pub(crate) fn flow_uncounts(&mut self, name: &FlowName, state: JobState) {
        let Some(flow) = self.flows.get_mut(name) else { return };
        flow.uncount(state);
        self.out.dirty_flows.insert(name.clone());
    }

    /// At the end of a call: notifies the calls that wait for a flow, unless the flow has an unfinished member again.
    pub(crate) fn tell_ended_flows(&mut self, now: Moment) {
        for name in std::mem::take(&mut self.out.ended_flows) {
            if !self.flow_is_open(&name) {
                self.notify_awaiting(&Awaited::Flow(name.clone()));
                if let Some(flow) = self.flows.get(&name) {
                    let (flow, counts) = (Some(name.clone()), Some(flow.counts()));
                    let about = About { flow, counts, ..About::default() };
                    self.happens(EventType::FlowFinished, about, now);
                }
                self.out.loosened_flows.insert(name);
            }
        }
    }

    /// Drops flows without rows at the end of the step that removed the last one.
    pub(crate) fn drop_empty_flows(&mut self) {
        for name in std::mem::take(&mut self.out.loosened_flows) {
            let waits = self.edges.get(&ParentKey::Flow(name.clone()));
            let awaited = waits.is_some_and(|edges| !edges.open.is_empty())
                || self.waiters.is_awaited(&Awaited::Flow(name.clone()));
            if !awaited && self.flows.get(&name).is_some_and(|flow| flow.rows == 0) {
                self.flows.remove(&name);
                self.out.dirty_flows.insert(name);
            }
        }
    }

    // ---- Cancel ----

    /// Cancels the unfinished members of a flow: a portion now, the rest by ticks.
    pub(crate) fn cancel_flow(&mut self, name: &FlowName, now: Moment) {
        let Some(flow) = self.flows.get_mut(name).filter(|flow| !flow.members.is_empty()) else {
            return;
        };
        flow.cancelling = Some(Seq::new(0));
        self.out.dirty_flows.insert(name.clone());
        self.cancelling.insert(name.clone());
        self.go_on_cancelling(name, now);
    }

    /// Continues the cancels of flows.
    pub(crate) fn tick_flows(&mut self, now: Moment) {
        if let Some(name) = self.cancelling.first().cloned() {
            self.go_on_cancelling(&name, now);
        }
    }

    fn go_on_cancelling(&mut self, name: &FlowName, now: Moment) {
        let members: Vec<Seq> = match self.flows.get(name) {
            Some(Flow { cancelling: Some(done), members, .. }) => {
                members.range(done.next()..).take(PORTION).copied().collect()
            }
            _ => Vec::new(),
        };
        for seq in &members {
            if let Some(slot) = self.job_by_seq(*seq) {
                self.cancel_live(slot, now);
            }
        }
        self.out.dirty_flows.insert(name.clone());
        let flow = self.flows.get_mut(name).filter(|flow| flow.cancelling.is_some());
        let goes_on = flow.is_some_and(|flow| {
            let last = members.last().copied();
            let more = last.is_some_and(|last| flow.members.range(last.next()..).next().is_some());
            flow.cancelling = last.filter(|_| more);
            more
        });
        if !goes_on {
            self.cancelling.remove(name);
        }
    }
}
