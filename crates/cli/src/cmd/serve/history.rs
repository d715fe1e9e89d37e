//! What the overview of the dashboard draws, from what the server counts.

use std::sync::Arc;

use tenure_core::names::Namespace;
use tenure_dashboard::{History, Minute};
use tenure_metrics::CallCounts;

/// The minutes of these counts.
pub struct CountedHistory(pub Arc<CallCounts>);

impl History for CountedHistory {
    fn minutes(&self, namespace: &Namespace, minutes: usize) -> Vec<Minute> {
        let counted = self.0.minutes.last(namespace, minutes);
        let drawn = counted.iter().map(|minute| Minute {
            at: minute.at,
            pushed: minute.pushed,
            lost: minute.lost,
            succeeded: minute.succeeded,
            failed: minute.failed,
            half_waited: minute.waited(0.5),
            most_waited: minute.waited(0.95),
        });
        drawn.collect()
    }
}
