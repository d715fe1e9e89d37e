//! The schemas of jobs that wait for others, and of flows.

use serde_json::{Map, Value, json};
use tenure_core::bounds::FLOW_BYTES_MAX;
use tenure_core::flow::{FlowState, Gone, ParentState};
use tenure_core::job::JobState;

use super::{Fields, add_shown, list, objects, of, words};

const FLOWS: &[(&str, Fields)] = objects! {
    Flow {
        flow: "flow", "The name of the flow.";
        state: "FlowState", "finished: none of its jobs is unfinished.";
        cancelling: "boolean", "Its jobs are being cancelled, and what is pushed into it meanwhile is stored as cancelled.";
        counts: "FlowCounts", "Its jobs by where they stand.";
        created_at: "moment", "When its first job came.";
        finished_at: "moment?", "When its last job ended; null while one is unfinished.";
    }
    FlowCounts {
        unfinished: "integer", "Jobs that have not ended, in any state.";
        succeeded: "integer", "Jobs that succeeded; they count on when retain is over, and no longer once they are deleted.";
        failed: "integer", "Jobs that failed for good.";
        cancelled: "integer", "Jobs that were cancelled.";
    }
    NamedFlow { flow: "flow", "The flow for which the job waits."; }
    ParentFlow {
        flow: "flow", "The flow for which the job waits.";
        counts: "FlowCounts", "Its jobs; all zero for a flow that is gone.";
    }
    ParentJob {
        id: "key", "The id of the parent.";
        state: "ParentState", "As of any job; gone: it is not there any more.";
        error: "string?", "Why it failed or was cancelled.";
        finished_at: "moment?", "When it ended; null until then.";
        result: "any~", "Its result; only with full=true.";
    }
    Child {
        id: "key", "The id of the child.";
        state: "JobState", "Where it stands.";
        on_parent_failure: "OnParentFailure", "What becomes of it when this job fails or is cancelled.";
    }
};

/// The type that a word of these schemas means.
pub(super) fn word(word: &str) -> Option<Value> {
    (word == "flow").then(|| json!({"type": "string", "maxLength": FLOW_BYTES_MAX}))
}

/// Adds the schemas of flows.
pub(super) fn add(all: &mut Map<String, Value>) {
    let states = JobState::ALL.map(ParentState::There).into_iter();
    let states = states.chain([ParentState::Gone(Gone::Gone)]).map(ParentState::as_str);
    let states: Vec<&str> = states.collect();
    add_shown(all, FLOWS);
    for (name, schema) in [
        ("FlowState", words(&FlowState::ALL.map(FlowState::as_str))),
        ("ParentState", words(&states)),
        ("ShownParent", json!({"oneOf": [of("key"), of("NamedFlow")]})),
        ("Parent", json!({"oneOf": [of("ParentJob"), of("ParentFlow")]})),
        ("Flows", list("Flow")),
        ("Parents", list("Parent")),
        ("Children", list("Child")),
    ] {
        all.insert(name.to_owned(), schema);
    }
}
