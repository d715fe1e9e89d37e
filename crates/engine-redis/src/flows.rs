//! Parents and children of a job, and flows, page by page.

use tenure_core::flow::{ChildView, FlowView, ParentView};
use tenure_core::requests::{ListChildren, ListFlows, ListParents, Listed};
use tenure_engine::CallError;

use crate::answer::Answerable;
use crate::call::Caller;
use crate::decode::{FromWire, ParentReply};
use crate::encode::{ListKinArgs, pack};
use crate::function::Function;
use crate::lists::{page, pages};

/// A cursor of one of these pages as a number. One of a call before is well formed: the first is checked beforehand.
fn number(after: Option<&str>) -> Option<u64> {
    after.and_then(|after| after.parse().ok())
}

impl Answerable for ListParents {
    async fn answer(self, caller: Caller) -> Result<Listed<ParentView>, CallError> {
        self.page.row()?;
        let args = |after: Option<&str>, max: usize| {
            pack(&ListKinArgs::parents(&self, number(after), max))
        };
        let view = |reply: ParentReply, blobs: &_| reply.view(blobs, self.full);
        pages(&caller, Function::of::<Self>(), self.page.clone(), args, view).await
    }
}

impl Answerable for ListChildren {
    async fn answer(self, caller: Caller) -> Result<Listed<ChildView>, CallError> {
        self.page.row()?;
        let args = |after: Option<&str>, max: usize| {
            pack(&ListKinArgs::children(&self, number(after), max))
        };
        pages(&caller, Function::of::<Self>(), self.page.clone(), args, ChildView::read).await
    }
}

impl Answerable for ListFlows {
    async fn answer(self, caller: Caller) -> Result<Listed<FlowView>, CallError> {
        page::<Self, _>(&caller, (None, self.page)).await
    }
}
