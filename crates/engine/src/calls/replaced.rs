//! The number of bytes that an operation overwrites.

use rusqlite::Connection;
use tenure_core::names::{Namespace, ScheduleId};
use tenure_core::requests::{GetJob, GetLimit, GetPool, GetQueue, GetSchedule, Patch};
use tenure_core::settings::NewResource;
use tenure_engine_api::CallError;

use crate::calls::ask::ask;
use crate::shared::Shared;
use crate::sqlite::capacity::growth::{
    ROW_BYTES, Replaced, of_labels, of_resource, of_scheduled, parts, text,
};
use crate::sqlite::rows::{self, Data};

/// The bytes of the replaced rows, counted as [`growth`](crate::sqlite::capacity::growth::growth) counts the new ones; 0 if there
/// are none.
pub(super) async fn bytes(
    shared: &Shared,
    ns: &Namespace,
    replaced: Replaced<'_>,
) -> Result<u64, CallError> {
    let found = match replaced {
        Replaced::Job(patch) => {
            ask(shared, ns, GetJob { job: patch.job.clone() }).await.map(|job| {
                named(&patch.payload, || job.payload.as_ref().map_or(0, text))
                    + named(&patch.labels, || of_labels(&job.labels))
                    + named(&patch.needs, || parts(job.needs.len()))
            })
        }
        Replaced::Schedule(id) => schedule(shared, ns, id).await,
        Replaced::Schedules(set) => {
            let mut bytes = 0;
            for (id, _) in set {
                bytes += or_nothing(schedule(shared, ns, id).await)?;
            }
            Ok(bytes)
        }
        Replaced::Resources(pool, resources) => {
            let seal = shared.seal.clone();
            let key = |one: &NewResource| (ns.clone(), pool.clone(), one.id.clone());
            let keys: Vec<_> = resources.iter().map(key).collect();
            let read = move |conn: &Connection| {
                keys.iter().try_fold(0, |bytes, key| {
                    let data = rows::data(conn, &seal, key)?;
                    Ok(bytes + if let Data::Known(data) = data { of_resource(&data) } else { 0 })
                })
            };
            shared.read(read).await
        }
        Replaced::Data(patch) => {
            let seal = shared.seal.clone();
            let key = (ns.clone(), patch.pool.clone(), patch.resource.clone());
            let read = move |conn: &Connection| {
                let data = rows::data(conn, &seal, &key)?;
                Ok(match data {
                    Data::Known(data) => text(&data),
                    Data::Gone | Data::Unreadable => 0,
                })
            };
            shared.read(read).await
        }
        Replaced::Queue(name) => {
            ask(shared, ns, GetQueue { queue: name.clone() }).await.map(|_| ROW_BYTES)
        }
        Replaced::Limit(name) => {
            ask(shared, ns, GetLimit { limit: name.clone() }).await.map(|_| ROW_BYTES)
        }
        Replaced::Pool(name) => {
            ask(shared, ns, GetPool { pool: name.clone() }).await.map(|_| ROW_BYTES)
        }
    };
    or_nothing(found)
}

async fn schedule(shared: &Shared, ns: &Namespace, id: &ScheduleId) -> Result<u64, CallError> {
    let schedule = ask(shared, ns, GetSchedule { schedule: id.clone() }).await?;
    Ok(of_scheduled(&schedule.settings.job))
}

/// Reads a refusal as 0 bytes: there is nothing to overwrite.
fn or_nothing(found: Result<u64, CallError>) -> Result<u64, CallError> {
    match found {
        Err(CallError::Refused(_)) => Ok(0),
        found => found,
    }
}

/// The bytes of a field, if the patch names it.
fn named<T>(patch: &Patch<T>, bytes: impl FnOnce() -> u64) -> u64 {
    match patch {
        Patch::Keep => 0,
        Patch::Reset | Patch::Set(_) => bytes(),
    }
}
