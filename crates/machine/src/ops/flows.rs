//! Views of flows, parents and children, and the cancel of a whole flow.

use crate::answer::acts;
use crate::ops::cancel::Named;
use crate::rows::Archive;
use crate::state::{Kin, Parent, Seq, Space};
use crate::views;
use tenure_core::flow::{FlowCounts, FlowView, ParentView};
use tenure_core::names::{FlowName, JobId};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{CancelFlow, GetFlow, ListChildren, ListFlows, ListParents, Listed};
use tenure_core::sentences::FlowRefusal;

/// A parent of a job, in the machine's view.
#[derive(Clone, PartialEq, Debug)]
pub enum ParentAt {
    /// The job of this row; a finished one may be gone by now.
    Job(Seq, JobId),
    /// A parent that is shown as it is.
    Shown(ParentView),
}

/// A page of parents.
#[derive(Clone, PartialEq, Debug)]
pub struct ParentsAt {
    /// In the order of `after`.
    pub items: Vec<ParentAt>,
    /// The number of parents before them.
    pub from: usize,
    /// The cursor of the next page.
    pub next: Option<String>,
    /// True if results are shown.
    pub full: bool,
}

/// The list of a job's children; it is stored by the job's row number.
#[derive(Clone, PartialEq, Debug)]
pub struct ChildrenAt {
    /// The row number of the parent.
    pub parent: Seq,
    /// Copied from the request.
    pub request: ListChildren,
}

impl Space {
    pub(crate) fn flow_view(&self, name: &FlowName) -> Result<FlowView, Refusal> {
        match self.flows.named().get(name) {
            Some(flow) => Ok(flow.view(name)),
            None => Err(FlowRefusal::NotFound { flow: name.clone() }.into()),
        }
    }

    fn list_flows(&self, request: ListFlows) -> Listed<FlowView> {
        let page = request.page;
        let there = views::behind(self.flows.named(), &page);
        views::page(there.map(|(name, flow)| (name, flow.view(name))), &page)
    }

    fn kin_of_named(&self, named: &Named) -> Option<Kin> {
        match named {
            Named::Live(slot) => self.jobs[*slot].kin.as_deref().cloned(),
            Named::Finished(job) => Space::kin_in(&job.life),
        }
    }

    fn list_parents(
        &self,
        request: &ListParents,
        archive: &dyn Archive,
    ) -> Result<ParentsAt, Refusal> {
        let named = self.named(&request.job, archive)?;
        let from = request.page.row()?.unwrap_or_default();
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let parents = self.kin_of_named(&named).map(|kin| kin.parents);
        let parents = parents.as_deref().unwrap_or_default();
        let shown = parents.iter().skip(from).take(request.page.max);
        let items: Vec<ParentAt> = shown.map(|parent| self.parent_at(parent)).collect();
        let to = from.saturating_add(items.len());
        let next = (to < parents.len()).then(|| to.to_string());
        Ok(ParentsAt { items, from, next, full: request.full })
    }

    fn parent_at(&self, parent: &Parent) -> ParentAt {
        match parent {
            Parent::Job(seq, id) => ParentAt::Job(*seq, id.clone()),
            Parent::Gone(id) => ParentAt::Shown(ParentView::gone(id.clone())),
            Parent::Flow(flow) => {
                let counts =
                    self.flows.named().get(flow).map_or_else(FlowCounts::default, |f| f.counts());
                ParentAt::Shown(ParentView::Flow { flow: flow.clone(), counts })
            }
        }
    }
}

acts! {
    ListParents => ParentsAt, |ask, at| at.space.list_parents(&ask, at.rest);
    ListChildren => ChildrenAt, |ask, at| {
        let parent = match at.space.named(&ask.job, at.rest)? {
            Named::Live(slot) => at.space.jobs[slot].seq,
            Named::Finished(job) => job.seq,
        };
        Ok(ChildrenAt { parent, request: ask })
    };
    ListFlows => Listed<FlowView>, |ask, at| Ok(at.space.list_flows(ask));
    GetFlow => Box<FlowView>, |ask, at| at.space.flow_view(&ask.flow).map(Box::new);
    CancelFlow => Box<FlowView>, |ask, at| {
        at.space.flow_view(&ask.flow)?;
        at.space.cancel_flow(&ask.flow, at.now);
        at.space.flow_view(&ask.flow).map(Box::new)
    };
}
