//! The end of a flow, and its cancel.

use crate::state::{Awaited, PORTION, ParentKey, Space};
use tenure_core::events::{About, EventType};
use tenure_core::names::FlowName;
use tenure_core::time::Moment;

impl Space {
    /// At the end of a call: notifies the calls that wait for a flow, unless the flow has an unfinished member again.
    pub(crate) fn tell_ended_flows(&mut self, now: Moment) {
        for name in self.flows.take_ended() {
            self.notify_awaiting(&Awaited::Flow(name.clone()));
            if let Some(flow) = self.flows.named().get(&name) {
                let (flow, counts) = (Some(name.clone()), Some(flow.counts()));
                let about = About { flow, counts, ..About::default() };
                self.happens(EventType::FlowFinished, about, now);
            }
            self.flows.loosen(name);
        }
    }

    /// Drops flows without rows at the end of the step that removed the last one.
    pub(crate) fn drop_empty_flows(&mut self) {
        let Space { flows, dependencies, waiters, .. } = self;
        flows.drop_empty(|name| {
            let waits = dependencies.edges().get(&ParentKey::Flow(name.clone()));
            waits.is_some_and(|edges| !edges.open.is_empty())
                || waiters.is_awaited(&Awaited::Flow(name.clone()))
        });
    }

    /// Cancels the unfinished members of a flow: a portion now, the rest by ticks.
    pub(crate) fn cancel_flow(&mut self, name: &FlowName, now: Moment) {
        if self.flows.begin_cancel(name) {
            self.go_on_cancelling(name, now);
        }
    }

    /// Continues the cancels of flows.
    pub(crate) fn tick_flows(&mut self, now: Moment) {
        if let Some(name) = self.flows.first_cancelling().cloned() {
            self.go_on_cancelling(&name, now);
        }
    }

    fn go_on_cancelling(&mut self, name: &FlowName, now: Moment) {
        let members = self.flows.to_cancel(name, PORTION);
        for seq in &members {
            if let Some(slot) = self.jobs.by_seq(*seq) {
                self.cancel_live(slot, now);
            }
        }
        self.flows.cancelled_to(name, members.last().copied());
    }
}
