//! Parents and children of a job for lists: combines the machine's answer with the rows.

use tenure_core::flow::{ChildView, ParentJob, ParentState, ParentView};
use tenure_core::job::{JobState, JobView};
use tenure_core::names::Namespace;
use tenure_core::requests::{ListChildren, Listed};
use tenure_engine_api::CallError;
use tenure_machine::{ChildrenAt, ParentAt, ParentsAt, Seq, Stands, StoredJob};

use crate::calls::show::Show;
use crate::shared::Shared;
use crate::sqlite::read::kin::{children, parents};
use crate::sqlite::read::lists::stands_of;
use crate::sqlite::rows::{self, FoundJob};

impl Show<Listed<ParentView>> for ParentsAt {
    async fn show(
        self,
        shared: &Shared,
        namespace: &Namespace,
    ) -> Result<Listed<ParentView>, CallError> {
        let ParentsAt { items, from, next, full } = self;
        let job = |parent: &ParentAt| match parent {
            ParentAt::Job(seq, _) => Some(*seq),
            ParentAt::Shown(_) => None,
        };
        let wanted: Vec<Seq> = items.iter().filter_map(job).collect();
        let (ns, seal) = (namespace.clone(), shared.seal.clone());
        let read = shared.read(move |conn| parents(conn, (&ns, &seal), &wanted, full)).await?;
        let seqs = read.iter().filter_map(|found| match found {
            FoundJob::Job(row) => waiting(row),
            FoundJob::Gone | FoundJob::Unreadable => None,
        });
        let seqs = seqs.collect();
        let mut stands = stands_of(shared, namespace, seqs).await?.into_iter();
        let mut read = read.into_iter();
        let (many, mut shown) = (items.len(), Vec::new());
        for parent in items {
            shown.push(match parent {
                ParentAt::Shown(view) => view,
                ParentAt::Job(_, id) => match read.next() {
                    Some(FoundJob::Job(row)) => {
                        let stands = waiting(&row).and_then(|_| stands.next().flatten());
                        let stored = row.noted(&shared.damage, namespace);
                        parent_view(stored, stands.unwrap_or_default(), full)
                            .unwrap_or_else(|| ParentView::gone(id))
                    }
                    Some(FoundJob::Gone | FoundJob::Unreadable) => ParentView::gone(id),
                    // The page was full before this one.
                    None => break,
                },
            });
        }
        let next = if shown.len() < many { Some((from + shown.len()).to_string()) } else { next };
        Ok(Listed { items: shown, next, partial: false })
    }
}

/// The row number of a waiting job: only the machine knows its state.
fn waiting(row: &rows::JobRow) -> Option<Seq> {
    let waits = matches!(row.job.state, JobState::Ready | JobState::Dependent);
    waits.then_some(row.job.seq)
}

fn parent_view(stored: StoredJob, stands: Stands, full: bool) -> Option<ParentView> {
    let JobView { id, state, error, finished_at, result, .. } = stored.view(stands)?;
    let ended = state.is_finished();
    Some(ParentView::Job(ParentJob {
        id,
        state: ParentState::There(state),
        error: error.filter(|_| ended),
        finished_at,
        result: result.filter(|_| full),
    }))
}

impl Show<Listed<ChildView>> for ChildrenAt {
    async fn show(
        self,
        shared: &Shared,
        namespace: &Namespace,
    ) -> Result<Listed<ChildView>, CallError> {
        let ChildrenAt { parent, request: ListChildren { page, .. } } = self;
        let from = page.row()?.map_or(Seq::new(0), Seq::new);
        let (ns, seal, max) = (namespace.clone(), shared.seal.clone(), page.max);
        let (found, next) =
            shared.read(move |conn| children(conn, (&ns, &seal), (parent, from), max)).await?;
        let seqs = found.iter().filter_map(waiting).collect();
        let mut stands = stands_of(shared, namespace, seqs).await?.into_iter();
        let items = found.into_iter().filter_map(|row| {
            let stands = waiting(&row).and_then(|_| stands.next().flatten());
            let job = row.noted(&shared.damage, namespace).view(stands.unwrap_or_default())?;
            let on_parent_failure = job.on_parent_failure;
            Some(ChildView { id: job.id, state: job.state, on_parent_failure })
        });
        let next = next.map(|seq| seq.to_string());
        Ok(Listed { items: items.collect(), next, partial: false })
    }
}
