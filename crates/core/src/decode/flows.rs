//! Entries of `after`: the parents of a pushed job, and its policy for their failure.

use super::fields::{ObjectShape, Value};
use crate::bounds::AFTER_MAX;
use crate::flow::{After, OnParentFailure, Parent};
use crate::json::Kind;
use crate::names::{FlowName, JobRef, Ref};
use crate::refusal::Refusal;
use crate::sentences::BodyRefusal;

static PARENT: ObjectShape<4> = ObjectShape {
    what: "an entry of \"after\"",
    fields: ["job", "ref", "flow", "gone"],
    answered: &[],
};

/// Reads all entries of `after`.
pub(super) fn after(value: Value<'_, '_>) -> Result<Vec<After>, Refusal> {
    value.each(0..=AFTER_MAX, parent)
}

/// Reads one of `"JOB"`, `"key:KEY"`, `{"job"}`, `{"ref"}` and `{"flow"}`.
fn parent(value: Value<'_, '_>) -> Result<After, Refusal> {
    match value.node.kind() {
        Kind::String => {
            let parent = Parent::Job(value.parsed(JobRef::parse)?);
            return Ok(After { parent, gone_is_done: false });
        }
        Kind::Object => {}
        kind => {
            let (label, noun) = (value.at.label(), kind.noun().into());
            return Err(value.refuse(BodyRefusal::NotAParent { label, noun }));
        }
    }
    let fields = value.fields(&PARENT)?;
    for (one, other) in [("job", "ref"), ("job", "flow"), ("ref", "flow"), ("ref", "gone")] {
        fields.not_both(one, other)?;
    }
    let done =
        fields.take("gone", |v| v.one_of("a word for a parent that is gone", &[("done", ())]))?;
    let job = fields.take("job", |v| v.parsed(JobRef::parse))?.map(Parent::Job);
    let item = fields.take("ref", |v| v.parsed(Ref::parse))?.map(Parent::Item);
    let flow = fields.take("flow", |v| v.parsed(FlowName::known))?.map(Parent::Flow);
    match job.or(item).or(flow) {
        Some(parent) => Ok(After { parent, gone_is_done: done.is_some() }),
        None => {
            Err(fields
                .missing("job", "{\"job\": \"JOB\"}, {\"ref\": \"REF\"} or {\"flow\": \"FLOW\"}"))
        }
    }
}

/// Reads the policy for a parent that fails or is cancelled.
pub(super) fn on_parent_failure(value: Value<'_, '_>) -> Result<OnParentFailure, Refusal> {
    let words = OnParentFailure::ALL.map(|word| (word.as_str(), word));
    value.one_of("an answer to the failure of a parent", &words)
}
