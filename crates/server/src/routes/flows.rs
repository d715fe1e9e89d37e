//! `/v1/flows`, and jobs that wait for each other.

use tenure_core::requests::{CancelFlow, GetFlow, ListChildren, ListFlows, ListParents};

use super::{Route, route};

pub(super) static ROUTES: &[Route] = &[
    route!(ListParents, "List what a job waits or waited for", 200 "Parents"),
    route!(ListChildren, "List the jobs that wait or waited for a job", 200 "Children"),
    route!(ListFlows, "List flows", 200 "Flows"),
    route!(GetFlow, "Show a flow, or wait until it is finished", 200 "Flow"),
    route!(CancelFlow, "Cancel all unfinished jobs of a flow", 200 "Flow"),
];
