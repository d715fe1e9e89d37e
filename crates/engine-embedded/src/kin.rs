//! Parents and children of a job, as lists show them: what the machine knows, with what only rows know.

use rusqlite::{Connection, params};
use tenure_core::bounds::PAGE_BYTES_FULL;
use tenure_core::flow::{ChildView, ParentJob, ParentState, ParentView};
use tenure_core::job::{JobState, JobView};
use tenure_core::names::Namespace;
use tenure_core::requests::{ListChildren, Listed};
use tenure_core::secret::Json;
use tenure_engine::CallError;
use tenure_machine::rows::Kind;
use tenure_machine::{
    ChildrenAt, ParentAt, ParentsAt, Seq, Stands, StoredJob, child_key, child_of,
};

use crate::lists::stands_of;
use crate::rows::{self, FoundJob, or_none};
use crate::shared::Shared;
use crate::show::{Show, shown_row};

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
        let ns = namespace.clone();
        let read = shared.read(move |conn| parents(conn, &ns, &wanted, full)).await?;
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
                        let stored = shown_row(shared, namespace, *row);
                        parent_view(stored, stands.unwrap_or_default(), full)
                            .unwrap_or_else(|| ParentView::gone(id))
                    }
                    Some(FoundJob::Gone | FoundJob::Unreadable) => ParentView::gone(id),
                    // The page was full before.
                    None => break,
                },
            });
        }
        let next = match shown.len() < many {
            true => Some((from + shown.len()).to_string()),
            false => next,
        };
        Ok(Listed { items: shown, next, partial: false })
    }
}

/// The row number of a job that waits: how it stands only the machine knows.
fn waiting(row: &rows::JobRow) -> Option<Seq> {
    let waits = matches!(row.job.state, JobState::Ready | JobState::Dependent);
    waits.then_some(row.job.seq)
}

/// The rows of these, up to the one whose result fills the page.
fn parents(
    conn: &Connection,
    namespace: &Namespace,
    wanted: &[Seq],
    full: bool,
) -> rusqlite::Result<Vec<FoundJob>> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    for seq in wanted {
        if bytes >= PAGE_BYTES_FULL {
            break;
        }
        let mut one = rows::job(conn, namespace, *seq, full)?;
        if let FoundJob::Job(row) = &mut one {
            // Nothing shows it, and a thousand payloads are too much to hold.
            row.job.payload = row.job.payload.take().map(|_| Json::null());
            bytes += row.job.result.as_ref().map_or(0, |result| result.text().len());
            bytes += row.job.error.as_ref().map_or(0, String::len);
        }
        found.push(one);
    }
    Ok(found)
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
        let (ns, max) = (namespace.clone(), page.max);
        let (found, next) =
            shared.read(move |conn| children(conn, &ns, (parent, from), max)).await?;
        let seqs = found.iter().filter_map(waiting).collect();
        let mut stands = stands_of(shared, namespace, seqs).await?.into_iter();
        let items = found.into_iter().filter_map(|row| {
            let stands = waiting(&row).and_then(|_| stands.next().flatten());
            let job = shown_row(shared, namespace, row).view(stands.unwrap_or_default())?;
            let on_parent_failure = job.on_parent_failure;
            Some(ChildView { id: job.id, state: job.state, on_parent_failure })
        });
        let next = next.map(|seq| seq.to_string());
        Ok(Listed { items: items.collect(), next, partial: false })
    }
}

/// Rows of the children behind one of them, and the last that was looked at, if there may be more.
fn children(
    conn: &Connection,
    namespace: &Namespace,
    (parent, from): (Seq, Seq),
    max: usize,
) -> rusqlite::Result<(Vec<rows::JobRow>, Option<Seq>)> {
    let mut all = conn.prepare_cached(
        "SELECT key FROM row WHERE ns = ?1 AND kind = ?2 AND key > ?3 AND key <= ?4 ORDER BY key",
    )?;
    let (first, last) = (child_key(parent, from), child_key(parent, Seq::MAX));
    let mut keys = all.query(params![namespace.as_str(), Kind::Edge.as_str(), first, last])?;
    let (mut found, mut looked) = (Vec::new(), None);
    while let Some(row) = keys.next()? {
        if found.len() == max {
            return Ok((found, looked));
        }
        let Some(child) = or_none(row.get::<_, String>(0))?.as_deref().and_then(child_of) else {
            continue;
        };
        looked = Some(child);
        // One whose row is gone is no child any more.
        if let FoundJob::Job(row) = rows::job(conn, namespace, child, false)? {
            found.push(*row);
        }
    }
    Ok((found, None))
}
