//! Parents and children of a job, and flows, page by page.

use tenure_core::bounds::PAGE_BYTES_FULL;
use tenure_core::flow::{ChildView, FlowView, ParentView};
use tenure_core::requests::{ListChildren, ListFlows, ListParents, Listed};
use tenure_engine::CallError;

use crate::answer::Answerable;
use crate::call::{Caller, malformed};
use crate::decode::{Answered, FromWire, PageReply, ParentReply};
use crate::encode::{ListKinArgs, pack};
use crate::function::Function;
use crate::lists::{CALLS_MAX, page, pages};

/// A cursor of one of these pages as a number. One of a call before is well formed: the first is checked beforehand.
fn number(after: Option<&str>) -> Option<u64> {
    after.and_then(|after| after.parse().ok())
}

impl Answerable for ListParents {
    async fn answer(self, caller: Caller) -> Result<Listed<ParentView>, CallError> {
        self.page.row()?;
        parents(&caller, self).await
    }
}

/// A page of parents; it ends with the one that fills it by its result, whichever call brings that.
async fn parents(caller: &Caller, list: ListParents) -> Result<Listed<ParentView>, CallError> {
    const LIST: Function = Function::of::<ListParents>();
    let (max, mut after) = (list.page.max, list.page.cursor.clone());
    let (mut items, mut bytes) = (Vec::new(), 0);
    for _ in 0..CALLS_MAX {
        let left = (max - items.len(), PAGE_BYTES_FULL - bytes);
        let args = pack(&ListKinArgs::parents(&list, number(after.as_deref()), left));
        let answered = caller.ask::<PageReply<ParentReply>>(LIST, args).await?;
        let Answered { reply, blobs, .. } = answered;
        for item in reply.items {
            let view = item.view(&blobs, list.full).map_err(malformed(LIST))?;
            bytes += view.bytes();
            items.push(view);
        }
        after = reply.next.0;
        if after.is_none() || items.len() >= max || bytes >= PAGE_BYTES_FULL {
            break;
        }
    }
    Ok(Listed { items, next: after, partial: false })
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
