//! Emits events: helpers for steps. The code that makes a change chooses its event.

use crate::rows::stored::lease_id;
use crate::state::{LiveJobId, LiveResourceId, Space};
use tenure_core::events::{About, EventType, Happened};
use tenure_core::lease::Fence;
use tenure_core::time::Moment;

impl Space {
    /// Emits an event in this step.
    pub(crate) fn happens(&mut self, kind: EventType, about: About, now: Moment) {
        self.outbox.events.push(Happened::new(now, kind, about));
    }

    /// The common fields of every event of a live job.
    pub(crate) fn about_job(&self, slot: LiveJobId) -> About {
        let job = &self.jobs[slot];
        About {
            job: Some(job.id.clone()),
            queue: self.lines[self.jobs.shape(job.shape).queue].name.clone(),
            flow: job.flow().cloned(),
            schedule: job.origin.as_ref().map(|origin| origin.by.id.clone()),
            ..About::default()
        }
    }

    /// Emits an event of a live job without further fields.
    pub(crate) fn job_happens(&mut self, slot: LiveJobId, kind: EventType, now: Moment) {
        let about = self.about_job(slot);
        self.happens(kind, about, now);
    }

    /// Emits that a waiting job may run now.
    pub(crate) fn job_is_ready(&mut self, slot: LiveJobId, why: &'static str, now: Moment) {
        let about = About { why: Some(why.into()), ..self.about_job(slot) };
        self.happens(EventType::JobReady, about, now);
    }

    /// The id of the lease of a job's run.
    pub(crate) fn lease_of(&self, slot: LiveJobId, fence: Fence) -> String {
        lease_id(fence, self.jobs[slot].seq)
    }

    /// Emits an event of a resource.
    pub(crate) fn resource_happens(
        &mut self,
        slot: LiveResourceId,
        kind: EventType,
        about: About,
        now: Moment,
    ) {
        let r = &self.pools[slot];
        let (pool, resource) = (Some(self.pools[r.pool].name.clone()), Some(r.id.clone()));
        self.happens(kind, About { pool, resource, ..about }, now);
    }
}
