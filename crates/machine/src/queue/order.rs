//! Changes of a lane: its jobs come and go, and it moves between lane groups.

use crate::queue::line::InLine;
use crate::state::{Entry, LaneId, Space};
use tenure_core::bounds::{STEPS_MAX, TICK_MAX};
use tenure_core::time::Moment;

impl Space {
    /// Puts a job or a lock waiter into a lane.
    pub(crate) fn enter_lane(&mut self, lane: LaneId, arrival: u64, what: InLine, now: Moment) {
        self.lines.insert_in_line(lane, arrival, what);
        self.lane_changed(lane, now);
    }

    /// Takes a job or a lock waiter out of its lane.
    pub(crate) fn leave_lane(&mut self, lane: LaneId, arrival: u64, now: Moment) {
        if self.lines.remove_from_line(lane, arrival) {
            self.lane_changed(lane, now);
            self.lines.drop_lane_if_idle(lane);
        }
    }

    /// A reserving lane gets a lane group of its own; afterwards it goes back.
    pub(crate) fn own_bundle(&mut self, lane: LaneId) {
        if self.lines.own_bundle(lane) {
            self.clear_out(Entry::Lane(lane));
        }
    }

    /// Moves a lane back from its own lane group to the shared one.
    pub(crate) fn shared_bundle(&mut self, lane: LaneId, now: Moment) {
        let Some(shared) = self.lines.shared_bundle(lane) else { return };
        if self.lines.leave_own_bundle(lane, shared) {
            self.clear_out(Entry::Lane(lane));
        }
        self.bundle_changed(shared, now);
    }

    /// Continues to forget idle groups, as far as one tick may.
    pub(crate) fn tick_turns(&mut self) {
        for _ in 0..TICK_MAX / STEPS_MAX {
            let Some(queue) = self.lines.forget_more_groups() else { return };
            self.drop_hidden_queue_if_idle(queue);
        }
    }
}
