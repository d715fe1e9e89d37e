//! Calls about flows over HTTP, and the parents of a pushed job.

use serde::Serialize;
use tenure_core::flow::{After, OnParentFailure, Parent};
use tenure_core::names::{FlowName, Ref};
use tenure_core::requests::{CancelFlow, GetFlow, ListChildren, ListFlows, ListParents};

use super::ask::{OverHttp, Query};

impl OverHttp for CancelFlow {}

impl OverHttp for ListParents {
    fn query(&self, query: &mut Query) {
        query.page(&self.page);
        query.with("full", self.full.then_some("true"));
    }
}

impl OverHttp for ListChildren {
    fn query(&self, query: &mut Query) {
        query.page(&self.page);
    }
}

impl OverHttp for ListFlows {
    fn query(&self, query: &mut Query) {
        query.page(&self.page);
    }
}

impl OverHttp for GetFlow {
    fn query(&self, query: &mut Query) {
        query.wait(self.wait);
    }
}

/// One entry of `after`.
#[derive(Serialize)]
#[serde(untagged)]
pub enum AfterBody<'a> {
    /// A string: `"JOB"` or `"key:KEY"`.
    Plain(String),
    /// An object: the same with `gone`, or another kind of parent.
    Said(ParentBody<'a>),
}

/// A parent, under the name of its kind.
#[derive(Serialize, Default)]
pub struct ParentBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    item: Option<&'a Ref>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<&'a FlowName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gone: Option<&'static str>,
}

impl<'a> From<&'a After> for AfterBody<'a> {
    fn from(after: &'a After) -> Self {
        let gone = after.gone_is_done.then_some("done");
        let none = ParentBody { gone, ..ParentBody::default() };
        AfterBody::Said(match &after.parent {
            Parent::Job(job) if gone.is_none() => return AfterBody::Plain(job.to_string()),
            Parent::Job(job) => ParentBody { job: Some(job.to_string()), ..none },
            Parent::Item(item) => ParentBody { item: Some(item), ..none },
            Parent::Flow(flow) => ParentBody { flow: Some(flow), ..none },
        })
    }
}

/// Whether it can be left out.
pub fn is_default(answer: &OnParentFailure) -> bool {
    *answer == OnParentFailure::default()
}
