//! Calls about schedules that need a calendar or rows, from the caller's side.

use tenure_core::access::TokenName;
use tenure_core::job::PushedJob;
use tenure_core::names::Namespace;
use tenure_core::requests::{
    GetSchedule, PatchSchedule, Put, PutSchedule, RunScheduleNow, SyncSchedules,
};
use tenure_core::schedule::{ScheduleView, SyncedSchedules};
use tenure_engine_api::schedules::{check_set, never_fires, prepare_patch, prepare_put};
use tenure_engine_api::{CallError, ids};

use crate::calls::ask::{ask, ask_by};
use crate::shared::Shared;

pub(crate) async fn put(
    shared: &Shared,
    ns: &Namespace,
    by: Option<&TokenName>,
    mut put: PutSchedule,
) -> Result<Put<Box<ScheduleView>>, CallError> {
    let now = shared.clock.now();
    prepare_put(&mut put, now)?;
    let (id, timing) = (put.schedule.clone(), put.settings.timing.clone());
    let reply = ask_by(shared, ns, by, put).await;
    reply.map_err(|no| no.refused(|no| never_fires(no, &id, &timing, now)))
}

pub(crate) async fn patch(
    shared: &Shared,
    ns: &Namespace,
    by: Option<&TokenName>,
    mut patch: PatchSchedule,
) -> Result<Put<Box<ScheduleView>>, CallError> {
    let now = shared.clock.now();
    let id = patch.schedule.clone();
    let old = ask(shared, ns, GetSchedule { schedule: id.clone() }).await?;
    let timing = prepare_patch(&mut patch, &old.settings, now)?.timing;
    let reply = ask_by(shared, ns, by, patch).await;
    reply.map_err(|no| no.refused(|no| never_fires(no, &id, &timing, now)))
}

pub(crate) async fn run_now(
    shared: &Shared,
    ns: &Namespace,
    by: Option<&TokenName>,
    mut run: RunScheduleNow,
) -> Result<Box<PushedJob>, CallError> {
    if run.id.is_none() {
        run.id = Some(ids::job_id(shared.clock.now())?);
    }
    ask_by(shared, ns, by, run).await
}

pub(crate) async fn sync(
    shared: &Shared,
    ns: &Namespace,
    by: Option<&TokenName>,
    sync: SyncSchedules,
) -> Result<SyncedSchedules, CallError> {
    check_set(&sync)?;
    ask_by(shared, ns, by, sync).await
}
