//! Jobs and resources as answers show them, from rows.

use rusqlite::Connection;
use tenure_core::job::{JobState, JobView, PushedJob};
use tenure_core::names::{Namespace, PoolName};
use tenure_core::redact::redacted;
use tenure_core::secret::Json;
use tenure_core::settings::ResourceView;
use tenure_engine::{CallError, Fault};
use tenure_machine::{Seq, StoredJob};

use crate::batch::{PushedShown, Shown};
use crate::damage::job_name;
use crate::rows::{self, Data, Found, JobRow, unreadable_part};
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

/// What is told of a part that is not what was written.
pub(crate) fn damaged(seq: Seq, id: Option<&str>, part: &str) -> String {
    format!("{} is unreadable: its {part} is not what was written", job_name(seq, id))
}

/// A job as far as it can be shown; what cannot is noted.
pub(crate) fn shown_row(shared: &Shared, namespace: &Namespace, row: JobRow) -> StoredJob {
    if let Some(part) = row.unreadable {
        let seq = row.job.seq;
        // With the row itself its id may be wrong.
        let id = Some(row.job.id.as_str()).filter(|_| part != "row");
        shared.damage.note(Some(namespace), seq, damaged(seq, id, part));
    }
    row.shown()
}

/// One job; `None` if its row went meanwhile.
pub(crate) async fn job(
    shared: &Shared,
    namespace: &Namespace,
    seq: Seq,
    state: JobState,
) -> Result<Option<JobView>, CallError> {
    let ns = namespace.clone();
    match shared.read(move |conn| rows::job(conn, &ns, seq, true)).await? {
        Found::Job(row) => {
            let job = shown_row(shared, namespace, *row);
            view(job, state).map(Some).ok_or_else(|| unreadable(seq))
        }
        Found::Gone => Ok(None),
        Found::Unreadable => {
            shared.damage.note(Some(namespace), seq, damaged(seq, None, "row"));
            Err(unreadable(seq))
        }
    }
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
        let ns = namespace.clone();
        let all = move |conn: &Connection| {
            wanted.iter().map(|seq| rows::job(conn, &ns, *seq, full)).collect()
        };
        read = shared.read::<Vec<Found>>(all).await?;
    }
    let mut read = read.into_iter();
    let mut views = Vec::with_capacity(jobs.len());
    for PushedShown { shown, duplicate, replaced, unasked, known } in jobs {
        let (seq, stored, state) = match shown {
            Shown::Built(job, state) => (job.seq, Some(*job), state),
            Shown::Read(seq, state) => match read.next() {
                Some(Found::Job(row)) => (seq, Some(shown_row(shared, namespace, *row)), state),
                Some(Found::Unreadable) => return Err(unreadable(seq)),
                Some(Found::Gone) | None => (seq, None, state),
            },
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

/// Puts the redacted data into views of resources.
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
            match rows::data(conn, (namespace.as_str(), pool.as_str(), view.id.as_str()))? {
                Data::Known(data) => view.data = redacted(&data),
                Data::Gone => view.data = Json::null(),
                Data::Unreadable => {
                    view.data = Json::null();
                    view.reason = view.reason.take().or_else(|| Some(unreadable_part("data")));
                }
            }
        }
        Ok(views)
    };
    shared.read(read).await
}
