//! `/v1/flows`, and jobs that wait for each other.

use tenure_core::decode;
use tenure_core::requests::{CancelFlow, GetFlow, ListChildren, ListFlows, ListParents};

use super::{Route, route};

const FLOW: &[(u16, &str)] = &[(200, "Flow")];

pub(super) static ROUTES: &[Route] = &[
    route!(ListParents, "List what a job waits or waited for", |asked| decode::list_parents(
        asked.first(),
        asked.query
    ))
    .query::<ListParents>()
    .answers(&[(200, "Parents")]),
    route!(ListChildren, "List the jobs that wait or waited for a job", |asked| {
        decode::list_children(asked.first(), asked.query)
    })
    .query::<ListChildren>()
    .answers(&[(200, "Children")]),
    route!(ListFlows, "List flows", |asked| decode::list_flows(asked.query))
        .query::<ListFlows>()
        .answers(&[(200, "Flows")]),
    route!(GetFlow, "Show a flow, or wait until it is finished", |asked| decode::get_flow(
        asked.first(),
        asked.query
    ))
    .query::<GetFlow>()
    .answers(FLOW),
    route!(CancelFlow, "Cancel all unfinished jobs of a flow", |asked| Ok(CancelFlow {
        flow: decode::flow_path(asked.first())?
    }))
    .answers(FLOW),
];
