//! Jobs and resources as answers show them, from rows.

use rusqlite::{Connection, OptionalExtension, params};
use tenure_core::job::{JobState, JobView, PushedJob};
use tenure_core::machine::{Seq, StoredJob};
use tenure_core::names::{Namespace, PoolName, ResourceId};
use tenure_core::secret::Json;
use tenure_core::settings::ResourceView;
use tenure_engine::{CallError, Fault};

use crate::batch::{PushedShown, Shown};
use crate::mask::mask;
use crate::rows;
use crate::shared::Shared;

/// A row that the machine wrote and that cannot be read again.
pub(crate) fn unreadable(seq: Seq) -> CallError {
    Fault::Broken(format!("the row of job number {seq} is not of the format")).into()
}

/// A row's `Ready` is what the lines say, where they knew it to wait at all: the row may be newer.
fn view(job: StoredJob, state: JobState) -> Option<JobView> {
    let waiting = if state == JobState::Blocked { state } else { JobState::Ready };
    job.view(waiting)
}

/// One job; `None` if its row went meanwhile.
pub(crate) async fn job(
    shared: &Shared,
    namespace: &Namespace,
    seq: Seq,
    state: JobState,
) -> Result<Option<JobView>, CallError> {
    let namespace = namespace.clone();
    let found = shared.read(move |conn| rows::job(conn, &namespace, seq, true)).await?;
    found.map(|job| view(job, state).ok_or_else(|| unreadable(seq))).transpose()
}

/// Pushed jobs, in their order; rows are read for those that were there already.
pub(crate) async fn pushed(
    shared: &Shared,
    namespace: &Namespace,
    jobs: Vec<PushedShown>,
    full: bool,
) -> Result<Vec<PushedJob>, CallError> {
    let there = |job: &PushedShown| match job.shown {
        Shown::Read(seq, _) => Some(seq),
        Shown::Built(..) => None,
    };
    let wanted: Vec<Seq> = jobs.iter().filter_map(there).collect();
    let mut read = Vec::new();
    if !wanted.is_empty() {
        let namespace = namespace.clone();
        let all = move |conn: &Connection| {
            wanted.iter().map(|seq| rows::job(conn, &namespace, *seq, full)).collect()
        };
        read = shared.read::<Vec<Option<StoredJob>>>(all).await?;
    }
    let mut read = read.into_iter();
    let mut views = Vec::with_capacity(jobs.len());
    for PushedShown { shown, duplicate, replaced, unasked, known } in jobs {
        let (seq, stored, state) = match shown {
            Shown::Built(job, state) => (job.seq, Some(*job), state),
            Shown::Read(seq, state) => (seq, read.next().flatten(), state),
        };
        let job = match (stored, known) {
            (Some(stored), _) => view(stored, state).ok_or_else(|| unreadable(seq))?,
            (None, Some(known)) => *known,
            (None, None) => {
                let why = "a job that was there already went while it was read: push again";
                return Err(Fault::Unknown(why.to_owned()).into());
            }
        };
        views.push(PushedJob { job, duplicate, replaced, workers: unasked.then_some(0) });
    }
    Ok(views)
}

/// The data of a resource; `None` if it went meanwhile.
pub(crate) fn data(
    conn: &Connection,
    namespace: &Namespace,
    pool: &PoolName,
    id: &ResourceId,
) -> rusqlite::Result<Option<Json>> {
    let mut one = conn
        .prepare_cached("SELECT data FROM resource_data WHERE ns = ?1 AND pool = ?2 AND id = ?3")?;
    let row = params![namespace.as_str(), pool.as_str(), id.as_str()];
    Ok(one.query_row(row, |row| rows::json(row, 0)).optional()?.flatten())
}

/// Puts the masked data into views of resources.
pub(crate) async fn resources(
    shared: &Shared,
    namespace: &Namespace,
    pool: PoolName,
    mut views: Vec<ResourceView>,
) -> Result<Vec<ResourceView>, CallError> {
    if views.is_empty() {
        return Ok(views);
    }
    let namespace = namespace.clone();
    let read = move |conn: &Connection| {
        for view in &mut views {
            let data = data(conn, &namespace, &pool, &view.id)?;
            view.data = data.as_ref().map_or_else(Json::null, mask);
        }
        Ok(views)
    };
    shared.read(read).await
}
