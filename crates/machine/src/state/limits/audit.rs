//! Audit of limits. It only reads.

use super::Limits;
use crate::audit::findings::Findings;

impl Limits {
    /// Compares the sums, the timers and the order of attempts with the limits.
    pub fn audit(&self, found: &mut Findings) {
        let (mut timers, mut attempts) = (0, 0);
        for (slot, limit) in self.limits.iter() {
            found.check(self.by_name.get(&limit.name) == Some(&slot), || {
                format!("limit \"{}\" is not found by its name", limit.name)
            });
            let resting: u64 = limit.resting.values().map(|w| u64::from(*w)).sum();
            let unshown = limit.gauge.iter().flat_map(|gauge| &gauge.rests);
            let resting = resting + unshown.map(|rest| u64::from(rest.weight)).sum::<u64>();
            found.check(limit.resting_sum == resting, || {
                format!("limit \"{}\": resting permits differ", limit.name)
            });
            let due = limit.gauge.as_ref().and_then(|gauge| gauge.due);
            attempts += usize::from(due.is_some());
            found.check(due.is_none_or(|due| self.attempts.contains(&(due, slot))), || {
                format!("limit \"{}\": its gauge is not in the order of gauges", limit.name)
            });
            timers += usize::from(limit.timer.is_some());
            found.check(limit.timer.is_none_or(|at| self.timers.has(at, &slot)), || {
                format!("limit \"{}\" has lost its timer", limit.name)
            });
        }
        let there = (self.timers.len(), self.attempts.len());
        found.check(there == (timers, attempts), || {
            format!(
                "{timers} limits have timers, {attempts} gauges are due, and there are {there:?}"
            )
        });
    }
}
