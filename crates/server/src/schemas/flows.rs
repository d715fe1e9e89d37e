//! The schemas of jobs that wait for others, and of flows.

use serde_json::{Map, Value, json};
use tenure_core::bounds::{AFTER_MAX, FLOW_BYTES_MAX, REF_BYTES_MAX};
use tenure_core::flow::{FlowState, Gone, OnParentFailure, ParentState};
use tenure_core::job::JobState;

use super::{Fields, Sentences, add_objects, describe, describe_all, list, of};

/// Each schema with its fields.
const FLOWS: &[(&str, Fields)] = &[
    (
        "Flow",
        &[
            ("flow", "flow"),
            ("state", "FlowState"),
            ("cancelling", "boolean"),
            ("counts", "FlowCounts"),
            ("created_at", "moment"),
            ("finished_at", "moment?"),
        ],
    ),
    (
        "FlowCounts",
        &[
            ("unfinished", "integer"),
            ("succeeded", "integer"),
            ("failed", "integer"),
            ("cancelled", "integer"),
        ],
    ),
    ("NamedFlow", &[("flow", "flow")]),
    ("ParentFlow", &[("flow", "flow"), ("counts", "FlowCounts")]),
    (
        "ParentJob",
        &[
            ("id", "key"),
            ("state", "ParentState"),
            ("error", "string?"),
            ("finished_at", "moment?"),
            ("result", "any"),
        ],
    ),
    ("Child", &[("id", "key"), ("state", "JobState"), ("on_parent_failure", "OnParentFailure")]),
    ("AfterItem", &[("job", "key"), ("ref", "ref"), ("flow", "flow"), ("gone", "GoneIsDone")]),
];

const DESCRIBED: Sentences = &[
    (
        "NewJob",
        "after",
        "The parents: jobs and flows that must have ended before this job may run.",
    ),
    (
        "NewJob",
        "on_parent_failure",
        "cancel (the default): a parent that fails for good or is cancelled cancels this job. run: any end of a parent will do.",
    ),
    (
        "NewJob",
        "ref",
        "A name within this array, or within the push of this settle, by which other items name it in after. It is not stored, and a line of NDJSON has none.",
    ),
    (
        "NewJob",
        "flow",
        "The flow to which the job belongs. Without it: that of its first parent that has one; in a settle otherwise that of the settled job.",
    ),
    ("AfterItem", "job", "The id of a job, or key:KEY for the job that held KEY before this call."),
    ("AfterItem", "ref", "The ref of another item of this call."),
    ("AfterItem", "flow", "A whole flow, however many jobs come into it."),
    (
        "AfterItem",
        "gone",
        "A job or flow that is not there counts as done. Without it the push is refused.",
    ),
    ("JobFilter", "flow", "Jobs of this flow."),
    ("JobFilter", "schedule", "Jobs that this schedule made; looked for in at most 10,000 jobs."),
    ("Job", "flow", "The flow to which the job belongs."),
    ("Job", "after", "The first 100 parents: ids of jobs, and flows."),
    ("Job", "parents", "How many parents it has."),
    (
        "Job",
        "waiting_on",
        "How many of its parents have not ended, or have not been told to it yet.",
    ),
    ("Job", "on_parent_failure", "What becomes of it when a parent fails or is cancelled."),
    (
        "Job",
        "cancelled_children",
        "Only in the answer of a retry: how many jobs the failure of this one had cancelled. They stay cancelled.",
    ),
    ("Flow", "flow", "Its name."),
    ("Flow", "state", "finished: none of its jobs is unfinished."),
    (
        "Flow",
        "cancelling",
        "Its jobs are being cancelled, and what is pushed into it meanwhile is stored as cancelled.",
    ),
    ("Flow", "counts", "Its jobs by where they stand."),
    ("Flow", "created_at", "When its first job came."),
    ("Flow", "finished_at", "When its last job ended; null while one is unfinished."),
    ("FlowCounts", "unfinished", "Jobs that have not ended, in any state."),
    (
        "FlowCounts",
        "succeeded",
        "Jobs that succeeded; they count on when retain is over, and no longer once they are deleted.",
    ),
    ("FlowCounts", "failed", "Jobs that failed for good."),
    ("FlowCounts", "cancelled", "Jobs that were cancelled."),
    ("ParentJob", "id", "The id of the parent."),
    ("ParentJob", "state", "As of any job; gone: it is not there any more."),
    ("ParentJob", "error", "Why it failed or was cancelled."),
    ("ParentJob", "finished_at", "When it ended; null until then."),
    ("ParentJob", "result", "Its result; only with full=true."),
    ("ParentFlow", "flow", "The flow for which the job waits."),
    ("ParentFlow", "counts", "Its jobs; all zero for a flow that is gone."),
    ("NamedFlow", "flow", "The flow for which the job waits."),
    ("Child", "id", "The id of the child."),
    ("Child", "state", "Where it stands."),
    ("Child", "on_parent_failure", "What becomes of it when this job fails or is cancelled."),
];

/// The type that a word of these schemas means.
pub(super) fn word(word: &str) -> Option<Value> {
    let most = match word {
        "flow" => FLOW_BYTES_MAX,
        "ref" => REF_BYTES_MAX,
        _ => return None,
    };
    Some(json!({"type": "string", "maxLength": most}))
}

/// Adds the schemas of flows, and says what their fields mean and those that other schemas have for them.
pub(super) fn add(all: &mut Map<String, Value>) {
    let words = |words: Vec<&str>| json!({"type": "string", "enum": words});
    let states = JobState::ALL.map(ParentState::There).into_iter();
    let states = states.chain([ParentState::Gone(Gone::Gone)]).map(ParentState::as_str).collect();
    let after = json!({"type": "array", "items": of("AfterEntry"), "maxItems": AFTER_MAX});
    add_objects(all, FLOWS);
    for (name, schema) in [
        ("After", after),
        ("AfterEntry", json!({"oneOf": [of("key"), of("AfterItem")]})),
        ("GoneIsDone", words(vec!["done"])),
        ("OnParentFailure", words(OnParentFailure::ALL.map(OnParentFailure::as_str).to_vec())),
        ("FlowState", words(FlowState::ALL.map(FlowState::as_str).to_vec())),
        ("ParentState", words(states)),
        ("ShownParent", json!({"oneOf": [of("key"), of("NamedFlow")]})),
        ("Parent", json!({"oneOf": [of("ParentJob"), of("ParentFlow")]})),
        ("Flows", list("Flow")),
        ("Parents", list("Parent")),
        ("Children", list("Child")),
    ] {
        all.insert(name.to_owned(), schema);
    }
    describe_all(all, DESCRIBED);
    // A push answers jobs with more fields, so the same sentences hold for them.
    for (_, field, sentence) in DESCRIBED.iter().filter(|(schema, ..)| *schema == "Job") {
        describe(all, "PushedJob", field, sentence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_a_flow_is_described_and_every_sentence_has_its_field() {
        let all = super::super::all();
        for (schema, field, sentence) in DESCRIBED {
            let pointer = format!("/properties/{field}/description");
            assert_eq!(all[*schema].pointer(&pointer), Some(&json!(sentence)), "{schema} {field}");
        }
        for (schema, fields) in FLOWS {
            for (field, _) in *fields {
                let said = DESCRIBED.iter().any(|(of, name, _)| of == schema && name == field);
                assert!(said, "{schema} {field}");
            }
        }
    }
}
