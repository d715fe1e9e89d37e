//! Entries of `after`: the parents of a pushed job, and its policy for their failure.

use serde::ser::{SerializeMap, Serializer};

use super::fields::Value;
use super::forms::{Alias, Form, Name, ValueKind, Words};
use super::object::object;
use super::paths::{flow_path, job_path};
use super::raw_call::http_calls;
use crate::at::At;
use crate::flow::{After, OnParentFailure, Parent};
use crate::json::Kind;
use crate::names::{FlowName, JobRef, Ref, UniqueKey};
use crate::refusal::Refusal;
use crate::requests::{CancelFlow, GetFlow, ListChildren, ListFlows, ListParents};
use crate::sentences::BodyRefusal;
use crate::words::Worded as _;

object! {
    AfterFields "an entry of \"after\"" "AfterItem"
    fields {
        job: JobRef = Name(JobRef::parse, Some(JOB_REF_BYTES_MAX)), optional,
            "The id of a job, or key:KEY for the job that held KEY before this call.";
        item as "ref": Ref = Name(Ref::parse, Some(Ref::BYTES_MAX)), optional,
            "The ref of another item of this call.";
        flow: FlowName = Name(FlowName::known, Some(FlowName::BYTES_MAX)), optional,
            "A whole flow, however many jobs come into it.";
        gone: () = Alias("GoneIsDone", Words("a word for a parent that is gone", &[("done", ())])), optional,
            "A job or flow that is not there counts as done. Without it the push is refused.";
    }
}

impl Form<After> for AfterFields {
    /// Reads one of `"JOB"`, `"key:KEY"`, `{"job"}`, `{"ref"}` and `{"flow"}`.
    fn read(&self, value: Value<'_, '_>) -> Result<After, Refusal> {
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
        let fields = value.fields(Self::SHAPE)?;
        for (one, other) in [("job", "ref"), ("job", "flow"), ("ref", "flow"), ("ref", "gone")] {
            fields.not_both(one, other)?;
        }
        let gone_is_done = fields.read(&Self::gone())?.is_some();
        let job = fields.read(&Self::job())?.map(Parent::Job);
        let item = fields.read(&Self::item())?.map(Parent::Item);
        let flow = fields.read(&Self::flow())?.map(Parent::Flow);
        match job.or(item).or(flow) {
            Some(parent) => Ok(After { parent, gone_is_done }),
            None => {
                let example = "{\"job\": \"JOB\"}, {\"ref\": \"REF\"} or {\"flow\": \"FLOW\"}";
                Err(fields.missing("job", example))
            }
        }
    }
    fn check(&self, value: &After, at: &At<'_>) -> Result<(), Refusal> {
        match &value.parent {
            Parent::Item(_) if value.gone_is_done => {
                let (one, other) = ("ref".into(), "gone".into());
                Err(At::Member(at, "gone").refuse(BodyRefusal::FieldsExclude { one, other }))
            }
            Parent::Item(_) | Parent::Job(_) | Parent::Flow(_) => Ok(()),
        }
    }
    fn write<S: Serializer>(&self, value: &After, to: S) -> Result<S::Ok, S::Error> {
        if let (Parent::Job(job), false) = (&value.parent, value.gone_is_done) {
            return to.collect_str(job);
        }
        let mut map = to.serialize_map(None)?;
        match &value.parent {
            Parent::Job(job) => Self::job().put(job, &mut map)?,
            Parent::Item(item) => Self::item().put(item, &mut map)?,
            Parent::Flow(flow) => Self::flow().put(flow, &mut map)?,
        }
        if value.gone_is_done {
            Self::gone().put(&(), &mut map)?;
        }
        map.end()
    }
    fn kind(&self) -> ValueKind {
        let plain = ValueKind::Text(Some(JOB_REF_BYTES_MAX));
        ValueKind::Alias(
            "AfterEntry",
            Box::new(ValueKind::OneOf(vec![plain, ValueKind::Object("AfterItem")])),
        )
    }
}

/// `key:` and a key.
const JOB_REF_BYTES_MAX: usize = "key:".len() + UniqueKey::BYTES_MAX;

/// Policies for a parent that fails or is cancelled.
pub(super) const ON_PARENT_FAILURE: Alias<Words<OnParentFailure>> =
    Alias("OnParentFailure", Words("an answer to the failure of a parent", OnParentFailure::WORDS));

http_calls! {
    ListParents(job: job_path) query;
    ListChildren(job: job_path) query;
    ListFlows() query;
    GetFlow(flow: flow_path) query;
    CancelFlow(flow: flow_path);
}
