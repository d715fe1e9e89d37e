//! Jobs between rows and a copy.

use std::sync::Arc;

use super::flows::KeptForOthers;
use super::{CopiedRows, schedules};
use crate::rows::{JobChange, JobContent, JobEnd};
use crate::state::{JobKey, Kin};
use crate::stored::{StoredJob, StoredLife, StoredShape};
use tenure_core::copy::{CopiedJob, Holds, Item};
use tenure_core::job::JobState;
use tenure_core::names::UniqueKey;
use tenure_core::time::Moment;

/// The unique key that a job's row says it has.
pub fn key_of(stored: &StoredJob) -> Option<UniqueKey> {
    Some(StoredLife::decode(&stored.life)?.unique?.unique.key)
}

/// A job's row as a thing. `kept`: until when it is kept by its row and what it takes, if it is finished.
pub fn job(
    stored: StoredJob,
    kept: Option<(Moment, u32)>,
    for_others: KeptForOthers,
    holds: Option<Holds>,
) -> Option<Item> {
    // One that is held for others is kept without end by its row, and takes nothing.
    let kept = for_others.by_itself.or(kept);
    let shape = StoredShape::decode(&stored.shape)?;
    let life = StoredLife::decode(&stored.life)?;
    Some(Item::Job(Box::new(CopiedJob {
        id: stored.id,
        kind: stored.kind,
        payload: stored.payload.unwrap_or_default(),
        labels: stored.labels,
        traceparent: stored.traceparent,
        queue: shape.queue,
        priority: shape.priority,
        group: shape.group,
        needs: shape.needs,
        retry: shape.retry,
        timeout: shape.timeout,
        retain: shape.retain,
        state: stored.state,
        arrival: life.arrival,
        created_at: life.created_at,
        run_at: life.run_at,
        started_at: life.started_at,
        finished_at: life.finished_at,
        kept_until: kept.map(|kept| kept.0),
        expires_at: life.expires_at,
        wait: life.wait,
        ended: life.ended,
        lost: life.lost,
        released: life.released,
        undelivered: life.undelivered,
        snoozed: life.snoozed,
        ended_unsettled: life.ended_unsettled,
        cancel_requested: life.cancel_requested,
        keeps_place: life.keeps_place,
        wait_began: life.unique.as_ref().and_then(|key| key.began),
        unique: life.unique.map(|key| key.unique),
        holds,
        bytes: kept.map_or(life.bytes, |kept| kept.1),
        result: stored.result,
        progress: stored.progress,
        error: stored.error,
        errors: stored.errors,
        origin: life.origin.map(|origin| schedules::origin_of(*origin)),
        flow: life.kin.and_then(|kin| kin.flow),
        cancelled_children: for_others.cancelled_children,
    })))
}

impl CopiedRows<'_> {
    pub(super) fn job(&mut self, job: CopiedJob) {
        let seq = self.last_seq.next();
        self.last_seq = seq;
        if let (Some(unique), Some(holds)) = (&job.unique, job.holds) {
            self.key(&unique.key, seq, job.id.clone(), holds, job.ended_job().as_ref());
        }
        if job.cancelled_children > 0 {
            self.cancelled_children(seq, job.cancelled_children);
        }
        let shape = StoredShape {
            queue: job.queue.clone(),
            priority: job.priority,
            group: job.group,
            needs: job.needs,
            retry: job.retry,
            timeout: job.timeout,
            retain: job.retain,
        };
        let life = StoredLife {
            // Whom it waits for comes behind the jobs.
            kin: job.flow.clone().map(|flow| Box::new(Kin { flow: Some(flow), ..Kin::none() })),
            arrival: job.arrival,
            created_at: job.created_at,
            run_at: job.run_at,
            started_at: job.started_at,
            finished_at: job.finished_at,
            expires_at: job.expires_at,
            wait: job.wait,
            ended: job.ended,
            lost: job.lost,
            released: job.released,
            undelivered: job.undelivered,
            snoozed: job.snoozed,
            ended_unsettled: job.ended_unsettled,
            cancel_requested: job.cancel_requested,
            keeps_place: job.keeps_place,
            unique: job.unique.map(|unique| JobKey { unique, began: job.wait_began }),
            edits: 0,
            // A lease is named by a row number too: nobody asks for these again.
            settles: Vec::new(),
            bytes: job.bytes,
            lease: None,
            origin: job.origin.map(schedules::origin),
        };
        let shape: std::sync::Arc<[u8]> = shape.encode().into();
        let end = job.kept_until.filter(|_| job.state.is_finished()).map(|until| JobEnd {
            namespace: self.namespace.clone(),
            id: job.id.clone(),
            shape: shape.clone(),
            until,
            bytes: job.bytes,
            result: job.result,
        });
        let content = JobContent {
            kind: job.kind,
            payload: job.payload,
            labels: job.labels,
            traceparent: job.traceparent,
        };
        self.rows.errors.extend(job.errors.into_iter().map(|error| (seq, error)));
        let state = if job.state == JobState::Blocked { JobState::Ready } else { job.state };
        let change = JobChange {
            new: Some(Arc::new((self.namespace.clone(), job.id, content))),
            queue: Some(job.queue),
            flow: job.flow,
            state: Some(state),
            shape: Some(shape),
            life: Some(life.encode()),
            end,
            error: job.error.map(Some),
            progress: job.progress.map(Some),
            ..JobChange::default()
        };
        self.rows.jobs.insert(seq, change);
    }
}
